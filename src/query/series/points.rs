//! The points of one bin and source, as far as statistics need them.

use super::calculation::Calculation;
use crate::model::sum::Sum;
use crate::model::summary::Summary;
use crate::query::ground::measure::Base;
use crate::query::quantile::quantile;

/// One point: a level at some time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    pub(super) value: f64,
    /// The start of its sample.
    pub(super) start: i64,
    pub(super) id: [u8; 16],
    /// How much of the bin its sample covers, in microseconds; 0 for an instant.
    pub(super) overlap: i64,
}

/// What is needed besides the summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PointNeeds {
    pub(super) values: bool,
    /// Whether values are listed in the order of time; only with values.
    pub(super) order: bool,
    pub(super) places: bool,
    pub(super) energy: bool,
}

impl PointNeeds {
    /// Whether the summary is sufficient.
    pub(super) const fn only_summary(self) -> bool {
        !self.values && !self.places && !self.energy
    }
}

/// The points of one bin and source.
#[derive(Clone, Debug, Default)]
pub(super) struct Points {
    pub(super) summary: Summary,
    first: Option<Point>,
    last: Option<Point>,
    /// In the order of time, if it is needed.
    values: Vec<f64>,
    /// The points that begin last, which come by their ends and are listed by their ids: the first and the
    /// last point of a bin are found by start and id, and the list must begin and end with these.
    tied: Vec<Point>,
    energy: Energy,
}

/// The energy of sound levels, for their mean.
#[derive(Clone, Copy, Debug, Default)]
struct Energy {
    lasting: Powers,
    /// Instants weigh the same, and count only where no sample has a duration.
    of_instants: Powers,
}

/// The powers of levels, added up beside the greatest of them: the powers themselves are no numbers from 3080
/// decibels on, and zero from as many below.
#[derive(Clone, Copy, Debug, Default)]
struct Powers {
    /// The level whose power is one here.
    unit: f64,
    weighted: f64,
    weight: f64,
}

impl Points {
    pub(super) fn add(&mut self, point: Point, needs: PointNeeds) {
        self.summary.add(point.value);
        if needs.order {
            if self.tied.last().is_some_and(|tied| tied.start != point.start) {
                self.settle();
            }
            self.tied.push(point);
        } else if needs.values {
            self.values.push(point.value);
        }
        if needs.places {
            let place = |point: &Point| (point.start, point.id);
            if self
                .first
                .as_ref()
                .is_none_or(|first| place(&point) < place(first))
            {
                self.first = Some(point);
            }
            if self.last.as_ref().is_none_or(|last| place(&point) >= place(last)) {
                self.last = Some(point);
            }
        }
        if needs.energy {
            self.energy.add(point);
        }
    }

    /// Resets everything but keeps the allocated memory.
    pub(super) fn clear(&mut self) {
        self.summary = Summary::default();
        self.first = None;
        self.last = None;
        self.values.clear();
        self.tied.clear();
        self.energy = Energy::default();
    }

    /// Lists the points that begin last, once all of them have come.
    pub(super) fn settle(&mut self) {
        if self.tied.len() > 1 {
            self.tied.sort_by_key(|point| point.id);
        }
        self.values.extend(self.tied.drain(..).map(|point| point.value));
    }

    /// The base value of the points; `None` without points.
    pub(super) fn base(&self, base: Base) -> Option<f64> {
        match base {
            Base::Mean => self.mean(),
            Base::Last => self.last.map(|point| point.value),
            Base::EquivalentLevel => self.energy.level(),
        }
    }

    pub(super) fn mean(&self) -> Option<f64> {
        let count = self.summary.count;
        (count > 0).then(|| self.summary.sum.value() / count as f64)
    }

    /// A statistic that is a number; `None` for lists and for statistics over several bins.
    pub(super) fn number(&self, calculation: Calculation) -> Option<f64> {
        let summary = &self.summary;
        if summary.count == 0 {
            return None;
        }
        match calculation {
            Calculation::Max => Some(summary.max),
            Calculation::Min => Some(summary.min),
            Calculation::Delta => Some(summary.max - summary.min),
            Calculation::Mean => self.mean(),
            Calculation::Sum => Some(summary.sum.value()),
            Calculation::First => self.first.map(|point| point.value),
            Calculation::Last => self.last.map(|point| point.value),
            Calculation::Median => quantile(&self.values, 0.5),
            Calculation::Percentile(percentile) => quantile(&self.values, percentile.fraction()),
            Calculation::Std => deviation(&self.values),
            Calculation::Uniques | Calculation::AllPoints | Calculation::RollingMean | Calculation::Count => {
                None
            }
        }
    }

