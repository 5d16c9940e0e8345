//! The keys for checking tokens of this installation: the signing key, and earlier ones that are not retired
//! yet.
//!
//! The signing key is `signing.key`; when another replaces it, it becomes `signing.<id>.key`, where `<id>` is
//! computed from it, and still checks the tokens that it signed. Tokens name their key by that id (`kid`).
//! The files are checked while the service runs, so rotation needs no restart. Lives as long as the service.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::SystemTime;

use jsonwebtoken::Algorithm;

use super::signing_key::{FILE_NAME, KeyError, SigningKey, new_key_text, read, write_private};
use crate::auth::key_set::{KeySet, VerifyingKey};
use crate::model::clock::Clock;
use crate::model::ids::passing_name;
use crate::model::time::{Instant, MICROS_PER_SECOND};

/// How long the result of a look at the files is reused.
const FRESH_MICROS: i64 = MICROS_PER_SECOND;

/// Keys that follow their files as these change.
pub struct KeyRing {
    directory: PathBuf,
    clock: Arc<dyn Clock>,
    loaded: RwLock<LoadedRing>,
}

#[derive(Clone)]
struct LoadedRing {
    signing: SigningKey,
    keys: Arc<KeySet>,
    files: Vec<(PathBuf, Option<SystemTime>)>,
    looked_at: Instant,
}

/// A key as an operator sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedKey {
    pub id: String,
    pub signs: bool,
    pub path: PathBuf,
}

impl KeyRing {
    /// The keys in `directory`; a signing key is made if there is none.
    pub fn open_or_create(directory: &Path, clock: Arc<dyn Clock>) -> Result<Self, KeyError> {
        SigningKey::open_or_create(directory)?;
        let loaded = load(directory, 0, clock.now())?;
        Ok(Self {
            directory: directory.to_owned(),
            clock,
            loaded: RwLock::new(loaded),
        })
    }

    /// The key to sign with now.
    #[must_use]
    pub fn signing(&self) -> SigningKey {
        self.current().signing
    }

    pub(in crate::auth) fn keys(&self) -> Arc<KeySet> {
        self.current().keys
    }

    fn current(&self) -> LoadedRing {
        let loaded = self.loaded.read().unwrap_or_else(PoisonError::into_inner).clone();
        let now = self.clock.now();
        let age = now.micros().saturating_sub(loaded.looked_at.micros());
        if (0..FRESH_MICROS).contains(&age) {
            return loaded;
        }
        let mut place = self.loaded.write().unwrap_or_else(PoisonError::into_inner);
        place.looked_at = now;
        let Ok(files) = files_in(&self.directory) else {
            return place.clone();
        };
        if files == place.files {
            return place.clone();
        }
        match load(&self.directory, place.keys.generation + 1, now) {
            Ok(loaded) => {
                tracing::info!(keys = loaded.keys.keys.len(), "the keys of tokens changed");
                *place = loaded;
            }
            // Between two steps of a rotation, or after somebody's mistake: the previous keys stay in use.
            Err(error) => tracing::error!(%error, "the keys of tokens changed and cannot be used"),
        }
        place.clone()
    }
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("KeyRing").finish_non_exhaustive()
    }
}

/// Replaces the signing key by a new one; the old one still checks tokens. Returns the new key's id. Of
/// several at once each waits for the one before, or it would replace a key that nobody has kept.
pub fn rotate(directory: &Path) -> Result<String, KeyError> {
    SigningKey::open_or_create(directory)?;
    let path = directory.join(FILE_NAME);
    let failed = |source| KeyError::Io {
        path: path.clone(),
        source,
    };
    let _alone = alone_with(&path).map_err(failed)?;
    let kept = kept_path(directory, &read(&path)?.id());
    let draft = directory.join(format!("{FILE_NAME}.{}", passing_name()));
    let id = replace(&path, &kept, &draft)?;
    File::open(directory)
        .and_then(|directory| directory.sync_all())
        .map_err(failed)?;
    Ok(id)
}

/// Keeps the key at `path` as `kept` and puts a new one, first written as `draft`, in its place; its id.
fn replace(path: &Path, kept: &Path, draft: &Path) -> Result<String, KeyError> {
    let failed = |source| KeyError::Io {
        path: path.to_owned(),
        source,
    };
    let written = write_private(draft, &new_key_text()).map_err(failed);
    let replaced = written.and_then(|()| {
        let id = read(draft)?.id();
        // A process that ends in between leaves one key under both names.
        match fs::hard_link(path, kept) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(error)),
            _ => {}
        }
        // From here on the next one has its turn.
        fs::rename(draft, path).map_err(failed)?;
        Ok(id)
    });
    if replaced.is_err() {
        // The draft holds a secret.
        drop(fs::remove_file(draft));
    }
    replaced
}

/// The file at `path`. While it is held and has not been replaced, nobody else is given it. Where the system
/// has no locks, nobody is kept out.
fn alone_with(path: &Path) -> io::Result<File> {
    loop {
        // Over a network, only a file that is open for writing can be locked.
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        match file.lock() {
            Err(error) if error.kind() != io::ErrorKind::Unsupported => return Err(error),
            _ => {}
        }
        // Whoever had it before may have put another one in its place.
        let (held, there) = (file.metadata()?, fs::metadata(path)?);
        if (held.dev(), held.ino()) == (there.dev(), there.ino()) {
            return Ok(file);
        }
    }
}

