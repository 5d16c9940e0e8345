//! Manifests: what the catalogue knows of a person, as one object beside their data, so that the store alone
//! is enough.
//!
//! One is written after each flush, before replaced objects are deleted, and now and then where anything else
//! changed. The last two of a person are kept. Their numbers grow and mean nothing else; a writer that was
//! overtaken finds its number taken, or a higher one noted, and writes none, or removes its own. A manifest
//! that takes long to send claims its number first, as an empty object, which is a manifest to nobody.
//!
//! This file decides when one is written, and writes it.

mod lines;
mod stored;

use lines::{Lines, Row};

use super::erasure_notes::unheeded_of;
use super::manifest_names::{TakenNumbers, manifest_path, numbers};
use super::stores::UpkeepStores;
use crate::catalog::CatalogError;
use crate::catalog::estates::{EstateReader, KnownManifest, LostRows};
use crate::model::ids::PersonId;
use crate::store::StoreError;
use crate::store::objects::ObjectWriter;

pub use stored::{Manifest, Mention, PutBackOutcome, mention_of};

/// How many manifests of a person are kept.
const KEPT_MANIFESTS: usize = 2;
/// How often a manifest is tried again that others overtook.
const ATTEMPTS: usize = 8;

/// Writes a manifest of a person, unless the newest one is up to date. `false`: nothing was written.
pub async fn write_manifest(stores: &UpkeepStores, person: PersonId) -> Result<bool, StoreError> {
    if is_up_to_date(stores, person).await? {
        return Ok(false);
    }
    write_changed(stores, person).await
}

/// Writes a manifest of a person whether or not anything has changed, for callers who know that it has.
/// `false`: others wrote one meanwhile, or there is no such person.
pub async fn write_changed(stores: &UpkeepStores, person: PersonId) -> Result<bool, StoreError> {
    let written = write_next(stores, person, KEPT_MANIFESTS - 1).await?;
    Ok(matches!(written, WriteOutcome::Done { .. }))
}

/// Writes a manifest of a person where the newest one may be damaged: the one before it, which may be the
/// last sound one, stays. `false`: others wrote one meanwhile, or there is no such person.
pub async fn write_above_damage(stores: &UpkeepStores, person: PersonId) -> Result<bool, StoreError> {
    let written = write_next(stores, person, KEPT_MANIFESTS).await?;
    Ok(matches!(written, WriteOutcome::Done { .. }))
}

/// Makes the newest manifest of a person say everything that is known now. If others were faster, what they
/// wrote may have been read earlier, so another one is written.
pub async fn bring_up_to_date(stores: &UpkeepStores, person: PersonId) -> Result<(), StoreError> {
    for _ in 0..ATTEMPTS {
        let is_there = is_up_to_date(stores, person).await?
            || write_next(stores, person, KEPT_MANIFESTS - 1).await? != WriteOutcome::Overtaken;
        if is_there {
            return Ok(());
        }
    }
    Err(overtaken())
}

/// Writes a manifest of a person in any case, and keeps none of the older ones. If others were faster, what
/// they wrote may have been read earlier, so it goes too. Returns whether an older one may still appear,
/// should one of those die who are writing it. `Corrupt` also if there are manifests of somebody whose row is
/// lost: they stay, and what they say with them.
pub async fn replace_manifests(stores: &UpkeepStores, person: PersonId) -> Result<bool, StoreError> {
    for _ in 0..ATTEMPTS {
        match write_next(stores, person, 0).await? {
            WriteOutcome::Done { among_others } => return Ok(among_others),
            WriteOutcome::Nobody => return refuse_lost(stores, person).await.map(|()| false),
            WriteOutcome::Overtaken => {}
        }
    }
    Err(overtaken())
}

/// `Corrupt`, if the store has manifests of somebody whom the catalogue does not know and nobody is erasing.
async fn refuse_lost(stores: &UpkeepStores, person: PersonId) -> Result<(), StoreError> {
    // Asked first: when an erasure is over, the manifests are gone.
    if stores.catalog.is_being_erased(person).await? {
        return Ok(());
    }
    if numbers(stores.objects(), person).await?.is_empty() || stores.catalog.person_exists(person).await? {
        return Ok(());
    }
    Err(StoreError::corrupt(format!(
        "person {person} is lost, and there are manifests"
    )))
}

