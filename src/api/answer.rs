//! From a prepared question to a response: runs it, encodes it, and streams it while the client reads.
//!
//! The head is known once there is a plan, and a HEAD request runs nothing more. The first chunk is awaited
//! before the status line is sent, so an early failure still gets a status. Later failures break the
//! connection, which no client mistakes for the end of the answer.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant as Moment};

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::http::header::{ACCEPT, CONTENT_DISPOSITION, CONTENT_TYPE, ETAG, VARY};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::internal_err;
use futures::{Stream, StreamExt as _};
use tracing::Span;

use crate::api::admission::AdmissionSlot;
use crate::api::answer_form::AnswerForm;
use crate::api::answer_headers::{again, answer_disposition, header_value, is_known, not_modified};
use crate::api::app::App;
use crate::api::entity_tags::weak_tag;
use crate::api::failures::{Broken, count_break, failed, for_the_log, query_error};
use crate::api::header_names::SERVER_TIMING;
use crate::api::layers::heads::deferred;
use crate::api::problem::ApiError;
use crate::api::recent_answers::{Question, RecentAnswers};
use crate::api::repeats::Followed;
use crate::api::row_count::RowCount;
use crate::api::traces::Timing;
use crate::auth::tickets::Tickets;
use crate::model::meters::Meters;
use crate::output::{Packing, encode};
use crate::query::engine::Engine;
use crate::query::explain::Explain;
use crate::query::{Prepared, ReadState, Scope};

/// Another release may answer the same question in other bytes.
const RELEASE: &str = env!("CARGO_PKG_VERSION");
const PLAIN: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// A request for the answer to a question.
pub struct Request<'a> {
    pub app: &'a App,
    pub headers: &'a HeaderMap,
    /// What was asked, where, and about whom, as far as it shapes the answer.
    pub question: &'a str,
    pub begun: Moment,
    pub slot: AdmissionSlot,
    /// Whether the answer depends on nothing but what was asked and what is read.
    pub follows: bool,
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
        slot: request.slot,
    };
    let prepared = prepared.only(form.columns.as_ref())?.first(form.limit);
    if form.explain != Explain::No {
        return Ok(sending.explained(prepared, form.explain));
    }
    let packing = form.packing(request.headers);
    let tag = entity_tag(
        &prepared.states,
        &prepared.scope,
        request.question,
        Some(packing),
        &request.app.tickets,
    );
    let tag_header = [(ETAG, header_value(&tag)?)];
    let varies = form.varies().then_some([(VARY, HeaderValue::from_name(ACCEPT))]);
    if is_known(request.headers, &tag) {
        let content_type = HeaderValue::from_static(form.method.content_type());
        return Ok((varies, not_modified(&tag, content_type)?).into_response());
    }
    let question = prepared.scope.is_own().then(|| {
        Arc::new(Question {
            words: request.question.to_owned(),
            states: prepared.states.clone(),
            packing,
        })
    });
    let found = question
        .as_ref()
        .and_then(|question| sending.app.recent.find(question));
    let followed = question.clone().filter(|_| request.follows);
    let followed = followed.map(|question| Extension(Followed(question)));
    let head = (followed, head(form)?, tag_header, varies, ());
    if let Some(found) = found {
        let again = again(found, sending.begun)?;
        return Ok(deferred(head, async { Ok(again) }));
    }
    let run = sending.run(failed, question);
    Ok(deferred(head, run.body(prepared, packing)))
}

/// The headers of every answer of rows.
fn head(form: &AnswerForm) -> Result<[(HeaderName, HeaderValue); 2], ApiError> {
    Ok([
        (CONTENT_TYPE, HeaderValue::from_static(form.method.content_type())),
        (CONTENT_DISPOSITION, answer_disposition(form.method)?),
    ])
}

/// What an answer needs to be sent, and since when the client waits.
pub struct Sending<'a> {
    pub app: &'a App,
    pub begun: Moment,
    pub slot: AdmissionSlot,
}

