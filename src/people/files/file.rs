//! One version of a file, and its states.
//!
//! A version is `created` when it is announced, `uploaded` when its bytes have arrived, `archived` when a
//! newer one has replaced it, `deleted` when its owner deletes it. Bytes never change; another upload is
//! another version. Of all versions at one path and name at most one is uploaded: its document has that name,
//! which the catalogue allows only once.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::errors::FilesError;
use crate::catalog::documents::{Document, DocumentKind, Link};
use crate::model::ids::PersonId;
use crate::model::names::named;
use crate::model::registry::TypeId;
use crate::model::stored_json;
use crate::model::time::{Instant, TimeRange};
use crate::people::file_names::full_name;
use crate::people::sharing::terms::FileAge;

/// Links to all files that wait to be scanned.
pub(super) const SCAN_LINK: &str = "file_to_scan";
pub(super) const TO_SCAN: Uuid = Uuid::nil();

named! {
    "state of files",
    /// The state of a version.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum FileState {
        Created = "created",
        Uploaded = "uploaded",
        Archived = "archived",
        Deleted = "deleted",
    }
}

/// What a scan found in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ScanState {
    /// No scanner was configured when the file arrived.
    NotScanned,
    Pending,
    Clean,
    Infected,
    /// The scanner could not decide.
    Failed,
}

/// One version of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    pub id: Uuid,
    pub person: PersonId,
    pub path: String,
    pub name: String,
    pub content_type: String,
    pub size: u64,
    pub state: FileState,
    pub scan_state: ScanState,
    pub created_at: Instant,
    pub uploaded_at: Option<Instant>,
    pub archived_at: Option<Instant>,
    pub deleted_at: Option<Instant>,
    pub last_scanned: Option<Instant>,
    pub restored_from: Option<Uuid>,
    pub source_id: Option<String>,
    pub source_name: Option<String>,
    /// The types of the records that name this file as their origin, in the order of their names.
    pub data_types: Vec<TypeId>,
    /// The content with its bytes. Restored versions share it.
    pub content: Uuid,
    /// The digest of all its bytes, once they have arrived.
    pub sha256: Option<String>,
    /// Whether it is accepted only if no file exists at its path and name.
    pub must_be_first: bool,
    pub version: i64,
    changed_at: Instant,
}

/// What a document stores of a file besides its own columns.
#[derive(Debug, Serialize, Deserialize)]
struct Body {
    path: String,
    name: String,
    content_type: String,
    size: u64,
    state: FileState,
    scan_state: ScanState,
    uploaded_at: Option<Instant>,
    archived_at: Option<Instant>,
    last_scanned: Option<Instant>,
    restored_from: Option<Uuid>,
    source_id: Option<String>,
    source_name: Option<String>,
    content: Uuid,
    sha256: Option<String>,
    #[serde(default)]
    must_be_first: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    data_types: Vec<String>,
}

/// A file as it is announced, with validated names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnnouncedFile {
    pub path: String,
    pub name: String,
    pub content_type: String,
    pub size: u64,
    pub source_id: Option<String>,
    pub source_name: Option<String>,
    /// Whether it is accepted only if no file exists at its path and name.
    pub must_be_first: bool,
}

impl AnnouncedFile {
    #[must_use]
    pub fn full_name(&self) -> String {
        full_name(&self.path, &self.name)
    }
}

impl File {
    /// A version that has only been announced.
    #[must_use]
    pub fn created(
        id: Uuid,
        person: PersonId,
        content: Uuid,
        announced: AnnouncedFile,
        now: Instant,
    ) -> Self {
        Self {
            id,
            person,
            path: announced.path,
            name: announced.name,
            content_type: announced.content_type,
            size: announced.size,
            state: FileState::Created,
            scan_state: ScanState::NotScanned,
            created_at: now,
            uploaded_at: None,
            archived_at: None,
            deleted_at: None,
            last_scanned: None,
            restored_from: None,
            source_id: announced.source_id,
            source_name: announced.source_name,
            data_types: Vec::new(),
            content,
            sha256: None,
            must_be_first: announced.must_be_first,
            version: 0,
            changed_at: now,
        }
    }

