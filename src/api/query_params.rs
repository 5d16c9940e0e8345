//! The query of a request: text in, words of the domain out, every fault found at once.
//!
//! A route says in [`FromParams`] what it takes. It reads all of its parameters before it looks at any, so
//! that one answer names everything that is wrong; what it never asked for is reported as ignored.

use std::borrow::Cow;
use std::fmt::Display;
use std::str::FromStr;

use uuid::Uuid;

use crate::model::faults::Fault;
use crate::model::ids::PersonId;
use crate::model::time::{Instant, TimeRange, parse_instant_in_query};
use crate::model::zone::Zone;

mod decode;
#[cfg(test)]
mod tests;

/// A query that a route understands.
pub trait FromParams: Sized {
    /// The query, or `None` after a fault was noted. Read every parameter first, then combine them with `?`.
    fn from_params(params: &mut Params<'_>) -> Option<Self>;
}

/// The query of a route that takes no parameters.
#[derive(Clone, Copy, Debug)]
pub struct NoParams;

impl FromParams for NoParams {
    fn from_params(_params: &mut Params<'_>) -> Option<Self> {
        Some(Self)
    }
}

/// All parameters of one request.
#[derive(Debug)]
pub struct Params<'a> {
    pairs: Vec<Pair<'a>>,
    faults: Vec<Fault>,
}

#[derive(Debug)]
struct Pair<'a> {
    name: Cow<'a, str>,
    value: Cow<'a, str>,
    known: bool,
}

