//! The older wrapped forms: `POST /ingest/v1/record` and `/ingest/v1/record/batch`.

use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use sha2::{Digest as _, Sha256};
use tokio::runtime::Handle;

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
use crate::ingest::memory::{Allowance, LEAST_MEMORY};
use crate::ingest::several::{DeletionList, NotTaken, Several, SourcesSeen};
use crate::ingest::tombstone::{are_tombstones, decode_tombstone};
use crate::ingest::upload::{IdempotencyKey, PartitionChanges, Work};
use crate::model::faults::{Fault, MOST_FAULTS, first_of};
use crate::people::types::TypesError;

use super::body_headers::{content_length, idempotency_key};
use super::commit_body::{Submission, Uploaded, commit};
use super::delete_targets::{Deleter, refuse_beyond_reach};
use super::recordable::{Recordable, recordable};
use super::run_blocking::run_blocking;

/// A body takes this many times its size: as received, and unwrapped;
const BESIDES_ROWS: usize = 2;
/// and as rows, most of which take less than their text.
const FACTOR: usize = BESIDES_ROWS + 1;
/// Rows of a type with many columns take far more. So many times the size of their body may be more than the
/// share that one person has of the memory.
const MOST_OF_ROWS: usize = 8;

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
    let decoded = run_blocking(move || {
        let decoded = decode(form, &bytes, &types, Several::new(person), &mut room);
        decoded.map(|decoded| (decoded, room.memory))
    });
    let (decoded, mut memory) = decoded.await??;
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

/// The memory of a body while its rows are made.
struct RoomForRows {
    memory: Allowance,
    besides_rows: usize,
    most: usize,
}

impl RoomForRows {
    /// For a body of `length` bytes, for which `memory` was taken.
    fn new(memory: Allowance, length: usize) -> Self {
        Self {
            besides_rows: length.saturating_mul(BESIDES_ROWS),
            most: memory.share().max(length.saturating_mul(MOST_OF_ROWS)),
            memory,
        }
    }

    /// Ensures that there is memory for `rows` bytes of rows. It may have to wait for that, so it is to be
    /// called on a thread that serves no requests.
    fn hold(&mut self, rows: usize) -> Result<(), ApiError> {
        let wanted = self.besides_rows.saturating_add(rows);
        if wanted <= self.memory.bytes() {
            return Ok(());
        }
        if rows > self.most {
            return Err(ApiError::content_too_large(format!(
                "the records of the body take more than {} bytes as rows; send it in parts",
                self.most
            )));
        }
        let wanted = wanted.next_multiple_of(LEAST_MEMORY);
        let held = Handle::current().block_on(self.memory.resize(wanted));
        held.map_err(ApiError::from)
    }
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
) -> Result<Decoded, ApiError> {
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
                if let Err(error) = room.hold(several.row_bytes()) {
                    crowded = Some(error);
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
    })?;
    if let Some(error) = broken {
        return Err(ApiError::internal(error));
    }
    if !faults.is_empty() {
        return Err(ApiError::invalid_all(first_of(faults, "body")));
    }
    if let Some(error) = crowded {
        return Err(error);
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::http::StatusCode;
    use axum::response::IntoResponse as _;

    use super::*;
    use crate::ingest::memory::BodyMemory;
    use crate::model::ids::PersonId;

    const MIB: usize = 1 << 20;

    async fn held(mut memory: Allowance, length: usize, rows: Vec<usize>) -> (Vec<StatusCode>, usize) {
        memory.resize(length * FACTOR).await.unwrap();
        let mut room = RoomForRows::new(memory, length);
        let hold = move || {
            let told = rows.into_iter().map(|rows| match room.hold(rows) {
                Ok(()) => StatusCode::CREATED,
                Err(error) => error.into_response().status(),
            });
            (told.collect(), room.memory.bytes())
        };
        tokio::task::spawn_blocking(hold).await.unwrap()
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn rows_that_take_more_than_their_body_are_counted_while_they_are_made() {
        let bodies = BodyMemory::new(8 * MIB, Duration::from_millis(20));
        let [mine, others] = [1, 2].map(|number| bodies.allowance(PersonId(uuid::Uuid::from_u128(number))));
        let rows = vec![1000, 2 * MIB, 4 * MIB, 5 * MIB];
        let (told, taken) = held(mine, 1000, rows).await;
        let taken_in = StatusCode::CREATED;
        assert_eq!(
            told,
            [taken_in, taken_in, taken_in, StatusCode::PAYLOAD_TOO_LARGE]
        );
        assert!((4 * MIB..5 * MIB).contains(&taken), "{taken}");
        // A large body of small records is no reason to refuse it.
        let (told, _) = held(others, MIB, vec![MIB, 5 * MIB, 8 * MIB]).await;
        assert_eq!(told, [taken_in; 3]);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn rows_for_which_others_leave_no_memory_are_told_so() {
        let bodies = BodyMemory::new(8 * MIB, Duration::from_millis(20));
        let [mut first, mine] =
            [1, 2].map(|number| bodies.allowance(PersonId(uuid::Uuid::from_u128(number))));
        first.resize(7 * MIB).await.unwrap();
        let (told, _) = held(mine, 1000, vec![100_000, 3 * MIB]).await;
        assert_eq!(told, [StatusCode::CREATED, StatusCode::TOO_MANY_REQUESTS]);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn rows_of_a_small_body_do_not_wait_behind_large_ones() {
        let bodies = BodyMemory::new(8 * MIB, Duration::from_millis(20));
        let [mut large, mine] =
            [1, 2].map(|number| bodies.allowance(PersonId(uuid::Uuid::from_u128(number))));
        large.resize(8 * MIB).await.unwrap();
        let (told, taken) = held(mine, 200, vec![2_000, 20_000]).await;
        assert_eq!(told, [StatusCode::CREATED; 2]);
        assert!((20_400..30_000).contains(&taken), "{taken}");
    }
}
