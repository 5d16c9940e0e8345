//! Files that a person keeps beside their records, in versions.
//!
//! A file is announced, then its bytes arrive, and from then on it is the current one at its path and name;
//! an older one becomes an earlier version in the same transaction. Neither a new version nor deletion loses
//! anything: any version whose bytes once arrived can be restored as a new one. Knows documents and contents;
//! knows nothing of HTTP, of tickets, or of who may read what.

pub mod antivirus;
mod bring_back;
mod direct;
mod file;
mod listing;
#[cfg(test)]
mod tests;
mod upload;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use uuid::Uuid;

pub use bring_back::BringBackError;
pub use direct::Arrivals;
pub use file::{AnnouncedFile, File, FileState, ScanState};
pub use listing::{Listing, ListingFilter};
pub use upload::{Awaited, Received, Sent, UploadError};

use super::limits::PersonLimits;
use crate::catalog::documents::{Change, Changed, Document, DocumentKind};
use crate::catalog::{Catalog, CatalogError};
use crate::model::clock::Clock;
use crate::model::ids::{IdSource, PersonId};
use crate::model::meters::UpkeepMeters;
use crate::model::registry::TypeId;
use crate::model::time::Instant;
use crate::store::StoreError;
use crate::store::contents::{Content, Contents};

/// How often a change is attempted. An attempt fails only where another change came first, so that this many
/// at once all succeed: clients have up to twenty in progress.
const ATTEMPTS: usize = 32;

/// Why an operation on files failed.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    #[error("{0} is not one of your files")]
    Unknown(Uuid),
    #[error("a file at {0} already exists")]
    Exists(String),
    #[error("the file has changed; read it again and retry")]
    Changed,
    #[error("the bytes of this file have not arrived yet")]
    NotUploaded,
    #[error("this file was deleted; restore it to read it")]
    Deleted,
    #[error("this file is still being scanned; try again soon")]
    Unscanned,
    #[error("this file is harmful and cannot be downloaded")]
    Infected,
    #[error("you have reached the limit of {0} files, each version counted")]
    TooMany(u64),
    #[error("the limit for one file is {0} bytes")]
    TooLarge(u64),
    #[error("the limit for all of your files together is {limit} bytes, of which {taken} are used")]
    NoRoom { limit: u64, taken: u64 },
    #[error("your files were changed by another request; read them again and retry")]
    Overtaken,
    #[error("the stored file {id} cannot be read: {reason}")]
    Damaged { id: Uuid, reason: String },
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<CatalogError> for FilesError {
    fn from(error: CatalogError) -> Self {
        Self::Store(error.into())
    }
}

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
    catalog: Catalog,
    contents: Contents,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
    settings: FileSettings,
    /// Set where senders put bytes into the object store themselves: the meters for that.
    direct: Option<UpkeepMeters>,
    /// Notified when a file waits to be scanned.
    to_scan: Arc<Notify>,
}

