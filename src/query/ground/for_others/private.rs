//! Hides the columns that only the owner may see, rule 9.2d, and the names that tell who the owner is.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, ListArray, RecordBatch, StringArray, StructArray, new_null_array,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, FieldRef, Schema};
use datafusion::common::metadata::FieldMetadata;
use datafusion::common::{Result, ScalarValue, internal_datafusion_err};
use datafusion::logical_expr::Expr;
use datafusion::prelude::ident;

use crate::model::columns::EXTRAS;
use crate::model::json_object::{ObjectFields, ObjectText};
use crate::model::registry::{Layout, OwnersName, Undeclared};
use crate::model::stored_json::{self, Unreadable};
use crate::query::ground::computed::{Computed, computed};

use super::own_rows::without;

/// Members that identify the source, where a person's own type does not declare them.
const IDENTIFYING_MEMBERS: [&str; 7] = [
    "device",
    "device_properties",
    "source_id",
    "source_properties",
    "source_revision",
    "sources",
    "tags",
];

/// The rows without the `names` that tell whose they are: for readers who must not learn it.
pub(super) fn without_names(rows: &RecordBatch, names: &[OwnersName]) -> Result<RecordBatch> {
    let schema = rows.schema();
    let columns = schema.fields().iter().zip(rows.columns()).map(|(field, column)| {
        let mut names = names.iter().filter(|name| name.column == *field.name());
        names.try_fold(Arc::clone(column), |column, name| without_name(&column, name))
    });
    let columns = columns.collect::<Result<_>>()?;
    Ok(RecordBatch::try_new(Arc::clone(&schema), columns)?)
}

/// The column without a name: a value, objects, or lists of objects.
fn without_name(column: &ArrayRef, name: &OwnersName) -> Result<ArrayRef> {
    let Some(member) = &name.member else {
        return Ok(new_null_array(column.data_type(), column.len()));
    };
    if let (ArrowType::List(item), Some(lists)) = (column.data_type(), column.as_list_opt::<i32>()) {
        return Ok(Arc::new(ListArray::try_new(
            Arc::clone(item),
            lists.offsets().clone(),
            without_name(lists.values(), name)?,
            lists.nulls().cloned(),
        )?));
    }
    let Some(objects) = column.as_struct_opt() else {
        return Ok(Arc::clone(column));
    };
    let seen = |(field, values): (&FieldRef, &ArrayRef)| {
        if field.name() == member {
            without_owners(values, objects, name.where_true.as_deref())
        } else {
            Ok(Arc::clone(values))
        }
    };
    let members = objects.fields().iter().zip(objects.columns()).map(seen);
    Ok(Arc::new(StructArray::try_new(
        objects.fields().clone(),
        members.collect::<Result<_>>()?,
        objects.nulls().cloned(),
    )?))
}

/// The names in `objects` without those of the owner. Where nothing was read that tells them apart, all are
/// left out.
fn without_owners(names: &ArrayRef, objects: &StructArray, where_true: Option<&str>) -> Result<ArrayRef> {
    let told = where_true.and_then(|beside| objects.column_by_name(beside));
    match told.and_then(AsArray::as_boolean_opt) {
        None => Ok(new_null_array(names.data_type(), names.len())),
        Some(is_owner) if is_owner.true_count() == 0 => Ok(Arc::clone(names)),
        Some(is_owner) => without(names, is_owner.iter().map(|is_owner| is_owner == Some(true))),
    }
}

/// Whether a stored column has to be read for somebody other than the owner.
pub(in crate::query) fn is_needed(layout: &Layout, column: &str) -> bool {
    !layout.is_private(column) || is_own_words(layout, column)
}

/// Undeclared members that a person wrote into records of a type of their own.
fn is_own_words(layout: &Layout, column: &str) -> bool {
    column == EXTRAS && layout.undeclared == Undeclared::AsGiven
}