    pub(super) fn values(&self) -> &[f64] {
        &self.values
    }

    /// The distinct values, ascending.
    pub(super) fn distinct(&self) -> Vec<f64> {
        let mut values = self.values.clone();
        values.sort_unstable_by(f64::total_cmp);
        values.dedup();
        values
    }

    /// Bytes on the heap.
    pub(super) fn memory(&self) -> usize {
        self.values.capacity() * size_of::<f64>() + self.tied.capacity() * size_of::<Point>()
    }
}

impl Energy {
    fn add(&mut self, point: Point) {
        if point.overlap > 0 {
            self.lasting.add(point.value, point.overlap as f64);
        } else {
            self.of_instants.add(point.value, 1.0);
        }
    }

    fn level(&self) -> Option<f64> {
        self.lasting.level().or_else(|| self.of_instants.level())
    }
}

/// Levels up to here, and down to its opposite, share a unit: their powers and the sums of these are numbers.
const MODERATE: f64 = 1000.0;

impl Powers {
    fn add(&mut self, level: f64, weight: f64) {
        // Grows with the level, so that the greatest level of all decides.
        let unit = if level.abs() <= MODERATE { 0.0 } else { level };
        if self.weight == 0.0 {
            self.unit = unit;
        } else if unit > self.unit {
            self.weighted *= power(self.unit - unit);
            self.unit = unit;
        }
        self.weighted += weight * power(level - self.unit);
        self.weight += weight;
    }

    /// The level of the mean power; `None` without levels.
    fn level(&self) -> Option<f64> {
        let mean = self.weighted / self.weight;
        (self.weight > 0.0).then(|| self.unit + 10.0 * mean.log10())
    }
}

fn power(level: f64) -> f64 {
    10_f64.powf(level / 10.0)
}

fn deviation(values: &[f64]) -> Option<f64> {
    let deviation = deviation_in(values, 1.0)?;
    if deviation.is_finite() {
        return Some(deviation);
    }
    // A square is too large for a number. What is lost of small values here is nothing beside these.
    deviation_in(values, MUCH_LESS).map(|deviation| deviation / MUCH_LESS)
}

/// A power of two: numbers times this keep their digits, and the sum of their squares is a number.
const MUCH_LESS: f64 = f64::from_bits((1023 - 600) << 52);

