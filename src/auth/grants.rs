//! The one decision about reading: (reader, owner, type, range) is refused, or becomes the windows that may
//! be read.
//!
//! Every read takes its permit from [`Grants`], because nothing that reads rows accepts anything else and
//! nobody else can make one: a permit is bound to [`Warden`], and the only warden is locked up in here. Until
//! people can share, a person reads everything of their own and nothing of anybody else's; whether that
//! somebody exists makes no difference.

use crate::model::ids::PersonId;
use crate::model::permit::{ListPermit, ReadPermit, Visible, Windows};
use crate::model::registry::TypeId;
use crate::model::time::TimeRange;

use super::tokens::Reader;

/// The authority that permits are bound to. It can be named anywhere and held only by [`Grants`].
#[derive(Debug)]
pub struct Warden(());

/// Permission to read one type of one person.
pub type Readable = ReadPermit<Warden>;

/// Permission to list what one person has.
pub type ReadableTypes = ListPermit<Warden>;

/// The reader may not see this. Nothing is said about whether it exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this data is not shared with you")]
pub struct Refused;

/// Who may read what.
#[derive(Debug)]
pub struct Grants {
    warden: Warden,
}

impl Grants {
    /// The rule of a service in which nobody shares: each to their own.
    #[must_use]
    pub const fn each_to_their_own() -> Self {
        Self { warden: Warden(()) }
    }

    /// The windows of `range` in which `reader` may read `owner`'s rows of `data_type`.
    // Asking for shares will wait for the catalogue; callers already await the answer.
    #[expect(
        clippy::unused_async,
        reason = "a decision that looks up shares is asynchronous, and callers are not to change for it"
    )]
    pub async fn windows(
        &self,
        reader: &Reader,
        owner: PersonId,
        data_type: &TypeId,
        range: TimeRange,
    ) -> Result<Readable, Refused> {
        if reader.person() != owner {
            return Err(Refused);
        }
        Ok(ReadPermit::given(
            &self.warden,
            owner,
            data_type.clone(),
            Windows::new([range]),
        ))
    }

    /// What of `owner` a listing over `range` may show to `reader`.
    #[expect(
        clippy::unused_async,
        reason = "a decision that looks up shares is asynchronous, and callers are not to change for it"
    )]
    pub async fn readable_types(
        &self,
        reader: &Reader,
        owner: PersonId,
        range: TimeRange,
    ) -> Result<ReadableTypes, Refused> {
        if reader.person() != owner {
            return Err(Refused);
        }
        Ok(ListPermit::given(
            &self.warden,
            owner,
            Visible::EveryType(Windows::new([range])),
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use uuid::Uuid;

    use super::*;
    use crate::model::time::Instant;

    fn range() -> TimeRange {
        TimeRange::new(Instant::from_micros(0), Instant::from_micros(1_000)).unwrap()
    }

    fn heart_rate() -> TypeId {
        TypeId(Arc::from("HeartRate"))
    }

    #[tokio::test]
    async fn a_person_reads_the_whole_range_of_their_own() {
        let person = PersonId(Uuid::from_u128(1));
        let reader = Reader::for_tests(person);
        let permit = Grants::each_to_their_own()
            .windows(&reader, person, &heart_rate(), range())
            .await
            .unwrap();
        assert_eq!(permit.owner(), person);
        assert_eq!(permit.data_type(), &heart_rate());
        assert_eq!(permit.windows().as_slice(), [range()]);
    }

    #[tokio::test]
    async fn another_person_is_refused_for_rows_and_for_listings() {
        let reader = Reader::for_tests(PersonId(Uuid::from_u128(1)));
        let other = PersonId(Uuid::from_u128(2));
        let grants = Grants::each_to_their_own();
        assert_eq!(
            grants
                .windows(&reader, other, &heart_rate(), range())
                .await
                .unwrap_err(),
            Refused
        );
        assert_eq!(
            grants.readable_types(&reader, other, range()).await.unwrap_err(),
            Refused
        );
    }

    #[tokio::test]
    async fn a_listing_of_ones_own_shows_every_type() {
        let person = PersonId(Uuid::from_u128(1));
        let permit = Grants::each_to_their_own()
            .readable_types(&Reader::for_tests(person), person, range())
            .await
            .unwrap();
        assert_eq!(
            permit.windows_of(&heart_rate()).map(Windows::as_slice),
            Some([range()].as_slice())
        );
    }
}
