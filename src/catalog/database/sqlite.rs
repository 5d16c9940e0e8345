//! SQLite transactions: readers go through the driver, the writer does not. Lives as long as its transaction.

use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream;
use sqlx::pool::PoolConnection;
use sqlx::{AssertSqlSafe, Sqlite, SqlitePool};

use super::failures::classify;
use super::statements::{Row, Rows, bound, fetch_sqlite, stream_sqlite};
use crate::catalog::disturbance::{Disturbance, Ending, broken};
use crate::catalog::errors::CatalogError;
use crate::catalog::lookups::Lookups;
use crate::catalog::value::Value;
use crate::catalog::writing::{Writer, Writing};
use crate::model::release_guard::ReleaseGuard;

/// `None` outside tests.
pub(in crate::catalog) type Disturbed = Option<Arc<dyn Disturbance>>;

/// A transaction of SQLite.
///
/// SQLite rolls back by itself when its disk is full, which the driver's own transactions do not notice: they
/// would leave a connection behind that can no longer begin a transaction. So a connection whose transaction
/// did not end well is closed.
pub(in crate::catalog) struct SqliteSession {
    /// Until the transaction has ended well.
    link: Option<Link>,
    /// Whether it counts another round of the log if it changes anything.
    counts_round: bool,
    pub(super) disturbed: Disturbed,
    /// Released after the connection.
    _turn: Option<ReleaseGuard>,
}

/// How a transaction talks to SQLite.
pub(super) enum Link {
    Reads(PoolConnection<Sqlite>),
    Writes(Writing),
}

impl Link {
    pub(super) async fn fetch(&mut self, sql: String, values: Vec<Value>) -> Result<Vec<Row>, CatalogError> {
        match self {
            Self::Reads(connection) => fetch_sqlite(connection, sql, values).await,
            Self::Writes(writing) => {
                let rows = writing.fetch(&sql, &values)?;
                Ok(rows.into_iter().map(Row::LookedUp).collect())
            }
        }
    }

    /// Rows as they are read. A writer gets them all at once.
    pub(super) fn stream(&mut self, sql: String) -> Result<Rows<'_>, CatalogError> {
        match self {
            Self::Reads(connection) => Ok(stream_sqlite(connection, sql)),
            Self::Writes(writing) => {
                let rows = writing.fetch(&sql, &[])?.into_iter();
                Ok(stream::iter(rows.map(|row| Ok(Row::LookedUp(row)))).boxed())
            }
        }
    }

    pub(super) async fn execute(&mut self, sql: String, values: Vec<Value>) -> Result<u64, CatalogError> {
        match self {
            Self::Reads(connection) => {
                let executed = bound::<Sqlite>(sql, values).execute(&mut **connection);
                Ok(executed.await.map_err(classify)?.rows_affected())
            }
            Self::Writes(writing) => writing.execute(&sql, &values),
        }
    }

    /// Begins or ends a transaction.
    async fn turn(&mut self, statement: &'static str) -> Result<(), CatalogError> {
        match self {
            Self::Reads(_) => self.run(statement).await,
            Self::Writes(writing) => writing.turn(statement),
        }
    }

    pub(super) async fn run(&mut self, script: &str) -> Result<(), CatalogError> {
        match self {
            Self::Reads(connection) => {
                let script = sqlx::raw_sql(AssertSqlSafe(script.to_owned()));
                script
                    .execute(&mut **connection)
                    .await
                    .map(drop)
                    .map_err(classify)
            }
            Self::Writes(writing) => writing.run(script),
        }
    }
}

impl SqliteSession {
    pub(super) async fn reading(pool: &SqlitePool, disturbed: &Disturbed) -> Result<Self, CatalogError> {
        let turn = turn(disturbed, false).await?;
        let _working = working(disturbed);
        let link = Link::Reads(pool.acquire().await.map_err(classify)?);
        Self::begin(link, "BEGIN", disturbed, turn).await
    }

    pub(super) async fn writing(
        writer: &Writer,
        lookups: &Lookups,
        disturbed: &Disturbed,
    ) -> Result<Self, CatalogError> {
        let turn = turn(disturbed, true).await?;
        let link = Link::Writes(writer.take().await?);
        let mut session = Self::begin(link, "BEGIN IMMEDIATE", disturbed, turn).await?;
        session.counts_round = lookups.may_begin_round() || !writer.has_counted();
        Ok(session)
    }

    async fn begin(
        link: Link,
        statement: &'static str,
        disturbed: &Disturbed,
        turn: Option<ReleaseGuard>,
    ) -> Result<Self, CatalogError> {
        let mut session = Self {
            link: Some(link),
            counts_round: false,
            disturbed: disturbed.clone(),
            _turn: turn,
        };
        session.link()?.turn(statement).await?;
        Ok(session)
    }

    pub(super) fn link(&mut self) -> Result<&mut Link, CatalogError> {
        self.link.as_mut().ok_or_else(broken)
    }

    pub(super) async fn commit(self) -> Result<(), CatalogError> {
        let Some(disturbance) = self.disturbed.clone().filter(|_| self.writes()) else {
            return self.end("COMMIT").await;
        };
        match disturbance.ends().await {
            Ending::Commits => return self.end("COMMIT").await,
            Ending::Breaks => self.end("ROLLBACK").await?,
            Ending::Unheard => self.end("COMMIT").await?,
            Ending::Later(moment) => {
                tokio::spawn(async move {
                    let statement = if moment.await { "COMMIT" } else { "ROLLBACK" };
                    self.end(statement).await
                });
            }
        }
        Err(broken())
    }

    const fn writes(&self) -> bool {
        matches!(self.link, Some(Link::Writes(_)))
    }

    pub(super) async fn end(mut self, statement: &'static str) -> Result<(), CatalogError> {
        let _working = working(&self.disturbed);
        if statement == "COMMIT"
            && self.counts_round
            && let Some(Link::Writes(writing)) = &mut self.link
        {
            writing.log_first_page_if_changed()?;
        }
        self.link()?.turn(statement).await?;
        if let Some(Link::Writes(writing)) = self.link.take() {
            writing.give_back();
        }
        Ok(())
    }
}

impl Drop for SqliteSession {
    fn drop(&mut self) {
        if let Some(Link::Reads(connection)) = &mut self.link {
            connection.close_on_drop();
        }
    }
}

pub(super) async fn turn(disturbed: &Disturbed, writes: bool) -> Result<Option<ReleaseGuard>, CatalogError> {
    match disturbed {
        None => Ok(None),
        Some(disturbance) => disturbance.begins(writes).await.map(Some).ok_or_else(broken),
    }
}

pub(super) fn working(disturbed: &Disturbed) -> Option<ReleaseGuard> {
    disturbed.as_ref().map(|disturbance| disturbance.works())
}
