//! The units of an answer: named on its columns, and, where people tell a measure otherwise than it is kept,
//! its values in theirs.
//!
//! Knows columns and conversions; knows nothing of who prefers what.

use std::hash::Hash;
use std::sync::Arc;

use datafusion::arrow::array::{Array as _, ArrayRef, AsArray as _, Float64Array, ListArray};
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, FieldRef, Float64Type, Schema};
use datafusion::common::{Result, internal_err};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{CastExpr, Column, Literal};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};

use super::ground::computed::{Computed, computed};
use super::shape::constant;
use super::{Prepared, QueryError};
use crate::model::units::Conversion;

/// Field metadata: the unit of what a column holds.
const UNIT: &str = "unit";

/// The unit in which a measure is told.
#[derive(Clone, Debug, PartialEq)]
pub struct ToldIn {
    pub unit: String,
    /// How to get there from the unit in which it is kept, where that is another one.
    pub conversion: Option<Conversion>,
    /// Whether rows name it.
    pub beside: bool,
}

/// What a column holds of a measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    Values,
    /// Lengths on its scale: what lies between two values, or a sum of them.
    Differences,
}

impl Prepared {
    /// The same answer with `columns` of one measure told as `told` says. `named`: the column that names the
    /// unit; where the answer has one already, it is that.
    pub fn told_in(
        mut self,
        told: &ToldIn,
        columns: &[(&str, Holds)],
        named: &str,
    ) -> Result<Self, QueryError> {
        let held = self.plan.schema();
        let mut expressions = Vec::with_capacity(held.fields().len() + 1);
        let mut fields: Vec<FieldRef> = Vec::with_capacity(held.fields().len() + 1);
        let unit = Field::new(named, constant(&told.unit).data_type(), false);
        let mut is_named = false;
        for (place, (field, shown)) in held.fields().iter().zip(self.schema.fields()).enumerate() {
            let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new(field.name(), place));
            let holds = columns.iter().find(|(name, _)| *name == field.name());
            let (expr, shown) = match (holds, told.conversion) {
                (Some((_, holds)), conversion) => {
                    let mut metadata = shown.metadata().clone();
                    metadata.insert(UNIT.to_owned(), told.unit.clone());
                    let shown = shown.as_ref().clone().with_metadata(metadata);
                    match conversion {
                        Some(conversion) => {
                            let expr = converted(column, field, &held, (conversion, *holds))?;
                            let data_type = expr.data_type(&held)?;
                            (expr, Arc::new(shown.with_data_type(data_type)))
                        }
                        None => (column, Arc::new(shown)),
                    }
                }
                (None, Some(_)) if field.name() == named => {
                    let text = Arc::new(Literal::new(constant(&told.unit)));
                    (text as Arc<dyn PhysicalExpr>, Arc::new(unit.clone()))
                }
                (None, _) => (column, Arc::clone(shown)),
            };
            is_named |= field.name() == named;
            fields.push(shown);
            expressions.push(ProjectionExpr {
                expr,
                alias: field.name().clone(),
            });
        }
        if told.beside && !is_named {
            expressions.push(ProjectionExpr {
                expr: Arc::new(Literal::new(constant(&told.unit))),
                alias: named.to_owned(),
            });
            fields.push(Arc::new(unit));
        }
        if told.beside || told.conversion.is_some() {
            self.plan = Arc::new(ProjectionExec::try_new(expressions, Arc::clone(&self.plan))?);
        }
        let metadata = self.schema.metadata().clone();
        self.schema = Arc::new(Schema::new_with_metadata(fields, metadata));
        Ok(self)
    }
}

/// Columns of the product's own that are always in one unit.
const BY_NAME: [(&str, &str); 12] = [
    ("latitude_degrees", "deg"),
    ("longitude_degrees", "deg"),
    ("lat", "deg"),
    ("long", "deg"),
    ("course_heading_degrees", "deg"),
    ("course_heading_accuracy_degrees", "deg"),
    ("horizontal_accuracy_meters", "m"),
    ("vertical_accuracy_meters", "m"),
    ("altitude_meters", "m"),
    ("ellipsoidal_altitude_meters", "m"),
    ("distance_change_m", "m"),
    ("speed", "m/s"),
];
/// And those whose names end so are lengths of time.
const MILLISECONDS: &str = "_ms";

impl Prepared {
    /// The same answer, about sleep or places, with the units that its columns always have.
    #[must_use]
    pub fn with_units_by_name(mut self) -> Self {
        let named = |field: &FieldRef| {
            let name = field.name().as_str();
            let known = BY_NAME.iter().find(|(known, _)| *known == name);
            let unit = match known {
                Some((_, unit)) => *unit,
                None if name.ends_with(MILLISECONDS) => "ms",
                None => return Arc::clone(field),
            };
            let mut metadata = field.metadata().clone();
            metadata.insert(UNIT.to_owned(), unit.to_owned());
            Arc::new(field.as_ref().clone().with_metadata(metadata))
        };
        let fields: Vec<FieldRef> = self.schema.fields().iter().map(named).collect();
        let metadata = self.schema.metadata().clone();
        self.schema = Arc::new(Schema::new_with_metadata(fields, metadata));
        self
    }
}

fn converted(
    column: Arc<dyn PhysicalExpr>,
    field: &Field,
    held: &Schema,
    (conversion, holds): (Conversion, Holds),
) -> Result<Arc<dyn PhysicalExpr>> {
    let Conversion::Linear { times, over, plus } = conversion else {
        return Ok(column);
    };
    let plus = match holds {
        Holds::Values => plus,
        Holds::Differences => 0.0,
    };
    // Whole numbers of one unit are seldom such of another.
    let (column, field) = if field.data_type().is_integer() {
        let number = Arc::new(CastExpr::new(column, ArrowType::Float64, None));
        (
            number as Arc<dyn PhysicalExpr>,
            field.clone().with_data_type(ArrowType::Float64),
        )
    } else {
        (column, field.clone())
    };
    let converted = Converted {
        column: Arc::new(field),
        times: times.to_bits(),
        over: over.to_bits(),
        plus: plus.to_bits(),
    };
    computed(converted, [column], held)
}

/// `converted(value)`: a number, or each of a list, in another unit. Numbers are kept by their bits, so that
/// equal functions are equal.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Converted {
    column: FieldRef,
    times: u64,
    over: u64,
    plus: u64,
}

impl Converted {
    fn number(&self, value: f64) -> f64 {
        value * f64::from_bits(self.times) / f64::from_bits(self.over) + f64::from_bits(self.plus)
    }

    fn evaluate(&self, array: &ArrayRef) -> Result<ArrayRef> {
        if let Some(numbers) = array.as_primitive_opt::<Float64Type>() {
            let told: Float64Array = numbers.unary(|value| self.number(value));
            return Ok(Arc::new(told));
        }
        let Some(lists) = array.as_list_opt::<i32>() else {
            return internal_err!("converted takes numbers, or lists of them");
        };
        let ArrowType::List(item) = lists.data_type() else {
            return internal_err!("a list has items");
        };
        let told = self.evaluate(lists.values())?;
        Ok(Arc::new(ListArray::try_new(
            Arc::clone(item),
            lists.offsets().clone(),
            told,
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
        self.evaluate(&values)
    }
}
