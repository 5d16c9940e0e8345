//! Collect: removes what nothing refers to any more.
//!
//! An object may be removed when it was retired a grace period ago, because by then nobody reads it. An
//! object that no piece points to and nobody retired is what an interrupted write left behind, or what a
//! running write is about to commit. It is removed when it is older than any write can be: the catalogue
//! refuses to point to objects that old.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use futures::TryStreamExt as _;

use super::stores::{PartitionKey, UpkeepStores};
use crate::catalog::records::WRITE_LIMIT;
use crate::model::ids::PieceId;
use crate::store::StoreError;
use crate::store::piece::{DATA_FOLDER, ObjectName};

/// The age at which an object that nobody points to is removed: longer than any write, by more than the
/// clocks of nodes and stores differ.
pub const ORPHAN_AGE: Duration = WRITE_LIMIT.saturating_add(Duration::from_hours(1));
/// How long the repetition of a request is recognised.
pub const RECEIPT_AGE: Duration = Duration::from_hours(168);
/// Paths looked at together.
const PATHS_AT_ONCE: usize = 1_000;

/// Removes objects that were retired at least `grace` ago; returns how many.
pub async fn remove_retired(stores: &UpkeepStores, grace: Duration) -> Result<usize, StoreError> {
    let mut removed = 0;
    loop {
        let retired = stores.catalog.retired_objects(stores.ago(grace)).await?;
        if retired.is_empty() {
            return Ok(removed);
        }
        let unreferenced = unreferenced(stores, &retired).await?;
        for path in &unreferenced {
            stores.objects().delete(path).await?;
        }
        stores.catalog.forget_objects(&retired).await?;
        for path in &unreferenced {
            stores.catalog.forget_damage(path).await?;
        }
        removed += unreferenced.len();
    }
}

/// Removes objects that no piece points to and that are older than `ORPHAN_AGE`; returns how many. Files that
/// are no objects of ours are left alone.
pub async fn remove_orphans(stores: &UpkeepStores) -> Result<usize, StoreError> {
    let limit = stores.ago(ORPHAN_AGE);
    let mut listed = stores.objects().list(DATA_FOLDER)?;
    let mut removed = 0;
    let mut old = Vec::new();
    loop {
        let object = match listed.try_next().await {
            // Somebody removed it since it was listed.
            Err(StoreError::Missing { .. }) => continue,
            object => object?,
        };
        let is_end = object.is_none();
        old.extend(
            object
                .filter(|object| object.modified_at < limit)
                .map(|object| object.path),
        );
        if old.len() >= PATHS_AT_ONCE || is_end {
            for orphan in unreferenced(stores, &std::mem::take(&mut old)).await? {
                stores.objects().delete(&orphan).await?;
                removed += 1;
            }
        }
        if is_end {
            return Ok(removed);
        }
    }
}

/// Removes what interrupted uploads left in the store, and receipts that are too old to be asked for.
pub async fn remove_remains(stores: &UpkeepStores) -> Result<(), StoreError> {
    stores.objects().clear_interrupted_uploads(ORPHAN_AGE).await?;
    stores.catalog.forget_uploads(stores.ago(RECEIPT_AGE)).await?;
    Ok(())
}

/// Those of `paths` that no piece points to.
async fn unreferenced(stores: &UpkeepStores, paths: &[String]) -> Result<Vec<String>, StoreError> {
    let mut by_partition: HashMap<PartitionKey, Vec<(PieceId, &String)>> = HashMap::new();
    for path in paths {
        if let Some(ObjectName {
            person,
            data_type,
            piece,
            ..
        }) = ObjectName::parse(path)
        {
            by_partition
                .entry(PartitionKey { person, data_type })
                .or_default()
                .push((piece, path));
        }
    }
    let mut unreferenced = Vec::new();
    for (key, named) in by_partition {
        let partitions = stores
            .catalog
            .snapshot(key.person, std::slice::from_ref(&key.data_type), &|_| true)
            .await?;
        let live: HashSet<PieceId> = partitions
            .iter()
            .flat_map(|partition| &partition.pieces)
            .map(|piece| piece.id)
            .collect();
        unreferenced.extend(
            named
                .into_iter()
                .filter(|(piece, _)| !live.contains(piece))
                .map(|(_, path)| path.clone()),
        );
    }
    unreferenced.sort_unstable();
    Ok(unreferenced)
}
