//! All versions of a person's files in memory, in the orders in which they are asked for.
//!
//! Knows files; knows nothing of where they come from, nor of how long the list is right.

use super::file::File;
use crate::model::time::Instant;

/// Files by name, and by their latest changes.
#[derive(Debug)]
pub(super) struct FileList {
    /// In the order of path, name and age.
    files: Box<[File]>,
    /// Their places in the order of their latest changes and ids.
    by_change: Box<[usize]>,
}

/// Files of which a list is made, as long as they fit into some bytes of memory.
pub(super) struct Gathering {
    files: Option<Vec<File>>,
    bytes: usize,
    room: usize,
}

impl FileList {
    /// The least number of bytes that so many files take.
    #[must_use]
    pub(super) const fn least_bytes(files: u64) -> u64 {
        files.saturating_mul((size_of::<File>() + size_of::<usize>()) as u64)
    }

    /// A list of files that come in the order of their age.
    fn of(mut files: Vec<File>) -> Self {
        // The sort is stable: equal names stay in the order of age.
        files.sort_by(|one, other| (&one.path, &one.name).cmp(&(&other.path, &other.name)));
        let mut by_change: Vec<usize> = (0..files.len()).collect();
        by_change.sort_unstable_by_key(|place| files.get(*place).map(File::latest_change));
        Self {
            files: files.into(),
            by_change: by_change.into(),
        }
    }

    /// The files in folders whose names begin with `path`, in the order of path, name and age.
    pub(super) fn within(&self, path: &str) -> impl Iterator<Item = &File> {
        let first = self.files.partition_point(|file| file.path.as_str() < path);
        let rest = self.files.iter().skip(first);
        rest.take_while(move |file| file.path.starts_with(path))
    }

    /// The files that changed at `moment` or later, in the order of their latest changes.
    pub(super) fn changed_since(&self, moment: Instant) -> impl Iterator<Item = &File> {
        let changed_before = |place: &usize| {
            self.files
                .get(*place)
                .is_some_and(|file| file.changed_at() < moment)
        };
        let first = self.by_change.partition_point(changed_before);
        let rest = self.by_change.iter().skip(first);
        rest.filter_map(|place| self.files.get(*place))
    }
}

impl Gathering {
    #[must_use]
    pub(super) const fn within(room: usize) -> Self {
        Self {
            files: Some(Vec::new()),
            bytes: 0,
            room,
        }
    }

    pub(super) fn add(&mut self, file: File) {
        self.bytes += size_of::<usize>() + file.bytes();
        match &mut self.files {
            Some(files) if self.bytes <= self.room => files.push(file),
            _ => self.files = None,
        }
    }

    /// The number of bytes that a list of all files takes.
    #[must_use]
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// The list; `None` if there were too many files.
    #[must_use]
    pub(super) fn list(self) -> Option<FileList> {
        self.files.map(FileList::of)
    }
}
