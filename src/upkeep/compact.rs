//! Compact: several objects of one partition and year become one, and dead rows are left behind.
//!
//! Objects are merged with others of about their size, so that a row is rewritten a handful of times in its life, however many come after it.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::{DateTime, Datelike as _};

use super::merge::{Merge, Sorted};
use super::stores::{Input, PartitionKey, UpkeepStores};
use crate::catalog::records::{CommitOutcome, Footer, NewPiece, Piece, Place};
use crate::store::StoreError;
use crate::store::files::ObjectPlace;
use crate::store::piece::{PieceWriter, Target};

/// So many objects of a size are merged.
pub const FEWEST_OBJECTS: usize = 4;
/// Objects of one size: the largest has up to so many times the bytes of the smallest.
const SIZE_FACTOR: u64 = 4;
/// Below this size all objects are alike: opening them costs more than reading them.
const SMALL_BYTES: u64 = 64 << 10;
/// An object with a greater share of dead rows is rewritten by itself: one in so many.
const DEAD_SHARE: i64 = 5;

/// How much one compaction takes on.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Objects read at once; each needs memory for a row group.
    pub inputs: usize,
    /// An object does not grow beyond these, so that no compaction takes longer than minutes.
    pub bytes: i64,
    pub rows: i64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            inputs: 32,
            bytes: 512 << 20,
            rows: 16_000_000,
        }
    }
}

/// Merges one group of objects of a partition, the smallest first. `false` when there was nothing to do, or when others changed the partition meanwhile.
pub async fn compact(stores: &UpkeepStores, key: &PartitionKey, limits: &Limits) -> Result<bool, StoreError> {
    // The tail's rows are not wanted, so all of them count as held.
    let mut partitions = stores
        .catalog
        .snapshot(key.person, std::slice::from_ref(&key.data_type), &|_| true)
        .await?;
    let Some(partition) = partitions.pop() else { return Ok(false) };
    let Some(group) = next_group(&partition.pieces, limits) else {
        return Ok(false);
    };
    let output = rewrite(stores, key, &group).await?;
    let inputs: Vec<Input> = group
        .iter()
        .map(|object| Input {
            piece: object.piece.id,
            dead: Arc::clone(&object.piece.dead),
        })
        .collect();
    Ok(stores.replace(key, &inputs, output).await? == CommitOutcome::Done)
}

/// A piece that is an object.
#[derive(Clone, Copy, Debug)]
struct Object<'p> {
    piece: &'p Piece,
    path: &'p str,
    footer: Footer,
}

/// Writes the living rows of some objects as one.
async fn rewrite(stores: &UpkeepStores, key: &PartitionKey, group: &[Object<'_>]) -> Result<Vec<NewPiece>, StoreError> {
    let mut sources = Vec::with_capacity(group.len());
    for object in group {
        let place = ObjectPlace::new(object.path, object.piece.bytes, object.footer);
        sources.push(Sorted::of_object(&stores.files, &place, Arc::clone(&object.piece.dead)).await?);
    }
    let mut merge = Merge::begin(sources).await?;
    let target = Target {
        person: key.person,
        data_type: key.data_type.clone(),
        layout_version: group.iter().map(|object| object.piece.layout_version).max().unwrap_or(0),
    };
    let mut writer = PieceWriter::new(stores.objects(), stores.ids.as_ref(), target, Arc::clone(merge.schema()));
    while let Some(batch) = merge.next().await? {
        writer.push(&batch).await?;
    }
    let expected: i64 = group.iter().map(|object| object.piece.rows).sum();
    if merge.read() != expected {
        return Err(StoreError::corrupt(format!(
            "objects of {} hold {} rows, not {expected}",
            key.data_type,
            merge.read()
        )));
    }
    writer.finish().await
}

/// The objects to merge next.
fn next_group<'p>(pieces: &'p [Piece], limits: &Limits) -> Option<Vec<Object<'p>>> {
    let mut alike: BTreeMap<(u32, i32), Vec<Object<'p>>> = BTreeMap::new();
    let mut wasteful = None;
    for piece in pieces {
        let Place::Object { path, footer } = &piece.place else { continue };
        let object = Object {
            piece,
            path,
            footer: *footer,
        };
        if piece.dead.len() as i64 * DEAD_SHARE > piece.rows {
            wasteful = wasteful.or(Some(object));
        }
        if let Some(year) = year_of(piece) {
            alike.entry((size_of(piece), year)).or_default().push(object);
        }
    }
    // Small sizes come first in the order of the map.
    alike
        .into_values()
        .find_map(|objects| as_many_as_fit(objects, limits))
        .or_else(|| wasteful.map(|object| vec![object]))
}

/// Objects of about one size have the same number.
fn size_of(piece: &Piece) -> u32 {
    let bytes = piece.bytes.max(1).cast_unsigned();
    (bytes / SMALL_BYTES).max(1).ilog(SIZE_FACTOR)
}

/// The year that all rows of a piece begin in.
fn year_of(piece: &Piece) -> Option<i32> {
    let year = |micros: i64| DateTime::from_timestamp_micros(micros).map(|moment| moment.year());
    let (first, last) = (year(piece.bounds.min_start.micros())?, year(piece.bounds.max_start.micros())?);
    (first == last).then_some(first)
}

/// Neighbours in time, if there are enough that fit into one object.
fn as_many_as_fit<'p>(mut objects: Vec<Object<'p>>, limits: &Limits) -> Option<Vec<Object<'p>>> {
    objects.sort_by_key(|object| (object.piece.bounds.min_start, object.piece.id));
    let (mut bytes, mut rows) = (0, 0);
    let fits = |object: &Object<'_>| {
        bytes += object.piece.bytes;
        rows += object.piece.rows;
        bytes <= limits.bytes && rows <= limits.rows
    };
    let group: Vec<Object<'p>> = objects.into_iter().take(limits.inputs).take_while(fits).collect();
    (group.len() >= FEWEST_OBJECTS).then_some(group)
}
