//! Rebuild: makes the content of an empty catalogue from the store.
//!
//! For the day on which the catalogue is lost and no copy of it exists. Each person comes back from the
//! newest intact manifest, as they were when it was written; objects that it does not name were written
//! later, or for a write that was never accepted, and are left out and kept. A manifest may have been written
//! by a catalogue that had lost something. If it lacks what a type cannot be read without, a whole one before
//! it is taken; if it lacks anything else, that is said. A person without a manifest is made from the objects
//! alone: an object says whose rows it holds, and its id says when it was written; where two hold the same
//! record, the later one counts, and what was in the catalogue alone is lost.
//!
//! It can be interrupted anywhere: a person is restored in one transaction, and until all are, the catalogue
//! says that its rebuild is unfinished.

mod from_objects;
mod report;

use std::collections::{BTreeMap, BTreeSet, HashSet};

use futures::TryStreamExt as _;

use super::begun_anew::manifests_above;
use super::collect::PATHS_AT_ONCE;
use super::erase;
use super::erasure_notes::remembered;
use super::identity::{self, ApartError, IDENTITY_OBJECT};
use super::manifest::{Manifest, PutBackOutcome};
use super::manifest_names::{manifest_path, numbers, parse_manifest_path};
use super::stores::{PartitionKey, UpkeepStores};
use crate::catalog::erasures::Erasure;
use crate::catalog::estates::{Lack, PutBack};
use crate::catalog::records::Place;
use crate::model::erasure::ErasureMark;
use crate::model::ids::PersonId;
use crate::model::time::Instant;
use crate::store::StoreError;
use crate::store::contents::PartName;
use crate::store::folder_names::{DATA_FOLDER, FILES_FOLDER, PEOPLE_FOLDER};
use crate::store::objects::ObjectStorage;
use crate::store::orphans::orphaned_pieces;
use crate::store::piece::ObjectName;
use from_objects::from_objects;

pub use report::RebuildReport;

/// Fills a catalogue that knows nothing, or whose rebuild was interrupted, from the store. Leaves any other
/// as it is.
pub async fn rebuild(stores: &UpkeepStores) -> Result<RebuildReport, ApartError> {
    let mut rebuilt = RebuildReport::default();
    let is_continued = stores.catalog.unfinished_rebuild().await?.is_some();
    if !is_continued && stores.catalog.knows_anything().await? {
        return Ok(rebuilt);
    }
    let objects = objects_by_person(stores).await?;
    let mut people: BTreeSet<PersonId> = objects.keys().copied().collect();
    people.extend(people_with_manifests(stores).await?);
    let has_erased = !remembered(stores.objects()).await?.is_empty();
    if people.is_empty() && !has_erased && !is_continued && !is_left_alone(stores).await? {
        return Ok(rebuilt);
    }
    stores.catalog.begin_rebuild().await?;
    // From now on the two are a pair, whatever the lost catalogue said.
    let identity = identity::read_or_give(stores.objects(), stores.ids.next()).await?;
    stores.catalog.replace_store_identity(identity).await?;
    rebuilt.store = Some(identity);
    let is_erasing = Box::pin(heed_erasures(stores, &mut people, &mut rebuilt)).await?;
    for person in people {
        let paths = objects.get(&person).map_or(&[][..], Vec::as_slice);
        let mut back = put_back(stores, person, paths, &mut rebuilt).await;
        if is_erasing && back.is_ok() {
            back = forget_what_was_before(stores, person).await;
        }
        if let Err(error) = back {
            rebuilt
                .failed
                .push(format!("person {person} is not back yet: {error}"));
        }
    }
    keep_orphaned_parts(stores, &mut rebuilt).await?;
    if rebuilt.failed.is_empty() {
        stores.catalog.finish_rebuild().await?;
    }
    Ok(rebuilt)
}

/// Whether the store had a catalogue, and this one has no store.
async fn is_left_alone(stores: &UpkeepStores) -> Result<bool, StoreError> {
    Ok(stores.catalog.store_identity().await?.is_none()
        && stores.objects().version(IDENTITY_OBJECT).await?.is_some())
}