fn overtaken() -> StoreError {
    StoreError::Unavailable {
        detail: "others keep writing down the same person".to_owned(),
    }
}

async fn is_up_to_date(stores: &UpkeepStores, person: PersonId) -> Result<bool, StoreError> {
    let Some(known) = stores.catalog.known_manifest(person).await? else {
        return Ok(false);
    };
    Ok(stores.catalog.estate_state(person).await? == Some(known.state))
}

/// The result of writing a manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WriteOutcome {
    Done {
        /// Others had claimed lower numbers.
        among_others: bool,
    },
    /// Somebody else wrote or claimed one with its number, or wrote one with a higher number.
    Overtaken,
    /// There is no such person.
    Nobody,
}

/// Writes the next manifest of a person, and keeps the last `kept` of the older ones. `Corrupt` if rows are
/// damaged or lost, or the catalogue is older than the store: what it says would take the place of what it
/// lacks. Lost rows do not count where no older one may stay or there is none, or the newest lacks the same
/// ones.
async fn write_next(
    stores: &UpkeepStores,
    person: PersonId,
    kept: usize,
) -> Result<WriteOutcome, StoreError> {
    let lost = match write_rows(stores, person, kept, &MayLack::Nothing).await {
        Err(error) if error.is_damage() => error,
        outcome => return outcome,
    };
    let may_lack = match kept {
        0 => MayLack::Anything,
        _ => lacking_in_newest(stores, person).await?,
    };
    if matches!(may_lack, MayLack::Nothing) {
        return Err(lost);
    }
    let outcome = write_rows(stores, person, kept, &may_lack).await?;
    if matches!(may_lack, MayLack::Anything) {
        tracing::error!(
            %person,
            error = %lost,
            "rows are lost, and there are no older manifests, or what they say must not be known any more: \
             one is written of what is there"
        );
    }
    Ok(outcome)
}

/// Which lost rows do not count.
#[derive(Debug)]
enum MayLack {
    Nothing,
    These(LostRows),
    Anything,
}

/// What the newest manifest of a person lacks: no older one has it either. Where none was ever noted and none
/// is stored, nothing can be lost by writing one.
async fn lacking_in_newest(stores: &UpkeepStores, person: PersonId) -> Result<MayLack, StoreError> {
    let Some(newest) = numbers(stores.objects(), person).await?.first().copied() else {
        let is_first = known_number(stores, person).await?.is_none();
        return Ok(if is_first {
            MayLack::Anything
        } else {
            MayLack::Nothing
        });
    };
    match Manifest::fetch(stores.objects(), &manifest_path(person, newest)).await {
        Ok(newest) if newest.heading.lacks_rows => {
            Ok(newest.ending.lost.map_or(MayLack::Anything, MayLack::These))
        }
        Ok(_) | Err(StoreError::Corrupt { .. } | StoreError::Missing { .. }) => Ok(MayLack::Nothing),
        Err(error) => Err(error),
    }
}

/// Writes the next manifest as [`write_next`] does, unless rows are lost that `may_lack` does not allow.
async fn write_rows(
    stores: &UpkeepStores,
    person: PersonId,
    kept: usize,
    may_lack: &MayLack,
) -> Result<WriteOutcome, StoreError> {
    // Before anything is read: a writer that reads a later state takes a higher number, or the same one
    // first. Numbers that the store has lost are not taken again.
    let before = TakenNumbers::of(stores.objects(), person).await?;
    let known = known_number(stores, person).await?;
    let mut outdated = known.and_then(|known| before.beyond(known));
    if outdated.is_none() {
        // Also without any manifest: the first one would look as if the person had begun anew.
        outdated = unheeded_of(&stores.catalog, stores.objects(), person).await?;
    }
    if let Some(reason) = outdated {
        return Err(StoreError::corrupt(reason));
    }
    if known == Some(KnownManifest::NONE.number) {
        stores.catalog.expect_first_manifest(person).await?;
    }
    let number = before.highest().max(known).map_or(1, |newest| newest + 1);
    stores.catalog.combine_minutes(person).await?;
    let Some(estate) = stores.catalog.read_estate(person).await? else {
        return Ok(WriteOutcome::Nobody);
    };
    let state = estate.state;
    match send_whole(stores, person, number, estate, may_lack).await {
        Err(StoreError::Exists { .. }) => return Ok(WriteOutcome::Overtaken),
        sent => sent?,
    }
    let among_others = !before.claims.is_empty();
    let has_older = among_others || (kept > 0 && !before.manifests.is_empty());
    let manifest = KnownManifest { number, state };
    match note(stores, person, manifest, has_older).await {
        Ok(None) => {}
        Ok(Some(in_vain)) => return Ok(in_vain),
        Err(error) => {
            // Whoever noted a higher one may have looked before this one came.
            if known_number(stores, person)
                .await
                .is_ok_and(|known| known > Some(number))
            {
                let _ = stores.objects().delete(&manifest_path(person, number)).await;
            }
            return Err(error);
        }
    }
    for old in before.except_newest(kept) {
        stores.objects().delete(&manifest_path(person, old)).await?;
    }
    Ok(WriteOutcome::Done { among_others })
}

