//! Reads amounts with units, in short form (`1h30m`) or as ISO 8601 (`PT1H30M`), into sums by family.

use super::error::{DurationError, shown, too_long};

const NANOS_PER_SECOND: i128 = 1_000_000_000;

/// The sums of the amounts in a text.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Amounts {
    pub(super) months: i128,
    pub(super) weeks: i128,
    pub(super) days: i128,
    pub(super) nanos: i128,
    /// Which families were named, even with a zero.
    pub(super) families: Families,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Families {
    pub(super) months: bool,
    pub(super) weeks: bool,
    pub(super) days: bool,
    pub(super) fixed: bool,
}

impl Families {
    pub(super) fn count(self) -> u8 {
        u8::from(self.months) + u8::from(self.weeks) + u8::from(self.days) + u8::from(self.fixed)
    }
}

/// A unit: its family, and its size in that family's measure.
#[derive(Clone, Copy, Debug)]
enum Unit {
    Months(i128),
    Weeks,
    Days,
    Nanos(i128),
}

/// Units of the short form.
fn short_unit(name: &str) -> Option<Unit> {
    Some(match name {
        "ns" => Unit::Nanos(1),
        "us" => Unit::Nanos(1_000),
        "ms" => Unit::Nanos(1_000_000),
        "s" => Unit::Nanos(NANOS_PER_SECOND),
        "m" => Unit::Nanos(60 * NANOS_PER_SECOND),
        "h" => Unit::Nanos(3600 * NANOS_PER_SECOND),
        "d" => Unit::Days,
        "w" => Unit::Weeks,
        "mo" => Unit::Months(1),
        "q" => Unit::Months(3),
        "y" => Unit::Months(12),
        _ => return None,
    })
}

/// Units of ISO 8601 in their required order, for the date and for the time.
const DATE_UNITS: [(char, Unit); 4] = [
    ('Y', Unit::Months(12)),
    ('M', Unit::Months(1)),
    ('W', Unit::Weeks),
    ('D', Unit::Days),
];
const TIME_UNITS: [(char, Unit); 3] = [
    ('H', Unit::Nanos(3600 * NANOS_PER_SECOND)),
    ('M', Unit::Nanos(60 * NANOS_PER_SECOND)),
    ('S', Unit::Nanos(NANOS_PER_SECOND)),
];

impl Amounts {
    /// Reads `part` of `text`.
    pub(super) fn read(part: &str, text: &str) -> Result<Self, DurationError> {
        if part.is_empty() {
            return Err(DurationError::Empty);
        }
        match part.strip_prefix('P') {
            Some(rest) => Self::iso(rest, text),
            None if part.starts_with('-') => Err(DurationError::Negative { text: shown(text) }),
            None => Self::short(part, text),
        }
    }

    fn short(part: &str, text: &str) -> Result<Self, DurationError> {
        let mut amounts = Self::default();
        let mut rest = part;
        while !rest.is_empty() {
            let (number, after) = split_where(rest, |character| !character.is_ascii_digit());
            if after.starts_with(['.', ',']) {
                return Err(DurationError::Fraction { text: shown(text) });
            }
            // The unit is all letters up to the next number, so that `mo` is never read as `m`.
            let (unit, after) = split_where(after, |character| !character.is_ascii_alphabetic());
            if number.is_empty() || unit.is_empty() {
                return Err(DurationError::Malformed { text: shown(text) });
            }
            let unit = short_unit(unit).ok_or_else(|| DurationError::UnknownUnit {
                text: shown(text),
                unit: shown(unit),
            })?;
            amounts.add(integer(number, text)?, unit, text)?;
            rest = after;
        }
        Ok(amounts)
    }

    fn iso(part: &str, text: &str) -> Result<Self, DurationError> {
        let malformed = || DurationError::Malformed { text: shown(text) };
        let mut amounts = Self::default();
        let (date, time) = match part.split_once('T') {
            Some((date, time)) => (date, Some(time)),
            None => (part, None),
        };
        amounts.iso_half(date, &DATE_UNITS, text)?;
        match time {
            Some("") => return Err(malformed()),
            Some(time) => amounts.iso_half(time, &TIME_UNITS, text)?,
            None => {}
        }
        if amounts.families.count() == 0 {
            return Err(malformed());
        }
        Ok(amounts)
    }

    fn iso_half(&mut self, half: &str, units: &[(char, Unit)], text: &str) -> Result<(), DurationError> {
        let mut rest = half;
        let mut left = units.iter();
        while !rest.is_empty() {
            let (number, after) =
                split_where(rest, |character| !character.is_ascii_digit() && character != '.');
            let name = after.chars().next();
            let (_, unit) = left
                .find(|(letter, _)| Some(*letter) == name)
                .ok_or_else(|| DurationError::Malformed { text: shown(text) })?;
            match name {
                Some('S') => {
                    let nanos = decimal_nanos(number, text)?;
                    self.add(nanos, Unit::Nanos(1), text)?;
                }
                _ if number.contains('.') => return Err(DurationError::Fraction { text: shown(text) }),
                _ => self.add(integer(number, text)?, *unit, text)?,
            }
            rest = after.get(1..).unwrap_or_default();
        }
        Ok(())
    }

    fn add(&mut self, number: i128, unit: Unit, text: &str) -> Result<(), DurationError> {
        let (sum, named, of_measure) = match unit {
            Unit::Months(months) => (&mut self.months, &mut self.families.months, months),
            Unit::Weeks => (&mut self.weeks, &mut self.families.weeks, 1),
            Unit::Days => (&mut self.days, &mut self.families.days, 1),
            Unit::Nanos(nanos) => (&mut self.nanos, &mut self.families.fixed, nanos),
        };
        *named = true;
        *sum = number
            .checked_mul(of_measure)
            .and_then(|amount| sum.checked_add(amount))
            .ok_or_else(|| too_long(text))?;
        Ok(())
    }
}

/// Seconds with an optional fraction, as nanoseconds. More than nine digits of fraction must be zeros.
pub(super) fn decimal_nanos(number: &str, text: &str) -> Result<i128, DurationError> {
    let malformed = || DurationError::Malformed { text: shown(text) };
    let (whole, fraction) = match number.split_once('.') {
        Some((_, "")) => return Err(malformed()),
        Some((whole, fraction)) => (whole, fraction),
        None => (number, "0"),
    };
    if fraction.bytes().any(|byte| !byte.is_ascii_digit()) {
        return Err(malformed());
    }
    let (nanos, finer) = fraction.split_at_checked(9).unwrap_or((fraction, ""));
    if finer.bytes().any(|byte| byte != b'0') {
        return Err(DurationError::TooFine { text: shown(text) });
    }
    let seconds = integer(whole, text)?;
    Ok(seconds * NANOS_PER_SECOND + integer(&format!("{nanos:0<9}"), text)?)
}

/// Digits as a number that fits into 64 bits.
fn integer(digits: &str, text: &str) -> Result<i128, DurationError> {
    if digits.is_empty() || digits.bytes().any(|byte| !byte.is_ascii_digit()) {
        return Err(DurationError::Malformed { text: shown(text) });
    }
    digits.parse::<i64>().map(i128::from).map_err(|_| too_long(text))
}

fn split_where(text: &str, ends: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(ends).unwrap_or(text.len()))
}
