//! Turns: of all in this process who want to lock the same person on a server, one at a time asks it for
//! that. The others wait here, where they take up none of its connections.
//!
//! A turn ends when the person is locked, or cannot be. Knows nothing of locks.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{Mutex as Turn, OwnedMutexGuard};

use super::database::LOCK_PATIENCE;
use super::errors::CatalogError;
use crate::model::ids::PersonId;

/// Whose turn it is, for each person whom somebody waits for.
#[derive(Clone, Default)]
pub(super) struct Turns {
    people: Arc<Mutex<HashMap<PersonId, Weak<Turn<()>>>>>,
}

impl Turns {
    /// Waits for the caller's turn, which ends when what this returns is dropped.
    pub(super) async fn take(
        &self,
        people: &BTreeSet<PersonId>,
    ) -> Result<Vec<OwnedMutexGuard<()>>, CatalogError> {
        let taking = async {
            let mut taken = Vec::with_capacity(people.len());
            // In the order of their ids, so that nobody who has one waits for another in a circle.
            for person in people {
                taken.push(self.of(*person).lock_owned().await);
            }
            taken
        };
        let taken = tokio::time::timeout(LOCK_PATIENCE, taking).await;
        taken.map_err(|_| CatalogError::Contended {
            detail: "others wait to change what belongs to the same person".to_owned(),
        })
    }

    fn of(&self, person: PersonId) -> Arc<Turn<()>> {
        let mut people = self.people.lock().unwrap_or_else(PoisonError::into_inner);
        people.retain(|_, turn| turn.strong_count() > 0);
        if let Some(turn) = people.get(&person).and_then(Weak::upgrade) {
            return turn;
        }
        let turn = Arc::default();
        people.insert(person, Arc::downgrade(&turn));
        turn
    }
}

#[cfg(test)]
mod tests {
    use futures::future::poll_immediate;
    use uuid::Uuid;

    use super::*;

    #[tokio::test]
    async fn one_person_has_one_turn_at_a_time_and_others_have_theirs() {
        let turns = Turns::default();
        let people = |ids: &[u128]| -> BTreeSet<PersonId> {
            ids.iter().map(|id| PersonId(Uuid::from_u128(*id))).collect()
        };
        let (one, both, other) = (people(&[1]), people(&[1, 2]), people(&[2]));
        let first = turns.take(&one).await.unwrap();
        let mut second = Box::pin(turns.take(&both));
        let mut third = Box::pin(turns.take(&one));
        assert!(poll_immediate(&mut second).await.is_none());
        assert!(poll_immediate(&mut third).await.is_none());
        turns.take(&other).await.unwrap();
        drop(first);
        let both = second.await.unwrap();
        assert!(
            poll_immediate(&mut third).await.is_none(),
            "in the order in which they came"
        );
        drop(both);
        drop(third.await.unwrap());
        turns.take(&other).await.unwrap();
        assert_eq!(
            turns.people.lock().unwrap().len(),
            1,
            "nobody waits for the first person"
        );
    }
}
