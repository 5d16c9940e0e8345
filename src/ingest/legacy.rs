//! Unwraps the older form of a record: its JSON inside a string, beside metadata that names its type and may
//! carry its id, time, sources and tags.
//!
//! The result is a record in today's form, decoded like any other. What is given both inside and outside must
//! be the same; tags and sources add up. Knows the wrapper; leaves the record's own rules to its type.

use std::collections::HashSet;
use std::ops::ControlFlow;

use serde_json::Value;

use super::body::Place;
use super::bounds;
use super::decode::too_much;
use super::json::{self, Field, Mistake};
use super::lines::Lines;
use super::misread;
use crate::model::faults::{Fault, LocPart};
use crate::model::ids::RecordId;
use crate::model::registry::{DataType, TimeFields};
use crate::model::time::parse_instant;

/// The member of a wrapper that describes its record.
const METADATA: &str = "metadata";

/// A record that came wrapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LegacyRecord {
    pub data_type: String,
    pub place: Place,
    content: Content,
    id: Option<String>,
    time: Option<Time>,
    /// Arrays of texts, each with the member of the metadata that gave it.
    sources: Option<(String, &'static str)>,
    tags: Option<(String, &'static str)>,
    others: Vec<Other>,
}

/// An undeclared member of the wrapper.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Other {
    name: String,
    raw: String,
    /// The way to the object that has it.
    way: &'static [&'static str],
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

/// A record in today's form, and where its members came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unwrapped {
    pub json: Vec<u8>,
    place: Place,
    /// The member that all of `data` is, where that is a value alone.
    alone: Option<&'static str>,
    /// The members that stood beside `data`, each with the way to it.
    beside: Vec<(String, Vec<String>)>,
}

impl Unwrapped {
    /// Faults of the record, at the places where its parts were sent.
    #[must_use]
    pub fn placed(&self, mut faults: Vec<Fault>) -> Vec<Fault> {
        for fault in &mut faults {
            self.place_fault(fault);
        }
        faults
    }

    fn place_fault(&self, fault: &mut Fault) {
        let at = self.place.loc().len();
        let Some(LocPart::Name(name)) = fault.loc.get(at) else {
            return;
        };
        let beside = self.beside.iter().find(|(member, _)| member == name);
        let (way, replaced) = if let Some((_, way)) = beside {
            (way.iter().map(|part| LocPart::from(part.as_str())).collect(), 1)
        } else {
            let is_alone = self.alone.is_some_and(|alone| alone == name);
            (vec![LocPart::from("data")], usize::from(is_alone))
        };
        fault.loc.splice(at..at + replaced, way);
    }
}

/// The members of a record while its wrapper is taken off.
struct Unwrapping<'r> {
    record: &'r LegacyRecord,
    members: Vec<(String, String)>,
    beside: Vec<(String, Vec<String>)>,
    faults: Vec<Fault>,
}

impl LegacyRecord {
    /// The record as JSON, with the wrapper's data put where `data_type` has it. What is given inside and
    /// outside must be the same; tags and sources add up.
    pub fn for_type(&self, data_type: &DataType) -> Result<Unwrapped, Vec<Fault>> {
        let layout = &data_type.layout;
        let (alone, members) = match &self.content {
            Content::Members(members) => (None, members.clone()),
            Content::Value(raw) => (Some("value"), vec![("value".to_owned(), raw.clone())]),
            Content::Text(raw) => {
                let has_note = layout.storage.field_with_name("note").is_ok();
                let name = if has_note { "note" } else { "value" };
                (Some(name), vec![(name.to_owned(), raw.clone())])
            }
        };
        let mut unwrapping = Unwrapping {
            record: self,
            members,
            beside: Vec::new(),
            faults: Vec::new(),
        };
        unwrapping.settle_id(&layout.id);
        unwrapping.settle_time(&layout.times);
        unwrapping.unite("sources", self.sources.as_ref());
        unwrapping.unite("tags", self.tags.as_ref());
        unwrapping.add_others();
        if !unwrapping.faults.is_empty() {
            return Err(unwrapping.faults);
        }
        Ok(Unwrapped {
            json: to_json(unwrapping.members.iter()),
            place: self.place,
            alone,
            beside: unwrapping.beside,
        })
    }
}

