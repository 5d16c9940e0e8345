//! The units of an answer: names them on its columns and, where people prefer another unit than the stored
//! one, converts the values.
//!
//! Knows columns and conversions; knows nothing of who prefers what.

use std::collections::BTreeMap;
use std::hash::Hash;
use std::sync::Arc;

use datafusion::arrow::array::{Array as _, ArrayRef, AsArray as _, Float64Array, ListArray, StructArray};
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, FieldRef, Float64Type, Schema};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::{Expr, cast};
use datafusion::prelude::ident;

use super::ground::computed::{Computed, computed, projected};
use super::ground::constant_text::constant_text;
use super::{Prepared, QueryError};
use crate::model::columns::UNIT;
use crate::model::registry::{dictionary_text, unit_of};
use crate::model::units::{Conversion, scaled};

/// The unit in which a measure is shown.
#[derive(Clone, Debug, PartialEq)]
pub struct DisplayUnit {
    pub unit: String,
    /// The conversion from the stored unit, if it is another one.
    pub conversion: Option<Conversion>,
    /// Whether rows name the unit in a column.
    pub beside: bool,
}

/// What a column contains of a measure.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum UnitRole {
    Values,
    /// Lengths on its scale: differences between two values, or sums.
    Differences,
    /// Structs in which these members contain some of it.
    Members(Vec<(String, Self)>),
}

impl Prepared {
    /// This answer with `columns` of one measure in the unit `unit`. `named`: the column that names the
    /// unit; if the answer already has it, it is used.
    pub fn in_unit(
        mut self,
        unit: &DisplayUnit,
        columns: &[(&str, UnitRole)],
        named: &str,
    ) -> Result<Self, QueryError> {
        let held = self.plan.schema();
        let mut made: Vec<(Expr, String)> = Vec::with_capacity(held.fields().len() + 1);
        let mut fields: Vec<FieldRef> = Vec::with_capacity(held.fields().len() + 1);
        let unit_column = || (constant_text(&unit.unit), named.to_owned());
        let unit_field = Field::new(named, dictionary_text(), false);
        for (field, shown) in held.fields().iter().zip(self.schema.fields()) {
            let role = columns.iter().find(|(name, _)| *name == field.name());
            let (column, shown) = match (role, unit.conversion) {
                (Some((_, role)), conversion) => {
                    let mut metadata = shown.metadata().clone();
                    metadata.insert(UNIT.to_owned(), unit.unit.clone());
                    let shown = shown.as_ref().clone().with_metadata(metadata);
                    match conversion {
                        Some(conversion) => {
                            let (expr, data_type) = converted(field, conversion, role);
                            let column = (expr, field.name().clone());
                            (column, Arc::new(shown.with_data_type(data_type)))
                        }
                        None => ((ident(field.name()), field.name().clone()), Arc::new(shown)),
                    }
                }
                (None, Some(_)) if field.name() == named => (unit_column(), Arc::new(unit_field.clone())),
                (None, _) => ((ident(field.name()), field.name().clone()), Arc::clone(shown)),
            };
            fields.push(shown);
            made.push(column);
        }
        if unit.beside && !made.iter().any(|(_, name)| name == named) {
            made.push(unit_column());
            fields.push(Arc::new(unit_field));
        }
        if unit.beside || unit.conversion.is_some() {
            self.plan = projected(self.plan, made)?;
        }
        let metadata = self.schema.metadata().clone();
        self.schema = Arc::new(Schema::new_with_metadata(fields, metadata));
        Ok(self)
    }
}

impl Prepared {
    /// This answer, about sleep or places, with the fixed units of its columns.
    #[must_use]
    pub fn with_units_by_name(self) -> Self {
        self.with_units_of(|name| unit_of(name).map(str::to_owned))
    }

    /// This answer, of records, with the units of their columns.
    #[must_use]
    pub fn with_units(self, units: &BTreeMap<String, String>) -> Self {
        self.with_units_of(|name| units.get(name).cloned())
    }

