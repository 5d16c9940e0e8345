//! The older wrapped forms: `POST /ingest/v1/record` and `/ingest/v1/record/batch`.

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use sha2::{Digest as _, Sha256};

use crate::api::app::{App, Shared};
use crate::api::body::{text, whole};
use crate::api::docs::bodies::WrappedRecord;
use crate::api::extract::Checked;
use crate::api::problem::ApiError;
use crate::api::query_params::NoParams;
use crate::auth::tokens::Reader;
use crate::catalog::records::SeenSource;
use crate::ingest::body::BodyForm;
use crate::ingest::decode::RecordDecoder;
use crate::ingest::legacy::{LegacyRecord, unwrap_batch, unwrap_one};
use crate::ingest::merge::Change;
use crate::ingest::tombstone::{TOMBSTONE_TYPE, decode_tombstone};
use crate::ingest::upload::{IdempotencyKey, PartitionChanges, Work};
use crate::model::faults::Fault;
use crate::model::ids::PersonId;

use super::{
    Recordable, Submission, Uploaded, commit, content_length, deleting, idempotency_key, recordable,
};

/// One wrapped record.
#[utoipa::path(post, path = "/ingest/v1/record", tag = "ingest",
    params(Checked<NoParams>, ("idempotency-key" = Option<String>, Header)), request_body = WrappedRecord,
    responses((status = 201, description = "Stored", body = Uploaded), (status = 404), (status = 409),
        (status = 411), (status = 413), (status = 415), (status = 422)))]
#[deprecated = "records need no wrapping: POST /ingest/v1/record/{data_type}"]
pub async fn wrapped_record(
    State(app): State<Shared>,
    reader: Reader,
    _query: Checked<NoParams>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let bytes = announced(&app, &headers, body).await?;
    let record = unwrap_one(&bytes)?;
    store(&app, reader.person(), &headers, &bytes, vec![record]).await
}

/// Several wrapped records: a JSON array, or a line for each.
#[utoipa::path(post, path = "/ingest/v1/record/batch", tag = "ingest",
    params(Checked<NoParams>, ("idempotency-key" = Option<String>, Header)),
    request_body(description = "An array of wrapped records, or a line for each",
        content((Vec<WrappedRecord> = "application/json"), (String = "application/x-jsonl"))),
    responses((status = 201, description = "Stored", body = Uploaded), (status = 404), (status = 409),
        (status = 411), (status = 413), (status = 415), (status = 422)))]
#[deprecated = "records need no wrapping: POST /ingest/v1/record/{data_type} with JSON lines"]
pub async fn wrapped_batch(
    State(app): State<Shared>,
    reader: Reader,
    _query: Checked<NoParams>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let bytes = announced(&app, &headers, body).await?;
    let records = unwrap_batch(&bytes)?;
    store(&app, reader.person(), &headers, &bytes, records).await
}

/// The whole body, whose length was announced.
async fn announced(app: &App, headers: &HeaderMap, body: Body) -> Result<Bytes, ApiError> {
    content_length(app, headers)?;
    if BodyForm::from_media_type(text(headers, &CONTENT_TYPE)).is_none() {
        return Err(ApiError::unsupported_media_type(
            "expected application/json or application/x-jsonl",
        ));
    }
    whole(app.settings.body_limit, headers, body).await
}

async fn store(
    app: &App,
    person: PersonId,
    headers: &HeaderMap,
    bytes: &[u8],
    records: Vec<LegacyRecord>,
) -> Result<Response, ApiError> {
    let key = idempotency_key(headers)?;
    let key = key.map(|key| IdempotencyKey {
        key,
        fingerprint: Sha256::digest(bytes).into(),
    });
    let mut partitions: Vec<PartitionChanges> = Vec::new();
    let mut sources = Vec::new();
    let mut faults = Vec::new();
    // Neighbours of one type go together; the order between types does not matter, but within a type it does.
    for run in records.chunk_by(|one, next| one.data_type == next.data_type) {
        let Some(first) = run.first() else { continue };
        let changes = if first.data_type == TOMBSTONE_TYPE {
            delete(app, person, run, &mut faults).await?
        } else {
            vec![put(app, person, run, &mut sources, &mut faults).await?]
        };
        for change in changes {
            match partitions
                .iter_mut()
                .find(|partition| partition.data_type == change.data_type)
            {
                Some(partition) => partition.changes.extend(change.changes),
                None => partitions.push(change),
            }
        }
    }
    if !faults.is_empty() {
        return Err(ApiError::invalid_all(faults));
    }
    commit(
        app,
        Submission {
            person,
            key,
            work: Work::Small(partitions),
            sources,
        },
    )
    .await
}

async fn put(
    app: &App,
    person: PersonId,
    records: &[LegacyRecord],
    sources: &mut Vec<SeenSource>,
    faults: &mut Vec<Fault>,
) -> Result<PartitionChanges, ApiError> {
    let name = records
        .first()
        .map(|record| record.data_type.as_str())
        .unwrap_or_default();
    let Recordable { compiled, context } = recordable(app, person, name).await?;
    let data_type = std::sync::Arc::clone(compiled.data_type());
    let mut decoder = RecordDecoder::new(compiled, context).map_err(ApiError::internal)?;
    for record in records {
        if let Err(found) = decoder.push(record.place, &record.json_for(&data_type)) {
            faults.extend(found);
        }
    }
    let decoded = decoder.take().map_err(ApiError::internal)?;
    sources.extend(decoded.sources.into_iter().map(|source| SeenSource {
        person,
        key: source.key,
        name: source.name,
    }));
    let change = Change::Put {
        rows: decoded.rows,
        given: decoded.given.into(),
        undated: decoded.undated.into(),
    };
    Ok(PartitionChanges {
        data_type: data_type.id.clone(),
        layout: std::sync::Arc::clone(&data_type.layout),
        changes: vec![change],
    })
}

async fn delete(
    app: &App,
    person: PersonId,
    records: &[LegacyRecord],
    faults: &mut Vec<Fault>,
) -> Result<Vec<PartitionChanges>, ApiError> {
    let Recordable { compiled, context } = recordable(app, person, TOMBSTONE_TYPE).await?;
    let mut tombstones = Vec::new();
    for record in records {
        match decode_tombstone(
            &compiled,
            &context,
            record.place,
            &record.json_for(compiled.data_type()),
        ) {
            Ok(tombstone) => tombstones.push(tombstone),
            Err(found) => faults.extend(found),
        }
    }
    deleting(app, person, &tombstones).await
}
