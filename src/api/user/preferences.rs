//! The caller's preferences: `/user/v1alpha1/preferences`.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;

use crate::api::app::AppState;
use crate::api::docs::bodies::PreferencesDocument;
use crate::api::document::Document;
use crate::api::extract::Checked;
use crate::api::listed::listing;
use crate::api::problem::ApiError;
use crate::api::query_params::NoParams;
use crate::auth::tokens::Reader;
use crate::people::condition::Condition;
use crate::people::preferences::{KnownTypes, Preferences, PreferencesError};

/// The caller's preferences. One that was never set, or was cleared, is left out.
#[utoipa::path(get, path = "/user/v1alpha1/preferences", tag = "people", params(Checked<NoParams>),
    responses((status = 200, description = "Preferences", body = PreferencesDocument), (status = 422)))]
pub async fn preferences(
    State(app): State<AppState>,
    reader: Reader,
    _query: Checked<NoParams>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let preferences = Preferences::of(&app.catalog, reader.person()).await?;
    listing(&headers, preferences.members())
}

/// Changes the preferences that are sent, clears those sent as null, and leaves the others alone.
#[utoipa::path(post, path = "/user/v1alpha1/preferences", tag = "people", params(Checked<NoParams>),
    request_body = PreferencesDocument,
    responses((status = 200, description = "The preferences as they are then", body = PreferencesDocument,
            headers(("etag"))),
        (status = 409), (status = 413), (status = 415), (status = 422)))]
pub async fn change_preferences(
    State(app): State<AppState>,
    reader: Reader,
    _query: Checked<NoParams>,
    condition: Condition,
    Document(body): Document,
) -> Result<Response, ApiError> {
    let known = KnownTypes {
        types: &app.types,
        annotations: &app.annotations,
        sharing: &app.sharing,
    };
    let changed = Preferences::change(&app.catalog, known, reader.person(), &body, &condition);
    listing(&HeaderMap::new(), changed.await?.members())
}

impl From<PreferencesError> for ApiError {
    fn from(error: PreferencesError) -> Self {
        match error {
            PreferencesError::Invalid(faults) => Self::invalid_all(faults),
            PreferencesError::Overtaken => Self::conflict(error.to_string()),
            PreferencesError::Outdated(outdated) => outdated.into(),
            PreferencesError::Damaged { .. } => Self::damaged(error),
            PreferencesError::Types(error) => error.into(),
            PreferencesError::Annotations(error) => error.into(),
            PreferencesError::Sharing(error) => error.into(),
            PreferencesError::Catalog(error) => error.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse as _;
    use uuid::Uuid;

    use super::*;
    use crate::api::problem::{Failure, FailureCause};
    use crate::model::ids::PersonId;

    #[test]
    fn preferences_that_cannot_be_read_count_as_damage() {
        let error = PreferencesError::Damaged {
            person: PersonId(Uuid::nil()),
            reason: "no JSON".to_owned(),
        };
        let response = ApiError::from(error).into_response();
        let failure = response.extensions().get::<Failure>().unwrap();
        assert_eq!(failure.cause, FailureCause::Damage);
    }
}
