//! Takes a record's fields as they were sent: under any of their names, once, and without text that cannot be
//! stored. Fields that the type does not know go into extras. Where answers show the members of extras beside
//! the others, they have been put there before (`spread_extras`).

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::reading::{Given, Reading};
use crate::ingest::body::RecordPosition;
use crate::ingest::compile::CompiledType;
use crate::ingest::context::DecodeContext;
use crate::ingest::extras::Extras;
use crate::ingest::faults::{self, MOST_FAULTS_OF_A_RECORD};
use crate::ingest::field_plan::Role;
use crate::ingest::given_once::{Names, given_twice};
use crate::ingest::json::{self, MistakeKind};
use crate::ingest::misread;
use crate::ingest::naming::is_of_sources;
use crate::ingest::spread_extras::is_misfit;
use crate::model::columns::EXTRAS;
use crate::model::excerpt::beginning;
use crate::model::faults::{Fault, LocPart};
use crate::model::nul::{has_nul, longest_text, path_to_nul};

/// The message about U+0000.
const NUL: &str = "U+0000 cannot be stored; leave it out";

impl<'c, 'a> Reading<'c, 'a> {
    /// Takes all fields of the record `json`, which stands at `place`.
    pub(super) fn of(
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
            coercion: context.leave.coercion,
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
        let mut names = Names::default();
        for field in fields {
            reading.take(field, &mut names);
            if reading.faults.len() >= MOST_FAULTS_OF_A_RECORD {
                break;
            }
        }
        reading.take_shown_in_extras();
        reading.take_unknown_times();
        reading.stop_at_faults()?;
        Ok(reading)
    }

    /// Takes a field after those that have the `names`.
    fn take(&mut self, field: json::Field<'a>, names: &mut Names<Cow<'a, str>>) {
        let json::Field { name, raw } = field;
        let value: Value = match serde_json::from_str(raw) {
            Ok(value) => value,
            Err(error) => {
                let mistake = json::explain_part(self.json, raw, &error);
                if mistake.kind == MistakeKind::TooLarge {
                    return self.fault_too_large(&name, raw, mistake.message);
                }
                return self.fault([name.as_ref()], "json", mistake.message);
            }
        };
        if !self.is_storable(&name, raw, &value) {
            return;
        }
        if let Some(way) = given_twice(raw) {
            return self.fault_given_twice_in(&name, way);
        }
        if !names.add(name.clone()) {
            return self.fault_given_twice(&name);
        }
        let Some(position) = self.compiled.plan.field(&name) else {
            if value.is_null() && self.compiled.plan.null_is_absent {
                return;
            }
            self.source_is_plain &= !is_of_sources(&name);
            if !self.extras.add(name.clone(), raw) {
                return self.fault_given_twice(&name);
            }
            if !self.compiled.plan.is_original(&name, &value) {
                self.document.insert(name.into_owned(), value);
            }
            return;
        };
        let Some(known) = self.compiled.plan.fields.get(position) else {
            return;
        };
        if value.is_null() && !matches!(known.role, Role::Column(_)) {
            // A null id, end or extras is the same as an absent one, unless it says that a time is unknown.
            if known.unknown.is_some() {
                self.unknown_times.push((position, name));
            }
            return;
        }
        match self.given.get_mut(position) {
            // It stands under another of its names too, such as `id` beside `uuid`.
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

    /// A number that is too large to be one, somewhere in a field.
    fn fault_too_large(&mut self, name: &str, raw: &str, message: String) {
        let mut loc = self.loc.clone();
        loc.push(name.into());
        let mut json = serde_json::Deserializer::from_str(raw);
        if let Err(found) = serde_path_to_error::deserialize::<_, Value>(&mut json) {
            loc = Fault::misread(loc, found.path(), found.inner()).loc;
        }
        self.faults.push(Fault::new(loc, "too_large", message));
    }

    /// A member that is given twice in an object somewhere in a field.
    fn fault_given_twice_in(&mut self, name: &str, way: Vec<LocPart>) {
        let mut loc = self.loc.clone();
        loc.push(name.into());
        loc.extend(way);
        let message = "given twice in one object; send it once";
        self.faults.push(Fault::new(loc, "duplicate", message));
    }

    /// Whether every text of a field can be stored.
    fn is_storable(&mut self, name: &str, raw: &str, value: &Value) -> bool {
        if has_nul(name) {
            self.fault([name.replace('\0', "").as_str()], "nul", NUL);
            return false;
        }
        if let Some(way) = path_to_nul(raw, value) {
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
        let Ok(members) = json::fields(raw.as_bytes()) else {
            let message = format!("expected object, found {}", faults::type_name(value));
            return self.fault([name], "type", message);
        };
        for member in members {
            // Where the type shows extras beside the others, what could be put there has been.
            let plan = &self.compiled.plan;
            if plan.spreads_extras && plan.field(&member.name).is_some() && !is_misfit(plan, &member) {
                let message = format!("{} belongs beside extras", beginning(&member.name));
                self.fault([name, member.name.as_ref()], "misplaced", message);
                continue;
            }
            let is_named = |earlier: &json::Field<'_>| earlier.name == member.name;
            let is_new = if !self.is_shown_in_extras(&member) {
                self.extras.add(member.name.clone(), member.raw)
            } else if self.shown_in_extras.iter().any(is_named) {
                false
            } else {
                self.shown_in_extras.push(member.clone());
                true
            };
            if !is_new {
                self.fault(
                    [name, member.name.as_ref()],
                    "duplicate",
                    format!("{} is given twice", beginning(&member.name)),
                );
            }
        }
    }

    /// Whether answers show the field of a member's name among the extras.
    fn is_shown_in_extras(&self, member: &json::Field<'_>) -> bool {
        let plan = &self.compiled.plan;
        let known = plan.field(&member.name).and_then(|field| plan.fields.get(field));
        known.is_some_and(|known| known.in_extras)
    }

    /// Takes members of extras as the fields that they are shown for. Besides the field itself there may only
    /// be the same again: in what is read, another member would hide it for good.
    fn take_shown_in_extras(&mut self) {
        for member in std::mem::take(&mut self.shown_in_extras) {
            let Ok(value) = serde_json::from_str::<Value>(member.raw) else {
                continue;
            };
            let Some(field) = self.compiled.plan.field(&member.name) else {
                continue;
            };
            let (Some(known), Some(given)) =
                (self.compiled.plan.fields.get(field), self.given.get_mut(field))
            else {
                continue;
            };
            let sent = self.document.get(&known.name).filter(|sent| !sent.is_null());
            if let Some(sent) = sent {
                if !value.is_null() && *sent != value {
                    let message = format!("{} is given beside extras too, with another value", known.name);
                    self.fault([EXTRAS, member.name.as_ref()], "duplicate", message);
                }
            } else if known.is_meant_in_extras(&value) {
                self.document.insert(known.name.clone(), value);
                *given = Some(Given {
                    name: member.name,
                    raw: member.raw,
                });
            } else if !self.extras.add(member.name.clone(), member.raw) {
                self.fault_given_twice(&member.name);
            }
        }
    }

    /// Takes the time that stands for an unknown one where null was sent, and nothing under another name.
    fn take_unknown_times(&mut self) {
        for (position, name) in std::mem::take(&mut self.unknown_times) {
            let Some(known) = self.compiled.plan.fields.get(position) else {
                continue;
            };
            if let (Some(raw), Some(given @ None)) = (known.unknown, self.given.get_mut(position))
                && let Ok(value) = serde_json::from_str(raw)
            {
                self.document.insert(known.name.clone(), value);
                *given = Some(Given { name, raw });
            }
        }
    }
}
