//! The only connection that writes to SQLite, used on the thread that writes.
//!
//! A commit is a dozen short statements and one wait for the disk. The driver hands each statement to a
//! thread of the connection's own, so that threads wake each other dozens of times. So the statements run
//! here, and the runtime is told that its thread is busy. Writers take turns. Where the disk refused
//! something, or another process kept a writer waiting for too long, whoever asks whether writes are taken
//! finds out by a small one. Knows no tables.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::errors::{CatalogError, NO_ROOM_FOR_SHARED_MEMORY};
use super::lookups::{bind, rows};
use super::value::{StoredValue, Value};

/// How the connection is set up. The log moves into the file after 4,000 pages of it: 16 MB.
const SETTINGS: &str = "PRAGMA journal_mode = wal; PRAGMA synchronous = full; PRAGMA foreign_keys = on; \
                        PRAGMA cell_size_check = on; PRAGMA wal_autocheckpoint = 4000; \
                        PRAGMA journal_size_limit = 67108864; PRAGMA cache_size = -16384;";

/// Where the first page of the file has a number by which the file and its log are told from others.
const NUMBER: &str = "application_id";
/// Where the first page counts the rounds of the log, by which the log is told from those of other states of
/// the file. Earlier releases did not, and wrote 0.
const ROUND: &str = "user_version";

/// How long a small write waits for another process. Who asks whether writes are taken does not wait for
/// long, and others may use the thread.
const SMALL_WRITE_PATIENCE: Duration = Duration::from_millis(100);

/// The connection that writes, used in turn.
#[derive(Clone, Debug)]
pub(super) struct Writer(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    limits: Limits,
    /// The connection, between two transactions.
    idle: Mutex<Option<Connection>>,
    turn: Arc<Semaphore>,
    /// How many rounds were counted since the file was opened.
    rounds: AtomicU64,
    /// How often the disk, or another process that writes, did not let somebody do what they may do.
    refusals: AtomicU64,
    /// How many of these came before a write that succeeded: one that was attempted because of them.
    overcome: AtomicU64,
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
    /// How many rows the connection had changed before.
    changes: u64,
    /// Whether this transaction counts a round.
    counts: bool,
    writer: Writer,
    _turn: OwnedSemaphorePermit,
}

