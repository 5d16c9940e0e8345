//! Members of what is null, which are null too.
//!
//! The engine only marks as null what a `CASE` or `nullif` leaves out, and reads a member without a look at
//! what it is a member of. So members and entries are read of objects and maps in which nothing is left where
//! they are null, and so are the columns that an object is unnested into. Knows plans, expressions and arrays
//! only.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array as _, ArrayRef, AsArray as _, BooleanArray, MapArray, StructArray, UInt32Array,
};
use datafusion::arrow::compute::{nullif, take};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, Result};
use datafusion::logical_expr::{Expr, LogicalPlan, Projection, ScalarUDF};

use crate::query::sql::keep_names::rewrite_keeping_names;
use crate::query::sql::walking::change_steps;

use super::by_array::by_array;
use super::same_value::SameValue;

/// The engine's function that reads a member.
const MEMBER_OF: &str = "get_field";
/// The function that returns its argument without what is left in it where it is null.
const EMPTIED: &str = "emptied";

/// The plan in which members of what is null are null.
pub(in crate::query::sql) fn keep_null(plan: LogicalPlan) -> Result<LogicalPlan> {
    let emptied = SameValue::function(EMPTIED, |value, _| by_array(value, emptied));
    change_steps(plan, &mut |plan| {
        let read = rewrite_keeping_names(plan, |expr| Ok(of_emptied(expr, &emptied)))?;
        read.transform_data(|plan| unnested(plan, &emptied))
    })
}

fn of_emptied(mut expr: Expr, emptied: &ScalarUDF) -> Transformed<Expr> {
    if let Expr::ScalarFunction(call) = &mut expr
        && let Some(place) = place_of_read(call.func.name())
        && let Some(value) = call.args.get_mut(place)
        && !is_member(value)
    {
        *value = emptied.call(vec![std::mem::take(value)]);
        return Transformed::yes(expr);
    }
    Transformed::no(expr)
}

/// Which argument an engine's function reads without a look at whether it is null.
fn place_of_read(function: &str) -> Option<usize> {
    match function {
        MEMBER_OF | "map_extract" => Some(0),
        _ => None,
    }
}

/// Whether it was read from something in which nothing is left where it is null, at any depth.
fn is_member(value: &Expr) -> bool {
    matches!(value, Expr::ScalarFunction(call) if call.func.name() == MEMBER_OF)
}

fn unnested(plan: LogicalPlan, emptied: &ScalarUDF) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Unnest(mut unnest) = plan else {
        return Ok(Transformed::no(plan));
    };
    if unnest.struct_type_columns.is_empty() {
        return Ok(Transformed::no(LogicalPlan::Unnest(unnest)));
    }
    let columns = unnest.input.schema().iter().enumerate();
    let columns = columns.map(|(place, (table, field))| {
        let column = Expr::Column(Column::new(table.cloned(), field.name()));
        if unnest.struct_type_columns.contains(&place) {
            emptied
                .call(vec![column])
                .alias_qualified(table.cloned(), field.name())
        } else {
            column
        }
    });
    let columns = Projection::try_new(columns.collect(), Arc::clone(&unnest.input))?;
    unnest.input = Arc::new(LogicalPlan::Projection(columns));
    Ok(Transformed::yes(LogicalPlan::Unnest(unnest)))
}

/// The values, of which those that are null have neither members nor entries.
fn emptied(values: &ArrayRef) -> Result<ArrayRef> {
    match values.data_type() {
        DataType::Struct(fields) => {
            let structure = values.as_struct();
            let nulls = structure.nulls().filter(|nulls| nulls.null_count() > 0);
            let is_null = nulls.map(|nulls| BooleanArray::new(!nulls.inner(), None));
            let members = structure.columns().iter().map(|member| match &is_null {
                Some(is_null) => emptied(&nullif(member, is_null)?),
                None => emptied(member),
            });
            Ok(Arc::new(StructArray::try_new_with_length(
                fields.clone(),
                members.collect::<Result<_>>()?,
                structure.nulls().cloned(),
                structure.len(),
            )?))
        }
        DataType::Map(..) => emptied_maps(values),
        _ => Ok(Arc::clone(values)),
    }
}

