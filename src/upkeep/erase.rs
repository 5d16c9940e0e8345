//! Erase: removes everything of a person, and lets nothing bring them back.
//!
//! An erasure begins in the catalogue, when the person asks for it. From then on nobody finds or stores
//! anything of theirs. This job does the rest, and can be stopped anywhere: it looks for what is left,
//! removes it, and looks again until there is nothing. First it writes a note into the store with the start
//! of the erasure and a mark that does not reveal the person, if the request could not; a catalogue that is
//! rebuilt from the store heeds it. Writes that were under way when the erasure began may still arrive, so
//! the job looks again after pauses that double, and a last time when no such write can be left. Only then is
//! the erasure over, and the person may begin anew. A node may be held up anywhere for so long that another
//! one ends the erasure; before it removes anything more, it asks whether the erasure still is under way.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::TryStreamExt as _;

use super::begun_anew::manifests_above;
use super::collect::ORPHAN_AGE;
use super::erasure_notes::{remember, unheeded};
use super::manifest::{Mention, mention_of};
use super::manifest_names::{manifest_path, numbers};
use super::purge::forget_older_manifests;
use super::stores::UpkeepStores;
use crate::catalog::dated_ahead::is_ahead;
use crate::catalog::erasures::Erasure;
use crate::catalog::{CatalogError, Sound, Subject};
use crate::model::erasure::ErasureMark;
use crate::model::ids::PersonId;
use crate::model::time::Instant;
use crate::store::StoreError;
use crate::store::folder_names::{
    DATA_FOLDER, EXPORTS_FOLDER, FILES_FOLDER, FRAMES_FOLDER, INCOMING_FOLDER, PEOPLE_FOLDER,
};

/// In each of these, everything in the folder named after a person is theirs. They are emptied in this order:
/// the last two tell a rebuilt catalogue that the person existed, and that something of theirs may be left.
pub const FOLDERS_OF_PEOPLE: [&str; 6] = [
    FILES_FOLDER,
    INCOMING_FOLDER,
    EXPORTS_FOLDER,
    FRAMES_FOLDER,
    DATA_FOLDER,
    PEOPLE_FOLDER,
];
/// The shortest length of an erasure: longer than any write that was under way when it began.
pub const ERASURE_LENGTH: Duration = ORPHAN_AGE;

/// The pause between the first two searches.
const FIRST_PAUSE: Duration = Duration::from_secs(15);

/// The earliest end of an erasure.
#[must_use]
pub fn ends_at(begun_at: Instant) -> Instant {
    begun_at.after(ERASURE_LENGTH)
}

/// The latest end of an erasure that goes on without hindrance: a clock that was ahead when it began, and was
/// put right since, does not delay it.
#[must_use]
pub fn ends_by(begun_at: Instant, now: Instant) -> Instant {
    ends_at(begun_at).min(ends_at(now))
}

/// An erasure as it is to be gone on with: one that a clock dated that was ahead counts as begun when that
/// was noticed.
pub async fn as_dated(stores: &UpkeepStores, erasure: &Erasure, now: Instant) -> Result<Erasure, StoreError> {
    if !is_ahead(erasure.begun_at, now) {
        return Ok(*erasure);
    }
    let name = noticed_key(erasure);
    let written = stores.catalog.sound_fact(&name).await?;
    let noticed = written.and_then(|written| written.parse().ok());
    let noticed = noticed
        .map(Instant::from_micros)
        .filter(|noticed| !is_ahead(*noticed, now));
    if noticed.is_none() {
        tracing::warn!(
            mark = %erasure.mark,
            "a clock was ahead when an erasure began, and was put right: it takes its time from now on"
        );
        stores.catalog.set_fact(&name, &now.micros().to_string()).await?;
    }
    Ok(Erasure {
        begun_at: noticed.unwrap_or(now),
        purged_at: erasure.purged_at.filter(|looked| !is_ahead(*looked, now)),
        ..*erasure
    })
}

/// Where the catalogue keeps when it was noticed that an erasure began under a clock that was ahead.
fn noticed_key(erasure: &Erasure) -> String {
    format!("erase:noticed:{}:{}", erasure.mark, erasure.begun_at.micros())
}

/// Whether there is something to do for an erasure: to begin, to look again for late writes, after pauses
/// that double, or to end it.
#[must_use]
pub fn is_due(erasure: &Erasure, now: Instant) -> bool {
    let looks_again = |looked: Instant| now.since(looked) >= looked.since(erasure.begun_at).max(FIRST_PAUSE);
    !erasure.is_over() && (now >= ends_at(erasure.begun_at) || erasure.purged_at.is_none_or(looks_again))
}

