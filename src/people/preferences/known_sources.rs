//! The sources of a person in the order in which they were added, kept in memory.
//!
//! Every question about amounts ranks them all, and a person may have thousands, so they are read again only
//! when one was added. Knows the catalogue; knows nothing of what a person prefers.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use uuid::Uuid;

use crate::catalog::records::KnownSource;
use crate::catalog::{Catalog, CatalogError, SourcesState};
use crate::model::cache::Cache;
use crate::model::ids::PersonId;
use crate::model::meters::CacheMeters;

/// The size of the sources of a person who has many.
const LARGE_BYTES: u64 = 1 << 20;
/// The size of a source besides its key.
const SOURCE_BYTES: usize = 96;
/// The size of what is held of a person besides their sources.
const PERSON_BYTES: usize = 256;

/// Everybody's sources. Cheap to clone; all clones share what is held.
#[derive(Clone)]
pub struct KnownSources {
    catalog: Catalog,
    /// Any node may add one, so what is kept is compared with the catalogue whenever it is used.
    kept: Cache<PersonId, (SourcesState, Arc<SourcesByRecency>)>,
}

/// All sources of a person, with their places by recency: one that was added later comes first; those that
/// were added at the same time are in the order of their ids.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SourcesByRecency {
    /// A hash: equal for equal sources.
    state: u64,
    /// By key.
    places: BTreeMap<Arc<str>, u32>,
    /// By id.
    keys: HashMap<Uuid, Arc<str>>,
    bytes: usize,
}

impl KnownSources {
    /// `memory`: how many bytes of sources to keep.
    #[must_use]
    pub fn new(catalog: Catalog, memory: u64) -> Self {
        let kept = Cache::of_bytes(
            memory,
            LARGE_BYTES,
            |_, (_, sources): &(SourcesState, Arc<SourcesByRecency>)| PERSON_BYTES + sources.memory(),
        );
        Self { catalog, kept }
    }

    /// All sources of a person.
    pub async fn of(&self, person: PersonId) -> Result<Arc<SourcesByRecency>, CatalogError> {
        // Read before the sources: any that is added later yields another state.
        let state = self.catalog.sources_state(person).await?;
        if let Some((_, sources)) = self.kept.get(&person).filter(|(kept, _)| *kept == state) {
            return Ok(sources);
        }
        let sources = Arc::new(SourcesByRecency::new(self.catalog.sources_of(person).await?));
        self.kept.insert(person, (state, Arc::clone(&sources)));
        Ok(sources)
    }

    /// Makes `meters` report how much is held.
    pub fn watched_by(&self, meters: &CacheMeters) {
        meters.watch("sources", &self.kept);
    }

    /// Drops everything that is held in memory, for all people.
    pub fn forget_all(&self) {
        self.kept.clear();
    }
}

impl SourcesByRecency {
    #[must_use]
    pub fn new(mut sources: Vec<KnownSource>) -> Self {
        sources.sort_by(|one, other| (other.added_at, one.id).cmp(&(one.added_at, other.id)));
        let mut all = Self::default();
        let mut hasher = DefaultHasher::new();
        for (place, source) in (0..).zip(&sources) {
            (&source.key, source.id).hash(&mut hasher);
            let key: Arc<str> = Arc::from(source.key.as_str());
            all.bytes += key.len() + SOURCE_BYTES;
            all.keys.insert(source.id, Arc::clone(&key));
            all.places.insert(key, place);
        }
        all.state = hasher.finish();
        all
    }

    /// The place of the source with this key.
    #[must_use]
    pub fn place(&self, key: &str) -> Option<u32> {
        self.places.get(key).copied()
    }

    /// The key of the source with this id.
    #[must_use]
    pub fn key(&self, id: Uuid) -> Option<&Arc<str>> {
        self.keys.get(&id)
    }

    /// The keys of all sources.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &str> {
        self.places.keys().map(AsRef::as_ref)
    }

    /// About how many bytes they take.
    #[must_use]
    pub const fn memory(&self) -> usize {
        self.bytes
    }
}

impl Hash for SourcesByRecency {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.state.hash(hasher);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::test_databases::address_in;
    use crate::model::clock::SystemClock;
    use crate::model::time::Instant;

    fn source(key: &str, added_at: i64) -> KnownSource {
        KnownSource {
            id: Uuid::nil(),
            key: key.to_owned(),
            name: None,
            added_at: Instant::from_micros(added_at),
        }
    }

    #[tokio::test]
    async fn sources_are_read_again_only_when_one_was_added_on_any_node() {
        let directory = tempfile::tempdir().unwrap();
        let address = address_in(directory.path());
        let here = Catalog::open(&address, Arc::new(SystemClock)).await.unwrap();
        let elsewhere = Catalog::open(&address, Arc::new(SystemClock)).await.unwrap();
        let person = PersonId(Uuid::from_u128(1));
        let known = KnownSources::new(here.clone(), 1 << 20);
        assert_eq!(known.of(person).await.unwrap().keys().len(), 0);
        let add = async |source| {
            let added = elsewhere.restore_sources(person, &[source]).await;
            assert_eq!(added.unwrap(), 1);
        };
        add(source("old", 1)).await;
        let first = known.of(person).await.unwrap();
        assert_eq!((first.place("old"), first.place("new")), (Some(0), None));
        assert!(here.swap_preferences(person, None, "{}").await.unwrap());
        assert!(Arc::ptr_eq(&first, &known.of(person).await.unwrap()));
        add(source("new", 2)).await;
        let both = known.of(person).await.unwrap();
        assert_eq!((both.place("old"), both.place("new")), (Some(1), Some(0)));
        let id = Catalog::source_id(person, "new");
        assert_eq!(both.key(id).map(AsRef::as_ref), Some("new"));
        known.forget_all();
        let again = known.of(person).await.unwrap();
        assert!(!Arc::ptr_eq(&both, &again));
        assert_eq!(both, again);
    }
}
