//! Reports about made-up lives: what is told, what is skipped, and what is never told.

#![expect(
    clippy::float_cmp,
    reason = "the same numbers by the same steps are equal to the last bit"
)]

use futures::executor::block_on;
use proptest::prelude::*;
use uuid::Uuid;

use super::days::{Daily, Days};
use super::new_place::{VisitedPlace, VisitedPlaces};
use super::nights::{Cycle, Nights};
use super::report::{Confidence, Evidence, Insight, Kind, MOST_INSIGHTS, Report, Skipped};
use super::{HEART_RATE_VARIABILITY, Material, Metric, RESTING_HEART_RATE, STEPS, Targets};
use crate::model::duration::Truncation;
use crate::model::geo::Position;
use crate::model::ids::PersonId;
use crate::model::registry::MetricKind;
use crate::model::time::{Instant, MICROS_PER_HOUR, parse_instant};
use crate::model::zone::Zone;

const PERSON: PersonId = PersonId(Uuid::from_u128(7));

/// Words that explain, advise or diagnose.
const NEVER_SAID: [&str; 9] = [
    "because", "due to", "caused", "leads to", "should", "try to", "risk", "disease", "healthy",
];

/// The days up to noon of 16 June 2024 in UTC; the 16th is number 120.
fn days() -> Days {
    in_zone(Zone::UTC, "2024-06-16T12:00:00Z")
}

fn in_zone(zone: Zone, as_of: &str) -> Days {
    let as_of = parse_instant(as_of).unwrap();
    let first = Instant::from_micros(as_of.micros() - 120 * 24 * MICROS_PER_HOUR);
    Days::new(zone, Truncation::parse("1d").unwrap(), first, as_of).unwrap()
}

fn metric(id: &str, unit: &str, kind: MetricKind) -> Metric {
    Metric {
        id: id.to_owned(),
        unit: unit.to_owned(),
        kind: Some(kind),
    }
}

fn material(days: &Days) -> Material {
    Material {
        days: days.clone(),
        metrics: Vec::new(),
        nights: None,
        visited_places: None,
        targets: Targets::default(),
    }
}

fn with_metric(id: &str, unit: &str, kind: MetricKind, values: Vec<Option<f64>>) -> Material {
    let mut material = material(&days());
    material.metrics.push((metric(id, unit, kind), Daily(values)));
    material
}

fn found(report: &Report, kind: Kind) -> &Insight {
    report
        .insights
        .iter()
        .find(|insight| insight.kind == kind)
        .unwrap_or_else(|| panic!("no {kind} in {report:#?}"))
}

fn lacking(report: &Report, kind: Kind) -> &Skipped {
    report
        .skipped
        .iter()
        .find(|skipped| skipped.kind == kind)
        .unwrap_or_else(|| panic!("{kind} is not skipped in {report:#?}"))
}

fn is_silent(report: &Report, kind: Kind) -> bool {
    report.insights.iter().all(|insight| insight.kind != kind)
        && report.skipped.iter().all(|skipped| skipped.kind != kind)
}

/// A night that ends at seven on the day and lasts so long.
fn night(days: &Days, day: usize, hours: f64) -> Cycle {
    let end = days.start(day).micros() + 7 * MICROS_PER_HOUR;
    Cycle {
        start: Instant::from_micros(end - (hours * MICROS_PER_HOUR as f64) as i64),
        end: Instant::from_micros(end),
        in_bed_end: Instant::from_micros(end),
        asleep: (hours * MICROS_PER_HOUR as f64) as i64,
        is_only_in_bed: false,
    }
}

fn slept(days: &Days, hours: &[Option<f64>]) -> Report {
    let first = days.today() + 1 - hours.len();
    let cycles: Vec<Cycle> = hours
        .iter()
        .enumerate()
        .filter_map(|(at, hours)| Some(night(days, first + at, (*hours)?)))
        .collect();
    let mut material = material(days);
    material.nights = Some(Nights::of(days, &cycles));
    material.report(PERSON)
}

