//! Removes a person from rows of others: links to them, documents and entries of logs that name them, and
//! memberships in their groups.
//!
//! No index leads to most of these, so each kind of row is looked at once from its beginning to its end, and
//! outside the transactions that change what is found, in small steps: nobody else waits for a look. Where
//! the last look stopped does not matter to the next one, which finds what is left. Knows how documents are
//! counted and linked.

use uuid::Uuid;

use super::erasure::Erasure;
use super::mentions::{renamed, says, without};
use super::owned_groups;
use crate::catalog::Catalog;
use crate::catalog::database::{Session, Value};
use crate::catalog::documents::DocumentKind;
use crate::catalog::errors::CatalogError;
use crate::catalog::folders::{read_folder, write_folder};
use crate::catalog::granting::{INVITES, MEMBER_OF, SHARED_WITH_PERSON};
use crate::catalog::inserting::Existing;
use crate::catalog::rows::{id, text};
use crate::catalog::tables::{ACCESS_LOG, DOCUMENTS, LINKS};
use crate::catalog::verified_rows::{VerifiedRow, one_of};
use crate::model::ids::PersonId;

/// How many rows one step changes.
const AT_ONCE: i64 = 64;
/// The kinds of links that lead to people.
const TO_PEOPLE: [&str; 2] = [SHARED_WITH_PERSON, INVITES];
/// The index by which the links of a document are found.
const BY_DOCUMENT: &str = "links_by_document";
/// One link.
const OF_LINK: &str = "WHERE kind = $1 AND target = $2 AND document = $3";

impl Catalog {
    /// Removes the person from all rows of others that name them. `false` when there were none, or the
    /// erasure is over.
    pub async fn purge_mentions(&self, erasure: &Erasure) -> Result<bool, CatalogError> {
        let Some(person) = erasure.person else {
            return Ok(false);
        };
        let mut found = self.purge_links(erasure, person).await?;
        found |= self.purge_bodies(erasure, person).await?;
        found |= self.purge_log(erasure, person).await?;
        found |= self.purge_memberships(erasure).await?;
        Ok(found)
    }

    /// Removes links to the person from other people's documents: shares with them, invitations.
    async fn purge_links(&self, erasure: &Erasure, person: PersonId) -> Result<bool, CatalogError> {
        let mut any = false;
        loop {
            let links = self.links_to(person).await?;
            if links.is_empty() {
                return Ok(any);
            }
            for link in links {
                if !self.purge_link(erasure, person, &link).await? {
                    return Ok(any);
                }
                any = true;
            }
        }
    }

    /// Some links from other people's documents to the person.
    async fn links_to(&self, person: PersonId) -> Result<Vec<VerifiedRow>, CatalogError> {
        let (kinds, mut values) = one_of(3, TO_PEOPLE.iter().map(|kind| text(kind)).collect());
        let of_anybody_else = [id(person.0), Value::Int(AT_ONCE)];
        values.splice(0..0, of_anybody_else.clone());
        let found = self.database.select(&LINKS, &to_person(&kinds), values).await?;
        if !found.is_empty() {
            return Ok(found);
        }
        // What leads to the person but says that it is of another kind is looked for when these are gone.
        let of_any_kind = "WHERE target = $1 AND person <> $1 ORDER BY kind, target, document LIMIT $2";
        let values = of_anybody_else.into();
        self.database.select(&LINKS, of_any_kind, values).await
    }

    /// Removes a link to the person. `false` if the erasure is over.
    async fn purge_link(
        &self,
        erasure: &Erasure,
        person: PersonId,
        link: &VerifiedRow,
    ) -> Result<bool, CatalogError> {
        let owner = link.id(3, PersonId::from_slice)?;
        let document = link.id(2, |bytes| Uuid::from_slice(bytes).ok())?;
        let Some(mut session) = self.locked(erasure, owner).await? else {
            return Ok(false);
        };
        let document_row = document_of_link(&mut session, document, owner).await?;
        let key = vec![text(link.text(0)?), id(person.0), id(document)];
        let present = session.select(&LINKS, OF_LINK, key.clone()).await?;
        session
            .execute(format!("DELETE FROM {} {OF_LINK}", LINKS.name), key)
            .await?;
        if let (Some(document), Some(link)) = (document_row, present.first()) {
            recount(&mut session, owner, document.text(0)?, 0, link.checksum).await?;
        }
        self.note_urgent_manifest(&mut session, owner).await?;
        self.conclude(session).await?;
        Ok(true)
    }

