//! People about themselves: `/user/v1alpha1`.

pub mod preferences;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::app::Shared;

/// Every route about the caller.
pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(preferences::preferences, preferences::change_preferences))
}
