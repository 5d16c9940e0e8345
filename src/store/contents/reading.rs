//! Reads contents step by step, each verified against its checksums before anybody sees it.
//!
//! A content may be removed while it is read. Whoever removes one takes its name from the catalogue first, so
//! a part that is not there counts as lost only if the catalogue still names it.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{StreamExt as _, TryStreamExt as _};
use tokio::sync::OnceCell;

use super::content::{Content, Part, PartName};
use super::handle::Contents;
use crate::store::StoreError;
use crate::store::checksums::Blocks;
use crate::store::objects::ObjectStorage;

/// How many bytes one request fetches.
pub(super) const STEP: u64 = 4 << 20;
/// How many steps are fetched while the previous one is sent.
pub(super) const STEPS_AT_ONCE: usize = 2;

/// Reads a part, and verifies it by the checksums of its blocks, which are loaded on first use.
struct PartReader {
    name: PartName,
    path: String,
    part: Part,
    blocks: OnceCell<Blocks>,
}

impl Contents {
    /// The bytes of `range`, which lies inside the content. After an error nothing more can be read. What is
    /// `Missing` was removed meanwhile; what is lost is damage.
    #[must_use]
    pub fn read(
        &self,
        content: &Content,
        range: Range<u64>,
    ) -> BoxStream<'static, Result<Bytes, StoreError>> {
        let mut steps: Vec<(Arc<PartReader>, Range<u64>)> = Vec::new();
        let mut begins = 0;
        for part in &content.parts {
            let ends = begins + part.bytes;
            let wanted = range.start.max(begins)..range.end.min(ends);
            if wanted.start < wanted.end {
                let name = PartName::of(content, part.id);
                let reader = Arc::new(PartReader {
                    name,
                    path: name.path(),
                    part: *part,
                    blocks: OnceCell::new(),
                });
                let (mut from, until) = (wanted.start - begins, wanted.end - begins);
                while from < until {
                    // Steps begin and end where blocks do, so that no block is fetched twice.
                    let next = ((from / STEP + 1) * STEP).min(until);
                    steps.push((Arc::clone(&reader), from..next));
                    from = next;
                }
            }
            begins = ends;
        }
        let contents = self.clone();
        stream::iter(steps)
            .map(move |(reader, range)| {
                let contents = contents.clone();
                async move { contents.step(&reader, range).await }
            })
            .buffered(STEPS_AT_ONCE)
            .boxed()
    }

    /// Reads all of a content and verifies its checksums; returns the size of its objects.
    pub async fn examine(&self, content: &Content) -> Result<u64, StoreError> {
        let mut bytes = self.read(content, 0..content.received());
        while bytes.try_next().await?.is_some() {}
        Ok(content.parts.iter().map(Part::object_bytes).sum())
    }

    /// Some of a part, or why it is not there.
    async fn step(&self, reader: &PartReader, range: Range<u64>) -> Result<Bytes, StoreError> {
        let path = match reader.fetch(&self.objects, range).await {
            Err(StoreError::Missing { path }) => path,
            fetched => return fetched,
        };
        let current = self.find(reader.name.of, reader.name.content).await?;
        if current.is_some_and(|content| content.names(reader.name.part)) {
            return Err(StoreError::corrupt(format!("object {path} is gone")));
        }
        Err(StoreError::Missing { path })
    }
}

impl PartReader {
    async fn fetch(&self, objects: &ObjectStorage, range: Range<u64>) -> Result<Bytes, StoreError> {
        let blocks = self.blocks.get_or_try_init(|| self.read_blocks(objects)).await?;
        let whole = blocks.widen(&range).ok_or_else(|| self.damaged())?;
        let bytes = self.read(objects, whole.clone()).await?;
        if !blocks.verify(&whole, &bytes) {
            return Err(self.damaged());
        }
        let from = (range.start - whole.start) as usize;
        Ok(bytes.slice(from..from + (range.end - range.start) as usize))
    }

    async fn read(&self, objects: &ObjectStorage, range: Range<u64>) -> Result<Bytes, StoreError> {
        let bytes = self.part.object_bytes();
        objects.get_range_within(&self.path, bytes, range).await
    }

    async fn read_blocks(&self, objects: &ObjectStorage) -> Result<Blocks, StoreError> {
        let (footer, end) = (self.part.footer(), self.part.object_bytes());
        let table = self.read(objects, self.part.bytes..end).await?;
        if table.len() as u64 != u64::from(footer.bytes) || crc32fast::hash(&table) != footer.checksum {
            return Err(self.damaged());
        }
        Blocks::of(&table, end).ok_or_else(|| self.damaged())
    }

    fn damaged(&self) -> StoreError {
        StoreError::corrupt(format!("object {} differs from what was written", self.path))
    }
}
