//! Ledgers: each person has one, and every change to what is theirs locks it first, so that the changes of
//! one person happen one after the other.
//!
//! People are locked in the order of their ids, and new ones are created on the way. Knows nothing of what is
//! changed.

use std::collections::{BTreeMap, BTreeSet};

use super::Catalog;
use super::database::{Patience, Session};
use super::erasure::refuse_erased;
use super::errors::CatalogError;
use super::estates::manifests::note_no_manifests;
use super::inserting::Existing;
use super::known_states::PersonState;
use super::roster::{enrol, new_person};
use super::rows::{Ledger, id};
use super::tables::{LEDGERS, PARTITIONS};
use super::verified_rows::one_of;
use crate::model::clock::Clock;
use crate::model::ids::PersonId;
use crate::model::time::Instant;

/// How many people's ledgers or partitions one statement reads.
pub(super) const PEOPLE_AT_ONCE: usize = 64;

impl Catalog {
    /// The present state of what belongs to a person; `None` for somebody who never had anything. Reads one
    /// row by its key.
    pub async fn person_state(&self, person: PersonId) -> Result<Option<PersonState>, CatalogError> {
        // Read before the row, so that this is not older than it.
        let log = self.database.log_state();
        if let Some(state) = log.and_then(|log| self.states.find(log, person)) {
            return Ok(Some(state));
        }
        let values = vec![id(person.0)];
        let found = self.database.find(&LEDGERS, "WHERE person = $1", values).await?;
        let state = |ledger: Ledger| PersonState {
            sequence: ledger.sequence,
            partitions: ledger.partitions,
            digest: ledger.digest,
        };
        let state = found.first().map(|row| Ledger::of(row).map(state)).transpose()?;
        if let (Some(log), Some(state)) = (log, state) {
            self.states.keep(log, person, state);
        }
        Ok(state)
    }

    /// A transaction that has locked `people`, as [`lock_for_change`] does. While somebody has stalled who
    /// locked one of them, those here who want the same take up one connection together.
    pub(super) async fn change_of(&self, people: &BTreeSet<PersonId>) -> Result<Session, CatalogError> {
        let _turns = if self.is_written_by_the_caller() {
            Vec::new()
        } else {
            self.turns.take(people).await?
        };
        let mut session = self.database.write().await?;
        lock_for_change(&mut session, people, &*self.time).await?;
        Ok(session)
    }
}

/// The ledgers of `people`, locked until the transaction ends. People who are new are created. `clock` is for
/// a database that has none.
pub(super) async fn lock_people(
    session: &mut Session,
    people: &BTreeSet<PersonId>,
    clock: &dyn Clock,
    patience: Patience,
) -> Result<BTreeMap<PersonId, Ledger>, CatalogError> {
    let mut ledgers = read_ledgers(session, people, patience).await?;
    let new: Vec<PersonId> = people
        .iter()
        .copied()
        .filter(|person| !ledgers.contains_key(person))
        .collect();
    if !new.is_empty() {
        let now = session.now(clock).await?;
        create_people(session, &new, None, now, patience).await?;
        ledgers = read_ledgers(session, people, patience).await?;
    }
    Ok(ledgers)
}

/// Locks the ledger of a person until the transaction ends; `false` if there is none.
pub(super) async fn lock_if_known(session: &mut Session, person: PersonId) -> Result<bool, CatalogError> {
    let ledgers = read_ledgers(session, &BTreeSet::from([person]), Patience::Waits).await?;
    Ok(!ledgers.is_empty())
}

/// Locks the ledgers of `people` for changes that write no ledger of their own: this counts each in the
/// ledger, so that a look at the ledger alone shows that something changed.
pub(super) async fn lock_for_change(
    session: &mut Session,
    people: &BTreeSet<PersonId>,
    clock: &dyn Clock,
) -> Result<(), CatalogError> {
    let mut ledgers = lock_people(session, people, clock, Patience::Waits).await?;
    for ledger in ledgers.values_mut() {
        ledger.sequence += 1;
    }
    let rows = ledgers.values().map(Ledger::values).collect();
    session.insert(&LEDGERS, rows, Existing::Replace).await?;
    Ok(())
}

/// Creates the people who do not exist yet; returns how many were new.
pub(super) async fn create_people(
    session: &mut Session,
    people: &[PersonId],
    name: Option<&str>,
    now: Instant,
    patience: Patience,
) -> Result<u64, CatalogError> {
    let mut rows = Vec::with_capacity(people.len());
    for person in people {
        refuse_erased(session, *person, patience).await?;
        refuse_lost(session, *person).await?;
        rows.push(new_person(*person, name, now));
    }
    let created = enrol(session, rows, patience).await?;
    let ledgers = people.iter().map(|person| Ledger::empty(*person).values());
    session
        .insert(&LEDGERS, ledgers.collect(), Existing::Keep)
        .await?;
    let count = created.len() as u64;
    note_no_manifests(session, created, now).await?;
    Ok(count)
}

/// Refuses to recreate a lost ledger: a new person has no partitions.
async fn refuse_lost(session: &mut Session, person: PersonId) -> Result<(), CatalogError> {
    if !session
        .select(&PARTITIONS, "WHERE person = $1 LIMIT 1", vec![id(person.0)])
        .await?
        .is_empty()
        && session
            .select(&LEDGERS, "WHERE person = $1", vec![id(person.0)])
            .await?
            .is_empty()
    {
        return Err(CatalogError::corrupt(format!(
            "person {person} has partitions but was lost"
        )));
    }
    Ok(())
}

async fn read_ledgers(
    session: &mut Session,
    people: &BTreeSet<PersonId>,
    patience: Patience,
) -> Result<BTreeMap<PersonId, Ledger>, CatalogError> {
    let locking = session.locking_with(patience);
    let mut ledgers = BTreeMap::new();
    let people: Vec<PersonId> = people.iter().copied().collect();
    for some in people.chunks(PEOPLE_AT_ONCE) {
        let (list, values) = one_of(1, some.iter().map(|person| id(person.0)).collect());
        let rest = format!("WHERE person IN {list} ORDER BY person{locking}");
        for verified in session.select(&LEDGERS, &rest, values).await? {
            let ledger = Ledger::of(&verified)?;
            ledgers.insert(ledger.person, ledger);
        }
    }
    Ok(ledgers)
}