/// An announced file, and until when its bytes are accepted.
#[derive(Clone, Debug)]
pub struct NewFile {
    pub file: File,
    pub open_until: Instant,
    /// The address for its bytes, if they do not go to this service.
    pub put_url: Option<String>,
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
            direct: None,
            to_scan: Arc::new(Notify::new()),
        }
    }

    #[must_use]
    pub const fn contents(&self) -> &Contents {
        &self.contents
    }

    /// Announces a file whose bytes are to come.
    pub async fn create(&self, person: PersonId, announced: AnnouncedFile) -> Result<NewFile, FilesError> {
        let limits = self.settings.limits;
        if announced.size > limits.file_bytes {
            return Err(FilesError::TooLarge(limits.file_bytes));
        }
        let (id, content) = (self.ids.next(), self.ids.next());
        for _ in 0..ATTEMPTS {
            let now = self.now().await?;
            let open_until = self.clock.now().after(self.settings.upload_lifetime);
            let file = File::created(id, person, content, announced.clone(), now);
            if file.must_be_first && self.live(&file).await?.is_some() {
                return Err(FilesError::Exists(file.full_name()));
            }
            let usage = self.contents.usage(person).await?;
            let taken = usage.bytes();
            if taken.saturating_add(file.size) > limits.all_file_bytes {
                let limit = limits.all_file_bytes;
                return Err(FilesError::NoRoom { limit, taken });
            }
            let put_url = self.put_url(&file).await?;
            let content = Content::announced(content, person, file.size, now, open_until);
            let changes = vec![
                self.insertion(&file)?,
                content.insertion()?,
                usage.with(file.size).change(&content)?,
            ];
            if self.attempt(changes).await? {
                return Ok(NewFile {
                    file: file.stored(),
                    open_until,
                    put_url,
                });
            }
        }
        Err(FilesError::Overtaken)
    }

    /// A version of a file of `person`, deleted or not.
    pub async fn get(&self, person: PersonId, id: Uuid) -> Result<File, FilesError> {
        let of_theirs = |file: &File| file.person == person;
        let mut found = self.find(id).await?.filter(of_theirs);
        if let Some(file) = &found
            && self.notice(file).await
        {
            found = self.find(id).await?;
        }
        found.ok_or(FilesError::Unknown(id))
    }

    /// The content of a file, if it may be handed out.
    pub async fn content(&self, file: &File) -> Result<Content, FilesError> {
        match (file.state, file.scan_state) {
            (FileState::Created, _) => return Err(FilesError::NotUploaded),
            (FileState::Deleted, _) => return Err(FilesError::Deleted),
            (_, ScanState::Infected) => return Err(FilesError::Infected),
            (_, ScanState::Pending) => return Err(FilesError::Unscanned),
            _ => {}
        }
        self.whole_content(file).await
    }

    /// Deletes a version, if `is_expected` accepts its current state. Its bytes stay, so that it can be
    /// restored; of a version whose bytes never arrived only its name stays.
    pub async fn delete(
        &self,
        person: PersonId,
        id: Uuid,
        is_expected: impl Fn(&File) -> bool,
    ) -> Result<(), FilesError> {
        for _ in 0..ATTEMPTS {
            let file = self.get(person, id).await?;
            if !is_expected(&file) {
                return Err(FilesError::Changed);
            }
            if file.state == FileState::Deleted {
                return Ok(());
            }
            let deleted = file.clone().deleted(self.now().await?);
            let mut changes = vec![Self::update(&deleted)?];
            let mut dropped = None;
            if file.state == FileState::Created
                && let Some(content) = self.contents.get(file.content).await?
            {
                let usage = self.contents.usage(person).await?;
                changes.push(content.removal());
                changes.push(usage.without(content.length).change(&content)?);
                dropped = Some(content);
            }
            if self.attempt(changes).await? {
                if let Some(content) = dropped {
                    self.remove_incoming(&file).await;
                    self.contents.remove_parts(&content, &content.parts).await;
                }
                return Ok(());
            }
        }
        Err(FilesError::Overtaken)
    }

    /// Removes a deleted version for good, and its bytes if no other version has them. Returns false if other
    /// changes came first.
    pub async fn purge(&self, deleted: &Document) -> Result<bool, FilesError> {
        let file = File::of(deleted)?;
        if file.state != FileState::Deleted {
            return Ok(false);
        }
        let mut is_shared = false;
        for other in self.catalog.documents_of(file.person, DocumentKind::File).await? {
            is_shared |= other.id != file.id && File::of(&other)?.content == file.content;
        }
        let mut changes = vec![Change::Remove {
            kind: DocumentKind::File,
            id: file.id,
            person: file.person,
            expected: file.version,
        }];
        let mut dropped = None;
        if !is_shared && let Some(content) = self.contents.get(file.content).await? {
            let usage = self.contents.usage(file.person).await?;
            changes.push(content.removal());
            changes.push(usage.without(content.length).change(&content)?);
            dropped = Some(content);
        }
        if !self.attempt(changes).await? {
            return Ok(false);
        }
        if let Some(content) = dropped {
            self.contents.remove_parts(&content, &content.parts).await;
        }
        Ok(true)
    }

    /// Makes a new version with the bytes of an earlier one. It becomes the current one.
    pub async fn restore(&self, person: PersonId, id: Uuid) -> Result<File, FilesError> {
        let restored = self.ids.next();
        for _ in 0..ATTEMPTS {
            let earlier = self.get(person, id).await?;
            if earlier.sha256.is_none() {
                return Err(FilesError::NotUploaded);
            }
            let now = self.now().await?;
            let file = earlier.restored(restored, now);
            let mut changes = self.archiving(&file, now).await?;
            if earlier.state == FileState::Deleted {
                // Restoring and final removal exclude each other: the one that comes first wins.
                changes.push(Self::update(&earlier)?);
            }
            changes.push(self.insertion(&file)?);
            if self.attempt(changes).await? {
                if file.scan_state == ScanState::Pending {
                    self.to_scan.notify_one();
                }
                return Ok(file.stored());
            }
        }
        Err(FilesError::Overtaken)
    }

    /// Records for each file the types of the records that name it as their origin. An id that is not a file
    /// of `person` may become one later, or be somebody else's: no error reveals which.
    pub async fn note_types(
        &self,
        person: PersonId,
        read: impl IntoIterator<Item = (Uuid, TypeId)>,
    ) -> Result<(), FilesError> {
        for (id, data_type) in read {
            self.note_type(person, id, &data_type).await?;
        }
        Ok(())
    }

    async fn note_type(&self, person: PersonId, id: Uuid, data_type: &TypeId) -> Result<(), FilesError> {
        for _ in 0..ATTEMPTS {
            let file = self.find(id).await?.filter(|file| file.person == person);
            let now = self.now().await?;
            let Some(noted) = file.and_then(|file| file.read_into(data_type, now)) else {
                return Ok(());
            };
            if self.attempt(vec![Self::update(&noted)?]).await? {
                return Ok(());
            }
        }
        Err(FilesError::Overtaken)
    }

    /// The time at which something happens to a file. Not this node's: whoever asks again and again what has
    /// changed since would miss what a node does whose clock is behind.
    async fn now(&self) -> Result<Instant, FilesError> {
        Ok(self.catalog.now().await?)
    }

    async fn find(&self, id: Uuid) -> Result<Option<File>, FilesError> {
        let found = self.catalog.document(DocumentKind::File, id).await?;
        found.as_ref().map(File::of).transpose()
    }

    /// The uploaded version at the path and name of an announcement.
    pub async fn there(
        &self,
        person: PersonId,
        announced: &AnnouncedFile,
    ) -> Result<Option<File>, FilesError> {
        self.named(person, &announced.full_name()).await
    }

    /// The uploaded version at the path and name of `file`.
    async fn live(&self, file: &File) -> Result<Option<File>, FilesError> {
        self.named(file.person, &file.full_name()).await
    }

    async fn named(&self, person: PersonId, full_name: &str) -> Result<Option<File>, FilesError> {
        let found = self
            .catalog
            .document_named(person, DocumentKind::File, full_name)
            .await?;
        found.as_ref().map(File::of).transpose()
    }

    /// The changes that make way for `file` at its path and name.
    async fn archiving(&self, file: &File, now: Instant) -> Result<Vec<Change>, FilesError> {
        let live = self.live(file).await?.filter(|live| live.id != file.id);
        live.map(|live| Self::update(&live.archived(now)))
            .into_iter()
            .collect()
    }

    async fn whole_content(&self, file: &File) -> Result<Content, FilesError> {
        let content = self.contents.get(file.content).await?;
        content
            .filter(Content::is_whole)
            .ok_or_else(|| FilesError::Damaged {
                id: file.id,
                reason: "its content is gone".to_owned(),
            })
    }

    fn insertion(&self, file: &File) -> Result<Change, FilesError> {
        Ok(Change::Insert {
            document: file.document()?,
            links: file.links(),
            limit: self.settings.limits.files,
        })
    }

    fn update(file: &File) -> Result<Change, FilesError> {
        Ok(Change::Update {
            document: file.document()?,
            expected: file.version,
            links: Some(file.links()),
        })
    }

    /// Whether the changes were made. If not, others came first and everything has to be read again.
    async fn attempt(&self, changes: Vec<Change>) -> Result<bool, FilesError> {
        self.attempt_naming(changes, &[]).await
    }

    /// Whether the changes were made, which name `objects` of the store for the first time. If not, others
    /// came first and everything has to be read again.
    async fn attempt_naming(&self, changes: Vec<Change>, objects: &[String]) -> Result<bool, FilesError> {
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
