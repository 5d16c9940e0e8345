//! The older wrapped forms: `POST /ingest/v1/record` and `/ingest/v1/record/batch`.

use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use sha2::{Digest as _, Sha256};

use crate::api::app::{App, AppState};
use crate::api::body::text;
use crate::api::docs::bodies::{RawBytes, WrappedRecord};
use crate::api::extract::Checked;
use crate::api::problem::ApiError;
use crate::api::query_params::NoParams;
use crate::api::run_blocking::run_blocking;
use crate::api::whole_body::{Bounds, whole};
use crate::auth::reach::Beyond;
use crate::auth::tokens::Reader;
use crate::ingest::accept::{RecordedWork, refuse_too_many};
use crate::ingest::body::BodyForm;
use crate::ingest::decode::DecodeError;
use crate::ingest::legacy::{LegacyRecord, unwrap_batch, unwrap_one};
use crate::ingest::memory::Allowance;
use crate::ingest::several::{DeletionList, NotTaken, Several, SourcesSeen};
use crate::ingest::tombstone::{are_tombstones, decode_tombstone};
use crate::ingest::upload::{IdempotencyKey, PartitionChanges, Work};
use crate::model::faults::{Fault, MOST_FAULTS, first_of};
use crate::model::ids::PersonId;
use crate::people::types::TypesError;

use super::body_headers::{content_length, idempotency_key};
use super::commit_body::{Submission, Uploaded, commit};
use super::delete_targets::{Deleter, refuse_beyond_reach};
use super::recordable::{Recordable, recordable};
use super::room_for_rows::{FACTOR, NotDecoded, RoomForRows};

/// One wrapped record.
#[utoipa::path(post, path = "/ingest/v1/record", tag = "ingest",
    params(Checked<NoParams>, ("idempotency-key" = Option<String>, Header)), request_body = WrappedRecord,
    responses((status = 201, description = "Stored", body = Uploaded), (status = 404), (status = 409),
        (status = 411), (status = 413), (status = 415), (status = 422)))]
#[deprecated = "records need no wrapping: POST /ingest/v1/record/{data_type}"]
pub async fn wrapped_record(
    State(app): State<AppState>,
    reader: Reader,
    _query: Checked<NoParams>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    body_form(&app, &headers)?;
    store(&app, &reader, &headers, body, Form::One).await
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
    State(app): State<AppState>,
    reader: Reader,
    _query: Checked<NoParams>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let form = Form::Several(body_form(&app, &headers)?);
    store(&app, &reader, &headers, body, form).await
}

/// Whether a body holds one record or several.
#[derive(Clone, Copy, Debug)]
enum Form {
    One,
    /// An array or lines, as the body's media type says.
    Several(BodyForm),
}

/// The form of a body according to its headers, if it can be accepted.
fn body_form(app: &App, headers: &HeaderMap) -> Result<BodyForm, ApiError> {
    content_length(app, headers)?;
    BodyForm::from_media_type(text(headers, &CONTENT_TYPE))
        .ok_or_else(|| ApiError::unsupported_media_type("expected application/json or application/x-jsonl"))
}