    #[must_use]
    pub fn full_name(&self) -> String {
        full_name(&self.path, &self.name)
    }

    /// The name of its document. Only what is uploaded has one, so one path and name is that of one version.
    #[must_use]
    pub fn unique_name(&self) -> Option<String> {
        (self.state == FileState::Uploaded).then(|| self.full_name())
    }

    /// What shares apply to: which version it is, and since when its bytes exist. `None` before they arrive
    /// and after deletion: such a version is visible only to its owner.
    #[must_use]
    pub fn shareable(&self) -> Option<(FileAge, Instant)> {
        let age = match self.state {
            FileState::Uploaded => FileAge::Live,
            FileState::Archived => FileAge::Old,
            FileState::Created | FileState::Deleted => return None,
        };
        self.uploaded_at.map(|moment| (age, moment))
    }

    /// The version after its bytes have arrived.
    #[must_use]
    pub fn uploaded(mut self, sha256: String, scan_state: ScanState, now: Instant) -> Self {
        self.state = FileState::Uploaded;
        self.uploaded_at = Some(now);
        self.scan_state = scan_state;
        self.sha256 = Some(sha256);
        self.changed(now)
    }

    /// The version after a newer one has replaced it.
    #[must_use]
    pub fn archived(mut self, now: Instant) -> Self {
        self.state = FileState::Archived;
        self.archived_at = Some(now);
        self.changed(now)
    }

    #[must_use]
    pub fn deleted(mut self, now: Instant) -> Self {
        self.state = FileState::Deleted;
        self.deleted_at = Some(now);
        self.changed(now)
    }

    #[must_use]
    pub fn scanned(mut self, outcome: ScanState, now: Instant) -> Self {
        self.scan_state = outcome;
        self.last_scanned = Some(now);
        self.changed(now)
    }

    /// The version after records of `data_type` were read from it. `None` if it lists the type already.
    #[must_use]
    pub fn read_into(mut self, data_type: &TypeId, now: Instant) -> Option<Self> {
        let place = self.data_types.binary_search(data_type).err()?;
        self.data_types.insert(place, data_type.clone());
        Some(self.changed(now))
    }

    /// A new version with the bytes of this one.
    #[must_use]
    pub fn restored(&self, id: Uuid, now: Instant) -> Self {
        Self {
            id,
            state: FileState::Uploaded,
            created_at: now,
            uploaded_at: Some(now),
            archived_at: None,
            deleted_at: None,
            restored_from: Some(self.id),
            must_be_first: false,
            version: 0,
            changed_at: now,
            ..self.clone()
        }
    }

    /// The version after its change was stored.
    #[must_use]
    pub(super) const fn stored(mut self) -> Self {
        self.version += 1;
        self
    }

    /// When it last changed.
    #[must_use]
    pub const fn changed_at(&self) -> Instant {
        self.changed_at
    }

    /// Its place among the latest changes.
    #[must_use]
    pub const fn latest_change(&self) -> (Instant, Uuid) {
        (self.changed_at, self.id)
    }

