//! The interface described: as a document, and as pages to browse. Both come from the list of routes, and the
//! pages from the binary.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::http::HeaderValue;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_FRAME_OPTIONS};
use axum::middleware::map_response;
use axum::response::Response;
use axum::routing::get;
use utoipa::Modify;
use utoipa::OpenApi;
use utoipa::openapi::OpenApi as Document;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa_swagger_ui::{Config, SwaggerUi};

pub mod answers;
pub mod bodies;
pub mod common;
mod unions;

pub const DOCUMENT_PATH: &str = "/openapi.json";
pub const PAGES_PATH: &str = "/docs";

const SCHEME: &str = "bearer";

/// What the document says beside its routes.
#[derive(OpenApi)]
#[openapi(
    info(title = "Almanac", description = "One store per person for everything they measure."),
    modifiers(&BearerTokens),
    components(schemas(
        crate::api::problem::Problem,
        crate::api::problem::ValidationProblem,
        crate::people::annotations::AnnotationType,
        crate::output::OutputMethod,
        crate::output::RowFormat
    ))
)]
pub struct Frame;

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

/// What the pages may do: run what comes with them, ask this service, and nothing else.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
     connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

async fn guarded(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, POLICY);
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    response
}

/// The routes that show `document`.
pub fn routes<S: Clone + Send + Sync + 'static>(document: &Document) -> Result<Router<S>, serde_json::Error> {
    let mut document = serde_json::to_value(document)?;
    unions::name_variants(&mut document);
    let text = Bytes::from(serde_json::to_vec(&document)?);
    let answer = move || {
        let text = text.clone();
        async move { ([(CONTENT_TYPE, "application/json")], text) }
    };
    let pages =
        SwaggerUi::new(PAGES_PATH).config(Arc::unwrap_or_clone(Arc::new(Config::from(DOCUMENT_PATH))));
    let pages = Router::new().merge(pages).layer(map_response(guarded));
    Ok(Router::new().route(DOCUMENT_PATH, get(answer)).merge(pages))
}