async fn store(
    app: &App,
    reader: &Reader,
    headers: &HeaderMap,
    body: Body,
    form: Form,
) -> Result<Response, ApiError> {
    let person = reader.person();
    let key = idempotency_key(headers)?;
    let bounds = Bounds {
        limit: app.settings.body_limit,
        factor: FACTOR,
    };
    let mut memory = app.bodies.allowance(person);
    let bytes = whole(bounds, headers, body, app.engine.spill_files(), &mut memory).await?;
    let key = key.map(|key| IdempotencyKey {
        key,
        fingerprint: Sha256::digest(&bytes).into(),
    });

    let unread = bytes.clone();
    let names = run_blocking(move || names_in(form, &unread)).await??;
    let (types, closed) = types_of(app, reader, names).await?;
    let (decoded, mut memory) = decode_in_room(form, &bytes, types, person, memory).await?;
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

/// Decodes a body, anew whenever its rows had to wait for memory, and returns that memory too.
async fn decode_in_room(
    form: Form,
    bytes: &Bytes,
    types: Types,
    person: PersonId,
    memory: Allowance,
) -> Result<(Decoded, Allowance), ApiError> {
    let mut room = RoomForRows::new(memory, bytes.len());
    let types = Arc::new(types);
    loop {
        let (bytes, types) = (bytes.clone(), Arc::clone(&types));
        let decoding = run_blocking(move || {
            let decoded = decode(form, &bytes, &types, person, &mut room);
            (decoded, room)
        });
        let (decoded, left) = decoding.await?;
        room = left;
        match decoded {
            Ok(decoded) => return Ok((decoded, room.memory)),
            Err(NotDecoded::Refused(error)) => return Err(error),
            Err(NotDecoded::Waits(wanted)) => room.wait_for(wanted).await?,
        }
    }
}

/// Why the rest of a body is not looked at.
enum Stopped {
    /// There are faults enough.
    Enough,
    Broken(DecodeError),
    /// There is no memory for its rows.
    Crowded(NotDecoded),
}

fn decode(
    form: Form,
    bytes: &[u8],
    types: &Types,
    person: PersonId,
    room: &mut RoomForRows,
) -> Result<Decoded, NotDecoded> {
    let mut decoding = Decoding {
        types,
        several: Several::new(person),
        lists: HashMap::new(),
        unclear: None,
    };
    let mut faults = Vec::new();
    let stopped = unwrap(form, bytes, |record| {
        let record = record.map_err(NotTaken::Invalid);
        match record.and_then(|record| decoding.take(&record)) {
            Ok(()) => match room.hold(decoding.several.row_bytes()) {
                Ok(()) => ControlFlow::Continue(()),
                Err(found) => ControlFlow::Break(Stopped::Crowded(found)),
            },
            Err(NotTaken::Invalid(found)) => {
                faults.extend(found);
                go_on(&faults).map_break(|()| Stopped::Enough)
            }
            Err(NotTaken::Decode(error)) => ControlFlow::Break(Stopped::Broken(error)),
        }
    });
    match stopped.map_err(ApiError::from)? {
        Some(Stopped::Broken(error)) => Err(ApiError::internal(error).into()),
        // Whoever has faults to mend is not asked to send the body in parts first.
        _ if !faults.is_empty() => Err(ApiError::invalid_all(first_of(faults, "body")).into()),
        Some(Stopped::Crowded(found)) => Err(found),
        Some(Stopped::Enough) | None => decoding.finish(),
    }
}

/// The records of a body, while they are taken in.
struct Decoding<'t> {
    types: &'t Types,
    several: Several,
    /// The lists of deletions, by the types that tombstones name.
    lists: HashMap<String, DeletionList>,
    unclear: Option<TypesError>,
}

impl Decoding<'_> {
    fn take(&mut self, record: &LegacyRecord) -> Result<(), NotTaken> {
        let Some(Recordable {
            compiled, context, ..
        }) = self.types.recordable.get(&record.data_type)
        else {
            return Ok(());
        };
        let data_type = compiled.data_type();
        let unwrapped = record.for_type(data_type).map_err(NotTaken::Invalid)?;
        let placed = |faults| NotTaken::Invalid(unwrapped.placed(faults));
        let json = &unwrapped.json;
        let deleter = self.types.deleter.as_ref();
        let Some(deleter) = deleter.filter(|_| are_tombstones(&data_type.id)) else {
            let put = self.several.put(compiled, context, record.place, json);
            return put.map_err(|error| match error {
                NotTaken::Invalid(faults) => placed(faults),
                broken @ NotTaken::Decode(_) => broken,
            });
        };
        let tombstone = decode_tombstone(compiled, context, record.place, json).map_err(placed)?;
        let list = self.lists.entry(tombstone.data_type).or_insert_with_key(|name| {
            let targets = deleter.targets_or_note(name, &mut self.unclear);
            self.several.list_for(targets)
        });
        self.several.delete(*list, record.place, tombstone.record)
    }

    fn finish(self) -> Result<Decoded, NotDecoded> {
        let (changes, seen) = self.several.finish().map_err(ApiError::internal)?;
        Ok(Decoded {
            changes,
            seen,
            unclear: self.unclear,
        })
    }
}

/// Hands the records of a body to `each` until it breaks off, and returns why it did.
fn unwrap<Why>(
    form: Form,
    bytes: &[u8],
    mut each: impl FnMut(Result<LegacyRecord, Vec<Fault>>) -> ControlFlow<Why>,
) -> Result<Option<Why>, Vec<Fault>> {
    let mut why = None;
    let mut noted = |record| each(record).map_break(|found| why = Some(found));
    match form {
        Form::One => {
            let _ = noted(unwrap_one(bytes));
        }
        Form::Several(form) => unwrap_batch(form, bytes, noted)?,
    }
    Ok(why)
}

fn go_on(faults: &[Fault]) -> ControlFlow<()> {
    if faults.len() < MOST_FAULTS {
        ControlFlow::Continue(())
    } else {
        ControlFlow::Break(())
    }
}
