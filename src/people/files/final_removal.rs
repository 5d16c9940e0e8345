//! Removes deleted versions of files for good, and the bytes that no other version has.
//!
//! Only a look at all of a person's files tells which bytes are shared. So this is done for many versions at
//! once: they go in one transaction, which requires that the files are still those that were looked at.
//! Knows documents and contents; knows nothing of how long deleted versions are kept.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use super::errors::FilesError;
use super::file::{File, FileState};
use super::handle::Files;
use crate::catalog::documents::{Change, Document, DocumentKind};
use crate::model::ids::PersonId;
use crate::store::contents::Content;

/// How often all files of a person who keeps changing them are looked at.
const ATTEMPTS: usize = 8;

/// What became of versions that were to be removed for good. Those that have changed since they were read
/// stay, and all of them where others kept changing the person's files.
#[derive(Debug, Default)]
pub struct FinalRemoval {
    pub removed: usize,
    /// Damage, each for one version or several that stay.
    pub kept: Vec<FilesError>,
}

/// What one transaction removes.
struct Removal {
    changes: Vec<Change>,
    versions: usize,
    contents: Vec<Content>,
    /// Damage to contents, whose versions stay.
    kept: Vec<FilesError>,
}

impl Files {
    /// Removes deleted versions of one person for good, and their bytes where no other version has them.
    pub async fn remove_for_good(
        &self,
        person: PersonId,
        deleted: &[Document],
    ) -> Result<FinalRemoval, FilesError> {
        let mut outcome = FinalRemoval::default();
        let Err(damage) = self.remove_together(person, deleted, &mut outcome).await? else {
            return Ok(outcome);
        };
        if deleted.len() <= 1 {
            outcome.kept.push(damage);
            return Ok(outcome);
        }
        // One of them is damaged, and does not keep the others.
        for alone in deleted.chunks(1) {
            if let Err(damage) = self.remove_together(person, alone, &mut outcome).await? {
                outcome.kept.push(damage);
            }
        }
        Ok(outcome)
    }

    /// Removes versions in one transaction. The inner error is damage to one of them: then nothing happened.
    async fn remove_together(
        &self,
        person: PersonId,
        deleted: &[Document],
        outcome: &mut FinalRemoval,
    ) -> Result<Result<(), FilesError>, FilesError> {
        for _ in 0..ATTEMPTS {
            let removal = self.removal(person, deleted).await?;
            if removal.versions > 0 {
                match self.attempt(removal.changes).await {
                    Ok(true) => {}
                    Ok(false) => continue,
                    Err(FilesError::Store(error)) if error.is_damage() => return Ok(Err(error.into())),
                    Err(error) => return Err(error),
                }
            }
            for content in &removal.contents {
                self.contents.remove_parts(content, &content.parts).await;
            }
            outcome.removed += removal.versions;
            outcome.kept.extend(removal.kept);
            return Ok(Ok(()));
        }
        Ok(Ok(()))
    }

    /// What is to be done, by the files as they are now.
    async fn removal(&self, person: PersonId, deleted: &[Document]) -> Result<Removal, FilesError> {
        let to_go: BTreeMap<Uuid, i64> = deleted.iter().map(|found| (found.id, found.version)).collect();
        let mut going: BTreeMap<Uuid, Vec<File>> = BTreeMap::new();
        let mut still_used: BTreeSet<Uuid> = BTreeSet::new();
        let mut damage = None;
        let look = |document: Document| match File::of(&document) {
            Ok(file) if file.state == FileState::Deleted && to_go.get(&file.id) == Some(&file.version) => {
                going.entry(file.content).or_default().push(file);
            }
            Ok(file) => {
                still_used.insert(file.content);
            }
            Err(error) => damage = Some(error),
        };
        let stamp = self
            .catalog
            .each_document(person, DocumentKind::File, look)
            .await?;
        if let Some(damage) = damage {
            return Err(damage);
        }
        let expected = Change::Expect {
            kind: DocumentKind::File,
            person,
            stamp,
        };
        let mut removal = Removal {
            changes: vec![expected],
            versions: 0,
            contents: Vec::new(),
            kept: Vec::new(),
        };
        for (content, versions) in going {
            if !still_used.contains(&content) {
                match self.contents.get(content).await {
                    Ok(found) => removal.contents.extend(found),
                    Err(error) if error.is_damage() => {
                        removal.kept.push(error.into());
                        continue;
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            removal.versions += versions.len();
            removal.changes.extend(versions.iter().map(removal_of));
        }
        self.free(person, &mut removal).await?;
        Ok(removal)
    }

    /// Removes the contents too, and gives their room back.
    async fn free(&self, person: PersonId, removal: &mut Removal) -> Result<(), FilesError> {
        let Some(last) = removal.contents.last() else {
            return Ok(());
        };
        let freed = removal.contents.iter().map(|content| content.length).sum();
        let usage = self.contents.usage(person).await?.without(freed);
        removal.changes.push(usage.change(last)?);
        removal
            .changes
            .extend(removal.contents.iter().map(Content::removal));
        Ok(())
    }
}

fn removal_of(file: &File) -> Change {
    Change::remove(DocumentKind::File, file.id, file.person, file.version)
}
