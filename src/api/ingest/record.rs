//! `POST /ingest/v1/record/{data_type}`: one record, or one record per line.

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
use crate::api::query_params::{Dedupe, FromParams, Params};
use crate::auth::reach::Beyond;
use crate::auth::tokens::Reader;
use crate::ingest::accept::{Acceptance, Accepted, FilesRead};
use crate::ingest::body::{BodyForm, BodyLimits, BodyReader};
use crate::ingest::coerce::Epoch;
use crate::ingest::context::Leave;
use crate::ingest::deletions::deletions;
use crate::ingest::tombstone::TOMBSTONE_TYPE;
use crate::ingest::upload::{IdempotencyKey, Work};
use crate::model::excerpt::beginning;

use super::{
    Deleter, Recordable, Submission, Uploaded, commit, content_length, idempotency_key, recordable,
    run_blocking,
};

/// Which version of the type is meant, and what the sender asks for.
#[derive(Debug)]
pub struct RecordQuery {
    api_version: Option<String>,
    leave: Leave,
}

impl FromParams for RecordQuery {
    fn from_params(params: &mut Params<'_>) -> Option<Self> {
        let api_version = params.text("api_version");
        let dedupe = params.choice_or("dedupe", Dedupe::None);
        let coerce = params.flag_or("coerce", false);
        let epoch = params.choice_or("epoch", Epoch::ByMagnitude);
        Some(Self {
            api_version,
            leave: Leave {
                natural_ids: dedupe? == Dedupe::Natural,
                coercion: coerce?.then_some(epoch?),
            },
        })
    }
}

/// Records of one type. The answer is sent after they are durable.
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
    let Recordable {
        compiled,
        mut context,
        mut closed,
    } = recordable(&app, person, &data_type).await?;
    let key = idempotency_key(&headers)?;
    if let Some(refusal) = closed.take_if(|_| key.is_none()) {
        return Err(refusal);
    }
    context.leave = query.leave;
    let reach = reader.reach();
    let is_tombstone = compiled.data_type().id.as_str() == TOMBSTONE_TYPE;
    if !is_tombstone && !reach.covers(&compiled.data_type().id) {
        return Err(ApiError::forbidden(Beyond::Types.to_string()));
    }
    if let Some(version) = &query.api_version {
        let known = serde_json::to_value(compiled.data_type().api_version).map_err(ApiError::internal)?;
        if known != *version {
            return Err(ApiError::not_found(format!(
                "{data_type} has no version {:?}",
                beginning(version)
            )));
        }
    }
    // Of the content, whatever it is compressed with: two programs, or one program twice, compress the same
    // bytes differently.
    let fingerprint = key.as_ref().map(|_| {
        let parameters = query.leave.told_apart_by().into_iter();
        let parameters = parameters.map(str::as_bytes);
        parameters.fold(
            Sha256::new_with_prefix(data_type.as_bytes()),
            Sha256::chain_update,
        )
    });
    let mut reading = body_reader(&app, &headers)?.digested(fingerprint);

    let memory = app.bodies.allowance(person);
    let most = app.source_quota.most_named(person).await?;
    let mut acceptance = Acceptance::new(app.intake.clone(), person, compiled, context, memory, most)?;
    let mut chunks = body.into_data_stream();
    while let Some(chunk) = chunks.next().await {
        let fed = match chunk {
            Ok(chunk) => {
                let fed = acceptance.feed(&mut reading, &chunk).await;
                fed.map_err(ApiError::from)
            }
            Err(error) => Err(broke_off(&error)),
        };
        if let Err(error) = fed {
            acceptance.abandon().await;
            return Err(error);
        }
    }
    let (accepted, fingerprint) = acceptance.finish(reading).await?;
    let (work, sources, files, memory) = match accepted {
        Accepted::Rows {
            work,
            sources,
            files,
            memory,
        } => (work, sources, files, memory),
        Accepted::Deletions(tombstones, memory) => {
            let deleter = Deleter::of(&app, person).await?;
            let changes = move || deletions(&tombstones, |name| deleter.targets_of(name));
            let changes = run_blocking(changes).await?;
            if !changes.iter().all(|change| reach.covers(&change.data_type)) {
                return Err(ApiError::forbidden(Beyond::Types.to_string()));
            }
            (Work::Small(changes), Vec::new(), FilesRead::new(), memory)
        }
    };
    let key = key.zip(fingerprint).map(|(key, fingerprint)| IdempotencyKey {
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
            closed,
        },
    )
    .await
}

pub(super) fn body_reader(app: &App, headers: &HeaderMap) -> Result<BodyReader, ApiError> {
    let media_type = text(headers, &CONTENT_TYPE);
    let form = BodyForm::from_media_type(media_type).ok_or_else(|| {
        ApiError::unsupported_media_type(format!(
            "found {:?}; send application/json with one record, or application/x-jsonl with a record a line",
            beginning(media_type.unwrap_or_default())
        ))
    })?;
    let encoding = content_encoding(headers)?;
    let limits = BodyLimits {
        body: app.settings.body_limit as u64,
        line: app.settings.body_limit,
    };
    BodyReader::new(form, encoding, limits).map_err(ApiError::internal)
}
