//! Tests the layers around every route, with routes made for the purpose.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::header::CONTENT_LENGTH;
use axum::http::{HeaderMap, Method, Request, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::Value;
use tower::ServiceExt;
use uuid::Uuid;

use super::{Assembly, Computing, Foundations, assemble};
use crate::api::app::AppState;
use crate::api::endpoints::Routes;
use crate::api::extract::{Checked, Owner};
use crate::api::problem::ApiError;
use crate::api::query_params::{FromParams, Params};
use crate::api::readiness::{NotReady, Readiness};
use crate::api::routes;
use crate::auth::keys::SigningKey;
use crate::auth::mint::{TokenOrder, mint};
use crate::auth::reach::Reach;
use crate::auth::tickets::Tickets;
use crate::auth::tokens::{Reader, Verifier};
use crate::catalog::Catalog;
use crate::cli::settings::Settings;
use crate::cli::settings::given::{GivenSettings, Sources};
use crate::cli::spill::SpillDirectory;
use crate::model::clock::ManualClock;
use crate::model::ids::PersonId;
use crate::model::registry::Registry;
use crate::model::time::Instant;
use crate::people::sharing::access_log::BEGUN;
use crate::people::sharing::received::OpenedBySharer;
use crate::store::objects::ObjectStorage;

const NOW: Instant = Instant::from_micros(1_700_000_000_000_000);

const PERSON: PersonId = PersonId(Uuid::from_u128(1));
const OTHER: PersonId = PersonId(Uuid::from_u128(2));

struct Part {
    ready: bool,
}

impl Readiness for Part {
    fn check(&self) -> Pin<Box<dyn Future<Output = Result<(), NotReady>> + Send + '_>> {
        let state = if self.ready {
            Ok(())
        } else {
            Err(NotReady {
                part: "catalogue",
                reason: "a secret reason".to_owned(),
            })
        };
        Box::pin(async { state })
    }
}

struct Service {
    app: AppState,
    router: Router,
    token: String,
    _computing: Computing,
    _spill: SpillDirectory,
    _directory: tempfile::TempDir,
}

/// The settings of a service in `directory` with one place for questions and nobody waiting.
fn settings(directory: &Path) -> Settings {
    let flag = |name: &str| match name {
        "data_dir" => Some(directory.display().to_string()),
        "listen" => Some("127.0.0.1:0".to_owned()),
        "concurrent_queries" | "query_threads" => Some("1".to_owned()),
        "waiting_queries" => Some("0".to_owned()),
        _ => None,
    };
    Settings::from_given(
        &GivenSettings::gathered(&Sources {
            flag: &flag,
            variable: &|_| None,
            file: None,
        })
        .unwrap(),
    )
    .unwrap()
}

struct Wanted {
    from: PersonId,
    number: f64,
}

impl FromParams for Wanted {
    fn from_params(params: &mut Params<'_>) -> Option<Self> {
        let (from, number) = (params.owner(), params.number_from("number", 0.0));
        Some(Self {
            from: from.unwrap_or(PERSON),
            number: number.unwrap_or(1.0),
        })
    }
}

async fn asked(Checked(wanted): Checked<Wanted>) -> String {
    format!("{} {}", wanted.from, wanted.number)
}

async fn owned(reader: Reader, Owner(owner): Owner) -> String {
    (reader.person() == owner).to_string()
}

async fn failing() -> ApiError {
    ApiError::internal("a secret reason")
}

async fn panicking() -> String {
    panic!("a secret reason")
}

async fn long() -> String {
    "a line of text\n".repeat(1000)
}

/// An answer about somebody who shares nothing any more when its bytes, all in one piece, are asked for.
async fn disclosing(reader: Reader) -> Response {
    reader
        .disclosures()
        .note_listed(OTHER, &OpenedBySharer::default());
    let bytes = futures::stream::iter([Ok::<_, Infallible>("the last bytes")]);
    ([(CONTENT_LENGTH, "14")], Body::from_stream(bytes)).into_response()
}

fn test_routes() -> Routes {
    Router::new()
        .route("/test/asked", get(asked))
        .route("/test/{svc_userid}/owned", get(owned))
        .route("/test/failing", get(failing))
        .route("/test/panicking", get(panicking))
        .route("/test/long", get(long))
        .route("/test/disclosing", get(disclosing))
        .into()
}

