//! Is the catalogue what was written? Looks at every row of every table, and goes on after damage, so that
//! all of it is told at once.

use super::Catalog;
use super::database::Value;
use super::errors::CatalogError;
use super::reading::{read_contents, verify_partitions};
use super::tables::{ALL, Table};
use crate::model::ids::PersonId;

/// Rows looked at by one statement.
const ROWS_AT_ONCE: i64 = 1_000;

impl Catalog {
    /// What the database says against its own structure, and tables with rows that differ from what was
    /// written. Empty when all is well.
    pub async fn damaged_tables(&self) -> Result<Vec<String>, CatalogError> {
        let mut complaints: Vec<String> = self
            .database
            .self_check()
            .await?
            .into_iter()
            .map(|what| format!("database: {what}"))
            .collect();
        for table in ALL {
            match self.damaged_rows(table).await {
                Ok(0) => {}
                Ok(count) => complaints.push(format!(
                    "table {}: {count} rows differ from what was written",
                    table.name
                )),
                Err(CatalogError::Corrupt { what }) => {
                    complaints.push(format!("table {}: {what}", table.name));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(complaints)
    }

    /// What is wrong with a person's partitions as the catalogue has them. Empty when all is well.
    pub async fn damaged_partitions(&self, person: PersonId) -> Result<Vec<String>, CatalogError> {
        let mut session = self.database.read().await?;
        let rows = match verify_partitions(&mut session, person).await {
            Err(CatalogError::Corrupt { what }) => return Ok(vec![what]),
            rows => rows?,
        };
        let mut complaints = Vec::new();
        for row in rows {
            let (data_type, counted) = (row.data_type.clone(), (row.bytes, row.bounds));
            match read_contents(&mut session, person, vec![row]).await {
                Ok(contents) => {
                    for content in contents.into_values() {
                        let bytes = content.pieces.iter().map(|(piece, _)| piece.bytes).sum();
                        let bounds = content
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
                    complaints.push(format!("person {person}, {data_type}: {what}"));
                }
                Err(error) => return Err(error),
            }
        }
        session.commit().await?;
        Ok(complaints)
    }

    async fn damaged_rows(&self, table: &Table) -> Result<u64, CatalogError> {
        let key: Vec<&str> = table
            .columns
            .iter()
            .take(table.key)
            .map(|(name, _)| *name)
            .collect();
        let key = key.join(", ");
        let mut damaged = 0;
        let mut last: Vec<Value> = Vec::new();
        loop {
            let rest = if last.is_empty() {
                format!("ORDER BY {key} LIMIT $1")
            } else {
                let marks: Vec<String> = (0..last.len()).map(|index| format!("${}", index + 2)).collect();
                format!("WHERE ({key}) > ({}) ORDER BY {key} LIMIT $1", marks.join(", "))
            };
            let mut values = vec![Value::Int(ROWS_AT_ONCE)];
            values.append(&mut last);
            let rows = self.database.fetch(table.select(&rest), values).await?;
            let Some(row) = rows.last() else {
                return Ok(damaged);
            };
            last = table.values(row)?.into_iter().take(table.key).collect();
            damaged += rows.iter().filter(|row| table.verify(row).is_err()).count() as u64;
        }
    }
}
