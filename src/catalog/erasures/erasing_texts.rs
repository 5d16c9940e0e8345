//! Removes a person from what others wrote and what is known of them: documents, names, preferences,
//! definitions, sources, logs, and the keys of their requests.
//!
//! No index leads to these, so each table is looked at once from its beginning to its end, and outside the
//! transactions that change what is found, in small steps: nobody else waits for a look. It finds what the
//! search for traces finds. Knows what counts a row; knows nothing of what is in it.

use super::mentions::{naming, page_after};
use super::rewriting::rewrite;
use crate::catalog::Catalog;
use crate::catalog::counted_rows::{DEFINITIONS_KIND, SOURCES_KIND};
use crate::catalog::database::{Session, Value};
use crate::catalog::erasure::Erasure;
use crate::catalog::errors::CatalogError;
use crate::catalog::inserting::Existing;
use crate::catalog::registers::change_register;
use crate::catalog::tables::{ACCESS_LOG, DEFINITIONS, DOCUMENTS, PEOPLE, SOURCES, Table, UPLOADS};
use crate::catalog::verified_rows::VerifiedRow;
use crate::model::ids::PersonId;

/// How many rows are looked at together.
const AT_ONCE: i64 = 64;
/// The tables in which rows of others may name somebody by a text.
const WITH_TEXTS: [&Table; 6] = [&DOCUMENTS, &ACCESS_LOG, &PEOPLE, &SOURCES, &DEFINITIONS, &UPLOADS];

impl Catalog {
    /// Removes the person from all texts of others that name them. `false` when there were none, or the
    /// erasure is over.
    pub(super) async fn erase_texts(
        &self,
        erasure: &Erasure,
        person: PersonId,
    ) -> Result<bool, CatalogError> {
        let mut any = false;
        for table in WITH_TEXTS {
            let mut after = Vec::new();
            loop {
                let (rest, values) = page_after(table, naming(table, person), &after, AT_ONCE);
                let found = self.database.select(table, &rest, values).await?;
                let Some(last) = found.last() else {
                    break;
                };
                after = last.key(table);
                match self.erase_page(erasure, person, table, found).await? {
                    Some(changed) => any |= changed,
                    None => return Ok(any),
                }
            }
        }
        Ok(any)
    }

    /// Removes the person from some rows of a table. Returns whether there was anything to remove; `None` if
    /// the erasure is over.
    async fn erase_page(
        &self,
        erasure: &Erasure,
        person: PersonId,
        table: &Table,
        mut rows: Vec<VerifiedRow>,
    ) -> Result<Option<bool>, CatalogError> {
        if table.name == UPLOADS.name {
            return self.forget_requests(erasure, &rows).await;
        }
        // What stays is found each time.
        rows.retain(|row| rewrite(table, &mut row.clone().into_values(), person, 0));
        if rows.is_empty() {
            return Ok(Some(false));
        }
        if table.name == ACCESS_LOG.name {
            return self.erase_entries(erasure, person, &rows).await;
        }
        let mut any = false;
        for row in rows {
            match self.erase_row(erasure, person, table, &row).await? {
                Some(changed) => any |= changed,
                None => return Ok(None),
            }
        }
        Ok(Some(any))
    }

    /// Removes the person from a row that belongs to somebody else, as it is now. Returns whether it changed;
    /// `None` if the erasure is over.
    async fn erase_row(
        &self,
        erasure: &Erasure,
        person: PersonId,
        table: &Table,
        row: &VerifiedRow,
    ) -> Result<Option<bool>, CatalogError> {
        let owner = owner_of(table, row)?;
        let mut session = match self.locked(erasure, owner).await {
            Ok(Some(session)) => session,
            Ok(None) => return Ok(None),
            // The owner is being erased too, and the row goes with them.
            Err(CatalogError::Erased { .. }) => return Ok(Some(false)),
            Err(error) => return Err(error),
        };
        let current = session.select(table, &of_key(table), row.key(table)).await?;
        let Some(current) = current.into_iter().next() else {
            session.rollback().await?;
            return Ok(Some(false));
        };
        let (before, kind) = (current.checksum, counted_as(table, &current)?);
        let Some(rewritten) = rewritten(&mut session, table, &current.into_values(), person).await? else {
            session.rollback().await?;
            return Ok(Some(false));
        };
        let written = session.insert(table, vec![rewritten], Existing::Replace).await?;
        let after = written.checksums.first().copied().unwrap_or_default();
        if let Some(kind) = kind {
            change_register(&mut session, owner, &kind, |counted| {
                counted.digest ^= before ^ after;
            })
            .await?;
        }
        self.note_urgent_manifest(&mut session, owner).await?;
        self.conclude(session).await?;
        Ok(Some(true))
    }

