//! Members of what is null, which are null too, and its items, of which there are none.
//!
//! The engine only marks as null what a `CASE` or `nullif` leaves out, and reads a member without a look at
//! what it is a member of. So members, entries and items are read of objects, maps and lists in which nothing
//! is left where they are null, and so are the columns that an object is unnested into. Where the engine's
//! functions look at null themselves, they are given what there is. Knows plans, expressions and arrays only.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array as _, ArrayRef, AsArray as _, BooleanArray, GenericListArray, MapArray, OffsetSizeTrait,
    StructArray, UInt32Array,
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
        MEMBER_OF | "map_extract" | "array_append" | "flatten" => Some(0),
        "array_prepend" => Some(1),
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

/// The values, of which those that are null have neither members nor entries nor items, at any depth.
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
        DataType::List(_) => emptied_lists::<i32>(values),
        DataType::LargeList(_) => emptied_lists::<i64>(values),
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

fn emptied_lists<Offset: OffsetSizeTrait>(values: &ArrayRef) -> Result<ArrayRef> {
    let left = without_null(values, values.as_list::<Offset>().offsets().lengths())?;
    let lists = left.as_list::<Offset>();
    if !lists.values().data_type().is_nested() {
        return Ok(left);
    }
    let (field, offsets, items, nulls) = lists.clone().into_parts();
    let items = emptied(&items)?;
    Ok(Arc::new(GenericListArray::<Offset>::try_new(
        field, offsets, items, nulls,
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
    use datafusion::arrow::array::{Int64Array, ListArray, StringArray};
    use datafusion::arrow::buffer::OffsetBuffer;
    use datafusion::arrow::datatypes::{Field, Fields, Int64Type};
    use datafusion::functions_nested::concat::{array_append_udf, array_prepend_udf};
    use datafusion::functions_nested::expr_fn::{
        array_append, array_prepend, flatten, map_extract, map_keys,
    };
    use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, col};

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

    /// Lists of as many of the values as each has.
    fn lists(values: ArrayRef, lengths: &[usize], known: &[bool]) -> ArrayRef {
        let item = Arc::new(Field::new_list_field(values.data_type().clone(), true));
        let offsets = OffsetBuffer::from_lengths(lengths.iter().copied());
        let known = Some(known.to_vec().into());
        Arc::new(ListArray::new(item, offsets, values, known))
    }

    /// What is in each list, and whether it is null.
    fn items(lists: &ArrayRef) -> Vec<(Vec<i64>, bool)> {
        let lists = lists.as_list::<i32>();
        let rows = lists.offsets().windows(2).enumerate();
        let items = |from: i32, to: i32| {
            let items = lists.values().slice(from as usize, (to - from) as usize);
            items.as_primitive::<Int64Type>().values().to_vec()
        };
        rows.map(|(row, bounds)| (items(bounds[0], bounds[1]), lists.is_null(row)))
            .collect()
    }

    fn numbers(count: i64) -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(1..=count))
    }

    #[test]
    fn nothing_is_left_in_lists_that_are_null_at_every_depth() {
        let inner = lists(numbers(5), &[1, 1, 2, 1], &[true, false, false, true]);
        let nothing: (Vec<i64>, bool) = (vec![], true);
        let expected = [
            (vec![1], false),
            nothing.clone(),
            nothing.clone(),
            (vec![5], false),
        ];
        assert_eq!(items(&emptied(&inner).unwrap()), expected);
        let outer = lists(Arc::clone(&inner), &[2, 1, 1], &[true, true, false]);
        let outer = emptied(&outer).unwrap();
        let outer = outer.as_list::<i32>();
        assert_eq!(outer.offsets().lengths().collect::<Vec<_>>(), [2, 1, 0]);
        assert_eq!(items(outer.values()), expected[..3]);
        let last = emptied(&inner.slice(2, 2)).unwrap();
        assert_eq!(items(&last), expected[2..]);
        let member = structure(vec![("list", inner)], &[false, true, true, true]);
        let member = emptied(&member).unwrap();
        let members = [nothing.clone(), nothing.clone(), nothing, (vec![5], false)];
        assert_eq!(items(member.as_struct().column(0)), members);
    }

    /// What a function of the engine makes of columns.
    fn called(function: &ScalarUDF, columns: [ArrayRef; 2]) -> ArrayRef {
        let rows = columns[0].len();
        let list = DataType::new_list(DataType::Int64, true);
        let arguments = ScalarFunctionArgs {
            args: columns.map(ColumnarValue::Array).to_vec(),
            arg_fields: Vec::new(),
            number_rows: rows,
            return_field: Arc::new(Field::new("", list, true)),
            config_options: Arc::default(),
        };
        let result = function.invoke_with_args(arguments).unwrap();
        result.into_array(rows).unwrap()
    }

    #[test]
    fn the_engine_adds_to_nothing_where_a_list_is_null() {
        let left = emptied(&lists(numbers(3), &[1, 1, 1], &[true, false, true])).unwrap();
        let more = numbers(3);
        let appended = called(&array_append_udf(), [Arc::clone(&left), Arc::clone(&more)]);
        let expected = [(vec![1, 1], false), (vec![2], false), (vec![3, 3], false)];
        assert_eq!(items(&appended), expected);
        assert_eq!(items(&called(&array_prepend_udf(), [more, left])), expected);
    }

    #[test]
    fn what_does_not_look_at_null_reads_what_is_emptied() {
        let function = SameValue::function(EMPTIED, |value, _| by_array(value, emptied));
        let read = function.call(vec![col("m")]);
        let of = |m: &Expr| {
            [
                map_extract(m.clone(), col("k")),
                array_append(m.clone(), col("k")),
                array_prepend(col("k"), m.clone()),
                flatten(m.clone()),
            ]
        };
        for (given, expected) in of(&col("m")).into_iter().zip(of(&read)) {
            assert_eq!(of_emptied(given, &function).data, expected);
        }
        let looks = map_keys(col("m"));
        assert_eq!(of_emptied(looks.clone(), &function).data, looks);
    }
}
