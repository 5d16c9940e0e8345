//! Listings, and answers about one thing, in every form: the interface's own JSON by default, and rows of
//! declared columns in any form that the caller names.

mod in_parts;

use axum::body::Body;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, ETAG};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use futures::{StreamExt as _, TryStreamExt as _};
use serde::Serialize;
use serde_json::Value;

use crate::api::admission::AdmissionSlot;
use crate::api::answer_headers::{answer_disposition, content_tag, header_value, is_known, not_modified};
use crate::api::app::{App, AppState};
use crate::api::failures::Broken;
use crate::api::layers::heads::deferred;
use crate::api::problem::{ApiError, JSON};
use crate::api::query_params::{FromParams, Params};
use crate::model::ids::PersonId;
use crate::model::nearest::nearest;
use crate::output::{BufferCompression, ListedColumn, OutputMethod, Packing, encode, listed};
use crate::query::QueryError;
use crate::query::columns::{ColumnError, Columns};

pub use in_parts::listed_in_parts;

/// The form of a listing.
#[derive(Clone, Debug, Default)]
pub struct ListingForm {
    /// `None`: the interface's own JSON.
    method: Option<OutputMethod>,
    /// The columns that are wanted, in this order; all if none are named.
    columns: Vec<String>,
    buffers: BufferCompression,
}

impl ListingForm {
    pub fn read(params: &mut Params<'_>) -> Option<Self> {
        // Faults were noted, and then no answer is made from the rest.
        let method: Option<OutputMethod> = params.choice("output");
        let buffers = params.choice("compression");
        let columns = params.list("columns");
        if !columns.is_empty()
            && let Err(error) = Columns::new(columns.clone())
        {
            params.fault("columns", "value_error", error.to_string());
        }
        // Columns belong to rows, so they imply the default form of rows.
        let method = method.or((!columns.is_empty()).then_some(OutputMethod::Jstable));
        let defuse = params.flag_or("defuse_formulas", false)?;
        Some(Self {
            method: method.map(|method| if defuse { method.defused() } else { method }),
            columns,
            buffers: buffers.unwrap_or_default(),
        })
    }

    /// Whether the caller asked for rows, in whatever form.
    #[must_use]
    pub const fn is_of_rows(&self) -> bool {
        self.method.is_some()
    }

    /// The media type of the answer.
    #[must_use]
    pub fn content_type(&self) -> HeaderValue {
        self.method
            .map_or(JSON, |method| HeaderValue::from_static(method.content_type()))
    }

    /// The headers of an answer in this form.
    fn head(&self, tag: &str) -> Result<HeaderMap, ApiError> {
        let mut head = HeaderMap::new();
        head.insert(CONTENT_TYPE, self.content_type());
        head.insert(ETAG, header_value(tag)?);
        if let Some(method) = self.method {
            head.insert(CONTENT_DISPOSITION, answer_disposition(method)?);
        }
        Ok(head)
    }
}

/// The query of a listing that takes no parameter but its form.
#[derive(Clone, Debug)]
pub struct ListingQuery {
    pub form: ListingForm,
}

impl FromParams for ListingQuery {
    fn from_params(params: &mut Params<'_>) -> Option<Self> {
        Some(Self {
            form: ListingForm::read(params)?,
        })
    }
}

/// A listing, or 304 when the caller has it already. Listings hold no sums of fractions, so equal ones are
/// equal to the byte.
pub fn listing<T: Serialize>(headers: &HeaderMap, value: &T) -> Result<Response, ApiError> {
    let body = serde_json::to_vec(value).map_err(ApiError::internal)?;
    let tag = content_tag(&body);
    if is_known(headers, &tag) {
        return not_modified(&tag, JSON);
    }
    let headers = [(CONTENT_TYPE, JSON), (ETAG, header_value(&tag)?)];
    Ok((headers, body).into_response())
}

/// Makes a listing that may be long: it takes a place like a question, and is made where questions are
/// computed, since others wait for the thread that a connection is served by.
pub async fn aside(
    app: AppState,
    person: PersonId,
    making: impl Future<Output = Result<Response, ApiError>> + Send + 'static,
) -> Result<Response, ApiError> {
    let slot = app.queries.enter(person).await?;
    let made = app.engine.beside(async move {
        let made = making.await;
        drop(slot);
        made
    });
    made.await.map_err(ApiError::internal)?
}

