//! The erasure of one person, as it is noted in the catalogue, and whether it still is the one that is under
//! way.
//!
//! Somebody whose erasure is over may begin anew. So whoever goes on with an erasure asks in each transaction
//! whether it still is under way, and holds its row until the transaction ends. Knows nothing of what is
//! removed.

use crate::catalog::database::{Patience, Session, Value};
use crate::catalog::errors::CatalogError;
use crate::catalog::tables::ERASURES;
use crate::catalog::verified_rows::VerifiedRow;
use crate::model::erasure::ErasureMark;
use crate::model::ids::PersonId;
use crate::model::time::Instant;

/// The erasure of a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Erasure {
    pub mark: ErasureMark,
    /// The person's id, as long as there may be something to look for.
    pub person: Option<PersonId>,
    pub begun_at: Instant,
    /// When the last search that left nothing began.
    pub purged_at: Option<Instant>,
    /// When the erasure was over.
    pub ended_at: Option<Instant>,
}

impl Erasure {
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.ended_at.is_some()
    }

    /// Whether a token issued at this moment may be accepted; `None` where the moment is unknown.
    #[must_use]
    pub fn admits(&self, issued: Option<Instant>) -> bool {
        self.is_over() && issued.is_some_and(|issued| issued > self.begun_at)
    }

    /// Whether this is `earlier`, which was read before under the same mark, and is not over.
    pub(super) fn continues(&self, earlier: &Self) -> bool {
        !self.is_over() && self.begun_at == earlier.begun_at
    }

    pub(super) fn of(row: &VerifiedRow) -> Result<Self, CatalogError> {
        Ok(Self {
            mark: row.id(0, ErasureMark::from_slice)?,
            person: PersonId::from_slice(row.bytes(1)?),
            begun_at: Instant::from_micros(row.int(2)?),
            purged_at: row.optional_int(3).map(Instant::from_micros),
            ended_at: row.optional_int(4).map(Instant::from_micros),
        })
    }

    pub(super) fn values(&self) -> Vec<Value> {
        let moment = |moment: Option<Instant>| moment.map_or(Value::NullInt, |at| Value::Int(at.micros()));
        vec![
            Value::Bytes(self.mark.as_bytes().to_vec()),
            Value::Bytes(
                self.person
                    .map_or_else(Vec::new, |person| person.as_bytes().to_vec()),
            ),
            Value::Int(self.begun_at.micros()),
            moment(self.purged_at),
            moment(self.ended_at),
        ]
    }
}

/// What is known of the erasure with this mark.
pub(super) async fn read(session: &mut Session, mark: ErasureMark) -> Result<Option<Erasure>, CatalogError> {
    find(session, mark, "").await
}

/// Whether an erasure that was read before is still under way. If so, it stays that until the transaction
/// ends. Called first in a transaction: whoever waits for this row holds nothing that others wait for.
pub(super) async fn stays_under_way(session: &mut Session, erasure: &Erasure) -> Result<bool, CatalogError> {
    let locking = session.locking();
    let found = find(session, erasure.mark, locking).await?;
    Ok(found.is_some_and(|found| found.continues(erasure)))
}

async fn find(
    session: &mut Session,
    mark: ErasureMark,
    locking: &str,
) -> Result<Option<Erasure>, CatalogError> {
    let values = vec![Value::Bytes(mark.as_bytes().to_vec())];
    let rest = format!("WHERE mark = $1{locking}");
    let found = session.select(&ERASURES, &rest, values).await?;
    found.first().map(Erasure::of).transpose()
}

/// Refuses to create a person whose erasure is under way. No erasure begins before the transaction ends.
pub(super) async fn refuse_erased(
    session: &mut Session,
    person: PersonId,
    patience: Patience,
) -> Result<(), CatalogError> {
    session.lock_shared(ERASURES.name, patience).await?;
    match read(session, ErasureMark::of(person)).await? {
        Some(erasure) if !erasure.is_over() => Err(CatalogError::Erased { person }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_token_is_admitted_again_when_the_erasure_is_over_and_it_is_younger() {
        let moment = Instant::from_micros;
        let erasure = |ended_at| Erasure {
            mark: ErasureMark::of(PersonId(Uuid::nil())),
            person: None,
            begun_at: moment(10),
            purged_at: Some(moment(20)),
            ended_at,
        };
        let (under_way, over) = (erasure(None), erasure(Some(moment(30))));
        assert!(!under_way.admits(Some(moment(25))));
        assert!(over.admits(Some(moment(11))));
        assert!(!over.admits(Some(moment(10))));
        assert!(!over.admits(None));
    }
}
