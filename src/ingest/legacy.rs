//! Unwraps the older form of a record: its JSON inside a string, beside metadata that names its type and may
//! carry its id, time, sources and tags.
//!
//! The result is a record in today's form, decoded like any other; the record's own fields take precedence
//! over its wrapper's. Knows the wrapper; leaves the record's own rules to its type.

use std::collections::HashSet;
use std::ops::ControlFlow;

use super::body::Place;
use super::bounds;
use super::decode::too_much;
use super::json::{self, Field};
use super::lines::Lines;
use crate::model::faults::{Fault, LocPart};
use crate::model::registry::{DataType, TimeFields};
use crate::model::time::parse_instant;

/// A record that came wrapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LegacyRecord {
    pub data_type: String,
    pub place: Place,
    content: Content,
    id: Option<String>,
    time: Option<Time>,
    sources: Option<String>,
    tags: Option<String>,
    /// Undeclared members of the wrapper.
    others: Vec<(String, String)>,
}

/// The content of the string `data`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Content {
    /// A record, by its members.
    Members(Vec<(String, String)>),
    /// A value alone, as JSON.
    Value(String),
    /// Plain text, as a JSON string.
    Text(String),
}

/// `metadata.recorded_at`, as JSON strings.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Time {
    Moment(String),
    Span { start: String, end: String },
}

/// Unwraps a body that is one wrapped record.
pub fn unwrap_one(body: &[u8]) -> Result<LegacyRecord, Vec<Fault>> {
    unwrap(Place::Whole, body)
}

/// Unwraps a body that is an array of wrapped records, or has one on each line, and hands them to `each` one
/// by one until it has enough.
pub fn unwrap_batch(
    body: &[u8],
    mut each: impl FnMut(Result<LegacyRecord, Vec<Fault>>) -> ControlFlow<()>,
) -> Result<(), Vec<Fault>> {
    let text = std::str::from_utf8(body).map_err(|_| malformed("not UTF-8"))?;
    let text = text.trim();
    if text.starts_with('[') {
        return json::each_element(text, |index, element| {
            each(unwrap(Place::Line(index), element.as_bytes()))
        })
        .map_err(|_| malformed("the array is not closed or holds no JSON"));
    }
    if json::fields(text.as_bytes()).is_ok() {
        let _ = each(unwrap(Place::Line(0), text.as_bytes()));
        return Ok(());
    }
    let mut lines = Lines::new(body.len());
    let mut receive = |index: usize, line: &[u8]| match each(unwrap(Place::Line(index), line)) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Enough),
    };
    // No line is longer than the body, so only a receiver that has enough ends it.
    let fed = lines.feed(body, &mut receive);
    if fed.is_ok() {
        let _ = lines.finish(&mut receive);
    }
    Ok(())
}

/// The receiver needs no more records.
struct Enough;

fn malformed(reason: &str) -> Vec<Fault> {
    let message = format!("malformed JSON: {reason}");
    vec![Fault::new(Place::Whole.loc(), "json", message)]
}

impl LegacyRecord {
    /// The record as JSON, with the wrapper's data put where `data_type` has it.
    #[must_use]
    pub fn json_for(&self, data_type: &DataType) -> Vec<u8> {
        let layout = &data_type.layout;
        let mut members = match &self.content {
            Content::Members(members) => members.clone(),
            Content::Value(raw) => vec![("value".to_owned(), raw.clone())],
            Content::Text(raw) => {
                let name = if layout.storage.field_with_name("note").is_ok() {
                    "note"
                } else {
                    "value"
                };
                vec![(name.to_owned(), raw.clone())]
            }
        };
        let has = |members: &[(String, String)], name: &str| {
            members.iter().any(|(given, raw)| given == name && raw != "null")
        };
        if let Some(id) = &self.id
            && !has(&members, "id")
            && !has(&members, "uuid")
            && !layout.id.iter().any(|name| has(&members, name))
        {
            put(&mut members, "id", id);
        }
        let time_names: Vec<&str> = match &layout.times {
            TimeFields::StartEnd { start, end } => start.iter().chain(end).map(String::as_str).collect(),
            TimeFields::Moment { at, .. } => at.iter().map(String::as_str).collect(),
            TimeFields::RecordedAt => vec!["recorded_at", "start_time", "end_time"],
        };
        if let Some(time) = &self.time
            && !time_names.iter().any(|name| has(&members, name))
        {
            time.put_into(&mut members, &layout.times);
        }
        for (name, raw) in [("sources", &self.sources), ("tags", &self.tags)] {
            if let Some(raw) = raw
                && !has(&members, name)
            {
                put(&mut members, name, raw);
            }
        }
        let mut names: HashSet<&str> = members.iter().map(|(given, _)| given.as_str()).collect();
        let mut others: Vec<&(String, String)> = Vec::new();
        for other in &self.others {
            if names.insert(&other.0) {
                others.push(other);
            }
        }
        to_json(members.iter().chain(others))
    }
}