impl Writer {
    /// Opens the file, and switches it to write-ahead logging.
    pub(super) fn open(path: &Path, limits: Limits) -> Result<Self, CatalogError> {
        let connection = connect(path, limits).map_err(classify)?;
        Ok(Self(Arc::new(Inner {
            path: path.to_owned(),
            limits,
            idle: Mutex::new(Some(connection)),
            turn: Arc::new(Semaphore::new(1)),
            rounds: AtomicU64::new(0),
            refusals: AtomicU64::new(0),
            overcome: AtomicU64::new(0),
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
            None => {
                busy(|| connect(&self.0.path, self.0.limits)).map_err(|error| self.0.classified(error))?
            }
        };
        Ok(Writing {
            changes: connection.total_changes(),
            counts: false,
            connection,
            writer: self.clone(),
            _turn: turn,
        })
    }

    /// The same, after another round of the log was counted.
    pub(super) async fn take_in_another_round(&self) -> Result<Writing, CatalogError> {
        let mut writing = self.take().await?;
        writing.turn("BEGIN IMMEDIATE")?;
        writing.count_round()?;
        Ok(writing)
    }

    /// Whether a round was counted since the file was opened. A log that was there before goes on in a round
    /// of its own, so that what it was is not taken later beside what it has become.
    pub(super) fn has_counted(&self) -> bool {
        self.0.rounds.load(Ordering::SeqCst) > 0
    }

    /// Whether writes are taken. As long as nothing speaks against it, nothing is written to find out.
    pub(super) async fn takes_writes(&self) -> Result<(), CatalogError> {
        // Before the attempt: what others are refused meanwhile counts.
        let refusals = self.0.refusals.load(Ordering::SeqCst);
        if refusals == self.0.overcome.load(Ordering::SeqCst) {
            return Ok(());
        }
        match self.write_little().await {
            // A full disk is one that can be read, and works otherwise.
            Ok(()) | Err(CatalogError::Full { .. }) => {
                self.0.overcome.store(refusals, Ordering::SeqCst);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    async fn write_little(&self) -> Result<(), CatalogError> {
        let mut writing = self.take().await?;
        writing.fetch_within(SMALL_WRITE_PATIENCE, "BEGIN IMMEDIATE")?;
        writing.count_round()?;
        writing.give_back();
        Ok(())
    }

    /// Waits for the present writer, and closes the connection.
    pub(super) async fn close(&self) {
        if let Ok(writing) = self.take().await {
            self.0.turn.close();
            busy(|| drop(writing));
        }
    }

    fn idle(&self) -> MutexGuard<'_, Option<Connection>> {
        self.0.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// What a failure means, which is remembered if it is the disk's or another process's.
    fn classified(&self, error: rusqlite::Error) -> CatalogError {
        let code = error.sqlite_error_code();
        if let Some(
            ErrorCode::ReadOnly
            | ErrorCode::SystemIoFailure
            | ErrorCode::CannotOpen
            | ErrorCode::DatabaseBusy,
        ) = code
        {
            self.refusals.fetch_add(1, Ordering::SeqCst);
        }
        classify(error)
    }
}

impl Writing {
    pub(super) fn fetch(
        &mut self,
        sql: &str,
        values: &[Value],
    ) -> Result<Vec<Vec<StoredValue>>, CatalogError> {
        let found = busy(|| rows(&self.connection, sql, values));
        found.map_err(|error| self.writer.0.classified(error))
    }

    /// Runs a statement that waits for others no longer than `patience`: what they prevent is not done.
    pub(super) fn fetch_within(
        &mut self,
        patience: Duration,
        sql: &str,
    ) -> Result<Vec<Vec<StoredValue>>, CatalogError> {
        let usual = self.writer.0.limits.patience;
        self.connection.busy_timeout(patience).map_err(classify)?;
        let found = self.fetch(sql, &[]);
        self.connection.busy_timeout(usual).map_err(classify)?;
        found
    }

    /// Runs a statement; returns how many rows it changed.
    pub(super) fn execute(&mut self, sql: &str, values: &[Value]) -> Result<u64, CatalogError> {
        busy(|| {
            let mut statement = self.connection.prepare_cached(sql)?;
            bind(&mut statement, values)?;
            Ok(statement.raw_execute()? as u64)
        })
        .map_err(|error| self.writer.0.classified(error))
    }

    /// Begins or ends a transaction.
    pub(super) fn turn(&mut self, statement: &'static str) -> Result<(), CatalogError> {
        let turned = busy(|| self.connection.prepare_cached(statement)?.raw_execute());
        match turned {
            Ok(_) => Ok(()),
            Err(error) if statement == "COMMIT" && is_in_log(&error) => Err(CatalogError::Unavailable {
                detail: error.to_string(),
            }),
            Err(error) => Err(self.writer.0.classified(error)),
        }
    }

    /// Counts another round of the log, as all that a transaction does that has begun, and ends it.
    pub(super) fn count_round(&mut self) -> Result<(), CatalogError> {
        self.log_first_page()?;
        self.fetch("COMMIT", &[]).map(drop)
    }

    /// Makes the first page a part of this transaction if it has changed anything. The first transaction in
    /// each round of the log needs it, which may be all that a crash leaves, and the first one since the file
    /// was opened; others do not.
    pub(super) fn log_first_page_if_changed(&mut self) -> Result<(), CatalogError> {
        if self.connection.total_changes() == self.changes {
            return Ok(());
        }
        self.log_first_page()
    }

    /// Makes the first page a part of this transaction, and so of the log: with the number of the file, which
    /// gets one here if it has none, and with the next round.
    fn log_first_page(&mut self) -> Result<(), CatalogError> {
        let logged = busy(|| {
            let connection = &self.connection;
            let read = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
            if read(NUMBER)? == 0 {
                connection.pragma_update(None, NUMBER, (rand::random::<u32>() >> 1) | 1)?;
            }
            connection.pragma_update(None, ROUND, read(ROUND)?.wrapping_add(1))
        });
        logged.map_err(|error| self.writer.0.classified(error))?;
        self.counts = true;
        Ok(())
    }

    /// Runs a script.
    pub(super) fn run(&mut self, script: &str) -> Result<(), CatalogError> {
        let done = busy(|| self.connection.execute_batch(script));
        done.map_err(|error| self.writer.0.classified(error))
    }

    /// Ends the transaction well, so that another one may begin.
    pub(super) fn give_back(self) {
        let counted = u64::from(self.counts);
        self.writer.0.rounds.fetch_add(counted, Ordering::SeqCst);
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

fn connect(path: &Path, limits: Limits) -> rusqlite::Result<Connection> {
    // It has only one user at a time, so it needs no lock of its own.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(limits.patience)?;
    connection.set_prepared_statement_cache_capacity(limits.prepared_statements);
    connection.execute_batch(SETTINGS)?;
    Ok(connection)
}

/// Whether a commit failed after it was written: only the index of the log had no room. If nothing else is
/// written before the process is killed, the commit will have happened.
fn is_in_log(error: &rusqlite::Error) -> bool {
    error
        .sqlite_error()
        .is_some_and(|failure| failure.extended_code as u32 == NO_ROOM_FOR_SHARED_MEMORY)
}

#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` hands over")]
fn classify(error: rusqlite::Error) -> CatalogError {
    let detail = error.to_string();
    match error.sqlite_error() {
        Some(failure) => CatalogError::of_sqlite(failure.extended_code as u32, detail),
        None => CatalogError::Refused { detail },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        patience: Duration::from_secs(1),
        prepared_statements: 8,
    };

    #[tokio::test]
    async fn a_disk_that_refused_something_is_in_doubt_until_it_takes_a_write() {
        let directory = tempfile::tempdir().unwrap();
        let (path, away) = (
            directory.path().join("catalogue.db"),
            directory.path().join("away"),
        );
        std::fs::write(&path, "").unwrap();
        let writer = Writer::open(&path, LIMITS).unwrap();
        writer.takes_writes().await.unwrap();
        // A transaction that does not end well takes its connection along, and another cannot be opened.
        drop(writer.take().await.unwrap());
        std::fs::rename(&path, &away).unwrap();
        assert!(writer.take().await.is_err());
        for _ in 0..2 {
            let refused = writer.takes_writes().await;
            assert!(
                matches!(refused, Err(CatalogError::Unavailable { .. })),
                "{refused:?}"
            );
        }
        std::fs::rename(&away, &path).unwrap();
        let log = directory.path().join("catalogue.db-wal");
        let written = || std::fs::metadata(&log).map_or(0, |log| log.len());
        assert_eq!(written(), 0);
        writer.takes_writes().await.unwrap();
        let attempt = written();
        assert!(attempt > 0);
        // Nothing speaks against it any more, so nothing is written.
        writer.takes_writes().await.unwrap();
        assert_eq!(written(), attempt);
    }

    #[tokio::test]
    async fn whoever_keeps_writers_out_for_too_long_keeps_the_database_in_doubt() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("catalogue.db");
        std::fs::write(&path, "").unwrap();
        let writer = Writer::open(&path, LIMITS).unwrap();
        let other = Connection::open(&path).unwrap();
        other.execute_batch("BEGIN EXCLUSIVE").unwrap();
        // As long as nobody had to wait, nobody knows.
        writer.takes_writes().await.unwrap();
        assert!(writer.take().await.unwrap().turn("BEGIN IMMEDIATE").is_err());
        let refused = writer.takes_writes().await;
        assert!(
            matches!(refused, Err(CatalogError::Unavailable { .. })),
            "{refused:?}"
        );
        // Who does not wait for the answer does not take the doubt away.
        let writing = writer.take().await.unwrap();
        let asked = tokio::time::timeout(Duration::from_millis(10), writer.takes_writes());
        assert!(asked.await.is_err());
        drop(writing);
        assert!(writer.takes_writes().await.is_err());
        other.execute_batch("ROLLBACK").unwrap();
        writer.takes_writes().await.unwrap();
        let log = directory.path().join("catalogue.db-wal");
        let written = || std::fs::metadata(&log).unwrap().len();
        let attempt = written();
        writer.takes_writes().await.unwrap();
        assert_eq!(written(), attempt);
    }
}
