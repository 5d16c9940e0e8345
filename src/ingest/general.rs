//! The complete way from a record's text to a row: every rule, every type, every fault with its place.
//!
//! Holds one record at a time. The fast way (`fast`) may take a shorter path to the same row, and comes here
//! whenever it meets anything unusual; only this module refuses records.

mod times;

use std::borrow::Cow;

use arrow::datatypes::{DataType as ColumnType, Field};
use serde_json::{Map, Number, Value};

use super::body::Place;
use super::cells::{self, Filled, Misfit};
use super::coerce::is_coercible;
use super::columns::Cell;
use super::compile::CompiledType;
use super::context::DecodeContext;
use super::extras::Extras;
use super::faults::{self, MOST_FAULTS_OF_A_RECORD};
use super::json;
use super::misread;
use super::plan::Role;
use crate::model::faults::{Fault, LocPart};
use crate::model::ids::RecordId;
use crate::model::sources::{SourceFacts, source_key};
use crate::model::text::{longest_text, may_hold_nul, way_to_nul};
use crate::model::time::Instant;
use crate::model::units::Conversion;

/// What a record has beyond its type may be so many times as long as one text.
const EXTRAS_FACTOR: usize = 2;
/// Bytes of what names a source. A mebibyte of text may be a note; it is no name.
const LONGEST_SOURCE: usize = 2048;
/// Members of a record that name sources, beside `sources` and `source_id`.
const NAMES_OF_SOURCES: [(&str, &str); 3] = [
    ("source_properties", "sourceBundleIdentifier"),
    ("source_properties", "productType"),
    ("source_properties", "name"),
];
/// What is said of U+0000.
const NUL: &str = "U+0000 cannot be stored; leave it out";

/// A valid record, and what can be learnt from it for the ones that follow.
#[derive(Debug)]
pub(super) struct Complete<'a> {
    pub id: Option<RecordId>,
    pub start: Instant,
    pub end: Instant,
    /// Neither was sent.
    pub undated: bool,
    pub cells: Vec<Cell<'a>>,
    pub extras: Option<String>,
    pub source: FoundSource,
    /// Columns whose cell follows from this text alone.
    pub repeatable: Vec<(usize, &'a str)>,
    /// Whether the source follows from the source columns alone.
    pub source_is_plain: bool,
}

/// The source that a record names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FoundSource {
    pub key: String,
    pub name: Option<String>,
    pub class: i8,
    /// The definition among its sources.
    pub source_id: Option<String>,
}

/// Decodes the record `json`, which stands at `place`.
pub(super) fn decode<'a>(
    compiled: &CompiledType,
    context: &DecodeContext,
    place: Place,
    json: &'a [u8],
) -> Result<Complete<'a>, Vec<Fault>> {
    let mut reading = Reading::of(compiled, context, place, json)?;
    reading.convert_unit();
    reading.stop_at_faults()?;
    reading.validate()?;
    let id = reading.id();
    let span = reading.times(context);
    let (cells, repeatable) = reading.cells();
    reading.hold_sources_to_length();
    let source = reading.source(context);
    reading.keep_to_scale(context, &source);
    let extras = reading.extras.to_text();
    let most = context.text_limit.saturating_mul(EXTRAS_FACTOR);
    if extras.as_ref().is_some_and(|extras| extras.len() > most) {
        reading.fault_too_long(super::plan::EXTRAS);
    }
    reading.stop_at_faults()?;
    let Some((start, end)) = span else {
        return Err(reading.faults);
    };
    Ok(Complete {
        id,
        start,
        end,
        undated: reading.undated,
        cells,
        extras,
        source_is_plain: reading.source_is_plain,
        source,
        repeatable,
    })
}

/// A field as it was sent.
#[derive(Clone, Debug)]
struct Given<'a> {
    /// The name it was given under.
    name: Cow<'a, str>,
    raw: &'a str,
}

