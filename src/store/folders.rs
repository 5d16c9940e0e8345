//! The directories of a local object store: made so that they survive a power cut, and removed once they are
//! empty, unless somebody is about to write there.
//!
//! Removing a directory and naming an object in it exclude each other within a process. Other processes may
//! work on the same directories: so whoever finds that one is gone makes it again. Knows nothing of objects.

use std::collections::HashSet;
use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

/// How many directories are remembered that survive. Others are made sure of again.
const MOST_SETTLED: usize = 10_000;
/// How often a directory is made again that somebody else removes.
const ATTEMPTS: usize = 5;

/// Makes written bytes and names survive a power cut. A trait, so that tests can track what was synchronised.
pub trait Disk: fmt::Debug + Send + Sync {
    fn sync_file(&self, file: &File) -> io::Result<()>;
    fn sync_directory(&self, directory: &Path) -> io::Result<()>;
}

/// The operating system's disk.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemDisk;

impl Disk for SystemDisk {
    fn sync_file(&self, file: &File) -> io::Result<()> {
        // Its bytes and its length; nobody needs the time at which it changed.
        file.sync_data()
    }

    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        File::open(directory)?.sync_all()
    }
}

/// The directories below one, and which of them are known to survive.
#[derive(Debug)]
pub(super) struct Folders {
    root: PathBuf,
    disk: Arc<dyn Disk>,
    settled: Mutex<HashSet<PathBuf>>,
    /// Shared by those who name something in a directory, from when they look whether it is there.
    naming: RwLock<()>,
}

impl Folders {
    /// `root` exists and survives.
    pub(super) fn new(root: PathBuf, disk: Arc<dyn Disk>) -> Self {
        Self {
            settled: Mutex::new(HashSet::from([root.clone()])),
            root,
            disk,
            naming: RwLock::new(()),
        }
    }

    /// Runs `name`, which gives something a name in `directory`, after making the directory if there is none;
    /// then makes the name survive.
    pub(super) fn name_in(&self, directory: &Path, name: impl Fn() -> io::Result<()>) -> io::Result<()> {
        let mut attempts = 1;
        loop {
            let naming = self.naming.read().unwrap_or_else(PoisonError::into_inner);
            let named = self.settle(directory).and_then(|()| name());
            match named {
                // Another process removed the directory, because it was empty.
                Err(error) if error.kind() == io::ErrorKind::NotFound && attempts < ATTEMPTS => attempts += 1,
                named => {
                    named?;
                    self.disk.sync_directory(directory)?;
                    drop(naming);
                    return Ok(());
                }
            }
        }
    }

    /// Removes a directory durably, as far as it contains nothing but directories.
    pub(super) fn remove_empty(&self, directory: &Path) -> io::Result<()> {
        if !directory.exists() {
            return Ok(());
        }
        for inner in directories_in(directory)? {
            self.remove_beneath(&inner)?;
        }
        if !self.remove(directory)? {
            return Ok(());
        }
        match self.disk.sync_directory(directory.parent().unwrap_or(&self.root)) {
            // Somebody removed that one too.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            synchronised => synchronised,
        }
    }

    /// Removes the directories below one in which nothing has changed for `age`, and that are empty or become
    /// so by this.
    pub(super) fn remove_quiet(&self, directory: &Path, age: Duration) -> io::Result<()> {
        for inner in directories_in(directory)? {
            let quiet = quiet_for(&inner)?;
            self.remove_quiet(&inner, age)?;
            if quiet.is_some_and(|quiet| quiet >= age) {
                self.remove(&inner)?;
            }
        }
        Ok(())
    }

    fn remove_beneath(&self, directory: &Path) -> io::Result<()> {
        for inner in directories_in(directory)? {
            self.remove_beneath(&inner)?;
        }
        self.remove(directory).map(drop)
    }

    /// Removes a directory if it is empty; returns whether it did.
    fn remove(&self, directory: &Path) -> io::Result<bool> {
        let alone = self.naming.write().unwrap_or_else(PoisonError::into_inner);
        let removed = match std::fs::remove_dir(directory) {
            Ok(()) => true,
            // Something is in it, or somebody else removed it.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::NotFound
                ) =>
            {
                false
            }
            Err(error) => return Err(error),
        };
        if removed {
            self.settled().remove(directory);
        }
        drop(alone);
        Ok(removed)
    }

    /// Creates a directory and its parents, and makes sure that they survive. Once per directory and process,
    /// as far as so many are remembered.
    fn settle(&self, directory: &Path) -> io::Result<()> {
        if self.is_settled(directory) {
            return Ok(());
        }
        // Looked at before anything is created: a directory that was removed is not settled any more.
        let ancestors = directory
            .ancestors()
            .take_while(|ancestor| *ancestor != self.root);
        let unsettled: Vec<&Path> = ancestors
            .take_while(|ancestor| !self.is_settled(ancestor))
            .collect();
        make_private(directory)?;
        for directory in unsettled {
            let parent = directory.parent().unwrap_or(&self.root);
            self.disk.sync_directory(parent)?;
            let mut settled = self.settled();
            if settled.len() >= MOST_SETTLED {
                settled.clear();
            }
            settled.insert(directory.to_path_buf());
        }
        Ok(())
    }

    fn is_settled(&self, directory: &Path) -> bool {
        let is_known = self.settled().contains(directory);
        is_known && directory.exists()
    }

    fn settled(&self) -> MutexGuard<'_, HashSet<PathBuf>> {
        self.settled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Creates a directory with its parents, for its owner only, and makes sure that all that were created
