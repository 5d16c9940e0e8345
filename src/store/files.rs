//! Reads pieces that are Parquet objects, and verifies every byte against its checksum.
//!
//! A `PieceFiles` lives as long as the process and keeps the footers of objects in memory, bounded. All
//! readers of Parquet, be it the query engine or the search by id, use its readers.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::arrow::async_reader::AsyncFileReader;
use parquet::errors::ParquetError;
use parquet::file::metadata::{
    PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader, ParquetStatisticsPolicy,
};

use super::checksums::Blocks;
use super::errors::StoreError;
use super::footer_facts;
use super::objects::ObjectStorage;
use super::outline::{ObjectPlace, Outline, parsed, verified_footer};
use super::replaced::{Replaced, ReplacementListeners};
use super::tail::Unpacker;
use crate::catalog::records::Footer;
use crate::model::cache::Cache;
use crate::model::meters::CacheMeters;

/// The end of a Parquet file: the length of its metadata, and four letters.
const LENGTH_AND_MAGIC: u64 = 8;

/// Opens objects of pieces. Cheap to clone; all clones share their footers.
#[derive(Clone, Debug)]
pub struct PieceFiles {
    objects: ObjectStorage,
    opened: Cache<Arc<str>, Arc<PieceFile>>,
    outlines: Cache<Arc<str>, Arc<Outline>>,
    unpacker: Unpacker,
    /// Other caches that hold something of objects.
    listeners: ReplacementListeners,
}

/// The memory for footers divided by this is for outlines: enough for some ten times as many objects.
const OUTLINES: u64 = 5;
/// The size of a large object's footer, and of its outline.
const LARGE_FOOTER: u64 = 1 << 20;
const LARGE_OUTLINE: u64 = 64 << 10;

/// An object whose footer was read and verified, with everything that it says about the rows.
#[derive(Debug)]
pub struct PieceFile {
    outline: Arc<Outline>,
    parquet: ArrowReaderMetadata,
}

impl PieceFiles {
    /// `memory`: how many bytes of footers to keep.
    #[must_use]
    pub fn new(objects: ObjectStorage, memory: u64) -> Self {
        let for_outlines = memory / OUTLINES;
        Self {
            objects,
            opened: Cache::of_bytes(memory - for_outlines, LARGE_FOOTER, |_, file: &Arc<PieceFile>| {
                file.memory()
            }),
            outlines: Cache::of_bytes(for_outlines, LARGE_OUTLINE, |_, outline: &Arc<Outline>| {
                outline.memory()
            }),
            unpacker: Unpacker::default(),
            listeners: ReplacementListeners::default(),
        }
    }

    /// Calls `forget` from now on with objects that were replaced.
    pub fn on_replaced(&self, forget: impl Fn(&Replaced) + Send + Sync + 'static) {
        self.listeners.add(forget);
    }

    /// Makes all caches drop these objects, which were replaced.
    pub fn forget(&self, replaced: &Replaced) {
        self.opened.retain(|path| !replaced.contains(path));
        self.outlines.retain(|path| !replaced.contains(path));
        self.listeners.notify(replaced);
    }

    /// Lets `meters` show how much is held.
    pub fn watched_by(&self, meters: &CacheMeters) {
        meters.watch("footers", &self.opened);
        meters.watch("outlines", &self.outlines);
    }

    /// Drops everything from memory.
    pub fn forget_all(&self) {
        self.opened.clear();
        self.outlines.clear();
    }

    /// Decodes the rollups of objects.
    pub(super) const fn unpacker(&self) -> &Unpacker {
        &self.unpacker
    }

    #[must_use]
    pub fn objects(&self) -> &ObjectStorage {
        &self.objects
    }

    /// The object with its footer, from memory if it was opened before.
    pub async fn open(&self, place: &ObjectPlace) -> Result<Arc<PieceFile>, StoreError> {
        if let Some(file) = self.opened.get(&place.path).filter(|file| file.place() == place) {
            return Ok(file);
        }
        let file = Arc::new(read_footer(&self.objects, place).await?);
        self.opened.insert(Arc::clone(&place.path), Arc::clone(&file));
        self.outlines
            .insert(Arc::clone(&place.path), Arc::clone(&file.outline));
        Ok(file)
    }

