//! Merges the answers of several people into one, period by period, and drops periods in which one of the
//! numbers comes from so few people that somebody could be singled out.
//!
//! One person's answer is read after the other, as there may be very many; their periods are put together
//! where all questions sort and group, on disk if there are more than memory holds: anybody who joins a group
//! may have records that fill any number of periods. Only reported periods are held. Knows answers by
//! period; does not know people's names or whose answer is whose.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, UInt32Array};
use arrow::compute::take_record_batch;
use arrow::datatypes::{DataType as ArrowType, Field, Float64Type, Int64Type, Schema, SchemaRef};
use datafusion::common::Result;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::union::UnionExec;
use futures::StreamExt as _;

use crate::query::engine::deadline_passed;
use crate::query::ground::operator::Plan;
use crate::query::ground::partitions_in_turn::in_one_partition;
use crate::query::series::TIME;
use crate::query::statistic::Statistic;
use crate::query::{Order, Prepared, QueryError, Questions, Scope};

use super::cell_limit::Cells;
use super::group_periods::{column, definition, each_row, finite, grouped, measure, ordering};
use super::held_rows::HeldRowsExec;
use super::spec::AggregateMeasure;

/// The column with the number of people who have a part in a row.
const PARTICIPANTS: &str = "participants";

/// The merged aggregate of several people.
pub struct OverPeople {
    pub prepared: Prepared,
    /// The number of periods that were dropped because too few people have records in them.
    pub left_out: u64,
}

impl<Authority> Questions<Authority> {
    /// Merges `each` person's records by period: counts and sums are added, minimum and maximum are taken
    /// over all, and in averages each person counts once. Periods in which fewer than `least` people have
    /// a value of each column are dropped. Fails with an [`Excess`](super::Excess) if there are more than
    /// `most_cells` in the answer, the column of times not counted. `None` without people.
    pub async fn over_people(
        &self,
        each: Vec<Prepared>,
        measure: &AggregateMeasure,
        order: Order,
        least: u64,
        most_cells: u64,
    ) -> Result<Option<OverPeople>, QueryError> {
        let functions: Vec<Option<Statistic>> = match measure {
            AggregateMeasure::Count => vec![None],
            AggregateMeasure::Values(functions) => functions.iter().copied().map(Some).collect(),
        };
        let mut plans = Vec::with_capacity(each.len());
        let mut states = Vec::new();
        let mut scope = Scope::default();
        for one in each {
            plans.push(one.plan);
            states.extend(one.states);
            scope = scope.and(one.scope);
        }
        if plans.is_empty() {
            return Ok(None);
        }
        let cells = Cells::new(functions.len() + 1, most_cells);
        let periods = together(plans, &functions)?;
        let mut reported = ReportedPeriods::new(
            &periods.schema(),
            &functions,
            least,
            cells,
            self.engine.memory("periods of several people"),
        )?;
        let mut periods = Box::pin(self.engine.drive(self.engine.start(periods), deadline_passed));
        while let Some(batch) = periods.next().await.transpose()? {
            reported.take(&batch)?;
        }
        let left_out = reported.left_out;
        let prepared = Prepared::of(reported.in_order(order)?, states, scope);
        Ok(Some(OverPeople { prepared, left_out }))
    }
}

/// The name of a column, with a function or with counts.
fn name_of(function: Option<Statistic>) -> &'static str {
    function.map_or("count", Statistic::name)
}

/// One row for each period that somebody has a part in: its time, the merged columns, the number of people
/// who have a part in it, and for each column the number who have a value. Not everybody with a part has one:
/// of a sample that began before the period there is a share of the sum, and no minimum.
fn together(each: Vec<Plan>, functions: &[Option<Statistic>]) -> Result<Plan> {
    let rows = in_one_partition(UnionExec::try_new(each)?);
    let schema = rows.schema();
    let mut measures = Vec::with_capacity(2 * functions.len() + 1);
    for function in functions {
        let name = name_of(*function);
        let merged = function.map_or_else(sum_udaf, definition);
        measures.push(measure(merged, column(name, &schema)?, &schema, name)?);
    }
    measures.push(measure(count_udaf(), each_row(), &schema, PARTICIPANTS)?);
    for function in functions {
        let name = name_of(*function);
        let people = format!("people with {name}");
        measures.push(measure(count_udaf(), column(name, &schema)?, &schema, &people)?);
    }
    grouped(rows, &[TIME], measures)
}

/// The periods in which enough people have values.
struct ReportedPeriods {
    /// The columns of the answer.
    schema: SchemaRef,
    /// How many people must stand behind each number.
    least: i64,
    left_out: u64,
    cells: Cells,
    batches: Vec<RecordBatch>,
    memory: MemoryReservation,
}

