//! Records by a selector: `/data/v1/records`.

use std::str::FromStr;

use axum::Extension;
use axum::extract::State;
use axum::response::Response;

use crate::api::answer_form::AnswerForm;
use crate::api::app::{App, AppState};
use crate::api::cursor::Pages;
use crate::api::docs::answers::Rows;
use crate::api::extract::{Checked, Notes};
use crate::api::problem::{ApiError, invalid};
use crate::api::query_params::{Choice, FromParams, Params};
use crate::auth::grants::Readable;
use crate::model::excerpt::beginning;
use crate::model::ids::PersonId;
use crate::model::time::TimeRange;
use crate::output::OutputMethod;
use crate::query::page_of_prepared::NextPage;
use crate::query::records::RecordsSpec;
use crate::query::selector::{Extent, Selector};
use crate::query::{Order, Prepared, QueryError, TypedPartition};

use super::names::resolve_name;
use super::permitted_records::{NamedRecords, PermittedRecords};
use super::read_request::ReadRequest;
use super::units::RequestedUnits;

/// Which records, whose, and in which form.
#[derive(Debug)]
pub struct SelectorQuery {
    selector: Selector,
    units: RequestedUnits,
    form: AnswerForm,
    owner: Option<PersonId>,
}

/// The `format` of lines.
#[derive(Clone, Copy, Debug)]
enum LineFormat {
    Json,
    Csv,
}

impl FromStr for LineFormat {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        match name {
            "json" | "jsonl" | "jsonlines" | "ndjson" => Ok(Self::Json),
            "csv" => Ok(Self::Csv),
            other => Err(UnknownFormat(beginning(other).into_owned())),
        }
    }
}

impl Choice for LineFormat {
    fn all() -> Vec<Self> {
        vec![Self::Json, Self::Csv]
    }

    fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Csv => "csv",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown format {0:?}; use one of json (a record a line), csv")]
struct UnknownFormat(String);

impl FromParams for SelectorQuery {
    fn from_params(params: &mut Params<'_>) -> Option<Self> {
        let lines = params.choice("format").map(|format| match format {
            LineFormat::Csv => OutputMethod::Csv,
            LineFormat::Json => OutputMethod::Ndjson,
        });
        let form = AnswerForm::paged(params, |params| {
            AnswerForm::in_place_of(params, lines, OutputMethod::Ndjson)
        });
        let units = RequestedUnits::read(params);
        let owner = params.owner();
        let text = params.required_text("q")?;
        let selector = Selector::parse(&text)
            .map_err(|error| params.fault("q", "value_error", error.to_string()))
            .ok()?;
        Some(Self {
            selector,
            units: units?,
            form: form?,
            owner,
        })
    }
}

/// The records that a selector names: those that share time with a span before a moment, or the one that
/// began last.
///
/// `HeartRate[3600s] @ 1717200000`, `{__name__="Event/<uuid>", note=~"tea.*"}[1d] offset 1w`, `HeartRate`.
#[utoipa::path(get, path = "/data/v1/records", tag = "records",
    params(Checked<SelectorQuery>),
    responses(Rows, (status = 403), (status = 404), (status = 422)))]
pub async fn selected_records(
    State(app): State<AppState>,
    request: ReadRequest,
    Checked(query): Checked<SelectorQuery>,
    Extension(notes): Extension<Notes>,
) -> Result<Response, ApiError> {
    let reader = &request.reader;
    let owner = reader.asks_about(query.owner);
    let Selector {
        name,
        conditions,
        extent,
        ..
    } = &query.selector;
    let pages = Pages::of_address(&app.tickets, owner, "selected", request.words());
    let after = pages.place(query.form.cursor.as_deref())?;
    let name = resolve_name(&app, reader, owner, name).await?;
    let range = query.selector.range(request.now(&app));
    if matches!(extent, Extent::Back(_)) {
        notes.understood_range(range);
    }
    // The moment chooses the latest record, and is no range to cut it to.
    let asked = match extent {
        Extent::Back(_) => range,
        Extent::Latest => TimeRange::ALWAYS,
    };
    let named = NamedRecords {
        owner,
        data_type: name,
        conditions: conditions.clone(),
    };
    let found = PermittedRecords::of(&app, &request, named, asked, Some(range)).await?;
    let spec = RecordsSpec {
        conditions: found.conditions,
        order: Order::Ascending,
        ids: query.form.ids(),
        limit: query.form.limit,
        after,
        columns: query.form.columns.clone(),
    };
    let records = (&found.permit, found.partitions.as_slice());
    let page = page_of(&app, records, &spec, &query.selector, range).await;
    let (prepared, next, seen) = page.map_err(refused)?;
    let selected = (spec.conditions.as_slice(), "q");
    let (prepared, unit) = query
        .units
        .show_records(&app, reader, &found.resolved, selected, prepared)
        .await?;
    let etag_parts = format!("{owner} {seen} {unit:?}");
    let answer = request
        .answer(&app, found.slot, prepared, &query.form, &etag_parts)
        .await?;
    pages.with_next_cursor(&app, &query.form, answer, next).await
}

/// The page of the records that a selector names, where the next one begins, and what of the range shapes the
/// answer: without a moment the range is another one at each request, and its answer mostly the same.
async fn page_of(
    app: &App,
    (permit, partitions): (&Readable, &[TypedPartition]),
    spec: &RecordsSpec,
    selector: &Selector,
    range: TimeRange,
) -> Result<(Prepared, NextPage, String), QueryError> {
    let questions = &app.questions;
    match (&selector.extent, &selector.at) {
        (Extent::Back(_), Some(_)) => {
            let (prepared, next) = questions.page_of_records(permit, partitions, spec).await?;
            Ok((prepared, next, format!("{} {}", range.start(), range.end())))
        }
        (Extent::Back(_), None) => {
            let (prepared, next, seen) = questions
                .moving_page_of_records(permit, partitions, spec, range)
                .await?;
            Ok((prepared, next, format!("{seen:?}")))
        }
        (Extent::Latest, _) => {
            let (prepared, seen) = questions.latest_record(permit, partitions, spec, range).await?;
            Ok((prepared, NextPage::default(), format!("{seen:?}")))
        }
    }
}

/// An error about a label that cannot be compared points at the selector, not at a filter.
fn refused(error: QueryError) -> ApiError {
    match error {
        QueryError::Filter(error) => invalid(["query", "q"], error.to_string()),
        other => other.into(),
    }
}
