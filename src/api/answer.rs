//! From a prepared question to a response: runs it, encodes it, and streams it while somebody reads.
//!
//! The head is known once there is a plan, and nothing more happens for who asks with HEAD. The first chunk
//! is waited for before the status line, so an early failure still gets a status. Later failures break the
//! connection, which no reader takes for the end of the answer.

use std::error::Error;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::ErrorKind;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant as Moment};

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::http::header::{ACCEPT, CONTENT_DISPOSITION, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::{DataFusionError, internal_err};
use futures::StreamExt as _;
use serde::Serialize;

use crate::api::admission::Ticket;
use crate::api::answer_form::AnswerForm;
use crate::api::app::App;
use crate::api::layers::heads::deferred;
use crate::api::problem::{ApiError, invalid};
use crate::api::recent_answers::{Question, RecentAnswer, RecentAnswers};
use crate::api::row_count::RowCount;
use crate::auth::tickets::Tickets;
use crate::catalog::CatalogError;
use crate::ingest::queue::CommitError;
use crate::model::faults::Fault;
use crate::model::meters::Meters;
use crate::output::{EncodeError, Packing, encode};
use crate::people::types::TypesError;
use crate::query::aggregate::{AggregateError, Excess};
use crate::query::attached::TooManyCells;
use crate::query::engine::{Engine, Late};
use crate::query::explain::Explain;
use crate::query::sql;
use crate::query::{Prepared, QueryError, ReadState, Scope};
use crate::store::StoreError;

/// Another release may answer the same question in other bytes.
const RELEASE: &str = env!("CARGO_PKG_VERSION");
const RETRY_AFTER: Duration = Duration::from_secs(2);
/// What a write is told to wait when too much waits already.
const FLUSHED_BY_THEN: Duration = Duration::from_secs(10);
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const PLAIN: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
/// What the author of a query is told who asks for more than all questions may hold together.
const TOO_MUCH_MEMORY: &str = "the query needs more memory than questions have here (ALMANAC_MEMORY_LIMIT); \
                               ask for fewer rows, columns or groups, or for a shorter time";
const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");

/// Why an answer broke off.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    #[error(transparent)]
    Plan(#[from] DataFusionError),
    #[error(transparent)]
    Encode(#[from] EncodeError),
    #[error("the deadline of the question passed")]
    Late,
}

/// Whether and how a question is answered anew.
pub struct Request<'a> {
    pub app: &'a App,
    pub headers: &'a HeaderMap,
    /// Which of the questions that are told apart by `question` it is.
    pub route: &'static str,
    /// What was asked and of whom, as far as it shapes the answer.
    pub question: &'a str,
    pub begun: Moment,
    pub ticket: Ticket,
}

/// The answer to a prepared question, or 304 when the caller has it already.
pub async fn answer(
    request: Request<'_>,
    prepared: Prepared,
    form: &AnswerForm,
) -> Result<Response, ApiError> {
    let sending = Sending {
        app: request.app,
        begun: request.begun,
        ticket: request.ticket,
    };
    if form.explain != Explain::No {
        let prepared = prepared.only(form.columns.as_ref())?.first(form.limit);
        return Ok(sending.explained(prepared, form.explain));
    }
    let packing = form.packing(request.headers);
    let tag = entity_tag(
        &prepared.states,
        &prepared.scope,
        request.question,
        packing,
        &request.app.tickets,
    );
    let tag_header = [(ETAG, header_value(&tag)?)];
    if is_known(request.headers, &tag) {
        return Ok((StatusCode::NOT_MODIFIED, tag_header).into_response());
    }
    let prepared = prepared.only(form.columns.as_ref())?.first(form.limit);
    let question = prepared.scope.is_own().then(|| Question {
        route: request.route,
        words: request.question.to_owned(),
        states: prepared.states.clone(),
        packing,
    });
    let found = question
        .as_ref()
        .and_then(|question| sending.app.recent.find(question));
    let varies = form.varies().then_some([(VARY, HeaderValue::from_name(ACCEPT))]);
    let head = (head(form)?, tag_header, varies, ());
    if let Some(found) = found {
        let again = sending.again(found)?;
        return Ok(deferred(head, async { Ok(again) }));
    }
    let run = sending.run(failed, question);
    Ok(deferred(head, run.body(prepared, packing)))
}

/// What every answer of rows says of itself.
fn head(form: &AnswerForm) -> Result<[(HeaderName, HeaderValue); 2], ApiError> {
    let name = format!("inline; filename=\"answer.{}\"", form.method.file_extension());
    Ok([
        (CONTENT_TYPE, HeaderValue::from_static(form.method.content_type())),
        (CONTENT_DISPOSITION, header_value(&name)?),
    ])
}

/// What is sent to whom, and since when they wait.
pub struct Sending<'a> {
    pub app: &'a App,
    pub begun: Moment,
    pub ticket: Ticket,
}

