//! How much an operator does before it gives others a turn.
//!
//! A question is cancelled, and its deadline acts, only between two polls of its stream, and other questions
//! on the same thread wait as long. Most operators are short between two batches. Those whose work grows with
//! how many samples are open at one moment count it. Knows nothing of what the work is.

use std::future::poll_fn;
use std::task::{Context, Poll};

/// Samples that are touched in a turn: some milliseconds.
const WORK: usize = 1 << 16;

/// What may still be done in this turn.
#[derive(Debug)]
pub(in crate::query) struct Turn {
    left: usize,
}

impl Turn {
    pub(in crate::query) const fn new() -> Self {
        Self { left: WORK }
    }

    /// Records `work` samples touched, or an equal amount of other work.
    #[inline]
    pub(in crate::query) const fn spend(&mut self, work: usize) {
        self.left = self.left.saturating_sub(work);
    }

    pub(in crate::query) const fn is_over(&self) -> bool {
        self.left == 0
    }

    /// Begins the next turn.
    pub(in crate::query) const fn renew(&mut self) {
        self.left = WORK;
    }

    /// Whether a turn is over: then the next one has begun, and the task must return and is woken again.
    pub(in crate::query) fn yields(&mut self, context: &Context<'_>) -> bool {
        let is_over = self.is_over();
        if is_over {
            self.renew();
            context.waker().wake_by_ref();
        }
        is_over
    }

    /// Lets others go first if this turn is over.
    pub(in crate::query) async fn give_way(&mut self) {
        if self.is_over() {
            poll_fn(|context| {
                if self.yields(context) {
                    Poll::Pending
                } else {
                    Poll::Ready(())
                }
            })
            .await;
        }
    }
}
