//! Rows of SQLite found by their keys, read on the thread that asks.
//!
//! The driver hands every statement to a thread of the connection's own and waits for it, which costs several
//! times what finding a row does. What a request asks of the catalogue before it does any work (may this be
//! read, what is there now) is a few rows by their key, most of them in memory, so it is asked here.
//! Statements that read much, transactions, and everything of PostgreSQL go through the driver.
//!
//! Never waits: who would have to is told so, and asks the driver. Knows no tables.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OpenFlags, Statement, ToSql};

use super::value::Value;

/// Statements kept prepared on a connection.
const PREPARED_STATEMENTS: usize = 64;
/// Connections kept open. One more thread than that asks the driver.
const CONNECTIONS: usize = 8;

/// A value that was read.
pub(super) type Found = rusqlite::types::Value;

/// The connections, which belong to whoever asks next.
#[derive(Clone, Debug)]
pub(super) struct Lookups(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    connections: Mutex<Connections>,
}

#[derive(Debug)]
struct Connections {
    idle: Vec<Connection>,
    /// How many further ones may be opened.
    unopened: usize,
    /// One that was in use then is not kept when it comes back.
    is_closed: bool,
}

impl Lookups {
    /// Opens nothing yet.
    pub(super) fn new(path: &Path) -> Self {
        Self(Arc::new(Shared {
            path: path.to_owned(),
            connections: Mutex::new(Connections {
                idle: Vec::new(),
                unopened: CONNECTIONS,
                is_closed: false,
            }),
        }))
    }

    /// The rows that the statement finds; `None` when it has to be asked in another way: all connections are
    /// taken, somebody is in the way, or something is wrong that the driver shall name.
    pub(super) fn look_up(&self, sql: &str, values: &[Value]) -> Option<Vec<Vec<Found>>> {
        let connection = self.take()?;
        let found = rows(&connection, sql, values);
        let mut connections = self.connections();
        // One that has failed is not used again.
        if found.is_ok() && !connections.is_closed {
            connections.idle.push(connection);
        } else {
            connections.unopened += 1;
        }
        found.ok()
    }

    /// Closes them, and opens no more.
    pub(super) fn close(&self) {
        let mut connections = self.connections();
        connections.is_closed = true;
        connections.idle.clear();
    }

    fn take(&self) -> Option<Connection> {
        let mut connections = self.connections();
        if connections.is_closed {
            return None;
        }
        if let Some(idle) = connections.idle.pop() {
            return Some(idle);
        }
        connections.unopened = connections.unopened.checked_sub(1)?;
        drop(connections);
        let opened = open(&self.0.path);
        if opened.is_err() {
            self.connections().unopened += 1;
        }
        opened.ok()
    }

    fn connections(&self) -> std::sync::MutexGuard<'_, Connections> {
        self.0.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn open(path: &Path) -> rusqlite::Result<Connection> {
    // Whoever holds one of them is alone with it, so it needs no lock of its own.
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
) -> rusqlite::Result<Vec<Vec<Found>>> {
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

/// `$2` is the second value wherever it stands, and as often as it does; marks without a number take the
/// values in turn.
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
