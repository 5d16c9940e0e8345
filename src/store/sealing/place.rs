//! Ties a store to its place of keys: both carry a name that they have in common.
//!
//! A person without a key gets one. In a wrong place nobody has one, so what people wrote there would be
//! sealed under second keys, and no place could open both. So a store is opened with the place that it was
//! sealed from, or not at all. Knows the two marks; knows nothing of what is sealed.

use bytes::Bytes;
use futures::TryStreamExt as _;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::keys::PersonKeys;
use crate::store::errors::StoreError;
use crate::store::folder_names::WHOLE_STORE;
use crate::store::objects::ObjectStorage;

/// The object which says that a store is sealed, and from which place.
pub(super) const MARK: &str = "sealed.json";
/// The object that names a place of keys.
const NAME: &str = "place.json";
const FORMAT: u32 = 1;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Mark {
    format: u32,
    /// Stores that were sealed before places had names do not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    keys: Option<Uuid>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Name {
    keys: Uuid,
}

/// What a store and a place of keys say where they do not carry a name in common yet.
struct Untied {
    is_marked: bool,
    named: Option<Name>,
    /// The name that the place had, according to an operator who insists.
    expected: Option<Uuid>,
}

/// Refuses a store that is sealed from another place than that of `keys`, unless the operator insists that
/// they belong together. Changes nothing.
pub async fn compare(objects: &ObjectStorage, keys: &PersonKeys, insist: bool) -> Result<(), StoreError> {
    untied(objects, keys, insist).await.map(drop)
}

/// What of the two is not tied together yet. The marks are nobody's, so `objects` may be the store beneath or
/// that above.
async fn untied(
    objects: &ObjectStorage,
    keys: &PersonKeys,
    insist: bool,
) -> Result<Option<Untied>, StoreError> {
    let place = keys.place();
    let (marked, named) = (
        read::<Mark>(objects, MARK).await?,
        read::<Name>(place, NAME).await?,
    );
    let expected = match (marked, named) {
        (
            Some(Mark {
                keys: Some(marked), ..
            }),
            Some(named),
        ) if marked == named.keys => return Ok(None),
        (
            Some(Mark {
                keys: Some(marked), ..
            }),
            None,
        ) if insist => Some(marked),
        (Some(Mark { keys: Some(_), .. }), _) if !insist => return Err(apart()),
        // For a place without a name, from before there were names, the only evidence is whether it is empty.
        (Some(Mark { keys: None, .. }), None)
            if !insist && keys.people().await?.is_empty() && holds_anything(objects).await? =>
        {
            return Err(apart());
        }
        _ => None,
    };
    Ok(Some(Untied {
        is_marked: marked.is_some(),
        named,
        expected,
    }))
}

/// Marks a store as sealed from now on, under keys in the place of `keys`; refuses what `compare` refuses.
/// Only for a store that is the catalogue's: another installation that has no keys would not start any more.
pub async fn mark(objects: &ObjectStorage, keys: &PersonKeys, insist: bool) -> Result<(), StoreError> {
    let Some(Untied {
        is_marked,
        named,
        expected,
    }) = untied(objects, keys, insist).await?
    else {
        return Ok(());
    };
    let name = match named {
        Some(named) => named,
        None => named_anew(keys, expected).await?,
    };
    let mark = Mark {
        format: FORMAT,
        keys: Some(name.keys),
    };
    let content = written(&mark)?;
    if is_marked {
        return objects.replace(MARK, content).await;
    }
    match objects.put(MARK, content).await {
        // Another process was first, from the same place or not.
        Err(StoreError::Exists { .. }) => match read::<Mark>(objects, MARK).await? {
            Some(marked) if marked.keys == mark.keys => Ok(()),
            _ => Err(apart()),
        },
        put => put,
    }
}

/// Gives the place a name, unless another process does so meanwhile; returns the valid name.
async fn named_anew(keys: &PersonKeys, expected: Option<Uuid>) -> Result<Name, StoreError> {
    let place = keys.place();
    let name = Name {
        keys: match expected {
            Some(expected) => expected,
            None => keys.random_id()?,
        },
    };
    match place.put(NAME, written(&name)?).await {
        Err(StoreError::Exists { .. }) => {
            let named = read(place, NAME).await?;
            named.ok_or_else(|| StoreError::corrupt("the name of the place of keys came and went"))
        }
        put => put.map(|()| name),
    }
}

/// Whether a store has anything of people: objects of the store itself are in no folder.
async fn holds_anything(objects: &ObjectStorage) -> Result<bool, StoreError> {
    let mut listed = objects.list(WHOLE_STORE)?;
    while let Some(object) = listed.try_next().await? {
        if object.path.contains('/') {
            return Ok(true);
        }
    }
    Ok(false)
}

fn apart() -> StoreError {
    StoreError::Settings {
        detail:
            "what is in it was encrypted with keys from another place than ALMANAC_PERSON_KEYS names; new \
                 keys would be made here for people who have one. Name the place that it was, or, if it is \
                 the same and its place.json was lost, start once with ALMANAC_ADOPT_STORE=true"
                .to_owned(),
    }
}

async fn read<T: for<'de> Deserialize<'de>>(
    objects: &ObjectStorage,
    path: &str,
) -> Result<Option<T>, StoreError> {
    let content = match objects.get(path).await {
        Ok(content) => content,
        Err(StoreError::Missing { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let read = serde_json::from_slice(&content);
    read.map(Some)
        .map_err(|error| StoreError::corrupt(format!("{path}: {error}")))
}

fn written(value: &impl Serialize) -> Result<Bytes, StoreError> {
    let content = serde_json::to_vec(value);
    content
        .map(Bytes::from)
        .map_err(|error| StoreError::corrupt(error.to_string()))
}
