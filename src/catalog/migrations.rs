//! The migrations of the catalogue's tables. Applied at open, in order, in one transaction that only one
//! process runs at a time. A released migration never changes; the next one corrects its mistakes.

use super::database::{Database, Value};
use super::errors::CatalogError;
use super::registers::register_all;
use crate::model::time::Instant;

/// From this version on, the rows of people, sources and definitions are counted.
const REGISTERS_SINCE: i64 = 8;

const MIGRATIONS: &[(i64, &str)] = &[
    (1, include_str!("migrations/0001_foundation.sql")),
    (2, include_str!("migrations/0002_documents.sql")),
    (4, include_str!("migrations/0004_commits.sql")),
    (5, include_str!("migrations/0005_sharing.sql")),
    (6, include_str!("migrations/0006_document_changes.sql")),
    (REGISTERS_SINCE, include_str!("migrations/0008_ground.sql")),
    (9, include_str!("migrations/0009_erasures.sql")),
    (10, include_str!("migrations/0010_short_tails.sql")),
    (11, include_str!("migrations/0011_days_of_updates.sql")),
];

pub(super) async fn run(database: &Database, now: Instant) -> Result<(), CatalogError> {
    let mut session = database.migrating().await?;
    session
        .define(
            "CREATE TABLE IF NOT EXISTS schema_versions (version INTEGER NOT NULL PRIMARY KEY, \
                 applied_at INTEGER NOT NULL) STRICT;",
        )
        .await?;
    let rows = session
        .fetch(
            "SELECT version FROM schema_versions ORDER BY version DESC LIMIT 1".to_owned(),
            Vec::new(),
        )
        .await?;
    let found = rows.first().map_or(Ok(0), |row| row.int(0))?;
    let known = MIGRATIONS.last().map_or(0, |(version, _)| *version);
    if found > known {
        return Err(CatalogError::TooNew { found, known });
    }
    if found < 0 || (found == 0 && session.has_table("people").await?) {
        return Err(CatalogError::corrupt(
            "its schema version does not fit the tables there are",
        ));
    }
    for (version, script) in MIGRATIONS.iter().filter(|(version, _)| *version > found) {
        session.define(script).await?;
        if *version == REGISTERS_SINCE {
            register_all(&mut session).await?;
        }
        let applied = vec![Value::Int(*version), Value::Int(now.micros())];
        session
            .execute(
                "INSERT INTO schema_versions (version, applied_at) VALUES ($1, $2)".to_owned(),
                applied,
            )
            .await?;
    }
    session.commit().await
}
