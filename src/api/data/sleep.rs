//! Sleep: stages without conflicts, cycles, and totals by period.

use std::sync::Arc;
use std::time::Instant as Moment;

use axum::extract::{RawQuery, State};
use axum::http::HeaderMap;
use axum::response::Response;

use crate::api::answer::{Request, answer, listing};
use crate::api::app::{App, Shared};
use crate::api::extract::{Checked, Owner};
use crate::api::problem::{ApiError, invalid};
use crate::api::query_params::{FromParams, NoParams, Params};
use crate::auth::grants::Readable;
use crate::auth::tokens::Reader;
use crate::model::duration::{Truncation, parse_length};
use crate::model::ids::PersonId;
use crate::model::registry::TypeId;
use crate::model::time::{Instant, TimeRange};
use crate::model::zone::Zone;
use crate::output::OutputMethod;
use crate::query::records::Source;
use crate::query::sleep::StageTable;
use crate::query::sleep::spec::{AggregateSpec, CyclesSpec, Function, Mode, Question, SourceNames, StageSet, StagesSpec};

/// The metric whose samples are stages.
const SLEEP_STAGE: &str = "SleepStage";
/// Two hours part one sleep from the next.
const USUAL_GAP: i64 = 2 * 3_600_000_000;
/// How far beyond the range a cycle is followed that is not clipped.
const LOOK_AROUND: i64 = 48 * 3_600_000_000;

/// Which cycles, and in which form.
#[derive(Debug)]
pub struct CyclesQuery {
    range: TimeRange,
    output: OutputMethod,
    gap: i64,
    stages: Option<Vec<i64>>,
    gap_stages: Vec<i64>,
    clip: bool,
}

impl FromParams for CyclesQuery {
    fn from_params(params: &mut Params<'_>) -> Option<Self> {
        let (range, output) = (params.range(), params.required_choice("output"));
        let gap = params.text("cycle_gap").map(|text| parse_length(&text));
        let gap = gap.unwrap_or(Ok(USUAL_GAP)).map_err(|error| {
            params.fault("cycle_gap", "value_error", error.to_string());
        });
        let stages = stage_list(params, "stages", Emptiness::Refused);
        let gap_stages = stage_list(params, "gap_stages", Emptiness::Allowed).unwrap_or_default();
        let clip = params.flag("clip_to_range").unwrap_or(true);
        Some(Self {
            range: range?,
            output: output?,
            gap: gap.ok()?,
            stages,
            gap_stages,
            clip,
        })
    }
}

/// Items of a list that is repeated, or has commas, or is written like a list of JSON; `None` when it was not sent.
fn items(params: &mut Params<'_>, name: &str) -> Option<Vec<String>> {
    let sent = params.repeated(name);
    if sent.is_empty() {
        return None;
    }
    let bare = |text: &str| text.trim().trim_matches(['"', '\'']).to_owned();
    let list = sent.iter().flat_map(|value| {
        let value = value.trim();
        let inside = value.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(value);
        inside.split(',').map(bare)
    });
    Some(list.filter(|item| !item.is_empty()).collect())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Emptiness {
    Allowed,
    Refused,
}

fn stage_list(params: &mut Params<'_>, name: &str, emptiness: Emptiness) -> Option<Vec<i64>> {
    let items = items(params, name)?;
    if items.is_empty() && emptiness == Emptiness::Refused {
        params.fault(
            name,
            "value_error",
            "no stage is named; name at least one, or leave this parameter out for all of them",
        );
    }
    let mut stages = Vec::with_capacity(items.len());
    for item in items {
        match item.parse() {
            Ok(stage) => stages.push(stage),
            Err(_) => params.fault(name, "int_parsing", format!("{item:?} is not the number of a stage")),
        }
    }
    Some(stages)
}

/// Which rows of a hypnogram.
#[derive(Debug)]
pub struct StagesQuery {
    cycles: CyclesQuery,
    merge_overlapping: bool,
    merge_contiguous: bool,
}

impl FromParams for StagesQuery {
    fn from_params(params: &mut Params<'_>) -> Option<Self> {
        let merge_overlapping = params.flag("merge_overlapping").unwrap_or(true);
        let merge_contiguous = params.flag("merge_contiguous").unwrap_or(true);
        Some(Self {
            cycles: CyclesQuery::from_params(params)?,
            merge_overlapping,
            merge_contiguous,
        })
    }
}

/// Which totals.
#[derive(Debug)]
pub struct AggregateQuery {
    cycles: CyclesQuery,
    mode: Mode,
    period: Truncation,
    functions: Vec<Function>,
    zone: Zone,
}

impl FromParams for AggregateQuery {
    fn from_params(params: &mut Params<'_>) -> Option<Self> {
        let mode = params.choice("mode").unwrap_or_default();
        let period = params.text("period").map(|text| Truncation::parse(&text));
        let period = period.unwrap_or(Ok(Truncation::DAYS)).map_err(|error| {
            params.fault("period", "value_error", error.to_string());
        });
        let functions = functions(params);
        let zone = zone(params);
        let cycles = CyclesQuery::from_params(params);
        Some(Self {
            cycles: cycles?,
            mode,
            period: period.ok()?,
            functions,
            zone,
        })
    }
}

fn functions(params: &mut Params<'_>) -> Vec<Function> {
    const NAME: &str = "agg_functions";
    let Some(names) = items(params, NAME) else {
        return vec![Function::Sum];
    };
    if names.is_empty() {
        params.fault(
            NAME,
            "value_error",
            "no function is named; use some of sum, avg, min, max, or leave this parameter out for sum",
        );
    }
    let mut functions = Vec::with_capacity(names.len());
    for name in names {
        match name.parse() {
            Ok(function) if functions.contains(&function) => {}
            Ok(function) => functions.push(function),
            Err(error) => params.fault(NAME, "enum", format!("{error}")),
        }
    }
    functions
}

fn zone(params: &mut Params<'_>) -> Zone {
    let Some(name) = params.text("tz") else { return Zone::UTC };
    Zone::parse(&name).unwrap_or_else(|| {
        params.fault(
            "tz",
            "value_error",
            format!("unknown time zone {name:?}; use an IANA name such as UTC or America/New_York"),
        );
        Zone::UTC
    })
}

/// Stages of sleep on which no two sources disagree, with the number of their cycle.
#[utoipa::path(get, path = "/data/v0/{svc_userid}/sleep_stages", tag = "sleep",
    params(("svc_userid" = String, Path), ("start_time" = String, Query), ("end_time" = String, Query), ("output" = OutputMethod, Query),
        ("cycle_gap" = Option<String>, Query, description = "Time without sleep that parts two cycles, ISO 8601 or short: PT2H, 90m"),
        ("stages" = Option<Vec<i64>>, Query, description = "Stages to show; all when absent"),
        ("gap_stages" = Option<Vec<i64>>, Query, description = "Stages that count as time without sleep"),
        ("clip_to_range" = Option<bool>, Query), ("merge_overlapping" = Option<bool>, Query), ("merge_contiguous" = Option<bool>, Query)),
    responses((status = 200, description = "Rows of a hypnogram"), (status = 403), (status = 422)))]