fn near(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-9
}

#[test]
fn golden_i01_six_nights_lack_1_8_hours_and_one_night_is_missing() {
    let hours = [
        Some(6.5),
        Some(7.2),
        None,
        Some(5.9),
        Some(8.1),
        Some(6.8),
        Some(7.0),
    ];
    let report = slept(&days(), &hours);
    let debt = found(&report, Kind::SleepDebt);
    assert!(near(debt.value, 1.8), "{debt:?}");
    assert!(near(debt.comparison.as_ref().unwrap().delta, 0.5), "{debt:?}");
    assert_eq!((debt.coverage.observed, debt.coverage.expected), (6, 7));
    assert_eq!(debt.confidence, Confidence::Medium);
    assert_eq!(debt.caveats, ["There is no night for 2024-06-12."]);
    assert_eq!(debt.title, "1.8 h below 7 h a night in a week");
}

#[test]
fn golden_i01_a_resting_heart_rate_from_58_to_62_is_a_shift_of_2_698() {
    let mut values: Vec<Option<f64>> = (0..120).map(|day| Some(f64::from(57 + day % 3))).collect();
    values.splice(113..120, [Some(62.0); 7]);
    values.push(None);
    let report = with_metric(RESTING_HEART_RATE, "bpm", MetricKind::Discrete, values.clone()).report(PERSON);
    let shift = found(&report, Kind::RestingHeartRateShift);
    let comparison = shift.comparison.as_ref().unwrap();
    assert_eq!(
        (shift.value, comparison.baseline_value, comparison.delta),
        (62.0, 58.0, 4.0)
    );
    assert!(near(comparison.score.unwrap(), 2.698));
    assert!(comparison.slope_per_day.unwrap() > 0.0);
    assert_eq!(shift.confidence, Confidence::High);
    let mut quieter = values;
    quieter.splice(113..120, [Some(60.5); 7]);
    let report = with_metric(RESTING_HEART_RATE, "bpm", MetricKind::Discrete, quieter).report(PERSON);
    assert!(
        is_silent(&report, Kind::RestingHeartRateShift),
        "less than 3 beats are not worth a word"
    );
}

#[test]
fn golden_i01_three_days_with_8000_steps_are_a_streak() {
    let mut values = vec![Some(5_000.0); 117];
    values.extend([Some(8_000.0), Some(9_000.0), Some(12_000.0), Some(100.0)]);
    let mut material = with_metric(STEPS, "steps", MetricKind::Cumulative, values.clone());
    material.targets.daily_steps = Some(8_000.0);
    let report = material.report(PERSON);
    let streak = found(&report, Kind::StepStreak);
    assert_eq!(streak.value, 3.0, "today is not over and breaks nothing");
    assert_eq!(streak.title, "3 days in a row with 8000 steps or more");
    *material.metrics[0].1.0.last_mut().unwrap() = Some(8_000.0);
    assert_eq!(
        found(&material.report(PERSON), Kind::StepStreak).value,
        4.0,
        "today counts once it is reached"
    );
    material.metrics[0].1.0[118] = None;
    assert_eq!(
        found(&material.report(PERSON), Kind::StepStreak).value,
        2.0,
        "a day without a value breaks it"
    );
}

#[test]
fn variability_is_compared_on_the_scale_of_logarithms() {
    let mut values: Vec<Option<f64>> = (0..120).map(|day| Some([40.0, 50.0, 62.5][day % 3])).collect();
    values.splice(113..120, [Some(100.0); 7]);
    let report = with_metric(HEART_RATE_VARIABILITY, "ms", MetricKind::Discrete, values).report(PERSON);
    let shift = found(&report, Kind::HeartRateVariabilityShift);
    let score = shift.comparison.as_ref().unwrap().score.unwrap();
    assert!(near(score, 0.6745 * (2.0_f64.ln() / 1.25_f64.ln())), "{score}");
    assert!(near(shift.value, 100.0));
    assert!(near(shift.comparison.as_ref().unwrap().delta, 50.0));
}

