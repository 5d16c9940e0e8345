//! Tells what there is at an address: nothing, empty tables, or a catalogue.
//!
//! Changes nothing, and looks no further than it must.

use super::database::{Database, Session};
use super::errors::CatalogError;
use super::rows::text;
use super::tables::{META, PEOPLE};

/// The name of the fact that says which object store belongs to a catalogue.
pub(super) const IDENTITY: &str = "store:identity";

/// What there is at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundAt {
    Nothing,
    /// The tables of a catalogue that knows nobody and belongs to no object store: opening one was refused.
    Tables,
    Catalogue,
}

/// What there is in a database.
pub(super) async fn found_in(database: &Database) -> Result<FoundAt, CatalogError> {
    let mut session = database.read().await?;
    let found = found_by(&mut session).await?;
    session.commit().await?;
    Ok(found)
}

async fn found_by(session: &mut Session) -> Result<FoundAt, CatalogError> {
    if !session.has_table("schema_versions").await? {
        return Ok(FoundAt::Nothing);
    }
    let identity = "SELECT name FROM meta WHERE name = $1";
    for (table, sql, values) in [
        (&META, identity, vec![text(IDENTITY)]),
        (&PEOPLE, "SELECT person FROM people LIMIT 1", Vec::new()),
    ] {
        if session.has_table(table.name).await? && !session.fetch(sql.to_owned(), values).await?.is_empty() {
            return Ok(FoundAt::Catalogue);
        }
    }
    Ok(FoundAt::Tables)
}
