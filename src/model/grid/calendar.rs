//! Computes where the periods of a calendar begin in a zone.
//!
//! A boundary is a time of the wall clock. It becomes the first instant at which that clock shows it or, when
//! it is skipped, has passed it. Where the clock is set back, days and longer periods simply continue, while
//! periods of fixed length begin again with the repeated hour.

use super::{Edges, Grid};
use crate::model::duration::{Every, Truncation};
use crate::model::time::{Instant, MICROS_PER_DAY, TimeRange, date_of, days_of};
use crate::model::zone::{Stretch, Zone};

/// Monday 1970-01-05, from which weeks are counted.
const FIRST_MONDAY: i64 = 4;
/// No clock was ever moved by more than a day.
const LARGEST_JUMP: i64 = MICROS_PER_DAY;

impl Truncation {
    /// The bins that cover a range. The first begins at the last boundary that is not after the start of the
    /// range.
    #[must_use]
    pub fn grid(&self, zone: &Zone, range: TimeRange) -> Grid {
        let (start, end) = (range.start().micros(), range.end().micros());
        if range.is_empty() {
            return Edges::default().into_grid(start, end);
        }
        let lattice = Lattice::of(self);
        // Whatever the clock did, a period begins within this time, and no earlier jump reaches into the
        // range.
        let before = lattice.longest().saturating_add(3 * LARGEST_JUMP);
        let stretches = zone.stretches(start.saturating_sub(before), end);
        lattice.edges(&stretches).into_grid(start, end)
    }

    /// The latest boundary that is not after `instant`.
    #[must_use]
    pub fn trunc(&self, zone: &Zone, instant: Instant) -> Instant {
        let next = Instant::from_micros(instant.micros().saturating_add(1));
        TimeRange::new(instant, next).map_or(instant, |range| self.grid(zone, range).edge(0))
    }
}

/// The first moment of a day in a zone. `midnight` is the start of the same date in UTC. A day that the zone
/// skipped begins with the day after it.
#[must_use]
pub fn start_of_day(zone: &Zone, midnight: Instant) -> Instant {
    let noon = midnight.micros().saturating_add(MICROS_PER_DAY / 2);
    let around = 2 * LARGEST_JUMP;
    let stretches = zone.stretches(noon.saturating_sub(around), noon.saturating_add(around));
    let shown = stretches.iter().find(|stretch| stretch.local_end() > noon);
    let moment = shown.map_or(noon, |stretch| {
        noon.saturating_sub(stretch.offset).max(stretch.start)
    });
    Truncation::DAYS.trunc(zone, Instant::from_micros(moment))
}

/// Boundaries as times of the wall clock, in microseconds since its 1970-01-01T00:00.
#[derive(Clone, Copy, Debug)]
enum Lattice {
    /// Every `width` microseconds, one of them at `origin`.
    Even {
        origin: i64,
        width: i64,
        again: bool,
    },
    Months(Months),
}

/// The first day of each `every` months, counted from month number `origin` since January 1970, each moved
/// by `moved` microseconds.
#[derive(Clone, Copy, Debug)]
struct Months {
    origin: i64,
    every: i64,
    moved: i64,
}

impl Lattice {
    fn of(truncation: &Truncation) -> Self {
        let (months, moved) = (truncation.offset.months, truncation.offset.micros);
        let even = |first_day: i64, width: i64, again: bool| {
            // Months move the day from which days are counted.
            let (_, _, day) = date_of(first_day);
            let origin_day = first_of_month(months) + day - 1;
            Self::Even {
                origin: (origin_day.saturating_mul(MICROS_PER_DAY).rem_euclid(width))
                    .saturating_add(moved.rem_euclid(width)),
                width,
                again,
            }
        };
        match truncation.every {
            Every::Fixed(width) => even(0, width, true),
            Every::Days(days) => even(0, days.saturating_mul(MICROS_PER_DAY), false),
            Every::Weeks(weeks) => even(FIRST_MONDAY, weeks.saturating_mul(7 * MICROS_PER_DAY), false),
            Every::Months(every) => Self::Months(Months {
                origin: months.rem_euclid(every),
                every,
                moved,
            }),
        }
    }

    /// The longest distance between two boundaries on the wall clock.
    const fn longest(self) -> i64 {
        match self {
            Self::Even { width, .. } => width,
            Self::Months(Months { every, .. }) => every.saturating_mul(31 * MICROS_PER_DAY),
        }
    }

    /// Whether a boundary that the clock shows twice counts twice.
    const fn again(self) -> bool {
        matches!(self, Self::Even { again: true, .. })
    }

    /// The first boundary at or after a time of the wall clock.
    fn at_or_after(self, local: i64) -> i64 {
        match self {
            Self::Even { origin, width, .. } => {
                local.saturating_add(origin.saturating_sub(local).rem_euclid(width))
            }
            Self::Months(months) => {
                let mut number = months.before(local);
                while months.start(number) < local {
                    number += 1;
                }
                months.start(number)
            }
        }
    }

    fn edges(self, stretches: &[Stretch]) -> Edges {
        let mut edges = Edges::default();
        let mut shown = i64::MIN;
        for stretch in stretches {
            let (from, to) = (stretch.local_start(), stretch.local_end());
            // The latest time that the clock has shown before, in this stretch or an earlier one.
            let passed = if shown == i64::MIN || (self.again() && from < shown) {
                from
            } else {
                shown
            };
            if self.at_or_after(passed) <= from {
                edges.push(stretch.start, 1, 1);
            }
            self.push_between(passed.max(from.saturating_add(1)), to, stretch.offset, &mut edges);
            shown = if self.again() { to } else { shown.max(to) };
        }
        edges
    }

    /// Adds the boundaries in `[from, to)` of the wall clock, which is ahead of UTC by `offset`.
    fn push_between(self, from: i64, to: i64, offset: i64, edges: &mut Edges) {
        match self {
            Self::Even { width, .. } => {
                let first = self.at_or_after(from);
                if first < to {
                    edges.push(
                        first - offset,
                        width,
                        ((to - first) as u64).div_ceil(width as u64),
                    );
                }
            }
            Self::Months(months) => {
                let mut number = months.before(from);
                loop {
                    let start = months.start(number);
                    if start >= to {
                        return;
                    }
                    if start >= from {
                        edges.push(start - offset, 1, 1);
                    }
                    number += 1;
                }
            }
        }
    }
}

impl Months {
    /// The number of a period that starts at or before `local`, and not long before it.
    fn before(self, local: i64) -> i64 {
        let (year, month, _) = date_of(local.saturating_sub(self.moved).div_euclid(MICROS_PER_DAY));
        ((year - 1970) * 12 + month - 1 - self.origin).div_euclid(self.every)
    }

    fn start(self, number: i64) -> i64 {
        let first = first_of_month(number.saturating_mul(self.every).saturating_add(self.origin));
        first.saturating_mul(MICROS_PER_DAY).saturating_add(self.moved)
    }
}

/// The first day of a month, both counted from January 1970.
fn first_of_month(month: i64) -> i64 {
    days_of(1970 + month.div_euclid(12), month.rem_euclid(12) + 1, 1)
}
