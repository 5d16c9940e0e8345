//! The bin that is being filled.

use crate::model::grid::Grid;
use crate::model::time::Instant;

/// A place on a grid that moves forward only.
#[derive(Clone, Debug)]
pub(super) struct Place {
    grid: Grid,
    pub(super) index: u64,
    /// Microseconds, inclusive.
    pub(super) start: i64,
    /// Microseconds, exclusive.
    pub(super) end: i64,
}

impl Place {
    pub(super) fn first(grid: Grid) -> Self {
        let mut place = Self {
            grid,
            index: 0,
            start: 0,
            end: 0,
        };
        place.move_to(0);
        place
    }

    /// Whether the last bin lies behind.
    pub(super) fn is_past(&self) -> bool {
        self.index >= self.grid.len()
    }

    pub(super) fn move_to(&mut self, index: u64) {
        self.index = index;
        self.start = self.edge(index);
        self.end = self.edge(index.saturating_add(1));
    }

    /// Where bin `index` begins.
    pub(super) fn edge(&self, index: u64) -> i64 {
        self.grid.edge(index).micros()
    }

    pub(super) fn last(&self) -> u64 {
        self.grid.len()
    }

    /// The bin that a moment not before this bin lies in; the number of bins when it lies behind all of them.
    pub(super) fn bin_of(&self, moment: i64) -> u64 {
        if moment < self.end {
            return self.index;
        }
        self.grid
            .bin_of(Instant::from_micros(moment))
            .unwrap_or(self.grid.len())
    }
}
