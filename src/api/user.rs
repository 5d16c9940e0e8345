//! People about themselves: `/user/v1alpha1`.

pub mod info;
pub mod preferences;
pub mod sessions;
pub mod totals;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::app::Shared;

/// Every route about the caller.
pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(info::info))
        .routes(routes!(totals::totals))
        .routes(routes!(preferences::preferences, preferences::change_preferences))
        .routes(routes!(sessions::list, sessions::create))
        .routes(routes!(sessions::one, sessions::rename, sessions::revoke))
}
