//! The object store, which keeps immutable Parquet objects on a local disk or in S3.
//!
//! When a write returns `Ok`, the object survives a crash and everybody who shares the store can read it.
//! Lives as long as the process. Knows nothing of what the objects contain.

mod known_size;
mod s3;
mod silence;
mod writing;

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, PutPayload,
};

use super::blocking::run_blocking;
use super::errors::StoreError;
use super::local::{Disk, DurableDirectory, SystemDisk};
use super::signing::Signing;
use crate::model::time::Instant;
use s3::open_s3;
pub use writing::ObjectWriter;
use writing::{Claim, PART_BYTES, WRITTEN_BYTES, create, not_written};

/// Where objects are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectStoreSettings {
    /// A directory on this machine.
    Local(PathBuf),
    /// `s3://bucket/prefix`, with options named like the usual `AWS_*` variables, in any case.
    S3 {
        url: String,
        options: Vec<(String, String)>,
    },
}

/// The object store. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ObjectStorage {
    store: Arc<dyn ObjectStore>,
    /// The same, if it is above another one.
    above: Option<Arc<dyn StoreAbove>>,
    directory: Option<DurableDirectory>,
    /// Creates addresses at which others than this process reach the store.
    signing: Option<Signing>,
}

/// A store above another one.
pub trait StoreAbove: ObjectStore {
    /// Drops from memory what was read of objects, or for them.
    fn forget_all(&self);
}

/// The state of an object at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectVersion {
    pub bytes: u64,
    tag: Option<String>,
}

/// An object as a listing shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredObject {
    pub path: String,
    pub bytes: u64,
    pub modified_at: Instant,
}

impl StoredObject {
    /// Of contested names: whether it only keeps the name for somebody who is writing the object, or has
    /// stopped before the end.
    #[must_use]
    pub const fn is_claim(&self) -> bool {
        self.bytes == 0
    }
}

impl ObjectStorage {
    pub fn open(settings: &ObjectStoreSettings) -> Result<Self, StoreError> {
        match settings {
            ObjectStoreSettings::Local(root) => Self::directory(root, Arc::new(SystemDisk)),
            ObjectStoreSettings::S3 { url, options } => Self::s3(url, options),
        }
    }

    /// The store as it is, to be looked at: nothing is made. `None` if its directory does not exist.
    pub fn found(settings: &ObjectStoreSettings) -> Result<Option<Self>, StoreError> {
        match settings {
            ObjectStoreSettings::Local(root) if !root.is_dir() => Ok(None),
            ObjectStoreSettings::Local(root) => {
                let files = LocalFileSystem::new_with_prefix(root)?;
                Ok(Some(Self::over(Arc::new(files))))
            }
            ObjectStoreSettings::S3 { url, options } => Self::s3(url, options).map(Some),
        }
    }

    /// A store in a directory on the given disk.
    pub fn directory(root: &std::path::Path, disk: Arc<dyn Disk>) -> Result<Self, StoreError> {
        let directory = DurableDirectory::open(root, disk).map_err(|error| StoreError::Unavailable {
            detail: format!("directory {}: {error}", root.display()),
        })?;
        Ok(Self {
            store: Arc::new(directory.clone()),
            above: None,
            directory: Some(directory),
            signing: None,
        })
    }

    fn s3(url: &str, options: &[(String, String)]) -> Result<Self, StoreError> {
        let (store, signing) = open_s3(url, options)?;
        Ok(Self {
            signing: Some(signing),
            ..Self::over(store)
        })
    }

    /// Any store, trusted to keep what it acknowledged.
    #[must_use]
    pub fn over(store: Arc<dyn ObjectStore>) -> Self {
        Self {
            store,
            above: None,
            directory: None,
            signing: None,
        }
    }

    /// This storage with another store above it, such as one that seals. Access past this process would
    /// bypass that one, so no addresses are given out any more.
    #[must_use]
    pub fn beneath(self, above: impl FnOnce(Arc<dyn ObjectStore>) -> Arc<dyn StoreAbove>) -> Self {
        let above = above(self.store);
        Self {
            above: Some(Arc::clone(&above)),
            store: above,
            signing: None,
            ..self
        }
    }

    /// Drops everything from memory.
    pub fn forget_all(&self) {
        if let Some(above) = &self.above {
            above.forget_all();
        }
    }

    /// The store itself, for readers of Parquet.
    #[must_use]
    pub fn store(&self) -> Arc<dyn ObjectStore> {
        Arc::clone(&self.store)
    }

