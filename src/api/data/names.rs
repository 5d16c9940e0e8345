//! Types by their names: the unique name that a person gave to a type of their own is accepted wherever an id
//! is, and built-in types are read under the names that the service knows them by.

use crate::api::app::App;
use crate::api::problem::ApiError;
use crate::auth::grants::{GrantAuthority, Readable};
use crate::auth::tokens::Reader;
use crate::model::ids::PersonId;
use crate::model::registry::TypeId;
use crate::model::time::TimeRange;
use crate::query::TypedPartition;
use crate::query::places::Granted;

/// The id that `name` stands for in a question about `owner`. The names that other people gave are private:
/// in questions about them only ids are understood, and any other text is returned unchanged.
pub async fn resolve_name(
    app: &App,
    reader: &Reader,
    owner: PersonId,
    name: &str,
) -> Result<String, ApiError> {
    if reader.owns(owner) {
        Ok(app.types.resolve_name(owner, name).await?)
    } else {
        Ok(name.to_owned())
    }
}

/// The ids that several names stand for in a question about `owner`. A name without a meaning is returned
/// unchanged: a list reports all of its wrong names at once.
pub async fn resolve_names(
    app: &App,
    reader: &Reader,
    owner: PersonId,
    names: &[String],
) -> Result<Vec<String>, ApiError> {
    if reader.owns(owner) {
        Ok(app.types.resolve_names(owner, names).await?)
    } else {
        Ok(names.to_vec())
    }
}

/// The permit to read a built-in type of `owner` in `range`, with the partition of its records.
pub async fn grant_builtin(
    app: &App,
    reader: &Reader,
    owner: PersonId,
    name: &str,
    range: TimeRange,
) -> Result<Granted<GrantAuthority>, ApiError> {
    let permit = app
        .grants
        .windows(reader, owner, &TypeId::new(name), range)
        .await?;
    granted_builtin(app, name, permit).await
}

/// The partition of a built-in type, beside the permit to read it.
pub async fn granted_builtin(
    app: &App,
    name: &str,
    permit: Readable,
) -> Result<Granted<GrantAuthority>, ApiError> {
    let resolved = app.types.find(permit.owner(), name).await?;
    Ok(Granted {
        permit,
        partition: TypedPartition::of(resolved.data_type),
    })
}