#[test]
fn activity_is_compared_by_the_median_of_all_differences() {
    let mut values: Vec<Option<f64>> = (0..120)
        .map(|day| Some(f64::from(1_000 * (1 + day % 3))))
        .collect();
    values.splice(113..120, (0..7).map(|day| Some(f64::from(1_000 * (3 + day % 3)))));
    let report = with_metric(STEPS, "steps", MetricKind::Cumulative, values).report(PERSON);
    let change = found(&report, Kind::ActivityChange);
    assert_eq!(change.comparison.as_ref().unwrap().delta, 2_000.0);
    assert_eq!(change.value, 4_000.0);
    assert_eq!(change.title, "Step count higher than in the four weeks before");
    assert_eq!(
        change.summary,
        "The median of step count over the last 7 days is 4000 steps a day; over the 28 days before it was \
         2000 steps a day (the median difference between a day of the one and a day of the other is +2000)."
    );
}

#[test]
fn activity_of_which_the_days_and_their_medians_tell_otherwise_is_not_told() {
    // More than half of all differences are above zero, and the median of the week is below the other one.
    let week = [4_000.0, 4_100.0, 4_200.0, 4_300.0, 9_000.0, 9_100.0, 9_200.0];
    let before = |day: usize| {
        if day % 28 < 13 {
            1_000.0
        } else {
            5_000.0 + day as f64
        }
    };
    let mut values: Vec<Option<f64>> = (0..113).map(|day| Some(before(day))).collect();
    values.extend(week.map(Some));
    let told = |values| with_metric(STEPS, "steps", MetricKind::Cumulative, values).report(PERSON);
    assert!(is_silent(&told(values.clone()), Kind::ActivityChange));
    values.splice(113..120, week.map(|steps| Some(steps + 2_000.0)));
    assert!(
        found(&told(values), Kind::ActivityChange)
            .title
            .contains(" higher "),
        "where both are above zero"
    );
}

#[test]
fn a_day_far_from_the_usual_is_an_anomaly_and_one_of_a_kind_a_record() {
    let mut values: Vec<Option<f64>> = (0..120).map(|day| Some(f64::from(60 + day % 5))).collect();
    values[119] = Some(90.0);
    let report = with_metric("HeartRate", "bpm", MetricKind::Discrete, values.clone()).report(PERSON);
    let anomaly = found(&report, Kind::Anomaly);
    assert!(near(
        anomaly.comparison.as_ref().unwrap().score.unwrap(),
        0.6745 * 28.0
    ));
    assert_eq!(anomaly.period.start(), days().start(119));
    let record = found(&report, Kind::Record);
    assert_eq!(record.comparison.as_ref().unwrap().baseline_value, 64.0);
    assert_eq!(record.baseline.unwrap().1, 119);
    values[119] = Some(59.0);
    let report = with_metric("HeartRate", "bpm", MetricKind::Discrete, values.clone()).report(PERSON);
    assert!(is_silent(&report, Kind::Anomaly));
    assert!(found(&report, Kind::Record).title.contains("lowest"));
    values[119] = Some(64.0);
    let report = with_metric("HeartRate", "bpm", MetricKind::Discrete, values.clone()).report(PERSON);
    assert!(
        is_silent(&report, Kind::Record),
        "what was there before is no record"
    );
    values[119] = None;
    let report = with_metric("HeartRate", "bpm", MetricKind::Discrete, values).report(PERSON);
    assert_eq!(lacking(&report, Kind::Anomaly).have, 0);
}

