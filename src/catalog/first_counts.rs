//! Makes the first counts of a catalogue whose tables are from before there were any.

use std::collections::BTreeMap;

use super::counted_rows::{CountedRows, DEFINITIONS_KIND, SOURCES_KIND};
use super::database::Session;
use super::errors::CatalogError;
use super::inserting::Existing;
use super::roster::{ROSTER, counted_people};
use super::rows::text;
use super::tables::{DEFINITIONS, FOLDERS, META, SOURCES};
use crate::model::ids::PersonId;

/// Counts what is there, for a catalogue that has not counted so far.
pub(super) async fn register_all(session: &mut Session) -> Result<(), CatalogError> {
    let people = counted_people(session).await?;
    let row = vec![text(ROSTER), text(&people.written())];
    session.insert(&META, vec![row], Existing::Replace).await?;
    for (table, kind, owner) in [(&SOURCES, SOURCES_KIND, 0), (&DEFINITIONS, DEFINITIONS_KIND, 1)] {
        let mut counts: BTreeMap<PersonId, CountedRows> = BTreeMap::new();
        let mut after = Vec::new();
        loop {
            let page = session.page(table, &after).await?;
            let Some(last) = page.last() else { break };
            after = last.key(table);
            for row in &page {
                let person = row.id(owner, PersonId::from_slice)?;
                counts.entry(person).or_default().gain(&[row.checksum]);
            }
        }
        let rows = counts
            .into_iter()
            .map(|(person, counted)| counted.values(person, kind))
            .collect();
        session.insert(&FOLDERS, rows, Existing::Replace).await?;
    }
    Ok(())
}
