//! Cuts spans of time to the visible windows.

use std::sync::Arc;

use crate::model::permit::Windows;

/// Cuts spans that come in the order of their starts, without searching: it remembers how many windows are
/// over. [`WindowClip`](crate::query::ground::clip_windows::WindowClip) takes spans in any order instead.
#[derive(Clone, Debug)]
pub(super) struct OrderedWindowClip {
    windows: Arc<[(i64, i64)]>,
    /// The number of windows that end before every later span.
    passed: usize,
}

impl OrderedWindowClip {
    #[must_use]
    pub(super) fn to(windows: &Windows) -> Self {
        let windows = windows.as_slice().iter();
        Self {
            windows: windows
                .map(|window| (window.start().micros(), window.end().micros()))
                .collect(),
            passed: 0,
        }
    }

    /// A clip that cuts nothing.
    #[must_use]
    pub(super) fn nothing() -> Self {
        Self {
            windows: Arc::from([(i64::MIN, i64::MAX)]),
            passed: 0,
        }
    }

    /// The parts of `[start, end)` that lie in a window, in order.
    pub(super) fn parts(&mut self, start: i64, end: i64, emit: &mut impl FnMut(i64, i64)) {
        while self
            .windows
            .get(self.passed)
            .is_some_and(|window| window.1 <= start)
        {
            self.passed += 1;
        }
        for &(from, to) in self
            .windows
            .iter()
            .skip(self.passed)
            .take_while(|window| window.0 < end)
        {
            emit(start.max(from), end.min(to));
        }
    }
}