impl Unwrapping<'_> {
    /// A member that is given, under the first of `names` that is.
    fn given<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Option<(&str, &str)> {
        names.into_iter().find_map(|name| {
            let mut given = self.members.iter();
            let found = given.find(|(given, raw)| given == name && raw != "null")?;
            Some((found.0.as_str(), found.1.as_str()))
        })
    }

    /// Sets a member that stood at `way` in the wrapper.
    fn put(&mut self, name: &str, raw: &str, way: &[&str]) {
        put(&mut self.members, name, raw);
        let way = way.iter().map(|part| (*part).to_owned()).collect();
        self.beside.push((name.to_owned(), way));
    }

    /// Reports that the wrapper has another value at `way` than the record in its member `name`.
    fn differs(&mut self, way: &[&str], name: &str) {
        let mut loc = self.record.place.loc();
        loc.extend(way.iter().map(|part| LocPart::from(*part)));
        let message = format!("this differs from data.{name}; send it in one of these places");
        self.faults.push(Fault::new(loc, "duplicate", message));
    }

    fn settle_id(&mut self, names: &[String]) {
        const WAY: [&str; 2] = [METADATA, "id"];
        let Some(id) = &self.record.id else { return };
        let names = ["id", "uuid"].into_iter().chain(names.iter().map(String::as_str));
        let Some((name, raw)) = self.given(names) else {
            return self.put("id", id, &WAY);
        };
        let read = |raw: &str| json::text(raw).and_then(|text| text.parse::<RecordId>().ok());
        // Of an id that is none, the record's own rules say so.
        if read(raw).is_some_and(|own| read(id) != Some(own)) {
            let name = name.to_owned();
            self.differs(&WAY, &name);
        }
    }

    fn settle_time(&mut self, times: &TimeFields) {
        let Some(time) = &self.record.time else { return };
        match times {
            TimeFields::StartEnd { start, end } => {
                self.settle_moment(&texts(start), Some(time.start()));
                self.settle_moment(&texts(end), time.end());
            }
            TimeFields::Moment { at, .. } => self.settle_moment(&texts(at), Some(time.start())),
            TimeFields::RecordedAt => match self.given(["recorded_at"]) {
                Some((_, own)) => {
                    let own = own.to_owned();
                    self.compare_recorded_at(time, &own);
                }
                None if self.given(["start_time", "end_time"]).is_some() => {
                    self.settle_moment(&["start_time"], Some(time.start()));
                    self.settle_moment(&["end_time"], time.end());
                }
                None => self.put("recorded_at", &time.json(), &[METADATA, "recorded_at"]),
            },
        }
    }

    /// Puts a moment of the wrapper under the first of `names`, or compares it with what is there already.
    fn settle_moment(&mut self, names: &[&str], moment: Option<Moment<'_>>) {
        let Some(Moment { raw, way }) = moment else { return };
        match self.given(names.iter().copied()) {
            Some((name, own)) => {
                if are_other_moments(own, raw) {
                    let name = name.to_owned();
                    self.differs(way, &name);
                }
            }
            None => {
                if let Some(name) = names.first() {
                    self.put(name, raw, way);
                }
            }
        }
    }

    /// Compares the record's `recorded_at`, a moment or a span, with that of the wrapper.
    fn compare_recorded_at(&mut self, time: &Time, own: &str) {
        let fields = json::fields(own.as_bytes());
        let member = |name: &str| match &fields {
            Ok(fields) => fields
                .iter()
                .find(|field| field.name == name)
                .map(|field| field.raw),
            // A moment begins and ends at once.
            Err(_) => Some(own),
        };
        for (moment, name) in [(Some(time.start()), "start_time"), (time.end(), "end_time")] {
            if let (Some(moment), Some(own)) = (moment, member(name))
                && are_other_moments(own, moment.raw)
            {
                self.differs(moment.way, "recorded_at");
            }
        }
    }

    /// Adds texts of the wrapper to those that the record has under this name.
    fn unite(&mut self, name: &str, given: Option<&(String, &'static str)>) {
        let Some((raw, member)) = given else { return };
        let own: Vec<&str> = self
            .members
            .iter()
            .filter(|(given, own)| given == name && own != "null")
            .map(|(_, own)| own.as_str())
            .collect();
        let [own] = own[..] else {
            // What is given twice is wrong by the record's own rules.
            if own.is_empty() {
                self.put(name, raw, &[METADATA, member]);
            }
            return;
        };
        let read = |raw: &str| serde_json::from_str::<Vec<String>>(raw);
        // So is what cannot be united.
        if let (Ok(mut texts), Ok(more)) = (read(own), read(raw)) {
            for text in more {
                if !texts.contains(&text) {
                    texts.push(text);
                }
            }
            put(&mut self.members, name, &Value::from(texts).to_string());
        }
    }

    /// Adds the undeclared members of the wrapper that the record does not have itself.
    fn add_others(&mut self) {
        let members = self.members.iter();
        let mut names: HashSet<String> = members.map(|(given, _)| given.clone()).collect();
        for Other { name, raw, way } in &self.record.others {
            if names.insert(name.clone()) {
                self.members.push((name.clone(), raw.clone()));
                let way = way.iter().map(|part| (*part).to_owned());
                self.beside
                    .push((name.clone(), way.chain([name.clone()]).collect()));
            }
        }
    }
}