/// The standard deviation in a unit of which `unit` make one.
fn deviation_in(values: &[f64], unit: f64) -> Option<f64> {
    let degrees = values.len().checked_sub(1).filter(|degrees| *degrees > 0)?;
    let values = || values.iter().map(|value| value * unit);
    let mut sum = Sum::default();
    for value in values() {
        sum.add(value);
    }
    let mean = sum.value() / (degrees + 1) as f64;
    let mut squares = Sum::default();
    for value in values() {
        squares.add((value - mean) * (value - mean));
    }
    Some((squares.value() / degrees as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: PointNeeds = PointNeeds {
        values: true,
        order: true,
        places: true,
        energy: true,
    };

    fn points(values: &[(f64, i64, i64)]) -> Points {
        let mut points = Points::default();
        for &(value, start, overlap) in values {
            let point = Point {
                value,
                start,
                id: [0; 16],
                overlap,
            };
            points.add(point, ALL);
        }
        points.settle();
        points
    }

    fn close(found: Option<f64>, expected: f64) {
        assert!(
            found.is_some_and(|found| (found - expected).abs() < 1e-9),
            "{found:?} is not {expected}"
        );
    }

    #[test]
    fn rule_1_5b_sound_levels_mean_their_energy_weighted_by_time() {
        close(
            points(&[(70.0, 0, 1800), (80.0, 1800, 1800)]).base(Base::EquivalentLevel),
            77.403_626_894_942_44,
        );
        close(
            points(&[(70.0, 0, 0), (80.0, 1, 0)]).base(Base::EquivalentLevel),
            77.403_626_894_942_44,
        );
        close(
            points(&[(70.0, 0, 10), (120.0, 1, 0)]).base(Base::EquivalentLevel),
            70.0,
        );
        assert_eq!(points(&[]).base(Base::EquivalentLevel), None);
    }

    #[test]
    fn rule_1_5b_sound_levels_have_a_mean_whose_powers_are_no_numbers() {
        let mean = |levels: &[(f64, i64, i64)]| points(levels).base(Base::EquivalentLevel);
        for levels in [[5000.0, -5000.0], [-5000.0, 5000.0]] {
            close(
                mean(&[(levels[0], 0, 1800), (levels[1], 1800, 1800)]),
                4_996.989_700_043_36,
            );
        }
        for levels in [[-5000.0, -4000.0], [-4000.0, -5000.0]] {
            close(
                mean(&[(levels[0], 0, 1800), (levels[1], 1800, 1800)]),
                -4_003.010_299_956_64,
            );
        }
        close(
            mean(&[(-5000.0, 0, 1), (-5000.0, 1, 1), (70.0, 2, 2)]),
            66.989_700_043_360_2,
        );
        close(mean(&[(70.0, 0, 1), (1010.0, 1, 1)]), 1_006.989_700_043_36);
        for lone in [1e308, -1e308, f64::MAX, 0.0] {
            assert_eq!(mean(&[(lone, 0, 0)]), Some(lone));
            assert_eq!(mean(&[(lone, 0, 3_600_000_000)]), Some(lone));
        }
        assert_eq!(mean(&[(f64::MAX, 0, 1), (-f64::MAX, 0, 1)]), Some(f64::MAX));
    }

    #[test]
    fn rule_1_5b_the_last_point_is_the_one_that_starts_last() {
        let points = points(&[(3.0, 5, 100), (4.0, 7, 1), (5.0, 6, 0)]);
        assert_eq!(points.base(Base::Last), Some(4.0));
        assert_eq!(points.number(Calculation::First), Some(3.0));
    }

    #[test]
    fn rule_1_5c_the_list_begins_with_the_first_point_and_ends_with_the_last() {
        let mut points = Points::default();
        // As they come: by start, end and id.
        for (value, start, id) in [
            (1.0, 0, 9),
            (50.0, 5, 2),
            (100.0, 5, 1),
            (70.0, 5, 3),
            (2.0, 6, 0),
        ] {
            let point = Point {
                value,
                start,
                id: [id; 16],
                overlap: 1,
            };
            points.add(point, ALL);
        }
        points.settle();
        assert_eq!(points.values(), [1.0, 100.0, 50.0, 70.0, 2.0]);
        assert_eq!(points.number(Calculation::First), Some(1.0));
        assert_eq!(points.number(Calculation::Last), Some(2.0));
    }

    #[test]
    fn rule_1_5c_statistics_of_points() {
        let one = points(&[(4.0, 0, 0)]);
        let points = points(&[(4.0, 0, 0), (1.0, 1, 0), (2.0, 2, 0), (2.0, 3, 0), (7.0, 4, 0)]);
        close(points.number(Calculation::Max), 7.0);
        close(points.number(Calculation::Min), 1.0);
        close(points.number(Calculation::Delta), 6.0);
        close(points.number(Calculation::Mean), 3.2);
        close(points.number(Calculation::Sum), 16.0);
        close(points.number(Calculation::Median), 2.0);
        close(points.number(Calculation::Std), 2.387_467_277_262_664_6);
        close(points.number("p90".parse().unwrap()), 5.8);
        assert_eq!(points.distinct(), [1.0, 2.0, 4.0, 7.0]);
        assert_eq!(points.values(), [4.0, 1.0, 2.0, 2.0, 7.0]);
        assert_eq!(one.number(Calculation::Std), None);
    }

    #[test]
    fn what_is_computed_on_the_way_may_be_too_large_for_a_number() {
        let far = points(&[(1.5e308, 0, 0), (-1.5e308, 1, 0)]);
        assert_eq!(far.number(Calculation::Median), Some(0.0));
        let std = far.number(Calculation::Std);
        assert!(std.is_none_or(f64::is_infinite), "{std:?} is too large itself");
        let near = points(&[(1e300, 0, 0), (3e300, 1, 0)]);
        let std = near.number(Calculation::Std).unwrap_or_default();
        assert!((std / (2_f64.sqrt() * 1e300) - 1.0).abs() < 1e-12, "{std}");
        assert!((MUCH_LESS - 2_f64.powi(-600)).abs() < f64::MIN_POSITIVE);
    }
}
