//! Records by period: `/data/v1alpha1/event/{data_type}/agg/{resolution}` and
//! `/data/v1alpha1/metric/{data_type}/agg/{resolution}`.

use std::fmt::Write as _;

use axum::extract::State;
use axum::response::Response;
use uuid::Uuid;

use crate::api::app::{App, AppState};
use crate::api::docs::answers::CountedRecords;
use crate::api::extract::{Checked, Path};
use crate::api::header_names::X_SVC_PERIODS_LEFT_OUT;
use crate::api::problem::{ApiError, invalid};
use crate::api::query_params::{FromParams, Params};
use crate::auth::grants::Readable;
use crate::auth::tokens::Reader;
use crate::model::columns::{UNIT, VALUE};
use crate::model::duration::Truncation;
use crate::model::names::UnknownName;
use crate::model::permit::Windows;
use crate::model::registry::{RecordClass, TypeId};
use crate::model::time::TimeRange;
use crate::model::zone::Zone;
use crate::people::preferences::Preferences;
use crate::people::types::ResolvedType;
use crate::query::aggregate::over_people::OverPeople;
use crate::query::aggregate::{AggregateMeasure, AggregateSpec, Resolution};
use crate::query::partial::WholeBins;
use crate::query::statistic::Statistic;
use crate::query::units::UnitRole;
use crate::query::{Prepared, TypedPartition};

use super::names::resolve_name;
use super::partitions::{partitions_of, readable};
use super::read_request::ReadRequest;
use super::records::Selection;
use super::units::{RequestedUnits, UnitHindrance, compares_measures};

/// The column in which periods begin.
const TIME: &str = "time";
/// How many people a value about a whole group must be based on at least.
const LEAST_PEOPLE: u64 = 5;

/// Which records, and how they are grouped.
#[derive(Debug)]
pub struct CountQuery {
    range: TimeRange,
    zone: Zone,
    group: Vec<String>,
    /// Whether a column marks periods that are not whole.
    partial: bool,
    selection: Selection,
}

impl FromParams for CountQuery {
    fn from_params(params: &mut Params<'_>) -> Option<Self> {
        let range = params.range();
        let zone = params.zone("time_zone");
        let group = params.list("group");
        let partial = params.flag_or("partial", false);
        let selection = Selection::read(params);
        Some(Self {
            range: range?,
            zone: zone?,
            group,
            partial: partial?,
            selection: selection?,
        })
    }
}

impl CountQuery {
    /// The periods that the reader may see in full, if the answer is to mark them. For a group it does not
    /// show whose data is shared in part only.
    fn whole(&self, periods: Truncation, permits: &[Readable]) -> Option<WholeBins> {
        if !self.partial {
            return None;
        }
        let seen = match permits {
            [permit] => permit.windows().within(self.range),
            _ => Windows::new([self.range]),
        };
        let end = self.range.end();
        let ends_at_edge = periods.trunc(&self.zone, end) == end;
        let grid = periods.grid(&self.zone, self.range);
        Some(WholeBins::of(&grid, ends_at_edge, &seen))
    }
}

/// Which records, how they are grouped, and what is computed from their values.
#[derive(Debug)]
pub struct ValuesQuery {
    query: CountQuery,
    functions: Vec<Statistic>,
    units: RequestedUnits,
}

impl FromParams for ValuesQuery {
    fn from_params(params: &mut Params<'_>) -> Option<Self> {
        let query = CountQuery::from_params(params);
        let functions: Option<Vec<Statistic>> = params.required_choices(
            "function",
            "this parameter is required; use one or more of sum, avg, min, max",
        );
        let units = RequestedUnits::read(params);
        let functions = functions?;
        let twice = functions
            .iter()
            .enumerate()
            .find(|(place, function)| functions.iter().take(*place).any(|earlier| earlier == *function));
        if let Some((_, function)) = twice {
            params.fault(
                "function",
                "value_error",
                format!("{} is named twice", function.name()),
            );
            return None;
        }
        Some(Self {
            query: query?,
            functions,
            units: units?,
        })
    }
}

/// How many records began in each period. Periods without records are left out.
#[utoipa::path(get, path = "/data/v1alpha1/event/{data_type}/agg/{resolution}", tag = "aggregates",
    params(("data_type" = String, Path), ("resolution" = inline(Resolution), Path), Checked<CountQuery>),
    responses(CountedRecords, (status = 403), (status = 404), (status = 422)))]
