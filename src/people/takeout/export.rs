//! One export: an archive that is waiting, being made, or available until it expires.
//!
//! It is a document of its person. While it is not done its document has one of a few names, each of which a
//! person can have only once: so no more exports are made at the same time than there are names, even when
//! requests race. The document also lists the stored parts of the archive; the transaction that adds a part
//! names its object too.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::catalog::CatalogError;
use crate::catalog::documents::{Change, Document, DocumentKind, Link};
use crate::model::ids::PersonId;
use crate::model::stored_json;
use crate::model::time::Instant;
use crate::people::attempts::MayBeOvertaken;
use crate::people::condition::Outdated;
use crate::people::limits::LimitReached;
use crate::store::StoreError;
use crate::store::contents::{Content, Part};

/// Links to all exports that are not done.
pub(super) const OPEN_LINK: &str = "open_export";
/// Links to all exports.
pub(super) const KEPT_LINK: &str = "kept_export";
pub(super) const EVERY: Uuid = Uuid::nil();

/// Why an operation on an export failed.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error("{0} is not one of your exports")]
    Unknown(Uuid),
    #[error("{0} of your exports are being made; wait until one is done, or delete it")]
    Busy(usize),
    #[error(transparent)]
    LimitReached(#[from] LimitReached),
    #[error("the archive is not ready yet; the export shows its progress")]
    NotReady,
    #[error("this archive could not be made; delete the export and ask for another one")]
    Failed,
    #[error("the export was changed by another request; read it again and retry")]
    Overtaken,
    #[error(transparent)]
    Outdated(#[from] Outdated),
    #[error("{path} cannot be written: {reason}")]
    Unwritable { path: PathBuf, reason: String },
    #[error("the stored export {id} cannot be read: {reason}")]
    Damaged { id: Uuid, reason: String },
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl MayBeOvertaken for ExportError {
    fn is_overtaken(&self) -> bool {
        matches!(self, Self::Overtaken)
    }
}

impl From<CatalogError> for ExportError {
    fn from(error: CatalogError) -> Self {
        Self::Store(error.into())
    }
}

/// The state of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExportState {
    /// Nothing has been done yet.
    Waiting,
    Running,
    /// The archive is complete.
    Ready,
    /// It could not be made.
    Failed,
}

/// An export in the state in which it was read.
#[derive(Clone, Debug)]
pub struct Export {
    pub id: Uuid,
    pub person: PersonId,
    pub state: ExportState,
    /// How many members of the archive are written, and of how many.
    pub done: u64,
    pub total: u64,
    /// The digest of the whole archive in hexadecimal digits, once it is complete.
    pub sha256: Option<String>,
    pub created_at: Instant,
    pub updated_at: Instant,
    /// When it ended, successfully or not.
    pub finished_at: Option<Instant>,
    /// When it is removed; known once it has ended.
    pub expires_at: Option<Instant>,
    /// Why it failed, worded for its owner.
    pub reason: Option<String>,
    /// How often it was begun.
    pub(super) attempts: u32,
    /// The parts in the order of their bytes.
    pub(super) parts: Vec<Part>,
    /// The name that it holds until it is done.
    slot: Option<String>,
    version: i64,
}

/// What its document stores of it besides the document's own columns.
#[derive(Debug, Serialize, Deserialize)]
struct Body {
    state: ExportState,
    done: u64,
    total: u64,
    attempts: u32,
    parts: Vec<Part>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    finished_at: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_at: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl Export {
    /// A requested export in the slot number `place` of its person.
    pub(super) fn asked(id: Uuid, person: PersonId, place: usize, now: Instant) -> Self {
        Self {
            id,
            person,
            state: ExportState::Waiting,
            done: 0,
            total: 0,
            sha256: None,
            created_at: now,
            updated_at: now,
            finished_at: None,
            expires_at: None,
            reason: None,
            attempts: 0,
            parts: Vec::new(),
            slot: Some(format!("open {place}")),
            version: 0,
        }
    }

    /// How many bytes of the archive are stored.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.bytes).sum()
    }

    /// The content with the bytes of the archive.
    #[must_use]
    pub fn content(&self) -> Content {
        Content::of_export(self.id, self.person, self.parts.clone(), self.sha256.clone())
    }

    /// Whether it is still to be made.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        matches!(self.state, ExportState::Waiting | ExportState::Running)
    }

    /// Whether its time is over.
    #[must_use]
    pub fn has_expired(&self, now: Instant) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }

    /// The export, begun anew.
    pub(super) fn begun(mut self) -> Self {
        self.state = ExportState::Running;
        self.attempts += 1;
        (self.done, self.total) = (0, 0);
        self.parts.clear();
        self
    }

    /// The export with its archive complete.
    pub(super) fn ready(mut self, sha256: String, now: Instant, expires_at: Instant) -> Self {
        self.state = ExportState::Ready;
        self.sha256 = Some(sha256);
        self.done = self.total;
        self.ended(now, expires_at)
    }

    /// The export, failed for good and without its parts.
    pub(super) fn failed(mut self, reason: &str, now: Instant, expires_at: Instant) -> Self {
        self.state = ExportState::Failed;
        self.parts.clear();
        self.reason = Some(reason.to_owned());
        self.ended(now, expires_at)
    }

    fn ended(mut self, now: Instant, expires_at: Instant) -> Self {
        self.finished_at = Some(now);
        self.expires_at = Some(expires_at);
        self.slot = None;
        self
    }

    /// The change that inserts a new export.
    pub(super) fn insertion(&self, limit: u64) -> Result<Change, ExportError> {
        Ok(Change::Insert {
            document: self.document(self.created_at)?,
            links: self.links(),
            limit,
        })
    }

    /// The change that replaces the state that was read with this one.
    pub(super) fn update(&self, now: Instant) -> Result<Change, ExportError> {
        Ok(Change::Update {
            document: self.document(now)?,
            expected: self.version,
            links: Some(self.links()),
        })
    }

    /// The change that removes the export.
    pub(super) const fn removal(&self) -> Change {
        Change::remove(DocumentKind::Export, self.id, self.person, self.version)
    }

    /// The export after its change was stored at `now`.
    pub(super) const fn stored(mut self, now: Instant) -> Self {
        self.version += 1;
        self.updated_at = now;
        self
    }

    fn links(&self) -> Vec<Link> {
        let link = |kind| Link { kind, target: EVERY };
        let open = self.is_open().then(|| link(OPEN_LINK));
        open.into_iter().chain([link(KEPT_LINK)]).collect()
    }

    fn document(&self, now: Instant) -> Result<Document, ExportError> {
        let body = Body {
            state: self.state,
            done: self.done,
            total: self.total,
            attempts: self.attempts,
            parts: self.parts.clone(),
            sha256: self.sha256.clone(),
            finished_at: self.finished_at.map(Instant::micros),
            expires_at: self.expires_at.map(Instant::micros),
            reason: self.reason.clone(),
        };
        Ok(Document {
            kind: DocumentKind::Export,
            id: self.id,
            person: self.person,
            name: self.slot.clone(),
            body: serde_json::to_string(&body).map_err(|error| damaged(self.id, &error))?,
            version: self.version + 1,
            created_at: self.created_at,
            // Also if that is earlier than before: a time that was wrong does not stay.
            updated_at: now,
            deleted_at: None,
        })
    }

    pub(super) fn of(document: &Document) -> Result<Self, ExportError> {
        let body: Body = stored_json::read(&document.body).map_err(|error| damaged(document.id, &error))?;
        Ok(Self {
            id: document.id,
            person: document.person,
            state: body.state,
            done: body.done,
            total: body.total,
            sha256: body.sha256,
            created_at: document.created_at,
            updated_at: document.updated_at,
            finished_at: body.finished_at.map(Instant::from_micros),
            expires_at: body.expires_at.map(Instant::from_micros),
            reason: body.reason,
            attempts: body.attempts,
            parts: body.parts,
            slot: document.name.clone(),
            version: document.version,
        })
    }
}

fn damaged(id: Uuid, reason: &dyn std::fmt::Display) -> ExportError {
    ExportError::Damaged {
        id,
        reason: reason.to_string(),
    }
}
