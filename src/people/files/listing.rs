//! Lists files: by folder, by name, by state, and by their latest changes.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::errors::FilesError;
use super::file::{File, FileState};
use super::file_list::{FileList, Gathering};
use super::handle::Files;
use crate::catalog::documents::{Document, DocumentKind};
use crate::model::ids::PersonId;
use crate::model::time::{Instant, TimeRange};

/// If at least one in so many versions changed, the changes are taken from a list of all of them.
const MANY_CHANGED: u64 = 4;

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

    async fn listed<S: Fn(&File) -> bool + Sync>(
        &self,
        person: PersonId,
        filter: &ListingFilter,
        may_be_seen: &S,
    ) -> Result<Listing, FilesError> {
        let mut selection = Selection {
            filter,
            may_be_seen,
            files: Vec::new(),
            folders: BTreeSet::new(),
        };
        match self.kept.current(&self.catalog, person).await? {
            Some(list) => {
                let files = list.within(filter.path.as_deref().unwrap_or_default());
                files.for_each(|file| selection.consider(file));
            }
            None => self.read_all(person, |file| selection.consider(file)).await?,
        }
        Ok(selection.listing())
    }

    /// The files that changed in `range`, in the order of their latest changes.
    pub async fn changes(
        &self,
        person: PersonId,
        range: TimeRange,
        may_be_seen: impl Fn(&File) -> bool + Sync,
    ) -> Result<Vec<File>, FilesError> {
        let (kind, begin) = (DocumentKind::File, range.start());
        let mut files: Vec<File> = Vec::new();
        let mut consider = |file: &File| {
            if begin <= file.changed_at() && file.changed_in(range) && may_be_seen(file) {
                files.push(file.clone());
            }
        };
        if !self.reads_all_since(person, begin).await? {
            for document in self.catalog.documents_changed_since(person, kind, begin).await? {
                consider(&File::of(&document)?);
            }
        } else if let Some(list) = self.kept.current(&self.catalog, person).await? {
            list.changed_since(begin).for_each(consider);
        } else {
            self.read_all(person, consider).await?;
            files.sort_by_key(File::latest_change);
        }
        Ok(files)
    }

    /// Whether so many versions changed since `moment` that it is better to read all, if they can be kept.
    async fn reads_all_since(&self, person: PersonId, moment: Instant) -> Result<bool, FilesError> {
        let kind = DocumentKind::File;
        let (changed, all) = self.catalog.count_changed_since(person, kind, moment).await?;
        let may_be_kept = FileList::least_bytes(all) <= self.kept.room() as u64;
        Ok(may_be_kept && all <= changed.saturating_mul(MANY_CHANGED))
    }

    /// Passes all versions of a person's files to `each`, oldest first, and keeps them if there is room. What
    /// `each` received is valid only if this returns `Ok`.
    async fn read_all(&self, person: PersonId, mut each: impl FnMut(&File) + Send) -> Result<(), FilesError> {
        let state = self.kept.state(&self.catalog, person).await;
        let mut gathering = Gathering::within(self.kept.room());
        let mut damaged = None;
        // If there are more than can be kept, at most one page of them is in memory.
        let look = |document: Document| match File::of(&document) {
            Err(error) => {
                damaged.get_or_insert(error);
            }
            Ok(file) => {
                each(&file);
                gathering.add(file);
            }
        };
        let stamp = self
            .catalog
            .each_document(person, DocumentKind::File, look)
            .await?;
        if let Some(error) = damaged {
            return Err(error);
        }
        let bytes = gathering.bytes();
        match gathering.list() {
            Some(list) => self.kept.keep(person, (state, stamp), Arc::new(list), bytes),
            None => self.kept.wish_for(bytes),
        }
        Ok(())
    }
}

/// What a filter chooses.
struct Selection<'a, S> {
    filter: &'a ListingFilter,
    may_be_seen: &'a S,
    files: Vec<File>,
    folders: BTreeSet<String>,
}

impl<S: Fn(&File) -> bool> Selection<'_, S> {
    fn consider(&mut self, file: &File) {
        if !self.filter.wants(file) || !(self.may_be_seen)(file) {
            return;
        }
        if let Some(folder) = self.filter.folder_of(file)
            && !self.folders.contains(folder)
        {
            self.folders.insert(folder.to_owned());
        }
        if self.filter.path.as_ref().is_none_or(|path| *path == file.path) {
            self.files.push(file.clone());
        }
    }

    fn listing(self) -> Listing {
        let mut files = self.files;
        // The sort is stable: equal names stay in the order of announcement.
        files.sort_by(|one, other| (&one.path, &one.name).cmp(&(&other.path, &other.name)));
        Listing {
            files,
            folders: self.folders.into_iter().collect(),
        }
    }
}
