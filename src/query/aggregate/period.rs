//! The function `period_start(start_time)`: the start of a record's period.
//!
//! The bins are computed beforehand; a row costs one comparison as long as rows arrive in order.

use std::hash::Hash;
use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, TimestampMicrosecondArray};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, TimeUnit, TimestampMicrosecondType};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

use crate::model::grid::Grid;
use crate::model::registry::timestamp;
use crate::model::time::Instant;
use crate::model::zone::Zone;

/// The start of the bin that a moment lies in.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct PeriodStart {
    grid: Grid,
    zone: Zone,
    signature: Signature,
}

impl PeriodStart {
    pub(super) fn new(grid: Grid, zone: Zone) -> Self {
        Self {
            grid,
            zone,
            signature: Signature::exact(vec![timestamp()], Volatility::Immutable),
        }
    }
}

impl ScalarUDFImpl for PeriodStart {
    fn name(&self) -> &'static str {
        "period_start"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Timestamp(
            TimeUnit::Microsecond,
            Some(self.zone.written().into()),
        ))
    }

    /// Every moment lies in a period. Rollups say so of their periods too, and an answer must have the same
    /// columns whichever of the two it is computed from: where nothing is stored there are no rollups.
    fn return_field_from_args(&self, arguments: ReturnFieldArgs) -> Result<FieldRef> {
        let is_nullable = arguments.arg_fields.iter().any(|field| field.is_nullable());
        let data_type = self.return_type(&[])?;
        Ok(Arc::new(Field::new(self.name(), data_type, is_nullable)))
    }

    /// A later moment never lies in an earlier bin, so the order of the input is kept.
    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        Ok(inputs
            .first()
            .map_or(SortProperties::Unordered, |input| input.sort_properties))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [argument] = arguments.args.as_slice() else {
            return internal_err!("period_start takes one argument");
        };
        let array = argument.to_array(arguments.number_rows)?;
        let Some(starts) = array.as_primitive_opt::<TimestampMicrosecondType>() else {
            return internal_err!("period_start takes microseconds");
        };
        let mut cursor = self.grid.cursor();
        let mut labels = Vec::with_capacity(starts.len());
        for start in starts.values() {
            let Some(bin) = cursor.find(Instant::from_micros(*start)) else {
                return internal_err!("a record begins outside of the periods");
            };
            labels.push(bin.start.micros());
        }
        let labels = TimestampMicrosecondArray::new(labels.into(), starts.nulls().cloned());
        Ok(ColumnarValue::Array(Arc::new(
            labels.with_timezone(self.zone.written()),
        )))
    }
}
