//! People about themselves: `/user/v1alpha1`.

pub mod annotations;
pub mod info;
pub mod preferences;
pub mod reflections;
pub mod sessions;
pub mod tags;
pub mod totals;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::api::app::Shared;
use crate::api::problem::ApiError;
use crate::model::faults::Fault;
use crate::people::documents::DocumentError;

/// Every route about the caller.
pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(info::info))
        .routes(routes!(totals::totals))
        .routes(routes!(preferences::preferences, preferences::change_preferences))
        .routes(routes!(sessions::list, sessions::create))
        .routes(routes!(sessions::one, sessions::rename, sessions::revoke))
        .routes(routes!(annotations::list, annotations::create))
        .routes(routes!(
            annotations::one,
            annotations::replace,
            annotations::delete
        ))
        .routes(routes!(annotations::cancel_deletion))
        .routes(routes!(annotations::annotation_schema))
        .routes(routes!(annotations::measurement_schema))
        .routes(routes!(tags::list, tags::create))
        .routes(routes!(tags::by_id, tags::delete))
        .routes(routes!(tags::by_name))
        .routes(routes!(reflections::list, reflections::create))
        .routes(routes!(
            reflections::one,
            reflections::replace,
            reflections::delete
        ))
}

/// The id that a path names, of a thing of this kind.
fn id_in_path(kind: &str, text: &str) -> Result<Uuid, ApiError> {
    Uuid::try_parse(text).map_err(|_| ApiError::not_found(format!("{text:?} is the id of no {kind}")))
}

impl From<DocumentError> for ApiError {
    fn from(error: DocumentError) -> Self {
        match error {
            DocumentError::Invalid(faults) => Self::invalid_all(faults),
            DocumentError::Unknown(_) => Self::not_found(error.to_string()),
            DocumentError::NameTaken { .. } | DocumentError::Overtaken => Self::conflict(error.to_string()),
            DocumentError::LimitReached(reached) => {
                Self::invalid_all(vec![Fault::new(["body"], "limit_reached", reached.to_string())])
            }
            DocumentError::Damaged { .. } => Self::damaged(error),
            DocumentError::Catalog(error) => error.into(),
        }
    }
}
