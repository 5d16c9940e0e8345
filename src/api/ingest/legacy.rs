//! The older wrapped forms: `POST /ingest/v1/record` and `/ingest/v1/record/batch`.

use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use sha2::{Digest as _, Sha256};

use crate::api::app::{App, Shared};
use crate::api::body::text;
use crate::api::docs::bodies::{RawBytes, WrappedRecord};
use crate::api::extract::Checked;
use crate::api::problem::ApiError;
use crate::api::query_params::NoParams;
use crate::api::whole_body::{Bounds, whole};
use crate::auth::reach::Beyond;
use crate::auth::tokens::Reader;
use crate::ingest::accept::{RecordedWork, refuse_too_many};
use crate::ingest::body::BodyForm;
use crate::ingest::legacy::{LegacyRecord, unwrap_batch, unwrap_one};
use crate::ingest::several::{DeletionList, NotTaken, Several, SourcesSeen};
use crate::ingest::tombstone::{are_tombstones, decode_tombstone};
use crate::ingest::upload::{IdempotencyKey, PartitionChanges, Work};
use crate::model::faults::{Fault, MOST_FAULTS, first_of};
use crate::people::types::TypesError;

use super::body_headers::{content_length, idempotency_key};
use super::commit_body::{Submission, Uploaded, commit};
use super::delete_targets::{Deleter, refuse_beyond_reach};
use super::recordable::{Recordable, recordable};
use super::room_for_rows::{FACTOR, NotDecoded, RoomForRows};
use super::run_blocking::run_blocking;

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
    store(&app, &reader, &headers, body, |_| Form::One).await
}

/// Several wrapped records: a JSON array, or one record per line.
#[utoipa::path(post, path = "/ingest/v1/record/batch", tag = "ingest",
    params(Checked<NoParams>, ("idempotency-key" = Option<String>, Header)),
    request_body(description = "An array of wrapped records, or a line for each",
        content((Vec<WrappedRecord> = "application/json"), (RawBytes = "application/x-jsonl"))),
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
    store(&app, &reader, &headers, body, Form::Several).await
}

/// Whether a body holds one record or several.
#[derive(Clone, Copy, Debug)]
enum Form {
    One,
    /// An array or lines, as the body's media type says.
    Several(BodyForm),
}

async fn store(
    app: &App,
    reader: &Reader,
    headers: &HeaderMap,
    body: Body,
    form: fn(BodyForm) -> Form,
) -> Result<Response, ApiError> {
    let person = reader.person();
    content_length(app, headers)?;
    let form = BodyForm::from_media_type(text(headers, &CONTENT_TYPE)).map(form);
    let form = form.ok_or_else(|| {
        ApiError::unsupported_media_type("expected application/json or application/x-jsonl")
    })?;
    let bounds = Bounds {
        limit: app.settings.body_limit,
        factor: FACTOR,
    };
    let mut memory = app.bodies.allowance(person);
    let bytes = whole(bounds, headers, body, app.engine.spill_files(), &mut memory).await?;
    let key = idempotency_key(headers)?;
    let key = key.map(|key| IdempotencyKey {
        key,
        fingerprint: Sha256::digest(&bytes).into(),
    });

    let unread = bytes.clone();
    let names = run_blocking(move || names_in(form, &unread)).await??;
    let (types, closed) = types_of(app, reader, names).await?;
    let mut room = RoomForRows::new(memory, bytes.len());
    let types = Arc::new(types);
    let decoded = loop {
        let (bytes, types) = (bytes.clone(), Arc::clone(&types));
        let decoding = run_blocking(move || {
            let decoded = decode(form, &bytes, &types, Several::new(person), &mut room);
            (decoded, room)
        });
        let (decoded, left) = decoding.await?;
        room = left;
        match decoded {
            Ok(decoded) => break decoded,
            Err(NotDecoded::Refused(error)) => return Err(error),
            Err(NotDecoded::Waits(wanted)) => room.memory.resize(wanted).await?,
        }
    };
    let mut memory = room.memory;
    let Decoded {
        changes,
        seen,
        unclear,
    } = decoded;
    refuse_beyond_reach(reader, &changes)?;
    refuse_too_many(&seen.files)?;
    let work = Work::Small(changes);
    memory.resize(work.bytes()).await?;
    commit(
        app,
        Submission {
            person,
            key,
            recorded: RecordedWork {
                work,
                sources: seen.sources.into_values().collect(),
                files: seen.files,
                memory,
            },
            closed: closed.or(unclear.map(ApiError::from)),
        },
    )
    .await
}

