//! Answers that disclose one person's data to another: they name the time that they are about, they are in
//! the owner's log before their first byte is sent, and they end when the grant is taken back.
//!
//! Whatever route answers, the decision left on the request what it granted; a route cannot forget any of
//! this.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant as Moment};

use axum::body::{Body, BodyDataStream, Bytes, HttpBody as _};
use axum::extract::{MatchedPath, Request};
use axum::http::header::CONTENT_LENGTH;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use futures::StreamExt as _;
use serde_json::{Value, json};
use tracing::Span;

use crate::api::app::AppState;
use crate::api::header_names::X_SVC_EFFECTIVE_RANGE;
use crate::api::problem::ApiError;
use crate::api::row_count::RowCount;
use crate::auth::disclosures::{Disclosure, Subject};
use crate::auth::tokens::Reader;
use crate::catalog::access_log::LogEntry;
use crate::model::ids::PersonId;
use crate::model::permit::Windows;
use crate::model::time::TimeRange;
use crate::people::sharing::terms::FileAge;

/// How long an answer goes on before it is checked again whether it may.
const ASKED_AGAIN: Duration = Duration::from_secs(1);
/// The most windows that the header names. A longer header would not pass every proxy.
const NAMED_WINDOWS: usize = 64;

#[derive(Debug, thiserror::Error)]
#[error("what this answer shows is no longer shared")]
struct Revoked;

/// Who reads, and where: what is needed of a request when it is answered.
pub struct Reading {
    reader: Reader,
    method: Method,
    route: Option<MatchedPath>,
}

impl Reading {
    /// Of a request whose reader is known.
    pub fn of(request: &Request) -> Option<Self> {
        Some(Self {
            reader: request.extensions().get::<Reader>()?.clone(),
            method: request.method().clone(),
            route: request.extensions().get::<MatchedPath>().cloned(),
        })
    }

    /// The answer, which is logged first if it discloses others' data.
    pub async fn disclosed(self, app: &AppState, response: Response) -> Response {
        let given = self.reader.disclosures().told();
        // What failed was read all the same, and its error may quote it.
        if given.is_empty() || response.status() == StatusCode::FORBIDDEN {
            return response;
        }
        let route = self.route.as_ref().map(MatchedPath::as_str);
        let endpoint = route.map_or_else(String::new, |route| format!("{} {route}", self.method));
        let has_body = self.method != Method::HEAD;
        // Boxed: few answers are logged, and every request's future would be that much larger.
        let logged = log(
            Arc::clone(app),
            self.reader,
            &endpoint,
            &given,
            has_body,
            response,
        );
        Box::pin(logged).await.unwrap_or_else(IntoResponse::into_response)
    }
}

async fn log(
    app: AppState,
    reader: Reader,
    endpoint: &str,
    given: &[Disclosure],
    has_body: bool,
    response: Response,
) -> Result<Response, ApiError> {
    let mut owners: Vec<PersonId> = given.iter().map(|disclosure| disclosure.owner).collect();
    owners.sort_unstable();
    owners.dedup();
    let log = app.sharing.log();
    let begun = owners.into_iter().map(|owner| {
        let text = log_entry(endpoint, owner, given).to_string();
        log.begin(owner, reader.person(), text)
    });
    let entries = futures::future::try_join_all(begun).await?;
    let (mut parts, body) = response.into_parts();
    let rows = parts.extensions.remove::<RowCount>();
    let mut answer = Answer {
        app,
        reader,
        entries,
        rows,
        left: bytes_said(&parts.headers),
        asked: Moment::now(),
        span: Span::current(),
    };
    let is_unchanged = parts.status == StatusCode::NOT_MODIFIED;
    if !is_unchanged && !parts.status.is_success() {
        answer.end("failed");
        return Ok(Response::from_parts(parts, body));
    }
    parts
        .headers
        .insert(X_SVC_EFFECTIVE_RANGE, effective_range(given)?);
    if is_unchanged {
        answer.end("not_modified");
        return Ok(Response::from_parts(parts, body));
    }
    // What has no bytes is over already: nobody asks a body for its end where that was said beforehand.
    let is_over = !has_body || answer.left == Some(0) || body.is_end_stream();
    if is_over || body.size_hint().exact().is_some() {
        answer.end("answered");
        return Ok(Response::from_parts(parts, body));
    }
    let going = Some((body.into_data_stream(), answer));
    let watched = futures::stream::unfold(going, |going| async move {
        let (mut body, mut answer) = going?;
        let (chunk, goes_on) = answer.next(&mut body).await?;
        Some((chunk, goes_on.then_some((body, answer))))
    });
    // The compression layer polls once more after the end.
    Ok(Response::from_parts(parts, Body::from_stream(watched.fuse())))
}

