//! Limits how large the regular expressions of a query are together, before any of them is compiled.
//!
//! A few words stand for a large one, `\w{100}`, and what is compiled is kept as long as the query runs, in
//! memory that is in no pool. So it is measured as it is parsed: by the bytes of the texts that it tells
//! apart, each as often as it is repeated. Knows patterns only.

use datafusion::common::{Result, plan_err};
use regex_syntax::hir::{Class, Hir, HirKind, Repetition};
use regex_syntax::utf8::Utf8Sequences;

/// The largest pattern. The engine compiles all of this size.
const LARGEST: u64 = 1 << 18;
/// What all patterns of a query have together. With `\w` that is 160 times.
const LARGEST_TOGETHER: u64 = 1 << 19;
/// What the smallest pattern counts.
const SMALLEST: u64 = 1 << 10;
/// What is compiled before and behind other parts.
const AROUND: usize = 2;

/// What the patterns of a query may still have.
pub(super) struct PatternSizes {
    left: u64,
}

impl PatternSizes {
    pub(super) const fn new() -> Self {
        Self {
            left: LARGEST_TOGETHER,
        }
    }

    /// Refuses a pattern that is too large by itself, or beside those before it.
    pub(super) fn take(&mut self, pattern: &Hir) -> Result<()> {
        let mut within = Measuring { left: LARGEST };
        if within.part(pattern, 1).is_none() {
            return plan_err!(
                "a regular expression is too large: write it with fewer or shorter repetitions"
            );
        }
        let size = (LARGEST - within.left).max(SMALLEST);
        let Some(left) = self.left.checked_sub(size) else {
            return plan_err!(
                "the regular expressions of the query are too large together; write fewer of them, with \
                 fewer or shorter repetitions, or ask in several queries"
            );
        };
        self.left = left;
        Ok(())
    }
}

/// Measures one pattern, and stops where it is too large.
struct Measuring {
    left: u64,
}

impl Measuring {
    /// A part that is there so many times. None if it is too large.
    fn part(&mut self, part: &Hir, times: u64) -> Option<()> {
        self.take(1, times)?;
        match part.kind() {
            HirKind::Empty | HirKind::Look(_) => Some(()),
            HirKind::Literal(text) => self.take(text.0.len(), times),
            HirKind::Class(Class::Bytes(class)) => self.take(class.ranges().len(), times),
            HirKind::Class(Class::Unicode(class)) => {
                let mut ranges = class.iter();
                ranges.try_for_each(|range| {
                    let mut sequences = Utf8Sequences::new(range.start(), range.end());
                    sequences.try_for_each(|sequence| self.take(sequence.len(), times))
                })
            }
            HirKind::Repetition(repeated) => {
                self.take(AROUND, times)?;
                self.part(&repeated.sub, times.saturating_mul(copies(repeated)))
            }
            HirKind::Capture(group) => {
                self.take(AROUND, times)?;
                self.part(&group.sub, times)
            }
            HirKind::Concat(parts) | HirKind::Alternation(parts) => {
                self.take(AROUND, times)?;
                parts.iter().try_for_each(|part| self.part(part, times))
            }
        }
    }

    fn take(&mut self, size: usize, times: u64) -> Option<()> {
        self.left = self.left.checked_sub(times.saturating_mul(size as u64))?;
        Some(())
    }
}

/// How often what is repeated is compiled.
fn copies(repeated: &Repetition) -> u64 {
    u64::from(repeated.max.unwrap_or(repeated.min)).max(1)
}

#[cfg(test)]
mod tests {
    use regex::Regex;

    use super::*;

    fn taken(patterns: &[&str]) -> Result<()> {
        let mut sizes = PatternSizes::new();
        let mut parsed = patterns
            .iter()
            .map(|pattern| regex_syntax::parse(pattern).unwrap());
        parsed.try_for_each(|pattern| sizes.take(&pattern))
    }

    #[test]
    fn what_is_not_too_large_is_compiled() {
        for pattern in [
            "[ab]{100000}",
            "(a?){30000}",
            ".{9000}",
            r"a|(xyzq){700}",
            r"(?i)(coffee|tea|Wärme){200}",
            r"^[\w.+-]+@[\w-]+(\.[\w-]+)+$",
        ] {
            assert!(taken(&[pattern]).is_ok(), "{pattern}");
            assert!(Regex::new(pattern).is_ok(), "{pattern}");
        }
        for pattern in [
            "a{1000}{1000}",
            "[ab]{300000}",
            "((a{100}){100}){100}",
            ".{10000}",
        ] {
            let message = taken(&[pattern]).unwrap_err().strip_backtrace();
            assert!(message.contains("is too large"), "{pattern}: {message}");
        }
    }

    #[test]
    fn many_patterns_are_as_large_as_one() {
        assert!(taken(&[r"\w+@\w+"; 50]).is_ok());
        assert!(taken(&["coffee|tea"; 512]).is_ok());
        for patterns in [vec!["coffee|tea"; 513], vec!["[ab]{100000}"; 3]] {
            let message = taken(&patterns).unwrap_err().strip_backtrace();
            assert!(message.contains("too large together"), "{message}");
        }
    }
}
