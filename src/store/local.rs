//! A directory as an object store whose writes survive a power cut.
//!
//! Listings, removals, and reads that must wait are those of `object_store`'s own local store, which never
//! synchronises what it writes. Here an object is written to a staging file, synchronised, given its name,
//! and then the directory is synchronised, as are directories that had to be created. When a write returns
//! `Ok`, the whole object survives a crash; before that, it does not exist.

use std::fmt;
use std::fs::File;
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::{Path as FilePath, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMode,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, UploadPart,
};

pub use super::folders::{Disk, SystemDisk, make_lasting};
use super::folders::{Folders, make_private};
use super::page_cache;
use super::staging::Staging;

const STAGING: &str = "staging";

/// The store. Cheap to clone.
#[derive(Clone, Debug)]
pub struct DurableDirectory {
    files: Arc<LocalFileSystem>,
    names: Arc<Names>,
}

/// Where things are.
#[derive(Debug)]
struct Names {
    root: PathBuf,
    staging: Staging,
    folders: Folders,
    disk: Arc<dyn Disk>,
}

impl DurableDirectory {
    /// Opens the directory, or creates it for its owner only.
    pub fn open(root: &FilePath, disk: Arc<dyn Disk>) -> io::Result<Self> {
        make_lasting(root, &*disk)?;
        let root = root.canonicalize()?;
        let staging = root.join(STAGING);
        make_private(&staging)?;
        if let Some(parent) = root.parent() {
            disk.sync_directory(parent)?;
        }
        disk.sync_directory(&root)?;
        let files = LocalFileSystem::new_with_prefix(&root).map_err(io::Error::other)?;
        Ok(Self {
            files: Arc::new(files),
            names: Arc::new(Names {
                staging: Staging::new(staging),
                folders: Folders::new(root.clone(), Arc::clone(&disk)),
                root,
                disk,
            }),
        })
    }

    /// Removes staging files that a crash left behind: those that nobody holds, and all that are older than
    /// `age`. Returns how many.
    pub fn clear_staging(&self, age: std::time::Duration) -> io::Result<usize> {
        self.names.staging.clear(age)
    }

    /// The paths of staging files that nobody has written to for `age`.
    pub fn staged(&self, age: std::time::Duration) -> io::Result<Vec<String>> {
        let older = self.names.staging.older_than(age)?;
        Ok(older.iter().map(|name| format!("{STAGING}/{name}")).collect())
    }

    /// Whether a directory exists, empty or not.
    #[must_use]
    pub fn has_folder(&self, folder: &Path) -> bool {
        self.names.place(folder).exists()
    }

    /// Removes a directory durably, as far as it contains nothing but directories.
    pub fn remove_empty(&self, folder: &Path) -> io::Result<()> {
        self.names.folders.remove_empty(&self.names.place(folder))
    }

    /// Removes the directories below one in which nothing has changed for `age`, and that are empty or become
    /// so by this.
    pub fn remove_quiet(&self, folder: &Path, age: std::time::Duration) -> io::Result<()> {
        self.names.folders.remove_quiet(&self.names.place(folder), age)
    }
}

impl Names {
    fn place(&self, location: &Path) -> PathBuf {
        location
            .parts()
            .fold(self.root.clone(), |path, part| path.join(part.as_ref()))
    }

    /// Gives the staged file its name, durably.
    fn publish(&self, file: &File, staged: &FilePath, location: &Path, overwrite: bool) -> Result<()> {
        let place = self.place(location);
        let publish = || {
            self.disk.sync_file(file)?;
            let directory = place.parent().unwrap_or(&self.root);
            self.folders.name_in(directory, || {
                if overwrite {
                    return std::fs::rename(staged, &place);
                }
                std::fs::hard_link(staged, &place)?;
                std::fs::remove_file(staged)
            })
        };
        publish().map_err(|error| {
            // Errors do not matter here: staging is swept.
            let _ = std::fs::remove_file(staged);
            failure(location, error)
        })
    }
}

impl fmt::Display for DurableDirectory {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "directory {}", self.names.root.display())
    }
}

