//! What a clock dated that was ahead, and was put right since: nothing would become of it until that date.
//!
//! A moment that lies ahead by more than the clocks of nodes may differ counts as now. What waits for some
//! time to pass is dated anew, so that it waits for the whole of it from then on. All times are the
//! database's.

use std::time::Duration;

use super::Catalog;
use super::database::Value;
use super::errors::CatalogError;
use super::inserting::Existing;
use super::sound_rows::sound_among;
use super::tables::{DELETIONS, ORPHANS, RETIRED_OBJECTS, Table, UPLOADS};
use crate::model::time::Instant;

/// How far ahead a moment may lie.
const TOLERATED: Duration = Duration::from_hours(1);
/// How many rows one transaction dates anew.
const PAGE: usize = 1_000;

/// The columns that say since when something waits. What never ends has the last moment there is.
const SINCE_WHEN: [(&Table, &str); 6] = [
    (&RETIRED_OBJECTS, "retired_at"),
    (&DELETIONS, "noticed_at"),
    (&ORPHANS, "noticed_at"),
    (&ORPHANS, "condemned_at"),
    (&ORPHANS, "removed_at"),
    (&UPLOADS, "accepted_at"),
];

/// Whether a moment was noted by a clock that was ahead.
#[must_use]
pub fn is_ahead(moment: Instant, now: Instant) -> bool {
    moment > now.after(TOLERATED)
}

impl Catalog {
    /// Dates anew whatever waits since a moment that lies ahead; returns how many rows that were. Damaged
    /// ones stay as they are.
    pub async fn date_anew(&self) -> Result<usize, CatalogError> {
        let mut dated = 0;
        for (table, column) in SINCE_WHEN {
            dated += self.date_column_anew(table, column).await?;
        }
        Ok(dated)
    }

    async fn date_column_anew(&self, table: &Table, column: &str) -> Result<usize, CatalogError> {
        let limit = self.now().await?.after(TOLERATED);
        let rest = format!("WHERE {column} > $1 AND {column} < $2 ORDER BY {column} LIMIT {PAGE}");
        let values = vec![Value::Int(limit.micros()), Value::Int(i64::MAX)];
        // A transaction is a write, which a service with nothing to do should not make again and again.
        let ahead = self.database.fetch(table.select(&rest), values.clone()).await?;
        let mut are_left = !ahead.is_empty();
        let mut dated = 0;
        while are_left {
            let mut session = self.database.write().await?;
            let now = session.now(&*self.time).await?;
            let locked = table.select(&format!("{rest}{}", session.locking()));
            let found = session.fetch(locked, values.clone()).await?;
            let mut rows = Vec::with_capacity(found.len());
            for row in sound_among(table, &found)?.sound {
                let columns = table.columns.iter().zip(row.into_values());
                let dated_anew = columns.map(|((name, _), value)| {
                    if *name == column {
                        Value::Int(now.micros())
                    } else {
                        value
                    }
                });
                rows.push(dated_anew.collect());
            }
            are_left = rows.len() == PAGE;
            dated += rows.len();
            session.insert(table, rows, Existing::Replace).await?;
            session.commit().await?;
        }
        Ok(dated)
    }
}
