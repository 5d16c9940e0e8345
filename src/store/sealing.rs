//! Encryption at rest: what is stored of a person stands under a key of theirs, and without it is nothing.
//!
//! Every person has a key, made when the first of their bytes is stored. It is kept wrapped by a master key,
//! which the operator holds in a file or a key service keeps to itself, in a place of its own: neither in the
//! catalogue nor in the object store, so that no copy of these holds it. Where the key is destroyed, every
//! copy of what it sealed is destroyed with it, backups included. Sealing lies beneath the checksums of
//! objects and of the tail's blobs: these hold what was written, whether it is sealed or not. Knows bytes and
//! paths; knows nothing of rows.

mod keys;
mod master;
mod objects;
mod place;
mod sealed;
mod secret_check;
mod service;
mod wrapping;

pub use keys::{PersonKey, PersonKeys};
pub use master::{MasterKeyError, MasterKeys};
pub use objects::PEOPLE_FOLDER;
pub use place::mark;
pub use service::{KeyService, KeyServiceError, KeyServiceSettings};
pub use wrapping::Wrapping;

use std::sync::Arc;

use super::errors::StoreError;
use super::objects::ObjectStorage;
use crate::catalog::records::{NewPiece, NewPlace};
use crate::model::ids::PersonId;

use objects::SealedObjects;
use place::MARK;

/// The store in which everything of people is sealed, above the one that it stands in.
#[must_use]
pub fn over(objects: ObjectStorage, keys: &Arc<PersonKeys>) -> ObjectStorage {
    objects.beneath(|store| Arc::new(SealedObjects::new(store, Arc::clone(keys))))
}

/// A piece whose rows, if they go to the tail, are sealed.
pub async fn sealed(keys: &PersonKeys, person: PersonId, piece: NewPiece) -> Result<NewPiece, StoreError> {
    let NewPlace::Tail { blob, memory } = &piece.place else {
        return Ok(piece);
    };
    let blob = keys.seal_blob(person, piece.id.0.as_bytes(), blob).await?;
    Ok(NewPiece {
        checksum: crc32fast::hash(&blob),
        bytes: blob.len() as i64,
        place: NewPlace::Tail {
            blob,
            memory: *memory,
        },
        ..piece
    })
}

/// Refuses a store in which objects are sealed, for who has no key: to them it would look like one in which
/// nothing is known to anybody, and be collected.
pub async fn refuse_marked(objects: &ObjectStorage) -> Result<(), StoreError> {
    if objects.version(MARK).await?.is_none() {
        return Ok(());
    }
    Err(StoreError::Settings {
        detail:
            "what is in it is encrypted, and neither ALMANAC_MASTER_KEY_FILE nor ALMANAC_KEY_SERVICE is set"
                .to_owned(),
    })
}

#[cfg(test)]
mod tests;
