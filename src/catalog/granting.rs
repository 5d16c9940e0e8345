//! Finds the shares that reach a person, directly or through a group, with one statement.
//!
//! The statement returns every row that the answer rests on, links included, so that each is verified against
//! its checksum. Knows how documents are linked; knows nothing of what a share allows.

use std::collections::BTreeSet;

use uuid::Uuid;

use super::Catalog;
use super::database::Value;
use super::documents::{Document, DocumentKind, document_of};
use super::errors::CatalogError;
use super::rows::{id, text};
use super::tables::{DOCUMENTS, LINKS};
use super::verified_rows::{VerifiedRow, one_of};
use crate::model::ids::PersonId;

/// From a share to a person who may use it.
pub const SHARED_WITH_PERSON: &str = "share_person";
/// From a share to a group whose members may use it.
pub const SHARED_WITH_GROUP: &str = "share_group";
/// From a membership to its group.
pub const MEMBER_OF: &str = "membership_group";
/// From a membership to the name by which the group knows the member.
pub const PARTICIPATES_AS: &str = "membership_participant";
/// From a private group to somebody who may join all the same.
pub const INVITES: &str = "group_invited";
/// From a group that everybody may see to [`EVERYBODY`].
pub const OPEN_TO: &str = "group_public";
/// The target of the links of public groups.
pub const EVERYBODY: Uuid = Uuid::nil();

/// The index by which links are found by whose they are.
const BY_PERSON: &str = "links_by_person";
/// The ids of the documents that a person has of one kind.
const DOCUMENTS_OF_KIND: &str = "SELECT document FROM documents WHERE person = $1 AND kind = $2";
/// How many documents' links one statement looks up.
const DOCUMENTS_AT_ONCE: usize = 64;

/// A share that reaches a reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    pub share: Document,
    /// The group through which it reaches them; `None` when it names the person.
    pub group: Option<Uuid>,
}

/// A link as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredLink {
    pub kind: String,
    pub target: Uuid,
    pub document: Uuid,
    /// The owner of the document.
    pub person: PersonId,
}

impl Catalog {
    /// The shares of `owner` that reach `reader`.
    ///
    /// Where none does, the links of the reader's memberships are verified: a damaged one no longer leads
    /// where it led, and a membership that cannot be read must not look like one that never was. The owner's
    /// links are not, since the time that takes would tell a stranger who has an account here and how much
    /// they share; the owner learns of damage where their shares are listed.
    pub async fn grants_between(
        &self,
        owner: PersonId,
        reader: PersonId,
    ) -> Result<Vec<Grant>, CatalogError> {
        let values = vec![id(reader.0), id(owner.0)];
        let statement = statement(Givers::One, &self.database.by_index(BY_PERSON));
        let grants = self.grants(statement, values).await?;
        if grants.is_empty() {
            self.verify_memberships(reader).await?;
        }
        Ok(grants)
    }

    /// Verifies the links of a person's memberships. They are found by these, since a damaged link may say
    /// that it is of another kind or person, and by statements of their own: to join them, PostgreSQL would
    /// read everybody's links.
    async fn verify_memberships(&self, person: PersonId) -> Result<(), CatalogError> {
        let values = vec![id(person.0), text(DocumentKind::Membership.as_str())];
        let mut memberships = Vec::new();
        for row in self
            .database
            .look_up(DOCUMENTS_OF_KIND.to_owned(), values)
            .await?
        {
            memberships.push(Value::Bytes(row.bytes(0)?));
        }
        for some in memberships.chunks(DOCUMENTS_AT_ONCE) {
            let (list, values) = one_of(1, some.to_vec());
            self.database.find(&LINKS, &of_documents(&list), values).await?;
        }
        Ok(())
    }

    /// All shares that reach `reader`, whoever gave them.
    pub async fn grants_to(&self, reader: PersonId) -> Result<Vec<Grant>, CatalogError> {
        let statement = statement(Givers::All, &self.database.by_index(BY_PERSON));
        self.grants(statement, vec![id(reader.0)]).await
    }

    /// The links of some documents.
    pub async fn links_of(&self, documents: &[Uuid]) -> Result<Vec<StoredLink>, CatalogError> {
        let mut links = Vec::new();
        for some in documents.chunks(DOCUMENTS_AT_ONCE) {
            let (list, values) = one_of(1, some.iter().map(|document| id(*document)).collect());
            let rest = format!("{} ORDER BY document, kind, target", of_documents(&list));
            for row in self.database.select(&LINKS, &rest, values).await? {
                links.push(link_of(&row)?);
            }
        }
        Ok(links)
    }

