//! The current bin of a series.

use crate::model::grid::Grid;
use crate::model::time::Instant;

/// The bin of a grid that is being filled. It moves forward only.
#[derive(Clone, Debug)]
pub(super) struct CurrentBin {
    grid: Grid,
    pub(super) index: u64,
    /// Microseconds, inclusive.
    pub(super) start: i64,
    /// Microseconds, exclusive.
    pub(super) end: i64,
    /// How many of the following bins have the same width, and that width: the next bin mostly does.
    alike: u64,
    width: i64,
}

impl CurrentBin {
    pub(super) fn first(grid: Grid) -> Self {
        let mut current = Self {
            grid,
            index: 0,
            start: 0,
            end: 0,
            alike: 0,
            width: 0,
        };
        current.move_to(0);
        current
    }

    /// Whether all bins are filled.
    pub(super) fn is_past(&self) -> bool {
        self.index >= self.grid.len()
    }

    pub(super) fn move_to(&mut self, index: u64) {
        if self.alike > 0 && index == self.index + 1 {
            self.alike -= 1;
            self.index = index;
            self.start = self.end;
            self.end += self.width;
            return;
        }
        (self.alike, self.width) = self.grid.alike_after(index);
        self.index = index;
        self.start = self.edge(index);
        self.end = self.edge(index.saturating_add(1));
    }

    /// How many bins of equal width start here, as far as is known without consulting the grid; the one after
    /// them has the same width.
    pub(super) fn even_bins(&self) -> usize {
        usize::try_from(self.alike).unwrap_or(usize::MAX)
    }

    /// The width of these bins.
    pub(super) const fn width(&self) -> i64 {
        self.width
    }

    /// Moves forward by up to `bins` of the bins of equal width.
    pub(super) fn skip_even(&mut self, bins: usize) {
        let bins = (bins as u64).min(self.alike);
        self.alike -= bins;
        self.index += bins;
        self.start += bins as i64 * self.width;
        self.end += bins as i64 * self.width;
    }

    /// The start of bin `index`.
    pub(super) fn edge(&self, index: u64) -> i64 {
        self.grid.edge(index).micros()
    }

    pub(super) fn last(&self) -> u64 {
        self.grid.len()
    }

    /// The bin of a moment that is not before this bin; the number of bins if it is behind all of them.
    pub(super) fn bin_of(&self, moment: i64) -> u64 {
        if moment < self.end {
            return self.index;
        }
        if self.alike > 0 && moment < self.end + self.width {
            return self.index + 1;
        }
        self.grid
            .bin_of(Instant::from_micros(moment))
            .unwrap_or(self.grid.len())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::duration::Truncation;
    use crate::model::time::TimeRange;
    use crate::model::zone::Zone;

    const HOUR: i64 = 3_600_000_000;
    /// 2024-03-29T00:00:00Z, before clocks change in Europe.
    const BEGIN: i64 = 1_711_670_400_000_000;

    fn grids() -> impl Strategy<Value = Grid> {
        let range = |hours: i64, rest: i64| {
            let (begin, end) = (BEGIN, BEGIN + hours * HOUR + rest);
            TimeRange::new(Instant::from_micros(begin), Instant::from_micros(end)).unwrap()
        };
        (1_i64..24 * 12, 0..HOUR, 0_u8..5).prop_map(move |(hours, rest, kind)| {
            let range = range(hours, rest);
            let periods = |text: &str| {
                let zone = Zone::parse("Europe/Berlin").unwrap();
                Truncation::parse(text).unwrap().grid(&zone, range)
            };
            match kind {
                0 => Grid::uniform(range, HOUR),
                1 => Grid::uniform(range, 7 * HOUR + 1),
                2 => periods("1h"),
                3 => periods("1d"),
                _ => periods("1w"),
            }
        })
    }

    proptest! {
        #[test]
        fn a_bin_is_where_the_grid_says_however_it_came_there(
            grid in grids(),
            steps in prop::collection::vec(prop_oneof![8 => Just(1_u64), 1 => 2_u64..20], 0..60)
        ) {
            let mut current = CurrentBin::first(grid.clone());
            for step in steps {
                let moments = [current.end - 1, current.end, current.end + HOUR / 2, current.end + 30 * HOUR];
                for moment in moments.into_iter().filter(|moment| *moment >= current.start) {
                    let found = grid.bin_of(Instant::from_micros(moment)).unwrap_or(grid.len());
                    prop_assert_eq!(current.bin_of(moment), found);
                }
                current.move_to((current.index + step).min(grid.len()));
                prop_assert_eq!(current.start, current.edge(current.index));
                prop_assert_eq!(current.end, current.edge(current.index + 1));
            }
        }
    }
}