impl ReportedPeriods {
    /// `periods`: the columns of what may be reported. The zone of its times is the one that was asked for.
    fn new(
        periods: &Schema,
        functions: &[Option<Statistic>],
        least: u64,
        cells: Cells,
        memory: MemoryReservation,
    ) -> Result<Self> {
        let times = periods.field_with_name(TIME)?.data_type();
        let mut fields = vec![Field::new(TIME, times.clone(), false)];
        fields.extend(functions.iter().map(|function| {
            let kind = function.map_or(ArrowType::Int64, |_| ArrowType::Float64);
            Field::new(name_of(*function), kind, true)
        }));
        fields.push(Field::new(PARTICIPANTS, ArrowType::Int64, false));
        Ok(Self {
            schema: Arc::new(Schema::new(fields)),
            least: i64::try_from(least).unwrap_or(i64::MAX),
            left_out: 0,
            cells,
            batches: Vec::new(),
            memory,
        })
    }

    /// Keeps those of the periods in which enough people have values.
    fn take(&mut self, periods: &RecordBatch) -> Result<()> {
        // The last column of the answer, and those behind it, are numbers of people.
        let people = self.schema.fields().len() - 1;
        let people: Vec<&Int64Array> = periods
            .columns()
            .iter()
            .skip(people)
            .map(AsArray::as_primitive::<Int64Type>)
            .collect();
        let has_enough_people = |row: &u32| {
            people
                .iter()
                .all(|people| people.value(*row as usize) >= self.least)
        };
        let rows = UInt32Array::from_iter_values((0..periods.num_rows() as u32).filter(has_enough_people));
        self.left_out += (periods.num_rows() - rows.len()) as u64;
        if rows.is_empty() {
            return Ok(());
        }
        self.cells.add(rows.len())?;
        // Copied: a batch may be a small part of arrays with all periods.
        let reported = self.answer(&take_record_batch(periods, &rows)?)?;
        self.memory.try_grow(reported.get_array_memory_size())?;
        self.batches.push(reported);
        Ok(())
    }

