//! Checks that the whole catalogue is what was written, for `almanac check` and the scrub.
//!
//! Looks at every row of every table, and goes on after damage, so that all of it is reported at once. Knows
//! nothing of what is done about damage.

use super::Catalog;
use super::backlog::BLOB_OF_PIECE;
use super::damage::{Damage, besides_rows};
use super::database::Row;
use super::errors::CatalogError;
use super::reading::{read_partitions, verify_partitions};
use super::records::{Bounds, Place};
use super::rows::{id, is_sound_blob};
use super::tables::ALL;
use crate::model::ids::PersonId;

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

    /// Damage that the database finds in its own structure, and tables with rows that differ from what was
    /// written. Empty when all is well.
    pub async fn damaged_tables(&self) -> Result<Vec<String>, CatalogError> {
        let mut complaints: Vec<String> = self
            .database
            .self_check()
            .await?
            .into_iter()
            .map(|what| format!("database: {what}"))
            .collect();
        complaints.extend(self.damaged_rows().await?);
        Ok(complaints)
    }

    /// Describes the damage to a person's partitions, besides rows that differ from what was written. Empty
    /// when there is none.
    pub async fn damaged_partitions(&self, person: PersonId) -> Result<Vec<String>, CatalogError> {
        let mut session = self.database.read().await?;
        let rows = match verify_partitions(&mut session, person).await {
            Err(CatalogError::Corrupt { what }) => return Ok(besides_rows(what).into_iter().collect()),
            rows => rows?,
        };
        let mut complaints = Vec::new();
        for row in rows {
            let (data_type, counted) = (row.data_type.clone(), (row.bytes, row.bounds));
            match read_partitions(&mut session, person, vec![row]).await {
                Ok(found) => {
                    for partition in found.into_values() {
                        let bytes = partition.pieces.iter().map(|(piece, _)| piece.bytes).sum();
                        let bounds = partition
                            .pieces
                            .iter()
                            .map(|(piece, _)| piece.bounds)
                            .reduce(Bounds::union);
                        if counted != (bytes, bounds) {
                            complaints.push(format!(
                                "person {person}, {data_type}: size or times differ from those of its pieces"
                            ));
                        }
                    }
                }
                Err(CatalogError::Corrupt { what }) => {
                    let told = |what| format!("person {person}, {data_type}: {what}");
                    complaints.extend(besides_rows(what).map(told));
                }
                Err(error) => return Err(error),
            }
        }
        session.commit().await?;
        Ok(complaints)
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
                    .fetch(BLOB_OF_PIECE.to_owned(), vec![id(piece.id.0)])
                    .await?;
                let checksum = i64::from(piece.checksum);
                let is_sound = |row: &Row| row.bytes(0).is_ok_and(|blob| is_sound_blob(&blob, checksum));
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
