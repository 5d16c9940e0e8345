//! The identity of a store. A catalogue and an object store are a pair, made together, and both say so.
//!
//! A process that finds them apart stops, because to an empty or different catalogue every object looks like
//! garbage. Knows the store and the catalogue; knows nothing of settings or commands.

use bytes::Bytes;
use futures::TryStreamExt as _;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::older_catalogue::BeyondCatalogue;
use crate::catalog::{Catalog, CatalogError};
use crate::model::ids::IdSource;
use crate::store::StoreError;
use crate::store::folder_names::{DATA_FOLDER, EXPORTS_FOLDER, FILES_FOLDER, FRAMES_FOLDER, PEOPLE_FOLDER};
use crate::store::objects::ObjectStorage;

/// The object that holds the identity of its store.
pub const IDENTITY_OBJECT: &str = "store.json";
/// How many of the catalogue's objects are looked for in a store without an identity.
const SAMPLES: usize = 16;

/// Why a catalogue and a store do not count as a pair.
#[derive(Debug, thiserror::Error)]
pub enum ApartError {
    #[error(
        "the catalogue belongs to the object store {expected}, but this one is {found}: correct \
         ALMANAC_DATABASE_URL or ALMANAC_OBJECT_STORE; if they do belong together, start once with \
         ALMANAC_ADOPT_STORE=true"
    )]
    Different { expected: Uuid, found: Uuid },
    #[error(
        "the catalogue names no objects, but the object store holds data: correct ALMANAC_DATABASE_URL or \
         ALMANAC_OBJECT_STORE; if the catalogue is lost, run `almanac check --repair`, which makes it anew \
         from the store; to begin without what is in the store, start once with ALMANAC_ADOPT_STORE=true"
    )]
    Empty,
    #[error(
        "the object store {found} has a catalogue already, and this one is new: correct \
         ALMANAC_DATABASE_URL or ALMANAC_OBJECT_STORE; if the other one is lost, run `almanac check \
         --repair`, or start once with ALMANAC_ADOPT_STORE=true"
    )]
    Taken { found: Uuid },
    #[error(
        "the object store does not hold what the catalogue names: correct ALMANAC_DATABASE_URL or \
         ALMANAC_OBJECT_STORE; if objects were lost, start once with ALMANAC_ADOPT_STORE=true, and `almanac \
         check` tells which"
    )]
    Foreign,
    #[error(
        "the object store does not say whose it is (there is no store.json), but the catalogue belongs to \
         the store {expected}: correct ALMANAC_OBJECT_STORE; if store.json was lost, run `almanac check \
         --repair`, which writes it anew where the store holds what the catalogue names, or start once with \
         ALMANAC_ADOPT_STORE=true"
    )]
    Nameless { expected: Uuid },
    #[error(
        "the catalogue is being made anew since {since}, and that was not finished: run `almanac check \
         --repair` again; to give up what is missing, start once with ALMANAC_ADOPT_STORE=true"
    )]
    Unfinished { since: String },
    #[error(
        "store.json in the object store is damaged ({reason}): if this store and the catalogue belong \
         together, `almanac check --repair` writes it anew, and so does one start with \
         ALMANAC_ADOPT_STORE=true"
    )]
    Unreadable { reason: String },
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Catalog(#[from] CatalogError),
}

/// The content of `store.json`.
#[derive(Debug, Serialize, Deserialize)]
struct StoreIdentity {
    store: Uuid,
}

/// Whether the objects show that the two belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Likeness {
    /// Neither has any objects.
    Blank,
    /// What the catalogue names is there.
    Alike,
    /// It is not, or there are objects of which the catalogue knows nothing.
    Strange,
}

/// What a catalogue and a store have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    pub identity: Uuid,
    /// Describes, for the operator who insisted, what is given up by that.
    pub given_up: Vec<String>,
}

/// Makes sure that the two are a pair. Makes them one if both are new, or if they are from before there were
/// identities. `insist`: the operator knows that they are, and gives up what an unfinished rebuild has not
/// brought back.
pub async fn settle(
    catalog: &Catalog,
    objects: &ObjectStorage,
    ids: &dyn IdSource,
    insist: bool,
) -> Result<Pair, ApartError> {
    let unfinished = catalog.unfinished_rebuild().await?;
    if let Some(since) = unfinished.clone().filter(|_| !insist) {
        return Err(ApartError::Unfinished { since });
    }
    Ok(Pair {
        identity: paired(catalog, objects, ids, insist).await?,
        given_up: match unfinished {
            None => Vec::new(),
            Some(since) => give_up_rebuild(catalog, objects, &since).await?,
        },
    })
}

