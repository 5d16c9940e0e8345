//! Documents: what a person writes, keeps and shares, beside their records.
//!
//! A document has an id, an owner, perhaps a name that is its owner's only once, and links by which it is
//! found from what it refers to. Its body is JSON text and opaque here. Several documents change in one
//! transaction or not at all. The changes of one person happen one after the other, so that limits and names
//! hold whoever races.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use super::Catalog;
use super::database::{Session, Value};
use super::errors::CatalogError;
use super::folders::{Folder, read_folder};
use super::ledgers::{Patience, lock_people};
use super::registers::REGISTERS;
use super::rows::{id, optional_text, text};
use super::strays::refuse_condemned;
use super::tables::{DOCUMENTS, Existing, FOLDERS, LINKS, Record, one_of};
use super::witness::is_repeated;
use crate::model::ids::PersonId;
use crate::model::time::Instant;

/// Targets whose links one statement looks for.
const TARGETS_AT_ONCE: usize = 64;
/// Documents that are in memory at once while all of somebody's are looked at.
const PAGE: usize = 1000;

/// The next documents of a folder.
const AFTER: &str = "WHERE person = $1 AND kind = $2 AND (created_at, document) > ($3, $4) \
                     ORDER BY created_at, document LIMIT $5";

/// What a document is. The text is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DocumentKind {
    Annotation,
    Tag,
    Reflection,
    Session,
    File,
    /// The bytes of files: of which parts they consist.
    FileContent,
    /// How many bytes the files of a person take.
    FileUsage,
    Share,
    Group,
    Membership,
    /// An archive of everything that a person has, and how far it is.
    Export,
    /// An answer that is kept for a while.
    Frame,
}

impl DocumentKind {
    pub const ALL: [Self; 12] = [
        Self::Annotation,
        Self::Tag,
        Self::Reflection,
        Self::Session,
        Self::File,
        Self::FileContent,
        Self::FileUsage,
        Self::Share,
        Self::Group,
        Self::Membership,
        Self::Export,
        Self::Frame,
    ];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Annotation => "annotation",
            Self::Tag => "tag",
            Self::Reflection => "reflection",
            Self::Session => "session",
            Self::File => "file",
            Self::FileContent => "file_content",
            Self::FileUsage => "file_usage",
            Self::Share => "share",
            Self::Group => "group",
            Self::Membership => "membership",
            Self::Export => "export",
            Self::Frame => "frame",
        }
    }

    fn named(text: &str) -> Result<Self, CatalogError> {
        let found = Self::ALL.into_iter().find(|kind| kind.as_str() == text);
        found.ok_or_else(|| CatalogError::corrupt(format!("there are no documents of kind {text:?}")))
    }
}

/// A document as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    pub kind: DocumentKind,
    pub id: Uuid,
    pub person: PersonId,
    /// What no other document of this person and kind may be called. `None`: it has no such name.
    pub name: Option<String>,
    pub body: String,
    /// Grows by one with each change.
    pub version: i64,
    pub created_at: Instant,
    pub updated_at: Instant,
    pub deleted_at: Option<Instant>,
}

/// By what a document is found: `kind` says what `target` is to it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Link {
    pub kind: &'static str,
    pub target: Uuid,
}

/// One of the changes of a transaction.
#[derive(Clone, Debug)]
pub enum Change {
    /// A document whose id is new.
    Insert {
        document: Document,
        links: Vec<Link>,
        /// How many documents of this kind the person may have, deleted ones included.
        limit: u64,
    },
    /// Another state of a document that is at version `expected`. Its version must be `expected + 1`.
    Update {
        document: Document,
        expected: i64,
        /// The links it has from now on; `None` leaves them as they are.
        links: Option<Vec<Link>>,
    },
    /// No trace of it stays.
    Remove {
        kind: DocumentKind,
        id: Uuid,
        person: PersonId,
        expected: i64,
    },
}

/// What became of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changed {
    Done,
    /// A document is not at the version that was expected, or is gone. Nothing happened.
    Overtaken,
    /// A document of this person and kind has the name already. Nothing happened.
    NameTaken {
        kind: DocumentKind,
        name: String,
    },
    /// The person has as many of them as they may have. Nothing happened.
    LimitReached {
        kind: DocumentKind,
        limit: u64,
    },
}