    /// Columns that already have a unit keep it.
    fn with_units_of(mut self, unit_of: impl Fn(&str) -> Option<String>) -> Self {
        let named = |field: &FieldRef| {
            let unit = match unit_of(field.name()) {
                Some(unit) if !field.metadata().contains_key(UNIT) => unit,
                _ => return Arc::clone(field),
            };
            let mut metadata = field.metadata().clone();
            metadata.insert(UNIT.to_owned(), unit);
            Arc::new(field.as_ref().clone().with_metadata(metadata))
        };
        let fields: Vec<FieldRef> = self.schema.fields().iter().map(named).collect();
        let metadata = self.schema.metadata().clone();
        self.schema = Arc::new(Schema::new_with_metadata(fields, metadata));
        self
    }
}

/// A column in another unit, and its new type.
fn converted(field: &Field, conversion: Conversion, role: &UnitRole) -> (Expr, ArrowType) {
    let stored = ident(field.name());
    let Conversion::Linear { times, over, plus } = conversion else {
        return (stored, field.data_type().clone());
    };
    // A whole number in one unit is seldom whole in another.
    let (stored, field) = if field.data_type().is_integer() {
        let number = field.clone().with_data_type(ArrowType::Float64);
        (cast(stored, ArrowType::Float64), number)
    } else {
        (stored, field.clone())
    };
    let data_type = field.data_type().clone();
    let converted = Converted {
        column: Arc::new(field),
        times: times.to_bits(),
        over: over.to_bits(),
        plus: plus.to_bits(),
        role: role.clone(),
    };
    (computed(converted, [stored]), data_type)
}

/// `converted(value)`: a number, each number of a list, or members of structs, in another unit. Factors are
/// stored as bits, so that equal functions compare as equal.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Converted {
    column: FieldRef,
    times: u64,
    over: u64,
    plus: u64,
    role: UnitRole,
}

impl Converted {
    fn evaluate(&self, array: &ArrayRef, role: &UnitRole) -> Result<ArrayRef> {
        if let Some(numbers) = array.as_primitive_opt::<Float64Type>() {
            let (times, over) = (f64::from_bits(self.times), f64::from_bits(self.over));
            let plus = match role {
                UnitRole::Differences => 0.0,
                UnitRole::Values | UnitRole::Members(_) => f64::from_bits(self.plus),
            };
            let converted: Float64Array = numbers.unary(|value| scaled(value, times, over, plus));
            return Ok(Arc::new(converted));
        }
        if let (Some(structures), UnitRole::Members(members)) = (array.as_struct_opt(), role) {
            let fields = structures.fields().iter().zip(structures.columns());
            let converted = fields.map(|(field, column)| {
                let known = members.iter().find(|(name, _)| name == field.name());
                known.map_or_else(|| Ok(Arc::clone(column)), |(_, role)| self.evaluate(column, role))
            });
            return Ok(Arc::new(StructArray::try_new(
                structures.fields().clone(),
                converted.collect::<Result<Vec<_>>>()?,
                structures.nulls().cloned(),
            )?));
        }
        let Some(lists) = array.as_list_opt::<i32>() else {
            return internal_err!("converted takes numbers, or lists of them");
        };
        let ArrowType::List(item) = lists.data_type() else {
            return internal_err!("a list has items");
        };
        let converted = self.evaluate(lists.values(), role)?;
        Ok(Arc::new(ListArray::try_new(
            Arc::clone(item),
            lists.offsets().clone(),
            converted,
            lists.nulls().cloned(),
        )?))
    }
}

impl Computed<1> for Converted {
    const NAME: &'static str = "converted";

    fn column(&self) -> &FieldRef {
        &self.column
    }

    fn compute(&self, [values]: [ArrayRef; 1]) -> Result<ArrayRef> {
        self.evaluate(&values, &self.role)
    }
}
