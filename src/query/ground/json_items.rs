//! The items of lists that are kept as JSON text, because a schema lets them be of several kinds.
//!
//! Knows arrays and expressions; knows nothing of where lists are stored or what is looked for in them.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, ListBuilder, StringArray, StringBuilder};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, FieldRef};
use datafusion::common::{DataFusionError, Result, internal_datafusion_err};
use datafusion::logical_expr::Expr;
use serde_json::value::RawValue;

use crate::model::stored_json::{self, Unreadable};

use super::computed::{Computed, computed};

/// The items of a column of lists in JSON, as a list of texts: a text is itself, a number or truth value what
/// stands in the JSON, and a structure, a list or null has none, but keeps its place.
pub(in crate::query) fn json_items(json: Expr) -> Expr {
    let column = Arc::new(Field::new(JsonItems::NAME, list_of_texts(), true));
    computed(JsonItems { column }, [json])
}

/// The type of a column of lists of texts.
pub(in crate::query) fn list_of_texts() -> ArrowType {
    ArrowType::List(Arc::new(Field::new("item", ArrowType::Utf8, true)))
}

/// `json_items(json)`.
#[derive(Debug, PartialEq, Eq, Hash)]
struct JsonItems {
    column: FieldRef,
}

impl Computed<1> for JsonItems {
    const NAME: &'static str = "json_items";

    fn column(&self) -> &FieldRef {
        &self.column
    }

    fn compute(&self, [json]: [ArrayRef; 1]) -> Result<ArrayRef> {
        let json = cast(&json, &ArrowType::Utf8)?;
        let texts: &StringArray = json.as_string();
        let mut lists = ListBuilder::new(StringBuilder::new());
        for text in texts {
            let items = text.map(items_of).transpose().map_err(damaged)?;
            let is_list = items.is_some();
            for item in items.into_iter().flatten() {
                lists
                    .values()
                    .append_option(text_of(item.get()).map_err(damaged)?);
            }
            lists.append(is_list);
        }
        Ok(Arc::new(lists.finish()))
    }
}

/// The items of a list. Another value, from before the schema said that there is a list, is one item.
fn items_of(json: &str) -> Result<Vec<Box<RawValue>>, Unreadable> {
    if json.trim_start().starts_with('[') {
        stored_json::read(json)
    } else {
        Ok(vec![stored_json::read(json)?])
    }
}

/// What an item is compared as.
fn text_of(item: &str) -> Result<Option<String>, Unreadable> {
    match item.as_bytes().first() {
        Some(b'"') => stored_json::read(item).map(Some),
        Some(b'{' | b'[' | b'n') | None => Ok(None),
        Some(_) => Ok(Some(item.to_owned())),
    }
}

fn damaged(error: Unreadable) -> DataFusionError {
    internal_datafusion_err!("a stored list is no JSON: {error}")
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::Array;

    use super::*;

    #[test]
    fn items_are_compared_as_texts_and_structures_not_at_all() {
        let column = Arc::new(Field::new(JsonItems::NAME, list_of_texts(), true));
        let json: StringArray = [
            Some(r#" [ "A", {"name": "B"} , "\u00e9\"", null ]"#),
            Some(r#"[1.50,true,["C"]]"#),
            Some("[]"),
            None,
            Some(r#""alone""#),
        ]
        .into_iter()
        .collect();
        let found = JsonItems { column }.compute([Arc::new(json)]).unwrap();
        assert_eq!(found.data_type(), &list_of_texts());
        let lists = found.as_list::<i32>();
        let items = |row: usize| -> Vec<Option<String>> {
            let items = lists.value(row);
            let texts = items.as_string::<i32>().iter();
            texts.map(|text| text.map(str::to_owned)).collect()
        };
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(items(0), [text("A"), None, text("é\""), None]);
        assert_eq!(items(1), [text("1.50"), text("true"), None]);
        assert_eq!((items(2), lists.is_null(2)), (Vec::new(), false));
        assert!(lists.is_null(3));
        assert_eq!(items(4), [text("alone")]);
    }

    #[test]
    fn a_damaged_list_is_an_error_that_does_not_quote_it() {
        let column = Arc::new(Field::new(JsonItems::NAME, list_of_texts(), true));
        let json: StringArray = [Some(r#"["secret"#)].into_iter().collect();
        let error = JsonItems { column }.compute([Arc::new(json)]).unwrap_err();
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}
