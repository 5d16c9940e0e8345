//! Types by the names that people gave them: the unique name of one's own type is accepted wherever an id is.

use crate::api::app::App;
use crate::api::problem::ApiError;
use crate::auth::tokens::Reader;
use crate::model::ids::PersonId;

/// The id that `name` stands for in a question about `owner`. The names that other people gave are private:
/// in questions about them only ids are understood, and any other text is returned unchanged.
pub async fn meant(app: &App, reader: &Reader, owner: PersonId, name: &str) -> Result<String, ApiError> {
    if reader.owns(owner) {
        Ok(app.types.meant(owner, name).await?)
    } else {
        Ok(name.to_owned())
    }
}

/// The same for several names. A name without a meaning is returned unchanged: a list reports all of its
/// wrong names at once.
pub async fn all_meant(
    app: &App,
    reader: &Reader,
    owner: PersonId,
    names: &[String],
) -> Result<Vec<String>, ApiError> {
    if reader.owns(owner) {
        Ok(app.types.all_meant(owner, names).await?)
    } else {
        Ok(names.to_vec())
    }
}
