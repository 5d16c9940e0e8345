//! Types by the names that people gave them: where an id is expected, the unique name of one's own type does.

use crate::api::app::App;
use crate::api::problem::ApiError;
use crate::auth::tokens::Reader;
use crate::model::ids::PersonId;
use crate::people::types::TypesError;

/// The id that `name` stands for in a question about `owner`. Which names others have given is theirs to
/// know: about them only ids are understood, and any other text stays what it is.
pub async fn meant(app: &App, reader: &Reader, owner: PersonId, name: &str) -> Result<String, ApiError> {
    if reader.owns(owner) {
        Ok(app.types.meant(owner, name).await?)
    } else {
        Ok(name.to_owned())
    }
}

/// The same of several. What means nothing stays what it is: a list says of all of its names what is wrong.
pub async fn all_meant(
    app: &App,
    reader: &Reader,
    owner: PersonId,
    names: &[String],
) -> Result<Vec<String>, ApiError> {
    let mut ids = Vec::with_capacity(names.len());
    for name in names {
        let id = if reader.owns(owner) {
            match app.types.meant(owner, name).await {
                Err(TypesError::Unknown { .. }) => name.clone(),
                meant => meant?,
            }
        } else {
            name.clone()
        };
        ids.push(id);
    }
    Ok(ids)
}
