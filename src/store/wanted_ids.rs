//! Ids to look for, in a form in which columns of ids are searched fast.
//!
//! Knows ids and arrays; knows nothing of pieces.

use std::ops::RangeInclusive;
use std::sync::OnceLock;

use arrow::array::FixedSizeBinaryArray;
use uuid::Uuid;

use super::id_index::filter::AskedIds;
use crate::model::ids::RecordId;

/// Some ids, each once.
#[derive(Debug)]
pub(super) struct WantedIds {
    /// In order.
    ids: Vec<RecordId>,
    /// The last two bytes of the ids, which are random in most kinds of ids: one look rules out nearly all
    /// others. A set of 65,536 bits.
    endings: Vec<u64>,
    /// In the form that filters need, made for the first filter.
    asked: OnceLock<AskedIds>,
}

impl WantedIds {
    pub(super) fn new(mut ids: Vec<RecordId>) -> Self {
        ids.sort_unstable();
        ids.dedup();
        let mut endings = vec![0; (1 << 16) / 64];
        for id in &ids {
            let (word, bit) = place(id.as_bytes());
            if let Some(word) = endings.get_mut(word) {
                *word |= 1 << bit;
            }
        }
        Self {
            ids,
            endings,
            asked: OnceLock::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = RecordId> {
        self.ids.iter().copied()
    }

    /// The ids in a range, in order.
    pub(super) fn within(&self, range: &RangeInclusive<RecordId>) -> &[RecordId] {
        let from = self.ids.partition_point(|id| id < range.start());
        let until = self.ids.partition_point(|id| id <= range.end());
        self.ids.get(from..until).unwrap_or_default()
    }

    pub(super) fn asked(&self) -> &AskedIds {
        self.asked.get_or_init(|| AskedIds::new(&self.ids))
    }

    /// The rows of a column of ids that have one of these, in order.
    pub(super) fn among(&self, column: &FixedSizeBinaryArray) -> Vec<(usize, RecordId)> {
        let (all, _) = column.value_data().as_chunks::<16>();
        let may_be = all.iter().enumerate().filter(|(_, bytes)| self.may_hold(bytes));
        let mut found = Vec::new();
        let (Some(least), Some(greatest)) = (self.ids.first(), self.ids.last()) else {
            return found;
        };
        // Where ids are made in order of time, most other rows are before or after all of them, and
        // consecutive rows have ids that follow each other.
        let mut next = 0;
        for (row, bytes) in may_be {
            let id = RecordId(Uuid::from_bytes(*bytes));
            if id < *least || id > *greatest {
                continue;
            }
            let place = if self.ids.get(next) == Some(&id) {
                next
            } else if let Ok(place) = self.ids.binary_search(&id) {
                place
            } else {
                continue;
            };
            next = place + 1;
            found.push((row, id));
        }
        found
    }

    fn may_hold(&self, id: &[u8; 16]) -> bool {
        let (word, bit) = place(id);
        self.endings.get(word).is_none_or(|word| (word >> bit) & 1 == 1)
    }
}

fn place(id: &[u8; 16]) -> (usize, u32) {
    let last = u16::from_le_bytes([id[14], id[15]]);
    (usize::from(last >> 6), u32::from(last & 63))
}
