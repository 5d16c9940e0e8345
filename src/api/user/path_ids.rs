//! Ids in paths. A text that is none is refused in the same words everywhere.

use uuid::Uuid;

use crate::api::problem::{ApiError, invalid};
use crate::model::excerpt::beginning;

/// The id that the parameter `name` of a path gives.
pub(super) fn id_in_path(name: &'static str, text: &str) -> Result<Uuid, ApiError> {
    Uuid::try_parse(text).map_err(|_| invalid(["path", name], format!("{:?} is not a UUID", beginning(text))))
}
