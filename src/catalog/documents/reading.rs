//! Finds documents: by id, name, link or age, or all of a kind, verified against their digest.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use super::document::{Document, DocumentCursor, DocumentKind, DocumentStamp, document_of};
use super::links_of_kind::links_of_kind;
use crate::catalog::Catalog;
use crate::catalog::counted_rows::{CountedRows, REGISTERS, read_counted};
use crate::catalog::damage::besides_rows;
use crate::catalog::database::{Session, Value};
use crate::catalog::errors::CatalogError;
use crate::catalog::rows::{id, text};
use crate::catalog::sound_rows::Sound;
use crate::catalog::tables::{DOCUMENTS, FOLDERS, LINKS};
use crate::catalog::verified_rows::{VerifiedRow, one_of};
use crate::model::ids::PersonId;
use crate::model::time::Instant;

/// How many targets one statement looks up.
const TARGETS_AT_ONCE: usize = 64;
/// The index by which documents, or those of a kind, are found by whose they are.
const BY_CHANGE: &str = "documents_by_change";
/// How many documents are in memory at once while all of a person's are read.
const PAGE: usize = 1000;

/// The next documents of a kind.
const AFTER: &str = "WHERE person = $1 AND kind = $2 AND (created_at, document) > ($3, $4) \
                     ORDER BY created_at, document LIMIT $5";

impl Catalog {
    /// The document with this id, deleted or not, whoever owns it.
    pub async fn document(
        &self,
        kind: DocumentKind,
        document: Uuid,
    ) -> Result<Option<Document>, CatalogError> {
        let values = vec![text(kind.as_str()), id(document)];
        let rest = "WHERE kind = $1 AND document = $2";
        let found = self.database.find(&DOCUMENTS, rest, values).await?;
        found.first().map(document_of).transpose()
    }

    /// The person's document of this name.
    pub async fn document_named(
        &self,
        person: PersonId,
        kind: DocumentKind,
        name: &str,
    ) -> Result<Option<Document>, CatalogError> {
        let values = vec![id(person.0), text(kind.as_str()), text(name)];
        let rest = "WHERE person = $1 AND kind = $2 AND name = $3";
        let found = self.database.find(&DOCUMENTS, rest, values).await?;
        found.first().map(document_of).transpose()
    }

    /// All of a person's documents of one kind, deleted ones too, oldest first.
    pub async fn documents_of(
        &self,
        person: PersonId,
        kind: DocumentKind,
    ) -> Result<Vec<Document>, CatalogError> {
        let mut session = self.database.read().await?;
        let documents = verified(&mut session, person, kind).await?;
        session.commit().await?;
        Ok(documents)
    }

    /// All of a person's documents of one kind, one by one, so that they are never in memory together.
    /// Returns the stamp of these documents. What `each` received is valid only if this returns `Ok`.
    pub async fn each_document(
        &self,
        person: PersonId,
        kind: DocumentKind,
        each: impl FnMut(Document) + Send,
    ) -> Result<DocumentStamp, CatalogError> {
        let mut session = self.database.read().await?;
        let stamp = look_at_all(&mut session, person, kind, each).await?;
        session.commit().await?;
        Ok(stamp)
    }

    /// The next `limit` documents after `after`, oldest first.
    pub async fn documents_after(
        &self,
        person: PersonId,
        kind: DocumentKind,
        after: Option<DocumentCursor>,
        limit: usize,
    ) -> Result<Vec<Document>, CatalogError> {
        let (created_at, last) = after.unwrap_or((Instant::MIN, Uuid::nil()));
        let values = vec![
            id(person.0),
            text(kind.as_str()),
            Value::Int(created_at.micros()),
            id(last),
            Value::Int(i64::try_from(limit).unwrap_or(i64::MAX)),
        ];
        let rows = self.database.select(&DOCUMENTS, AFTER, values).await?;
        rows.iter().map(document_of).collect()
    }

