//! The object store, which keeps immutable Parquet objects on a local disk or in S3.
//!
//! When a write returns `Ok`, the object survives a crash and everybody who shares the store can read it.
//! Lives as long as the process. Knows nothing of what the objects contain.

use std::ops::Range;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::prefix::PrefixStore;
use object_store::{
    BackoffConfig, ClientOptions, GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt as _,
    PutMode, PutOptions, PutPayload, RetryConfig, WriteMultipart,
};

use super::errors::StoreError;
use super::local::{Disk, DurableDirectory, SystemDisk};
use super::signing::Signing;
use crate::model::time::Instant;

/// Objects up to this size are sent in one request, larger ones in parts of it.
const PART_BYTES: usize = 8 << 20;
/// Objects up to this size are written to a directory at once, larger ones in parts of it: parts need no
/// requests there, and unwritten bytes are held in memory.
const WRITTEN_BYTES: usize = 1 << 20;
/// How many parts are sent at once.
const PARTS_AT_ONCE: usize = 4;

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
    directory: Option<DurableDirectory>,
    /// Creates addresses at which others than this process reach the store.
    signing: Option<Signing>,
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
            ObjectStoreSettings::S3 { url, options } => open_s3(url, options),
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
            ObjectStoreSettings::S3 { url, options } => open_s3(url, options).map(Some),
        }
    }

    /// A store in a directory on the given disk.
    pub fn directory(root: &std::path::Path, disk: Arc<dyn Disk>) -> Result<Self, StoreError> {
        let directory = DurableDirectory::open(root, disk).map_err(|error| StoreError::Unavailable {
            detail: format!("directory {}: {error}", root.display()),
        })?;
        Ok(Self {
            store: Arc::new(directory.clone()),
            directory: Some(directory),
            signing: None,
        })
    }

    /// Any store, trusted to keep what it acknowledged.
    #[must_use]
    pub fn over(store: Arc<dyn ObjectStore>) -> Self {
        Self {
            store,
            directory: None,
            signing: None,
        }
    }

    /// This storage with another store above it, such as one that seals. Access past this process would
    /// bypass that one, so no addresses are given out any more.
    #[must_use]
    pub fn beneath(self, above: impl FnOnce(Arc<dyn ObjectStore>) -> Arc<dyn ObjectStore>) -> Self {
        Self {
            store: above(self.store),
            signing: None,
            ..self
        }
    }

    /// The store itself, for readers of Parquet.
    #[must_use]
    pub fn store(&self) -> Arc<dyn ObjectStore> {
        Arc::clone(&self.store)
    }

    /// Writes an object that must not exist yet.
    pub async fn put(&self, path: &str, content: Bytes) -> Result<(), StoreError> {
        self.create(&location(path)?, PutPayload::from_bytes(content))
            .await
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
        let place = location(path)?;
        if self.directory.is_some() {
            // `get_range` opens and reads a file in two steps, this in one. Errors are left to `get_range`,
            // which can tell that a file is too short.
            let parts = self.store.get_ranges(&place, std::slice::from_ref(&range)).await;
            if let Some(part) = parts.ok().and_then(|parts| parts.into_iter().next()) {
                return Ok(part);
            }
        }
        self.store.get_range(&place, range).await.map_err(failure(path))
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
            blocking(move || directory.remove_empty(&folder)).await?;
        }
        Ok(())
    }

    /// Removes the empty folders below one in which nothing has changed for `age`, where folders exist as
    /// such.
    pub async fn remove_quiet_folders(&self, folder: &str, age: Duration) -> Result<(), StoreError> {
        if let Some(directory) = self.directory.clone() {
            let folder = location(folder)?;
            blocking(move || directory.remove_quiet(&folder, age)).await?;
        }
        Ok(())
    }

    /// Whether a folder exists that contains nothing but folders. `false` where folders are only names.
    pub async fn is_empty_folder(&self, folder: &str) -> Result<bool, StoreError> {
        let Some(directory) = self.directory.clone() else {
            return Ok(false);
        };
        let place = location(folder)?;
        let is_there = blocking(move || Ok(directory.has_folder(&place))).await?;
        Ok(is_there && self.list(folder)?.next().await.is_none())
    }

    /// The names of uploads in a directory, interrupted or running, that nobody has written to for `age`.
    /// Their owners are unknown. S3 does not show such uploads.
    pub async fn interrupted_uploads(&self, age: Duration) -> Result<Vec<String>, StoreError> {
        let Some(directory) = self.directory.clone() else {
            return Ok(Vec::new());
        };
        blocking(move || directory.staged(age)).await
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
    pub fn upload(&self, path: &str) -> Result<Upload, StoreError> {
        self.begin(path, Claim::Needless)
    }

    /// Begins an object as `upload` does, under a name that others may want as well. Who is not the first
    /// gets `Exists`, from `write` or from `finish`. Stores put an object sent in parts in the place of any
    /// other, so its name is claimed before the first part is sent: an empty object has it until `finish`
    /// returns, or until somebody removes what an interrupted upload left.
    pub fn upload_contested(&self, path: &str) -> Result<Upload, StoreError> {
        self.begin(path, Claim::Due)
    }

    fn begin(&self, path: &str, claim: Claim) -> Result<Upload, StoreError> {
        Ok(Upload {
            storage: self.clone(),
            claim,
            location: location(path)?,
            part_bytes: if self.directory.is_some() {
                WRITTEN_BYTES
            } else {
                PART_BYTES
            },
            pending: Vec::new(),
            pending_bytes: 0,
            parts: None,
        })
    }

    /// Removes what interrupted uploads left in a directory: what nobody holds, and all that is older than
    /// `age`. S3 has its own rules for that.
    pub async fn clear_interrupted_uploads(&self, age: Duration) -> Result<usize, StoreError> {
        let Some(directory) = self.directory.clone() else {
            return Ok(0);
        };
        blocking(move || directory.clear_staging(age)).await
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

    async fn create(&self, location: &Path, payload: PutPayload) -> Result<(), StoreError> {
        let content = payload.clone();
        let put = self
            .store
            .put_opts(location, payload, PutOptions::from(PutMode::Create));
        match put.await {
            // A store's answer may be lost; a repeated request then finds the object that the first one
            // wrote.
            Err(exists @ object_store::Error::AlreadyExists { .. }) => {
                if self.holds(location, &content).await? {
                    Ok(())
                } else {
                    Err(exists.into())
                }
            }
            done => done.map(drop).map_err(not_written),
        }
    }

    /// Puts an empty object in the place of one that will be written.
    async fn claim(&self, location: &Path) -> Result<(), StoreError> {
        let mode = PutOptions::from(PutMode::Create);
        let put = self.store.put_opts(location, PutPayload::default(), mode).await;
        // One that is there is not compared as in `create`: an empty object may be anybody's.
        put.map(drop).map_err(not_written)
    }

    /// Whether an object has exactly this content.
    async fn holds(&self, location: &Path, content: &PutPayload) -> Result<bool, StoreError> {
        // Its size first: a claim is not read, as its owner may be about to replace it. An object that came
        // and went is none that was written.
        let found = self.store.head(location).await.map_err(not_written)?;
        if found.size != content.content_length() as u64 {
            return Ok(false);
        }
        let found = self.store.get(location).await.map_err(not_written)?;
        let found = found.bytes().await?;
        Ok(content.iter().flatten().eq(found.iter()))
    }
}

/// Whether the name of an object belongs to its writer before the object is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Claim {
    /// Nobody else wants it.
    Needless,
    /// Before the first part is sent.
    Due,
    Made,
}