#[test]
fn a_silence_of_three_days_after_daily_values_is_a_gap() {
    let mut values = vec![Some(60.0); 117];
    values.extend([None; 4]);
    let report = with_metric("HeartRate", "bpm", MetricKind::Discrete, values.clone()).report(PERSON);
    let gap = found(&report, Kind::DataGap);
    assert_eq!((gap.value, gap.period.start()), (3.0, days().start(117)));
    values[117] = Some(60.0);
    let report = with_metric("HeartRate", "bpm", MetricKind::Discrete, values.clone()).report(PERSON);
    assert!(is_silent(&report, Kind::DataGap), "two days are none");
    let weekly = (0..121).map(|day| (day % 7 == 0).then_some(60.0)).collect();
    let report = with_metric("HeartRate", "bpm", MetricKind::Discrete, weekly).report(PERSON);
    assert!(
        report
            .insights
            .iter()
            .all(|insight| insight.kind != Kind::DataGap),
        "what is weekly is not daily"
    );
}

#[test]
fn a_stay_far_from_all_others_is_a_new_place() {
    let days = days();
    let stay = |day: usize, latitude: f64, minutes: i64| {
        let from = days.start(day).micros() + 10 * MICROS_PER_HOUR;
        VisitedPlace {
            from: Instant::from_micros(from),
            to: Instant::from_micros(from + minutes * 60_000_000),
            position: Position::new(latitude, 8.0),
        }
    };
    let mut stays: Vec<VisitedPlace> = (60..119).map(|day| stay(day, 50.0, 120)).collect();
    stays.push(stay(119, 50.5, 31));
    let report_of = |stays: &[VisitedPlace], are_derived: bool| {
        let mut material = material(&days);
        material.visited_places = Some(block_on(VisitedPlaces::of(&days, stays.to_vec(), are_derived)));
        material.report(PERSON)
    };
    let report = |stays: &[VisitedPlace]| report_of(stays, false);
    let place = report(&stays);
    let place = found(&place, Kind::NewPlace);
    assert!((55.0..56.0).contains(&place.value), "{}", place.value);
    let [Evidence::Visits { range }] = place.evidence.as_slice() else {
        panic!("{:?}", place.evidence);
    };
    let derived = report_of(&stays, true);
    let [Evidence::Updates { range: updates }] = found(&derived, Kind::NewPlace).evidence.as_slice() else {
        panic!("{derived:?}");
    };
    assert_eq!(updates.end(), range.end(), "none after the moment of the report");
    assert!(updates.start() < range.start(), "a stay may have begun before");
    *stays.last_mut().unwrap() = stay(119, 50.5, 30);
    assert!(
        is_silent(&report(&stays), Kind::NewPlace),
        "half an hour is not more than that"
    );
    *stays.last_mut().unwrap() = stay(119, 50.008, 600);
    assert!(is_silent(&report(&stays), Kind::NewPlace), "900 metres are near");
    assert_eq!(lacking(&report(&stays[..13]), Kind::NewPlace).have, 13);
}

#[test]
fn rule_10_2_too_few_nights_and_days_are_skipped_and_never_filled_in() {
    let four = [Some(6.0), None, Some(6.0), None, Some(6.0), None, Some(6.0)];
    let report = slept(&days(), &four);
    let skipped = lacking(&report, Kind::SleepDebt);
    assert_eq!((skipped.have, skipped.need), (4, 5));
    assert!(report.insights.is_empty());
    let report = material(&days()).report(PERSON);
    let kinds: Vec<Kind> = report.skipped.iter().map(|skipped| skipped.kind).collect();
    assert_eq!(kinds, Kind::ALL, "of nobody nothing is said");
    assert!(report.insights.is_empty());
}

#[test]
fn rule_10_4_missing_days_are_named_and_of_many_the_first_and_how_many_more() {
    let mut values: Vec<Option<f64>> = (0..120).map(|day| Some(f64::from(57 + day % 3))).collect();
    values.splice(113..120, [Some(62.0); 7]);
    values.splice(86..95, [None; 9]);
    values.push(None);
    let report = with_metric(RESTING_HEART_RATE, "bpm", MetricKind::Discrete, values).report(PERSON);
    let shift = found(&report, Kind::RestingHeartRateShift);
    assert_eq!((shift.coverage.observed, shift.coverage.expected), (26, 35));
    assert_eq!(
        shift.caveats,
        [
            "There is no value for 2024-05-13, 2024-05-14, 2024-05-15, 2024-05-16, 2024-05-17, 2024-05-18, \
             2024-05-19 and 2 more days."
        ]
    );
}

