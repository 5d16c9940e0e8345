//! The master keys of an installation: they wrap the keys of people, and seal nothing else.
//!
//! A file with a key on each line, in hexadecimal digits. The first wraps; all of them unwrap, so that a new
//! one can be put first while keys of people are still wrapped by the others. Nothing here ever prints one.

use std::fmt;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use sha2::{Digest as _, Sha256};

use crate::model::hexadecimal::from_hexadecimal;

/// The size of a key.
pub(super) const KEY_BYTES: usize = 32;
/// The size of a master key's name, by which a wrapped key tells which one wrapped it.
const NAME_BYTES: usize = 8;
pub(super) const NONCE_BYTES: usize = 12;

#[derive(Debug, thiserror::Error)]
pub enum MasterKeyError {
    #[error(
        "the master key {path} can be read by others (mode {mode:04o}): make it private with `chmod 600 \
         {path}`"
    )]
    Exposed { path: PathBuf, mode: u32 },
    #[error(
        "{path} holds no master key: expected lines of 64 hexadecimal digits, such as `openssl rand -hex 32` \
         makes"
    )]
    Malformed { path: PathBuf },
    #[error("cannot read the master key {path}: {source}")]
    Io { path: PathBuf, source: io::Error },
}

/// The keys of the file. The first one wraps.
pub struct MasterKeys(Vec<MasterKey>);

struct MasterKey {
    name: [u8; NAME_BYTES],
    key: LessSafeKey,
}

/// Never shows the keys.
impl fmt::Debug for MasterKeys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "MasterKeys({})", self.0.len())
    }
}

impl MasterKeys {
    pub fn read(path: &Path) -> Result<Self, MasterKeyError> {
        let failed = |source| MasterKeyError::Io {
            path: path.to_owned(),
            source,
        };
        let mode = std::fs::metadata(path).map_err(failed)?.mode() & 0o7777;
        if mode & 0o077 != 0 {
            return Err(MasterKeyError::Exposed {
                path: path.to_owned(),
                mode,
            });
        }
        let text = std::fs::read_to_string(path).map_err(failed)?;
        Self::parse(&text).ok_or_else(|| MasterKeyError::Malformed {
            path: path.to_owned(),
        })
    }

    /// The keys in the text of the file; `None` if there are none, or anything else.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let keys: Option<Vec<MasterKey>> = lines
            .map(|line| MasterKey::new(&from_hexadecimal(line)?.try_into().ok()?))
            .collect();
        keys.filter(|keys| !keys.is_empty()).map(Self)
    }

    /// The secret as it may be stored. `bound` is what it belongs to: for anything else it cannot be
    /// unwrapped.
    pub(super) fn wrap(
        &self,
        secret: &[u8; KEY_BYTES],
        nonce: [u8; NONCE_BYTES],
        bound: &[u8],
    ) -> Option<Vec<u8>> {
        let master = self.0.first()?;
        let mut sealed = secret.to_vec();
        let nonce_used = Nonce::assume_unique_for_key(nonce);
        master
            .key
            .seal_in_place_append_tag(nonce_used, Aad::from(bound), &mut sealed)
            .ok()?;
        Some([&master.name[..], &nonce[..], &sealed[..]].concat())
    }

    /// Whether the key that wraps now wrapped this.
    pub(super) fn is_current(&self, wrapped: &[u8]) -> bool {
        let first = self.0.first();
        first.is_some_and(|master| wrapped.starts_with(&master.name))
    }

    /// Unwraps what `wrap` wrapped, if one of these keys did it.
    pub(super) fn unwrap(&self, wrapped: &[u8], bound: &[u8]) -> Option<[u8; KEY_BYTES]> {
        let (name, rest) = wrapped.split_first_chunk::<NAME_BYTES>()?;
        let (nonce, sealed) = rest.split_first_chunk::<NONCE_BYTES>()?;
        let master = self.0.iter().find(|master| master.name == *name)?;
        let mut opened = sealed.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let secret = master
            .key
            .open_in_place(nonce, Aad::from(bound), &mut opened)
            .ok()?;
        (&*secret).try_into().ok()
    }
}

impl MasterKey {
    fn new(secret: &[u8; KEY_BYTES]) -> Option<Self> {
        let digest = Sha256::new_with_prefix(b"almanac master key")
            .chain_update(secret)
            .finalize();
        Some(Self {
            name: *digest.first_chunk()?,
            key: LessSafeKey::new(UnboundKey::new(&AES_256_GCM, secret).ok()?),
        })
    }
}
