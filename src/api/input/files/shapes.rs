//! The JSON of files, and the answers when something cannot be done with them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::api::problem::ApiError;
use crate::model::faults::Fault;
use crate::model::time::Instant;
use crate::people::file_names::{folder, label, name};
use crate::people::files::{AnnouncedFile, File, FileState, FilesError, Listing, ScanState};

/// A file that the caller is about to send.
#[derive(Debug, Deserialize, ToSchema)]
pub struct NewFileInput {
    /// How many bytes will be sent.
    #[schema(minimum = 0)]
    pub content_length: i64,
    /// The media type with which the file is served.
    pub content_type: String,
    /// Its name in the folder.
    pub name: String,
    /// The folder: begins with a slash, and has slashes between folders.
    #[schema(pattern = "^/")]
    pub path: String,
    /// Where it came from.
    #[serde(default)]
    pub source_id: Option<String>,
    #[serde(default)]
    pub source_name: Option<String>,
}

/// One version of a file.
#[derive(Debug, Serialize, ToSchema)]
pub struct FileInput {
    pub id: Uuid,
    /// Its owner.
    pub fulcra_userid: Uuid,
    pub name: String,
    pub path: String,
    pub size: i64,
    pub state: FileState,
    pub scan_state: ScanState,
    #[schema(format = DateTime)]
    pub created_at: String,
    #[schema(required, format = DateTime)]
    pub uploaded_at: Option<String>,
    #[schema(required, format = DateTime)]
    pub archived_at: Option<String>,
    #[schema(required, format = DateTime)]
    pub deleted_at: Option<String>,
    #[schema(required, format = DateTime)]
    pub last_scanned: Option<String>,
    /// The version whose bytes this one shares; empty if it came with bytes of its own.
    pub restored_from_id: String,
    #[schema(required)]
    pub source_id: Option<String>,
    #[schema(required)]
    pub source_name: Option<String>,
    /// The types of the records that name the file among their sources.
    #[schema(required)]
    pub source_data_types: Option<Vec<ImportedType>>,
}

/// A type that a file was imported into.
#[derive(Debug, Serialize, ToSchema)]
pub struct ImportedType {
    pub data_type: String,
    pub state: ImportState,
}

/// How far the import into a type has come.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ImportState {
    /// Its records are durable.
    Imported,
}

/// A file that was announced, and where to send its bytes.
#[derive(Debug, Serialize, ToSchema)]
pub struct CreatedFile {
    pub file: FileInput,
    /// Takes the bytes by PUT or POST, without a token.
    pub url: String,
}

/// The files of a folder, and the names of the folders in it.
#[derive(Debug, Serialize, ToSchema)]
pub struct FileListing {
    pub files: Vec<FileInput>,
    pub folders: Vec<String>,
}