struct Reading<'c, 'a> {
    compiled: &'c CompiledType,
    /// Bytes that one text may have.
    text_limit: usize,
    loc: Vec<LocPart>,
    /// What was given, by the number of the known field.
    given: Vec<Option<Given<'a>>>,
    /// The record under the names of its schema.
    document: Map<String, Value>,
    extras: Extras,
    /// Members of extras that stand for fields.
    shown_in_extras: Vec<json::Field<'a>>,
    converted: Option<f64>,
    source_is_plain: bool,
    undated: bool,
    faults: Vec<Fault>,
}

impl<'c, 'a> Reading<'c, 'a> {
    fn of(
        compiled: &'c CompiledType,
        context: &DecodeContext,
        place: Place,
        json: &'a [u8],
    ) -> Result<Self, Vec<Fault>> {
        let loc = place.loc();
        let fields = json::fields(json).map_err(|mistake| vec![misread::fault(place, json, mistake)])?;
        let mut reading = Self {
            compiled,
            text_limit: context.text_limit,
            loc,
            given: vec![None; compiled.plan.fields.len()],
            document: Map::new(),
            extras: Extras::default(),
            shown_in_extras: Vec::new(),
            converted: None,
            source_is_plain: true,
            undated: false,
            faults: Vec::new(),
        };
        for field in fields {
            reading.take(field);
            if reading.faults.len() >= MOST_FAULTS_OF_A_RECORD {
                break;
            }
        }
        reading.take_shown_in_extras();
        reading.stop_at_faults()?;
        Ok(reading)
    }

    fn take(&mut self, field: json::Field<'a>) {
        let json::Field { name, raw } = field;
        let value: Value = match serde_json::from_str(raw) {
            Ok(value) => value,
            Err(error) => {
                let mistake = json::explain(raw.as_bytes(), &error);
                return self.fault([name.as_ref()], "json", mistake.message);
            }
        };
        if !self.is_storable(&name, raw, &value) {
            return;
        }
        let Some(position) = self.compiled.plan.field(&name) else {
            self.source_is_plain = false;
            if !self.extras.add(&name, raw) {
                return self.fault_given_twice(&name);
            }
            self.document.insert(name.into_owned(), value);
            return;
        };
        let Some(known) = self.compiled.plan.fields.get(position) else {
            return;
        };
        if value.is_null() && !matches!(known.role, Role::Column(_)) {
            // No id, no end, no extras: absent, said aloud.
            return;
        }
        match self.given.get_mut(position) {
            Some(Some(earlier)) if earlier.raw == raw => return,
            Some(Some(_)) => return self.fault_given_twice(&name),
            Some(given) => {
                *given = Some(Given {
                    name: name.clone(),
                    raw,
                });
            }
            None => return,
        }
        if known.role == Role::Extras {
            self.take_extras(&name, raw, &value);
        }
        self.document.insert(known.name.clone(), value);
    }

    /// Whether every text of a field may be stored.
    fn is_storable(&mut self, name: &str, raw: &str, value: &Value) -> bool {
        if name.contains('\0') {
            self.fault([name.replace('\0', "").as_str()], "nul", NUL);
            return false;
        }
        if may_hold_nul(raw)
            && let Some(way) = way_to_nul(value)
        {
            let mut loc = self.loc.clone();
            loc.push(name.into());
            loc.extend(way);
            self.faults.push(Fault::new(loc, "nul", NUL));
            return false;
        }
        if raw.len() > self.text_limit && longest_text(value) > self.text_limit {
            self.fault_too_long(name);
            return false;
        }
        true
    }

    fn take_extras(&mut self, name: &str, raw: &'a str, value: &Value) {
        self.source_is_plain = false;
        let Ok(members) = json::fields(raw.as_bytes()) else {
            let message = format!("expected object, found {}", faults::type_name(value));
            return self.fault([name], "type", message);
        };
        for member in members {
            let is_named = |earlier: &json::Field<'_>| earlier.name == member.name;
            if self.is_shown_in_extras(&member) && !self.shown_in_extras.iter().any(is_named) {
                self.shown_in_extras.push(member);
                continue;
            }
            if !self.extras.add(&member.name, member.raw) {
                self.fault(
                    [name, member.name.as_ref()],
                    "duplicate",
                    format!("{} is given twice", member.name),
                );
            }
        }
    }

