//! The query of a request: turns text into domain types, and finds all faults at once.
//!
//! A route says in [`FromParams`] what it takes. It reads all of its parameters before it looks at any, so
//! that one answer names everything that is wrong; parameters that it never asks for are reported as ignored.
//! The parameters are recorded with their forms and defaults: [`described`] reads an empty query to get the
//! list that the documentation shows. The [`glossary`] says what a name means.

use std::borrow::Cow;
use std::fmt;

use crate::model::faults::{Fault, MOST_FAULTS, first_of};
use crate::model::nearest::{hint, nearest};
use crate::model::time::TimeRange;

mod choices;
mod decode;
pub mod glossary;
mod read_param;
mod readers;
#[cfg(test)]
mod tests;

pub use choices::{Choice, Dedupe, InsightReportVersion, OpenEnds};
pub use read_param::{Form, Literal, Need, ReadParam};
pub use readers::list_items;

/// Whether parameters that the route does not know are refused instead of ignored.
pub const STRICT: &str = "strict";

/// The query of a route, read from text.
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

/// Every parameter that `Q` takes, in the order in which it reads them.
#[must_use]
pub fn described<Q: FromParams>() -> Vec<ReadParam> {
    let mut params = Params::parse("");
    let _nothing_was_sent = Q::from_params(&mut params);
    params.strict();
    params.asked
}

/// All parameters of one request.
#[derive(Debug)]
pub struct Params<'a> {
    pairs: Vec<Pair<'a>>,
    faults: Vec<Fault>,
    asked: Vec<ReadParam>,
    /// Names that are no text, so that no route knows them.
    unreadable: Vec<Vec<u8>>,
    /// A parameter that this request does not have, though its route reads it.
    unknown: Option<&'static str>,
    /// The range that was asked for.
    understood: Option<TimeRange>,
}

#[derive(Debug)]
struct Pair<'a> {
    name: Cow<'a, str>,
    /// `None` if it is not UTF-8, which matters only to a route that asks for it.
    value: Option<Cow<'a, str>>,
    known: bool,
}

/// A parameter that was sent but that the route does not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ignored {
    /// Its name, made safe for a header: everything but printable ASCII is percent-encoded.
    pub name: String,
    /// The parameter of this route with the most similar name.
    pub nearest: Option<&'static str>,
}

impl fmt::Display for Ignored {
    /// As an item of an RFC 8941 list: the name, with the parameter that may be meant as `nearest`. A name
    /// that is no token there is a string in quotes.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if is_token(&self.name) {
            formatter.write_str(&self.name)?;
        } else {
            let escaped = self.name.replace('\\', "\\\\").replace('"', "\\\"");
            write!(formatter, "\"{escaped}\"")?;
        }
        match self.nearest {
            Some(nearest) => write!(formatter, ";nearest={nearest}"),
            None => Ok(()),
        }
    }
}

