//! The file that a request names, by its id and its owner.
//!
//! Knows who may see it; knows nothing of how it is shown.

use uuid::Uuid;

use crate::api::app::App;
use crate::api::problem::ApiError;
use crate::api::query_params::{FromParams, Params};
use crate::auth::grants::Refused;
use crate::auth::tokens::Reader;
use crate::model::excerpt::beginning;
use crate::model::ids::PersonId;
use crate::people::files::{File, FilesError};

/// Whose file it is.
#[derive(Debug)]
pub(super) struct OwnerQuery {
    pub(super) owner: Option<PersonId>,
}

impl FromParams for OwnerQuery {
    fn from_params(params: &mut Params<'_>) -> Option<Self> {
        Some(Self {
            owner: params.owner(),
        })
    }
}

/// The file with the id `input_id` of `owner`; of the reader if no owner is named.
pub(super) async fn readable_file(
    app: &App,
    reader: &Reader,
    owner: Option<PersonId>,
    input_id: &str,
) -> Result<File, ApiError> {
    let owner = reader.asks_about(owner);
    if reader.owns(owner) {
        return Ok(app.files.get(owner, file_id(input_id)?).await?);
    }
    let found = match Uuid::parse_str(input_id) {
        Ok(id) => match app.files.get(owner, id).await {
            Err(FilesError::Unknown(_)) => None,
            found => Some(found?),
        },
        Err(_) => None,
    };
    let path = found.as_ref().map(File::full_name);
    let version = found.as_ref().and_then(File::shareable);
    let version = path.as_deref().zip(version);
    app.grants
        .file(
            reader,
            owner,
            version.map(|(path, (age, moment))| (path, age, moment)),
        )
        .await?;
    found.ok_or_else(|| Refused.into())
}

/// A text that is not an id names no file.
pub(super) fn file_id(text: &str) -> Result<Uuid, ApiError> {
    Uuid::parse_str(text).map_err(|_| ApiError::not_found(format!("there is no file {:?}", beginning(text))))
}
