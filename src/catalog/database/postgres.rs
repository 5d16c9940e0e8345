//! A PostgreSQL transaction, and single statements, with a limit on how long to wait for an answer.
//!
//! A connection may be dead without any sign: its machine lost power, or a router forgot it. A caller that
//! waits on it would wait for ever, and so would those who wait for the caller's locks. So if an answer does
//! not come in time, the server counts as gone, and the connection is given up. A connection whose answer was
//! still awaited when it was dropped is given up too, since its state is unknown. Knows statements; knows no
//! tables.

use std::time::Duration;

use futures::{StreamExt as _, stream};
use sqlx::pool::PoolConnection;
use sqlx::{AssertSqlSafe, PgPool, Postgres};
use tokio::time::error::Elapsed;
use tokio::time::timeout;

use super::failures::classify;
use super::statements::{Row, Rows, bound, fetch_postgres, stream_postgres};
use crate::catalog::errors::CatalogError;
use crate::catalog::value::Value;

/// How long to wait for the answer to a statement: three times as long as for a lock.
const STATEMENT_PATIENCE: Duration = Duration::from_secs(30);
/// How long to wait for a transaction to begin or to end, which waits for no lock.
const BOUNDARY_PATIENCE: Duration = Duration::from_secs(15);

/// A connection, in a transaction until that is ended.
pub(in crate::catalog) struct PostgresSession {
    /// Taken when this is dropped.
    connection: Option<PoolConnection<Postgres>>,
    /// Whether an answer is being waited for.
    waits: bool,
    in_transaction: bool,
}

impl PostgresSession {
    /// Without a transaction: each statement sees one moment.
    pub(super) async fn single(pool: &PgPool) -> Result<Self, CatalogError> {
        let connection = Box::pin(pool.acquire()).await.map_err(classify)?;
        Ok(Self {
            connection: Some(connection),
            waits: false,
            in_transaction: false,
        })
    }

    /// In a transaction that begins with `begin`.
    pub(super) async fn begun(pool: &PgPool, begin: &'static str) -> Result<Self, CatalogError> {
        let mut session = Self::single(pool).await?;
        // It may have begun even if the caller gives up.
        session.in_transaction = true;
        session.run(begin.to_owned(), BOUNDARY_PATIENCE).await?;
        Ok(session)
    }

    pub(super) async fn fetch(&mut self, sql: String, values: Vec<Value>) -> Result<Vec<Row>, CatalogError> {
        let connection = self.asked()?;
        let answer = timeout(STATEMENT_PATIENCE, fetch_postgres(connection, sql, values)).await;
        self.answered(answer)
    }

    /// The rows one by one, with the time limit of an answer for each.
    pub(super) fn stream(&mut self, sql: String) -> Result<Rows<'_>, CatalogError> {
        let Self {
            connection, waits, ..
        } = self;
        let connection = connection.as_mut().ok_or_else(given_back)?;
        *waits = true;
        let begun = (stream_postgres(connection, sql), waits);
        let rows = stream::unfold(begun, async |(mut rows, waits)| {
            match timeout(STATEMENT_PATIENCE, rows.next()).await {
                Ok(Some(row)) => Some((row, (rows, waits))),
                Ok(None) => {
                    *waits = false;
                    None
                }
                Err(_) => Some((Err(late()), (stream::empty().boxed(), waits))),
            }
        });
        Ok(rows.boxed())
    }

    /// Returns how many rows it changed.
    pub(super) async fn execute(&mut self, sql: String, values: Vec<Value>) -> Result<u64, CatalogError> {
        let connection = self.asked()?;
        let executed = bound::<Postgres>(sql, values).execute(&mut **connection);
        let answer = timeout(STATEMENT_PATIENCE, executed).await;
        let done = self.answered(answer.map(|done| done.map_err(classify)))?;
        Ok(done.rows_affected())
    }

    /// Runs a script of definitions, which may take as long as the existing data needs.
    pub(super) async fn define(&mut self, script: String) -> Result<(), CatalogError> {
        self.run(script, Duration::MAX).await
    }

    pub(super) async fn commit(self) -> Result<(), CatalogError> {
        self.ended("COMMIT").await
    }

    pub(super) async fn rollback(self) -> Result<(), CatalogError> {
        self.ended("ROLLBACK").await
    }

    async fn ended(mut self, end: &'static str) -> Result<(), CatalogError> {
        self.run(end.to_owned(), BOUNDARY_PATIENCE).await?;
        self.in_transaction = false;
        Ok(())
    }

    async fn run(&mut self, sql: String, limit: Duration) -> Result<(), CatalogError> {
        let connection = self.asked()?;
        let executed = sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut **connection);
        let answer = timeout(limit, executed).await;
        self.answered(answer.map(|done| done.map_err(classify)))?;
        Ok(())
    }

    fn asked(&mut self) -> Result<&mut PoolConnection<Postgres>, CatalogError> {
        self.waits = true;
        self.connection.as_mut().ok_or_else(given_back)
    }

    fn answered<T>(&mut self, answer: Result<Result<T, CatalogError>, Elapsed>) -> Result<T, CatalogError> {
        match answer {
            Ok(answer) => {
                self.waits = false;
                answer
            }
            Err(_) => Err(late()),
        }
    }
}

fn late() -> CatalogError {
    CatalogError::Unavailable {
        detail: "the database did not answer in time".to_owned(),
    }
}

fn given_back() -> CatalogError {
    CatalogError::Unavailable {
        detail: "the connection was given back".to_owned(),
    }
}

impl Drop for PostgresSession {
    fn drop(&mut self) {
        let Some(mut connection) = self.connection.take() else {
            return;
        };
        if self.waits {
            // Nobody knows what may still arrive on it.
            connection.close_on_drop();
        } else if self.in_transaction {
            let undoing = async move {
                let undone = sqlx::raw_sql("ROLLBACK").execute(&mut *connection);
                if !matches!(timeout(BOUNDARY_PATIENCE, undone).await, Ok(Ok(_))) {
                    connection.close_on_drop();
                }
            };
            // Without a runtime, there is no connection to keep.
            if let Ok(runtime) = tokio::runtime::Handle::try_current() {
                runtime.spawn(undoing);
            }
        }
    }
}
