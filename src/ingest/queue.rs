//! The commit queue: many requests wait, one transaction commits many of them.
//!
//! What a request does is put together beside the queue, for several people at once and for each of them in
//! the order in which they asked, and committed in groups. A group that fails is taken apart, so that only
//! what is to blame fails; a person whom others keep overtaking is given the partition to themselves. A
//! request is answered after the commit that holds it. Knows uploads, snapshots and the catalogue; knows
//! nothing of bodies.

mod line;
mod settle;
mod work;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::catalog::records::Effect;
use crate::catalog::{Catalog, CatalogError};
use crate::model::ids::UploadId;
use crate::store::StoreError;

use super::assemble::AssembleError;
use super::intake::IntakeStores;
use super::pressure::TailPressure;
use super::upload::Upload;
use line::Line;

/// How the queue is sized.
#[derive(Clone, Copy, Debug)]
pub struct QueueSettings {
    /// Requests that may wait; more are refused at once.
    pub waiting: usize,
    /// Bytes of rows that may wait in memory.
    pub waiting_bytes: usize,
    /// Requests that one transaction takes at most.
    pub group: usize,
    /// How long a transaction gathers after its first request. What arrives while another is synced is
    /// gathered anyway.
    pub window: Duration,
    /// Bytes of rows after which a transaction takes no further request.
    pub size: usize,
    /// People for whom work is done at the same time.
    pub at_once: usize,
}

/// A request that was overtaken so often is prepared with everybody else kept out.
pub const OVERTAKEN: usize = 3;

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    pub upload: UploadId,
    /// The same request was accepted before; nothing was done now.
    pub repeated: bool,
    /// What it did, also where that was before. None where it was accepted by a version that did not count.
    pub effect: Option<Effect>,
}

/// Why a request was not committed. Nothing of it is or will become visible, but for `Unknown`.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CommitError {
    #[error("too many writes are waiting; try again soon")]
    Busy,
    #[error("too many rows wait to become objects; try again later")]
    Backlog,
    #[error("this Idempotency-Key came with another request before")]
    KeyReused,
    #[error("the disk is full")]
    Full,
    #[error("the store cannot be written now: {0}")]
    Unavailable(String),
    #[error("stored data is damaged: {0}")]
    Corrupt(String),
    /// It may have happened.
    #[error("it could not be found out whether this was committed: {0}")]
    Unknown(String),
    /// A mistake of ours.
    #[error("work for this commit broke off: {0}")]
    Broken(String),
    #[error("the person is being erased")]
    Erased,
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
    /// Nothing was committed because somebody else came first: for this request so often by now, or 0.
    pub overtaken: usize,
}

/// Where requests wait to be committed.
#[derive(Clone)]
pub struct CommitQueue {
    sender: mpsc::UnboundedSender<Waiting>,
    load: Arc<Load>,
    tail: TailPressure,
}

/// What waits or is at work, and how much of that there may be.
#[derive(Debug)]
struct Load {
    requests: AtomicUsize,
    bytes: AtomicUsize,
    most_requests: usize,
    most_bytes: usize,
}

/// A request's place in the queue, until it is answered.
#[derive(Debug)]
struct Seat {
    load: Arc<Load>,
    bytes: usize,
}

type Reply = oneshot::Sender<Result<Receipt, CommitError>>;

#[derive(Debug)]
struct Waiting {
    upload: Upload,
    reply: Reply,
    seat: Seat,
    /// It failed together with others, and is now tried by itself.
    alone: bool,
}

/// What the committing task works with.
pub struct Committer {
    pub catalog: Catalog,
    pub shared: IntakeStores,
    pub tail: TailPressure,
    pub report: Box<dyn Fn(GroupReport) + Send + Sync>,
}

impl CommitQueue {
    /// Starts the committing task. It ends, everything accepted being answered, when the last queue is
    /// dropped.
    #[must_use]
    pub fn start(settings: QueueSettings, committer: Committer) -> (Self, JoinHandle<()>) {
        let (queue, receiver) = Self::new(settings, &committer);
        let line = Line::new(settings, committer, None);
        (queue, tokio::spawn(line.run(receiver)))
    }