/// The types that the records of a body name, if every wrapper is valid.
fn names_in(form: Form, bytes: &[u8]) -> Result<BTreeSet<String>, Vec<Fault>> {
    let mut names = BTreeSet::new();
    let mut faults = Vec::new();
    unwrap(form, bytes, |record| {
        match record {
            Ok(record) => {
                names.insert(record.data_type);
            }
            Err(found) => faults.extend(found),
        }
        go_on(&faults)
    })?;
    if faults.is_empty() {
        return Ok(names);
    }
    Err(first_of(faults, "body"))
}

/// The types that a body names, as far as they are known.
struct Types {
    recordable: HashMap<String, Recordable>,
    deleter: Option<Deleter>,
}

/// The types called `names`, if the reader may record all of them, and why nothing new is recorded of one.
async fn types_of(
    app: &App,
    reader: &Reader,
    names: BTreeSet<String>,
) -> Result<(Types, Option<ApiError>), ApiError> {
    let mut types = Types {
        recordable: HashMap::with_capacity(names.len()),
        deleter: None,
    };
    let mut closed = None;
    for name in names {
        let mut recordable = recordable(app, reader.person(), &name).await?;
        let data_type = &recordable.compiled.data_type().id;
        if are_tombstones(data_type) {
            if types.deleter.is_none() {
                types.deleter = Some(Deleter::of_all(app, reader.person()).await?);
            }
        } else if !reader.reach().covers(data_type) {
            return Err(ApiError::forbidden(Beyond::Types.to_string()));
        }
        closed = recordable.closed.take().or(closed);
        types.recordable.insert(name, recordable);
    }
    Ok((types, closed))
}

/// What a body asks for.
struct Decoded {
    changes: Vec<PartitionChanges>,
    seen: SourcesSeen,
    /// Why none of it is done, if it does not say what is to be deleted.
    unclear: Option<TypesError>,
}

fn decode(
    form: Form,
    bytes: &[u8],
    types: &Types,
    mut several: Several,
    room: &mut RoomForRows,
) -> Result<Decoded, NotDecoded> {
    let mut faults = Vec::new();
    let mut broken = None;
    let mut crowded = None;
    let mut unclear = None;
    let mut lists: HashMap<String, DeletionList> = HashMap::new();
    unwrap(form, bytes, |record| {
        let taken = record.map_err(NotTaken::Invalid).and_then(|record| {
            let Some(Recordable {
                compiled, context, ..
            }) = types.recordable.get(&record.data_type)
            else {
                return Ok(());
            };
            let unwrapped = record.for_type(compiled.data_type()).map_err(NotTaken::Invalid)?;
            let placed = |faults| NotTaken::Invalid(unwrapped.placed(faults));
            let json = &unwrapped.json;
            let Some(deleter) = types
                .deleter
                .as_ref()
                .filter(|_| are_tombstones(&compiled.data_type().id))
            else {
                let put = several.put(compiled, context, record.place, json);
                return put.map_err(|error| match error {
                    NotTaken::Invalid(faults) => placed(faults),
                    broken @ NotTaken::Decode(_) => broken,
                });
            };
            let tombstone = decode_tombstone(compiled, context, record.place, json).map_err(placed)?;
            let list = lists.entry(tombstone.data_type).or_insert_with_key(|name| {
                several.list_for(deleter.targets_of(name).unwrap_or_else(|error| {
                    unclear.get_or_insert(error);
                    Vec::new()
                }))
            });
            several.delete(*list, record.place, tombstone.record)
        });
        match taken {
            Ok(()) => {
                if let Err(found) = room.hold(several.row_bytes()) {
                    crowded = Some(found);
                    return ControlFlow::Break(());
                }
            }
            Err(NotTaken::Invalid(found)) => faults.extend(found),
            Err(NotTaken::Decode(error)) => {
                broken = Some(error);
                return ControlFlow::Break(());
            }
        }
        go_on(&faults)
    })
    .map_err(ApiError::from)?;
    if let Some(error) = broken {
        return Err(ApiError::internal(error).into());
    }
    if !faults.is_empty() {
        return Err(ApiError::invalid_all(first_of(faults, "body")).into());
    }
    if let Some(crowded) = crowded {
        return Err(crowded);
    }
    let (changes, seen) = several.finish().map_err(ApiError::internal)?;
    Ok(Decoded {
        changes,
        seen,
        unclear,
    })
}

fn unwrap(
    form: Form,
    bytes: &[u8],
    mut each: impl FnMut(Result<LegacyRecord, Vec<Fault>>) -> ControlFlow<()>,
) -> Result<(), Vec<Fault>> {
    match form {
        Form::One => {
            let _ = each(unwrap_one(bytes));
            Ok(())
        }
        Form::Several(form) => unwrap_batch(form, bytes, each),
    }
}

fn go_on(faults: &[Fault]) -> ControlFlow<()> {
    if faults.len() < MOST_FAULTS {
        ControlFlow::Continue(())
    } else {
        ControlFlow::Break(())
    }
}