    /// How many bytes of memory it takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let texts = [&self.path, &self.name, &self.content_type].map(String::len);
        let optional = [&self.source_id, &self.source_name, &self.sha256].map(|text| text.as_ref());
        let types = self.data_types.iter();
        size_of::<Self>()
            + texts.iter().sum::<usize>()
            + optional.into_iter().flatten().map(String::len).sum::<usize>()
            + types.map(|id| size_of::<TypeId>() + id.0.len()).sum::<usize>()
    }

    /// Whether it changed in `range`.
    #[must_use]
    pub fn changed_in(&self, range: TimeRange) -> bool {
        let moments = [
            Some(self.created_at),
            self.uploaded_at,
            self.archived_at,
            self.deleted_at,
            self.last_scanned,
        ];
        moments
            .into_iter()
            .flatten()
            .any(|moment| range.start() <= moment && moment < range.end())
    }

    fn changed(mut self, now: Instant) -> Self {
        // The clocks of two nodes may differ.
        self.changed_at = self.changed_at.max(now);
        self
    }

    pub(super) fn links(&self) -> Vec<Link> {
        let waits = self.scan_state == ScanState::Pending && self.state != FileState::Deleted;
        let link = Link {
            kind: SCAN_LINK,
            target: TO_SCAN,
        };
        waits.then_some(link).into_iter().collect()
    }

    /// The document for this file, with the next version number.
    pub(super) fn document(&self) -> Result<Document, FilesError> {
        let body = Body {
            path: self.path.clone(),
            name: self.name.clone(),
            content_type: self.content_type.clone(),
            size: self.size,
            state: self.state,
            scan_state: self.scan_state,
            uploaded_at: self.uploaded_at,
            archived_at: self.archived_at,
            last_scanned: self.last_scanned,
            restored_from: self.restored_from,
            source_id: self.source_id.clone(),
            source_name: self.source_name.clone(),
            content: self.content,
            sha256: self.sha256.clone(),
            must_be_first: self.must_be_first,
            data_types: self.data_types.iter().map(ToString::to_string).collect(),
        };
        Ok(Document {
            kind: DocumentKind::File,
            id: self.id,
            person: self.person,
            name: self.unique_name(),
            body: serde_json::to_string(&body).map_err(|error| self.damaged(&error))?,
            version: self.version + 1,
            created_at: self.created_at,
            updated_at: self.changed_at,
            deleted_at: self.deleted_at,
        })
    }

    pub fn of(document: &Document) -> Result<Self, FilesError> {
        let body: Body = stored_json::read(&document.body).map_err(|error| FilesError::Damaged {
            id: document.id,
            reason: error.to_string(),
        })?;
        Ok(Self {
            id: document.id,
            person: document.person,
            path: body.path,
            name: body.name,
            content_type: body.content_type,
            size: body.size,
            state: body.state,
            scan_state: body.scan_state,
            created_at: document.created_at,
            uploaded_at: body.uploaded_at,
            archived_at: body.archived_at,
            deleted_at: document.deleted_at,
            last_scanned: body.last_scanned,
            restored_from: body.restored_from,
            source_id: body.source_id,
            source_name: body.source_name,
            data_types: body.data_types.iter().map(|name| TypeId::new(name)).collect(),
            content: body.content,
            sha256: body.sha256,
            must_be_first: body.must_be_first,
            version: document.version,
            changed_at: document.updated_at,
        })
    }

    fn damaged(&self, reason: &dyn std::fmt::Display) -> FilesError {
        FilesError::Damaged {
            id: self.id,
            reason: reason.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_of_a_file_are_stored_as_microseconds() {
        let [created, archived] = [0, 1].map(|later| Instant::from_micros(1_700_000_000_000_000 + later));
        let document = Document {
            kind: DocumentKind::File,
            id: Uuid::from_u128(1),
            person: PersonId(Uuid::from_u128(2)),
            name: None,
            body: concat!(
                r#"{"path":"/trip","name":"notes.md","content_type":"text/markdown","size":9,"#,
                r#""state":"archived","scan_state":"clean","uploaded_at":1700000000000000,"#,
                r#""archived_at":1700000000000001,"last_scanned":null,"restored_from":null,"#,
                r#""source_id":null,"source_name":null,"#,
                r#""content":"00000000-0000-0000-0000-000000000003","sha256":null,"#,
                r#""must_be_first":false}"#,
            )
            .to_owned(),
            version: 1,
            created_at: created,
            updated_at: archived,
            deleted_at: None,
        };
        let file = File::of(&document).unwrap();
        let moments = [file.uploaded_at, file.archived_at, file.last_scanned];
        assert_eq!(moments, [Some(created), Some(archived), None]);
        let again = Document {
            version: 2,
            ..document
        };
        assert_eq!(file.document().unwrap(), again);
    }
}
