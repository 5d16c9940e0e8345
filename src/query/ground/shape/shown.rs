//! Columns that are shown in another form than they are stored: versions are stored as text and shown as
//! lists of numbers, and members without a column of their own are shown among the extras.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringBuilder, StructArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, FieldRef, Fields};
use datafusion::common::{Result, internal_datafusion_err, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};
use serde_json::{Map, Value};

use crate::model::columns::EXTRAS;
use crate::model::registry::json_text;
use crate::model::stored_json::{self, Unreadable};
use crate::query::ground::version_numbers::{list_of_numbers, number_lists};

/// `version_lists(object)`: the object with some of its texts as the numbers of the versions that they name.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct VersionLists {
    members: Vec<String>,
    signature: Signature,
    last: LastShown,
}

/// The last array and its result. Rows of a piece that one device measured share the same array again and
/// again. Not part of the function's identity.
#[derive(Debug, Default)]
struct LastShown(Mutex<Option<(ArrayRef, ArrayRef)>>);

impl PartialEq for LastShown {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Eq for LastShown {}

impl Hash for LastShown {
    fn hash<H: Hasher>(&self, _state: &mut H) {}
}

impl LastShown {
    /// The result of `make` for `stored`; computed again only for a different array.
    fn of(&self, stored: &ArrayRef, make: impl FnOnce() -> Result<ArrayRef>) -> Result<ArrayRef> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, shown)) = last.as_ref()
            && Arc::ptr_eq(known, stored)
        {
            return Ok(Arc::clone(shown));
        }
        let shown = make()?;
        *last = Some((Arc::clone(stored), Arc::clone(&shown)));
        Ok(shown)
    }
}

impl VersionLists {
    pub(super) fn new(members: &[String]) -> Self {
        Self {
            members: members.to_vec(),
            signature: Signature::any(1, Volatility::Immutable),
            last: LastShown::default(),
        }
    }

    fn shown(&self, stored: &ArrayRef) -> Result<ArrayRef> {
        let Some(stored) = stored.as_struct_opt() else {
            return internal_err!("version_lists takes an object");
        };
        let columns = stored.fields().iter().zip(stored.columns());
        let shown = columns.map(|(field, column)| {
            if self.members.contains(field.name()) {
                number_lists(column)
            } else {
                Ok(Arc::clone(column))
            }
        });
        let shown = shown.collect::<Result<Vec<ArrayRef>>>()?;
        let fields = self.fields(stored.fields());
        let nulls = stored.nulls().cloned();
        Ok(Arc::new(StructArray::try_new_with_length(
            fields,
            shown,
            nulls,
            stored.len(),
        )?))
    }

    fn fields(&self, stored: &Fields) -> Fields {
        let shown = stored.iter().map(|field| {
            if self.members.contains(field.name()) {
                Arc::new(Field::new(field.name(), list_of_numbers(), true))
            } else {
                Arc::clone(field)
            }
        });
        shown.collect()
    }
}

impl ScalarUDFImpl for VersionLists {
    fn name(&self) -> &'static str {
        "version_lists"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[ArrowType]) -> Result<ArrowType> {
        let [ArrowType::Struct(fields)] = arguments else {
            return internal_err!("version_lists takes an object");
        };
        Ok(ArrowType::Struct(self.fields(fields)))
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs) -> Result<FieldRef> {
        let [stored] = arguments.arg_fields else {
            return internal_err!("version_lists takes one argument");
        };
        let shown = self.return_type(std::slice::from_ref(stored.data_type()))?;
        let field = Field::new(stored.name(), shown, stored.is_nullable());
        Ok(Arc::new(field.with_metadata(stored.metadata().clone())))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [argument] = arguments.args.as_slice() else {
            return internal_err!("version_lists takes one argument");
        };
        let array = argument.to_array(arguments.number_rows)?;
        let shown = self.last.of(&array, || self.shown(&array))?;
        Ok(ColumnarValue::Array(shown))
    }
}

/// `extras_with(extras, list, …)`: the extras with non-null lists of texts added as members.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct ExtrasWith {
    names: Vec<String>,
    signature: Signature,
}

