//! Removes what is left of a person, in small steps: their own rows, and their name from rows of others.
//!
//! Each step finds its work by looking for it, so it does not matter where the last one stopped. Each is a
//! transaction that does nothing unless the erasure is under way, and in which it stays that: whoever takes
//! the step may have been held up for so long that the person has begun anew. Knows which tables have an
//! owner, and how documents are counted and linked.

use std::collections::BTreeSet;

use uuid::Uuid;

use super::erasure::{Erasure, stays_under_way};
use super::mentions::{says, without};
use super::owned_groups;
use crate::catalog::Catalog;
use crate::catalog::database::{Session, Value};
use crate::catalog::documents::DocumentKind;
use crate::catalog::errors::CatalogError;
use crate::catalog::folders::{read_folder, write_folder};
use crate::catalog::granting::MEMBER_OF;
use crate::catalog::inserting::Existing;
use crate::catalog::ledgers::lock_for_change;
use crate::catalog::registers::strike;
use crate::catalog::rows::{id, text};
use crate::catalog::tables::{
    ACCESS_LOG, ALL, DOCUMENTS, ERASURES, LINKS, META, ORPHANS, PEOPLE, PIECES, RETIRED_OBJECTS, Table,
};
use crate::catalog::verified_rows::VerifiedRow;
use crate::model::ids::PersonId;

/// How many rows one step removes.
const ROWS_AT_ONCE: i64 = 1_000;
/// How many pieces one step removes, each perhaps with bytes of the tail.
const PIECES_AT_ONCE: i64 = 64;
/// How many rows of others one step changes.
const MENTIONS_AT_ONCE: i64 = 64;
/// Facts that name objects; no other fact names a person.
const FACTS_OF_OBJECTS: &str = "(name LIKE 'damage:%' OR name LIKE 'scrub:%')";

impl Catalog {
    /// Removes some of the person's own rows. `false` when there were none, or the erasure is over.
    pub async fn purge_own(&self, erasure: &Erasure) -> Result<bool, CatalogError> {
        let Some(person) = erasure.person else {
            return Ok(false);
        };
        // Each table after those that refer to it.
        for table in ALL.iter().rev().filter(|table| is_purged(table)) {
            if self.purge_rows(erasure, table, person).await? > 0 {
                return Ok(true);
            }
        }
        if self.purge_paths(erasure, person).await? > 0 {
            return Ok(true);
        }
        let Some(mut session) = self.while_under_way(erasure).await? else {
            return Ok(false);
        };
        let was_there = strike(&mut session, person).await?;
        self.conclude(session).await?;
        Ok(was_there)
    }

    /// Removes the person from some rows of others that name them. `false` when there were none, or the
    /// erasure is over.
    pub async fn purge_mentions(&self, erasure: &Erasure) -> Result<bool, CatalogError> {
        let Some(person) = erasure.person else {
            return Ok(false);
        };
        Ok(self.purge_links(erasure, person).await? > 0
            || self.purge_bodies(erasure, person).await? > 0
            || self.purge_log(erasure, person).await? > 0
            || self.purge_memberships(erasure).await? > 0)
    }

    async fn purge_rows(
        &self,
        erasure: &Erasure,
        table: &Table,
        person: PersonId,
    ) -> Result<u64, CatalogError> {
        let Some(mut session) = self.while_under_way(erasure).await? else {
            return Ok(0);
        };
        let key = table.key_columns();
        let some = |limit: i64| {
            format!(
                "({key}) IN (SELECT {key} FROM {} WHERE person = $1 ORDER BY {key} LIMIT {limit})",
                table.name
            )
        };
        let limit = if table.name == PIECES.name {
            let blobs = format!(
                "DELETE FROM blobs WHERE piece IN (SELECT piece FROM pieces WHERE person = $1 ORDER BY {key} \
                 LIMIT {PIECES_AT_ONCE})"
            );
            session.execute(blobs, vec![id(person.0)]).await?;
            PIECES_AT_ONCE
        } else {
            ROWS_AT_ONCE
        };
        let sql = format!("DELETE FROM {} WHERE {}", table.name, some(limit));
        let removed = session.execute(sql, vec![id(person.0)]).await?;
        self.conclude_if(session, removed).await
    }

