//! The commit queue: many requests wait, one transaction commits them all.
//!
//! One task per process takes whatever waits while the previous transaction was being synced, settles
//! identity against a snapshot, and commits with a comparison of versions, so that other nodes and the upkeep
//! jobs can work on the same partitions. A request is answered after the commit that holds it. Knows uploads,
//! snapshots and the catalogue; knows nothing of bodies.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant as Moment};

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::catalog::records::{Commit, CommitOutcome, UploadReceipt};
use crate::catalog::{Catalog, CatalogError};
use crate::model::ids::{IdSource, PersonId, PieceId, UploadId};
use crate::model::registry::{Layout, TypeId};
use crate::store::StoreError;

use super::assemble::{self, AssembleError, Assembled, Stores};
use super::merge::Change;
use super::upload::{Upload, Work};

/// A group that other writers keep overtaking is given up after so many looks.
const ATTEMPTS: usize = 20;

type PartitionId = (PersonId, TypeId);
type LayoutChanges = (Arc<Layout>, Vec<Change>);

/// How the queue is sized.
#[derive(Clone, Copy, Debug)]
pub struct QueueSettings {
    /// Requests that may wait; more are refused at once.
    pub waiting: usize,
    /// Requests that one transaction takes at most.
    pub group: usize,
    /// How long a transaction gathers after its first request. What arrives while another is synced is
    /// gathered anyway.
    pub window: Duration,
    /// Bytes of rows after which a transaction takes no further request.
    pub size: usize,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    pub upload: UploadId,
    /// The same request was accepted before; nothing was done now.
    pub repeated: bool,
}

/// Why a request was not committed. Nothing of it is or will become visible.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CommitError {
    #[error("too many writes are waiting; try again soon")]
    Busy,
    #[error("this Idempotency-Key came with another request before")]
    KeyReused,
    #[error("the disk is full")]
    Full,
    #[error("the store cannot be written now: {0}")]
    Unavailable(String),
    #[error("stored data is damaged: {0}")]
    Corrupt(String),
    #[error("the service is stopping")]
    Stopping,
}

/// What happened in one transaction, for whoever counts.
#[derive(Clone, Copy, Debug)]
pub struct GroupReport {
    pub requests: usize,
    pub rows: i64,
    pub bytes: i64,
    pub elapsed: Duration,
    pub committed: bool,
    /// How often the group had to be put together again because somebody else came first.
    pub stale: usize,
}

/// Where requests wait to be committed.
#[derive(Clone, Debug)]
pub struct CommitQueue {
    sender: mpsc::Sender<Waiting>,
    depth: Arc<AtomicUsize>,
}

#[derive(Debug)]
struct Waiting {
    upload: Upload,
    reply: oneshot::Sender<Result<Receipt, CommitError>>,
}

struct Settled {
    results: Vec<Result<Receipt, CommitError>>,
    rows: i64,
    bytes: i64,
    stale: usize,
}

/// What the committing task works with.
pub struct Committer {
    pub catalog: Catalog,
    pub stores: Stores,
    pub ids: Arc<dyn IdSource>,
    pub report: Box<dyn Fn(GroupReport) + Send + Sync>,
}

impl CommitQueue {
    /// Starts the committing task. It ends, everything accepted being answered, when the last queue is
    /// dropped.
    #[must_use]
    pub fn start(settings: QueueSettings, committer: Committer) -> (Self, JoinHandle<()>) {
        let (sender, receiver) = mpsc::channel(settings.waiting.max(1));
        let depth = Arc::new(AtomicUsize::new(0));
        let task = tokio::spawn(committer.run(receiver, settings, Arc::clone(&depth)));
        (Self { sender, depth }, task)
    }

    /// Requests that wait now.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.depth.load(Ordering::Relaxed)
    }

    /// Makes `upload` durable and visible. When this returns `Ok`, its rows survive a crash of this process
    /// and of this machine, and every snapshot taken from now on contains them. On `Err` nothing of it is or
    /// will become visible.
    pub async fn commit(&self, upload: Upload) -> Result<Receipt, CommitError> {
        let (reply, answer) = oneshot::channel();
        self.depth.fetch_add(1, Ordering::Relaxed);
        let sent = self.sender.try_send(Waiting { upload, reply });
        if let Err(refused) = sent {
            self.depth.fetch_sub(1, Ordering::Relaxed);
            return Err(match refused {
                mpsc::error::TrySendError::Full(_) => CommitError::Busy,
                mpsc::error::TrySendError::Closed(_) => CommitError::Stopping,
            });
        }
        answer.await.unwrap_or(Err(CommitError::Stopping))
    }
}

