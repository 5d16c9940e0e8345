//! Reads everything known of a person, page by page, in one transaction.

use serde_json::Value as Json;

use super::counts::{EstateCounts, LostRows};
use super::pages::{BLOBS, EstatePage, TABLES, json_of, order_of, page_of};
use super::states::state_of;
use crate::catalog::Catalog;
use crate::catalog::database::{Session, Value};
use crate::catalog::errors::CatalogError;
use crate::catalog::rows::{id, is_sound_blob};
use crate::catalog::tables::Table;
use crate::catalog::verified_rows::{PAGE_ROWS, VerifiedRow};
use crate::model::hexadecimal::hexadecimal;
use crate::model::ids::PersonId;
use crate::model::time::Instant;

/// How many blobs are on a page. One may be large.
const PAGE_BLOBS: i64 = 1;

/// The blobs of a person's next tail pieces, in the order of their pieces' key.
pub(super) const PAGE_OF_BLOBS: &str = "SELECT blobs.piece, blobs.blob, pieces.content_checksum, \
                                        pieces.data_type FROM pieces JOIN blobs ON blobs.piece = \
                                        pieces.piece WHERE pieces.person = $1 AND pieces.path IS NULL AND \
                                        (pieces.data_type, pieces.piece) > ($2, $3) ORDER BY \
                                        pieces.data_type, pieces.piece LIMIT $4";

/// Reads everything the catalogue knows of a person.
pub struct EstateReader {
    session: Session,
    person: PersonId,
    /// Tells this state of the person's rows apart from others.
    pub state: i64,
    /// The time of the database.
    pub read_at: Instant,
    table: usize,
    /// The values of the last row by which its table is ordered; none before its first page.
    after: Vec<Value>,
    /// Type and id of the piece of the last blob.
    blobs_after: (String, Vec<u8>),
    counts: EstateCounts,
}

impl Catalog {
    /// Begins to read everything known of a person; `None` if nobody has this id.
    pub async fn read_estate(&self, person: PersonId) -> Result<Option<EstateReader>, CatalogError> {
        let mut session = self.database.read().await?;
        // Not later than anything that is read.
        let read_at = session.now(&*self.time).await?;
        let Some(state) = state_of(&mut session, person).await? else {
            return Ok(None);
        };
        Ok(Some(EstateReader {
            read_at,
            session,
            person,
            state,
            table: 0,
            after: Vec::new(),
            blobs_after: (String::new(), Vec::new()),
            counts: EstateCounts::default(),
        }))
    }
}

impl EstateReader {
    /// The tables that pages may come from, each with the names of its columns.
    #[must_use]
    pub fn columns() -> Vec<(&'static str, Vec<&'static str>)> {
        let mut columns: Vec<_> = TABLES
            .iter()
            .map(|table| (table.name, table.columns.iter().map(|(name, _)| *name).collect()))
            .collect();
        columns.push((BLOBS, vec!["piece", "blob"]));
        columns
    }

    /// The next rows; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<EstatePage>, CatalogError> {
        while let Some(table) = TABLES.get(self.table) {
            let page = self.page(table).await?;
            self.counts.add(table, &page)?;
            // One that is not full is the last of its table.
            if (page.len() as i64) < PAGE_ROWS {
                self.table += 1;
                self.after = Vec::new();
            } else if let Some(last) = page.last() {
                self.after = last.values_of(table, &order_of(table));
            }
            if page.is_empty() {
                continue;
            }
            return Ok(Some(EstatePage {
                table: table.name.to_owned(),
                rows: page
                    .into_iter()
                    .map(|row| row.into_values().into_iter().map(json_of).collect())
                    .collect(),
            }));
        }
        self.blobs().await
    }

    /// Ends the reading, at the end of the rows, whether or not they are all that must exist; returns what is
    /// lost.
    pub async fn end_lacking(self) -> Result<LostRows, CatalogError> {
        self.session.commit().await?;
        Ok(self.counts.lost())
    }

    /// Ends the reading, at the end of the rows. `Corrupt` if they are not all that must exist.
    pub async fn end(self) -> Result<(), CatalogError> {
        self.counts.verify(self.person)?;
        self.session.commit().await
    }

    async fn page(&mut self, table: &Table) -> Result<Vec<VerifiedRow>, CatalogError> {
        let mut values = vec![id(self.person.0), Value::Int(PAGE_ROWS)];
        values.extend_from_slice(&self.after);
        let rest = page_of(table, self.after.is_empty());
        self.session.select(table, &rest, values).await
    }

    async fn blobs(&mut self) -> Result<Option<EstatePage>, CatalogError> {
        let (data_type, piece) = self.blobs_after.clone();
        let values = vec![
            id(self.person.0),
            Value::Text(data_type),
            Value::Bytes(piece),
            Value::Int(PAGE_BLOBS),
        ];
        let mut rows = Vec::new();
        for row in self.session.fetch(PAGE_OF_BLOBS.to_owned(), values).await? {
            let (piece, blob) = (row.bytes(0)?, row.bytes(1)?);
            if !is_sound_blob(&blob, row.int(2)?) {
                return Err(CatalogError::corrupt(
                    "a tail piece differs from what was written",
                ));
            }
            let data_type = row.text(3)?;
            self.counts.add_bytes(&data_type);
            self.blobs_after = (data_type, piece.clone());
            rows.push(vec![
                Json::String(hexadecimal(&piece)),
                Json::String(hexadecimal(&blob)),
            ]);
        }
        Ok((!rows.is_empty()).then(|| EstatePage {
            table: BLOBS.to_owned(),
            rows,
        }))
    }
}
