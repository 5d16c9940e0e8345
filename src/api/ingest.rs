//! Recording: `/ingest/v1`.
//!
//! A body is read as it arrives, and answered after the commit that contains it. Either the whole body is
//! stored, or nothing.

pub mod legacy;
pub mod record;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::http::header::{CONTENT_LENGTH, HeaderMap};
use axum::http::{HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::api::app::App;
use crate::api::docs::common::also_answering;
use crate::api::endpoints::{Routes, endpoint};
use crate::api::problem::{ApiError, invalid};
use crate::catalog::records::{Effect, SeenSource};
use crate::ingest::accept::{AcceptError, FilesRead};
use crate::ingest::compile::{CompileError, CompiledType};
use crate::ingest::context::{DecodeContext, Leave};
use crate::ingest::errors::AssembleError;
use crate::ingest::intake::remove;
use crate::ingest::memory::{Allowance, NoRoom};
use crate::ingest::named_sources::TooManySources;
use crate::ingest::queue::{CommitError, Receipt};
use crate::ingest::submit::submit;
use crate::ingest::tombstone::Target;
use crate::ingest::upload::{IdempotencyKey, Upload, Work};
use crate::model::faults::Fault;
use crate::model::ids::{PersonId, UploadId};
use crate::model::registry::{DataType, Registry, TypeId};
use crate::model::release_guard::ReleaseGuard;
use crate::model::text::composed;
use crate::people::annotations::AnnotationRow;
use crate::people::quota::{Limited, QuotaError};
use crate::people::types::OwnType;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// The longest idempotency key.
const LONGEST_KEY: usize = 255;

/// How long to wait before sending a body again for which there was no memory.
const ROOM_LATER: Duration = Duration::from_secs(5);

/// Every route that records.
#[expect(deprecated, reason = "the interface keeps its older routes")]
pub fn routes() -> Routes {
    let recording = Routes::new()
        .with(endpoint!(record::record))
        .with(endpoint!(legacy::wrapped_record))
        .with(endpoint!(legacy::wrapped_batch));
    also_answering(recording, &[StatusCode::TOO_MANY_REQUESTS])
}

/// The length of the body according to its header. The header is required: a client that does not know the
/// length has not finished writing.
fn content_length(app: &App, headers: &HeaderMap) -> Result<u64, ApiError> {
    let length = headers
        .get(CONTENT_LENGTH)
        .ok_or_else(ApiError::length_required)?;
    let length = length.to_str().ok().and_then(|text| text.parse::<u64>().ok());
    let length =
        length.ok_or_else(|| ApiError::bad_request("the header `content-length` is not a number"))?;
    if length > app.settings.body_limit as u64 {
        Err(ApiError::too_large(app.settings.body_limit))
    } else {
        Ok(length)
    }
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let Some(key) = headers.get(IDEMPOTENCY_KEY) else {
        return Ok(None);
    };
    let wrong = || {
        invalid(
            ["header", "idempotency-key"],
            format!("expected 1 to {LONGEST_KEY} visible characters"),
        )
    };
    let key = key.to_str().map_err(|_| wrong())?.trim();
    if key.is_empty() || key.len() > LONGEST_KEY {
        Err(wrong())
    } else {
        Ok(Some(key.to_owned()))
    }
}

/// What records of one name are decoded with.
struct Recordable {
    compiled: Arc<CompiledType>,
    context: DecodeContext,
    /// Why nothing new is recorded. What was recorded before is still confirmed to whoever repeats it with
    /// its idempotency key.
    closed: Option<ApiError>,
}

/// The type of records named `name`, if `person` can record them. `MomentAnnotation/<uuid>` means the base,
/// with all records belonging to that annotation.
async fn recordable(app: &App, person: PersonId, name: &str) -> Result<Recordable, ApiError> {
    let name = app.types.meant(person, name).await?;
    let resolved = app.types.find(person, &name).await?;
    let (mut definition, mut closed) = (None, None);
    if let Some(id) = resolved.annotation {
        let annotation = app
            .annotations
            .of_type(person, resolved.data_type.id.as_str(), id)
            .await?;
        if !annotation.is_live() {
            closed = Some(ApiError::conflict(format!(
                "the annotation {id} is deleted; cancel its deletion to record again"
            )));
        }
        definition = Some(Arc::from(annotation.svc_source_id));
    }
    if !resolved.data_type.recordable {
        return Err(invalid(
            ["path", "data_type"],
            format!("{} cannot be recorded", resolved.data_type.id),
        ));
    }
    let compiled = app
        .compiled
        .get(&resolved.data_type)
        .map_err(|error| match error {
            CompileError::TooCostly { .. } => invalid(["path", "data_type"], error.to_string()),
            error => ApiError::internal(error),
        })?;
    let value_limits = app
        .annotations
        .value_limits(person, resolved.data_type.id.as_str())
        .await?;
    let context = DecodeContext {
        now: app.clock.now(),
        ids: Arc::clone(&app.ids),
        source_prefix: Arc::from(app.settings.source_prefix.as_str()),
        text_limit: app.settings.text_limit,
        definition,
        value_limits: Arc::new(value_limits),
        leave: Leave::default(),
    };
    Ok(Recordable {
        compiled,
        context,
        closed,
    })
}

/// Finds the records that tombstones name.
struct Deleter {
    registry: Arc<Registry>,
    own: Vec<OwnType>,
    /// The annotations, deleted ones too, as types of their own, each with the source that names it.
    annotations: HashMap<TypeId, Arc<str>>,
}

impl Deleter {
    async fn of(app: &App, person: PersonId) -> Result<Self, ApiError> {
        let annotations = app.annotations.all(person).await?;
        let named = |row: &AnnotationRow| (row.type_id(), Arc::from(row.svc_source_id.as_str()));
        Ok(Self {
            registry: Arc::clone(app.types.registry()),
            own: app.types.all_own(person).await?,
            annotations: annotations.iter().map(named).collect(),
        })
    }

    /// Where a tombstone for `name` deletes. A name that means nothing deletes nothing.
    fn targets_of(&self, name: &str) -> Vec<Target> {
        let Some(target) = self.target(name) else {
            return Vec::new();
        };
        let own = |is_meant: &dyn Fn(&TypeId) -> bool| {
            let meant = self.own.iter().filter(|own| is_meant(&own.data_type.id));
            meant.map(|own| all_of(&own.data_type)).collect::<Vec<_>>()
        };
        let base = self.registry.get(target.base()).map(|base| all_of(base));
        if target.definition().is_none() {
            let all = own(&|id| id.base() == target.base());
            base.into_iter().chain(all).collect()
        } else if let Some(source) = self.annotations.get(&target) {
            // Records of annotations are stored under the base, beside those of other annotations.
            let of_one = |base: Target| Target {
                definition: Some(Arc::clone(source)),
                ..base
            };
            base.into_iter().map(of_one).collect()
        } else {
            own(&|id| *id == target)
        }
    }

    /// The type that `name` means: by its id, or, if it is one of the person's own, by its name.
    fn target(&self, name: &str) -> Option<TypeId> {
        if let Some(data_type) = self.registry.get(name) {
            return Some(data_type.id.clone());
        }
        if let Some(id) = TypeId::parse(name).filter(|id| id.definition().is_some()) {
            return Some(id);
        }
        let called = composed(name);
        let is_called =
            |own: &&OwnType| !own.definition.deprecated && composed(&own.data_type.name) == called;
        let mut own = self.own.iter().filter(is_called);
        let first = own.next()?;
        own.next().is_none().then(|| first.data_type.id.clone())
    }
}

/// All records that are stored under a type.
fn all_of(data_type: &DataType) -> Target {
    Target {
        data_type: data_type.id.clone(),
        layout: Arc::clone(&data_type.layout),
        definition: None,
    }
}

/// Runs long work on a thread that serves no requests.
async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, ApiError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(ApiError::internal)
}