impl ExtrasWith {
    pub(super) fn new(names: &[String]) -> Self {
        Self {
            names: names.to_vec(),
            signature: Signature::any(1 + names.len(), Volatility::Immutable),
        }
    }
}

impl ScalarUDFImpl for ExtrasWith {
    fn name(&self) -> &'static str {
        "extras_with"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[ArrowType]) -> Result<ArrowType> {
        Ok(ArrowType::Utf8)
    }

    fn return_field_from_args(&self, _arguments: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(Arc::new(json_text(EXTRAS)))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = arguments.number_rows;
        let arrays = arguments
            .args
            .iter()
            .map(|argument| argument.to_array(rows))
            .collect::<Result<Vec<ArrayRef>>>()?;
        let Some((extras, lists)) = arrays.split_first() else {
            return internal_err!("extras_with takes extras and lists");
        };
        if lists.iter().all(|list| list.null_count() == rows) {
            return Ok(ColumnarValue::Array(Arc::clone(extras)));
        }
        let extras = extras
            .as_string_opt::<i32>()
            .ok_or_else(|| internal_datafusion_err!("extras are not text"))?;
        let mut written = StringBuilder::with_capacity(rows, 64 * rows);
        for row in 0..rows {
            let own = extras.is_valid(row).then(|| extras.value(row));
            let mut members = Vec::with_capacity(lists.len());
            for (name, list) in self.names.iter().zip(lists) {
                members.extend(items(list, row)?.map(|items| (name.as_str(), items)));
            }
            written.append_option(with_members(own, members)?);
        }
        Ok(ColumnarValue::Array(Arc::new(written.finish())))
    }
}

/// The texts of one list, as JSON.
fn items(list: &ArrayRef, row: usize) -> Result<Option<Value>> {
    let list = list
        .as_list_opt::<i32>()
        .ok_or_else(|| internal_datafusion_err!("extras_with takes lists"))?;
    if list.is_null(row) {
        return Ok(None);
    }
    let texts = cast(&list.value(row), &ArrowType::Utf8)?;
    let texts = texts.as_string::<i32>().iter();
    Ok(Some(Value::Array(
        texts.map(|text| text.map_or(Value::Null, Value::from)).collect(),
    )))
}

/// The object with more members appended; its own members take precedence.
fn with_members(own: Option<&str>, members: Vec<(&str, Value)>) -> Result<Option<String>> {
    if members.is_empty() {
        return Ok(own.map(str::to_owned));
    }
    let damaged = |error: Unreadable| internal_datafusion_err!("extras are no JSON: {error}");
    let mut text = own.map_or("{}", str::trim_end).to_owned();
    let known: Map<String, Value> = if members.iter().any(|(name, _)| text.contains(name)) {
        stored_json::read(&text).map_err(damaged)?
    } else {
        Map::new()
    };
    for (name, value) in members {
        if known.contains_key(name) {
            continue;
        }
        if !text.ends_with('}') {
            return internal_err!("extras are not an object");
        }
        text.pop();
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str(&Value::from(name).to_string());
        text.push(':');
        text.push_str(&value.to_string());
        text.push('}');
    }
    Ok(Some(text))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_stand_behind_the_extras_and_take_no_place() {
        let with = |own: Option<&str>, members: Vec<(&str, Value)>| with_members(own, members).unwrap();
        let tags = || vec![("tags", json!(["a\"b"])), ("sources", json!([]))];
        assert_eq!(with(None, vec![]), None);
        assert_eq!(with(Some("{\"n\":1.10}"), vec![]).unwrap(), "{\"n\":1.10}");
        assert_eq!(with(None, tags()).unwrap(), r#"{"tags":["a\"b"],"sources":[]}"#);
        assert_eq!(
            with(Some(r#"{"n":1.10}"#), tags()).unwrap(),
            r#"{"n":1.10,"tags":["a\"b"],"sources":[]}"#
        );
        assert_eq!(
            with(Some(r#"{"tags":"mine"}"#), tags()).unwrap(),
            r#"{"tags":"mine","sources":[]}"#
        );
    }
}
