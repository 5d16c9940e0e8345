//! Ids in paths whose texts have to be UUIDs: 422, in the same words everywhere.
//!
//! Where a text that is no id has to look like an id that nobody has (of files, frames, groups, shares), the
//! route itself answers 404.

use uuid::Uuid;

use crate::api::problem::{ApiError, invalid};
use crate::model::excerpt::beginning;

/// The id that the parameter `name` of a path gives.
pub fn id_in_path(name: &'static str, text: &str) -> Result<Uuid, ApiError> {
    Uuid::try_parse(text).map_err(|_| invalid(["path", name], format!("{:?} is not a UUID", beginning(text))))
}