pub async fn sleep_stages(
    State(app): State<Shared>,
    reader: Reader,
    Owner(owner): Owner,
    Checked(query): Checked<StagesQuery>,
    RawQuery(question): RawQuery,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let asked = Asked::new(&app, &reader, owner, &query.cycles, "sleep_stages", question).await?;
    let spec = StagesSpec {
        cycles: asked.cycles(&query.cycles)?,
        merge_overlapping: query.merge_overlapping,
        merge_contiguous: query.merge_contiguous,
    };
    asked.answer(Question::Stages(spec), query.cycles.output, &headers).await
}

/// Sleep cycles: nights and naps, each in one row.
#[utoipa::path(get, path = "/data/v0/{svc_userid}/sleep_cycles", tag = "sleep",
    params(("svc_userid" = String, Path), ("start_time" = String, Query), ("end_time" = String, Query), ("output" = OutputMethod, Query),
        ("cycle_gap" = Option<String>, Query, description = "Time without sleep that parts two cycles, ISO 8601 or short: PT2H, 90m"),
        ("stages" = Option<Vec<i64>>, Query, description = "Stages to show; all when absent"),
        ("gap_stages" = Option<Vec<i64>>, Query, description = "Stages that count as time without sleep"),
        ("clip_to_range" = Option<bool>, Query)),
    responses((status = 200, description = "Cycles"), (status = 403), (status = 422)))]
pub async fn sleep_cycles(
    State(app): State<Shared>,
    reader: Reader,
    Owner(owner): Owner,
    Checked(query): Checked<CyclesQuery>,
    RawQuery(question): RawQuery,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let asked = Asked::new(&app, &reader, owner, &query, "sleep_cycles", question).await?;
    let spec = asked.cycles(&query)?;
    asked.answer(Question::Cycles(spec), query.output, &headers).await
}

/// How long each stage lasted in each period.
#[utoipa::path(get, path = "/data/v0/{svc_userid}/sleep_agg", tag = "sleep",
    params(("svc_userid" = String, Path), ("start_time" = String, Query), ("end_time" = String, Query), ("output" = OutputMethod, Query),
        ("cycle_gap" = Option<String>, Query, description = "Time without sleep that parts two cycles, ISO 8601 or short: PT2H, 90m"),
        ("stages" = Option<Vec<i64>>, Query, description = "Stages to show; all when absent"),
        ("gap_stages" = Option<Vec<i64>>, Query, description = "Stages that count as time without sleep"),
        ("clip_to_range" = Option<bool>, Query),
        ("mode" = Option<String>, Query, description = "To which period a cycle belongs: start, end (default), or split at the boundaries"),
        ("period" = Option<String>, Query, description = "Length of a period, and where it starts: 1d (default), 1w, 1mo, 1d@12h"),
        ("agg_functions" = Option<Vec<String>>, Query, description = "Some of sum (default), avg, min, max"),
        ("tz" = Option<String>, Query, description = "IANA zone of the periods; UTC when absent")),
    responses((status = 200, description = "Totals"), (status = 403), (status = 422)))]