    /// The same for a catalogue that is written by whoever commits, on their thread: one of its own has the
    /// line, what is short of its work, and the commits. So a record that comes alone makes two threads
    /// change places instead of a dozen, and nobody else's work waits for the disk. What takes longer is
    /// prepared where this is called.
    pub fn start_apart(settings: QueueSettings, committer: Committer) -> io::Result<(Self, JoinHandle<()>)> {
        let (queue, receiver) = Self::new(settings, &committer);
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let line = Line::new(settings, committer, Some(Handle::current()));
        let (ends, ended) = oneshot::channel();
        std::thread::Builder::new()
            .name("commits".to_owned())
            .spawn(move || {
                runtime.block_on(line.run(receiver));
                let _ = ends.send(());
            })?;
        // A line that panicked ends as well; whoever waits for the task takes it for broken when it ends
        // before the queue does.
        let task = tokio::spawn(async move {
            let _ = ended.await;
        });
        Ok((queue, task))
    }

    fn new(settings: QueueSettings, committer: &Committer) -> (Self, mpsc::UnboundedReceiver<Waiting>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let load = Arc::new(Load {
            requests: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            most_requests: settings.waiting.max(1),
            most_bytes: settings.waiting_bytes,
        });
        let tail = committer.tail.clone();
        (Self { sender, load, tail }, receiver)
    }

    /// Requests that wait or are at work now.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.load.requests.load(Ordering::Relaxed)
    }

    /// Whether anybody takes requests out at the other end.
    #[must_use]
    pub fn is_working(&self) -> bool {
        !self.sender.is_closed()
    }

    /// Makes `upload` durable and visible. When this returns `Ok`, its rows survive a crash of this process
    /// and of this machine, and every snapshot taken from now on contains them. On `Err` nothing of it is or
    /// will become visible, unless the error is `Unknown`.
    pub async fn commit(&self, upload: Upload) -> Result<Receipt, CommitError> {
        let seat = self.load.seat(upload.work.bytes())?;
        let added = upload.work.bytes_put();
        if added > 0 {
            self.tail.admit(added).await.map_err(|_| CommitError::Backlog)?;
        }
        let (reply, answer) = oneshot::channel();
        let waiting = Waiting {
            upload,
            reply,
            seat,
            alone: false,
        };
        if self.sender.send(waiting).is_err() {
            return Err(CommitError::Stopping);
        }
        let lost = |_| CommitError::Unknown("the committing task ended".to_owned());
        answer.await.unwrap_or_else(|error| Err(lost(error)))
    }
}

impl Load {
    fn seat(self: &Arc<Self>, bytes: usize) -> Result<Seat, CommitError> {
        let requests = self.requests.fetch_add(1, Ordering::Relaxed);
        let waiting = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let seat = Seat {
            load: Arc::clone(self),
            bytes,
        };
        // One request that is larger than all may come when nothing else is there.
        let has_room = waiting == 0 || waiting.saturating_add(bytes) <= self.most_bytes;
        if requests < self.most_requests && has_room {
            Ok(seat)
        } else {
            Err(CommitError::Busy)
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.load.requests.fetch_sub(1, Ordering::Relaxed);
        self.load.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl From<CatalogError> for CommitError {
    fn from(error: CatalogError) -> Self {
        match error {
            CatalogError::Full { .. } => Self::Full,
            CatalogError::Corrupt { .. } => Self::Corrupt(error.to_string()),
            CatalogError::Unknown { .. } => Self::Unknown(error.to_string()),
            CatalogError::Refused { .. } => Self::Broken(error.to_string()),
            CatalogError::Erased { .. } => Self::Erased,
            other => Self::Unavailable(other.to_string()),
        }
    }
}

impl From<StoreError> for CommitError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Full { .. } => Self::Full,
            StoreError::Corrupt { .. } => Self::Corrupt(error.to_string()),
            StoreError::Catalog(error) => error.into(),
            other => Self::Unavailable(other.to_string()),
        }
    }
}

impl From<AssembleError> for CommitError {
    fn from(error: AssembleError) -> Self {
        match error {
            AssembleError::Store(error) => error.into(),
            AssembleError::Rows(error) => Self::Broken(error.to_string()),
            AssembleError::Broken(reason) => Self::Broken(reason),
        }
    }
}
