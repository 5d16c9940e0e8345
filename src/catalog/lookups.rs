//! Finds rows of SQLite by their keys, on the calling thread.
//!
//! The driver hands every statement to a thread of the connection's own and waits for it, which costs several
//! times what finding a row does. What a request asks of the catalogue before it does any work (may this be
//! read, what is there now) is a few rows by their key, most of them in memory, so it is asked here.
//! Statements that read much, transactions, and everything of PostgreSQL go through the driver. Found rows
//! are kept until the next commit.
//!
//! Never waits: a caller that would have to wait gets its statement back, and asks the driver. Knows no
//! tables.

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OpenFlags, Statement, ToSql};

use super::kept_rows::{BoundStatement, KeptRows};
use super::log_index::{LogIndex, LogState};
use super::value::{StoredValue, Value};

/// How many statements are kept prepared on a connection.
const PREPARED_STATEMENTS: usize = 64;
/// How many connections are kept open. Further threads ask the driver.
const CONNECTIONS: usize = 8;

/// The connections, which go to whoever asks next.
#[derive(Clone, Debug)]
pub(super) struct Lookups(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    inner: Mutex<Inner>,
    /// Tells whether anything was committed; `None` where nothing can be kept. Released after the
    /// connections.
    index: Option<LogIndex>,
}

#[derive(Debug)]
struct Inner {
    idle: Vec<Connection>,
    /// How many more connections may be opened.
    unopened: usize,
    /// After closing, a connection that was in use is not kept when it comes back.
    is_closed: bool,
    /// Keeps SQLite from recreating the index, and is used for nothing else.
    anchor: Option<Connection>,
    kept: KeptRows,
}

impl Lookups {
    /// Opens the file at `path`, which exists.
    pub(super) fn open(path: &Path) -> Self {
        let anchor = open(path).ok();
        Self(Arc::new(Shared {
            path: path.to_owned(),
            index: anchor.as_ref().and_then(LogIndex::of),
            inner: Mutex::new(Inner {
                idle: Vec::new(),
                unopened: CONNECTIONS,
                is_closed: false,
                anchor,
                kept: KeptRows::default(),
            }),
        }))
    }

    /// The rows that the statement finds. Returns the statement when it must be asked in another way: all
    /// connections are taken, somebody is in the way, or something is wrong that the driver is to report.
    pub(super) fn look_up(&self, statement: BoundStatement) -> Result<Vec<Vec<StoredValue>>, BoundStatement> {
        // Read before the rows, so that these are not older than it.
        let state = self.log_state();
        if let Some(rows) = state.and_then(|state| self.inner().kept.find(state, &statement)) {
            return Ok(rows);
        }
        let (statement, found) = self.read(statement)?;
        let mut inner = self.inner();
        if let Some(state) = state.filter(|_| !inner.is_closed) {
            inner.kept.keep(state, statement, &found);
        }
        Ok(found)
    }

    /// The rows that the statement finds, if nobody is likely to ask for them again soon. They are not kept,
    /// because they would displace those that are asked for again and again.
    pub(super) fn look_up_once(
        &self,
        statement: BoundStatement,
    ) -> Result<Vec<Vec<StoredValue>>, BoundStatement> {
        self.read(statement).map(|(_, found)| found)
    }

    /// The present state of the log, if it can be told.
    pub(super) fn log_state(&self) -> Option<LogState> {
        self.0.index.as_ref().and_then(LogIndex::state)
    }

    /// Whether a transaction that has begun to write may begin another round of the log, as far as that can
    /// be told.
    pub(super) fn may_begin_round(&self) -> bool {
        self.0.index.as_ref().is_none_or(LogIndex::may_begin_round)
    }

    /// Drops all cached rows.
    pub(super) fn forget_all(&self) {
        self.inner().kept.forget();
    }

    /// Closes the connections, and opens no more.
    pub(super) fn close(&self) {
        let mut inner = self.inner();
        inner.is_closed = true;
        inner.idle.clear();
        inner.kept.forget();
        inner.anchor = None;
    }

    /// Reads the rows from the database; returns the statement beside them.
    fn read(
        &self,
        statement: BoundStatement,
    ) -> Result<(BoundStatement, Vec<Vec<StoredValue>>), BoundStatement> {
        let Some(connection) = self.take() else {
            return Err(statement);
        };
        let found = rows(&connection, &statement.sql, &statement.values);
        let mut inner = self.inner();
        let Ok(found) = found else {
            // A connection that failed is not used again.
            inner.unopened += 1;
            return Err(statement);
        };
        if !inner.is_closed {
            inner.idle.push(connection);
        }
        Ok((statement, found))
    }

    fn take(&self) -> Option<Connection> {
        let mut inner = self.inner();
        if inner.is_closed {
            return None;
        }
        if let Some(idle) = inner.idle.pop() {
            return Some(idle);
        }
        inner.unopened = inner.unopened.checked_sub(1)?;
        drop(inner);
        let opened = open(&self.0.path);
        if opened.is_err() {
            self.inner().unopened += 1;
        }
        opened.ok()
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn open(path: &Path) -> rusqlite::Result<Connection> {
    // Each connection has only one user at a time, so it needs no lock of its own.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(std::time::Duration::ZERO)?;
    connection.set_prepared_statement_cache_capacity(PREPARED_STATEMENTS);
    connection
        .execute_batch("PRAGMA query_only = on; PRAGMA cell_size_check = on; PRAGMA cache_size = -4096;")?;
    Ok(connection)
}

pub(super) fn rows(
    connection: &Connection,
    sql: &str,
    values: &[Value],
) -> rusqlite::Result<Vec<Vec<StoredValue>>> {
    let mut statement = connection.prepare_cached(sql)?;
    bind(&mut statement, values)?;
    let columns = statement.column_count();
    let mut found = Vec::new();
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next()? {
        let mut values = Vec::with_capacity(columns);
        for column in 0..columns {
            values.push(row.get(column)?);
        }
        found.push(values);
    }
    Ok(found)
}

/// Binds values to marks. `$2` is the second value wherever and however often it stands; marks without a
/// number take the values in turn.
pub(super) fn bind(statement: &mut Statement<'_>, values: &[Value]) -> rusqlite::Result<()> {
    for mark in 1..=statement.parameter_count() {
        let number = statement
            .parameter_name(mark)
            .and_then(|name| name.strip_prefix('$'))
            .and_then(|number| number.parse().ok())
            .unwrap_or(mark);
        let value = number
            .checked_sub(1)
            .and_then(|index| values.get(index))
            .ok_or(rusqlite::Error::InvalidParameterCount(number, values.len()))?;
        statement.raw_bind_parameter(mark, value)?;
    }
    Ok(())
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Int(value) => ValueRef::Integer(*value),
            Self::Text(value) => ValueRef::Text(value.as_bytes()),
            Self::Bytes(value) => ValueRef::Blob(value),
            Self::NullInt | Self::NullText => ValueRef::Null,
        }))
    }
}
