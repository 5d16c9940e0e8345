//! Slows and refuses writes when too much waits in the tail.
//!
//! Flush keeps the tail small. When it cannot keep up, or keeps failing, writes are slowed first and then
//! refused: an acknowledged row must stay, so it is better not to accept more. Lives as long as the process.
//! Knows the catalogue's count; knows nothing of rows.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant as Moment};

use crate::catalog::Catalog;

/// The shortest time between two counts; what this node adds in between is added to the last.
const SHORTEST_REST: Duration = Duration::from_secs(1);
/// The longest time between two counts: after it, a node that refuses writes learns that the tail is small.
const LONGEST_REST: Duration = Duration::from_secs(30);
/// How many times as long as a count took the next one waits, since each reads the whole tail.
const RESTS: u32 = 20;
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
    /// Held by whoever counts.
    counting: Arc<tokio::sync::Mutex<()>>,
}

/// The size of the tail, as it was counted last, with what was added since that count began.
#[derive(Debug, Default)]
struct CountedTail {
    /// `None`: it was never counted.
    due_at: Option<Moment>,
    bytes: usize,
    /// What was added since the last count began, or the one that is under way. That may have seen it or not.
    added: usize,
}

impl TailPressure {
    /// `limit`: bytes of rows, as they are in memory. `usize::MAX` means no limit, and nothing is counted.
    #[must_use]
    pub fn new(catalog: Catalog, limit: usize) -> Self {
        Self {
            catalog,
            limit,
            seen: Arc::default(),
            counting: Arc::default(),
        }
    }

    /// Waits until `bytes` more may come.
    pub async fn admit(&self, bytes: usize) -> Result<(), Backlog> {
        if self.limit == usize::MAX {
            return Ok(());
        }
        self.count_if_due().await;
        let waiting = {
            let mut seen = self.lock();
            if seen.bytes >= self.limit {
                return Err(Backlog);
            }
            seen.add(bytes);
            seen.bytes
        };
        let pause = pause(waiting, self.limit);
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        Ok(())
    }

    /// Counts the tail when a count is due. Only callers that arrive before the first count has ended wait
    /// for it: until then nothing is known.
    async fn count_if_due(&self) {
        if self.lock().due_at.is_none() {
            let _counting = self.counting.lock().await;
            if self.lock().due_at.is_none() {
                self.count().await;
            }
        } else if self.is_due()
            && let Ok(counting) = Arc::clone(&self.counting).try_lock_owned()
            // Somebody may have counted meanwhile.
            && self.is_due()
        {
            let pressure = self.clone();
            tokio::spawn(async move {
                pressure.count().await;
                drop(counting);
            });
        }
    }

    fn is_due(&self) -> bool {
        self.lock().due_at.is_none_or(|due| due <= Moment::now())
    }

    async fn count(&self) {
        self.lock().begin_count();
        let begun = Moment::now();
        let counted = match self.catalog.tail_memory().await {
            Ok(counted) => Some(usize::try_from(counted).unwrap_or(0)),
            Err(error) => {
                tracing::debug!(%error, "the tail was not counted");
                None
            }
        };
        self.lock().end_count(counted, Moment::now(), begun.elapsed());
    }

    fn lock(&self) -> MutexGuard<'_, CountedTail> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CountedTail {
    fn add(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.added = self.added.saturating_add(bytes);
    }

    const fn begin_count(&mut self) {
        self.added = 0;
    }

    /// Takes over what was counted, if anything was, by a count that took so long and ended now.
    fn end_count(&mut self, counted: Option<usize>, now: Moment, took: Duration) {
        if let Some(counted) = counted {
            self.bytes = counted.saturating_add(self.added);
        }
        self.due_at = Some(now + took.saturating_mul(RESTS).clamp(SHORTEST_REST, LONGEST_REST));
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
    use crate::catalog::test_databases::address_in;
    use crate::model::clock::SystemClock;

    async fn pressure_in(directory: &tempfile::TempDir, limit: usize) -> TailPressure {
        let address = address_in(directory.path());
        let catalog = Catalog::open(&address, Arc::new(SystemClock)).await.unwrap();
        TailPressure::new(catalog, limit)
    }

    #[test]
    fn writes_are_slowed_from_half_of_the_limit_on() {
        assert_eq!(pause(50, 100), Duration::ZERO);
        assert_eq!(pause(75, 100), LONGEST_PAUSE / 2);
        assert_eq!(pause(1000, 100), LONGEST_PAUSE);
    }

    #[test]
    fn what_is_added_during_a_count_is_added_to_it_and_the_longer_it_takes_the_rarer_it_is() {
        let (mut seen, now) = (CountedTail::default(), Moment::now());
        for (took, rest) in [
            (Duration::from_millis(2), SHORTEST_REST),
            (Duration::from_millis(200), Duration::from_secs(4)),
            (Duration::from_mins(1), LONGEST_REST),
        ] {
            seen.add(1000);
            seen.begin_count();
            seen.add(30);
            seen.end_count(Some(50), now, took);
            assert_eq!(seen.bytes, 80);
            assert_eq!(seen.due_at, Some(now + rest));
        }
        seen.begin_count();
        seen.add(20);
        seen.end_count(None, now, Duration::ZERO);
        assert_eq!(seen.bytes, 100, "what cannot be counted stays as it was");
    }

    #[tokio::test]
    async fn only_the_first_count_is_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let pressure = pressure_in(&directory, 1000).await;
        let counting = Arc::clone(&pressure.counting).lock_owned().await;
        let mut first = Box::pin(pressure.admit(1));
        assert!(futures::poll!(&mut first).is_pending());
        drop(counting);
        first.await.unwrap();
        pressure.lock().due_at = Some(Moment::now());
        let _counting = Arc::clone(&pressure.counting).lock_owned().await;
        let mut later = Box::pin(pressure.admit(1));
        assert!(futures::poll!(&mut later).is_ready());
    }

    #[tokio::test]
    async fn a_node_that_refuses_writes_goes_on_counting() {
        let directory = tempfile::tempdir().unwrap();
        let pressure = pressure_in(&directory, 1000).await;
        pressure.admit(1).await.unwrap();
        {
            let mut seen = pressure.lock();
            seen.bytes = 1000;
            seen.due_at = Some(Moment::now());
        }
        assert_eq!(pressure.admit(1).await, Err(Backlog));
        while pressure.admit(1).await.is_err() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}
