//! Whether the store holds the newest manifest of everybody as it was written, and what to do where it does
//! not.
//!
//! Compares what is there with what the catalogue noted. Must not know what a manifest says of its person.

use std::collections::HashMap;

use futures::TryStreamExt as _;

use super::erasure_notes::unheeded_of;
use super::manifest::{Manifest, known_number, write_changed};
use super::manifest_names::{TakenNumbers, manifest_path, parse_manifest_path};
use super::stores::UpkeepStores;
use crate::catalog::estates::KnownManifest;
use crate::catalog::{CatalogError, Sound, Subject};
use crate::model::ids::PersonId;
use crate::store::StoreError;
use crate::store::folder_names::PEOPLE_FOLDER;

/// The newest manifest of a person, held against what the catalogue knows of it.
#[derive(Debug, Default)]
pub struct NewestManifest {
    /// What is wrong with it.
    pub fault: Option<String>,
    /// Why the catalogue is taken to be older than the store. Then nothing may be written from it: that would
    /// put an older state above a newer one.
    pub newer_than_catalogue: Option<String>,
}

/// Describes what is wrong with the newest manifest of a person, and with what the catalogue knows of it.
pub async fn complaints(stores: &UpkeepStores, person: PersonId) -> Result<Vec<String>, StoreError> {
    let newest = newest_manifest(stores, person).await?;
    let Some(fault) = newest.fault else {
        return Ok(newest.newer_than_catalogue.into_iter().collect());
    };
    if let Some(reason) = newest.newer_than_catalogue {
        return Ok(vec![reason, fault]);
    }
    Ok(vec![match stores.catalog.lost_of(person).await {
        Ok(None) => format!("{fault}: `almanac check --repair` writes it anew"),
        Ok(Some(_)) | Err(CatalogError::Corrupt { .. }) => {
            format!("{fault}: it is not written anew while rows of the person are lost or damaged")
        }
        Err(error) => return Err(error.into()),
    }])
}

/// Looks at the newest manifest of a person. A catalogue that was made from manifests notes none until it
/// writes one, and finds nothing wrong.
pub async fn newest_manifest(stores: &UpkeepStores, person: PersonId) -> Result<NewestManifest, StoreError> {
    let taken = TakenNumbers::of(stores.objects(), person).await?;
    let unheeded = unheeded_of(&stores.catalog, stores.objects(), person).await?;
    let unheeded = unheeded.filter(|_| !taken.manifests.is_empty());
    let known = known_number(stores, person).await?;
    let newer_than_catalogue = known.and_then(|known| taken.beyond(known)).or(unheeded);
    let fault = match known {
        Some(known) if known != KnownManifest::NONE.number => {
            let newest = taken.manifests.first().map_or(known, |listed| known.max(*listed));
            fault_of(stores, person, newest).await?
        }
        _ => None,
    };
    Ok(NewestManifest {
        fault,
        newer_than_catalogue,
    })
}

/// Describes what is wrong with the manifest of this number, which should be the newest of its person: all
/// that keeps a catalogue from being made from it.
async fn fault_of(
    stores: &UpkeepStores,
    person: PersonId,
    number: i64,
) -> Result<Option<String>, StoreError> {
    let path = manifest_path(person, number);
    match Manifest::fetch(stores.objects(), &path).await {
        Ok(_) => Ok(None),
        Err(StoreError::Corrupt { what }) => Ok(Some(what)),
        Err(StoreError::Missing { .. }) => {
            let is_lost = is_lost(stores, person, number).await?;
            Ok(is_lost.then(|| format!("manifest {path} is lost")))
        }
        Err(error) => Err(error),
    }
}

/// Whether a manifest that is not in the store should be: no newer one took its place.
async fn is_lost(stores: &UpkeepStores, person: PersonId, number: i64) -> Result<bool, StoreError> {
    let known = stores.catalog.known_manifest(person).await?;
    Ok(known.is_some_and(|known| known.number == number))
}

/// Rewrites the newest manifests that the catalogue knows but the store has lost; returns the people whose
/// manifests were rewritten, and whose damage was passed over.
pub async fn write_lost(stores: &UpkeepStores) -> Result<Sound<PersonId>, StoreError> {
    let mut newest: HashMap<PersonId, i64> = HashMap::new();
    let mut listed = stores.objects().list(PEOPLE_FOLDER)?;
    while let Some(object) = listed.try_next().await? {
        let manifest = parse_manifest_path(&object.path).filter(|_| !object.is_claim());
        if let Some((person, number)) = manifest {
            let found = newest.entry(person).or_insert(number);
            *found = number.max(*found);
        }
    }
    let mut written = Sound::default();
    let mut after = None;
    loop {
        let known = stores.catalog.known_manifests(after).await?;
        written.set_aside.extend(known.set_aside);
        let Some((last, _)) = known.sound.last() else {
            return Ok(written);
        };
        after = Some(*last);
        for (person, number) in known.sound {
            let newest = newest.get(&person).copied();
            if newest.unwrap_or(KnownManifest::NONE.number) >= number {
                continue;
            }
            match write_if_lost(stores, person, number).await {
                Ok(true) => written.sound.push(person),
                Ok(false) => {}
                Err(error) if error.is_damage() => {
                    tracing::error!(%person, %error, "a manifest stays lost; run `almanac check`");
                    written.set_aside.insert(Subject::Person(person));
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// Rewrites the newest manifest of a person, which no list of the store names, if it is lost; returns whether
/// it did.
async fn write_if_lost(stores: &UpkeepStores, person: PersonId, number: i64) -> Result<bool, StoreError> {
    // A list may be behind what is there.
    let path = manifest_path(person, number);
    if stores.objects().version(&path).await?.is_some() || !is_lost(stores, person, number).await? {
        return Ok(false);
    }
    tracing::error!(%path, "a manifest is lost, and is written anew");
    write_changed(stores, person).await
}
