//! The only connection that writes to SQLite, used on the thread that writes.
//!
//! A commit is a dozen short statements and one wait for the disk. The driver hands each statement to a
//! thread of the connection's own, so that threads wake each other dozens of times. So the statements run
//! here, and the runtime is told that its thread is busy. Writers take turns. Knows no tables.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::errors::CatalogError;
use super::lookups::{bind, rows};
use super::value::{Found, Value};

/// How the connection is set up. The log moves into the file after 4,000 pages of it: 16 MB.
const SETTINGS: &str = "PRAGMA journal_mode = wal; PRAGMA synchronous = full; PRAGMA foreign_keys = on; \
                        PRAGMA cell_size_check = on; PRAGMA wal_autocheckpoint = 4000; \
                        PRAGMA journal_size_limit = 67108864; PRAGMA cache_size = -16384;";

/// The connection that writes, used in turn.
#[derive(Clone, Debug)]
pub(super) struct Writer(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    limits: Limits,
    /// The connection, between two transactions.
    idle: Mutex<Option<Connection>>,
    turn: Arc<Semaphore>,
}

/// How long the writer waits and how much it keeps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// How long a caller waits for its turn, and a statement for another process.
    pub patience: Duration,
    pub prepared_statements: usize,
}

/// The connection, while a transaction has it. If it is not given back, it is closed, which undoes the
/// transaction.
pub(super) struct Writing {
    connection: Connection,
    writer: Writer,
    _turn: OwnedSemaphorePermit,
}

impl Writer {
    /// Opens the file, and switches it to write-ahead logging.
    pub(super) fn open(path: &Path, limits: Limits) -> Result<Self, CatalogError> {
        let connection = connect(path, limits)?;
        Ok(Self(Arc::new(Shared {
            path: path.to_owned(),
            limits,
            idle: Mutex::new(Some(connection)),
            turn: Arc::new(Semaphore::new(1)),
        })))
    }

    /// Waits until nobody else in this process writes.
    pub(super) async fn take(&self) -> Result<Writing, CatalogError> {
        let turn = Arc::clone(&self.0.turn).acquire_owned();
        let Ok(Ok(turn)) = tokio::time::timeout(self.0.limits.patience, turn).await else {
            return Err(CatalogError::Unavailable {
                detail: "others write to the database, or it was closed".to_owned(),
            });
        };
        let idle = self.idle().take();
        let connection = match idle {
            Some(connection) => connection,
            None => busy(|| connect(&self.0.path, self.0.limits))?,
        };
        Ok(Writing {
            connection,
            writer: self.clone(),
            _turn: turn,
        })
    }

    /// Waits for the present writer, and closes the connection.
    pub(super) async fn close(&self) {
        if let Ok(writing) = self.take().await {
            self.0.turn.close();
            busy(|| drop(writing));
        }
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Option<Connection>> {
        self.0.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Writing {
    pub(super) fn fetch(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Vec<Found>>, CatalogError> {
        busy(|| rows(&self.connection, sql, values)).map_err(classify)
    }

    /// Runs a statement without waiting: what others prevent is not done.
    pub(super) fn fetch_at_once(&mut self, sql: &str) -> Result<Vec<Vec<Found>>, CatalogError> {
        let patience = self.writer.0.limits.patience;
        self.connection.busy_timeout(Duration::ZERO).map_err(classify)?;
        let found = self.fetch(sql, &[]);
        self.connection.busy_timeout(patience).map_err(classify)?;
        found
    }

    /// Runs a statement; returns how many rows it changed.
    pub(super) fn execute(&mut self, sql: &str, values: &[Value]) -> Result<u64, CatalogError> {
        busy(|| {
            let mut statement = self.connection.prepare_cached(sql)?;
            bind(&mut statement, values)?;
            Ok(statement.raw_execute()? as u64)
        })
        .map_err(classify)
    }

    /// Runs a script.
    pub(super) fn run(&mut self, script: &str) -> Result<(), CatalogError> {
        busy(|| self.connection.execute_batch(script)).map_err(classify)
    }

    /// Ends the transaction well, so that another one may begin.
    pub(super) fn give_back(self) {
        *self.writer.idle() = Some(self.connection);
    }
}

/// Runs `work`, which may wait for the disk, on this thread, and tells the runtime to do without it
/// meanwhile.
fn busy<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}

fn connect(path: &Path, limits: Limits) -> Result<Connection, CatalogError> {
    // It has only one user at a time, so it needs no lock of its own.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(classify)?;
    connection.busy_timeout(limits.patience).map_err(classify)?;
    connection.set_prepared_statement_cache_capacity(limits.prepared_statements);
    connection.execute_batch(SETTINGS).map_err(classify)?;
    Ok(connection)
}

#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` hands over")]
fn classify(error: rusqlite::Error) -> CatalogError {
    let detail = error.to_string();
    match error.sqlite_error() {
        Some(failure) => CatalogError::of_sqlite(failure.extended_code as u32, detail),
        None => CatalogError::Refused { detail },
    }
}
