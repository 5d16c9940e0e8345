//! Requests, lists and removes exports. Knows nothing of what an archive contains or of how one is made.

use std::sync::Arc;
use std::time::Duration;

use futures::TryStreamExt as _;
use tokio::sync::Notify;
use uuid::Uuid;

use super::export::{EVERY, Export, ExportError, ExportState, KEPT_LINK, OPEN_LINK};
use crate::catalog::documents::{Change, Changed, DocumentKind};
use crate::model::ids::PersonId;
use crate::model::time::Instant;
use crate::people::attempts::repeat_while_overtaken;
use crate::people::condition::Condition;
use crate::people::limits::LimitReached;
use crate::store::StoreError;
use crate::store::contents::{Content, Contents};
use crate::store::folder_names::EXPORTS_FOLDER;
use crate::upkeep::UpkeepStores;

/// An operator's settings for exports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExportSettings {
    /// How long an archive is kept.
    pub lifetime: Duration,
    /// How many exports of one person are made at the same time.
    pub at_once: usize,
    /// How many exports one person may have, in any state.
    pub limit: u64,
}

/// The exports of everybody. Cheap to clone.
#[derive(Clone)]
pub struct Exports {
    pub(super) stores: UpkeepStores,
    settings: ExportSettings,
    /// The prefix of the sources of annotations.
    pub(super) source_prefix: Arc<str>,
    /// Notified when an export is requested.
    pub(super) to_build: Arc<Notify>,
}

impl Exports {
    #[must_use]
    pub fn new(stores: UpkeepStores, settings: ExportSettings, source_prefix: Arc<str>) -> Self {
        Self {
            stores,
            settings,
            source_prefix,
            to_build: Arc::new(Notify::new()),
        }
    }

    /// The contents of archives.
    #[must_use]
    pub fn contents(&self) -> Contents {
        self.stores.contents()
    }

    /// Requests an archive of everything that `person` has.
    pub async fn create(&self, person: PersonId) -> Result<Export, ExportError> {
        let id = self.stores.ids.next();
        let now = self.now().await?;
        for place in 1..=self.settings.at_once {
            let export = Export::asked(id, person, place, now);
            let insert = export.insertion(self.settings.limit)?;
            match self.stores.catalog.change_documents(vec![insert]).await? {
                Changed::Done => {
                    self.to_build.notify_one();
                    return Ok(export.stored(now));
                }
                Changed::NameTaken { .. } => {}
                Changed::LimitReached { kind, limit } => return Err(LimitReached { kind, limit }.into()),
                Changed::Overtaken => return Err(ExportError::Overtaken),
            }
        }
        Err(ExportError::Busy(self.settings.at_once))
    }

    /// The exports of `person`, oldest first.
    pub async fn of_person(&self, person: PersonId) -> Result<Vec<Export>, ExportError> {
        let now = self.now().await?;
        let found = self
            .stores
            .catalog
            .documents_of(person, DocumentKind::Export)
            .await?;
        let exports: Result<Vec<Export>, ExportError> = found.iter().map(Export::of).collect();
        let is_there = |export: &Export| !export.has_expired(now);
        exports.map(|exports| exports.into_iter().filter(is_there).collect())
    }

    /// One export of `person`.
    pub async fn get(&self, person: PersonId, id: Uuid) -> Result<Export, ExportError> {
        let now = self.now().await?;
        let found = self.find(id).await?;
        found
            .filter(|export| export.person == person && !export.has_expired(now))
            .ok_or(ExportError::Unknown(id))
    }

    /// The archive of an export, if it is ready.
    pub fn content(&self, export: &Export) -> Result<Content, ExportError> {
        match export.state {
            ExportState::Waiting | ExportState::Running => Err(ExportError::NotReady),
            ExportState::Failed => Err(ExportError::Failed),
            ExportState::Ready => Ok(export.content()),
        }
    }

    /// Removes an export and all objects of its archive. One that is being made is stopped.
    pub async fn remove(&self, person: PersonId, id: Uuid, condition: &Condition) -> Result<(), ExportError> {
        repeat_while_overtaken(|| async {
            let export = self.get(person, id).await?;
            condition.hold().await?;
            self.discard(&export).await
        })
        .await
    }

    /// Removes the expired exports of all people; returns how many there were.
    pub async fn remove_expired(&self) -> Result<usize, ExportError> {
        let now = self.now().await?;
        let mut removed = 0;
        for export in self.all(KEPT_LINK).await? {
            if !export.has_expired(now) {
                continue;
            }
            match self.discard(&export).await {
                Ok(()) => removed += 1,
                // If another node was faster, the export is removed as well.
                Err(ExportError::Overtaken) => {}
                Err(ExportError::Store(error)) if error.is_damage() => {
                    tracing::error!(export = %export.id, %error, "an expired export stays");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(removed)
    }

    /// Removes the document of an export, then its objects.
    async fn discard(&self, export: &Export) -> Result<(), ExportError> {
        self.commit(export.removal(), &[]).await?;
        if let Err(error) = self.clear(export).await {
            let export = export.id;
            tracing::warn!(%export, %error, "parts of an archive stay until orphans are collected");
        }
        Ok(())
    }

    /// Removes every object of an export, whether its document names it or not.
    pub(super) async fn clear(&self, export: &Export) -> Result<(), StoreError> {
        let folder = format!("{EXPORTS_FOLDER}/{}/{}", export.person, export.id);
        let objects = self.stores.objects();
        let listed: Vec<_> = objects.list(&folder)?.try_collect().await?;
        for object in listed {
            objects.delete(&object.path).await?;
        }
        objects.remove_empty_folders(&folder).await
    }

    pub(super) async fn find(&self, id: Uuid) -> Result<Option<Export>, ExportError> {
        let found = self.stores.catalog.document(DocumentKind::Export, id).await?;
        found.as_ref().map(Export::of).transpose()
    }

    /// All exports that a link leads to. A damaged document does not affect the other exports.
    async fn all(&self, link: &'static str) -> Result<Vec<Export>, ExportError> {
        let catalog = &self.stores.catalog;
        let found = catalog.sound_documents_linked(DocumentKind::Export, link, EVERY);
        let found = found.await?.reported();
        let read = |document| Export::of(document).inspect_err(|error| tracing::error!(%error, "left alone"));
        Ok(found.iter().filter_map(|document| read(document).ok()).collect())
    }

    /// The exports of all people that are still to be made.
    pub(super) async fn open(&self) -> Result<Vec<Export>, ExportError> {
        self.all(OPEN_LINK).await
    }

    /// Makes a change, unless another one came first. `objects` are those that it names for the first time.
    pub(super) async fn commit(&self, change: Change, objects: &[String]) -> Result<(), ExportError> {
        let changed = self.stores.catalog.change_documents_naming(vec![change], objects);
        match changed.await? {
            Changed::Done => Ok(()),
            _ => Err(ExportError::Overtaken),
        }
    }

    /// The time by which exports go. Not this node's: one whose clock is ahead would remove everybody's
    /// archives, and what it began would rest until the others' clocks are there.
    pub(super) async fn now(&self) -> Result<Instant, ExportError> {
        Ok(self.stores.catalog.now().await?)
    }

    /// When an export that ends at `now` is removed.
    pub(super) fn expiry(&self, now: Instant) -> Instant {
        now.after(self.settings.lifetime)
    }
}