/// A stored column as others see it.
pub(in crate::query) fn public(layout: &Layout, column: &str, rows: &Schema) -> Result<Expr> {
    if !is_needed(layout, column) {
        let field = layout.storage.field_with_name(column)?;
        let nothing = ScalarValue::try_from(field.data_type())?;
        return Ok(Expr::Literal(nothing, Some(FieldMetadata::from(field))));
    }
    let stored = ident(column);
    let members = layout.private.iter().filter_map(|private| {
        private
            .strip_prefix(column)
            .and_then(|rest| rest.strip_prefix('.'))
    });
    let mut hidden: Vec<String> = members.map(str::to_owned).collect();
    if is_own_words(layout, column) {
        hidden.extend(IDENTIFYING_MEMBERS.map(str::to_owned));
    }
    if hidden.is_empty() {
        return Ok(stored);
    }
    let public = WithoutMembers {
        column: Arc::new(rows.field_with_name(column)?.clone().with_nullable(true)),
        hidden,
    };
    Ok(computed(public, [stored]))
}

/// `without_members(object)`: the struct with some members set to null, or the JSON object without them.
#[derive(Debug, PartialEq, Eq, Hash)]
struct WithoutMembers {
    column: FieldRef,
    hidden: Vec<String>,
}

impl WithoutMembers {
    fn hides(&self, member: &str) -> bool {
        self.hidden.iter().any(|hidden| hidden == member)
    }

    fn of_structure(&self, structure: &StructArray) -> Result<ArrayRef> {
        let seen = |(field, member): (&Arc<Field>, &ArrayRef)| {
            if self.hides(field.name()) {
                new_null_array(member.data_type(), member.len())
            } else {
                Arc::clone(member)
            }
        };
        let members = structure.fields().iter().zip(structure.columns()).map(seen);
        Ok(Arc::new(StructArray::try_new(
            structure.fields().clone(),
            members.collect(),
            structure.nulls().cloned(),
        )?))
    }

    /// The object without the hidden members; the others keep every character.
    fn of_text(&self, text: &str) -> Result<Option<String>> {
        let damaged = |error: Unreadable| internal_datafusion_err!("extras are no JSON: {error}");
        let ObjectFields(members) = stored_json::read(text).map_err(damaged)?;
        let mut seen = ObjectText::with_capacity(text.len());
        for member in members.iter().filter(|member| !self.hides(&member.name)) {
            seen.field(&member.name).push_str(member.raw);
        }
        Ok(seen.unless_empty())
    }
}

impl Computed<1> for WithoutMembers {
    const NAME: &'static str = "without_members";

    fn column(&self) -> &FieldRef {
        &self.column
    }

