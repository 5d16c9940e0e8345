//! Functions that give back the one value that they are given: a query means the same with them, and is
//! computed in another way. Knows expressions and values only.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// Such a function. No two have one name.
#[derive(Debug)]
pub(super) struct SameValue {
    /// As plans show it.
    name: &'static str,
    signature: Signature,
    /// Gives back a value of so many rows.
    give: fn(&ColumnarValue, usize) -> Result<ColumnarValue>,
}

impl SameValue {
    pub(super) fn function(
        name: &'static str,
        give: fn(&ColumnarValue, usize) -> Result<ColumnarValue>,
    ) -> ScalarUDF {
        ScalarUDF::new_from_impl(Self {
            name,
            signature: Signature::any(1, Volatility::Immutable),
            give,
        })
    }
}

impl PartialEq for SameValue {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for SameValue {}

impl Hash for SameValue {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for SameValue {
    fn name(&self) -> &str {
        self.name
    }

    /// The name of a column: that of the value.
    fn schema_name(&self, given: &[Expr]) -> Result<String> {
        let [value] = given else {
            return internal_err!("{} takes one value", self.name);
        };
        Ok(value.schema_name().to_string())
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, given: &[DataType]) -> Result<DataType> {
        let data_type = given.first().cloned();
        data_type.map_or_else(|| internal_err!("{} takes a value", self.name), Ok)
    }

    fn return_field_from_args(&self, given: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let Some(field) = given.arg_fields.first() else {
            return internal_err!("{} takes a value", self.name);
        };
        Ok(Arc::new(field.as_ref().clone().with_name(self.name)))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [value] = arguments.args.as_slice() else {
            return internal_err!("{} takes one value", self.name);
        };
        (self.give)(value, arguments.number_rows)
    }
}
