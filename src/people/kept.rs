//! Keeps what was made from all of a person's documents of one kind, while these documents do not change.
//!
//! Whatever is stored of a person makes another state, which is found by its key. Only then are the documents
//! themselves asked whether they have changed, by their stamp. So any node's change is noticed.
//! Knows documents by their stamp; knows nothing of what is made from them.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::catalog::documents::{DocumentKind, DocumentStamp};
use crate::catalog::{Catalog, CatalogError, KindState};
use crate::model::cache::Cache;
use crate::model::cache_pool::{Member, Wish};
use crate::model::ids::PersonId;
use crate::model::meters::CacheMeters;

/// What is kept of each person's documents of one kind. Cheap to clone; all clones keep the same.
#[derive(Debug)]
pub(super) struct Kept<T> {
    kind: DocumentKind,
    entries: Cache<PersonId, Entry<T>>,
    wish: Wish,
}

#[derive(Debug)]
struct Entry<T> {
    state: KindState,
    stamp: DocumentStamp,
    made: Arc<T>,
    bytes: usize,
}

impl<T> Kept<T> {
    /// Keeps at most `memory` bytes.
    #[must_use]
    pub(super) fn of(kind: DocumentKind, memory: u64) -> Self {
        // Entries may be large: if the memory were divided into parts, they would fit into none.
        let entries = Cache::of_bytes(memory, memory, |_, entry: &Entry<T>| {
            size_of::<Entry<T>>() + entry.bytes
        });
        Self {
            kind,
            entries,
            wish: Wish::default(),
        }
    }

    /// The state of a person's documents, to be read before they are. Where it cannot be read, because
    /// something of the person's is damaged, nothing is kept.
    pub(super) async fn state(&self, catalog: &Catalog, person: PersonId) -> Option<KindState> {
        catalog.document_state(person, self.kind).await
    }

    /// What was made from a person's documents, if it is kept and they have not changed since.
    pub(super) async fn current(
        &self,
        catalog: &Catalog,
        person: PersonId,
    ) -> Result<Option<Arc<T>>, CatalogError> {
        let Some(kept) = self.entries.get(&person) else {
            return Ok(None);
        };
        // Read before the stamp: what changes afterwards makes another state.
        let Some(state) = self.state(catalog, person).await else {
            self.entries.remove(&person);
            return Ok(None);
        };
        if state == kept.state {
            return Ok(Some(kept.made));
        }
        if catalog.document_stamp(person, self.kind).await? != kept.stamp {
            return Ok(None);
        }
        let made = Arc::clone(&kept.made);
        self.entries.insert(person, Entry { state, ..kept });
        Ok(Some(made))
    }

    /// Keeps what was made from documents with this stamp. `state` was read before they were: what changed
    /// meanwhile has made another one. What belongs to nobody is not kept.
    pub(super) fn keep(
        &self,
        person: PersonId,
        (state, stamp): (Option<KindState>, DocumentStamp),
        made: Arc<T>,
        bytes: usize,
    ) {
        if let Some(state) = state {
            let entry = Entry {
                state,
                stamp,
                made,
                bytes,
            };
            self.entries.insert(person, entry);
        }
    }

    /// How many bytes may be kept of one person. An entry that fills the cache to the brim is not taken.
    #[must_use]
    pub(super) fn room(&self) -> usize {
        let capacity = usize::try_from(self.entries.capacity()).unwrap_or(usize::MAX);
        (capacity - capacity / 16).saturating_sub(size_of::<Entry<T>>())
    }

    /// Notes that there was no room for so many bytes: if memory can be borrowed, there will be.
    pub(super) fn wish_for(&self, bytes: usize) {
        self.wish.note(bytes as u64);
    }

    /// Drops everything that is kept.
    pub(super) fn forget_all(&self) {
        self.entries.clear();
    }
}

impl<T: Send + Sync + 'static> Kept<T> {
    pub(super) fn watched_by(&self, name: &'static str, meters: &CacheMeters) {
        meters.watch(name, &self.entries);
    }

    /// What is kept, as a member of a pool.
    pub(super) fn pooled(&self) -> Member {
        Member::of(&self.entries).wishing(&self.wish)
    }
}

impl<T> Clone for Kept<T> {
    fn clone(&self) -> Self {
        Self {
            kind: self.kind,
            entries: self.entries.clone(),
            wish: self.wish.clone(),
        }
    }
}

impl<T> Clone for Entry<T> {
    fn clone(&self) -> Self {
        Self {
            made: Arc::clone(&self.made),
            ..*self
        }
    }
}
