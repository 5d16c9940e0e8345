//! Finds which of some ids an object may have, and in which of its rows: by the index that it carries, or, if
//! it is too old to have one, by Parquet's bloom filters of its row groups.

use std::borrow::Cow;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::Type as PhysicalType;
use parquet::data_type::FixedLenByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::statistics::Statistics;
use uuid::Uuid;

use super::finder::{FilterKey, Finder, is_live};
use crate::model::columns::ID;
use crate::model::ids::RecordId;
use crate::store::checksums::BLOCK_BYTES;
use crate::store::errors::StoreError;
use crate::store::files::PieceFile;
use crate::store::id_index::filter::{self, AskedIds, Filter};
use crate::store::id_index::hashed::HashedId;
use crate::store::id_index::section::{FILTER_BYTES_A_ROW, Section};
use crate::store::id_index::table;
use crate::store::outline::{ObjectPlace, Outline};
use crate::store::snapshot::SnapshotPiece;
use crate::store::wanted_ids::WantedIds;

/// What remains to be searched.
#[derive(Default)]
pub(super) struct Suspects {
    pub ids: Vec<RecordId>,
    /// Where they may be.
    pub rows: Vec<Range<usize>>,
}

/// The room for filters that a search may leave in memory. Takes as many objects as fit side by side, always
/// the same ones. If those of all objects were left there, each would be evicted before its next use.
pub(super) struct Room(u64);

impl Room {
    /// Takes room for the filters of an object, if there is enough.
    pub(super) fn take(&mut self, object: &SnapshotPiece) -> bool {
        let bytes = object
            .rows
            .max(0)
            .cast_unsigned()
            .saturating_mul(FILTER_BYTES_A_ROW);
        let rest = self.0.checked_sub(bytes);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }
}

/// The ids to look up in one section.
struct SectionLookup<'i> {
    section: &'i Section,
    ids: Cow<'i, AskedIds>,
}

impl SectionLookup<'_> {
    /// Whether reading the block of each id takes less than reading all blocks.
    fn are_few(&self) -> bool {
        (self.ids.as_slice().len() as u64) < self.section.filter_bytes() / BLOCK_BYTES
    }
}

/// How much of a filter that will not stay in memory is read at a time: what fits into the processor's cache.
const PART_BYTES: usize = 256 << 10;
/// How many blocks of filters are read at a time.
const BLOCKS_AT_ONCE: usize = 32;

impl Finder {
    /// The room for all filters, as if nothing else were there.
    pub(super) fn room(&self) -> Room {
        Room(self.0.filters.capacity())
    }

    /// `keeps`: whether filters that are read stay in memory.
    pub(super) async fn suspects(
        &self,
        piece: &SnapshotPiece,
        place: &ObjectPlace,
        ids: &WantedIds,
        keeps: bool,
    ) -> Result<Suspects, StoreError> {
        let object = self.0.files.outline(place).await?;
        if object.sections().is_empty() {
            let file = self.0.files.open(place).await?;
            return self.by_row_group(piece, &file, ids).await;
        }
        let mut found = Vec::new();
        let mut by_block = Vec::new();
        for (number, section) in object.sections().iter().enumerate() {
            let Some(ids) = within(ids, &section.ids()) else {
                continue;
            };
            let asked = SectionLookup { section, ids };
            let key = (Arc::clone(&place.path), number);
            if let Some(filter) = self.0.filters.get(&key) {
                found.push((section, filter.suspects(&asked.ids)));
            } else if keeps {
                let filter = Filter::whole(self.read_one(&object, section.filter()).await?);
                found.push((section, self.keep(key, filter).suspects(&asked.ids)));
            } else if asked.are_few() {
                by_block.push(asked);
            } else {
                found.push((section, self.by_part(&object, &asked).await?));
            }
        }
        found.extend(self.by_block(&object, by_block).await?);
        let mut all = Suspects::default();
        for (section, mut suspects) in found {
            let range = section.ids();
            suspects.retain(|id| range.contains(&id.id) && is_live(piece, id.id));
            if !suspects.is_empty() {
                all.rows
                    .extend(self.rows_by_table(&object, section, &suspects).await?);
                all.ids.extend(suspects.iter().map(|id| id.id));
            }
        }
        Ok(all)
    }

    /// Reads the filter part by part, and keeps none.
    async fn by_part(
        &self,
        object: &Outline,
        asked: &SectionLookup<'_>,
    ) -> Result<Vec<HashedId>, StoreError> {
        let section = asked.section;
        let mut suspects = Vec::new();
        for (first, range) in section.parts(PART_BYTES / filter::BLOCK_BYTES) {
            let part = self.read_one(object, range).await?;
            suspects.extend(Filter::part(part, first, section.blocks()).suspects(&asked.ids));
        }
        Ok(suspects)
    }

