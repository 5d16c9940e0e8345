//! One transaction, on SQLite or on PostgreSQL, with the locks that only the latter needs.
//!
//! It rolls back when it is dropped before `commit`. Knows how the two differ; knows no tables.

use futures::StreamExt as _;

use super::postgres::PostgresSession;
use super::sqlite::{SqliteSession, working};
use super::statements::{Row, Rows};
use crate::catalog::errors::CatalogError;
use crate::catalog::value::Value;
use crate::model::clock::Clock;
use crate::model::time::Instant;

/// One transaction.
pub(in crate::catalog) enum Session {
    Sqlite(SqliteSession),
    Postgres(PostgresSession),
}

/// What to do when somebody else has locked something: wait, or fail with `Contended` at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::catalog) enum Patience {
    Waits,
    GoesAway,
}

/// How the placeholders of a long list are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::catalog) enum Marks {
    /// `?`
    Plain,
    /// `$1`
    Numbered,
}

impl Session {
    pub(in crate::catalog) async fn fetch(
        &mut self,
        sql: String,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, CatalogError> {
        match self {
            Self::Sqlite(session) => {
                let _working = working(&session.disturbed);
                session.link()?.fetch(sql, values).await
            }
            Self::Postgres(session) => session.fetch(sql, values).await,
        }
    }

    /// The rows of a statement that may return many, as they are read.
    pub(in crate::catalog) fn stream(&mut self, sql: String) -> Result<Rows<'_>, CatalogError> {
        match self {
            Self::Sqlite(session) => {
                let working = working(&session.disturbed);
                let rows = session.link()?.stream(sql)?;
                // It is at work until the last row is taken.
                Ok(rows.inspect(move |_| _ = &working).boxed())
            }
            Self::Postgres(session) => session.stream(sql),
        }
    }

    /// A clause as [`Database::by_index`](super::Database::by_index) gives it.
    pub(in crate::catalog) fn by_index(&self, name: &str) -> String {
        match self {
            Self::Sqlite(_) => indexed_by(name),
            Self::Postgres(_) => String::new(),
        }
    }

    /// Whether the transaction can go on reading after damage. PostgreSQL aborts it.
    pub(in crate::catalog) const fn goes_on_after_damage(&self) -> bool {
        matches!(self, Self::Sqlite(_))
    }

    /// Runs a statement; returns how many rows it changed.
    pub(in crate::catalog) async fn execute(
        &mut self,
        sql: String,
        values: Vec<Value>,
    ) -> Result<u64, CatalogError> {
        Ok(match self {
            Self::Sqlite(session) => {
                let _working = working(&session.disturbed);
                session.link()?.execute(sql, values).await?
            }
            Self::Postgres(session) => session.execute(sql, values).await?,
        })
    }

    /// The time that everybody who shares the database agrees on. SQLite has no clock but that of its
    /// process.
    pub(in crate::catalog) async fn now(&mut self, clock: &dyn Clock) -> Result<Instant, CatalogError> {
        match self {
            Self::Sqlite(_) => Ok(clock.now()),
            Self::Postgres(_) => {
                let sql = "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)";
                let rows = self.fetch(sql.to_owned(), Vec::new()).await?;
                let row = rows
                    .first()
                    .ok_or_else(|| CatalogError::corrupt("the database does not say what time it is"))?;
                Ok(Instant::from_micros(row.int(0)?))
            }
        }
    }

    /// Keeps out callers of `lock_alone` for the table until the transaction ends. SQLite's writers are alone
    /// anyway.
    pub(in crate::catalog) async fn lock_shared(
        &mut self,
        table: &str,
        patience: Patience,
    ) -> Result<(), CatalogError> {
        let mode = match patience {
            Patience::Waits => "SHARE MODE",
            Patience::GoesAway => "SHARE MODE NOWAIT",
        };
        self.lock(table, mode).await
    }

    /// Waits for all holders of `lock_shared`, and keeps out further ones until the transaction ends.
    pub(in crate::catalog) async fn lock_alone(&mut self, table: &str) -> Result<(), CatalogError> {
        self.lock(table, "SHARE ROW EXCLUSIVE MODE").await
    }

    async fn lock(&mut self, table: &str, mode: &str) -> Result<(), CatalogError> {
        if let Self::Postgres(_) = self {
            self.execute(format!("LOCK TABLE {table} IN {mode}"), Vec::new())
                .await?;
        }
        Ok(())
    }

    /// Whether there is a table of this name.
    pub(in crate::catalog) async fn has_table(&mut self, name: &str) -> Result<bool, CatalogError> {
        let sql = match self {
            Self::Sqlite(_) => "SELECT name FROM sqlite_master WHERE type = 'table' AND name = $1",
            Self::Postgres(_) => {
                "SELECT table_name::text FROM information_schema.tables WHERE table_schema = \
                 current_schema() AND table_name = $1"
            }
        };
        let rows = self
            .fetch(sql.to_owned(), vec![Value::Text(name.to_owned())])
            .await?;
        Ok(!rows.is_empty())
    }

    /// Runs a script of definitions written for SQLite, translated for this database.
    pub(in crate::catalog) async fn define(&mut self, script: &str) -> Result<(), CatalogError> {
        match self {
            Self::Sqlite(session) => {
                session.link()?.run(script).await?;
            }
            Self::Postgres(session) => session.define(postgres_definitions(script)).await?,
        }
        Ok(())
    }

    /// A clause that makes a `SELECT` lock its rows until the transaction ends. SQLite's writers are alone
    /// anyway.
    ///
    /// Rows that refer to the locked one may still come meanwhile, as no key changes under such a lock. Only
    /// `people` is referred to, and removing a person locks their row against that.
    pub(in crate::catalog) fn locking(&self) -> &'static str {
        self.locking_with(Patience::Waits)
    }

    /// The same for somebody of this patience.
    pub(in crate::catalog) fn locking_with(&self, patience: Patience) -> &'static str {
        match (self, patience) {
            (Self::Sqlite(_), _) => "",
            (Self::Postgres(_), Patience::Waits) => " FOR NO KEY UPDATE",
            (Self::Postgres(_), Patience::GoesAway) => " FOR NO KEY UPDATE NOWAIT",
        }
    }

    /// Both databases understand `$1`, but SQLite takes it for a name and searches all names for each value:
    /// quadratic in long lists.
    pub(in crate::catalog) fn marks(&self) -> Marks {
        match self {
            Self::Sqlite(_) => Marks::Plain,
            Self::Postgres(_) => Marks::Numbered,
        }
    }

    /// Commits. When this returns `Ok`, the changes survive a crash of this process and of the database's
    /// machine.
    pub(in crate::catalog) async fn commit(self) -> Result<(), CatalogError> {
        match self {
            Self::Sqlite(session) => session.commit().await,
            Self::Postgres(session) => session.commit().await,
        }
    }

    /// Undoes the transaction. Dropping it does the same, but costs SQLite the connection.
    pub(in crate::catalog) async fn rollback(self) -> Result<(), CatalogError> {
        match self {
            Self::Sqlite(session) => session.end("ROLLBACK").await,
            Self::Postgres(session) => session.rollback().await,
        }
    }
}

pub(super) fn indexed_by(name: &str) -> String {
    format!(" INDEXED BY {name}")
}

fn postgres_definitions(script: &str) -> String {
    script
        .replace(") STRICT, WITHOUT ROWID;", ");")
        .replace(") STRICT;", ");")
        .replace(" INTEGER", " BIGINT")
        .replace(" BLOB", " BYTEA")
}