    /// Writes an object that must not exist yet.
    pub async fn put(&self, path: &str, content: Bytes) -> Result<(), StoreError> {
        create(&*self.store, &location(path)?, PutPayload::from_bytes(content)).await
    }

    /// Writes an object, replacing any that exists. Readers see the one or the other.
    pub async fn replace(&self, path: &str, content: Bytes) -> Result<(), StoreError> {
        let (place, content) = (location(path)?, PutPayload::from_bytes(content));
        let mode = PutOptions::from(PutMode::Overwrite);
        let put = self.store.put_opts(&place, content, mode).await;
        put.map(drop).map_err(not_written)
    }

    pub async fn get(&self, path: &str) -> Result<Bytes, StoreError> {
        let found = self.store.get(&location(path)?).await.map_err(failure(path))?;
        Ok(found.bytes().await?)
    }

    /// The object's content in chunks.
    pub async fn stream(
        &self,
        path: &str,
    ) -> Result<BoxStream<'static, Result<Bytes, StoreError>>, StoreError> {
        Ok(self
            .store
            .get(&location(path)?)
            .await
            .map_err(failure(path))?
            .into_stream()
            .map_err(StoreError::from)
            .boxed())
    }

    pub async fn get_range(&self, path: &str, range: Range<u64>) -> Result<Bytes, StoreError> {
        self.range(&location(path)?, range).await.map_err(failure(path))
    }

    async fn range(&self, place: &Path, range: Range<u64>) -> object_store::Result<Bytes> {
        if self.directory.is_some() {
            // `get_range` opens and reads a file in two steps, this in one. Errors are left to `get_range`,
            // which can tell that a file is too short.
            let parts = self.store.get_ranges(place, std::slice::from_ref(&range)).await;
            if let Some(part) = parts.ok().and_then(|parts| parts.into_iter().next()) {
                return Ok(part);
            }
        }
        self.store.get_range(place, range).await
    }

    pub async fn get_ranges(&self, path: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>, StoreError> {
        self.store
            .get_ranges(&location(path)?, ranges)
            .await
            .map_err(failure(path))
    }

    pub async fn size(&self, path: &str) -> Result<u64, StoreError> {
        Ok(self.head(path).await?.size)
    }

    /// The present state of an object, if it exists. For objects that others may replace: ours never change.
    pub async fn version(&self, path: &str) -> Result<Option<ObjectVersion>, StoreError> {
        match self.head(path).await {
            Ok(found) => Ok(Some(ObjectVersion {
                bytes: found.size,
                tag: found.e_tag,
            })),
            Err(StoreError::Missing { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads a range of an object as `get_range` does; fails if the object is not `version` any more.
    pub async fn get_range_of(
        &self,
        path: &str,
        version: &ObjectVersion,
        range: Range<u64>,
    ) -> Result<Bytes, StoreError> {
        let options = GetOptions {
            range: Some(GetRange::Bounded(range)),
            if_match: version.tag.clone(),
            ..GetOptions::default()
        };
        Ok(self
            .store
            .get_opts(&location(path)?, options)
            .await
            .map_err(failure(path))?
            .bytes()
            .await?)
    }

    /// An address at which anybody who has it may put an object of `length` bytes at `path`, until `lifetime`
    /// is over. `None` where only this process reaches the store.
    pub async fn put_url(
        &self,
        path: &str,
        length: u64,
        lifetime: Duration,
    ) -> Result<Option<String>, StoreError> {
        match &self.signing {
            Some(signing) => signing
                .put_url(&location(path)?, length, lifetime)
                .await
                .map(Some),
            None => Ok(None),
        }
    }

    /// Removes an object. One that does not exist counts as removed.
    pub async fn delete(&self, path: &str) -> Result<(), StoreError> {
        match self.store.delete(&location(path)?).await.map_err(failure(path)) {
            Ok(()) | Err(StoreError::Missing { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Removes a folder that contains nothing but folders, where folders exist as such.
    pub async fn remove_empty_folders(&self, folder: &str) -> Result<(), StoreError> {
        if let Some(directory) = self.directory.clone() {
            let folder = location(folder)?;
            on_disk(move || directory.remove_empty(&folder)).await?;
        }
        Ok(())
    }

    /// Removes the empty folders below one in which nothing has changed for `age`, where folders exist as
    /// such.
    pub async fn remove_quiet_folders(&self, folder: &str, age: Duration) -> Result<(), StoreError> {
        if let Some(directory) = self.directory.clone() {
            let folder = location(folder)?;
            on_disk(move || directory.remove_quiet(&folder, age)).await?;
        }
        Ok(())
    }

    /// Whether a folder exists that contains nothing but folders. `false` where folders are only names.
    pub async fn is_empty_folder(&self, folder: &str) -> Result<bool, StoreError> {
        let Some(directory) = self.directory.clone() else {
            return Ok(false);
        };
        let place = location(folder)?;
        let is_there = on_disk(move || Ok(directory.has_folder(&place))).await?;
        Ok(is_there && self.list(folder)?.next().await.is_none())
    }

    /// The names of uploads in a directory, interrupted or running, that nobody has written to for `age`.
    /// Their owners are unknown. S3 does not show such uploads.
    pub async fn interrupted_uploads(&self, age: Duration) -> Result<Vec<String>, StoreError> {
        let Some(directory) = self.directory.clone() else {
            return Ok(Vec::new());
        };
        on_disk(move || directory.staged(age)).await
    }

    /// Every object whose path begins with the folders of `prefix`, in no particular order.
    pub fn list(
        &self,
        prefix: &str,
    ) -> Result<BoxStream<'static, Result<StoredObject, StoreError>>, StoreError> {
        let listed = self.store.list(Some(&location(prefix)?));
        Ok(listed
            .map(|found| {
                let found = found?;
                Ok(StoredObject {
                    path: found.location.to_string(),
                    bytes: found.size,
                    modified_at: Instant::from_micros(found.last_modified.timestamp_micros()),
                })
            })
            .boxed())
    }

    /// Begins an object whose content arrives in chunks. Nothing is visible until `finish` returns. Nobody
    /// else may write an object of this name: sent in parts, it would replace theirs.
    pub fn upload(&self, path: &str) -> Result<ObjectWriter, StoreError> {
        self.begin(path, Claim::Needless)
    }

    /// Begins an object as `upload` does, under a name that others may want as well. Who is not the first
    /// gets `Exists`, from `write` or from `finish`. Stores put an object sent in parts in the place of any
    /// other, so its name is claimed before the first part is sent: an empty object has it until `finish`
    /// returns, or until somebody removes what an interrupted upload left.
    pub fn upload_contested(&self, path: &str) -> Result<ObjectWriter, StoreError> {
        self.begin(path, Claim::Due)
    }

    fn begin(&self, path: &str, claim: Claim) -> Result<ObjectWriter, StoreError> {
        let part_bytes = if self.directory.is_some() {
            WRITTEN_BYTES
        } else {
            PART_BYTES
        };
        Ok(ObjectWriter::new(
            Arc::clone(&self.store),
            location(path)?,
            part_bytes,
            claim,
        ))
    }

    /// Removes what interrupted uploads left in a directory: what nobody holds, and all that is older than
    /// `age`. S3 has its own rules for that.
    pub async fn clear_interrupted_uploads(&self, age: Duration) -> Result<usize, StoreError> {
        let Some(directory) = self.directory.clone() else {
            return Ok(0);
        };
        on_disk(move || directory.clear_staging(age)).await
    }

    /// What the store knows of an object without its content.
    async fn head(&self, path: &str) -> Result<ObjectMeta, StoreError> {
        let place = location(path)?;
        match self.store.head(&place).await.map_err(failure(path)) {
            // S3 answers without a body here, and only the body tells an object that does not exist from a
            // bucket that does not. The answer to a request for the content has one.
            Err(StoreError::Missing { .. }) if self.directory.is_none() => {
                Ok(self.store.get(&place).await.map_err(failure(path))?.meta)
            }
            found => found,
        }
    }
}

/// Runs disk work on a thread that may wait.
async fn on_disk<T: Send + 'static>(
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> Result<T, StoreError> {
    let unavailable = |error: std::io::Error| StoreError::Unavailable {
        detail: error.to_string(),
    };
    run_blocking(move || work().map_err(unavailable)).await
}

/// What an error of the store means for the object at `path`. A directory says where on the disk it looked;
/// an object has the same name wherever it is kept.
fn failure(path: &str) -> impl Fn(object_store::Error) -> StoreError {
    move |error| match StoreError::from(error) {
        StoreError::Missing { .. } => StoreError::Missing {
            path: path.to_owned(),
        },
        StoreError::Exists { .. } => StoreError::Exists {
            path: path.to_owned(),
        },
        failure => failure,
    }
}

fn location(path: &str) -> Result<Path, StoreError> {
    Path::parse(path).map_err(|error| StoreError::Settings {
        detail: error.to_string(),
    })
}
