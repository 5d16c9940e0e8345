//! What all searches by id share: the files that they read, and the filters of objects that stay in memory.
//!
//! Knows nothing of how ids are searched for.

use std::fmt;
use std::sync::Arc;

use crate::model::cache::Cache;
use crate::model::cache_pool::Member;
use crate::model::ids::RecordId;
use crate::model::meters::CacheMeters;
use crate::store::files::PieceFiles;
use crate::store::id_index::filter::Filter;
use crate::store::snapshot::SnapshotPiece;

/// A filter of an object, by its number there.
pub(super) type FilterKey = (Arc<str>, usize);

/// Searches pieces by id. Cheap to clone, as every request does; all clones share the filters. Lives as long
/// as the process.
#[derive(Clone)]
pub struct Finder(pub(super) Arc<Shared>);

pub(super) struct Shared {
    pub files: PieceFiles,
    pub filters: Cache<FilterKey, Arc<Filter>>,
}

impl fmt::Debug for Finder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Finder({} filters)", self.0.filters.len())
    }
}

impl Finder {
    /// `memory`: how many bytes of bloom filters to keep. They take two bytes for each row.
    #[must_use]
    pub fn new(files: PieceFiles, memory: u64) -> Self {
        // In one part: filters that fit into all of the memory must stay in it.
        let filters: Cache<FilterKey, _> =
            Cache::of_bytes(memory, memory, |_, filter: &Arc<Filter>| filter.memory());
        let kept = filters.clone();
        files.on_replaced(move |replaced| kept.retain(|(path, _)| !replaced.contains(path)));
        Self(Arc::new(Shared { files, filters }))
    }

    /// The files through which it reads.
    #[must_use]
    pub fn files(&self) -> &PieceFiles {
        &self.0.files
    }

    /// Lets `meters` show how much is held.
    pub fn watched_by(&self, meters: &CacheMeters) {
        meters.watch("filters", &self.0.filters);
    }

    /// The filters, as a member of a pool.
    #[must_use]
    pub fn pooled(&self) -> Member {
        Member::of(&self.0.filters)
    }

    /// Drops everything from memory.
    pub fn forget_all(&self) {
        self.0.filters.clear();
    }
}

/// Whether the row of `piece` with this id is not dead.
pub(super) fn is_live(piece: &SnapshotPiece, id: RecordId) -> bool {
    piece.dead.binary_search(&id).is_err()
}