impl Time {
    fn put_into(&self, members: &mut Vec<(String, String)>, times: &TimeFields) {
        let first = |names: &[String]| names.first().cloned().unwrap_or_default();
        match (times, self) {
            (TimeFields::StartEnd { start, .. }, Self::Moment(at)) => put(members, &first(start), at),
            (
                TimeFields::StartEnd { start, end },
                Self::Span {
                    start: from,
                    end: until,
                },
            ) => {
                put(members, &first(start), from);
                put(members, &first(end), until);
            }
            (TimeFields::Moment { at: names, .. }, Self::Moment(at) | Self::Span { start: at, .. }) => {
                put(members, &first(names), at);
            }
            (TimeFields::RecordedAt, Self::Moment(at)) => put(members, "recorded_at", at),
            (TimeFields::RecordedAt, Self::Span { start, end }) => {
                put(
                    members,
                    "recorded_at",
                    &format!("{{\"start_time\":{start},\"end_time\":{end}}}"),
                );
            }
        }
    }
}

/// Sets a member, replacing any earlier one of that name.
fn put(members: &mut Vec<(String, String)>, name: &str, raw: &str) {
    members.retain(|(given, _)| given != name);
    members.push((name.to_owned(), raw.to_owned()));
}

fn to_json<'a>(members: impl Iterator<Item = &'a (String, String)>) -> Vec<u8> {
    let mut text = String::from("{");
    for (name, raw) in members {
        if text.len() > 1 {
            text.push(',');
        }
        json::append_string(name, &mut text);
        text.push(':');
        json::append_compact(raw, &mut text);
    }
    text.push('}');
    text.into_bytes()
}

/// How many faults of one wrapper are kept: a member can be given any number of times.
const MOST_FAULTS: usize = 100;

/// Collects the faults of one wrapper.
struct Wrapper {
    loc: Vec<LocPart>,
    faults: Vec<Fault>,
}

