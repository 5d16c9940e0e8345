//! A record while it is decoded: what was sent, what was found so far, and the faults of it.
//!
//! Its parts are read by the files beside this one. Knows nothing of what the fields mean.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::ingest::coerce::Epoch;
use crate::ingest::compile::CompiledType;
use crate::ingest::extras::Extras;
use crate::ingest::faults::MOST_FAULTS_OF_A_RECORD;
use crate::ingest::field_plan::Role;
use crate::ingest::json;
use crate::model::columns::EXTRAS;
use crate::model::excerpt::beginning;
use crate::model::faults::{Fault, LocPart};
use crate::model::ids::RecordId;

/// A field as it was sent.
#[derive(Clone, Debug)]
pub(super) struct Given<'a> {
    /// The name it was given under.
    pub(super) name: Cow<'a, str>,
    pub(super) raw: &'a str,
}

pub(super) struct Reading<'c, 'a> {
    pub(super) compiled: &'c CompiledType,
    /// The most bytes of one text.
    pub(super) text_limit: usize,
    /// How numbers for times were coerced, if that was asked for.
    pub(super) coercion: Option<Epoch>,
    pub(super) loc: Vec<LocPart>,
    /// The record as it was sent.
    pub(super) json: &'a [u8],
    /// The fields that were given, by the number of the known field.
    pub(super) given: Vec<Option<Given<'a>>>,
    /// The record under the names of its schema.
    pub(super) document: Map<String, Value>,
    pub(super) extras: Extras<'a>,
    /// Members of extras that stand for fields.
    pub(super) shown_in_extras: Vec<json::Field<'a>>,
    /// Times that were sent as null because they are unknown: the numbers of their fields, and the names they
    /// were given under.
    pub(super) unknown_times: Vec<(usize, Cow<'a, str>)>,
    pub(super) converted: Option<f64>,
    pub(super) source_is_plain: bool,
    pub(super) undated: bool,
    pub(super) faults: Vec<Fault>,
}

impl<'a> Reading<'_, 'a> {
    pub(super) fn id(&mut self) -> Option<RecordId> {
        let (field, given) = self.given_in(Role::Id)?;
        let parsed = json::text(given.raw).and_then(|text| text.parse().ok());
        if parsed.is_none() {
            let loc = self.field_loc(field);
            self.faults.push(Fault::new(loc, "format", "not a uuid"));
        }
        parsed
    }

    pub(super) fn given_in(&self, role: Role) -> Option<(usize, Given<'a>)> {
        let fields = &self.compiled.plan.fields;
        fields
            .iter()
            .enumerate()
            .filter(|(_, known)| known.role == role)
            .find_map(|(field, _)| Some((field, self.given.get(field)?.clone()?)))
    }

    pub(super) fn field_loc(&self, field: usize) -> Vec<LocPart> {
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

    pub(super) fn fault_too_long(&mut self, name: &str) {
        let message = format!("a text may have {} bytes", self.text_limit);
        self.fault([name], "too_long", message);
    }

    pub(super) fn fault_extras_too_long(&mut self, most: usize) {
        let message = format!("what a record has beyond its type may have {most} bytes");
        self.fault([EXTRAS], "too_long", message);
    }

    pub(super) fn fault_given_twice(&mut self, name: &str) {
        self.fault(
            [name],
            "duplicate",
            format!(
                "{} is given twice, perhaps under another spelling",
                beginning(name)
            ),
        );
    }

    pub(super) fn fault<'n>(
        &mut self,
        path: impl IntoIterator<Item = &'n str>,
        kind: &'static str,
        message: impl Into<String>,
    ) {
        let mut loc = self.loc.clone();
        loc.extend(path.into_iter().map(LocPart::from));
        self.faults.push(Fault::new(loc, kind, message));
    }

    pub(super) fn stop_at_faults(&mut self) -> Result<(), Vec<Fault>> {
        if self.faults.is_empty() {
            return Ok(());
        }
        let mut faults = std::mem::take(&mut self.faults);
        faults.truncate(MOST_FAULTS_OF_A_RECORD);
        Err(faults)
    }
}
