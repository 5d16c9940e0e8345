//! Byte ranges in headers: those that a client wants, and those that it sends.

use std::ops::Range;

use crate::people::files::SentBytes;

/// Which bytes of a file a request wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestedRange {
    All,
    Part(Range<u64>),
    /// No byte that exists.
    Nothing,
}

/// What `Range` wants of `length` bytes. A range that is not understood, and several ranges at once, get
/// everything, as the protocol prescribes.
#[must_use]
pub fn requested_range(header: Option<&str>, length: u64) -> RequestedRange {
    let unit_and_range = header.and_then(|text| text.trim().split_once('='));
    let Some((_, range)) = unit_and_range.filter(|(unit, _)| unit.eq_ignore_ascii_case("bytes")) else {
        return RequestedRange::All;
    };
    let Some((first, last)) = range.trim().split_once('-') else {
        return RequestedRange::All;
    };
    let range = match (position(first), position(last)) {
        (Some(first), Some(last)) if first <= last => first..last.saturating_add(1).min(length),
        (Some(first), None) if last.is_empty() => first..length,
        (None, Some(suffix)) if first.is_empty() => length.saturating_sub(suffix)..length,
        _ => return RequestedRange::All,
    };
    if range.start < range.end {
        RequestedRange::Part(range)
    } else {
        RequestedRange::Nothing
    }
}

/// What `Content-Range` says about a body; `None` if it is not understood.
#[must_use]
pub fn sent(text: &str) -> Option<SentBytes> {
    let (unit, range) = text.trim().split_once(' ')?;
    let (range, total) = range.trim().split_once('/')?;
    if !unit.eq_ignore_ascii_case("bytes") {
        return None;
    }
    let total = match total {
        "*" => None,
        total => Some(number(total)?),
    };
    if range == "*" {
        return Some(SentBytes::Question { total });
    }
    let (first, last) = range.split_once('-')?;
    let (from, last) = (number(first)?, number(last)?);
    let until = last.checked_add(1)?;
    (from < until).then_some(SentBytes::Range { from, until, total })
}

/// A position among bytes; a number that is too large lies beyond all of them.
fn position(text: &str) -> Option<u64> {
    has_digits_alone(text).then(|| text.parse().unwrap_or(u64::MAX))
}

fn number(text: &str) -> Option<u64> {
    has_digits_alone(text).then(|| text.parse().ok()).flatten()
}

/// Excludes signs and blanks.
fn has_digits_alone(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_range_is_understood_and_cut_to_the_file() {
        let cases = [
            ("bytes=0-0", RequestedRange::Part(0..1)),
            ("bytes=2-5", RequestedRange::Part(2..6)),
            ("bytes=2-", RequestedRange::Part(2..10)),
            ("bytes=-3", RequestedRange::Part(7..10)),
            ("bytes=-30", RequestedRange::Part(0..10)),
            ("bytes=9-99", RequestedRange::Part(9..10)),
            ("bytes=10-", RequestedRange::Nothing),
            ("bytes=10-20", RequestedRange::Nothing),
            ("bytes=-0", RequestedRange::Nothing),
            ("bytes=0-18446744073709551615", RequestedRange::Part(0..10)),
            ("bytes=0-99999999999999999999", RequestedRange::Part(0..10)),
            ("bytes=99999999999999999999-", RequestedRange::Nothing),
            ("Bytes=2-5", RequestedRange::Part(2..6)),
        ];
        for (text, expected) in cases {
            assert_eq!(requested_range(Some(text), 10), expected, "{text}");
        }
        assert_eq!(requested_range(Some("bytes=0-"), 0), RequestedRange::Nothing);
    }

    #[test]
    fn whatever_else_stands_there_means_everything() {
        for text in [
            "",
            "bytes=",
            "bytes=-",
            "bytes=5-2",
            "bytes=0-1,4-5",
            "lines=0-1",
            "bytes=a-b",
            "bytes=+1-2",
        ] {
            assert_eq!(requested_range(Some(text), 10), RequestedRange::All, "{text}");
        }
        assert_eq!(requested_range(None, 10), RequestedRange::All);
    }

    #[test]
    fn a_part_of_an_upload_says_where_it_belongs() {
        let range = |from, until, total| Some(SentBytes::Range { from, until, total });
        assert_eq!(sent("bytes 0-9/10"), range(0, 10, Some(10)));
        assert_eq!(sent("bytes 4-9/*"), range(4, 10, None));
        assert_eq!(sent("BYTES  0-9/10"), range(0, 10, Some(10)));
        assert_eq!(sent("bytes */10"), Some(SentBytes::Question { total: Some(10) }));
        assert_eq!(sent("bytes */*"), Some(SentBytes::Question { total: None }));
        for text in [
            "",
            "bytes",
            "bytes 0-9",
            "0-9/10",
            "lines 0-9/10",
            "bytes 9-0/10",
            "bytes -9/10",
            "bytes 0-/10",
            "bytes 0-x/10",
            "bytes 0-18446744073709551615/1",
        ] {
            assert_eq!(sent(text), None, "{text}");
        }
    }
}