impl Service {
    async fn start() -> Self {
        Self::with(&[], true).await
    }

    async fn with(origins: &[&str], ready: bool) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut settings = settings(directory.path());
        settings.interface.cors_origins = origins.iter().map(|origin| (*origin).to_owned()).collect();
        let clock = Arc::new(ManualClock::at(NOW));
        let key = SigningKey::open_or_create(directory.path()).unwrap();
        let order = TokenOrder {
            person: PERSON,
            name: None,
            lifetime: Duration::from_hours(1),
            reach: Reach::default(),
        };
        let token = mint(&key, &settings.identity, &order, None, NOW).unwrap();
        let catalog = Catalog::open(&settings.database_url, clock.clone())
            .await
            .unwrap();
        let foundations = Foundations {
            tickets: Tickets::open(&catalog).await.unwrap(),
            catalog,
            objects: ObjectStorage::open(&settings.objects).unwrap(),
            keys: None,
            registry: Registry::builtin().unwrap(),
            verifier: Verifier::embedded(&key, settings.identity.clone(), clock.clone()),
            minter: None,
            readiness: Box::new(Part { ready }),
            clock,
        };
        let Assembly {
            app,
            computing,
            spill,
            ..
        } = assemble(&settings, foundations).unwrap();
        let router = routes::assembled(Arc::clone(&app), || {
            routes::interface_routes().merge(test_routes())
        });
        Self {
            app,
            router,
            token,
            _computing: computing,
            _spill: spill,
            _directory: directory,
        }
    }

    async fn call(&self, method: Method, path: &str, headers: &[(&str, &str)]) -> Reply {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = self
            .router
            .clone()
            .oneshot(request.body(Body::empty()).unwrap())
            .await
            .unwrap();
        let (parts, body) = response.into_parts();
        let body = axum::body::to_bytes(body, 4 << 20).await.unwrap();
        Reply {
            status: parts.status,
            headers: parts.headers,
            body,
        }
    }

    /// A GET by the person.
    async fn get(&self, path: &str) -> Reply {
        self.call(
            Method::GET,
            path,
            &[("authorization", &format!("Bearer {}", self.token))],
        )
        .await
    }

    async fn get_by_nobody(&self, path: &str) -> Reply {
        self.call(Method::GET, path, &[]).await
    }
}

