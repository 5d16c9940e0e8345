//! The small part of an object's footer that is needed before any row is read: the checksums of its blocks,
//! and where the index of its ids and its rollups are.
//!
//! A whole footer also lists every page of every column, which takes far more memory and time to parse. A
//! write asks nearly every object of a person for an id, and needs none of that. Knows nothing of who asks.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use parquet::file::metadata::{
    PageIndexPolicy, ParquetMetaData, ParquetMetaDataOptions, ParquetMetaDataReader, ParquetStatisticsPolicy,
};

use super::checksums::Blocks;
use super::errors::StoreError;
use super::id_index::section::{Section, sections};
use super::objects::ObjectStorage;
use super::rollups::stored_rollups::{StoredRollups, stored_rollups};
use crate::catalog::records::Footer;

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

    /// The error for damage to this object.
    pub(super) fn damaged(&self, detail: &dyn fmt::Display) -> StoreError {
        StoreError::corrupt(format!("object {}: {detail}", self.path))
    }
}

/// An object whose footer was read and verified.
#[derive(Debug)]
pub struct Outline {
    place: ObjectPlace,
    blocks: Blocks,
    sections: Vec<Section>,
    rollups: Vec<StoredRollups>,
}

impl Outline {
    pub(super) async fn read(objects: &ObjectStorage, place: &ObjectPlace) -> Result<Self, StoreError> {
        let footer = verified_footer(objects, place).await?;
        let bounds = ParquetStatisticsPolicy::SkipAll;
        let metadata = parsed(&footer, place, PageIndexPolicy::Skip, bounds)?;
        Self::of(place, &footer, &metadata)
    }

    /// The outline in a verified footer.
    pub(super) fn of(
        place: &ObjectPlace,
        footer: &Bytes,
        metadata: &ParquetMetaData,
    ) -> Result<Self, StoreError> {
        let blocks = Blocks::of(footer, place.bytes);
        Ok(Self {
            place: place.clone(),
            blocks: blocks.ok_or_else(|| place.damaged(&"its footer is too short"))?,
            sections: sections(metadata).map_err(|error| place.damaged(&error))?,
            rollups: stored_rollups(metadata),
        })
    }

    #[must_use]
    pub fn place(&self) -> &ObjectPlace {
        &self.place
    }

    pub(super) fn blocks(&self) -> &Blocks {
        &self.blocks
    }

    /// Where the index of its ids is; older objects have none.
    pub(super) fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// Where its rollups are.
    pub(super) fn stored_rollups(&self) -> &[StoredRollups] {
        &self.rollups
    }

    pub(super) fn memory(&self) -> usize {
        self.blocks.memory()
            + size_of_val(self.sections.as_slice())
            + size_of_val(self.rollups.as_slice())
            + size_of::<Self>()
    }
}

/// The footer of an object, verified against its checksum.
pub(super) async fn verified_footer(
    objects: &ObjectStorage,
    place: &ObjectPlace,
) -> Result<Bytes, StoreError> {
    let path = &place.path;
    let Some(start) = place.bytes.checked_sub(u64::from(place.footer_bytes)) else {
        return Err(place.damaged(&"its footer is longer than the object"));
    };
    let read = objects.get_range_within(path, place.bytes, start..place.bytes);
    let footer = match read.await {
        Err(StoreError::Missing { path }) => {
            return Err(StoreError::corrupt(format!("object {path} is lost")));
        }
        footer => footer?,
    };
    if crc32fast::hash(&footer) == place.footer_checksum {
        Ok(footer)
    } else {
        Err(place.damaged(&"its footer differs from what was written"))
    }
}

/// Parses a verified footer, with as much as is asked for of the positions of pages and the least and
/// greatest values of columns. Leaves out the encodings of pages and their sizes in memory, which no reader
/// needs.
pub(super) fn parsed(
    footer: &Bytes,
    place: &ObjectPlace,
    pages: PageIndexPolicy,
    bounds: ParquetStatisticsPolicy,
) -> Result<ParquetMetaData, StoreError> {
    let options = ParquetMetaDataOptions::new()
        .with_column_stats_policy(bounds)
        .with_encoding_stats_policy(ParquetStatisticsPolicy::SkipAll)
        .with_size_stats_policy(ParquetStatisticsPolicy::SkipAll);
    let mut reader = ParquetMetaDataReader::new()
        .with_metadata_options(Some(options))
        .with_page_index_policy(pages);
    reader
        .try_parse_sized(footer, place.bytes)
        .and_then(|()| reader.finish())
        .map_err(|error| place.damaged(&error))
}
