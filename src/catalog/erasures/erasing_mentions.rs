//! Removes a person from rows of others: links to them, memberships in their groups, and whatever names them.
//!
//! What is found is changed in small steps. Where the last look stopped does not matter to the next one,
//! which finds what is left. Knows how documents are counted and linked.

use uuid::Uuid;

use super::owned_groups;
use crate::catalog::Catalog;
use crate::catalog::counted_rows::{read_counted, write_counted};
use crate::catalog::database::{Session, Value};
use crate::catalog::documents::{BY_DOCUMENT, DocumentKind, links_of_one};
use crate::catalog::erasure::Erasure;
use crate::catalog::errors::CatalogError;
use crate::catalog::granting::{INVITES, MEMBER_OF, SHARED_WITH_PERSON};
use crate::catalog::rows::{id, text};
use crate::catalog::tables::{DOCUMENTS, LINKS};
use crate::catalog::verified_rows::{VerifiedRow, one_of};
use crate::model::ids::PersonId;

/// How many rows one step changes.
const AT_ONCE: i64 = 64;
/// The kinds of links that lead to people.
const TO_PEOPLE: [&str; 2] = [SHARED_WITH_PERSON, INVITES];
/// One link.
const OF_LINK: &str = "WHERE kind = $1 AND target = $2 AND document = $3";

impl Catalog {
    /// Removes the person from all rows of others that name them. `false` when there were none, or the
    /// erasure is over.
    pub async fn erase_mentions(&self, erasure: &Erasure) -> Result<bool, CatalogError> {
        let Some(person) = erasure.person else {
            return Ok(false);
        };
        let mut found = self.erase_links(erasure, person).await?;
        found |= self.erase_texts(erasure, person).await?;
        found |= self.erase_memberships(erasure).await?;
        Ok(found)
    }

    /// Removes links to the person from other people's documents: shares with them, invitations.
    async fn erase_links(&self, erasure: &Erasure, person: PersonId) -> Result<bool, CatalogError> {
        let mut any = false;
        loop {
            let links = self.links_to(person).await?;
            if links.is_empty() {
                return Ok(any);
            }
            for link in links {
                if !self.erase_link(erasure, person, &link).await? {
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
    async fn erase_link(
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
    async fn erase_memberships(&self, erasure: &Erasure) -> Result<bool, CatalogError> {
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
}

/// The rest of a `select` of links of some kinds from other people's documents to a person.
fn to_person(kinds: &str) -> String {
    format!("WHERE kind IN {kinds} AND target = $1 AND person <> $1 ORDER BY kind, target, document LIMIT $2")
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
    let mut counted = read_counted(session, owner, kind).await?;
    counted.count += more;
    counted.digest ^= digest;
    write_counted(session, owner, kind, counted).await
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
