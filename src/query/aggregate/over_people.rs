//! Merges the answers of several people into one, period by period, and drops periods in which one of the
//! numbers comes from so few people that somebody could be singled out.
//!
//! Knows answers by period; does not know people's names or whose answer is whose.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{
    Array as _, ArrayRef, AsArray as _, Float64Array, Int64Array, RecordBatch, TimestampMicrosecondArray,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType as ArrowType, Field, Float64Type, Schema, TimestampMicrosecondType};
use datafusion::datasource::memory::MemorySourceConfig;
use futures::StreamExt as _;

use crate::query::engine::deadline_passed;
use crate::query::statistic::Statistic;
use crate::query::{Order, Prepared, QueryError, Questions, Scope};

use super::spec::{AggregateMeasure, TIME};

/// The column with the number of people who have a part in a row.
const PARTICIPANTS: &str = "participants";

/// The merged aggregate of several people.
pub struct OverPeople {
    pub prepared: Prepared,
    /// The number of periods that were dropped because too few people have records in them.
    pub left_out: u64,
}

/// One period so far.
#[derive(Default)]
struct Together {
    /// The number of people who have a part in it.
    people: u64,
    columns: Vec<Merged>,
}

/// What is merged of one column. Not everybody with a part in the period has a value: of a sample that began
/// before it there is a share of the sum, and no minimum.
#[derive(Clone, Copy, Default)]
struct Merged {
    /// The number of people who have a value.
    people: u64,
    value: Option<f64>,
}

impl Merged {
    fn add(&mut self, value: f64, function: Option<Statistic>) {
        self.people += 1;
        self.value = Some(match (self.value, function) {
            (None, _) => value,
            (Some(merged), None | Some(Statistic::Sum | Statistic::Avg)) => merged + value,
            (Some(merged), Some(Statistic::Min)) => merged.min(value),
            (Some(merged), Some(Statistic::Max)) => merged.max(value),
        });
    }

    fn result(self, function: Option<Statistic>) -> Option<f64> {
        let number = match function {
            Some(Statistic::Avg) => self.value? / self.people as f64,
            _ => self.value?,
        };
        number.is_finite().then_some(number)
    }
}

impl Together {
    /// The number of people behind the number that fewest have a part in.
    fn fewest(&self) -> u64 {
        let columns = self.columns.iter().map(|column| column.people);
        columns.fold(self.people, u64::min)
    }
}

impl<Authority> Questions<Authority> {
    /// Merges `each` person's records by period: counts and sums are added, minimum and maximum are taken
    /// over all, and in averages each person counts once. Periods in which fewer than `least` people have
    /// a value of each column are dropped. `None` without people.
    pub async fn over_people(
        &self,
        each: Vec<Prepared>,
        measure: &AggregateMeasure,
        order: Order,
        least: u64,
    ) -> Result<Option<OverPeople>, QueryError> {
        let columns: Vec<Option<Statistic>> = match measure {
            AggregateMeasure::Count => vec![None],
            AggregateMeasure::Values(functions) => functions.iter().copied().map(Some).collect(),
        };
        let mut periods: BTreeMap<i64, Together> = BTreeMap::new();
        let mut states = Vec::new();
        let mut scope = Scope::default();
        let mut whole = None;
        for mut one in each {
            states.append(&mut one.states);
            scope = scope.and(std::mem::take(&mut one.scope));
            let plan = Arc::clone(&one.plan);
            let mut rows = Box::pin(self.engine.drive(self.engine.start(plan), deadline_passed));
            while let Some(batch) = rows.next().await.transpose()? {
                take(&mut periods, &batch, &columns)?;
            }
            whole.get_or_insert(one);
        }
        let Some(mut prepared) = whole else {
            return Ok(None);
        };
        let all = periods.len() as u64;
        periods.retain(|_, together| together.fewest() >= least);
        let left_out = all - periods.len() as u64;
        let batch = result_batch(&periods, &columns, order)?;
        prepared.schema = batch.schema();
        prepared.plan = MemorySourceConfig::try_new_exec(&[vec![batch]], Arc::clone(&prepared.schema), None)?;
        prepared.states = states;
        prepared.scope = scope;
        Ok(Some(OverPeople { prepared, left_out }))
    }
}

fn take(
    periods: &mut BTreeMap<i64, Together>,
    batch: &RecordBatch,
    columns: &[Option<Statistic>],
) -> Result<(), QueryError> {
    let times = batch.column(0).as_primitive::<TimestampMicrosecondType>();
    let mut values = Vec::with_capacity(columns.len());
    for column in batch.columns().iter().skip(1) {
        values.push(cast(column, &ArrowType::Float64).map_err(datafusion::common::DataFusionError::from)?);
    }
    for (row, time) in times.values().iter().enumerate() {
        let together = periods.entry(*time).or_default();
        together.people += 1;
        together.columns.resize(columns.len(), Merged::default());
        for ((merged, function), column) in together.columns.iter_mut().zip(columns).zip(&values) {
            let column = column.as_primitive::<Float64Type>();
            if column.is_valid(row) {
                merged.add(column.value(row), *function);
            }
        }
    }
    Ok(())
}

fn result_batch(
    periods: &BTreeMap<i64, Together>,
    columns: &[Option<Statistic>],
    order: Order,
) -> Result<RecordBatch, QueryError> {
    let mut rows: Vec<(i64, &Together)> = periods.iter().map(|(time, together)| (*time, together)).collect();
    if order == Order::Descending {
        rows.reverse();
    }
    let times = TimestampMicrosecondArray::from_iter_values(rows.iter().map(|(time, _)| *time));
    let times = times.with_timezone("UTC");
    let mut fields = vec![Field::new(TIME, times.data_type().clone(), false)];
    let mut arrays: Vec<ArrayRef> = vec![Arc::new(times)];
    for (place, function) in columns.iter().enumerate() {
        let cells = rows.iter().map(|(_, together)| {
            let merged = together.columns.get(place)?;
            merged.result(*function)
        });
        if let Some(function) = function {
            fields.push(Field::new(function.name(), ArrowType::Float64, true));
            arrays.push(Arc::new(cells.collect::<Float64Array>()));
        } else {
            fields.push(Field::new("count", ArrowType::Int64, true));
            let counts = cells.map(|cell| cell.map(|cell| cell as i64));
            arrays.push(Arc::new(counts.collect::<Int64Array>()));
        }
    }
    fields.push(Field::new(PARTICIPANTS, ArrowType::Int64, false));
    let people = rows
        .iter()
        .map(|(_, together)| i64::try_from(together.people).unwrap_or(i64::MAX));
    arrays.push(Arc::new(Int64Array::from_iter_values(people)));
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays);
    Ok(batch.map_err(datafusion::common::DataFusionError::from)?)
}
