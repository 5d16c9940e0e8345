//! Lists files: by folder, by name, by state, and by their latest changes.

use std::collections::BTreeSet;

use super::errors::FilesError;
use super::file::{File, FileState};
use super::handle::Files;
use crate::catalog::documents::{Document, DocumentKind};
use crate::model::ids::PersonId;
use crate::model::time::TimeRange;

/// Which files to list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListingFilter {
    /// The folder; `None` means all folders.
    pub path: Option<String>,
    pub name: Option<String>,
    /// The states; empty means all but archived and deleted files.
    pub states: Vec<FileState>,
    pub include_archived: bool,
    pub include_deleted: bool,
    /// The range in which they were announced.
    pub created_in: TimeRange,
}

/// The files of a folder and the names of its subfolders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    pub files: Vec<File>,
    pub folders: Vec<String>,
}

impl ListingFilter {
    fn wants(&self, file: &File) -> bool {
        let state = match file.state {
            FileState::Archived if self.include_archived => true,
            FileState::Deleted if self.include_deleted => true,
            FileState::Created | FileState::Uploaded if self.states.is_empty() => true,
            state => self.states.contains(&state),
        };
        state
            && self.name.as_ref().is_none_or(|name| *name == file.name)
            && self.created_in.start() <= file.created_at
            && file.created_at < self.created_in.end()
    }

    /// The name of the subfolder of the requested folder that contains `file`, however deep.
    fn folder_of<'f>(&self, file: &'f File) -> Option<&'f str> {
        let asked = self.path.as_deref().unwrap_or("/");
        let below = match asked {
            "/" => file.path.strip_prefix('/')?,
            asked => file.path.strip_prefix(asked)?.strip_prefix('/')?,
        };
        below.split('/').next().filter(|name| !name.is_empty())
    }
}

impl Files {
    /// A person's files that match `filter` and that `may_be_seen` admits, in the order of path, name and
    /// age. Folders are those that contain one of them.
    pub async fn list(
        &self,
        person: PersonId,
        filter: &ListingFilter,
        may_be_seen: impl Fn(&File) -> bool + Sync,
    ) -> Result<Listing, FilesError> {
        let listing = self.listed(person, filter, &may_be_seen).await?;
        if self.notice_some(&listing.files).await {
            return self.listed(person, filter, &may_be_seen).await;
        }
        Ok(listing)
    }

    async fn listed(
        &self,
        person: PersonId,
        filter: &ListingFilter,
        may_be_seen: &(impl Fn(&File) -> bool + Sync),
    ) -> Result<Listing, FilesError> {
        let mut files = Vec::new();
        let mut folders = BTreeSet::new();
        let mut damaged = None;
        // Of many versions few match, so at most one page of them is in memory.
        let look = |document: Document| match File::of(&document) {
            Err(error) => {
                damaged.get_or_insert(error);
            }
            Ok(file) if !filter.wants(&file) || !may_be_seen(&file) => {}
            Ok(file) => {
                if let Some(folder) = filter.folder_of(&file) {
                    folders.insert(folder.to_owned());
                }
                if filter.path.as_ref().is_none_or(|path| *path == file.path) {
                    files.push(file);
                }
            }
        };
        self.catalog
            .each_document(person, DocumentKind::File, look)
            .await?;
        if let Some(error) = damaged {
            return Err(error);
        }
        // The sort is stable: equal names stay in the order of announcement.
        files.sort_by(|one, other| (&one.path, &one.name).cmp(&(&other.path, &other.name)));
        Ok(Listing {
            files,
            folders: folders.into_iter().collect(),
        })
    }

    /// The files that changed in `range`, in the order of their latest changes.
    pub async fn changes(
        &self,
        person: PersonId,
        range: TimeRange,
        may_be_seen: impl Fn(&File) -> bool,
    ) -> Result<Vec<File>, FilesError> {
        let kind = DocumentKind::File;
        let changed = self
            .catalog
            .documents_changed_since(person, kind, range.start())
            .await?;
        let mut files = Vec::new();
        for document in changed {
            let file = File::of(&document)?;
            if file.changed_in(range) && may_be_seen(&file) {
                files.push(file);
            }
        }
        Ok(files)
    }
}