/// Does what is due for an erasure as it is now: others may have gone on with it, or ended it, since the
/// caller read it.
pub async fn erase(stores: &UpkeepStores, erasure: &Erasure) -> Result<(), StoreError> {
    let Some(mut erasure) = stores.catalog.still_under_way(erasure).await? else {
        return Ok(());
    };
    let begun = stores.catalog.now().await?;
    let dated = as_dated(stores, &erasure, begun).await?;
    if !is_due(&dated, begun) {
        return Ok(());
    }
    remember(stores.objects(), &erasure).await?;
    // A search that began before that moment does not count.
    let is_last = begun >= ends_at(dated.begun_at);
    let mut searched = SearchOutcome::default();
    if let Some(person) = erasure.person {
        // Whose they were cannot be told.
        stores.objects().clear_interrupted_uploads(ERASURE_LENGTH).await?;
        searched = Box::pin(erase_everything(stores, &erasure, person)).await?;
        // At the end even if nothing was found: an earlier search may have ended between removing and this.
        let ends = is_last && searched.left.is_none();
        if searched.found || ends || erasure.purged_at.is_none() {
            stores.catalog.scour().await?;
        }
    }
    erasure.purged_at = Some(begun);
    if is_last && searched.left.is_none() {
        erasure.ended_at = Some(begun);
        erasure.person = None;
    }
    stores.catalog.note_erasure(&erasure).await?;
    if erasure.is_over() && dated.begun_at != erasure.begun_at {
        stores.catalog.forget_fact(&noticed_key(&erasure)).await?;
    }
    searched.left.map_or(Ok(()), Err)
}

/// The result of a search for what is left of a person.
#[derive(Debug, Default)]
struct SearchOutcome {
    /// Whether anything was found.
    found: bool,
    /// Damage to data of others that may still name the person.
    left: Option<StoreError>,
}

/// Begins erasures again that the store remembers and the catalogue does not, because the catalogue was
/// restored from an older copy: but not of people who began anew after that, as far as it can be told. What
/// they have since would go with what the older catalogue says, and which of the two is right is for the
/// operator to find out. Leaves out whom `passes_over` says. `judge` gets what became of each; if it returns
/// an error, the others have to wait. Returns what is damaged of the erasures that the catalogue knows: these
/// stay as they are, since nobody can tell how far they are.
pub async fn heed_notes(
    stores: &UpkeepStores,
    passes_over: impl Fn(ErasureMark) -> bool + Send,
    mut judge: impl FnMut(ErasureMark, Result<(), StoreError>) -> Result<(), StoreError> + Send,
) -> Result<BTreeSet<Subject>, StoreError> {
    let Sound { sound, set_aside } = unheeded(&stores.catalog, stores.objects()).await?;
    let mut unknown: BTreeMap<ErasureMark, Instant> = sound.into_iter().collect();
    if unknown.is_empty() {
        return Ok(set_aside);
    }
    let mut of_people = Vec::new();
    for person in stores.catalog.people_ids().await? {
        let found = unknown.remove_entry(&ErasureMark::of(person));
        of_people.extend(found.map(|(mark, begun_at)| (mark, person, begun_at)));
    }
    // Of the others nothing is here, but tokens from before must still be refused, even if one of the steps
    // below fails.
    for (mark, begun_at) in unknown {
        let erasure = Erasure {
            mark,
            person: None,
            begun_at,
            purged_at: None,
            ended_at: None,
        };
        // That the row of an erasure is damaged is known already.
        CatalogError::unless_corrupt(stores.catalog.enter_erasure(&erasure).await)?;
    }
    for (mark, person, begun_at) in of_people {
        if !passes_over(mark) {
            judge(mark, begin_again(stores, person, begun_at).await)?;
        }
    }
    Ok(set_aside)
}

/// Begins an erasure again that began at this moment, unless the person began anew after it.
async fn begin_again(stores: &UpkeepStores, person: PersonId, begun_at: Instant) -> Result<(), StoreError> {
    let why_not = match manifests_above(stores, person, ends_at(begun_at)).await {
        Ok(None) => {
            let begun = stores.catalog.begin_erasure(person).await;
            if let Some(erasure) = CatalogError::unless_corrupt(begun)? {
                remember(stores.objects(), &erasure).await?;
            }
            return Ok(());
        }
        Ok(Some(_)) => "the person began anew after it",
        // Without the path, which names a person who may have been erased.
        Err(StoreError::Corrupt { .. }) => "a manifest cannot be read that may have been written after it",
        Err(error) => return Err(error),
    };
    Err(StoreError::corrupt(format!(
        "the catalogue is older than the store, which remembers an erasure, and {why_not}: it is not begun \
         again until that is decided"
    )))
}

