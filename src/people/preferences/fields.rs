//! Defines the form of each preference: a table of names, and what a value of each kind must look like.

use serde_json::{Map, Value};
use uuid::Uuid;

use super::names::{INSIGHT_TARGETS, SOURCE_ORDER, TIME_ZONE, UNITS};
use crate::model::faults::{Fault, LocPart, MOST_FAULTS};
use crate::model::strict_json::whole_number;
use crate::model::units::UnitSystem;
use crate::model::zone::Zone;

/// The kind of a preference's value.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Texts,
    Zone,
    Units,
    Periods,
    Targets,
    /// An object whose values all have one form.
    Each(Form),
}

#[derive(Clone, Copy, Debug)]
enum Form {
    Texts,
    Integer,
    /// Ids without duplicates.
    Ids,
}

const FIELDS: [(&str, Kind); 12] = [
    ("calendar_events_data_track_filter_map", Kind::Each(Form::Texts)),
    ("calendars", Kind::Texts),
    (INSIGHT_TARGETS, Kind::Targets),
    ("location_resolution", Kind::Each(Form::Integer)),
    ("periods_of_day", Kind::Periods),
    ("pinned_metrics_count_map", Kind::Each(Form::Integer)),
    ("selected_calendar_vendor_ids", Kind::Texts),
    (SELECTED_METRICS, Kind::Texts),
    (SELECTED_METRICS_MAP, Kind::Each(Form::Texts)),
    (SOURCE_ORDER, Kind::Each(Form::Ids)),
    (TIME_ZONE, Kind::Zone),
    (UNITS, Kind::Units),
];

const SELECTED_METRICS: &str = "selected_metrics";
/// Selected metrics, by what they are selected for.
const SELECTED_METRICS_MAP: &str = "selected_metrics_map";

/// The possible targets, each with the largest sensible value.
const TARGETS: [(&str, f64); 2] = [("sleep_hours", 24.0), ("daily_steps", 1_000_000.0)];

/// The most entries of a list or an object.
const MOST_ENTRIES: usize = 1_000;

const PERIODS: [&str; 4] = ["morning", "afternoon", "evening", "end_of_day"];

/// The faults in the form of some preferences, as many as are listed.
pub(super) fn faults_of(members: &Map<String, Value>) -> Vec<Fault> {
    let mut check = Check { faults: Vec::new() };
    for (name, value) in members {
        if check.faults.len() >= MOST_FAULTS {
            break;
        }
        let path = FieldPath(vec!["body".into(), name.as_str().into()]);
        match FIELDS.iter().find(|(known, _)| known == name) {
            None => {
                let known: Vec<&str> = FIELDS.iter().map(|(name, _)| *name).collect();
                let message = format!("there is no such preference; there are {}", known.join(", "));
                check.fault(&path, "extra_forbidden", message);
            }
            // Null clears any preference.
            Some(_) if value.is_null() => {}
            Some((_, kind)) => check.kind(&path, *kind, value),
        }
    }
    check.faults
}

/// The types that preferences of a valid form select, each with its place. Clients call what they show a
/// metric, of whatever class it is.
pub(super) fn selected_types(members: &Map<String, Value>) -> Vec<(Vec<LocPart>, &str)> {
    let mut lists = Vec::new();
    if let Some(names) = members.get(SELECTED_METRICS) {
        lists.push((vec!["body".into(), SELECTED_METRICS.into()], names));
    }
    let by_use = members.get(SELECTED_METRICS_MAP).and_then(Value::as_object);
    for (what_for, names) in by_use.into_iter().flatten() {
        let loc: Vec<LocPart> = vec![
            "body".into(),
            SELECTED_METRICS_MAP.into(),
            what_for.as_str().into(),
        ];
        lists.push((loc, names));
    }
    let mut types = Vec::new();
    for (loc, names) in lists {
        for (index, name) in names.as_array().into_iter().flatten().enumerate() {
            let mut loc = loc.clone();
            loc.push(index.into());
            types.push((loc, name.as_str().unwrap_or_default()));
        }
    }
    types
}

/// Whole numbers that were sent with a fraction of zeros, as they are kept: without one.
pub(super) fn write_whole(members: &mut Map<String, Value>) {
    for (name, value) in members {
        let is_whole = FIELDS
            .iter()
            .any(|(known, kind)| known == name && matches!(kind, Kind::Each(Form::Integer)));
        let numbers = value.as_object_mut().filter(|_| is_whole);
        for number in numbers.into_iter().flat_map(Map::values_mut) {
            if let Some(whole) = whole_number(number) {
                *number = whole.into();
            }
        }
    }
}

struct FieldPath(Vec<LocPart>);

impl FieldPath {
    fn at(&self, part: impl Into<LocPart>) -> Self {
        let mut parts = self.0.clone();
        parts.push(part.into());
        Self(parts)
    }
}

struct Check {
    faults: Vec<Fault>,
}

