//! Ranges that are read beyond the one that is asked for. Knows time only.

use crate::model::time::{Instant, TimeRange};

/// The time in which visits are read where updates are read in `range`. A visit that ends with the first
/// moment of the range says where somebody was at that moment, although it shares no time with the range.
pub(super) fn with_leaving(range: TimeRange) -> TimeRange {
    widened(range, 1, 0)
}

/// The range widened by `before` and `after` microseconds, within the limits of time.
#[must_use]
pub fn widened(range: TimeRange, before: i64, after: i64) -> TimeRange {
    let start = Instant::from_micros(range.start().micros().saturating_sub(before)).max(Instant::MIN);
    let end =
        Instant::from_micros(range.end().micros().saturating_add(after)).min(range.end().max(Instant::MAX));
    TimeRange::new(start, end).unwrap_or(range)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_visit_that_ends_with_the_first_moment_is_read() {
        let moment = Instant::from_micros;
        let read = with_leaving(TimeRange::between(moment(1_000), moment(2_000)));
        assert!(read.selects(moment(500), moment(1_000)));
        assert!(!read.selects(moment(500), moment(999)));
        assert_eq!(read.end(), moment(2_000));
        assert_eq!(with_leaving(TimeRange::ALWAYS), TimeRange::ALWAYS);
    }
}
