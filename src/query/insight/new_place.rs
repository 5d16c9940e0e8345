//! Finds places where somebody stayed after a long absence, or for the first time.

use crate::model::geo::Position;
use crate::model::time::{Instant, MICROS_PER_DAY, MICROS_PER_MINUTE, TimeRange};
use crate::query::ground::events::PLATFORM_VISITS;
use crate::query::ground::turn::Turn;
use crate::query::places::stays;

use super::days::{Daily, Days, WEEK, last};
use super::draft::{Draft, Look, shown, skipped};
use super::earlier_places::EarlierPlaces;
use super::report::{Comparison, Evidence, Kind, Outcome};

/// A place that is no farther away than so many kilometres is the same.
const SAME: f64 = 1.0;
/// Shorter stays are stops on the way.
const LEAST_STAY: i64 = 30 * MICROS_PER_MINUTE;
/// The days before the week in which a new place can be found: it was not visited then.
const DAYS_BEFORE: usize = 90;
const LEAST_DAYS: usize = 14;

/// What is known of the stays in [`visits_read`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VisitedPlaces {
    /// 1 for each of the days that are looked at and have a known place.
    there: Daily,
    /// The stay of the week that is farthest from all before it, and how far that is.
    farthest: Option<(f64, VisitedPlace)>,
    /// Whether stays follow from updates, because no visit was recorded.
    are_derived: bool,
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
pub fn visits_read(days: &Days) -> Option<TimeRange> {
    days.range(&(last(WEEK + DAYS_BEFORE, days.today() + 1).start..days.today() + 1))
}

/// The time in which updates are read where no visit was recorded: none after the moment of the report.
#[must_use]
pub fn updates_read(days: &Days) -> Option<TimeRange> {
    let range = visits_read(days)?;
    TimeRange::new(stays::reads(range).start(), range.end())
}

impl VisitedPlaces {
    /// What the stays show; with very many of them this takes many turns.
    pub async fn of(days: &Days, mut stays: Vec<VisitedPlace>, are_derived: bool) -> Self {
        stays.sort_by_key(|stay| (stay.from, stay.to));
        let week = last(WEEK, days.today() + 1);
        let mut turn = Turn::new();
        Self {
            there: days_with_stays(days, &stays),
            farthest: farthest_stay(&stays, days.start(week.start), &mut turn).await,
            are_derived,
        }
    }
}