/// Ends a rebuild that was not finished, as the operator wants it, and says what is given up by that.
async fn give_up_rebuild(
    catalog: &Catalog,
    objects: &ObjectStorage,
    since: &str,
) -> Result<Vec<String>, ApartError> {
    let beyond = BeyondCatalogue::find(catalog, objects).await?;
    catalog.finish_rebuild().await?;
    let mut given_up = vec![format!(
        "the catalogue was being made anew since {since}, and that is given up: nothing more comes back by \
         it, and what of the store the catalogue does not name is garbage from now on"
    )];
    if let Some(first) = beyond.people().next() {
        given_up.push(format!(
            "people are not back, or not as the store has them: {}, the first is {first}; `almanac check` \
             names them. Nothing of theirs is collected, and no backup is whole, before people/UUID of each \
             is moved out of the store",
            beyond.people().count()
        ));
    }
    Ok(given_up)
}

/// The identity that the two have in common, or get.
async fn paired(
    catalog: &Catalog,
    objects: &ObjectStorage,
    ids: &dyn IdSource,
    insist: bool,
) -> Result<Uuid, ApartError> {
    let expected = catalog.store_identity().await?;
    let found = if insist {
        Some(read_or_give(objects, expected.unwrap_or_else(|| ids.next())).await?)
    } else {
        read(objects).await?
    };
    match (expected, found) {
        (Some(expected), Some(found)) if expected == found => Ok(found),
        (_, Some(found)) if insist => {
            catalog.replace_store_identity(found).await?;
            Ok(found)
        }
        (Some(expected), Some(found)) => Err(ApartError::Different { expected, found }),
        (Some(expected), None) => {
            let is_blank =
                !catalog.knows_anything().await? && likeness(catalog, objects).await? == Likeness::Blank;
            if is_blank {
                give(objects, expected).await
            } else {
                Err(ApartError::Nameless { expected })
            }
        }
        (None, found) => {
            match likeness(catalog, objects).await? {
                Likeness::Strange => return Err(strange(catalog).await?),
                Likeness::Blank if !catalog.knows_anything().await? => {
                    return paired_anew(catalog, objects, ids, found).await;
                }
                // From before there were identities.
                Likeness::Blank | Likeness::Alike => {}
            }
            let identity = match found {
                Some(found) => found,
                None => write(objects, ids.next()).await?,
            };
            let settled = catalog.settle_store_identity(identity).await?;
            if settled == identity {
                Ok(identity)
            } else {
                Err(ApartError::Different {
                    expected: settled,
                    found: identity,
                })
            }
        }
    }
}

/// Makes a pair of a catalogue and a store that are new. The catalogue says so first: each node that shares
/// it finds there what the store says. So a store that says something else, or says anything beside a
/// catalogue that says nothing, is that of another catalogue.
async fn paired_anew(
    catalog: &Catalog,
    objects: &ObjectStorage,
    ids: &dyn IdSource,
    found: Option<Uuid>,
) -> Result<Uuid, ApartError> {
    let expected = match found {
        None => catalog.settle_store_identity(ids.next()).await?,
        // Another node may have made them a pair since this one looked at the catalogue.
        Some(found) => catalog
            .store_identity()
            .await?
            .ok_or(ApartError::Taken { found })?,
    };
    give(objects, expected).await
}

/// Gives the store of a catalogue its identity, unless another catalogue was first.
async fn give(objects: &ObjectStorage, expected: Uuid) -> Result<Uuid, ApartError> {
    let found = write(objects, expected).await?;
    if found == expected {
        Ok(found)
    } else {
        Err(ApartError::Different { expected, found })
    }
}

/// Refuses a store that has a catalogue, or holds data, to one that is yet to be made. Changes nothing.
pub async fn refuse_taken(objects: &ObjectStorage) -> Result<(), ApartError> {
    if holds_data(objects).await? {
        return Err(ApartError::Empty);
    }
    match read(objects).await? {
        Some(found) => Err(ApartError::Taken { found }),
        None => Ok(()),
    }
}

