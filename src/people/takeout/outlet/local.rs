//! Writes an archive into a file on this machine. The file gets its name only when it is whole and on disk;
//! what a crash leaves has another name, and the next attempt reuses it.

use std::ffi::OsString;
use std::fs::TryLockError;
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use sha2::{Digest as _, Sha256};
use tokio::fs::File;
use tokio::io::AsyncWriteExt as _;

use crate::model::hexadecimal::hexadecimal;
use crate::people::takeout::export::ExportError;
use crate::store::local::{Disk as _, SystemDisk};

/// The suffix of the name of an unfinished file.
const UNFINISHED_ENDING: &str = ".unfinished";

/// Receives the bytes of one archive.
pub(in crate::people::takeout) struct LocalOutlet<'e> {
    path: PathBuf,
    unfinished: PathBuf,
    file: File,
    bytes: u64,
    digest: Sha256,
    tell: &'e (dyn Fn(u64, u64) + Sync),
}

impl<'e> LocalOutlet<'e> {
    /// Begins the file at `path`, which must not exist yet. Only its owner may read it.
    pub(in crate::people::takeout) async fn begin(
        path: &Path,
        tell: &'e (dyn Fn(u64, u64) + Sync),
    ) -> Result<Self, ExportError> {
        let fails = |error| failed(path, &error);
        if tokio::fs::try_exists(path).await.map_err(fails)? {
            return Err(fails(io::Error::from(io::ErrorKind::AlreadyExists)));
        }
        let mut name = OsString::from(path);
        name.push(UNFINISHED_ENDING);
        let unfinished = PathBuf::from(name);
        let beginning = unfinished.clone();
        let begun = tokio::task::spawn_blocking(move || alone(&beginning)).await;
        let file = begun
            .map_err(io::Error::other)
            .flatten()
            .map_err(|error| failed(&unfinished, &error))?;
        Ok(Self {
            path: path.to_owned(),
            unfinished,
            file: File::from_std(file),
            bytes: 0,
            digest: Sha256::new(),
            tell,
        })
    }

    pub(super) async fn write(&mut self, bytes: Bytes) -> Result<(), ExportError> {
        self.digest.update(&bytes);
        self.bytes += bytes.len() as u64;
        self.file
            .write_all(&bytes)
            .await
            .map_err(|error| failed(&self.unfinished, &error))
    }

    pub(in crate::people::takeout) fn digest(&self) -> String {
        hexadecimal(&self.digest.clone().finalize())
    }

    pub(in crate::people::takeout) const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn tell(&self, done: u64, total: u64) {
        (self.tell)(done, total);
    }

    /// Finishes the archive: the file gets its name once it will survive a crash.
    pub(in crate::people::takeout) async fn finish(mut self) -> Result<(), ExportError> {
        let fails = |error| failed(&self.path, &error);
        self.file.flush().await.map_err(fails)?;
        self.file.sync_all().await.map_err(fails)?;
        let (from, to) = (self.unfinished.clone(), self.path.clone());
        let named = tokio::task::spawn_blocking(move || named(&from, &to)).await;
        named
            .map_err(io::Error::other)
            .and_then(|done| done)
            .map_err(fails)
    }

    /// Removes the unfinished file.
    pub(in crate::people::takeout) async fn abandon(self) {
        if let Err(error) = tokio::fs::remove_file(&self.unfinished).await {
            tracing::warn!(path = %self.unfinished.display(), %error, "an archive that is not whole stays");
        }
    }
}

/// The emptied file at `path`, locked while it is open.
fn alone(path: &Path) -> io::Result<std::fs::File> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    let file = options.open(path)?;
    let taken = || {
        io::Error::new(
            io::ErrorKind::ResourceBusy,
            "another process is writing it; wait for that, or name another file",
        )
    };
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(taken()),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    // Before the lock was free, its holder may have finished and renamed the file.
    let (opened, named) = (file.metadata()?, std::fs::metadata(path));
    if !named.is_ok_and(|named| (named.dev(), named.ino()) == (opened.dev(), opened.ino())) {
        return Err(taken());
    }
    file.set_len(0)?;
    Ok(file)
}

/// Renames a file, unless its new name was taken meanwhile.
fn named(from: &Path, to: &Path) -> io::Result<()> {
    if to.try_exists()? {
        return Err(io::Error::from(io::ErrorKind::AlreadyExists));
    }
    std::fs::rename(from, to)?;
    let directory = to.parent().filter(|parent| !parent.as_os_str().is_empty());
    SystemDisk.sync_directory(directory.unwrap_or(Path::new(".")))
}

fn failed(path: &Path, error: &io::Error) -> ExportError {
    ExportError::Unwritable {
        path: path.to_owned(),
        reason: error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn two_archives_do_not_become_one_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("archive.zip");
        let nothing = |_, _| {};
        let mut first = LocalOutlet::begin(&path, &nothing).await.unwrap();
        first.write(Bytes::from_static(b"first")).await.unwrap();
        assert!(LocalOutlet::begin(&path, &nothing).await.is_err());
        first.finish().await.unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"first");
        assert!(LocalOutlet::begin(&path, &nothing).await.is_err());
    }

    #[tokio::test]
    async fn what_a_crash_left_is_taken_over() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("archive.zip");
        std::fs::write(
            directory.path().join("archive.zip.unfinished"),
            "much that is old",
        )
        .unwrap();
        let mut next = LocalOutlet::begin(&path, &|_, _| {}).await.unwrap();
        next.write(Bytes::from_static(b"new")).await.unwrap();
        next.finish().await.unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
    }
}
