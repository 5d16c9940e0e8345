//! The SQL catalogue: the only truth about what exists.
//!
//! SQLite embedded, or PostgreSQL shared by several nodes; the same statements for both. It knows people,
//! partitions and the pieces they are made of, and holds the bytes of the youngest pieces itself. Every row
//! carries a checksum, and the rows that belong together a digest, so that damage is an error and never a
//! wrong answer. Knows neither Parquet nor Arrow, and nothing of what a record means. Lives as long as the
//! process.

pub mod access_log;
mod checking;
mod committing;
mod database;
mod definitions;
pub mod documents;
mod errors;
mod export;
pub mod granting;
mod jobs;
mod migrations;
mod people;
mod reading;
pub mod records;
mod replacing;
mod rows;
mod tables;
#[cfg(test)]
mod tests;
mod verifying;
mod witness;

use std::sync::Arc;

pub use committing::Hold;
use database::Database;
pub use errors::CatalogError;
pub use jobs::ObjectCursor;
use witness::Witnesses;

use crate::model::clock::Clock;

/// The catalogue. Cheap to clone; all clones share their connections.
#[derive(Clone)]
pub struct Catalog {
    database: Database,
    clock: Arc<dyn Clock>,
    witnesses: Witnesses,
}

impl Catalog {
    /// Opens the catalogue at `sqlite://PATH` or `postgres://…`, creating it if there is none, and brings its
    /// tables up to date.
    pub async fn open(address: &str, clock: Arc<dyn Clock>) -> Result<Self, CatalogError> {
        let database = Database::open(address).await?;
        migrations::run(&database, clock.now()).await?;
        Ok(Self {
            database,
            clock,
            witnesses: Witnesses::default(),
        })
    }

    /// Whether the catalogue answers.
    pub async fn ping(&self) -> Result<(), CatalogError> {
        self.database
            .fetch("SELECT 1".to_owned(), Vec::new())
            .await
            .map(drop)
    }

    /// Waits for running statements and closes the connections.
    pub async fn close(&self) {
        self.database.close().await;
    }
}
