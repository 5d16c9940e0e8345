//! Makes archives in the background on one node: one after the other, each by one node at a time.
//!
//! Interrupted work stays open, and the next node that looks begins it anew. A failed export is retried after
//! a while, and given up when it keeps failing or when retrying cannot help.

use std::time::{Duration, Instant as Moment};

use tokio_util::sync::CancellationToken;

use super::content::write_archive;
use super::export::{Export, ExportError};
use super::exports::Exports;
use super::outlet::{Outlet, StoredOutlet};
use crate::model::time::Instant;
use crate::store::StoreError;
use crate::upkeep::lease::Leases;

/// The pause between two looks for exports that other nodes accepted, or that are to be retried.
const LOOK_PAUSE: Duration = Duration::from_secs(5);
/// The pause between two looks for expired exports.
const EXPIRY_PAUSE: Duration = Duration::from_mins(1);
/// An export that was begun this often is given up.
const MOST_ATTEMPTS: u32 = 10;
/// An object that was compacted away while it was read looks like a lost one; the second time it counts as
/// lost.
const ATTEMPTS_WHEN_DAMAGED: u32 = 2;
/// How long an export rests after a failed attempt, multiplied by the number of attempts.
const REST_PER_ATTEMPT: Duration = Duration::from_secs(10);

const DAMAGED_REASON: &str = "something of what is stored is damaged; the operator was told";
const GIVEN_UP_REASON: &str = "the archive could not be made after several attempts; the operator was told";

/// Makes requested archives until it is stopped.
pub struct Building {
    exports: Exports,
    leases: Leases,
}

impl Building {
    #[must_use]
    pub const fn new(exports: Exports, leases: Leases) -> Self {
        Self { exports, leases }
    }

    /// Makes archives and removes expired ones, until `stop`.
    pub async fn run(self, stop: CancellationToken) {
        let mut looked: Option<Moment> = None;
        while !stop.is_cancelled() {
            if let Err(error) = Box::pin(self.round(&stop)).await {
                self.leases.note_failure();
                tracing::warn!(%error, "exports could not be made and will be tried again");
            }
            if looked.is_none_or(|looked| looked.elapsed() >= EXPIRY_PAUSE) {
                looked = Some(Moment::now());
                if let Err(error) = Box::pin(self.exports.remove_expired()).await {
                    self.leases.note_failure();
                    tracing::warn!(%error, "expired exports stay until the next look");
                }
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.exports.to_build.notified() => {}
                () = tokio::time::sleep(LOOK_PAUSE) => {}
            }
        }
    }

    /// Makes the archives that are due now.
    pub(super) async fn round(&self, stop: &CancellationToken) -> Result<(), ExportError> {
        let open = self.exports.open().await?;
        if open.is_empty() {
            return Ok(());
        }
        // Looked at afterwards, so that what was changed just now does not seem to come from the future.
        let now = self.exports.now().await?;
        for export in open {
            if stop.is_cancelled() {
                break;
            }
            if !is_due(&export, now) {
                continue;
            }
            let lease = format!("export {}", export.id);
            match Box::pin(self.leases.alone(&lease, stop, self.build(export))).await {
                // Damage to what belongs to one person does not keep the archives of others from being made.
                Err(error) if error.is_damage() => {
                    tracing::error!(%lease, %error, "an archive cannot be made");
                }
                built => {
                    built?;
                }
            }
        }
        Ok(())
    }

    async fn build(&self, export: Export) -> Result<(), StoreError> {
        // Another node may have been faster while this one waited for the lease.
        let current = self.exports.find(export.id).await.map_err(in_store)?;
        let Some(export) = current.filter(Export::is_open) else {
            return Ok(());
        };
        let (id, attempts) = (export.id, export.attempts + 1);
        if attempts > MOST_ATTEMPTS {
            // None of them came to its end: each was cut off, because it took too long or the process ended.
            tracing::error!(export = %id, "an archive was begun {MOST_ATTEMPTS} times and never ended");
            return failed(StoredOutlet::give_up(&self.exports, export, GIVEN_UP_REASON).await);
        }
        let Some(mut outlet) = StoredOutlet::begin(&self.exports, export)
            .await
            .map_err(in_store)?
        else {
            return Ok(());
        };
        let begun = Moment::now();
        let person = outlet.export().person;
        let written = write_archive(&self.exports, person, Outlet::Stored(&mut outlet));
        let overtaken = || {
            tracing::info!(export = %id, "an export was deleted or begun elsewhere while it was made");
        };
        let error = match Box::pin(written).await {
            Ok(()) => {
                match outlet.finish().await {
                    Ok(ready) => {
                        let (bytes, seconds) = (ready.bytes(), begun.elapsed().as_secs());
                        tracing::info!(export = %id, bytes, seconds, "an archive is ready");
                    }
                    Err(ExportError::Overtaken) => overtaken(),
                    Err(error) => return Err(in_store(error)),
                }
                return Ok(());
            }
            Err(ExportError::Overtaken) => {
                overtaken();
                outlet.abandon().await;
                return Ok(());
            }
            Err(error) => error,
        };
        tracing::error!(export = %id, attempts, %error, "an archive could not be made");
        let given_up = if is_damage(&error) && attempts >= ATTEMPTS_WHEN_DAMAGED {
            Some(DAMAGED_REASON)
        } else {
            (attempts >= MOST_ATTEMPTS).then_some(GIVEN_UP_REASON)
        };
        let Some(reason) = given_up else {
            outlet.abandon().await;
            return Ok(());
        };
        failed(outlet.fail(reason).await)
    }
}

/// What comes of marking an export as failed; one that was deleted or begun elsewhere needs no mark.
fn failed(marked: Result<(), ExportError>) -> Result<(), StoreError> {
    match marked {
        Ok(()) | Err(ExportError::Overtaken) => Ok(()),
        Err(error) => Err(in_store(error)),
    }
}

/// A failed export rests; one that runs elsewhere changes all the time, and its lease keeps others from it. A
/// change that is yet to come was told by a clock that was wrong, and says nothing about rest.
fn is_due(export: &Export, now: Instant) -> bool {
    let rest = REST_PER_ATTEMPT * export.attempts;
    export.updated_at <= now.before(rest) || export.updated_at > now
}

fn is_damage(error: &ExportError) -> bool {
    match error {
        ExportError::Damaged { .. } | ExportError::Store(StoreError::Rows { .. }) => true,
        ExportError::Store(error) => error.is_damage(),
        _ => false,
    }
}

fn in_store(error: ExportError) -> StoreError {
    match error {
        ExportError::Store(error) => error,
        other => StoreError::corrupt(other.to_string()),
    }
}