    /// What is known of an object without the positions of its pages, from memory if it was looked at before.
    pub(super) async fn outline(&self, place: &ObjectPlace) -> Result<Arc<Outline>, StoreError> {
        if let Some(outline) = self
            .outlines
            .get(&place.path)
            .filter(|outline| outline.place() == place)
        {
            return Ok(outline);
        }
        let outline = Arc::new(Outline::read(&self.objects, place).await?);
        self.outlines
            .insert(Arc::clone(&place.path), Arc::clone(&outline));
        Ok(outline)
    }

    /// A reader for Arrow's Parquet streams and for DataFusion. Opens the object on first use.
    #[must_use]
    pub fn reader(&self, place: &ObjectPlace) -> PieceReader {
        PieceReader {
            files: self.clone(),
            place: place.clone(),
        }
    }

    /// Reads parts of an object, each verified against its checksums.
    pub(super) async fn read(
        &self,
        object: &Outline,
        ranges: &[Range<u64>],
    ) -> Result<Vec<Bytes>, StoreError> {
        let path = &object.place().path;
        let Some(widened) = ranges
            .iter()
            .map(|range| object.blocks().widen(range))
            .collect::<Option<Vec<_>>>()
        else {
            return Err(StoreError::corrupt(format!(
                "object {path}: something beyond its data was asked for"
            )));
        };
        let merged = merge(&widened);
        let contents = self.objects.get_ranges(path, &merged).await?;
        if !merged
            .iter()
            .zip(&contents)
            .all(|(range, content)| object.blocks().verify(range, content))
        {
            return Err(StoreError::corrupt(format!(
                "object {path} differs from what was written"
            )));
        }
        let cut = |range: &Range<u64>| {
            let index = merged.partition_point(|merged| merged.end < range.end);
            let (whole, content) = (merged.get(index)?, contents.get(index)?);
            Some(content.slice((range.start - whole.start) as usize..(range.end - whole.start) as usize))
        };
        ranges
            .iter()
            .map(|range| cut(range).ok_or_else(|| StoreError::corrupt(format!("object {path} is too short"))))
            .collect()
    }
}

impl PieceFile {
    /// The columns that the object has.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        self.parquet.schema()
    }

    #[must_use]
    pub fn metadata(&self) -> &Arc<ParquetMetaData> {
        self.parquet.metadata()
    }

    /// What its footer says under a key.
    #[must_use]
    pub fn fact(&self, key: &str) -> Option<&str> {
        footer_facts::fact(self.metadata(), key)
    }

    /// Lets a stream builder skip reading the footer again.
    #[must_use]
    pub fn parquet(&self) -> &ArrowReaderMetadata {
        &self.parquet
    }

    #[must_use]
    pub fn place(&self) -> &ObjectPlace {
        self.outline.place()
    }

    pub(super) fn outline(&self) -> &Outline {
        &self.outline
    }

    /// With its columns in both of their forms; without its outline, which is weighed separately.
    fn memory(&self) -> usize {
        let columns = 2 * self.parquet.schema().fields().size();
        self.parquet.metadata().memory_size() + columns + size_of::<Self>()
    }
}

async fn read_footer(objects: &ObjectStorage, place: &ObjectPlace) -> Result<PieceFile, StoreError> {
    let footer = verified_footer(objects, place).await?;
    let bounds = ParquetStatisticsPolicy::KeepAll;
    let metadata = Arc::new(parsed(&footer, place, PageIndexPolicy::Required, bounds)?);
    let open = |options: ArrowReaderOptions| {
        ArrowReaderMetadata::try_new(Arc::clone(&metadata), options).map_err(|error| place.damaged(&error))
    };
    // Metadata of the file is not part of the schema of its rows.
    let rows = open(ArrowReaderOptions::new())?
        .schema()
        .as_ref()
        .clone()
        .with_metadata(HashMap::new());
    Ok(PieceFile {
        outline: Arc::new(Outline::of(place, &footer, &metadata)?),
        parquet: open(ArrowReaderOptions::new().with_schema(Arc::new(rows)))?,
    })
}

