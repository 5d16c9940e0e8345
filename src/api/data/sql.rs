//! Queries in SQL over what the caller has, and over what others share with the caller.

mod functions;
mod holdings;
mod names;

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::api::answer_form::AnswerForm;
use crate::api::app::AppState;
use crate::api::data::read_request::ReadRequest;
use crate::api::docs::answers::QueryRows;
use crate::api::document::Sent;
use crate::api::extract::Checked;
use crate::api::failures::{planning_error, query_error};
use crate::api::problem::{ApiError, invalid};
use crate::api::query_params::NoParams;
use crate::output::OutputMethod;
use crate::query::Prepared;
use crate::query::explain::Explain;
use crate::query::sql::{Parameters, Show, SqlFailure, SqlQuestion};

use holdings::{Readings, Unanswered};

/// A query.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SqlRequest {
    /// One SELECT, EXPLAIN or EXPLAIN ANALYZE of at most 65,536 bytes.
    #[schema(
        example = "SELECT local_day(start_date, 'Europe/Berlin') AS day, avg(value) FROM resting_heart_rate \
                        WHERE start_date >= $1 GROUP BY day ORDER BY day"
    )]
    pub query: String,
    /// A list for `$1`, `$2`, or an object for `$name`: texts, numbers, truth values, null and lists of
    /// these.
    #[schema(value_type = Option<Value>, example = json!(["2026-01-01"]))]
    pub parameters: Option<Value>,
    /// The form of the answer; `jstable` by default.
    pub output: Option<OutputMethod>,
    /// Whether CSV has an apostrophe before text that a spreadsheet would run as a formula; it has none by
    /// default.
    pub defuse_formulas: Option<bool>,
}

/// Rows that an SQL query finds.
#[utoipa::path(post, path = "/data/v1/sql", tag = "records",
    params(Checked<NoParams>),
    request_body = SqlRequest,
    responses(QueryRows, (status = 413), (status = 415), (status = 422)))]
pub async fn sql(
    State(app): State<AppState>,
    request: ReadRequest,
    _query: Checked<NoParams>,
    Sent(asked): Sent<SqlRequest>,
) -> Result<Response, ApiError> {
    let method = asked.output.unwrap_or(OutputMethod::Jstable);
    let form = AnswerForm::of_method(if asked.defuse_formulas.unwrap_or(false) {
        method.defused()
    } else {
        method
    });
    let parameters =
        Parameters::read(asked.parameters).map_err(|message| invalid(["body", "parameters"], message))?;
    let question = SqlQuestion {
        text: asked.query,
        parameters,
    };
    let slot = request.admitted(&app).await?;
    let holdings = Arc::new(Readings::new(&app, &request.reader));
    let now = app.clock.now();
    let planned = app.engine.sql(holdings, question, now, slot).await;
    let (planned, slot) = planned.map_err(refused)?;
    let prepared = match planned.show {
        Show::Rows => planned.prepared,
        show => explained(&app, &planned.prepared, show).await?,
    };
    let packing = form.packing(&request.headers);
    let sending = request.sending(&app, slot);
    sending.answer_query(prepared, &form, packing).await
}

async fn explained(app: &AppState, prepared: &Prepared, show: Show) -> Result<Prepared, ApiError> {
    let explain = if show == Show::Analysis {
        Explain::Analyze
    } else {
        Explain::Plan
    };
    let lines = prepared.explained_query(&app.engine, explain).await;
    let lines = lines.map_err(|error| query_error(&error.into()))?;
    Prepared::of_lines(lines).map_err(ApiError::internal)
}

fn refused(failure: SqlFailure) -> ApiError {
    match failure {
        SqlFailure::Refused(error) => invalid(["body", "query"], error.to_string()),
        SqlFailure::WrongParameters(message) => invalid(["body", "parameters"], message),
        SqlFailure::Failed(error) => match Unanswered::inside(error) {
            Ok(error) => error,
            Err(error) => planning_error(&error),
        },
    }
}
