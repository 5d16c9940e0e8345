//! A content: its parts with their names, and the document that lists them. Plain data; reads and writes
//! nothing.

use serde::{Deserialize, Serialize};
use sha2::digest::common::hazmat::SerializableState as _;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::catalog::documents::{Change, Document, DocumentKind, Link};
use crate::catalog::records::Footer;
use crate::model::hexadecimal::{from_hexadecimal, hexadecimal};
use crate::model::ids::PersonId;
use crate::model::stored_json;
use crate::model::time::Instant;
use crate::store::StoreError;
use crate::store::folder_names::{EXPORTS_FOLDER, FILES_FOLDER, FRAMES_FOLDER};

/// A part ends at this size. A crash loses less than one part of an upload.
pub const PART_BYTES: u64 = 32 << 20;

/// The most parts of a content, so that nobody fills the catalogue with lists of tiny parts.
pub const MOST_PARTS: usize = 4096;

/// Leads to all contents that are not complete yet.
pub(super) const OPEN_LINK: &str = "open_content";

pub(super) const OPEN_CONTENTS: Uuid = Uuid::nil();

/// What a content belongs to. Each kind has a folder of its own in the object store, and documents of its own
/// that name its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentKind {
    File,
    Export,
    Frame,
}

/// One part of a content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    pub id: Uuid,
    /// How many bytes of the content it has.
    pub bytes: u64,
    /// The checksum of the whole object.
    pub checksum: u32,
    /// The length of the object after the content's bytes.
    pub(super) footer_bytes: u32,
    pub(super) footer_checksum: u32,
}

/// A content, as far as it has been received.
#[derive(Clone, Debug)]
pub struct Content {
    pub of: ContentKind,
    pub id: Uuid,
    pub person: PersonId,
    /// The announced number of bytes.
    pub length: u64,
    /// In the order of their bytes.
    pub parts: Vec<Part>,
    /// The SHA-256 of all bytes in hexadecimal digits, once all are there.
    pub sha256: Option<String>,
    /// Until when bytes are accepted.
    pub open_until: Instant,
    /// The SHA-256 of the bytes so far.
    digest: Sha256,
    pub(super) created_at: Instant,
    version: i64,
}

/// The body of a content's document.
#[derive(Debug, Serialize, Deserialize)]
struct Body {
    length: u64,
    open_until: i64,
    parts: Vec<Part>,
    /// The state of the digest of an open content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
}

/// The part of the document of an export or of a frame that describes its bytes.
#[derive(Debug, Deserialize)]
struct Archived {
    parts: Vec<Part>,
    #[serde(default)]
    sha256: Option<String>,
}

impl ContentKind {
    pub const ALL: [Self; 3] = [Self::File, Self::Export, Self::Frame];

    /// The folder of all parts.
    #[must_use]
    pub const fn folder(self) -> &'static str {
        match self {
            Self::File => FILES_FOLDER,
            Self::Export => EXPORTS_FOLDER,
            Self::Frame => FRAMES_FOLDER,
        }
    }

    /// The kind of the documents that name parts.
    pub(super) const fn documents(self) -> DocumentKind {
        match self {
            Self::File => DocumentKind::FileContent,
            Self::Export => DocumentKind::Export,
            Self::Frame => DocumentKind::Frame,
        }
    }
}

impl Part {
    pub(super) const fn footer(&self) -> Footer {
        Footer {
            bytes: self.footer_bytes,
            checksum: self.footer_checksum,
        }
    }

    /// The size of the object.
    #[must_use]
    pub const fn object_bytes(&self) -> u64 {
        self.bytes + self.footer_bytes as u64
    }
}

impl Content {
    /// A content of which nothing has been received yet.
    #[must_use]
    pub fn announced(id: Uuid, person: PersonId, length: u64, now: Instant, open_until: Instant) -> Self {
        Self {
            of: ContentKind::File,
            id,
            person,
            length,
            parts: Vec::new(),
            sha256: None,
            open_until,
            digest: Sha256::new(),
            created_at: now,
            version: 0,
        }
    }

    /// The content of the export `id`, as its document describes it.
    #[must_use]
    pub fn of_export(id: Uuid, person: PersonId, parts: Vec<Part>, sha256: Option<String>) -> Self {
        Self::made_here(ContentKind::Export, id, person, parts, sha256)
    }

    /// The content of the frame `id`, as its document describes it.
    #[must_use]
    pub fn of_frame(id: Uuid, person: PersonId, parts: Vec<Part>, sha256: Option<String>) -> Self {
        Self::made_here(ContentKind::Frame, id, person, parts, sha256)
    }

    fn made_here(
        of: ContentKind,
        id: Uuid,
        person: PersonId,
        parts: Vec<Part>,
        sha256: Option<String>,
    ) -> Self {
        Self {
            of,
            id,
            person,
            length: parts.iter().map(|part| part.bytes).sum(),
            parts,
            sha256,
            open_until: Instant::MAX,
            digest: Sha256::new(),
            created_at: Instant::MIN,
            version: 0,
        }
    }

