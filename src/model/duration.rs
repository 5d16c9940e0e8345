//! Lengths of time as requests write them: `1d`, `PT2H`, `1mo@14d`, `5400`.
//!
//! Two kinds of text are read: a *truncation*, which says where periods of a calendar begin, and a *length*,
//! which is a fixed number of microseconds. A period uses one family of units, because a day has no fixed
//! number of hours and a month no fixed number of days. Knows no zone and no clock.

mod error;
mod read;
#[cfg(test)]
mod tests;

use super::time::{MICROS_PER_DAY, MICROS_PER_HOUR, MICROS_PER_MINUTE};
use error::{shown, too_long};
use read::Amounts;

pub use error::DurationError;

/// Ten thousand years in months of 31 days. No period and no offset reaches further than the calendar itself,
/// so that the sum of a time and a period always fits into 64 bits.
const LONGEST_PERIOD: i128 = 120_000 * 31 * MICROS_PER_DAY as i128;

/// Periods of a calendar: their length, and how far they are moved from the calendar's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Truncation {
    pub(super) every: Every,
    pub(super) offset: Offset,
}

/// How long a period is. Each family counts from an origin of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Every {
    /// Microseconds of the wall clock, counted from 1970-01-01T00:00.
    Fixed(i64),
    /// Days, counted from 1970-01-01.
    Days(i64),
    /// Weeks, counted from Monday 1970-01-05.
    Weeks(i64),
    /// Months, counted from January 1970.
    Months(i64),
}

/// How far the periods are moved. The months move where counting begins, the rest moves each boundary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Offset {
    pub(super) months: i64,
    pub(super) micros: i64,
}

impl Truncation {
    /// Quarters of an hour.
    pub const QUARTER_HOURS: Self = Self::plain(Every::Fixed(15 * MICROS_PER_MINUTE));
    /// Hours of the wall clock.
    pub const HOURS: Self = Self::plain(Every::Fixed(MICROS_PER_HOUR));
    /// Days from midnight to midnight.
    pub const DAYS: Self = Self::plain(Every::Days(1));

    const fn plain(every: Every) -> Self {
        Self {
            every,
            offset: Offset { months: 0, micros: 0 },
        }
    }

    /// Reads `every[@offset]`; `|` may stand for `@`.
    pub fn parse(text: &str) -> Result<Self, DurationError> {
        let mut parts = text.split(['@', '|']);
        let every = parts.next().unwrap_or_default();
        let offset = parts.next();
        if parts.next().is_some() {
            return Err(DurationError::TwoOffsets { text: shown(text) });
        }
        Ok(Self {
            every: every_of(every, text)?,
            offset: offset
                .map(|offset| offset_of(offset, text))
                .transpose()?
                .unwrap_or_default(),
        })
    }
}

/// A sampling rate: bins of one width from the start of the range on, or periods of a calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SampleRate {
    /// Microseconds, more than zero.
    Width(i64),
    Calendar(Truncation),
}

impl SampleRate {
    /// A number is seconds; anything else is a truncation.
    pub fn parse(text: &str) -> Result<Self, DurationError> {
        match seconds(text) {
            Some(width) => width.map(Self::Width),
            None => Truncation::parse(text).map(Self::Calendar),
        }
    }
}

/// Reads a length: seconds as a number, or units of fixed length, where a day has 24 hours and a week seven
/// days. Returns microseconds, more than zero.
pub fn parse_length(text: &str) -> Result<i64, DurationError> {
    if let Some(seconds) = seconds(text) {
        return seconds;
    }
    let amounts = Amounts::read(text, text)?;
    if amounts.families.months {
        return Err(DurationError::NoFixedLength { text: shown(text) });
    }
    let nanos = amounts
        .nanos
        .checked_add((amounts.days + 7 * amounts.weeks).saturating_mul(1000 * i128::from(MICROS_PER_DAY)));
    let nanos = nanos.ok_or_else(|| too_long(text))?;
    more_than_none(bounded(whole_micros(nanos, text)?, 1, text)?, text)
}

/// A bare number of seconds; `None` if the text is something else.
fn seconds(text: &str) -> Option<Result<i64, DurationError>> {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let digits = !unsigned.is_empty() && unsigned.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if !digits {
        let is_number = unsigned.parse::<f64>().is_ok();
        return is_number.then(|| Err(DurationError::NotPlain { text: shown(text) }));
    }
    if text.starts_with('-') {
        return Some(Err(DurationError::Negative { text: shown(text) }));
    }
    Some(
        read::decimal_nanos(unsigned, text)
            .and_then(|nanos| bounded(whole_micros(nanos, text)?, 1, text))
            .and_then(|micros| more_than_none(micros, text)),
    )
}

fn every_of(part: &str, text: &str) -> Result<Every, DurationError> {
    if part.starts_with('-') {
        return Err(DurationError::Negative { text: shown(text) });
    }
    let amounts = Amounts::read(part, text)?;
    let families = amounts.families;
    if families.count() > 1 {
        return Err(DurationError::Mixed { text: shown(text) });
    }
    if families.months {
        let months = bounded(amounts.months, 31 * i128::from(MICROS_PER_DAY), text)?;
        return more_than_none(months, text).map(Every::Months);
    }
    if families.weeks {
        let weeks = bounded(amounts.weeks, 7 * i128::from(MICROS_PER_DAY), text)?;
        return more_than_none(weeks, text).map(Every::Weeks);
    }
    if families.days {
        let days = bounded(amounts.days, i128::from(MICROS_PER_DAY), text)?;
        return more_than_none(days, text).map(Every::Days);
    }
    let micros = bounded(whole_micros(amounts.nanos, text)?, 1, text)?;
    more_than_none(micros, text).map(Every::Fixed)
}

fn offset_of(part: &str, text: &str) -> Result<Offset, DurationError> {
    let (sign, part) = match part.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, part),
    };
    if part.is_empty() {
        return Err(DurationError::EmptyOffset { text: shown(text) });
    }
    let amounts = Amounts::read(part, text)?;
    let days = amounts.days.saturating_add(amounts.weeks.saturating_mul(7));
    let micros =
        whole_micros(amounts.nanos, text)?.saturating_add(days.saturating_mul(i128::from(MICROS_PER_DAY)));
    Ok(Offset {
        months: sign * bounded(amounts.months, 31 * i128::from(MICROS_PER_DAY), text)?,
        micros: sign * bounded(micros, 1, text)?,
    })
}

/// `count` units of `micros` each, unless they reach beyond the calendar.
fn bounded(count: i128, micros: i128, text: &str) -> Result<i64, DurationError> {
    let within = count
        .checked_mul(micros)
        .is_some_and(|length| length <= LONGEST_PERIOD);
    i64::try_from(count)
        .ok()
        .filter(|_| within)
        .ok_or_else(|| too_long(text))
}

fn more_than_none(count: i64, text: &str) -> Result<i64, DurationError> {
    if count > 0 {
        Ok(count)
    } else {
        Err(DurationError::Zero { text: shown(text) })
    }
}

fn whole_micros(nanos: i128, text: &str) -> Result<i128, DurationError> {
    if nanos % 1000 == 0 {
        Ok(nanos / 1000)
    } else {
        Err(DurationError::TooFine { text: shown(text) })
    }
}
