//! Reads the wrapper: the string that holds the record, and the metadata beside it.
//!
//! Knows the members of a wrapper and their forms; does not know how they become a record.

use std::collections::HashSet;

use crate::ingest::body::RecordPosition;
use crate::ingest::bounds;
use crate::ingest::cells::integer;
use crate::ingest::decode::too_much;
use crate::ingest::json::{self, Field, Mistake};
use crate::ingest::misread;
use crate::model::excerpt::beginning;
use crate::model::faults::{Fault, LocPart, MOST_FAULTS};
use crate::model::ids::RecordId;
use crate::model::time::parse_instant;

/// The member of a wrapper that holds its record.
pub(super) const DATA: &str = "data";
/// The member of a wrapper that describes its record.
pub(super) const METADATA: &str = "metadata";
/// Its member with the record's time.
pub(super) const RECORDED_AT: &str = "recorded_at";
/// The members of the metadata that are read. Null is the same as none of them.
const DECLARED: [&str; 7] = [
    "data_type",
    "content_type",
    "id",
    RECORDED_AT,
    "source",
    "sources",
    "tags",
];

/// A record that came wrapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LegacyRecord {
    pub data_type: String,
    pub place: RecordPosition,
    pub(super) content: Payload,
    pub(super) id: Option<String>,
    pub(super) time: Option<Time>,
    /// Arrays of texts, each with the member of the metadata that gave it.
    pub(super) sources: Vec<(String, &'static str)>,
    pub(super) tags: Option<(String, &'static str)>,
    pub(super) others: Vec<Other>,
}

/// An undeclared member of the wrapper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Other {
    pub(super) name: String,
    pub(super) raw: String,
    /// The way to the object that has it.
    pub(super) way: &'static [&'static str],
}

/// The content of the string `data`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Payload {
    /// A record, by its members.
    Members(Vec<(String, String)>),
    /// A value alone, as JSON.
    Value(String),
    /// Plain text, as a JSON string.
    Text(String),
}

/// `metadata.recorded_at`, as JSON strings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Time {
    Moment(String),
    Span {
        start: String,
        end: String,
        /// Its undeclared members.
        rest: Vec<(String, String)>,
    },
}

/// Collects the faults of one wrapper.
struct Wrapper {
    loc: Vec<LocPart>,
    faults: Vec<Fault>,
}

pub(super) fn unwrap(place: RecordPosition, json: &[u8]) -> Result<LegacyRecord, Vec<Fault>> {
    let mut wrapper = Wrapper {
        loc: place.loc(),
        faults: Vec::new(),
    };
    bounds::admit(json, 1).map_err(|reason| vec![too_much(place, reason)])?;
    let fields = json::fields(json).map_err(|mistake| vec![no_wrapper(place, json, mistake)])?;
    wrapper.once(&[], &fields);
    let mut others = Vec::new();
    let (mut data, mut metadata) = (None, None);
    for field in fields {
        match field.name.as_ref() {
            DATA => data = Some(field.raw),
            METADATA => metadata = Some(field.raw),
            "specversion" => wrapper.version(field.raw),
            _ => others.push(Other {
                name: field.name.into_owned(),
                raw: field.raw.to_owned(),
                way: &[],
            }),
        }
    }
    let metadata = wrapper.metadata(metadata, &mut others);
    let is_text = metadata
        .content_type
        .as_deref()
        .is_some_and(|content_type| content_type.starts_with("text/"));
    let content = wrapper.content(data, is_text);
    match (content, metadata.data_type) {
        (Some(content), Some(data_type)) if wrapper.faults.is_empty() => Ok(LegacyRecord {
            data_type,
            place,
            content,
            id: metadata.id,
            time: metadata.time,
            sources: metadata.sources,
            tags: metadata.tags,
            others,
        }),
        _ => Err(wrapper.faults),
    }
}

/// The fault of a text that is no object.
fn no_wrapper(place: RecordPosition, json: &[u8], mistake: Mistake) -> Fault {
    match (json.trim_ascii().first(), place) {
        (Some(b'{'), _) => {
            let mut loc = place.loc();
            loc.extend(mistake.field.map(LocPart::Name));
            Fault::new(loc, "json", mistake.message)
        }
        (Some(b'['), RecordPosition::Whole) => {
            let message = "found an array where one wrapped record was expected, an object with data and \
                           metadata; several are sent to /ingest/v1/record/batch";
            Fault::new(place.loc(), "json", message)
        }
        _ => misread::fault(place, json, mistake),
    }
}

