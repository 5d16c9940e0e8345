//! The operator against the SQL that says what each question means.

use datafusion::arrow::array::Int64Array;
use datafusion::arrow::compute::concat_batches;
use datafusion::common::ScalarValue;
use datafusion::datasource::MemTable;
use datafusion::prelude::{SessionConfig, SessionContext};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::model::PRIORITY;
use super::nights::{asked_for, samples, spec_of};
use super::*;
use crate::model::duration::Truncation;
use crate::model::zone::Zone;
use crate::query::sleep::spec::{Mode, SleepTotalsSpec, StagesSpec};
use crate::query::statistic::Statistic;

const RESOLVE: &str = include_str!("../../../../queries/sleep_resolve.sql");
const CYCLES: &str = include_str!("../../../../queries/sleep_cycles.sql");
const AGGREGATE: &str = include_str!("../../../../queries/sleep_agg.sql");

/// SQL plans anew each time, so there are fewer cases than against the model.
const CASES: u32 = 60;

fn tables() -> SessionContext {
    SessionContext::new_with_config(SessionConfig::new().with_target_partitions(1))
}

fn table(context: &SessionContext, name: &str, columns: &[(&str, Vec<i64>)]) {
    let fields: Vec<Field> = columns
        .iter()
        .map(|(name, _)| Field::new(*name, DataType::Int64, false))
        .collect();
    let arrays = columns
        .iter()
        .map(|(_, values)| Arc::new(Int64Array::from(values.clone())) as ArrayRef);
    let schema = Arc::new(Schema::new(fields));
    let rows = RecordBatch::try_new(Arc::clone(&schema), arrays.collect()).unwrap();
    let table = MemTable::try_new(schema, vec![vec![rows]]).unwrap();
    context.register_table(name, Arc::new(table)).unwrap();
}

/// Runs a question and keeps its rows as a table.
async fn answer(
    context: &SessionContext,
    sql: &str,
    parameters: Vec<(&str, ScalarValue)>,
    name: &str,
) -> Vec<RecordBatch> {
    let frame = context
        .sql(sql)
        .await
        .unwrap()
        .with_param_values(parameters)
        .unwrap();
    let schema = Arc::new(frame.schema().as_arrow().clone());
    let batches = frame.collect().await.unwrap();
    let all = concat_batches(&schema, &batches).unwrap();
    context
        .register_table(
            name,
            Arc::new(MemTable::try_new(schema, vec![vec![all.clone()]]).unwrap()),
        )
        .unwrap();
    vec![all]
}

fn micros(batches: &[RecordBatch], name: &str) -> Vec<i64> {
    seconds(batches, name)
        .into_iter()
        .map(|second| second * SECOND)
        .collect()
}

#[test]
fn the_operator_answers_as_the_sql_of_each_question() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut runner = TestRunner::new(ProptestConfig::with_cases(CASES));
    let strategy = (samples(), asked_for(), 20_i64..300, 0_usize..3);
    runner
        .run(&strategy, |(samples, asked_for, period, mode)| {
            runtime.block_on(async {
                let context = tables();
                let each = |value: fn(&GivenSample) -> i64| samples.iter().map(value).collect::<Vec<i64>>();
                let recorded = [
                    ("id", each(|sample| sample.id as i64)),
                    ("stage", each(|sample| sample.stage)),
                    ("priority", each(|sample| PRIORITY[sample.stage as usize])),
                    ("start_time", each(|sample| sample.start * SECOND)),
                    ("end_time", each(|sample| sample.end * SECOND)),
                ];
                table(&context, "samples", &recorded);
                let (starts, ends) = asked_for
                    .windows
                    .iter()
                    .map(|&(start, end)| (start * SECOND, end * SECOND))
                    .unzip();
                table(&context, "windows", &[("start_time", starts), ("end_time", ends)]);
                table(&context, "gap_stages", &[("stage", asked_for.gap_stages.clone())]);
                let (starts, ends) = (0..60)
                    .map(|number| (number * period * SECOND, (number + 1) * period * SECOND))
                    .unzip();
                table(&context, "periods", &[("start_time", starts), ("end_time", ends)]);
                let seen = windows(&asked_for.windows);
                let cycles = spec_of(&asked_for, true);

                let sql = answer(&context, RESOLVE, vec![], "resolved").await;
                let operator = asked(&samples, 7, Question::Resolved, &seen);
                for name in ["start_time", "end_time"] {
                    prop_assert_eq!(integers(&sql, name), micros(&operator, name));
                }
                prop_assert_eq!(integers(&sql, "stage"), integers(&operator, "stage"));

                let gap = vec![("gap", ScalarValue::from(cycles.gap))];
                let sql = answer(&context, CYCLES, gap, "cycle_rows").await;
                let stages = StagesSpec {
                    cycles: cycles.clone(),
                    merge_overlapping: true,
                    merge_contiguous: true,
                };
                let operator = asked(&samples, 7, Question::Stages(stages), &seen);
                for name in ["start_time", "end_time"] {
                    prop_assert_eq!(integers(&sql, name), micros(&operator, name));
                }
                prop_assert_eq!(integers(&sql, "stage"), integers(&operator, "sleep_stage"));
                prop_assert_eq!(integers(&sql, "cycle"), integers(&operator, "cycle"));

                let (mode, name) = [(Mode::Start, "start"), (Mode::End, "end"), (Mode::Split, "split")][mode];
                let sql = answer(
                    &context,
                    AGGREGATE,
                    vec![("mode", ScalarValue::from(name))],
                    "totals",
                )
                .await;
                let spec = SleepTotalsSpec {
                    cycles,
                    mode,
                    period: Truncation::parse(&format!("{period}s")).unwrap(),
                    zone: Zone::UTC,
                    functions: vec![Statistic::Sum, Statistic::Min, Statistic::Max, Statistic::Avg],
                    most_cells: u64::MAX,
                };
                let operator = asked(&samples, 7, Question::Aggregate(spec), &seen);
                for name in ["period_start_time", "min_start_time", "max_end_time"] {
                    prop_assert_eq!(integers(&sql, name), micros(&operator, name));
                }
                for (sql_name, name) in [("sum", "sum_ms"), ("min", "min_ms"), ("max", "max_ms")] {
                    let milliseconds: Vec<i64> = integers(&sql, sql_name)
                        .into_iter()
                        .map(|micros| micros / 1000)
                        .collect();
                    prop_assert_eq!(milliseconds, integers(&operator, name));
                }
                for name in ["value", "cycles"] {
                    prop_assert_eq!(integers(&sql, name), integers(&operator, name));
                }
                let average = |batches: &[RecordBatch], name: &str| -> Vec<f64> {
                    let column = |batch: &RecordBatch| {
                        batch
                            .column_by_name(name)
                            .unwrap()
                            .as_primitive::<arrow::datatypes::Float64Type>()
                            .values()
                            .to_vec()
                    };
                    batches.iter().flat_map(column).collect()
                };
                for (sql, operator) in average(&sql, "avg").iter().zip(average(&operator, "avg_ms")) {
                    prop_assert!(
                        (sql / 1000.0 - operator).abs() <= 1e-9 * operator,
                        "{} {}",
                        sql,
                        operator
                    );
                }
                Ok(())
            })
        })
        .unwrap();
}