pub async fn sleep_agg(
    State(app): State<Shared>,
    reader: Reader,
    Owner(owner): Owner,
    Checked(query): Checked<AggregateQuery>,
    RawQuery(question): RawQuery,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let asked = Asked::new(&app, &reader, owner, &query.cycles, "sleep_agg", question).await?;
    let spec = AggregateSpec {
        cycles: asked.cycles(&query.cycles)?,
        mode: query.mode,
        period: query.period,
        zone: query.zone,
        functions: query.functions,
    };
    asked.answer(Question::Aggregate(spec), query.cycles.output, &headers).await
}

/// What the stages of sleep mean.
#[utoipa::path(get, path = "/data/v0/{svc_userid}/sleep_stage_metadata", tag = "sleep", params(("svc_userid" = String, Path)),
    responses((status = 200, description = "The table of stages", body = Vec<Object>), (status = 403)))]
pub async fn sleep_stage_metadata(
    State(app): State<Shared>,
    reader: Reader,
    Owner(owner): Owner,
    _query: Checked<NoParams>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let always = TimeRange::new(Instant::MIN, Instant::MAX);
    let always = always.ok_or_else(|| ApiError::internal("time runs backwards"))?;
    let _permit = app.grants.windows(&reader, owner, &TypeId::new(SLEEP_STAGE), always).await?;
    listing(&headers, &app.types.registry().sleep_stages())
}

/// A question about somebody's sleep that may be asked.
struct Asked<'a> {
    app: &'a App,
    owner: PersonId,
    own: bool,
    clip: bool,
    permit: Readable,
    stages: Arc<StageTable>,
    /// What was asked, as far as it shapes the answer.
    text: String,
    begun: Moment,
}

impl<'a> Asked<'a> {
    async fn new(
        app: &'a App,
        reader: &Reader,
        owner: PersonId,
        query: &CyclesQuery,
        route: &str,
        question: Option<String>,
    ) -> Result<Self, ApiError> {
        let begun = Moment::now();
        let own = reader.person() == owner;
        // Beyond what was asked for, another person's sleep is nobody's business.
        let clip = query.clip || !own || query.range.is_empty();
        let range = if clip { query.range } else { around(query.range) };
        let permit = app.grants.windows(reader, owner, &TypeId::new(SLEEP_STAGE), range).await?;
        let text = format!("{owner} {route} {} {own} {:?}", question.unwrap_or_default(), permit.windows());
        Ok(Self {
            app,
            owner,
            own,
            clip,
            permit,
            stages: Arc::new(StageTable::new(app.types.registry().sleep_stages())),
            text,
            begun,
        })
    }

    fn cycles(&self, query: &CyclesQuery) -> Result<CyclesSpec, ApiError> {
        let set = |name: &str, stages: &[i64]| match stages.iter().find(|stage| self.stages.get(**stage).is_none()) {
            Some(unknown) => Err(invalid(
                ["query", name],
                format!("there is no stage {unknown}; use some of {}", self.stages.described()),
            )),
            None => Ok(stages.iter().copied().collect::<StageSet>()),
        };
        Ok(CyclesSpec {
            range: query.range,
            clip: self.clip,
            gap: query.gap,
            gap_stages: set("gap_stages", &query.gap_stages)?,
            shown: query.stages.as_deref().map(|stages| set("stages", stages)).transpose()?,
        })
    }

    async fn answer(self, question: Question, output: OutputMethod, headers: &HeaderMap) -> Result<Response, ApiError> {
        let app = self.app;
        let named = app.types.find(self.owner, SLEEP_STAGE).await?;
        let source = Source {
            partition: named.data_type.id.clone(),
            data_type: named.data_type,
        };
        let names = match &question {
            Question::Stages(spec) if self.own && !spec.merge_contiguous => Some(Arc::new(self.source_names().await?)),
            _ => None,
        };
        let ticket = app.queries.enter().await?;
        let prepared = app.archive.sleep(&self.permit, &source, &self.stages, question, names).await?;
        let request = Request {
            app,
            headers,
            question: &self.text,
            begun: self.begun,
            ticket,
        };
        answer(request, prepared, output).await
    }

    /// The ids under which `data_sources` lists the sources.
    async fn source_names(&self) -> Result<SourceNames, ApiError> {
        let known = self.app.catalog.sources_of(self.owner).await?;
        Ok(known.into_iter().map(|source| (source.key, source.id)).collect())
    }
}

fn around(range: TimeRange) -> TimeRange {
    let start = Instant::from_micros(range.start().micros().saturating_sub(LOOK_AROUND));
    let end = Instant::from_micros(range.end().micros().saturating_add(LOOK_AROUND));
    TimeRange::new(start, end).unwrap_or(range)
}
