//! Groups the items of a stream that are ready together into bursts.
//!
//! Crossing from one runtime to another costs more than making a small item, above all where the other side
//! sleeps and has to be woken. Knows streams only.

use std::task::Poll;

use futures::stream::{self, Stream, StreamExt as _};

/// Items that were ready together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Burst<T> {
    pub(super) items: Vec<T>,
    /// Whether the stream was found to have ended: then the receiver need not wait for another message.
    pub(super) is_last: bool,
}

/// Items of `stream` that are ready together, until they weigh `most`. Only the first is waited for.
pub(super) fn bursts<S: Stream>(
    stream: S,
    most: usize,
    weight: fn(&S::Item) -> usize,
) -> impl Stream<Item = Burst<S::Item>> + Unpin {
    let mut stream = Box::pin(stream.fuse());
    stream::poll_fn(move |context| {
        let (mut items, mut is_last, mut weighs) = (Vec::new(), false, 0);
        while weighs < most {
            match stream.as_mut().poll_next(context) {
                Poll::Ready(Some(item)) => {
                    weighs += weight(&item);
                    items.push(item);
                }
                Poll::Pending if items.is_empty() => return Poll::Pending,
                Poll::Ready(None) if items.is_empty() => return Poll::Ready(None),
                Poll::Pending => break,
                Poll::Ready(None) => {
                    is_last = true;
                    break;
                }
            }
        }
        Poll::Ready(Some(Burst { items, is_last }))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_burst_ends_where_it_is_heavy_or_nothing_is_ready() {
        let mut waits = [false, false, true, false].into_iter();
        let items = stream::iter([3_usize, 2, 4, 9]).then(move |item| {
            let waits = waits.next().unwrap_or_default();
            async move {
                if waits {
                    tokio::task::yield_now().await;
                }
                item
            }
        });
        let burst = |items: &[usize], is_last| Burst {
            items: items.to_vec(),
            is_last,
        };
        let found: Vec<_> = bursts(items, 10, |item| *item).collect().await;
        assert_eq!(found, [burst(&[3, 2], false), burst(&[4, 9], false)]);
        let heavy: Vec<_> = bursts(stream::iter([6_usize, 6, 6]), 10, |item| *item)
            .collect()
            .await;
        assert_eq!(heavy, [burst(&[6, 6], false), burst(&[6], true)]);
        assert_eq!(
            bursts(stream::empty::<usize>(), 10, |item| *item).count().await,
            0
        );
    }
}
