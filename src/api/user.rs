//! People about themselves: `/user/v1alpha1`, and what they share: `/user/v1`.

pub mod access_log;
pub mod datasets;
pub mod datashares;
pub mod groups;
pub mod preferences;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::app::Shared;
use crate::api::spellings::also_at;

/// Every route about the caller.
pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(preferences::preferences, preferences::change_preferences))
        .routes(routes!(access_log::access_log))
        .merge(sharing_routes())
        .merge(group_routes())
}

/// The routes of groups that need no token.
pub fn open_routes() -> OpenApiRouter<Shared> {
    also_at(routes!(groups::keys), "/user/v1/", &["/user/v1alpha1/"])
}

fn sharing_routes() -> OpenApiRouter<Shared> {
    let shares = (
        "/user/v1/datashare",
        ["/user/v1alpha1/datashare", "/user/v1alpha1/datashares"],
    );
    let datasets = (
        "/user/v1/dataset",
        ["/user/v1alpha1/dataset", "/user/v1alpha1/datasets"],
    );
    OpenApiRouter::new()
        .merge(also_at(
            routes!(datashares::create, datashares::list),
            shares.0,
            &shares.1,
        ))
        .merge(also_at(
            routes!(datashares::one, datashares::change, datashares::remove),
            shares.0,
            &shares.1,
        ))
        .merge(also_at(routes!(datasets::list), datasets.0, &datasets.1))
        .merge(also_at(routes!(datasets::leave), datasets.0, &datasets.1))
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