    /// Removes memberships in the person's groups. They name nobody, and have no effect any more.
    async fn purge_memberships(&self, erasure: &Erasure) -> Result<bool, CatalogError> {
        let rest = "WHERE kind = $1 AND target = $2 ORDER BY document LIMIT $3";
        let mut any = false;
        for group in owned_groups::noted(self, erasure.mark).await? {
            loop {
                let values = vec![text(MEMBER_OF), id(group), Value::Int(AT_ONCE)];
                let links = self.database.select(&LINKS, rest, values).await?;
                if links.is_empty() {
                    break;
                }
                for link in links {
                    if !self.end_membership(erasure, &link).await? {
                        return Ok(any);
                    }
                    any = true;
                }
            }
        }
        Ok(any)
    }

    /// Removes the membership that a link belongs to. `false` if the erasure is over.
    async fn end_membership(&self, erasure: &Erasure, link: &VerifiedRow) -> Result<bool, CatalogError> {
        let owner = link.id(3, PersonId::from_slice)?;
        let document = link.id(2, |bytes| Uuid::from_slice(bytes).ok())?;
        let Some(mut session) = self.locked(erasure, owner).await? else {
            return Ok(false);
        };
        let of_document = links_of_one(&self.database.by_index(BY_DOCUMENT));
        let whose = vec![id(document), id(owner.0)];
        let links = session.select(&LINKS, &of_document, whose.clone()).await?;
        let sql = format!("DELETE FROM {}{of_document}", LINKS.name);
        session.execute(sql, whose).await?;
        if let Some(membership) = document_of_link(&mut session, document, owner).await? {
            let sql = format!("DELETE FROM {} WHERE kind = $1 AND document = $2", DOCUMENTS.name);
            session.execute(sql, membership.key(&DOCUMENTS)).await?;
            let rows = links.iter().chain([&membership]);
            let digest = rows.fold(0, |digest, row| digest ^ row.checksum);
            let kind = DocumentKind::Membership.as_str();
            recount(&mut session, owner, kind, -1, digest).await?;
        }
        self.note_urgent_manifest(&mut session, owner).await?;
        self.conclude(session).await?;
        Ok(true)
    }

    /// Removes the person from other people's documents.
    async fn purge_bodies(&self, erasure: &Erasure, person: PersonId) -> Result<bool, CatalogError> {
        let rest = format!(
            "WHERE (kind, document) > ($4, $5) AND person <> $1 AND ({} OR {}) \
             ORDER BY kind, document LIMIT $3",
            says("body", 2),
            says("name", 2)
        );
        let mut after = vec![text(""), Value::Bytes(Vec::new())];
        let mut any = false;
        loop {
            let values = [of_name(person), after].concat();
            let found = self.database.select(&DOCUMENTS, &rest, values).await?;
            let Some(last) = found.last() else {
                return Ok(any);
            };
            after = last.key(&DOCUMENTS);
            for document in found {
                if !self.purge_body(erasure, person, &document).await? {
                    return Ok(any);
                }
                any = true;
            }
        }
    }

    /// Removes the person from somebody else's document. `false` if the erasure is over.
    async fn purge_body(
        &self,
        erasure: &Erasure,
        person: PersonId,
        document: &VerifiedRow,
    ) -> Result<bool, CatalogError> {
        let owner = document.id(2, PersonId::from_slice)?;
        let kind = document.text(0)?;
        let Some(mut session) = self.locked(erasure, owner).await? else {
            return Ok(false);
        };
        let current = session
            .select(
                &DOCUMENTS,
                "WHERE kind = $1 AND document = $2",
                document.key(&DOCUMENTS),
            )
            .await?;
        if let Some(current) = current.into_iter().next() {
            let before = current.checksum;
            let body = without(current.text(4)?, person);
            let version = current.int(5)? + 1;
            let mut row = current.into_values();
            if let Some(Value::Text(name)) = row.get_mut(3) {
                *name = renamed(name, person);
            }
            if let Some(value) = row.get_mut(4) {
                *value = Value::Text(body);
            }
            if let Some(value) = row.get_mut(5) {
                *value = Value::Int(version);
            }
            let written = session.insert(&DOCUMENTS, vec![row], Existing::Replace).await?;
            let after = written.checksums.first().copied().unwrap_or_default();
            recount(&mut session, owner, kind, 0, before ^ after).await?;
        }
        self.note_urgent_manifest(&mut session, owner).await?;
        self.conclude(session).await?;
        Ok(true)
    }

