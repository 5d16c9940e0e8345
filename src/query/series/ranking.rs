//! Whose samples are preferred: rule 1.4e as numbers.
//!
//! A ranking is made once for a question, from the person's own order and the sources that the catalogue knows. The same sources and the same order
//! give the same ranks, whatever order rows come in.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::catalog::records::KnownSource;
use crate::model::sources::SourceClass;

/// Who measured a sample, and how good that is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Standing {
    /// The number of the source.
    pub(super) source: u32,
    /// Less is preferred. Two sources never have the same.
    pub(super) rank: u64,
}

/// The preference of sources.
#[derive(Clone, Debug, Default)]
pub struct Ranking {
    /// Sources by key, numbered so that of two in the same tier the one with the lesser number is preferred.
    numbers: HashMap<String, u32>,
    /// The place in the person's own order, by number.
    own: Vec<Option<u32>>,
    /// Sources in that order; classes come after them.
    tiers: u32,
}

impl Ranking {
    /// `order`: keys of sources that come before all others, best first. `known`: the person's sources.
    #[must_use]
    pub fn new(order: &[String], known: &[KnownSource]) -> Self {
        let mut sources: Vec<&KnownSource> = known.iter().collect();
        sources.sort_by_key(|source| (Reverse(source.added_at), source.id));
        let mut ranking = Self {
            tiers: order.len() as u32,
            ..Self::default()
        };
        for source in sources {
            ranking.number(&source.key);
        }
        for (place, key) in order.iter().enumerate() {
            let number = ranking.number(key) as usize;
            if let Some(own) = ranking.own.get_mut(number) {
                own.get_or_insert(place as u32);
            }
        }
        ranking
    }

    /// The number of a source. One that nobody knows comes after those that are known.
    pub(super) fn number(&mut self, key: &str) -> u32 {
        if let Some(number) = self.numbers.get(key) {
            return *number;
        }
        let number = self.own.len() as u32;
        self.numbers.insert(key.to_owned(), number);
        self.own.push(None);
        number
    }

    /// How a sample stands whose source has this number and showed itself as of this class.
    pub(super) fn standing(&self, source: u32, class: i8) -> Standing {
        let own = self.own.get(source as usize).copied().flatten();
        let by_class = || self.tiers + u32::from(class.clamp(0, SourceClass::Import.code() + 1).unsigned_abs());
        let tier = own.unwrap_or_else(by_class);
        Standing {
            source,
            rank: u64::from(tier) << 32 | u64::from(source),
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::model::time::Instant;

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
        let sources = [known("old", 1, 9), known("new", 5, 8), known("twin", 5, 7), known("first", 2, 6)];
        let mut ranking = Ranking::new(&["first".to_owned()], &sources);
        assert_eq!(
            best_first(&mut ranking, vec![("old", Worn), ("new", Worn), ("twin", Worn), ("first", Import)]),
            ["first", "twin", "new", "old"]
        );
        assert_eq!(
            best_first(&mut ranking, vec![("new", Import), ("old", Hand), ("twin", Other)]),
            ["old", "twin", "new"]
        );
        assert_eq!(best_first(&mut ranking, vec![("stranger", Phone), ("old", Phone)]), ["old", "stranger"]);
    }
}
