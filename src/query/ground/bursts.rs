//! What is ready of a stream, a burst of it at a time.
//!
//! Crossing from one runtime to another costs more than making a small item, above all where the other side
//! sleeps and has to be woken. Knows streams only.

use std::task::Poll;

use futures::stream::{self, Stream, StreamExt as _};

/// Items of `stream` that are ready together, as many as weigh `most`. None is waited for but the first.
pub(super) fn bursts<S: Stream>(
    stream: S,
    most: usize,
    weight: fn(&S::Item) -> usize,
) -> impl Stream<Item = Vec<S::Item>> {
    let mut stream = Box::pin(stream.fuse());
    stream::poll_fn(move |context| {
        let (mut burst, mut weighs) = (Vec::new(), 0);
        while weighs < most {
            match stream.as_mut().poll_next(context) {
                Poll::Ready(Some(item)) => {
                    weighs += weight(&item);
                    burst.push(item);
                }
                Poll::Pending if burst.is_empty() => return Poll::Pending,
                Poll::Ready(None) if burst.is_empty() => return Poll::Ready(None),
                Poll::Pending | Poll::Ready(None) => break,
            }
        }
        Poll::Ready(Some(burst))
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
        let found: Vec<_> = bursts(items, 10, |item| *item).collect().await;
        assert_eq!(found, [vec![3, 2], vec![4, 9]]);
        let heavy: Vec<_> = bursts(stream::iter([6_usize, 6, 6]), 10, |item| *item)
            .collect()
            .await;
        assert_eq!(heavy, [vec![6, 6], vec![6]]);
        assert_eq!(
            bursts(stream::empty::<usize>(), 10, |item| *item).count().await,
            0
        );
    }
}