/// Tells apart the states in which a person's documents of one kind were: the sum of versions grows with
/// every change, and the moment is another one where a restored catalogue counts to the same number again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DocumentStamp {
    documents: i64,
    versions: i64,
    latest: i64,
}

/// From where a listing goes on: the document that was listed last.
pub type DocumentCursor = (Instant, Uuid);

impl Change {
    fn owner(&self) -> PersonId {
        match self {
            Self::Insert { document, .. } | Self::Update { document, .. } => document.person,
            Self::Remove { person, .. } => *person,
        }
    }
}

type Folders = BTreeMap<(PersonId, DocumentKind), Folder>;

impl Catalog {
    /// Makes all changes durable and visible to every node, or none of them. People who are new are created.
    ///
    /// On an error nothing happened and nothing will, except on `Unknown`.
    pub async fn change_documents(&self, changes: Vec<Change>) -> Result<Changed, CatalogError> {
        self.change_documents_naming(changes, &[]).await
    }

    /// The same where the changes name `objects` of the store that nothing named before. If one of these was
    /// condemned meanwhile, nothing happens.
    pub async fn change_documents_naming(
        &self,
        changes: Vec<Change>,
        objects: &[String],
    ) -> Result<Changed, CatalogError> {
        let mut attempt = 0;
        loop {
            match self.try_change_documents(changes.clone(), objects).await {
                Err(error) if is_repeated(&error, attempt).await => attempt += 1,
                outcome => return outcome,
            }
        }
    }

    async fn try_change_documents(
        &self,
        changes: Vec<Change>,
        objects: &[String],
    ) -> Result<Changed, CatalogError> {
        let mut session = self.database.write().await?;
        let people: BTreeSet<PersonId> = changes.iter().map(Change::owner).collect();
        lock_people(&mut session, &people, self.clock.now(), Patience::Waits).await?;
        let mut folders = Folders::new();
        for change in changes {
            let outcome = apply(&mut session, &mut folders, change).await?;
            if outcome != Changed::Done {
                session.rollback().await?;
                return Ok(outcome);
            }
        }
        let rows = folders
            .into_iter()
            .map(|((person, kind), folder)| folder.values(person, kind.as_str()))
            .collect();
        session.insert(&FOLDERS, rows, Existing::Replace).await?;
        refuse_condemned(&mut session, objects.iter().map(String::as_str).collect()).await?;
        self.conclude(session).await?;
        Ok(Changed::Done)
    }

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

    /// The same one by one, so that they are never in memory together. What `each` was shown counts only when
    /// this returns `Ok`.
    pub async fn each_document(
        &self,
        person: PersonId,
        kind: DocumentKind,
        each: impl FnMut(Document) + Send,
    ) -> Result<(), CatalogError> {
        let mut session = self.database.read().await?;
        look_at_all(&mut session, person, kind, each).await?;
        session.commit().await
    }

    /// The next `limit` of them after `after`, oldest first.
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

    /// Those of them that changed at `moment` or later, in the order of their last changes.
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

    /// The documents that one of `targets` leads to by links of a kind, deleted ones too, in the order of
    /// their ids.
    pub async fn documents_linked(
        &self,
        link: &'static str,
        targets: &[Uuid],
    ) -> Result<Vec<Document>, CatalogError> {
        let mut found = BTreeSet::new();
        for some in targets.chunks(TARGETS_AT_ONCE) {
            let (list, mut values) = one_of(2, some.iter().map(|target| id(*target)).collect());
            values.insert(0, text(link));
            let rest = format!("WHERE kind = $1 AND target IN {list}");
            for row in self.database.find(&LINKS, &rest, values).await? {
                found.insert(row.id(2, |bytes| Uuid::from_slice(bytes).ok())?);
            }
        }
        let found: Vec<Uuid> = found.into_iter().collect();
        let mut documents = Vec::with_capacity(found.len());
        for some in found.chunks(TARGETS_AT_ONCE) {
            let (list, values) = one_of(1, some.iter().map(|document| id(*document)).collect());
            let rest = format!("WHERE document IN {list} ORDER BY document");
            for row in self.database.find(&DOCUMENTS, &rest, values).await? {
                documents.push(document_of(&row)?);
            }
        }
        Ok(documents)
    }