    /// Whether a member of extras is a field that answers show there, as they show it.
    fn is_shown_in_extras(&self, member: &json::Field<'_>) -> bool {
        let plan = &self.compiled.plan;
        let known = plan.field(&member.name).and_then(|field| plan.fields.get(field));
        known.is_some_and(|known| known.in_extras) && serde_json::from_str::<Vec<String>>(member.raw).is_ok()
    }

    /// Takes members of extras for the fields that they are shown for, unless these were sent themselves.
    fn take_shown_in_extras(&mut self) {
        for member in std::mem::take(&mut self.shown_in_extras) {
            let field = self.compiled.plan.field(&member.name);
            let known = field.and_then(|field| self.compiled.plan.fields.get(field));
            let given = field.and_then(|field| self.given.get_mut(field));
            if let (Some(known), Some(given)) = (known, given)
                && given.as_ref().is_none_or(|given| given.raw == "null")
                && let Ok(value) = serde_json::from_str(member.raw)
            {
                self.document.insert(known.name.clone(), value);
                *given = Some(Given {
                    name: member.name,
                    raw: member.raw,
                });
            } else if !self.extras.add(&member.name, member.raw) {
                self.fault_given_twice(&member.name);
            }
        }
    }

    /// Puts value and unit into the unit of the catalogue, and what was sent into extras.
    fn convert_unit(&mut self) {
        let plan = &self.compiled.plan;
        let Some(traits) = &self.compiled.data_type.metric else {
            return;
        };
        let (Some(expected), Some(unit_field)) = (traits.unit.as_deref(), plan.unit) else {
            return;
        };
        let Some(unit_name) = plan.fields.get(unit_field).map(|field| field.name.clone()) else {
            return;
        };
        let sent = match self.document.get(&unit_name) {
            Some(Value::String(sent)) => Some(sent.clone()),
            Some(Value::Null) | None => None,
            // Not even a text: the schema says so better.
            Some(_) => return,
        };
        self.document
            .insert(unit_name, Value::String(expected.to_owned()));
        let Some(sent) = sent else { return };
        let conversion =
            match self
                .compiled
                .units()
                .conversion(&sent, traits, self.compiled.data_type.id.as_str())
            {
                Ok(conversion) => conversion,
                Err(error) => {
                    let loc = self.field_loc(unit_field);
                    return self
                        .faults
                        .push(Fault::new(loc, "unit", error.to_string()).with_value(sent));
                }
            };
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
        let converted = conversion.apply(value);
        if !super::units::leaves_original(conversion, value, converted) {
            return;
        }
        let Some(number) = Number::from_f64(converted) else {
            let message = if matches!(conversion, Conversion::Codes(_)) {
                format!("{value} is no code of {sent}")
            } else {
                format!("{sent} is too large to be told in {expected}")
            };
            let loc = self.field_loc(value_field);
            return self.faults.push(Fault::new(loc, "unit", message));
        };
        self.converted = Some(converted);
        if self.compiled.units().is_absent(&sent, value) {
            // The catalogue has no code for it.
            self.extras.add("not_present", "true");
        }
        if !self.extras.add_original(given.raw, &sent) {
            let message = "original_value and original_unit are set when a unit is converted; leave them \
                           out, or send the catalogue's unit"
                .to_owned();
            self.fault([super::plan::EXTRAS], "duplicate", message);
        }
        let name = name.to_owned();
        self.document.insert(name, Value::Number(number));
    }

