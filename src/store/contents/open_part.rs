//! The bytes of a content that are on their way into its next part, and the digest of all that came.
//!
//! Knows when a part is full; does not know where finished parts are registered.

use bytes::Bytes;
use sha2::{Digest as _, Sha256};

use super::content::{PART_BYTES, Part};
use super::parts::PartWriter;
use crate::model::time::Instant;
use crate::store::StoreError;

/// The part that is being written, if one is. Dropping it leaves nothing visible.
pub struct OpenPart {
    part: Option<PartWriter>,
    /// Over all bytes of the content, including those of the part.
    digest: Sha256,
}

impl OpenPart {
    /// Nothing yet, after the bytes of `digest`.
    #[must_use]
    pub const fn after(digest: Sha256) -> Self {
        Self { part: None, digest }
    }

    /// Appends to the part; `begin` begins one if none is open.
    pub async fn write(
        &mut self,
        bytes: Bytes,
        begin: impl FnOnce() -> Result<PartWriter, StoreError>,
    ) -> Result<(), StoreError> {
        self.digest.update(&bytes);
        let mut part = match self.part.take() {
            Some(part) => part,
            None => begin()?,
        };
        part.write(bytes).await?;
        self.part = Some(part);
        Ok(())
    }

    #[must_use]
    pub const fn is_begun(&self) -> bool {
        self.part.is_some()
    }

    /// Whether it has all the bytes that a part should have.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.bytes() >= PART_BYTES
    }

    /// Whether it was begun before `moment`.
    #[must_use]
    pub fn is_from_before(&self, moment: Instant) -> bool {
        self.part.as_ref().is_some_and(|part| part.began() < moment)
    }

    /// How many bytes it has.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.part.as_ref().map_or(0, PartWriter::bytes)
    }

    /// The digest of all bytes so far.
    #[must_use]
    pub fn digest(&self) -> Sha256 {
        self.digest.clone()
    }

    /// Makes the part durable, if one is open. Nothing refers to it until it is registered.
    pub async fn finish(&mut self) -> Result<Option<Part>, StoreError> {
        match self.part.take() {
            Some(part) => Ok(Some(part.finish().await?)),
            None => Ok(None),
        }
    }

    /// Gives up the part, and removes what was sent of it.
    pub async fn abandon(&mut self) {
        if let Some(part) = self.part.take()
            && let Err(error) = part.abandon().await
        {
            tracing::warn!(%error, "what was sent of a part stays until orphans are collected");
        }
    }
}
