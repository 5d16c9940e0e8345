//! Functions of moments that the engine would bring to nanoseconds, which reach from 1677 to 2262 only. Here
//! they stay in microseconds, so that they have a value in all years, or are refused where they have none.
//! Knows functions and types only.

use std::sync::Arc;

use datafusion::arrow::array::AsArray as _;
use datafusion::arrow::array::timezone::Tz;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float64Type, TimeUnit};
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::expr::Cast;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable as _, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};

use super::by_array::by_array;
use super::date_trunc::DateTrunc;
use super::local_times;
use crate::model::time::Instant;
use crate::query::sql::stand_in::{Change, StandIn};

const ZONE_AS_TEXT: &str = "AT TIME ZONE takes the name of a time zone as text, not as a column";

/// What a query calls instead of the engine's `function`, if that is another.
pub(in crate::query::sql) fn instead_of(function: &Arc<ScalarUDF>, now: Instant) -> Option<Arc<ScalarUDF>> {
    Some(Arc::new(match function.name() {
        "now" => ScalarUDF::new_from_impl(StandIn::new(function, Now(now.micros()))),
        "date_trunc" => ScalarUDF::new_from_impl(StandIn::new(function, DateTrunc)),
        "to_char" => ScalarUDF::new_from_impl(StandIn::new(function, ToChar)),
        "to_timestamp" => ScalarUDF::new_from_impl(StandIn::new(function, ToTimestamp)),
        _ => return None,
    }))
}

/// `now()`: the moment of the question, in microseconds.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Now(i64);

impl Change for Now {
    fn return_type(&self, _engine: &ScalarUDF, _given: &[DataType]) -> Result<DataType> {
        Ok(DataType::Timestamp(TimeUnit::Microsecond, None))
    }

    fn return_field(&self, engine: &ScalarUDF, _arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let moment = self.return_type(engine, &[])?;
        Ok(Arc::new(Field::new(engine.name(), moment, false)))
    }

    fn invoke(&self, _engine: &ScalarUDF, _arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let now = ScalarValue::TimestampMicrosecond(Some(self.0), None);
        Ok(ColumnarValue::Scalar(now))
    }
}

/// `to_char(time, format)`, which the engine writes in every unit, but takes nanoseconds for all of them.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ToChar;

impl Change for ToChar {
    const COERCES: bool = true;

    fn coerce(&self, engine: &ScalarUDF, given: &[DataType]) -> Result<Vec<DataType>> {
        if let [moments @ DataType::Timestamp(..), _] = given {
            return Ok(vec![moments.clone(), DataType::Utf8]);
        }
        let fields: Vec<FieldRef> = given
            .iter()
            .map(|data_type| Arc::new(Field::new("", data_type.clone(), true)))
            .collect();
        let taken = fields_with_udf(&fields, engine)?;
        Ok(taken.iter().map(|field| field.data_type().clone()).collect())
    }

    fn invoke(&self, engine: &ScalarUDF, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        engine.invoke_with_args(arguments)
    }
}

/// `to_timestamp(seconds)`, which the engine refuses for whole numbers that nanoseconds do not reach, but for
/// others is the last moment that they do.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ToTimestamp;

impl Change for ToTimestamp {
    fn invoke(&self, engine: &ScalarUDF, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if let Some(seconds) = arguments.args.first()
            && seconds.data_type().is_floating()
        {
            refuse_beyond_nanoseconds(seconds, arguments.number_rows)?;
        }
        engine.invoke_with_args(arguments)
    }
}

fn refuse_beyond_nanoseconds(seconds: &ColumnarValue, rows: usize) -> Result<()> {
    // The first power of two that they do not reach.
    const BEYOND: f64 = 9_223_372_036_854_775_808.0;
    let seconds = seconds.cast_to(&DataType::Float64, None)?.to_array(rows)?;
    let mut given = seconds.as_primitive::<Float64Type>().iter().flatten();
    let is_reached = |seconds: f64| (-BEYOND..BEYOND).contains(&(seconds * 1e9));
    match given.find(|seconds| !is_reached(*seconds)) {
        Some(seconds) => exec_err!(
            "{seconds} seconds are no time from 1677 to 2262, which is as far as nanoseconds reach, and \
             to_timestamp counts in them: leave such times out, or use to_timestamp_micros of 1e6 times as \
             many"
        ),
        None => Ok(()),
    }
}

