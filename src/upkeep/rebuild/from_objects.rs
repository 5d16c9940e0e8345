//! Makes a partition of an empty catalogue from its objects alone, where there is no manifest.

use std::collections::{BTreeMap, HashSet};

use futures::StreamExt as _;

use super::report::RebuildReport;
use crate::catalog::records::{Bounds, Commit, CommitOutcome, NewPiece, NewPlace, PartitionChange, Stamp};
use crate::model::ids::{PieceId, RecordId};
use crate::store::StoreError;
use crate::store::arrange::KeyColumns;
use crate::store::encoding::LAYOUT_KEY;
use crate::store::files::footer_of;
use crate::store::outline::ObjectPlace;
use crate::store::piece::ObjectName;
use crate::upkeep::sorted_rows::SortedRows;
use crate::upkeep::stores::{PartitionKey, UpkeepStores};

/// Restores a partition from its objects alone.
pub(super) async fn from_objects(
    stores: &UpkeepStores,
    key: &PartitionKey,
    paths: Vec<String>,
    rebuilt: &mut RebuildReport,
) -> Result<(), StoreError> {
    let Some((change, records)) = partition(stores, key, paths, &mut rebuilt.wrong).await? else {
        return Ok(());
    };
    let objects = change.add.len();
    let commit = Commit {
        changes: vec![change],
        ..Commit::default()
    };
    if stores.catalog.commit(commit).await? == CommitOutcome::Done {
        rebuilt.done.push(format!(
            "person {}, {}: {records} records found in {objects} objects; there is no manifest, so older \
             values and deleted records may be among them",
            key.person, key.data_type
        ));
    }
    Ok(())
}

/// The objects of one partition as a change of an empty one, and the number of records in them. Leaves out
/// objects whose rows are all replaced by newer ones, and damaged ones, which are kept.
async fn partition(
    stores: &UpkeepStores,
    key: &PartitionKey,
    paths: Vec<String>,
    wrong: &mut Vec<String>,
) -> Result<Option<(PartitionChange, i64)>, StoreError> {
    let mut pieces: BTreeMap<PieceId, (NewPiece, Vec<RecordId>)> = BTreeMap::new();
    for path in paths {
        match read(stores, &path).await {
            Ok((piece, ids)) => {
                pieces.insert(piece.id, (piece, ids));
            }
            Err(StoreError::Corrupt { what }) => {
                // Rows in it may be sound, or all of them on another disk.
                stores.catalog.keep_objects(std::slice::from_ref(&path)).await?;
                wrong.push(format!("left out: {what}"));
            }
            Err(error) => return Err(error),
        }
    }
    let mut newest = HashSet::new();
    let (mut add, mut dead, mut records) = (Vec::new(), Vec::new(), 0);
    // Ids of pieces grow with time, so the last one comes first here.
    for (id, (piece, ids)) in pieces.into_iter().rev() {
        let replaced: Vec<_> = ids
            .iter()
            .filter(|record| !newest.insert(**record))
            .map(|record| (id, *record))
            .collect();
        if replaced.len() < ids.len() {
            records += (ids.len() - replaced.len()) as i64;
            dead.extend(replaced);
            add.push(piece);
        }
    }
    if add.is_empty() {
        return Ok(None);
    }
    let PartitionKey { person, data_type } = key.clone();
    Ok(Some((
        PartitionChange {
            person,
            data_type,
            expected: Some(Stamp::default()),
            add,
            dead,
            records_delta: records,
            updates: 0,
        },
        records,
    )))
}

/// What the catalogue must know of an object, and the ids of its rows. All rows are read and verified. The
/// footer is taken as it is found, because its checksum was in the catalogue alone: damage to what it says of
/// rows, such as statistics, has a right checksum from then on, and no check finds it.
async fn read(stores: &UpkeepStores, path: &str) -> Result<(NewPiece, Vec<RecordId>), StoreError> {
    let damaged = |what: &str| StoreError::corrupt(format!("object {path} {what}"));
    let name = ObjectName::parse(path).ok_or_else(|| damaged("has no name of an object"))?;
    let mut content = stores.objects().stream(path).await?;
    let (mut checksum, mut bytes) = (crc32fast::Hasher::new(), 0_u64);
    while let Some(part) = content.next().await {
        let part = part?;
        checksum.update(&part);
        bytes += part.len() as u64;
    }
    let footer = footer_of(stores.objects(), path, bytes).await?;
    let place = ObjectPlace::new(path, bytes as i64, footer);
    let file = stores.files.open(&place).await?;
    let layout = file.fact(LAYOUT_KEY).and_then(|layout| layout.parse().ok());
    let mut rows = SortedRows::of_object(&stores.files, &place, Vec::new().into()).await?;
    let mut ids = Vec::new();
    let mut bounds: Option<Bounds> = None;
    while let Some(batch) = rows.batches.next().await {
        let keys = KeyColumns::of(&batch?)?;
        ids.extend((0..keys.len()).map(|row| keys.id(row)));
        bounds = keys
            .bounds()
            .map(|seen| bounds.map_or(seen, |bounds| bounds.union(seen)))
            .or(bounds);
    }
    let piece = NewPiece {
        id: name.piece,
        rows: ids.len() as i64,
        bounds: bounds.ok_or_else(|| damaged("holds no rows"))?,
        layout_version: layout.ok_or_else(|| damaged("does not say which layout it has"))?,
        checksum: checksum.finalize(),
        bytes: bytes as i64,
        place: NewPlace::Object {
            path: path.to_owned(),
            footer,
        },
    };
    Ok((piece, ids))
}
