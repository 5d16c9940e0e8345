//! However many samples overlap, a question returns to its driver after a limited amount of work, and says
//! the same as if it did not.

use std::task::{Context, Poll};

use datafusion::physical_plan::ExecutionPlan as _;
use futures::StreamExt as _;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tokio::runtime::Runtime;

use super::super::Base;
use super::*;
use crate::model::duration::Truncation;

/// Samples of one source that begin one moment after the other and last equally long.
fn staggered(count: i64, length: i64) -> Vec<Sample> {
    let sample = |place: i64| Sample {
        start: place,
        end: place + length,
        value: length as f64,
        source: 0,
        class: 3,
    };
    (0..count).map(sample).collect()
}

/// The answer, how often the question yielded before its first batch, and how often in all.
fn polled(samples: &[Sample], spec: &SeriesSpec, asked: TimeRange) -> (RecordBatch, usize, usize) {
    let rows = stored(samples);
    let input = MemorySourceConfig::try_new_exec(&[vec![rows]], stored_schema(), None).unwrap();
    let ranking = Arc::new(Ranking::new(SourceOrder::new(known_sources(), &[])));
    let plan = SeriesExec::new(input, Arc::new(spec.clone()), Windows::new([asked]), ranking);
    let mut series = plan.execute(0, Arc::new(TaskContext::default())).unwrap();
    let mut context = Context::from_waker(futures::task::noop_waker_ref());
    let (mut batches, mut before_first, mut yielded) = (Vec::new(), 0, 0);
    loop {
        match series.poll_next_unpin(&mut context) {
            Poll::Ready(Some(batch)) => batches.push(batch.unwrap()),
            Poll::Ready(None) => break,
            Poll::Pending => {
                yielded += 1;
                before_first += usize::from(batches.is_empty());
            }
        }
    }
    (
        concat_batches(&spec.schema(), &batches).unwrap(),
        before_first,
        yielded,
    )
}

const LEVELS: Measure = Measure::Levels {
    base: Base::Mean,
    counting: Counting::BestSource,
};

/// Two thousand samples one after the other, and each until two thousand have begun: four million times a
/// sample and a bin or a boundary meet.
#[test]
fn a_question_over_many_overlapping_samples_yields_before_its_first_batch() {
    let count = 2000;
    let samples = staggered(count, count);
    let asked = range(0, 2 * count);
    for measure in [LEVELS, Measure::Amounts(Counting::Everything), BEST] {
        let spec = spec(measure, Grid::uniform(asked, 1));
        let (found, before_first, _) = polled(&samples, &spec, asked);
        assert!(before_first >= 40, "{measure:?} yielded {before_first} times");
        let values = numbers(&found, "value");
        let expected: Vec<Option<f64>> = (0..2 * count)
            .map(|bin| match measure {
                Measure::Levels { .. } => Some(count as f64),
                Measure::Amounts(_) => Some((bin + 1).min(2 * count - 1 - bin) as f64),
            })
            .collect();
        // Nothing reaches the last bin.
        let last = values.len() - 1;
        assert_close(&values[..last], &expected[..last], &measure);
        assert_eq!(values[last], None);
    }
}

/// One stretch of time, in which very many other samples of the source count along with its winner.
#[test]
fn a_single_long_stretch_is_resolved_in_turns() {
    let count = 1000;
    let mut samples = staggered(count, count);
    samples.push(Sample {
        start: 0,
        end: 3 * count,
        value: 0.0,
        source: 0,
        class: 2,
    });
    let asked = range(0, 3 * count);
    let spec = spec(BEST, Grid::uniform(asked, 3 * count));
    let (found, before_first, _) = polled(&samples, &spec, asked);
    assert!(before_first >= 20, "yielded {before_first} times");
    let total = Some((count * count) as f64);
    assert_close(&numbers(&found, "value"), &[total], &"all of them count");
}

/// Where nothing begins or ends, a bin costs nothing for each of the samples that cover it.
#[test]
fn bins_under_the_same_long_samples_are_computed_once() {
    let (count, bins) = (1000, 20_000);
    let samples = staggered(count, 10 * bins);
    let asked = range(count + 1, count + 1 + bins);
    let spec = calculating(
        &["min", "count", "rollingmean"],
        spec(LEVELS, Grid::uniform(asked, 1)),
    );
    let (found, _, yielded) = polled(&samples, &spec, asked);
    assert!(yielded < 10, "yielded {yielded} times");
    let all = vec![Some(count as f64); bins as usize];
    assert_close(&numbers(&found, "count_value"), &all, &"all cover each bin");
    let value = vec![Some(10.0 * bins as f64); bins as usize];
    for column in ["value", "min_value", "rollingmean_value"] {
        assert_close(&numbers(&found, column), &value, &column);
    }
}

/// What a bin says does not depend on the bins beside it: it is the same to the last digit if it is the only
/// one.
#[test]
fn rule_1_2_a_bin_is_the_same_if_it_is_asked_for_alone() {
    let hour = 3_600_000_000;
    let sample = (
        -50_i64..50,
        prop_oneof![Just(0_i64), 1_i64..9, 20_i64..200],
        0_u8..6,
        0_usize..2,
    );
    let strategy = (
        prop::collection::vec(sample, 0..9),
        prop_oneof![
            (1_i64..12).prop_map(Some),
            Just(None), // Days, one of which is an hour shorter.
        ],
        prop::collection::vec((0_i64..90, 1_i64..90), 0..3),
    );
    let runtime = Runtime::new().unwrap();
    let mut runner = TestRunner::new(Config {
        failure_persistence: None,
        ..Config::with_cases(150)
    });
    let origin = micros("2024-03-08T05:00Z");
    let at = |hours: i64| origin + hours * hour;
    let asked = range(at(0), at(90));
    let outcome = runner.run(&strategy, |(samples, width, windows)| {
        let sample = |(start, length, value, source): (i64, i64, u8, usize)| Sample {
            start: at(start),
            end: at(start + length),
            value: f64::from(value) / 3.0,
            source,
            class: 3,
        };
        let samples: Vec<Sample> = samples.into_iter().map(sample).collect();
        let grid = match width {
            Some(hours) => Grid::uniform(asked, hours * hour),
            None => Truncation::parse("1d")
                .unwrap()
                .grid(&Zone::parse("America/New_York").unwrap(), asked),
        };
        let mut windows: Vec<TimeRange> = windows
            .into_iter()
            .map(|(from, length)| range(at(from), at(from + length)))
            .collect();
        if windows.is_empty() {
            windows.push(asked);
        }
        for base in [Base::Mean, Base::Last, Base::EquivalentLevel] {
            let counting = Counting::BestSource;
            let levels = calculating(
                &["sum", "count", "first", "median", "allpoints", "uniques"],
                spec(Measure::Levels { base, counting }, grid.clone()),
            );
            runtime.block_on(check_alone(&samples, &levels, &windows));
        }
        let amounts = spec(Measure::Amounts(Counting::Everything), grid);
        runtime.block_on(check_alone(&samples, &amounts, &windows));
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

async fn check_alone(samples: &[Sample], spec: &SeriesSpec, windows: &[TimeRange]) {
    let together = series(samples, spec, windows, 4).await;
    for (row, (start, end)) in spec.grid.bins().enumerate() {
        let bin = TimeRange::new(start, end).unwrap();
        let alone = SeriesSpec {
            grid: Grid::uniform(bin, end.micros() - start.micros()),
            ..spec.clone()
        };
        let alone = series(samples, &alone, windows, 4).await;
        assert_eq!(together.slice(row, 1), alone, "bin {row} of {samples:?}");
    }
}