/// What is to be committed for one request.
struct Submission {
    person: PersonId,
    key: Option<IdempotencyKey>,
    work: Work,
    sources: Vec<SeenSource>,
    /// The files that the records were read from.
    files: FilesRead,
    memory: Allowance,
    closed: Option<ApiError>,
}

/// What was done, once it is durable. A record counts once, however often the body names it. The counts are
/// absent only in the answer to a repeated request that was first accepted by a version that did not count.
#[derive(Debug, Serialize, ToSchema)]
pub struct Uploaded {
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
async fn commit(app: &App, submission: Submission) -> Result<Response, ApiError> {
    let Submission {
        person,
        key,
        work,
        sources,
        files,
        memory,
        closed,
    } = submission;
    let held = match admit(app, person, key.as_ref(), &sources, closed).await {
        Ok(held) => held,
        Err(error) => {
            if let Work::Written(written) = &work {
                remove(&app.intake.objects, &written.pieces).await;
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
        tracing::warn!(%error, "it is not noted of a file that records were read from it");
    }
    Ok((StatusCode::CREATED, Json(Uploaded::from(receipt))).into_response())
}

impl From<AcceptError> for ApiError {
    fn from(error: AcceptError) -> Self {
        match error {
            AcceptError::TooLarge(limit) => Self::too_large(usize::try_from(limit).unwrap_or(usize::MAX)),
            AcceptError::Damaged(_) => invalid(["body"], error.to_string()),
            AcceptError::Invalid(faults) => Self::invalid_all(faults),
            AcceptError::TooManySources(TooManySources { limit: most }) => {
                let what = Limited::Sources;
                QuotaError::Reached { what, most }.into()
            }
            AcceptError::Decode(error) => Self::internal(error),
            AcceptError::NoRoom(error) => error.into(),
            AcceptError::Assemble(AssembleError::Store(error)) => error.into(),
            AcceptError::Assemble(error) => CommitError::from(error).into(),
        }
    }
}

impl From<QuotaError> for ApiError {
    fn from(error: QuotaError) -> Self {
        let loc: &[&str] = match &error {
            QuotaError::Reached { what, .. } => match what {
                Limited::Keys => &["header", "idempotency-key"],
                Limited::Sources => &["body"],
            },
            QuotaError::Catalog(_) => &[],
        };
        match error {
            QuotaError::Reached { .. } => {
                Fault::new(loc.iter().copied(), "limit_reached", error.to_string()).into()
            }
            QuotaError::Catalog(error) => error.into(),
        }
    }
}

impl From<NoRoom> for ApiError {
    fn from(error: NoRoom) -> Self {
        Self::too_many(error.to_string(), ROOM_LATER)
    }
}
