//! People's own affairs: `/user/v1alpha1`, and what they share: `/user/v1`.

pub mod access_log;
pub mod account;
pub mod annotations;
mod bounds;
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

use crate::api::endpoints::{Routes, endpoint};
use crate::api::problem::ApiError;
use crate::api::spellings::also_at;
use crate::people::documents::DocumentError;

/// Every route about the caller.
pub fn routes() -> Routes {
    Routes::new()
        .with(endpoint!(info::info))
        .with(endpoint!(totals::totals))
        .with(endpoint!(
            preferences::preferences,
            preferences::change_preferences
        ))
        .with(endpoint!(sessions::list, sessions::create))
        .with(endpoint!(sessions::one, sessions::rename, sessions::revoke))
        .with(endpoint!(annotations::list, annotations::create))
        .with(endpoint!(
            annotations::one,
            annotations::replace,
            annotations::remove
        ))
        .with(endpoint!(annotations::cancel_deletion))
        .with(endpoint!(annotations::annotation_schema))
        .with(endpoint!(annotations::measurement_schema))
        .with(endpoint!(tags::list, tags::create))
        .with(endpoint!(tags::one, tags::remove))
        .with(endpoint!(tags::by_name))
        .with(endpoint!(reflections::list, reflections::create))
        .with(endpoint!(
            reflections::one,
            reflections::replace,
            reflections::remove
        ))
        .with(endpoint!(access_log::access_log))
        .with(endpoint!(account::erase_account))
        .with(endpoint!(exports::list, exports::create))
        .with(endpoint!(exports::one, exports::remove))
        .with(endpoint!(exports::content))
        .merge(sharing_routes())
        .merge(group_routes())
}

/// The routes of groups that need no token.
pub fn open_routes() -> Routes {
    also_at(endpoint!(groups::keys), "/user/v1/", &["/user/v1alpha1/"])
}

fn sharing_routes() -> Routes {
    const SHARES: [&str; 2] = ["/user/v1alpha1/datashare", "/user/v1alpha1/datashares"];
    const DATASETS: [&str; 2] = ["/user/v1alpha1/dataset", "/user/v1alpha1/datasets"];
    let all = endpoint!(datashares::create, datashares::list);
    let one = endpoint!(datashares::one, datashares::change, datashares::remove);
    Routes::new()
        .merge(also_at(all, "/user/v1/datashare", &SHARES))
        .merge(also_at(one, "/user/v1/datashare", &SHARES))
        .merge(also_at(endpoint!(datasets::list), "/user/v1/dataset", &DATASETS))
        .merge(also_at(endpoint!(datasets::leave), "/user/v1/dataset", &DATASETS))
        .with(endpoint!(datasets::allowed_types))
        .with(endpoint!(datasets::accessible_types))
}

fn group_routes() -> Routes {
    [
        endpoint!(groups::create, groups::list),
        endpoint!(groups::one, groups::change, groups::remove),
        endpoint!(groups::join, groups::quit),
        endpoint!(groups::participants),
        endpoint!(groups::metadata, groups::replace_metadata, groups::merge_metadata),
    ]
    .into_iter()
    .fold(Routes::new(), |router, routes| {
        router.merge(also_at(routes, "/user/v1/", &["/user/v1alpha1/"]))
    })
}

impl From<DocumentError> for ApiError {
    fn from(error: DocumentError) -> Self {
        match error {
            DocumentError::Invalid(faults) => Self::invalid_all(faults),
            DocumentError::Unknown(_) => Self::not_found(error.to_string()),
            DocumentError::NameTaken { .. } | DocumentError::Overtaken => Self::conflict(error.to_string()),
            DocumentError::Outdated(outdated) => outdated.into(),
            DocumentError::LimitReached(reached) => Self::limit_reached(reached.to_string()),
            DocumentError::Damaged { .. } => Self::damaged(error),
            DocumentError::Catalog(error) => error.into(),
        }
    }
}