impl<'a> Params<'a> {
    /// Reads `a=b&c=d`, percent-encoded or with `+` for blanks.
    #[must_use]
    pub fn parse(query: &'a str) -> Self {
        let mut params = Self {
            pairs: Vec::new(),
            faults: Vec::new(),
            asked: Vec::new(),
            unreadable: Vec::new(),
            unknown: None,
            understood: None,
        };
        for part in query.split('&').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            match decode::decoded(name) {
                Ok(name) => params.pairs.push(Pair {
                    name,
                    value: decode::decoded(value).ok(),
                    known: false,
                }),
                Err(bytes) => params.unreadable.push(bytes),
            }
        }
        params
    }

    /// Notes that the parameter `name` is wrong. The fault names it as it was sent.
    pub fn fault(&mut self, name: &str, kind: &'static str, message: impl Into<String>) {
        if self.faults.len() >= MOST_FAULTS {
            return;
        }
        let sent = self.sent_as(name).unwrap_or(name).to_owned();
        self.faults.push(Fault::new(["query", &sent], kind, message));
    }

    /// The same for a parameter that is read more than once and has one fault.
    fn fault_once(&mut self, name: &str, kind: &'static str, message: String) {
        let noted = self.faults.len();
        self.fault(name, kind, message);
        if let Some((last, earlier)) = self.faults.split_last()
            && earlier.contains(last)
        {
            self.faults.truncate(noted);
        }
    }

    /// Notes that the parameter `name` is missing, unless it was sent with a value that is no text.
    fn missing(&mut self, name: &'static str, message: impl Into<String>) {
        let mut names = std::iter::once(name).chain(glossary::aliases(name).iter().copied());
        let is_unreadable = |name| {
            let mut pairs = self.pairs.iter();
            pairs.any(|pair| pair.name == name && pair.value.is_none())
        };
        if !names.any(is_unreadable) {
            self.fault(name, "missing", message);
        }
    }

    /// All values of the parameter, as they were sent, under any of its names. Marks the parameter as one
    /// that the route knows, and notes values that are no text.
    fn ask(&mut self, asked: ReadParam) -> Vec<String> {
        let name = asked.name;
        if !self.asked.iter().any(|known| known.name == name) {
            self.asked.push(asked);
        }
        self.sent(name)
    }

    /// The same, whether or not the route has the parameter otherwise.
    fn sent(&mut self, name: &'static str) -> Vec<String> {
        if self.pairs.is_empty() {
            return Vec::new();
        }
        let mut values = self.take(name);
        for alias in glossary::aliases(name) {
            let others = self.take(alias);
            if values.is_empty() {
                values = others;
            } else if !others.is_empty() && others != values {
                let differ = |one: &str, other: &str| {
                    format!("{one} and {other} are one parameter and differ here; send one of them")
                };
                // It may have been said already where it was asked for under the other name.
                let known = differ(alias, name);
                if !self.faults.iter().any(|fault| fault.message == known) {
                    self.fault_once(name, "value_error", differ(name, alias));
                }
            }
        }
        values
    }

    /// Treats the parameter `name` as one that the route does not know. Must be said before it is read.
    pub const fn do_not_know(&mut self, name: &'static str) {
        self.unknown = Some(name);
    }

    fn take(&mut self, name: &str) -> Vec<String> {
        let mut values = Vec::new();
        if self.unknown == Some(name) {
            return values;
        }
        let mut unreadable = 0;
        for pair in self.pairs.iter_mut().filter(|pair| pair.name == name) {
            match &pair.value {
                Some(value) => values.push(value.clone().into_owned()),
                // It may be read more than once, but has one fault.
                None => unreadable += usize::from(!pair.known),
            }
            pair.known = true;
        }
        for _ in 0..unreadable {
            self.fault(name, "string_unicode", "the value is not UTF-8 text");
        }
        values
    }

    /// The first of a parameter's names under which it was sent, even without a value.
    fn sent_as(&self, name: &str) -> Option<&str> {
        let sent = |name: &str| self.pairs.iter().find(|pair| pair.name == name);
        let mut aliases = glossary::aliases(name).iter();
        let pair = sent(name).or_else(|| aliases.find_map(|alias| sent(alias)))?;
        Some(&pair.name)
    }

    /// Reads `strict`. Must be read last: only then is it known what the route does not know.
    pub fn strict(&mut self) -> bool {
        self.take_zone();
        self.flag_or(STRICT, false).unwrap_or_default()
    }

    /// The range that was asked for, as it was understood.
    #[must_use]
    pub const fn understood(&self) -> Option<TimeRange> {
        self.understood
    }

    /// The names that were sent but never read, each once.
    fn unread(&self) -> Vec<&[u8]> {
        let unread = self.pairs.iter().filter(|pair| !pair.known);
        let mut names: Vec<&[u8]> = unread
            .map(|pair| pair.name.as_bytes())
            .chain(self.unreadable.iter().map(Vec::as_slice))
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The parameters that were sent but never read, each once. No more than anybody would read.
    #[must_use]
    pub fn ignored(&self) -> Vec<Ignored> {
        let unread = self.unread();
        if unread.is_empty() {
            return Vec::new();
        }
        let spellings = |asked: &ReadParam| {
            std::iter::once(asked.name).chain(glossary::aliases(asked.name).iter().copied())
        };
        let known: Vec<&'static str> = self
            .asked
            .iter()
            .filter(|asked| self.unknown != Some(asked.name))
            .flat_map(spellings)
            .collect();
        let ignored = |name: &[u8]| Ignored {
            name: shown(name),
            nearest: str::from_utf8(name)
                .ok()
                .and_then(|name| nearest(name, known.iter().copied())),
        };
        unread.into_iter().take(MOST_FAULTS).map(ignored).collect()
    }

    /// What is ignored, as an RFC 8941 list: each of `ignored`, and last, if there are more, how many. That
    /// is a number, which no name is: those that begin with a digit are in quotes.
    #[must_use]
    pub fn ignored_header(&self, ignored: &[Ignored]) -> String {
        let mut items: Vec<String> = ignored.iter().map(ToString::to_string).collect();
        let more = self.unread().len().saturating_sub(ignored.len());
        if more > 0 {
            items.push(more.to_string());
        }
        items.join(", ")
    }

    /// Notes that each of `ignored` is wrong.
    pub fn refuse(&mut self, ignored: &[Ignored]) {
        for Ignored { name, nearest } in ignored {
            let hint = hint(*nearest);
            self.fault(
                name,
                "extra_forbidden",
                format!("there is no parameter {name} here{hint}"),
            );
        }
    }

    #[must_use]
    pub fn into_faults(self) -> Vec<Fault> {
        first_of(self.faults, "query")
    }
}

/// A name made safe for a header: everything that is not printable ASCII is percent-encoded again, and so is
/// the sign for that.
fn shown(name: &[u8]) -> String {
    let mut text = String::with_capacity(name.len());
    for byte in name.iter().copied().take(64) {
        if (byte.is_ascii_graphic() || byte == b' ') && byte != b'%' {
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

/// Whether a name is a token as RFC 8941 has it. A percent sign may be in one too, but then nobody could tell
/// whether the name was encoded: only strings are.
fn is_token(name: &str) -> bool {
    const ALSO: &[u8] = b"!#$&'*+-.^_`|~:/";
    let mut bytes = name.bytes();
    let begins = |first: u8| first.is_ascii_alphabetic() || first == b'*';
    bytes.next().is_some_and(begins) && bytes.all(|byte| byte.is_ascii_alphanumeric() || ALSO.contains(&byte))
}
