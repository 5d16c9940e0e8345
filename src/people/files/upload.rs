//! Receives the bytes of files: cut into parts, each durable and registered before the next begins.
//!
//! Whatever happens to the connection, the process or the machine, the registered parts remain, and the
//! upload can continue after them on any node. Two simultaneous uploads of the same file do not mix: one
//! fails to register its part and reports that.

use std::time::Duration;

use bytes::{Buf as _, Bytes};
use futures::{Stream, StreamExt as _};
use uuid::Uuid;

use super::errors::FilesError;
use super::file::{File, FileState, ScanState};
use super::handle::Files;
use crate::model::ids::PersonId;
use crate::people::attempts::ATTEMPTS;
use crate::store::StoreError;
use crate::store::contents::{Content, MOST_PARTS, OpenPart, Part};

/// Slowly arriving bytes that are older than this are registered when the next ones arrive.
const PART_AGE: Duration = Duration::from_mins(1);

/// Which bytes a sender says it sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SentBytes {
    /// All bytes, from the first on.
    All,
    /// The bytes from `from` up to but not including `until`, of `total`, if that was given.
    Range {
        from: u64,
        until: u64,
        total: Option<u64>,
    },
    /// No bytes: the sender asks how many have been received.
    Question { total: Option<u64> },
}

impl SentBytes {
    /// The positions from which and up to which bytes are sent of a file that was announced with this many.
    pub fn within<E>(self, announced: u64) -> Result<(u64, u64), UploadError<E>> {
        let (from, until, said) = match self {
            Self::Question { total } => (0, 0, total),
            Self::Range { from, until, total } => (from, until, total),
            Self::All => (0, announced, None),
        };
        if let Some(said) = said.filter(|said| *said != announced) {
            return Err(UploadError::OtherTotal { announced, said });
        }
        if until > announced {
            return Err(UploadError::Outside { announced });
        }
        Ok((from, until))
    }
}

/// A file that waits for bytes.
#[derive(Clone, Copy, Debug)]
pub struct Awaited {
    pub owner: PersonId,
    /// Its announced length.
    pub bytes: u64,
}

/// What has been received.
#[derive(Clone, Debug)]
pub enum Received {
    /// Everything. The file is uploaded.
    Whole(Box<File>),
    /// This many bytes from the first on.
    Partly(u64),
}

/// Why bytes were not accepted. `E` is the error of the body.
#[derive(Debug, thiserror::Error)]
pub enum UploadError<E> {
    /// The file accepts no bytes: it has them, was deleted, or its time is over.
    #[error("this upload is closed: the file is complete, deleted or expired")]
    Closed,
    #[error("the file was announced with {announced} bytes, but {came} arrived")]
    TooShort { announced: u64, came: u64 },
    #[error("the file was announced with {announced} bytes, but more arrived")]
    TooLong { announced: u64 },
    #[error("the file was announced with {announced} bytes, not {said}")]
    OtherTotal { announced: u64, said: u64 },
    #[error("the range goes beyond the {announced} bytes with which the file was announced")]
    Outside { announced: u64 },
    #[error("the file arrived in more than {MOST_PARTS} pieces; send it again in larger ones")]
    TooManyParts,
    #[error("another upload of this file came first")]
    Overtaken,
    #[error("the bytes stopped arriving")]
    Body(E),
    #[error(transparent)]
    Files(#[from] FilesError),
}

impl<E> From<StoreError> for UploadError<E> {
    fn from(error: StoreError) -> Self {
        Self::Files(error.into())
    }
}

impl Files {
    /// What is known of a file that waits for bytes.
    pub async fn awaited<E>(&self, id: Uuid) -> Result<Awaited, UploadError<E>> {
        let content = self.open(id).await?;
        Ok(Awaited {
            owner: content.person,
            bytes: content.length,
        })
    }

    /// The file `id`, all of whose bytes have arrived, for a sender that asks whether they have. `total` is
    /// the length that the sender assumes.
    pub async fn finished<E>(&self, id: Uuid, total: Option<u64>) -> Result<File, UploadError<E>> {
        let file = self.find(id).await?.ok_or(UploadError::Closed)?;
        if file.state != FileState::Uploaded {
            return Err(UploadError::Closed);
        }
        match total.filter(|total| *total != file.size) {
            Some(said) => Err(UploadError::OtherTotal {
                announced: file.size,
                said,
            }),
            None => Ok(file),
        }
    }

