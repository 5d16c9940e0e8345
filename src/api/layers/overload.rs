//! Logs all requests that were refused within a second for lack of room as one line: under pressure there are
//! thousands of them, each says the same, and writing them down would add pressure.
//!
//! Lives as long as the service. Knows counts; knows nothing of requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How long refusals are gathered.
const GATHERING_TIME: Duration = Duration::from_secs(1);

/// How many refusals are not logged yet.
#[derive(Clone, Debug, Default)]
pub struct Overload(Arc<AtomicU64>);

impl Overload {
    /// Counts a refusal. The first one starts a task that logs it together with all that follow within a
    /// second.
    pub fn note(&self, reason: &str) {
        if self.0.fetch_add(1, Ordering::Relaxed) > 0 {
            return;
        }
        let (counted, reason) = (Arc::clone(&self.0), reason.to_owned());
        tokio::spawn(async move {
            tokio::time::sleep(GATHERING_TIME).await;
            let count = counted.swap(0, Ordering::Relaxed);
            tracing::warn!(
                count,
                reason,
                "requests were refused because there was no room for them"
            );
        });
    }
}