#[test]
fn without_any_data_as_much_is_needed_as_with_a_little() {
    let days = days();
    let mut material = material(&days);
    let nothing = material.report(PERSON);
    // One night, one day in a place, and one value of each metric that is looked at alone, on the last day.
    let mut values = vec![None; 121];
    values[119] = Some(60.0);
    for id in [STEPS, RESTING_HEART_RATE, HEART_RATE_VARIABILITY] {
        let metric = metric(id, "unit", MetricKind::Discrete);
        material.metrics.push((metric, Daily(values.clone())));
    }
    material.nights = Some(Nights::of(&days, &[night(&days, 119, 7.0)]));
    let from = Instant::from_micros(days.start(119).micros() + 8 * MICROS_PER_HOUR);
    let stay = VisitedPlace {
        from,
        to: Instant::from_micros(from.micros() + MICROS_PER_HOUR),
        position: Position::new(50.0, 8.0),
    };
    material.visited_places = Some(block_on(VisitedPlaces::of(&days, vec![stay], true)));
    let little = material.report(PERSON);
    for (kind, metric, need) in [
        (Kind::SleepDebt, Some("SleepStage"), 5),
        (Kind::SleepTiming, Some("SleepStage"), 10),
        (Kind::RestingHeartRateShift, Some(RESTING_HEART_RATE), 5),
        (Kind::HeartRateVariabilityShift, Some(HEART_RATE_VARIABILITY), 5),
        (Kind::StepStreak, Some(STEPS), 14),
        (Kind::ActivityChange, None, 5),
        (Kind::NewPlace, Some("PlatformLocationVisit"), 14),
        (Kind::DataGap, None, 14),
    ] {
        let (before, after) = (lacking(&nothing, kind), lacking(&little, kind));
        assert_eq!((before.have, after.have), (0, 1), "{kind}");
        assert_eq!((before.need, after.need), (need, need), "{kind}");
        assert_eq!(before.metric.as_deref(), metric, "{kind}");
        assert_eq!(before.reason, after.reason, "{kind}");
        assert!(metric.is_none() || before.metric == after.metric, "{kind}");
    }
}

#[test]
fn of_two_cycles_on_a_day_the_longer_is_the_night_and_one_that_may_go_on_is_none() {
    let days = in_zone(Zone::UTC, "2024-06-16T08:59:59.999998Z");
    let mut cycles: Vec<Cycle> = (114..121).map(|day| night(&days, day, 6.0)).collect();
    let nap = Cycle {
        start: Instant::from_micros(days.start(118).micros() + 13 * MICROS_PER_HOUR),
        end: Instant::from_micros(days.start(118).micros() + 15 * MICROS_PER_HOUR),
        in_bed_end: Instant::from_micros(days.start(118).micros() + 15 * MICROS_PER_HOUR),
        asleep: 2 * MICROS_PER_HOUR,
        is_only_in_bed: false,
    };
    cycles.insert(5, nap);
    let mut material = material(&days);
    material.nights = Some(Nights::of(&days, &cycles));
    let report = material.report(PERSON);
    let debt = found(&report, Kind::SleepDebt);
    assert!(
        near(debt.value, 6.0),
        "the nap does not count, and the last night may not be over: {debt:?}"
    );
    assert_eq!(debt.period.end(), days.start(120));
}

#[test]
fn a_night_is_over_two_hours_after_the_time_in_bed() {
    let nights = |as_of: &str| {
        let days = in_zone(Zone::UTC, as_of);
        let mut cycles: Vec<Cycle> = (114..121).map(|day| night(&days, day, 6.0)).collect();
        cycles[6].in_bed_end = Instant::from_micros(days.start(120).micros() + 11 * MICROS_PER_HOUR);
        let mut material = material(&days);
        material.nights = Some(Nights::of(&days, &cycles));
        let report = material.report(PERSON);
        found(&report, Kind::SleepDebt).period.end()
    };
    let today = days().start(120);
    assert_eq!(nights("2024-06-16T12:59:59.999998Z"), today, "it may go on");
    let end = nights("2024-06-16T12:59:59.999999Z");
    assert!(end > today, "{end}");
}

