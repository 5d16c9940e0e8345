//! Members of what is null, which are null too.
//!
//! The engine only marks as null what a `CASE` or `nullif` leaves out, and reads a member without a look at
//! what it is a member of. So members are read of objects and maps in which nothing is left where they are
//! null, and so are the columns that an object is unnested into. Knows plans, expressions and arrays only.

use std::sync::Arc;

use datafusion::arrow::array::{Array as _, ArrayRef, AsArray as _, BooleanArray, StructArray, UInt32Array};
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
const READING_FUNCTION: &str = "get_field";
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
        && call.func.name() == READING_FUNCTION
        && let Some(object) = call.args.first_mut()
        && !is_member(object)
    {
        *object = emptied.call(vec![std::mem::take(object)]);
        return Transformed::yes(expr);
    }
    Transformed::no(expr)
}

/// Whether it was read from something in which nothing is left where it is null, at any depth.
fn is_member(object: &Expr) -> bool {
    matches!(object, Expr::ScalarFunction(call) if call.func.name() == READING_FUNCTION)
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
        DataType::Map(..) if values.null_count() > 0 => {
            let known = (0..values.len()).map(|row| values.is_valid(row).then_some(row as u32));
            Ok(take(values, &known.collect::<UInt32Array>(), None)?)
        }
        _ => Ok(Arc::clone(values)),
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Int64Array, StringArray};
    use datafusion::arrow::datatypes::{Field, Fields};

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
}
