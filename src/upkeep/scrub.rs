//! Scrub: goes through all objects, slowly, so that damage is found while other copies of the data still
//! exist, and then through the newest manifests of all people.
//!
//! What it finds is logged, counted and noted in the catalogue, where `almanac check` shows it. Readers skip
//! nothing, and nothing is deleted because of it. Manifests are written anew instead, from the catalogue.

use std::collections::VecDeque;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;

use super::object_check::examine;
use super::repair::renew_manifest;
use super::stores::{PartitionKey, UpkeepStores};
use crate::catalog::dated_ahead::is_ahead;
use crate::catalog::records::{Footer, Piece, Place};
use crate::catalog::{CatalogError, ObjectCursor, SCRUB_FACTS};
use crate::model::ids::PersonId;
use crate::model::time::Instant;
use crate::store::StoreError;

/// The pause between two steps.
pub const STEP_PAUSE: Duration = Duration::from_secs(5);
/// About how many bytes of objects one step checks: 6 MB a second, half a terabyte a day.
const STEP_BYTES: i64 = 32 << 20;
/// How many people's manifests one step checks.
const STEP_MANIFESTS: usize = 32;
/// All objects are checked once in this time.
const ROUND_LENGTH: Duration = Duration::from_hours(168);

/// The facts by which the catalogue keeps the progress of the round, and the end of the last one. Where these
/// are damaged, a round begins anew at worst.
const PLACE: &str = "place";
const MANIFESTS: &str = "manifests";
const ROUND_END: &str = "ended";

/// The progress of this node, which holds only until another node goes on from the same place.
#[derive(Debug, Default)]
pub struct Scrub {
    /// The object before the first that is waiting; `None` where a round begins.
    after: Option<ObjectCursor>,
    waiting: VecDeque<ObjectCursor>,
}

impl Scrub {
    /// Whether a round is under way, or it is time for another one.
    pub async fn is_due(stores: &UpkeepStores) -> Result<bool, StoreError> {
        Ok(place(stores).await?.is_some() || is_time(stores).await?)
    }

    /// Checks the next few objects after those that any node has checked.
    pub async fn step(&mut self, stores: &UpkeepStores, corrupt: &Counter) -> Result<(), StoreError> {
        let saved = place(stores).await?;
        if saved.is_none() || saved != self.after {
            self.waiting.clear();
            self.after.clone_from(&saved);
        }
        let mut looked_at = 0;
        let mut failed = None;
        let mut is_through = false;
        while looked_at < STEP_BYTES {
            if self.waiting.is_empty() {
                if self.after.is_none() && !is_time(stores).await? {
                    break;
                }
                self.waiting = stores.catalog.object_paths(self.after.as_ref()).await?.into();
            }
            let Some(cursor) = self.waiting.front() else {
                is_through = true;
                break;
            };
            match look_at(stores, cursor, corrupt).await {
                Ok(bytes) => looked_at += bytes,
                Err(error @ StoreError::Catalog(CatalogError::Unavailable { .. })) => return Err(error),
                // One unreadable object does not keep the others from being checked.
                Err(error) => {
                    looked_at += STEP_BYTES / 8;
                    failed = failed.or(Some(error));
                }
            }
            self.after = self.waiting.pop_front();
        }
        // The next step may be another node's.
        if let Some(last) = self.after.as_ref().filter(|last| Some(*last) != saved.as_ref()) {
            stores.catalog.set_fact(&fact(PLACE), &last.written()).await?;
        }
        if is_through && look_at_manifests(stores, corrupt).await? {
            self.after = None;
            end_round(stores).await?;
        }
        failed.map_or(Ok(()), Err)
    }
}

async fn end_round(stores: &UpkeepStores) -> Result<(), StoreError> {
    stores.catalog.set_fact(&fact(PLACE), "").await?;
    let now = stores.catalog.now().await?;
    Ok(stores
        .catalog
        .set_fact(&fact(ROUND_END), &now.micros().to_string())
        .await?)
}