pub async fn event_aggregate(
    State(app): State<AppState>,
    request: ReadRequest,
    Path((data_type, resolution)): Path<(String, String)>,
    Checked(query): Checked<CountQuery>,
) -> Result<Response, ApiError> {
    let aggregate_request = AggregateRequest {
        read: &request,
        data_type: &data_type,
        resolution: &resolution,
    };
    aggregate(&app, &aggregate_request, query, (AggregateMeasure::Count, None)).await
}

/// Statistics of a metric's values in each period. Periods without samples are left out.
#[utoipa::path(get, path = "/data/v1alpha1/metric/{data_type}/agg/{resolution}", tag = "aggregates",
    params(("data_type" = String, Path), ("resolution" = inline(Resolution), Path), Checked<ValuesQuery>),
    responses(CountedRecords, (status = 403), (status = 404), (status = 422)))]
pub async fn metric_aggregate(
    State(app): State<AppState>,
    request: ReadRequest,
    Path((data_type, resolution)): Path<(String, String)>,
    Checked(query): Checked<ValuesQuery>,
) -> Result<Response, ApiError> {
    let aggregate_request = AggregateRequest {
        read: &request,
        data_type: &data_type,
        resolution: &resolution,
    };
    let ValuesQuery {
        query,
        functions,
        units,
    } = query;
    let measured = (AggregateMeasure::Values(functions), Some(units));
    aggregate(&app, &aggregate_request, query, measured).await
}

/// The request, and the parts of its path.
struct AggregateRequest<'a> {
    read: &'a ReadRequest,
    data_type: &'a str,
    resolution: &'a str,
}

async fn aggregate(
    app: &App,
    request: &AggregateRequest<'_>,
    query: CountQuery,
    (measure, units): (AggregateMeasure, Option<RequestedUnits>),
) -> Result<Response, ApiError> {
    let reader = &request.read.reader;
    let (data_type, permits) = permits_for(app, request, &query).await?;
    let resolution: Resolution = request
        .resolution
        .parse()
        .map_err(|error: UnknownName| invalid(["path", "resolution"], error.to_string()))?;
    let owner = permits.first().map_or(reader.person(), Readable::owner);
    let resolved = readable(app, owner, data_type.as_str()).await?;
    refuse_unfit(&query, &measure, &resolved)?;
    let unit = match units {
        Some(units) => {
            let hindrance = |moves_zero: bool| hindrance(&query, &measure, moves_zero);
            units
                .display_unit(app, reader, &resolved.data_type, hindrance)
                .await?
        }
        None => None,
    };
    let slot = request.read.admitted(app).await?;
    let question = Question {
        app,
        reader,
        resolved: &resolved,
        query: &query,
        measure: &measure,
        periods: resolution.periods(),
    };
    let mut etag_parts = format!("{data_type} {unit:?}");
    let mut each = Vec::with_capacity(permits.len());
    for permit in &permits {
        let (prepared, chosen_sources) = question.of(permit).await?;
        let _infallible = write!(etag_parts, " {} {chosen_sources:?}", permit.owner());
        each.push(prepared);
    }
    let (prepared, left_out) = match each.pop() {
        Some(one) if query.selection.which.group.is_none() => (one, None),
        last => {
            each.extend(last);
            let over = question.over_people(each, &data_type).await?;
            (over.prepared, Some(over.left_out))
        }
    };
    let prepared = match &unit {
        Some(unit) => prepared.in_unit(unit, &COLUMNS, UNIT)?,
        None => prepared,
    };
    let prepared = prepared.marking(query.whole(resolution.periods(), &permits), TIME)?;
    let form = &query.selection.form;
    let mut response = request
        .read
        .answer(app, slot, prepared, form, &etag_parts)
        .await?;
    if let Some(left_out) = left_out {
        response
            .headers_mut()
            .insert(X_SVC_PERIODS_LEFT_OUT, left_out.into());
    }
    Ok(response)
}

/// The type that is meant, and a permit for each person whom the question is about.
async fn permits_for(
    app: &App,
    request: &AggregateRequest<'_>,
    query: &CountQuery,
) -> Result<(TypeId, Vec<Readable>), ApiError> {
    let reader = &request.read.reader;
    if let Some(group) = query.selection.which.group {
        // Anybody who joins or leaves changes the answer, even that of an empty group.
        request.read.depends_on_more();
        let data_type = TypeId::new(request.data_type);
        let permits = app.grants.members(reader, group, &data_type, query.range).await?;
        return Ok((data_type, permits));
    }
    let owner = query.selection.which.person(reader)?;
    let data_type = TypeId::new(&resolve_name(app, reader, owner, request.data_type).await?);
    let permit = app.grants.windows(reader, owner, &data_type, query.range).await?;
    Ok((data_type, vec![permit]))
}

