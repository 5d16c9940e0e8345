//! A document, its links and its changes, as data, and how rows hold a document. Reads and writes nothing.

use uuid::Uuid;

use crate::catalog::database::Value;
use crate::catalog::errors::CatalogError;
use crate::catalog::rows::{id, optional_text, text};
use crate::catalog::verified_rows::VerifiedRow;
use crate::model::ids::PersonId;
use crate::model::time::Instant;

/// The kind of a document. The text is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DocumentKind {
    Annotation,
    Tag,
    Reflection,
    Session,
    File,
    /// The bytes of files, as the list of their parts.
    FileContent,
    /// How many bytes the files of a person take.
    FileUsage,
    Share,
    Group,
    Membership,
    /// An archive of everything that a person has, and its progress.
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

    pub(super) fn named(text: &str) -> Result<Self, CatalogError> {
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
    /// Unique among this person's documents of this kind. `None`: it has no such name.
    pub name: Option<String>,
    pub body: String,
    /// Grows by one with each change.
    pub version: i64,
    pub created_at: Instant,
    pub updated_at: Instant,
    pub deleted_at: Option<Instant>,
}

impl Document {
    /// The change that removes this state of the document.
    #[must_use]
    pub const fn removal(&self) -> Change {
        Change::remove(self.kind, self.id, self.person, self.version)
    }
}

/// How a document is found: `kind` says what `target` is to it.
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
    /// Another state of a document that is at version `expected`. The new version must be `expected + 1`.
    Update {
        document: Document,
        expected: i64,
        /// The links it has from now on; `None` leaves them as they are.
        links: Option<Vec<Link>>,
    },
    /// Leaves no trace of the document.
    Remove {
        kind: DocumentKind,
        id: Uuid,
        person: PersonId,
        expected: i64,
    },
    /// Changes nothing: a person's documents of a kind must still be those that were read with this stamp.
    /// Comes before all changes of that kind.
    Expect {
        kind: DocumentKind,
        person: PersonId,
        stamp: DocumentStamp,
    },
}

impl Change {
    #[must_use]
    pub const fn remove(kind: DocumentKind, id: Uuid, person: PersonId, expected: i64) -> Self {
        Self::Remove {
            kind,
            id,
            person,
            expected,
        }
    }
}

/// The result of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changed {
    Done,
    /// A document is not at the expected version, or is gone, or there are other documents than expected.
    /// Nothing happened.
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

/// Tells the states of a person's documents of one kind apart. The sum of versions grows with every change of
/// one that stays; the digest differs where others took the places of some that were removed, and the moment
/// where a restored catalogue counts up to the same sum again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DocumentStamp {
    pub(super) documents: i64,
    pub(super) versions: i64,
    pub(super) latest: i64,
    /// That under which these documents and their links are counted.
    pub(super) digest: i64,
}

/// Where a listing continues: after this document, which was listed last.
pub type DocumentCursor = (Instant, Uuid);

/// The column of a document's name.
pub(super) const NAME_COLUMN: usize = 3;

pub(super) fn values(document: Document) -> Vec<Value> {
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

pub(in crate::catalog) fn document_of(row: &VerifiedRow) -> Result<Document, CatalogError> {
    Ok(Document {
        kind: DocumentKind::named(row.text(0)?)?,
        id: row.id(1, |bytes| Uuid::from_slice(bytes).ok())?,
        person: row.id(2, PersonId::from_slice)?,
        name: row.optional_text(NAME_COLUMN).map(str::to_owned),
        body: row.text(4)?.to_owned(),
        version: row.int(5)?,
        created_at: Instant::from_micros(row.int(6)?),
        updated_at: Instant::from_micros(row.int(7)?),
        deleted_at: row.optional_int(8).map(Instant::from_micros),
    })
}
