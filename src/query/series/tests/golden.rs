//! The worked cases of sections 1 and 2, as far as they are about numbers.

use super::super::Base;
use super::*;
use crate::model::duration::Truncation;

const DAY: &str = "2024-05-01T";

fn at(time: &str) -> i64 {
    micros(&format!("{DAY}{time}Z"))
}

/// A sample of the person's watch (0) or phone (1), or typed in (2).
fn sample(source: usize, start: &str, end: &str, value: f64) -> Sample {
    Sample {
        start: at(start),
        end: at(end),
        value,
        source,
        class: [3, 4, 2, 5][source],
    }
}

fn uniform(start: &str, end: &str, seconds: i64) -> (Grid, TimeRange) {
    let range = range(at(start), at(end));
    (Grid::uniform(range, seconds * 1_000_000), range)
}

async fn values(
    measure: Measure,
    samples: &[Sample],
    start: &str,
    end: &str,
    seconds: i64,
) -> Vec<Option<f64>> {
    let (grid, range) = uniform(start, end, seconds);
    let spec = spec(measure, grid);
    let found = numbers(&series(samples, &spec, &[range], 100).await, "value");
    assert_close(
        &numbers(&series(samples, &spec, &[range], 1).await, "value"),
        &found,
        &"row by row",
    );
    found
}

fn all(values: &[f64]) -> Vec<Option<f64>> {
    values
        .iter()
        .map(|value| (!value.is_nan()).then_some(*value))
        .collect()
}

const NONE: f64 = f64::NAN;

#[tokio::test]
async fn rule_1_3_m02_an_interval_has_a_uniform_rate() {
    let found = values(
        BEST,
        &[sample(0, "10:00:30", "10:02:30", 120.0)],
        "10:00:00",
        "10:04:00",
        60,
    )
    .await;
    assert_eq!(found, all(&[30.0, 60.0, 30.0, NONE]));
}

#[tokio::test]
async fn rule_1_3_m03_only_the_part_inside_the_request_counts() {
    let found = values(
        BEST,
        &[sample(0, "09:00:00", "11:00:00", 60.0)],
        "10:00:00",
        "11:00:00",
        1800,
    )
    .await;
    assert_eq!(found, all(&[15.0, 15.0]));
}

#[tokio::test]
async fn rule_1_4a_m04_a_watch_and_a_phone_are_not_added() {
    let both = [
        sample(0, "10:00:00", "10:10:00", 100.0),
        sample(1, "10:05:00", "10:15:00", 100.0),
    ];
    let found = values(BEST, &both, "10:00:00", "10:20:00", 300).await;
    assert_eq!(found, all(&[50.0, 50.0, 50.0, NONE]));
}

#[tokio::test]
async fn rule_1_4b_m05_logged_intake_is_never_suppressed() {
    let both = [
        sample(0, "12:00:00", "12:00:00", 300.0),
        sample(1, "12:00:00", "12:00:00", 250.0),
    ];
    let found = values(
        Measure::Amounts(Counting::Everything),
        &both,
        "12:00:00",
        "13:00:00",
        3600,
    )
    .await;
    assert_eq!(found, all(&[550.0]));
    assert_eq!(
        values(BEST, &both, "12:00:00", "13:00:00", 3600).await,
        all(&[300.0])
    );
}

#[tokio::test]
async fn rule_1_4a_m06_an_instant_under_a_better_interval_is_dropped() {
    let all_three = [
        sample(0, "10:00:00", "10:10:00", 100.0),
        sample(1, "10:04:00", "10:04:00", 40.0),
        sample(1, "10:12:00", "10:12:00", 7.0),
    ];
    let found = values(BEST, &all_three, "10:00:00", "10:15:00", 300).await;
    assert_eq!(found, all(&[50.0, 50.0, 7.0]));
}

#[tokio::test]
async fn rule_1_2a_m08_the_last_bin_is_cut() {
    let found = values(
        BEST,
        &[sample(0, "10:00:00", "10:10:00", 100.0)],
        "10:00:00",
        "10:07:00",
        300,
    )
    .await;
    assert_eq!(found, all(&[50.0, 20.0]));
}

#[tokio::test]
async fn rule_1_4a_m09_a_manual_entry_wins_its_five_minutes() {
    // Typed in before the watch before the phone.
    let three = [
        sample(0, "10:00:00", "10:30:00", 600.0),
        sample(1, "10:00:00", "10:30:00", 900.0),
        sample(2, "10:10:00", "10:15:00", 105.0),
    ];
    let found = values(BEST, &three, "10:00:00", "10:30:00", 300).await;
    assert_close(&found, &all(&[100.0, 100.0, 105.0, 100.0, 100.0, 100.0]), &"");
}