/// An object being written. Dropping it leaves nothing visible, except the claim of a contested name.
#[derive(Debug)]
pub struct Upload {
    storage: ObjectStorage,
    claim: Claim,
    location: Path,
    part_bytes: usize,
    pending: Vec<Bytes>,
    pending_bytes: usize,
    parts: Option<WriteMultipart>,
}

impl Upload {
    /// Appends to the object; waits while too much is being sent.
    pub async fn write(&mut self, content: Bytes) -> Result<(), StoreError> {
        if let Some(parts) = &mut self.parts {
            parts
                .wait_for_capacity(PARTS_AT_ONCE)
                .await
                .map_err(not_written)?;
            parts.put(content);
            return Ok(());
        }
        self.pending_bytes += content.len();
        self.pending.push(content);
        if self.pending_bytes > self.part_bytes {
            if self.claim == Claim::Due {
                self.storage.claim(&self.location).await?;
                self.claim = Claim::Made;
            }
            let begun = self.storage.store.put_multipart(&self.location).await;
            let upload = begun.map_err(not_written)?;
            let mut parts = WriteMultipart::new_with_chunk_size(upload, self.part_bytes);
            for content in self.pending.drain(..) {
                parts.put(content);
            }
            self.parts = Some(parts);
        }
        Ok(())
    }