/// A file that changed.
#[derive(Debug, Serialize, ToSchema)]
pub struct FileChange {
    #[schema(required, format = DateTime)]
    pub archived_at: Option<String>,
    #[schema(required, format = DateTime)]
    pub deleted_at: Option<String>,
    /// Folder and name.
    pub full_name: String,
    pub id: Uuid,
    #[schema(required, format = DateTime)]
    pub last_scanned: Option<String>,
    pub scan_state: ScanState,
    pub size: i64,
    pub state: FileState,
    #[schema(required, format = DateTime)]
    pub uploaded_at: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct FileChanges {
    pub files: Vec<FileChange>,
}

impl NewFileInput {
    /// The announced file, or everything that is wrong with it.
    pub fn announced(self, must_be_first: bool) -> Result<AnnouncedFile, ApiError> {
        let mut faults = Vec::new();
        let mut checked = |member: &str, read: Result<String, String>| {
            let wrong = |message| faults.push(Fault::new(["body", member], "value_error", message));
            read.map_err(wrong).unwrap_or_default()
        };
        let announced = AnnouncedFile {
            path: checked("path", folder(&self.path)),
            name: checked("name", name(&self.name)),
            content_type: checked("content_type", label(&self.content_type)),
            size: u64::try_from(self.content_length).unwrap_or_default(),
            source_id: self.source_id.map(|text| checked("source_id", label(&text))),
            source_name: self.source_name.map(|text| checked("source_name", label(&text))),
            must_be_first,
        };
        if self.content_length < 0 {
            let message = format!("{} is not a number of bytes", self.content_length);
            faults.push(Fault::new(
                ["body", "content_length"],
                "greater_than_equal",
                message,
            ));
        }
        if faults.is_empty() {
            Ok(announced)
        } else {
            Err(ApiError::invalid_all(faults))
        }
    }
}

impl From<&File> for FileInput {
    fn from(file: &File) -> Self {
        Self {
            id: file.id,
            fulcra_userid: file.person.0,
            name: file.name.clone(),
            path: file.path.clone(),
            size: file.size as i64,
            state: file.state,
            scan_state: file.scan_state,
            created_at: file.created_at.to_rfc3339(),
            uploaded_at: file.uploaded_at.map(Instant::to_rfc3339),
            archived_at: file.archived_at.map(Instant::to_rfc3339),
            deleted_at: file.deleted_at.map(Instant::to_rfc3339),
            last_scanned: file.last_scanned.map(Instant::to_rfc3339),
            restored_from_id: file.restored_from.map(|id| id.to_string()).unwrap_or_default(),
            source_id: file.source_id.clone(),
            source_name: file.source_name.clone(),
            source_data_types: imported(file),
        }
    }
}

/// The types that a file was imported into; `None` if there are none.
fn imported(file: &File) -> Option<Vec<ImportedType>> {
    let types = file.data_types.iter().map(|data_type| ImportedType {
        data_type: data_type.to_string(),
        state: ImportState::Imported,
    });
    (!file.data_types.is_empty()).then(|| types.collect())
}

impl FileInput {
    /// The file as people see it with whom it is shared: without the id of what it came from, without the id
    /// of a version that may not be shared, and without types that are not shared.
    #[must_use]
    pub fn for_others(mut self) -> Self {
        self.source_id = None;
        self.restored_from_id.clear();
        self.source_data_types = None;
        self
    }
}

impl From<&File> for FileChange {
    fn from(file: &File) -> Self {
        Self {
            archived_at: file.archived_at.map(Instant::to_rfc3339),
            deleted_at: file.deleted_at.map(Instant::to_rfc3339),
            full_name: file.full_name(),
            id: file.id,
            last_scanned: file.last_scanned.map(Instant::to_rfc3339),
            scan_state: file.scan_state,
            size: file.size as i64,
            state: file.state,
            uploaded_at: file.uploaded_at.map(Instant::to_rfc3339),
        }
    }
}

impl From<Listing> for FileListing {
    fn from(listing: Listing) -> Self {
        Self {
            files: listing.files.iter().map(FileInput::from).collect(),
            folders: listing.folders,
        }
    }
}

impl From<FilesError> for ApiError {
    fn from(error: FilesError) -> Self {
        let detail = error.to_string();
        match error {
            FilesError::Unknown(_) | FilesError::Deleted => Self::not_found(detail),
            FilesError::Exists(_) | FilesError::Changed => Self::precondition_failed(detail),
            FilesError::NotUploaded | FilesError::Unscanned | FilesError::Overtaken => Self::conflict(detail),
            FilesError::Infected => Self::forbidden(detail),
            FilesError::TooMany(_) => Self::limit_reached(detail),
            FilesError::TooLarge(_) | FilesError::NoRoom { .. } => {
                Fault::new(["body", "content_length"], "limit_reached", detail).into()
            }
            FilesError::Damaged { .. } => Self::damaged(detail),
            FilesError::Store(error) => error.into(),
        }
    }
}
