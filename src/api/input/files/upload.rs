//! Receives the bytes of a file. Anybody who has the address may send them: the address itself says what it
//! is for and until when, so this route stands outside the wall.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CONTENT_ENCODING, CONTENT_RANGE, RANGE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use tracing::Instrument as _;

use super::file_tags::shown;
use crate::api::answer_headers::header_value;
use crate::api::app::AppState;
use crate::api::body::{broke_off, declared_length, text};
use crate::api::docs::bodies::RawBytes;
use crate::api::download::ranges;
use crate::api::extract::{Checked, Path};
use crate::api::layers::rates::charge_owner;
use crate::api::problem::ApiError;
use crate::api::query_params::NoParams;
use crate::auth::tickets::InvalidTicket;
use crate::people::files::{Received, SentBytes, UploadError};

/// The path that bytes are sent to; a ticket follows.
pub const PATH: &str = "/input/v1/upload";

/// How long a client should wait while too many others send.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// Receives the bytes of an announced file: all of them, or one range after the other with `Content-Range`.
#[utoipa::path(method(put, post), path = "/input/v1/upload/{ticket}", tag = "files", security(()),
    params(("ticket" = String, Path), Checked<NoParams>,
        ("content-range" = Option<String>, Header)),
    request_body(content = RawBytes, content_type = "application/octet-stream"),
    responses((status = 200, description = "The file is there", body = super::shapes::FileInput,
            headers(("etag"))),
        (status = 308, description = "More is to come; `Range` says what is there", headers(("range"))),
        (status = 400),
        (status = 403), (status = 408), (status = 409), (status = 412), (status = 413), (status = 415),
        (status = 422), (status = 429), (status = 500), (status = 503)))]
pub async fn upload(
    State(app): State<AppState>,
    Path(ticket): Path<String>,
    _query: Checked<NoParams>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let id = app.tickets.opened_by(&ticket, app.clock.now())?;
    if text(&headers, &CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
        return Err(ApiError::unsupported_media_type(
            "a file is kept as it is sent; send it without content-encoding",
        ));
    }
    let sent = match text(&headers, &CONTENT_RANGE) {
        None => SentBytes::All,
        Some(range) => ranges::sent(range).ok_or_else(|| {
            ApiError::bad_request(format!(
                "content-range {range:?} is not understood; expected bytes a-b/total or bytes */total"
            ))
        })?,
    };
    let awaited = match (app.files.awaited(id).await, sent) {
        // A client that missed the answer to its last bytes asks again.
        (Err(UploadError::Closed), SentBytes::Question { total }) => {
            return shown(&app.files.finished(id, total).await?);
        }
        (awaited, _) => awaited?,
    };
    sent.within(awaited.bytes)?;
    refuse_wrong_length(&headers, sent, awaited.bytes)?;
    let body = match charge_owner(&app, awaited.owner) {
        Ok(None) => body,
        Ok(Some(meter)) => meter.metered(body),
        Err(refusal) => return Ok(*refusal),
    };
    let place = Arc::clone(&app.uploads)
        .try_acquire_owned()
        .map_err(|_| ApiError::too_many("too many files are being sent", RETRY_AFTER))?;
    // A task of its own: what arrived before the connection broke is kept, though nobody waits for the
    // answer.
    let files = app.files.clone();
    let work = async move {
        let _held_until_the_end = place;
        files.receive(id, sent, body.into_data_stream()).await
    };
    let received = tokio::spawn(work.in_current_span()).await;
    match received.map_err(ApiError::internal)?? {
        Received::Whole(file) => shown(&file),
        Received::Partly(bytes) => {
            let mut response = StatusCode::PERMANENT_REDIRECT.into_response();
            if let Some(last) = bytes.checked_sub(1) {
                let there = header_value(&format!("bytes=0-{last}"))?;
                response.headers_mut().insert(RANGE, there);
            }
            Ok(response)
        }
    }
}

/// A length that cannot be right is refused before anything is read.
fn refuse_wrong_length(headers: &HeaderMap, sent: SentBytes, announced: u64) -> Result<(), ApiError> {
    let Some(length) = declared_length(headers)? else {
        return Ok(());
    };
    let (expected, differs) = match sent {
        SentBytes::All => {
            let differs = format!("the file was announced with {announced} bytes, but the body has {length}");
            (announced, differs)
        }
        SentBytes::Range { from, until, .. } => {
            let range = until - from;
            let differs = format!("content-range names {range} bytes, but the body has {length}");
            (range, differs)
        }
        SentBytes::Question { .. } => return Ok(()),
    };
    match length.cmp(&expected) {
        std::cmp::Ordering::Equal => Ok(()),
        std::cmp::Ordering::Less => Err(ApiError::bad_request(differs)),
        std::cmp::Ordering::Greater => Err(ApiError::content_too_large(differs)),
    }
}

impl From<InvalidTicket> for ApiError {
    fn from(invalid: InvalidTicket) -> Self {
        Self::forbidden(invalid.to_string())
    }
}

impl From<UploadError<axum::Error>> for ApiError {
    fn from(error: UploadError<axum::Error>) -> Self {
        let detail = error.to_string();
        match error {
            // The same answer as for an invalid ticket.
            UploadError::Closed => InvalidTicket.into(),
            UploadError::TooShort { .. } | UploadError::OtherTotal { .. } | UploadError::Outside { .. } => {
                Self::bad_request(detail)
            }
            UploadError::TooLong { .. } | UploadError::TooManyParts => Self::content_too_large(detail),
            UploadError::Overtaken => Self::conflict(detail),
            UploadError::Body(error) => broke_off(&error),
            UploadError::Files(error) => error.into(),
        }
    }
}
