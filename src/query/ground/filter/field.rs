//! Where a named field is stored and what it holds. Knows layouts; knows no condition.

use std::collections::HashSet;

use datafusion::arrow::datatypes::{DataType as ArrowType, Field};
use datafusion::common::{Column, ScalarValue};
use datafusion::functions::core::expr_ext::FieldAccessor;
use datafusion::logical_expr::{Expr, col, lit};

use crate::model::columns::{END, EXTRAS, ID, SOURCE, SOURCE_CLASS, START};
use crate::model::registry::{DataType, ReadFrom, is_json_text};

use super::errors::FilterError;

/// Columns that the store keeps for its own use: the source in short form. No record has fields of these
/// names.
const INTERNAL_COLUMNS: [&str; 2] = [SOURCE, SOURCE_CLASS];

/// A field of a record: the expression over stored columns that yields it, and what it holds.
#[derive(Clone, Debug)]
pub struct StoredField {
    pub expression: Expr,
    pub holds: ArrowType,
    /// The text is JSON of any shape.
    pub is_json: bool,
}

/// Finds the field called `name` among what records of `data_type` show and store. Dots reach into structs,
/// except where they are part of a field's own name.
#[must_use]
pub fn field_of(name: &str, data_type: &DataType) -> Option<StoredField> {
    prefixes(name).find_map(|(first, rest)| within(top_level(first, data_type)?, rest))
}

/// Refuses fields that only the owner may see, for questions of somebody else.
pub fn refuse_private<'a, 'b, Types: Iterator<Item = &'a DataType>>(
    fields: impl IntoIterator<Item = &'b String>,
    types: impl Fn() -> Types,
) -> Result<(), FilterError> {
    for field in fields {
        if let Some(data_type) = types().find(|data_type| data_type.layout.is_private(field)) {
            return Err(FilterError::Private {
                field: field.clone(),
                data_type: data_type.id.as_str().to_owned(),
            });
        }
    }
    Ok(())
}

/// The error for a field that none of several types has, which are read together: it names the type that was
/// asked for, and the fields that there are.
#[must_use]
pub fn unknown_field(field: &str, types: &[&DataType]) -> FilterError {
    let asked: Vec<&str> = match types {
        [data_type] => vec![data_type.id.as_str()],
        types => distinct(types.iter().map(|data_type| data_type.id.base())),
    };
    let columns = types.iter().flat_map(|data_type| &data_type.layout.read);
    FilterError::UnknownField {
        field: field.to_owned(),
        data_type: asked.join(", "),
        known: distinct(columns.map(|column| column.name.as_str())).join(", "),
    }
}

/// Each of the words where it is first.
fn distinct<'a>(words: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut seen = HashSet::new();
    words.filter(|word| seen.insert(*word)).collect()
}

/// The member called `rest` of a struct, or the field itself without `rest`.
fn within(field: StoredField, rest: Option<&str>) -> Option<StoredField> {
    let Some(rest) = rest else { return Some(field) };
    let ArrowType::Struct(members) = &field.holds else {
        return None;
    };
    prefixes(rest).find_map(|(first, rest)| {
        let member = members.iter().find(|member| member.name() == first)?;
        let found = StoredField {
            expression: field.expression.clone().field(first),
            holds: member.data_type().clone(),
            is_json: is_json_text(member),
        };
        within(found, rest)
    })
}

/// The whole name, then each split of it at a dot, the longest first part first.
fn prefixes(name: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    let parts = name
        .rmatch_indices('.')
        .filter_map(|(dot, _)| Some((name.get(..dot)?, name.get(dot + 1..))));
    std::iter::once((name, None)).chain(parts)
}

fn top_level(name: &str, data_type: &DataType) -> Option<StoredField> {
    let storage = &data_type.layout.storage;
    let shown = data_type
        .layout
        .read
        .iter()
        .find(|column| column.name == name)
        .map(|column| &column.from);
    let stored = match shown {
        Some(ReadFrom::Id) => ID,
        Some(ReadFrom::Start) => START,
        Some(ReadFrom::End) => END,
        Some(ReadFrom::Span) => START,
        Some(ReadFrom::Column(column) | ReadFrom::Versions { column, .. }) => column,
        Some(ReadFrom::Extras { .. }) => EXTRAS,
        Some(ReadFrom::Constant(text)) => {
            return Some(StoredField {
                expression: lit(text.clone()),
                holds: ArrowType::Utf8,
                is_json: false,
            });
        }
        Some(ReadFrom::Null) => {
            return Some(StoredField {
                expression: lit(ScalarValue::Utf8(None)),
                holds: ArrowType::Utf8,
                is_json: false,
            });
        }
        None => name,
    };
    if shown.is_none() && INTERNAL_COLUMNS.contains(&name) {
        return None;
    }
    let field: &Field = storage.field_with_name(stored).ok()?;
    Some(StoredField {
        expression: column(stored),
        holds: field.data_type().clone(),
        is_json: is_json_text(field),
    })
}

fn column(name: &str) -> Expr {
    col(Column::new_unqualified(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_5_4_a_dot_is_part_of_a_name_before_it_reaches_into_a_structure() {
        let all: Vec<_> = prefixes("a.b.c").collect();
        assert_eq!(all, [("a.b.c", None), ("a.b", Some("c")), ("a", Some("b.c"))]);
    }
}
