//! The commit queue: many requests wait, and one transaction commits many of them.
//!
//! Requests are prepared beside the queue, for several people at once and for each person in the order of
//! their requests, and committed in groups. A group that fails is taken apart, so that only the requests to
//! blame fail; a person whom others keep overtaking gets the partition to themselves. A request is answered
//! after the commit that contains it. Knows uploads, snapshots and the catalogue; knows nothing of bodies.

mod commit_prepared;
mod committer;
mod line;
mod places;
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

pub use committer::{CommitError, Committer, GroupOutcome, GroupReport, Receipt};
pub use line::{MOST_OVERTAKINGS, QueueSettings};

/// Where requests wait to be committed.
#[derive(Clone)]
pub struct CommitQueue {
    sender: mpsc::UnboundedSender<Waiting>,
    load: Arc<Load>,
    tail: TailPressure,
}

impl CommitQueue {
    /// Starts the committing task. When the last queue is dropped, it answers everything accepted and ends.
    #[must_use]
    pub fn start(settings: QueueSettings, committer: Committer) -> (Self, JoinHandle<()>) {
        let (queue, receiver) = Self::new(settings, &committer);
        let line = Line::new(settings, committer, None);
        (queue, tokio::spawn(line.run(receiver)))
    }

    /// Starts the queue for a catalogue that is written on the thread that commits: a thread of its own runs
    /// the line, short work and the commits. So a single record needs two thread switches instead of a
    /// dozen, and no other work waits for the disk. Longer work is prepared on the runtime that calls this.
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
        // A line that panicked ends as well; whoever waits for the task considers it broken if it ends before
        // the queue does.
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

    /// Requests that are waiting or being worked on.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.load.requests()
    }

    /// Whether the line still takes requests out.
    #[must_use]
    pub fn is_working(&self) -> bool {
        !self.sender.is_closed()
    }

    /// Makes `upload` durable and visible. When this returns `Ok`, its rows survive a crash of this process
    /// and of this machine, and every later snapshot contains them. On `Err` nothing of it is or will become
    /// visible, unless the error is `Unknown`.
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