    /// In which state a person's documents of one kind are. Only for kinds of which none is ever removed.
    pub async fn document_stamp(
        &self,
        person: PersonId,
        kind: DocumentKind,
    ) -> Result<DocumentStamp, CatalogError> {
        let summed = "SELECT COUNT(*), CAST(COALESCE(SUM(version), 0) AS BIGINT), COALESCE(MAX(updated_at), \
                      0) FROM documents WHERE person = $1 AND kind = $2";
        let values = vec![id(person.0), text(kind.as_str())];
        let rows = self.database.look_up(summed.to_owned(), values).await?;
        let row = rows
            .first()
            .ok_or_else(|| CatalogError::corrupt("a sum has no row"))?;
        Ok(DocumentStamp {
            documents: row.int(0)?,
            versions: row.int(1)?,
            latest: row.int(2)?,
        })
    }

    /// How many documents a person has of each kind, deleted ones included; none where a kind is not named.
    pub async fn document_counts(&self, person: PersonId) -> Result<Vec<(DocumentKind, u64)>, CatalogError> {
        let rows = self
            .database
            .select(&FOLDERS, "WHERE person = $1 ORDER BY kind", vec![id(person.0)])
            .await?;
        // Sources and definitions are counted beside them.
        let is_document = |row: &&Record| row.text(1).is_ok_and(|kind| !REGISTERS.contains(&kind));
        rows.iter()
            .filter(is_document)
            .map(|row| Ok((DocumentKind::named(row.text(1)?)?, row.int(2)?.unsigned_abs())))
            .collect()
    }

    /// Documents of some kinds that were deleted before `moment`, whoever owns them, the longest deleted
    /// first; `limit` at most.
    pub async fn documents_deleted_before(
        &self,
        kinds: &[DocumentKind],
        moment: Instant,
        limit: usize,
    ) -> Result<Vec<Document>, CatalogError> {
        let (list, mut values) = one_of(3, kinds.iter().map(|kind| text(kind.as_str())).collect());
        values.splice(
            0..0,
            [
                Value::Int(moment.micros()),
                Value::Int(i64::try_from(limit).unwrap_or(i64::MAX)),
            ],
        );
        let rest = format!("WHERE deleted_at < $1 AND kind IN {list} ORDER BY deleted_at, document LIMIT $2");
        let rows = self.database.select(&DOCUMENTS, &rest, values).await?;
        rows.iter().map(document_of).collect()
    }

    /// What is wrong with a person's documents as the catalogue has them. Empty when all is well.
    pub async fn damaged_documents(&self, person: PersonId) -> Result<Vec<String>, CatalogError> {
        let mut session = self.database.read().await?;
        let mut complaints = Vec::new();
        for kind in DocumentKind::ALL {
            match verified(&mut session, person, kind).await {
                Ok(_) => {}
                Err(CatalogError::Corrupt { what }) => complaints.push(what),
                Err(error) => return Err(error),
            }
        }
        session.commit().await?;
        Ok(complaints)
    }
}

async fn apply(
    session: &mut Session,
    folders: &mut Folders,
    change: Change,
) -> Result<Changed, CatalogError> {
    let (kind, person) = match &change {
        Change::Insert { document, .. } | Change::Update { document, .. } => (document.kind, document.person),
        Change::Remove { kind, person, .. } => (*kind, *person),
    };
    let mut folder = match folders.get(&(person, kind)) {
        Some(folder) => *folder,
        None => read_folder(session, person, kind.as_str()).await?,
    };
    let outcome = match change {
        Change::Insert {
            document,
            links,
            limit,
        } => {
            if folder.documents.unsigned_abs() >= limit {
                return Ok(Changed::LimitReached { kind, limit });
            }
            if let Some(taken) = name_taken(session, &document).await? {
                return Ok(taken);
            }
            let owner = document.id;
            let written = session
                .insert(&DOCUMENTS, vec![values(document)], Existing::Refuse)
                .await?;
            folder.documents += 1;
            folder.digest ^= all_of(&written.checksums);
            folder.digest ^= insert_links(session, person, owner, links).await?;
            Changed::Done
        }
        Change::Update {
            document,
            expected,
            links,
        } => {
            let Some(before) = at_version(session, kind, document.id, person, expected).await? else {
                return Ok(Changed::Overtaken);
            };
            if before.optional_text(3) != document.name.as_deref()
                && let Some(taken) = name_taken(session, &document).await?
            {
                return Ok(taken);
            }
            let owner = document.id;
            let written = session
                .insert(&DOCUMENTS, vec![values(document)], Existing::Replace)
                .await?;
            folder.digest ^= before.checksum ^ all_of(&written.checksums);
            if let Some(links) = links {
                folder.digest ^= remove_links(session, owner).await?;
                folder.digest ^= insert_links(session, person, owner, links).await?;
            }
            Changed::Done
        }
        Change::Remove {
            id: document,
            expected,
            ..
        } => {
            let Some(before) = at_version(session, kind, document, person, expected).await? else {
                return Ok(Changed::Overtaken);
            };
            session
                .execute(
                    "DELETE FROM documents WHERE kind = $1 AND document = $2".to_owned(),
                    vec![text(kind.as_str()), id(document)],
                )
                .await?;
            folder.documents -= 1;
            folder.digest ^= before.checksum ^ remove_links(session, document).await?;
            Changed::Done
        }
    };
    folders.insert((person, kind), folder);
    Ok(outcome)
}