fn unwrap(place: Place, json: &[u8]) -> Result<LegacyRecord, Vec<Fault>> {
    let mut wrapper = Wrapper {
        loc: place.loc(),
        faults: Vec::new(),
    };
    bounds::admit(json, 1).map_err(|reason| vec![too_much(place, reason)])?;
    let fields = json::fields(json).map_err(|mistake| {
        let field = mistake.field.clone();
        vec![wrapper.fault_of(field.as_deref().as_slice(), "json", mistake.message)]
    })?;
    let mut others = Vec::new();
    let (mut data, mut metadata) = (None, None);
    for field in fields {
        match field.name.as_ref() {
            "data" => data = Some(field.raw),
            "metadata" => metadata = Some(field.raw),
            "specversion" => {}
            _ => others.push((field.name.into_owned(), field.raw.to_owned())),
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

#[derive(Default)]
struct Metadata {
    data_type: Option<String>,
    content_type: Option<String>,
    id: Option<String>,
    time: Option<Time>,
    sources: Option<String>,
    tags: Option<String>,
}

impl Wrapper {
    fn content(&mut self, raw: Option<&str>, is_text: bool) -> Option<Content> {
        let Some(raw) = raw else {
            self.fault(&["data"], "missing", "data is missing");
            return None;
        };
        let Some(text) = json::text(raw) else {
            self.fault(
                &["data"],
                "type",
                "expected a string that holds the record as JSON",
            );
            return None;
        };
        if is_text {
            return Some(Content::Text(raw.to_owned()));
        }
        if let Err(reason) = bounds::admit(text.as_bytes(), 1) {
            self.fault(&["data"], "too_long", &reason.to_string());
            return None;
        }
        if !text.trim_start().starts_with('{') {
            return match serde_json::from_str::<serde::de::IgnoredAny>(&text) {
                Ok(_) => Some(Content::Value(text.into_owned())),
                Err(error) => {
                    let mistake = json::explain(text.as_bytes(), &error);
                    self.fault(&["data"], "json", &mistake.message);
                    None
                }
            };
        }
        match json::fields(text.as_bytes()) {
            Ok(fields) => Some(Content::Members(
                fields
                    .into_iter()
                    .map(|Field { name, raw }| (name.into_owned(), raw.to_owned()))
                    .collect(),
            )),
            Err(mistake) => {
                let path: Vec<&str> = std::iter::once("data").chain(mistake.field.as_deref()).collect();
                self.fault(&path, "json", &mistake.message);
                None
            }
        }
    }

    fn metadata(&mut self, raw: Option<&str>, others: &mut Vec<(String, String)>) -> Metadata {
        let mut metadata = Metadata::default();
        let Some(fields) = raw.map(|raw| json::fields(raw.as_bytes())) else {
            self.fault(&["metadata"], "missing", "metadata is missing");
            return metadata;
        };
        let Ok(fields) = fields else {
            self.fault(&["metadata"], "type", "expected object");
            return metadata;
        };
        for Field { name, raw } in fields {
            if raw == "null" {
                continue;
            }
            match name.as_ref() {
                "data_type" => metadata.data_type = self.text("data_type", raw),
                "content_type" => metadata.content_type = self.text("content_type", raw),
                "id" => metadata.id = self.text("id", raw).map(|_| raw.to_owned()),
                "recorded_at" => metadata.time = self.time(raw),
                "source" | "sources" => metadata.sources = self.texts(&name, raw),
                "tags" => metadata.tags = self.texts("tags", raw),
                _ => others.push((name.into_owned(), raw.to_owned())),
            }
        }
        if metadata.data_type.is_none() && self.faults.is_empty() {
            self.fault(&["metadata", "data_type"], "missing", "data_type is missing");
        }
        metadata
    }

    fn text(&mut self, name: &str, raw: &str) -> Option<String> {
        let text = json::text(raw);
        if text.is_none() {
            self.fault(&["metadata", name], "type", "expected string");
        }
        text.map(std::borrow::Cow::into_owned)
    }

    fn texts(&mut self, name: &str, raw: &str) -> Option<String> {
        let texts: Option<Vec<_>> =
            json::elements(raw).and_then(|elements| elements.into_iter().map(json::text).collect());
        match texts {
            Some(texts) if texts.is_empty() => None,
            Some(_) => Some(raw.to_owned()),
            None => {
                self.fault(&["metadata", name], "type", "expected an array of strings");
                None
            }
        }
    }

    fn time(&mut self, raw: &str) -> Option<Time> {
        if !raw.starts_with('{') {
            return self
                .instant(&["metadata", "recorded_at"], Some(raw))
                .map(Time::Moment);
        }
        let members = json::fields(raw.as_bytes()).unwrap_or_default();
        let member = |name: &str| {
            members
                .iter()
                .find(|member| member.name == name)
                .map(|member| member.raw)
        };
        let start = self.instant(&["metadata", "recorded_at", "start_time"], member("start_time"));
        let end = self.instant(&["metadata", "recorded_at", "end_time"], member("end_time"));
        Some(Time::Span {
            start: start?,
            end: end?,
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
        if self.faults.len() >= MOST_FAULTS {
            return;
        }
        let fault = self.fault_of(path, kind, message.to_owned());
        self.faults.push(fault);
    }
}
