//! The access log: who read what of a person, through which grant, and what happened to the person's shares.
//!
//! An entry is begun, and is durable when that returns; it is ended later in the background with what is only
//! known then. Entries that come at the same time are written by one transaction. Knows the catalogue; knows
//! nothing of HTTP.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use uuid::Uuid;

use crate::catalog::access_log::{LogEntry, LogPage};
use crate::catalog::{Catalog, CatalogError};
use crate::model::clock::Clock;
use crate::model::ids::{IdSource, PersonId};

/// The most entries that one transaction writes.
const GROUP: usize = 512;
/// How many entries may wait. Further callers wait for room.
const MOST_WAITING: usize = 4_096;

/// The outcome of an entry until it is ended. If it stays, the service stopped before the answer was
/// finished, or nobody knows whether a share was changed.
pub const BEGUN: &str = "begun";

/// Writes entries. Cheap to clone; its task ends when all clones are gone.
#[derive(Clone)]
pub struct AccessLog {
    orders: mpsc::Sender<Order>,
    catalog: Catalog,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
}

/// What happened to a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShareEvent {
    Created,
    Changed,
    Removed,
    /// One of its receivers no longer has it.
    Left,
}

struct Order {
    entry: LogEntry,
    /// The caller that waits for the entry to be durable.
    waiting: Option<oneshot::Sender<Result<(), String>>>,
}

impl ShareEvent {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Created => "datashare_created",
            Self::Changed => "datashare_changed",
            Self::Removed => "datashare_removed",
            Self::Left => "grant_ended",
        }
    }
}

impl AccessLog {
    /// A log, and the task that writes it.
    #[must_use]
    pub fn start(catalog: Catalog, clock: Arc<dyn Clock>, ids: Arc<dyn IdSource>) -> (Self, JoinHandle<()>) {
        let (orders, waiting) = mpsc::channel(MOST_WAITING);
        let writing = tokio::spawn(write(catalog.clone(), waiting));
        let log = Self {
            orders,
            catalog,
            clock,
            ids,
        };
        (log, writing)
    }

    /// Adds an entry about `person`, to be ended later. When this returns `Ok`, the entry survives a crash.
    pub async fn begin(
        &self,
        person: PersonId,
        actor: PersonId,
        body: String,
    ) -> Result<LogEntry, CatalogError> {
        let entry = LogEntry {
            person,
            id: self.ids.next(),
            at: self.clock.now(),
            actor,
            body,
            rows: None,
            outcome: BEGUN.to_owned(),
        };
        let (sender, written) = oneshot::channel();
        let order = Order {
            entry: entry.clone(),
            waiting: Some(sender),
        };
        let stopped = || CatalogError::Unavailable {
            detail: "the access log is not written any more".to_owned(),
        };
        self.orders.send(order).await.map_err(|_| stopped())?;
        match written.await {
            Ok(Ok(())) => Ok(entry),
            Ok(Err(detail)) => Err(CatalogError::Unavailable { detail }),
            Err(_) => Err(stopped()),
        }
    }

    /// Records the outcome. Does not wait, since the entry itself is durable already.
    pub fn end(&self, entry: LogEntry, rows: Option<u64>, outcome: &str) {
        let entry = LogEntry {
            rows: rows.map(|rows| i64::try_from(rows).unwrap_or(i64::MAX)),
            outcome: outcome.to_owned(),
            ..entry
        };
        let order = Order { entry, waiting: None };
        if let Err(mpsc::error::TrySendError::Full(order)) = self.orders.try_send(order) {
            let orders = self.orders.clone();
            // There is a runtime wherever there is a request.
            if let Ok(runtime) = tokio::runtime::Handle::try_current() {
                runtime.spawn(async move { orders.send(order).await.map_err(drop) });
            }
        }
    }

    /// The newest entries about `person` that are older than `before`: at most `limit`, and fewer where they
    /// are long.
    pub async fn entries(
        &self,
        person: PersonId,
        before: Option<Uuid>,
        limit: usize,
    ) -> Result<LogPage, CatalogError> {
        self.catalog.accesses(person, before, limit).await
    }
}

async fn write(catalog: Catalog, mut orders: mpsc::Receiver<Order>) {
    let mut group = Vec::new();
    while orders.recv_many(&mut group, GROUP).await > 0 {
        let (entries, waiting): (Vec<LogEntry>, Vec<_>) =
            group.drain(..).map(|order| (order.entry, order.waiting)).unzip();
        let written = catalog
            .log_access(entries)
            .await
            .map_err(|error| error.to_string());
        if let Err(reason) = &written {
            tracing::error!(%reason, "the access log could not be written");
        }
        for sender in waiting.into_iter().flatten() {
            // A caller that has gone away does not need the result.
            let _gone = sender.send(written.clone());
        }
    }
}