impl Check {
    fn fault(&mut self, path: &FieldPath, kind: &'static str, message: impl Into<String>) {
        if self.faults.len() < MOST_FAULTS {
            self.faults.push(Fault::new(path.0.clone(), kind, message));
        }
    }

    /// The members of an object with no more than are allowed.
    fn members<'v>(&mut self, path: &FieldPath, value: &'v Value) -> Option<&'v Map<String, Value>> {
        let Some(members) = value.as_object() else {
            self.fault(path, "dict_type", "expected an object or null");
            return None;
        };
        self.allows(path, members.len()).then_some(members)
    }

    /// The items of a list with no more than are allowed.
    fn items<'v>(
        &mut self,
        path: &FieldPath,
        value: &'v Value,
        expected: &'static str,
    ) -> Option<&'v Vec<Value>> {
        let Some(items) = value.as_array() else {
            self.fault(path, "list_type", expected);
            return None;
        };
        self.allows(path, items.len()).then_some(items)
    }

    /// Whether so many entries are allowed. If not, that is their one fault.
    fn allows(&mut self, path: &FieldPath, entries: usize) -> bool {
        if entries > MOST_ENTRIES {
            let message = format!("a preference has {MOST_ENTRIES} entries at most, this one has {entries}");
            self.fault(path, "too_long", message);
        }
        entries <= MOST_ENTRIES
    }

    fn kind(&mut self, path: &FieldPath, kind: Kind, value: &Value) {
        match kind {
            Kind::Texts => self.texts(path, value),
            Kind::Zone => self.zone(path, value),
            Kind::Units => self.units(path, value),
            Kind::Periods => self.periods(path, value),
            Kind::Targets => self.targets(path, value),
            Kind::Each(form) => {
                for (name, value) in self.members(path, value).into_iter().flatten() {
                    self.form(&path.at(name.as_str()), form, value);
                }
            }
        }
    }

    fn form(&mut self, path: &FieldPath, form: Form, value: &Value) {
        match form {
            Form::Texts => self.texts(path, value),
            Form::Integer if whole_number(value).is_none() => {
                self.fault(path, "int_type", "expected a whole number");
            }
            Form::Integer => {}
            Form::Ids => self.ids(path, value),
        }
    }

    fn texts(&mut self, path: &FieldPath, value: &Value) {
        let items = self.items(path, value, "expected a list of strings");
        for (index, item) in items.into_iter().flatten().enumerate() {
            if !item.is_string() {
                self.fault(&path.at(index), "string_type", "expected a string");
            }
        }
    }

    fn ids(&mut self, path: &FieldPath, value: &Value) {
        let expected = "expected a list of the ids of sources, best first";
        let Some(items) = self.items(path, value, expected) else {
            return;
        };
        let mut seen = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            match item.as_str().and_then(|text| Uuid::parse_str(text).ok()) {
                None => self.fault(
                    &path.at(index),
                    "uuid_parsing",
                    "expected the uuid of a source, as /data/v1alpha1/data_sources lists them",
                ),
                Some(id) if seen.contains(&id) => self.fault(
                    &path.at(index),
                    "value_error",
                    format!("the source {id} is named twice"),
                ),
                Some(id) => seen.push(id),
            }
        }
    }

    fn zone(&mut self, path: &FieldPath, value: &Value) {
        if value.as_str().and_then(Zone::parse).is_none() {
            self.fault(
                path,
                "value_error",
                "expected the name of a time zone, such as Europe/Berlin, America/New_York or UTC",
            );
        }
    }

    fn units(&mut self, path: &FieldPath, value: &Value) {
        let named = value.as_str().map(str::parse::<UnitSystem>);
        match named {
            Some(Ok(_)) => {}
            Some(Err(error)) => self.fault(path, "enum", error.to_string()),
            None => {
                let known = UnitSystem::ALL.map(UnitSystem::name).join(", ");
                self.fault(path, "string_type", format!("expected one of {known}"));
            }
        }
    }

    fn targets(&mut self, path: &FieldPath, value: &Value) {
        for (name, value) in self.members(path, value).into_iter().flatten() {
            let path = path.at(name.as_str());
            match TARGETS.iter().find(|(known, _)| known == name) {
                None => {
                    let known: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
                    let message = format!("there is no such target; there are {}", known.join(", "));
                    self.fault(&path, "extra_forbidden", message);
                }
                Some((_, most)) => {
                    if !value
                        .as_f64()
                        .is_some_and(|number| number > 0.0 && number <= *most)
                    {
                        self.fault(
                            &path,
                            "value_error",
                            format!("expected a number above 0, at most {most}"),
                        );
                    }
                }
            }
        }
    }

    fn periods(&mut self, path: &FieldPath, value: &Value) {
        for (name, value) in self.members(path, value).into_iter().flatten() {
            let path = path.at(name.as_str());
            if !PERIODS.contains(&name.as_str()) {
                let message = format!(
                    "there is no such period of the day; there are {}",
                    PERIODS.join(", ")
                );
                self.fault(&path, "extra_forbidden", message);
            } else if !value.as_str().is_some_and(is_time_of_day) {
                self.fault(
                    &path,
                    "time_parsing",
                    "expected a time of the form HH:MM:SS, such as 18:30:00",
                );
            }
        }
    }
}

