//! Commits what a body asks for, and answers once that is durable.
//!
//! Knows what is to be committed, and by which limits; knows nothing of how it was sent.

use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::api::app::App;
use crate::api::problem::{ApiError, JSON};
use crate::catalog::records::{Effect, SeenSource};
use crate::ingest::accept::RecordedWork;
use crate::ingest::intake::remove;
use crate::ingest::queue::Receipt;
use crate::ingest::submit::submit;
use crate::ingest::upload::{IdempotencyKey, Upload, Work};
use crate::model::ids::{PersonId, UploadId};
use crate::model::release_guard::ReleaseGuard;

/// What is to be committed for one request.
pub(super) struct Submission {
    pub(super) person: PersonId,
    pub(super) key: Option<IdempotencyKey>,
    pub(super) recorded: RecordedWork,
    pub(super) closed: Option<ApiError>,
}

/// What was done, once it is durable. A record counts once, however often the body names it. The counts are
/// absent only in the answer to a repeated request that was first accepted by a version that did not count.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Uploaded {
    upload_id: Uuid,
    /// Records that were new.
    #[serde(skip_serializing_if = "Option::is_none")]
    stored: Option<u64>,
    /// Records that took the place of a stored version.
    #[serde(skip_serializing_if = "Option::is_none")]
    replaced: Option<u64>,
    /// Records that were already stored with the same content.
    #[serde(skip_serializing_if = "Option::is_none")]
    unchanged: Option<u64>,
    /// Records that were stored and no longer are.
    #[serde(skip_serializing_if = "Option::is_none")]
    deleted: Option<u64>,
}

impl From<Receipt> for Uploaded {
    fn from(receipt: Receipt) -> Self {
        let count = |of: fn(Effect) -> u64| receipt.effect.map(of);
        Self {
            upload_id: receipt.upload.0,
            stored: count(|effect| effect.stored),
            replaced: count(|effect| effect.replaced),
            unchanged: count(|effect| effect.unchanged),
            deleted: count(|effect| effect.deleted),
        }
    }
}

/// Checks that there may be records, or that there were, and that the person stays within the limits of
/// sources and idempotency keys. What is named and the key count as long as what is returned is held.
async fn admit(
    app: &App,
    person: PersonId,
    key: Option<&IdempotencyKey>,
    sources: &[SeenSource],
    closed: Option<ApiError>,
) -> Result<ReleaseGuard, ApiError> {
    if let Some(refusal) = closed {
        let kept = match key {
            Some(key) => app.catalog.upload_for_key(person, &key.key).await?,
            None => None,
        };
        if kept.is_none() {
            return Err(refusal);
        }
    }
    let naming = app.source_quota.admit(person, sources).await?;
    let using = match key {
        Some(key) => Some(app.key_quota.admit(person, &key.key).await?),
        None => None,
    };
    Ok(Box::new((naming, using)))
}

/// Commits, and answers once the commit is durable.
pub(super) async fn commit(app: &App, submission: Submission) -> Result<Response, ApiError> {
    let Submission {
        person,
        key,
        recorded,
        closed,
    } = submission;
    let RecordedWork {
        work,
        sources,
        files,
        memory,
    } = recorded;
    let held = match admit(app, person, key.as_ref(), &sources, closed).await {
        Ok(held) => held,
        Err(error) => {
            if let Work::Written(written) = &work {
                remove(&app.intake.objects, &written.pieces.all()).await;
            }
            return Err(error);
        }
    };
    let upload = Upload {
        person,
        upload: UploadId(app.ids.next()),
        key,
        work,
        sources,
        memory: Some(memory),
        // It is committed even if the caller goes away, and so it also counts until then.
        held: Some(held),
    };
    let receipt = submit(&app.commits, &app.catalog, &app.intake.objects, upload).await?;
    if let Err(error) = app.files.note_types(person, files).await {
        // The records are stored; sending them again also notes the file.
        tracing::warn!(%error, "could not note that records were read from a file");
    }
    // At once, and not piece by piece into a buffer that is asked for room each time.
    let uploaded = serde_json::to_vec(&Uploaded::from(receipt)).map_err(ApiError::internal)?;
    Ok((StatusCode::CREATED, [(CONTENT_TYPE, JSON)], uploaded).into_response())
}
