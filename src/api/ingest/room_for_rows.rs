//! The memory for the rows of a wrapped body, taken while they are made.
//!
//! Knows bytes; knows nothing of records.

use crate::api::problem::ApiError;
use crate::ingest::memory::{Allowance, LEAST_MEMORY, NoRoom};

/// A body takes this many times its size: as received, and unwrapped.
const BESIDES_ROWS: usize = 2;
/// As rows, it takes at most once more: most take less than their text.
pub(super) const FACTOR: usize = BESIDES_ROWS + 1;
/// Rows of a type with many columns take far more. So many times the size of their body may be more than the
/// share that one person has of the memory.
const MOST_OF_ROWS: usize = 8;
/// A large body waits for as much as the next of so many steps to the share: few waits bring it to its end,
/// and none is for much that it does not need.
const STEPS_TO_SHARE: usize = 4;

/// The memory of a body while its rows are made.
pub(super) struct RoomForRows {
    pub(super) memory: Allowance,
    besides_rows: usize,
    most: usize,
}

impl RoomForRows {
    /// For a body of `length` bytes, for which `memory` was taken.
    pub(super) fn new(memory: Allowance, length: usize) -> Self {
        Self {
            besides_rows: length.saturating_mul(BESIDES_ROWS),
            most: memory.share().max(length.saturating_mul(MOST_OF_ROWS)),
            memory,
        }
    }

    /// Ensures that there is memory for `rows` bytes of rows, as far as that needs no waiting.
    pub(super) fn hold(&mut self, rows: usize) -> Result<(), NotDecoded> {
        let wanted = self.besides_rows.saturating_add(rows);
        if wanted <= self.memory.bytes() {
            return Ok(());
        }
        if rows > self.most {
            let refusal = ApiError::content_too_large(format!(
                "the records of the body take more than {} bytes as rows; send it in parts",
                self.most
            ));
            return Err(NotDecoded::Refused(refusal));
        }
        if self.memory.grow_at_once(wanted.next_multiple_of(LEAST_MEMORY)) {
            return Ok(());
        }
        // Half as much again or up to the next step, so that it does not begin anew for every few rows.
        let step = (self.memory.share() / STEPS_TO_SHARE).max(LEAST_MEMORY);
        let more = wanted.saturating_add(wanted / 2);
        let most = self.besides_rows.saturating_add(self.most);
        Err(NotDecoded::Waits(
            more.min(wanted.next_multiple_of(step)).min(most),
        ))
    }

    /// Waits until there is memory for `wanted` bytes. Meanwhile the body has no rows: what it holds for them
    /// beyond the person's share is for others. The share it keeps, which small bodies would take each time.
    pub(super) async fn wait_for(&mut self, wanted: usize) -> Result<(), NoRoom> {
        let kept = self.memory.share().max(self.besides_rows);
        self.memory.resize(self.memory.bytes().min(kept)).await?;
        self.memory.resize(wanted).await
    }
}

/// Why a body is not decoded.
pub(super) enum NotDecoded {
    Refused(ApiError),
    /// Its rows need memory that others have. It begins anew once it holds this many bytes: while it waits it
    /// keeps no rows, and no thread that others need.
    Waits(usize),
}

