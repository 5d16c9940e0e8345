//! The handle through which everybody uses files, and what all changes of them have in common: how they are
//! found, made, and attempted again.
//!
//! Lives as long as the process. Knows documents and contents; knows nothing of what is done with a file.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use uuid::Uuid;

use super::errors::FilesError;
use super::file::File;
use super::file_list::FileList;
use crate::catalog::documents::{Change, Changed, DocumentKind};
use crate::catalog::{Catalog, CatalogError};
use crate::model::cache_pool::Member;
use crate::model::clock::Clock;
use crate::model::ids::{IdSource, PersonId};
use crate::model::meters::{CacheMeters, UpkeepMeters};
use crate::model::time::Instant;
use crate::people::kept::Kept;
use crate::people::limits::PersonLimits;
use crate::store::StoreError;
use crate::store::contents::{Content, Contents};

/// An operator's settings for files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSettings {
    pub limits: PersonLimits,
    /// How long after its announcement a file's bytes are accepted.
    pub upload_lifetime: Duration,
    /// Whether new files are scanned for malware.
    pub scanned: bool,
}

/// The files of everybody. Cheap to clone.
#[derive(Clone)]
pub struct Files {
    pub(super) catalog: Catalog,
    pub(super) contents: Contents,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) ids: Arc<dyn IdSource>,
    pub(super) settings: FileSettings,
    pub(super) kept: Kept<FileList>,
    /// Set where senders put bytes into the object store themselves: the meters for that.
    pub(super) direct: Option<UpkeepMeters>,
    /// Notified when a file waits to be scanned.
    pub(super) to_scan: Arc<Notify>,
}

impl Files {
    #[must_use]
    pub fn new(
        catalog: Catalog,
        contents: Contents,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn IdSource>,
        settings: FileSettings,
    ) -> Self {
        Self {
            catalog,
            contents,
            clock,
            ids,
            settings,
            kept: Kept::of(DocumentKind::File, 0),
            direct: None,
            to_scan: Arc::new(Notify::new()),
        }
    }

    /// These files, of which lists are kept in `memory` bytes.
    #[must_use]
    pub fn keeping_lists(mut self, memory: u64) -> Self {
        self.kept = Kept::of(DocumentKind::File, memory);
        self
    }

    pub fn watched_by(&self, meters: &CacheMeters) {
        self.kept.watched_by("file_lists", meters);
    }

    /// The lists that are kept, as a member of a pool.
    #[must_use]
    pub fn pooled_lists(&self) -> Member {
        self.kept.pooled()
    }

    /// Drops everything from memory.
    pub fn forget_all(&self) {
        self.kept.forget_all();
    }

    #[must_use]
    pub const fn contents(&self) -> &Contents {
        &self.contents
    }

    /// The time at which something happens to a file. Not this node's: whoever asks again and again what has
    /// changed since would miss what a node does whose clock is behind.
    pub(super) async fn now(&self) -> Result<Instant, FilesError> {
        Ok(self.catalog.now().await?)
    }

    pub(super) async fn find(&self, id: Uuid) -> Result<Option<File>, FilesError> {
        let found = self.catalog.document(DocumentKind::File, id).await?;
        found.as_ref().map(File::of).transpose()
    }

    /// The uploaded version at the path and name of `file`.
    pub(super) async fn live(&self, file: &File) -> Result<Option<File>, FilesError> {
        self.named(file.person, &file.full_name()).await
    }

    pub(super) async fn named(&self, person: PersonId, full_name: &str) -> Result<Option<File>, FilesError> {
        let found = self
            .catalog
            .document_named(person, DocumentKind::File, full_name)
            .await?;
        found.as_ref().map(File::of).transpose()
    }

    /// The changes that make way for `file` at its path and name.
    pub(super) async fn archiving(&self, file: &File, now: Instant) -> Result<Vec<Change>, FilesError> {
        let live = self.live(file).await?.filter(|live| live.id != file.id);
        live.map(|live| Self::update(&live.archived(now)))
            .into_iter()
            .collect()
    }

    pub(super) async fn whole_content(&self, file: &File) -> Result<Content, FilesError> {
        let content = self.contents.get(file.content).await?;
        content
            .filter(Content::is_whole)
            .ok_or_else(|| FilesError::Damaged {
                id: file.id,
                reason: "its content is gone".to_owned(),
            })
    }

    pub(super) fn insertion(&self, file: &File) -> Result<Change, FilesError> {
        Ok(Change::Insert {
            document: file.document()?,
            links: file.links(),
            limit: self.settings.limits.files,
        })
    }

    pub(super) fn update(file: &File) -> Result<Change, FilesError> {
        Ok(Change::Update {
            document: file.document()?,
            expected: file.version,
            links: Some(file.links()),
        })
    }

    /// Makes the changes, unless others came first.
    pub(super) async fn commit(&self, changes: Vec<Change>) -> Result<(), FilesError> {
        if self.attempt(changes).await? {
            Ok(())
        } else {
            Err(FilesError::Overtaken)
        }
    }

    /// Whether the changes were made. If not, others came first and everything has to be read again.
    pub(super) async fn attempt(&self, changes: Vec<Change>) -> Result<bool, FilesError> {
        self.attempt_naming(changes, &[]).await
    }

    /// Whether the changes were made, which name `objects` of the store for the first time. If not, others
    /// came first and everything has to be read again.
    pub(super) async fn attempt_naming(
        &self,
        changes: Vec<Change>,
        objects: &[String],
    ) -> Result<bool, FilesError> {
        match self.catalog.change_documents_naming(changes, objects).await {
            Ok(Changed::Done) => Ok(true),
            Ok(Changed::LimitReached { limit, .. }) => Err(FilesError::TooMany(limit)),
            Ok(Changed::Overtaken | Changed::NameTaken { .. }) | Err(CatalogError::Exists { .. }) => {
                Ok(false)
            }
            // A part that took longer than a write may take was condemned; it has to be sent again.
            Err(error @ CatalogError::Missing { .. }) => Err(StoreError::Unavailable {
                detail: error.to_string(),
            }
            .into()),
            Err(error) => Err(error.into()),
        }
    }
}
