//! Writes an archive into the object store: cut into parts, each durable and registered before the next
//! begins.
//!
//! Holds at most one part in memory. If the export is meanwhile changed by somebody else, deleted or begun by
//! another node, the next part is refused and removed.

use std::time::{Duration, Instant as Moment};

use bytes::Bytes;
use sha2::{Digest as _, Sha256};

use crate::model::hexadecimal::hexadecimal;
use crate::people::takeout::export::{Export, ExportError};
use crate::people::takeout::exports::Exports;
use crate::store::contents::OpenPart;

/// The shortest time between two progress reports to the owner.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// Receives the bytes of one archive.
pub(in crate::people::takeout) struct StoredOutlet<'e> {
    exports: &'e Exports,
    /// The export as it is stored.
    export: Export,
    /// When it was stored.
    stored_at: Moment,
    open: OpenPart,
}

impl<'e> StoredOutlet<'e> {
    /// The outlet of an export as it is stored.
    fn of(exports: &'e Exports, export: Export) -> Self {
        Self {
            exports,
            export,
            stored_at: Moment::now(),
            open: OpenPart::after(Sha256::new()),
        }
    }

    /// Marks an export as failed that will not be begun again, and removes what earlier attempts left.
    pub(in crate::people::takeout) async fn give_up(
        exports: &'e Exports,
        export: Export,
        reason: &str,
    ) -> Result<(), ExportError> {
        Self::of(exports, export).fail(reason).await
    }

    /// Begins an export anew, and removes the parts that the attempt before had registered. `None` if it is
    /// done, gone, or taken by another node.
    pub(in crate::people::takeout) async fn begin(
        exports: &'e Exports,
        export: Export,
    ) -> Result<Option<Self>, ExportError> {
        let before = export.content();
        let mut outlet = Self::of(exports, export.clone());
        match outlet.put(export.begun(), &[]).await {
            Ok(()) => {}
            Err(ExportError::Overtaken) => return Ok(None),
            Err(error) => return Err(error),
        }
        // Nothing else that is there: if this node stalled meanwhile, another one may have begun the export
        // since, and what is there is its archive.
        exports.contents().remove_parts(&before, &before.parts).await;
        Ok(Some(outlet))
    }

    pub(in crate::people::takeout) const fn export(&self) -> &Export {
        &self.export
    }

    /// Appends to the archive.
    pub(in crate::people::takeout) async fn write(&mut self, bytes: Bytes) -> Result<(), ExportError> {
        let begin = || self.exports.contents().part(&self.export.content());
        self.open.write(bytes, begin).await?;
        if self.open.is_full() {
            self.register().await?;
        }
        Ok(())
    }

    /// The SHA-256 of everything so far, in hexadecimal digits.
    pub(super) fn digest(&self) -> String {
        hexadecimal(&self.open.digest().finalize())
    }

    /// Records the progress, and stores it now and then.
    pub(super) async fn tell(&mut self, done: u64, total: u64) -> Result<(), ExportError> {
        (self.export.done, self.export.total) = (done, total);
        if self.stored_at.elapsed() < PROGRESS_INTERVAL {
            return Ok(());
        }
        self.put(self.export.clone(), &[]).await
    }

    /// Finishes the archive and makes it available; returns the export as it is then.
    pub(in crate::people::takeout) async fn finish(mut self) -> Result<Export, ExportError> {
        self.register().await?;
        let now = self.exports.now().await?;
        let sha256 = self.digest();
        let ready = self.export.clone().ready(sha256, now, self.exports.expiry(now));
        self.put(ready, &[]).await?;
        Ok(self.export)
    }

    /// Marks the export as failed; it will not be retried.
    pub(in crate::people::takeout) async fn fail(mut self, reason: &str) -> Result<(), ExportError> {
        self.abandon().await;
        let now = self.exports.now().await?;
        let failed = self.export.clone().failed(reason, now, self.exports.expiry(now));
        self.put(failed, &[]).await?;
        Ok(self.exports.clear(&self.export).await?)
    }

    /// Gives up the part that is not registered yet.
    pub(in crate::people::takeout) async fn abandon(&mut self) {
        self.open.abandon().await;
    }

    async fn register(&mut self) -> Result<(), ExportError> {
        let Some(part) = self.open.finish().await? else {
            return Ok(());
        };
        let mut export = self.export.clone();
        export.parts.push(part);
        let content = export.content();
        let put = self.put(export, &[content.path_of(&part)]).await;
        if matches!(put, Err(ExportError::Overtaken)) {
            self.exports.contents().remove_parts(&content, &[part]).await;
        }
        put
    }

    /// Stores a new state of the export, which names `objects` for the first time.
    async fn put(&mut self, export: Export, objects: &[String]) -> Result<(), ExportError> {
        let now = self.exports.now().await?;
        self.exports.commit(export.update(now)?, objects).await?;
        (self.export, self.stored_at) = (export.stored(now), Moment::now());
        Ok(())
    }
}
