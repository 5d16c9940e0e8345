//! Which of some ids an object may have, and in which of its rows: by the index that it carries, or, if it is
//! too old for that, by Parquet's bloom filters of its row groups.

use std::borrow::Cow;
use std::fmt;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::Type as PhysicalType;
use parquet::data_type::FixedLenByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::statistics::Statistics;
use uuid::Uuid;

use super::{FilterKey, Finder, is_live};
use crate::model::ids::RecordId;
use crate::store::arrange::ID;
use crate::store::checksums::BLOCK_BYTES;
use crate::store::errors::StoreError;
use crate::store::files::PieceFile;
use crate::store::id_index::filter::{AskedIds, Filter};
use crate::store::id_index::hashed::HashedId;
use crate::store::id_index::section::{FILTER_BYTES_A_ROW, Section};
use crate::store::id_index::table;
use crate::store::snapshot::{Content, Snapshot, SnapshotPiece};
use crate::store::wanted::WantedIds;

/// What is left to be looked through.
#[derive(Default)]
pub(super) struct Suspects {
    pub ids: Vec<RecordId>,
    /// Where they may be.
    pub rows: Vec<Range<usize>>,
}

impl Finder {
    /// Whether all filters of the objects fit into memory, as far as nothing else is there.
    pub(super) fn has_room_for(&self, snapshot: &Snapshot) -> bool {
        let objects = snapshot.pieces.iter();
        let objects = objects.filter(|piece| matches!(piece.content, Content::Object(_)));
        let rows: u64 = objects.map(|piece| piece.rows.max(0).cast_unsigned()).sum();
        let room = self.0.filters.policy().max_capacity();
        room.is_none_or(|room| rows.saturating_mul(FILTER_BYTES_A_ROW) <= room)
    }

    /// `keeps`: whether filters that are read will stay in memory.
    pub(super) async fn suspects(
        &self,
        piece: &SnapshotPiece,
        file: &PieceFile,
        ids: &WantedIds,
        keeps: bool,
    ) -> Result<Suspects, StoreError> {
        if file.sections().is_empty() {
            return self.by_row_group(piece, file, ids).await;
        }
        let mut all = Suspects::default();
        for (number, section) in file.sections().iter().enumerate() {
            let range = section.ids();
            let Some(asked) = within(ids, &range) else {
                continue;
            };
            let hashed = asked.as_slice();
            let key = (Arc::clone(&file.place().path), number);
            let kept = self.0.filters.get(&key).await;
            let is_few = (hashed.len() as u64) < section.filter_bytes() / BLOCK_BYTES;
            let mut suspects = match kept {
                Some(filter) => filter.suspects(&asked),
                None if is_few && !keeps => {
                    let blocks: Vec<_> = hashed.iter().map(|id| section.block(id.hash)).collect();
                    Filter::suspects_by_block(hashed, &self.0.files.read(file, &blocks).await?)
                }
                None => {
                    let filter = Filter::from_bytes(&self.read_one(file, section.filter()).await?);
                    self.keep(key, filter).await.suspects(&asked)
                }
            };
            suspects.retain(|id| range.contains(&id.id) && is_live(piece, id.id));
            if !suspects.is_empty() {
                all.rows
                    .extend(self.rows_by_table(file, section, &suspects).await?);
                all.ids.extend(suspects.iter().map(|id| id.id));
            }
        }
        Ok(all)
    }

    /// Where rows with one of `ids`, which are in the order of their hashes, may be.
    async fn rows_by_table(
        &self,
        file: &PieceFile,
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
        let offsets = self.0.files.read(file, &offsets).await?;
        let mut asked = Vec::new();
        for ((_, ids), offsets) in by_bucket.into_iter().zip(offsets) {
            let entries = section.entries(&offsets);
            let entries = entries.ok_or_else(|| damaged(file, &"its index of ids is none"))?;
            if !entries.is_empty() {
                asked.push((ids, entries));
            }
        }
        let entries: Vec<_> = asked.iter().map(|(_, entries)| entries.clone()).collect();
        let buckets = self.0.files.read(file, &entries).await?;
        let places = asked
            .iter()
            .zip(&buckets)
            .flat_map(|((ids, _), bucket)| table::places(bucket, ids));
        Ok(places.map(|place| section.rows_at(place)).collect())
    }

    /// By the filter of each row group.
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
            let column = id_column(file).ok_or_else(|| damaged(file, &"it has no ids"))?;
            let all_there_are = RecordId(Uuid::nil())..=RecordId(Uuid::max());
            let range = id_range(group, column).unwrap_or(all_there_are);
            let Some(asked) = within(ids, &range) else {
                continue;
            };
            let key = (Arc::clone(&file.place().path), number);
            let filter = match self.0.filters.get(&key).await {
                Some(filter) => filter,
                None => {
                    self.keep(key, self.filter_of_column(file, group, column).await?)
                        .await
                }
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
        let location = location.ok_or_else(|| damaged(file, &"it has no bloom filter"))?;
        let filter = Filter::of_column(&self.read_one(file, location).await?);
        filter.map_err(|error: ParquetError| damaged(file, &error))
    }

    async fn read_one(&self, file: &PieceFile, range: Range<u64>) -> Result<Bytes, StoreError> {
        let parts = self.0.files.read(file, &[range]).await?;
        let part = parts.into_iter().next();
        part.ok_or_else(|| damaged(file, &"a range was not read"))
    }

    async fn keep(&self, key: FilterKey, filter: Filter) -> Arc<Filter> {
        let filter = Arc::new(filter);
        self.0.filters.insert(key, Arc::clone(&filter)).await;
        filter
    }
}

/// The ids in a range by their hashes, and perhaps others; `None` if there are none. Ids made in order of
/// time mostly are not between the least and the greatest of older rows; then no filter is even read.
fn within<'i>(ids: &'i WantedIds, range: &RangeInclusive<RecordId>) -> Option<Cow<'i, AskedIds>> {
    let within = ids.within(range);
    if within.is_empty() {
        None
    } else if within.len() < ids.len() / 2 {
        Some(Cow::Owned(AskedIds::new(within)))
    } else {
        // Where nearly all are, they are hashed and sorted once for all.
        Some(Cow::Borrowed(ids.asked()))
    }
}

fn damaged(file: &PieceFile, detail: &dyn fmt::Display) -> StoreError {
    StoreError::corrupt(format!("object {}: {detail}", file.place().path))
}

fn id_column(file: &PieceFile) -> Option<usize> {
    let columns = file.metadata().file_metadata().schema_descr().columns();
    columns.iter().position(|column| {
        column.name() == ID
            && column.path().parts().len() == 1
            && column.physical_type() == PhysicalType::FIXED_LEN_BYTE_ARRAY
    })
}

/// From the least to the greatest id of a row group, if the file says so.
fn id_range(group: &RowGroupMetaData, column: usize) -> Option<RangeInclusive<RecordId>> {
    let Statistics::FixedLenByteArray(statistics) = group.columns().get(column)?.statistics()? else {
        return None;
    };
    let id = |bytes: Option<&FixedLenByteArray>| bytes.and_then(|bytes| RecordId::from_slice(bytes.data()));
    Some(id(statistics.min_opt())?..=id(statistics.max_opt())?)
}