/// The same for a listing that keeps its place until it is sent.
pub async fn aside_with_slot<F>(
    app: AppState,
    person: PersonId,
    making: impl FnOnce(AdmissionSlot) -> F,
) -> Result<Response, ApiError>
where
    F: Future<Output = Result<Response, ApiError>> + Send + 'static,
{
    let slot = app.queries.enter(person).await?;
    let made = app.engine.beside(making(slot));
    made.await.map_err(ApiError::internal)?
}

/// `entries` in the form that was asked for, or 304 when the caller has them already.
pub async fn listed_as<T: Serialize>(
    app: &App,
    headers: &HeaderMap,
    form: ListingForm,
    columns: &[ListedColumn],
    entries: &[T],
) -> Result<Response, ApiError> {
    document_as(app, headers, form, columns, (&entries, entries)).await
}

/// One thing in the form that was asked for: with `output` it is a table with one row.
pub async fn one_as<T: Serialize>(
    app: &App,
    headers: &HeaderMap,
    form: ListingForm,
    columns: &[ListedColumn],
    entry: &T,
) -> Result<Response, ApiError> {
    document_as(app, headers, form, columns, (entry, std::slice::from_ref(entry))).await
}

/// A document or, if rows were asked for, the rows with the same content.
pub async fn document_as<T: Serialize, Row: Serialize>(
    app: &App,
    headers: &HeaderMap,
    form: ListingForm,
    columns: &[ListedColumn],
    (document, rows): (&T, &[Row]),
) -> Result<Response, ApiError> {
    if form.method.is_none() {
        return listing(headers, document);
    }
    let body = body_of(app, &form, columns, (document, rows)).await?;
    let tag = content_tag(&body);
    if is_known(headers, &tag) {
        return not_modified(&tag, form.content_type());
    }
    Ok((form.head(&tag)?, Body::from(body)).into_response())
}

/// An answer that must be computed before any of it can be sent: computed only if its body is wanted, by a
/// caller who does not have it. `tag` follows from the question and the states of what is read for it. That a
/// table has no column of a name is said whether or not there is a body.
pub fn computed<F>(
    headers: &HeaderMap,
    form: &ListingForm,
    columns: &[ListedColumn],
    tag: &str,
    making: F,
) -> Result<Response, ApiError>
where
    F: Future<Output = Result<Vec<u8>, ApiError>> + Send + 'static,
{
    chosen(columns, &form.columns)?;
    if is_known(headers, tag) {
        return not_modified(tag, form.content_type());
    }
    let body = async { Ok(Response::new(Body::from(making.await?))) };
    Ok(deferred(form.head(tag)?, body))
}

/// The bytes of a document or, if rows were asked for, of the rows with the same content.
pub async fn body_of<T: Serialize, Row: Serialize>(
    app: &App,
    form: &ListingForm,
    columns: &[ListedColumn],
    (document, rows): (&T, &[Row]),
) -> Result<Vec<u8>, ApiError> {
    let Some(method) = form.method else {
        return serde_json::to_vec(document).map_err(ApiError::internal);
    };
    let rows = match serde_json::to_value(rows).map_err(ApiError::internal)? {
        Value::Array(rows) => rows,
        other => vec![other],
    };
    let batch = listed(&chosen(columns, &form.columns)?, &rows).map_err(ApiError::internal)?;
    let packing = Packing {
        method,
        buffers: form.buffers,
    };
    let spill_files = app.engine.spill_files().clone();
    let batches = futures::stream::iter([Ok::<_, Broken>(batch.clone())]);
    let chunks: Vec<_> = encode(packing, batch.schema(), spill_files, batches)
        .map(|chunk| chunk.map_err(ApiError::internal))
        .try_collect()
        .await?;
    Ok(chunks.concat())
}

/// The columns of these names, in their order; all if none are named.
fn chosen(columns: &[ListedColumn], names: &[String]) -> Result<Vec<ListedColumn>, ApiError> {
    if names.is_empty() {
        return Ok(columns.to_vec());
    }
    let named = names.iter().map(|name| {
        let found = columns.iter().find(|column| column.name == name);
        found.copied().ok_or_else(|| {
            let known = columns.iter().map(|column| column.name);
            let error = ColumnError::Unknown {
                name: name.clone(),
                nearest: nearest(name, known).map(str::to_owned),
            };
            QueryError::from(error).into()
        })
    });
    named.collect()
}
