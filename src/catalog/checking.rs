//! Whether the catalogue is what was written: all of it, for `almanac check` and the scrub.

use super::Catalog;
use super::database::Value;
use super::errors::CatalogError;
use super::reading::{read_contents, verify_partitions};
use super::records::{Piece, Place};
use super::tables::{ALL, Table};
use crate::model::ids::PersonId;
use crate::model::registry::TypeId;

impl Catalog {
    /// Reads everything and says what is damaged. Empty when nothing is.
    pub async fn complaints(&self) -> Result<Vec<String>, CatalogError> {
        let mut complaints = self.database.self_check().await?;
        for table in ALL {
            note(&mut complaints, self.check_table(table).await)?;
        }
        let people = self
            .database
            .fetch("SELECT person FROM people ORDER BY person".to_owned(), Vec::new())
            .await?;
        for row in people {
            let Some(person) = PersonId::from_slice(&row.bytes(0)?) else {
                complaints.push("a person's id is no id".to_owned());
                continue;
            };
            note(&mut complaints, self.check_person(person).await)?;
        }
        Ok(complaints)
    }

    /// The pieces of a partition, verified, without the bytes of the tail.
    pub async fn pieces_of(&self, person: PersonId, data_type: &TypeId) -> Result<Vec<Piece>, CatalogError> {
        let partitions = self
            .snapshot(person, std::slice::from_ref(data_type), &|_| true)
            .await?;
        Ok(partitions
            .into_iter()
            .flat_map(|partition| partition.pieces)
            .collect())
    }

    async fn check_table(&self, table: &Table) -> Result<(), CatalogError> {
        let mut session = self.database.read().await?;
        let mut after = Vec::new();
        loop {
            let page = session.page(table, &after).await?;
            let Some(last) = page.last() else {
                return session.commit().await;
            };
            after = last.key(table);
        }
    }

    async fn check_person(&self, person: PersonId) -> Result<(), CatalogError> {
        let mut session = self.database.read().await?;
        let rows = verify_partitions(&mut session, person).await?;
        for content in read_contents(&mut session, person, rows).await?.into_values() {
            for (piece, _) in content
                .pieces
                .iter()
                .filter(|(piece, _)| matches!(piece.place, Place::Tail { .. }))
            {
                let blob = session
                    .fetch(
                        "SELECT blob FROM blobs WHERE piece = $1".to_owned(),
                        vec![Value::Bytes(piece.id.as_bytes().to_vec())],
                    )
                    .await?;
                let blob = blob
                    .first()
                    .map_or_else(|| Err(CatalogError::corrupt("it is lost")), |row| row.bytes(0));
                if !blob.is_ok_and(|blob| crc32fast::hash(&blob) == piece.checksum) {
                    return Err(CatalogError::corrupt(format!(
                        "tail piece {} of person {person} differs from what was written",
                        piece.id
                    )));
                }
            }
        }
        session.commit().await
    }
}

fn note(complaints: &mut Vec<String>, outcome: Result<(), CatalogError>) -> Result<(), CatalogError> {
    match outcome {
        Err(CatalogError::Corrupt { what }) => complaints.push(what),
        outcome => outcome?,
    }
    Ok(())
}
