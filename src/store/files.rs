//! Reading pieces that are Parquet objects, with every byte held against its checksum.
//!
//! A `PieceFiles` lives as long as the process and keeps the footers of objects in memory, bounded. Anybody
//! who reads Parquet, be it the query engine or the search for predecessors, does so through its readers.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use moka::future::Cache;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::arrow::async_reader::AsyncFileReader;
use parquet::errors::ParquetError;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};

use super::checksums::Blocks;
use super::errors::StoreError;
use super::id_index::section::{Section, sections};
use super::objects::ObjectStorage;
use super::rollups::shelf::{Shelf, shelves};
use crate::catalog::records::Footer;

/// What a Parquet file ends with: the length of its metadata, and four letters.
const LENGTH_AND_MAGIC: u64 = 8;

/// Where a piece's object is, and what the catalogue knows of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObjectPlace {
    pub path: Arc<str>,
    pub bytes: u64,
    pub footer_bytes: u32,
    pub footer_checksum: u32,
}

impl ObjectPlace {
    #[must_use]
    pub fn new(path: &str, bytes: i64, footer: Footer) -> Self {
        Self {
            path: path.into(),
            bytes: bytes.max(0).cast_unsigned(),
            footer_bytes: footer.bytes,
            footer_checksum: footer.checksum,
        }
    }
}

/// Opens objects of pieces. Cheap to clone; all clones share their footers.
#[derive(Clone, Debug)]
pub struct PieceFiles {
    objects: ObjectStorage,
    opened: Cache<Arc<str>, Arc<PieceFile>>,
}

/// An object whose footer was read and verified.
#[derive(Debug)]
pub struct PieceFile {
    place: ObjectPlace,
    parquet: ArrowReaderMetadata,
    blocks: Blocks,
    sections: Vec<Section>,
    shelves: Vec<Shelf>,
}

impl PieceFiles {
    /// `memory`: how many bytes of footers to keep.
    #[must_use]
    pub fn new(objects: ObjectStorage, memory: u64) -> Self {
        let weigh = |_: &Arc<str>, file: &Arc<PieceFile>| u32::try_from(file.memory()).unwrap_or(u32::MAX);
        Self {
            objects,
            opened: Cache::builder().max_capacity(memory).weigher(weigh).build(),
        }
    }

    /// Holds nothing in memory any more, whosever it was.
    pub async fn forget_all(&self) {
        self.opened.invalidate_all();
        self.opened.run_pending_tasks().await;
    }

    #[must_use]
    pub fn objects(&self) -> &ObjectStorage {
        &self.objects
    }

    /// The object with its footer, from memory if it was opened before.
    pub async fn open(&self, place: &ObjectPlace) -> Result<Arc<PieceFile>, StoreError> {
        if let Some(file) = self
            .opened
            .get(&place.path)
            .await
            .filter(|file| file.place == *place)
        {
            return Ok(file);
        }
        let file = Arc::new(read_footer(&self.objects, place).await?);
        self.opened
            .insert(Arc::clone(&place.path), Arc::clone(&file))
            .await;
        Ok(file)
    }

    /// A reader for Arrow's Parquet streams and for DataFusion. Opens the object when it is first used.
    #[must_use]
    pub fn reader(&self, place: &ObjectPlace) -> PieceReader {
        PieceReader {
            files: self.clone(),
            place: place.clone(),
        }
    }

    /// Reads parts of an object, each held against its checksums.
    pub async fn read(&self, file: &PieceFile, ranges: &[Range<u64>]) -> Result<Vec<Bytes>, StoreError> {
        let path = &file.place.path;
        let Some(widened) = ranges
            .iter()
            .map(|range| file.blocks.widen(range))
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
            .all(|(range, content)| file.blocks.verify(range, content))
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

    /// For a stream builder that need not read the footer again.
    #[must_use]
    pub fn parquet(&self) -> &ArrowReaderMetadata {
        &self.parquet
    }

    #[must_use]
    pub fn place(&self) -> &ObjectPlace {
        &self.place
    }

    /// Where it keeps the index of its ids; older objects have none.
    pub(super) fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// Where it keeps rollups.
    pub(super) fn shelves(&self) -> &[Shelf] {
        &self.shelves
    }

    fn memory(&self) -> usize {
        self.parquet.metadata().memory_size()
            + self.blocks.memory()
            + size_of_val(self.sections.as_slice())
            + size_of_val(self.shelves.as_slice())
            + size_of::<Self>()
    }
}

async fn read_footer(objects: &ObjectStorage, place: &ObjectPlace) -> Result<PieceFile, StoreError> {
    let path = &place.path;
    let damaged = |detail: &dyn std::fmt::Display| StoreError::corrupt(format!("object {path}: {detail}"));
    let Some(start) = place.bytes.checked_sub(u64::from(place.footer_bytes)) else {
        return Err(damaged(&"its footer is longer than the object"));
    };
    let footer = match objects.get_range(path, start..place.bytes).await {
        // An object that is shorter than it was is damaged, not out of reach.
        Err(StoreError::Unavailable { detail })
            if objects.size(path).await.is_ok_and(|bytes| bytes != place.bytes) =>
        {
            return Err(damaged(&detail));
        }
        Err(StoreError::Missing { path }) => {
            return Err(StoreError::corrupt(format!("object {path} is lost")));
        }
        footer => footer?,
    };
    if crc32fast::hash(&footer) != place.footer_checksum {
        return Err(damaged(&"its footer differs from what was written"));
    }
    let blocks = Blocks::of(&footer, place.bytes).ok_or_else(|| damaged(&"its footer is too short"))?;
    let mut reader = ParquetMetaDataReader::new().with_page_index_policy(PageIndexPolicy::Required);
    reader
        .try_parse_sized(&footer, place.bytes)
        .map_err(|error| damaged(&error))?;
    let metadata = reader.finish().map_err(|error| damaged(&error))?;
    let metadata = Arc::new(metadata);
    let open = |options: ArrowReaderOptions| {
        ArrowReaderMetadata::try_new(Arc::clone(&metadata), options).map_err(|error| damaged(&error))
    };
    // What the file says about itself is not part of the schema of its rows.
    let rows = open(ArrowReaderOptions::new())?
        .schema()
        .as_ref()
        .clone()
        .with_metadata(HashMap::new());
    let parquet = open(ArrowReaderOptions::new().with_schema(Arc::new(rows)))?;
    Ok(PieceFile {
        place: place.clone(),
        sections: sections(parquet.metadata()).map_err(|error| damaged(&error))?,
        shelves: shelves(parquet.metadata()),
        parquet,
        blocks,
    })
}

/// What the catalogue would have to know of the footer of an object of `bytes`, learned from the object
/// itself. Its own metadata says where its indexes begin; right before them stands the table of blocks, whose
/// length follows from what comes before it.
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

/// Ranges that overlap or touch made one; in order.
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
            let file = self.files.open(&self.place).await.map_err(outside)?;
            self.files.read(&file, &ranges).await.map_err(outside)
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
