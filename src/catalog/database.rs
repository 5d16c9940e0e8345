//! One interface for SQLite and PostgreSQL. Everything in which the two differ is in this file and those
//! below it. Only `lookups` and `writing` name either elsewhere in the room: they are shorter ways to a few
//! rows of SQLite and to its log.
//!
//! A `Database` lives as long as the process. SQLite has one connection that writes and a few that read, each
//! of these on a thread of its own; the pool hands them out. A `Session` is one transaction and rolls back
//! when it is dropped before `commit`. The driver's future for opening a connection takes up to 15 KiB, which
//! every future that awaits it would contain, so it is boxed. Knows no tables.

mod address;
mod ahead_log;
mod failures;
mod opening;
mod postgres;
mod session;
mod sqlite;
mod statements;

use std::path::{Path, PathBuf};
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::{PgPool, Sqlite, SqlitePool};

use super::errors::CatalogError;
use super::kept_rows::BoundStatement;
use super::log_index::LogState;
use super::lookups::Lookups;
use super::value::StoredValue;
use super::writing::Writer;
use crate::model::clock::Clock;
use crate::model::time::Instant;
use failures::classify;
use opening::{open_postgres, open_sqlite};
use postgres::PostgresSession;
use session::indexed_by;
use sqlite::{Disturbed, SqliteSession, turn, working};
use statements::fetch_sqlite;

pub(super) use super::value::Value;
pub(super) use address::{Address, SERVER_PARAMETERS};
pub(super) use opening::{LOCK_PATIENCE, is_file_there};
pub(super) use session::{Marks, Patience, Session};
pub(super) use statements::Row;

/// Serialises the migrations of nodes that start together. Any number that nobody else uses would do.
const MIGRATION_LOCK: i64 = 0x616c_6d61_6e61_6331;

/// How often to check for readers that still need the log, and the pause between two checks.
const LOOKS_AT_READERS: usize = 100;
const READERS_PAUSE: Duration = Duration::from_millis(50);

/// The catalogue's database.
#[derive(Clone, Debug)]
pub(super) enum Database {
    Sqlite {
        writer: Writer,
        readers: SqlitePool,
        lookups: Lookups,
        disturbed: Disturbed,
    },
    Postgres(PgPool),
}

/// A way to find rows on the calling thread, or to get the statement back.
type LookUp = fn(&Lookups, BoundStatement) -> Result<Vec<Vec<StoredValue>>, BoundStatement>;

impl Database {
    /// Connects, creating an SQLite file that does not exist yet.
    pub(super) async fn open(address: &str, connections: u32) -> Result<Self, CatalogError> {
        match Address::read(address)? {
            Address::Sqlite(path) => {
                let (writer, readers) = open_sqlite(path).await?;
                Ok(Self::Sqlite {
                    writer,
                    readers,
                    lookups: Lookups::open(path),
                    disturbed: None,
                })
            }
            Address::Postgres(options) => Ok(Self::Postgres(open_postgres(*options, connections).await?)),
        }
    }

    /// A clause, after the name of a table, that makes SQLite find its rows by an index. It has no statistics
    /// here, so it takes the first column of a primary key for as good as two of an index, and would read
    /// what everybody has of a kind.
    pub(super) fn by_index(&self, name: &str) -> String {
        match self {
            Self::Sqlite { .. } => indexed_by(name),
            Self::Postgres(_) => String::new(),
        }
    }

    /// A transaction that sees one moment of the catalogue and changes nothing.
    pub(super) async fn read(&self) -> Result<Session, CatalogError> {
        Ok(match self {
            Self::Sqlite {
                readers, disturbed, ..
            } => Session::Sqlite(Box::pin(SqliteSession::reading(readers, disturbed)).await?),
            Self::Postgres(pool) => {
                let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
                Session::Postgres(PostgresSession::begun(pool, begin).await?)
            }
        })
    }

