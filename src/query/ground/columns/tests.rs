//! Answers reduced to named columns.

use datafusion::arrow::datatypes::{DataType as ArrowType, Field, Schema};
use datafusion::physical_plan::empty::EmptyExec;

use super::*;
use crate::query::Prepared;
use crate::query::Scope;

/// An answer with a number, a text, and a source that has a name.
fn prepared() -> Prepared {
    let name = Field::new("name", ArrowType::Utf8, false);
    let schema = Arc::new(Schema::new(vec![
        Field::new("value", ArrowType::Float64, false),
        Field::new("unit", ArrowType::Utf8, true),
        Field::new("source", ArrowType::Struct(vec![name].into()), true),
    ]));
    Prepared {
        plan: Arc::new(EmptyExec::new(Arc::clone(&schema))),
        schema,
        states: Vec::new(),
        scope: Scope::default(),
    }
}

fn only(names: &[&str]) -> Result<Vec<(String, ArrowType, bool)>, String> {
    let columns = Columns::new(names.iter().map(ToString::to_string).collect());
    let columns = columns.map_err(|error| error.to_string())?;
    let prepared = prepared()
        .only(Some(&columns))
        .map_err(|error| error.to_string())?;
    let of = |schema: &Schema| -> Vec<(String, ArrowType, bool)> {
        let fields = schema.fields().iter();
        fields
            .map(|field| {
                (
                    field.name().clone(),
                    field.data_type().clone(),
                    field.is_nullable(),
                )
            })
            .collect()
    };
    let shown = of(&prepared.schema);
    let held = of(&prepared.plan.schema());
    assert_eq!(
        shown
            .iter()
            .map(|(name, held, _)| (name, held))
            .collect::<Vec<_>>(),
        held.iter()
            .map(|(name, held, _)| (name, held))
            .collect::<Vec<_>>()
    );
    Ok(shown)
}

#[test]
fn columns_come_in_the_order_in_which_they_are_named() {
    let text = |name: &str, nullable| (name.to_owned(), ArrowType::Utf8, nullable);
    let number = ("value".to_owned(), ArrowType::Float64, false);
    assert_eq!(only(&["unit", "value"]), Ok(vec![text("unit", true), number]));
    // A member of what may be missing may be missing.
    assert_eq!(only(&["source.name"]), Ok(vec![text("source.name", true)]));
}

#[test]
fn a_column_that_is_not_there_is_told_with_the_nearest() {
    let told = |names: &[&str]| only(names).unwrap_err();
    assert_eq!(told(&["valeu"]), "there is no column valeu; did you mean value?");
    assert_eq!(
        told(&["source.nmae"]),
        "there is no column source.nmae; did you mean name?"
    );
    assert_eq!(told(&["height"]), "there is no column height");
    assert_eq!(told(&["value.name"]), "column value has no members");
    assert_eq!(told(&["value", "value"]), "column value is named twice");
    assert_eq!(told(&[]), "no column is named");
}