    /// Removes rows that name the person's objects.
    async fn purge_paths(&self, erasure: &Erasure, person: PersonId) -> Result<u64, CatalogError> {
        let Some(mut session) = self.while_under_way(erasure).await? else {
            return Ok(0);
        };
        let named = || vec![text(&format!("%/{person}/%"))];
        let mut removed = 0;
        for table in [&RETIRED_OBJECTS, &ORPHANS] {
            let sql = format!("DELETE FROM {} WHERE path LIKE $1", table.name);
            removed += session.execute(sql, named()).await?;
        }
        let sql = format!(
            "DELETE FROM {} WHERE {FACTS_OF_OBJECTS} AND (name LIKE $1 OR value LIKE $1)",
            META.name
        );
        removed += session.execute(sql, vec![text(&format!("%{person}%"))]).await?;
        self.conclude_if(session, removed).await
    }

    /// Removes links to the person from other people's documents: shares with them, invitations.
    async fn purge_links(&self, erasure: &Erasure, person: PersonId) -> Result<u64, CatalogError> {
        let rest = "WHERE target = $1 AND person <> $1 ORDER BY document LIMIT $2";
        let values = vec![id(person.0), Value::Int(MENTIONS_AT_ONCE)];
        let found = self.database.select(&LINKS, rest, values).await?;
        let mut changed = 0;
        for link in found {
            let owner = link.id(3, PersonId::from_slice)?;
            let document = link.id(2, |bytes| Uuid::from_slice(bytes).ok())?;
            let Some(mut session) = self.locked(erasure, owner).await? else {
                return Ok(changed);
            };
            let of_kind = "WHERE document = $1 AND person = $2";
            let documents = session
                .select(&DOCUMENTS, of_kind, vec![id(document), id(owner.0)])
                .await?;
            let of_link = "WHERE kind = $1 AND target = $2 AND document = $3";
            let key = vec![text(link.text(0)?), id(person.0), id(document)];
            let present = session.select(&LINKS, of_link, key.clone()).await?;
            session
                .execute(format!("DELETE FROM {} {of_link}", LINKS.name), key)
                .await?;
            if let (Some(document), Some(link)) = (documents.first(), present.first()) {
                recount(&mut session, owner, document.text(0)?, 0, link.checksum).await?;
            }
            self.note_urgent_manifest(&mut session, owner).await?;
            self.conclude(session).await?;
            changed += 1;
        }
        Ok(changed)
    }

    /// Removes memberships in the person's groups. They name nobody, and have no effect any more.
    async fn purge_memberships(&self, erasure: &Erasure) -> Result<u64, CatalogError> {
        let rest = "WHERE kind = $1 AND target = $2 ORDER BY document LIMIT $3";
        let mut removed = 0;
        for group in owned_groups::noted(self, erasure.mark).await? {
            let values = vec![text(MEMBER_OF), id(group), Value::Int(MENTIONS_AT_ONCE)];
            for link in self.database.select(&LINKS, rest, values).await? {
                if !self.end_membership(erasure, &link).await? {
                    return Ok(removed);
                }
                removed += 1;
            }
        }
        Ok(removed)
    }

    /// Removes the membership that a link belongs to. `false` if the erasure is over.
    async fn end_membership(&self, erasure: &Erasure, link: &VerifiedRow) -> Result<bool, CatalogError> {
        let owner = link.id(3, PersonId::from_slice)?;
        let document = link.id(2, |bytes| Uuid::from_slice(bytes).ok())?;
        let Some(mut session) = self.locked(erasure, owner).await? else {
            return Ok(false);
        };
        let of_document = "WHERE document = $1 AND person = $2";
        let key = vec![id(document), id(owner.0)];
        let mut digest = 0;
        for table in [&LINKS, &DOCUMENTS] {
            let rows = session.select(table, of_document, key.clone()).await?;
            digest = rows.iter().fold(digest, |digest, row| digest ^ row.checksum);
            let sql = format!("DELETE FROM {} {of_document}", table.name);
            let gone = session.execute(sql, key.clone()).await?;
            if table.name == DOCUMENTS.name && gone > 0 {
                let kind = DocumentKind::Membership.as_str();
                recount(&mut session, owner, kind, -1, digest).await?;
            }
        }
        self.note_urgent_manifest(&mut session, owner).await?;
        self.conclude(session).await?;
        Ok(true)
    }