/// The full name of a fact.
fn fact(name: &str) -> String {
    format!("{SCRUB_FACTS}{name}")
}

/// Where the round that is under way has got to.
async fn place(stores: &UpkeepStores) -> Result<Option<ObjectCursor>, StoreError> {
    let place = stores.catalog.sound_fact(&fact(PLACE)).await?;
    Ok(place.and_then(|place| ObjectCursor::parse(&place)))
}

/// Whether the last round ended long enough ago, or by a clock that was ahead and was put right since: nobody
/// knows when that was.
async fn is_time(stores: &UpkeepStores) -> Result<bool, StoreError> {
    let ended = stores.catalog.sound_fact(&fact(ROUND_END)).await?;
    let Some(ended) = ended.and_then(|ended| ended.parse().ok()) else {
        return Ok(true);
    };
    let (ended, now) = (Instant::from_micros(ended), stores.catalog.now().await?);
    Ok(is_ahead(ended, now) || ended <= now.before(ROUND_LENGTH))
}

/// Checks one object, if a piece still points to it; returns its length.
async fn look_at(stores: &UpkeepStores, cursor: &ObjectCursor, corrupt: &Counter) -> Result<i64, StoreError> {
    let key = PartitionKey {
        person: cursor.person,
        data_type: cursor.data_type.clone(),
    };
    let Some((piece, footer)) = find(stores, &key, &cursor.path).await? else {
        return Ok(0);
    };
    match examine(stores, &key, &piece, &cursor.path, footer).await {
        Ok(_) => {}
        Err(StoreError::Corrupt { what }) => {
            // It may have been replaced and collected while it was read.
            if find(stores, &key, &cursor.path).await?.is_some() {
                corrupt.inc();
                tracing::error!(
                    path = cursor.path,
                    what,
                    "an object is damaged; run `almanac check`"
                );
                stores.catalog.note_damage(&cursor.path, &what).await?;
            }
        }
        Err(error) => return Err(error),
    }
    Ok(piece.bytes)
}

/// Checks the newest manifests of the next few people. Returns whether this round has now checked those of
/// everybody.
async fn look_at_manifests(stores: &UpkeepStores, corrupt: &Counter) -> Result<bool, StoreError> {
    let saved = stores.catalog.sound_fact(&fact(MANIFESTS)).await?;
    let after: Option<PersonId> = saved.as_deref().and_then(|saved| saved.parse().ok());
    let people = stores.catalog.people_ids().await?;
    let mut waiting = people
        .into_iter()
        .filter(|person| after.is_none_or(|after| *person > after));
    let mut place = String::new();
    let mut failed = None;
    for person in waiting.by_ref().take(STEP_MANIFESTS) {
        place = person.to_string();
        match renew_manifest(stores, person).await {
            Ok(None) => {}
            Ok(Some(fault)) => {
                corrupt.inc();
                tracing::error!(%person, fault, "a manifest was damaged, and is written anew");
            }
            Err(error @ StoreError::Catalog(CatalogError::Unavailable { .. })) => return Err(error),
            // The next step goes on behind this person.
            Err(error) => {
                failed = Some(error);
                break;
            }
        }
    }
    let is_through = failed.is_none() && waiting.next().is_none();
    if is_through {
        place.clear();
    }
    if saved.as_ref() != Some(&place) {
        stores.catalog.set_fact(&fact(MANIFESTS), &place).await?;
    }
    failed.map_or(Ok(is_through), Err)
}

async fn find(
    stores: &UpkeepStores,
    key: &PartitionKey,
    path: &str,
) -> Result<Option<(Piece, Footer)>, StoreError> {
    let pieces = stores.catalog.pieces_of(key.person, &key.data_type).await?;
    Ok(pieces.into_iter().find_map(|piece| match &piece.place {
        Place::Object { path: found, footer } if found == path => Some((piece.clone(), *footer)),
        _ => None,
    }))
}
