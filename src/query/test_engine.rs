//! A store, its catalogue and an engine in a folder of their own, for tests of questions that read rows.
//!
//! Knows no data types and no rows. The folder is removed with the value.

use std::sync::Arc;
use std::time::Duration;

use crate::catalog::Catalog;
use crate::catalog::test_databases::address_in;
use crate::model::clock::SystemClock;
use crate::store::files::PieceFiles;
use crate::store::find::Finder;
use crate::store::objects::{ObjectStorage, ObjectStoreSettings};
use crate::store::snapshot::Snapshots;

use super::engine::{Engine, EngineSettings};
use super::{QueryCacheSizes, Questions};

pub(in crate::query) struct TestEngine<Authority> {
    pub(in crate::query) questions: Questions<Authority>,
    pub(in crate::query) catalog: Catalog,
    pub(in crate::query) snapshots: Snapshots,
    pub(in crate::query) files: PieceFiles,
    pub(in crate::query) finder: Finder,
    /// With the store in `objects`.
    pub(in crate::query) directory: tempfile::TempDir,
}

impl<Authority> TestEngine<Authority> {
    /// An empty store.
    pub(in crate::query) async fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let objects =
            ObjectStorage::open(&ObjectStoreSettings::Local(directory.path().join("objects"))).unwrap();
        let address = address_in(directory.path());
        let catalog = Catalog::open(&address, Arc::new(SystemClock)).await.unwrap();
        let files = PieceFiles::new(objects, 1 << 20);
        let snapshots = Snapshots::new(catalog.clone(), 1 << 20);
        let settings = EngineSettings {
            memory: 64 << 20,
            spill: directory.path().to_owned(),
            spill_limit: 1 << 20,
            deadline: Duration::from_mins(1),
            total_deadline: Duration::from_mins(1),
        };
        let engine = Arc::new(Engine::new(&settings, tokio::runtime::Handle::current()).unwrap());
        let finder = Finder::new(files.clone(), 1 << 20);
        Self {
            questions: Questions::new(
                engine,
                catalog.clone(),
                snapshots.clone(),
                finder.clone(),
                QueryCacheSizes {
                    rollups: 32 << 20,
                    decoded: 16 << 20,
                    sources: 1 << 20,
                },
            ),
            catalog,
            snapshots,
            files,
            finder,
            directory,
        }
    }
}
