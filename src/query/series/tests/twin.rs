//! `queries/series.sql` says the same as the operator.

use datafusion::arrow::array::Int64Array;
use datafusion::common::{ParamValues, ScalarValue};
use datafusion::prelude::{SessionConfig, SessionContext};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tokio::runtime::Runtime;

use super::*;

const TWIN: &str = include_str!("../../../../queries/series.sql");

/// The rows of the twin: a rank is the class, then the source.
fn table(samples: &[Sample]) -> RecordBatch {
    let whole = |of: fn(usize, &Sample) -> i64| -> Arc<dyn Array> {
        Arc::new(
            samples
                .iter()
                .enumerate()
                .map(|(id, sample)| Some(of(id, sample)))
                .collect::<Int64Array>(),
        )
    };
    let values: Float64Array = samples.iter().map(|sample| Some(sample.value)).collect();
    RecordBatch::try_from_iter([
        ("id", whole(|id, _| id as i64)),
        ("source", whole(|_, sample| sample.source as i64)),
        (
            "rank",
            whole(|_, sample| i64::from(sample.class) * 10 + sample.source as i64),
        ),
        ("start_time", whole(|_, sample| sample.start)),
        ("end_time", whole(|_, sample| sample.end)),
        ("value", Arc::new(values) as Arc<dyn Array>),
    ])
    .unwrap()
}

async fn by_sql(samples: &[Sample], asked: TimeRange, width: i64, bins: i64) -> Vec<Option<f64>> {
    let context = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(1));
    context.register_batch("samples", table(samples)).unwrap();
    let parameters = [
        ("start", asked.start().micros()),
        ("end", asked.end().micros()),
        ("width", width),
        ("windows", bins),
    ];
    let parameters = parameters.map(|(name, value)| (name, ScalarValue::Int64(Some(value))));
    let frame = context.sql(TWIN).await.unwrap();
    let frame = frame
        .with_param_values(ParamValues::from(parameters.to_vec()))
        .unwrap();
    let batches = frame.collect().await.unwrap();
    batches.iter().flat_map(|batch| numbers(batch, "value")).collect()
}

#[test]
fn rule_1_4a_the_query_and_the_operator_agree() {
    let day = 86_400_000_000_i64;
    let sample = (
        0_i64..400,
        prop_oneof![2 => Just(0_i64), 6 => 1_i64..60],
        0_u8..9,
        0_usize..4,
        2_i8..7,
        any::<bool>(),
    );
    let strategy = (
        prop::collection::vec(sample, 0..40),
        0_i64..200,
        1_i64..300,
        1_i64..120,
        any::<bool>(),
    );
    let runtime = Runtime::new().unwrap();
    let mut runner = TestRunner::new(Config {
        failure_persistence: None,
        ..Config::with_cases(120)
    });
    let outcome = runner.run(&strategy, |(samples, start, length, width, long)| {
        let unit = if long { day / 4 } else { 1 };
        let sample = |(start, length, value, source, class, typed): (i64, i64, u8, usize, i8, bool)| Sample {
            start: start * unit,
            end: (start + length) * unit,
            value: f64::from(value),
            source,
            class: if typed { 2 } else { class },
        };
        let samples: Vec<Sample> = samples.into_iter().map(sample).collect();
        let (asked, width) = (range(start * unit, (start + length) * unit), width * unit);
        let spec = spec(BEST, Grid::uniform(asked, width));
        runtime.block_on(async {
            let found = numbers(&series(&samples, &spec, &[asked], 5).await, "value");
            let expected = by_sql(&samples, asked, width, spec.grid.len() as i64).await;
            assert_close(&found, &expected, &(&samples, asked, width));
        });
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}
