//! The memory for the rows of a wrapped body, taken while they are made.
//!
//! Knows bytes; knows nothing of records.

use crate::api::problem::ApiError;
use crate::ingest::memory::{Allowance, LEAST_MEMORY};

/// A body takes this many times its size: as received, and unwrapped;
const BESIDES_ROWS: usize = 2;
/// and as rows, most of which take less than their text.
pub(super) const FACTOR: usize = BESIDES_ROWS + 1;
/// Rows of a type with many columns take far more. So many times the size of their body may be more than the
/// share that one person has of the memory.
const MOST_OF_ROWS: usize = 8;

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
        // Half as much again, so that it does not begin anew for every few rows; but no more than it must be
        // beyond the person's share, for which a body waits until it is their first.
        let most = self.besides_rows.saturating_add(self.most);
        let fair = self.memory.share().max(wanted);
        Err(NotDecoded::Waits(
            wanted.saturating_add(wanted / 2).min(most).min(fair),
        ))
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
                Err(NotDecoded::Waits(wanted)) => room.memory.resize(wanted).await.map_err(ApiError::from),
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
