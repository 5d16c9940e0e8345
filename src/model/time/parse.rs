//! Reads the timestamps that clients send: `YYYY-MM-DD[(T| )HH:MM[:SS[.fraction]][offset]]`, where the offset
//! is `Z`, `±HH`, `±HHMM` or `±HH:MM`, and no offset means UTC.
//!
//! One pass over the bytes, without allocation, because every row of every upload comes through here. Numbers
//! of seconds, hour 24, second 60, dates that do not exist and blanks around the text are refused: each of
//! them has meant different things to different people.

use super::{Instant, MICROS_PER_SECOND, SECONDS_PER_DAY, days_of};

/// Why a text is not an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimeError {
    #[error("not a date and time; send it like 2024-01-24T00:00:00Z or 2024-01-24T00:00:00+01:00")]
    Malformed,
    #[error("a number is not a date and time; send it like 2024-01-24T00:00:00Z")]
    Number,
    #[error("no such day in the calendar")]
    NoSuchDay,
    #[error("no such time of day; hours end at 23, minutes and seconds at 59")]
    NoSuchTime,
    #[error("no such offset from UTC; offsets lie between -23:59 and +23:59")]
    NoSuchOffset,
    #[error("outside the years 0001 to 9999")]
    OutOfRange,
}

/// The instant that `text` names.
pub fn parse_instant(text: &str) -> Result<Instant, TimeError> {
    read(text, false)
}

/// The instant that `text` names, where the `+` of an offset may have become a space on its way through a
/// query string.
pub fn parse_instant_in_query(text: &str) -> Result<Instant, TimeError> {
    read(text, true)
}

fn read(text: &str, plus_may_be_space: bool) -> Result<Instant, TimeError> {
    let mut rest = Cursor(text.as_bytes());
    let micros = rest.instant(plus_may_be_space).map_err(|error| {
        let is_number = !text.is_empty()
            && text
                .bytes()
                .all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'+' | b'e' | b'E'));
        if error == TimeError::Malformed && is_number && !text.bytes().skip(1).any(|byte| byte == b'-') {
            TimeError::Number
        } else {
            error
        }
    })?;
    let instant = Instant(micros);
    if (Instant::MIN..=Instant::MAX).contains(&instant) {
        Ok(instant)
    } else {
        Err(TimeError::OutOfRange)
    }
}

/// What is left to read.
struct Cursor<'a>(&'a [u8]);