    /// The documents that changed at `moment` or later, in the order of their last changes.
    pub async fn documents_changed_since(
        &self,
        person: PersonId,
        kind: DocumentKind,
        moment: Instant,
    ) -> Result<Vec<Document>, CatalogError> {
        let values = vec![id(person.0), text(kind.as_str()), Value::Int(moment.micros())];
        let rest = "WHERE person = $1 AND kind = $2 AND updated_at >= $3 ORDER BY updated_at, document";
        let rows = self.database.select(&DOCUMENTS, rest, values).await?;
        rows.iter().map(document_of).collect()
    }

    /// How many documents changed at `moment` or later, and how many there are.
    pub async fn count_changed_since(
        &self,
        person: PersonId,
        kind: DocumentKind,
        moment: Instant,
    ) -> Result<(u64, u64), CatalogError> {
        let counted = "SELECT COUNT(*), COALESCE((SELECT documents FROM folders WHERE person = $1 AND kind = \
                       $2), 0) FROM documents WHERE person = $1 AND kind = $2 AND updated_at >= $3";
        let values = vec![id(person.0), text(kind.as_str()), Value::Int(moment.micros())];
        let rows = self.database.look_up_once(counted.to_owned(), values).await?;
        let row = rows
            .first()
            .ok_or_else(|| CatalogError::corrupt("a count has no row"))?;
        Ok((row.int(0)?.unsigned_abs(), row.int(1)?.unsigned_abs()))
    }

    /// The documents with a link of this kind to one of `targets`, deleted ones too, in the order of their
    /// ids. Damage to any of them is an error: what somebody may do must not depend on what is left of them.
    pub async fn documents_linked(
        &self,
        link: &'static str,
        targets: &[Uuid],
    ) -> Result<Vec<Document>, CatalogError> {
        let mut found = BTreeMap::new();
        for some in targets.chunks(TARGETS_AT_ONCE) {
            let (list, mut values) = one_of(2, some.iter().map(|target| id(*target)).collect());
            values.insert(0, text(link));
            let rest = format!("WHERE kind = $1 AND target IN {list}");
            for row in self.database.find(&LINKS, &rest, values).await? {
                let owner = row.id(3, PersonId::from_slice)?;
                found.insert(row.id(2, |bytes| Uuid::from_slice(bytes).ok())?, owner);
            }
        }
        let found: Vec<(Uuid, PersonId)> = found.into_iter().collect();
        let mut documents = Vec::with_capacity(found.len());
        for some in found.chunks(TARGETS_AT_ONCE) {
            for row in self.documents_of_any_kind(some).await? {
                documents.push(document_of(&row)?);
            }
        }
        Ok(documents)
    }

    /// The rows of documents that links name, with whose they are, in the order of their ids.
    async fn documents_of_any_kind(
        &self,
        named: &[(Uuid, PersonId)],
    ) -> Result<Vec<VerifiedRow>, CatalogError> {
        let kinds = DocumentKind::ALL.iter().map(|kind| text(kind.as_str()));
        let (kinds, mut values) = one_of(1, kinds.collect());
        let ids = named.iter().map(|(document, _)| id(*document));
        let (list, ids) = one_of(1 + values.len(), ids.collect());
        values.extend(ids);
        let by_key = format!("WHERE kind IN {kinds} AND document IN {list}");
        let mut rows = Vec::with_capacity(named.len());
        let mut present = BTreeSet::new();
        for row in self.database.find(&DOCUMENTS, &by_key, values).await? {
            let document = row.id(1, |bytes| Uuid::from_slice(bytes).ok())?;
            // Somebody else may have a document of another kind under this id.
            if named.contains(&(document, row.id(2, PersonId::from_slice)?)) {
                present.insert(document);
                rows.push(row);
            }
        }
        // A link whose document is not there may be that of a row with a damaged kind. No key finds that.
        let of_one = of_one(&self.database.by_index(BY_CHANGE));
        for (document, owner) in named.iter().filter(|(document, _)| !present.contains(document)) {
            let values = vec![id(owner.0), id(*document)];
            rows.extend(self.database.select(&DOCUMENTS, &of_one, values).await?);
        }
        rows.sort_by(|one, other| one.bytes(1).ok().cmp(&other.bytes(1).ok()));
        Ok(rows)
    }

