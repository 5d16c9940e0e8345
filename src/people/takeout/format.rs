//! The format of archives: what they contain and how it is named, shared by writer and reader.
//!
//! Lists are JSON arrays with one element a line, so that they can be read without holding all of them. Texts
//! that the catalogue stores as JSON are copied into them unchanged.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::catalog::documents::{Document, DocumentKind};
use crate::catalog::records::{KnownPerson, KnownSource, StoredDefinition};
use crate::model::ids::{ParticipantId, PersonId};
use crate::model::registry::TypeId;
use crate::model::time::{Instant, TimeError, parse_instant};

/// The format name that an archive states.
pub(super) const FORMAT: &str = "almanac-export";
/// Incremented with every change that an older reader would not understand.
pub(super) const FORMAT_VERSION: u32 = 1;

pub(super) const README: &str = "README.txt";
pub(super) const MANIFEST: &str = "manifest.json";
pub(super) const PERSON: &str = "person.json";
pub(super) const PREFERENCES: &str = "preferences.json";
pub(super) const SOURCES: &str = "sources.json";
pub(super) const DATA_TYPES: &str = "data_types.json";
pub(super) const FILES: &str = "files.json";
pub(super) const SHARES: &str = "sharing/shares.json";
pub(super) const GROUPS: &str = "sharing/groups.json";
pub(super) const MEMBERSHIPS: &str = "sharing/memberships.json";
pub(super) const ACCESS_LOG: &str = "sharing/access_log.json";

/// Documents that are brought back as they were and refer to nothing outside the archive.
pub(super) const NOTES: [(DocumentKind, &str); 3] = [
    (DocumentKind::Annotation, "annotations.json"),
    (DocumentKind::Tag, "tags.json"),
    (DocumentKind::Reflection, "reflections.json"),
];
/// What a person agreed with others. It is included for reading, but not brought back.
pub(super) const AGREEMENTS: [(DocumentKind, &str); 3] = [
    (DocumentKind::Share, SHARES),
    (DocumentKind::Group, GROUPS),
    (DocumentKind::Membership, MEMBERSHIPS),
];

/// The name of the `number`th member with records of a type, from 1.
pub(super) fn records_member(data_type: &TypeId, number: usize) -> String {
    let name = data_type.as_str().replace('/', "~");
    if number == 1 {
        format!("records/{name}.parquet")
    } else {
        format!("records/{name}.{number}.parquet")
    }
}

/// The name of the member with the bytes of a content.
pub(super) fn content_member(content: Uuid) -> String {
    format!("files/{content}")
}

/// A description of the whole archive and its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ArchiveContents {
    pub format: String,
    pub format_version: u32,
    pub person: PersonId,
    pub created_at: String,
    /// The prefix of the sources of annotations in the installation that it came from.
    pub source_prefix: String,
    pub counts: Counts,
    /// What is not included, in words.
    pub left_out: Vec<String>,
    /// The contents of listed versions that were removed for good while the archive was made, or were lost
    /// and given up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<Uuid>,
    /// All members except the manifest, in the order in which they are in the archive.
    pub members: Vec<MemberEntry>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Counts {
    pub records: u64,
    pub types: u64,
    pub sources: u64,
    pub data_types: u64,
    pub annotations: u64,
    pub tags: u64,
    pub reflections: u64,
    pub files: u64,
    pub contents: u64,
    pub content_bytes: u64,
    pub shares: u64,
    pub groups: u64,
    pub memberships: u64,
    pub accesses: u64,
}

impl Counts {
    /// The counter of a kind of document, if that kind is counted.
    pub(super) fn of(&mut self, kind: DocumentKind) -> Option<&mut u64> {
        match kind {
            DocumentKind::Annotation => Some(&mut self.annotations),
            DocumentKind::Tag => Some(&mut self.tags),
            DocumentKind::Reflection => Some(&mut self.reflections),
            DocumentKind::File => Some(&mut self.files),
            DocumentKind::Share => Some(&mut self.shares),
            DocumentKind::Group => Some(&mut self.groups),
            DocumentKind::Membership => Some(&mut self.memberships),
            DocumentKind::Session
            | DocumentKind::FileContent
            | DocumentKind::FileUsage
            | DocumentKind::Export
            | DocumentKind::Frame => None,
        }
    }
}

