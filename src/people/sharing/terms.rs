//! The terms of a share: which types and files, and for which window of time.

use serde::{Deserialize, Serialize};

use crate::catalog::CatalogError;
use crate::catalog::documents::Document;
use crate::model::permit::{Opening, Windows};
use crate::model::registry::TypeId;
use crate::model::stored_json;
use crate::model::time::{Instant, TimeRange};

/// The prefix for the path of files whose live version is shared.
pub const LIVE_FILES: &str = "file:";
/// The prefix for the path of files whose every version is shared.
pub const EVERY_VERSION: &str = "filehistory:";

/// The body of a share.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    pub name: String,
    /// The name that the sharer wants to be called by.
    pub user_name: Option<String>,
    /// Ids of types in the registry's spelling, and paths of files after [`LIVE_FILES`] or [`EVERY_VERSION`].
    pub data_types: Vec<String>,
    /// Every data type, but no files.
    pub share_all_data: bool,
    /// `None` means unbounded.
    pub time_start: Option<Instant>,
    pub time_end: Option<Instant>,
}

/// Which version of a file is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileAge {
    /// The current one.
    Live,
    /// One that another has replaced.
    Old,
}

impl Terms {
    /// The terms of a stored share.
    pub fn of(share: &Document) -> Result<Self, CatalogError> {
        stored_json::read(&share.body).map_err(|error| CatalogError::Corrupt {
            what: format!("share {} cannot be read: {error}", share.id),
        })
    }

    /// The window of the records that may be read.
    #[must_use]
    pub fn window(&self) -> TimeRange {
        TimeRange::with_open_ends(self.time_start, self.time_end)
    }

    /// Whether records of a type are shared. A base covers all types defined on it.
    #[must_use]
    pub fn covers(&self, data_type: &TypeId) -> bool {
        self.share_all_data
            || self
                .data_types
                .iter()
                .any(|listed| listed == data_type.as_str() || listed == data_type.base())
    }

    /// Whether a version of the file at `path` is shared.
    #[must_use]
    pub fn covers_file(&self, path: &str, age: FileAge) -> bool {
        self.files().any(|(shared, every_version)| {
            (every_version || age == FileAge::Live) && is_at_or_below(path, shared)
        })
    }

    /// Whether something shared is at `folder`, below it, or above it.
    #[must_use]
    pub fn leads_through(&self, folder: &str) -> bool {
        self.files().any(|(shared, _)| leads_through(shared, folder))
    }

    /// Whether all that `others` share in `folder` is shared by these terms as well, for all of their window.
    #[must_use]
    pub fn share_as_much_in(&self, folder: &str, others: &Self) -> bool {
        let mut in_folder = others.files().filter(|(shared, _)| leads_through(shared, folder));
        let is_shared = |(shared, every_version): (&str, bool)| {
            let place = if is_at_or_below(folder, shared) {
                folder
            } else {
                shared
            };
            let age = if every_version {
                FileAge::Old
            } else {
                FileAge::Live
            };
            self.covers_file(place, age)
        };
        Windows::new([self.window()]).cover(others.window()) && in_folder.all(is_shared)
    }

    /// The types that are named, without files.
    pub fn named_types(&self) -> impl Iterator<Item = TypeId> {
        let is_type = |listed: &&String| !listed.contains(':');
        self.data_types
            .iter()
            .filter(is_type)
            .map(|listed| TypeId::new(listed))
    }

    /// What a listing may show under this share, limited to `range`.
    #[must_use]
    pub fn opening(&self, range: TimeRange) -> Opening {
        Opening {
            types: (!self.share_all_data).then(|| self.named_types().collect()),
            windows: Windows::new([self.window()]).within(range),
        }
    }

    /// Paths of shared files and folders, and whether old versions are included.
    fn files(&self) -> impl Iterator<Item = (&str, bool)> {
        self.data_types.iter().filter_map(|listed| {
            let live = listed.strip_prefix(LIVE_FILES).map(|path| (path, false));
            live.or_else(|| listed.strip_prefix(EVERY_VERSION).map(|path| (path, true)))
        })
    }
}

/// Whether what is shared at `shared` is at `folder`, below it, or above it.
fn leads_through(shared: &str, folder: &str) -> bool {
    is_at_or_below(shared, folder) || is_at_or_below(folder, shared)
}

/// Whether `path` is `place` or lies below it.
fn is_at_or_below(path: &str, place: &str) -> bool {
    let place = place.strip_suffix('/').unwrap_or(place);
    path.strip_prefix(place)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sharing(data_types: &[&str]) -> Terms {
        Terms {
            data_types: data_types.iter().map(|&listed| listed.to_owned()).collect(),
            ..Terms::default()
        }
    }

    #[test]
    fn a_base_type_covers_its_custom_types_and_not_the_other_way_round() {
        let one = TypeId::new("Event/0193b5a2-0000-7000-8000-000000000001");
        assert!(sharing(&["Event"]).covers(&one));
        assert!(sharing(&[one.as_str()]).covers(&one));
        assert!(!sharing(&[one.as_str()]).covers(&TypeId::new("Event")));
        assert!(!sharing(&["Metric"]).covers(&one));
        assert!(!sharing(&["HeartRate"]).covers(&TypeId::new("HeartRateVariability")));
    }

    #[test]
    fn all_data_covers_every_type_and_no_file() {
        let all = Terms {
            share_all_data: true,
            ..Terms::default()
        };
        assert!(all.covers(&TypeId::new("HeartRate")));
        assert!(!all.covers_file("/notes.md", FileAge::Live));
        let with_files = Terms {
            data_types: vec!["file:/".to_owned()],
            ..all
        };
        assert!(with_files.covers_file("/notes.md", FileAge::Live));
        assert!(!with_files.covers_file("/notes.md", FileAge::Old));
    }

    #[test]
    fn a_folder_covers_what_is_below_it_and_no_neighbour() {
        for folder in ["file:/trip", "file:/trip/"] {
            let terms = sharing(&[folder]);
            assert!(terms.covers_file("/trip/day/one.txt", FileAge::Live));
            assert!(!terms.covers_file("/trips/one.txt", FileAge::Live));
            assert!(!terms.covers_file("/trip/one.txt", FileAge::Old));
        }
        let history = sharing(&["filehistory:/notes.md"]);
        assert!(
            history.covers_file("/notes.md", FileAge::Old) && history.covers_file("/notes.md", FileAge::Live)
        );
        assert!(!history.covers_file("/notes.md.bak", FileAge::Live));
    }

    #[test]
    fn folders_that_lead_to_something_shared_can_be_walked() {
        let terms = sharing(&["file:/trip/day/one.txt"]);
        for folder in ["/", "/trip", "/trip/day/"] {
            assert!(terms.leads_through(folder), "{folder}");
        }
        for folder in ["/tri", "/trip/night"] {
            assert!(!terms.leads_through(folder), "{folder}");
        }
    }
}