/// Whether the two say that they are a pair. Changes nothing.
pub async fn compare(catalog: &Catalog, objects: &ObjectStorage) -> Result<(), ApartError> {
    match (catalog.store_identity().await?, read(objects).await?) {
        (Some(expected), Some(found)) if expected != found => Err(ApartError::Different { expected, found }),
        (Some(expected), None) => Err(ApartError::Nameless { expected }),
        (None, found) => match (likeness(catalog, objects).await?, found) {
            (Likeness::Strange, _) => Err(strange(catalog).await?),
            (Likeness::Blank, Some(found)) if !catalog.knows_anything().await? => {
                Err(ApartError::Taken { found })
            }
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

/// The identity of a store, if it has one.
pub async fn read(objects: &ObjectStorage) -> Result<Option<Uuid>, ApartError> {
    let content = match objects.get(IDENTITY_OBJECT).await {
        Ok(content) => content,
        Err(StoreError::Missing { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let named: StoreIdentity = serde_json::from_slice(&content).map_err(unreadable)?;
    Ok(Some(named.store))
}

/// An error where a store does not even say whose it is. If it does, whatever else it does not give out has a
/// cause of its own.
pub async fn answers(objects: &ObjectStorage) -> Result<(), StoreError> {
    match objects.get(IDENTITY_OBJECT).await {
        // Stores from before there were identities have none, and answer all the same.
        Ok(_) | Err(StoreError::Missing { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// The identity of a store. One that has none, or whose identity is damaged, gets `otherwise`.
pub async fn read_or_give(objects: &ObjectStorage, otherwise: Uuid) -> Result<Uuid, ApartError> {
    match read(objects).await {
        Ok(Some(identity)) => Ok(identity),
        Ok(None) => write(objects, otherwise).await,
        Err(ApartError::Unreadable { .. }) => {
            objects.replace(IDENTITY_OBJECT, named(otherwise)?).await?;
            Ok(otherwise)
        }
        Err(error) => Err(error),
    }
}

/// Gives the catalogue's identity to a store whose own is lost or damaged, if the objects show that the two
/// belong together. Returns whether it did.
pub async fn repair(catalog: &Catalog, objects: &ObjectStorage) -> Result<bool, ApartError> {
    let Some(expected) = catalog.store_identity().await? else {
        return Ok(false);
    };
    match read(objects).await {
        Ok(Some(_)) => return Ok(false),
        Ok(None) | Err(ApartError::Unreadable { .. }) => {}
        Err(error) => return Err(error),
    }
    let is_pair = match likeness(catalog, objects).await? {
        Likeness::Alike => true,
        // An empty store may be a wrong one: only a catalogue that is empty too has lost nothing there.
        Likeness::Blank => !catalog.knows_anything().await?,
        Likeness::Strange => false,
    };
    if !is_pair {
        return Ok(false);
    }
    read_or_give(objects, expected).await?;
    Ok(true)
}

/// Gives a store an identity if it has none, unless somebody else does so meanwhile; returns the valid one.
pub async fn write(objects: &ObjectStorage, identity: Uuid) -> Result<Uuid, ApartError> {
    match objects.put(IDENTITY_OBJECT, named(identity)?).await {
        Ok(()) => Ok(identity),
        Err(StoreError::Exists { .. }) => read(objects).await?.ok_or_else(|| unreadable("it came and went")),
        Err(error) => Err(error.into()),
    }
}

/// The content of the object that gives a store this identity.
fn named(identity: Uuid) -> Result<Bytes, ApartError> {
    let content = serde_json::to_vec(&StoreIdentity { store: identity }).map_err(unreadable)?;
    Ok(content.into())
}

#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` hands over")]
fn unreadable(reason: impl ToString) -> ApartError {
    ApartError::Unreadable {
        reason: reason.to_string(),
    }
}

/// Why a catalogue does not count as that of a store with other objects.
async fn strange(catalog: &Catalog) -> Result<ApartError, ApartError> {
    Ok(if catalog.object_totals().await?.objects > 0 {
        ApartError::Foreign
    } else {
        ApartError::Empty
    })
}

async fn likeness(catalog: &Catalog, objects: &ObjectStorage) -> Result<Likeness, ApartError> {
    let named = catalog.object_paths(None).await?;
    if named.is_empty() {
        return Ok(if holds_data(objects).await? {
            Likeness::Strange
        } else {
            Likeness::Blank
        });
    }
    let every = named.len().div_ceil(SAMPLES);
    let (mut looked_for, mut found) = (0, 0);
    for object in named.iter().step_by(every) {
        looked_for += 1;
        match objects.size(&object.path).await {
            Ok(_) => found += 1,
            Err(StoreError::Missing { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    // Some may be lost, but in another installation's store all of them are missing.
    Ok(if found * 2 > looked_for {
        Likeness::Alike
    } else {
        Likeness::Strange
    })
}

/// Whether a store holds anything that a catalogue would name.
async fn holds_data(objects: &ObjectStorage) -> Result<bool, StoreError> {
    for folder in [
        DATA_FOLDER,
        FILES_FOLDER,
        EXPORTS_FOLDER,
        FRAMES_FOLDER,
        PEOPLE_FOLDER,
    ] {
        if objects.list(folder)?.try_next().await?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}
