//! A column that holds the same text in every row.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::model::registry::dictionary_text;
use crate::store::constant::Constant;

/// The usual number of rows in a batch.
const USUAL: usize = 8192;

/// The same text in every row. A row costs four bytes as a dictionary, and the text's length as a string.
pub(in crate::query) fn constant_text(text: &str) -> Expr {
    let function = ConstantText {
        text: text.to_owned(),
        signature: Signature::nullary(Volatility::Immutable),
        rows: OnceLock::new(),
    };
    ScalarUDF::new_from_impl(function).call(Vec::new())
}

/// `constant_text()`: all batches get slices of one array. A literal is built for each batch anew, and its
/// keys checked.
#[derive(Debug)]
struct ConstantText {
    text: String,
    signature: Signature,
    rows: OnceLock<ArrayRef>,
}

impl PartialEq for ConstantText {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for ConstantText {}

impl Hash for ConstantText {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl ConstantText {
    fn made(&self, rows: usize) -> Result<ArrayRef> {
        Ok(Constant::Text(self.text.clone()).rows(&dictionary_text(), rows)?)
    }
}

impl ScalarUDFImpl for ConstantText {
    fn name(&self) -> &'static str {
        "constant_text"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[ArrowType]) -> Result<ArrowType> {
        Ok(dictionary_text())
    }

    fn return_field_from_args(&self, _arguments: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(Arc::new(Field::new(self.name(), dictionary_text(), false)))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = arguments.number_rows;
        if rows > USUAL {
            return Ok(ColumnarValue::Array(self.made(rows)?));
        }
        let all = if let Some(all) = self.rows.get() {
            all
        } else {
            let made = self.made(USUAL)?;
            self.rows.get_or_init(|| made)
        };
        Ok(ColumnarValue::Array(all.slice(0, rows)))
    }
}
