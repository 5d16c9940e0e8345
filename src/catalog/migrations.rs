//! The migrations of the catalogue's tables. Applied in order, in one transaction that only one process runs
//! at a time, by whoever opens the catalogue to write; readers refuse tables of an earlier release. A
//! released migration never changes; the next one corrects its mistakes.

use super::database::{Database, Session, Value};
use super::errors::CatalogError;
use super::first_counts::register_all;
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
    let mut found = found_version(&mut session).await?;
    if (1..latest()).contains(&found) {
        // The log goes on from a file with the same tables, or would be taken for that of another.
        session.rollback().await?;
        database.begin_round().await?;
        session = database.migrating().await?;
        found = found_version(&mut session).await?;
    }
    session
        .define(
            "CREATE TABLE IF NOT EXISTS schema_versions (version INTEGER NOT NULL PRIMARY KEY, \
                 applied_at INTEGER NOT NULL) STRICT;",
        )
        .await?;
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

/// Refuses tables for which there are migrations. Changes nothing.
pub(super) async fn refuse_earlier(database: &Database) -> Result<(), CatalogError> {
    let mut session = database.read().await?;
    let found = found_version(&mut session).await?;
    session.commit().await?;
    let known = latest();
    if found < known {
        return Err(CatalogError::TooOld { found, known });
    }
    Ok(())
}

/// The version of the tables, which is not later than those known here. 0: there are none.
async fn found_version(session: &mut Session) -> Result<i64, CatalogError> {
    let mut found = 0;
    if session.has_table("schema_versions").await? {
        let sql = "SELECT version FROM schema_versions ORDER BY version DESC LIMIT 1";
        let rows = session.fetch(sql.to_owned(), Vec::new()).await?;
        found = rows.first().map_or(Ok(0), |row| row.int(0))?;
    }
    let known = latest();
    if found > known {
        return Err(CatalogError::TooNew { found, known });
    }
    if found < 0 || (found == 0 && session.has_table("people").await?) {
        return Err(CatalogError::corrupt(
            "its schema version does not fit the tables there are",
        ));
    }
    Ok(found)
}

fn latest() -> i64 {
    MIGRATIONS.last().map_or(0, |(version, _)| *version)
}
