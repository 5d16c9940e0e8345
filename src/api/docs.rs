//! Describes the interface, as a document and as pages to browse. Both are made from the list of routes.

use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::body::Bytes;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use utoipa::Modify;
use utoipa::OpenApi;
use utoipa::openapi::OpenApi as Document;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};

use super::extract::Checked;
use super::problem::{ApiError, JSON};
use super::query_params::NoParams;

pub mod answers;
pub mod bodies;
pub mod common;
mod headers;
mod pages;
mod parameters;
pub mod rows;
mod unions;

use pages::DOCUMENT_PATH;

const SCHEME: &str = "bearer";

/// The parts of the document besides the routes.
#[derive(OpenApi)]
#[openapi(
    info(title = "Almanac", description = "One store per person for everything they measure."),
    modifiers(&BearerTokens, &HeadersOfAnswers),
    components(schemas(
        rows::Calendar,
        rows::CalendarEvent,
        rows::Workout,
        crate::api::problem::Problem,
        crate::api::problem::ValidationProblem,
        crate::model::registry::Category,
        crate::people::annotations::AnnotationType,
        crate::output::OutputMethod,
        crate::output::RowFormat
    ))
)]
pub struct OpenApiBase;

struct BearerTokens;

impl Modify for BearerTokens {
    fn modify(&self, document: &mut Document) {
        let mut scheme = Http::new(HttpAuthScheme::Bearer);
        scheme.bearer_format = Some("JWT".to_owned());
        document
            .components
            .get_or_insert_default()
            .add_security_scheme(SCHEME, SecurityScheme::Http(scheme));
        document.security = Some(vec![SecurityRequirement::new::<_, [&str; 0], &str>(SCHEME, [])]);
    }
}

struct HeadersOfAnswers;

impl Modify for HeadersOfAnswers {
    fn modify(&self, document: &mut Document) {
        headers::explain(document.components.get_or_insert_default());
    }
}

/// The routes that serve `document`, which is made when it is first requested: most processes never need it,
/// and making it would be about a sixth of the cost of starting.
pub fn routes<S: Clone + Send + Sync + 'static>(
    document: impl FnOnce() -> Document + Send + 'static,
) -> Router<S> {
    let text = Arc::new(LazyLock::new(move || text_of(&document())));
    let answer = move |_query: Checked<NoParams>| {
        let text = Arc::clone(&text);
        async move {
            // Making it takes long enough to hold up other requests on the same thread.
            let made = move || (**text).as_ref().map(Bytes::clone).map_err(ApiError::internal);
            let text = tokio::task::spawn_blocking(made).await;
            let text = text.map_err(ApiError::internal)??;
            Ok::<_, ApiError>(([(CONTENT_TYPE, JSON)], text))
        }
    };
    Router::new()
        .route(DOCUMENT_PATH, get(answer))
        .merge(pages::routes())
}

fn text_of(document: &Document) -> Result<Bytes, serde_json::Error> {
    let mut document = serde_json::to_value(document)?;
    unions::name_variants(&mut document);
    Ok(Bytes::from(serde_json::to_vec(&document)?))
}
