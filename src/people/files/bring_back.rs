//! Brings files back from an archive: their bytes, and each of their versions as it was.

use bytes::Bytes;
use futures::{Stream, StreamExt as _};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::errors::FilesError;
use super::file::{File, FileState, ScanState};
use super::handle::Files;
use crate::catalog::documents::{Change, Document, DocumentKind};
use crate::model::ids::PersonId;
use crate::people::attempts::ATTEMPTS;
use crate::people::documents::{BroughtBack, brought_back};
use crate::store::StoreError;
use crate::store::contents::{Content, OpenPart};

/// Why bytes were not brought back. `E` is the error of reading them.
#[derive(Debug, thiserror::Error)]
pub enum BringBackError<E> {
    #[error("they cannot be read: {0}")]
    Body(E),
    #[error("they are not those that the file had")]
    OtherBytes,
    #[error(transparent)]
    Files(#[from] FilesError),
}

impl<E> From<StoreError> for BringBackError<E> {
    fn from(error: StoreError) -> Self {
        Self::Files(error.into())
    }
}

/// A version whose bytes are those of one that a scanner found to be harmful, whatever it found in this one.
pub fn harmful(document: &Document) -> Result<Document, FilesError> {
    let mut file = File::of(document)?;
    if file.scan_state == ScanState::Infected {
        return Ok(document.clone());
    }
    file.scan_state = ScanState::Infected;
    Ok(Document {
        version: document.version,
        ..file.document()?
    })
}

impl Files {
    /// Whether the bytes of a content are stored here.
    pub async fn has_bytes(&self, content: Uuid) -> Result<bool, FilesError> {
        let found = self.contents.get(content).await?;
        Ok(found.is_some_and(|content| content.is_whole()))
    }

    /// Stores the bytes of a content that once was whole. They are durable, but nothing names them yet.
    pub async fn take_in<S, E>(
        &self,
        person: PersonId,
        id: Uuid,
        sha256: &str,
        bytes: S,
    ) -> Result<Content, BringBackError<E>>
    where
        S: Stream<Item = Result<Bytes, E>> + Unpin,
    {
        let now = self.clock.now();
        let mut incoming = IncomingContent {
            files: self,
            content: Content::announced(id, person, 0, now, now),
            open: OpenPart::after(Sha256::new()),
        };
        let outcome = incoming.all(bytes).await;
        let content = incoming.content.finished();
        let failed = match outcome {
            Ok(()) if content.sha256.as_deref() == Some(sha256) => return Ok(content),
            Ok(()) => BringBackError::OtherBytes,
            Err(error) => error,
        };
        self.contents.remove_parts(&content, &content.parts).await;
        Err(failed)
    }

    /// Brings back a version as it was, together with the bytes that it needs, if they were taken in. If
    /// another version has its name here, the one that was uploaded later is the current one.
    pub async fn bring_back(
        &self,
        document: Document,
        mut taken: Option<Content>,
    ) -> Result<BroughtBack, FilesError> {
        let to_scan = self.to_be_scanned(&document)?;
        for _ in 0..ATTEMPTS {
            // Another import of the same archive may have been faster.
            if let Some(content) = &taken
                && self.has_bytes(content.id).await?
            {
                self.contents.remove_parts(content, &content.parts).await;
                taken = None;
            }
            let here = self.catalog.document(DocumentKind::File, document.id).await?;
            let links = File::of(&document)?.links();
            let (mut outcome, mut change) = brought_back(document.clone(), here.as_ref(), links);
            // A version that is stored here in the archive's state was here before, and has its verdict.
            if let (Some(_), Some(to_scan)) = (&change, &to_scan) {
                let links = File::of(to_scan)?.links();
                (outcome, change) = brought_back(to_scan.clone(), here.as_ref(), links);
            }
            let mut changes = match change {
                Some(change) => self.beside_the_current(change).await?,
                None => Vec::new(),
            };
            let mut objects = Vec::new();
            if let Some(content) = &taken {
                let usage = self.contents.usage(document.person).await?;
                changes.push(content.restoration()?);
                changes.push(usage.with(content.length).change(content)?);
                objects.extend(content.objects().map(|(path, _)| path));
            }
            if changes.is_empty() || self.attempt_naming(changes, &objects).await? {
                return Ok(outcome);
            }
        }
        if let Some(content) = taken {
            self.contents.remove_parts(&content, &content.parts).await;
        }
        Err(FilesError::Overtaken)
    }

    /// The changes that bring back a version where another one may have its name: the one that was uploaded
    /// later keeps the name, and the other one is archived. So it is where both are uploaded to one place.
    async fn beside_the_current(&self, mut change: Change) -> Result<Vec<Change>, FilesError> {
        let (Change::Insert { document, .. } | Change::Update { document, .. }) = &mut change else {
            return Ok(vec![change]);
        };
        let file = File::of(document)?;
        let current = match &document.name {
            Some(name) if file.state == FileState::Uploaded => self.named(file.person, name).await?,
            _ => None,
        };
        let Some(current) = current.filter(|current| current.id != file.id) else {
            return Ok(vec![change]);
        };
        let now = self.now().await?;
        if current.uploaded_at <= file.uploaded_at {
            return Ok(vec![Self::update(&current.archived(now))?, change]);
        }
        *document = Document {
            version: document.version,
            ..file.archived(now).document()?
        };
        Ok(vec![change])
    }

    /// The version to store where files are scanned: an archive is not a scanner, so of its verdicts only a
    /// harmful one is believed. `None` if files are not scanned, or there are no bytes to scan.
    fn to_be_scanned(&self, document: &Document) -> Result<Option<Document>, FilesError> {
        let mut file = File::of(document)?;
        if !self.settings.scanned || file.sha256.is_none() || file.scan_state == ScanState::Infected {
            return Ok(None);
        }
        file.scan_state = ScanState::Pending;
        file.last_scanned = None;
        Ok(Some(Document {
            version: document.version,
            ..file.document()?
        }))
    }
}

/// Bytes being taken in.
struct IncomingContent<'f> {
    files: &'f Files,
    content: Content,
    open: OpenPart,
}

impl IncomingContent<'_> {
    async fn all<S, E>(&mut self, mut bytes: S) -> Result<(), BringBackError<E>>
    where
        S: Stream<Item = Result<Bytes, E>> + Unpin,
    {
        while let Some(bytes) = bytes.next().await {
            let bytes = bytes.map_err(BringBackError::Body)?;
            self.content.length += bytes.len() as u64;
            let begin = || self.files.contents.part(&self.content);
            self.open.write(bytes, begin).await?;
            if self.open.is_full() {
                self.end_part().await?;
            }
        }
        self.end_part().await?;
        Ok(())
    }

    async fn end_part(&mut self) -> Result<(), StoreError> {
        if let Some(part) = self.open.finish().await? {
            self.content = self.content.clone().with_part(part, self.open.digest());
        }
        Ok(())
    }
}
