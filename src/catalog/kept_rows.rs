//! Rows that were looked up, kept until anything is committed, by whomever: they are what the same statement
//! would find again.
//!
//! Keeps few bytes, since the next commit makes them worthless. Knows neither files nor tables.

use std::collections::HashMap;

use super::log_index::LogState;
use super::value::{Found, Value};

/// Bytes of all rows that are kept, and of those that one statement found.
const MOST: usize = 2 << 20;
const MOST_OF_ONE: usize = 4 << 10;
/// Bytes that a statement, and a value, takes beside its own.
const AROUND_ONE: usize = 128;
const AROUND_VALUE: usize = 32;

/// A statement and what is bound to it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Asked {
    pub sql: String,
    pub values: Vec<Value>,
}

/// Rows of one state of the log.
#[derive(Debug, Default)]
pub(super) struct KeptRows {
    state: Option<LogState>,
    rows: HashMap<Asked, Vec<Vec<Found>>>,
    bytes: usize,
}

impl KeptRows {
    pub(super) fn find(&mut self, state: LogState, asked: &Asked) -> Option<Vec<Vec<Found>>> {
        self.pass_to(state);
        self.rows.get(asked).cloned()
    }

    /// Keeps rows that were found after the log had been in `state`.
    pub(super) fn keep(&mut self, state: LogState, asked: Asked, rows: &[Vec<Found>]) {
        self.pass_to(state);
        let bytes = weight(&asked, rows);
        if bytes > MOST_OF_ONE {
            return;
        }
        if self.bytes + bytes > MOST {
            self.forget();
        }
        if self.rows.insert(asked, rows.to_vec()).is_none() {
            self.bytes += bytes;
        }
    }

    #[cfg(test)]
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn forget(&mut self) {
        self.rows = HashMap::new();
        self.bytes = 0;
    }

    /// Rows of another state are let go, and the room that they had is used again.
    fn pass_to(&mut self, state: LogState) {
        if self.state != Some(state) {
            self.rows.clear();
            self.bytes = 0;
            self.state = Some(state);
        }
    }
}

fn weight(asked: &Asked, rows: &[Vec<Found>]) -> usize {
    let bound = asked.values.iter().map(|value| match value {
        Value::Text(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        Value::Int(_) | Value::NullInt | Value::NullText => 0,
    });
    let found = rows.iter().flatten().map(|value| match value {
        Found::Text(text) => text.len(),
        Found::Blob(bytes) => bytes.len(),
        Found::Null | Found::Integer(_) | Found::Real(_) => 0,
    });
    let lengths = bound.chain(found).map(|length| AROUND_VALUE + length);
    AROUND_ONE + asked.sql.len() + lengths.sum::<usize>()
}
