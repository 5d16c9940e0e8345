//! Compact: merges several objects of one partition and year into one, and drops dead rows. Which ones, is
//! decided elsewhere (`choose_objects`).

use std::sync::Arc;

use super::choose_objects::{Limits, Object, next_group};
use super::merge_pieces::Merge;
use super::sorted_rows::SortedRows;
use super::stores::{Input, PartitionKey, UpkeepStores};
use crate::catalog::records::{CommitOutcome, NewPiece, Piece};
use crate::store::StoreError;
use crate::store::outline::ObjectPlace;
use crate::store::piece::{PieceWriter, Target};

/// Merges one group of objects of a partition, the smallest first.
pub(super) async fn compact(
    stores: &UpkeepStores,
    key: &PartitionKey,
    pieces: &[Piece],
    limits: &Limits,
) -> Result<RewriteOutcome, StoreError> {
    let Some(group) = next_group(pieces, limits) else {
        return Ok(RewriteOutcome::Nothing);
    };
    merge_group(stores, key, group, limits, |_| true).await
}

/// The result of an attempt to rewrite objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RewriteOutcome {
    Done,
    /// Others changed the partition meanwhile.
    Overtaken,
    /// There was nothing to do.
    Nothing,
}

/// Rewrites one object of a partition that has dead rows, however few, without them.
pub async fn leave_dead_rows(
    stores: &UpkeepStores,
    key: &PartitionKey,
    limits: &Limits,
) -> Result<RewriteOutcome, StoreError> {
    let pieces = stores.catalog.pieces_of(key.person, &key.data_type).await?;
    let mut wasteful = pieces.iter().filter(|piece| !piece.dead.is_empty());
    match wasteful.find_map(Object::of) {
        Some(object) => merge_group(stores, key, vec![object], limits, |_| true).await,
        None => Ok(RewriteOutcome::Nothing),
    }
}

/// Merges as many objects of a group as fit into memory side by side, if that is worth it.
pub(super) async fn merge_group(
    stores: &UpkeepStores,
    key: &PartitionKey,
    mut group: Vec<Object<'_>>,
    limits: &Limits,
    are_worth_it: impl Fn(&[Object<'_>]) -> bool,
) -> Result<RewriteOutcome, StoreError> {
    let is_one = group.len() == 1;
    let sources = opened(stores, &mut group, limits).await?;
    if (group.len() == 1 && !is_one) || !are_worth_it(&group) {
        // Rows so long that no two of them can be held at once are better left alone.
        return Ok(RewriteOutcome::Nothing);
    }
    let output = rewrite(stores, key, &group, sources).await?;
    let inputs: Vec<Input> = group.iter().map(|object| Input::of(object.piece)).collect();
    Ok(match stores.replace(key, &inputs, output).await? {
        CommitOutcome::Done => {
            let replaced = group.iter().map(|object| Arc::from(object.path));
            stores.files.forget(&replaced.collect());
            RewriteOutcome::Done
        }
        CommitOutcome::Stale => RewriteOutcome::Overtaken,
    })
}

/// The rows of a group, which is reduced to the objects that fit into memory side by side.
async fn opened(
    stores: &UpkeepStores,
    group: &mut Vec<Object<'_>>,
    limits: &Limits,
) -> Result<Vec<SortedRows>, StoreError> {
    let mut sources = Vec::with_capacity(group.len());
    let (mut batches, mut memory) = (0_usize, 0_usize);
    for object in group.iter() {
        let place = ObjectPlace::new(object.path, object.piece.bytes, object.footer);
        let source = SortedRows::of_object(&stores.files, &place, Arc::clone(&object.piece.dead)).await?;
        batches = batches.saturating_add(source.batch_memory);
        memory = memory.saturating_add(source.memory);
        let fits = match sources.len() {
            // One by itself must always be possible: there is no other way to remove its dead rows.
            0 => true,
            // Objects with long rows take much memory to fetch. Two of them are merged all the same, or their
            // number would only grow.
            1 => batches <= limits.memory,
            _ => memory <= limits.memory,
        };
        if !fits {
            break;
        }
        sources.push(source);
    }
    group.truncate(sources.len());
    Ok(sources)
}

/// Writes the live rows of some objects as one.
async fn rewrite(
    stores: &UpkeepStores,
    key: &PartitionKey,
    group: &[Object<'_>],
    sources: Vec<SortedRows>,
) -> Result<Vec<NewPiece>, StoreError> {
    let mut merge = Merge::begin(sources).await?;
    let target = Target {
        person: key.person,
        data_type: key.data_type.clone(),
        layout_version: group
            .iter()
            .map(|object| object.piece.layout_version)
            .max()
            .unwrap_or(0),
    };
    let mut writer = PieceWriter::new(
        stores.objects(),
        stores.ids.as_ref(),
        target,
        Arc::clone(merge.schema()),
    )
    .keeping_rollups();
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
