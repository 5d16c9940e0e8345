//! Writes parts into the object store. Knows nothing of the content that they become part of.

use bytes::Bytes;

use super::content::{Part, PartName};
use crate::model::time::Instant;
use crate::store::StoreError;
use crate::store::checksums::Summing;
use crate::store::objects::{ObjectStorage, ObjectWriter};

/// A part being written. Dropping it leaves nothing visible.
pub struct PartWriter {
    name: PartName,
    writer: ObjectWriter,
    summing: Summing,
    began: Instant,
}

impl PartWriter {
    pub(super) fn new(objects: &ObjectStorage, name: PartName, began: Instant) -> Result<Self, StoreError> {
        Ok(Self {
            writer: objects.upload(&name.path())?,
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
        self.writer.write(bytes).await
    }

    /// Makes the part durable. Nothing refers to it until it is registered.
    pub async fn finish(mut self) -> Result<Part, StoreError> {
        let bytes = self.summing.bytes();
        let table = Bytes::from(self.summing.end_of_blocks());
        self.summing.take(&table);
        self.writer.write(table).await?;
        self.writer.finish().await?;
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
        self.writer.abort().await
    }
}
