//! What holds for all samples and all grids.

use std::collections::HashMap;

use datafusion::common::DataFusionError;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tokio::runtime::Runtime;

use super::super::output::ROWS;
use super::super::{AmountsByGroupExec, AmountsSpec, Base};
use super::*;

fn samples(sources: usize) -> impl Strategy<Value = Vec<Sample>> {
    let sample = (0_i64..1_000_000, 0_i64..100_000, 0.0_f64..1e6, 0..sources);
    prop::collection::vec(sample, 1..60).prop_map(|samples| {
        let sample = |(start, length, value, source)| Sample {
            start,
            end: start + length,
            value,
            source,
            class: 3 + source as i8,
        };
        samples.into_iter().map(sample).collect()
    })
}

async fn total(samples: &[Sample], measure: Measure, asked: TimeRange, width: i64) -> f64 {
    let spec = spec(measure, Grid::uniform(asked, width));
    numbers(&series(samples, &spec, &[asked], 7).await, "value")
        .into_iter()
        .flatten()
        .sum()
}

fn run<S: Strategy>(strategy: &S, check: impl AsyncFn(S::Value)) {
    let runtime = Runtime::new().unwrap();
    let mut runner = TestRunner::new(Config {
        failure_persistence: None,
        ..Config::with_cases(300)
    });
    let outcome = runner.run(strategy, |case| {
        runtime.block_on(check(case));
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

/// With one source, what all bins have together is what the request has of the samples, for every grid.
#[test]
fn rule_1_3_nothing_is_lost_between_bins() {
    let strategy = (samples(1), 0_i64..500_000, 1_i64..700_000, 100_i64..400_000);
    run(&strategy, async |(samples, start, length, width)| {
        let asked = range(start, start + length);
        let clipped = |sample: &Sample| {
            if sample.start == sample.end {
                return if (start..start + length).contains(&sample.start) {
                    sample.value
                } else {
                    0.0
                };
            }
            let covered = sample.end.min(start + length) - sample.start.max(start);
            sample.value * covered.max(0) as f64 / (sample.end - sample.start) as f64
        };
        let expected: f64 = samples.iter().map(clipped).sum();
        for measure in [BEST, Measure::Amounts(Counting::Everything)] {
            let found = total(&samples, measure, asked, width).await;
            assert!(
                (found - expected).abs() <= 1e-9 * expected.max(1.0),
                "{found} is not {expected}"
            );
        }
    });
}

/// Resolving never adds: the total is at most that of all samples together.
#[test]
fn rule_1_4_resolved_is_at_most_naive() {
    run(&(samples(4), 1_i64..400_000), async |(samples, width)| {
        let asked = range(0, 2_000_000);
        let resolved = total(&samples, BEST, asked, width).await;
        let naive: f64 = samples.iter().map(|sample| sample.value).sum();
        assert!(
            resolved <= naive * (1.0 + 1e-9),
            "{resolved} is more than {naive}"
        );
    });
}

/// The same samples under other ids, and in other batches, give the same numbers.
#[test]
fn rule_1_4e_the_order_in_which_samples_came_changes_nothing() {
    run(
        &(samples(4), any::<prop::sample::Index>(), 1_usize..50),
        async |(samples, turn, step)| {
            let asked = range(0, 1_200_000);
            let mut other = samples.clone();
            other.rotate_left(turn.index(samples.len()));
            other.reverse();
            let levels = Measure::Levels {
                base: Base::Mean,
                counting: Counting::BestSource,
            };
            for measure in [BEST, levels] {
                let spec = spec(measure, Grid::uniform(asked, 70_001));
                let one = numbers(&series(&samples, &spec, &[asked], 8).await, "value");
                let two = numbers(&series(&other, &spec, &[asked], step).await, "value");
                assert_close(&one, &two, &samples);
            }
        },
    );
}

/// Where samples never overlap, it does not matter that sources compete: the one pass that resolves them and
/// the one that does not give the same bins, in as many batches as it takes.
#[test]
fn rule_1_4a_samples_that_never_overlap_all_count() {
    let sample = (
        prop_oneof![Just(0_i64), 1_i64..3_000],
        prop_oneof![Just(0_i64), 1_i64..3_000, 1_i64..60_000],
        -9.0_f64..1e6,
        0_usize..2,
    );
    let samples = prop::collection::vec(sample, 1..40).prop_map(|samples: Vec<(i64, i64, f64, usize)>| {
        let mut from = 0;
        let sample = |(gap, length, value, source): (i64, i64, f64, usize)| {
            let start = from + gap;
            // What begins where an instant is would cover it.
            from = start + length.max(1);
            Sample {
                start,
                end: start + length,
                value,
                source,
                class: 3 + source as i8,
            }
        };
        samples.into_iter().map(sample).collect::<Vec<_>>()
    });
    let strategy = (
        samples,
        // Of the narrow ones a batch has too few.
        prop_oneof![9 => 40_i64..9_000, 1 => 20_i64..60],
        1_usize..50,
        0_i64..100_000,
        1_i64..600_000,
    );
    run(&strategy, async |(samples, width, step, from, until)| {
        let asked = range(0, 500_000);
        let windows = [range(0, from), range(from + 7, from + until)];
        let of = async |measure: Measure| {
            let spec = calculating(&["count"], spec(measure, Grid::uniform(asked, width)));
            let found = series(&samples, &spec, &windows, step).await;
            (numbers(&found, "value"), numbers(&found, "count_value"))
        };
        let (resolved, counted) = of(BEST).await;
        let (simply, counted_simply) = of(Measure::Amounts(Counting::Everything)).await;
        assert_close(&resolved, &simply, &samples);
        assert_eq!(counted, counted_simply, "{samples:?}");
    });
}

/// However many bins, batches are of one size, and a sample over all of them costs no more than it holds.
#[tokio::test]
async fn rule_1_2c_long_answers_come_in_even_batches() {
    let bins = 5 * ROWS as i64 + 17;
    let asked = range(0, bins);
    let samples = [
        Sample {
            start: 10,
            end: bins - 10,
            value: (bins - 20) as f64,
            source: 0,
            class: 3,
        },
        Sample {
            start: 20_000,
            end: 20_000,
            value: 5.0,
            source: 0,
            class: 3,
        },
    ];
    let levels = Measure::Levels {
        base: Base::Last,
        counting: Counting::Everything,
    };
    for (measure, inside) in [(BEST, 1.0), (levels, (bins - 20) as f64)] {
        let spec = spec(measure, Grid::uniform(asked, 1));
        let found = batches(&samples, &spec, &[asked], 1).await;
        let sizes: Vec<usize> = found.iter().map(RecordBatch::num_rows).collect();
        assert_eq!(sizes, [ROWS, ROWS, ROWS, ROWS, ROWS, 17]);
        let values = numbers(&concat_batches(&spec.schema(), &found).unwrap(), "value");
        assert_eq!(values[..10], [None; 10]);
        assert_eq!(values[bins as usize - 10..], [None; 10]);
        let odd = values[10..bins as usize - 10]
            .iter()
            .filter(|value| **value != Some(inside))
            .count();
        assert_eq!(odd, 1, "only the bin of the instant differs");
    }
}

#[tokio::test]
async fn rule_1_6_a_metric_without_data_has_all_its_rows_and_an_empty_range_has_none() {
    let asked = range(0, 10);
    let found = series(&[], &spec(BEST, Grid::uniform(asked, 3)), &[asked], 1).await;
    assert_eq!(
        (times(&found), numbers(&found, "value")),
        (vec![0, 3, 6, 9], vec![None; 4])
    );
    let empty = range(5, 5);
    let one = Sample {
        start: 0,
        end: 9,
        value: 1.0,
        source: 0,
        class: 3,
    };
    assert_eq!(
        series(&[one], &spec(BEST, Grid::uniform(empty, 3)), &[empty], 1)
            .await
            .num_rows(),
        0
    );
}

/// What counts of samples whose classes differ within a source is the same whether it is split by class or
/// not, bin by bin.
#[test]
fn rule_5_3_amounts_by_group_add_up_to_the_series() {
    let classed = (samples(3), prop::collection::vec(0_i8..4, 60)).prop_map(|(mut samples, classes)| {
        for (sample, class) in samples.iter_mut().zip(classes) {
            sample.class = class;
        }
        samples
    });
    run(
        &(classed, 10_000_i64..400_000, 1_usize..30),
        async |(samples, width, step)| {
            let asked = range(0, 1_200_000);
            let spec = spec(BEST, Grid::uniform(asked, width));
            let whole = series(&samples, &spec, &[asked], step).await;
            let mut split: HashMap<i64, f64> = HashMap::new();
            for parts in by_class(&samples, &spec.grid, asked, step).await {
                for (time, amount) in times(&parts).into_iter().zip(numbers(&parts, "amount")) {
                    *split.entry(time).or_default() += amount.unwrap();
                }
            }
            let in_whole = numbers(&whole, "value")
                .into_iter()
                .map(|value| value.or(Some(0.0)));
            let in_parts = times(&whole)
                .into_iter()
                .map(|time| Some(split.remove(&time).unwrap_or(0.0)));
            let (in_whole, in_parts): (Vec<_>, Vec<_>) = (in_whole.collect(), in_parts.collect());
            assert_close(&in_parts, &in_whole, &samples);
            assert!(split.is_empty(), "{split:?}");
        },
    );
}

/// A sample may lie in very many bins. What is held of it, and given out at a time, does not grow with them.
#[tokio::test]
async fn amounts_by_group_are_held_in_part() {
    let bins = 100_000;
    let asked = range(0, 10 * bins);
    let grid = Grid::uniform(asked, 10);
    let of_class = |class| Sample {
        start: 0,
        end: 10 * bins,
        value: 3.0 * bins as f64,
        source: 0,
        class,
    };
    let samples = [of_class(1), of_class(2)];
    for counting in [Counting::BestSource, Counting::Everything] {
        let plan = by_class_plan(counting, &samples, &grid, asked, 1);
        let batches = collect(plan, with_memory(1 << 20)).await.unwrap();
        let rows: Vec<usize> = batches.iter().map(RecordBatch::num_rows).collect();
        assert!(rows.iter().all(|rows| *rows <= 8192), "{counting:?}: {rows:?}");
        let mut amounts: HashMap<i64, f64> = HashMap::new();
        for parts in &batches {
            for (time, amount) in times(parts).into_iter().zip(numbers(parts, "amount")) {
                *amounts.entry(time).or_default() += amount.unwrap();
            }
        }
        assert_eq!(amounts.len() as i64, bins, "{counting:?}");
        assert!(
            amounts.values().all(|amount| (amount - 6.0).abs() < 1e-9),
            "{counting:?}"
        );
    }
}

#[tokio::test]
async fn amounts_by_group_take_from_the_memory_of_questions() {
    let asked = range(0, 1_000_000);
    let sample = Sample {
        start: 0,
        end: 1_000_000,
        value: 1.0,
        source: 0,
        class: 1,
    };
    let grid = Grid::uniform(asked, 10);
    for counting in [Counting::BestSource, Counting::Everything] {
        let plan = by_class_plan(counting, &[sample], &grid, asked, 1);
        let error = collect(plan, with_memory(100_000)).await.unwrap_err();
        assert!(
            matches!(error.find_root(), DataFusionError::ResourcesExhausted(_)),
            "{counting:?}: {error}"
        );
    }
}

fn with_memory(bytes: usize) -> Arc<TaskContext> {
    let limited = RuntimeEnvBuilder::new().with_memory_limit(bytes, 1.0);
    Arc::new(TaskContext::default().with_runtime(limited.build_arc().unwrap()))
}

/// Amounts split by class, from rows that come `step` at a time.
async fn by_class(samples: &[Sample], grid: &Grid, asked: TimeRange, step: usize) -> Vec<RecordBatch> {
    let plan = by_class_plan(Counting::BestSource, samples, grid, asked, step);
    collect(plan, Arc::new(TaskContext::default())).await.unwrap()
}

fn by_class_plan(
    counting: Counting,
    samples: &[Sample],
    grid: &Grid,
    asked: TimeRange,
    step: usize,
) -> Arc<AmountsByGroupExec> {
    let rows = stored(samples);
    let parts = (0..rows.num_rows())
        .step_by(step)
        .map(|from| rows.slice(from, step.min(rows.num_rows() - from)));
    let input = MemorySourceConfig::try_new_exec(&[parts.collect()], stored_schema(), None).unwrap();
    let spec = AmountsSpec {
        grid: grid.clone(),
        zone: Zone::UTC,
        counting,
        windows: Windows::new([asked]),
        ranking: Ranking::new(SourceOrder::new(known_sources(), &[])),
        group: vec!["source_class".to_owned()],
        amount: "amount".to_owned(),
        most_groups: 100,
        too_many: || unreachable!("there are four"),
    };
    Arc::new(AmountsByGroupExec::try_new(input, spec).unwrap())
}
