//! Purging: keeps what people deleted for as long as the operator says, so that it can be restored, and then
//! removes it for good.
//!
//! Only what its owner deleted is removed. Versions of files that newer ones replaced were not deleted, and
//! stay. Lives as long as the process; works on one node at a time.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::catalog::documents::{Change, Changed, Document, DocumentKind};
use crate::catalog::{Catalog, CatalogError};
use crate::model::time::Instant;
use crate::store::StoreError;
use crate::upkeep::lease::Leases;

use super::files::{Files, FilesError};

/// The pause between two looks, if deleted things are kept for long.
const PAUSE: Duration = Duration::from_mins(10);
/// The number of looks while something is kept, if that time is short.
const LOOKS: u32 = 20;
/// The most documents of one step.
const AT_ONCE: usize = 256;
/// Kinds that are only marked when they are deleted, and have nothing outside the catalogue.
const MARKED: [DocumentKind; 3] = [
    DocumentKind::Annotation,
    DocumentKind::Reflection,
    DocumentKind::Session,
];

/// Removes what was deleted long ago.
pub struct Purging {
    pub catalog: Catalog,
    pub files: Files,
    pub leases: Leases,
    /// How long deleted things are kept.
    pub after: Duration,
    /// The shortest pause between two looks for any work.
    pub interval: Duration,
}

impl Purging {
    /// Works until `stop` is cancelled.
    pub async fn run(self, stop: CancellationToken) {
        let pause = PAUSE.min(self.after / LOOKS).max(self.interval);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(pause.max(Duration::from_millis(10))) => {}
            }
            let work = Box::pin(self.purge());
            if let Err(error) = Box::pin(self.leases.alone("purge documents", &stop, work)).await {
                tracing::warn!(%error, "what was deleted long ago could not be removed; tried again later");
            }
        }
    }

    /// Removes everything that was deleted long enough ago; returns the number of documents.
    pub async fn purge(&self) -> Result<usize, StoreError> {
        let moment = self.catalog.now().await?.before(self.after);
        Ok(self.documents(moment).await? + self.deleted_files(moment).await?)
    }

    async fn documents(&self, moment: Instant) -> Result<usize, CatalogError> {
        let mut removed = 0;
        loop {
            let deleted = self
                .catalog
                .documents_deleted_before(&MARKED, moment, AT_ONCE)
                .await?;
            let mut gone = 0;
            for document in &deleted {
                let change = removal(document);
                gone += usize::from(self.catalog.change_documents(vec![change]).await? == Changed::Done);
            }
            removed += gone;
            if gone == 0 {
                return Ok(removed);
            }
        }
    }

    async fn deleted_files(&self, moment: Instant) -> Result<usize, StoreError> {
        let mut removed = 0;
        loop {
            let deleted = self
                .catalog
                .documents_deleted_before(&[DocumentKind::File], moment, AT_ONCE)
                .await?;
            let mut gone = 0;
            for file in &deleted {
                match self.files.purge(file).await {
                    Ok(purged) => gone += usize::from(purged),
                    Err(FilesError::Store(error)) => return Err(error),
                    // An unreadable file does not prevent the others' removal.
                    Err(error) => tracing::error!(%error, "a deleted file stays; run `almanac check`"),
                }
            }
            removed += gone;
            if gone == 0 {
                return Ok(removed);
            }
        }
    }
}

fn removal(document: &Document) -> Change {
    Change::Remove {
        kind: document.kind,
        id: document.id,
        person: document.person,
        expected: document.version,
    }
}
