//! Selectors: `HeartRate[1h] @ 1717200000`, `{__name__="Event/<uuid>", note=~"tea.*"} offset 1d`.
//!
//! A small part of the `PromQL` language: a name, conditions on labels, a length of time, a moment and a
//! shift. A selector is plain data; parsing it needs no rows. Everything else in the language is refused by
//! its own name.

mod read;
#[cfg(test)]
mod tests;
mod words;

use crate::model::time::{Instant, TimeRange};

use super::filter::Condition;

/// The most bytes in a selector.
pub const MOST_SELECTOR_BYTES: usize = 4096;

/// Why a text is not a selector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    #[error(
        "`{token}` is not supported; ask for records with a selector such as HeartRate[1h] @ 1717200000, and \
         compute from what is answered"
    )]
    Unsupported { token: String },
    #[error(
        "{reason}; expected a selector such as HeartRate, HeartRate[3600s] @ 1717200000 or \
         {{__name__=\"Event/<uuid>\"}}[1d]"
    )]
    Malformed { reason: String },
    #[error("the selector is longer than {MOST_SELECTOR_BYTES} bytes")]
    TooLong,
    #[error("the selector has no name; write it like HeartRate, or {{__name__=\"Event/<uuid>\"}} with `=`")]
    NoName,
    #[error("{0} labels are compared; the limit is {max}", max = super::filter::MOST_FILTERS)]
    TooManyLabels(usize),
    #[error(
        "`{0}` is neither a number nor a length of time here; write lengths like 90s, 1h30m or 7d, and \
         moments in seconds since 1970"
    )]
    NoNumber(String),
    #[error(
        "`{0}` is too much; seconds go up to 1000000000000, and the numbers in lengths like 90s or 1h30m \
         have at most 15 digits"
    )]
    TooFar(String),
}

/// Selects records of one type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Selector {
    /// The id of the type.
    pub name: String,
    /// All of them must hold.
    pub conditions: Vec<Condition>,
    pub extent: Extent,
    /// The moment to look back from; `None` is now.
    pub at: Option<Instant>,
    /// Microseconds by which that moment is moved back.
    pub offset: i64,
}

/// How many records are selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Extent {
    /// The one that began last.
    Latest,
    /// All that share time with this many microseconds before the moment.
    Back(i64),
}

impl Selector {
    /// The moment to look back from.
    #[must_use]
    pub fn moment(&self, now: Instant) -> Instant {
        let micros = self.at.unwrap_or(now).micros().saturating_sub(self.offset);
        // The end of time is a moment to look back from: the last one that can be written lies before it.
        Instant::from_micros(micros).clamp(TimeRange::ALWAYS.start(), TimeRange::ALWAYS.end())
    }

    /// The range in which records are selected.
    #[must_use]
    pub fn range(&self, now: Instant) -> TimeRange {
        let moment = self.moment(now);
        let (length, end) = match self.extent {
            Extent::Latest => (i64::MAX, after(moment).min(TimeRange::ALWAYS.end())),
            Extent::Back(length) => (length.max(0), moment),
        };
        let start = Instant::from_micros(moment.micros().saturating_sub(length)).max(Instant::MIN);
        TimeRange::between(start, end)
    }
}

/// The next instant: a record that begins at the moment itself is included.
fn after(moment: Instant) -> Instant {
    Instant::from_micros(moment.micros().saturating_add(1))
}
