//! The signing key of an installation that issues its own tokens.
//!
//! A file in the data directory, made at first use and kept until another replaces it. If several processes
//! make one at the same time, one of them wins and all use the same. The key is never printed.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use jsonwebtoken::{DecodingKey, EncodingKey};
use sha2::{Digest as _, Sha256};

use crate::auth::new_secret::new_secret;
use crate::model::hexadecimal::{from_hexadecimal, hexadecimal};
use crate::model::ids::passing_name;

/// The file name of the key.
pub const FILE_NAME: &str = "signing.key";

/// HMAC-SHA-256 takes a key of any length; less than 256 bits of randomness would be the weakest link.
const LEAST_BYTES: usize = 32;

/// A name is the beginning of a digest: enough to tell the few keys of an installation apart.
const ID_DIGITS: usize = 16;

#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    #[error(
        "the signing key {path} can be read by others (mode {mode:04o}): make it private with `chmod 600 \
         {path}`, or delete it, and `almanac init` or `almanac serve` makes a new one"
    )]
    Exposed { path: PathBuf, mode: u32 },
    #[error(
        "the signing key {path} belongs to another user ({owner}), who can change it; give it to the user \
         that runs the service with `chown`"
    )]
    Foreign { path: PathBuf, owner: u32 },
    #[error("{path} is not a signing key: expected at least {expected} bytes in hexadecimal digits; delete \
             it, and `almanac init` or `almanac serve` makes a new one", expected = LEAST_BYTES)]
    Malformed { path: PathBuf },
    #[error("cannot use the signing key {path}: {source}")]
    Io { path: PathBuf, source: io::Error },
}

/// The secret that embedded tokens are signed with.
#[derive(Clone)]
pub struct SigningKey(Vec<u8>);

impl SigningKey {
    /// The key in `directory`, made if there is none.
    pub fn open_or_create(directory: &Path) -> Result<Self, KeyError> {
        let path = directory.join(FILE_NAME);
        match read(&path) {
            Err(KeyError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                create(directory, &path).map_err(|source| KeyError::Io {
                    path: path.clone(),
                    source,
                })?;
                read(&path)
            }
            other => other,
        }
    }

    /// The key in `directory`, if there is one.
    pub fn open(directory: &Path) -> Result<Option<Self>, KeyError> {
        match read(&directory.join(FILE_NAME)) {
            Err(KeyError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
            other => other.map(Some),
        }
    }

    /// The key's name in tokens, which reveals nothing about the key.
    #[must_use]
    pub fn id(&self) -> String {
        let digest = Sha256::new_with_prefix(b"almanac signing key")
            .chain_update(&self.0)
            .finalize();
        let mut id = hexadecimal(&digest);
        id.truncate(ID_DIGITS);
        id
    }

    pub(in crate::auth) fn encoding(&self) -> EncodingKey {
        EncodingKey::from_secret(&self.0)
    }

    pub(in crate::auth) fn decoding(&self) -> DecodingKey {
        DecodingKey::from_secret(&self.0)
    }

    #[cfg(test)]
    pub(in crate::auth) fn for_tests(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SigningKey(..)")
    }
}

pub(super) fn read(path: &Path) -> Result<SigningKey, KeyError> {
    let failed = |source| KeyError::Io {
        path: path.to_owned(),
        source,
    };
    let mut file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    let owner = metadata.uid();
    if owner != 0 && own_user().is_some_and(|own| own != owner) {
        return Err(KeyError::Foreign {
            path: path.to_owned(),
            owner,
        });
    }
    let mode = metadata.mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(KeyError::Exposed {
            path: path.to_owned(),
            mode,
        });
    }
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(failed)?;
    let malformed = || KeyError::Malformed {
        path: path.to_owned(),
    };
    let secret = from_hexadecimal(text.trim_ascii()).ok_or_else(malformed)?;
    if secret.len() < LEAST_BYTES {
        return Err(malformed());
    }
    Ok(SigningKey(secret))
}

/// The user that this process runs as, if the system tells.
fn own_user() -> Option<u32> {
    std::fs::metadata("/proc/self").ok().map(|process| process.uid())
}

/// Writes a complete key under a temporary name and links it to the final one: a reader finds no key or a
/// whole one, and of two makers one wins.
fn create(directory: &Path, path: &Path) -> io::Result<()> {
    let draft = directory.join(format!("{FILE_NAME}.{}", passing_name()));
    let written = write_private(&draft, &new_key_text());
    let linked = written.and_then(|()| match std::fs::hard_link(&draft, path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    });
    let removed = std::fs::remove_file(&draft);
    linked?;
    removed?;
    File::open(directory)?.sync_all()
}

pub(super) fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    // The process's umask can only remove permissions; setting them again also covers file systems that
    // ignore the mode of `open`.
    file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// The text of a new key's file.
pub(super) fn new_key_text() -> String {
    new_secret() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_private_and_stays_the_same() {
        let directory = tempfile::tempdir().unwrap();
        let first = SigningKey::open_or_create(directory.path()).unwrap();
        let second = SigningKey::open_or_create(directory.path()).unwrap();
        assert_eq!(first.0, second.0);
        assert_eq!(first.0.len(), 48);
        let mode = std::fs::metadata(directory.path().join(FILE_NAME))
            .unwrap()
            .mode()
            & 0o7777;
        assert_eq!(mode, 0o600);
        let names: Vec<_> = std::fs::read_dir(directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(names, [FILE_NAME]);
    }

    #[test]
    fn two_makers_end_with_one_key() {
        let directory = tempfile::tempdir().unwrap();
        let keys: Vec<Vec<u8>> = std::thread::scope(|scope| {
            let makers: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| SigningKey::open_or_create(directory.path()).unwrap().0))
                .collect();
            makers.into_iter().map(|maker| maker.join().unwrap()).collect()
        });
        assert!(keys.windows(2).all(|pair| pair[0] == pair[1]));
    }

    #[test]
    fn a_key_that_others_can_read_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        SigningKey::open_or_create(directory.path()).unwrap();
        let path = directory.path().join(FILE_NAME);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(
            SigningKey::open_or_create(directory.path()),
            Err(KeyError::Exposed { mode: 0o640, .. })
        ));
    }

    #[test]
    fn a_short_or_garbled_key_is_refused() {
        for text in [
            "",
            "00ff",
            "not hexadecimal at all, but long enough to be a key of thirty-two bytes",
        ] {
            let directory = tempfile::tempdir().unwrap();
            write_private(&directory.path().join(FILE_NAME), text).unwrap();
            assert!(
                matches!(
                    SigningKey::open_or_create(directory.path()),
                    Err(KeyError::Malformed { .. })
                ),
                "{text:?}"
            );
        }
    }

    #[test]
    fn the_key_is_never_printed() {
        let key = SigningKey::for_tests(b"secret");
        assert_eq!(format!("{key:?}"), "SigningKey(..)");
    }
}