impl Sending<'_> {
    /// The answer to a query whose author decided what is computed: what cannot be is theirs to change. It
    /// has no tag, since it may depend on the moment.
    pub async fn answer_query(
        self,
        prepared: Prepared,
        form: &AnswerForm,
        packing: Packing,
    ) -> Result<Response, ApiError> {
        let head = head(form)?;
        let body = self.run(misasked, None).body(prepared, packing).await?;
        Ok((head, body).into_response())
    }

    /// How the rows would be found, or were, a line for each step.
    fn explained(self, prepared: Prepared, explain: Explain) -> Response {
        let run = self.run(failed, None);
        deferred([(CONTENT_TYPE, PLAIN)], async move {
            let lines = prepared.explained(&run.engine, explain).await;
            // Held until here: what is explained by being run takes a place like any other.
            drop(run.ticket);
            let lines = lines.map_err(|error| (run.failed)(&run.meters, Broken::Plan(error)))?;
            Ok(lines
                .iter()
                .fold(String::new(), |text, line| text + line + "\n")
                .into_response())
        })
    }

    /// What was answered to the same a moment ago.
    fn again(self, found: RecentAnswer) -> Result<Response, ApiError> {
        let timing = format!("plan;dur={:.3}, again", self.begun.elapsed().as_secs_f64() * 1e3);
        let timing = [(SERVER_TIMING, header_value(&timing)?)];
        let body = Body::from(found.body);
        Ok((Extension(RowCount::of(found.rows)), timing, body).into_response())
    }

    /// `question`: what to keep the answer for.
    fn run(self, failed: fn(&Meters, Broken) -> ApiError, question: Option<Question>) -> Run {
        Run {
            engine: Arc::clone(&self.app.engine),
            meters: self.app.metrics.meters.clone(),
            begun: self.begun,
            planned: self.begun.elapsed(),
            ticket: self.ticket,
            failed,
            keep: question.map(|question| (self.app.recent.clone(), question)),
        }
    }
}

/// A question whose head is known.
struct Run {
    engine: Arc<Engine>,
    meters: Meters,
    begun: Moment,
    /// How long it took to know the head.
    planned: Duration,
    ticket: Ticket,
    /// What the caller hears when there is no first row.
    failed: fn(&Meters, Broken) -> ApiError,
    /// Where the answer is kept, and for which question.
    keep: Option<(RecentAnswers, Question)>,
}

impl Run {
    /// The rows on their way, once there is a first part of them.
    async fn body(self, prepared: Prepared, packing: Packing) -> Result<Response, ApiError> {
        let rows = self
            .engine
            .start(prepared.plan)
            .map_err(|error| (self.failed)(&self.meters, Broken::Plan(error)))?;
        let count = RowCount::default();
        let counting = count.clone();
        // An operator that fails altogether must not look like the end of the rows.
        let counted = AssertUnwindSafe(rows).catch_unwind().map(move |batch| {
            let batch = batch.unwrap_or_else(|_| internal_err!("an operator failed"));
            counting.add(batch.as_ref().map_or(0, RecordBatch::num_rows));
            batch.map_err(Broken::from)
        });
        let spill_files = self.engine.spill_files().clone();
        let encoded = encode(packing, prepared.schema, spill_files, counted);
        let mut chunks = Box::pin(self.engine.drive_answer(encoded, || Err(Broken::Late)));
        let first: Option<Bytes> = chunks
            .next()
            .await
            .transpose()
            .map_err(|error| (self.failed)(&self.meters, error))?;
        let executed = self.begun.elapsed().saturating_sub(self.planned);

        let (ticket, corrupt) = (self.ticket, self.meters.store.corrupt);
        let rest = chunks.inspect(move |chunk| {
            let _held_until_the_last_chunk = &ticket;
            if let Err(error) = chunk {
                if corrupt_part(error).is_some() {
                    corrupt.inc();
                }
                tracing::error!(%error, "an answer broke off");
            }
        });
        let timing = format!(
            "plan;dur={:.3}, run;dur={:.3}",
            self.planned.as_secs_f64() * 1e3,
            executed.as_secs_f64() * 1e3
        );
        let timing = [(SERVER_TIMING, header_value(&timing)?)];
        let chunks = futures::stream::iter(first.map(Ok)).chain(rest);
        let body = match self.keep {
            Some((recent, question)) => Body::from_stream(recent.keeping(question, count.clone(), chunks)),
            None => Body::from_stream(chunks),
        };
        Ok((Extension(count), timing, body).into_response())
    }
}

