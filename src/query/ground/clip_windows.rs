//! Clips time to the windows in which rows may be seen: time outside of them does not count.
//!
//! Knows windows of permits; must not know what takes the time.

use crate::model::permit::Windows;
use crate::model::time::TimeRange;

/// Windows in microseconds, sorted, not touching. Takes spans in any order: several amounts are clipped at
/// once, each over whatever time it covers. Stretches of sleep come in the order of their starts, and have a
/// clip of their own that remembers where it is.
#[derive(Clone, Debug)]
pub(in crate::query) struct WindowClip {
    windows: Vec<(i64, i64)>,
}

impl WindowClip {
    /// The parts of `windows` between two moments.
    pub(in crate::query) fn new(windows: &Windows, from: i64, to: i64) -> Self {
        let within = |window: &TimeRange| (window.start().micros().max(from), window.end().micros().min(to));
        let windows = windows
            .as_slice()
            .iter()
            .map(within)
            .filter(|(start, end)| start < end);
        Self {
            windows: windows.collect(),
        }
    }

    /// A clip that cuts nothing.
    pub(in crate::query) fn nothing() -> Self {
        Self {
            windows: vec![(i64::MIN, i64::MAX)],
        }
    }

    /// The visible parts of `[from, to)`, in order.
    pub(in crate::query) fn parts(&self, from: i64, to: i64) -> impl Iterator<Item = (i64, i64)> + '_ {
        let first = match self.windows.as_slice() {
            [_] => 0,
            several => several.partition_point(|(_, end)| *end <= from),
        };
        self.windows
            .iter()
            .skip(first)
            .take_while(move |(start, _)| *start < to)
            .map(move |(start, end)| (from.max(*start), to.min(*end)))
            .filter(|(start, end)| start < end)
    }

    /// The visible length of `[from, to)`.
    pub(in crate::query) fn length(&self, from: i64, to: i64) -> i64 {
        self.parts(from, to).map(|(start, end)| end - start).sum()
    }

    /// The end of the window that contains a moment.
    pub(in crate::query) fn until(&self, moment: i64) -> Option<i64> {
        let after = self.windows.partition_point(|(start, _)| *start <= moment);
        let (_, end) = self.windows.get(after.checked_sub(1)?)?;
        (moment < *end).then_some(*end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::time::Instant;

    #[test]
    fn rule_9_2c_only_what_lies_in_a_window_is_left() {
        let window =
            |start, end| TimeRange::new(Instant::from_micros(start), Instant::from_micros(end)).unwrap();
        let clip = WindowClip::new(
            &Windows::new([window(10, 20), window(30, 40), window(60, 70)]),
            0,
            50,
        );
        assert_eq!(clip.parts(0, 90).collect::<Vec<_>>(), [(10, 20), (30, 40)]);
        assert_eq!(clip.parts(15, 35).collect::<Vec<_>>(), [(15, 20), (30, 35)]);
        assert_eq!(clip.parts(20, 30).count(), 0);
        assert_eq!(clip.length(15, 35), 10);
        assert_eq!(
            [9, 10, 19, 20, 39, 40].map(|at| clip.until(at)),
            [None, Some(20), Some(20), None, Some(40), None]
        );
    }
}
