//! Stays in the shape of visits.

use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, FixedSizeBinaryBuilder, Float64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use uuid::Uuid;

use crate::model::registry::timestamp;
use crate::model::time::{Instant, TimeRange};
use crate::query::shape::IdForm;

use super::super::fixes::{ACCURACY, LATITUDE, LONGITUDE, missing};
use super::search::Stay;

/// Which stays are shown, and how.
#[derive(Clone, Debug)]
pub(super) struct StayRows {
    pub(super) schema: SchemaRef,
    pub(super) asked: Arc<[TimeRange]>,
    pub(super) ids: IdForm,
}

impl StayRows {
    /// Those of the stays that share time with what was asked for.
    pub(super) fn of(&self, stays: &[Stay]) -> Result<RecordBatch> {
        let selected = |stay: &&Stay| {
            let (from, to) = (Instant::from_micros(stay.from), Instant::from_micros(stay.to));
            self.asked.iter().any(|range| range.selects(from, to))
        };
        let stays: Vec<&Stay> = stays.iter().filter(selected).collect();
        let numbers = |number: fn(&Stay) -> Option<f64>| -> ArrayRef {
            let numbers = stays.iter().map(|stay| number(stay));
            Arc::new(numbers.collect::<Float64Array>())
        };
        let moments = |moment: fn(&Stay) -> i64| -> ArrayRef {
            let moments = stays.iter().map(|stay| moment(stay));
            Arc::new(TimestampMicrosecondArray::from_iter_values(moments).with_data_type(timestamp()))
        };
        let columns = self
            .schema
            .fields()
            .iter()
            .map(|field| match field.name().as_str() {
                "uuid" => self.ids(&stays),
                LATITUDE => Ok(numbers(|stay| Some(stay.position.latitude))),
                LONGITUDE => Ok(numbers(|stay| Some(stay.position.longitude))),
                ACCURACY => Ok(numbers(|stay| stay.accuracy)),
                "arrival_date" => Ok(moments(|stay| stay.from)),
                "departure_date" => Ok(moments(|stay| stay.to)),
                other => Err(missing(other)),
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }

    fn ids(&self, stays: &[&Stay]) -> Result<ArrayRef> {
        let ids = stays.iter().map(|stay| Uuid::new_v5(&stay.first, b"stay"));
        Ok(match self.ids {
            IdForm::Text => Arc::new(StringArray::from_iter_values(ids.map(|id| id.to_string()))),
            IdForm::Bytes => {
                let mut bytes = FixedSizeBinaryBuilder::with_capacity(stays.len(), 16);
                for id in ids {
                    bytes.append_value(id.as_bytes())?;
                }
                Arc::new(bytes.finish())
            }
        })
    }
}
