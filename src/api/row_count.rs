//! The number of rows of an answer that were sent; travels beside the response, for the code that keeps or
//! logs it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts rows as they are sent. All clones share one count.
#[derive(Clone, Debug, Default)]
pub struct RowCount(Arc<AtomicU64>);

impl RowCount {
    #[must_use]
    pub fn of(rows: u64) -> Self {
        Self(Arc::new(AtomicU64::new(rows)))
    }

    pub fn add(&self, rows: usize) {
        self.0.fetch_add(rows as u64, Ordering::Relaxed);
    }

    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
