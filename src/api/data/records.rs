//! Records of any type, as they were recorded: `/data/v1alpha1/event` and `/data/v1alpha1/metric`.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::api::admission::AdmissionSlot;
use crate::api::answer_form::AnswerForm;
use crate::api::app::{App, Shared};
use crate::api::cursor::Pages;
use crate::api::docs::answers::Records;
use crate::api::extract::{Checked, Path};
use crate::api::listed::{ListingForm, body_of, computed};
use crate::api::problem::{ApiError, invalid};
use crate::api::query_params::{FromParams, Params};
use crate::auth::grants::Readable;
use crate::auth::tokens::Reader;
use crate::model::ids::PersonId;
use crate::model::registry::{Base, DataType, TypeId};
use crate::model::time::{Instant, TimeRange};
use crate::output::{ColumnKind, ListedColumn};
use crate::people::types::ResolvedType;
use crate::query::annotation_definitions::{Definitions, ShownDefinition};
use crate::query::filter::{Comparand, Comparison, Condition, parse_all};
use crate::query::records::RecordsSpec;
use crate::query::{Order, TypedPartition};

use super::names::meant;
use super::read_request::ReadRequest;
use super::units::{RequestedUnits, in_display_unit};

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
    State(app): State<Shared>,
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
    State(app): State<Shared>,
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
    let PermittedRecords {
        owner,
        data_type,
        permit,
        resolved,
        slot,
        partitions,
        conditions,
    } = PermittedRecords::of(app, request, data_type, query.range, which).await?;
    let pages = Pages::of(
        &app.tickets,
        &(owner, &resolved.data_type.id, &conditions, query.range, order),
    );
    let spec = RecordsSpec {
        conditions,
        order,
        ids: form.ids(),
        limit: form.limit,
        after: pages.place(query.cursor.as_deref())?,
        columns: form.columns.clone(),
    };
    let (prepared, next) = app.questions.page_of_records(&permit, &partitions, &spec).await?;
    let unit = query
        .units
        .of_records(app, &request.reader, &resolved, (&spec.conditions, "filter"))
        .await?;
    let prepared = in_display_unit(prepared, &resolved, unit.as_ref())?;
    let etag_parts = format!("{owner} {data_type} {unit:?}");
    let answer = request.answer(app, slot, prepared, &form, &etag_parts).await?;
    pages.with_next_cursor(app, answer, next).await
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
    State(app): State<Shared>,
    request: ReadRequest,
    Path(data_type): Path<String>,
    Checked(query): Checked<LatestQuery>,
) -> Result<Response, ApiError> {
    let AnyTimeQuery { range, which } = query.within;
    let PermittedRecords {
        owner,
        data_type,
        permit,
        resolved,
        slot,
        partitions,
        conditions,
    } = PermittedRecords::of(&app, &request, &data_type, range, which).await?;
    let spec = RecordsSpec {
        conditions,
        order: Order::Descending,
        ids: query.form.ids(),
        limit: Some(1),
        after: None,
        columns: query.form.columns.clone(),
    };
    let prepared = app.questions.records(&permit, &partitions, &spec).await?;
    let unit = query
        .units
        .of_records(&app, &request.reader, &resolved, (&spec.conditions, "filter"))
        .await?;
    let prepared = in_display_unit(prepared, &resolved, unit.as_ref())?;
    let etag_parts = format!("{owner} {data_type} {unit:?}");
    request
        .answer(&app, slot, prepared, &query.form, &etag_parts)
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
    State(app): State<Shared>,
    request: ReadRequest,
    Path(data_type): Path<String>,
    Checked(query): Checked<SummaryQuery>,
) -> Result<Response, ApiError> {
    let SummaryQuery { within, form } = query;
    let AnyTimeQuery { range, which } = within;
    let PermittedRecords {
        owner,
        data_type,
        permit,
        resolved,
        slot,
        partitions,
        conditions,
    } = PermittedRecords::of(&app, &request, &data_type, range, which).await?;
    let prepared = app
        .questions
        .prepared_summary(&permit, &partitions, &conditions)
        .await?;
    let etag_parts = format!("{owner} {data_type}");
    let tag = request.tag(&app, &prepared.states, &prepared.scope, &etag_parts);
    computed(&request.headers, &form.clone(), &SUMMARY, &tag, async move {
        let summary = app.questions.summed_up(prepared).await?;
        drop(slot);
        let time = |moment: Option<Instant>| moment.map(Instant::to_rfc3339);
        let summary = RecordsSummary {
            data_type: resolved.id().to_string(),
            count: summary.records,
            start_time: time(summary.first_start),
            end_time: time(summary.last_end),
        };
        body_of(&app, &form, &SUMMARY, (&summary, std::slice::from_ref(&summary))).await
    })
}

