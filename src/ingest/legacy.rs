//! Unwraps the older form of a record: its JSON inside a string, beside metadata that names its type and may
//! carry its id, time, sources and tags.
//!
//! The result is a record in today's form, decoded like any other. What is given in several places must be
//! the same in each; tags and sources add up. Knows the wrapper; leaves the record's own rules to its type.

mod places;
mod wrapper;

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use serde_json::Value;

use self::places::{Places, TextPlace};
pub use self::wrapper::LegacyRecord;
use self::wrapper::{DATA, METADATA, Other, Payload, RECORDED_AT, Time, unwrap};
use super::body::{BodyForm, RecordPosition};
use super::cells::compact;
use super::json::{self, Field, Mistake, MistakeKind};
use super::lines::{Lines, unmarked};
use super::member_order::say_the_same;
use crate::model::excerpt::beginning;
use crate::model::faults::{Fault, LocPart, MOST_FAULTS};
use crate::model::ids::RecordId;
use crate::model::json_object::ObjectText;
use crate::model::registry::{DataType, Layout, TimeFields};
use crate::model::time::parse_instant;

/// Unwraps a body that is one wrapped record.
pub fn unwrap_one(body: &[u8]) -> Result<LegacyRecord, Vec<Fault>> {
    unwrap(RecordPosition::Whole, body)
}

/// Unwraps a body that is an array of wrapped records, or has one on each line, and hands them to `each` one
/// by one until it has enough. Lines may be none; an empty text is no JSON.
pub fn unwrap_batch(
    form: BodyForm,
    body: &[u8],
    mut each: impl FnMut(Result<LegacyRecord, Vec<Fault>>) -> ControlFlow<()>,
) -> Result<(), Vec<Fault>> {
    let text = std::str::from_utf8(body).map_err(|_| malformed("not UTF-8"))?;
    let text = text.trim();
    if form == BodyForm::Object && unmarked(text.as_bytes()).is_empty() {
        return Err(malformed(
            "the body is empty; expected an array of wrapped records",
        ));
    }
    if text.starts_with('[') {
        let mut read = 0;
        return json::each_element(text, |index, element| {
            read = index + 1;
            each(unwrap(RecordPosition::Line(index), element.as_bytes()))
        })
        .map_err(|error| vec![no_array(read, json::explain_part(body, text, &error))]);
    }
    if json::fields(text.as_bytes()).is_ok() {
        let _ = each(unwrap(RecordPosition::Line(0), text.as_bytes()));
        return Ok(());
    }
    let mut lines = Lines::new(body.len());
    let mut receive = |index: usize, line: &[u8]| match each(unwrap(RecordPosition::Line(index), line)) {
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

/// The fault of a text that begins as an array, and of which so many elements could be read.
fn no_array(read: usize, mistake: Mistake) -> Fault {
    let (place, message) = match mistake.kind {
        MistakeKind::BreaksOff { at } => (
            RecordPosition::Whole,
            format!("malformed JSON: the text breaks off at byte {at}, within the array; send all of it"),
        ),
        MistakeKind::MoreFollows { at } => (
            RecordPosition::Whole,
            format!("the array ends before byte {at}, where something else begins; send nothing after it"),
        ),
        MistakeKind::Malformed | MistakeKind::TooLarge => (RecordPosition::Line(read), mistake.message),
    };
    Fault::new(place.loc(), "json", message)
}

fn malformed(reason: &str) -> Vec<Fault> {
    let message = format!("malformed JSON: {reason}");
    vec![Fault::new(RecordPosition::Whole.loc(), "json", message)]
}

/// A record in today's form, and where its members came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unwrapped {
    pub json: Vec<u8>,
    places: Places,
}

impl Unwrapped {
    /// Faults of the record, at the places where its parts were sent.
    #[must_use]
    pub fn placed(&self, mut faults: Vec<Fault>) -> Vec<Fault> {
        for fault in &mut faults {
            self.places.place(fault);
        }
        faults
    }
}

/// The members of a record while its wrapper is taken off.
struct Unwrapping<'r> {
    record: &'r LegacyRecord,
    members: Vec<(String, String)>,
    places: Places,
    faults: Vec<Fault>,
}

