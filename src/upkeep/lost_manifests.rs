//! Whether the store holds the newest manifest of everybody as it was written, and what to do where it does
//! not.
//!
//! Compares what is there with what the catalogue noted. Must not know what a manifest says.

use std::collections::HashMap;

use futures::TryStreamExt as _;

use super::manifest::{unwritable, verify, write_changed};
use super::manifest_names::{PEOPLE_FOLDER, TakenNumbers, manifest_path, parse_manifest_path};
use super::stores::UpkeepStores;
use crate::catalog::estates::KnownManifest;
use crate::model::ids::PersonId;
use crate::store::StoreError;

/// Describes what is wrong with the newest manifest of a person, and with what the catalogue knows of it.
pub async fn complaints(stores: &UpkeepStores, person: PersonId) -> Result<Vec<String>, StoreError> {
    let taken = TakenNumbers::of(stores.objects(), person).await?;
    // A catalogue that was made from manifests knows of none until it writes one.
    let Some(KnownManifest { number: known, .. }) = stores.catalog.known_manifest(person).await? else {
        return Ok(Vec::new());
    };
    let newest = taken.manifests.first().map_or(known, |listed| known.max(*listed));
    let mut complaints = Vec::new();
    // Some may have been written, but not noted, when their processes ended, and numbers may have been
    // claimed in vain. But what is known stays at least until a later one is noted.
    if newest.saturating_sub(known) > 1 && !taken.manifests.contains(&known) {
        complaints.push(format!(
            "the store has manifests up to {newest}, the catalogue knows of {known}: it is older than the \
             store, and what was written between them is lost"
        ));
    }
    if let Some(fault) = fault_of(stores, person, newest).await? {
        complaints.push(format!("{fault}: `almanac check --repair` writes it anew"));
    }
    Ok(complaints)
}

/// Describes what is wrong with the manifest of this number, which should be the newest of its person.
pub async fn fault_of(
    stores: &UpkeepStores,
    person: PersonId,
    number: i64,
) -> Result<Option<String>, StoreError> {
    let path = manifest_path(person, number);
    let is_whole = match stores.objects().get(&path).await {
        Err(StoreError::Missing { .. }) => {
            let is_lost = is_lost(stores, person, number).await?;
            return Ok(is_lost.then(|| format!("manifest {path} is lost")));
        }
        Err(StoreError::Corrupt { .. }) => false,
        Err(error) => return Err(error),
        Ok(content) => {
            let verified = tokio::task::spawn_blocking(move || verify(&content)).await;
            verified.map_err(unwritable)?.is_some()
        }
    };
    Ok((!is_whole).then(|| format!("manifest {path} differs from what was written")))
}

/// Whether a manifest that is not in the store should be: no newer one took its place.
async fn is_lost(stores: &UpkeepStores, person: PersonId, number: i64) -> Result<bool, StoreError> {
    let known = stores.catalog.known_manifest(person).await?;
    Ok(known.is_some_and(|known| known.number == number))
}

/// Rewrites the newest manifests that the catalogue knows but the store has lost; returns how many.
pub async fn write_lost(stores: &UpkeepStores) -> Result<usize, StoreError> {
    let mut newest: HashMap<PersonId, i64> = HashMap::new();
    let mut listed = stores.objects().list(PEOPLE_FOLDER)?;
    while let Some(object) = listed.try_next().await? {
        let manifest = parse_manifest_path(&object.path).filter(|_| !object.is_claim());
        if let Some((person, number)) = manifest {
            let found = newest.entry(person).or_insert(number);
            *found = number.max(*found);
        }
    }
    let mut written = 0;
    let mut after = None;
    loop {
        let known = stores.catalog.known_manifests(after).await?;
        let Some((last, _)) = known.last() else {
            return Ok(written);
        };
        after = Some(*last);
        for (person, number) in known {
            if newest.get(&person).is_some_and(|newest| *newest >= number) {
                continue;
            }
            // A list may be behind what is there.
            let path = manifest_path(person, number);
            if stores.objects().version(&path).await?.is_none() && is_lost(stores, person, number).await? {
                tracing::error!(%path, "a manifest is lost, and is written anew");
                written += usize::from(write_changed(stores, person).await?);
            }
        }
    }
}
