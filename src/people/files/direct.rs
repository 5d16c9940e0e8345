//! Files whose bytes their senders put into the object store, past the service. Nobody says when they are
//! there: every node looks for what came, and whoever looks at a file that waits finds out at once.
//!
//! What came is read once, and kept like everything that comes through the service. So a sender who puts
//! other bytes there later changes nothing, and every byte that is handed out has its checksum.

use std::time::Duration;

use futures::TryStreamExt as _;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{File, FileState, Files, FilesError, UploadError};
use crate::model::meters::UpkeepMeters;
use crate::store::StoreError;
use crate::store::contents::{Content, IncomingName};
use crate::store::objects::ObjectVersion;
use crate::upkeep::lease::Leases;

/// The pause between two looks for what came.
const PAUSE: Duration = Duration::from_secs(5);
/// So many files are taken in by one node at once.
const AT_ONCE: usize = 4;
/// How long whoever looks at a file waits until its bytes are taken in.
const PATIENCE: Duration = Duration::from_secs(5);

/// The pause between two looks at a file that somebody else is taking in.
const ANOTHER_LOOK: Duration = Duration::from_millis(50);

/// What became of bytes that were looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arrival {
    /// Their file has them.
    There,
    /// They did not come, or nobody wants them.
    Nothing,
    /// They came, and somebody else takes them in.
    Busy,
}

/// The work of taking in what came, as one node does it.
pub struct Arrivals(Files);

impl Arrivals {
    #[must_use]
    pub const fn new(files: Files) -> Self {
        Self(files)
    }

    /// Takes in what comes, until `stop`.
    pub async fn run(self, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                round = self.round() => if let Err(error) = round {
                    tracing::warn!(%error, "nobody knows what came into the store; it will be looked for \
                                            again");
                },
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(PAUSE) => {}
            }
        }
    }

    pub(super) async fn round(&self) -> Result<(), StoreError> {
        let files = &self.0;
        let arriving = |name| async move {
            files.clone().arrived(name).await;
            Ok(())
        };
        files
            .contents
            .all_incoming(None)?
            .try_for_each_concurrent(AT_ONCE, arriving)
            .await
    }
}

impl Files {
    /// The same where senders put bytes into the object store themselves, if it can be reached.
    #[must_use]
    pub fn directly(mut self, meters: UpkeepMeters) -> Self {
        self.direct = Some(meters);
        self
    }

    /// Where the bytes of an announced file go, if not to this service.
    pub(super) async fn put_url(&self, file: &File) -> Result<Option<String>, FilesError> {
        if self.direct.is_none() {
            return Ok(None);
        }
        let lifetime = self.settings.upload_lifetime;
        let name = incoming(file);
        Ok(self.contents.put_url(&name, file.size, lifetime).await?)
    }

    /// Takes in the bytes of a file that waits for them, if they came; whether it may be another file now. A
    /// large one may take longer than anybody waits: then it is taken in all the same.
    pub(super) async fn notice(&self, file: &File) -> bool {
        if self.direct.is_none() || file.state != FileState::Created {
            return false;
        }
        let deadline = Instant::now() + PATIENCE;
        loop {
            // A task of its own: what was begun is ended, though nobody waits for it.
            let work = tokio::spawn(self.clone().arrived(incoming(file)));
            match timeout(PATIENCE, work).await {
                Ok(Ok(Arrival::Busy)) if Instant::now() < deadline => tokio::time::sleep(ANOTHER_LOOK).await,
                looked => return matches!(looked, Ok(Ok(Arrival::There))),
            }
        }
    }

    /// The same for those of several files of one person that lie in the store now.
    pub(super) async fn notice_some(&self, files: &[File]) -> bool {
        let waiting = |file: &&File| file.state == FileState::Created;
        let Some(first) = files.iter().find(waiting) else {
            return false;
        };
        if self.direct.is_none() {
            return false;
        }
        let there: Vec<IncomingName> = match self.contents.all_incoming(Some(first.person)) {
            Ok(names) => names.try_collect().await.unwrap_or_default(),
            Err(_) => Vec::new(),
        };
        let came = |file: &&File| there.contains(&incoming(file));
        let noticed = files.iter().filter(waiting).filter(came).take(AT_ONCE);
        let noticed = futures::future::join_all(noticed.map(|file| self.notice(file)));
        noticed.await.contains(&true)
    }

    pub(super) async fn remove_incoming(&self, file: &File) {
        if self.direct.is_some() {
            self.contents.remove_incoming(&incoming(file)).await;
        }
    }

    async fn arrived(self, name: IncomingName) -> Arrival {
        Box::pin(self.arrive(name)).await.unwrap_or_else(|error| {
            let file = name.file;
            tracing::warn!(%file, %error, "a file that came into the store was not taken in, and will be \
                                           tried again");
            Arrival::Nothing
        })
    }

    /// Takes in what lies under `name`.
    async fn arrive(&self, name: IncomingName) -> Result<Arrival, StoreError> {
        let (Some(meters), Some(content)) = (&self.direct, self.contents.get(name.content).await?) else {
            // What nobody waits for is collected.
            return Ok(Arrival::Nothing);
        };
        if content.is_whole() {
            // Somebody sent it again.
            self.contents.remove_incoming(&name).await;
            return Ok(Arrival::There);
        }
        let Some(came) = self.contents.came(&name, &content).await? else {
            return Ok(Arrival::Nothing);
        };
        // One at a time, on whichever node: a second one would begin anew.
        let holder = self.ids.next().to_string();
        let leases = Leases::new(self.catalog.clone(), holder, meters.clone());
        let never = CancellationToken::new();
        let work = self.take_from_store(name, content, came);
        let taken = Box::pin(leases.alone(&lease_of(name.file), &never, work)).await?;
        Ok(taken.unwrap_or(Arrival::Busy))
    }

    async fn take_from_store(
        &self,
        name: IncomingName,
        content: Content,
        came: ObjectVersion,
    ) -> Result<Arrival, StoreError> {
        let bytes = self.contents.incoming(&name, came);
        let file = name.file;
        let taken = match self.receive_all(file, content, bytes).await {
            Ok(_) => Arrival::There,
            Err(UploadError::Body(error) | UploadError::Files(FilesError::Store(error))) => {
                return Err(error);
            }
            Err(UploadError::Overtaken) => return Ok(Arrival::Busy),
            Err(error) => {
                tracing::info!(%file, %error, "a file that came into the store is not wanted");
                Arrival::Nothing
            }
        };
        self.contents.remove_incoming(&name).await;
        Ok(taken)
    }
}

const fn incoming(file: &File) -> IncomingName {
    IncomingName {
        person: file.person,
        content: file.content,
        file: file.id,
    }
}

fn lease_of(file: Uuid) -> String {
    format!("file {file}")
}