    /// A transaction that may change the catalogue. SQLite admits one at a time; PostgreSQL relies on the
    /// locks that the caller takes.
    pub(super) async fn write(&self) -> Result<Session, CatalogError> {
        Ok(match self {
            Self::Sqlite {
                writer,
                lookups,
                disturbed,
                ..
            } => Session::Sqlite(SqliteSession::writing(writer, lookups, disturbed).await?),
            Self::Postgres(pool) => Session::Postgres(PostgresSession::begun(pool, "BEGIN").await?),
        })
    }

    /// Runs one reading statement, which by itself sees one moment.
    pub(super) async fn fetch(&self, sql: String, values: Vec<Value>) -> Result<Vec<Row>, CatalogError> {
        match self {
            Self::Sqlite {
                readers, disturbed, ..
            } => {
                let _turn = turn(disturbed, false).await?;
                let _working = working(disturbed);
                let connection = Box::pin(readers.acquire()).await;
                let mut connection: PoolConnection<Sqlite> = connection.map_err(classify)?;
                fetch_sqlite(&mut connection, sql, values).await
            }
            Self::Postgres(pool) => PostgresSession::single(pool).await?.fetch(sql, values).await,
        }
    }

    /// Finds a few rows by their keys; with SQLite, where the disk is near, on the calling thread.
    pub(super) async fn look_up(&self, sql: String, values: Vec<Value>) -> Result<Vec<Row>, CatalogError> {
        self.look_up_by(Lookups::look_up, sql, values).await
    }

