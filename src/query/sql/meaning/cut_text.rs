//! Texts that are cut to the length of the type that they are made into. Knows functions only.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::functions::unicode::left;
use datafusion::logical_expr::{ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDFImpl, Signature};

/// What `CAST(text AS varchar(n))` does once the text is one: `left(text, n)` under the name of the text, as
/// that of a conversion is.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::query::sql) struct CutText {
    signature: Signature,
}

impl CutText {
    pub(in crate::query::sql) const NAME: &'static str = "cut_text";

    pub(in crate::query::sql) fn new() -> Self {
        Self {
            signature: left().signature().clone(),
        }
    }
}

impl ScalarUDFImpl for CutText {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    /// A column keeps its name.
    fn schema_name(&self, given: &[Expr]) -> Result<String> {
        match given {
            [text, _] => Ok(text.schema_name().to_string()),
            _ => Ok(Self::NAME.to_owned()),
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, given: &[DataType]) -> Result<DataType> {
        left().return_type(given)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        left().invoke_with_args(arguments)
    }
}
