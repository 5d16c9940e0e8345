//! Parts of amounts by bin and group, a limited number of them at a time.
//!
//! Knows bins and numbers of groups; must not know which samples count.

use std::collections::HashMap;

use crate::model::grid::Grid;
use crate::model::time::Instant;
use crate::query::ground::turn::Turn;

/// The most parts that are held before they are emitted.
const PARTS_AT_ONCE: usize = 8192;

/// Where a part belongs: the index of its bin, and the number of its group.
pub(super) type Place = (u64, u32);

#[derive(Debug)]
pub(super) struct Parts {
    grid: Grid,
    held: HashMap<Place, f64>,
}

impl Parts {
    pub(super) fn new(grid: Grid) -> Self {
        Self {
            grid,
            held: HashMap::new(),
        }
    }

    /// Whether those that are held must be emitted before more are laid.
    pub(super) fn are_enough(&self) -> bool {
        self.held.len() >= PARTS_AT_ONCE
    }

    pub(super) fn are_none(&self) -> bool {
        self.held.is_empty()
    }

    /// Adds what lies at one moment.
    pub(super) fn add(&mut self, at: i64, group: u32, value: f64) {
        if let Some(bin) = self.grid.bin_of(Instant::from_micros(at)) {
            *self.held.entry((bin, group)).or_default() += value;
        }
    }

    /// Adds what lies in `[from, to)`, bin by bin: `amount` of the part that lies in a bin. Returns how far
    /// that went, which is `to` unless there are enough parts or the turn is over.
    pub(super) fn lay(
        &mut self,
        (from, to): (i64, i64),
        group: u32,
        turn: &mut Turn,
        amount: impl Fn(i64, i64) -> f64,
    ) -> i64 {
        let Some(first) = self.grid.bin_of(Instant::from_micros(from)) else {
            return to;
        };
        let mut at = from;
        for bin in self.grid.bins_from(first) {
            if at >= to {
                break;
            }
            if self.are_enough() || turn.is_over() {
                return at;
            }
            let end = bin.end.micros().min(to);
            *self.held.entry((bin.index, group)).or_default() += amount(at, end);
            turn.spend(1);
            at = end;
        }
        to
    }

    /// Gives out the parts that are held, in the order of their places.
    pub(super) fn take(&mut self) -> Vec<(Place, f64)> {
        let mut parts: Vec<(Place, f64)> = self.held.drain().collect();
        parts.sort_unstable_by_key(|(place, _)| *place);
        parts
    }

    /// Bytes on the heap.
    pub(super) fn memory(&self) -> usize {
        self.held.capacity() * size_of::<(Place, f64)>()
    }
}
