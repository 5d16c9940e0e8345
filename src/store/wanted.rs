//! Ids that are looked for, in a form in which columns of ids are looked through fast.
//!
//! Knows ids and arrays; knows nothing of pieces.

use arrow::array::FixedSizeBinaryArray;
use uuid::Uuid;

use crate::model::ids::RecordId;

/// Some ids, each of them once.
#[derive(Debug)]
pub(super) struct WantedIds {
    /// In order.
    ids: Vec<RecordId>,
    /// The last two bytes of the ids, which are random in most kinds of them: tells nearly all other ids
    /// apart with one look. A set of 65,536 bits.
    endings: Vec<u64>,
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
        Self { ids, endings }
    }

    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = RecordId> {
        self.ids.iter().copied()
    }

    /// The rows of a column of ids that hold one of these, in order.
    pub(super) fn among<'s>(
        &'s self,
        column: &'s FixedSizeBinaryArray,
    ) -> impl Iterator<Item = (usize, RecordId)> + 's {
        let (all, _) = column.value_data().as_chunks::<16>();
        let may_be = all.iter().enumerate().filter(|(_, bytes)| self.may_hold(bytes));
        let ids = may_be.map(|(row, bytes)| (row, RecordId(Uuid::from_bytes(*bytes))));
        ids.filter(|(_, id)| self.ids.binary_search(id).is_ok())
    }

    fn may_hold(&self, id: &[u8; 16]) -> bool {
        let (word, bit) = place(id);
        self.endings.get(word).is_none_or(|word| (word >> bit) & 1 == 1)
    }
}

/// The ids of a column.
pub(super) fn all_ids(column: &FixedSizeBinaryArray) -> impl Iterator<Item = RecordId> {
    let (all, _) = column.value_data().as_chunks::<16>();
    all.iter().map(|bytes| RecordId(Uuid::from_bytes(*bytes)))
}

fn place(id: &[u8; 16]) -> (usize, u32) {
    let last = u16::from_le_bytes([id[14], id[15]]);
    (usize::from(last >> 6), u32::from(last & 63))
}
