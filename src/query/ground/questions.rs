//! What all questions need to be prepared.

use std::marker::PhantomData;
use std::sync::Arc;

use crate::catalog::Catalog;
use crate::model::cache_pool::Member;
use crate::model::ids::PersonId;
use crate::model::meters::CacheMeters;
use crate::people::preferences::{KnownSources, SourcesByRecency};
use crate::store::StoreError;
use crate::store::find::Finder;
use crate::store::snapshot::Snapshots;

use super::dead::DeadRows;
use super::engine::Engine;
use super::errors::QueryError;
use super::files::Objects;
use super::rollups::Rollups;

/// Limits of the caches, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryCacheSizes {
    /// Rollups: ten years of one person's heart rate take about 20 MB by quarter of an hour, a quarter of
    /// that by hour.
    pub rollups: u64,
    /// Decoded moments and values, 8 bytes each.
    pub decoded: u64,
    /// Sources of people who have amounts from several.
    pub sources: u64,
}

/// Prepares questions about records. It takes the permits of one authority only.
pub struct Questions<Authority> {
    pub(in crate::query) engine: Arc<Engine>,
    pub(in crate::query) snapshots: Snapshots,
    pub(in crate::query) catalog: Catalog,
    pub(in crate::query) sources: KnownSources,
    pub(in crate::query) objects: Arc<Objects>,
    pub(in crate::query) rollups: Rollups,
    pub(in crate::query) dead: DeadRows,
    authority: PhantomData<fn() -> Authority>,
}

impl<Authority> Questions<Authority> {
    #[must_use]
    pub fn new(
        engine: Arc<Engine>,
        catalog: Catalog,
        snapshots: Snapshots,
        finder: Finder,
        sizes: QueryCacheSizes,
    ) -> Self {
        let rollups = Rollups::new(sizes.rollups);
        let held = rollups.clone();
        let files = finder.files().clone();
        files.on_replaced(move |replaced| held.forget(replaced));
        Self {
            engine,
            snapshots,
            sources: KnownSources::new(catalog.clone(), sizes.sources),
            catalog,
            objects: Arc::new(Objects::new(files, sizes.decoded)),
            rollups,
            dead: DeadRows::new(finder),
            authority: PhantomData,
        }
    }

    /// All sources of a person.
    pub async fn sources_of(&self, person: PersonId) -> Result<Arc<SourcesByRecency>, QueryError> {
        Ok(self.sources.of(person).await.map_err(StoreError::from)?)
    }

    /// Makes `meters` report how much is held.
    pub fn watched_by(&self, meters: &CacheMeters) {
        self.objects.decoded.watched_by(meters);
        self.rollups.watched_by(meters);
        self.sources.watched_by(meters);
    }

    /// The rollups in memory, as a member of a pool.
    #[must_use]
    pub fn pooled_rollups(&self) -> Member {
        self.rollups.pooled()
    }

    /// Drops everything that was computed or read from pieces and is held in memory, for all people.
    pub fn forget_all(&self) {
        self.snapshots.forget_all();
        self.sources.forget_all();
        self.dead.forget_all();
        self.objects.decoded.forget_all();
        self.rollups.forget_all();
    }
}
