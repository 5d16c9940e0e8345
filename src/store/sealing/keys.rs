//! The keys of people: made when they are first needed, wrapped while they are stored, gone when they are
//! forgotten.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use futures::TryStreamExt as _;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, MAX_TAG_LEN, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Salt};
use ring::rand::{SecureRandom as _, SystemRandom};
use uuid::Uuid;

use crate::model::cache::ShortLived;
use crate::model::ids::PersonId;
use crate::store::blob_forms;
use crate::store::errors::StoreError;
use crate::store::folder_names::WHOLE_STORE;
use crate::store::objects::ObjectStorage;

use super::master::KEY_BYTES;
use super::wrapping::{Wrapping, unusable};

/// How long a key that was read is remembered. For this long, another node may still read data of a person
/// whose key was destroyed here.
const KEY_REMEMBERED_FOR: Duration = Duration::from_mins(1);
/// For how many people keys are remembered.
const PEOPLE_REMEMBERED: u64 = 10_000;
/// How many existing keys are tried to find out whether keys can be opened. One alone may be damaged.
const KEYS_TRIED: usize = 3;
/// The suffix of the names of stored keys.
const SUFFIX: &str = ".key";

/// The keys of all people. Lives as long as the process.
#[derive(Debug)]
pub struct PersonKeys {
    /// Where they are stored, wrapped.
    place: ObjectStorage,
    wrapping: Wrapping,
    known: ShortLived<PersonId, PersonKey>,
    random: SystemRandom,
    /// Set once a stored key was opened.
    tried: OnceLock<()>,
}

/// The key of one person. Cheap to clone.
#[derive(Clone)]
pub struct PersonKey {
    secret: Arc<[u8; KEY_BYTES]>,
    blobs: Arc<LessSafeKey>,
}

/// Never shows the key.
impl fmt::Debug for PersonKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("PersonKey")
    }
}

impl PersonKeys {
    /// `place`: where wrapped keys are kept, apart from everything they seal.
    #[must_use]
    pub fn new(place: ObjectStorage, wrapping: Wrapping) -> Self {
        Self {
            place,
            wrapping,
            known: ShortLived::of(PEOPLE_REMEMBERED, KEY_REMEMBERED_FOR),
            random: SystemRandom::new(),
            tried: OnceLock::new(),
        }
    }

    /// Where the keys are kept.
    pub(super) const fn place(&self) -> &ObjectStorage {
        &self.place
    }

    pub(super) fn random_id(&self) -> Result<Uuid, StoreError> {
        Ok(uuid::Builder::from_random_bytes(self.random_bytes()?).into_uuid())
    }

    /// The key of a person for writing. Made if there is none.
    pub async fn ensured(&self, person: PersonId) -> Result<PersonKey, StoreError> {
        match self.found(person).await {
            Err(StoreError::Missing { .. }) => {}
            found => return found,
        }
        self.refuse_strange_wrapping().await?;
        let secret = self.random_bytes::<KEY_BYTES>()?;
        let nonce = self.random_bytes::<NONCE_LEN>()?;
        let bound = person.to_string();
        let wrapped = self.wrapping.wrap(&secret, nonce, bound.as_bytes()).await?;
        match self.place.put(&path_of(person), Bytes::from(wrapped)).await {
            // Somebody else was first; their key counts.
            Ok(()) | Err(StoreError::Exists { .. }) => self.found(person).await,
            Err(error) => Err(error),
        }
    }

    /// The key of a person for reading. If there is none, nothing of theirs can be read, but nothing is
    /// damaged.
    pub async fn key_of(&self, person: PersonId) -> Result<PersonKey, StoreError> {
        match self.found(person).await {
            Err(StoreError::Missing { .. }) => Err(unusable(&format!("there is none for {person}"))),
            found => found,
        }
    }

    /// Destroys the key of a person, and with it everything that it sealed.
    pub async fn forget(&self, person: PersonId) -> Result<(), StoreError> {
        self.place.delete(&path_of(person)).await?;
        self.known.remove(&person);
        Ok(())
    }

    /// Drops all keys from memory. They stay where they are kept.
    pub(super) fn clear_remembered(&self) {
        self.known.clear();
    }

    /// Whether a person has a key.
    pub async fn has(&self, person: PersonId) -> Result<bool, StoreError> {
        Ok(self.place.version(&path_of(person)).await?.is_some())
    }

    /// All people who have a key.
    pub async fn people(&self) -> Result<Vec<PersonId>, StoreError> {
        let mut people = Vec::new();
        let mut listed = self.place.list(WHOLE_STORE)?;
        while let Some(object) = listed.try_next().await? {
            let name = object.path.strip_suffix(SUFFIX);
            people.extend(name.and_then(|name| Uuid::parse_str(name).ok()).map(PersonId));
        }
        people.sort_unstable();
        Ok(people)
    }

