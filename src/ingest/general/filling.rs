//! Turns fields into cells: the value in the type's unit, and each field in the form of its column. What
//! a column cannot hold is kept in extras.

use arrow::datatypes::{DataType as ColumnType, Field};
use serde_json::Value;

use super::reading::Reading;
use crate::ingest::cells::{self, Filled, Misfit};
use crate::ingest::columns::Cell;
use crate::ingest::extras::NOT_PRESENT;
use crate::ingest::field_plan::Role;
use crate::ingest::original::{Original, SaidOriginal};
use crate::model::columns::EXTRAS;
use crate::model::excerpt::beginning;
use crate::model::faults::Fault;
use crate::model::units::Conversion;

/// A value whose cell is determined by its text alone.
#[derive(Debug)]
pub(in crate::ingest) struct Repeatable<'a> {
    pub column: usize,
    pub raw: &'a str,
    /// What the column cannot hold of it, as JSON.
    pub rest: Option<String>,
}

impl<'a> Reading<'_, 'a> {
    /// Converts value and unit to the type's unit, and puts the original into extras.
    pub(super) fn convert_unit(&mut self) {
        let Some((field, sent)) = self.replace_unit() else {
            return;
        };
        let compiled = self.compiled;
        let Some(traits) = &compiled.data_type.metric else {
            return;
        };
        let data_type = compiled.data_type.id.as_str();
        match compiled.units().conversion(&sent, traits, data_type) {
            Ok(conversion) => self.convert_value(conversion, &sent),
            Err(error) => {
                let loc = self.field_loc(field);
                self.faults
                    .push(Fault::new(loc, "unit", error.to_string()).with_value(sent));
            }
        }
    }

    /// Puts the type's unit in place of the one that was sent, if any, and returns that with its field.
    fn replace_unit(&mut self) -> Option<(usize, String)> {
        let compiled = self.compiled;
        let expected = compiled.data_type.metric.as_ref()?.unit.as_deref()?;
        let field = compiled.plan.unit?;
        let name = &compiled.plan.fields.get(field)?.name;
        let sent = match self.document.get(name) {
            Some(Value::String(sent)) => Some(sent.clone()),
            Some(Value::Null) | None => None,
            // Not even a text: the schema reports that better.
            Some(_) => return None,
        };
        self.document
            .insert(name.clone(), Value::String(expected.to_owned()));
        Some((field, sent?))
    }

    fn convert_value(&mut self, conversion: Conversion, sent: &str) {
        let plan = &self.compiled.plan;
        let Some(value_field) = plan.value else { return };
        let Some(name) = plan.fields.get(value_field).map(|field| field.name.as_str()) else {
            return;
        };
        let (Some(given), Some(Value::Number(number))) = (
            self.given.get(value_field).and_then(Option::as_ref),
            self.document.get(name),
        ) else {
            return;
        };
        let Some(value) = number.as_f64() else { return };
        let raw = given.raw;
        let converted = conversion.apply(value);
        if !conversion.leaves_original(value, converted) {
            return;
        }
        if !converted.is_finite() {
            let unit = beginning(sent);
            let message = if matches!(conversion, Conversion::Codes(_)) {
                format!("{value} is not a code of {unit}")
            } else {
                let metric = self.compiled.data_type.metric.as_ref();
                let expected = metric
                    .and_then(|metric| metric.unit.as_deref())
                    .unwrap_or_default();
                format!("{unit} is too large to be expressed in {expected}")
            };
            let loc = self.field_loc(value_field);
            return self.faults.push(Fault::new(loc, "unit", message));
        }
        if self.compiled.units().is_absent(sent, value) {
            // The type has no code for the absent value.
            self.extras.add(NOT_PRESENT, "true");
        }
        let converted = match SaidOriginal::among(self.extras.members()) {
            SaidOriginal::Nothing => {
                self.extras.add_original(raw, sent);
                converted
            }
            SaidOriginal::All(original) => {
                let value = original.in_own_unit(self.compiled, converted, conversion);
                let Some(value) = value else {
                    return self.fault_other_original(&original, raw, sent);
                };
                value
            }
            SaidOriginal::Part => {
                let message = "original_value and original_unit are set when a unit is converted; leave \
                               them out, or send the type's unit";
                return self.fault([EXTRAS], "duplicate", message);
            }
        };
        self.converted = Some(converted);
        let name = name.to_owned();
        self.document.insert(name, Value::from(converted));
    }

    /// An original that says another quantity than the value `raw`, which came with another unit, `sent`.
    fn fault_other_original(&mut self, original: &Original, raw: &str, sent: &str) {
        let Original { value, unit } = original;
        let (raw, sent, unit) = (beginning(raw), beginning(sent), beginning(unit));
        let message = format!(
            "original_value and original_unit are another quantity, {value} {unit}, than {raw} {sent}; leave \
             them out where a value is new"
        );
        self.fault([EXTRAS], "duplicate", message);
    }

    pub(super) fn cells(&mut self) -> (Vec<Cell<'a>>, Vec<Repeatable<'a>>) {
        let plan = &self.compiled.plan;
        let mut cells = vec![Cell::Null; plan.columns.len()];
        let mut repeatable = Vec::new();
        for (field, known) in plan.fields.iter().enumerate() {
            let Role::Column(position) = known.role else {
                continue;
            };
            let Some(column) = plan.columns.get(position) else {
                continue;
            };
            let Some(given) = self.given.get(field).cloned().flatten() else {
                continue;
            };
            let filled = match self.converted.filter(|_| plan.value == Some(field)) {
                Some(converted) => converted_cell(converted, column),
                None => cells::fill(given.raw, column),
            };
            match filled {
                Ok(Filled { cell, rest }) => {
                    let cell = cells::in_one_spelling(cell, &known.canonical);
                    if let Some(rest) = &rest {
                        self.keep_rest(&known.name, rest);
                    }
                    if matches!(cell, Cell::Struct(_) | Cell::List(_)) {
                        let (column, raw) = (position, given.raw);
                        repeatable.push(Repeatable { column, raw, rest });
                    }
                    if let Some(slot) = cells.get_mut(position) {
                        *slot = cell;
                    }
                }
                Err(found) => {
                    let mut loc = self.field_loc(field);
                    loc.extend(found.path.into_iter().rev());
                    self.faults.push(Fault::new(loc, found.kind, found.message));
                }
            }
        }
        (cells, repeatable)
    }

    /// Keeps what a column of the name `name` cannot hold.
    pub(super) fn keep_rest(&mut self, name: &str, rest: &str) {
        if !self.extras.add(name.to_owned(), rest) {
            self.fault([name], "duplicate", format!("{name} is given in extras too"));
        }
    }
}

fn converted_cell<'a>(converted: f64, column: &Field) -> Result<Filled<'a>, Misfit> {
    let cell = match column.data_type() {
        ColumnType::Int64 => cells::whole(converted).map(Cell::Int),
        _ => Some(Cell::Float(converted)),
    };
    cell.map(Filled::from).ok_or_else(|| Misfit {
        path: Vec::new(),
        kind: "unit",
        message: "no whole number in the type's unit".to_owned(),
    })
}
