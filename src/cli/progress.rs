//! Shows the progress of long work: a bar on a terminal, plain lines anywhere else. Writes to standard error,
//! so that output can be piped.

use std::io::{IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How many lines are written in all, if there is no terminal.
const LINES: u64 = 10;

pub(super) struct Progress {
    bar: ProgressBar,
    what: &'static str,
    plain: bool,
    done: AtomicU64,
    expected: AtomicU64,
}

impl Progress {
    /// `what` names the things that are counted, such as `objects`.
    pub(super) fn new(what: &'static str) -> Self {
        let plain = !std::io::stderr().is_terminal();
        let target = if plain {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr()
        };
        let bar = ProgressBar::with_draw_target(Some(0), target);
        if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len} {msg} {eta}") {
            bar.set_style(style);
        }
        bar.set_message(what);
        bar.enable_steady_tick(Duration::from_millis(200));
        Self {
            bar,
            what,
            plain,
            done: AtomicU64::new(0),
            expected: AtomicU64::new(0),
        }
    }

    pub(super) fn expect(&self, total: u64) {
        self.done.store(0, Ordering::Relaxed);
        self.expected.store(total, Ordering::Relaxed);
        self.bar.reset();
        self.bar.set_length(total);
    }

    pub(super) fn advance(&self) {
        self.bar.inc(1);
        if self.bar.position() > self.bar.length().unwrap_or(0) {
            // Somebody writes meanwhile.
            self.bar.set_length(self.bar.position());
        }
        let before = self.done.fetch_add(1, Ordering::Relaxed);
        self.say(before, before + 1, self.expected.load(Ordering::Relaxed));
    }

    /// Sets both numbers, for work whose total grows while its parts are counted.
    pub(super) fn stand_at(&self, done: u64, total: u64) {
        self.bar.set_length(total);
        self.bar.set_position(done);
        let before = self.done.swap(done, Ordering::Relaxed);
        self.say(before, done, total);
    }

    fn say(&self, before: u64, done: u64, total: u64) {
        if self.plain && is_told(before, done, total) {
            // If standard error is closed, nobody can be told.
            let _written = writeln!(std::io::stderr().lock(), "{done} of {total} {}", self.what);
        }
    }

    /// Runs something that prints, without garbling the bar.
    pub(super) fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// Whether a line says that so many of `total` are done. What was not expected, because somebody wrote it
/// meanwhile, gets none: there are no nine of seven.
fn is_told(before: u64, done: u64, total: u64) -> bool {
    let lines = |done: u64| done * LINES / total.max(1);
    done <= total && lines(done) != lines(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_told_of_more_than_there_are() {
        let told: Vec<u64> = (1..=9).filter(|done| is_told(done - 1, *done, 7)).collect();
        assert_eq!(told, [1, 2, 3, 4, 5, 6, 7]);
        let told = (1..=1_000).filter(|done| is_told(done - 1, *done, 900));
        assert_eq!(told.count(), 10);
    }
}