#[test]
fn a_night_of_nothing_but_time_in_bed_is_missing_and_one_awake_has_no_sleep() {
    let days = days();
    let report = |cycles: &[Cycle]| {
        let mut material = material(&days);
        material.nights = Some(Nights::of(&days, cycles));
        material.report(PERSON)
    };
    let mut cycles: Vec<Cycle> = (114..121).map(|day| night(&days, day, 7.5)).collect();
    cycles[1].asleep = 0;
    let awake = report(&cycles);
    let debt = found(&awake, Kind::SleepDebt);
    assert_eq!((debt.value, debt.coverage.observed), (7.0, 7));
    cycles[1].is_only_in_bed = true;
    let in_bed = report(&cycles);
    assert!(is_silent(&in_bed, Kind::SleepDebt), "six nights lack nothing");
    cycles[2].asleep = 6 * MICROS_PER_HOUR;
    let in_bed = report(&cycles);
    let debt = found(&in_bed, Kind::SleepDebt);
    assert_eq!((debt.value, debt.coverage.observed), (1.0, 6));
    assert_eq!(debt.caveats, ["There is no night for 2024-06-11."]);
    let in_bed: Vec<Cycle> = cycles
        .iter()
        .map(|cycle| Cycle {
            is_only_in_bed: true,
            ..*cycle
        })
        .collect();
    assert_eq!(lacking(&report(&in_bed), Kind::SleepDebt).have, 0);
}

#[test]
fn the_middle_of_the_night_is_told_by_the_clock() {
    let zone = Zone::parse("Europe/Berlin").unwrap();
    let days = in_zone(zone, "2024-04-14T12:00:00Z");
    let at =
        |day: usize, hours: i64| Instant::from_micros(days.start(day).micros() + hours * MICROS_PER_HOUR);
    // From midnight to eight by the clock; on the last of March the clock skips an hour.
    let cycles: Vec<Cycle> = (60..121)
        .map(|day| {
            let skips = days.date(day).to_string() == "2024-03-31";
            let end = at(day, if skips { 7 } else { 8 });
            Cycle {
                start: at(day, 0),
                end,
                in_bed_end: end,
                asleep: 7 * MICROS_PER_HOUR,
                is_only_in_bed: false,
            }
        })
        .collect();
    let mut material = material(&days);
    material.nights = Some(Nights::of(&days, &cycles));
    let report = material.report(PERSON);
    let timing = found(&report, Kind::SleepTiming);
    assert_eq!(timing.value, 4.0);
    assert_eq!(timing.title, "Middle of the night at 04:00");
    let comparison = timing.comparison.as_ref().unwrap();
    assert_eq!((comparison.delta, comparison.score), (0.0, None));
    assert_eq!(timing.coverage.observed, 42);
}