#[tokio::test]
async fn rule_1_3_m10_zero_is_not_null() {
    let found = values(
        BEST,
        &[sample(0, "10:00:00", "10:05:00", 0.0)],
        "10:00:00",
        "10:10:00",
        300,
    )
    .await;
    assert_eq!(found, all(&[0.0, NONE]));
}

#[tokio::test]
async fn rule_1_4a_a_source_never_suppresses_itself() {
    // One source of two classes: what was typed in there does not hide what it measured.
    let mut typed = sample(0, "10:02:00", "10:04:00", 30.0);
    typed.class = 2;
    let both = [
        sample(0, "10:00:00", "10:10:00", 100.0),
        typed,
        sample(1, "10:03:00", "10:12:00", 90.0),
    ];
    let found = values(BEST, &both, "10:00:00", "10:12:00", 120).await;
    assert_close(&found, &all(&[20.0, 50.0, 20.0, 20.0, 20.0, 20.0]), &"");
}

#[tokio::test]
async fn rule_1_4a_an_instant_counts_where_its_source_is_the_best() {
    // The watch is better than what the other source measures, and not than what was typed in there.
    let of_class = |class: i8, mut sample: Sample| {
        sample.class = class;
        sample
    };
    let typed = of_class(2, sample(0, "10:00:00", "10:12:00", 12.0));
    let watch = of_class(3, sample(1, "10:00:00", "10:06:00", 60.0));
    let measured = of_class(6, sample(0, "10:03:00", "10:03:00", 5.0));
    let samples = [typed, watch, measured];
    let found = values(BEST, &samples, "10:00:00", "10:12:00", 120).await;
    assert_close(&found, &all(&[2.0, 7.0, 2.0, 2.0, 2.0, 2.0]), &"");
    let found = values(BEST, &samples[1..], "10:00:00", "10:06:00", 120).await;
    assert_close(&found, &all(&[20.0, 20.0, 20.0]), &"");
}

#[tokio::test]
async fn rule_1_4e_the_persons_own_order_comes_first() {
    let both = [
        sample(0, "10:00:00", "10:10:00", 100.0),
        sample(1, "10:00:00", "10:10:00", 40.0),
    ];
    let (grid, range) = uniform("10:00:00", "10:10:00", 600);
    let mut spec = spec(BEST, grid);
    assert_eq!(
        numbers(&series(&both, &spec, &[range], 9).await, "value"),
        all(&[100.0])
    );
    spec.chosen_sources = vec![Uuid::from_u128(1)];
    assert_eq!(
        numbers(&series(&both, &spec, &[range], 9).await, "value"),
        all(&[40.0])
    );
}

#[tokio::test]
async fn rule_8_6_amounts_of_more_than_a_week_rank_below_all_others() {
    let day = 86_400_000_000;
    let month = Sample {
        start: 0,
        end: 30 * day,
        value: 30_000.0,
        source: 2,
        class: 2,
    };
    let fine = Sample {
        start: day,
        end: 2 * day,
        value: 5.0,
        source: 1,
        class: 6,
    };
    let range = range(0, 3 * day);
    let spec = spec(BEST, Grid::uniform(range, day));
    let found = numbers(&series(&[month, fine], &spec, &[range], 1).await, "value");
    assert_close(&found, &all(&[1000.0, 5.0, 1000.0]), &"");
}

const LEVELS: Measure = Measure::Levels {
    base: Base::Mean,
    counting: Counting::BestSource,
};

fn heart_rates() -> [Sample; 3] {
    [
        sample(0, "10:00:05", "10:00:05", 60.0),
        sample(0, "10:00:45", "10:00:45", 70.0),
        sample(0, "10:02:10", "10:02:10", 90.0),
    ]
}

#[tokio::test]
async fn rule_1_5c_m11_a_bin_without_points_has_only_a_count_and_a_rolling_mean() {
    let (grid, range) = uniform("10:00:00", "10:04:00", 60);
    let names = [
        "max",
        "min",
        "delta",
        "mean",
        "uniques",
        "allpoints",
        "rollingmean",
        "count",
        "sum",
    ];
    let spec = calculating(&names, spec(LEVELS, grid));
    let found = series(&heart_rates(), &spec, &[range], 2).await;
    let column = |name: &str| numbers(&found, name);
    assert_eq!(column("value"), all(&[65.0, NONE, 90.0, NONE]));
    assert_eq!(column("max_value"), all(&[70.0, NONE, 90.0, NONE]));
    assert_eq!(column("min_value"), all(&[60.0, NONE, 90.0, NONE]));
    assert_eq!(column("delta_value"), all(&[10.0, NONE, 0.0, NONE]));
    assert_eq!(column("mean_value"), column("value"));
    assert_close(
        &column("rollingmean_value"),
        &all(&[65.0, 65.0, 220.0 / 3.0, 220.0 / 3.0]),
        &"",
    );
    assert_eq!(column("count_value"), all(&[2.0, 0.0, 1.0, 0.0]));
    assert_eq!(column("sum_value"), all(&[130.0, NONE, 90.0, NONE]));
    let expected = [Some(vec![60.0, 70.0]), None, Some(vec![90.0]), None];
    assert_eq!(lists(&found, "uniq_value"), expected);
    assert_eq!(lists(&found, "all_value"), expected);
}