/// What has to be computed before any of it can be said: only for who wants more than its head.
pub fn computed<F>(content_type: HeaderValue, making: F) -> Response
where
    F: Future<Output = Result<Response, ApiError>> + Send + 'static,
{
    deferred([(CONTENT_TYPE, content_type)], making)
}

/// A listing, or 304 when the caller has it already. Listings hold no sums of fractions, so equal ones are
/// equal to the byte.
pub fn listing<T: Serialize>(headers: &HeaderMap, value: &T) -> Result<Response, ApiError> {
    let body = serde_json::to_vec(value).map_err(ApiError::internal)?;
    let mut hasher = DefaultHasher::new();
    body.hash(&mut hasher);
    let tag = format!("W/\"{:016x}\"", hasher.finish());
    if is_known(headers, &tag) {
        return Ok((StatusCode::NOT_MODIFIED, [(ETAG, header_value(&tag)?)]).into_response());
    }
    let headers = [(CONTENT_TYPE, JSON), (ETAG, header_value(&tag)?)];
    Ok((headers, body).into_response())
}

/// Equal when the same was asked of the same release, by a reader who may see the same, and nothing that was
/// read has changed, neither the rows nor their columns. Weak: the bytes of two equal answers may differ in
/// the last digit of a sum. For others than the owner it is sealed, so that no state can be told from it by
/// trying.
#[must_use]
pub fn entity_tag(
    states: &[ReadState],
    scope: &Scope,
    question: &str,
    packing: Packing,
    tickets: &Tickets,
) -> String {
    let mut hasher = DefaultHasher::new();
    (RELEASE, states, scope, question, packing).hash(&mut hasher);
    let tag = hasher.finish();
    let tag = if scope.is_own() { tag } else { tickets.sealed(tag) };
    format!("W/\"{tag:016x}\"")
}

/// Whether the caller has what `tag` stands for already.
#[must_use]
pub fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    let bare = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    headers
        .get_all(IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|known| known.trim() == "*" || bare(known) == bare(tag))
}

pub fn header_value(text: &str) -> Result<HeaderValue, ApiError> {
    HeaderValue::from_str(text).map_err(ApiError::internal)
}

fn failed(meters: &Meters, error: Broken) -> ApiError {
    if let Some(what) = corrupt_part(&error) {
        return ApiError::damaged(what);
    }
    if let Some(Excess::Groups) = excess(&error) {
        return invalid(["query", "group"], Excess::Groups.to_string());
    }
    if let Some(error) = chain(&error).find_map(|error| error.downcast_ref::<TooManyCells>()) {
        return invalid(["query", "metrics"], error.to_string());
    }
    match error {
        Broken::Late => {
            meters.queries.deadlines_passed.inc();
            ApiError::deadline(error)
        }
        error if is_scarce(&error) => ApiError::unavailable(error, RETRY_AFTER),
        other => ApiError::internal(other),
    }
}