    /// Wraps the key of a person again as it would be wrapped today; returns whether there was anything to
    /// do. The caller must check afterwards whether the person is being erased: the key may have been
    /// destroyed meanwhile.
    pub async fn wrap_anew(&self, person: PersonId) -> Result<bool, StoreError> {
        let path = path_of(person);
        let wrapped = self.place.get(&path).await?;
        if self.wrapping.is_current(&wrapped) {
            return Ok(false);
        }
        let bound = person.to_string();
        let secret = self.wrapping.unwrap(&wrapped, bound.as_bytes()).await?;
        let nonce = self.random_bytes::<NONCE_LEN>()?;
        let anew = self.wrapping.wrap(&secret, nonce, bound.as_bytes()).await?;
        self.place.replace(&path, Bytes::from(anew)).await?;
        Ok(true)
    }

    /// Refuses to make a key if existing keys were wrapped by something else than what would wrap it: once
    /// the operator has restored that, nobody could open this one.
    async fn refuse_strange_wrapping(&self) -> Result<(), StoreError> {
        if self.tried.get().is_some() {
            return Ok(());
        }
        self.try_some().await?;
        self.tried.get_or_init(|| ());
        Ok(())
    }

    /// Whether keys can be read and opened here: fails if none of a few can be.
    pub async fn try_some(&self) -> Result<(), StoreError> {
        let mut refused = None;
        for person in self.people().await?.into_iter().take(KEYS_TRIED) {
            match self.found(person).await {
                Ok(_) => {
                    refused = None;
                    break;
                }
                // It was destroyed meanwhile.
                Err(StoreError::Missing { .. }) => {}
                Err(error) => refused = Some(error),
            }
        }
        refused.map_or(Ok(()), Err)
    }

    async fn found(&self, person: PersonId) -> Result<PersonKey, StoreError> {
        if let Some(key) = self.known.get(&person) {
            return Ok(key);
        }
        let wrapped = self.place.get(&path_of(person)).await?;
        let bound = person.to_string();
        let secret = self.wrapping.unwrap(&wrapped, bound.as_bytes()).await?;
        let key = PersonKey::new(secret).ok_or_else(|| unusable("it is of another length"))?;
        self.known.insert(person, key.clone());
        Ok(key)
    }

    fn random_bytes<const N: usize>(&self) -> Result<[u8; N], StoreError> {
        let mut bytes = [0; N];
        let filled = self.random.fill(&mut bytes);
        filled.map_err(|_| unusable("the system has no randomness"))?;
        Ok(bytes)
    }

    /// A tail blob as it is stored: sealed under the key of its person, and only to be opened as `bound`.
    pub async fn seal_blob(&self, person: PersonId, bound: &[u8], blob: &[u8]) -> Result<Bytes, StoreError> {
        let key = self.ensured(person).await?;
        let nonce = self.random_bytes::<NONCE_LEN>()?;
        let mut sealed = Vec::with_capacity(1 + NONCE_LEN + blob.len() + MAX_TAG_LEN);
        sealed.push(blob_forms::SEALED);
        sealed.extend_from_slice(&nonce);
        let mut content = blob.to_vec();
        let nonce = Nonce::assume_unique_for_key(nonce);
        key.blobs
            .seal_in_place_append_tag(nonce, Aad::from(bound), &mut content)
            .map_err(|_| unusable("it seals nothing"))?;
        sealed.append(&mut content);
        Ok(sealed.into())
    }
}

impl PersonKey {
    fn new(secret: [u8; KEY_BYTES]) -> Option<Self> {
        Some(Self {
            blobs: Arc::new(derived(&secret, &[], b"blobs of the tail")?),
            secret: Arc::new(secret),
        })
    }

    /// The key of one object. Each has its own, so that blocks can simply be counted.
    pub(super) fn of_object(&self, salt: &[u8], path: &str) -> Option<LessSafeKey> {
        derived(&*self.secret, salt, path.as_bytes())
    }

    /// Whether a tail blob is sealed.
    #[must_use]
    pub fn is_sealed(blob: &[u8]) -> bool {
        blob.first() == Some(&blob_forms::SEALED)
    }

    /// Opens what `seal_blob` sealed.
    pub fn open_blob(&self, bound: &[u8], blob: &[u8]) -> Result<Vec<u8>, StoreError> {
        let damaged = || StoreError::corrupt("a sealed blob of the tail: it differs from what was written");
        let (nonce, sealed) = blob
            .get(1..)
            .and_then(<[u8]>::split_first_chunk::<NONCE_LEN>)
            .ok_or_else(damaged)?;
        let mut content = sealed.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let length = self
            .blobs
            .open_in_place(nonce, Aad::from(bound), &mut content)
            .map_err(|_| damaged())?
            .len();
        content.truncate(length);
        Ok(content)
    }
}

fn derived(secret: &[u8], salt: &[u8], purpose: &[u8]) -> Option<LessSafeKey> {
    let purposes = [purpose];
    let extracted = Salt::new(HKDF_SHA256, salt).extract(secret);
    let expanded = extracted.expand(&purposes, &AES_256_GCM).ok()?;
    Some(LessSafeKey::new(UnboundKey::from(expanded)))
}

fn path_of(person: PersonId) -> String {
    format!("{person}{SUFFIX}")
}