    /// The columns of the answer. A sum that is too large to be a number is null, as in series.
    fn answer(&self, periods: &RecordBatch) -> Result<RecordBatch> {
        let fields = self.schema.fields().iter().zip(periods.columns());
        let columns = fields.map(|(field, column)| -> ArrayRef {
            if *field.data_type() != ArrowType::Float64 {
                return Arc::clone(column);
            }
            Arc::new(finite(column.as_primitive::<Float64Type>()))
        });
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns.collect())?)
    }

    fn in_order(self, order: Order) -> Result<Plan> {
        let order = ordering(&self.schema, &[TIME], order)?;
        let held = HeldRowsExec::new(self.schema, self.batches, self.memory);
        Ok(Arc::new(SortExec::new(order, Arc::new(held))))
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use arrow::array::{Array as _, Float64Array, TimestampMicrosecondArray};
    use arrow::datatypes::{TimeUnit, TimestampMicrosecondType};
    use datafusion::common::DataFusionError;
    use datafusion::datasource::memory::MemorySourceConfig;
    use futures::TryStreamExt as _;

    use super::super::Excess;
    use super::*;
    use crate::query::test_engine::TestEngine;

    const ZONE: &str = "Europe/Berlin";
    const ALL: [Statistic; 4] = [Statistic::Sum, Statistic::Avg, Statistic::Min, Statistic::Max];

    /// The answer about one person: for each period its time, its sum, and its other values, which all are
    /// the same.
    fn of_one(periods: &[(i64, Option<f64>, Option<f64>)]) -> Prepared {
        let times = periods.iter().map(|(time, _, _)| *time);
        let times = TimestampMicrosecondArray::from_iter_values(times).with_timezone(ZONE);
        let sums: ArrayRef = Arc::new(periods.iter().map(|(_, sum, _)| *sum).collect::<Float64Array>());
        let values = periods.iter().map(|(_, _, value)| *value);
        let values: ArrayRef = Arc::new(values.collect::<Float64Array>());
        let mut fields = vec![Field::new(TIME, times.data_type().clone(), false)];
        fields.extend(ALL.map(|function| Field::new(function.name(), ArrowType::Float64, true)));
        let mut columns: Vec<ArrayRef> = vec![Arc::new(times), sums];
        columns.resize(ALL.len() + 1, values);
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap();
        let plan = MemorySourceConfig::try_new_exec(&[vec![batch.clone()]], batch.schema(), None).unwrap();
        Prepared::of(plan, Vec::new(), Scope::default())
    }

    /// Time, sum, average, minimum, maximum and participants of each row.
    async fn rows(engine: &TestEngine<()>, over: OverPeople) -> Vec<(i64, [Option<f64>; 4], i64)> {
        let batches: Vec<RecordBatch> = engine
            .questions
            .engine
            .start(over.prepared.plan)
            .try_collect()
            .await
            .unwrap();
        let mut rows = Vec::new();
        for batch in batches {
            assert_eq!(batch.schema(), over.prepared.schema);
            let times = batch.column(0).as_primitive::<TimestampMicrosecondType>();
            let participants = batch.column(5).as_primitive::<Int64Type>();
            for row in 0..batch.num_rows() {
                let number = |column: usize| {
                    let numbers = batch.column(column).as_primitive::<Float64Type>();
                    numbers.is_valid(row).then(|| numbers.value(row))
                };
                rows.push((
                    times.value(row),
                    [1, 2, 3, 4].map(number),
                    participants.value(row),
                ));
            }
        }
        rows
    }

    async fn asked(
        engine: &TestEngine<()>,
        each: Vec<Prepared>,
        order: Order,
        most_cells: u64,
    ) -> Result<Option<OverPeople>, QueryError> {
        let measure = AggregateMeasure::Values(ALL.to_vec());
        let questions = &engine.questions;
        questions.over_people(each, &measure, order, 2, most_cells).await
    }

    fn three_people() -> Vec<Prepared> {
        vec![
            of_one(&[
                (0, Some(1.0), Some(1.0)),
                (10, Some(2.0), Some(2.0)),
                (20, Some(3.0), None),
            ]),
            of_one(&[
                (10, Some(5.0), Some(5.0)),
                (20, Some(3.0), Some(3.0)),
                (40, Some(f64::MAX), Some(7.0)),
            ]),
            of_one(&[
                (10, Some(8.0), Some(8.0)),
                (30, Some(4.0), Some(4.0)),
                (40, Some(f64::MAX), Some(8.0)),
            ]),
        ]
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn rule_9_2h_periods_of_enough_people_are_merged() {
        let engine = TestEngine::start().await;
        for order in Order::ALL {
            let over = asked(&engine, three_people(), order, u64::MAX)
                .await
                .unwrap()
                .unwrap();
            // One has a part in 0 and in 30, and one a value in 20.
            assert_eq!(over.left_out, 3);
            let mut expected = vec![
                (10, [Some(15.0), Some(5.0), Some(2.0), Some(8.0)], 3),
                (40, [None, Some(7.5), Some(7.0), Some(8.0)], 2),
            ];
            if order == Order::Descending {
                expected.reverse();
            }
            assert_eq!(rows(&engine, over).await, expected);
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn rule_5_3_periods_are_reported_in_the_zone_in_which_they_are_asked_for() {
        let engine = TestEngine::start().await;
        for each in [three_people(), vec![of_one(&[])]] {
            let over = asked(&engine, each, Order::Ascending, u64::MAX).await;
            let schema = over.unwrap().unwrap().prepared.schema;
            let times = ArrowType::Timestamp(TimeUnit::Microsecond, Some(ZONE.into()));
            assert_eq!(schema.field(0).data_type(), &times);
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn without_people_there_is_no_answer_and_without_periods_an_empty_one() {
        let engine = TestEngine::start().await;
        let nobody = asked(&engine, Vec::new(), Order::Ascending, 1).await;
        assert!(nobody.unwrap().is_none());
        let nothing = asked(&engine, vec![of_one(&[])], Order::Ascending, 1).await;
        let nothing = nothing.unwrap().unwrap();
        assert_eq!(nothing.left_out, 0);
        assert_eq!(nothing.prepared.schema.fields().len(), 6);
        assert!(rows(&engine, nothing).await.is_empty());
    }

    /// Two rows of five columns are reported; what is left out does not count.
    #[tokio::test(flavor = "multi_thread")]
    async fn rule_1_2c_no_more_periods_are_reported_than_the_limit() {
        let engine = TestEngine::start().await;
        assert!(asked(&engine, three_people(), Order::Ascending, 10).await.is_ok());
        let refused = asked(&engine, three_people(), Order::Ascending, 9).await;
        let Some(QueryError::Plan(DataFusionError::External(excess))) = refused.err() else {
            panic!("it is an excess");
        };
        assert_eq!(excess.downcast_ref(), Some(&Excess::Cells { limit: 9 }));
    }

    /// What one person has cannot take more memory than all questions have.
    #[tokio::test(flavor = "multi_thread")]
    async fn periods_of_people_are_put_together_within_the_memory_of_questions() {
        let engine = TestEngine::start().await;
        let many: Vec<_> = (0..1_000_000).map(|time| (time, Some(1.0), Some(1.0))).collect();
        let each = vec![of_one(&[(0, Some(1.0), Some(1.0))]), of_one(&many)];
        let refused = asked(&engine, each, Order::Ascending, u64::MAX).await;
        let Some(QueryError::Plan(error)) = refused.err() else {
            panic!("neither memory nor disk suffices");
        };
        let is_scarce = match error.find_root() {
            DataFusionError::ResourcesExhausted(_) => true,
            DataFusionError::IoError(error) => error.kind() == ErrorKind::StorageFull,
            _ => false,
        };
        assert!(is_scarce, "{error}");
    }
}