/// survive a power cut.
pub fn make_lasting(directory: &Path, disk: &dyn Disk) -> io::Result<()> {
    let missing: Vec<&Path> = directory
        .ancestors()
        .take_while(|ancestor| !ancestor.as_os_str().is_empty() && !ancestor.exists())
        .collect();
    make_private(directory)?;
    for made in missing {
        let parent = made.parent().filter(|parent| !parent.as_os_str().is_empty());
        disk.sync_directory(parent.unwrap_or(Path::new(".")))?;
    }
    Ok(())
}

/// Creates a directory with its parents, for its owner only.
pub(super) fn make_private(directory: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}

/// The directories in one. None, if somebody removed it.
fn directories_in(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut directories = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            directories.push(entry.path());
        }
    }
    Ok(directories)
}

/// How long nothing in a directory has changed. `None`, if somebody removed it, or a clock was set back.
fn quiet_for(directory: &Path) -> io::Result<Option<Duration>> {
    match std::fs::metadata(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        found => Ok(found?.modified()?.elapsed().ok()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk on which somebody else removes a directory while it is being made.
    #[derive(Debug)]
    struct Swept {
        directory: PathBuf,
        times: Mutex<usize>,
    }

    impl Disk for Swept {
        fn sync_file(&self, file: &File) -> io::Result<()> {
            SystemDisk.sync_file(file)
        }

        fn sync_directory(&self, directory: &Path) -> io::Result<()> {
            SystemDisk.sync_directory(directory)?;
            let mut times = self.times.lock().unwrap();
            if *times > 0 && self.directory.exists() {
                *times -= 1;
                std::fs::remove_dir(&self.directory)?;
            }
            Ok(())
        }
    }

    #[test]
    fn a_directory_that_somebody_else_removes_is_made_again() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("frames/person/frame");
        for (times, is_written) in [(1, true), (ATTEMPTS - 1, true), (ATTEMPTS, false)] {
            let disk = Swept {
                directory: directory.clone(),
                times: Mutex::new(times),
            };
            let folders = Folders::new(home.path().to_path_buf(), Arc::new(disk));
            let written = folders.name_in(&directory, || std::fs::write(directory.join("part"), b"x"));
            assert_eq!(written.is_ok(), is_written, "{times}: {written:?}");
            assert_eq!(directory.join("part").exists(), is_written);
            std::fs::remove_dir_all(home.path().join("frames")).unwrap();
        }
    }

    #[test]
    fn only_what_has_been_empty_for_long_is_removed() {
        let home = tempfile::tempdir().unwrap();
        let folders = Folders::new(home.path().to_path_buf(), Arc::new(SystemDisk));
        let frames = home.path().join("frames");
        let [old, young, full] = ["old", "young", "full"].map(|name| frames.join(name).join("frame"));
        for directory in [&old, &young, &full] {
            make_private(directory).unwrap();
        }
        std::fs::write(full.join("part"), b"x").unwrap();
        let age = Duration::from_hours(7);
        for directory in [&old, &full] {
            let long_ago = std::time::SystemTime::now() - age * 2;
            File::open(directory).unwrap().set_modified(long_ago).unwrap();
        }
        folders.remove_quiet(&frames, age).unwrap();
        assert!(!old.exists() && young.exists() && full.exists());
        assert!(frames.join("old").exists(), "it was made just now");
        folders.remove_quiet(&frames, Duration::ZERO).unwrap();
        let left = directories_in(&frames).unwrap();
        assert_eq!(left, [frames.join("full")]);
        folders.remove_quiet(&home.path().join("none"), age).unwrap();
    }

    #[test]
    fn whoever_writes_and_whoever_clears_away_do_not_meet() {
        let home = tempfile::tempdir().unwrap();
        let folders = Folders::new(home.path().to_path_buf(), Arc::new(SystemDisk));
        let directory = home.path().join("files/person/content");
        std::thread::scope(|scope| {
            let clearing = scope.spawn(|| {
                for _ in 0..50 {
                    folders.remove_empty(&home.path().join("files")).unwrap();
                }
            });
            for number in 0..50 {
                let part = directory.join(number.to_string());
                folders
                    .name_in(&directory, || std::fs::write(&part, b"x"))
                    .unwrap();
                assert!(part.exists());
                std::fs::remove_file(&part).unwrap();
            }
            clearing.join().unwrap();
        });
        folders.remove_empty(&home.path().join("files")).unwrap();
        assert!(!home.path().join("files").exists());
    }
}
