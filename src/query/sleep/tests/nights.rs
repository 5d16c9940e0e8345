//! Random nights of up to four sources against the model.

use proptest::prelude::*;

use super::model::{HORIZON, ModelQuestion, cycle_rows, nights, runs, stages, totals, winners};
use super::*;
use crate::model::duration::Truncation;
use crate::model::zone::Zone;
use crate::query::sleep::spec::SleepTotalsSpec;
use crate::query::sleep::spec::{Mode, StagesSpec};
use crate::query::statistic::Statistic;

/// Nested, touching, equal, without length: places are few, so that all of it happens often.
pub(super) fn samples() -> impl Strategy<Value = Vec<GivenSample>> {
    let sample = (
        0_i64..60,
        prop_oneof![Just(0_i64), 1_i64..6, 1_i64..40],
        0_i64..6,
        0_usize..4,
    );
    prop::collection::vec(sample, 0..24).prop_map(|samples| {
        let sample = |(id, (start, length, stage, source)): (usize, (i64, i64, i64, usize))| GivenSample {
            start: start * 10,
            end: (start + length) * 10,
            stage,
            source,
            id: (id as u128 * 7919) % 1009,
        };
        samples.into_iter().enumerate().map(sample).collect()
    })
}

pub(super) fn asked_for() -> impl Strategy<Value = ModelQuestion> {
    let spans = prop::collection::vec((0_i64..95, 1_i64..60), 1..4);
    (spans, 1_i64..12, prop::collection::vec(0_i64..6, 0..3)).prop_map(|(spans, gap, gap_stages)| {
        let seen = windows(
            &spans
                .into_iter()
                .map(|(start, length)| (start * 7, (start + length) * 7))
                .collect::<Vec<_>>(),
        );
        let windows: Vec<(i64, i64)> = seen
            .as_slice()
            .iter()
            .map(|window| (window.start().micros() / SECOND, window.end().micros() / SECOND))
            .collect();
        ModelQuestion {
            range: (windows[0].0, windows[windows.len() - 1].1),
            windows,
            gap: gap * 10,
            gap_stages,
        }
    })
}

pub(super) fn spec_of(asked: &ModelQuestion, clip: bool) -> CyclesSpec {
    CyclesSpec {
        range: range(asked.range.0, asked.range.1),
        clip,
        gap: asked.gap * SECOND,
        gap_stages: asked.gap_stages.iter().copied().collect(),
        shown: None,
        nights: None,
    }
}

fn stages_of(cycles: CyclesSpec, merge_overlapping: bool, merge_contiguous: bool) -> Question {
    Question::Stages(StagesSpec {
        cycles,
        merge_overlapping,
        merge_contiguous,
    })
}

