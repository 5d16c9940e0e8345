//! Records of any type, as they were recorded: `/data/v1alpha1/event` and `/data/v1alpha1/metric`.

use axum::extract::State;
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::api::answer_form::AnswerForm;
use crate::api::app::{App, AppState};
use crate::api::cursor::Pages;
use crate::api::docs::answers::Records;
use crate::api::extract::{Checked, Path};
use crate::api::listed::{ListingForm, body_of, computed};
use crate::api::problem::{ApiError, invalid};
use crate::api::query_params::{FromParams, Params};
use crate::auth::tokens::Reader;
use crate::model::ids::PersonId;
use crate::model::time::{Instant, TimeRange};
use crate::output::{ColumnKind, ListedColumn};
use crate::query::Order;
use crate::query::filter::{Condition, parse_all};
use crate::query::records::RecordsSpec;

use super::names::resolve_name;
use super::permitted_records::{NamedRecords, PermittedRecords};
use super::read_request::ReadRequest;
use super::units::RequestedUnits;

/// Which records, in which order and form.
#[derive(Debug)]
pub struct RecordsQuery {
    range: TimeRange,
    cursor: Option<String>,
    units: RequestedUnits,
    selection: Selection,
}

impl FromParams for RecordsQuery {
    fn from_params(params: &mut Params<'_>) -> Option<Self> {
        let (range, cursor) = (params.range(), params.text("cursor"));
        let units = RequestedUnits::read(params);
        let selection = Selection::read(params);
        Some(Self {
            range: range?,
            cursor,
            units: units?,
            selection: selection?,
        })
    }
}

/// Everything except the range.
#[derive(Debug)]
pub(super) struct Selection {
    pub(super) which: RecordSelection,
    pub(super) form: AnswerForm,
    pub(super) order: Order,
}

impl Selection {
    pub(super) fn read(params: &mut Params<'_>) -> Option<Self> {
        let which = RecordSelection::read(params);
        let order = params.choice_or("sort", Order::Ascending);
        let form = AnswerForm::of_records(params);
        Some(Self {
            which,
            form: form?,
            order: order?,
        })
    }
}

/// Whose records, and which of them.
#[derive(Debug)]
pub(super) struct RecordSelection {
    pub(super) owner: Option<PersonId>,
    /// The group, for a question about all of its participants.
    pub(super) group: Option<Uuid>,
    pub(super) conditions: Vec<Condition>,
}

impl RecordSelection {
    fn read(params: &mut Params<'_>) -> Self {
        // A participant was resolved to a person before this route was reached.
        let (group, participant) = (params.uuid("pool_id"), params.uuid("participant_id"));
        params.refuse_two_subjects();
        let texts = params.repeated("filter");
        let conditions = parse_all(&texts).unwrap_or_else(|error| {
            params.fault("filter", "value_error", error.to_string());
            Vec::new()
        });
        Self {
            owner: params.owner(),
            group: group.filter(|_| participant.is_none()),
            conditions,
        }
    }

    /// The person who is asked about, if it is one person.
    pub(super) fn person(&self, reader: &Reader) -> Result<PersonId, ApiError> {
        match self.group {
            None => Ok(reader.asks_about(self.owner)),
            Some(_) => Err(invalid(
                ["query", "participant_id"],
                "name a participant of the group; only aggregates can be about all of them",
            )),
        }
    }
}

/// Records of a type, selected by time and `filter`.
#[utoipa::path(get, path = "/data/v1alpha1/event/{data_type}", tag = "records",
    params(("data_type" = String, Path), Checked<RecordsQuery>),
    responses(Records, (status = 403), (status = 404), (status = 422)))]
pub async fn event(
    State(app): State<AppState>,
    request: ReadRequest,
    Path(data_type): Path<String>,
    Checked(query): Checked<RecordsQuery>,
) -> Result<Response, ApiError> {
    records(&app, &request, &data_type, query).await
}

/// Raw samples of a metric, selected by time and `filter`.
#[utoipa::path(get, path = "/data/v1alpha1/metric/{data_type}", tag = "records",
    params(("data_type" = String, Path), Checked<RecordsQuery>),
    responses(Records, (status = 403), (status = 404), (status = 422)))]
pub async fn metric(
    State(app): State<AppState>,
    request: ReadRequest,
    Path(data_type): Path<String>,
    Checked(query): Checked<RecordsQuery>,
) -> Result<Response, ApiError> {
    records(&app, &request, &data_type, query).await
}

async fn records(
    app: &App,
    request: &ReadRequest,
    data_type: &str,
    query: RecordsQuery,
) -> Result<Response, ApiError> {
    let Selection { which, form, order } = query.selection;
    let asked = permitted(app, request, data_type, query.range, which).await?;
    let pages = Pages::of(
        &app.tickets,
        &(
            asked.owner,
            &asked.resolved.data_type.id,
            &asked.conditions,
            query.range,
            order,
        ),
    );
    let spec = RecordsSpec {
        conditions: asked.conditions,
        order,
        ids: form.ids(),
        limit: form.limit,
        after: pages.place(query.cursor.as_deref())?,
        columns: form.columns.clone(),
    };
    let (prepared, next) = app
        .questions
        .page_of_records(&asked.permit, &asked.partitions, &spec)
        .await?;
    let selected = (spec.conditions.as_slice(), "filter");
    let (prepared, unit) = query
        .units
        .show_records(app, &request.reader, &asked.resolved, selected, prepared)
        .await?;
    let etag_parts = format!("{} {} {unit:?}", asked.owner, asked.data_type);
    let answer = request
        .answer(app, asked.slot, prepared, &form, &etag_parts)
        .await?;
    pages.with_next_cursor(app, &form, answer, next).await
}

