//! `queries/series.sql` and `queries/levels.sql` say the same as the operator.

use datafusion::arrow::array::Int64Array;
use datafusion::common::{ParamValues, ScalarValue};
use datafusion::prelude::{SessionConfig, SessionContext};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tokio::runtime::Runtime;

use super::super::Base;
use super::*;

const AMOUNTS: &str = include_str!("../../../../queries/series.sql");
const LEVELS: &str = include_str!("../../../../queries/levels.sql");

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

/// What is asked of both.
#[derive(Debug)]
struct Question {
    samples: Vec<Sample>,
    asked: TimeRange,
    width: i64,
}

impl Question {
    fn grid(&self) -> Grid {
        Grid::uniform(self.asked, self.width)
    }

    async fn by_sql(&self, text: &str, best: Option<bool>) -> RecordBatch {
        let context = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(1));
        context.register_batch("samples", table(&self.samples)).unwrap();
        let numbers = [
            ("start", self.asked.start().micros()),
            ("end", self.asked.end().micros()),
            ("width", self.width),
            ("windows", self.grid().len() as i64),
        ];
        let numbers = numbers.map(|(name, value)| (name, ScalarValue::Int64(Some(value))));
        let best = best.map(|best| ("best", ScalarValue::Boolean(Some(best))));
        let parameters: Vec<_> = numbers.into_iter().chain(best).collect();
        let frame = context.sql(text).await.unwrap();
        let frame = frame.with_param_values(ParamValues::from(parameters)).unwrap();
        let schema = Arc::clone(frame.schema().inner());
        concat_batches(&schema, &frame.collect().await.unwrap()).unwrap()
    }

    async fn by_operator(&self, measure: Measure, calculations: &[&str]) -> RecordBatch {
        let spec = calculating(calculations, spec(measure, self.grid()));
        series(&self.samples, &spec, &[self.asked], 5).await
    }
}

/// Asks `check` of random samples on random grids; some samples are very long.
fn of_random_samples(check: &impl AsyncFn(&Question)) {
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
        let question = Question {
            samples: samples.into_iter().map(sample).collect(),
            asked: range(start * unit, (start + length) * unit),
            width: width * unit,
        };
        runtime.block_on(check(&question));
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

#[test]
fn rule_1_4a_the_query_of_amounts_and_the_operator_agree() {
    of_random_samples(&async |question: &Question| {
        let found = numbers(&question.by_operator(BEST, &[]).await, "value");
        let expected = numbers(&question.by_sql(AMOUNTS, None).await, "value");
        assert_close(&found, &expected, question);
    });
}

#[test]
fn rule_1_5_the_query_of_levels_and_the_operator_agree() {
    of_random_samples(&async |question: &Question| {
        for counting in [Counting::BestSource, Counting::Everything] {
            let base = Base::Mean;
            let levels = Measure::Levels { base, counting };
            let found = question.by_operator(levels, &["min", "max", "count"]).await;
            let best = Some(counting == Counting::BestSource);
            let expected = question.by_sql(LEVELS, best).await;
            for (column, said) in [
                ("value", "value"),
                ("min_value", "least"),
                ("max_value", "greatest"),
                ("count_value", "points"),
            ] {
                let about = (counting, column, question);
                assert_close(&numbers(&found, column), &numbers(&expected, said), &about);
            }
        }
    });
}