    fn validate(&mut self) -> Result<(), Vec<Fault>> {
        let document = Value::Object(std::mem::take(&mut self.document));
        if !self.compiled.validator.is_valid(&document) {
            let mut found = Vec::new();
            for error in self
                .compiled
                .validator
                .iter_errors(&document)
                .take(MOST_FAULTS_OF_A_RECORD)
            {
                faults::from_schema(&error, &self.loc, &mut found);
            }
            for fault in &mut found {
                self.name_as_given(fault);
                self.name_coercion(fault);
            }
            found.truncate(MOST_FAULTS_OF_A_RECORD);
            if found.is_empty() {
                found.push(Fault::new(
                    self.loc.clone(),
                    "schema",
                    "not valid against the schema of its type",
                ));
            }
            return Err(found);
        }
        if let Value::Object(document) = document {
            self.document = document;
        }
        Ok(())
    }

    /// The schema knows a field by its own name; the caller finds it under the one that was sent.
    fn name_as_given(&self, fault: &mut Fault) {
        let Some(LocPart::Name(name)) = fault.loc.get_mut(self.loc.len()) else {
            return;
        };
        let given = self
            .compiled
            .plan
            .field(name)
            .and_then(|field| self.given.get(field)?.as_ref());
        if let Some(given) = given {
            *name = given.name.to_string();
        }
    }

    /// Says so where the value would have been taken if the sender had asked for it.
    fn name_coercion(&self, fault: &mut Fault) {
        let [LocPart::Name(name)] = fault.loc.get(self.loc.len()..).unwrap_or_default() else {
            return;
        };
        let plan = &self.compiled.plan;
        let given = plan.field(name).and_then(|field| self.given.get(field)?.as_ref());
        if given.is_some_and(|given| is_coercible(plan, name, given.raw)) {
            fault.message.push_str("; with coerce=true it is taken as it is");
        }
    }

    fn id(&mut self) -> Option<RecordId> {
        let (field, given) = self.given_in(Role::Id)?;
        let parsed = json::text(given.raw).and_then(|text| text.parse().ok());
        if parsed.is_none() {
            let loc = self.field_loc(field);
            self.faults.push(Fault::new(loc, "format", "not a uuid"));
        }
        parsed
    }