fn emptied_maps(values: &ArrayRef) -> Result<ArrayRef> {
    let left = without_null(values, values.as_map().offsets().lengths())?;
    let maps = left.as_map();
    if !maps.values().data_type().is_nested() {
        return Ok(left);
    }
    let (field, offsets, entries, nulls, ordered) = maps.clone().into_parts();
    let entries: ArrayRef = Arc::new(entries);
    let entries = emptied(&entries)?.as_struct().clone();
    Ok(Arc::new(MapArray::try_new(
        field, offsets, entries, nulls, ordered,
    )?))
}

/// The values, of which each holds so many others, without those that null holds.
fn without_null(values: &ArrayRef, lengths: impl Iterator<Item = usize>) -> Result<ArrayRef> {
    let mut lengths = lengths.enumerate();
    if values.null_count() == 0 || !lengths.any(|(row, length)| length > 0 && values.is_null(row)) {
        return Ok(Arc::clone(values));
    }
    let known = (0..values.len()).map(|row| values.is_valid(row).then_some(row as u32));
    Ok(take(values, &known.collect::<UInt32Array>(), None)?)
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Int64Array, StringArray};
    use datafusion::arrow::buffer::OffsetBuffer;
    use datafusion::arrow::datatypes::{Field, Fields};
    use datafusion::functions_nested::expr_fn::{map_extract, map_keys};
    use datafusion::logical_expr::col;

    use super::*;

    fn structure(members: Vec<(&str, ArrayRef)>, known: &[bool]) -> ArrayRef {
        let field = |(name, values): &(&str, ArrayRef)| Field::new(*name, values.data_type().clone(), true);
        let fields: Fields = members.iter().map(field).collect();
        let members = members.into_iter().map(|(_, values)| values).collect();
        Arc::new(StructArray::new(fields, members, Some(known.to_vec().into())))
    }

    #[test]
    fn a_member_of_what_is_null_is_null_at_every_depth() {
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "c"]));
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
        let inner = structure(vec![("text", texts)], &[true, true, false]);
        let outer = structure(vec![("inner", inner), ("number", numbers)], &[false, true, true]);
        let left = emptied(&outer).unwrap();
        let known = |values: &ArrayRef| (0..3).map(|row| values.is_valid(row)).collect::<Vec<bool>>();
        assert_eq!(known(&left), [false, true, true]);
        let members = left.as_struct().columns();
        assert_eq!(known(&members[0]), [false, true, false]);
        assert_eq!(known(&members[1]), [false, true, true]);
        assert_eq!(known(members[0].as_struct().column(0)), [false, true, false]);
    }

    /// A map with one entry under `a` in each row.
    fn maps(values: ArrayRef, known: Vec<bool>) -> ArrayRef {
        let rows = values.len();
        let keys: ArrayRef = Arc::new(StringArray::from(vec!["a"; rows]));
        let fields = Fields::from(vec![
            Field::new("key", DataType::Utf8, false),
            Field::new("value", values.data_type().clone(), true),
        ]);
        let entries = StructArray::new(fields, vec![keys, values], None);
        let field = Arc::new(Field::new("entries", entries.data_type().clone(), false));
        let offsets = OffsetBuffer::from_lengths(vec![1; rows]);
        let known = Some(known.into());
        Arc::new(MapArray::new(field, offsets, entries, known, false))
    }

    #[test]
    fn nothing_is_left_in_maps_that_are_null_at_every_depth() {
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
        let inner = maps(numbers, vec![true, false, true]);
        let left = emptied(&maps(inner, vec![false, true, true])).unwrap();
        let left = left.as_map();
        assert_eq!(left.offsets().lengths().collect::<Vec<_>>(), [0, 1, 1]);
        let left = left.values().as_map();
        assert_eq!(left.offsets().lengths().collect::<Vec<_>>(), [0, 1]);
        let three: ArrayRef = Arc::new(Int64Array::from(vec![3]));
        assert_eq!(left.values(), &three);
    }

    #[test]
    fn what_does_not_look_at_null_reads_what_is_emptied() {
        let function = SameValue::function(EMPTIED, |value, _| by_array(value, emptied));
        let read = function.call(vec![col("m")]);
        for (given, expected) in [
            (map_extract(col("m"), col("k")), map_extract(read, col("k"))),
            (map_keys(col("m")), map_keys(col("m"))),
        ] {
            assert_eq!(of_emptied(given, &function).data, expected);
        }
    }
}