/// Whether a store is one of ours, or what is left of one: it says which it is, or holds something from which
/// a catalogue can be made.
pub async fn is_ours(objects: &ObjectStorage) -> Result<bool, StoreError> {
    if objects.version(IDENTITY_OBJECT).await?.is_some() {
        return Ok(true);
    }
    let is_object = |path: &str| ObjectName::parse(path).is_some();
    let is_manifest = |path: &str| parse_manifest_path(path).is_some();
    Ok(holds(objects, DATA_FOLDER, is_object).await?
        || holds(objects, PEOPLE_FOLDER, is_manifest).await?
        || !remembered(objects).await?.is_empty())
}

/// Whether a folder holds an object with a path that is `wanted`.
async fn holds(
    objects: &ObjectStorage,
    folder: &str,
    wanted: impl Fn(&str) -> bool,
) -> Result<bool, StoreError> {
    let mut listed = objects.list(folder)?;
    while let Some(object) = listed.try_next().await? {
        if wanted(&object.path) {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn objects_by_person(stores: &UpkeepStores) -> Result<BTreeMap<PersonId, Vec<String>>, StoreError> {
    let mut found: BTreeMap<PersonId, Vec<String>> = BTreeMap::new();
    let mut listed = stores.objects().list(DATA_FOLDER)?;
    while let Some(object) = listed.try_next().await? {
        if let Some(name) = ObjectName::parse(&object.path) {
            found.entry(name.person).or_default().push(object.path);
        }
    }
    Ok(found)
}

/// Claims count: an erasure that is under way removes those of the person too.
async fn people_with_manifests(stores: &UpkeepStores) -> Result<BTreeSet<PersonId>, StoreError> {
    let mut found = BTreeSet::new();
    let mut listed = stores.objects().list(PEOPLE_FOLDER)?;
    while let Some(object) = listed.try_next().await? {
        found.extend(parse_manifest_path(&object.path).map(|(person, _)| person));
    }
    Ok(found)
}

/// Leaves out people whose erasure the store remembers, and enters all erasures. Returns whether one of them
/// was not done: then there is still something to look for, however long ago it began. What is left of these
/// people goes when the erasure continues, which removes the last sign of them at the end. Where it cannot be
/// read whether they came back, nothing becomes of them or of their erasure, and the rebuild is unfinished.
async fn heed_erasures(
    stores: &UpkeepStores,
    people: &mut BTreeSet<PersonId>,
    rebuilt: &mut RebuildReport,
) -> Result<bool, StoreError> {
    let by_mark: BTreeMap<ErasureMark, PersonId> = people
        .iter()
        .map(|person| (ErasureMark::of(*person), *person))
        .collect();
    // An erasure that was interrupted between the last object and its folder left a name, and nobody knows
    // whose.
    for folder in erase::FOLDERS_OF_PEOPLE {
        stores.objects().remove_empty_folders(folder).await?;
    }
    let now = stores.catalog.now().await?;
    let mut is_erasing = false;
    for (mark, begun_at) in remembered(stores.objects()).await? {
        let ends_at = erase::ends_at(begun_at);
        let mut person = by_mark.get(&mark).copied();
        if let Some(found) = person {
            match came_back(stores, found, ends_at).await {
                Ok(true) => person = None,
                Ok(false) => {
                    people.remove(&found);
                    rebuilt
                        .done
                        .push(format!("left out: somebody who was erased, {mark}"));
                }
                // Neither they nor their erasure, until it can be told; everybody else comes back.
                Err(error) => {
                    people.remove(&found);
                    rebuilt.failed.push(format!(
                        "person {found} was erased, and whether they came back after that cannot be told: \
                         {error}"
                    ));
                    continue;
                }
            }
        }
        let is_over = person.is_none() && now >= ends_at;
        is_erasing |= person.is_some();
        let erasure = Erasure {
            mark,
            person,
            begun_at,
            purged_at: None,
            ended_at: is_over.then_some(now),
        };
        stores.catalog.enter_erasure(&erasure).await?;
    }
    Ok(is_erasing)
}

/// Requests a new manifest where there are older ones than the one that was read: these may name a person who
/// is being erased, whom the newest no longer mentions.
async fn forget_what_was_before(stores: &UpkeepStores, person: PersonId) -> Result<(), StoreError> {
    if numbers(stores.objects(), person).await?.len() > 1 {
        stores.catalog.request_manifest(person).await?;
    }
    Ok(())
}

/// Whether a manifest of a person was written after their erasure was over. If so, those with higher numbers
/// that were written before that are removed: the highest is the one from which the person comes back.
async fn came_back(stores: &UpkeepStores, person: PersonId, ended_at: Instant) -> Result<bool, StoreError> {
    let Some(before) = manifests_above(stores, person, ended_at).await? else {
        return Ok(false);
    };
    for older in before {
        stores.objects().delete(&older).await?;
    }
    Ok(true)
}

/// Restores a person from their newest manifest; from an older one, if that cannot be read or lacks what a
/// type cannot be read without; or, without any, from their objects alone.
async fn put_back(
    stores: &UpkeepStores,
    person: PersonId,
    paths: &[String],
    rebuilt: &mut RebuildReport,
) -> Result<(), StoreError> {
    let there: HashSet<&String> = paths.iter().collect();
    let has_objects = |put: &PutBack| put.objects.iter().all(|path| there.contains(path));
    let (mut lacking, mut whole) = (None::<(i64, Lack)>, None);
    for number in numbers(stores.objects(), person).await? {
        // A type whose bytes are lost cannot be read at all. For anything else nothing is given up that came
        // after the manifest before.
        let is_wanted = |put: &PutBack| {
            let is_better = lacking
                .as_ref()
                .is_none_or(|(_, lack)| lack.is_bytes && has_objects(put));
            put.lack.is_none() && is_better
        };
        match from_manifest(stores, person, number, paths, is_wanted, rebuilt).await {
            Err(StoreError::Corrupt { what }) => rebuilt.wrong.push(format!("left out: {what}")),
            Err(error) => return Err(error),
            Ok(None) => {
                let left_out = lacking.map(|(number, lack)| lacks(person, number, &lack));
                rebuilt
                    .wrong
                    .extend(left_out.map(|what| format!("left out: {what}")));
                return Ok(());
            }
            Ok(Some(PutBack { lack: Some(lack), .. })) => {
                lacking.get_or_insert((number, lack));
            }
            Ok(Some(put)) if has_objects(&put) => {
                whole.get_or_insert(number);
            }
            Ok(Some(_)) => {}
        }
    }
    match lacking {
        Some((number, lack)) => {
            let wrong = lacks(person, number, &lack);
            rebuilt.wrong.push(match whole {
                Some(whole) => format!(
                    "{wrong}; {} is whole: to have the person come back from that, move the other away, and \
                     have the catalogue made anew",
                    manifest_path(person, whole)
                ),
                None => wrong,
            });
            let restored = from_manifest(stores, person, number, paths, |_| true, rebuilt).await;
            restored.map(drop)
        }
        None => without_manifest(stores, person, paths, rebuilt).await,
    }
}

/// Restores a person of whom no manifest can be read from their objects alone.
async fn without_manifest(
    stores: &UpkeepStores,
    person: PersonId,
    paths: &[String],
    rebuilt: &mut RebuildReport,
) -> Result<(), StoreError> {
    let mut by_partition: BTreeMap<PartitionKey, Vec<String>> = BTreeMap::new();
    for path in paths {
        if let Some(ObjectName { data_type, .. }) = ObjectName::parse(path) {
            let key = PartitionKey { person, data_type };
            by_partition.entry(key).or_default().push(path.clone());
        }
    }
    let mut first_error = None;
    for (key, paths) in by_partition {
        if let Err(error) = from_objects(stores, &key, paths, rebuilt).await {
            first_error = first_error.or(Some(error));
        }
    }
    match first_error {
        Some(error) => Err(error),
        None => expect_next_manifests(stores, person, rebuilt).await,
    }
}

/// Has the next manifests of a person take the place of those that there are, which cannot be read. Somebody
/// of whom nothing came back is created here: if they were when they come, it would be as a person without
/// manifests, and those that there are would pass for a later catalogue's.
async fn expect_next_manifests(
    stores: &UpkeepStores,
    person: PersonId,
    rebuilt: &mut RebuildReport,
) -> Result<(), StoreError> {
    let has_manifests = !numbers(stores.objects(), person).await?.is_empty();
    if has_manifests && stores.catalog.ensure_person(person, None).await? {
        rebuilt.done.push(format!(
            "person {person}: nothing could be brought back, and what they store from now on is new"
        ));
    }
    Ok(stores.catalog.expect_first_manifest(person).await?)
}

/// Describes a manifest that was written by a catalogue that had lost something.
fn lacks(person: PersonId, number: i64, lack: &Lack) -> String {
    let path = manifest_path(person, number);
    format!(
        "manifest {path} was written when something was lost: {}",
        lack.what
    )
}

/// Restores a person from their manifest of this number, if that `is_wanted`; otherwise returns what that
/// would restore.
async fn from_manifest(
    stores: &UpkeepStores,
    person: PersonId,
    number: i64,
    paths: &[String],
    is_wanted: impl Fn(&PutBack) -> bool,
    rebuilt: &mut RebuildReport,
) -> Result<Option<PutBack>, StoreError> {
    let path = manifest_path(person, number);
    let manifest = Manifest::fetch(stores.objects(), &path).await?;
    let Some(writer) = stores.catalog.restore_estate(person).await? else {
        // By an earlier attempt; objects left out were reported then, but may not have been noted.
        keep_orphaned(stores, person, paths, rebuilt).await?;
        return Ok(None);
    };
    let given_up = match manifest.put_back(writer, is_wanted).await? {
        PutBackOutcome::Done(given_up) => given_up,
        PutBackOutcome::Unwanted(put) => return Ok(Some(put)),
    };
    if !given_up.is_empty() {
        let given_up = given_up.join("; ");
        rebuilt.wrong.push(format!(
            "manifest {path} lacks rows that were lost before: {given_up}"
        ));
    }
    rebuilt
        .done
        .push(format!("person {person}: as of {}", manifest.heading.moment()));
    report_lost(stores, person, paths, rebuilt).await?;
    keep_orphaned(stores, person, paths, rebuilt).await?;
    Ok(None)
}

/// Reports objects that the person's partitions name but that are not in the store.
async fn report_lost(
    stores: &UpkeepStores,
    person: PersonId,
    paths: &[String],
    rebuilt: &mut RebuildReport,
) -> Result<(), StoreError> {
    let there: HashSet<&String> = paths.iter().collect();
    for summary in stores.catalog.partitions_of(person).await? {
        for piece in stores.catalog.pieces_of(person, &summary.data_type).await? {
            if let Place::Object { path, .. } = &piece.place
                && !there.contains(path)
            {
                rebuilt.done.push(format!("missing: object {path}"));
            }
        }
    }
    Ok(())
}

/// Keeps objects that the person's partitions do not name.
async fn keep_orphaned(
    stores: &UpkeepStores,
    person: PersonId,
    paths: &[String],
    rebuilt: &mut RebuildReport,
) -> Result<(), StoreError> {
    let orphaned = orphaned_pieces(&stores.catalog, paths).await?;
    if !orphaned.is_empty() {
        stores.catalog.keep_objects(&orphaned).await?;
        rebuilt.done.push(format!(
            "person {person}: {} objects that their manifest does not name were left out; they are kept, the \
             first is {}",
            orphaned.len(),
            orphaned.first().map_or("", String::as_str)
        ));
    }
    Ok(())
}

/// Keeps the parts of files that nothing names: their upload may have been acknowledged.
async fn keep_orphaned_parts(stores: &UpkeepStores, rebuilt: &mut RebuildReport) -> Result<(), StoreError> {
    let mut found: BTreeMap<PersonId, (usize, String)> = BTreeMap::new();
    let mut listed = stores.objects().list(FILES_FOLDER)?.try_chunks(PATHS_AT_ONCE);
    while let Some(objects) = listed.try_next().await.map_err(|failed| failed.1)? {
        let mut paths: Vec<String> = objects.into_iter().map(|object| object.path).collect();
        // The parts of one content side by side, so that it is looked up once.
        paths.sort_unstable();
        let orphaned = stores.contents().orphaned_parts(&paths).await?;
        stores.catalog.keep_objects(&orphaned).await?;
        for path in orphaned {
            if let Some(name) = PartName::parse(&path) {
                found.entry(name.person).or_insert((0, path)).0 += 1;
            }
        }
    }
    for (person, (count, first)) in found {
        rebuilt.done.push(format!(
            "person {person}: {count} parts of files that nothing names were left out; they are kept, the \
             first is {first}"
        ));
    }
    Ok(())
}