    /// How many bytes are durable.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.parts.iter().map(|part| part.bytes).sum()
    }

    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.sha256.is_some()
    }

    /// A digest that continues at the end of this content.
    #[must_use]
    pub fn digest(&self) -> Sha256 {
        self.digest.clone()
    }

    /// The same content with one more part; `digest` covers that part too. With its last byte it is complete.
    #[must_use]
    pub fn with_part(mut self, part: Part, digest: Sha256) -> Self {
        self.parts.push(part);
        self.digest = digest;
        self
    }

    /// The same content without its parts, and those parts.
    #[must_use]
    pub fn emptied(mut self) -> (Self, Vec<Part>) {
        let parts = std::mem::take(&mut self.parts);
        self.digest = Sha256::new();
        (self, parts)
    }

    /// The same content, closed. Its SHA-256 is computed now.
    #[must_use]
    pub fn finished(mut self) -> Self {
        self.sha256 = Some(hexadecimal(&self.digest.clone().finalize()));
        self
    }

    /// Whether `part` is one of its parts.
    pub(super) fn names(&self, part: Uuid) -> bool {
        self.parts.iter().any(|named| named.id == part)
    }

    /// The folder of its parts, and of nothing else.
    #[must_use]
    pub fn folder(&self) -> String {
        format!("{}/{}/{}", self.of.folder(), self.person, self.id)
    }

    /// The path of one of its parts.
    #[must_use]
    pub fn path_of(&self, part: &Part) -> String {
        PartName::of(self, part.id).path()
    }

    /// The paths of its objects with their checksums.
    pub fn objects(&self) -> impl Iterator<Item = (String, &Part)> {
        self.parts.iter().map(|part| (self.path_of(part), part))
    }

    /// The change that inserts a new content.
    pub fn insertion(&self) -> Result<Change, StoreError> {
        Ok(Change::Insert {
            document: self.document(1, self.created_at)?,
            links: vec![Link {
                kind: OPEN_LINK,
                target: OPEN_CONTENTS,
            }],
            limit: u64::MAX,
        })
    }

    /// The change that inserts a content that is complete from the beginning.
    pub fn restoration(&self) -> Result<Change, StoreError> {
        Ok(Change::Insert {
            document: self.document(1, self.created_at)?,
            links: Vec::new(),
            limit: u64::MAX,
        })
    }

    /// The change that replaces the state that was read by this one.
    pub fn update(&self, now: Instant) -> Result<Change, StoreError> {
        Ok(Change::Update {
            document: self.document(self.version + 1, now)?,
            expected: self.version,
            links: self.is_whole().then(Vec::new),
        })
    }

    /// This content after the change that stores it was made.
    #[must_use]
    pub const fn stored(mut self) -> Self {
        self.version += 1;
        self
    }

    /// Whether the stored content is unchanged since `other` was read.
    #[must_use]
    pub const fn is_as_read(&self, other: &Self) -> bool {
        self.version == other.version
    }

    /// The change that removes the content.
    #[must_use]
    pub const fn removal(&self) -> Change {
        Change::remove(DocumentKind::FileContent, self.id, self.person, self.version)
    }

    fn document(&self, version: i64, now: Instant) -> Result<Document, StoreError> {
        let open = !self.is_whole();
        let body = Body {
            length: self.length,
            open_until: self.open_until.micros(),
            parts: self.parts.clone(),
            digest: open.then(|| hexadecimal(&self.digest.serialize())),
            sha256: self.sha256.clone(),
        };
        Ok(Document {
            kind: DocumentKind::FileContent,
            id: self.id,
            person: self.person,
            name: None,
            body: serde_json::to_string(&body).map_err(StoreError::rows)?,
            version,
            created_at: self.created_at,
            updated_at: now.max(self.created_at),
            deleted_at: None,
        })
    }

    pub(super) fn of(document: &Document) -> Result<Self, StoreError> {
        let damaged = |reason: String| StoreError::corrupt(format!("content {}: {reason}", document.id));
        let made_here = match document.kind {
            DocumentKind::Export => Some(ContentKind::Export),
            DocumentKind::Frame => Some(ContentKind::Frame),
            _ => None,
        };
        if let Some(of) = made_here {
            let Archived { parts, sha256 } =
                stored_json::read(&document.body).map_err(|error| damaged(error.to_string()))?;
            return Ok(Self {
                created_at: document.created_at,
                version: document.version,
                ..Self::made_here(of, document.id, document.person, parts, sha256)
            });
        }
        let body: Body = stored_json::read(&document.body).map_err(|error| damaged(error.to_string()))?;
        let digest = match &body.digest {
            Some(text) => digest_of(text).ok_or_else(|| damaged("its digest cannot be read".to_owned()))?,
            None => Sha256::new(),
        };
        Ok(Self {
            of: ContentKind::File,
            id: document.id,
            person: document.person,
            length: body.length,
            parts: body.parts,
            sha256: body.sha256,
            open_until: Instant::from_micros(body.open_until),
            digest,
            created_at: document.created_at,
            version: document.version,
        })
    }
}

/// The path of a part, in its components.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartName {
    pub of: ContentKind,
    pub person: PersonId,
    pub content: Uuid,
    pub part: Uuid,
}

impl PartName {
    #[must_use]
    pub const fn of(content: &Content, part: Uuid) -> Self {
        Self {
            of: content.of,
            person: content.person,
            content: content.id,
            part,
        }
    }

    /// The path of a part's object. The person's folder can be removed as a whole.
    #[must_use]
    pub fn path(&self) -> String {
        let folder = self.of.folder();
        format!("{folder}/{}/{}/{}", self.person, self.content, self.part)
    }

    /// Parses what `path` wrote. `None` for anything else.
    #[must_use]
    pub fn parse(path: &str) -> Option<Self> {
        let (folder, names) = path.split_once('/')?;
        let mut names = names.split('/');
        let name = Self {
            of: ContentKind::ALL.into_iter().find(|of| of.folder() == folder)?,
            person: names.next()?.parse().ok()?,
            content: names.next()?.parse().ok()?,
            part: names.next()?.parse().ok()?,
        };
        (name.path() == path).then_some(name)
    }
}

fn digest_of(text: &str) -> Option<Sha256> {
    let state = from_hexadecimal(text)?;
    Sha256::deserialize(state.as_slice().try_into().ok()?).ok()
}
