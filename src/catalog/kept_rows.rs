//! Caches rows that were looked up, until anything is committed, by anybody: until then the same statement
//! would find the same rows.
//!
//! Keeps few bytes, since the next commit makes them worthless. Knows neither files nor tables.

use ahash::{HashMap, HashMapExt};

use super::log_index::LogState;
use super::value::{StoredValue, Value};

/// How many bytes all kept rows may take, and those that one statement found.
const MOST_BYTES: usize = 2 << 20;
const MOST_BYTES_OF_ONE: usize = 4 << 10;
/// How many bytes a statement, and a value, takes beside its own.
const BYTES_AROUND_STATEMENT: usize = 128;
const BYTES_AROUND_VALUE: usize = 32;

/// A statement and what is bound to it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct BoundStatement {
    pub sql: String,
    pub values: Vec<Value>,
}

/// Rows found in one state of the log.
#[derive(Debug, Default)]
pub(super) struct KeptRows {
    state: Option<LogState>,
    rows: HashMap<BoundStatement, Vec<Vec<StoredValue>>>,
    bytes: usize,
}

impl KeptRows {
    pub(super) fn find(
        &mut self,
        state: LogState,
        statement: &BoundStatement,
    ) -> Option<Vec<Vec<StoredValue>>> {
        self.pass_to(state);
        self.rows.get(statement).cloned()
    }

    /// Keeps rows that were found after `state` was read from the log.
    pub(super) fn keep(&mut self, state: LogState, statement: BoundStatement, rows: &[Vec<StoredValue>]) {
        self.pass_to(state);
        let bytes = weight(&statement, rows);
        if bytes > MOST_BYTES_OF_ONE {
            return;
        }
        if self.bytes + bytes > MOST_BYTES {
            self.forget();
        }
        if self.rows.insert(statement, rows.to_vec()).is_none() {
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

    /// Drops rows of another state, and frees their room.
    fn pass_to(&mut self, state: LogState) {
        if self.state != Some(state) {
            self.rows.clear();
            self.bytes = 0;
            self.state = Some(state);
        }
    }
}

fn weight(statement: &BoundStatement, rows: &[Vec<StoredValue>]) -> usize {
    let bound = statement.values.iter().map(|value| match value {
        Value::Text(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        Value::Int(_) | Value::NullInt | Value::NullText => 0,
    });
    let found = rows.iter().flatten().map(|value| match value {
        StoredValue::Text(text) => text.len(),
        StoredValue::Blob(bytes) => bytes.len(),
        StoredValue::Null | StoredValue::Integer(_) | StoredValue::Real(_) => 0,
    });
    let lengths = bound.chain(found).map(|length| BYTES_AROUND_VALUE + length);
    BYTES_AROUND_STATEMENT + statement.sql.len() + lengths.sum::<usize>()
}
