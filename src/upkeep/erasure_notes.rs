//! The notes that the store keeps of erasures, one for each, and which of them the catalogue does not know.
//!
//! A note has a mark that does not reveal the person, and the start of the erasure. The catalogue is told
//! first, so one that knows less than the notes is older than the store. Knows nothing of what is erased.

use std::collections::BTreeMap;

use bytes::Bytes;
use futures::TryStreamExt as _;
use serde::{Deserialize, Serialize};

use crate::catalog::erasures::Erasure;
use crate::catalog::{Catalog, CatalogError, Sound};
use crate::model::erasure::ErasureMark;
use crate::model::ids::PersonId;
use crate::model::time::Instant;
use crate::store::StoreError;
use crate::store::folder_names::ERASED_FOLDER;
use crate::store::objects::ObjectStorage;

const FORMAT: u32 = 1;

/// The content of a note.
#[derive(Debug, Serialize, Deserialize)]
struct Note {
    format: u32,
    /// Microseconds since 1970.
    begun_at: i64,
}

/// Notes an erasure in the store, once. When this returns `Ok`, a catalogue rebuilt from the store knows of
/// it.
pub async fn remember(objects: &ObjectStorage, erasure: &Erasure) -> Result<(), StoreError> {
    let begun_at = erasure.begun_at.micros();
    let note = Note {
        format: FORMAT,
        begun_at,
    };
    let content = serde_json::to_vec(&note).map_err(|error| StoreError::Unavailable {
        detail: format!("a note of an erasure: {error}"),
    })?;
    let path = format!("{ERASED_FOLDER}/{}/{begun_at:020}.json", erasure.mark);
    match objects.put(&path, Bytes::from(content)).await {
        Err(StoreError::Exists { .. }) => Ok(()),
        put => put,
    }
}

/// All marks of erased people in the store, and when the last erasure of each began.
pub async fn remembered(objects: &ObjectStorage) -> Result<BTreeMap<ErasureMark, Instant>, StoreError> {
    remembered_in(objects, ERASED_FOLDER).await
}

async fn remembered_in(
    objects: &ObjectStorage,
    folder: &str,
) -> Result<BTreeMap<ErasureMark, Instant>, StoreError> {
    let mut found: BTreeMap<ErasureMark, Instant> = BTreeMap::new();
    let mut listed = objects.list(folder)?;
    while let Some(object) = listed.try_next().await? {
        if let Some((mark, begun_at)) = parse(&object.path) {
            let newest = found.entry(mark).or_insert(begun_at);
            *newest = begun_at.max(*newest);
        }
    }
    Ok(found)
}

/// The erasures that the store remembers and the catalogue does not, by their marks, beside what is damaged
/// of those that the catalogue knows.
pub async fn unheeded(
    catalog: &Catalog,
    objects: &ObjectStorage,
) -> Result<Sound<(ErasureMark, Instant)>, StoreError> {
    let mut noted = remembered(objects).await?;
    if noted.is_empty() {
        return Ok(Sound::default());
    }
    let known = catalog.sound_erasures().await?;
    for erasure in known.sound {
        if noted
            .get(&erasure.mark)
            .is_some_and(|begun_at| *begun_at <= erasure.begun_at)
        {
            noted.remove(&erasure.mark);
        }
    }
    Ok(Sound {
        sound: noted.into_iter().collect(),
        set_aside: known.set_aside,
    })
}

/// Why a catalogue is older than the store: it does not know of the last erasure of a person. `None`: it
/// does, or there was none. One whose row is damaged counts as known.
pub async fn unheeded_of(
    catalog: &Catalog,
    objects: &ObjectStorage,
    person: PersonId,
) -> Result<Option<String>, StoreError> {
    let mark = ErasureMark::of(person);
    let noted = remembered_in(objects, &format!("{ERASED_FOLDER}/{mark}")).await?;
    let Some(begun_at) = noted.get(&mark) else {
        return Ok(None);
    };
    let is_known = match catalog.erasure_of(person).await {
        Err(CatalogError::Corrupt { .. }) => true,
        known => known?.is_some_and(|known| known.begun_at >= *begun_at),
    };
    Ok((!is_known).then(|| {
        "the store remembers an erasure that the catalogue does not know of: it is older than the store, and \
         what was written since is lost"
            .to_owned()
    }))
}

/// The mark and the start in the name of a note, which contain all that is in it.
fn parse(path: &str) -> Option<(ErasureMark, Instant)> {
    let mut parts = path.strip_prefix(ERASED_FOLDER)?.strip_prefix('/')?.split('/');
    let mark = parts.next()?.parse().ok()?;
    let begun_at = parts.next()?.strip_suffix(".json")?.parse().ok()?;
    Some((mark, Instant::from_micros(begun_at)))
}