impl<'a> Params<'a> {
    /// Reads `a=b&c=d`, percent-encoded or with `+` for blanks.
    #[must_use]
    pub fn parse(query: &'a str) -> Self {
        let mut params = Self {
            pairs: Vec::new(),
            faults: Vec::new(),
        };
        for part in query.split('&').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            match (decode::decoded(name), decode::decoded(value)) {
                (Some(name), Some(value)) => params.pairs.push(Pair {
                    name,
                    value,
                    known: false,
                }),
                (Some(name), None) => params.fault(&name, "string_unicode", "the value is not UTF-8 text"),
                (None, _) => params.fault(name, "string_unicode", "the parameter's name is not UTF-8 text"),
            }
        }
        params
    }

    /// Notes that the parameter `name` is wrong.
    pub fn fault(&mut self, name: &str, kind: &'static str, message: impl Into<String>) {
        self.faults.push(Fault::new(["query", name], kind, message));
    }

    /// Whether a parameter was sent, be it empty.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.pairs.iter().any(|pair| pair.name == name)
    }

    /// All values of a repeated parameter, each as it is.
    pub fn repeated(&mut self, name: &str) -> Vec<String> {
        let mut values = Vec::new();
        for pair in self.pairs.iter_mut().filter(|pair| pair.name == name) {
            pair.known = true;
            values.push(pair.value.clone().into_owned());
        }
        values
    }

    /// All values of a list, given by repetition or with commas between them.
    pub fn list(&mut self, name: &str) -> Vec<String> {
        let mut items = Vec::new();
        for value in self.repeated(name) {
            items.extend(
                value
                    .split(',')
                    .map(str::trim)
                    .filter(|item| !item.is_empty())
                    .map(str::to_owned),
            );
        }
        items
    }

    /// The same, where an item may have commas itself: each value whole, and what stands between its commas.
    pub fn list_and_whole(&mut self, name: &str) -> Vec<String> {
        let mut items = Vec::new();
        for value in self.repeated(name) {
            let parts = std::iter::once(value.as_str())
                .chain(value.split(',').filter(|part| part.len() < value.len()));
            items.extend(
                parts
                    .map(str::trim)
                    .filter(|item| !item.is_empty())
                    .map(str::to_owned),
            );
        }
        items
    }

    /// The value of a parameter that stands once; the last one where it was repeated.
    pub fn text(&mut self, name: &str) -> Option<String> {
        self.repeated(name).pop()
    }

    pub fn required_text(&mut self, name: &str) -> Option<String> {
        let text = self.text(name);
        self.required(name, text)
    }

    pub fn instant(&mut self, name: &str) -> Option<Instant> {
        let text = self.text(name)?;
        match parse_instant_in_query(&text) {
            Ok(instant) => Some(instant),
            Err(error) => {
                self.fault(name, "datetime_parsing", error.to_string());
                None
            }
        }
    }

    pub fn required_instant(&mut self, name: &str) -> Option<Instant> {
        if self.missing(name) {
            return None;
        }
        self.instant(name)
    }

    /// `start_time` and `end_time`, both required.
    pub fn range(&mut self) -> Option<TimeRange> {
        let (start, end) = (
            self.required_instant("start_time"),
            self.required_instant("end_time"),
        );
        self.not_inverted(start?, end?)
    }

    /// `start_time` and `end_time`, either of which may be open. `Some` unless one of them is wrong.
    pub fn open_range(&mut self) -> Option<TimeRange> {
        let before = self.faults.len();
        let (start, end) = (self.instant("start_time"), self.instant("end_time"));
        if self.faults.len() > before {
            return None;
        }
        self.not_inverted(start.unwrap_or(Instant::MIN), end.unwrap_or(Instant::MAX))
    }

    fn not_inverted(&mut self, start: Instant, end: Instant) -> Option<TimeRange> {
        let range = TimeRange::new(start, end);
        if range.is_none() {
            self.fault(
                "end_time",
                "value_error",
                "the range is inverted: end_time must not be before start_time",
            );
        }
        range
    }

    /// `true`, `false`, `True`, `False`, `1` or `0`.
    pub fn flag(&mut self, name: &str) -> Option<bool> {
        match self.text(name)?.as_str() {
            "true" | "True" | "1" => Some(true),
            "false" | "False" | "0" => Some(false),
            other => {
                self.fault(
                    name,
                    "bool_parsing",
                    format!("{other:?} is neither true nor false"),
                );
                None
            }
        }
    }

    pub fn integer(&mut self, name: &str) -> Option<i64> {
        self.parsed(name, "int_parsing", "a whole number")
    }

    /// A finite number.
    pub fn number(&mut self, name: &str) -> Option<f64> {
        let number: f64 = self.parsed(name, "float_parsing", "a number")?;
        if !number.is_finite() {
            self.fault(name, "finite_number", "expected a finite number");
            return None;
        }
        Some(number)
    }

    pub fn uuid(&mut self, name: &str) -> Option<Uuid> {
        self.parsed(name, "uuid_parsing", "a uuid")
    }

    /// A time zone; UTC where none is named. The person's own is never assumed: the same question has the
    /// same answer for everybody.
    pub fn zone(&mut self, name: &str) -> Option<Zone> {
        let Some(text) = self.text(name) else {
            return Some(Zone::UTC);
        };
        Zone::parse_in_query(&text)
            .map_err(|error| self.fault(name, "enum", error.to_string()))
            .ok()
    }

    /// `svc_userid`: whose data is asked for, where it is not the reader's own.
    pub fn owner(&mut self) -> Option<PersonId> {
        self.uuid("svc_userid").map(PersonId)
    }

    /// One of the names of `T`, whose error says which there are.
    pub fn choice<T>(&mut self, name: &str) -> Option<T>
    where
        T: FromStr,
        T::Err: Display,
    {
        let text = self.text(name)?;
        self.chosen(name, &text)
    }

    pub fn required_choice<T>(&mut self, name: &str) -> Option<T>
    where
        T: FromStr,
        T::Err: Display,
    {
        let text = self.required_text(name)?;
        self.chosen(name, &text)
    }

    /// Several names of `T`. `Some` unless one of them is unknown.
    pub fn choices<T>(&mut self, name: &str) -> Option<Vec<T>>
    where
        T: FromStr,
        T::Err: Display,
    {
        let names = self.list(name);
        let chosen: Vec<Option<T>> = names.iter().map(|text| self.chosen(name, text)).collect();
        chosen.into_iter().collect()
    }

    /// Names of parameters that were sent and never asked for, each once.
    #[must_use]
    pub fn ignored(&self) -> Vec<String> {
        let mut names: Vec<String> = self
            .pairs
            .iter()
            .filter(|pair| !pair.known)
            .map(|pair| shown(&pair.name))
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    #[must_use]
    pub fn into_faults(self) -> Vec<Fault> {
        self.faults
    }

    fn chosen<T>(&mut self, name: &str, text: &str) -> Option<T>
    where
        T: FromStr,
        T::Err: Display,
    {
        text.parse()
            .map_err(|error: T::Err| self.fault(name, "enum", error.to_string()))
            .ok()
    }

    fn parsed<T: FromStr>(&mut self, name: &str, kind: &'static str, expected: &str) -> Option<T> {
        let text = self.text(name)?;
        text.parse()
            .map_err(|_| self.fault(name, kind, format!("{text:?} is not {expected}")))
            .ok()
    }

    fn missing(&mut self, name: &str) -> bool {
        let missing = !self.has(name);
        if missing {
            self.fault(name, "missing", "this parameter is required");
        }
        missing
    }

    fn required<T>(&mut self, name: &str, value: Option<T>) -> Option<T> {
        if value.is_none() {
            self.missing(name);
        }
        value
    }
}

/// A name as it can stand in a header: whatever is not plain text is percent-encoded again.
fn shown(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for byte in name.bytes().take(64) {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~' | b'[' | b']') {
            text.push(char::from(byte));
        } else {
            text.push('%');
            text.extend([byte >> 4, byte & 15].map(|digit| {
                char::from_digit(digit.into(), 16)
                    .unwrap_or('0')
                    .to_ascii_uppercase()
            }));
        }
    }
    text
}
