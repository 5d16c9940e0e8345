//! Slows and refuses writes when too much waits in the tail.
//!
//! Flush keeps the tail small. When it cannot keep up, or keeps failing, writes are slowed first and then
//! refused: an acknowledged row must stay, so it is better not to accept more. Lives as long as the process.
//! Knows the catalogue's count; knows nothing of rows.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant as Moment};

use crate::catalog::Catalog;

/// How often the catalogue is asked for its count; what this node adds in between is added to it.
const COUNT_FRESH_FOR: Duration = Duration::from_secs(1);
/// The longest that a write is slowed.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// The tail has reached its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many rows are waiting to become objects")]
pub struct Backlog;

/// Watches the tail. Cheap to clone; all clones share one count.
#[derive(Clone)]
pub struct TailPressure {
    catalog: Catalog,
    limit: usize,
    seen: Arc<Mutex<CountedTail>>,
}

/// The size of the tail, as it was counted last, with what was added since.
#[derive(Debug, Default)]
struct CountedTail {
    counted_at: Option<Moment>,
    bytes: usize,
}

impl TailPressure {
    /// `limit`: bytes of rows, as they are in memory. `usize::MAX` means no limit, and nothing is counted.
    #[must_use]
    pub fn new(catalog: Catalog, limit: usize) -> Self {
        Self {
            catalog,
            limit,
            seen: Arc::default(),
        }
    }

    /// Waits until `bytes` more may come.
    pub async fn admit(&self, bytes: usize) -> Result<(), Backlog> {
        if self.limit == usize::MAX {
            return Ok(());
        }
        if self.is_due() {
            match self.catalog.tail_memory().await {
                Ok(counted) => self.lock().bytes = usize::try_from(counted).unwrap_or(0),
                Err(error) => tracing::debug!(%error, "the tail was not counted"),
            }
        }
        let waiting = {
            let mut seen = self.lock();
            if seen.bytes >= self.limit {
                return Err(Backlog);
            }
            seen.bytes = seen.bytes.saturating_add(bytes);
            seen.bytes
        };
        let pause = pause(waiting, self.limit);
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        Ok(())
    }

    /// Whether to count now. Of several simultaneous callers only one does.
    fn is_due(&self) -> bool {
        let mut seen = self.lock();
        let is_due = seen
            .counted_at
            .is_none_or(|counted| counted.elapsed() > COUNT_FRESH_FOR);
        if is_due {
            seen.counted_at = Some(Moment::now());
        }
        is_due
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, CountedTail> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The pause is zero up to half of the limit, and grows from there to the limit.
fn pause(waiting: usize, limit: usize) -> Duration {
    let half = limit / 2;
    if waiting <= half {
        return Duration::ZERO;
    }
    let share = (waiting - half) as f64 / half.max(1) as f64;
    LONGEST_PAUSE.mul_f64(share.min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_slowed_from_half_of_the_limit_on() {
        assert_eq!(pause(50, 100), Duration::ZERO);
        assert_eq!(pause(75, 100), LONGEST_PAUSE / 2);
        assert_eq!(pause(1000, 100), LONGEST_PAUSE);
    }
}
