//! A key service outside the service: it answers like a transit engine, and tells nobody what it keeps.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;

pub(crate) const TOKEN: &str = "a token of the key service";

/// Answers for as long as the runtime of the test lives.
#[derive(Debug)]
pub(crate) struct KeyService {
    url: String,
    kept: Arc<Kept>,
}

#[derive(Debug)]
struct Kept {
    is_away: AtomicBool,
    is_wrong: AtomicBool,
    asked: AtomicU64,
    /// What was wrapped and what for, by its number.
    wrapped: Mutex<Vec<(Value, Value)>>,
}

type Answer = Result<Json<Value>, StatusCode>;

impl KeyService {
    pub(crate) async fn start() -> Self {
        let kept = Arc::new(Kept {
            is_away: AtomicBool::new(false),
            is_wrong: AtomicBool::new(false),
            asked: AtomicU64::new(0),
            wrapped: Mutex::default(),
        });
        let routes = Router::new()
            .route("/v1/transit/encrypt/almanac", post(wrap))
            .route("/v1/transit/decrypt/almanac", post(unwrap))
            .with_state(Arc::clone(&kept));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Self {
            url: format!("http://{address}/v1/transit/keys/almanac"),
            kept,
        }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn goes_away(&self) {
        self.kept.is_away.store(true, Ordering::SeqCst);
    }

    pub(crate) fn comes_back(&self) {
        self.kept.is_away.store(false, Ordering::SeqCst);
    }

    /// Whether what it opens is something else than what it wrapped.
    pub(crate) fn is_wrong(&self, wrong: bool) {
        self.kept.is_wrong.store(wrong, Ordering::SeqCst);
    }

    /// How often it was asked for anything.
    pub(crate) fn asked(&self) -> u64 {
        self.kept.asked.load(Ordering::SeqCst)
    }
}

async fn wrap(State(kept): State<Arc<Kept>>, headers: HeaderMap, Json(question): Json<Value>) -> Answer {
    refused(&kept, &headers)?;
    let mut wrapped = kept.wrapped.lock().expect("lock");
    wrapped.push((question["plaintext"].clone(), question["associated_data"].clone()));
    Ok(Json(
        json!({"data": {"ciphertext": format!("vault:v1:{}", wrapped.len() - 1)}}),
    ))
}

async fn unwrap(State(kept): State<Arc<Kept>>, headers: HeaderMap, Json(question): Json<Value>) -> Answer {
    refused(&kept, &headers)?;
    let number = question["ciphertext"]
        .as_str()
        .and_then(|text| text.strip_prefix("vault:v1:"));
    let number: usize = number
        .and_then(|number| number.parse().ok())
        .ok_or(StatusCode::BAD_REQUEST)?;
    let wrapped = kept.wrapped.lock().expect("lock");
    if kept.is_wrong.load(Ordering::SeqCst) {
        let another = "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=";
        return Ok(Json(json!({"data": {"plaintext": another}})));
    }
    match wrapped.get(number) {
        Some((secret, bound)) if *bound == question["associated_data"] => {
            Ok(Json(json!({"data": {"plaintext": secret}})))
        }
        _ => Err(StatusCode::BAD_REQUEST),
    }
}

fn refused(kept: &Kept, headers: &HeaderMap) -> Result<(), StatusCode> {
    kept.asked.fetch_add(1, Ordering::SeqCst);
    if kept.is_away.load(Ordering::SeqCst) {
        return Err(StatusCode::SERVICE_UNAVAILABLE);
    }
    let is_known = headers.get("x-vault-token").is_some_and(|token| token == TOKEN);
    is_known.then_some(()).ok_or(StatusCode::FORBIDDEN)
}