#[test]
fn sleep_that_ends_before_midnight_and_after_it_is_told_by_the_same_clock() {
    let days = days();
    // Eight hours until ten past midnight, then until ten to midnight: on the day before in numbers.
    let until = |day: usize, minutes: i64| {
        let end = days.start(day).micros() + minutes * 60_000_000;
        Cycle {
            start: Instant::from_micros(end - 8 * MICROS_PER_HOUR),
            end: Instant::from_micros(end),
            in_bed_end: Instant::from_micros(end),
            asleep: 8 * MICROS_PER_HOUR,
            is_only_in_bed: false,
        }
    };
    let timing = |usual: i64, latest: i64| {
        let before = (78..106).map(|day| until(day, usual));
        let cycles: Vec<Cycle> = before.chain((106..120).map(|day| until(day, latest))).collect();
        let mut material = material(&days);
        material.nights = Some(Nights::of(&days, &cycles));
        let report = material.report(PERSON);
        let timing = found(&report, Kind::SleepTiming);
        let comparison = timing.comparison.as_ref().unwrap();
        (
            timing.value,
            comparison.baseline_value,
            comparison.delta,
            timing.title.clone(),
        )
    };
    let (value, usual, delta, title) = timing(10, 24 * 60 - 10);
    assert!(near(usual, -23.0 / 6.0) && near(value, -25.0 / 6.0) && near(delta, -1.0 / 3.0));
    assert_eq!(title, "Middle of the night at 19:50");
    let (value, usual, delta, title) = timing(24 * 60 - 10, 10);
    assert!(near(usual, 119.0 / 6.0) && near(value, 121.0 / 6.0) && near(delta, 1.0 / 3.0));
    assert_eq!(title, "Middle of the night at 20:10");
}

#[test]
fn who_begins_to_sleep_by_day_is_told_the_times_at_which_they_sleep() {
    let days = days();
    // Eight hours around so many minutes after midnight.
    let around = |day: usize, minutes: i64| {
        let middle = days.start(day).micros() + minutes * 60_000_000;
        let end = Instant::from_micros(middle + 4 * MICROS_PER_HOUR);
        Cycle {
            start: Instant::from_micros(middle - 4 * MICROS_PER_HOUR),
            end,
            in_bed_end: end,
            asleep: 8 * MICROS_PER_HOUR,
            is_only_in_bed: false,
        }
    };
    // At three at night, and then half past two and ten past three in the afternoon in turn.
    let before = (78..106).map(|day| around(day, 180));
    let now = (106..120).map(|day| around(day, if day % 2 == 0 { 870 } else { 910 }));
    let mut material = material(&days);
    material.nights = Some(Nights::of(&days, &before.chain(now).collect::<Vec<_>>()));
    let report = material.report(PERSON);
    let timing = found(&report, Kind::SleepTiming);
    let comparison = timing.comparison.as_ref().unwrap();
    assert_eq!(timing.title, "Middle of the night at 14:50");
    assert!(near(timing.value, 89.0 / 6.0) && near(comparison.baseline_value, 3.0));
    assert!(near(comparison.delta, 71.0 / 6.0));
    let [spread, usual_spread] = comparison.interquartile_ranges.unwrap();
    assert!(near(spread, 2.0 / 3.0) && near(usual_spread, 0.0), "{spread}");
}

#[test]
fn the_last_microsecond_of_a_day_ends_it() {
    let days = in_zone(Zone::UTC, "2024-06-16T23:59:59.999999Z");
    assert_eq!((days.today(), days.finished()), (120, 121));
    let days = in_zone(Zone::UTC, "2024-06-16T23:59:59.999998Z");
    assert_eq!((days.today(), days.finished()), (120, 120));
}

#[test]
fn names_are_written_as_words() {
    let words = |id: &str| metric(id, "", MetricKind::Discrete).words();
    assert_eq!(words("RestingHeartRate"), "resting heart rate");
    assert_eq!(words("HeartRateVariabilitySDNN"), "heart rate variability SDNN");
    assert_eq!(words("VO2Max"), "VO2 max");
    assert_eq!(
        metric("StepCount", "", MetricKind::Discrete).title(),
        "Step count"
    );
}

/// Values of two thirds of the days, some of them far off.
fn life() -> impl Strategy<Value = Vec<Option<f64>>> {
    let day = prop_oneof![
        6 => (0..20_u32).prop_map(|value| Some(f64::from(value) + 50.0)),
        1 => (0..2_000_u32).prop_map(|value| Some(f64::from(value))),
        3 => Just(None),
    ];
    prop::collection::vec(day, 121)
}