#[tokio::test]
async fn what_is_too_large_for_a_number_is_null_and_no_gap() {
    let points = [
        sample(0, "10:00:05", "10:00:05", 1e308),
        sample(0, "10:00:45", "10:00:45", 1e308),
        sample(0, "10:02:10", "10:02:10", 90.0),
    ];
    let (grid, range) = uniform("10:00:00", "10:04:00", 60);
    let asked = SeriesSpec {
        gaps: Gaps {
            drop: true,
            replace: true,
        },
        ..calculating(&["sum", "max", "rollingmean"], spec(LEVELS, grid.clone()))
    };
    let found = series(&points, &asked, &[range], 2).await;
    assert_eq!(times(&found), [at("10:00:00"), at("10:02:00")]);
    for (name, expected) in [
        ("value", [NONE, 90.0]),
        ("sum_value", [NONE, 90.0]),
        ("max_value", [1e308, 90.0]),
        ("rollingmean_value", [NONE, NONE]),
    ] {
        assert_eq!(numbers(&found, name), all(&expected), "{name}");
    }
    let plain = series(&points, &spec(LEVELS, grid), &[range], 2).await;
    assert_eq!(numbers(&plain, "value"), all(&[NONE, NONE, 90.0, NONE]));
}

#[tokio::test]
async fn rule_1_5d_m12_rows_are_dropped_before_nulls_are_replaced() {
    let (grid, range) = uniform("10:00:00", "10:04:00", 60);
    let asked = calculating(&["max", "uniques", "rollingmean"], spec(LEVELS, grid));
    let with = |drop, replace| SeriesSpec {
        gaps: Gaps { drop, replace },
        ..asked.clone()
    };
    let dropped = series(&heart_rates(), &with(true, true), &[range], 2).await;
    assert_eq!(times(&dropped), [at("10:00:00"), at("10:02:00")]);
    assert_eq!(numbers(&dropped, "value"), all(&[65.0, 90.0]));
    assert_eq!(numbers(&dropped, "max_value"), all(&[70.0, 90.0]));
    let replaced = series(&heart_rates(), &with(false, true), &[range], 2).await;
    assert_eq!(numbers(&replaced, "value"), all(&[65.0, 0.0, 90.0, 0.0]));
    assert_eq!(lists(&replaced, "uniq_value")[1], Some(vec![]));
    assert_close(
        &numbers(&replaced, "rollingmean_value"),
        &all(&[65.0, 65.0, 220.0 / 3.0, 220.0 / 3.0]),
        &"",
    );
    let before = series(&heart_rates()[2..], &with(false, true), &[range], 2).await;
    assert_eq!(
        numbers(&before, "rollingmean_value"),
        all(&[0.0, 0.0, 90.0, 90.0])
    );
}

#[tokio::test]
async fn rule_1_5a_m14_a_level_holds_for_its_span_and_is_not_carried_on() {
    let coded = Measure::Levels {
        base: Base::Last,
        counting: Counting::Everything,
    };
    let both = [
        sample(0, "10:00:30", "10:02:00", 3.0),
        sample(0, "10:02:00", "10:02:30", 4.0),
    ];
    let found = values(coded, &both, "10:00:00", "10:04:00", 60).await;
    assert_eq!(found, all(&[3.0, 3.0, 4.0, NONE]));
}

#[tokio::test]
async fn rule_1_5b_m16_sound_means_its_energy() {
    let sound = Measure::Levels {
        base: Base::EquivalentLevel,
        counting: Counting::BestSource,
    };
    let both = [
        sample(0, "10:00:00", "10:30:00", 70.0),
        sample(0, "10:30:00", "11:00:00", 80.0),
    ];
    let found = values(sound, &both, "10:00:00", "11:00:00", 3600).await;
    assert_close(&found, &all(&[77.403_626_894_942_44]), &"");
}

#[tokio::test]
async fn rule_1_4d_per_bin_the_best_source_that_has_a_point_there() {
    let points = [
        sample(1, "10:00:10", "10:00:10", 50.0),
        sample(0, "10:00:20", "10:00:20", 60.0),
        sample(1, "10:00:30", "10:00:30", 52.0),
        sample(1, "10:01:10", "10:01:10", 54.0),
    ];
    assert_eq!(
        values(LEVELS, &points, "10:00:00", "10:02:00", 60).await,
        all(&[60.0, 54.0])
    );
}

