//! `POST /ingest/v1/record/{data_type}`: one record, or a line for each.

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CONTENT_TYPE, HeaderMap};
use axum::response::Response;
use futures::StreamExt as _;
use sha2::{Digest as _, Sha256};

use crate::api::app::{App, Shared};
use crate::api::body::{broke_off, content_encoding, text};
use crate::api::docs::bodies::RawBytes;
use crate::api::extract::{Checked, Path};
use crate::api::problem::ApiError;
use crate::api::query_params::{FromParams, Params};
use crate::auth::tokens::Reader;
use crate::ingest::accept::{Acceptance, Accepted, FilesRead, deletions};
use crate::ingest::body::{BodyForm, BodyLimits, BodyReader};
use crate::ingest::upload::{IdempotencyKey, Work};

use super::{Deleter, Recordable, Submission, Uploaded, commit, content_length, idempotency_key, recordable};

/// Which version of the type is meant.
#[derive(Debug)]
pub struct RecordQuery {
    api_version: Option<String>,
}

impl FromParams for RecordQuery {
    fn from_params(params: &mut Params<'_>) -> Option<Self> {
        Some(Self {
            api_version: params.text("api_version"),
        })
    }
}

/// Records of one type. Answered after they are durable.
#[utoipa::path(post, path = "/ingest/v1/record/{data_type}", tag = "ingest",
    params(("data_type" = String, Path), Checked<RecordQuery>, ("idempotency-key" = Option<String>, Header)),
    request_body(description = "One record, as the schema of its type has it, or a line for each",
        content((Object = "application/json"), (RawBytes = "application/x-jsonl"))),
    responses((status = 201, description = "Stored", body = Uploaded), (status = 404), (status = 409),
        (status = 411), (status = 413), (status = 415), (status = 422)))]
pub async fn record(
    State(app): State<Shared>,
    reader: Reader,
    Path(data_type): Path<String>,
    Checked(query): Checked<RecordQuery>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    content_length(&app, &headers)?;
    let person = reader.person();
    let Recordable { compiled, context } = recordable(&app, person, &data_type).await?;
    if let Some(version) = &query.api_version {
        let known = serde_json::to_value(compiled.data_type().api_version).map_err(ApiError::internal)?;
        if known != *version {
            return Err(ApiError::not_found(format!(
                "{data_type} has no version {version:?}"
            )));
        }
    }
    let mut reading = body_reader(&app, &headers)?;
    let key = idempotency_key(&headers)?;
    let mut fingerprint = Sha256::new_with_prefix(data_type.as_bytes());

    let memory = app.bodies.allowance(person);
    let mut acceptance = Acceptance::new(app.intake.clone(), person, compiled, context, memory)?;
    let mut chunks = body.into_data_stream();
    while let Some(chunk) = chunks.next().await {
        let fed = match chunk {
            Ok(chunk) => {
                if key.is_some() {
                    fingerprint.update(&chunk);
                }
                acceptance
                    .feed(&mut reading, &chunk)
                    .await
                    .map_err(ApiError::from)
            }
            Err(error) => Err(broke_off(&error)),
        };
        if let Err(error) = fed {
            acceptance.abandon().await;
            return Err(error);
        }
    }
    let (work, sources, files, memory) = match acceptance.finish(reading).await? {
        Accepted::Rows {
            work,
            sources,
            files,
            memory,
        } => (work, sources, files, memory),
        Accepted::Deletions(tombstones, memory) => {
            let deleter = Deleter::of(&app, person).await?;
            let changes = deletions(&tombstones, |name| deleter.partitions_of(name));
            (Work::Small(changes), Vec::new(), FilesRead::new(), memory)
        }
    };
    let key = key.map(|key| IdempotencyKey {
        key,
        fingerprint: fingerprint.finalize().into(),
    });
    commit(
        &app,
        Submission {
            person,
            key,
            work,
            sources,
            files,
            memory,
        },
    )
    .await
}

pub(super) fn body_reader(app: &App, headers: &HeaderMap) -> Result<BodyReader, ApiError> {
    let form = BodyForm::from_media_type(text(headers, &CONTENT_TYPE)).ok_or_else(|| {
        ApiError::unsupported_media_type(
            "expected application/json with one record, or application/x-jsonl with a record a line",
        )
    })?;
    let encoding = content_encoding(headers)?;
    let limits = BodyLimits {
        body: app.settings.body_limit as u64,
        line: app.settings.body_limit,
    };
    BodyReader::new(form, encoding, limits).map_err(ApiError::internal)
}