/// The records that a request is about, with the permit to read them.
struct PermittedRecords {
    owner: PersonId,
    /// The id that the name in the path stands for.
    data_type: String,
    permit: Readable,
    resolved: ResolvedType,
    slot: AdmissionSlot,
    partitions: Vec<TypedPartition>,
    conditions: Vec<Condition>,
}

impl PermittedRecords {
    /// Nothing is read of the records' type before the permit is there, and of the records before there is a
    /// place among the questions that are being computed.
    async fn of(
        app: &App,
        request: &ReadRequest,
        name: &str,
        range: TimeRange,
        which: RecordSelection,
    ) -> Result<Self, ApiError> {
        let reader = &request.reader;
        let owner = which.person(reader)?;
        let data_type = meant(app, reader, owner, name).await?;
        let permit = app
            .grants
            .windows(reader, owner, &TypeId::new(&data_type), range)
            .await?;
        let resolved = readable(app, owner, &data_type).await?;
        let slot = request.admitted(app).await?;
        let (partitions, conditions) = partitions_of(app, reader, owner, &resolved, which.conditions).await?;
        Ok(Self {
            owner,
            data_type,
            permit,
            resolved,
            slot,
            partitions,
            conditions,
        })
    }
}

/// The type called `data_type`, if its records can be read.
pub(super) async fn readable(app: &App, owner: PersonId, data_type: &str) -> Result<ResolvedType, ApiError> {
    let resolved = app.types.find(owner, data_type).await?;
    if resolved.data_type.queryable {
        Ok(resolved)
    } else {
        Err(ApiError::not_found(format!(
            "{} has no records to read; in the catalogue it is not `queryable`",
            resolved.data_type.id
        )))
    }
}

/// The partitions that hold the records of a type, with the conditions that select them.
pub async fn partitions_of(
    app: &App,
    reader: &Reader,
    owner: PersonId,
    resolved: &ResolvedType,
    mut conditions: Vec<Condition>,
) -> Result<(Vec<TypedPartition>, Vec<Condition>), ApiError> {
    let partition = |data_type: &Arc<DataType>| TypedPartition::of(Arc::clone(data_type));
    let mut partitions = vec![TypedPartition {
        definitions: definitions_of(app, reader, owner, &resolved.data_type).await?,
        ..partition(&resolved.data_type)
    }];
    if Base::named(resolved.data_type.id.as_str()).is_some() {
        let own = app.types.all_own(owner).await?;
        partitions.extend(
            own.iter()
                .filter(|own| own.data_type.id.base() == resolved.data_type.id.as_str())
                .map(|own| partition(&own.data_type)),
        );
    }
    conditions.extend(
        resolved
            .annotation
            .map(|annotation| belonging_to(app, annotation)),
    );
    Ok((partitions, conditions))
}

/// The partition that holds the samples of a metric which has a series, with the conditions that select them.
pub async fn metric_partition(
    app: &App,
    reader: &Reader,
    owner: PersonId,
    metric: &ResolvedType,
) -> Result<(TypedPartition, Vec<Condition>), ApiError> {
    let (partitions, conditions) = partitions_of(app, reader, owner, metric, Vec::new()).await?;
    let partition = partitions.into_iter().next();
    let partition = partition.ok_or_else(|| ApiError::internal("a metric without a partition"))?;
    Ok((partition, conditions))
}

/// Selects the records of one annotation among those of its type.
pub(super) fn belonging_to(app: &App, annotation: Uuid) -> Condition {
    Condition {
        field: "source_id".to_owned(),
        operator: Comparison::Belongs,
        value: Comparand::Text(app.annotations.source_id(annotation)),
    }
}

/// The definitions that records of the type belong to, if the type has definitions.
async fn definitions_of(
    app: &App,
    reader: &Reader,
    owner: PersonId,
    data_type: &DataType,
) -> Result<Option<Arc<Definitions>>, ApiError> {
    if !data_type.is_base || Base::named(data_type.id.as_str()).is_some() {
        return Ok(None);
    }
    let mut known = BTreeMap::new();
    for annotation in app.annotations.all(owner).await?.iter() {
        let mut definition = serde_json::to_value(annotation).map_err(ApiError::internal)?;
        if let Some(members) = definition.as_object_mut().filter(|_| !reader.owns(owner)) {
            // The reader may know the owner by another id, and tags are not shared.
            members.shift_remove("svc_userid");
            members.shift_remove("tags");
        }
        let shown = ShownDefinition {
            name: annotation.root.name().to_owned(),
            definition: definition.to_string(),
        };
        known.insert(annotation.id, shown);
    }
    let prefix = app.annotations.source_prefix();
    Ok(Some(Arc::new(Definitions::new(prefix, known))))
}
