//! Writes parts into the object store, and names their objects.

use bytes::Bytes;
use uuid::Uuid;

use super::{Content, ContentKind, Part};
use crate::model::ids::PersonId;
use crate::model::time::Instant;
use crate::store::StoreError;
use crate::store::checksums::Summing;
use crate::store::objects::{ObjectStorage, Upload};

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

/// A part being written. Dropping it leaves nothing visible.
pub struct PartWriter {
    name: PartName,
    upload: Upload,
    summing: Summing,
    began: Instant,
}

impl PartWriter {
    pub(super) fn new(objects: &ObjectStorage, name: PartName, began: Instant) -> Result<Self, StoreError> {
        Ok(Self {
            upload: objects.upload(&name.path())?,
            name,
            summing: Summing::default(),
            began,
        })
    }

    #[must_use]
    pub const fn began(&self) -> Instant {
        self.began
    }

    /// How many bytes were taken so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.summing.bytes()
    }

    pub async fn write(&mut self, bytes: Bytes) -> Result<(), StoreError> {
        self.summing.take(&bytes);
        self.upload.write(bytes).await
    }

    /// Makes the part durable. Nothing refers to it until it is registered.
    pub async fn finish(mut self) -> Result<Part, StoreError> {
        let bytes = self.summing.bytes();
        let table = Bytes::from(self.summing.end_of_blocks());
        self.summing.take(&table);
        self.upload.write(table).await?;
        self.upload.finish().await?;
        let (checksum, footer) = self.summing.finish();
        Ok(Part {
            id: self.name.part,
            bytes,
            checksum,
            footer_bytes: footer.bytes,
            footer_checksum: footer.checksum,
        })
    }

    /// Gives up, and removes what was sent.
    pub async fn abandon(self) -> Result<(), StoreError> {
        self.upload.abort().await
    }
}
