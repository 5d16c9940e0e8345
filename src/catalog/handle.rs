//! The handle through which everybody uses the catalogue. Knows nothing of what its tables hold.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::database::{Address, Database, SERVER_PARAMETERS, Session, is_file_there};
#[cfg(test)]
use super::disturbance::Disturbance;
use super::errors::CatalogError;
use super::found::{FoundAt, found_in};
use super::known_states::KnownStates;
use super::migrations;
use super::turns::Turns;
use super::witness::Witnesses;
use crate::model::clock::Clock;
use crate::model::time::Instant;

/// How many connections to a server are opened at most where nobody says.
const USUAL_CONNECTIONS: u32 = 16;

/// The catalogue. Cheap to clone; all clones share their connections.
#[derive(Clone)]
pub struct Catalog {
    pub(super) database: Database,
    pub(super) clock: Arc<dyn Clock>,
    /// The clock for a database that has none of its own.
    pub(super) time: Arc<dyn Clock>,
    witnesses: Witnesses,
    pub(super) states: KnownStates,
    pub(super) turns: Turns,
}

impl Catalog {
    /// Opens the catalogue at `sqlite://PATH` or `postgres://…`, creating it if there is none, and brings its
    /// tables up to date.
    pub async fn open(address: &str, clock: Arc<dyn Clock>) -> Result<Self, CatalogError> {
        Self::open_with(address, clock, USUAL_CONNECTIONS).await
    }

    /// The same with at most `connections` to a server.
    pub async fn open_with(
        address: &str,
        clock: Arc<dyn Clock>,
        connections: u32,
    ) -> Result<Self, CatalogError> {
        let database = Database::open(address, connections).await?;
        if let Err(error) = migrations::run(&database, clock.now()).await {
            database.close().await;
            return Err(error);
        }
        Ok(Self::over(database, clock))
    }

    /// Opens the catalogue for a command that only reads or leaves a note, perhaps beside a service of an
    /// earlier release: its tables are refused if they are not up to date.
    pub async fn open_beside(address: &str, clock: Arc<dyn Clock>) -> Result<Self, CatalogError> {
        let database = Database::open(address, USUAL_CONNECTIONS).await?;
        if let Err(refused) = migrations::refuse_earlier(&database).await {
            database.close().await;
            return Err(refused);
        }
        Ok(Self::over(database, clock))
    }

    fn over(database: Database, clock: Arc<dyn Clock>) -> Self {
        Self {
            database,
            time: Arc::clone(&clock),
            clock,
            witnesses: Witnesses::default(),
            states: KnownStates::default(),
            turns: Turns::default(),
        }
    }

    /// The parameters that the address of a server may have.
    pub const SERVER_PARAMETERS: &[&str] = SERVER_PARAMETERS;

    /// Whether `address` can be understood. Does not look there.
    pub fn understands(address: &str) -> Result<(), CatalogError> {
        Address::read(address).map(drop)
    }

    /// The file of an embedded catalogue at `address`. `None`: it is on a server.
    pub fn file_at(address: &str) -> Result<Option<PathBuf>, CatalogError> {
        Ok(match Address::read(address)? {
            Address::Sqlite(path) => Some(path.to_owned()),
            Address::Postgres(_) => None,
        })
    }

    /// The log of an embedded catalogue in this file, if it has left one.
    #[must_use]
    pub fn log_of(file: &Path) -> PathBuf {
        Database::log_of(file)
    }

    /// The host on a network to which the catalogue at `address` may be spoken to without TLS. `None`: there
    /// is no network in between, or TLS is insisted on.
    pub fn plain_host_at(address: &str) -> Result<Option<String>, CatalogError> {
        Ok(Address::read(address)?.plain_host().map(str::to_owned))
    }

    /// What is at `address`. Creates nothing: an empty database stays empty.
    pub async fn found_at(address: &str) -> Result<FoundAt, CatalogError> {
        if let Address::Sqlite(path) = Address::read(address)? {
            if !is_file_there(path)? {
                return Ok(FoundAt::Nothing);
            }
            // What cannot be read is there all the same; whoever opens it tells what is wrong with it.
            return Ok(Self::look(address).await.unwrap_or(FoundAt::Catalogue));
        }
        Self::look(address).await
    }

    async fn look(address: &str) -> Result<FoundAt, CatalogError> {
        let database = Database::open(address, 1).await?;
        let found = found_in(&database).await;
        database.close().await;
        found
    }

    /// Cuts the log of the database at `address`, which nobody has open, at the first damage; returns a
    /// description of what was lost, if any. A catalogue with a damaged log is not opened before that.
    pub fn cut_damaged_log(address: &str) -> Result<Option<String>, CatalogError> {
        Database::cut_damaged_log(address)
    }

    /// The same catalogue with another clock for the time that all nodes must share: nodes whose own clocks
    /// differ may share an SQLite file.
    #[cfg(test)]
    #[must_use]
    pub fn keeping_time(self, time: Arc<dyn Clock>) -> Self {
        Self { time, ..self }
    }

    /// The same catalogue with a disturbed database, which is asked only once how a transaction ended.
    #[cfg(test)]
    #[must_use]
    pub fn disturbed_by(mut self, disturbance: Arc<dyn Disturbance>) -> Self {
        self.witnesses.patience = Duration::ZERO;
        if let Database::Sqlite { disturbed, .. } = &mut self.database {
            *disturbed = Some(disturbance);
        }
        self
    }

    /// Whether writes run on the caller's thread, which then waits for the disk.
    #[must_use]
    pub const fn is_written_by_the_caller(&self) -> bool {
        matches!(self.database, Database::Sqlite { .. })
    }

    /// How many connections all who read and write have together, where they share them.
    #[must_use]
    pub fn connections(&self) -> Option<usize> {
        match &self.database {
            Database::Sqlite { .. } => None,
            Database::Postgres(pool) => Some(pool.options().get_max_connections() as usize),
        }
    }

    /// The time that everybody who shares the catalogue agrees on.
    pub async fn now(&self) -> Result<Instant, CatalogError> {
        self.database.now(&*self.time).await
    }

    /// Whether the catalogue answers and takes writes.
    pub async fn ping(&self) -> Result<(), CatalogError> {
        self.database.takes_writes().await
    }

    /// Commits, and finds out what happened if the database does not say. Every change that must not happen
    /// twice, or that is reported to somebody, ends here.
    pub(super) async fn conclude(&self, session: Session) -> Result<(), CatalogError> {
        self.witnesses.conclude(&self.database, session).await
    }

    /// Drops all cached rows.
    pub fn forget_all(&self) {
        self.database.forget_all();
        self.states.forget_all();
    }

    /// Removes what transactions of processes that were killed left behind, as far as this process saw it at
    /// least `age` ago.
    pub async fn forget_left_behind(&self, age: Duration) -> Result<(), CatalogError> {
        self.witnesses.forget_left_behind(&self.database, age).await
    }

    /// Waits for running statements and closes the connections.
    pub async fn close(&self) {
        self.witnesses.leave(&self.database).await;
        self.database.close().await;
    }
}