/// The farthest place of the week that was not visited in the [`DAYS_BEFORE`].
pub(super) fn new_place(look: &Look<'_>, visited: &VisitedPlaces) -> Outcome {
    let kind = Kind::NewPlace;
    let until = look.days.today() + 1;
    let all = last(WEEK + DAYS_BEFORE, until);
    let week = last(WEEK, until);
    let there = &visited.there;
    let known = there.values(&all).len();
    if known < LEAST_DAYS {
        let reason = format!("days with a known place among the last {}", WEEK + DAYS_BEFORE);
        return skipped(kind, Some(PLATFORM_VISITS), reason, known, LEAST_DAYS);
    }
    // A derived visit that goes on may have become longer since: its updates until then have not.
    let evidence = if visited.are_derived {
        updates_read(look.days).map(|range| Evidence::Updates { range })
    } else {
        visits_read(look.days).map(|range| Evidence::Visits { range })
    };
    let (Some(period), Some(past), Some(evidence)) =
        (look.range(&week), look.range(&(all.start..week.start)), evidence)
    else {
        return Outcome::Nothing;
    };
    let Some((distance, stay)) = visited.farthest else {
        return Outcome::Nothing;
    };
    let date = look
        .days
        .of(stay.from)
        .map_or_else(String::new, |day| look.days.date(day).to_string());
    let minutes = (stay.to.micros() - stay.from.micros()) / MICROS_PER_MINUTE;
    look.found(Draft {
        kind,
        metrics: vec![PLATFORM_VISITS.to_owned()],
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
            baseline_value: SAME,
            delta: distance - SAME,
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
/// the nearest of these in kilometres. `stays` are in the order of their starts.
async fn farthest_stay(
    stays: &[VisitedPlace],
    since: Instant,
    turn: &mut Turn,
) -> Option<(f64, VisitedPlace)> {
    let places: Vec<(Position, Instant)> = stays.iter().map(|stay| (stay.position, stay.to)).collect();
    let mut earlier = EarlierPlaces::of(&places, turn).await;
    let mut farthest: Option<(f64, VisitedPlace)> = None;
    for stay in stays {
        let length = stay.to.micros() - stay.from.micros();
        if stay.from >= since && length > LEAST_STAY {
            let last_visit = Instant::from_micros(stay.from.micros() - DAYS_BEFORE as i64 * MICROS_PER_DAY);
            // Whether another stay is farther from its places before, or this one is at one of them.
            let most = farthest.map(|(most, _)| most);
            let is_near = |kilometres: f64| most.map_or(kilometres <= SAME, |most| kilometres < most);
            let nearest = earlier.nearest(stay.position, last_visit, is_near, turn);
            if let Some(nearest) = nearest.filter(|nearest| !is_near(*nearest)) {
                farthest = Some((nearest, *stay));
            }
        }
        earlier.next_came(turn);
        turn.give_way().await;
    }
    farthest
}

/// 1 for each of the days that are looked at and have a known place.
fn days_with_stays(days: &Days, stays: &[VisitedPlace]) -> Daily {
    let mut there = vec![None; days.today() + 1];
    let looked_at = last(WEEK + DAYS_BEFORE, days.today() + 1);
    for stay in stays {
        let (Some(first), Some(latest)) = (
            days.of(stay.from.max(days.start(looked_at.start))),
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

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use proptest::prelude::*;

    use super::*;

    const HOUR: i64 = 60 * MICROS_PER_MINUTE;

    fn stay(from: i64, length: i64, position: Position) -> VisitedPlace {
        VisitedPlace {
            from: Instant::from_micros(from),
            to: Instant::from_micros(from + length),
            position,
        }
    }

    /// The farthest stay, and how often the search gave way.
    fn searched(stays: &[VisitedPlace], since: Instant) -> (Option<(f64, VisitedPlace)>, usize) {
        let mut turn = Turn::new();
        let mut search = pin!(farthest_stay(stays, since, &mut turn));
        let mut context = Context::from_waker(Waker::noop());
        let mut turns = 0;
        loop {
            match search.as_mut().poll(&mut context) {
                Poll::Ready(found) => return (found, turns),
                Poll::Pending => turns += 1,
            }
        }
    }

    /// Compares each with all before.
    fn compared(stays: &[VisitedPlace], since: Instant) -> Option<(f64, VisitedPlace)> {
        let how_far = |number: usize, stay: &VisitedPlace| {
            if stay.from < since || stay.to.micros() - stay.from.micros() <= 30 * MICROS_PER_MINUTE {
                return None;
            }
            let earliest = stay.from.micros() - 90 * MICROS_PER_DAY;
            let nearest = stays
                .iter()
                .take(number)
                .filter(|earlier| earlier.to.micros() > earliest)
                .map(|earlier| earlier.position.distance_to(stay.position) / 1_000.0)
                .min_by(f64::total_cmp)?;
            (nearest > 1.0).then_some(nearest)
        };
        let stays = stays.iter().enumerate();
        let far = stays.filter_map(|(number, stay)| Some((how_far(number, stay)?, *stay)));
        far.max_by(|(one, _), (other, _)| one.total_cmp(other))
    }

    /// Places in one town, and places anywhere.
    fn places() -> impl Strategy<Value = Position> {
        prop_oneof![
            3 => (0..20_u32, 0..20_u32).prop_map(|(north, east)| {
                Position::new(50.0 + f64::from(north) * 0.004, 8.0 + f64::from(east) * 0.006)
            }),
            1 => (-90.0..=90.0_f64, -180.0..180.0_f64)
                .prop_map(|(latitude, longitude)| Position::new(latitude, longitude)),
        ]
    }

    proptest! {
        #[test]
        fn the_farthest_stay_is_the_one_that_comparing_each_with_all_before_finds(
            stays in prop::collection::vec((0..2_400_i64, 0..300_i64, places()), 0..150),
            since in 0..2_400_i64
        ) {
            let mut stays: Vec<VisitedPlace> = stays
                .into_iter()
                .map(|(hour, minutes, place)| stay(hour * HOUR, minutes * MICROS_PER_MINUTE, place))
                .collect();
            stays.sort_by_key(|stay| (stay.from, stay.to));
            let since = Instant::from_micros(since * HOUR);
            prop_assert_eq!(searched(&stays, since).0, compared(&stays, since));
        }
    }

    #[test]
    fn very_many_stays_are_looked_through_in_turns_and_not_each_with_each() {
        // Rows from west to east, each north of the one before: 30,000 stays, far from each other.
        let stays: Vec<VisitedPlace> = (0..30_000_u32)
            .map(|number| {
                let (north, east) = (f64::from(number / 200), f64::from(number % 200));
                let position = Position::new(40.0 + north * 0.02, 8.0 + east * 0.02);
                stay(i64::from(number) * MICROS_PER_MINUTE / 4, HOUR, position)
            })
            .collect();
        let (found, turns) = searched(&stays, Instant::from_micros(0));
        let (distance, _) = found.unwrap();
        assert!((distance - 2.2239).abs() < 0.001, "{distance}");
        // Comparing each with all before takes nearly seven thousand.
        assert!((1..1_000).contains(&turns), "{turns}");
    }
}
