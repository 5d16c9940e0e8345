//! `POST /ingest/v1/record/{data_type}`: one record, or one record per line.

use std::collections::{BTreeSet, HashSet};

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use futures::StreamExt as _;
use sha2::{Digest as _, Sha256};

use crate::api::app::{App, AppState};
use crate::api::body::broke_off;
use crate::api::docs::bodies::RawBytes;
use crate::api::extract::{Checked, Path};
use crate::api::problem::ApiError;
use crate::api::query_params::{Dedupe, FromParams, Params};
use crate::api::run_blocking::run_blocking;
use crate::auth::reach::Beyond;
use crate::auth::tokens::Reader;
use crate::ingest::accept::{Acceptance, Accepted, FilesRead, RecordedWork};
use crate::ingest::body::BodyReader;
use crate::ingest::coerce::Epoch;
use crate::ingest::context::Leave;
use crate::ingest::deletions::deletions;
use crate::ingest::tombstone::{Tombstone, are_tombstones};
use crate::ingest::upload::{IdempotencyKey, Work};
use crate::model::excerpt::beginning;

use super::body_headers::{body_reader, content_length, idempotency_key};
use super::commit_body::{Submission, Uploaded, commit};
use super::delete_targets::{Deleter, refuse_beyond_reach};
use super::recordable::{Recordable, recordable};

/// How many tombstones are looked through among other requests.
const FEW_TOMBSTONES: usize = 1_000;

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
    params(("data_type" = String, Path), Checked<RecordQuery>, ("content-length" = u64, Header),
        ("idempotency-key" = Option<String>, Header)),
    request_body(description = "One record, as the schema of its type has it, or a line for each",
        content((Object = "application/json"), (RawBytes = "application/x-jsonl"))),
    responses((status = 201, description = "Stored", body = Uploaded), (status = 404), (status = 409),
        (status = 411), (status = 413), (status = 415), (status = 422)))]
pub async fn record(
    State(app): State<AppState>,
    reader: Reader,
    Path(data_type): Path<String>,
    Checked(query): Checked<RecordQuery>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    content_length(&app, &headers)?;
    let person = reader.person();
    let mut recordable = recordable(&app, person, &data_type).await?;
    let key = idempotency_key(&headers)?;
    refuse_unfit_request(&reader, &query, key.is_some(), &mut recordable)?;
    let Recordable {
        compiled,
        mut context,
        closed,
    } = recordable;
    context.leave = query.leave;
    let fingerprint = key.as_ref().map(|_| fingerprint_of(&data_type, query.leave));
    let reading = body_reader(&app, &headers)?.digested(fingerprint);

    let memory = app.bodies.allowance(person);
    let most = app.source_quota.most_named(person).await?;
    let acceptance = Acceptance::new(app.intake.clone(), person, compiled, context, memory, most)?;
    let (accepted, fingerprint) = Box::pin(receive(body, reading, acceptance)).await?;
    let (recorded, unclear) = work_of(&app, &reader, accepted).await?;
    let key = key.zip(fingerprint).map(|(key, fingerprint)| IdempotencyKey {
        key,
        fingerprint: fingerprint.finalize().into(),
    });
    commit(
        &app,
        Submission {
            person,
            key,
            recorded,
            closed: closed.or(unclear),
        },
    )
    .await
}

/// Refuses what nobody may record, what the reader may not, and a version that the type does not have. With a
/// key the request may repeat one from before nothing new was recorded: that is known only at the commit.
fn refuse_unfit_request(
    reader: &Reader,
    query: &RecordQuery,
    has_key: bool,
    recordable: &mut Recordable,
) -> Result<(), ApiError> {
    if let Some(refusal) = recordable.closed.take_if(|_| !has_key) {
        return Err(refusal);
    }
    let found = recordable.compiled.data_type();
    if !are_tombstones(&found.id) && !reader.reach().covers(&found.id) {
        return Err(ApiError::forbidden(Beyond::Types.to_string()));
    }
    if let Some(version) = &query.api_version {
        let known = found.api_version.name();
        if known != version {
            return Err(ApiError::not_found(format!(
                "{} has the version {known}, not {:?}",
                found.id,
                beginning(version)
            )));
        }
    }
    Ok(())
}

/// The beginning of the fingerprint under which an idempotency key is remembered; the content follows. It is
/// that of the content, whatever it is compressed with: two programs, or one program twice, compress the same
/// bytes differently.
fn fingerprint_of(data_type: &str, leave: Leave) -> Sha256 {
    let parameters = leave.told_apart_by().into_iter().map(str::as_bytes);
    parameters.fold(
        Sha256::new_with_prefix(data_type.as_bytes()),
        Sha256::chain_update,
    )
}

/// Takes in the whole body. What was already written of one that is refused is removed.
async fn receive(
    body: Body,
    mut reading: BodyReader,
    mut acceptance: Acceptance,
) -> Result<(Accepted, Option<Sha256>), ApiError> {
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
    Ok(acceptance.finish(reading).await?)
}

/// Tombstones with the types that they name.
async fn with_types(tombstones: Vec<Tombstone>) -> Result<(Vec<Tombstone>, BTreeSet<String>), ApiError> {
    let gather = |tombstones: Vec<Tombstone>| {
        let names: HashSet<&str> = tombstones.iter().map(|one| one.data_type.as_str()).collect();
        let names = names.into_iter().map(str::to_owned).collect();
        (tombstones, names)
    };
    if tombstones.len() <= FEW_TOMBSTONES {
        return Ok(gather(tombstones));
    }
    run_blocking(move || gather(tombstones)).await
}

/// The changes that an accepted body stands for, and why none of them is made if it does not say what is to
/// be deleted.
async fn work_of(
    app: &App,
    reader: &Reader,
    accepted: Accepted,
) -> Result<(RecordedWork, Option<ApiError>), ApiError> {
    match accepted {
        Accepted::Rows(recorded) => Ok((recorded, None)),
        Accepted::Deletions(tombstones, memory) => {
            let (tombstones, names) = with_types(tombstones).await?;
            let deleter = Deleter::of(app, reader.person(), &names).await?;
            let changes = move || {
                let mut unclear = None;
                let targets_of = |name: &str| deleter.targets_or_note(name, &mut unclear);
                (deletions(&tombstones, targets_of), unclear)
            };
            let (changes, unclear) = run_blocking(changes).await?;
            refuse_beyond_reach(reader, &changes)?;
            let recorded = RecordedWork {
                work: Work::Small(changes),
                sources: Vec::new(),
                files: FilesRead::new(),
                memory,
            };
            Ok((recorded, unclear.map(ApiError::from)))
        }
    }
}
