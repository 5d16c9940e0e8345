//! Decodes a record's text to a row the complete way: every rule, every type, every fault with its place.
//!
//! Holds one record at a time. The fast way (`fast`) may take a shorter path to the same row, and comes here
//! whenever it meets anything unusual; only this module refuses records.

mod filling;
mod sources;
mod taking;
mod times;
mod validating;

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::body::RecordPosition;
use super::columns::Cell;
use super::compile::CompiledType;
use super::context::DecodeContext;
use super::extras::Extras;
use super::faults::MOST_FAULTS_OF_A_RECORD;
use super::field_plan::Role;
use super::json;
use super::misread;
use crate::model::columns::EXTRAS;
use crate::model::excerpt::beginning;
use crate::model::faults::{Fault, LocPart};
use crate::model::ids::RecordId;
use crate::model::time::Instant;

/// The extras of a record may be this many times as long as one text.
const EXTRAS_FACTOR: usize = 2;

/// Most bytes of a record's extras.
pub(super) fn longest_extras(context: &DecodeContext) -> usize {
    context.text_limit.saturating_mul(EXTRAS_FACTOR)
}

/// A valid record, and what later records can reuse from it.
#[derive(Debug)]
pub(super) struct Complete<'a> {
    pub id: Option<RecordId>,
    pub start: Instant,
    pub end: Instant,
    /// Neither start nor end was sent.
    pub undated: bool,
    pub cells: Vec<Cell<'a>>,
    pub extras: Option<String>,
    pub source: FoundSource,
    pub repeatable: Vec<Repeatable<'a>>,
    /// Whether the source is determined by the source columns and the marks among extras.
    pub source_is_plain: bool,
}

/// A value whose cell is determined by its text alone.
#[derive(Debug)]
pub(super) struct Repeatable<'a> {
    pub column: usize,
    pub raw: &'a str,
    /// What the column cannot hold of it, as JSON.
    pub rest: Option<String>,
}

/// The source that a record names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FoundSource {
    pub key: String,
    pub name: Option<String>,
    pub class: i8,
    /// The definition among its sources.
    pub source_id: Option<String>,
    /// What its extras say of the source.
    pub marks: u32,
}

/// Decodes the record `json`, which stands at `place`. `too_long_a_name`: the member in which its writer
/// gives itself one.
pub(super) fn decode<'a>(
    compiled: &CompiledType,
    context: &DecodeContext,
    place: RecordPosition,
    json: &'a [u8],
    too_long_a_name: Option<&'static str>,
) -> Result<Complete<'a>, Vec<Fault>> {
    let mut reading = Reading::of(compiled, context, place, json)?;
    reading.convert_unit();
    reading.stop_at_faults()?;
    reading.validate()?;
    let id = reading.id();
    let span = reading.times(context);
    let (cells, repeatable) = reading.cells();
    reading.hold_sources_to_length(too_long_a_name);
    let source = reading.source(context);
    reading.hold_value_to_limits(context, &source);
    let extras = std::mem::take(&mut reading.extras).into_text();
    let most = longest_extras(context);
    if extras.as_ref().is_some_and(|extras| extras.len() > most) {
        reading.fault_too_long(EXTRAS);
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
    /// The most bytes of one text.
    text_limit: usize,
    loc: Vec<LocPart>,
    /// The record as it was sent.
    json: &'a [u8],
    /// The fields that were given, by the number of the known field.
    given: Vec<Option<Given<'a>>>,
    /// The record under the names of its schema.
    document: Map<String, Value>,
    extras: Extras<'a>,
    /// Members of extras that stand for fields.
    shown_in_extras: Vec<json::Field<'a>>,
    /// Times that were sent as null because they are unknown: the numbers of their fields, and the names they
    /// were given under.
    unknown_times: Vec<(usize, Cow<'a, str>)>,
    converted: Option<f64>,
    source_is_plain: bool,
    undated: bool,
    faults: Vec<Fault>,
}

impl<'c, 'a> Reading<'c, 'a> {
    fn of(
        compiled: &'c CompiledType,
        context: &DecodeContext,
        place: RecordPosition,
        json: &'a [u8],
    ) -> Result<Self, Vec<Fault>> {
        let loc = place.loc();
        let fields = json::fields(json).map_err(|mistake| vec![misread::fault(place, json, mistake)])?;
        let mut reading = Self {
            compiled,
            text_limit: context.text_limit,
            loc,
            json,
            given: vec![None; compiled.plan.fields.len()],
            document: Map::new(),
            extras: Extras::default(),
            shown_in_extras: Vec::new(),
            unknown_times: Vec::new(),
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
        reading.take_unknown_times();
        reading.stop_at_faults()?;
        Ok(reading)
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
            format!(
                "{} is given twice, perhaps under another spelling",
                beginning(name)
            ),
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