/// Records of any time, unless the caller limits it.
#[derive(Debug)]
pub struct AnyTimeQuery {
    range: TimeRange,
    which: RecordSelection,
}

impl FromParams for AnyTimeQuery {
    fn from_params(params: &mut Params<'_>) -> Option<Self> {
        let (range, which) = (params.open_range(), RecordSelection::read(params));
        Some(Self { range: range?, which })
    }
}

/// Records of any time, unless the caller limits it, and the form of the answer.
#[derive(Debug)]
pub struct SummaryQuery {
    within: AnyTimeQuery,
    form: ListingForm,
}

impl FromParams for SummaryQuery {
    fn from_params(params: &mut Params<'_>) -> Option<Self> {
        let (within, form) = (AnyTimeQuery::from_params(params), ListingForm::read(params));
        Some(Self {
            within: within?,
            form: form?,
        })
    }
}

/// A person's latest record.
#[derive(Debug)]
pub struct LatestQuery {
    within: AnyTimeQuery,
    units: RequestedUnits,
    form: AnswerForm,
}

impl FromParams for LatestQuery {
    fn from_params(params: &mut Params<'_>) -> Option<Self> {
        let within = AnyTimeQuery::from_params(params);
        let units = RequestedUnits::read(params);
        let form = AnswerForm::of_records(params);
        Some(Self {
            within: within?,
            units: units?,
            form: form?,
        })
    }
}

/// The record that starts last, as a list with one element; empty if there are no records.
#[utoipa::path(get, path = "/data/v1alpha1/event/{data_type}/latest", tag = "records",
    params(("data_type" = String, Path), Checked<LatestQuery>),
    responses(Records, (status = 403), (status = 404), (status = 422)))]
#[deprecated = "the interface keeps it for older clients"]
pub async fn latest_event(
    State(app): State<AppState>,
    request: ReadRequest,
    Path(data_type): Path<String>,
    Checked(query): Checked<LatestQuery>,
) -> Result<Response, ApiError> {
    let AnyTimeQuery { range, which } = query.within;
    let asked = permitted(&app, &request, &data_type, range, which).await?;
    let spec = RecordsSpec {
        conditions: asked.conditions,
        order: Order::Descending,
        ids: query.form.ids(),
        limit: Some(1),
        after: None,
        columns: query.form.columns.clone(),
    };
    let prepared = app
        .questions
        .records(&asked.permit, &asked.partitions, &spec)
        .await?;
    let selected = (spec.conditions.as_slice(), "filter");
    let (prepared, unit) = query
        .units
        .show_records(&app, &request.reader, &asked.resolved, selected, prepared)
        .await?;
    let etag_parts = format!("{} {} {unit:?}", asked.owner, asked.data_type);
    request
        .answer(&app, asked.slot, prepared, &query.form, &etag_parts)
        .await
}

/// How many records there are, and between which moments; these are null if there are no records.
#[derive(Debug, Serialize, ToSchema)]
pub struct RecordsSummary {
    data_type: String,
    count: i64,
    #[schema(required, format = DateTime)]
    start_time: Option<String>,
    #[schema(required, format = DateTime)]
    end_time: Option<String>,
}

const SUMMARY: [ListedColumn; 4] = [
    ListedColumn::new("data_type", ColumnKind::Text),
    ListedColumn::new("count", ColumnKind::Whole),
    ListedColumn::new("start_time", ColumnKind::Time),
    ListedColumn::new("end_time", ColumnKind::Time),
];

/// How many records there are in the range, and between which moments.
#[utoipa::path(get, path = "/data/v1alpha1/event/{data_type}/summary", tag = "records",
    params(("data_type" = String, Path), Checked<SummaryQuery>),
    responses((status = 200, description = "Count and bounds", body = RecordsSummary), (status = 403),
        (status = 404), (status = 422)))]
#[deprecated = "the interface keeps it for older clients"]
pub async fn event_summary(
    State(app): State<AppState>,
    request: ReadRequest,
    Path(data_type): Path<String>,
    Checked(query): Checked<SummaryQuery>,
) -> Result<Response, ApiError> {
    let SummaryQuery { within, form } = query;
    let AnyTimeQuery { range, which } = within;
    let asked = permitted(&app, &request, &data_type, range, which).await?;
    let prepared = app
        .questions
        .prepared_summary(&asked.permit, &asked.partitions, &asked.conditions)
        .await?;
    let etag_parts = format!("{} {}", asked.owner, asked.data_type);
    let tag = request.tag(&app, &prepared.states, &prepared.scope, &etag_parts);
    computed(&request.headers, &form.clone(), &SUMMARY, &tag, async move {
        let summary = app.questions.summed_up(prepared).await?;
        drop(asked.slot);
        let summary = RecordsSummary {
            data_type: asked.resolved.id().to_string(),
            count: summary.records,
            start_time: summary.first_start.map(Instant::to_rfc3339),
            end_time: summary.last_end.map(Instant::to_rfc3339),
        };
        body_of(&app, &form, &SUMMARY, (&summary, std::slice::from_ref(&summary))).await
    })
}

/// The records of a type that a request selects in a range.
async fn permitted(
    app: &App,
    request: &ReadRequest,
    name: &str,
    range: TimeRange,
    which: RecordSelection,
) -> Result<PermittedRecords, ApiError> {
    let owner = which.person(&request.reader)?;
    let named = NamedRecords {
        owner,
        data_type: resolve_name(app, &request.reader, owner, name).await?,
        conditions: which.conditions,
    };
    PermittedRecords::of(app, request, named, range, None).await
}