    /// Reads only the blocks that the ids belong to, those of several sections at once.
    async fn by_block<'s>(
        &self,
        object: &Outline,
        mut asked: Vec<SectionLookup<'s>>,
    ) -> Result<Vec<(&'s Section, Vec<HashedId>)>, StoreError> {
        let mut found = Vec::with_capacity(asked.len());
        while !asked.is_empty() {
            let mut blocks = 0;
            let fit = asked.iter().take_while(|asked| {
                blocks += asked.ids.as_slice().len();
                blocks <= BLOCKS_AT_ONCE
            });
            let later = asked.split_off(fit.count().max(1));
            let ids = asked.iter().flat_map(|asked| {
                let ids = asked.ids.as_slice().iter();
                ids.map(|id| asked.section.block(id.hash))
            });
            let blocks = self.0.files.read(object, &ids.collect::<Vec<_>>()).await?;
            let mut blocks = blocks.into_iter();
            found.extend(asked.iter().map(|asked| {
                let ids = asked.ids.as_slice().iter().zip(blocks.by_ref());
                let suspects = ids.filter(|(id, block)| filter::may_be_in(block, id));
                (asked.section, suspects.map(|(id, _)| *id).collect())
            }));
            asked = later;
        }
        Ok(found)
    }

    /// Where rows with one of `ids`, which are in the order of their hashes, may be.
    async fn rows_by_table(
        &self,
        object: &Outline,
        section: &Section,
        ids: &[HashedId],
    ) -> Result<Vec<Range<usize>>, StoreError> {
        let by_bucket: Vec<(usize, &[HashedId])> = ids
            .chunk_by(|one, other| section.bucket(one.hash) == section.bucket(other.hash))
            .filter_map(|ids| Some((section.bucket(ids.first()?.hash), ids)))
            .collect();
        let offsets: Vec<_> = by_bucket
            .iter()
            .map(|(bucket, _)| section.offsets(*bucket))
            .collect();
        let offsets = self.0.files.read(object, &offsets).await?;
        let mut asked = Vec::new();
        for ((_, ids), offsets) in by_bucket.into_iter().zip(offsets) {
            let entries = section.entries(&offsets);
            let entries =
                entries.ok_or_else(|| object.place().damaged(&"its index of ids cannot be read"))?;
            if !entries.is_empty() {
                asked.push((ids, entries));
            }
        }
        let entries: Vec<_> = asked.iter().map(|(_, entries)| entries.clone()).collect();
        let buckets = self.0.files.read(object, &entries).await?;
        let places = asked
            .iter()
            .zip(&buckets)
            .flat_map(|((ids, _), bucket)| table::places(bucket, ids));
        Ok(places.map(|place| section.rows_at(place)).collect())
    }

    /// Uses the filter of each row group.
    async fn by_row_group(
        &self,
        piece: &SnapshotPiece,
        file: &PieceFile,
        ids: &WantedIds,
    ) -> Result<Suspects, StoreError> {
        let mut all = Suspects::default();
        let mut first = 0;
        for (number, group) in file.metadata().row_groups().iter().enumerate() {
            let rows = first..first + group.num_rows() as usize;
            first = rows.end;
            let column = id_column(file).ok_or_else(|| file.place().damaged(&"it has no ids"))?;
            let all_there_are = RecordId(Uuid::nil())..=RecordId(Uuid::max());
            let range = id_range(group, column).unwrap_or(all_there_are);
            let Some(asked) = within(ids, &range) else {
                continue;
            };
            let key = (Arc::clone(&file.place().path), number);
            let filter = match self.0.filters.get(&key) {
                Some(filter) => filter,
                None => self.keep(key, self.filter_of_column(file, group, column).await?),
            };
            let mut suspects = filter.suspects(&asked);
            suspects.retain(|id| range.contains(&id.id) && is_live(piece, id.id));
            if !suspects.is_empty() {
                all.rows.push(rows);
                all.ids.extend(suspects.iter().map(|id| id.id));
            }
        }
        Ok(all)
    }

    async fn filter_of_column(
        &self,
        file: &PieceFile,
        group: &RowGroupMetaData,
        column: usize,
    ) -> Result<Filter, StoreError> {
        let location = group.columns().get(column).and_then(|column| {
            let offset = u64::try_from(column.bloom_filter_offset()?).ok()?;
            Some(offset..offset + u64::try_from(column.bloom_filter_length()?).ok()?)
        });
        let location = location.ok_or_else(|| file.place().damaged(&"it has no bloom filter"))?;
        let filter = Filter::of_column(&self.read_one(file.outline(), location).await?);
        filter.map_err(|error: ParquetError| file.place().damaged(&error))
    }

    async fn read_one(&self, object: &Outline, range: Range<u64>) -> Result<Bytes, StoreError> {
        let parts = self.0.files.read(object, &[range]).await?;
        let part = parts.into_iter().next();
        part.ok_or_else(|| object.place().damaged(&"a range was not read"))
    }

    fn keep(&self, key: FilterKey, filter: Filter) -> Arc<Filter> {
        let filter = Arc::new(filter);
        self.0.filters.insert(key, Arc::clone(&filter));
        filter
    }
}

/// The ids in a range with their hashes, and perhaps others; `None` if there are none. Ids made in order of
/// time are mostly outside the range of older rows; then no filter is even read.
fn within<'i>(ids: &'i WantedIds, range: &RangeInclusive<RecordId>) -> Option<Cow<'i, AskedIds>> {
    let within = ids.within(range);
    if within.is_empty() {
        None
    } else if within.len() < ids.len() / 2 {
        Some(Cow::Owned(AskedIds::new(within)))
    } else {
        // Where most are in the range, all are hashed and sorted once for all sections.
        Some(Cow::Borrowed(ids.asked()))
    }
}

fn id_column(file: &PieceFile) -> Option<usize> {
    let columns = file.metadata().file_metadata().schema_descr().columns();
    columns.iter().position(|column| {
        column.name() == ID
            && column.path().parts().len() == 1
            && column.physical_type() == PhysicalType::FIXED_LEN_BYTE_ARRAY
    })
}

/// The least and the greatest id of a row group, if the file has them.
fn id_range(group: &RowGroupMetaData, column: usize) -> Option<RangeInclusive<RecordId>> {
    let Statistics::FixedLenByteArray(statistics) = group.columns().get(column)?.statistics()? else {
        return None;
    };
    let id = |bytes: Option<&FixedLenByteArray>| bytes.and_then(|bytes| RecordId::from_slice(bytes.data()));
    Some(id(statistics.min_opt())?..=id(statistics.max_opt())?)
}
