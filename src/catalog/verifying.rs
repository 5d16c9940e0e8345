//! Checks whether the catalogue is what was written. Looks at every row of every table, and goes on after
//! damage, so that all of it is reported at once.

use super::Catalog;
use super::damage::besides_rows;
use super::errors::CatalogError;
use super::reading::{read_partitions, verify_partitions};
use crate::model::ids::PersonId;

impl Catalog {
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
                            .reduce(super::records::Bounds::union);
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
}
