//! The commit queue: many requests wait, one transaction commits many of them.
//!
//! What a request does is put together beside the queue, for several people at once and for each of them in
//! the order in which they asked, and committed in groups. A group that fails is taken apart, so that only
//! what is to blame fails; a person whom others keep overtaking is given the partition to themselves. A
//! request is answered after the commit that holds it. Knows uploads, snapshots and the catalogue; knows
//! nothing of bodies.

mod committer;
mod line;
mod settle;
mod waiting;
mod work;

use std::io;
use std::sync::Arc;

use tokio::runtime::{Builder, Handle};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::pressure::TailPressure;
use super::upload::Upload;
use line::Line;
use waiting::{Load, Waiting};

pub use committer::{CommitError, Committer, GroupReport, Receipt};
pub use line::{OVERTAKEN, QueueSettings};

/// Where requests wait to be committed.
#[derive(Clone)]
pub struct CommitQueue {
    sender: mpsc::UnboundedSender<Waiting>,
    load: Arc<Load>,
    tail: TailPressure,
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
        let load = Arc::new(Load::new(settings.waiting, settings.waiting_bytes));
        let tail = committer.tail.clone();
        (Self { sender, load, tail }, receiver)
    }

    /// Requests that wait or are at work now.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.load.requests()
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