/// Sends everything known of a person as the manifest with this number, or nothing of it. `Exists`, if others
/// took the number or noted a higher one meanwhile.
async fn send_whole(
    stores: &UpkeepStores,
    person: PersonId,
    number: i64,
    estate: EstateReader,
    may_lack: &MayLack,
) -> Result<(), StoreError> {
    let mut writer = stores
        .objects()
        .upload_contested(&manifest_path(person, number))?;
    let sent = match send(person, estate, may_lack, &mut writer).await {
        // Others may have looked before its number was claimed: they do not know that it is coming.
        Ok(()) => expect_newest(stores, person, number).await,
        failed => failed,
    };
    match sent {
        Ok(()) => writer.finish().await,
        Err(error) => {
            // What stays of it is removed with the older ones.
            let _ = writer.abort().await;
            Err(error)
        }
    }
}

/// The number of the newest manifest of a person that was noted.
pub(super) async fn known_number(stores: &UpkeepStores, person: PersonId) -> Result<Option<i64>, StoreError> {
    // What is damaged says nothing, and is replaced.
    let known = CatalogError::unless_corrupt(stores.catalog.known_manifest(person).await)?;
    Ok(known.flatten().map(|known| known.number))
}

/// `Exists`, if a manifest was noted meanwhile with this number or a higher one.
async fn expect_newest(stores: &UpkeepStores, person: PersonId, number: i64) -> Result<(), StoreError> {
    if known_number(stores, person).await? >= Some(number) {
        let path = manifest_path(person, number);
        return Err(StoreError::Exists { path });
    }
    Ok(())
}

/// Notes a manifest that is in the store, or removes it, if nobody wants it any more. `has_older`: there may
/// be older ones.
async fn note(
    stores: &UpkeepStores,
    person: PersonId,
    manifest: KnownManifest,
    has_older: bool,
) -> Result<Option<WriteOutcome>, StoreError> {
    let in_vain = if stores.catalog.is_being_erased(person).await? {
        // The erasure began after this write, and may have finished looking.
        WriteOutcome::Nobody
    } else if !stores.catalog.note_manifest(person, manifest, has_older).await? {
        // What has a higher number was read later, perhaps to remove what this one still says.
        WriteOutcome::Overtaken
    } else {
        return Ok(None);
    };
    let path = manifest_path(person, manifest.number);
    stores.objects().delete(&path).await?;
    Ok(Some(in_vain))
}

/// Sends everything known of a person, unless rows are lost that count. The number is claimed on the way,
/// after the reading began: whoever finds it claimed reads a later state.
async fn send(
    person: PersonId,
    mut estate: EstateReader,
    may_lack: &MayLack,
    writer: &mut ObjectWriter,
) -> Result<(), StoreError> {
    let lacks_rows = !matches!(may_lack, MayLack::Nothing);
    let mut lines = Lines::begin(person, estate.read_at, lacks_rows)?;
    while let Some(page) = estate.next().await? {
        for row in page.rows {
            lines.row(&Row(page.table.clone(), row))?;
        }
        if let Some(ready) = lines.ready() {
            writer.write(ready).await?;
        }
    }
    let lost = if lacks_rows {
        Some(estate.end_lacking().await?)
    } else {
        estate.end().await?;
        None
    };
    if let (MayLack::These(known), Some(lost)) = (may_lack, &lost)
        && lost != known
    {
        return Err(StoreError::corrupt(format!(
            "person {person}: other rows are lost than those that the newest manifest lacks"
        )));
    }
    writer.write(lines.end(lost)?).await
}
