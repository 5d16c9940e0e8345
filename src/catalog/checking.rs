//! Checks that the whole catalogue is what was written, for `almanac check` and the scrub.

use super::Catalog;
use super::damage::{Damage, besides_rows};
use super::database::{Row, Value};
use super::documents::{Document, DocumentKind, document_of};
use super::errors::CatalogError;
use super::reading::{of_types, read_partitions, verify_partitions};
use super::records::{Piece, Place};
use super::rows::{id, piece_of, text};
use super::tables::{ALL, DOCUMENTS, PIECES};
use crate::model::ids::PersonId;
use crate::model::registry::TypeId;

impl Catalog {
    /// Reads everything and describes what is damaged. Empty when nothing is.
    pub async fn complaints(&self) -> Result<Vec<String>, CatalogError> {
        let mut complaints = self.database.self_check().await?;
        complaints.extend(self.damaged_rows().await?);
        let people = self
            .database
            .fetch("SELECT person FROM people ORDER BY person".to_owned(), Vec::new())
            .await?;
        for row in people {
            let Some(person) = PersonId::from_slice(&row.bytes(0)?) else {
                complaints.push("a person's id is not an id".to_owned());
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

    /// Describes the rows of any table that are not what was written, by table and person.
    pub(super) async fn damaged_rows(&self) -> Result<Vec<String>, CatalogError> {
        let mut damage = Damage::default();
        for table in ALL {
            let mut session = self.database.read().await?;
            match damage.look_through(&mut session, table).await {
                Ok(()) => session.commit().await?,
                Err(CatalogError::Corrupt { what }) => damage.cut_short(table.name, &what),
                Err(error) => return Err(error),
            }
        }
        Ok(damage.descriptions())
    }

    /// The pieces of a partition whose own rows are intact, whatever is wrong with the others.
    pub async fn sound_pieces_of(
        &self,
        person: PersonId,
        data_type: &TypeId,
    ) -> Result<Vec<Piece>, CatalogError> {
        let (rest, values) = of_types(person, std::slice::from_ref(data_type));
        let rows = self.database.fetch(PIECES.select(&rest), values).await?;
        let sound = rows.iter().filter_map(|row| PIECES.verify(row).ok());
        Ok(sound.filter_map(|row| piece_of(&row).ok()).collect())
    }

    /// The documents of a kind whose own rows are intact, whatever is wrong with the others.
    pub async fn sound_documents_of(
        &self,
        person: PersonId,
        kind: DocumentKind,
    ) -> Result<Vec<Document>, CatalogError> {
        let values = vec![id(person.0), text(kind.as_str())];
        let rest = "WHERE person = $1 AND kind = $2 ORDER BY created_at, document";
        let rows = self.database.fetch(DOCUMENTS.select(rest), values).await?;
        let sound = rows.iter().filter_map(|row| DOCUMENTS.verify(row).ok());
        Ok(sound.filter_map(|row| document_of(&row).ok()).collect())
    }

    async fn check_person(&self, person: PersonId) -> Result<(), CatalogError> {
        let mut session = self.database.read().await?;
        let rows = verify_partitions(&mut session, person).await?;
        for partition in read_partitions(&mut session, person, rows).await?.into_values() {
            for (piece, _) in partition
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
                let is_sound = |row: &Row| {
                    row.bytes(0)
                        .is_ok_and(|blob| crc32fast::hash(&blob) == piece.checksum)
                };
                let what = match blob.first() {
                    None => "is lost",
                    Some(row) if is_sound(row) => continue,
                    Some(_) => "differs from what was written",
                };
                return Err(CatalogError::corrupt(format!(
                    "tail piece {} of person {person} {what}",
                    piece.id
                )));
            }
        }
        session.commit().await
    }
}

fn note(complaints: &mut Vec<String>, outcome: Result<(), CatalogError>) -> Result<(), CatalogError> {
    match outcome {
        Err(CatalogError::Corrupt { what }) => complaints.extend(besides_rows(what)),
        outcome => outcome?,
    }
    Ok(())
}