    fn cells(&mut self) -> (Vec<Cell<'a>>, Vec<(usize, &'a str)>) {
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
                    match rest {
                        Some(rest) => self.keep_rest(&known.name, &rest),
                        None if matches!(cell, Cell::Struct(_) | Cell::List(_)) => {
                            repeatable.push((position, given.raw));
                        }
                        None => {}
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

    /// Keeps what a column of the name `name` could not hold.
    fn keep_rest(&mut self, name: &str, rest: &str) {
        self.source_is_plain = false;
        if !self.extras.add(name, rest) {
            self.fault([name], "duplicate", format!("{name} is given in extras too"));
        }
    }

    /// What names a source is kept beside the rows, for as long as the person is: it is held to a length of
    /// its own.
    fn hold_sources_to_length(&mut self) {
        let is_too_long = |text: Option<&Value>| {
            let text = text.and_then(Value::as_str);
            text.is_some_and(|text| text.len() > LONGEST_SOURCE)
        };
        let mut found: Vec<Vec<LocPart>> = Vec::new();
        for (object, member) in NAMES_OF_SOURCES {
            if is_too_long(self.document.get(object).and_then(|named| named.get(member))) {
                found.push(vec![object.into(), member.into()]);
            }
        }
        let sources = self.document.get("sources").and_then(Value::as_array);
        for (index, source) in sources.into_iter().flatten().enumerate() {
            if is_too_long(Some(source)) {
                found.push(vec!["sources".into(), index.into()]);
            }
        }
        if is_too_long(self.document.get("source_id")) {
            found.push(vec!["source_id".into()]);
        }
        for way in found {
            let loc: Vec<LocPart> = self.loc.iter().cloned().chain(way).collect();
            let message = format!("what names a source has at most {LONGEST_SOURCE} bytes");
            self.faults.push(Fault::new(loc, "too_long", message));
        }
    }

    fn source(&self, context: &DecodeContext) -> FoundSource {
        let rules = self.compiled.source_rules();
        let text = |object: &str, member: &str| self.document.get(object)?.get(member)?.as_str();
        let sources = || {
            self.document
                .get("sources")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
        };
        let mut facts = SourceFacts {
            device_model: text("device_properties", "model"),
            hardware_version: text("device_properties", "hardwareVersion"),
            product_type: text("source_properties", "productType"),
            bundle_identifier: text("source_properties", "sourceBundleIdentifier"),
            source_name: text("source_properties", "name"),
            first_source: sources().next(),
            ..SourceFacts::default()
        };
        for (name, raw) in self.extras.members() {
            if let Ok(value) = serde_json::from_str(raw) {
                rules.mark(&mut facts, name, &value);
            }
        }
        let definition = |source: &str| Some(context.source_of(context.definition_of(source)?));
        FoundSource {
            key: source_key(&facts).into_owned(),
            name: facts.source_name.map(str::to_owned),
            class: rules.classify(&facts).code(),
            source_id: sources()
                .find_map(definition)
                .or_else(|| sources().next().map(str::to_owned)),
        }
    }

    /// Holds the value against the scale of the definition that the record is one of.
    fn keep_to_scale(&mut self, context: &DecodeContext, source: &FoundSource) {
        // What the record says itself is what will be stored.
        let said = self.document.get("source_id").and_then(Value::as_str);
        let scale = said
            .or(source.source_id.as_deref())
            .and_then(|source| context.scale_of(source));
        let value = self.document.get("value").and_then(Value::as_f64);
        let (Some(scale), Some(value)) = (scale, value) else {
            return;
        };
        let (kind, message) = if value < scale.min as f64 {
            ("minimum", format!("the scale begins at {}", scale.min))
        } else if value > scale.max as f64 {
            ("maximum", format!("the scale ends at {}", scale.max))
        } else {
            return;
        };
        let mut loc = self.loc.clone();
        loc.push("value".into());
        self.faults.push(Fault::new(loc, kind, message).with_value(value));
    }

    fn given_in(&self, role: Role) -> Option<(usize, Given<'a>)> {
        let fields = &self.compiled.plan.fields;
        fields
            .iter()
            .enumerate()
            .filter(|(_, known)| known.role == role)
            .find_map(|(field, _)| Some((field, self.given.get(field)?.clone()?)))
    }

    fn field_loc(&self, field: usize) -> Vec<LocPart> {
        let given = self
            .given
            .get(field)
            .and_then(Option::as_ref)
            .map(|given| given.name.to_string());
        let mut loc = self.loc.clone();
        loc.extend(
            given
                .or_else(|| {
                    self.compiled
                        .plan
                        .fields
                        .get(field)
                        .map(|known| known.name.clone())
                })
                .map(LocPart::Name),
        );
        loc
    }

    fn fault_too_long(&mut self, name: &str) {
        let message = format!("a text may have {} bytes", self.text_limit);
        self.fault([name], "too_long", message);
    }

    fn fault_given_twice(&mut self, name: &str) {
        self.fault(
            [name],
            "duplicate",
            format!("{name} is given twice, perhaps under another spelling"),
        );
    }

    fn fault<'n>(
        &mut self,
        path: impl IntoIterator<Item = &'n str>,
        kind: &'static str,
        message: impl Into<String>,
    ) {
        let mut loc = self.loc.clone();
        loc.extend(path.into_iter().map(LocPart::from));
        self.faults.push(Fault::new(loc, kind, message));
    }

    fn stop_at_faults(&mut self) -> Result<(), Vec<Fault>> {
        if self.faults.is_empty() {
            return Ok(());
        }
        let mut faults = std::mem::take(&mut self.faults);
        faults.truncate(MOST_FAULTS_OF_A_RECORD);
        Err(faults)
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
        message: "no whole number in the catalogue's unit".to_owned(),
    })
}
