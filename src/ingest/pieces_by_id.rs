//! Maps ids to the pieces that hold their rows: what a large body remembers of what it wrote and left out.
//!
//! Lives as long as one body. Bodies bring their ids in order, or nearly so, and thousands at a time; sorted
//! ids need no hash to be distinguished, and are in the order in which pieces are searched for them. Knows
//! nothing of rows.

use crate::model::ids::{PieceId, RecordId};

/// Ids, each once.
#[derive(Clone, Debug, Default)]
pub struct PiecesById {
    /// Each is sorted by id and, when added, not much longer than half of the previous one: so there are few,
    /// and none is merged often.
    runs: Vec<Vec<(RecordId, PieceId)>>,
}

impl PiecesById {
    #[must_use]
    pub fn len(&self) -> usize {
        self.runs.iter().map(Vec::len).sum()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    #[must_use]
    pub fn has(&self, id: RecordId) -> bool {
        self.piece(id).is_some()
    }

    /// The piece of an id that it has.
    #[must_use]
    pub fn piece(&self, id: RecordId) -> Option<PieceId> {
        self.runs.iter().find_map(|run| {
            let place = place_in(run, id).ok()?;
            run.get(place).map(|(_, piece)| *piece)
        })
    }

    /// In no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (RecordId, PieceId)> {
        self.runs.iter().flatten().copied()
    }

    /// Adds ids, each once, with their pieces. Ids that it has already move to these pieces; returns the
    /// pieces in which they were.
    pub fn put(&mut self, mut placed: Vec<(RecordId, PieceId)>) -> Vec<(PieceId, RecordId)> {
        placed.sort_unstable_by_key(|(id, _)| *id);
        let mut before = Vec::new();
        if !self.is_empty() {
            placed.retain(|(id, piece)| match self.piece_of(*id) {
                Some(known) => {
                    before.push((std::mem::replace(known, *piece), *id));
                    false
                }
                None => true,
            });
        }
        if !placed.is_empty() {
            self.runs.push(placed);
            self.gather();
        }
        before
    }

    /// Removes those of `ids` that it has.
    pub fn remove(&mut self, ids: &[RecordId]) {
        for run in &mut self.runs {
            let known = ids.iter().copied().filter(|id| place_in(run, *id).is_ok());
            let mut gone: Vec<RecordId> = known.collect();
            if !gone.is_empty() {
                gone.sort_unstable();
                run.retain(|(id, _)| gone.binary_search(id).is_err());
            }
        }
        self.runs.retain(|run| !run.is_empty());
    }

    fn piece_of(&mut self, id: RecordId) -> Option<&mut PieceId> {
        self.runs.iter_mut().find_map(|run| {
            let place = place_in(run, id).ok()?;
            run.get_mut(place).map(|(_, piece)| piece)
        })
    }

    fn gather(&mut self) {
        while let [.., longer, shorter] = self.runs.as_mut_slice()
            && longer.len() <= 2 * shorter.len()
        {
            longer.append(shorter);
            // Two sorted stretches, of which this sort takes advantage.
            longer.sort_by_key(|(id, _)| *id);
            self.runs.pop();
        }
    }
}

fn place_in(run: &[(RecordId, PieceId)], id: RecordId) -> Result<usize, usize> {
    run.binary_search_by_key(&id, |(id, _)| *id)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;

    fn id(number: u8) -> RecordId {
        RecordId(Uuid::from_u128(u128::from(number)))
    }

    proptest! {
        /// It holds and returns what a map would.
        #[test]
        fn it_agrees_with_a_map(
            steps in prop::collection::vec(
                (prop::collection::hash_set(0_u8..60, 1..30), any::<bool>()),
                1..12,
            ),
        ) {
            let mut placed = PiecesById::default();
            let mut map: HashMap<RecordId, PieceId> = HashMap::new();
            for (step, (numbers, is_put)) in steps.into_iter().enumerate() {
                let ids: Vec<RecordId> = numbers.into_iter().map(id).collect();
                if is_put {
                    let piece = PieceId(Uuid::from_u128(step as u128));
                    let mut before = placed.put(ids.iter().map(|id| (*id, piece)).collect());
                    let known = ids.iter().filter_map(|id| Some((map.insert(*id, piece)?, *id)));
                    let mut expected: Vec<_> = known.collect();
                    before.sort_unstable();
                    expected.sort_unstable();
                    prop_assert_eq!(before, expected);
                } else {
                    placed.remove(&ids);
                    map.retain(|id, _| !ids.contains(id));
                }
                prop_assert_eq!(placed.iter().collect::<HashMap<_, _>>(), map.clone());
                prop_assert_eq!((placed.len(), placed.is_empty()), (map.len(), map.is_empty()));
                prop_assert!((0..60).map(id).all(|id| placed.piece(id) == map.get(&id).copied()));
                prop_assert!((0..60).map(id).all(|id| placed.has(id) == map.contains_key(&id)));
            }
        }
    }
}