/// Removes everything of a person from catalogue and store, until nothing more is found or the erasure is
/// over.
async fn erase_everything(
    stores: &UpkeepStores,
    erasure: &Erasure,
    person: PersonId,
) -> Result<SearchOutcome, StoreError> {
    let mut searched = SearchOutcome::default();
    loop {
        while stores.catalog.erase_own(erasure).await? {
            searched.found = true;
        }
        // Damage to what belongs to somebody else is no reason to keep the person's own data.
        searched.left = erase_mentions(stores, erasure, &mut searched.found).await?;
        // The last folder tells a rebuilt catalogue whom others may still name.
        let kept = usize::from(searched.left.is_some());
        let folders = FOLDERS_OF_PEOPLE.len() - kept;
        let mut removed = 0;
        for folder in FOLDERS_OF_PEOPLE.iter().take(folders) {
            removed += erase_folder(stores, erasure, &format!("{folder}/{person}")).await?;
        }
        if removed > 0 {
            searched.found = true;
            continue;
        }
        // Last: until then somebody may still write for the person, and have a key made. No transaction
        // includes the keys either, so this, too, is asked immediately before.
        if let Some(keys) = stores.keys().filter(|_| searched.left.is_none())
            && stores.catalog.still_under_way(erasure).await?.is_some()
        {
            keys.forget(person).await?;
        }
        return Ok(searched);
    }
}

/// Removes a person from the data of others, and from the older manifests that held it. Returns the damage
/// that was in the way, if any.
async fn erase_mentions(
    stores: &UpkeepStores,
    erasure: &Erasure,
    found: &mut bool,
) -> Result<Option<StoreError>, StoreError> {
    let mut damage = loop {
        match stores
            .catalog
            .erase_mentions(erasure)
            .await
            .map_err(StoreError::from)
        {
            Ok(true) => *found = true,
            Ok(false) => break None,
            Err(error) if error.is_damage() => break Some(error),
            Err(error) => return Err(error),
        }
    };
    let mut kept = Vec::new();
    let judge = |owner, outcome| match outcome {
        Err(error) if StoreError::is_damage(&error) => {
            kept.push((owner, error));
            Ok(())
        }
        outcome => outcome,
    };
    let set_aside = forget_older_manifests(stores, None, |_| false, judge).await?;
    for (owner, error) in kept {
        if damage.is_none() && may_be_named(stores, owner, erasure).await? {
            damage = Some(error);
        }
    }
    // A damaged notice may stand for a manifest that still names the person.
    let unread = set_aside.first().map(|whose| {
        let what = format!("{whose}: a notice of older manifests differs from what was written");
        StoreError::from(CatalogError::Corrupt { what })
    });
    Ok(damage.or(unread))
}

/// Whether manifests of `owner`, which cannot be replaced now, may name the person who is erased. Those that
/// do not name them do not concern the erasure.
async fn may_be_named(stores: &UpkeepStores, owner: PersonId, erasure: &Erasure) -> Result<bool, StoreError> {
    let Some(person) = erasure.person else {
        return Ok(false);
    };
    for number in numbers(stores.objects(), owner).await? {
        match mention_of(stores.objects(), &manifest_path(owner, number), person).await {
            Ok(Mention::Nowhere | Mention::WhereItStays) | Err(StoreError::Missing { .. }) => {}
            // What one says that cannot be read cannot be told.
            Ok(Mention::Elsewhere) | Err(_) => return Ok(true),
        }
    }
    Ok(false)
}

/// Removes every object in a folder of a person, and the folder itself where folders exist as such, as long
/// as the erasure is under way; returns how many objects there were.
async fn erase_folder(stores: &UpkeepStores, erasure: &Erasure, folder: &str) -> Result<usize, StoreError> {
    let objects = stores.objects();
    let mut removed = 0;
    let mut listed = objects.list(folder)?;
    while let Some(object) = listed.try_next().await? {
        // What is listed may belong to somebody who began anew. No transaction includes the store, so this
        // is asked right before: only who is held up just here, and for long, removes too much.
        if stores.catalog.still_under_way(erasure).await?.is_none() {
            return Ok(removed);
        }
        objects.delete(&object.path).await?;
        removed += 1;
    }
    objects.remove_empty_folders(folder).await?;
    Ok(removed)
}