    /// Removes the person from other people's documents.
    async fn purge_bodies(&self, erasure: &Erasure, person: PersonId) -> Result<u64, CatalogError> {
        let rest = format!("WHERE person <> $1 AND {} LIMIT $3", says("body", 2));
        let values = vec![
            id(person.0),
            text(&person.to_string()),
            Value::Int(MENTIONS_AT_ONCE),
        ];
        let found = self.database.select(&DOCUMENTS, &rest, values).await?;
        let mut changed = 0;
        for document in found {
            let owner = document.id(2, PersonId::from_slice)?;
            let kind = document.text(0)?.to_owned();
            let Some(mut session) = self.locked(erasure, owner).await? else {
                return Ok(changed);
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
                if let Some(value) = row.get_mut(4) {
                    *value = Value::Text(body);
                }
                if let Some(value) = row.get_mut(5) {
                    *value = Value::Int(version);
                }
                let written = session.insert(&DOCUMENTS, vec![row], Existing::Replace).await?;
                let after = written.checksums.first().copied().unwrap_or_default();
                recount(&mut session, owner, &kind, 0, before ^ after).await?;
            }
            self.note_urgent_manifest(&mut session, owner).await?;
            self.conclude(session).await?;
            changed += 1;
        }
        Ok(changed)
    }

    /// Removes the person from entries of other people's logs. These stay, with the nil id in its place.
    async fn purge_log(&self, erasure: &Erasure, person: PersonId) -> Result<u64, CatalogError> {
        let Some(mut session) = self.while_under_way(erasure).await? else {
            return Ok(0);
        };
        let rest = format!(
            "WHERE person <> $1 AND (actor = $1 OR {}) LIMIT $3{}",
            says("body", 2),
            session.locking()
        );
        let values = vec![
            id(person.0),
            text(&person.to_string()),
            Value::Int(MENTIONS_AT_ONCE),
        ];
        let found = session.select(&ACCESS_LOG, &rest, values).await?;
        let changed = found.len() as u64;
        let mut rows = Vec::with_capacity(found.len());
        for entry in found {
            let body = without(entry.text(4)?, person);
            self.note_urgent_manifest(&mut session, entry.id(0, PersonId::from_slice)?)
                .await?;
            let mut row = entry.into_values();
            if let Some(actor) = row.get_mut(3).filter(|actor| **actor == id(person.0)) {
                *actor = id(Uuid::nil());
            }
            if let Some(value) = row.get_mut(4) {
                *value = Value::Text(body);
            }
            rows.push(row);
        }
        session.insert(&ACCESS_LOG, rows, Existing::Replace).await?;
        self.conclude_if(session, changed).await
    }

    /// Commits if any rows were changed; returns how many.
    async fn conclude_if(&self, session: Session, changed: u64) -> Result<u64, CatalogError> {
        if changed == 0 {
            session.rollback().await?;
        } else {
            self.conclude(session).await?;
        }
        Ok(changed)
    }

    /// A transaction in which the erasure stays under way; `None` if it is over.
    async fn while_under_way(&self, erasure: &Erasure) -> Result<Option<Session>, CatalogError> {
        let mut session = self.database.write().await?;
        if !stays_under_way(&mut session, erasure).await? {
            session.rollback().await?;
            return Ok(None);
        }
        Ok(Some(session))
    }

    /// The same, in which nobody else changes what belongs to `owner`.
    async fn locked(&self, erasure: &Erasure, owner: PersonId) -> Result<Option<Session>, CatalogError> {
        let Some(mut session) = self.while_under_way(erasure).await? else {
            return Ok(None);
        };
        let people = BTreeSet::from([owner]);
        lock_for_change(&mut session, &people, &*self.time).await?;
        Ok(Some(session))
    }
}

/// Whether the rows of a table belong to a person and go with them. Not `people`, which goes last, nor
/// `erasures`, which stays.
fn is_purged(table: &Table) -> bool {
    table.has_owner() && table.name != PEOPLE.name && table.name != ERASURES.name
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

    #[test]
    fn every_table_with_a_person_in_it_is_purged() {
        let kept: Vec<&str> = ALL
            .iter()
            .filter(|table| table.has_owner() && !is_purged(table))
            .map(|table| table.name)
            .collect();
        assert_eq!(kept, ["people", "erasures"]);
    }
}
