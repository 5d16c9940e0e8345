//! Rows whose published shape has no null for values that the sent record may lack.
//!
//! Missing values are filled with neutral ones: an empty object, an empty list, an empty text, `false`. A
//! workout without a duration lasted from its start to its end.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float64Array, ListArray, RecordBatch, Scalar, StringArray,
    new_empty_array,
};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::kernels::zip::zip;
use datafusion::arrow::compute::{cast, is_not_null};
use datafusion::arrow::datatypes::{DataType as ArrowType, Float64Type, SchemaRef, TimestampMicrosecondType};
use datafusion::common::{DataFusionError, Result, internal_err};
use datafusion::physical_plan::PlanProperties;
use futures::StreamExt as _;
use futures::stream::BoxStream;

use crate::query::operator::{Input, Operator, Plan, Step, Task, one_partition, only};
use crate::query::{Prepared, QueryError, Questions};

use super::pinned::Granted;
use super::raw::RawSpec;

/// The value of a column where a record has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Otherwise {
    /// This text, or this JSON in a column of JSON.
    Text(&'static str),
    False,
    NoItems,
    /// Seconds from `start_date` to `end_date`.
    Length,
}

impl<Authority> Questions<Authority> {
    /// The rows that the permit makes visible, with `defaults` for missing values.
    pub async fn completed(
        &self,
        granted: &Granted<Authority>,
        spec: &RawSpec,
        defaults: &'static [(&'static str, Otherwise)],
    ) -> Result<Prepared, QueryError> {
        let prepared = self.raw(granted, spec).await?;
        let step = Completed {
            schema: Arc::clone(&prepared.schema),
            defaults,
        };
        let plan: Plan = Arc::new(Operator::over(step, vec![prepared.plan]));
        Ok(Prepared { plan, ..prepared })
    }
}

#[derive(Clone, Debug)]
struct Completed {
    schema: SchemaRef,
    defaults: &'static [(&'static str, Otherwise)],
}

impl Step for Completed {
    const NAME: &'static str = "CompletedExec";
    const KEEPS_ORDER: bool = true;

    fn gives(&self, _inputs: &[Plan]) -> PlanProperties {
        one_partition(Arc::clone(&self.schema), None)
    }

    fn run(self, inputs: Vec<Input>, _task: &Task) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let rows = only(inputs)?.open()?;
        Ok(rows.map(move |batch| self.complete(&batch?)).boxed())
    }
}

impl Completed {
    fn complete(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let mut columns = batch.columns().to_vec();
        for (name, otherwise) in self.defaults {
            // A column that nobody asks for is not there.
            if let Some((index, _)) = self.schema.column_with_name(name)
                && let Some(column) = columns.get_mut(index)
                && column.null_count() > 0
            {
                *column = filled(column, *otherwise, batch)?;
            }
        }
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }
}

fn filled(column: &ArrayRef, otherwise: Otherwise, batch: &RecordBatch) -> Result<ArrayRef> {
    let given = is_not_null(column)?;
    let one: ArrayRef = match otherwise {
        Otherwise::Text(text) => cast(&StringArray::from(vec![text]), column.data_type())?,
        Otherwise::False => Arc::new(BooleanArray::from(vec![false])),
        Otherwise::NoItems => no_items(column.data_type())?,
        Otherwise::Length => return Ok(Arc::new(lengths(column, batch)?)),
    };
    Ok(zip(&given, column, &Scalar::new(one))?)
}

fn no_items(list: &ArrowType) -> Result<ArrayRef> {
    let ArrowType::List(item) = list else {
        return internal_err!("{list} is not a list");
    };
    Ok(Arc::new(ListArray::try_new(
        Arc::clone(item),
        OffsetBuffer::from_lengths([0]),
        new_empty_array(item.data_type()),
        None,
    )?))
}

fn lengths(column: &ArrayRef, batch: &RecordBatch) -> Result<Float64Array> {
    let times = |name: &str| {
        batch
            .column_by_name(name)
            .and_then(|column| column.as_primitive_opt::<TimestampMicrosecondType>())
            .ok_or_else(|| DataFusionError::Internal(format!("{name} holds no times")))
    };
    let (starts, ends) = (times("start_date")?, times("end_date")?);
    let Some(given) = column.as_primitive_opt::<Float64Type>() else {
        return internal_err!("a duration is not a number");
    };
    Ok((0..given.len())
        .map(|row| {
            if given.is_valid(row) {
                given.value(row)
            } else {
                ends.value(row).saturating_sub(starts.value(row)) as f64 / 1e6
            }
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::new_null_array;
    use datafusion::arrow::datatypes::{Field, Schema};

    use super::*;

    #[test]
    fn what_is_missing_becomes_empty_and_what_is_given_stays() {
        let batch = RecordBatch::new_empty(Arc::new(Schema::empty()));
        let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("{\"a\":1}"), None]));
        let full = filled(&texts, Otherwise::Text("{}"), &batch).unwrap();
        assert_eq!(
            full.as_string::<i32>().iter().flatten().collect::<Vec<_>>(),
            ["{\"a\":1}", "{}"]
        );
        let list = ArrowType::List(Arc::new(Field::new("item", ArrowType::Int64, true)));
        let full = filled(&new_null_array(&list, 2), Otherwise::NoItems, &batch).unwrap();
        assert!(full.null_count() == 0 && full.as_list::<i32>().value_length(1) == 0);
    }
}
