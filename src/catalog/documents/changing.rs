//! Changes documents: all changes of a transaction or none, and those of one person one after the other, so
//! that limits and names hold under concurrency.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use super::document::{Change, Changed, Document, DocumentKind, DocumentStamp, Link, NAME_COLUMN, values};
use super::same_ids::{BY_DOCUMENT, links_of_one, own};
use crate::catalog::Catalog;
use crate::catalog::counted_rows::{CountedRows, read_counted};
use crate::catalog::database::{Session, Value};
use crate::catalog::errors::CatalogError;
use crate::catalog::inserting::Existing;
use crate::catalog::orphans::refuse_condemned;
use crate::catalog::rows::{id, text};
use crate::catalog::tables::{DOCUMENTS, FOLDERS, LINKS};
use crate::catalog::verified_rows::VerifiedRow;
use crate::catalog::witness::Attempts;
use crate::model::ids::PersonId;

type Counts = BTreeMap<(PersonId, DocumentKind), CountedRows>;

impl Catalog {
    /// Makes all changes durable and visible to every node, or none of them. People who are new are created.
    ///
    /// On an error nothing happened and nothing will, except on `Unknown`.
    pub async fn change_documents(&self, changes: Vec<Change>) -> Result<Changed, CatalogError> {
        self.change_documents_naming(changes, &[]).await
    }

    /// Makes all changes, which name `objects` of the store that nothing named before, or none of them. If
    /// one of the objects was condemned meanwhile, nothing happens.
    pub async fn change_documents_naming(
        &self,
        changes: Vec<Change>,
        objects: &[String],
    ) -> Result<Changed, CatalogError> {
        let mut attempts = Attempts::begin();
        loop {
            match self.try_change_documents(changes.clone(), objects).await {
                Err(error) if attempts.go_on(&error).await => {}
                outcome => return outcome,
            }
        }
    }

    async fn try_change_documents(
        &self,
        changes: Vec<Change>,
        objects: &[String],
    ) -> Result<Changed, CatalogError> {
        let people: BTreeSet<PersonId> = changes.iter().map(Change::owner).collect();
        let mut session = self.change_of(&people).await?;
        let mut counts = Counts::new();
        for change in changes {
            let outcome = apply(&mut session, &mut counts, change).await?;
            if outcome != Changed::Done {
                session.rollback().await?;
                return Ok(outcome);
            }
        }
        let rows = counts
            .into_iter()
            .map(|((person, kind), counted)| counted.values(person, kind.as_str()))
            .collect();
        session.insert(&FOLDERS, rows, Existing::Replace).await?;
        refuse_condemned(&mut session, objects.iter().map(String::as_str).collect()).await?;
        self.conclude(session).await?;
        Ok(Changed::Done)
    }
}

impl Change {
    fn owner(&self) -> PersonId {
        match self {
            Self::Insert { document, .. } | Self::Update { document, .. } => document.person,
            Self::Remove { person, .. } | Self::Expect { person, .. } => *person,
        }
    }
}

async fn apply(session: &mut Session, counts: &mut Counts, change: Change) -> Result<Changed, CatalogError> {
    let (kind, person) = match &change {
        Change::Insert { document, .. } | Change::Update { document, .. } => (document.kind, document.person),
        Change::Remove { kind, person, .. } | Change::Expect { kind, person, .. } => (*kind, *person),
    };
    let mut counted = match counts.get(&(person, kind)) {
        Some(counted) => *counted,
        None => read_counted(session, person, kind.as_str()).await?,
    };
    let outcome = match change {
        Change::Insert {
            document,
            links,
            limit,
        } => insert(session, &mut counted, document, links, limit).await?,
        Change::Update {
            document,
            expected,
            links,
        } => update(session, &mut counted, document, expected, links).await?,
        Change::Remove {
            kind,
            id,
            person,
            expected,
        } => remove(session, &mut counted, (kind, id), person, expected).await?,
        Change::Expect { stamp, .. } => expect(counted, stamp),
    };
    counts.insert((person, kind), counted);
    Ok(outcome)
}

async fn insert(
    session: &mut Session,
    counted: &mut CountedRows,
    document: Document,
    links: Vec<Link>,
    limit: u64,
) -> Result<Changed, CatalogError> {
    // First: whoever makes sure that something is there has it, however full it is.
    if let Some(taken) = name_taken(session, &document).await? {
        return Ok(taken);
    }
    if counted.count.unsigned_abs() >= limit {
        let kind = document.kind;
        return Ok(Changed::LimitReached { kind, limit });
    }
    let (owner, person) = (document.id, document.person);
    let written = session
        .insert(&DOCUMENTS, vec![values(document)], Existing::Refuse)
        .await?;
    counted.count += 1;
    counted.digest ^= all_of(&written.checksums);
    counted.digest ^= insert_links(session, person, owner, links).await?;
    Ok(Changed::Done)
}

