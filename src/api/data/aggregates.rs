//! Records by period: `/data/v1alpha1/event/{data_type}/agg/{resolution}` and
//! `/data/v1alpha1/metric/{data_type}/agg/{resolution}`.

use std::str::FromStr;
use std::time::Instant as Moment;

use axum::extract::{RawQuery, State};
use axum::http::HeaderMap;
use axum::response::Response;
use utoipa::ToSchema;

use crate::api::answer::{Request, answer};
use crate::api::app::{App, Shared};
use crate::api::docs::answers::Records;
use crate::api::extract::{Checked, Path};
use crate::api::problem::{ApiError, invalid};
use crate::api::query_params::{FromParams, Params};
use crate::auth::tokens::Reader;
use crate::model::duration::Truncation;
use crate::model::registry::{RecordClass, TypeId};
use crate::model::time::TimeRange;
use crate::model::zone::Zone;
use crate::people::preferences::Preferences;
use crate::query::aggregate::{AggregateMeasure, AggregateSpec, Function};
use crate::query::records::Source;

use super::records::{Selection, readable, sources_of};

/// How long a period is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ToSchema)]
enum Resolution {
    #[schema(rename = "15m")]
    QuarterHour,
    #[schema(rename = "60m")]
    Hour,
    #[schema(rename = "day")]
    Day,
}

/// A name that is none of the resolutions.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown resolution {0:?}; use one of 15m, 60m, day")]
struct UnknownResolution(String);

impl FromStr for Resolution {
    type Err = UnknownResolution;

    fn from_str(name: &str) -> Result<Self, UnknownResolution> {
        match name {
            "15m" => Ok(Self::QuarterHour),
            "60m" => Ok(Self::Hour),
            "day" => Ok(Self::Day),
            other => Err(UnknownResolution(other.to_owned())),
        }
    }
}

impl Resolution {
    const fn periods(self) -> Truncation {
        match self {
            Self::QuarterHour => Truncation::QUARTER_HOURS,
            Self::Hour => Truncation::HOURS,
            Self::Day => Truncation::DAYS,
        }
    }
}

/// Which records, and by what they are put together.
#[derive(Debug)]
pub struct CountQuery {
    range: TimeRange,
    zone: Zone,
    group: Vec<String>,
    selection: Selection,
}

impl FromParams for CountQuery {
    fn from_params(params: &mut Params<'_>) -> Option<Self> {
        let range = params.range();
        let zone = params.zone("time_zone");
        let group = params.list("group");
        let selection = Selection::read(params);
        Some(Self {
            range: range?,
            zone: zone?,
            group,
            selection: selection?,
        })
    }
}

/// The same with what is computed from the values.
#[derive(Debug)]
pub struct ValuesQuery {
    query: CountQuery,
    functions: Vec<Function>,
}

impl FromParams for ValuesQuery {
    fn from_params(params: &mut Params<'_>) -> Option<Self> {
        let query = CountQuery::from_params(params);
        let functions: Option<Vec<Function>> = params.required_choices(
            "function",
            "this parameter is required; use one or more of sum, avg, min, max",
        );
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
        })
    }
}

/// How many records began in each period. Periods without records are left out.
#[utoipa::path(get, path = "/data/v1alpha1/event/{data_type}/agg/{resolution}", tag = "aggregates",
    params(("data_type" = String, Path), ("resolution" = inline(Resolution), Path), Checked<CountQuery>),
    responses(Records, (status = 403), (status = 404), (status = 422)))]
pub async fn event_aggregate(
    State(app): State<Shared>,
    reader: Reader,
    Path((data_type, resolution)): Path<(String, String)>,
    Checked(query): Checked<CountQuery>,
    RawQuery(question): RawQuery,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let asked = Asked {
        data_type: &data_type,
        resolution: &resolution,
        question: question.as_deref().unwrap_or_default(),
        headers: &headers,
    };
    aggregate(&app, &reader, &asked, query, AggregateMeasure::Count).await
}

/// What the values of a metric come to in each period. Periods without samples are left out.
#[utoipa::path(get, path = "/data/v1alpha1/metric/{data_type}/agg/{resolution}", tag = "aggregates",
    params(("data_type" = String, Path), ("resolution" = inline(Resolution), Path), Checked<ValuesQuery>),
    responses(Records, (status = 403), (status = 404), (status = 422)))]
pub async fn metric_aggregate(
    State(app): State<Shared>,
    reader: Reader,
    Path((data_type, resolution)): Path<(String, String)>,
    Checked(ValuesQuery { query, functions }): Checked<ValuesQuery>,
    RawQuery(question): RawQuery,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let asked = Asked {
        data_type: &data_type,
        resolution: &resolution,
        question: question.as_deref().unwrap_or_default(),
        headers: &headers,
    };
    aggregate(&app, &reader, &asked, query, AggregateMeasure::Values(functions)).await
}

/// What the request says beside its query.
struct Asked<'a> {
    data_type: &'a str,
    resolution: &'a str,
    question: &'a str,
    headers: &'a HeaderMap,
}

async fn aggregate(
    app: &App,
    reader: &Reader,
    asked: &Asked<'_>,
    query: CountQuery,
    measure: AggregateMeasure,
) -> Result<Response, ApiError> {
    let begun = Moment::now();
    let owner = query.selection.which.owner.unwrap_or_else(|| reader.person());
    let permit = app
        .grants
        .windows(reader, owner, &TypeId::new(asked.data_type), query.range)
        .await?;
    let resolution: Resolution = asked
        .resolution
        .parse()
        .map_err(|error: UnknownResolution| invalid(["path", "resolution"], error.to_string()))?;
    let named = readable(app, owner, asked.data_type).await?;
    if measure != AggregateMeasure::Count && named.data_type.class != RecordClass::Metric {
        return Err(invalid(
            ["path", "data_type"],
            format!(
                "{} is no metric; count its records at /data/v1alpha1/event/{0}/agg",
                named.data_type.id
            ),
        ));
    }
    let ticket = app.queries.enter().await?;
    let (sources, conditions) = sources_of(app, owner, &named, query.selection.which.conditions).await?;
    let mut chosen_sources = Vec::new();
    if matches!(&measure, AggregateMeasure::Values(functions) if functions.contains(&Function::Sum)) {
        let preferences = Preferences::of(&app.catalog, owner).await?;
        let chosen = |source: &Source| {
            (
                source.data_type.id.clone(),
                preferences.chosen_sources(&source.data_type.id),
            )
        };
        chosen_sources.extend(
            sources
                .iter()
                .map(chosen)
                .filter(|(_, chosen)| !chosen.is_empty()),
        );
    }
    let question = format!(
        "{owner} {} by {} {} {chosen_sources:?}",
        asked.data_type, asked.resolution, asked.question
    );
    let spec = AggregateSpec {
        conditions,
        range: query.range,
        periods: resolution.periods(),
        zone: query.zone,
        measure,
        group: query.group,
        order: query.selection.order,
        clipped: reader.person() != owner,
        chosen_sources,
    };
    let prepared = app.archive.aggregate(&permit, &sources, &spec).await?;
    let request = Request {
        app,
        headers: asked.headers,
        question: &question,
        begun,
        ticket,
    };
    answer(request, prepared, query.selection.format.method()).await
}