/// The manifest's entry for a member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct MemberEntry {
    pub name: String,
    /// The unpacked length.
    pub bytes: u64,
    /// The digest of the unpacked bytes, in hexadecimal digits.
    pub sha256: String,
    /// The type of its records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_type: Option<String>,
    /// How many records or elements it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
}

/// Who the person is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KeptPerson {
    pub id: PersonId,
    pub name: Option<String>,
    pub created_at: String,
}

/// A source of records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KeptSource {
    pub id: Uuid,
    pub key: String,
    pub name: Option<String>,
    pub added_at: String,
}

/// An own type of the person.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct KeptDefinition {
    pub id: Uuid,
    pub base: String,
    pub version: i64,
    pub deprecated: bool,
    pub created_at: String,
    pub updated_at: String,
    pub definition: Box<RawValue>,
}

/// A document of the person.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct KeptDocument {
    pub id: Uuid,
    pub name: Option<String>,
    pub version: i64,
    pub created_at: String,
    pub updated_at: String,
    pub deleted_at: Option<String>,
    /// The people or things that it links to, for readers of the archive.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<KeptLink>,
    pub body: Box<RawValue>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KeptLink {
    pub kind: String,
    pub target: Uuid,
}

/// What a membership says to its member. The notes of the group's owner about them are the owner's alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct KeptMembership {
    pub group: Uuid,
    pub participant: ParticipantId,
}

/// An entry of the access log.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct KeptAccess {
    pub id: Uuid,
    pub at: String,
    pub actor: PersonId,
    pub rows: Option<i64>,
    pub outcome: String,
    pub body: Box<RawValue>,
}

/// Why an element of an archive cannot be understood.
#[derive(Debug, thiserror::Error)]
pub(super) enum ElementError {
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Time(#[from] TimeError),
}

impl KeptPerson {
    pub(super) fn of(known: &KnownPerson) -> Self {
        Self {
            id: known.id,
            name: known.name.clone(),
            created_at: known.created_at.to_rfc3339(),
        }
    }
}

impl KeptSource {
    pub(super) fn of(source: KnownSource) -> Self {
        Self {
            id: source.id,
            key: source.key,
            name: source.name,
            added_at: source.added_at.to_rfc3339(),
        }
    }
}

impl KeptDefinition {
    pub(super) fn of(stored: StoredDefinition) -> Result<Self, ElementError> {
        Ok(Self {
            id: stored.id,
            base: stored.base,
            version: stored.version,
            deprecated: stored.deprecated,
            created_at: stored.created_at.to_rfc3339(),
            updated_at: stored.updated_at.to_rfc3339(),
            definition: RawValue::from_string(stored.body)?,
        })
    }

    /// The definition to store for `person`.
    pub(super) fn stored(self, person: PersonId) -> Result<StoredDefinition, ElementError> {
        Ok(StoredDefinition {
            id: self.id,
            person,
            base: self.base,
            body: self.definition.get().to_owned(),
            version: self.version,
            deprecated: self.deprecated,
            created_at: parse_instant(&self.created_at)?,
            updated_at: parse_instant(&self.updated_at)?,
        })
    }
}

impl KeptDocument {
    pub(super) fn of(document: Document, links: Vec<KeptLink>) -> Result<Self, ElementError> {
        Ok(Self {
            id: document.id,
            name: document.name,
            version: document.version,
            created_at: document.created_at.to_rfc3339(),
            updated_at: document.updated_at.to_rfc3339(),
            deleted_at: document.deleted_at.map(Instant::to_rfc3339),
            links,
            body: RawValue::from_string(document.body)?,
        })
    }

    /// The document to store for `person`.
    pub(super) fn stored(self, kind: DocumentKind, person: PersonId) -> Result<Document, ElementError> {
        Ok(Document {
            kind,
            id: self.id,
            person,
            name: self.name,
            body: self.body.get().to_owned(),
            version: self.version,
            created_at: parse_instant(&self.created_at)?,
            updated_at: parse_instant(&self.updated_at)?,
            deleted_at: self.deleted_at.as_deref().map(parse_instant).transpose()?,
        })
    }
}

/// The text that explains the archive to its person.
pub(super) const README_TEXT: &str = include_str!("README.txt");