    /// Receives bytes of the announced file `id`. When this returns `Ok`, what it reports is durable on every
    /// node.
    pub async fn receive<S, E>(&self, id: Uuid, sent: SentBytes, body: S) -> Result<Received, UploadError<E>>
    where
        S: Stream<Item = Result<Bytes, E>> + Unpin,
    {
        match (self.received(id, sent, body).await, sent) {
            // Another request may have completed the file meanwhile: to whoever only asks, it is there.
            (Err(error @ (UploadError::Overtaken | UploadError::Closed)), SentBytes::Question { total }) => {
                match self.finished(id, total).await {
                    Err(UploadError::Closed) => Err(error),
                    finished => finished.map(|file| Received::Whole(Box::new(file))),
                }
            }
            (received, _) => received,
        }
    }

    async fn received<S, E>(&self, id: Uuid, sent: SentBytes, mut body: S) -> Result<Received, UploadError<E>>
    where
        S: Stream<Item = Result<Bytes, E>> + Unpin,
    {
        let content = self.open(id).await?;
        let announced = content.length;
        let (from, until) = sent.within(announced)?;
        let content = match sent {
            SentBytes::Question { .. } if content.received() < announced => {
                return Ok(Received::Partly(content.received()));
            }
            // Nothing is missing, and no range could say so of an empty file: whoever asks completes it.
            SentBytes::Question { .. } => content,
            // A gap cannot be stored. A sender that leaves one learns where to continue.
            SentBytes::Range { .. } if from > content.received() => {
                return Ok(Received::Partly(content.received()));
            }
            SentBytes::Range { .. } => content,
            SentBytes::All => self.emptied(content).await?,
        };
        let intake = Intake {
            files: self,
            file: id,
            open: OpenPart::after(content.digest()),
            known: content.received() - from,
            content,
        };
        match (intake.run(&mut body, until - from).await, sent) {
            // A sender of ranges continues from the current position.
            (Err(UploadError::Overtaken), SentBytes::Range { .. }) => {
                Ok(Received::Partly(self.open(id).await?.received()))
            }
            (outcome, _) => outcome,
        }
    }

    /// Reads all bytes of the file `id` from where they are stored already. `content` is what is known of
    /// them so far.
    pub(super) async fn receive_all<S, E>(
        &self,
        id: Uuid,
        content: Content,
        mut body: S,
    ) -> Result<Received, UploadError<E>>
    where
        S: Stream<Item = Result<Bytes, E>> + Unpin,
    {
        let content = self.emptied(content).await?;
        let expected = content.length;
        let intake = Intake {
            files: self,
            file: id,
            open: OpenPart::after(content.digest()),
            known: 0,
            content,
        };
        intake.run(&mut body, expected).await
    }

    /// The content of a file that waits for bytes.
    async fn open<E>(&self, id: Uuid) -> Result<Content, UploadError<E>> {
        let file = self.find(id).await?.ok_or(UploadError::Closed)?;
        if file.state != FileState::Created {
            return Err(UploadError::Closed);
        }
        let content = self.contents.get(file.content).await?;
        let is_open = |content: &Content| !content.is_whole() && self.clock.now() < content.open_until;
        content.filter(is_open).ok_or(UploadError::Closed)
    }

    /// The content with all parts removed. An earlier upload that is still running fails from now on.
    async fn emptied<E>(&self, content: Content) -> Result<Content, UploadError<E>> {
        let id = content.id;
        let mut content = content;
        for _ in 0..ATTEMPTS {
            let (empty, parts) = content.emptied();
            if self.attempt(vec![empty.update(self.clock.now())?]).await? {
                self.contents.remove_parts(&empty, &parts).await;
                return Ok(empty.stored());
            }
            content = self.contents.get(id).await?.ok_or(UploadError::Closed)?;
            if content.is_whole() {
                return Err(UploadError::Closed);
            }
        }
        Err(UploadError::Overtaken)
    }

