//! Scour: overwrites what removed rows leave in the database's own files, after jobs that remove what
//! somebody deleted.
//!
//! SQLite keeps the bytes of removed rows in its file and in its log until others take their place, which may
//! be never. Whoever writes waits while the file is written anew, so it is not done for each row: a job notes
//! that it is about to remove something, and scours when its last time was long enough ago. Each job has a
//! note of its own, which only the holder of its lease changes, so no removal comes between a scouring and
//! the note of it. Knows notes; knows nothing of what is removed.

use std::time::Duration;

use crate::catalog::{Catalog, CatalogError};
use crate::model::time::Instant;

/// How often at most a job scours in the time within which deleted data must be gone.
const MOST_TIMES: u32 = 20;
/// The shortest pause between two times, however soon it must be gone.
const SHORTEST_PAUSE: Duration = Duration::from_secs(5);
/// What ends a note while something waits to be overwritten. What comes before is the moment of the last
/// scouring, if there was one.
const WAITING: &str = " and something was removed since";

/// One job's note.
pub struct Scouring {
    catalog: Catalog,
    note: String,
    pause: Duration,
}

impl Scouring {
    /// For a job that removes everything deleted `within` a time.
    #[must_use]
    pub fn of(job: &str, catalog: &Catalog, within: Duration) -> Self {
        Self {
            catalog: catalog.clone(),
            note: format!("scour:{job}"),
            pause: SHORTEST_PAUSE.max(within / MOST_TIMES),
        }
    }

    /// Notes that something is about to be removed: whoever removes first and dies then forgets it.
    pub async fn expect_removal(&self) -> Result<(), CatalogError> {
        let note = self.read().await?;
        if note.ends_with(WAITING) {
            return Ok(());
        }
        self.catalog
            .set_fact(&self.note, &format!("{note}{WAITING}"))
            .await
    }

    /// Scours if something was removed since the last time, and that was long enough ago.
    pub async fn scour_due(&self) -> Result<(), CatalogError> {
        let note = self.read().await?;
        let Some(last) = note.strip_suffix(WAITING) else {
            return Ok(());
        };
        let now = self.catalog.now().await?;
        // A moment that is yet to come was told by a clock that was wrong.
        let is_recent = |last: Instant| last > now.before(self.pause) && last <= now;
        if last.parse().map(Instant::from_micros).is_ok_and(is_recent) {
            return Ok(());
        }
        self.catalog.scour().await?;
        self.catalog.set_fact(&self.note, &now.micros().to_string()).await
    }

    async fn read(&self) -> Result<String, CatalogError> {
        match self.catalog.fact(&self.note).await {
            // What is damaged may have said that something waits.
            Err(CatalogError::Corrupt { .. }) => Ok(WAITING.to_owned()),
            note => Ok(note?.unwrap_or_default()),
        }
    }
}