/// The data of anybody: three metrics, and some nights.
fn anybody() -> impl Strategy<Value = Material> {
    let lives = prop::collection::vec(life(), 3);
    let hours = prop::collection::vec(prop::option::of(3..10_u32), 60);
    (lives, hours).prop_map(|(lives, hours)| {
        let days = days();
        let mut material = material(&days);
        let ids = [
            (STEPS, MetricKind::Cumulative),
            (RESTING_HEART_RATE, MetricKind::Discrete),
            (HEART_RATE_VARIABILITY, MetricKind::Discrete),
        ];
        for ((id, kind), values) in ids.into_iter().zip(lives) {
            material.metrics.push((metric(id, "unit", kind), Daily(values)));
        }
        let first = days.today() + 1 - hours.len();
        let cycles: Vec<Cycle> = hours
            .iter()
            .enumerate()
            .filter_map(|(at, hours)| Some(night(&days, first + at, f64::from((*hours)?))))
            .collect();
        material.nights = Some(Nights::of(&days, &cycles));
        material
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn rule_10_5_equal_data_gives_an_equal_report(material in anybody()) {
        prop_assert_eq!(material.report(PERSON), material.clone().report(PERSON));
    }

    #[test]
    fn insights_are_left_out_only_beyond_the_most(material in anybody()) {
        let report = material.report(PERSON);
        prop_assert!(report.insights.len() <= MOST_INSIGHTS);
        prop_assert!(report.suppressed == 0 || report.insights.len() == MOST_INSIGHTS);
    }

    #[test]
    fn the_most_telling_insights_come_first(material in anybody()) {
        let report = material.report(PERSON);
        let weight = |insight: &Insight| {
            let score = insight.comparison.as_ref().and_then(|comparison| comparison.score);
            score.map_or(1.0, f64::abs) * insight.coverage.share()
        };
        prop_assert!(report.insights.windows(2).all(|pair| weight(&pair[0]) >= weight(&pair[1])));
    }

    #[test]
    fn rule_10_6_confidence_follows_from_coverage(material in anybody()) {
        for insight in &material.report(PERSON).insights {
            let share = insight.coverage.share();
            let confidence = if share >= 0.9 {
                Confidence::High
            } else if share >= 0.7 {
                Confidence::Medium
            } else {
                Confidence::Low
            };
            prop_assert_eq!(insight.confidence, confidence);
        }
    }

    #[test]
    fn rule_10_3_nothing_is_explained_advised_or_diagnosed(material in anybody()) {
        for insight in &material.report(PERSON).insights {
            let said = [&insight.title, &insight.summary].into_iter().chain(&insight.caveats);
            for said in said {
                let said = said.to_lowercase();
                let word = NEVER_SAID.iter().find(|word| said.contains(**word));
                prop_assert!(word.is_none(), "{}", said);
            }
        }
    }

    #[test]
    fn rule_10_4_as_many_days_are_named_as_are_missing(material in anybody()) {
        let of_all_days = [
            Kind::SleepDebt,
            Kind::SleepTiming,
            Kind::RestingHeartRateShift,
            Kind::HeartRateVariabilityShift,
            Kind::ActivityChange,
        ];
        for insight in &material.report(PERSON).insights {
            if of_all_days.contains(&insight.kind) {
                let missing = insight.coverage.expected - insight.coverage.observed;
                let named = insight.caveats.concat().matches("2024-").count();
                prop_assert_eq!(named, missing.min(7), "{:?}", insight);
            }
        }
    }

    #[test]
    fn nothing_is_said_on_less_than_half_of_the_days_or_without_numbers(material in anybody()) {
        for insight in &material.report(PERSON).insights {
            prop_assert!((0.5..=1.0).contains(&insight.coverage.share()));
            prop_assert!(insight.value.is_finite() && !insight.evidence.is_empty());
            prop_assert!(insight.period.end() <= material.days.until());
        }
    }

    #[test]
    fn what_is_skipped_has_less_than_it_needs(material in anybody()) {
        for skipped in &material.report(PERSON).skipped {
            prop_assert!(skipped.have < skipped.need, "{:?}", skipped);
        }
    }
}