/// Stops the key with this `id` from checking tokens. `false`: there is none, or it is the signing key.
pub fn retire(directory: &Path, id: &str) -> Result<bool, KeyError> {
    let found = list(directory)?
        .into_iter()
        .find(|key| key.id == id && !key.signs);
    let Some(found) = found else { return Ok(false) };
    let failed = |source| KeyError::Io {
        path: found.path.clone(),
        source,
    };
    fs::remove_file(&found.path).map_err(failed)?;
    File::open(directory)
        .and_then(|directory| directory.sync_all())
        .map_err(failed)?;
    Ok(true)
}

/// All keys in `directory`, the signing key first.
pub fn list(directory: &Path) -> Result<Vec<ListedKey>, KeyError> {
    let failed = |source| KeyError::Io {
        path: directory.to_owned(),
        source,
    };
    let signing = directory.join(FILE_NAME);
    let mut listed: Vec<ListedKey> = Vec::new();
    for (path, _) in files_in(directory).map_err(failed)? {
        let id = read(&path)?.id();
        let signs = path == signing;
        if !listed.iter().any(|known| known.id == id) {
            listed.push(ListedKey { id, signs, path });
        }
    }
    Ok(listed)
}

fn kept_path(directory: &Path, id: &str) -> PathBuf {
    directory.join(format!("signing.{id}.key"))
}

/// The files of the keys, `signing.key` first.
pub fn files_in(directory: &Path) -> io::Result<Vec<(PathBuf, Option<SystemTime>)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_key = name.to_str().is_some_and(|name| {
            name == FILE_NAME
                || name
                    .strip_prefix("signing.")
                    .is_some_and(|rest| rest.strip_suffix(".key").is_some())
        });
        if is_key {
            files.push((entry.path(), entry.metadata()?.modified().ok()));
        }
    }
    let signing = directory.join(FILE_NAME);
    files.sort_by_key(|(path, _)| (*path != signing, path.clone()));
    Ok(files)
}

/// The keys of all files, if every one can be used.
fn load(directory: &Path, generation: u64, now: Instant) -> Result<LoadedRing, KeyError> {
    let failed = |source| KeyError::Io {
        path: directory.to_owned(),
        source,
    };
    let files = files_in(directory).map_err(failed)?;
    let signing = read(&directory.join(FILE_NAME))?;
    let mut keys: Vec<VerifyingKey> = Vec::new();
    for (path, _) in &files {
        let key = read(path)?;
        if !keys.iter().any(|known| known.id.as_deref() == Some(&key.id())) {
            keys.push(VerifyingKey {
                id: Some(key.id()),
                algorithm: Algorithm::HS256,
                key: key.decoding(),
            });
        }
    }
    Ok(LoadedRing {
        signing,
        keys: Arc::new(KeySet { generation, keys }),
        files,
        looked_at: now,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::clock::ManualClock;

    #[test]
    fn a_rotated_key_still_checks_and_a_retired_one_does_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let clock = Arc::new(ManualClock::at(Instant::from_micros(0)));
        let ring = KeyRing::open_or_create(path, clock.clone()).unwrap();
        let first = ring.signing().id();
        assert_eq!(ring.keys().keys.len(), 1);

        let second = rotate(path).unwrap();
        assert_ne!(first, second);
        clock.set(Instant::from_micros(2_000_000));
        assert_eq!(ring.signing().id(), second);
        let ids = |ring: &KeyRing| -> Vec<String> {
            let keys = ring.keys();
            keys.keys.iter().filter_map(|key| key.id.clone()).collect()
        };
        assert_eq!(ids(&ring), [second.clone(), first.clone()]);
        let generation = ring.keys().generation;

        assert!(!retire(path, &second).unwrap(), "the key that signs stays");
        assert!(retire(path, &first).unwrap());
        assert!(!retire(path, &first).unwrap());
        clock.set(Instant::from_micros(4_000_000));
        assert_eq!(ids(&ring), [second]);
        assert!(
            ring.keys().generation > generation,
            "remembered tokens are checked again"
        );
    }

    #[test]
    fn rotations_at_the_same_time_lose_no_key() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let first = SigningKey::open_or_create(path).unwrap().id();
        let mut ids: Vec<String> = std::thread::scope(|scope| {
            let rotate_some = move || -> Vec<String> { (0..8).map(|_| rotate(path).unwrap()).collect() };
            let rotating: Vec<_> = (0..4).map(|_| scope.spawn(rotate_some)).collect();
            rotating.into_iter().flat_map(|one| one.join().unwrap()).collect()
        });
        ids.push(first);
        ids.sort_unstable();
        let mut listed: Vec<String> = list(path).unwrap().into_iter().map(|key| key.id).collect();
        listed.sort_unstable();
        assert_eq!(listed, ids);
    }

    #[test]
    fn a_rotation_that_fails_leaves_no_draft() {
        let directory = tempfile::tempdir().unwrap();
        let names = [FILE_NAME, "signing.earlier.key", "signing.key.draft"];
        let [path, kept, draft] = names.map(|name| directory.path().join(name));
        // Nothing takes the place of a folder.
        fs::create_dir(&path).unwrap();
        fs::write(&kept, "").unwrap();
        replace(&path, &kept, &draft).unwrap_err();
        assert!(!draft.exists());
    }

    #[test]
    fn keys_that_cannot_be_read_leave_those_before_in_place() {
        let directory = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::at(Instant::from_micros(0)));
        let ring = KeyRing::open_or_create(directory.path(), clock.clone()).unwrap();
        let first = ring.signing().id();
        write_private(&directory.path().join("signing.rubbish.key"), "rubbish").unwrap();
        clock.set(Instant::from_micros(2_000_000));
        assert_eq!(ring.signing().id(), first);
    }
}
