//! Puts back what was read of a person, in one transaction, and verifies the partitions before that commits.

use std::collections::BTreeMap;

use super::counts::EstateCounts;
use super::giving_up::take_for_all;
use super::pages::{BLOBS, EstatePage, TABLES, parsed_row, unreadable};
use crate::catalog::Catalog;
use crate::catalog::database::{Patience, Session};
use crate::catalog::documents::DocumentKind;
use crate::catalog::errors::CatalogError;
use crate::catalog::inserting::Existing;
use crate::catalog::reading::{read_partitions, verify_partitions};
use crate::catalog::roster::enrol;
use crate::catalog::rows::{Ledger, id, path_of};
use crate::catalog::tables::{DOCUMENTS, FOLDERS, LEDGERS, LINKS, MANIFESTS, PEOPLE, PIECES};
use crate::catalog::verified_rows::VerifiedRow;
use crate::model::hexadecimal::from_hexadecimal;
use crate::model::ids::PersonId;
use crate::model::time::Instant;

/// Puts back what was read of a person.
pub struct EstateWriter {
    session: Session,
    person: PersonId,
    /// The person exists already, but nothing else is known of them.
    is_known: bool,
    counts: EstateCounts,
    /// The types of the tail pieces whose bytes were not put back so far.
    without_bytes: BTreeMap<Vec<u8>, String>,
    objects: Vec<String>,
}

/// What was put back of a person, all of whose partitions are whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PutBack {
    pub lack: Option<Lack>,
    /// The paths of the objects that pieces are in.
    pub objects: Vec<String>,
}

/// What is lacking of all that must exist beside partitions, pieces and dead rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lack {
    /// Describes it.
    pub what: String,
    /// The bytes of a tail piece, without which a type cannot be read at all.
    pub is_bytes: bool,
}

impl Catalog {
    /// Begins to put back a person's rows; `None` if something is known of them already.
    pub async fn restore_estate(&self, person: PersonId) -> Result<Option<EstateWriter>, CatalogError> {
        let mut session = self.database.write().await?;
        let known = session
            .select(&PEOPLE, "WHERE person = $1", vec![id(person.0)])
            .await?;
        let ledger = session
            .select(&LEDGERS, "WHERE person = $1", vec![id(person.0)])
            .await?;
        let counts = session
            .select(&FOLDERS, "WHERE person = $1", vec![id(person.0)])
            .await?;
        let only_sessions = counts.iter().all(|counted| {
            counted
                .text(1)
                .is_ok_and(|kind| kind == DocumentKind::Session.as_str())
        });
        let is_blank = match ledger.first() {
            Some(ledger) => Ledger::of(ledger)?.holds_nothing() && only_sessions,
            None => known.is_empty(),
        };
        if !is_blank {
            session.rollback().await?;
            return Ok(None);
        }
        // A token made meanwhile is not among what comes back; another one can be made.
        // And that there is no manifest of theirs, or another one, was noted before that.
        for table in [LINKS.name, DOCUMENTS.name, FOLDERS.name, MANIFESTS.name] {
            let sql = format!("DELETE FROM {table} WHERE person = $1");
            session.execute(sql, vec![id(person.0)]).await?;
        }
        Ok(Some(EstateWriter {
            session,
            person,
            is_known: !known.is_empty(),
            counts: EstateCounts::default(),
            without_bytes: BTreeMap::new(),
            objects: Vec::new(),
        }))
    }
}

impl EstateWriter {
    /// Puts rows back.
    pub async fn put(&mut self, page: EstatePage) -> Result<(), CatalogError> {
        if page.table == BLOBS {
            let mut blobs = Vec::with_capacity(page.rows.len());
            for row in page.rows {
                let mut parts = row
                    .into_iter()
                    .map(|part| part.as_str().and_then(from_hexadecimal).ok_or_else(unreadable));
                let (Some(piece), Some(blob)) = (parts.next(), parts.next()) else {
                    return Err(unreadable());
                };
                let piece = piece?;
                if let Some(data_type) = self.without_bytes.remove(&piece) {
                    self.counts.add_bytes(&data_type);
                }
                blobs.push((piece, blob?));
            }
            return self.session.insert_blobs(blobs).await;
        }
        let table = TABLES
            .iter()
            .find(|table| table.name == page.table)
            .ok_or_else(unreadable)?;
        let mut rows = Vec::with_capacity(page.rows.len());
        for row in page.rows {
            let (_, values) = parsed_row(table.name, row).ok_or_else(unreadable)?;
            let owner = table.owner_column().and_then(|column| values.get(column));
            if owner != Some(&id(self.person.0)) {
                return Err(unreadable());
            }
            rows.push(table.row(values));
        }
        self.counts.add(table, &rows)?;
        if table.name == PIECES.name {
            for row in &rows {
                if let Some(path) = path_of(row) {
                    self.objects.push(path.to_owned());
                } else {
                    let (data_type, piece) = (row.text(1)?.to_owned(), row.bytes(2)?.to_vec());
                    self.without_bytes.insert(piece, data_type);
                }
            }
        }
        let rows = rows.into_iter().map(VerifiedRow::into_values).collect();
        if table.name == PEOPLE.name && !self.is_known {
            enrol(&mut self.session, rows, Patience::Waits).await?;
        } else {
            let existing = match table.name {
                name if name == PEOPLE.name || name == LEDGERS.name => Existing::Replace,
                _ => Existing::Refuse,
            };
            self.session.insert(table, rows, existing).await?;
        }
        Ok(())
    }

    /// Takes the rows that were put back, which are of this moment, for all that there must be; describes
    /// what was given up.
    pub async fn give_up_lost(&mut self, read_at: Instant) -> Result<Vec<String>, CatalogError> {
        let given_up = take_for_all(&mut self.session, self.person, read_at).await?;
        // What was counted is no longer what there must be.
        self.counts = EstateCounts::default();
        self.without_bytes.clear();
        Ok(given_up)
    }

    /// Says what was put back, if partitions, pieces and dead rows are all of one state, with nothing missing
    /// and nothing extra. `Corrupt` otherwise.
    pub async fn verify(&mut self) -> Result<PutBack, CatalogError> {
        let rows = verify_partitions(&mut self.session, self.person).await?;
        read_partitions(&mut self.session, self.person, rows).await?;
        let lack = match self.counts.verify(self.person) {
            Ok(()) => None,
            Err(CatalogError::Corrupt { what }) => Some(Lack {
                what,
                is_bytes: !self.without_bytes.is_empty(),
            }),
            Err(error) => return Err(error),
        };
        Ok(PutBack {
            lack,
            objects: std::mem::take(&mut self.objects),
        })
    }

    /// Makes the rows durable, which were verified.
    pub async fn finish(self) -> Result<(), CatalogError> {
        self.session.commit().await
    }

    /// Rolls back and leaves the catalogue as it was.
    pub async fn abandon(self) -> Result<(), CatalogError> {
        self.session.rollback().await
    }
}