impl Committer {
    async fn run(
        self,
        mut receiver: mpsc::Receiver<Waiting>,
        settings: QueueSettings,
        depth: Arc<AtomicUsize>,
    ) {
        let group_size = settings.group.max(1);
        let mut arrived = Vec::with_capacity(group_size);
        while receiver.recv_many(&mut arrived, group_size).await > 0 {
            if !settings.window.is_zero() && arrived.len() < group_size {
                tokio::time::sleep(settings.window).await;
                while arrived.len() < group_size
                    && let Ok(waiting) = receiver.try_recv()
                {
                    arrived.push(waiting);
                }
            }
            depth.fetch_sub(arrived.len(), Ordering::Relaxed);
            for group in groups(std::mem::take(&mut arrived), settings.size) {
                self.settle(group).await;
            }
        }
    }

    async fn settle(&self, group: Vec<Waiting>) {
        let begun = Moment::now();
        let (uploads, replies): (Vec<Upload>, Vec<_>) = group
            .into_iter()
            .map(|waiting| (waiting.upload, waiting.reply))
            .unzip();
        let requests = uploads.len();
        let Settled {
            results,
            rows,
            bytes,
            stale,
        } = self.commit_group(uploads).await;
        let committed = results.iter().any(Result::is_ok);
        (self.report)(GroupReport {
            requests,
            rows,
            bytes,
            elapsed: begun.elapsed(),
            committed,
            stale,
        });
        for (reply, result) in replies.into_iter().zip(results) {
            // A caller that went away has its records all the same.
            let _ = reply.send(result);
        }
    }

    /// One result per upload, with the rows and bytes that were added.
    async fn commit_group(&self, uploads: Vec<Upload>) -> Settled {
        let mut results: Vec<Option<Result<Receipt, CommitError>>> = uploads.iter().map(|_| None).collect();
        let follows = repetitions(&uploads);
        let mut attempt = 0;
        let (mut rows, mut bytes) = (0, 0);
        loop {
            self.answer_repeated(&uploads, &mut results).await;
            let open: Vec<usize> = (0..uploads.len())
                .filter(|index| results[*index].is_none() && follows[*index].is_none())
                .collect();
            if open.is_empty() {
                break;
            }
            attempt += 1;
            let outcome = match self.assemble(&uploads, &open).await {
                Ok((commit, added)) => {
                    rows = commit
                        .changes
                        .iter()
                        .flat_map(|change| &change.add)
                        .map(|piece| piece.rows)
                        .sum();
                    bytes = commit
                        .changes
                        .iter()
                        .flat_map(|change| &change.add)
                        .map(|piece| piece.bytes)
                        .sum();
                    self.commit(commit, added).await
                }
                Err(error) => Err(error),
            };
            let result = match outcome {
                Ok(CommitOutcome::Stale) if attempt < ATTEMPTS => continue,
                Ok(CommitOutcome::Stale) => Err(CommitError::Unavailable(
                    "other writers keep changing the same records".to_owned(),
                )),
                Ok(CommitOutcome::Done) => Ok(()),
                Err(error) => Err(error),
            };
            for index in open {
                let receipt = Receipt {
                    upload: uploads[index].upload,
                    repeated: false,
                };
                results[index] = Some(result.clone().map(|()| receipt));
            }
        }
        for (index, first) in follows.iter().enumerate() {
            let Some(first) = *first else { continue };
            let fingerprint = |index: usize| uploads[index].key.as_ref().map(|key| key.fingerprint);
            results[index] = if fingerprint(index) == fingerprint(first) {
                results[first].clone().map(|result| {
                    result.map(|receipt| Receipt {
                        repeated: true,
                        ..receipt
                    })
                })
            } else {
                Some(Err(CommitError::KeyReused))
            };
        }
        let results = results
            .into_iter()
            .map(|result| result.unwrap_or(Err(CommitError::Stopping)))
            .collect();
        Settled {
            results,
            rows,
            bytes,
            stale: attempt.saturating_sub(1),
        }
    }

    /// Answers those whose key was accepted before, by this node or another.
    async fn answer_repeated(
        &self,
        uploads: &[Upload],
        results: &mut [Option<Result<Receipt, CommitError>>],
    ) {
        for (index, upload) in uploads.iter().enumerate() {
            let Some(key) = upload.key.as_ref().filter(|_| results[index].is_none()) else {
                continue;
            };
            match self.catalog.upload_for_key(upload.person, &key.key).await {
                Ok(Some((accepted, fingerprint))) if fingerprint == key.fingerprint => {
                    results[index] = Some(Ok(Receipt {
                        upload: accepted,
                        repeated: true,
                    }));
                }
                Ok(Some(_)) => results[index] = Some(Err(CommitError::KeyReused)),
                Ok(None) => {}
                Err(error) => results[index] = Some(Err(error.into())),
            }
        }
    }