impl From<ApiError> for NotDecoded {
    fn from(error: ApiError) -> Self {
        Self::Refused(error)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::http::StatusCode;
    use axum::response::IntoResponse as _;

    use super::*;
    use crate::ingest::memory::BodyMemory;
    use crate::model::ids::PersonId;

    const MIB: usize = 1 << 20;

    /// What is told of these bytes of rows, one after the other, and how much memory is held then.
    async fn held(mut memory: Allowance, length: usize, rows: Vec<usize>) -> (Vec<StatusCode>, usize) {
        memory.resize(length * FACTOR).await.unwrap();
        let mut room = RoomForRows::new(memory, length);
        let mut told = Vec::new();
        for rows in rows {
            let held = match room.hold(rows) {
                Err(NotDecoded::Waits(wanted)) => room.wait_for(wanted).await.map_err(ApiError::from),
                Err(NotDecoded::Refused(error)) => Err(error),
                Ok(()) => Ok(()),
            };
            told.push(match held {
                Ok(()) => StatusCode::CREATED,
                Err(error) => error.into_response().status(),
            });
        }
        (told, room.memory.bytes())
    }

    fn allowances<const N: usize>(bodies: &BodyMemory, people: [u128; N]) -> [Allowance; N] {
        people.map(|number| bodies.allowance(PersonId(uuid::Uuid::from_u128(number))))
    }

    #[tokio::test]
    async fn rows_that_take_more_than_their_body_are_counted_while_they_are_made() {
        let bodies = BodyMemory::new(8 * MIB, Duration::from_millis(20));
        let [mine, others] = allowances(&bodies, [1, 2]);
        let rows = vec![1000, 2 * MIB, 4 * MIB, 5 * MIB];
        let (told, taken) = held(mine, 1000, rows).await;
        let taken_in = StatusCode::CREATED;
        assert_eq!(
            told,
            [taken_in, taken_in, taken_in, StatusCode::PAYLOAD_TOO_LARGE]
        );
        assert!((4 * MIB..5 * MIB).contains(&taken), "{taken}");
        // A large body of small records is no reason to refuse it.
        let (told, _) = held(others, MIB, vec![MIB, 5 * MIB, 8 * MIB]).await;
        assert_eq!(told, [taken_in; 3]);
    }

    #[tokio::test]
    async fn rows_for_which_others_leave_no_memory_are_told_so() {
        let bodies = BodyMemory::new(8 * MIB, Duration::from_millis(20));
        let [mut first, mine] = allowances(&bodies, [1, 2]);
        first.resize(7 * MIB).await.unwrap();
        let (told, _) = held(mine, 1000, vec![100_000, 3 * MIB]).await;
        assert_eq!(told, [StatusCode::CREATED, StatusCode::TOO_MANY_REQUESTS]);
    }

    #[tokio::test]
    async fn rows_of_a_small_body_do_not_wait_behind_large_ones() {
        let bodies = BodyMemory::new(8 * MIB, Duration::from_millis(20));
        let [mut large, mine] = allowances(&bodies, [1, 2]);
        large.resize(8 * MIB).await.unwrap();
        let (told, taken) = held(mine, 200, vec![2_000, 20_000]).await;
        assert_eq!(told, [StatusCode::CREATED; 2]);
        assert!((20_400..30_000).contains(&taken), "{taken}");
    }

    #[tokio::test]
    async fn few_waits_bring_rows_to_their_end() {
        let bodies = BodyMemory::new(8 * MIB, Duration::from_millis(20));
        let [mut others, mut small, mut large] = allowances(&bodies, [1, 2, 3]);
        others.resize(MIB).await.unwrap();
        small.resize(30_000 * FACTOR).await.unwrap();
        large.resize(500_000 * FACTOR).await.unwrap();
        others.resize(8 * MIB).await.unwrap();
        let waits_for = |room: &mut RoomForRows, rows| match room.hold(rows) {
            Err(NotDecoded::Waits(wanted)) => wanted,
            Err(NotDecoded::Refused(_)) | Ok(()) => 0,
        };
        let mut small = RoomForRows::new(small, 30_000);
        assert_eq!(waits_for(&mut small, 100_000), 240_000);
        let mut large = RoomForRows::new(large, 500_000);
        let (share, most) = (4 * MIB, 1_000_000 + 4 * MIB);
        for (rows, wanted) in [
            (500_001, 2 * MIB),
            (MIB, 2 * MIB),
            (2 * MIB, 3 * MIB),
            (3 * MIB, share),
            (share - 1_000_000, share),
            (share - 999_999, most),
            (share, most),
        ] {
            assert_eq!(waits_for(&mut large, rows), wanted, "{rows}");
        }
    }

    #[tokio::test]
    async fn while_a_body_waits_others_have_what_it_held_beyond_the_share() {
        let bodies = BodyMemory::new(8 * MIB, Duration::from_secs(30));
        let [mut first, mut mine, mut other] = allowances(&bodies, [1, 2, 3]);
        first.resize(MIB).await.unwrap();
        mine.resize(MIB * FACTOR).await.unwrap();
        let mut room = RoomForRows::new(mine, MIB);
        assert!(room.hold(5 * MIB).is_ok());
        assert_eq!(bodies.taken(), 8 * MIB);
        let Err(NotDecoded::Waits(wanted)) = room.hold(6 * MIB) else {
            panic!("the first has the rest");
        };
        let (waited, ()) = tokio::join!(room.wait_for(wanted), async {
            other.resize(3 * MIB).await.unwrap();
            assert_eq!(bodies.taken(), 8 * MIB);
            drop(first);
        });
        // It is the first now.
        assert_eq!((waited, room.memory.bytes()), (Ok(()), wanted));
    }

    /// There is one thread here: if the wait kept it, nothing would be freed.
    #[tokio::test]
    async fn rows_that_wait_for_memory_keep_no_thread() {
        let bodies = BodyMemory::new(8 * MIB, Duration::from_secs(30));
        let [mut first, mine] = allowances(&bodies, [1, 2]);
        first.resize(7 * MIB).await.unwrap();
        let ((told, taken), ()) = tokio::join!(held(mine, 1000, vec![3 * MIB, 4 * MIB]), async {
            drop(first);
        });
        assert_eq!(told, [StatusCode::CREATED; 2]);
        assert!((4 * MIB..5 * MIB).contains(&taken), "{taken}");
    }
}