struct Reply {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl Reply {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The problem document, which must be complete.
    fn problem(&self) -> Value {
        assert_eq!(
            self.header("content-type"),
            Some("application/problem+json"),
            "{}",
            self.text()
        );
        let problem = self.json();
        assert_eq!(problem["status"], self.status.as_u16());
        for member in ["type", "title", "detail"] {
            assert!(problem[member].is_string(), "{problem}");
        }
        problem
    }
}

#[tokio::test]
async fn without_a_token_every_address_of_the_interface_is_401() {
    let service = Service::start().await;
    for path in [
        "/data/v0/metrics_catalog",
        "/test/failing",
        "/test/x/owned",
        "/nothing",
        "/data/v0",
    ] {
        let reply = service.get_by_nobody(path).await;
        assert_eq!(reply.status, StatusCode::UNAUTHORIZED, "{path}");
        assert_eq!(reply.header("www-authenticate"), Some("Bearer"));
        reply.problem();
    }
    // The front door says what this is, and nothing about anybody.
    assert_eq!(service.get_by_nobody("/").await.status, StatusCode::OK);
    let delete = service
        .call(Method::DELETE, "/data/v0/metrics_catalog", &[])
        .await;
    assert_eq!(delete.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn every_refused_token_gets_the_same_answer() {
    let service = Service::start().await;
    let mut bodies = Vec::new();
    for value in ["Bearer", "Bearer x", "Basic dXNlcg==", "Bearer a.b.c"] {
        let path = "/data/v0/metrics_catalog";
        let answer = service.call(Method::GET, path, &[("authorization", value)]).await;
        bodies.push(answer.body);
    }
    bodies.dedup();
    assert_eq!(bodies.len(), 1);
    let bearer = format!("Bearer {}", service.token);
    let two = service
        .call(
            Method::GET,
            "/test/long",
            &[("authorization", &bearer), ("authorization", &bearer)],
        )
        .await;
    assert_eq!(two.status, StatusCode::UNAUTHORIZED, "two tokens");
}

#[tokio::test]
async fn a_reader_gets_the_metrics() {
    let service = Service::start().await;
    let reply = service.get("/data/v0/metrics_catalog").await;
    assert_eq!(reply.status, StatusCode::OK);
    let metrics = reply.json();
    let steps = metrics
        .as_array()
        .unwrap()
        .iter()
        .find(|metric| metric["name"] == "StepCount")
        .unwrap();
    assert_eq!(
        (steps["metric_kind"].as_str(), steps["value_column"].as_str()),
        (Some("cumulative"), Some("step_count"))
    );
    assert!(
        !metrics
            .as_array()
            .unwrap()
            .iter()
            .any(|metric| metric["name"] == "NumericAnnotation"),
        "only v0 metrics"
    );
}

#[tokio::test]
async fn unknown_addresses_are_404_and_other_methods_405() {
    let service = Service::start().await;
    let reply = service.get("/nothing").await;
    assert_eq!(reply.status, StatusCode::NOT_FOUND);
    reply.problem();
    let bearer = format!("Bearer {}", service.token);
    for path in ["/data/v0/metrics_catalog", "/health/live"] {
        let reply = service
            .call(Method::PUT, path, &[("authorization", &bearer)])
            .await;
        assert_eq!(reply.status, StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(reply.header("allow"), Some("GET,HEAD"));
        reply.problem();
    }
}

#[tokio::test]
async fn every_answer_carries_what_every_answer_carries() {
    let service = Service::start().await;
    let paths = [
        "/health/live",
        "/metrics",
        "/openapi.json",
        "/docs/",
        "/nothing",
        "/test/asked",
        "/test/failing",
        "/test/panicking",
    ];
    for path in paths {
        let reply = service.get(path).await;
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert_eq!(reply.header("cache-control"), Some("private, no-cache"), "{path}");
        assert!(reply.header("x-request-id").is_some(), "{path}");
        assert_eq!(reply.header("server"), None, "{path}");
    }
}

#[tokio::test]
async fn a_harmless_request_id_is_echoed_and_any_other_replaced() {
    let service = Service::start().await;
    let id = async |given: &str| {
        let reply = service
            .call(Method::GET, "/health/live", &[("x-request-id", given)])
            .await;
        reply.header("x-request-id").unwrap().to_owned()
    };
    assert_eq!(id("mine-0001").await, "mine-0001");
    for harmful in ["", "a b", "a\"b", &"x".repeat(129)] {
        assert_ne!(id(harmful).await, harmful);
    }
}

#[tokio::test]
async fn failures_and_panics_are_500_with_an_id_and_no_reason() {
    let service = Service::start().await;
    for path in ["/test/failing", "/test/panicking"] {
        let reply = service.get(path).await;
        assert_eq!(reply.status, StatusCode::INTERNAL_SERVER_ERROR);
        let problem = reply.problem();
        assert!(!reply.text().contains("secret"), "{problem}");
        let id = reply.header("x-request-id").unwrap();
        assert_eq!(problem["instance"], format!("urn:request:{id}"));
    }
    let numbers = service.get_by_nobody("/metrics").await;
    assert!(
        numbers.text().contains("almanac_http_panics_total 1"),
        "{}",
        numbers.text()
    );
}

#[tokio::test]
async fn a_query_is_refused_with_all_of_its_faults() {
    let service = Service::start().await;
    let reply = service
        .get("/test/asked?svc_userid=me&number=many&colour=red")
        .await;
    assert_eq!(reply.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(reply.header("content-type"), Some("application/json"));
    let detail = reply.json()["detail"].clone();
    assert_eq!(detail[0]["loc"], serde_json::json!(["query", "svc_userid"]));
    assert_eq!(detail[0]["type"], "uuid_parsing");
    assert_eq!(detail[1]["loc"], serde_json::json!(["query", "number"]));
    assert!(detail[1]["msg"].as_str().unwrap().contains("many"));
    assert_eq!(
        reply.header("x-ignored-parameters"),
        Some("colour"),
        "on a refusal too"
    );
    let fine = service.get("/test/asked?number=2&colour=red&size=1").await;
    assert_eq!(
        (fine.status, fine.header("x-ignored-parameters")),
        (StatusCode::OK, Some("colour, size"))
    );
    assert_eq!(
        service
            .get("/test/asked?number=2")
            .await
            .header("x-ignored-parameters"),
        None
    );
}

#[tokio::test]
async fn an_owner_in_a_path_is_a_uuid_in_any_case() {
    let service = Service::start().await;
    let upper = PERSON.to_string().to_uppercase();
    assert_eq!(service.get(&format!("/test/{upper}/owned")).await.text(), "true");
    let reply = service.get("/test/me/owned").await;
    assert_eq!(reply.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(
        reply.json()["detail"][0]["loc"],
        serde_json::json!(["path", "svc_userid"])
    );
}

#[tokio::test]
async fn origins_are_allowed_only_where_they_are_named() {
    let preflight = [
        ("origin", "https://app.example"),
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", "authorization,content-type"),
    ];
    let closed = Service::start().await;
    let reply = closed
        .call(Method::OPTIONS, "/data/v0/metrics_catalog", &preflight)
        .await;
    assert_eq!(
        (reply.status, reply.header("access-control-allow-origin")),
        (StatusCode::UNAUTHORIZED, None)
    );

    let open = Service::with(&["https://app.example"], true).await;
    let reply = open
        .call(Method::OPTIONS, "/data/v0/metrics_catalog", &preflight)
        .await;
    assert_eq!(
        (reply.status, reply.header("access-control-allow-origin")),
        (StatusCode::OK, Some("https://app.example"))
    );
    assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
    let refused = open
        .call(Method::GET, "/data/v0/metrics_catalog", &preflight[..1])
        .await;
    assert_eq!(
        (refused.status, refused.header("access-control-allow-origin")),
        (StatusCode::UNAUTHORIZED, Some("https://app.example"))
    );
    let evil = open
        .call(Method::GET, "/health/live", &[("origin", "https://evil.example")])
        .await;
    assert_eq!(evil.header("access-control-allow-origin"), None);
}

#[tokio::test]
async fn pages_may_send_and_read_every_header_that_is_described() {
    let service = Service::with(&["https://app.example"], true).await;
    let named = |reply: &Reply, header: &str| -> BTreeSet<String> {
        let names = reply.header(header).unwrap().split(',');
        names.map(|name| name.trim().to_lowercase()).collect()
    };
    let asked = [
        ("origin", "https://app.example"),
        ("access-control-request-method", "GET"),
        ("access-control-request-headers", "accept"),
    ];
    let path = "/data/v0/metrics_catalog";
    let preflight = service.call(Method::OPTIONS, path, &asked).await;
    let sent = named(&preflight, "access-control-allow-headers");
    let document = service.get_by_nobody("/openapi.json").await.json();
    let paths = document["paths"].as_object().unwrap().values();
    let parameters = paths
        .flat_map(|path| path.as_object().unwrap().values())
        .filter_map(|operation| operation["parameters"].as_array())
        .flatten();
    let described: BTreeSet<&str> = parameters
        .filter(|parameter| parameter["in"] == "header")
        .map(|parameter| parameter["name"].as_str().unwrap())
        .collect();
    assert!(described.contains("if-match"), "{described:?}");
    // What the browser says, no page needs to.
    let by_browser = ["content-length", "origin"];
    for name in described.into_iter().filter(|name| !by_browser.contains(name)) {
        assert!(sent.contains(name), "{name} is not among {sent:?}");
    }
    for name in [
        "accept",
        "authorization",
        "content-encoding",
        "content-type",
        "prefer",
        "traceparent",
        "tracestate",
        "x-request-id",
    ] {
        assert!(sent.contains(name), "{name} is not among {sent:?}");
    }

    let answer = service.call(Method::GET, path, &asked[..1]).await;
    let read = named(&answer, "access-control-expose-headers");
    let of_answers = document["components"]["headers"].as_object().unwrap().keys();
    // A page knows how it says who asks. The two that are added belong to no operation.
    let of_answers = of_answers
        .map(String::as_str)
        .filter(|name| *name != "www-authenticate");
    let read_by_pages: Vec<&str> = of_answers.chain(["allow", "content-encoding"]).collect();
    assert!(read_by_pages.contains(&"x-svc-next-cursor"), "{read_by_pages:?}");
    for name in read_by_pages {
        assert!(read.contains(name), "{name} is not among {read:?}");
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_before_its_last_bytes_is_not_logged_as_answered() {
    let service = Service::start().await;
    service.app.catalog.ensure_person(OTHER, None).await.unwrap();
    let request = Request::builder()
        .uri("/test/disclosing")
        .header("authorization", format!("Bearer {}", service.token))
        .body(Body::empty())
        .unwrap();
    let response = service.router.clone().oneshot(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    // Whether an answer may go on is asked again after a second.
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    assert!(axum::body::to_bytes(response.into_body(), 1 << 20).await.is_err());
    for _ in 0..500 {
        let page = service.app.sharing.log().entries(OTHER, None, 2).await.unwrap();
        let entries = page.entries;
        assert_eq!(entries.len(), 1, "{entries:?}");
        if entries[0].outcome != BEGUN {
            assert_eq!(entries[0].outcome, "revoked");
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the entry was never ended");
}

#[tokio::test]
async fn text_is_compressed_when_asked_for() {
    let service = Service::start().await;
    let bearer = format!("Bearer {}", service.token);
    let plain = service.get("/test/long").await;
    assert_eq!(plain.header("content-encoding"), None);
    for coding in ["gzip", "zstd"] {
        let reply = service
            .call(
                Method::GET,
                "/test/long",
                &[("authorization", &bearer), ("accept-encoding", coding)],
            )
            .await;
        assert_eq!(reply.header("content-encoding"), Some(coding));
        assert!(reply.body.len() * 2 < plain.body.len());
    }
}

#[tokio::test]
async fn numbers_name_routes_and_no_person() {
    let service = Service::start().await;
    let path = format!("/test/{PERSON}/owned");
    service.get(&path).await;
    service.get("/somewhere/else").await;
    let odd = Method::from_bytes(b"SOMETHING").unwrap();
    service.call(odd, "/test/long", &[]).await;
    let numbers = service.get_by_nobody("/metrics").await;
    let text = numbers.text();
    assert!(
        text.contains(
            r#"almanac_http_requests_total{route="/test/{svc_userid}/owned",method="GET",status="200"} 1"#
        ),
        "{text}"
    );
    assert!(
        text.contains(r#"route="none",method="GET",status="404"} 1"#),
        "{text}"
    );
    assert!(
        text.contains(r#"method="other""#) && !text.contains("SOMETHING"),
        "{text}"
    );
    assert!(
        !text.contains(&PERSON.to_string()) && !text.contains("somewhere"),
        "{text}"
    );
    assert!(
        text.contains("almanac_http_in_flight 1"),
        "the scrape itself: {text}"
    );
}

#[tokio::test]
async fn the_document_lists_the_routes_and_the_pages_need_no_network() {
    let service = Service::start().await;
    let document = service.get_by_nobody("/openapi.json").await.json();
    for path in [
        "/data/v0/metrics_catalog",
        "/health/live",
        "/health/ready",
        "/metrics",
    ] {
        assert!(document["paths"][path]["get"].is_object(), "{path}");
    }
    assert_eq!(
        document["components"]["securitySchemes"]["bearer"]["scheme"],
        "bearer"
    );
    let moved = service.get_by_nobody("/docs").await;
    // Relative, so that a path that a proxy adds in front is kept.
    assert_eq!(moved.header("location"), Some("docs/"));
    let page = service.get_by_nobody("/docs/").await;
    assert!(
        page.text().contains("<html") && !page.text().contains("//"),
        "{}",
        page.text().replace("<!--", "")
    );
}

#[tokio::test]
async fn a_service_that_is_not_ready_says_so_and_not_why() {
    let service = Service::with(&[], false).await;
    let reply = service.get_by_nobody("/health/ready").await;
    assert_eq!(reply.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(reply.header("retry-after").is_some() && !reply.text().contains("secret"));
    assert_eq!(service.get_by_nobody("/health/live").await.status, StatusCode::OK);
}

#[tokio::test]
async fn who_is_turned_away_is_told_when_to_come_back() {
    let service = Service::start().await;
    let _held = service.app.queries.enter(PERSON).await.unwrap();
    let busy = service.app.queries.enter(PERSON).await.unwrap_err();
    let response = ApiError::from(busy).into_response();
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(response.headers()["retry-after"], "1");
}