#[derive(Default)]
struct Metadata {
    data_type: Option<String>,
    content_type: Option<String>,
    id: Option<String>,
    time: Option<Time>,
    sources: Vec<(String, &'static str)>,
    tags: Option<(String, &'static str)>,
}

impl Wrapper {
    /// Refuses the members of the object at `way` that are given twice: only one of them could be kept.
    fn once(&mut self, way: &[&str], fields: &[Field<'_>]) {
        let mut names = HashSet::new();
        for Field { name, .. } in fields {
            if !names.insert(name.as_ref()) {
                let path: Vec<&str> = way.iter().copied().chain([name.as_ref()]).collect();
                self.fault(&path, "duplicate", &format!("{} is given twice", beginning(name)));
            }
        }
    }

    /// Checks the version of the wrapper. There is only one form of it, so nothing follows from a version.
    fn version(&mut self, raw: &str) {
        if raw != "null" && integer(raw).is_none() {
            self.fault(&["specversion"], "type", "expected integer");
        }
    }

    fn content(&mut self, raw: Option<&str>, is_text: bool) -> Option<Payload> {
        let Some(raw) = raw else {
            self.fault(&[DATA], "missing", "data is missing");
            return None;
        };
        let Some(text) = json::text(raw) else {
            self.fault(&[DATA], "type", "expected a string that holds the record as JSON");
            return None;
        };
        if is_text {
            return Some(Payload::Text(raw.to_owned()));
        }
        if let Err(reason) = bounds::admit(text.as_bytes(), 1) {
            self.fault(&[DATA], "too_long", &reason.to_string());
            return None;
        }
        if !text.trim_start().starts_with('{') {
            return match serde_json::from_str::<serde::de::IgnoredAny>(&text) {
                Ok(_) => Some(Payload::Value(text.into_owned())),
                Err(error) => {
                    let mistake = json::explain(text.as_bytes(), &error);
                    self.fault(&[DATA], "json", &mistake.message);
                    None
                }
            };
        }
        match json::fields(text.as_bytes()) {
            Ok(fields) => Some(Payload::Members(
                fields
                    .into_iter()
                    .map(|Field { name, raw }| (name.into_owned(), raw.to_owned()))
                    .collect(),
            )),
            Err(mistake) => {
                let path: Vec<&str> = std::iter::once(DATA).chain(mistake.field.as_deref()).collect();
                self.fault(&path, "json", &mistake.message);
                None
            }
        }
    }

    fn metadata(&mut self, raw: Option<&str>, others: &mut Vec<Other>) -> Metadata {
        let mut metadata = Metadata::default();
        let Some(fields) = raw.map(|raw| json::fields(raw.as_bytes())) else {
            self.fault(&[METADATA], "missing", "metadata is missing");
            return metadata;
        };
        let Ok(fields) = fields else {
            self.fault(&[METADATA], "type", "expected object");
            return metadata;
        };
        let before = self.faults.len();
        self.once(&[METADATA], &fields);
        for Field { name, raw } in fields {
            if raw == "null" && DECLARED.contains(&name.as_ref()) {
                continue;
            }
            match name.as_ref() {
                "data_type" => metadata.data_type = self.text("data_type", raw),
                "content_type" => metadata.content_type = self.text("content_type", raw),
                "id" => metadata.id = self.id(raw),
                RECORDED_AT => metadata.time = self.time(raw),
                "source" => metadata.sources.extend(self.texts("source", raw)),
                "sources" => metadata.sources.extend(self.texts("sources", raw)),
                "tags" => metadata.tags = self.texts("tags", raw),
                _ => others.push(Other {
                    name: name.into_owned(),
                    raw: raw.to_owned(),
                    way: &[METADATA],
                }),
            }
        }
        if metadata.data_type.is_none() && self.faults.len() == before {
            self.fault(&[METADATA, "data_type"], "missing", "data_type is missing");
        }
        metadata
    }

    fn text(&mut self, name: &str, raw: &str) -> Option<String> {
        let text = json::text(raw);
        if text.is_none() {
            self.fault(&[METADATA, name], "type", "expected string");
        }
        text.map(std::borrow::Cow::into_owned)
    }

    fn id(&mut self, raw: &str) -> Option<String> {
        let text = self.text("id", raw)?;
        if text.parse::<RecordId>().is_err() {
            self.fault(&[METADATA, "id"], "format", "not a uuid");
            return None;
        }
        Some(raw.to_owned())
    }

    fn texts(&mut self, name: &'static str, raw: &str) -> Option<(String, &'static str)> {
        let texts: Option<Vec<_>> =
            json::elements(raw).and_then(|elements| elements.into_iter().map(json::text).collect());
        match texts {
            Some(texts) if texts.is_empty() => None,
            Some(_) => Some((raw.to_owned(), name)),
            None => {
                self.fault(&[METADATA, name], "type", "expected an array of strings");
                None
            }
        }
    }

    fn time(&mut self, raw: &str) -> Option<Time> {
        if !raw.starts_with('{') {
            return self
                .instant(&[METADATA, RECORDED_AT], Some(raw))
                .map(Time::Moment);
        }
        let members = json::fields(raw.as_bytes()).unwrap_or_default();
        self.once(&[METADATA, RECORDED_AT], &members);
        let (mut start, mut end, mut rest) = (None, None, Vec::new());
        for Field { name, raw } in members {
            match name.as_ref() {
                "start_time" => start = Some(raw),
                "end_time" => end = Some(raw),
                _ => rest.push((name.into_owned(), raw.to_owned())),
            }
        }
        let start = self.instant(&[METADATA, RECORDED_AT, "start_time"], start);
        let end = self.instant(&[METADATA, RECORDED_AT, "end_time"], end);
        Some(Time::Span {
            start: start?,
            end: end?,
            rest,
        })
    }

    fn instant(&mut self, path: &[&str], raw: Option<&str>) -> Option<String> {
        let Some(raw) = raw else {
            self.fault(path, "missing", "a date and time is missing");
            return None;
        };
        match json::text(raw).map(|text| parse_instant(&text)) {
            Some(Ok(_)) => Some(raw.to_owned()),
            Some(Err(error)) => {
                self.fault(path, "format", &error.to_string());
                None
            }
            None => {
                self.fault(path, "type", "expected a string with a date and time");
                None
            }
        }
    }

    fn fault_of(&self, path: &[&str], kind: &'static str, message: String) -> Fault {
        let mut loc = self.loc.clone();
        loc.extend(path.iter().map(|part| LocPart::from(*part)));
        Fault::new(loc, kind, message)
    }

    fn fault(&mut self, path: &[&str], kind: &'static str, message: &str) {
        // A member can be given any number of times.
        if self.faults.len() >= MOST_FAULTS {
            return;
        }
        let fault = self.fault_of(path, kind, message.to_owned());
        self.faults.push(fault);
    }
}
