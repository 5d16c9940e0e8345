//! The methods that read a parameter. Each records what it asked for and notes what is wrong.

use std::fmt::Display;
use std::str::FromStr;

use uuid::Uuid;

use crate::auth::grants::Stated;
use crate::model::excerpt::beginning;
use crate::model::grid::start_of_day;
use crate::model::ids::PersonId;
use crate::model::time::{Instant, TimeRange, parse_instant_in_query};
use crate::model::zone::Zone;

use super::Params;
use super::choices::{Choice, Dates};
use super::read_param::{Form, Literal, Need, ReadParam};

const START: &str = "start_time";
const END: &str = "end_time";
const TIME: &str = "time";
const UTC: &str = "UTC";
/// The parameter for a zone.
const ZONE: &str = "tz";
const TIME_ZONE: &str = "time_zone";
const DATES: &str = "dates";
const NIGHT_OF: &str = "night_of";

impl Params<'_> {
    /// The text of a parameter whose value has this form; the last one if it was repeated. For callers that
    /// parse it themselves.
    pub fn one(&mut self, name: &'static str, form: Form, need: Need) -> Option<String> {
        let asked = ReadParam {
            name,
            form,
            many: false,
            need,
        };
        self.ask(asked).pop()
    }

    /// Every text of a parameter that may be repeated, unchanged, whose values have this form.
    pub fn several(&mut self, name: &'static str, form: Form, need: Need) -> Vec<String> {
        let asked = ReadParam {
            name,
            form,
            many: true,
            need,
        };
        self.ask(asked)
    }

    fn required_one(&mut self, name: &'static str, form: Form) -> Option<String> {
        let text = self.one(name, form, Need::Required);
        if text.is_none() {
            self.is_missing(name);
        }
        text
    }

    fn is_missing(&mut self, name: &'static str) {
        self.missing(name, "this parameter is required");
    }

    pub fn text(&mut self, name: &'static str) -> Option<String> {
        self.one(name, Form::Text, Need::Optional)
    }

    pub fn required_text(&mut self, name: &'static str) -> Option<String> {
        self.required_one(name, Form::Text)
    }

    /// The text as `parse` reads it; `otherwise` takes the place of a missing one.
    pub fn parsed_or<T, E: Display>(
        &mut self,
        name: &'static str,
        otherwise: &'static str,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Option<T> {
        let text = self.one(name, Form::Text, Need::Or(Literal::Text(otherwise)));
        parse(text.as_deref().unwrap_or(otherwise))
            .map_err(|error| self.fault(name, "value_error", error.to_string()))
            .ok()
    }

    /// All values of a repeated parameter, unchanged.
    pub fn repeated(&mut self, name: &'static str) -> Vec<String> {
        self.several(name, Form::Text, Need::Optional)
    }

    /// All values of a list, given by repetition or with commas between them.
    pub fn list(&mut self, name: &'static str) -> Vec<String> {
        items(&self.repeated(name))
    }

    /// All values of a list whose items may contain commas: each whole value, and its parts between commas.
    pub fn list_and_whole(&mut self, name: &'static str) -> Vec<String> {
        let mut all = Vec::new();
        for value in self.repeated(name) {
            let parts = std::iter::once(value.as_str())
                .chain(value.split(',').filter(|part| part.len() < value.len()));
            all.extend(
                parts
                    .map(str::trim)
                    .filter(|item| !item.is_empty())
                    .map(str::to_owned),
            );
        }
        all
    }

    /// A list with at least one item. `hint` says what to send.
    pub fn required_list(&mut self, name: &'static str, hint: &str) -> Option<Vec<String>> {
        let list = items(&self.several(name, Form::Text, Need::Required));
        if list.is_empty() {
            self.missing(name, hint);
            return None;
        }
        Some(list)
    }

    /// The items of a list that is repeated, separated by commas, or written like a JSON array; `None` if it
    /// was not sent.
    pub fn bracketed(&mut self, name: &'static str, form: Form, need: Need) -> Option<Vec<String>> {
        let sent = self.several(name, form, need);
        if sent.is_empty() {
            return None;
        }
        let bare = |text: &str| text.trim().trim_matches(['"', '\'']).to_owned();
        let list = sent.iter().flat_map(|value| {
            let value = value.trim();
            let inside = value
                .strip_prefix('[')
                .and_then(|rest| rest.strip_suffix(']'))
                .unwrap_or(value);
            inside.split(',').map(bare)
        });
        Some(list.filter(|item| !item.is_empty()).collect())
    }

    pub fn instant(&mut self, name: &'static str) -> Option<Instant> {
        let text = self.one(name, Form::Instant, Need::Optional)?;
        self.moment(name, &text)
    }

    pub fn required_instant(&mut self, name: &'static str) -> Option<Instant> {
        let text = self.required_one(name, Form::Instant)?;
        self.moment(name, &text)
    }

    fn moment(&mut self, name: &'static str, text: &str) -> Option<Instant> {
        parse_instant_in_query(text)
            .map_err(|error| self.fault(name, "datetime_parsing", error.to_string()))
            .ok()
    }

    /// `start_time` and `end_time`, both required.
    pub fn range(&mut self) -> Option<TimeRange> {
        let start = self.one(START, Form::Instant, Need::Required);
        let end = self.one(END, Form::Instant, Need::Required);
        let days = self.days();
        let start = self.required_bound(START, start, days.as_ref());
        let end = self.required_bound(END, end, days.as_ref());
        self.not_inverted(start?, end?)
    }

    /// `start_time` and `end_time`, either of which may be open. `Some` unless one of them is wrong.
    pub fn open_range(&mut self) -> Option<TimeRange> {
        let before = self.faults.len();
        let (start, end) = self.bounds();
        if self.faults.len() > before {
            return None;
        }
        let always = TimeRange::ALWAYS;
        self.not_inverted(start.unwrap_or(always.start()), end.unwrap_or(always.end()))
    }

    /// The moments of `start_time` and `end_time`, of each unless it is absent or wrong.
    pub fn bounds(&mut self) -> (Option<Instant>, Option<Instant>) {
        let start = self.one(START, Form::Instant, Need::Optional);
        let end = self.one(END, Form::Instant, Need::Optional);
        let days = self.days();
        let start = start.and_then(|text| self.bound(START, &text, days.as_ref()));
        let end = end.and_then(|text| self.bound(END, &text, days.as_ref()));
        (start, end)
    }

    /// The moments that the query names in parameters of its route, which has read them and noted their
    /// faults.
    pub fn stated(&mut self) -> Stated {
        let noted = self.faults.len();
        let moment = if self.reads(TIME) {
            self.instant(TIME)
        } else {
            None
        };
        let (start, end) = if self.reads(START) || self.reads(END) {
            self.bounds()
        } else {
            (None, None)
        };
        self.faults.truncate(noted);
        Stated {
            start: start.or(moment),
            end: end.or(moment),
        }
    }

    fn reads(&self, name: &str) -> bool {
        self.asked.iter().any(|asked| asked.name == name)
    }

    /// The zone in which dates without a time begin, if it is not UTC.
    fn days(&mut self) -> Option<Zone> {
        match self.choice_or(DATES, Dates::Utc)? {
            Dates::Utc => None,
            Dates::Local => self.zone_for(DATES, "dates=local are those of a zone: name one in tz"),
        }
    }

    /// `night_of`: the zone whose noon separates nights, if rows are to name their night. No zone fits
    /// everybody, so there is no default. `Some` unless something is wrong with it.
    pub fn nights(&mut self) -> Option<Option<Zone>> {
        if !self.flag_or(NIGHT_OF, false)? {
            return Some(None);
        }
        let zone = self.zone_for(NIGHT_OF, "nights begin at noon in a zone: name one in tz")?;
        Some(Some(zone))
    }

    /// The zone that the parameter `name` requires. Not every route that takes such a parameter otherwise
    /// takes a zone; here it is read in any case.
    fn zone_for(&mut self, name: &'static str, missing: &'static str) -> Option<Zone> {
        let Some(text) = self.sent(ZONE).pop() else {
            // What is no text is at fault for itself.
            if !self.is_sent(ZONE) {
                self.fault(name, "value_error", missing);
            }
            return None;
        };
        self.zone_of(ZONE, &text)
    }

    /// Reads the zone where the route has a parameter that may require one, whether or not it does now.
    pub(super) fn take_zone(&mut self) {
        let takes_zone = self.reads(ZONE) || self.reads(TIME_ZONE);
        if takes_zone || !(self.reads(DATES) || self.reads(NIGHT_OF)) {
            return;
        }
        if let Some(text) = self.one(ZONE, Form::Text, Need::Optional) {
            self.zone_of(ZONE, &text);
        }
    }

    fn zone_of(&mut self, name: &'static str, text: &str) -> Option<Zone> {
        Zone::parse_in_query(text)
            .map_err(|error| self.fault_once(name, "enum", error.to_string()))
            .ok()
    }

    /// Whether the parameter was sent, under any of its names.
    #[must_use]
    pub fn is_sent(&self, name: &str) -> bool {
        self.sent_as(name).is_some()
    }

    fn required_bound(
        &mut self,
        name: &'static str,
        text: Option<String>,
        days: Option<&Zone>,
    ) -> Option<Instant> {
        if text.is_none() {
            self.is_missing(name);
        }
        self.bound(name, &text?, days)
    }

    /// An end of a range.
    fn bound(&mut self, name: &'static str, text: &str, days: Option<&Zone>) -> Option<Instant> {
        let moment = self.moment(name, text)?;
        let is_date = !text.contains(['T', 't', ' ']);
        Some(
            days.filter(|_| is_date)
                .map_or(moment, |zone| start_of_day(zone, moment)),
        )
    }

    fn not_inverted(&mut self, start: Instant, end: Instant) -> Option<TimeRange> {
        let range = TimeRange::new(start, end);
        self.understood = range;
        if range.is_none() {
            self.fault(
                END,
                "value_error",
                "the range is inverted: end_time must not be before start_time",
            );
        }
        range
    }

    /// `true`, `false`, `True`, `False`, `1` or `0`; `otherwise` takes the place of a missing one.
    pub fn flag_or(&mut self, name: &'static str, otherwise: bool) -> Option<bool> {
        match self.one(name, Form::Flag, Need::Or(Literal::Flag(otherwise))) {
            Some(text) => self.truth(name, &text),
            None => Some(otherwise),
        }
    }

    fn truth(&mut self, name: &'static str, text: &str) -> Option<bool> {
        match text {
            "true" | "True" | "1" => Some(true),
            "false" | "False" | "0" => Some(false),
            other => {
                self.fault(
                    name,
                    "bool_parsing",
                    format!("{:?} is neither true nor false", beginning(other)),
                );
                None
            }
        }
    }

    /// A whole number of the range.
    pub fn integer(&mut self, name: &'static str, (least, most): (i64, i64)) -> Option<i64> {
        let text = self.one(name, Form::Whole(least, most), Need::Optional)?;
        self.whole(name, &text, (least, most))
    }

    /// A whole number of the range; `otherwise` takes the place of a missing one.
    pub fn integer_or(
        &mut self,
        name: &'static str,
        (least, most): (i64, i64),
        otherwise: i64,
    ) -> Option<i64> {
        let need = Need::Or(Literal::Whole(otherwise));
        match self.one(name, Form::Whole(least, most), need) {
            Some(text) => self.whole(name, &text, (least, most)),
            None => Some(otherwise),
        }
    }

    /// A whole number of the range, with or without a sign.
    fn whole(&mut self, name: &'static str, text: &str, (least, most): (i64, i64)) -> Option<i64> {
        let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
        let is_whole = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let shown = beginning(text);
        let too_small = || format!("{shown} is too small; the least is {least}");
        let too_large = || format!("{shown} is too large; the most is {most}");
        let (kind, message) = match text.parse::<i64>() {
            Ok(number) if number < least => ("greater_than_equal", too_small()),
            Ok(number) if number > most => ("less_than_equal", too_large()),
            Ok(number) => return Some(number),
            Err(_) if !is_whole => ("int_parsing", format!("{shown:?} is not a whole number")),
            Err(_) if text.starts_with('-') => ("int_parsing_size", too_small()),
            Err(_) => ("int_parsing_size", too_large()),
        };
        self.fault(name, kind, message);
        None
    }

    /// A finite number. The caller checks that it is at least `least`.
    pub fn number_from(&mut self, name: &'static str, least: f64) -> Option<f64> {
        let text = self.one(name, Form::Number(least, f64::INFINITY), Need::Optional)?;
        self.finite(name, &text)
    }

    /// A finite number. The caller checks that it is in the range.
    pub fn number_or(
        &mut self,
        name: &'static str,
        (least, most): (f64, f64),
        otherwise: f64,
    ) -> Option<f64> {
        let need = Need::Or(Literal::Number(otherwise));
        match self.one(name, Form::Number(least, most), need) {
            Some(text) => self.finite(name, &text),
            None => Some(otherwise),
        }
    }

    fn finite(&mut self, name: &'static str, text: &str) -> Option<f64> {
        let number: f64 = self.parsed(name, text, "float_parsing", "a number")?;
        if !number.is_finite() {
            self.fault(name, "finite_number", "expected a finite number");
            return None;
        }
        Some(number)
    }

    pub fn uuid(&mut self, name: &'static str) -> Option<Uuid> {
        let text = self.one(name, Form::Uuid, Need::Optional)?;
        self.parsed(name, &text, "uuid_parsing", "a uuid")
    }

    /// Several UUIDs. `Some` unless one of them is not a UUID.
    pub fn uuids(&mut self, name: &'static str) -> Option<Vec<Uuid>> {
        let texts = items(&self.several(name, Form::Uuid, Need::Optional));
        let read: Vec<Option<Uuid>> = texts
            .iter()
            .map(|text| self.parsed(name, text, "uuid_parsing", "a uuid"))
            .collect();
        read.into_iter().collect()
    }

    /// A time zone; UTC by default. The person's own is never assumed: the same question has the same answer
    /// for everybody.
    pub fn zone(&mut self, name: &'static str) -> Option<Zone> {
        let Some(text) = self.one(name, Form::Text, Need::Or(Literal::Text(UTC))) else {
            return Some(Zone::UTC);
        };
        self.zone_of(name, &text)
    }

    /// `svc_userid`: whose data is asked for, where it is not the reader's own.
    pub fn owner(&mut self) -> Option<PersonId> {
        self.uuid("svc_userid").map(PersonId)
    }

    /// Notes a participant who is named without their group, or beside a person.
    pub fn refuse_two_subjects(&mut self) {
        let [group, participant, person] =
            ["pool_id", "participant_id", "svc_userid"].map(|name| self.sent_as(name).is_some());
        if participant && !group {
            self.fault("pool_id", "missing", "`participant_id` needs `pool_id`");
        }
        if person && (group || participant) {
            let message = "name a person or a participant, not both";
            self.fault("svc_userid", "value_error", message);
        }
    }

    pub fn choice<T: Choice>(&mut self, name: &'static str) -> Option<T> {
        let text = self.one(name, Form::Word(T::words()), Need::Optional)?;
        self.chosen(name, &text)
    }

    pub fn choice_or<T: Choice>(&mut self, name: &'static str, otherwise: T) -> Option<T> {
        let need = Need::Or(Literal::Text(otherwise.name()));
        match self.one(name, Form::Word(T::words()), need) {
            Some(text) => self.chosen(name, &text),
            None => Some(otherwise),
        }
    }

    pub fn required_choice<T: Choice>(&mut self, name: &'static str) -> Option<T> {
        let text = self.required_one(name, Form::Word(T::words()))?;
        self.chosen(name, &text)
    }

    /// Several names of `T`. `Some` unless one of them is unknown.
    pub fn choices<T: Choice>(&mut self, name: &'static str) -> Option<Vec<T>> {
        let names = items(&self.several(name, Form::Word(T::words()), Need::Optional));
        self.each_chosen(name, &names)
    }

    /// At least one name of `T`. `hint` says what to send.
    pub fn required_choices<T: Choice>(&mut self, name: &'static str, hint: &str) -> Option<Vec<T>> {
        let names = items(&self.several(name, Form::Word(T::words()), Need::Required));
        if names.is_empty() {
            self.missing(name, hint);
            return None;
        }
        self.each_chosen(name, &names)
    }

    fn each_chosen<T: Choice>(&mut self, name: &'static str, names: &[String]) -> Option<Vec<T>> {
        let chosen: Vec<Option<T>> = names.iter().map(|text| self.chosen(name, text)).collect();
        chosen.into_iter().collect()
    }

    fn chosen<T: Choice>(&mut self, name: &'static str, text: &str) -> Option<T> {
        text.parse()
            .map_err(|error: T::Err| self.fault(name, "enum", error.to_string()))
            .ok()
    }

    fn parsed<T: FromStr>(
        &mut self,
        name: &'static str,
        text: &str,
        kind: &'static str,
        expected: &str,
    ) -> Option<T> {
        text.parse()
            .map_err(|_| self.fault(name, kind, format!("{:?} is not {expected}", beginning(text))))
            .ok()
    }
}

/// The parts between the commas of each value.
fn items(values: &[String]) -> Vec<String> {
    values.iter().flat_map(|value| list_items(value)).collect()
}

/// What stands between the commas of a value.
pub fn list_items(value: &str) -> impl Iterator<Item = String> + '_ {
    value
        .split(',')
        .map(str::trim)
        .filter(|item| !item.is_empty())
        .map(str::to_owned)
}