    async fn grants(&self, sql: String, values: Vec<Value>) -> Result<Vec<Grant>, CatalogError> {
        let mut shares = Vec::new();
        let mut groups = BTreeSet::new();
        for row in self.database.look_up(sql, values).await? {
            let link = LINKS.verify_from(&row, 0)?;
            let document = document_of(&DOCUMENTS.verify_from(&row, LINKS.width())?)?;
            let target = link.id(1, |bytes| Uuid::from_slice(bytes).ok())?;
            match (link.text(0)?, document.kind) {
                (SHARED_WITH_PERSON, DocumentKind::Share) => shares.push(Grant {
                    share: document,
                    group: None,
                }),
                (SHARED_WITH_GROUP, DocumentKind::Share) => shares.push(Grant {
                    share: document,
                    group: Some(target),
                }),
                (MEMBER_OF, DocumentKind::Group) => {
                    groups.insert(target);
                }
                _ => return Err(CatalogError::corrupt("a link leads to what it cannot lead to")),
            }
        }
        // A share with a group counts only if the reader's membership and the group itself were found.
        shares.retain(|grant| grant.group.is_none_or(|group| groups.contains(&group)));
        Ok(shares)
    }

    /// The links of `kind` that the documents of `person` have.
    pub async fn links_by(&self, person: PersonId, kind: &str) -> Result<Vec<StoredLink>, CatalogError> {
        let values = vec![id(person.0), text(kind)];
        let rest = of_kind(&self.database.by_index(BY_PERSON));
        let rows = self.database.select(&LINKS, &rest, values).await?;
        rows.iter().map(link_of).collect()
    }
}

/// Whose shares a statement looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Givers {
    /// Those of the person `$2`.
    One,
    All,
}

/// The links of the documents in a list, as the rest of a `select`.
fn of_documents(list: &str) -> String {
    format!("WHERE document IN {list}")
}

/// A person's links of one kind, as the rest of a `select`.
fn of_kind(by_person: &str) -> String {
    format!("{by_person} WHERE person = $1 AND kind = $2 ORDER BY target, document")
}

/// Shares with the reader, `$1`, and with groups of the reader, each with the link that leads to it; and the
/// groups, each with the reader's membership. `by_person` makes the database find links by whose they are.
/// SQLite reads what stands before a `CROSS JOIN` first: the reader's own memberships, not what everybody
/// shares with groups.
fn statement(givers: Givers, by_person: &str) -> String {
    let (narrowed, by_giver) = match givers {
        Givers::One => ("l.person = $2 AND", by_person),
        Givers::All => ("", ""),
    };
    let share = format!("{}, {}", LINKS.selected_as("l"), DOCUMENTS.selected_as("d"));
    let group = format!("{}, {}", LINKS.selected_as("m"), DOCUMENTS.selected_as("d"));
    let (of_shares, of_groups) = (DocumentKind::Share.as_str(), DocumentKind::Group.as_str());
    format!(
        "SELECT {share} FROM links l{by_giver} CROSS JOIN documents d \
         WHERE {narrowed} l.kind = '{SHARED_WITH_PERSON}' AND l.target = $1 \
         AND d.kind = '{of_shares}' AND d.document = l.document \
         UNION ALL \
         SELECT {share} FROM links m{by_person} CROSS JOIN links l{by_giver} CROSS JOIN documents d \
         WHERE m.person = $1 AND m.kind = '{MEMBER_OF}' \
         AND {narrowed} l.kind = '{SHARED_WITH_GROUP}' AND l.target = m.target \
         AND d.kind = '{of_shares}' AND d.document = l.document \
         UNION ALL \
         SELECT {group} FROM links m{by_person} CROSS JOIN documents d \
         WHERE m.person = $1 AND m.kind = '{MEMBER_OF}' \
         AND d.kind = '{of_groups}' AND d.document = m.target \
         AND EXISTS (SELECT 1 FROM links l{by_giver} \
         WHERE {narrowed} l.kind = '{SHARED_WITH_GROUP}' AND l.target = m.target)"
    )
}

fn link_of(row: &VerifiedRow) -> Result<StoredLink, CatalogError> {
    Ok(StoredLink {
        kind: row.text(0)?.to_owned(),
        target: row.id(1, |bytes| Uuid::from_slice(bytes).ok())?,
        document: row.id(2, |bytes| Uuid::from_slice(bytes).ok())?,
        person: row.id(3, PersonId::from_slice)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::test_plans::{catalogue_in, steps_of};

    #[tokio::test]
    async fn what_ties_two_people_is_found_without_reading_what_ties_others() {
        let directory = tempfile::tempdir().unwrap();
        let catalog = catalogue_in(directory.path()).await;
        let by_person = catalog.database.by_index(BY_PERSON);
        for sql in [
            statement(Givers::One, &by_person),
            statement(Givers::All, &by_person),
            LINKS.select(&of_kind(&by_person)),
            DOCUMENTS_OF_KIND.to_owned(),
            LINKS.select(&of_documents("($1, $2)")),
        ] {
            let steps = steps_of(&catalog, &sql).await;
            assert!(
                steps.iter().any(|step| step.starts_with("SEARCH")),
                "{sql}: {steps:?}"
            );
            for step in &steps {
                let is_of_all = step.starts_with("SCAN") || step.ends_with("(kind=?)");
                assert!(!is_of_all, "{sql}: {step}");
            }
        }
    }
}