impl LegacyRecord {
    /// The record as JSON, with the wrapper's data put where `data_type` has it. What is given inside and
    /// outside must be the same; tags and sources add up.
    pub fn for_type(&self, data_type: &DataType) -> Result<Unwrapped, Vec<Fault>> {
        let layout = &data_type.layout;
        let mut unwrapping = Unwrapping {
            record: self,
            members: Vec::new(),
            places: Places::new(self.place),
            faults: Vec::new(),
        };
        let has = |name: &str| layout.storage.field_with_name(name).is_ok();
        match &self.content {
            Payload::Members(members) => unwrapping.members.clone_from(members),
            Payload::Value(raw) if has("value") => unwrapping.put("value", raw, &[DATA]),
            Payload::Value(raw) => unwrapping.faults.push(no_record(self.place, raw)),
            Payload::Text(raw) => unwrapping.put(if has("note") { "note" } else { "value" }, raw, &[DATA]),
        }
        let names_of_id = names_of_id(layout);
        unwrapping.unwrap_id(&names_of_id);
        let rest = unwrapping.unwrap_time(&layout.times);
        for sources in &self.sources {
            unwrapping.unite("sources", sources);
        }
        if let Some(tags) = &self.tags {
            unwrapping.unite("tags", tags);
        }
        unwrapping.add_others(rest.as_ref(), &names_of_id);
        if !unwrapping.faults.is_empty() {
            return Err(unwrapping.faults);
        }
        Ok(Unwrapped {
            json: to_json(&unwrapping.members).into_bytes(),
            places: unwrapping.places,
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

    /// Sets a member that stands at `way` in the wrapper.
    fn put(&mut self, name: &str, raw: &str, way: &[&str]) {
        put(&mut self.members, name, raw);
        self.places.put(name, way);
    }

    /// Reports that the wrapper has another value at `way` than the record in its member `name`.
    fn differs(&mut self, way: &[&str], name: &str) {
        let mut loc = self.record.place.loc();
        loc.extend(way.iter().map(|part| LocPart::from(*part)));
        let other = match self.places.way_to(name) {
            Some(way) => way.join("."),
            None => format!("{DATA}.{name}"),
        };
        let other = beginning(&other);
        let message = format!("this differs from {other}; send it in one of these places");
        self.faults.push(Fault::new(loc, "duplicate", message));
    }

    fn unwrap_id(&mut self, names: &[&str]) {
        const WAY: [&str; 2] = [METADATA, "id"];
        let Some(id) = &self.record.id else { return };
        let Some((name, own)) = self.given(names.iter().copied()) else {
            return self.put("id", id, &WAY);
        };
        if is_another_id(own, id) {
            let name = name.to_owned();
            self.differs(&WAY, &name);
        }
    }

    /// Returns what the wrapper says beside the time and is to be kept apart from it.
    fn unwrap_time(&mut self, times: &TimeFields) -> Option<Other> {
        let time = self.record.time.as_ref()?;
        let rest = time.rest();
        match times {
            TimeFields::StartEnd { start, end } => {
                self.unwrap_moment(&texts(start), Some(time.start()));
                self.unwrap_moment(&texts(end), time.end());
            }
            TimeFields::Moment { at, .. } => self.unwrap_moment(&texts(at), Some(time.start())),
            TimeFields::RecordedAt => {
                self.unwrap_recorded_at(time);
                return None;
            }
        }
        (!rest.is_empty()).then(|| Other {
            name: RECORDED_AT.to_owned(),
            raw: to_json(rest),
            way: &[METADATA],
        })
    }

    fn unwrap_recorded_at(&mut self, time: &Time) {
        if let Some((_, own)) = self.given([RECORDED_AT]) {
            let own = own.to_owned();
            self.compare_recorded_at(time, &own);
        } else if time.rest().is_empty() && self.given(["start_time", "end_time"]).is_some() {
            self.unwrap_moment(&["start_time"], Some(time.start()));
            self.unwrap_moment(&["end_time"], time.end());
        } else {
            self.put(RECORDED_AT, &time.json(), &[METADATA, RECORDED_AT]);
        }
    }

    /// Puts a moment of the wrapper under the first of `names`, or compares it with what is there already.
    fn unwrap_moment(&mut self, names: &[&str], moment: Option<Moment<'_>>) {
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

    /// Compares the record's `recorded_at`, a moment or a span, with that of the wrapper: its moments however
    /// they are written, and the members beside them as they are.
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
                self.differs(moment.way, RECORDED_AT);
            }
        }
        let is_moment = |field: &Field<'_>| ["start_time", "end_time"].contains(&field.name.as_ref());
        let rest: Vec<(String, String)> = fields
            .unwrap_or_default()
            .into_iter()
            .filter(|field| !is_moment(field))
            .map(|Field { name, raw }| (name.into_owned(), raw.to_owned()))
            .collect();
        // What the record alone says stays in it.
        if !time.rest().is_empty() && !say_the_same(&to_json(&rest), &to_json(time.rest())) {
            self.differs(&[METADATA, RECORDED_AT], RECORDED_AT);
        }
    }

    /// Adds texts of the wrapper to those that the record has under this name.
    fn unite(&mut self, name: &str, (raw, member): &(String, &'static str)) {
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
        if let (Ok(texts), Ok(more)) = (read(own), read(raw)) {
            let mut known: HashSet<&str> = texts.iter().map(String::as_str).collect();
            let mut united: Vec<&str> = texts.iter().map(String::as_str).collect();
            let mut added = Vec::new();
            for (index, text) in more.iter().enumerate() {
                if known.insert(text) {
                    united.push(text);
                    added.push(TextPlace { member, index });
                }
            }
            put(&mut self.members, name, &Value::from(united).to_string());
            self.places.unite(name, texts.len(), added);
        }
    }

    /// Adds the undeclared members of the wrapper, with `rest` before them. What the record has already must
    /// be the same; null gives way to anything else. A record has one id, by whichever of its names.
    fn add_others(&mut self, rest: Option<&Other>, names_of_id: &[&str]) {
        let record = self.record;
        let members = self.members.iter().enumerate();
        // Of members that are given twice the record's own rules say so.
        let mut places: HashMap<String, usize> = members
            .map(|(place, (given, _))| (given.clone(), place))
            .collect();
        for Other { name, raw, way } in rest.into_iter().chain(&record.others) {
            if self.faults.len() >= MOST_FAULTS {
                return;
            }
            let way: Vec<&str> = way.iter().copied().chain([name.as_str()]).collect();
            let is_id = names_of_id.contains(&name.as_str());
            let id = if is_id {
                self.given(names_of_id.iter().copied())
            } else {
                None
            };
            let known = id.map_or_else(|| name.clone(), |(given, _)| given.to_owned());
            let place = *places.entry(known.clone()).or_insert(self.members.len());
            match self.members.get_mut(place) {
                None => self.members.push((name.clone(), raw.clone())),
                Some((_, earlier)) if earlier == "null" => earlier.clone_from(raw),
                Some((_, earlier)) => {
                    let is_another = if is_id {
                        is_another_id(earlier, raw)
                    } else {
                        !say_the_same(&compact(earlier), &compact(raw))
                    };
                    if raw != "null" && is_another {
                        self.differs(&way, &known);
                    }
                    continue;
                }
            }
            self.places.put(name, &way);
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
                way: &[METADATA, RECORDED_AT],
            },
            Self::Span { start, .. } => Moment {
                raw: start,
                way: &[METADATA, RECORDED_AT, "start_time"],
            },
        }
    }

    /// A moment says nothing about an end.
    fn end(&self) -> Option<Moment<'_>> {
        match self {
            Self::Moment(_) => None,
            Self::Span { end, .. } => Some(Moment {
                raw: end,
                way: &[METADATA, RECORDED_AT, "end_time"],
            }),
        }
    }