/// An answer on its way.
struct Answer {
    app: AppState,
    reader: Reader,
    /// Empty once they are ended.
    entries: Vec<LogEntry>,
    rows: Option<RowCount>,
    /// How many bytes are still to come, where that was said: nobody asks for more after the last.
    left: Option<u64>,
    /// When it was last checked that it may go on.
    asked: Moment,
    /// Of the request, which has left it when the body is read.
    span: Span,
}

type Chunk = Result<Bytes, Box<dyn Error + Send + Sync>>;

impl Answer {
    /// The next chunk, and whether there may be more; `None` when that was all.
    async fn next(&mut self, body: &mut BodyDataStream) -> Option<(Chunk, bool)> {
        let chunk = match body.next().await {
            None => {
                self.end("answered");
                return None;
            }
            Some(Err(error)) => {
                self.end("broken_off");
                return Some((Err(error.into()), false));
            }
            Some(Ok(chunk)) => chunk,
        };
        if self.asked.elapsed() >= ASKED_AGAIN {
            match self.app.grants.still_given(&self.reader).await {
                Ok(true) => self.asked = Moment::now(),
                Ok(false) => {
                    self.end("revoked");
                    return Some((Err(Revoked.into()), false));
                }
                Err(error) => {
                    self.span.in_scope(|| {
                        tracing::error!(%error, "an answer broke off: nobody knows whether it may go on");
                    });
                    self.end("broken_off");
                    return Some((Err(error.into()), false));
                }
            }
        }
        // Only what may be sent has been answered.
        if let Some(left) = &mut self.left {
            *left = left.saturating_sub(chunk.len() as u64);
            if *left == 0 {
                self.end("answered");
            }
        }
        Some((Ok(chunk), true))
    }

    fn end(&mut self, outcome: &str) {
        let rows = self.rows.as_ref().map(RowCount::get);
        for entry in self.entries.drain(..) {
            self.app.sharing.log().end(entry, rows, outcome);
        }
    }
}

impl Drop for Answer {
    /// The client went away.
    fn drop(&mut self) {
        self.end("broken_off");
    }
}

fn bytes_said(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// What the log keeps about a read.
fn log_entry(endpoint: &str, owner: PersonId, given: &[Disclosure]) -> Value {
    let group = given.iter().find(|disclosure| disclosure.owner == owner);
    let group = group.and_then(|disclosure| disclosure.group);
    let reads = given.iter().filter(|disclosure| disclosure.owner == owner);
    let reads: Vec<Value> = reads
        .map(|disclosure| {
            let (kind, names) = named(&disclosure.subject);
            json!({
                "kind": kind,
                "svc_data_types": names,
                "requested": written(disclosure.requested),
                "effective": disclosure.windows.as_slice().iter().copied().map(written).collect::<Vec<_>>(),
                "grant_ids": disclosure.grants,
            })
        })
        .collect();
    json!({
        "event": "read",
        "endpoint": endpoint,
        "group_id": group,
        "reads": reads,
    })
}

fn named(subject: &Subject) -> (&'static str, Vec<String>) {
    match subject {
        Subject::Type(data_type) => ("records", vec![data_type.to_string()]),
        Subject::Listing(openings) => {
            let mut names = Vec::new();
            for opening in openings {
                match &opening.types {
                    Some(types) => names.extend(types.iter().map(ToString::to_string)),
                    None => names.push("*".to_owned()),
                }
            }
            names.sort_unstable();
            names.dedup();
            ("listing", names)
        }
        Subject::File(path, FileAge::Live) => ("file", vec![format!("file:{path}")]),
        Subject::File(path, FileAge::Old) => ("file", vec![format!("filehistory:{path}")]),
        Subject::Folder(path, _) => ("folder", vec![format!("file:{path}")]),
    }
}

fn effective_range(given: &[Disclosure]) -> Result<HeaderValue, ApiError> {
    let all = given
        .iter()
        .flat_map(|disclosure| disclosure.windows.as_slice().iter().copied());
    let windows = Windows::new(all);
    let mut texts: Vec<String> = windows
        .as_slice()
        .iter()
        .take(NAMED_WINDOWS)
        .copied()
        .map(written)
        .collect();
    if windows.as_slice().len() > NAMED_WINDOWS {
        texts.push("...".to_owned());
    }
    HeaderValue::from_str(&texts.join(", ")).map_err(ApiError::internal)
}

fn written(range: TimeRange) -> String {
    format!("{}/{}", range.start(), range.end())
}
