//! Where rows are looked up before they are committed, and where they are written.
//!
//! Made once at start; all clones share it. Knows snapshots and objects; knows nothing of requests.

use std::sync::Arc;

use crate::model::ids::{IdSource, PersonId};
use crate::model::registry::TypeId;
use crate::store::StoreError;
use crate::store::files::PieceFiles;
use crate::store::find::Finder;
use crate::store::objects::ObjectStorage;
use crate::store::snapshot::{Snapshot, Snapshots};
use crate::store::tail::Packer;

/// Where stored rows are looked up, and how a piece of the tail is made.
#[derive(Clone)]
pub struct Stores {
    pub snapshots: Snapshots,
    pub finder: Finder,
    pub packer: Packer,
}

impl Stores {
    /// One partition, as it is now.
    pub async fn snapshot(&self, person: PersonId, data_type: &TypeId) -> Result<Arc<Snapshot>, StoreError> {
        let mut snapshots = self
            .snapshots
            .get(person, std::slice::from_ref(data_type))
            .await?;
        snapshots
            .pop()
            .ok_or_else(|| StoreError::corrupt(format!("partition {data_type} was not read")))
    }
}

/// The dependencies that intakes share.
#[derive(Clone)]
pub struct IntakeStores {
    pub stores: Stores,
    pub objects: ObjectStorage,
    pub ids: Arc<dyn IdSource>,
}

impl IntakeStores {
    /// `filters`: how many bytes of filters of ids to keep.
    #[must_use]
    pub fn new(snapshots: Snapshots, files: PieceFiles, filters: u64, ids: Arc<dyn IdSource>) -> Self {
        Self {
            objects: files.objects().clone(),
            stores: Stores {
                snapshots,
                finder: Finder::new(files, filters),
                packer: Packer::default(),
            },
            ids,
        }
    }
}
