//! Repair: writes anew what a store has lost or holds damaged, from a catalogue that is whole.
//!
//! The other direction, a catalogue from its store, is *rebuild*.

use std::time::Duration;

use super::identity::{self, ApartError, IDENTITY_OBJECT};
use super::lost_manifests::newest_manifest;
use super::manifest::write_above_damage;
use super::scour::Scouring;
use super::stores::UpkeepStores;
use crate::catalog::CatalogError;
use crate::model::ids::PersonId;
use crate::store::StoreError;

/// What to do about lost rows.
const WAY_OUT: &str = "restore a backup, or give it up with `almanac check --repair --accept-loss`";

/// Writes anew the identity of the store and the newest manifests of people, where they are lost or damaged.
/// Describes each, and what could not be written: that stays as it is, and a check finds it. No manifest is
/// written into a store that is another installation's or may be, such as an empty one: it would hold what is
/// stored of strangers, and no backup of it would be whole any more. A check tells that they are apart.
pub async fn repair(stores: &UpkeepStores) -> Result<Vec<String>, StoreError> {
    let mut done = Vec::new();
    match identity::repair(&stores.catalog, stores.objects()).await {
        Ok(true) => done.push(format!("{IDENTITY_OBJECT} was written anew")),
        Ok(false) => {}
        Err(error) => done.push(format!("{IDENTITY_OBJECT} stays as it is: {error}")),
    }
    let compared = identity::compare(&stores.catalog, stores.objects()).await;
    if let Err(
        ApartError::Different { .. }
        | ApartError::Foreign
        | ApartError::Nameless { .. }
        | ApartError::Unreadable { .. },
    ) = compared
    {
        return Ok(done);
    }
    for person in stores.catalog.people_ids().await? {
        match renew_manifest(stores, person).await {
            Ok(Some(fault)) => done.push(format!("person {person}: {fault}, and was written anew")),
            Ok(None) => {}
            Err(error @ StoreError::Catalog(CatalogError::Unavailable { .. })) => return Err(error),
            Err(error) => done.push(format!("person {person}: no manifest is written anew: {error}")),
        }
        if let Some(lost) = lost_of(stores, person).await? {
            done.push(format!("{lost}: {WAY_OUT}"));
        }
    }
    if let Some(lost) = stores.catalog.damaged_roster().await? {
        done.push(format!("{lost}: {WAY_OUT}"));
    }
    Ok(done)
}

/// Accepts as complete what the catalogue still has: the people of whom anything is left, and, of people with
/// lost rows, the rows that are left. Tells what was given up, and of whom, as soon as it is, since nothing
/// else knows it then, and for whom nothing was.
pub async fn give_up_lost(stores: &UpkeepStores, tell: &impl Fn(String)) -> Result<(), StoreError> {
    match stores.catalog.give_up_lost_people().await {
        Err(CatalogError::Corrupt { what }) => tell(format!("nobody is given up: {what}")),
        given_up => given_up?.into_iter().for_each(tell),
    }
    for person in stores.catalog.people_ids().await? {
        if lost_of(stores, person).await?.is_none() {
            continue;
        }
        match stores.catalog.give_up_lost(person).await {
            Ok(lost) => {
                for what in lost {
                    tell(format!("person {person}: given up: {what}"));
                }
            }
            Err(CatalogError::Erased { .. }) => {}
            Err(CatalogError::Corrupt { what }) => {
                tell(format!("person {person}: nothing is given up: {what}"));
            }
            Err(error) => return Err(error.into()),
        }
    }
    // A row that differs from what was written may be what names them.
    if stores.catalog.damaged_tables().await?.is_empty() {
        remove_bytes_of_nothing(stores, tell).await?;
    }
    Ok(())
}

/// Removes bytes that no row names.
async fn remove_bytes_of_nothing(stores: &UpkeepStores, tell: &impl Fn(String)) -> Result<(), StoreError> {
    let catalog = &stores.catalog;
    if catalog.has_bytes_of_nothing().await? {
        scouring(stores).expect_removal().await?;
        let removed = catalog.remove_bytes_of_nothing().await?;
        tell(format!(
            "given up: bytes of {removed} tail pieces, whose rows were lost, were removed"
        ));
    }
    Ok(())
}

/// Overwrites in the database's own files what was removed as it was given up. If it fails, the next time
/// does it.
pub async fn overwrite_given_up(stores: &UpkeepStores) -> Result<(), CatalogError> {
    scouring(stores).scour_due().await
}

fn scouring(stores: &UpkeepStores) -> Scouring {
    Scouring::of("accept loss", &stores.catalog, Duration::ZERO)
}

/// What is lost of a person. Rows that differ from what was written are not: those may still be restored, and
/// a check tells of them.
async fn lost_of(stores: &UpkeepStores, person: PersonId) -> Result<Option<String>, StoreError> {
    Ok(CatalogError::unless_corrupt(stores.catalog.lost_of(person).await)?.flatten())
}

/// Writes the newest manifest of a person anew if it is lost or damaged; returns a description of what was
/// wrong with it. `None` also where somebody else wrote one meanwhile, and where the catalogue is older than
/// the store: the manifests there may be all that is left of what it lacks.
pub async fn renew_manifest(stores: &UpkeepStores, person: PersonId) -> Result<Option<String>, StoreError> {
    let newest = newest_manifest(stores, person).await?;
    if let Some(reason) = newest.newer_than_catalogue {
        tracing::error!(%person, reason, "no manifest is written anew");
        return Ok(None);
    }
    let Some(fault) = newest.fault else {
        return Ok(None);
    };
    Ok(write_above_damage(stores, person).await?.then_some(fault))
}
