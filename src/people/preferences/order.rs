//! Ranks the sources of a metric: by the person's own order first, then by how recently each was added.
//!
//! The class of a source ranks between the two and is stored with each row, so it is not known here. Made
//! once for a question.

use std::collections::BTreeMap;

use uuid::Uuid;

use crate::catalog::Catalog;
use crate::catalog::records::KnownSource;
use crate::model::ids::PersonId;
use crate::model::registry::TypeId;

use super::{Preferences, PreferencesError};

/// The ranks of a metric's sources, by the key that their rows carry. Equal orders give equal answers on
/// equal data.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SourceOrder(BTreeMap<String, SourcePlace>);

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
    /// The ranking of the sources of `metric` for `person`.
    pub async fn of(catalog: &Catalog, person: PersonId, metric: &TypeId) -> Result<Self, PreferencesError> {
        let preferences = Preferences::of(catalog, person).await?;
        Ok(Self::new(
            catalog.sources_of(person).await?,
            &preferences.chosen_sources(metric),
        ))
    }

    /// The ranks of `sources`, where `chosen` is the person's own order of them, best first.
    #[must_use]
    pub fn new(mut sources: Vec<KnownSource>, chosen: &[Uuid]) -> Self {
        sources.sort_by(|one, other| (other.added_at, one.id).cmp(&(one.added_at, other.id)));
        let place = |recency: usize, source: &KnownSource| SourcePlace {
            chosen: chosen
                .iter()
                .position(|id| *id == source.id)
                .map_or(u32::MAX, |place| place as u32),
            recency: recency as u32,
        };
        let places = sources
            .iter()
            .enumerate()
            .map(|(recency, source)| (source.key.clone(), place(recency, source)));
        Self(places.collect())
    }

    /// About how many bytes it takes.
    #[must_use]
    pub fn memory(&self) -> usize {
        let entry = |key: &String| key.len() + size_of::<(String, SourcePlace)>();
        self.0.keys().map(entry).sum()
    }

    /// The rank of the source with the key `key`; the last one if it is unknown.
    #[must_use]
    pub fn place(&self, key: &str) -> SourcePlace {
        self.0.get(key).copied().unwrap_or(SourcePlace::LAST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
        let order = SourceOrder::new(sources, &chosen);
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
    }
}