    /// Finds a few rows by their keys, which nobody is likely to ask for again soon, so they are not kept.
    pub(super) async fn look_up_once(
        &self,
        sql: String,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, CatalogError> {
        self.look_up_by(Lookups::look_up_once, sql, values).await
    }

    async fn look_up_by(
        &self,
        look_up: LookUp,
        sql: String,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, CatalogError> {
        if let Self::Sqlite {
            lookups,
            disturbed: None,
            ..
        } = self
        {
            return match look_up(lookups, BoundStatement { sql, values }) {
                Ok(rows) => Ok(rows.into_iter().map(Row::LookedUp).collect()),
                Err(BoundStatement { sql, values }) => self.fetch(sql, values).await,
            };
        }
        self.fetch(sql, values).await
    }

    /// The time that everybody who shares the database agrees on. Costs SQLite no statement.
    pub(super) async fn now(&self, clock: &dyn Clock) -> Result<Instant, CatalogError> {
        if let Self::Sqlite { disturbed: None, .. } = self {
            return Ok(clock.now());
        }
        let mut session = self.read().await?;
        let now = session.now(clock).await?;
        session.commit().await?;
        Ok(now)
    }

    /// Overwrites what deleted rows left in the database's files. SQLite rewrites the database and empties
    /// its log. What PostgreSQL keeps of dead rows is up to PostgreSQL and its operator. Where transactions
    /// are disturbed, readers stand still for as long as this would wait for them.
    pub(super) async fn scour(&self) -> Result<(), CatalogError> {
        let Self::Sqlite {
            writer,
            disturbed: None,
            ..
        } = self
        else {
            return Ok(());
        };
        empty_log(writer).await?;
        // Rows get other pages, so nothing that is logged later goes on from what the file was.
        let mut writing = writer.take_in_another_round().await?;
        writing.fetch("VACUUM", &[])?;
        writing.give_back();
        empty_log(writer).await
    }

    /// Begins a round of the log if the next transaction might, so that it may change tables: the first one
    /// of a round may not.
    pub(super) async fn begin_round(&self) -> Result<(), CatalogError> {
        match self {
            Self::Sqlite { writer, lookups, .. } if lookups.may_begin_round() => {
                writer.take_in_another_round().await?.give_back();
            }
            Self::Sqlite { .. } | Self::Postgres(_) => {}
        }
        Ok(())
    }

    /// Cuts the log of a database that is not open yet where it is damaged; describes the damage, if any.
    pub(super) fn cut_damaged_log(address: &str) -> Result<Option<String>, CatalogError> {
        match Address::read(address)? {
            Address::Sqlite(path) => ahead_log::cut_damaged(path),
            Address::Postgres(_) => Ok(None),
        }
    }

    /// The log of a database in this file.
    pub(super) fn log_of(file: &Path) -> PathBuf {
        ahead_log::log_of(file)
    }

    /// A write transaction that excludes other migrations.
    pub(super) async fn migrating(&self) -> Result<Session, CatalogError> {
        let mut session = self.write().await?;
        if matches!(session, Session::Postgres(_)) {
            session
                .fetch(
                    "SELECT pg_advisory_xact_lock($1)".to_owned(),
                    vec![Value::Int(MIGRATION_LOCK)],
                )
                .await?;
        }
        Ok(session)
    }

    /// What the database finds wrong with its own structure. Empty when it is sound.
    pub(super) async fn self_check(&self) -> Result<Vec<String>, CatalogError> {
        match self {
            Self::Sqlite { .. } => {
                let rows = self
                    .fetch("PRAGMA integrity_check".to_owned(), Vec::new())
                    .await?;
                let mut complaints = Vec::new();
                for row in rows {
                    let text = row.text(0)?;
                    if text != "ok" {
                        complaints.push(text);
                    }
                }
                Ok(complaints)
            }
            Self::Postgres(_) => Ok(Vec::new()),
        }
    }

    /// Whether the database answers and accepts writes, which a replica does not, nor a disk that fails.
    pub(super) async fn takes_writes(&self) -> Result<(), CatalogError> {
        if let Self::Sqlite { writer, .. } = self {
            writer.takes_writes().await?;
        }
        let sql = match self {
            Self::Sqlite { .. } => "SELECT 0",
            Self::Postgres(_) => {
                "SELECT CAST(current_setting('transaction_read_only') = 'on' AS INT)::BIGINT"
            }
        };
        let rows = self.fetch(sql.to_owned(), Vec::new()).await?;
        match rows.first().map_or(Ok(0), |row| row.int(0))? {
            0 => Ok(()),
            _ => Err(CatalogError::Unavailable {
                detail: "the database takes no writes".to_owned(),
            }),
        }
    }

    /// Accepts from now on rows that refer to missing ones, so that rows can be copied just as they were
    /// found.
    pub(super) async fn allow_loose_ends(&self) -> Result<(), CatalogError> {
        if let Self::Sqlite { writer, .. } = self {
            let mut writing = writer.take().await?;
            writing.run("PRAGMA foreign_keys = off")?;
            writing.give_back();
        }
        Ok(())
    }

    /// The present state of SQLite's log, if it can be told: as long as it stays, nobody has committed
    /// anything.
    pub(super) fn log_state(&self) -> Option<LogState> {
        match self {
            Self::Sqlite {
                lookups,
                disturbed: None,
                ..
            } => lookups.log_state(),
            _ => None,
        }
    }

    /// Drops all cached rows.
    pub(super) fn forget_all(&self) {
        if let Self::Sqlite { lookups, .. } = self {
            lookups.forget_all();
        }
    }

    pub(super) async fn close(&self) {
        match self {
            Self::Sqlite {
                writer,
                readers,
                lookups,
                ..
            } => {
                lookups.close();
                readers.close().await;
                writer.close().await;
            }
            Self::Postgres(pool) => pool.close().await,
        }
    }
}

/// Moves the log into the file, and empties it. Lets others write between its attempts, until everybody who
/// still reads an earlier state has finished.
async fn empty_log(writer: &Writer) -> Result<(), CatalogError> {
    for _ in 0..LOOKS_AT_READERS {
        let mut writing = writer.take().await?;
        let rows = writing.fetch_within(Duration::ZERO, "PRAGMA wal_checkpoint(TRUNCATE)")?;
        writing.give_back();
        let rows: Vec<Row> = rows.into_iter().map(Row::LookedUp).collect();
        if rows.first().map_or(Ok(0), |row| row.int(0))? == 0 {
            return Ok(());
        }
        tokio::time::sleep(READERS_PAUSE).await;
    }
    Err(CatalogError::Contended {
        detail: "somebody reads an earlier state of it".to_owned(),
    })
}