impl Cursor<'_> {
    fn instant(&mut self, plus_may_be_space: bool) -> Result<i64, TimeError> {
        let (day, second_of_day, micros) = if let Some((day, second_of_day)) = self.usual_beginning() {
            (day, second_of_day, self.fraction_if_any())
        } else {
            let day = self.day()?;
            if self.0.is_empty() {
                return Ok(day * SECONDS_PER_DAY * MICROS_PER_SECOND);
            }
            if !self.take(|byte| matches!(byte, b'T' | b't' | b' ')) {
                return Err(TimeError::Malformed);
            }
            let (second_of_day, micros) = self.time()?;
            (day, second_of_day, micros)
        };
        let offset = self.offset(plus_may_be_space)?;
        if !self.0.is_empty() {
            return Err(TimeError::Malformed);
        }
        Ok((day * SECONDS_PER_DAY + second_of_day - offset) * MICROS_PER_SECOND + micros)
    }

    /// Reads the day and the second of the day where they are written as most programs do, to the second and
    /// with a `T`, and mean a moment. Anything else is left to be read part by part, so that its fault is
    /// found.
    fn usual_beginning(&mut self) -> Option<(i64, i64)> {
        let (first, rest) = self.0.split_first_chunk::<8>()?;
        let (second, rest) = rest.split_first_chunk::<8>()?;
        let (third, rest) = rest.split_first_chunk::<3>()?;
        let [y1, y2, y3, y4, _, m1, m2, _] = digits_like(*first, *b"0000-00-")?;
        let [d1, d2, _, h1, h2, _, n1, n2] = digits_like(*second, *b"00T00:00")?;
        let [colon, s1, s2] = *third;
        let [_, s1, s2, ..] = digits_like([colon, s1, s2, 0, 0, 0, 0, 0], *b":00\0\0\0\0\0")?;
        let two = |tens: u8, ones: u8| i64::from(tens) * 10 + i64::from(ones);
        let (year, month, day) = (two(y1, y2) * 100 + two(y3, y4), two(m1, m2), two(d1, d2));
        let (hour, minute, second) = (two(h1, h2), two(n1, n2), two(s1, s2));
        let is_day = year > 0 && (1..=12).contains(&month) && day > 0 && day <= length_of_month(year, month);
        if !is_day || hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        self.0 = rest;
        Some((days_of(year, month, day), hour * 3600 + minute * 60 + second))
    }

    fn day(&mut self) -> Result<i64, TimeError> {
        let year = self.two_digits()? * 100 + self.two_digits()?;
        self.expect(b'-')?;
        let month = self.two_digits()?;
        self.expect(b'-')?;
        let day = self.two_digits()?;
        if year == 0 {
            return Err(TimeError::OutOfRange);
        }
        if !(1..=12).contains(&month) || day < 1 || day > length_of_month(year, month) {
            return Err(TimeError::NoSuchDay);
        }
        Ok(days_of(year, month, day))
    }

    /// The second of the day, and the microseconds of that second.
    fn time(&mut self) -> Result<(i64, i64), TimeError> {
        let hour = self.two_digits()?;
        self.expect(b':')?;
        let minute = self.two_digits()?;
        let mut second = 0;
        let mut micros = 0;
        if self.take(|byte| byte == b':') {
            second = self.two_digits()?;
            micros = self.fraction_if_any();
        }
        if hour > 23 || minute > 59 || second > 59 {
            return Err(TimeError::NoSuchTime);
        }
        Ok((hour * 3600 + minute * 60 + second, micros))
    }

    fn fraction_if_any(&mut self) -> i64 {
        if self.take(|byte| byte == b'.') {
            self.fraction()
        } else {
            0
        }
    }

    /// The microseconds of a fraction with any number of digits. Finer digits are cut off.
    fn fraction(&mut self) -> i64 {
        let mut micros = 0;
        let mut worth = MICROS_PER_SECOND / 10;
        while let Some((&digit, rest)) = self.0.split_first().filter(|(byte, _)| byte.is_ascii_digit()) {
            micros += i64::from(digit - b'0') * worth;
            worth /= 10;
            self.0 = rest;
        }
        micros
    }

    /// How many seconds the local time is ahead of UTC.
    fn offset(&mut self, plus_may_be_space: bool) -> Result<i64, TimeError> {
        let Some((&sign, rest)) = self.0.split_first() else {
            return Ok(0);
        };
        self.0 = rest;
        let direction = match sign {
            b'Z' | b'z' => return Ok(0),
            b'+' => 1,
            b' ' if plus_may_be_space => 1,
            b'-' => -1,
            _ => return Err(TimeError::Malformed),
        };
        let hours = self.two_digits()?;
        let minutes = match self.0.first() {
            None => 0,
            Some(b':') => {
                self.expect(b':')?;
                self.two_digits()?
            }
            Some(_) => self.two_digits()?,
        };
        if hours > 23 || minutes > 59 {
            return Err(TimeError::NoSuchOffset);
        }
        Ok(direction * (hours * 3600 + minutes * 60))
    }

    fn two_digits(&mut self) -> Result<i64, TimeError> {
        let [tens, ones, rest @ ..] = self.0 else {
            return Err(TimeError::Malformed);
        };
        if !tens.is_ascii_digit() || !ones.is_ascii_digit() {
            return Err(TimeError::Malformed);
        }
        self.0 = rest;
        Ok(i64::from(tens - b'0') * 10 + i64::from(ones - b'0'))
    }

    fn expect(&mut self, wanted: u8) -> Result<(), TimeError> {
        if self.take(|byte| byte == wanted) {
            Ok(())
        } else {
            Err(TimeError::Malformed)
        }
    }

    fn take(&mut self, wanted: impl Fn(u8) -> bool) -> bool {
        match self.0.split_first() {
            Some((&byte, rest)) if wanted(byte) => {
                self.0 = rest;
                true
            }
            _ => false,
        }
    }
}

/// The digits of a text of eight bytes, in their places, if it has digits where `form` has zeros and is like
/// it everywhere else. All bytes are looked at at once.
fn digits_like(text: [u8; 8], form: [u8; 8]) -> Option<[u8; 8]> {
    // What added to a digit of 10 or more, or to any difference from another byte, reaches the highest bit. A
    // sum that goes beyond its byte comes of one that has that bit itself.
    let limits = form.map(|byte| if byte == b'0' { 0x76 } else { 0x7f });
    let digits = u64::from_le_bytes(text) ^ u64::from_le_bytes(form);
    let beyond = digits.wrapping_add(u64::from_le_bytes(limits)) | digits;
    (beyond & u64::from_le_bytes([0x80; 8]) == 0).then(|| digits.to_le_bytes())
}

const fn length_of_month(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}