/// `time AT TIME ZONE 'zone'`, which the engine plans as a cast to nanoseconds: a cast that keeps the unit of
/// moments, and gives microseconds to everything else. No cast does for [times without a zone](local_times).
#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::query::sql) struct AtTimeZone {
    signature: Signature,
}

impl AtTimeZone {
    pub(in crate::query::sql) const NAME: &'static str = "at_time_zone";

    pub(in crate::query::sql) fn new() -> Self {
        Self {
            signature: Signature::user_defined(Volatility::Immutable),
        }
    }
}

/// What `data_type` becomes in a zone.
fn in_zone(data_type: &DataType, zone: Option<&ScalarValue>) -> Result<DataType> {
    let Some(name) = zone.and_then(ScalarValue::try_as_str).flatten() else {
        return plan_err!("{ZONE_AS_TEXT}");
    };
    if name.parse::<Tz>().is_err() {
        return plan_err!("'{name}' is not a time zone");
    }
    let unit = match data_type {
        DataType::Timestamp(TimeUnit::Nanosecond, _) => TimeUnit::Nanosecond,
        _ => TimeUnit::Microsecond,
    };
    Ok(DataType::Timestamp(unit, Some(name.into())))
}

impl ScalarUDFImpl for AtTimeZone {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    /// A column keeps its name.
    fn schema_name(&self, given: &[Expr]) -> Result<String> {
        match given {
            [moment, _] => Ok(moment.schema_name().to_string()),
            _ => Ok(Self::NAME.to_owned()),
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        let [moment, _] = given else {
            return plan_err!("'{}' takes a time and a time zone", Self::NAME);
        };
        Ok(vec![moment.clone(), DataType::Utf8])
    }

    fn return_type(&self, _given: &[DataType]) -> Result<DataType> {
        plan_err!("{ZONE_AS_TEXT}")
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let [moment, _] = arguments.arg_fields else {
            return plan_err!("'{}' takes a time and a time zone", Self::NAME);
        };
        let zone = arguments.scalar_arguments.get(1).copied().flatten();
        let data_type = in_zone(moment.data_type(), zone)?;
        Ok(Arc::new(Field::new(self.name(), data_type, true)))
    }

    fn simplify(&self, given: Vec<Expr>, context: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let [moment, Expr::Literal(zone, _)] = given.as_slice() else {
            return Ok(ExprSimplifyResult::Original(given));
        };
        let given_as = moment.get_type(context.schema())?;
        let data_type = in_zone(&given_as, Some(zone))?;
        if local_times::are_local(&given_as) {
            return Ok(ExprSimplifyResult::Original(given));
        }
        let cast = Expr::Cast(Cast::new(Box::new(moment.clone()), data_type));
        Ok(ExprSimplifyResult::Simplified(cast))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [moments, _] = arguments.args.as_slice() else {
            return plan_err!("'{}' takes a time and a time zone", Self::NAME);
        };
        let data_type = arguments.return_field.data_type();
        let (DataType::Timestamp(_, Some(zone)), true) =
            (data_type, local_times::are_local(&moments.data_type()))
        else {
            return moments.cast_to(data_type, None);
        };
        by_array(moments, |times| local_times::moments(times, zone))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_of_seconds_are_refused_where_whole_ones_are() {
        let fits = |seconds: Option<f64>| {
            let seconds = ColumnarValue::Scalar(ScalarValue::Float64(seconds));
            refuse_beyond_nanoseconds(&seconds, 1).is_ok()
        };
        for seconds in [0.5, -1.5, 9_223_372_036.0, -9_223_372_036.0] {
            assert!(fits(Some(seconds)), "{seconds}");
        }
        for seconds in [1e10, -1e10, 9_223_372_037.0, 1e300, f64::NAN, f64::INFINITY] {
            assert!(!fits(Some(seconds)), "{seconds}");
        }
        assert!(fits(None));
    }
}
