//! Finds places where somebody stayed after a long absence, or for the first time.

use crate::model::geo::Position;
use crate::model::time::{Instant, MICROS_PER_DAY, MICROS_PER_MINUTE, TimeRange};
use crate::query::places::stays;

use super::days::{Daily, Days, last};
use super::draft::{Draft, Look, shown, skipped};
use super::report::{Comparison, Evidence, Kind, Outcome};

const METRES: f64 = 1_000.0;
/// Shorter stays are stops on the way.
const LEAST_STAY: i64 = 30 * MICROS_PER_MINUTE;
/// The days in which a new place can be found.
const WEEK: usize = 7;
/// The days before, in which it was not visited.
const DAYS_BEFORE: usize = 90;
const LEAST_DAYS: usize = 14;
const METRIC: &str = "PlatformLocationVisit";

/// Stays in the order of their starts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VisitedPlaces {
    pub stays: Vec<VisitedPlace>,
    /// Whether they follow from updates, because no visit was recorded.
    pub are_derived: bool,
}

/// A stay with both ends known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VisitedPlace {
    pub from: Instant,
    pub to: Instant,
    pub position: Position,
}

/// The time in which visits are read.
#[must_use]
pub fn reads(days: &Days) -> Option<TimeRange> {
    days.range(&(last(WEEK + DAYS_BEFORE, days.today() + 1).start..days.today() + 1))
}

/// The time in which updates are read where no visit was recorded: none after the moment of the report.
#[must_use]
pub fn reads_updates(days: &Days) -> Option<TimeRange> {
    let range = reads(days)?;
    TimeRange::new(stays::reads(range).start(), range.end())
}

/// The farthest place of the week that was not visited in the [`DAYS_BEFORE`].
pub(super) fn new_place(look: &Look<'_>, visited: &VisitedPlaces) -> Outcome {
    let stays = visited.stays.as_slice();
    let kind = Kind::NewPlace;
    let until = look.days.today() + 1;
    let all = last(WEEK + DAYS_BEFORE, until);
    let week = last(WEEK, until);
    let there = days_with_stays(look.days, stays);
    let known = there.values(&all).len();
    if known < LEAST_DAYS {
        let reason = format!("days with a known place among the last {}", WEEK + DAYS_BEFORE);
        return skipped(kind, Some(METRIC), reason, known, LEAST_DAYS);
    }
    // A derived visit that goes on may have become longer since: its updates until then have not.
    let evidence = if visited.are_derived {
        reads_updates(look.days).map(|range| Evidence::Updates { range })
    } else {
        reads(look.days).map(|range| Evidence::Visits { range })
    };
    let (Some(period), Some(past), Some(evidence)) =
        (look.range(&week), look.range(&(all.start..week.start)), evidence)
    else {
        return Outcome::Nothing;
    };
    let Some((distance, stay)) = farthest_stay(stays, period.start()) else {
        return Outcome::Nothing;
    };
    let date = look
        .days
        .of(stay.from)
        .map_or_else(String::new, |day| look.days.date(day).to_string());
    let minutes = (stay.to.micros() - stay.from.micros()) / MICROS_PER_MINUTE;
    look.found(Draft {
        kind,
        metrics: vec![METRIC.to_owned()],
        title: format!("A place not visited in {DAYS_BEFORE} days"),
        summary: format!(
            "A stay of {minutes} minutes on {date} was {} km from every place visited in the {DAYS_BEFORE} \
             days before.",
            shown(distance),
        ),
        period,
        baseline: Some((past, there.values(&(all.start..week.start)).len())),
        value: distance,
        unit: "km".to_owned(),
        comparison: Some(Comparison {
            baseline_value: 1.0,
            delta: distance - 1.0,
            method: format!(
                "great-circle distance to the nearest earlier stay, of stays of more than {} minutes",
                LEAST_STAY / MICROS_PER_MINUTE
            )
            .into(),
            score: None,
            slope_per_day: None,
            interquartile_ranges: None,
        }),
        coverage: there.coverage_since_first(&all),
        evidence: vec![evidence],
        caveats: vec!["Stays whose arrival or departure is unknown are not looked at.".to_owned()],
    })
}

/// The stay that began at `since` or later and is farthest from all stays before it, with its distance from
/// the nearest of these in kilometres.
fn farthest_stay(stays: &[VisitedPlace], since: Instant) -> Option<(f64, &VisitedPlace)> {
    let how_far = |number: usize, stay: &VisitedPlace| {
        let length = stay.to.micros() - stay.from.micros();
        if stay.from < since || length <= LEAST_STAY {
            return None;
        }
        let earliest = stay.from.micros() - DAYS_BEFORE as i64 * MICROS_PER_DAY;
        let nearest = stays
            .iter()
            .take(number)
            .filter(|earlier| earlier.to.micros() > earliest)
            .map(|earlier| earlier.position.distance_to(stay.position) / METRES)
            .min_by(f64::total_cmp)?;
        (nearest > 1.0).then_some(nearest)
    };
    stays
        .iter()
        .enumerate()
        .filter_map(|(number, stay)| Some((how_far(number, stay)?, stay)))
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
}

/// 1 for each day with a known place.
fn days_with_stays(days: &Days, stays: &[VisitedPlace]) -> Daily {
    let mut there = vec![None; days.today() + 1];
    for stay in stays {
        let (Some(first), Some(latest)) = (
            days.of(stay.from.max(days.start(0))),
            days.of(stay.to.min(Instant::from_micros(days.until().micros() - 1))),
        ) else {
            continue;
        };
        if first <= latest {
            there
                .iter_mut()
                .take(latest + 1)
                .skip(first)
                .for_each(|day| *day = Some(1.0));
        }
    }
    Daily(there)
}
