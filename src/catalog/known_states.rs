//! Caches the states of people, until anything is committed, by anybody.
//!
//! Every request asks for the state of its person before it does any work, so that even finding a kept row
//! (the text of a statement, what it found, a checksum) is much. Knows no tables.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ahash::HashMap;

use super::log_index::LogState;
use crate::model::ids::PersonId;

/// How many people are known at most.
const MOST_PEOPLE: usize = 10_000;

/// The state of everything that belongs to a person: what they stored, defined, wrote and prefer. While it
/// stays the same, none of that has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PersonState {
    pub(super) sequence: i64,
    pub(super) partitions: i64,
    /// When pieces are rewritten, which changes no record, only this changes.
    pub(super) digest: u32,
}

#[cfg(test)]
impl PersonState {
    /// How many changes there were.
    #[must_use]
    pub const fn changes(self) -> i64 {
        self.sequence
    }
}

/// The states that people had in one state of the log. Cheap to clone; all clones share the states.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownStates(Arc<Mutex<StatesOfLog>>);

#[derive(Debug, Default)]
struct StatesOfLog {
    log: Option<LogState>,
    people: HashMap<PersonId, PersonState>,
}

impl KnownStates {
    /// The state of a person in this state of the log, if it is known.
    pub(super) fn find(&self, log: LogState, person: PersonId) -> Option<PersonState> {
        let known = self.known();
        known
            .people
            .get(&person)
            .filter(|_| known.log == Some(log))
            .copied()
    }

    /// Keeps a state that was read after `log` was.
    pub(super) fn keep(&self, log: LogState, person: PersonId, state: PersonState) {
        let mut known = self.known();
        if known.log != Some(log) || known.people.len() >= MOST_PEOPLE {
            known.people.clear();
            known.log = Some(log);
        }
        known.people.insert(person, state);
    }

    /// Drops all that is known.
    pub(super) fn forget_all(&self) {
        *self.known() = StatesOfLog::default();
    }

    fn known(&self) -> MutexGuard<'_, StatesOfLog> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
