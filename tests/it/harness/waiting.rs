//! Waiting for what the service does in its own time.

use std::time::{Duration, Instant};

/// Far longer than anything takes, also on a machine that has more to do, and longer than the lease of a node
/// that died.
const PATIENCE: Duration = Duration::from_mins(2);
const PAUSE: Duration = Duration::from_millis(20);

/// What `look` finds, once it finds something. The test fails with what `look` complained of last if that
/// takes too long.
pub(crate) async fn until<T>(look: impl AsyncFn() -> Result<T, String>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match look().await {
            Ok(found) => return found,
            Err(complaint) => assert!(Instant::now() < deadline, "{complaint}"),
        }
        tokio::time::sleep(PAUSE).await;
    }
}