#[tokio::test]
async fn rule_1_4c_all_points_of_all_sources_where_nobody_is_best() {
    let points = [
        sample(1, "10:00:10", "10:00:10", 50.0),
        sample(0, "10:00:20", "10:00:20", 60.0),
        sample(1, "10:00:30", "10:00:30", 52.0),
        sample(1, "10:01:10", "10:01:10", 54.0),
    ];
    let everything = Measure::Levels {
        base: Base::Mean,
        counting: Counting::Everything,
    };
    assert_eq!(
        values(everything, &points, "10:00:00", "10:02:00", 60).await,
        all(&[54.0, 54.0])
    );
}

#[tokio::test]
async fn rule_9_2c_parts_outside_the_windows_do_not_count() {
    let steps = [sample(0, "09:30:00", "10:30:00", 60.0)];
    let (grid, _) = uniform("08:00:00", "14:00:00", 3600);
    let shared = [range(at("10:00:00"), at("12:00:00"))];
    let found = series(&steps, &spec(BEST, grid.clone()), &shared, 1).await;
    assert_eq!(
        numbers(&found, "value"),
        all(&[NONE, NONE, 30.0, NONE, NONE, NONE])
    );
    let gaps = [
        range(at("09:40:00"), at("09:45:00")),
        range(at("10:10:00"), at("10:12:00")),
    ];
    let found = series(
        &steps,
        &calculating(&["count"], spec(BEST, grid.clone())),
        &gaps,
        1,
    )
    .await;
    assert_eq!(numbers(&found, "value"), all(&[NONE, 5.0, 2.0, NONE, NONE, NONE]));
    assert_eq!(
        numbers(&found, "count_value"),
        all(&[0.0, 1.0, 1.0, 0.0, 0.0, 0.0])
    );
    let found = series(&steps, &spec(LEVELS, grid), &gaps[..1], 1).await;
    assert_eq!(
        numbers(&found, "value"),
        all(&[NONE, 60.0, NONE, NONE, NONE, NONE])
    );
}

/// Seconds covered in each bin of a calendar, with the labels.
async fn covered(start: &str, end: &str, every: &str, zone: &str) -> (Vec<i64>, Vec<Option<f64>>) {
    let range = range(micros(start), micros(end));
    let length = (range.end().micros() - range.start().micros()) / 1_000_000;
    let zone = Zone::parse(zone).unwrap();
    let elapsed = Sample {
        start: range.start().micros(),
        end: range.end().micros(),
        value: length as f64,
        source: 0,
        class: 3,
    };
    let grid = Truncation::parse(every).unwrap().grid(&zone, range);
    let found = series(&[elapsed], &spec(BEST, grid), &[range], 1).await;
    (times(&found), numbers(&found, "value"))
}

#[tokio::test]
async fn rule_1_2b_calendar_bins_have_their_own_lengths() {
    let (labels, seconds) = covered(
        "2024-11-02T04:00:00Z",
        "2024-11-05T05:00:00Z",
        "1d",
        "America/New_York",
    )
    .await;
    assert_eq!(
        labels,
        ["2024-11-02T04:00Z", "2024-11-03T04:00Z", "2024-11-04T05:00Z"].map(micros)
    );
    assert_close(&seconds, &all(&[86_400.0, 90_000.0, 86_400.0]), &"B01");
    let (_, seconds) = covered(
        "2024-03-09T05:00:00Z",
        "2024-03-12T04:00:00Z",
        "1d",
        "America/New_York",
    )
    .await;
    assert_close(&seconds, &all(&[86_400.0, 82_800.0, 86_400.0]), &"B02");
    let (_, seconds) = covered(
        "2024-03-10T05:00:00Z",
        "2024-03-11T04:00:00Z",
        "6h",
        "America/New_York",
    )
    .await;
    assert_close(&seconds, &all(&[18_000.0, 21_600.0, 21_600.0, 21_600.0]), &"B05");
    let (labels, _) = covered(
        "2024-05-01T00:00:00Z",
        "2024-05-01T02:00:00Z",
        "1h",
        "Asia/Kathmandu",
    )
    .await;
    assert_eq!(labels[0], micros("2024-04-30T23:15Z"), "B07");
    let (_, seconds) = covered(
        "2024-11-03T04:00:00Z",
        "2024-11-04T05:00:00Z",
        "1d",
        "America/Havana",
    )
    .await;
    assert_close(&seconds, &all(&[90_000.0]), &"B08");
    let (labels, seconds) = covered("2024-05-01T00:10:00Z", "2024-05-01T02:30:00Z", "1h", "UTC").await;
    assert_eq!(labels[0], micros("2024-05-01T00:00Z"), "B12");
    assert_close(&seconds, &all(&[3000.0, 3600.0, 1800.0]), &"B12");
}