    /// The documents of one kind with a link to `target`, deleted ones too, in the order of their ids, for a
    /// job that works for everybody: without those that are damaged, or whose links are.
    pub async fn sound_documents_linked(
        &self,
        kind: DocumentKind,
        link: &'static str,
        target: Uuid,
    ) -> Result<Sound<Document>, CatalogError> {
        let to_target = "WHERE kind = $1 AND target = $2";
        let values = vec![text(link), id(target)];
        let links = self.find_sound_rows(&LINKS, to_target, values).await?;
        let mut found = BTreeSet::new();
        for row in &links.sound {
            found.insert(row.id(2, |bytes| Uuid::from_slice(bytes).ok())?);
        }
        let found: Vec<Uuid> = found.into_iter().collect();
        let mut linked = Sound {
            sound: Vec::with_capacity(found.len()),
            set_aside: links.set_aside,
        };
        for some in found.chunks(TARGETS_AT_ONCE) {
            let (list, mut values) = one_of(2, some.iter().map(|document| id(*document)).collect());
            values.insert(0, text(kind.as_str()));
            let rest = format!("WHERE kind = $1 AND document IN {list} ORDER BY document");
            let rows = self.find_sound_rows(&DOCUMENTS, &rest, values).await?;
            for row in &rows.sound {
                linked.sound.push(document_of(row)?);
            }
            linked.set_aside.extend(rows.set_aside);
        }
        Ok(linked)
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

    /// Tells the states of a person's documents of one kind apart, by a look at each of them.
    pub async fn document_stamp(
        &self,
        person: PersonId,
        kind: DocumentKind,
    ) -> Result<DocumentStamp, CatalogError> {
        let summed = sum_of_kind(&self.database.by_index(BY_CHANGE));
        let values = vec![id(person.0), text(kind.as_str())];
        let rows = self.database.look_up(summed, values).await?;
        let row = rows
            .first()
            .ok_or_else(|| CatalogError::corrupt("a sum has no row"))?;
        Ok(DocumentStamp {
            documents: row.int(0)?,
            versions: row.int(1)?,
            latest: row.int(2)?,
            digest: row.int(3)?,
        })
    }

    /// How many documents a person has of each kind, deleted ones included. A kind not listed has none.
    pub async fn document_counts(&self, person: PersonId) -> Result<Vec<(DocumentKind, u64)>, CatalogError> {
        let rows = self
            .database
            .select(&FOLDERS, "WHERE person = $1 ORDER BY kind", vec![id(person.0)])
            .await?;
        // Sources and definitions are counted beside them.
        let is_document = |row: &&VerifiedRow| row.text(1).is_ok_and(|kind| !REGISTERS.contains(&kind));
        rows.iter()
            .filter(is_document)
            .map(|row| Ok((DocumentKind::named(row.text(1)?)?, row.int(2)?.unsigned_abs())))
            .collect()
    }

    /// Describes the damage to a person's documents, besides rows that differ from what was written. Empty
    /// when there is none.
    pub async fn damaged_documents(&self, person: PersonId) -> Result<Vec<String>, CatalogError> {
        let mut session = self.database.read().await?;
        let mut complaints = Vec::new();
        for kind in DocumentKind::ALL {
            match verified(&mut session, person, kind).await {
                Ok(_) => {}
                Err(CatalogError::Corrupt { what }) => complaints.extend(besides_rows(what)),
                Err(error) => return Err(error),
            }
        }
        session.commit().await?;
        Ok(complaints)
    }
}

/// A person's document whatever its kind, as the rest of a `select`. `by_person` makes the database find it
/// by whose it is.
fn of_one(by_person: &str) -> String {
    format!("{by_person} WHERE person = $1 AND document = $2")
}

/// What tells the states of a person's documents of one kind apart. `by_person` makes the database find them
/// by whose they are.
fn sum_of_kind(by_person: &str) -> String {
    format!(
        "SELECT COUNT(*), CAST(COALESCE(SUM(version), 0) AS BIGINT), COALESCE(MAX(updated_at), 0), \
         COALESCE((SELECT digest FROM folders WHERE person = $1 AND kind = $2), 0) \
         FROM documents{by_person} WHERE person = $1 AND kind = $2"
    )
}

/// The documents of a kind, verified to be complete.
async fn verified(
    session: &mut Session,
    person: PersonId,
    kind: DocumentKind,
) -> Result<Vec<Document>, CatalogError> {
    let mut documents = Vec::new();
    look_at_all(session, person, kind, |document| documents.push(document)).await?;
    Ok(documents)
}

/// Passes the documents of a kind to `each`, oldest first; returns their stamp. Fails if they are not all
/// that must be there.
async fn look_at_all(
    session: &mut Session,
    person: PersonId,
    kind: DocumentKind,
    each: impl FnMut(Document) + Send,
) -> Result<DocumentStamp, CatalogError> {
    let counted = read_counted(session, person, kind.as_str()).await?;
    let (found, mut stamp) = pass_all(session, person, kind, each).await?;
    if found == counted {
        stamp.documents = counted.count;
        stamp.digest = i64::from(counted.digest);
        return Ok(stamp);
    }
    Err(CatalogError::corrupt(format!(
        "person {person}: documents of kind {} are not those that were written",
        kind.as_str()
    )))
}

/// The count of a person's documents of one kind if those that are there are all.
pub(in crate::catalog) async fn counted_documents(
    session: &mut Session,
    person: PersonId,
    kind: DocumentKind,
) -> Result<CountedRows, CatalogError> {
    let (found, _) = pass_all(session, person, kind, |_| ()).await?;
    Ok(found)
}

/// Passes the documents of a kind to `each`, oldest first; returns how many there are with their digest,
/// and their versions.
async fn pass_all(
    session: &mut Session,
    person: PersonId,
    kind: DocumentKind,
    mut each: impl FnMut(Document) + Send,
) -> Result<(CountedRows, DocumentStamp), CatalogError> {
    let mut found = CountedRows::default();
    let mut stamp = DocumentStamp::default();
    let (mut created_at, mut last) = (Instant::MIN.micros(), Uuid::nil());
    loop {
        let values = vec![
            id(person.0),
            text(kind.as_str()),
            Value::Int(created_at),
            id(last),
            Value::Int(PAGE as i64),
        ];
        let rows = session.select(&DOCUMENTS, AFTER, values).await?;
        for row in &rows {
            found.gain(&[row.checksum]);
            let document = document_of(row)?;
            stamp.versions += document.version;
            stamp.latest = stamp.latest.max(document.updated_at.micros());
            (created_at, last) = (document.created_at.micros(), document.id);
            each(document);
        }
        if rows.len() < PAGE {
            break;
        }
    }
    for link in links_of_kind(session, person, kind.as_str(), found.count).await? {
        found.digest ^= link.checksum;
    }
    Ok((found, stamp))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::test_plans::{catalogue_in, steps_of};

    #[tokio::test]
    async fn the_documents_of_others_are_not_read_for_a_stamp() {
        let directory = tempfile::tempdir().unwrap();
        let catalog = catalogue_in(directory.path()).await;
        let ways = steps_of(&catalog, &sum_of_kind(&catalog.database.by_index(BY_CHANGE))).await;
        let is_of_one = |way: &String| way.contains("documents") && way.ends_with("(person=? AND kind=?)");
        assert!(ways.iter().any(is_of_one), "{ways:?}");
    }

    #[tokio::test]
    async fn the_documents_of_others_are_not_read_for_one_that_is_missing() {
        let directory = tempfile::tempdir().unwrap();
        let catalog = catalogue_in(directory.path()).await;
        let sql = DOCUMENTS.select(&of_one(&catalog.database.by_index(BY_CHANGE)));
        let steps = steps_of(&catalog, &sql).await;
        assert!(steps.iter().all(|step| step.ends_with("(person=?)")), "{steps:?}");
        assert_eq!(steps.len(), 1, "{steps:?}");
    }
}
