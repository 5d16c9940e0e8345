//! Encryption at rest: what is stored of a person is sealed under their key, and cannot be read without it.
//!
//! Every person has a key, made when the first of their bytes is stored. It is kept wrapped by a master key,
//! which the operator holds in a file or a key service keeps to itself. Its place is neither in the catalogue
//! nor in the object store, so that no copy of these contains it. Destroying the key destroys every copy of
//! what it sealed, backups included. Sealing lies beneath the checksums of objects and of the tail's blobs:
//! these verify what was written, whether it is sealed or not. Knows bytes and paths; knows nothing of rows.

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
pub use place::{compare, mark};
pub use service::{KeyService, KeyServiceError, KeyServiceSettings};
pub use wrapping::Wrapping;

use std::sync::Arc;

use super::errors::StoreError;
use super::objects::ObjectStorage;
use crate::catalog::records::{NewPiece, NewPlace};
use crate::model::ids::PersonId;

use objects::SealedObjects;
use place::MARK;

/// A store that seals everything of people, above the given one.
#[must_use]
pub fn over(objects: ObjectStorage, keys: &Arc<PersonKeys>) -> ObjectStorage {
    objects.beneath(|store| Arc::new(SealedObjects::new(store, Arc::clone(keys))))
}

/// The piece, sealed if its rows go to the tail.
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

/// Refuses a store with sealed objects to a process without keys: to it, everything in the store would look
/// unknown, and be collected.
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
