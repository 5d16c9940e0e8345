//! Purge: removes replaced and deleted records from disk, instead of only hiding them, within a time that the
//! operator sets.
//!
//! Most of them go long before, with flush and compaction. These leave some, because a few dead rows in a
//! large object are cheap. Partitions with dead rows are noticed by looking for them; when their time comes,
//! everything in the partition that has any is rewritten, and older manifests are removed, as their tails
//! hold such rows too. So a partition is rewritten at most once in that time, however much is deleted in it.
//! What is removed from the catalogue for that is overwritten there afterwards, and so is what left it
//! before.

use std::collections::{BTreeSet, HashSet};

use super::choose_objects::Limits;
use super::compact::{RewriteOutcome, leave_dead_rows};
use super::flush::flush;
use super::identity;
use super::manifest::replace_manifests;
use super::settings::UpkeepSettings;
use super::stores::{PartitionKey, UpkeepStores};
use crate::catalog::records::{Piece, Place};
use crate::catalog::{NoticedDeletion, Subject};
use crate::model::ids::{PersonId, PieceId};
use crate::model::time::Instant;
use crate::store::StoreError;

/// How often a partition is tried that others keep changing.
const ATTEMPTS: usize = 8;
/// One in this many parts of the time is reserved for the work itself, and for delays.
const RESERVE: u32 = 10;

/// Partitions noticed before this moment must be rewritten now: then there is still time for readers of the
/// replaced objects, and these are gone when the operator says.
#[must_use]
pub fn due_before(settings: &UpkeepSettings, now: Instant) -> Instant {
    let reserved = settings.purge_deleted_after / RESERVE;
    let age = settings
        .purge_deleted_after
        .saturating_sub(reserved)
        .saturating_sub(settings.grace_period);
    now.before(age)
}

/// Rewrites partitions of one person without their dead rows, and then the person's manifests. Partitions
/// that others keep changing stay noticed. So do those that cannot be rewritten, and keep nothing of the
/// others on disk; what was wrong with the first of them is returned at the end, damage only if that is all.
/// Ends early where the store does not answer.
pub async fn purge_deleted(stores: &UpkeepStores, deletions: &[NoticedDeletion]) -> Result<(), StoreError> {
    let mut done = Vec::with_capacity(deletions.len());
    let mut failed: Option<StoreError> = None;
    for deletion in deletions {
        match purge_partition(stores, deletion).await {
            Ok(true) => done.push(deletion),
            Ok(false) => {}
            // Without the catalogue there is nothing to go on with.
            Err(error @ StoreError::Catalog(_)) if !error.is_damage() => return Err(error),
            Err(error) if error.may_pass() => {
                identity::answers(stores.objects()).await?;
                failed = failed.filter(|first| !first.is_damage()).or(Some(error));
            }
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    if let Some(first) = done.first()
        && replace_manifests(stores, first.person).await?
    {
        stores.catalog.expect_older_manifests(first.person).await?;
    }
    for deletion in done {
        stores.catalog.forget_deletion(deletion).await?;
    }
    failed.map_or(Ok(()), Err)
}

/// Removes the dead rows of a partition; returns whether none is left of those that were there before.
async fn purge_partition(stores: &UpkeepStores, deletion: &NoticedDeletion) -> Result<bool, StoreError> {
    let key = PartitionKey {
        person: deletion.person,
        data_type: deletion.data_type.clone(),
    };
    let before = tail_with_dead_rows(stores, &key).await?;
    flush(stores, &key).await?;
    let limits = Limits {
        // Objects are read one at a time, and there is no other way to remove their rows.
        memory: usize::MAX,
        ..Limits::default()
    };
    let mut overtaken = 0;
    while overtaken < ATTEMPTS {
        match leave_dead_rows(stores, &key, &limits).await? {
            RewriteOutcome::Nothing => {
                let now = tail_with_dead_rows(stores, &key).await?;
                return Ok(before.is_disjoint(&now));
            }
            RewriteOutcome::Done => {}
            RewriteOutcome::Overtaken => overtaken += 1,
        }
    }
    Ok(false)
}

/// The pieces of a partition's tail that have dead rows.
async fn tail_with_dead_rows(
    stores: &UpkeepStores,
    key: &PartitionKey,
) -> Result<HashSet<PieceId>, StoreError> {
    let pieces = stores.catalog.pieces_of(key.person, &key.data_type).await?;
    let is_of_tail = |piece: &&Piece| matches!(piece.place, Place::Tail { .. });
    let with_dead_rows = pieces
        .iter()
        .filter(is_of_tail)
        .filter(|piece| !piece.dead.is_empty());
    Ok(with_dead_rows.map(|piece| piece.id).collect())
}

/// Whether manifests are to be replaced that have been outdated since before `moment`. Their people have
/// changed something since, and may have removed what no other notice tells of, such as a tag.
pub async fn has_older_manifests(stores: &UpkeepStores, moment: Instant) -> Result<bool, StoreError> {
    let waiting = stores.catalog.people_needing_manifest(Some(moment), None).await?;
    Ok(!waiting.sound.is_empty())
}

/// Writes new manifests and removes all older ones, for people who have had outdated manifests since before
/// `moment`. `None`: only for those whose manifests must go at once. Whoever `passes_over` says so of is left
/// out. `judge` gets each outcome; if it returns an error, the others have to wait. Returns whose notices are
/// damaged.
pub async fn forget_older_manifests(
    stores: &UpkeepStores,
    moment: Option<Instant>,
    passes_over: impl Fn(PersonId) -> bool + Send,
    mut judge: impl FnMut(PersonId, Result<(), StoreError>) -> Result<(), StoreError> + Send,
) -> Result<BTreeSet<Subject>, StoreError> {
    let mut set_aside = BTreeSet::new();
    let mut after = None;
    loop {
        let waiting = stores.catalog.people_needing_manifest(moment, after).await?;
        set_aside.extend(waiting.set_aside);
        let Some(last) = waiting.sound.last() else {
            return Ok(set_aside);
        };
        after = Some(last.person);
        for deletion in waiting.sound {
            if passes_over(deletion.person) {
                continue;
            }
            let outcome = replace_noticed_manifests(stores, &deletion).await;
            judge(deletion.person, outcome)?;
        }
    }
}

async fn replace_noticed_manifests(
    stores: &UpkeepStores,
    deletion: &NoticedDeletion,
) -> Result<(), StoreError> {
    if replace_manifests(stores, deletion.person).await? {
        // Whoever is writing an older one gives up or removes it, or dies before that. Then it is removed by
        // one of the next rounds.
        stores.catalog.expect_older_manifests(deletion.person).await?;
    } else {
        stores.catalog.forget_deletion(deletion).await?;
    }
    Ok(())
}
