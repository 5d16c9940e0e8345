//! Statistics that a single odd day does not move: medians and what is built on them.
//!
//! Pure functions of finite numbers. The statistic of no numbers is `None`.

use std::f64::consts::TAU;

use crate::query::quantile::quantile;

/// The median deviation of a normal distribution, in standard deviations (Iglewicz and Hoaglin).
const NORMAL: f64 = 0.6745;
/// Hours.
const DAY: f64 = 24.0;

/// The number in the middle, or the mean of the two.
#[must_use]
pub(super) fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// The distance from the first quartile to the third.
#[must_use]
pub(super) fn interquartile_range(values: &[f64]) -> Option<f64> {
    Some(quantile(values, 0.75)? - quantile(values, 0.25)?)
}

/// The median of the distances from the median.
#[must_use]
pub(super) fn median_deviation(values: &[f64]) -> Option<f64> {
    let middle = median(values)?;
    let distances: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    median(&distances)
}

/// How large `delta` is in units of the usual variation in `baseline`. `None` where the baseline does not
/// vary.
#[must_use]
pub(super) fn robust_z(delta: f64, baseline: &[f64]) -> Option<f64> {
    let usual = median_deviation(baseline).filter(|usual| *usual > 0.0)?;
    Some(NORMAL * delta / usual)
}

/// Clock times in hours, each on the day on which it is nearest to the circular mean of all: ten minutes
/// before midnight and ten minutes after are twenty minutes apart. The mean lies on the day of their median.
#[must_use]
pub(super) fn clock_times(hours: &[f64]) -> Option<Vec<f64>> {
    let (across, along) = hours.iter().fold((0.0, 0.0), |(across, along), hour| {
        let (sine, cosine) = (hour / DAY * TAU).sin_cos();
        (across + sine, along + cosine)
    });
    let mean = f64::atan2(across, along) / TAU * DAY;
    let usual = mean + DAY * days_to(mean, median(hours)?);
    let on_nearest_day = |hour: &f64| hour + DAY * days_to(*hour, usual);
    Some(hours.iter().map(on_nearest_day).collect())
}

/// Clock times in hours, all of them moved by as many days as bring their median nearest to another.
#[must_use]
pub(super) fn moved_near(hours: &[f64], other: f64) -> Option<Vec<f64>> {
    let days = days_to(median(hours)?, other);
    Some(hours.iter().map(|hour| hour + DAY * days).collect())
}

/// After how many days a time by the clock is nearest to another: at most half a day later than it, and less
/// than half a day earlier.
fn days_to(hour: f64, other: f64) -> f64 {
    ((other - hour) / DAY + 0.5).floor()
}

/// The median of the slopes between any two points (Theil and Sen). No two points have the same x.
#[must_use]
pub(super) fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let mut slopes = Vec::with_capacity(points.len() * points.len() / 2);
    for (number, (from, low)) in points.iter().enumerate() {
        let later = points.iter().skip(number + 1);
        slopes.extend(later.map(|(to, high)| (high - low) / (to - from)));
    }
    median(&slopes)
}