/// A moment that the wrapper gives, as a JSON string, and the way to it.
#[derive(Clone, Copy)]
struct Moment<'t> {
    raw: &'t str,
    way: &'static [&'static str],
}

impl Time {
    fn start(&self) -> Moment<'_> {
        match self {
            Self::Moment(raw) => Moment {
                raw,
                way: &[METADATA, "recorded_at"],
            },
            Self::Span { start, .. } => Moment {
                raw: start,
                way: &[METADATA, "recorded_at", "start_time"],
            },
        }
    }

    /// A moment says nothing about an end.
    fn end(&self) -> Option<Moment<'_>> {
        match self {
            Self::Moment(_) => None,
            Self::Span { end, .. } => Some(Moment {
                raw: end,
                way: &[METADATA, "recorded_at", "end_time"],
            }),
        }
    }

    fn json(&self) -> String {
        match self {
            Self::Moment(at) => at.clone(),
            Self::Span { start, end } => format!("{{\"start_time\":{start},\"end_time\":{end}}}"),
        }
    }
}

fn texts(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}

/// Whether two JSON strings are moments that differ. Of a text that is none, the record's own rules say so.
fn are_other_moments(one: &str, other: &str) -> bool {
    let read = |raw: &str| json::text(raw).and_then(|text| parse_instant(&text).ok());
    read(one)
        .zip(read(other))
        .is_some_and(|(one, other)| one != other)
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
    let fields = json::fields(json).map_err(|mistake| vec![no_wrapper(place, json, mistake)])?;
    let mut others = Vec::new();
    let (mut data, mut metadata) = (None, None);
    for field in fields {
        match field.name.as_ref() {
            "data" => data = Some(field.raw),
            METADATA => metadata = Some(field.raw),
            "specversion" => {}
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
fn no_wrapper(place: Place, json: &[u8], mistake: Mistake) -> Fault {
    match (json.trim_ascii().first(), place) {
        (Some(b'{'), _) => {
            let mut loc = place.loc();
            loc.extend(mistake.field.map(LocPart::Name));
            Fault::new(loc, "json", mistake.message)
        }
        (Some(b'['), Place::Whole) => {
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
    sources: Option<(String, &'static str)>,
    tags: Option<(String, &'static str)>,
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
        for Field { name, raw } in fields {
            if raw == "null" {
                continue;
            }
            match name.as_ref() {
                "data_type" => metadata.data_type = self.text("data_type", raw),
                "content_type" => metadata.content_type = self.text("content_type", raw),
                "id" => metadata.id = self.id(raw),
                "recorded_at" => metadata.time = self.time(raw),
                "source" => metadata.sources = self.texts("source", raw),
                "sources" => metadata.sources = self.texts("sources", raw),
                "tags" => metadata.tags = self.texts("tags", raw),
                _ => others.push(Other {
                    name: name.into_owned(),
                    raw: raw.to_owned(),
                    way: &[METADATA],
                }),
            }
        }
        if metadata.data_type.is_none() && self.faults.is_empty() {
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
                .instant(&[METADATA, "recorded_at"], Some(raw))
                .map(Time::Moment);
        }
        let members = json::fields(raw.as_bytes()).unwrap_or_default();
        let member = |name: &str| {
            members
                .iter()
                .find(|member| member.name == name)
                .map(|member| member.raw)
        };
        let start = self.instant(&[METADATA, "recorded_at", "start_time"], member("start_time"));
        let end = self.instant(&[METADATA, "recorded_at", "end_time"], member("end_time"));
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