    /// Makes the object durable and visible.
    pub async fn finish(self) -> Result<(), StoreError> {
        match self.parts {
            Some(parts) => parts.finish().await.map(drop).map_err(not_written),
            None => {
                self.storage
                    .create(&self.location, PutPayload::from_iter(self.pending))
                    .await
            }
        }
    }

    /// Gives up, and removes what was sent, and then the claim: nothing can take its place any more.
    pub async fn abort(self) -> Result<(), StoreError> {
        if let Some(parts) = self.parts {
            parts.abort().await?;
        }
        if self.claim == Claim::Made {
            self.storage.delete(self.location.as_ref()).await?;
        }
        Ok(())
    }
}

/// Runs disk work on a thread that may wait.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> Result<T, StoreError> {
    let unavailable = |error: &dyn std::error::Error| StoreError::Unavailable {
        detail: error.to_string(),
    };
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done.map_err(|error| unavailable(&error)),
        Err(error) => Err(unavailable(&error)),
    }
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

/// What an error of the store means for an object that is being written. The object itself need not exist, so
/// what is missing is what it goes into, such as the bucket. The store cannot be used; nothing is damaged.
fn not_written(error: object_store::Error) -> StoreError {
    let detail = error.to_string();
    match StoreError::from(error) {
        StoreError::Missing { .. } => StoreError::Unavailable {
            detail: format!("what it is written to, such as the bucket, does not exist: {detail}"),
        },
        failure => failure,
    }
}

fn location(path: &str) -> Result<Path, StoreError> {
    Path::parse(path).map_err(|error| StoreError::Settings {
        detail: error.to_string(),
    })
}

fn open_s3(url: &str, options: &[(String, String)]) -> Result<ObjectStorage, StoreError> {
    let settings = |detail: String| StoreError::Settings { detail };
    let rest = url
        .strip_prefix("s3://")
        .ok_or_else(|| settings(format!("{url:?} is not understood: expected s3://BUCKET/PREFIX")))?;
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    let mut builder = AmazonS3Builder::new()
        .with_bucket_name(bucket)
        .with_retry(RetryConfig {
            backoff: BackoffConfig {
                init_backoff: Duration::from_millis(50),
                max_backoff: Duration::from_secs(2),
                base: 2.0,
            },
            max_retries: 5,
            retry_timeout: Duration::from_secs(20),
        })
        .with_client_options(
            ClientOptions::new()
                .with_connect_timeout(Duration::from_secs(3))
                .with_timeout(Duration::from_secs(30)),
        );
    for (name, value) in options {
        // Other variables of the same family, such as profiles, mean nothing here.
        if let Ok(key) = AmazonS3ConfigKey::from_str(&name.to_ascii_lowercase()) {
            builder = builder.with_config(key, value);
        }
    }
    let store = builder.build().map_err(|error| settings(error.to_string()))?;
    let signer = Arc::new(store.clone());
    let prefix = location(prefix.trim_matches('/'))?;
    let signing = Some(Signing::new(signer, prefix.clone()));
    let store: Arc<dyn ObjectStore> = if prefix.as_ref().is_empty() {
        Arc::new(store)
    } else {
        Arc::new(PrefixStore::new(store, prefix))
    };
    Ok(ObjectStorage {
        signing,
        ..ObjectStorage::over(store)
    })
}
