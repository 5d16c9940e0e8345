//! The transactions of an erasure: each does nothing unless the erasure is under way, and holds it there.
//!
//! Whoever takes a step may have been held up for so long that the person has begun anew. Knows nothing of
//! what is removed.

use std::collections::BTreeSet;

use crate::catalog::Catalog;
use crate::catalog::database::Session;
use crate::catalog::erasure::{Erasure, stays_under_way};
use crate::catalog::errors::CatalogError;
use crate::catalog::ledgers::lock_for_change;
use crate::model::ids::PersonId;

impl Catalog {
    /// Commits if any rows were changed; returns how many.
    pub(super) async fn conclude_if(&self, session: Session, changed: u64) -> Result<u64, CatalogError> {
        if changed == 0 {
            session.rollback().await?;
        } else {
            self.conclude(session).await?;
        }
        Ok(changed)
    }

    /// A transaction in which the erasure stays under way; `None` if it is over.
    pub(super) async fn while_under_way(&self, erasure: &Erasure) -> Result<Option<Session>, CatalogError> {
        let mut session = self.database.write().await?;
        if !stays_under_way(&mut session, erasure).await? {
            session.rollback().await?;
            return Ok(None);
        }
        Ok(Some(session))
    }

    /// The same, in which nobody else changes what belongs to `owner`.
    pub(super) async fn locked(
        &self,
        erasure: &Erasure,
        owner: PersonId,
    ) -> Result<Option<Session>, CatalogError> {
        let Some(mut session) = self.while_under_way(erasure).await? else {
            return Ok(None);
        };
        let people = BTreeSet::from([owner]);
        lock_for_change(&mut session, &people, &*self.time).await?;
        Ok(Some(session))
    }
}
