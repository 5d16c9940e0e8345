//! Ranks the sources of a metric: by the person's own order first, then by how recently each was added.
//!
//! The class of a source ranks between the two and is stored with each row, so it is not known here. Made
//! once for a question, in the time that the person's own order takes.

use std::collections::BTreeMap;
use std::sync::Arc;

use uuid::Uuid;

use super::known_sources::SourcesByRecency;

/// The ranks of a metric's sources, by the key that their rows carry. Equal orders give equal answers on
/// equal data.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SourceOrder {
    sources: Arc<SourcesByRecency>,
    /// The positions of the sources that the person named.
    chosen: BTreeMap<Arc<str>, u32>,
}

/// The rank of one source. In both fields, less is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourcePlace {
    /// The position in the person's own order; the last if they did not name the source.
    pub chosen: u32,
    /// The position by recency: a source added later comes first; those added at the same time are in the
    /// order of their ids.
    pub recency: u32,
}

impl SourcePlace {
    const LAST: Self = Self {
        chosen: u32::MAX,
        recency: u32::MAX,
    };
}

impl SourceOrder {
    /// The ranks of `sources`, where `chosen` is the person's own order of them, best first.
    #[must_use]
    pub fn new(sources: Arc<SourcesByRecency>, chosen: &[Uuid]) -> Self {
        let mut places = BTreeMap::new();
        for (place, id) in (0..).zip(chosen) {
            if let Some(key) = sources.key(*id) {
                places.entry(Arc::clone(key)).or_insert(place);
            }
        }
        Self {
            sources,
            chosen: places,
        }
    }

    /// About how many bytes it takes.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.sources.memory() + self.chosen.len() * size_of::<(Arc<str>, u32)>()
    }

    /// The rank of the source with the key `key`; the last one if it is unknown.
    #[must_use]
    pub fn place(&self, key: &str) -> SourcePlace {
        let Some(recency) = self.sources.place(key) else {
            return SourcePlace::LAST;
        };
        SourcePlace {
            chosen: self.chosen.get(key).copied().unwrap_or(u32::MAX),
            recency,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::records::KnownSource;
    use crate::model::time::Instant;

    fn source(id: u128, key: &str, added_at: i64) -> KnownSource {
        KnownSource {
            id: Uuid::from_u128(id),
            key: key.to_owned(),
            name: None,
            added_at: Instant::from_micros(added_at),
        }
    }

    fn ranked(chosen: &[u128]) -> Vec<String> {
        let sources = vec![
            source(4, "old", 10),
            source(3, "b", 20),
            source(2, "a", 20),
            source(1, "new", 30),
        ];
        let chosen: Vec<Uuid> = chosen.iter().map(|id| Uuid::from_u128(*id)).collect();
        let order = SourceOrder::new(Arc::new(SourcesByRecency::new(sources)), &chosen);
        let mut keys = ["old", "b", "a", "new", "unknown"].map(str::to_owned);
        keys.sort_by_key(|key| order.place(key));
        keys.into()
    }

    #[test]
    fn rule_1_4e_among_equals_the_later_source_comes_first_then_the_lesser_id() {
        assert_eq!(ranked(&[]), ["new", "a", "b", "old", "unknown"]);
    }

    #[test]
    fn rule_1_4e_the_persons_own_order_comes_before_everything() {
        assert_eq!(ranked(&[4, 3]), ["old", "b", "new", "a", "unknown"]);
        assert_eq!(ranked(&[99, 2]), ["a", "new", "b", "old", "unknown"]);
        assert_eq!(ranked(&[4, 3, 4]), ["old", "b", "new", "a", "unknown"]);
    }

    #[test]
    fn orders_are_equal_where_they_rank_the_same_sources_alike() {
        let sources = |added_at| {
            Arc::new(SourcesByRecency::new(vec![
                source(1, "a", 0),
                source(2, "b", added_at),
            ]))
        };
        let chosen = [Uuid::from_u128(2)];
        let order = SourceOrder::new(sources(1), &chosen);
        assert_eq!(order, SourceOrder::new(sources(1), &chosen));
        assert_eq!(order, SourceOrder::new(sources(2), &chosen));
        assert_ne!(order, SourceOrder::new(sources(-1), &chosen));
        assert_ne!(order, SourceOrder::new(sources(1), &[]));
    }
}