/// `HH:MM:SS`, from `00:00:00` to `23:59:59`.
fn is_time_of_day(text: &str) -> bool {
    let parts: Vec<Option<u8>> = text
        .split(':')
        .map(|part| {
            (part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit())).then(|| part.parse().ok())?
        })
        .collect();
    matches!(parts[..], [Some(hour), Some(minute), Some(second)] if hour < 24 && minute < 60 && second < 60)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn places(body: &Value) -> Vec<String> {
        let found = faults_of(body.as_object().unwrap());
        let mut places: Vec<String> = found
            .iter()
            .map(|fault| {
                let parts = serde_json::to_value(&fault.loc).unwrap();
                let parts = parts
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|part| part.as_str().unwrap().to_owned());
                parts.collect::<Vec<_>>().join(".")
            })
            .collect();
        places.sort();
        places
    }

    #[test]
    fn every_field_of_the_interface_is_known() {
        let all = json!({
            "calendar_events_data_track_filter_map": {"work": ["a"]},
            "calendars": ["a", "b"],
            "insight_targets": {"sleep_hours": 7.5, "daily_steps": 8000},
            "location_resolution": {"maps": 5},
            "periods_of_day": {
                "morning": "06:00:00", "afternoon": "12:00:00", "evening": "18:00:00",
                "end_of_day": "23:59:59",
            },
            "pinned_metrics_count_map": {"home": 3},
            "selected_calendar_vendor_ids": [],
            "selected_metrics": ["HeartRate"],
            "selected_metrics_map": {"home": ["HeartRate"]},
            "source_order": {"StepCount": ["0193b5a2-0000-7000-8000-000000000001"]},
            "timezone": "localtime",
            "units": "metric",
        });
        assert_eq!(places(&all), Vec::<String>::new());
        let cleared: Map<String, Value> = all
            .as_object()
            .unwrap()
            .keys()
            .map(|name| (name.clone(), Value::Null))
            .collect();
        assert_eq!(cleared.len(), FIELDS.len());
        assert_eq!(places(&Value::Object(cleared)), Vec::<String>::new());
    }

    #[test]
    fn each_fault_is_told_with_its_place() {
        let id = "0193b5a2-0000-7000-8000-000000000001";
        let wrong = json!({
            "colour": "red",
            "calendars": "a",
            "insight_targets": {"sleep_hours": 0, "daily_steps": "many", "weight": 70},
            "selected_metrics": ["HeartRate", 5],
            "location_resolution": {"maps": 1.5},
            "periods_of_day": {
                "noon": "12:00:00", "morning": "6:00", "evening": "24:00:00", "end_of_day": "23:59:60",
            },
            "selected_metrics_map": {"home": null},
            "source_order": {"StepCount": [id, "x", id], "HeartRate": {}},
            "timezone": "Mars/Olympus",
            "units": "imperial",
        });
        assert_eq!(
            places(&wrong),
            [
                "body.calendars",
                "body.colour",
                "body.insight_targets.daily_steps",
                "body.insight_targets.sleep_hours",
                "body.insight_targets.weight",
                "body.location_resolution.maps",
                "body.periods_of_day.end_of_day",
                "body.periods_of_day.evening",
                "body.periods_of_day.morning",
                "body.periods_of_day.noon",
                "body.selected_metrics.1",
                "body.selected_metrics_map.home",
                "body.source_order.HeartRate",
                "body.source_order.StepCount.1",
                "body.source_order.StepCount.2",
                "body.timezone",
                "body.units",
            ]
        );
    }
    #[test]
    fn a_list_or_an_object_has_a_length_that_is_allowed() {
        let texts = |count: usize| vec!["a"; count];
        let longest = json!({"calendars": texts(MOST_ENTRIES)});
        assert_eq!(places(&longest), Vec::<String>::new());
        let members: Map<String, Value> = (0..=MOST_ENTRIES)
            .map(|number| (number.to_string(), json!("wrong")))
            .collect();
        for name in ["calendars", "selected_metrics"] {
            let place = format!("body.{name}");
            assert_eq!(places(&json!({(name): texts(MOST_ENTRIES + 1)})), [place]);
        }
        for (name, _) in FIELDS
            .iter()
            .filter(|(_, kind)| !matches!(kind, Kind::Texts | Kind::Zone | Kind::Units))
        {
            assert_eq!(places(&json!({(*name): members})), [format!("body.{name}")]);
        }
    }

    #[test]
    fn the_search_for_faults_ends() {
        let unknown: Map<String, Value> = (0..5000)
            .map(|number| (format!("colour{number}"), json!("red")))
            .collect();
        let numbers = json!({"calendars": vec![5; 900], "selected_metrics": vec![5; 900]});
        for body in [Value::Object(unknown), numbers] {
            assert_eq!(places(&body).len(), MOST_FAULTS);
        }
    }
}
