//! The pause between two rounds of background work.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

/// A pause that is shorter is taken for this long, so that no setting makes a node spin.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);

/// Waits; `false` when it is time to stop.
pub async fn paused(stop: &CancellationToken, length: Duration) -> bool {
    let pause = tokio::time::sleep(length.max(SHORTEST_PAUSE));
    stop.run_until_cancelled(pause).await.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_pause_ends_when_it_is_time_to_stop() {
        let stop = CancellationToken::new();
        assert!(paused(&stop, Duration::ZERO).await);
        let (went_on, ()) = tokio::join!(paused(&stop, Duration::from_hours(1)), async {
            tokio::task::yield_now().await;
            stop.cancel();
        });
        assert!(!went_on);
        assert!(!paused(&stop, Duration::ZERO).await);
    }
}