/// Why a query has no answer that could be planned. What it computes was its author's idea.
pub fn misasked(meters: &Meters, error: Broken) -> ApiError {
    if corrupt_part(&error).is_some() {
        return failed(meters, error);
    }
    let message = match &error {
        Broken::Encode(EncodeError::Spool(_)) => return failed(meters, error),
        Broken::Late => return failed(meters, Broken::Late),
        Broken::Plan(error) if chain(error).any(<dyn Error>::is::<Late>) => {
            return failed(meters, Broken::Late);
        }
        Broken::Plan(error) if chain(error).any(<dyn Error>::is::<StoreError>) => return unprepared(error),
        Broken::Plan(error) if is_scarce(error) => TOO_MUCH_MEMORY.to_owned(),
        Broken::Plan(error) => sql::readable(error),
        Broken::Encode(error) => match error {
            EncodeError::Unsupported { .. } | EncodeError::UnknownZone { .. } => error.to_string(),
            error => format!("{error}; choose another output or cast the columns"),
        },
    };
    invalid(["body", "query"], message)
}

/// What turned out to be too much, if that is what an error comes from.
fn excess(error: &Broken) -> Option<Excess> {
    chain(error).find_map(|error| error.downcast_ref().copied())
}

/// Why there is no plan: some of it is worked out from stored rows.
pub fn unprepared(error: &DataFusionError) -> ApiError {
    if let Some(what) = corrupt_part(error) {
        ApiError::damaged(what)
    } else if chain(error).any(<dyn Error>::is::<Late>) {
        ApiError::deadline(error)
    } else if is_scarce(error) {
        ApiError::unavailable(error, RETRY_AFTER)
    } else {
        ApiError::internal(error)
    }
}

/// An error and all that it comes from.
fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    let mut next = Some(error);
    std::iter::from_fn(move || {
        let current = next?;
        next = current.source();
        Some(current)
    })
}

/// The damage behind an error, if that is what it comes from, however deep.
fn corrupt_part(error: &(dyn Error + 'static)) -> Option<String> {
    let is_damage = |error: &&(dyn Error + 'static)| {
        matches!(error.downcast_ref(), Some(StoreError::Corrupt { .. }))
            || matches!(error.downcast_ref(), Some(CatalogError::Corrupt { .. }))
    };
    chain(error).find(is_damage).map(ToString::to_string)
}

fn is_scarce(error: &(dyn Error + 'static)) -> bool {
    chain(error).any(|error| {
        matches!(error.downcast_ref(), Some(DataFusionError::ResourcesExhausted(_)))
            || matches!(error.downcast_ref(), Some(StoreError::Unavailable { .. }))
            || error
                .downcast_ref::<std::io::Error>()
                .is_some_and(|error| error.kind() == ErrorKind::StorageFull)
    })
}

impl From<QueryError> for ApiError {
    fn from(error: QueryError) -> Self {
        match error {
            QueryError::Columns(error) => invalid(["query", "columns"], error.to_string()),
            QueryError::Filter(error) => invalid(["query", "filter"], error.to_string()),
            QueryError::Aggregate(error @ AggregateError::NoValue(_)) => {
                invalid(["path", "data_type"], error.to_string())
            }
            QueryError::Aggregate(error) => invalid(["query", "group"], error.to_string()),
            QueryError::Store(error) => error.into(),
            QueryError::Plan(error) => unprepared(&error),
        }
    }
}

impl From<TypesError> for ApiError {
    fn from(error: TypesError) -> Self {
        match error {
            TypesError::Unknown { .. } | TypesError::Ambiguous { .. } => Self::not_found(error.to_string()),
            TypesError::Overtaken => Self::conflict(error.to_string()),
            TypesError::LimitReached(_) => {
                Self::invalid_all(vec![Fault::new(["body"], "limit_reached", error.to_string())])
            }
            TypesError::Invalid(faults) => Self::invalid_all(faults),
            TypesError::Damaged { .. } => Self::damaged(error),
            TypesError::Catalog(error) => error.into(),
        }
    }
}

impl From<CommitError> for ApiError {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Busy => Self::too_many(error.to_string(), RETRY_AFTER),
            CommitError::KeyReused => invalid(["header", "idempotency-key"], error.to_string()),
            CommitError::Full | CommitError::Unavailable(_) | CommitError::Stopping => {
                Self::unavailable(error, RETRY_AFTER)
            }
            CommitError::Backlog => Self::overloaded(error, FLUSHED_BY_THEN),
            CommitError::Corrupt(_) => Self::damaged(error),
            CommitError::Unknown(_) => Self::outcome_unknown(error),
            CommitError::Broken(_) => Self::internal(error),
            CommitError::Erased => Self::unauthorized(),
        }
    }
}
