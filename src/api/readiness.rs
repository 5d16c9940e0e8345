//! Whether the service can do its work now: checks what requests depend on, and limits how often.
//!
//! Knows nothing of who asks, or of how the result is worded.

use std::pin::Pin;

use tokio::sync::Mutex;
use tokio::time::Instant;

/// A check of everything that requests depend on.
pub trait Readiness: Send + Sync {
    /// `Ok` if the service can do its work; otherwise the part that is not ready.
    fn check(&self) -> Pin<Box<dyn Future<Output = Result<(), NotReady>> + Send + '_>>;
}

/// A check of readiness that is made at most once a second, however many ask for it.
pub struct CachedReadiness {
    look: Box<dyn Readiness>,
    last: Mutex<Option<(Instant, Result<(), NotReady>)>>,
}

/// How long a result is reused.
const FRESH_TIME: std::time::Duration = std::time::Duration::from_secs(1);

impl CachedReadiness {
    #[must_use]
    pub fn new(look: Box<dyn Readiness>) -> Self {
        Self {
            look,
            last: Mutex::default(),
        }
    }

    /// The result of the check at `now`.
    async fn seen(&self, now: Instant) -> Result<(), NotReady> {
        // Held during the check: everybody who asks meanwhile gets the same result.
        let mut last = self.last.lock().await;
        if let Some((at, seen)) = &*last
            && now.saturating_duration_since(*at) < FRESH_TIME
        {
            return seen.clone();
        }
        let seen = self.look.check().await;
        *last = Some((now, seen.clone()));
        seen
    }
}

impl Readiness for CachedReadiness {
    fn check(&self) -> Pin<Box<dyn Future<Output = Result<(), NotReady>> + Send + '_>> {
        Box::pin(self.seen(Instant::now()))
    }
}

#[derive(Clone, Debug, thiserror::Error)]
#[error("{part} is not ready: {reason}")]
pub struct NotReady {
    /// `catalogue`, `object store`.
    pub part: &'static str,
    pub reason: String,
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    struct Counted(Arc<AtomicUsize>);

    impl Readiness for Counted {
        fn check(&self) -> Pin<Box<dyn Future<Output = Result<(), NotReady>> + Send + '_>> {
            self.0.fetch_add(1, Ordering::SeqCst);
            Box::pin(std::future::ready(Ok(())))
        }
    }

    #[tokio::test]
    async fn stores_are_asked_once_a_second_whoever_asks() {
        let looks = Arc::new(AtomicUsize::new(0));
        let readiness = CachedReadiness::new(Box::new(Counted(Arc::clone(&looks))));
        let now = Instant::now();
        for _ in 0..100 {
            readiness.seen(now).await.unwrap();
        }
        assert_eq!(looks.load(Ordering::SeqCst), 1);
        readiness.seen(now + FRESH_TIME).await.unwrap();
        assert_eq!(looks.load(Ordering::SeqCst), 2);
    }
}