impl Sending<'_> {
    /// The answer to a query whose author decides what is computed, so what cannot be computed is theirs to
    /// correct. It has no tag, since it may depend on the current time.
    pub async fn answer_query(
        self,
        prepared: Prepared,
        form: &AnswerForm,
        packing: Packing,
    ) -> Result<Response, ApiError> {
        let head = head(form)?;
        let body = self.run(query_error, None).body(prepared, packing).await?;
        Ok((head, body).into_response())
    }

    /// `head`, followed by the chunks of a listing.
    pub fn in_parts<S>(self, head: impl IntoResponse, chunks: S) -> Response
    where
        S: Stream<Item = Result<Bytes, Broken>> + Send + 'static,
    {
        let run = self.run(failed, None);
        deferred(head, async move { run.sent(chunks, &RowCount::default()).await })
    }

    /// How the rows would be found, or were found, one line for each step.
    fn explained(self, prepared: Prepared, explain: Explain) -> Response {
        let run = self.run(failed, None);
        deferred([(CONTENT_TYPE, PLAIN)], async move {
            let lines = prepared.explained(&run.engine, explain).await;
            // Held until here: an `explain` that runs the question takes a place like any other.
            drop(run.slot);
            let lines = lines.map_err(|error| (run.failed)(&Broken::Plan(error)))?;
            Ok(lines
                .iter()
                .fold(String::new(), |text, line| text + line + "\n")
                .into_response())
        })
    }

    /// `question`: what the answer is kept under; `None` if it is not kept.
    fn run(self, failed: fn(&Broken) -> ApiError, question: Option<Arc<Question>>) -> Run {
        Run {
            engine: Arc::clone(&self.app.engine),
            meters: self.app.metrics.meters.clone(),
            begun: self.begun,
            planned: self.begun.elapsed(),
            slot: self.slot,
            failed,
            keep: question.map(|question| (self.app.recent.clone(), question)),
            is_traced: self.app.traces.is_some(),
        }
    }
}

/// A question whose head is known.
struct Run {
    engine: Arc<Engine>,
    meters: Meters,
    begun: Moment,
    /// How long planning took, until the head was known.
    planned: Duration,
    slot: AdmissionSlot,
    /// Makes the error that the caller gets when there is no first row.
    failed: fn(&Broken) -> ApiError,
    /// Where the answer is kept, and under which question.
    keep: Option<(RecentAnswers, Arc<Question>)>,
    /// Whether traces are sent, so that the timing is needed.
    is_traced: bool,
}

impl Run {
    /// The streamed rows, once the first part of them is there.
    async fn body(self, prepared: Prepared, packing: Packing) -> Result<Response, ApiError> {
        let rows = self.engine.start(prepared.plan);
        let count = RowCount::default();
        let counting = count.clone();
        // An operator that panics must not look like the end of the rows.
        let counted = AssertUnwindSafe(rows).catch_unwind().map(move |batch| {
            let batch = batch.unwrap_or_else(|_| internal_err!("an operator failed"));
            counting.add(batch.as_ref().map_or(0, RecordBatch::num_rows));
            batch.map_err(Broken::from)
        });
        let spill_files = self.engine.spill_files().clone();
        let encoded = encode(packing, prepared.schema, spill_files, counted);
        let sent = self.sent(encoded, &count).await?;
        Ok((Extension(count), sent).into_response())
    }

    /// The streamed chunks of an answer, once the first of them is there. `count`: of the rows in them.
    async fn sent<S>(self, chunks: S, count: &RowCount) -> Result<Response, ApiError>
    where
        S: Stream<Item = Result<Bytes, Broken>> + Send + 'static,
    {
        let mut chunks = Box::pin(self.engine.drive_answer(chunks, || Err(Broken::Late)));
        let first: Option<Bytes> = chunks
            .next()
            .await
            .transpose()
            .map_err(|error| (self.failed)(&error))?;
        let executed = self.begun.elapsed().saturating_sub(self.planned);

        let (slot, meters) = (self.slot, self.meters);
        // The body is read when the request has left its span, which names it in the log.
        let span = Span::current();
        let rest = chunks.inspect(move |chunk| {
            let _held_until_the_last_chunk = &slot;
            if let Err(error) = chunk {
                count_break(&meters, error);
                span.in_scope(|| tracing::error!(error = %for_the_log(error), "an answer broke off"));
            }
        });
        let timing = Timing {
            begun: self.begun,
            planned: self.planned,
            ran: executed,
        };
        let shown = [(SERVER_TIMING, header_value(&timing.to_string())?)];
        let chunks = futures::stream::iter(first.map(Ok)).chain(rest);
        let body = match self.keep {
            Some((recent, question)) => Body::from_stream(recent.keeping(question, count.clone(), chunks)),
            None => Body::from_stream(chunks),
        };
        let timing = self.is_traced.then_some(Extension(timing));
        Ok((timing, shown, body).into_response())
    }
}

/// Equal when the same was asked of the same release, by a reader who may see the same, and nothing that was
/// read has changed, neither the rows nor their columns. `packing`: where more than the question decides how
/// the answer is packed. Weak: the bytes of two equal answers may differ in the last digit of a sum. For
/// readers other than the owner it is sealed, so that they cannot find out a state by trying.
#[must_use]
pub fn entity_tag(
    states: &[ReadState],
    scope: &Scope,
    question: &str,
    packing: Option<Packing>,
    tickets: &Tickets,
) -> String {
    let mut hasher = DefaultHasher::new();
    (RELEASE, states, scope, question, packing).hash(&mut hasher);
    let tag = hasher.finish();
    let tag = if scope.is_own() { tag } else { tickets.sealed(tag) };
    weak_tag(tag)
}
