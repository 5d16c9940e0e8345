//! The directory with everything that an embedded installation owns. Nobody but its owner may look inside.

use std::fs::{File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use crate::store::local::{SystemDisk, make_lasting};

use super::failed::Failed;

const PRIVATE_MODE: u32 = 0o700;

/// Makes sure that `path` is a private directory.
///
/// One that others can enter is made private if it is empty: it was just made for us. One that already holds
/// something is left as it is and refused, because somebody may rely on others' access to it.
pub(super) fn open(path: &Path) -> Result<(), Failed> {
    let failed = |error: io::Error| {
        Failed::because(format!(
            "the data directory {} cannot be used: {error}",
            path.display()
        ))
    };
    make_lasting(path, &SystemDisk).map_err(failed)?;
    let mode = std::fs::metadata(path).map_err(failed)?.mode() & 0o777;
    if mode & PRIVATE_MODE == mode {
        return Ok(());
    }
    if std::fs::read_dir(path).map_err(failed)?.next().is_some() {
        let shown = path.display();
        return Err(Failed::because(format!(
            "the data directory {shown} is open to others (mode {mode:04o}): make it private with `chmod 700 \
             {shown}`"
        )));
    }
    std::fs::set_permissions(path, Permissions::from_mode(PRIVATE_MODE)).map_err(failed)
}

/// Marks a directory as served by this process, for as long as this lives.
pub(super) struct ServedDirectory {
    /// Whether another process already serves it. `false` where the system cannot tell.
    pub by_another: bool,
    _held: Option<File>,
}

/// Shows later processes that this one serves the directory, as far as the system supports that.
pub(super) fn served(path: &Path) -> ServedDirectory {
    let directory = File::open(path).ok();
    let is_locked = |directory: &File| matches!(directory.try_lock(), Err(TryLockError::WouldBlock));
    let by_another = directory.as_ref().is_some_and(is_locked);
    // All processes that serve it share a lock, so each one that is left still shows it. There is nothing to
    // wait for: nobody keeps an exclusive lock.
    let is_told = |directory: &File| directory.try_lock_shared().is_ok();
    if !directory.as_ref().is_some_and(is_told) {
        tracing::debug!("later processes are not told that this one serves the directory");
    }
    ServedDirectory {
        by_another,
        _held: directory,
    }
}

/// The path of a directory as an operator can find it, whatever their working directory.
pub(super) fn shown(path: &Path) -> String {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    whole.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn a_new_directory_is_private() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("new/data");
        open(&path).unwrap();
        assert_eq!(mode(&path), 0o700);
    }

    #[test]
    fn an_empty_directory_is_made_private() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
        open(directory.path()).unwrap();
        assert_eq!(mode(directory.path()), 0o700);
    }

    #[test]
    fn whoever_comes_later_is_told_as_long_as_somebody_serves() {
        let directory = tempfile::tempdir().unwrap();
        let enter = || served(directory.path());
        let first = enter();
        let second = enter();
        assert_eq!((first.by_another, second.by_another), (false, true));
        drop(first);
        assert!(enter().by_another);
        drop(second);
        assert!(!enter().by_another);
    }

    #[test]
    fn a_full_directory_that_others_can_enter_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("something"), "").unwrap();
        std::fs::set_permissions(directory.path(), Permissions::from_mode(0o750)).unwrap();
        assert!(
            open(directory.path())
                .unwrap_err()
                .to_string()
                .contains("chmod 700")
        );
        assert_eq!(mode(directory.path()), 0o750);
    }
}
