//! Ids as readable text.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, FixedSizeBinaryArray};
use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};

use crate::model::uuid_text;

/// `uuid_text(id)`: 16 bytes as the usual 36 characters.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::query) struct UuidText {
    signature: Signature,
}

impl UuidText {
    #[must_use]
    pub(in crate::query) fn new() -> Self {
        Self {
            signature: Signature::exact(vec![ArrowType::FixedSizeBinary(16)], Volatility::Immutable),
        }
    }
}

impl Default for UuidText {
    fn default() -> Self {
        Self::new()
    }
}

impl ScalarUDFImpl for UuidText {
    fn name(&self) -> &'static str {
        "uuid_text"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[ArrowType]) -> Result<ArrowType> {
        Ok(ArrowType::Utf8)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [argument] = arguments.args.as_slice() else {
            return internal_err!("uuid_text takes one argument");
        };
        let array = argument.to_array(arguments.number_rows)?;
        let Some(ids) = array.as_any().downcast_ref::<FixedSizeBinaryArray>() else {
            return internal_err!("uuid_text takes 16 bytes");
        };
        Ok(ColumnarValue::Array(Arc::new(uuid_text::texts(ids)?) as ArrayRef))
    }
}
