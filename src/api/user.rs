//! People about themselves: `/user/v1alpha1`, and what they share: `/user/v1`.

pub mod access_log;
pub mod account;
pub mod annotations;
pub mod datasets;
pub mod datashares;
pub mod exports;
pub mod groups;
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
use crate::api::spellings::also_at;
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
        .routes(routes!(access_log::access_log))
        .routes(routes!(account::erase_account))
        .routes(routes!(exports::list, exports::create))
        .routes(routes!(exports::one, exports::remove))
        .routes(routes!(exports::content))
        .merge(sharing_routes())
        .merge(group_routes())
}

/// The routes of groups that need no token.
pub fn open_routes() -> OpenApiRouter<Shared> {
    also_at(routes!(groups::keys), "/user/v1/", &["/user/v1alpha1/"])
}

fn sharing_routes() -> OpenApiRouter<Shared> {
    const SHARES: [&str; 2] = ["/user/v1alpha1/datashare", "/user/v1alpha1/datashares"];
    const DATASETS: [&str; 2] = ["/user/v1alpha1/dataset", "/user/v1alpha1/datasets"];
    let all = routes!(datashares::create, datashares::list);
    let one = routes!(datashares::one, datashares::change, datashares::remove);
    OpenApiRouter::new()
        .merge(also_at(all, "/user/v1/datashare", &SHARES))
        .merge(also_at(one, "/user/v1/datashare", &SHARES))
        .merge(also_at(routes!(datasets::list), "/user/v1/dataset", &DATASETS))
        .merge(also_at(routes!(datasets::leave), "/user/v1/dataset", &DATASETS))
        .routes(routes!(datasets::allowed_types))
        .routes(routes!(datasets::accessible_types))
}

fn group_routes() -> OpenApiRouter<Shared> {
    [
        routes!(groups::create, groups::list),
        routes!(groups::one, groups::change, groups::remove),
        routes!(groups::join, groups::quit),
        routes!(groups::participants),
        routes!(groups::metadata, groups::replace_metadata, groups::merge_metadata),
    ]
    .into_iter()
    .fold(OpenApiRouter::new(), |router, routes| {
        router.merge(also_at(routes, "/user/v1/", &["/user/v1alpha1/"]))
    })
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
