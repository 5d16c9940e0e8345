//! Rebuild: an empty catalogue learns from the objects themselves what they are.
//!
//! For the day on which the catalogue is lost and no copy of it exists. An object says whose rows it holds,
//! and its id says when it was written; where two objects hold the same record, the one written later counts.
//! What was in the catalogue alone is lost: the tail, own types, names, preferences, and which rows were
//! deleted since their object was written.

use std::collections::BTreeMap;

use futures::{StreamExt as _, TryStreamExt as _};

use super::merge::Sorted;
use super::stores::{PartitionKey, UpkeepStores};
use crate::catalog::records::{Bounds, Commit, CommitOutcome, NewPiece, NewPlace, PartitionChange};
use crate::model::ids::{PieceId, RecordId};
use crate::store::StoreError;
use crate::store::arrange::KeyColumns;
use crate::store::encoding::LAYOUT_KEY;
use crate::store::files::{ObjectPlace, footer_of};
use crate::store::piece::{DATA_FOLDER, ObjectName};

/// Registers all objects with a catalogue that knows nobody; returns what was done, in words. A catalogue
/// that knows anybody is left as it is.
pub async fn rebuild(stores: &UpkeepStores) -> Result<Vec<String>, StoreError> {
    let mut done = Vec::new();
    if !stores.catalog.people().await?.is_empty() {
        return Ok(done);
    }
    for (key, names) in objects_by_partition(stores).await? {
        let Some((change, records)) = partition(stores, &key, names, &mut done).await? else {
            continue;
        };
        let objects = change.add.len();
        let commit = Commit {
            changes: vec![change],
            ..Commit::default()
        };
        if stores.catalog.register(commit).await? == CommitOutcome::Done {
            done.push(format!(
                "person {}, {}: {records} records found in {objects} objects",
                key.person, key.data_type
            ));
        }
    }
    Ok(done)
}

async fn objects_by_partition(
    stores: &UpkeepStores,
) -> Result<BTreeMap<PartitionKey, Vec<String>>, StoreError> {
    let mut found: BTreeMap<PartitionKey, Vec<String>> = BTreeMap::new();
    let mut listed = stores.objects().list(DATA_FOLDER)?;
    while let Some(object) = listed.try_next().await? {
        if let Some(ObjectName {
            person, data_type, ..
        }) = ObjectName::parse(&object.path)
        {
            found
                .entry(PartitionKey { person, data_type })
                .or_default()
                .push(object.path);
        }
    }
    Ok(found)
}

/// The objects of one partition as a change of an empty one, and how many records they come to. Objects that
/// nothing newer leaves a row of are left out.
async fn partition(
    stores: &UpkeepStores,
    key: &PartitionKey,
    paths: Vec<String>,
    done: &mut Vec<String>,
) -> Result<Option<(PartitionChange, i64)>, StoreError> {
    let mut pieces: BTreeMap<PieceId, (NewPiece, Vec<RecordId>)> = BTreeMap::new();
    for path in paths {
        match read(stores, &path).await {
            Ok((piece, ids)) => {
                pieces.insert(piece.id, (piece, ids));
            }
            Err(StoreError::Corrupt { what }) => done.push(format!("left out: {what}")),
            Err(error) => return Err(error),
        }
    }
    let mut newest = std::collections::HashSet::new();
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
            expected_version: Some(0),
            add,
            dead,
            records_delta: records,
            updates: 0,
        },
        records,
    )))
}

/// What the catalogue would have to know of an object, and the ids of its rows. Everything in it is read and
/// verified.
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
    let facts = file.metadata().file_metadata().key_value_metadata();
    let layout = facts
        .into_iter()
        .flatten()
        .find(|fact| fact.key == LAYOUT_KEY)
        .and_then(|fact| fact.value.as_deref()?.parse().ok());
    let mut rows = Sorted::of_object(&stores.files, &place, Vec::new().into()).await?;
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
