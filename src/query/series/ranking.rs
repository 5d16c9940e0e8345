//! Ranks the sources of samples: rule 1.4e as numbers.
//!
//! A ranking is made once for a question, from the person's order of sources; the class of a source comes
//! with each row. The same sources and the same order give the same ranks, whatever the order of rows.

use std::collections::HashMap;
use std::sync::Arc;

use crate::model::sources::SourceClass;
use crate::people::preferences::{SourceOrder, SourcePlace};

/// The source of a sample, and its rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Standing {
    /// The number of the source.
    pub(super) source: u32,
    /// Lower is preferred. Two sources never have the same rank.
    pub(super) rank: u64,
}

/// The ranks of sources.
#[derive(Clone, Debug, Default)]
pub struct Ranking {
    order: Arc<SourceOrder>,
    /// Sources by key, numbered as they appear.
    numbers: HashMap<String, u32>,
    /// Their places in the order, by number.
    places: Vec<SourcePlace>,
}

/// Offset of classes: they rank after all sources that the person ordered.
const CLASSES: u64 = 1 << 24;
/// Offset of unknown sources: they rank after the known ones.
const STRANGERS: u32 = 1 << 31;

impl Ranking {
    #[must_use]
    pub fn new(order: SourceOrder) -> Self {
        Self {
            order: Arc::new(order),
            ..Self::default()
        }
    }

    /// The order that it follows.
    pub(super) fn order(&self) -> Arc<SourceOrder> {
        Arc::clone(&self.order)
    }

    /// The number of a source.
    pub(super) fn number(&mut self, key: &str) -> u32 {
        if let Some(number) = self.numbers.get(key) {
            return *number;
        }
        let number = self.places.len() as u32;
        let mut place = self.order.place(key);
        if place.recency >= STRANGERS {
            place.recency = STRANGERS + number;
        }
        self.numbers.insert(key.to_owned(), number);
        self.places.push(place);
        number
    }

    /// The standing of a sample from this source, which has this class in it.
    pub(super) fn standing(&self, source: u32, class: i8) -> Standing {
        let place = self.places.get(source as usize);
        let recency = place.map_or(u32::MAX, |place| place.recency);
        let chosen = place
            .map(|place| u64::from(place.chosen))
            .filter(|chosen| *chosen < CLASSES);
        let tier = chosen.unwrap_or_else(|| {
            CLASSES + u64::from(class.clamp(0, SourceClass::Import.code() + 1).unsigned_abs())
        });
        Standing {
            source,
            rank: tier << 32 | u64::from(recency),
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::catalog::records::KnownSource;
    use crate::model::time::Instant;
    use crate::people::preferences::SourcesByRecency;

    fn known(key: &str, added: i64, id: u128) -> KnownSource {
        KnownSource {
            id: Uuid::from_u128(id),
            key: key.to_owned(),
            name: None,
            added_at: Instant::from_micros(added),
        }
    }

    fn best_first(ranking: &mut Ranking, mut sources: Vec<(&str, SourceClass)>) -> Vec<String> {
        sources.sort_by_key(|(key, class)| {
            let number = ranking.number(key);
            ranking.standing(number, class.code()).rank
        });
        sources.into_iter().map(|(key, _)| key.to_owned()).collect()
    }

    #[test]
    fn rule_1_4e_own_order_then_class_then_the_newer_then_the_id() {
        use SourceClass::{Hand, Import, Other, Phone, Worn};
        let sources = vec![
            known("old", 1, 9),
            known("new", 5, 8),
            known("twin", 5, 7),
            known("first", 2, 6),
        ];
        let sources = Arc::new(SourcesByRecency::new(sources));
        let mut ranking = Ranking::new(SourceOrder::new(sources, &[Uuid::from_u128(6)]));
        assert_eq!(
            best_first(
                &mut ranking,
                vec![("old", Worn), ("new", Worn), ("twin", Worn), ("first", Import)]
            ),
            ["first", "twin", "new", "old"]
        );
        assert_eq!(
            best_first(
                &mut ranking,
                vec![("new", Import), ("old", Hand), ("twin", Other)]
            ),
            ["old", "twin", "new"]
        );
        assert_eq!(
            best_first(&mut ranking, vec![("stranger", Phone), ("old", Phone)]),
            ["old", "stranger"]
        );
    }

    #[test]
    fn rule_1_4e_no_two_sources_stand_alike() {
        let mut ranking = Ranking::new(SourceOrder::default());
        let (one, other) = (ranking.number("one"), ranking.number("other"));
        assert_ne!(ranking.standing(one, 5).rank, ranking.standing(other, 5).rank);
        assert_eq!(ranking.number("one"), one);
    }
}
