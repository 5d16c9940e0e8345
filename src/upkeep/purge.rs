//! Deleted: what was replaced or deleted is gone from disk within a time that the operator sets, not only
//! hidden.
//!
//! Most of it goes long before, with flush and compaction. What these leave, because a few dead rows in a
//! large object are cheap, is noticed by looking for partitions with dead rows; when its time comes,
//! everything in the partition that holds any is written anew, and manifests from before are removed, as
//! their tails hold such rows too. So a partition is rewritten at most once in that time, however much is
//! deleted in it.

use super::compact::{Limits, Rewritten, leave_dead_rows};
use super::flush::flush;
use super::manifest::replace_manifests;
use super::settings::UpkeepSettings;
use super::stores::{PartitionKey, UpkeepStores};
use crate::catalog::NoticedDeletion;
use crate::model::ids::PersonId;
use crate::model::time::Instant;
use crate::store::StoreError;

/// Looks at a partition that others keep changing.
const ATTEMPTS: usize = 8;
/// The part of the time that is left for the work itself, and for what comes in the way of it: one in so
/// many.
const RESERVE: u32 = 10;

/// Partitions that were noticed before this moment are to be written anew by now: then replaced objects have
/// the time that readers of theirs are given, and are gone when the operator says.
#[must_use]
pub fn due_before(settings: &UpkeepSettings, now: Instant) -> Instant {
    let reserved = settings.purge_deleted_after / RESERVE;
    let age = settings
        .purge_deleted_after
        .saturating_sub(reserved)
        .saturating_sub(settings.grace_period);
    now.before(age)
}

/// Writes partitions of one person anew without their dead rows, and then what is written down of the person.
/// Partitions that others keep changing stay noticed.
pub async fn purge_deleted(stores: &UpkeepStores, deletions: &[NoticedDeletion]) -> Result<(), StoreError> {
    let mut done = Vec::with_capacity(deletions.len());
    for deletion in deletions {
        if purge_partition(stores, deletion).await? {
            done.push(deletion);
        }
    }
    if let Some(first) = done.first() {
        replace_manifests(stores, first.person).await?;
    }
    for deletion in done {
        stores.catalog.forget_deletion(deletion).await?;
    }
    Ok(())
}

/// Whether nothing dead is left in a partition.
async fn purge_partition(stores: &UpkeepStores, deletion: &NoticedDeletion) -> Result<bool, StoreError> {
    let key = PartitionKey {
        person: deletion.person,
        data_type: deletion.data_type.clone(),
    };
    flush(stores, &key).await?;
    let limits = Limits {
        // One object is read at a time, and there is no other way to be rid of its rows.
        memory: usize::MAX,
        ..Limits::default()
    };
    let mut overtaken = 0;
    while overtaken < ATTEMPTS {
        match leave_dead_rows(stores, &key, &limits).await? {
            Rewritten::Nothing => return Ok(true),
            Rewritten::Done => {}
            Rewritten::Overtaken => overtaken += 1,
        }
    }
    Ok(false)
}

/// Writes people down anew, and removes what was written down before: of those of whom there have been older
/// manifests since before `moment`. `None`: only of those of whom they are to go at once. What becomes of
/// each is for `judge` to hear; where it answers with an error, the others have to wait.
pub async fn forget_older_manifests(
    stores: &UpkeepStores,
    moment: Option<Instant>,
    mut judge: impl FnMut(PersonId, Result<(), StoreError>) -> Result<(), StoreError> + Send,
) -> Result<(), StoreError> {
    let mut after = None;
    loop {
        let waiting = stores.catalog.people_needing_manifest(moment, after).await?;
        let Some(last) = waiting.last() else {
            return Ok(());
        };
        after = Some(last.person);
        for deletion in waiting {
            let outcome = replace_noticed_manifests(stores, &deletion).await;
            judge(deletion.person, outcome)?;
        }
    }
}

async fn replace_noticed_manifests(
    stores: &UpkeepStores,
    deletion: &NoticedDeletion,
) -> Result<(), StoreError> {
    replace_manifests(stores, deletion.person).await?;
    stores.catalog.forget_deletion(deletion).await?;
    Ok(())
}