async fn update(
    session: &mut Session,
    counted: &mut CountedRows,
    document: Document,
    expected: i64,
    links: Option<Vec<Link>>,
) -> Result<Changed, CatalogError> {
    let (owner, person) = (document.id, document.person);
    let Some(before) = at_version(session, document.kind, owner, person, expected).await? else {
        return Ok(Changed::Overtaken);
    };
    if before.optional_text(NAME_COLUMN) != document.name.as_deref()
        && let Some(taken) = name_taken(session, &document).await?
    {
        return Ok(taken);
    }
    let written = session
        .insert(&DOCUMENTS, vec![values(document)], Existing::Replace)
        .await?;
    counted.digest ^= before.checksum ^ all_of(&written.checksums);
    if let Some(links) = links {
        counted.digest ^= remove_links(session, person, owner).await?;
        counted.digest ^= insert_links(session, person, owner, links).await?;
    }
    Ok(Changed::Done)
}

async fn remove(
    session: &mut Session,
    counted: &mut CountedRows,
    (kind, document): (DocumentKind, Uuid),
    person: PersonId,
    expected: i64,
) -> Result<Changed, CatalogError> {
    let Some(before) = at_version(session, kind, document, person, expected).await? else {
        return Ok(Changed::Overtaken);
    };
    session
        .execute(
            "DELETE FROM documents WHERE kind = $1 AND document = $2".to_owned(),
            vec![text(kind.as_str()), id(document)],
        )
        .await?;
    counted.count -= 1;
    counted.digest ^= before.checksum ^ remove_links(session, person, document).await?;
    Ok(Changed::Done)
}

/// Whether these are the documents that somebody read. Their versions are in the checksums of their rows, and
/// so in the digest.
fn expect(counted: CountedRows, stamp: DocumentStamp) -> Changed {
    if counted.count == stamp.documents && i64::from(counted.digest) == stamp.digest {
        Changed::Done
    } else {
        Changed::Overtaken
    }
}

async fn at_version(
    session: &mut Session,
    kind: DocumentKind,
    document: Uuid,
    person: PersonId,
    expected: i64,
) -> Result<Option<VerifiedRow>, CatalogError> {
    let values = vec![
        text(kind.as_str()),
        id(document),
        id(person.0),
        Value::Int(expected),
    ];
    let rest = "WHERE kind = $1 AND document = $2 AND person = $3 AND version = $4";
    Ok(session.select(&DOCUMENTS, rest, values).await?.pop())
}

async fn name_taken(session: &mut Session, document: &Document) -> Result<Option<Changed>, CatalogError> {
    let Some(name) = &document.name else {
        return Ok(None);
    };
    let values = vec![id(document.person.0), text(document.kind.as_str()), text(name)];
    let rest = "WHERE person = $1 AND kind = $2 AND name = $3";
    let found = session.select(&DOCUMENTS, rest, values).await?;
    Ok((!found.is_empty()).then(|| Changed::NameTaken {
        kind: document.kind,
        name: name.clone(),
    }))
}

async fn insert_links(
    session: &mut Session,
    person: PersonId,
    document: Uuid,
    links: Vec<Link>,
) -> Result<u32, CatalogError> {
    let links: BTreeSet<Link> = links.into_iter().collect();
    let rows = links
        .into_iter()
        .map(|link| vec![text(link.kind), id(link.target), id(document), id(person.0)])
        .collect();
    let written = session.insert(&LINKS, rows, Existing::Refuse).await?;
    Ok(all_of(&written.checksums))
}

async fn remove_links(session: &mut Session, person: PersonId, document: Uuid) -> Result<u32, CatalogError> {
    // Found by the document alone, so that a link is noticed whose person is damaged.
    let found = session
        .select(&LINKS, "WHERE document = $1", vec![id(document)])
        .await?;
    let before = own(found, person)?;
    let of_document = links_of_one(&session.by_index(BY_DOCUMENT));
    session
        .execute(
            format!("DELETE FROM {}{of_document}", LINKS.name),
            vec![id(document), id(person.0)],
        )
        .await?;
    Ok(before.iter().fold(0, |digest, row| digest ^ row.checksum))
}

fn all_of(checksums: &[u32]) -> u32 {
    checksums.iter().fold(0, |digest, checksum| digest ^ checksum)
}
