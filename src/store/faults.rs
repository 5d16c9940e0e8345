//! For tests: an object store that fails on command, and a disk that forgets what was not synchronised.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path as FilePath, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt as _, StreamExt as _};
use object_store::client::{HttpError, HttpErrorKind};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, UploadPart,
};

use super::local::Disk;
use super::objects::StoreAbove;

/// An operation on a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// A write in one request, or the end of one in parts.
    Put,
    /// One part of a write.
    Part,
    Get,
    Delete,
    List,
}

/// What happens instead of, or besides, the operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing is done, and the answer is an error.
    Fail,
    /// Nothing is done for lack of room.
    NoRoom,
    /// Nothing is done, because the bucket does not exist.
    NoBucket,
    /// Nothing is done, and no answer comes.
    Silence,
    /// It is done, but the answer is an error.
    LoseAnswer,
    /// It is done later.
    Delay(Duration),
    /// The answer is an error, and [`Fate::later`] decides whether it is still done.
    Later,
}

/// Decides what happens to the operations of a store.
#[async_trait]
pub trait Fate: fmt::Debug + Send + Sync {
    /// The fault of an operation that is about to begin.
    async fn fault_for(&self, operation: Operation, path: &str) -> Option<Fault>;

    /// Takes work that was answered with an error, to be done later or never.
    fn later(&self, work: BoxFuture<'static, ()>);
}

/// Scheduled faults. Shared with the store that suffers them.
#[derive(Debug, Default)]
pub struct Faults {
    once: Mutex<HashMap<Operation, VecDeque<Fault>>>,
    lasting: Mutex<HashMap<Operation, Fault>>,
}

impl Faults {
    /// The next operation of this kind without a scheduled fault suffers `fault`.
    pub fn once(&self, operation: Operation, fault: Fault) {
        lock(&self.once).entry(operation).or_default().push_back(fault);
    }

    /// Every operation of this kind suffers `fault` from now on; `None` ends it.
    pub fn lasting(&self, operation: Operation, fault: Option<Fault>) {
        match fault {
            Some(fault) => lock(&self.lasting).insert(operation, fault),
            None => lock(&self.lasting).remove(&operation),
        };
    }

    fn take(&self, operation: Operation) -> Option<Fault> {
        let once = lock(&self.once).get_mut(&operation).and_then(VecDeque::pop_front);
        once.or_else(|| lock(&self.lasting).get(&operation).copied())
    }
}

#[async_trait]
impl Fate for Faults {
    async fn fault_for(&self, operation: Operation, _path: &str) -> Option<Fault> {
        self.take(operation)
    }

    /// Later work is never done.
    fn later(&self, _work: BoxFuture<'static, ()>) {}
}

fn failed(kind: io::ErrorKind) -> Error {
    Error::Generic {
        store: "faulty",
        source: io::Error::from(kind).into(),
    }
}

/// What is made of an answer that does not come.
fn silent() -> Error {
    let reason = io::Error::from(io::ErrorKind::TimedOut);
    Error::Generic {
        store: "faulty",
        source: HttpError::new(HttpErrorKind::Timeout, reason).into(),
    }
}

/// What S3 answers to a request for a bucket that does not exist, if the answer has a body.
fn no_bucket(path: &str) -> Error {
    Error::NotFound {
        path: path.to_owned(),
        source: "NoSuchBucket".into(),
    }
}

/// The same error in an answer without a body: what does not exist, object or bucket, is not said.
fn without_body(error: Error) -> Error {
    match error {
        Error::NotFound { path, .. } => Error::NotFound {
            path,
            source: "404 Not Found".into(),
        },
        error => error,
    }
}

/// Runs `work` unless a fault prevents it.
async fn suffer<T: Send + 'static>(
    fate: &dyn Fate,
    operation: Operation,
    path: &str,
    work: impl Future<Output = Result<T>> + Send,
    later: Option<BoxFuture<'static, ()>>,
) -> Result<T> {
    match fate.fault_for(operation, path).await {
        None => work.await,
        Some(Fault::Fail) => Err(failed(io::ErrorKind::ConnectionReset)),
        Some(Fault::NoRoom) => Err(failed(io::ErrorKind::StorageFull)),
        Some(Fault::NoBucket) => Err(no_bucket(path)),
        Some(Fault::Silence) => Err(silent()),
        Some(Fault::LoseAnswer) => work
            .await
            .and_then(|_| Err(failed(io::ErrorKind::ConnectionReset))),
        Some(Fault::Delay(length)) => {
            tokio::time::sleep(length).await;
            work.await
        }
        Some(Fault::Later) => {
            if let Some(work) = later {
                fate.later(work);
            }
            Err(failed(io::ErrorKind::ConnectionReset))
        }
    }
}

/// A store that suffers faults.
#[derive(Clone, Debug)]
pub struct FaultyStore {
    inner: Arc<dyn ObjectStore>,
    fate: Arc<dyn Fate>,
}

impl FaultyStore {
    #[must_use]
    pub fn new(inner: Arc<dyn ObjectStore>, fate: Arc<impl Fate + 'static>) -> Self {
        Self { inner, fate }
    }

    async fn suffer<T: Send + 'static>(
        &self,
        operation: Operation,
        path: &Path,
        work: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        suffer(&*self.fate, operation, path.as_ref(), work, None).await
    }
}

impl StoreAbove for FaultyStore {
    fn forget_all(&self) {}
}