/// What the catalogue would say about the footer of an object of `bytes`, derived from the object itself. Its
/// metadata says where its indexes begin; right before them is the table of blocks, whose length follows from
/// what comes before it.
pub async fn footer_of(objects: &ObjectStorage, path: &str, bytes: u64) -> Result<Footer, StoreError> {
    let damaged = |detail: &dyn std::fmt::Display| StoreError::corrupt(format!("object {path}: {detail}"));
    let tail = objects
        .get_range(path, bytes.saturating_sub(LENGTH_AND_MAGIC)..bytes)
        .await?;
    let length = tail
        .first_chunk::<4>()
        .map(|length| u64::from(u32::from_le_bytes(*length)))
        .ok_or_else(|| damaged(&"it is too short"))?;
    let start = bytes
        .checked_sub(LENGTH_AND_MAGIC + length)
        .ok_or_else(|| damaged(&"its metadata is longer than the object"))?;
    let metadata = objects.get_range(path, start..bytes).await?;
    let mut reader = ParquetMetaDataReader::new().with_page_index_policy(PageIndexPolicy::Skip);
    reader
        .try_parse_sized(&metadata, bytes)
        .map_err(|error| damaged(&error))?;
    let metadata = reader.finish().map_err(|error| damaged(&error))?;
    let indexes = metadata
        .row_groups()
        .iter()
        .flat_map(parquet::file::metadata::RowGroupMetaData::columns);
    let indexes = indexes
        .flat_map(|column| [column.column_index_offset(), column.offset_index_offset()])
        .flatten()
        .min();
    let indexes = indexes
        .and_then(|offset| u64::try_from(offset).ok())
        .ok_or_else(|| damaged(&"it has no indexes"))?;
    let blocks = Blocks::end_before(indexes).ok_or_else(|| damaged(&"it has no checksums"))?;
    let footer = objects.get_range(path, blocks..bytes).await?;
    Ok(Footer {
        bytes: footer.len() as u32,
        checksum: crc32fast::hash(&footer),
    })
}

/// Merges ranges that overlap or touch; in order.
pub(super) fn merge<N: Ord + Copy>(ranges: &[Range<N>]) -> Vec<Range<N>> {
    let mut sorted = ranges.to_vec();
    sorted.sort_unstable_by_key(|range| range.start);
    let mut merged: Vec<Range<N>> = Vec::with_capacity(sorted.len());
    for range in sorted {
        match merged.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

/// Reads one object for a Parquet decoder.
#[derive(Clone, Debug)]
pub struct PieceReader {
    files: PieceFiles,
    place: ObjectPlace,
}

impl AsyncFileReader for PieceReader {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, Result<Bytes, ParquetError>> {
        async move {
            let mut parts = self.get_byte_ranges(vec![range]).await?;
            parts
                .pop()
                .ok_or_else(|| ParquetError::General("a range was not read".to_owned()))
        }
        .boxed()
    }

    fn get_byte_ranges(
        &mut self,
        ranges: Vec<Range<u64>>,
    ) -> BoxFuture<'_, Result<Vec<Bytes>, ParquetError>> {
        async move {
            let object = self.files.outline(&self.place).await.map_err(outside)?;
            self.files.read(&object, &ranges).await.map_err(outside)
        }
        .boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        _options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, Result<Arc<ParquetMetaData>, ParquetError>> {
        async move {
            let file = self.files.open(&self.place).await.map_err(outside)?;
            Ok(Arc::clone(file.metadata()))
        }
        .boxed()
    }
}

fn outside(error: StoreError) -> ParquetError {
    ParquetError::External(Box::new(error))
}
