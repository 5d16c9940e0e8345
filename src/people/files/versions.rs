//! What is done with one version of a file: announcing, reading, deleting and restoring it.
//!
//! Knows documents and contents; knows nothing of how bytes arrive.

use uuid::Uuid;

use super::errors::FilesError;
use super::file::{AnnouncedFile, File, FileState, ScanState};
use super::handle::Files;
use crate::model::ids::PersonId;
use crate::model::registry::TypeId;
use crate::model::time::Instant;
use crate::people::attempts::repeat_while_overtaken;
use crate::store::contents::Content;

/// An announced file, and until when its bytes are accepted.
#[derive(Clone, Debug)]
pub struct NewFile {
    pub file: File,
    pub open_until: Instant,
    /// The address for its bytes, if they do not go to this service.
    pub put_url: Option<String>,
}

impl Files {
    /// Announces a file whose bytes are to come.
    pub async fn create(&self, person: PersonId, announced: AnnouncedFile) -> Result<NewFile, FilesError> {
        let limits = self.settings.limits;
        if announced.size > limits.file_bytes {
            return Err(FilesError::TooLarge(limits.file_bytes));
        }
        let (id, content) = (self.ids.next(), self.ids.next());
        repeat_while_overtaken(|| async {
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
            self.commit(changes).await?;
            Ok(NewFile {
                file: file.stored(),
                open_until,
                put_url,
            })
        })
        .await
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
        repeat_while_overtaken(|| async {
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
            self.commit(changes).await?;
            if let Some(content) = dropped {
                self.remove_incoming(&file).await;
                self.contents.remove_parts(&content, &content.parts).await;
            }
            Ok(())
        })
        .await
    }

    /// Makes a new version with the bytes of an earlier one. It becomes the current one.
    pub async fn restore(&self, person: PersonId, id: Uuid) -> Result<File, FilesError> {
        let restored = self.ids.next();
        repeat_while_overtaken(|| async {
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
            self.commit(changes).await?;
            if file.scan_state == ScanState::Pending {
                self.to_scan.notify_one();
            }
            Ok(file.stored())
        })
        .await
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
        repeat_while_overtaken(|| async {
            let file = self.find(id).await?.filter(|file| file.person == person);
            let now = self.now().await?;
            let Some(noted) = file.and_then(|file| file.read_into(data_type, now)) else {
                return Ok(());
            };
            self.commit(vec![Self::update(&noted)?]).await
        })
        .await
    }

    /// The uploaded version at the path and name of an announcement.
    pub async fn there(
        &self,
        person: PersonId,
        announced: &AnnouncedFile,
    ) -> Result<Option<File>, FilesError> {
        self.named(person, &announced.full_name()).await
    }
}