#[async_trait]
impl ObjectStore for DurableDirectory {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        let overwrite = match options.mode {
            PutMode::Overwrite => true,
            PutMode::Create => false,
            PutMode::Update(_) => {
                return Err(Error::NotImplemented {
                    operation: "conditional update".to_owned(),
                    implementer: self.to_string(),
                });
            }
        };
        let (names, location) = (Arc::clone(&self.names), location.clone());
        blocking(move || {
            let (mut file, staged) = names.staging.begin().map_err(|error| failure(&location, error))?;
            payload
                .iter()
                .try_for_each(|part| file.write_all(part))
                .map_err(|error| {
                    let _ = std::fs::remove_file(&staged);
                    failure(&location, error)
                })?;
            names.publish(&file, &staged, &location, overwrite)?;
            Ok(PutResult {
                e_tag: None,
                version: None,
            })
        })
        .await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        _options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let (names, location) = (Arc::clone(&self.names), location.clone());
        let upload = blocking(move || {
            let (file, staged) = names.staging.begin().map_err(|error| failure(&location, error))?;
            Ok(StagedUpload {
                state: Arc::new(UploadState {
                    names,
                    location,
                    file: Mutex::new(file),
                    staged,
                }),
                offset: 0,
                open: true,
            })
        })
        .await?;
        Ok(Box::new(upload))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.files.get_opts(location, options).await
    }

    async fn get_ranges(
        &self,
        location: &Path,
        ranges: &[std::ops::Range<u64>],
    ) -> Result<Vec<bytes::Bytes>> {
        match page_cache::read(&self.names.place(location), ranges) {
            Some(content) => Ok(content),
            None => self.files.get_ranges(location, ranges).await,
        }
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.files.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.files.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.files.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.files.copy_opts(from, to, options).await
    }
}

/// An object whose parts are written to a staging file.
#[derive(Debug)]
struct StagedUpload {
    state: Arc<UploadState>,
    offset: u64,
    open: bool,
}

#[derive(Debug)]
struct UploadState {
    names: Arc<Names>,
    location: Path,
    file: Mutex<File>,
    staged: PathBuf,
}

#[async_trait]
impl MultipartUpload for StagedUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let offset = self.offset;
        self.offset += data.content_length() as u64;
        let state = Arc::clone(&self.state);
        let written: BoxFuture<'static, Result<()>> = Box::pin(blocking(move || {
            let mut file = state.file.lock().unwrap_or_else(PoisonError::into_inner);
            let mut write = || {
                file.seek(SeekFrom::Start(offset))?;
                data.iter().try_for_each(|part| file.write_all(part))
            };
            write().map_err(|error| failure(&state.location, error))
        }));
        written
    }

    async fn complete(&mut self) -> Result<PutResult> {
        self.open = false;
        let state = Arc::clone(&self.state);
        blocking(move || {
            let file = state.file.lock().unwrap_or_else(PoisonError::into_inner);
            state.names.publish(&file, &state.staged, &state.location, true)?;
            Ok(PutResult {
                e_tag: None,
                version: None,
            })
        })
        .await
    }

    async fn abort(&mut self) -> Result<()> {
        self.open = false;
        let state = Arc::clone(&self.state);
        blocking(move || std::fs::remove_file(&state.staged).map_err(|error| failure(&state.location, error)))
            .await
    }
}

impl Drop for StagedUpload {
    fn drop(&mut self) {
        if self.open {
            // Errors do not matter here: staging is swept.
            let _ = std::fs::remove_file(&self.state.staged);
        }
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|source| Error::JoinError { source })?
}

fn failure(location: &Path, error: io::Error) -> Error {
    let path = location.to_string();
    match error.kind() {
        io::ErrorKind::AlreadyExists => Error::AlreadyExists {
            path,
            source: error.into(),
        },
        io::ErrorKind::NotFound => Error::NotFound {
            path,
            source: error.into(),
        },
        _ => Error::Generic {
            store: "directory",
            source: error.into(),
        },
    }
}