    /// The undeclared members beside its moments.
    fn rest(&self) -> &[(String, String)] {
        match self {
            Self::Moment(_) => &[],
            Self::Span { rest, .. } => rest,
        }
    }

    fn json(&self) -> String {
        match self {
            Self::Moment(at) => at.clone(),
            Self::Span { start, end, rest } => {
                let moments = [("start_time", start), ("end_time", end)];
                let moments = moments.map(|(name, raw)| (name.to_owned(), raw.clone()));
                to_json(moments.iter().chain(rest))
            }
        }
    }
}

/// The fault of a value alone where the type has none. As an undeclared member it could be anything, also a
/// list of records, of which one record would be stored that says nothing.
fn no_record(place: RecordPosition, raw: &str) -> Fault {
    let mut loc = place.loc();
    loc.push(DATA.into());
    let message = if raw.trim_start().starts_with('[') {
        "found an array where one record was expected, an object; wrap each of its elements by itself"
    } else {
        "expected an object: records of this type have no value that could be sent alone"
    };
    Fault::new(loc, "type", message)
}

/// The names by which a record of the type may give its id. A type's own column called `uuid` is a column.
fn names_of_id(layout: &Layout) -> Vec<&str> {
    let is_column = layout.storage.field_with_name("uuid").is_ok();
    let common = ["id", "uuid"]
        .into_iter()
        .filter(|name| !is_column || *name != "uuid");
    common.chain(layout.id.iter().map(String::as_str)).collect()
}

/// Whether a JSON string is another id than a record's own, in whatever case they are. Of an own id that is
/// none, the record's own rules say so.
fn is_another_id(own: &str, other: &str) -> bool {
    let read = |raw: &str| json::text(raw).and_then(|text| text.parse::<RecordId>().ok());
    read(own).is_some_and(|own| read(other) != Some(own))
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
    // What is given twice is wrong by the record's own rules, which must see it.
    if members.iter().filter(|(given, _)| given == name).count() > 1 {
        return;
    }
    members.retain(|(given, _)| given != name);
    members.push((name.to_owned(), raw.to_owned()));
}

fn to_json<'a>(members: impl IntoIterator<Item = &'a (String, String)>) -> String {
    let mut text = ObjectText::default();
    for (name, raw) in members {
        json::append_compact(raw, text.field(name));
    }
    text.whole()
}
