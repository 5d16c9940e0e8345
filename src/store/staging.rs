//! Files that are being written and have no name yet.
//!
//! Whoever writes one holds a lock on it for as long as it is open, so that what a killed process left can be
//! told from what another process is still writing. Locks do not reach across every network file system;
//! there only age says it. Knows nothing of what is in the files, nor what they will be called.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::model::ids::passing_name;

/// A file that nobody seems to hold is left alone for this long: a machine whose locks are not seen here may
/// be writing it.
const QUIET_BEFORE_REMOVAL: Duration = Duration::from_secs(10);

/// The directory of files that are being written. Processes may share it.
#[derive(Debug)]
pub(super) struct Staging {
    directory: PathBuf,
}

impl Staging {
    /// `directory` exists.
    pub(super) const fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// A new file, held until it is closed.
    pub(super) fn begin(&self) -> io::Result<(File, PathBuf)> {
        // Processes that share the directory may have the same process id, for example in two containers.
        let path = self.directory.join(passing_name());
        let file = new_file(&path)?;
        // Without locks, its age has to do. Nobody else can hold it: it is too young to be looked at.
        let _held = file.try_lock();
        Ok((file, path))
    }

    /// The names of the files that nobody has written to for `age`.
    pub(super) fn older_than(&self, age: Duration) -> io::Result<Vec<String>> {
        let older = self.with_ages()?.into_iter().filter(|(_, quiet)| *quiet > age);
        Ok(older.map(|(name, _)| name).collect())
    }

    /// Removes files that nobody has written to for `age`, and earlier those that nobody holds; returns how
    /// many.
    pub(super) fn clear(&self, age: Duration) -> io::Result<usize> {
        let mut removed = 0;
        for (name, quiet) in self.with_ages()? {
            let path = self.directory.join(&name);
            // Held until it is removed.
            let unheld = if quiet > QUIET_BEFORE_REMOVAL {
                unheld(&path)
            } else {
                None
            };
            if unheld.is_none() && quiet <= age {
                continue;
            }
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                gone => {
                    gone?;
                    removed += 1;
                }
            }
        }
        Ok(removed)
    }

    /// The names of all files, and how long nobody has written to each.
    fn with_ages(&self) -> io::Result<Vec<(String, Duration)>> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(&self.directory)? {
            let entry = entry?;
            let modified = match entry.metadata() {
                Ok(metadata) => metadata.modified()?,
                // It was published or abandoned meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            if let Ok(quiet) = modified.elapsed() {
                found.push((entry.file_name().to_string_lossy().into_owned(), quiet));
            }
        }
        Ok(found)
    }
}

/// The file, if nobody else holds it. `None` as well where that cannot be told.
fn unheld(path: &Path) -> Option<File> {
    // Some file systems lock a file only for those who may write to it.
    let file = File::options().append(true).open(path).ok()?;
    file.try_lock().ok()?;
    Some(file)
}

/// A new file, for its owner only. It stays private when published.
fn new_file(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    fn quiet_for(file: &File, age: Duration) {
        file.set_modified(SystemTime::now() - age).unwrap();
    }

    #[test]
    fn what_nobody_holds_is_removed_and_what_is_being_written_stays_until_it_is_old() {
        let directory = tempfile::tempdir().unwrap();
        let staging = Staging::new(directory.path().to_path_buf());
        let age = Duration::from_hours(7);
        let (held, held_path) = staging.begin().unwrap();
        let (left, left_path) = staging.begin().unwrap();
        assert_eq!(staging.clear(age).unwrap(), 0);
        quiet_for(&held, QUIET_BEFORE_REMOVAL * 2);
        quiet_for(&left, QUIET_BEFORE_REMOVAL * 2);
        drop(left);
        assert_eq!(staging.clear(age).unwrap(), 1);
        assert!(held_path.exists() && !left_path.exists());
        // What was left a moment ago may be held on a machine whose locks are not seen here.
        drop(staging.begin().unwrap());
        assert_eq!(staging.clear(age).unwrap(), 0);
        quiet_for(&held, age * 2);
        assert_eq!(staging.older_than(age).unwrap().len(), 1);
        assert_eq!(staging.clear(age).unwrap(), 1);
        assert!(!held_path.exists());
    }
}