    /// Removes the person from entries of other people's logs. These stay, with the nil id in its place.
    async fn purge_log(&self, erasure: &Erasure, person: PersonId) -> Result<bool, CatalogError> {
        let rest = format!(
            "WHERE (person, entry) > ($4, $5) AND person <> $1 AND (actor = $1 OR {}) \
             ORDER BY person, entry LIMIT $3",
            says("body", 2)
        );
        let mut after = vec![Value::Bytes(Vec::new()), Value::Bytes(Vec::new())];
        let mut any = false;
        loop {
            let values = [of_name(person), after].concat();
            let found = self.database.select(&ACCESS_LOG, &rest, values).await?;
            let Some(last) = found.last() else {
                return Ok(any);
            };
            after = last.key(&ACCESS_LOG);
            if !self.purge_entries(erasure, person, &found).await? {
                return Ok(any);
            }
            any = true;
        }
    }

    /// Removes the person from some entries, as they are now. `false` if the erasure is over.
    async fn purge_entries(
        &self,
        erasure: &Erasure,
        person: PersonId,
        entries: &[VerifiedRow],
    ) -> Result<bool, CatalogError> {
        let Some(mut session) = self.while_under_way(erasure).await? else {
            return Ok(false);
        };
        let of_entry = format!("WHERE person = $1 AND entry = $2{}", session.locking());
        let mut rows = Vec::with_capacity(entries.len());
        for entry in entries {
            let current = session
                .select(&ACCESS_LOG, &of_entry, entry.key(&ACCESS_LOG))
                .await?;
            let Some(current) = current.into_iter().next() else {
                continue;
            };
            let body = without(current.text(4)?, person);
            self.note_urgent_manifest(&mut session, current.id(0, PersonId::from_slice)?)
                .await?;
            let mut row = current.into_values();
            if let Some(actor) = row.get_mut(3).filter(|actor| **actor == id(person.0)) {
                *actor = id(Uuid::nil());
            }
            if let Some(value) = row.get_mut(4) {
                *value = Value::Text(body);
            }
            rows.push(row);
        }
        session.insert(&ACCESS_LOG, rows, Existing::Replace).await?;
        self.conclude(session).await?;
        Ok(true)
    }
}

/// The rest of a `select` of links of some kinds from other people's documents to a person.
fn to_person(kinds: &str) -> String {
    format!("WHERE kind IN {kinds} AND target = $1 AND person <> $1 ORDER BY kind, target, document LIMIT $2")
}

/// The rest of a statement about the links of a document. `by_document` makes the database find them by it:
/// it would take a person for having as few.
fn links_of_one(by_document: &str) -> String {
    format!("{by_document} WHERE document = $1 AND person = $2")
}

/// How rows are looked for that name a person: by the id, and by it as text; and how many at once.
fn of_name(person: PersonId) -> Vec<Value> {
    vec![id(person.0), text(&person.to_string()), Value::Int(AT_ONCE)]
}

/// The document that a link of `owner` belongs to. It is looked for by its key; one whose kind is damaged is
/// an error.
async fn document_of_link(
    session: &mut Session,
    document: Uuid,
    owner: PersonId,
) -> Result<Option<VerifiedRow>, CatalogError> {
    let kinds = DocumentKind::ALL.iter().map(|kind| text(kind.as_str()));
    let (kinds, kind_values) = one_of(3, kinds.collect());
    let whose = vec![id(document), id(owner.0)];
    let by_key = format!("WHERE kind IN {kinds} AND document = $1 AND person = $2");
    let values = [whose.clone(), kind_values].concat();
    if let Some(found) = session.select(&DOCUMENTS, &by_key, values).await?.pop() {
        return Ok(Some(found));
    }
    let of_any_kind = "WHERE document = $1 AND person = $2";
    Ok(session.select(&DOCUMENTS, of_any_kind, whose).await?.pop())
}

/// Changes the count and the digest of a person's documents of one kind.
async fn recount(
    session: &mut Session,
    owner: PersonId,
    kind: &str,
    more: i64,
    digest: u32,
) -> Result<(), CatalogError> {
    let mut folder = read_folder(session, owner, kind).await?;
    folder.documents += more;
    folder.digest ^= digest;
    write_folder(session, owner, kind, folder).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::test_plans::{catalogue_in, steps_of};

    #[tokio::test]
    async fn what_names_nobody_is_not_read_for_a_link() {
        let directory = tempfile::tempdir().unwrap();
        let catalog = catalogue_in(directory.path()).await;
        let of_document = links_of_one(&catalog.database.by_index(BY_DOCUMENT));
        for (sql, way) in [
            (LINKS.select(&to_person("($3, $4)")), "(kind=? AND target=?)"),
            (LINKS.select(&of_document), "(document=?)"),
            (format!("DELETE FROM links{of_document}"), "(document=?)"),
        ] {
            let steps = steps_of(&catalog, &sql).await;
            assert!(steps.iter().all(|step| step.ends_with(way)), "{sql}: {steps:?}");
            assert_eq!(steps.len(), 1, "{sql}: {steps:?}");
        }
    }
}