    /// Removes the person from some entries of other people's logs, as they are now. These stay, with the nil
    /// id in its place. `None` if the erasure is over.
    async fn erase_entries(
        &self,
        erasure: &Erasure,
        person: PersonId,
        entries: &[VerifiedRow],
    ) -> Result<Option<bool>, CatalogError> {
        let Some(mut session) = self.while_under_way(erasure).await? else {
            return Ok(None);
        };
        let of_entry = format!("{}{}", of_key(&ACCESS_LOG), session.locking());
        let mut rows = Vec::with_capacity(entries.len());
        for entry in entries {
            let key = entry.key(&ACCESS_LOG);
            let Some(current) = session.select(&ACCESS_LOG, &of_entry, key).await?.pop() else {
                continue;
            };
            let owner = owner_of(&ACCESS_LOG, &current)?;
            let mut row = current.into_values();
            if rewrite(&ACCESS_LOG, &mut row, person, 0) {
                self.note_urgent_manifest(&mut session, owner).await?;
                rows.push(row);
            }
        }
        session.insert(&ACCESS_LOG, rows, Existing::Replace).await?;
        self.conclude(session).await?;
        Ok(Some(true))
    }

    /// Forgets requests that others made under keys with the person in them: by another key nobody would ask
    /// for them. `None` if the erasure is over.
    async fn forget_requests(
        &self,
        erasure: &Erasure,
        requests: &[VerifiedRow],
    ) -> Result<Option<bool>, CatalogError> {
        let Some(mut session) = self.while_under_way(erasure).await? else {
            return Ok(None);
        };
        let sql = format!("DELETE FROM {} {}", UPLOADS.name, of_key(&UPLOADS));
        for request in requests {
            session.execute(sql.clone(), request.key(&UPLOADS)).await?;
        }
        self.conclude(session).await?;
        Ok(Some(true))
    }
}

/// A row of others without the person; `None` if nothing in it is to change.
async fn rewritten(
    session: &mut Session,
    table: &Table,
    row: &[Value],
    person: PersonId,
) -> Result<Option<Vec<Value>>, CatalogError> {
    let mut turn = 0;
    loop {
        let mut rewritten = row.to_vec();
        if !rewrite(table, &mut rewritten, person, turn) {
            return Ok(None);
        }
        if table.name != DOCUMENTS.name || !is_name_taken(session, &rewritten).await? {
            return Ok(Some(rewritten));
        }
        // Since the last look the owner has given something the name that another one had before it.
        turn += 1;
    }
}

/// Whether the owner has another document of the same kind and name.
async fn is_name_taken(session: &mut Session, document: &[Value]) -> Result<bool, CatalogError> {
    let [kind, document, owner, name @ Value::Text(_), ..] = document else {
        return Ok(false);
    };
    let sql =
        "SELECT document FROM documents WHERE person = $1 AND kind = $2 AND name = $3 AND document <> $4";
    let values = [owner, kind, name, document].map(Value::clone);
    let found = session.fetch(sql.to_owned(), values.into()).await?;
    Ok(!found.is_empty())
}

/// The rest of a statement about the row with a key.
fn of_key(table: &Table) -> String {
    let columns = table.columns.iter().take(table.key);
    let equal: Vec<String> = (1..)
        .zip(columns)
        .map(|(number, (name, _))| format!("{name} = ${number}"))
        .collect();
    format!("WHERE {}", equal.join(" AND "))
}

/// Whose a row is. Each of these tables says so.
fn owner_of(table: &Table, row: &VerifiedRow) -> Result<PersonId, CatalogError> {
    let column = table.owner_column();
    let column = column.ok_or_else(|| CatalogError::corrupt(format!("{} have no owner", table.name)))?;
    row.id(column, PersonId::from_slice)
}

/// The kind under which a row is counted with its checksum, if it is.
fn counted_as(table: &Table, row: &VerifiedRow) -> Result<Option<String>, CatalogError> {
    let kind = match table.name {
        name if name == DOCUMENTS.name => row.text(0)?,
        name if name == SOURCES.name => SOURCES_KIND,
        name if name == DEFINITIONS.name => DEFINITIONS_KIND,
        _ => return Ok(None),
    };
    Ok(Some(kind.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::erasures::rewriting::is_rewritten;
    use crate::catalog::tables::ALL;

    #[test]
    fn each_table_with_texts_that_are_written_anew_is_looked_at() {
        let looked_at = WITH_TEXTS.map(|table| table.name);
        for table in ALL.iter().filter(|table| is_rewritten(table)) {
            assert!(looked_at.contains(&table.name), "{}", table.name);
        }
        assert_eq!(of_key(&DOCUMENTS), "WHERE kind = $1 AND document = $2");
    }
}