    async fn commit(&self, commit: Commit, added: Vec<Assembled>) -> Result<CommitOutcome, CommitError> {
        let Some(stamps) = self.catalog.commit_stamped(commit).await? else {
            return Ok(CommitOutcome::Stale);
        };
        for (Assembled { change, rows }, stamp) in added.into_iter().zip(stamps) {
            self.stores.snapshots.committed(&change, rows, stamp);
        }
        Ok(CommitOutcome::Done)
    }

    async fn assemble(
        &self,
        uploads: &[Upload],
        open: &[usize],
    ) -> Result<(Commit, Vec<Assembled>), CommitError> {
        let mut commit = Commit::default();
        let mut added = Vec::new();
        let mut small: Vec<(PartitionId, LayoutChanges)> = Vec::new();
        let mut place: HashMap<PartitionId, usize> = HashMap::new();
        for upload in open.iter().map(|index| &uploads[*index]) {
            let key = upload.key.as_ref().map(|key| (key.key.clone(), key.fingerprint));
            commit.uploads.push(UploadReceipt {
                person: upload.person,
                upload: upload.upload,
                key,
            });
            commit.sources.extend(upload.sources.iter().cloned());
            match &upload.work {
                Work::Small(partitions) => {
                    for partition in partitions {
                        let id = (upload.person, partition.data_type.clone());
                        let slot = *place.entry(id.clone()).or_insert_with(|| {
                            small.push((id, (Arc::clone(&partition.layout), Vec::new())));
                            small.len() - 1
                        });
                        let (layout, changes) = &mut small[slot].1;
                        if partition.layout.version > layout.version {
                            *layout = Arc::clone(&partition.layout);
                        }
                        changes.extend(partition.changes.iter().cloned());
                    }
                }
                Work::Written(written) => {
                    added.push(assemble::written(&self.stores, upload.person, written).await?);
                }
            }
        }
        for ((person, data_type), (layout, changes)) in small {
            let piece = PieceId(self.ids.next());
            added.extend(assemble::small(&self.stores, piece, person, data_type, &layout, &changes).await?);
        }
        let mut known = std::collections::HashSet::new();
        commit.sources.retain(|source| known.insert(source.clone()));
        commit.changes = added.iter().map(|added| added.change.clone()).collect();
        Ok((commit, added))
    }
}

/// For each upload the earlier one of the same group that came with the same key, whose fate it shares.
fn repetitions(uploads: &[Upload]) -> Vec<Option<usize>> {
    let mut first: HashMap<(PersonId, &str), usize> = HashMap::new();
    uploads
        .iter()
        .enumerate()
        .map(|(index, upload)| {
            let key = upload.key.as_ref()?;
            match first.entry((upload.person, key.key.as_str())) {
                Entry::Occupied(earlier) => Some(*earlier.get()),
                Entry::Vacant(slot) => {
                    slot.insert(index);
                    None
                }
            }
        })
        .collect()
}

/// Splits what arrived so that rows standing in objects are committed by themselves: they touch a partition
/// that others may touch too.
fn groups(arrived: Vec<Waiting>, size: usize) -> Vec<Vec<Waiting>> {
    let mut groups: Vec<Vec<Waiting>> = Vec::new();
    let mut current = Vec::new();
    let mut bytes = 0;
    for waiting in arrived {
        let written = matches!(waiting.upload.work, Work::Written(_));
        if (written || bytes > size) && !current.is_empty() {
            groups.push(std::mem::take(&mut current));
            bytes = 0;
        }
        if written {
            groups.push(vec![waiting]);
        } else {
            bytes += waiting.upload.work.bytes();
            current.push(waiting);
        }
    }
    if !current.is_empty() {
        groups.push(current);
    }
    groups
}

impl From<CatalogError> for CommitError {
    fn from(error: CatalogError) -> Self {
        match error {
            CatalogError::Full { .. } => Self::Full,
            CatalogError::Corrupt { .. } => Self::Corrupt(error.to_string()),
            other => Self::Unavailable(other.to_string()),
        }
    }
}

impl From<StoreError> for CommitError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Full { .. } => Self::Full,
            StoreError::Corrupt { .. } => Self::Corrupt(error.to_string()),
            other => Self::Unavailable(other.to_string()),
        }
    }
}

impl From<AssembleError> for CommitError {
    fn from(error: AssembleError) -> Self {
        match error {
            AssembleError::Store(error) => error.into(),
            AssembleError::Rows(error) => Self::Unavailable(error.to_string()),
        }
    }
}