    /// Makes a version that has all its bytes the current one, and archives the previous one, in one
    /// transaction. `last` is the part to add to the content.
    async fn put_in_place<E>(
        &self,
        id: Uuid,
        content: &Content,
        last: Option<&Part>,
    ) -> Result<File, UploadError<E>> {
        let paths: Vec<String> = last.map(|part| content.path_of(part)).into_iter().collect();
        let sha256 = content.sha256.clone().unwrap_or_default();
        for _ in 0..ATTEMPTS {
            let announced = self.find(id).await?.ok_or(UploadError::Closed)?;
            if announced.state != FileState::Created {
                return Err(UploadError::Closed);
            }
            // Read once: if another version takes the name afterwards, the attempt fails.
            let live = self.live(&announced).await?.filter(|live| live.id != id);
            if announced.must_be_first && live.is_some() {
                return Err(FilesError::Exists(announced.full_name()).into());
            }
            let now = self.now().await?;
            let scan_state = if self.settings.scanned {
                ScanState::Pending
            } else {
                ScanState::NotScanned
            };
            let mut changes = vec![content.update(now)?];
            if let Some(live) = live {
                changes.push(Files::update(&live.archived(now))?);
            }
            let file = announced.uploaded(sha256.clone(), scan_state, now);
            changes.push(Files::update(&file)?);
            if self.attempt_naming(changes, &paths).await? {
                self.to_scan.notify_one();
                return Ok(file.stored());
            }
            let current = self.contents.get(content.id).await?;
            if !current.is_some_and(|current| current.is_as_read(content)) {
                return Err(UploadError::Overtaken);
            }
        }
        Err(FilesError::Overtaken.into())
    }
}

/// A running upload.
struct Intake<'a> {
    files: &'a Files,
    file: Uuid,
    /// The registered content.
    content: Content,
    open: OpenPart,
    /// How many of the bytes to come are stored already.
    known: u64,
}

impl Intake<'_> {
    async fn run<S, E>(mut self, body: &mut S, expected: u64) -> Result<Received, UploadError<E>>
    where
        S: Stream<Item = Result<Bytes, E>> + Unpin,
    {
        let announced = self.content.length;
        let mut left = expected;
        while let Some(bytes) = body.next().await {
            let bytes = match bytes {
                Ok(bytes) => bytes,
                Err(error) => {
                    self.register().await?;
                    return Err(UploadError::Body(error));
                }
            };
            let Some(rest) = left.checked_sub(bytes.len() as u64) else {
                self.open.abandon().await;
                return Err(UploadError::TooLong { announced });
            };
            left = rest;
            self.take(bytes).await?;
            // The last part is registered only after the end of the body, which may turn out to be too long.
            if left > 0 && self.is_due() {
                self.register().await?;
            }
        }
        if left > 0 {
            self.register().await?;
            let came = self.content.received();
            return Err(UploadError::TooShort { announced, came });
        }
        let there = self.content.received() + self.open.bytes();
        if there == announced {
            return self.complete().await.map(|file| Received::Whole(Box::new(file)));
        }
        self.register().await?;
        Ok(Received::Partly(self.content.received()))
    }

    async fn take<E>(&mut self, mut bytes: Bytes) -> Result<(), UploadError<E>> {
        let known = self.known.min(bytes.len() as u64);
        bytes.advance(known as usize);
        self.known -= known;
        if bytes.is_empty() {
            return Ok(());
        }
        if !self.open.is_begun() && self.content.parts.len() >= MOST_PARTS {
            return Err(UploadError::TooManyParts);
        }
        let begin = || self.files.contents.part(&self.content);
        Ok(self.open.write(bytes, begin).await?)
    }

    fn is_due(&self) -> bool {
        let old = self.files.clock.now().before(PART_AGE);
        self.open.is_full() || self.open.is_from_before(old)
    }

    /// Makes the received bytes durable and registers them.
    async fn register<E>(&mut self) -> Result<(), UploadError<E>> {
        let Some(part) = self.open.finish().await? else {
            return Ok(());
        };
        let content = self.content.clone().with_part(part, self.open.digest());
        let update = content.update(self.files.clock.now())?;
        let path = content.path_of(&part);
        if !self.files.attempt_naming(vec![update], &[path]).await? {
            self.files.contents.remove_parts(&content, &[part]).await;
            return Err(UploadError::Overtaken);
        }
        self.content = content.stored();
        Ok(())
    }

    /// Registers the last bytes, archives the older version and makes this one current, in one transaction.
    async fn complete<E>(mut self) -> Result<File, UploadError<E>> {
        let last = self.open.finish().await?;
        let mut content = self.content.clone();
        if let Some(part) = last {
            content = content.with_part(part, self.open.digest());
        }
        let content = content.finished();
        let outcome = self.files.put_in_place(self.file, &content, last.as_ref()).await;
        if let Some(part) = last {
            match &outcome {
                // The change may have happened all the same; if not, the part is collected later.
                Ok(_) | Err(UploadError::Files(FilesError::Store(_))) => {}
                Err(_) => self.files.contents.remove_parts(&content, &[part]).await,
            }
        }
        outcome
    }
}
