//! Where running questions put what does not fit into memory: a directory for each process, inside the data
//! directory.
//!
//! Lives as long as the service. Several processes may share a data directory, so each holds a lock on its
//! own part for as long as it lives, and a process that starts removes the parts that nobody holds: nobody
//! can use what a dead process spilled. A lock says more than a process id, which means nothing on another
//! machine and is reused in time.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::failed::Failed;

/// The directory inside the data directory.
pub(super) const SPILL: &str = "spill";

/// Locked while parts are made and removed, so that no part is found before its owner holds it.
const DOOR_FILE: &str = "lock";

/// The file inside a part that its owner locks.
const HELD_FILE: &str = "held";

/// One process's part. Removed when it is dropped.
#[derive(Debug)]
pub(super) struct SpillDirectory {
    path: PathBuf,
    _held: File,
}

impl SpillDirectory {
    /// Makes the part `name` of `root`, and removes what dead processes left there.
    pub(super) fn open(root: &Path, name: Uuid) -> Result<Self, Failed> {
        Self::make(root, name).map_err(|error| {
            Failed::because(format!(
                "the directory {} cannot be used: {error}",
                root.display()
            ))
        })
    }

    fn make(root: &Path, name: Uuid) -> io::Result<Self> {
        private_directory(root)?;
        let door = private_file(&root.join(DOOR_FILE))?;
        // Processes on a file system without locks may share it without knowing each other; nothing is
        // removed there.
        let locks = match door.lock() {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::Unsupported => false,
            Err(error) => return Err(error),
        };
        if locks {
            remove_unheld(root)?;
        }
        let path = root.join(name.to_string());
        private_directory(&path)?;
        let held = private_file(&path.join(HELD_FILE))?;
        if locks {
            held.lock()?;
        }
        Ok(Self { path, _held: held })
    }

    #[must_use]
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SpillDirectory {
    fn drop(&mut self) {
        // What cannot be removed now is removed at the next start.
        let _removed = std::fs::remove_dir_all(&self.path);
    }
}

fn remove_unheld(root: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(root)? {
        let path = entry?.path();
        if !path.is_dir() || is_held(&path)? {
            continue;
        }
        match std::fs::remove_dir_all(&path) {
            // Its owner removed it at the same time.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            removed => removed?,
        }
    }
    Ok(())
}

fn is_held(part: &Path) -> io::Result<bool> {
    match File::open(part.join(HELD_FILE)) {
        Ok(file) => Ok(file.try_lock().is_err()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// A directory for its owner only, even if it was open to others before.
fn private_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700))
}

fn private_file(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(root: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap());
        let directories = entries.filter(|entry| entry.path().is_dir());
        let mut names: Vec<String> = directories
            .map(|entry| entry.file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_process_leaves_what_another_one_uses_and_removes_what_nobody_does() {
        let data = tempfile::tempdir().unwrap();
        let root = data.path().join("spill");
        let (one, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        std::fs::create_dir_all(root.join("left-by-an-older-version")).unwrap();
        std::fs::create_dir_all(root.join("left-by-a-crash")).unwrap();
        std::fs::write(root.join("left-by-a-crash").join(HELD_FILE), "").unwrap();
        let first = SpillDirectory::open(&root, one).unwrap();
        assert_eq!(parts(&root), [one.to_string()]);
        std::fs::write(first.path().join("rows"), "rows").unwrap();
        let second = SpillDirectory::open(&root, other).unwrap();
        assert_eq!(parts(&root), [one.to_string(), other.to_string()]);
        assert_eq!(std::fs::read(first.path().join("rows")).unwrap(), b"rows");
        drop(first);
        assert_eq!(parts(&root), [other.to_string()]);
        drop(second);
        assert_eq!(parts(&root), [""; 0]);
    }
}