/// The documents of a folder, when they are all that was ever put there.
async fn verified(
    session: &mut Session,
    person: PersonId,
    kind: DocumentKind,
) -> Result<Vec<Document>, CatalogError> {
    let mut documents = Vec::new();
    look_at_all(session, person, kind, |document| documents.push(document)).await?;
    Ok(documents)
}

/// Shows the documents of a folder to `each`, oldest first. An error where they are not all that was ever put
/// there.
async fn look_at_all(
    session: &mut Session,
    person: PersonId,
    kind: DocumentKind,
    mut each: impl FnMut(Document) + Send,
) -> Result<(), CatalogError> {
    let folder = read_folder(session, person, kind.as_str()).await?;
    let mut found = Folder::default();
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
            (created_at, last) = (document.created_at.micros(), document.id);
            each(document);
        }
        if rows.len() < PAGE {
            break;
        }
    }
    let of_kind = "WHERE document IN (SELECT document FROM documents WHERE person = $1 AND kind = $2)";
    let values = vec![id(person.0), text(kind.as_str())];
    for link in session.select(&LINKS, of_kind, values).await? {
        found.digest ^= link.checksum;
    }
    if found == folder {
        return Ok(());
    }
    Err(CatalogError::corrupt(format!(
        "person {person}: documents of kind {} are not those that were written",
        kind.as_str()
    )))
}

async fn at_version(
    session: &mut Session,
    kind: DocumentKind,
    document: Uuid,
    person: PersonId,
    expected: i64,
) -> Result<Option<Record>, CatalogError> {
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

async fn remove_links(session: &mut Session, document: Uuid) -> Result<u32, CatalogError> {
    let before = session
        .select(&LINKS, "WHERE document = $1", vec![id(document)])
        .await?;
    session
        .execute(
            "DELETE FROM links WHERE document = $1".to_owned(),
            vec![id(document)],
        )
        .await?;
    Ok(before.iter().fold(0, |digest, row| digest ^ row.checksum))
}

fn all_of(checksums: &[u32]) -> u32 {
    checksums.iter().fold(0, |digest, checksum| digest ^ checksum)
}

fn values(document: Document) -> Vec<Value> {
    vec![
        text(document.kind.as_str()),
        id(document.id),
        id(document.person.0),
        optional_text(document.name.as_deref()),
        Value::Text(document.body),
        Value::Int(document.version),
        Value::Int(document.created_at.micros()),
        Value::Int(document.updated_at.micros()),
        document
            .deleted_at
            .map_or(Value::NullInt, |moment| Value::Int(moment.micros())),
    ]
}

pub(super) fn document_of(row: &Record) -> Result<Document, CatalogError> {
    Ok(Document {
        kind: DocumentKind::named(row.text(0)?)?,
        id: row.id(1, |bytes| Uuid::from_slice(bytes).ok())?,
        person: row.id(2, PersonId::from_slice)?,
        name: row.optional_text(3).map(str::to_owned),
        body: row.text(4)?.to_owned(),
        version: row.int(5)?,
        created_at: Instant::from_micros(row.int(6)?),
        updated_at: Instant::from_micros(row.int(7)?),
        deleted_at: row.optional_int(8).map(Instant::from_micros),
    })
}