    fn compute(&self, [objects]: [ArrayRef; 1]) -> Result<ArrayRef> {
        if let Some(structure) = objects.as_struct_opt() {
            return self.of_structure(structure);
        }
        let texts = cast(&objects, &ArrowType::Utf8)?;
        let texts = texts.as_string::<i32>().iter();
        let seen = texts.map(|text| text.map_or(Ok(None), |text| self.of_text(text)));
        let seen: StringArray = seen.collect::<Result<_>>()?;
        Ok(cast(&seen, self.column.data_type())?)
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::BooleanArray;
    use datafusion::arrow::buffer::OffsetBuffer;
    use datafusion::arrow::datatypes::Fields;

    use super::*;

    /// Three people, of whom the second is the owner; of the third it is not known.
    fn invited(with_mark: bool) -> StructArray {
        let names: ArrayRef = Arc::new(StringArray::from(vec!["Grace", "Ada", "Edsger"]));
        let marks: ArrayRef = Arc::new(BooleanArray::from(vec![Some(false), Some(true), None]));
        let mut fields = vec![Field::new("name", ArrowType::Utf8, true)];
        let mut members = vec![names];
        if with_mark {
            fields.push(Field::new("is_owner", ArrowType::Boolean, true));
            members.push(marks);
        }
        StructArray::new(Fields::from(fields), members, None)
    }

    /// What is left of a column, by a name in it.
    fn left(column: ArrayRef, member: Option<&str>, where_true: Option<&str>) -> ArrayRef {
        let rows = RecordBatch::try_from_iter_with_nullable([("told", column, true)]).unwrap();
        let name = |column: &str| OwnersName {
            column: column.to_owned(),
            member: member.map(str::to_owned),
            where_true: where_true.map(str::to_owned),
        };
        let other = without_names(&rows, &[name("other")]).unwrap();
        assert_eq!(other, rows);
        let left = without_names(&rows, &[name("told")]).unwrap();
        Arc::clone(left.column(0))
    }

    fn names_of(people: &StructArray) -> Vec<Option<&str>> {
        people.column(0).as_string::<i32>().iter().collect()
    }

    #[test]
    fn names_that_tell_whose_rows_they_are_are_left_out_of_values_objects_and_lists() {
        let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("phone of Ada"), None]));
        assert_eq!(left(texts, None, None).null_count(), 2);

        let people: ArrayRef = Arc::new(invited(true));
        let all = left(Arc::clone(&people), Some("name"), None);
        assert_eq!(names_of(all.as_struct()), [None::<&str>; 3]);
        let owners = left(Arc::clone(&people), Some("name"), Some("is_owner"));
        assert_eq!(
            names_of(owners.as_struct()),
            [Some("Grace"), None, Some("Edsger")]
        );

        let item = Arc::new(Field::new("item", people.data_type().clone(), true));
        let places = OffsetBuffer::from_lengths([2, 0, 1]);
        let lists = left(
            Arc::new(ListArray::new(item, places.clone(), people, None)),
            Some("name"),
            Some("is_owner"),
        );
        assert_eq!(lists.as_list::<i32>().offsets(), &places);
        let people = lists.as_list::<i32>().values();
        assert_eq!(
            names_of(people.as_struct()),
            [Some("Grace"), None, Some("Edsger")]
        );
    }

    #[test]
    fn names_are_left_out_where_nothing_says_that_they_are_of_somebody_else() {
        let people = left(Arc::new(invited(false)), Some("name"), Some("is_owner"));
        assert_eq!(names_of(people.as_struct()), [None::<&str>; 3]);
    }

    fn seen(texts: &[Option<&str>]) -> Result<Vec<Option<String>>> {
        let hiding = WithoutMembers {
            column: Arc::new(Field::new("extras", ArrowType::Utf8, true)),
            hidden: vec!["tags".to_owned(), "device".to_owned()],
        };
        let texts: StringArray = texts.iter().copied().collect();
        let seen = hiding.compute([Arc::new(texts)])?;
        let texts = seen.as_string::<i32>().iter();
        Ok(texts.map(|text| text.map(str::to_owned)).collect())
    }

    #[test]
    fn rule_9_2d_members_that_others_see_keep_every_character() {
        let kept = [
            r#"{"m":12345678901234567890123,"n":1.10,"o":1E5}"#,
            r#"{"b":-0,"a":0.1000000000000000055511151231257827}"#,
            r#"{"m":{"tags":[1.50,"\u00e9"]},"n\"":null,"\u0008\u000c":1}"#,
        ];
        for text in kept {
            assert_eq!(seen(&[Some(text), None]).unwrap(), [Some(text.to_owned()), None]);
        }
        let some = seen(&[Some(r#"{"tags":["a"],"m":1.10,"d\u0065vice":2,"n":"x"}"#)]);
        assert_eq!(some.unwrap(), [Some(r#"{"m":1.10,"n":"x"}"#.to_owned())]);
        assert_eq!(
            seen(&[Some(r#"{"tags":["a"]}"#), Some("{}")]).unwrap(),
            [None::<String>, None]
        );
    }

    #[test]
    fn damaged_members_are_an_error_that_does_not_quote_them() {
        let error = seen(&[Some(r#"{"m":"secret"#)]).unwrap_err();
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}
