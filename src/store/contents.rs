//! Contents: the bytes of files, of exports and of frames, each a list of parts in the object store.
//!
//! A part is an object: bytes of the content, then the checksums of their blocks. It is durable before it is
//! registered, and registered before it is acknowledged. The list is a document of the catalogue, so what was
//! received survives a restart and any node can continue it; a part that no list names is garbage. A complete
//! content never changes again, and several files may share it. Knows nothing of paths, states or HTTP.

mod incoming;
mod parts;
mod reading;
mod usage;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::digest::common::hazmat::SerializableState as _;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

pub use incoming::IncomingName;
pub use parts::{PartName, PartWriter};
pub use usage::Usage;

use super::errors::StoreError;
use super::folder_names::{EXPORTS_FOLDER, FILES_FOLDER, FRAMES_FOLDER};
use super::objects::ObjectStorage;
use crate::catalog::documents::{Change, Changed, Document, DocumentKind, Link};
use crate::catalog::records::Footer;
use crate::catalog::{Catalog, WithDamage};
use crate::model::clock::Clock;
use crate::model::hexadecimal::hexadecimal;
use crate::model::ids::{IdSource, PersonId};
use crate::model::stored_json;
use crate::model::time::Instant;

/// A part ends at this size. A crash loses less than one part of an upload.
pub const PART_BYTES: u64 = 32 << 20;
/// The most parts of a content, so that nobody fills the catalogue with lists of tiny parts.
pub const MOST_PARTS: usize = 4096;

/// Leads to all contents that are not complete yet.
const OPEN_LINK: &str = "open_content";
const OPEN_CONTENTS: Uuid = Uuid::nil();

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
    footer_bytes: u32,
    footer_checksum: u32,
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
    created_at: Instant,
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
    const fn documents(self) -> DocumentKind {
        match self {
            Self::File => DocumentKind::FileContent,
            Self::Export => DocumentKind::Export,
            Self::Frame => DocumentKind::Frame,
        }
    }
}

impl Part {
    const fn footer(&self) -> Footer {
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
    fn names(&self, part: Uuid) -> bool {
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
        Change::Remove {
            kind: DocumentKind::FileContent,
            id: self.id,
            person: self.person,
            expected: self.version,
        }
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

    fn of(document: &Document) -> Result<Self, StoreError> {
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

/// The contents of all people. Cheap to clone.
#[derive(Clone)]
pub struct Contents {
    catalog: Catalog,
    objects: ObjectStorage,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
}

impl Contents {
    #[must_use]
    pub fn new(
        catalog: Catalog,
        objects: ObjectStorage,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn IdSource>,
    ) -> Self {
        Self {
            catalog,
            objects,
            clock,
            ids,
        }
    }

    pub async fn get(&self, id: Uuid) -> Result<Option<Content>, StoreError> {
        self.find(ContentKind::File, id).await
    }

    async fn find(&self, of: ContentKind, id: Uuid) -> Result<Option<Content>, StoreError> {
        let found = self.catalog.document(of.documents(), id).await?;
        found.as_ref().map(Content::of).transpose()
    }

    /// All contents of a person, of every kind.
    pub async fn of_person(&self, person: PersonId) -> Result<Vec<Content>, StoreError> {
        let mut contents = Vec::new();
        for of in ContentKind::ALL {
            for document in self.catalog.documents_of(person, of.documents()).await? {
                contents.push(Content::of(&document)?);
            }
        }
        Ok(contents)
    }

    /// Those of a person's contents that can be read as written, where others are damaged.
    pub async fn sound_of_person(&self, person: PersonId) -> Result<Vec<Content>, StoreError> {
        let mut contents = Vec::new();
        for of in ContentKind::ALL {
            let documents = self.catalog.sound_documents_of(person, of.documents()).await?;
            contents.extend(documents.iter().filter_map(|document| Content::of(document).ok()));
        }
        Ok(contents)
    }

    /// Begins the next part of a content.
    pub fn part(&self, content: &Content) -> Result<PartWriter, StoreError> {
        let name = PartName::of(content, self.ids.next());
        PartWriter::new(&self.objects, name, self.clock.now())
    }

    /// Removes parts that no content names, and the content's folder if nothing else is in it. Those that
    /// cannot be removed now are collected later.
    pub async fn remove_parts(&self, content: &Content, parts: &[Part]) {
        for part in parts {
            let path = content.path_of(part);
            if let Err(error) = self.objects.delete(&path).await {
                tracing::warn!(%path, %error, "a part stays until orphans are collected");
            }
        }
        let folder = content.folder();
        if let Err(error) = self.objects.remove_empty_folders(&folder).await {
            tracing::warn!(%folder, %error, "a folder stays until orphans are collected");
        }
    }

    /// Forgets contents whose time to arrive ended `grace` ago, and frees their room. Their parts are garbage
    /// from then on. Returns which, and whose damage was passed over.
    pub async fn forget_expired(&self, grace: std::time::Duration) -> Result<WithDamage<Uuid>, StoreError> {
        // Not this node's time: a node whose clock is ahead would forget what others are still sending.
        let limit = self.catalog.now().await?.before(grace);
        let open = self
            .catalog
            .sound_documents_linked(DocumentKind::FileContent, OPEN_LINK, OPEN_CONTENTS);
        let WithDamage { sound, mut set_aside } = open.await?;
        let mut forgotten = Vec::new();
        for document in sound {
            match self.forget_before(&document, limit).await {
                Ok(true) => forgotten.push(document.id),
                Ok(false) => {}
                Err(error) if error.is_damage() => {
                    tracing::error!(%error, "an announced file stays; run `almanac check`");
                    set_aside.insert(format!("person {}", document.person));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(WithDamage {
            sound: forgotten,
            set_aside,
        })
    }

    /// Forgets an open content whose time to arrive ended before `limit`; returns whether it did.
    async fn forget_before(&self, document: &Document, limit: Instant) -> Result<bool, StoreError> {
        let content = Content::of(document)?;
        if content.open_until >= limit {
            return Ok(false);
        }
        let usage = self.usage(content.person).await?;
        let changes = vec![content.removal(), usage.without(content.length).change(&content)?];
        // Somebody else may have finished it, or changed the usage; the next round looks again.
        Ok(self.catalog.change_documents(changes).await? == Changed::Done)
    }

    /// The `paths` that are parts but belong to no content. Parts of a damaged content count as belonging to
    /// it.
    pub async fn orphaned_parts(&self, paths: &[String]) -> Result<Vec<String>, StoreError> {
        let mut known: Option<Content> = None;
        let mut missing: Option<Uuid> = None;
        let mut orphaned_parts = Vec::new();
        for path in paths {
            let Some(name) = PartName::parse(path) else {
                continue;
            };
            if missing == Some(name.content) {
                orphaned_parts.push(path.clone());
                continue;
            }
            if known.as_ref().is_none_or(|content| content.id != name.content) {
                known = match self.find(name.of, name.content).await {
                    Err(error) if error.is_damage() => {
                        continue;
                    }
                    content => content?,
                };
                missing = known.is_none().then_some(name.content);
            }
            if !known.as_ref().is_some_and(|content| content.names(name.part)) {
                orphaned_parts.push(path.clone());
            }
        }
        Ok(orphaned_parts)
    }
}

fn digest_of(text: &str) -> Option<Sha256> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let bytes: Option<Vec<u8>> = pairs
        .iter()
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect();
    let state = bytes.filter(|_| rest.is_empty())?;
    Sha256::deserialize(state.as_slice().try_into().ok()?).ok()
}