/// The median of all differences between a value and one of the baseline (Hodges and Lehmann).
#[must_use]
pub(super) fn shift(values: &[f64], baseline: &[f64]) -> Option<f64> {
    let differences: Vec<f64> = values
        .iter()
        .flat_map(|value| baseline.iter().map(move |usual| value - usual))
        .collect();
    median(&differences)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The median by its definition: as many values lie below it as above, and it is half-way between the
    /// nearest of both.
    fn by_definition(values: &[f64]) -> f64 {
        let below = |limit: f64| values.iter().filter(|value| **value < limit).count();
        let above = |limit: f64| values.iter().filter(|value| **value > limit).count();
        let half = values.len() / 2;
        let middle: Vec<f64> = values
            .iter()
            .copied()
            .filter(|value| below(*value) <= half && above(*value) <= half)
            .collect();
        let (low, high) = (
            middle.iter().copied().fold(f64::INFINITY, f64::min),
            middle.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        );
        if values.len() % 2 == 1 {
            // Of an odd number one is in the middle itself, though its equals may be next to it.
            let exact = |value: &f64| below(*value) <= half && above(*value) <= half;
            return values.iter().copied().find(exact).unwrap();
        }
        low + (high - low) / 2.0
    }

    fn near(one: f64, other: f64) -> bool {
        (one - other).abs() <= 1e-9 * one.abs().max(other.abs()).max(1.0)
    }

    proptest! {
        /// Medians, slopes and shifts are those that their definitions give when everything is tried.
        #[test]
        fn statistics_are_what_brute_force_finds(
            values in prop::collection::vec(-50..50_i32, 1..12),
            baseline in prop::collection::vec(-50..50_i32, 1..12)
        ) {
            let values: Vec<f64> = values.into_iter().map(f64::from).collect();
            let baseline: Vec<f64> = baseline.into_iter().map(f64::from).collect();
            let middle = by_definition(&values);
            prop_assert!(near(median(&values).unwrap(), middle));
            let distances: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
            prop_assert!(near(
                median_deviation(&values).unwrap(),
                by_definition(&distances)
            ));
            let mut differences = Vec::new();
            for value in &values {
                for usual in &baseline {
                    differences.push(value - usual);
                }
            }
            prop_assert!(near(
                shift(&values, &baseline).unwrap(),
                by_definition(&differences)
            ));
            let points: Vec<(f64, f64)> = values
                .iter()
                .enumerate()
                .map(|(at, value)| (at as f64, *value))
                .collect();
            let mut slopes = Vec::new();
            for one in 0..points.len() {
                for other in 0..one {
                    slopes.push((points[one].1 - points[other].1) / (points[one].0 - points[other].0));
                }
            }
            match slope(&points) {
                Some(found) => prop_assert!(near(found, by_definition(&slopes))),
                None => prop_assert!(slopes.is_empty()),
            }
        }

        /// A straight line has its own slope, and a shifted copy is shifted by that much.
        #[test]
        fn a_line_and_a_shift_are_found(rise in -9..9_i32, by in -9..9_i32, length in 2..20_usize) {
            let points: Vec<(f64, f64)> = (0..length)
                .map(|at| (at as f64, at as f64 * f64::from(rise)))
                .collect();
            prop_assert!(near(slope(&points).unwrap(), f64::from(rise)));
            let values: Vec<f64> = points.iter().map(|(_, value)| *value).collect();
            let moved: Vec<f64> = values.iter().map(|value| value + f64::from(by)).collect();
            prop_assert!(near(shift(&moved, &values).unwrap(), f64::from(by)));
        }
    }

    #[test]
    fn golden_i01_four_beats_where_one_is_usual_are_a_robust_z_of_2_698() {
        let baseline: Vec<f64> = (0..28).map(|day| f64::from(57 + day % 3)).collect();
        assert_eq!(median(&baseline), Some(58.0));
        assert_eq!(median_deviation(&baseline), Some(1.0));
        assert_eq!(robust_z(62.0 - 58.0, &baseline), Some(2.698));
    }

    #[test]
    fn clock_times_are_beside_each_other_and_stay_so_where_they_are_moved() {
        assert_eq!(clock_times(&[23.5, 0.5, 1.0]), Some(vec![-0.5, 0.5, 1.0]));
        assert_eq!(moved_near(&[-0.5, 0.5, 1.0], 23.0), Some(vec![23.5, 24.5, 25.0]));
        for (across, expected) in [(14.75, 14.75), (15.0, 15.0), (15.25, -8.75)] {
            let moved = moved_near(&[across - 0.5, across, across + 0.5], 3.0);
            assert_eq!(moved, Some(vec![expected - 0.5, expected, expected + 0.5]));
        }
    }

    #[test]
    fn of_nothing_there_is_no_statistic() {
        assert_eq!(clock_times(&[]), None);
        assert_eq!(median(&[]), None);
        assert_eq!(interquartile_range(&[]), None);
        assert_eq!(slope(&[(1.0, 1.0)]), None);
        assert_eq!(shift(&[], &[1.0]), None);
        assert_eq!(
            robust_z(1.0, &[5.0, 5.0, 5.0]),
            None,
            "nothing is far from what never varies"
        );
        assert_eq!(interquartile_range(&[1.0, 2.0, 3.0, 4.0, 5.0]), Some(2.0));
    }
}