/// Refuses what cannot be asked of a type or of a group.
fn refuse_unfit(
    query: &CountQuery,
    measure: &AggregateMeasure,
    resolved: &ResolvedType,
) -> Result<(), ApiError> {
    if *measure != AggregateMeasure::Count && resolved.data_type.class != RecordClass::Metric {
        let id = resolved.id();
        let message = format!("{id} is not a metric; count its records at /data/v1alpha1/event/{id}/agg");
        return Err(invalid(["path", "data_type"], message));
    }
    if query.selection.which.group.is_some() && !query.group.is_empty() {
        return Err(invalid(
            ["query", "group"],
            "`group` cannot be used for a whole group; name one participant",
        ));
    }
    Ok(())
}

/// The columns that are in the unit of the metric.
const COLUMNS: [(&str, UnitRole); 4] = [
    (Statistic::Sum.name(), UnitRole::Differences),
    (Statistic::Avg.name(), UnitRole::Values),
    (Statistic::Min.name(), UnitRole::Values),
    (Statistic::Max.name(), UnitRole::Values),
];

/// Why values cannot be shown in units other than the stored ones.
fn hindrance(
    query: &CountQuery,
    measure: &AggregateMeasure,
    moves_zero: bool,
) -> Option<(&'static str, UnitHindrance)> {
    let sums = matches!(measure, AggregateMeasure::Values(functions) if functions.contains(&Statistic::Sum));
    if query.group.iter().any(|field| field == VALUE) {
        return Some(("group", UnitHindrance::GroupedValues));
    }
    if moves_zero && sums {
        return Some(("function", UnitHindrance::Sums));
    }
    compares_measures(&query.selection.which.conditions, "filter")
}

/// What is asked, whoever it is about.
struct Question<'a> {
    app: &'a App,
    reader: &'a Reader,
    resolved: &'a ResolvedType,
    query: &'a CountQuery,
    measure: &'a AggregateMeasure,
    periods: Truncation,
}

impl Question<'_> {
    /// The answers about `each` member of a group as one.
    async fn over_people(&self, mut each: Vec<Prepared>, data_type: &TypeId) -> Result<OverPeople, ApiError> {
        let (app, reader, query) = (self.app, self.reader, self.query);
        if each.is_empty() {
            // A group without members has an answer without rows, in the same form.
            let nothing = TimeRange::between(query.range.start(), query.range.start());
            let own = app
                .grants
                .windows(reader, reader.person(), data_type, nothing)
                .await?;
            each.push(self.of(&own).await?.0);
        }
        let order = query.selection.order;
        let over = app
            .questions
            .over_people(each, self.measure, order, LEAST_PEOPLE, app.settings.cell_limit)
            .await?;
        over.ok_or_else(|| ApiError::internal("nobody was asked"))
    }

    /// The answer about the person of a permit, and what else shapes it.
    async fn of(&self, permit: &Readable) -> Result<(Prepared, Vec<(TypeId, Vec<Uuid>)>), ApiError> {
        let (app, query, owner) = (self.app, self.query, permit.owner());
        let conditions = query.selection.which.conditions.clone();
        let (partitions, conditions) =
            partitions_of(app, self.reader, owner, self.resolved, conditions).await?;
        let mut chosen_sources = Vec::new();
        let sums = |functions: &Vec<Statistic>| functions.contains(&Statistic::Sum);
        if matches!(self.measure, AggregateMeasure::Values(functions) if sums(functions)) {
            let preferences = Preferences::of(&app.catalog, owner).await?;
            let chosen = |partition: &TypedPartition| {
                (
                    partition.data_type.id.clone(),
                    preferences.chosen_sources(&partition.data_type.id),
                )
            };
            chosen_sources.extend(
                partitions
                    .iter()
                    .map(chosen)
                    .filter(|(_, chosen)| !chosen.is_empty()),
            );
        }
        let spec = AggregateSpec {
            conditions,
            range: query.range,
            periods: self.periods,
            zone: query.zone,
            measure: self.measure.clone(),
            group: query.group.clone(),
            order: query.selection.order,
            chosen_sources: chosen_sources.clone(),
            // Of a whole group, what is told of all counts, and not what one participant has.
            most_cells: match query.selection.which.group {
                None => app.settings.cell_limit,
                Some(_) => u64::MAX,
            },
        };
        let prepared = app.questions.aggregate(permit, &partitions, &spec).await?;
        Ok((prepared, chosen_sources))
    }
}