impl fmt::Display for FaultyStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "faulty {}", self.inner)
    }
}

#[async_trait]
impl ObjectStore for FaultyStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        let (inner, path) = (Arc::clone(&self.inner), location.clone());
        let (again, given) = (payload.clone(), options.clone());
        let later = async move {
            let _ = inner.put_opts(&path, again, given).await;
        };
        let work = self.inner.put_opts(location, payload, options);
        suffer(
            &*self.fate,
            Operation::Put,
            location.as_ref(),
            work,
            Some(later.boxed()),
        )
        .await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let inner = self.inner.put_multipart_opts(location, options).await?;
        Ok(Box::new(FaultyUpload {
            inner,
            path: location.clone(),
            fate: Arc::clone(&self.fate),
        }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let is_head = options.head;
        let answer = self.suffer(Operation::Get, location, self.inner.get_opts(location, options));
        let answer = answer.await;
        if is_head {
            return answer.map_err(without_body);
        }
        answer
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.suffer(Operation::Get, location, self.inner.get_ranges(location, ranges))
            .await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let (fate, inner) = (Arc::clone(&self.fate), Arc::clone(&self.inner));
        locations
            .then(move |location| {
                let (fate, inner) = (Arc::clone(&fate), Arc::clone(&inner));
                async move {
                    let path = location?;
                    let (again, missed) = (Arc::clone(&inner), path.clone());
                    let later = async move {
                        let _ = delete(&*again, missed).await;
                    };
                    let work = delete(&*inner, path.clone());
                    suffer(
                        &*fate,
                        Operation::Delete,
                        path.as_ref(),
                        work,
                        Some(later.boxed()),
                    )
                    .await
                }
            })
            .boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let (fate, inner) = (Arc::clone(&self.fate), Arc::clone(&self.inner));
        let prefix = prefix.cloned();
        async move {
            let path = prefix.as_ref().map_or("", |prefix| prefix.as_ref());
            match suffer(&*fate, Operation::List, path, async { Ok(()) }, None).await {
                Ok(()) => inner.list(prefix.as_ref()),
                Err(error) => futures::stream::once(async { Err(error) }).boxed(),
            }
        }
        .flatten_stream()
        .boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let path = prefix.cloned().unwrap_or_default();
        self.suffer(Operation::List, &path, self.inner.list_with_delimiter(prefix))
            .await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.suffer(Operation::Put, to, self.inner.copy_opts(from, to, options))
            .await
    }
}

async fn delete(store: &dyn ObjectStore, path: Path) -> Result<Path> {
    let one = futures::stream::once(async move { Ok(path) }).boxed();
    let missing = || Error::Generic {
        store: "faulty",
        source: "nothing was deleted".into(),
    };
    store
        .delete_stream(one)
        .next()
        .await
        .unwrap_or_else(|| Err(missing()))
}

#[derive(Debug)]
struct FaultyUpload {
    inner: Box<dyn MultipartUpload>,
    path: Path,
    fate: Arc<dyn Fate>,
}

#[async_trait]
impl MultipartUpload for FaultyUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let (part, fate) = (self.inner.put_part(data), Arc::clone(&self.fate));
        let path = self.path.clone();
        async move { suffer(&*fate, Operation::Part, path.as_ref(), part, None).await }.boxed()
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let work = self.inner.complete();
        suffer(&*self.fate, Operation::Put, self.path.as_ref(), work, None).await
    }

    async fn abort(&mut self) -> Result<()> {
        self.inner.abort().await
    }
}

/// A disk whose power can be cut: only what was synchronised survives. Files are identified by number, which
/// survives a change of name.
#[derive(Debug, Default)]
pub struct ForgetfulDisk {
    files: Mutex<HashSet<u64>>,
    names: Mutex<HashMap<PathBuf, HashSet<PathBuf>>>,
}

impl Disk for ForgetfulDisk {
    fn sync_file(&self, file: &File) -> io::Result<()> {
        lock(&self.files).insert(number(&file.metadata()?));
        Ok(())
    }

    fn sync_directory(&self, directory: &FilePath) -> io::Result<()> {
        let entries = std::fs::read_dir(directory)?
            .map(|entry| Ok(entry?.path()))
            .collect::<io::Result<_>>()?;
        lock(&self.names).insert(directory.to_path_buf(), entries);
        Ok(())
    }
}

impl ForgetfulDisk {
    /// Leaves below `root` only what would be there after a power cut: names in synchronised directories, and
    /// the content of synchronised files.
    pub fn lose_power(&self, root: &FilePath) -> io::Result<()> {
        let root = root.canonicalize()?;
        self.forget(&root)
    }

    fn forget(&self, directory: &FilePath) -> io::Result<()> {
        let durable = lock(&self.names).get(directory).cloned().unwrap_or_default();
        for entry in std::fs::read_dir(directory)? {
            let path = entry?.path();
            let metadata = std::fs::metadata(&path)?;
            match (durable.contains(&path), metadata.is_dir()) {
                (true, true) => self.forget(&path)?,
                (false, true) => std::fs::remove_dir_all(&path)?,
                (false, false) => std::fs::remove_file(&path)?,
                (true, false) if !lock(&self.files).contains(&number(&metadata)) => {
                    File::create(&path)?.set_len(0)?;
                }
                (true, false) => {}
            }
        }
        Ok(())
    }
}

#[cfg(unix)]
fn number(metadata: &std::fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(metadata)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