/// Everything may be seen; cycles that share time with a part of it are asked for.
fn whole(asked: &ModelQuestion) -> ModelQuestion {
    ModelQuestion {
        windows: vec![(0, HORIZON)],
        ..asked.clone()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn rule_3_3_the_best_sample_wins_every_second(
        samples in samples(),
        asked_for in asked_for(),
        batch in 1_usize..9
    ) {
        let seen = windows(&asked_for.windows);
        let found = asked(&samples, batch, Question::Resolved, &seen);
        prop_assert_eq!(hypnogram(&found), runs(stages(&samples, &asked_for)));

        // Without joining, a row is a stretch that one sample wins.
        let found = asked(
            &samples,
            batch,
            stages_of(
                spec_of(
                    &ModelQuestion {
                        gap_stages: vec![],
                        ..asked_for.clone()
                    },
                    true,
                ),
                true,
                false,
            ),
            &seen,
        );
        let by_sample: Vec<(i64, i64, i64)> = runs(winners(&samples, &asked_for))
            .into_iter()
            .map(|(start, end, place)| (start, end, samples[place].stage))
            .collect();
        prop_assert_eq!(hypnogram(&found), by_sample);
    }

    #[test]
    fn rule_3_5_cycles_are_parted_by_gaps(
        samples in samples(),
        asked_for in asked_for(),
        batch in 1_usize..9,
        clip in any::<bool>()
    ) {
        let asked_for = if clip { asked_for } else { whole(&asked_for) };
        let found = asked(
            &samples,
            batch,
            stages_of(spec_of(&asked_for, clip), true, true),
            &windows(&asked_for.windows),
        );
        let rows: Vec<(i64, i64, i64, i64)> = integers(&found, "cycle")
            .into_iter()
            .zip(hypnogram(&found))
            .map(|(cycle, (start, end, stage))| (cycle, start, end, stage))
            .collect();
        prop_assert!(
            rows.windows(2)
                .all(|pair| pair[0].2 <= pair[1].1 && pair[0].0 <= pair[1].0),
            "cycles \
                                                                                                    do not \
                                                                                                    overlap: \
                                                                                                    {rows:?}"
        );
        prop_assert_eq!(rows, cycle_rows(&samples, &asked_for));
    }

    #[test]
    fn rule_3_5_a_cycle_is_summed_up_as_counting_seconds_does(
        samples in samples(),
        asked_for in asked_for(),
        batch in 1_usize..9,
        clip in any::<bool>()
    ) {
        let asked_for = if clip { asked_for } else { whole(&asked_for) };
        let found = asked(
            &samples,
            batch,
            Question::Cycles(spec_of(&asked_for, clip)),
            &windows(&asked_for.windows),
        );
        let expected = nights(&samples, &asked_for);
        let numbers: Vec<i64> = (0..expected.len() as i64).collect();
        prop_assert_eq!(integers(&found, "number"), numbers);
        let column = |value: fn(&model::Night) -> i64| expected.iter().map(value).collect::<Vec<i64>>();
        prop_assert_eq!(seconds(&found, "start_time"), column(|night| night.start));
        prop_assert_eq!(seconds(&found, "end_time"), column(|night| night.end));
        prop_assert_eq!(
            integers(&found, "total_time_ms"),
            column(|night| (night.end - night.start) * 1000)
        );
        prop_assert_eq!(
            integers(&found, "total_time_asleep_ms"),
            column(|night| night.asleep * 1000)
        );
        let latencies: Vec<Option<i64>> = found
            .iter()
            .flat_map(|batch| {
                batch
                    .column_by_name("latency_ms")
                    .unwrap()
                    .as_primitive::<Int64Type>()
                    .iter()
                    .collect::<Vec<_>>()
            })
            .collect();
        prop_assert_eq!(
            latencies,
            expected
                .iter()
                .map(|night| night.latency.map(|latency| latency * 1000))
                .collect::<Vec<_>>()
        );
        prop_assert_eq!(
            seconds(&found, "in_bed_start_time"),
            column(|night| night.in_bed[0].0)
        );
        prop_assert_eq!(
            seconds(&found, "in_bed_end_time"),
            column(|night| night.in_bed[night.in_bed.len() - 1].1)
        );
        prop_assert_eq!(
            integers(&found, "total_time_in_bed_ms"),
            column(|night| night.in_bed.iter().map(|(start, end)| (end - start) * 1000).sum())
        );
        prop_assert_eq!(
            integers(&found, "in_bed_to_first_stage_ms"),
            column(|night| ((night.start - night.in_bed[0].0) * 1000).max(0))
        );
        for (list, night) in lists(&found, "sleep_stage_intervals").iter().zip(&expected) {
            let rows: Vec<(i64, i64, i64)> = seconds_of(&list[0])
                .into_iter()
                .zip(seconds_of(&list[1]))
                .zip(integers_of(&list[3]))
                .map(|((start, end), stage)| (start, end, stage))
                .collect();
            prop_assert_eq!(&rows, &night.intervals);
        }
        for (list, night) in lists(&found, "in_bed_intervals").iter().zip(&expected) {
            let rows: Vec<(i64, i64)> = seconds_of(&list[0])
                .into_iter()
                .zip(seconds_of(&list[1]))
                .collect();
            prop_assert_eq!(&rows, &night.in_bed);
        }
        for (list, night) in lists(&found, "sleep_stage_totals").iter().zip(&expected) {
            let rows: Vec<(i64, i64, i64)> = integers_of(&list[0])
                .into_iter()
                .zip(integers_of(&list[1]))
                .zip(integers_of(&list[2]))
                .map(|((stage, length), latency)| (stage, length / 1000, latency / 1000))
                .collect();
            prop_assert_eq!(&rows, &night.totals);
        }
    }

    #[test]
    fn rule_3_5_totals_of_periods_are_those_of_counted_seconds(
        samples in samples(),
        asked_for in asked_for(),
        batch in 1_usize..9,
        period in 20_i64..300,
        mode in 0_usize..3
    ) {
        let mode = [Mode::Start, Mode::End, Mode::Split][mode];
        let spec = SleepTotalsSpec {
            cycles: spec_of(&asked_for, true),
            mode,
            period: Truncation::parse(&format!("{period}s")).unwrap(),
            zone: Zone::UTC,
            functions: vec![Statistic::Sum, Statistic::Min, Statistic::Max, Statistic::Avg],
            most_cells: u64::MAX,
        };
        let found = asked(
            &samples,
            batch,
            Question::Aggregate(spec),
            &windows(&asked_for.windows),
        );
        let expected = totals(&samples, &asked_for, |(start, end), second| {
            let moment = match mode {
                Mode::Start => start,
                Mode::End => end - 1,
                Mode::Split => second,
            };
            moment / period * period
        });
        let column = |value: fn(&model::Total) -> i64| expected.iter().map(value).collect::<Vec<i64>>();
        prop_assert_eq!(seconds(&found, "period_start_time"), column(|total| total.0));
        prop_assert_eq!(integers(&found, "value"), column(|total| total.1));
        prop_assert_eq!(integers(&found, "cycles"), column(|total| total.2));
        prop_assert_eq!(integers(&found, "sum_ms"), column(|total| total.3 * 1000));
        prop_assert_eq!(integers(&found, "min_ms"), column(|total| total.4 * 1000));
        prop_assert_eq!(integers(&found, "max_ms"), column(|total| total.5 * 1000));
        prop_assert_eq!(seconds(&found, "min_start_time"), column(|total| total.6));
        prop_assert_eq!(seconds(&found, "max_end_time"), column(|total| total.7));
    }

    #[test]
    fn rows_are_disjoint_and_cover_exactly_what_was_recorded(samples in samples(), asked_for in asked_for()) {
        let rows = hypnogram(&asked(
            &samples,
            5,
            Question::Resolved,
            &windows(&asked_for.windows),
        ));
        prop_assert!(rows.iter().all(|row| row.0 < row.1));
        prop_assert!(rows.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{rows:?}");
        for second in 0..HORIZON {
            let recorded = samples.iter().any(|sample| {
                asked_for
                    .parts(sample)
                    .iter()
                    .any(|part| part.0 <= second && second < part.1)
            });
            let told = rows.iter().any(|row| row.0 <= second && second < row.1);
            prop_assert_eq!(recorded, told, "second {}", second);
        }
    }

    #[test]
    fn resolving_twice_changes_nothing(samples in samples(), asked_for in asked_for()) {
        let seen = windows(&asked_for.windows);
        let once = hypnogram(&asked(&samples, 5, Question::Resolved, &seen));
        let again: Vec<GivenSample> = once
            .iter()
            .zip(1_u128..)
            .map(|(&(start, end, stage), id)| given(stage, start, end, id))
            .collect();
        prop_assert_eq!(hypnogram(&asked(&again, 5, Question::Resolved, &seen)), once);
    }

    #[test]
    fn split_sums_equal_the_total_of_the_rows(
        samples in samples(),
        asked_for in asked_for(),
        period in 20_i64..300
    ) {
        let seen = windows(&asked_for.windows);
        let spec = SleepTotalsSpec {
            cycles: spec_of(&asked_for, true),
            mode: Mode::Split,
            period: Truncation::parse(&format!("{period}s")).unwrap(),
            zone: Zone::UTC,
            functions: vec![Statistic::Sum],
            most_cells: u64::MAX,
        };
        let split: i64 = integers(
            &asked(&samples, 5, Question::Aggregate(spec.clone()), &seen),
            "sum_ms",
        )
        .iter()
        .sum();
        let rows = asked(&samples, 5, stages_of(spec.cycles.clone(), true, true), &seen);
        prop_assert_eq!(split, integers(&rows, "duration_ms").iter().sum::<i64>());
    }

    #[test]
    fn rule_3_4_unmerged_rows_are_the_clipped_samples(
        samples in samples(),
        asked_for in asked_for(),
        batch in 1_usize..9
    ) {
        let asked_for = ModelQuestion {
            gap_stages: vec![],
            ..asked_for
        };
        let seen = windows(&asked_for.windows);
        let found = asked(
            &samples,
            batch,
            stages_of(spec_of(&asked_for, true), false, false),
            &seen,
        );
        let mut expected: Vec<(i64, i64, u128, i64)> = samples
            .iter()
            .filter(|sample| sample.end > sample.start)
            .flat_map(|sample| {
                asked_for
                    .parts(sample)
                    .into_iter()
                    .map(|(start, end)| (start, end, sample.id, sample.stage))
            })
            .collect();
        expected.sort_unstable();
        let expected: Vec<(i64, i64, i64)> = expected
            .into_iter()
            .map(|(start, end, _, stage)| (start, end, stage))
            .collect();
        prop_assert_eq!(hypnogram(&found), expected);
    }

    #[test]
    fn rule_3_4_unmerged_rows_of_one_source_that_touch_are_joined(
        samples in samples(),
        asked_for in asked_for(),
        batch in 1_usize..9
    ) {
        let asked_for = ModelQuestion {
            gap_stages: vec![],
            ..asked_for
        };
        let seen = windows(&asked_for.windows);
        let found = hypnogram(&asked(
            &samples,
            batch,
            stages_of(spec_of(&asked_for, true), false, true),
            &seen,
        ));
        let mut parts: Vec<(i64, i64, u128, i64, usize)> = samples
            .iter()
            .filter(|sample| sample.end > sample.start)
            .flat_map(|sample| {
                asked_for
                    .parts(sample)
                    .into_iter()
                    .map(|(start, end)| (start, end, sample.id, sample.stage, sample.source))
            })
            .collect();
        parts.sort_unstable();
        let mut expected: Vec<(i64, i64, u128, i64, usize)> = Vec::new();
        for part in parts {
            match expected
                .iter_mut()
                .find(|row| row.1 == part.0 && row.3 == part.3 && row.4 == part.4)
            {
                Some(row) => row.1 = part.1,
                None => expected.push(part),
            }
        }
        expected.sort_unstable();
        prop_assert_eq!(
            found,
            expected
                .into_iter()
                .map(|row| (row.0, row.1, row.3))
                .collect::<Vec<_>>()
        );
    }

    #[test]
    fn rule_3_5_gap_stages_and_overlapping_rows_find_the_same_cycles(
        samples in samples(),
        asked_for in asked_for(),
        batch in 1_usize..9
    ) {
        let seen = windows(&asked_for.windows);
        let found = asked(
            &samples,
            batch,
            stages_of(spec_of(&asked_for, true), false, false),
            &seen,
        );
        let mut rows: Vec<(i64, i64, u128, i64)> = samples
            .iter()
            .filter(|sample| sample.end > sample.start)
            .flat_map(|sample| {
                asked_for
                    .parts(sample)
                    .into_iter()
                    .map(|(start, end)| (start, end, sample.id, sample.stage))
            })
            .collect();
        rows.sort_unstable();
        let mut spans: Vec<(i64, i64)> = Vec::new();
        for row in rows.iter().filter(|row| !asked_for.gap_stages.contains(&row.3)) {
            match spans.last_mut() {
                Some(last) if row.0 - last.1 < asked_for.gap => last.1 = last.1.max(row.1),
                _ => spans.push((row.0, row.1)),
            }
        }
        let mut expected = Vec::new();
        for (start, end, _, stage) in rows {
            if let Some(number) = spans.iter().position(|span| span.0 <= start && end <= span.1) {
                expected.push((number as i64, start, end, stage));
            }
        }
        let found: Vec<(i64, i64, i64, i64)> = integers(&found, "cycle")
            .into_iter()
            .zip(hypnogram(&found))
            .map(|(cycle, (start, end, stage))| (cycle, start, end, stage))
            .collect();
        prop_assert_eq!(found, expected);
    }
}
