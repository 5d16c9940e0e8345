//! Takes in files whose senders put the bytes directly into the object store. Nobody reports their arrival:
//! every node looks for them, and a request for a waiting file checks at once.
//!
//! The bytes are read once and then stored like everything that comes through the service. So a sender who
//! later puts other bytes there changes nothing, and all bytes that are handed out have their checksum.

use std::time::Duration;

use futures::TryStreamExt as _;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::errors::FilesError;
use super::file::{File, FileState};
use super::handle::Files;
use super::upload::UploadError;
use crate::model::meters::UpkeepMeters;
use crate::store::StoreError;
use crate::store::contents::{Content, IncomingName};
use crate::store::objects::ObjectVersion;
use crate::upkeep::lease::Leases;
use crate::upkeep::pause::paused;

/// The pause between two looks for new arrivals.
const LOOK_PAUSE: Duration = Duration::from_secs(5);
/// How many files one node takes in at once.
const AT_ONCE: usize = 4;
/// How long a request for a file waits for its bytes to be taken in.
const ARRIVAL_WAIT: Duration = Duration::from_secs(5);

/// The pause between two looks at a file that another task is taking in.
const ANOTHER_LOOK: Duration = Duration::from_millis(50);

/// The outcome of looking for bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arrival {
    /// The file has its bytes.
    There,
    /// They did not come, or no file waits for them.
    Nothing,
    /// They came, and another task is taking them in.
    Busy,
}

/// The background work of taking in arrivals on one node.
pub struct Arrivals(Files);

impl Arrivals {
    #[must_use]
    pub const fn new(files: Files) -> Self {
        Self(files)
    }

    /// Takes in arrivals until `stop`.
    pub async fn run(self, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                round = self.round() => if let Err(error) = round {
                    tracing::warn!(%error, "nobody knows what came into the store; it will be looked for \
                                            again");
                },
            }
            if !paused(&stop, LOOK_PAUSE).await {
                return;
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
    /// These files, whose senders put bytes directly into the object store, if it can be reached.
    #[must_use]
    pub fn directly(mut self, meters: UpkeepMeters) -> Self {
        self.direct = Some(meters);
        self
    }

    /// The address for the bytes of an announced file, if they do not go to this service.
    pub(super) async fn put_url(&self, file: &File) -> Result<Option<String>, FilesError> {
        if self.direct.is_none() {
            return Ok(None);
        }
        let lifetime = self.settings.upload_lifetime;
        let name = incoming(file);
        Ok(self.contents.put_url(&name, file.size, lifetime).await?)
    }

    /// Takes in the bytes of a waiting file, if they came; returns whether the file may have changed. A large
    /// file may take longer than the caller waits; it is taken in all the same.
    pub(super) async fn notice(&self, file: &File) -> bool {
        if self.direct.is_none() || file.state != FileState::Created {
            return false;
        }
        let deadline = Instant::now() + ARRIVAL_WAIT;
        loop {
            // A separate task, so that the work is finished even if nobody waits for it.
            let work = tokio::spawn(self.clone().arrived(incoming(file)));
            match timeout(ARRIVAL_WAIT, work).await {
                Ok(Ok(Arrival::Busy)) if Instant::now() < deadline => tokio::time::sleep(ANOTHER_LOOK).await,
                looked => return matches!(looked, Ok(Ok(Arrival::There))),
            }
        }
    }

    /// Takes in the bytes of those of several files of one person whose bytes are in the store now; returns
    /// whether any file may have changed.
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

    /// Takes in the bytes stored under `name`.
    async fn arrive(&self, name: IncomingName) -> Result<Arrival, StoreError> {
        let (Some(meters), Some(content)) = (&self.direct, self.contents.get(name.content).await?) else {
            // Bytes that no file waits for are collected.
            return Ok(Arrival::Nothing);
        };
        if content.is_whole() {
            // The bytes were sent again.
            self.contents.remove_incoming(&name).await;
            return Ok(Arrival::There);
        }
        let Some(came) = self.contents.came(&name, &content).await? else {
            return Ok(Arrival::Nothing);
        };
        // Only one node takes in a file at a time: a second one would start over.
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
