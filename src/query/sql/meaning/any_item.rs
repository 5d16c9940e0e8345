//! Whether a value compares in some way with any item of an array, also where that is unknown.
//!
//! The engine says whether there is such an item. Where there is none, it is unknown beside an item that is
//! null, or of a value that is null, and false of an array that is empty. Knows arrays only.

use std::sync::Arc;

use datafusion::arrow::array::{Array as _, ArrayRef, AsArray as _, BooleanArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

/// `any_item(found, array, value)`: what the engine found, or that it is unknown.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::query::sql) struct AnyItem {
    signature: Signature,
}

impl AnyItem {
    pub(in crate::query::sql) const NAME: &'static str = "any_item";

    pub(in crate::query::sql) fn new() -> Self {
        Self {
            signature: Signature::any(3, Volatility::Immutable),
        }
    }
}

impl ScalarUDFImpl for AnyItem {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    /// The name of a column: that of the engine's own comparison.
    fn schema_name(&self, given: &[Expr]) -> Result<String> {
        let Some(found) = given.first() else {
            return plan_err!("{} takes what was found, an array and a value", Self::NAME);
        };
        Ok(found.schema_name().to_string())
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, given: &[DataType]) -> Result<DataType> {
        let [DataType::Boolean | DataType::Null, _, _] = given else {
            return plan_err!("{} takes what was found, an array and a value", Self::NAME);
        };
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [found, arrays, values] = arguments.args.as_slice() else {
            return exec_err!("{} takes what was found, an array and a value", Self::NAME);
        };
        let is_one = [found, arrays, values]
            .into_iter()
            .all(|given| matches!(given, ColumnarValue::Scalar(_)));
        let rows = if is_one { 1 } else { arguments.number_rows };
        let found = found.cast_to(&DataType::Boolean, None)?.into_array(rows)?;
        let found = found.as_boolean();
        // What is the same in all rows is looked at once.
        let held = once_or_by_row(arrays)?;
        let held: Vec<Items> = (0..held.len()).map(|row| Items::of(&held, row)).collect();
        let values = once_or_by_row(values)?;
        let nulls = values.logical_nulls();
        let is_null = |row: usize| {
            let row = if values.len() == 1 { 0 } else { row };
            nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
        };
        let known = (0..rows).map(|row| {
            let items = held.get(row).or_else(|| held.first());
            let is_found = found.is_valid(row).then(|| found.value(row));
            match items {
                None | Some(Items::Missing) => None,
                Some(Items::None) => Some(false),
                Some(_) if is_found == Some(true) => Some(true),
                Some(_) if is_null(row) => None,
                Some(Items::WithNull) => None,
                Some(Items::Known) => is_found,
            }
        });
        let known: BooleanArray = known.collect();
        Ok(if is_one {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&known, 0)?)
        } else {
            ColumnarValue::Array(Arc::new(known))
        })
    }
}

/// The value of each row, or the only one there is.
fn once_or_by_row(given: &ColumnarValue) -> Result<ArrayRef> {
    match given {
        ColumnarValue::Array(values) => Ok(Arc::clone(values)),
        ColumnarValue::Scalar(value) => value.to_array(),
    }
}

/// What an array holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Items {
    /// There is no array.
    Missing,
    None,
    WithNull,
    Known,
}

impl Items {
    fn of(arrays: &ArrayRef, row: usize) -> Self {
        let is_missing = arrays.data_type().is_null() || arrays.is_null(row);
        let items = if is_missing {
            return Self::Missing;
        } else if let Some(lists) = arrays.as_list_opt::<i32>() {
            lists.value(row)
        } else if let Some(lists) = arrays.as_list_opt::<i64>() {
            lists.value(row)
        } else if let Some(lists) = arrays.as_fixed_size_list_opt() {
            lists.value(row)
        } else {
            return Self::Known;
        };
        if items.is_empty() {
            Self::None
        } else if items.logical_null_count() > 0 {
            Self::WithNull
        } else {
            Self::Known
        }
    }
}
