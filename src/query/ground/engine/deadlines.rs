//! When parts of an answer are late, and how somebody who waits for one learns of it.
//!
//! Knows times and bursts; does not know what is computed.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures::Stream;
use tokio::sync::mpsc;
use tokio::time::{Instant, Sleep};

use super::super::bursts::Burst;
use super::super::ended::EndWhenDropped;

/// The items of bursts as they come. Where the computation does not yield and so notices no deadline, `alarm`
/// ends the wait.
pub(super) fn one_by_one<T: Send + 'static>(
    mut receiver: mpsc::Receiver<Burst<T>>,
    mut alarm: Alarm,
    waiting: EndWhenDropped,
    late: fn() -> T,
) -> impl Stream<Item = T> + Send {
    let (mut items, mut has_ended) = (Vec::new().into_iter(), false);
    futures::stream::poll_fn(move |context| {
        loop {
            if let Some(item) = items.next() {
                return Poll::Ready(Some(item));
            }
            if has_ended {
                return Poll::Ready(None);
            }
            match receiver.poll_recv(context) {
                Poll::Ready(Some(burst)) => {
                    alarm.stop();
                    (items, has_ended) = (burst.items.into_iter(), burst.is_last);
                }
                Poll::Ready(None) => has_ended = true,
                Poll::Pending => {
                    ready!(alarm.poll(context));
                    has_ended = true;
                    waiting.end();
                    receiver.close();
                    return Poll::Ready(Some(late()));
                }
            }
        }
    })
}

/// When the next part of an answer is late.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadlines {
    /// The longest wait for one part.
    pub(super) each: Option<Duration>,
    /// When every part is late.
    pub(super) last: Instant,
}

impl Deadlines {
    /// When a part that is begun now is late.
    pub(super) fn of_next_part(self) -> Instant {
        match self.each {
            Some(each) => self.last.min(Instant::now() + each),
            None => self.last,
        }
    }
}

/// Rings when a part of an answer has been waited for until its deadline.
#[derive(Debug)]
pub(super) struct Alarm {
    deadlines: Deadlines,
    /// The deadline of the part that is waited for.
    set_to: Option<Instant>,
    /// Kept from one part to the next, and set anew only when it goes off too early.
    clock: Option<Pin<Box<Sleep>>>,
}

impl Alarm {
    pub(super) const fn of(deadlines: Deadlines) -> Self {
        Self {
            deadlines,
            set_to: None,
            clock: None,
        }
    }

    fn stop(&mut self) {
        self.set_to = None;
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let deadlines = self.deadlines;
        let deadline = *self.set_to.get_or_insert_with(|| deadlines.of_next_part());
        let clock = self
            .clock
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        loop {
            ready!(clock.as_mut().poll(context));
            if clock.deadline() >= deadline {
                return Poll::Ready(());
            }
            clock.as_mut().reset(deadline);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt as _;

    use super::super::super::ended::{Ended, refuse_ended};
    use super::super::READ_AHEAD;
    use super::*;

    #[tokio::test]
    async fn the_deadline_passes_although_the_computation_never_yields() {
        let (sender, receiver) = mpsc::channel(READ_AHEAD);
        let deadlines = Deadlines {
            each: Some(Duration::from_millis(50)),
            last: Instant::now() + Duration::from_mins(1),
        };
        let ended = Ended::default();
        let items = one_by_one(receiver, Alarm::of(deadlines), ended.when_dropped(), || 9);
        let mut items = Box::pin(items);
        for item in [1, 2] {
            let burst = Burst {
                items: vec![item],
                is_last: false,
            };
            sender.send(burst).await.unwrap();
            assert_eq!(items.next().await, Some(item));
        }
        // Nothing else comes.
        assert_eq!(items.next().await, Some(9));
        assert_eq!(items.next().await, None);
        assert!(sender.is_closed());
        let noticed = ended.noticed_by(async { refuse_ended() }).await;
        assert!(noticed.is_err());
    }

    #[tokio::test]
    async fn each_part_has_its_deadline_and_the_answer_has_one() {
        let (sender, receiver) = mpsc::channel(READ_AHEAD);
        let (each, pause) = (Duration::from_millis(400), Duration::from_millis(150));
        let deadlines = Deadlines {
            each: Some(each),
            last: Instant::now() + 2 * each,
        };
        let waiting = Ended::default().when_dropped();
        let mut items = Box::pin(one_by_one(receiver, Alarm::of(deadlines), waiting, || 9));
        tokio::spawn(async move {
            let item = || Burst {
                items: vec![1],
                is_last: false,
            };
            while sender.send(item()).await.is_ok() {
                tokio::time::sleep(pause).await;
            }
        });
        let begun = Instant::now();
        while items.next().await == Some(1) {}
        assert!(begun.elapsed() > each, "{:?}", begun.elapsed());
        assert_eq!(items.next().await, None);
    }
}
