//! Sleep: stages with conflicts resolved, cycles, and totals by period.

pub mod extended;
mod query;

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;

use crate::api::answer_form::AnswerForm;
use crate::api::app::{App, AppState};
use crate::api::data::asking::Asking;
use crate::api::docs::answers::Rows;
use crate::api::extract::{Checked, Owner};
use crate::api::listed::{ListingQuery, listed_as};
use crate::api::problem::{ApiError, invalid};
use crate::auth::grants::Readable;
use crate::auth::tokens::Reader;
use crate::model::registry::TypeId;
use crate::model::sleep::SleepStage;
use crate::model::time::TimeRange;
use crate::output::{ColumnKind, ListedColumn};
use crate::query::TypedPartition;
use crate::query::partial::WholeBins;
use crate::query::sleep::StageTable;
use crate::query::sleep::spec::{
    CyclesSpec, Question, SleepTotalsSpec, SourceNames, StageSet, StagesSpec, around,
};

pub(super) use query::USUAL_GAP;
use query::{AggregateQuery, CyclesQuery, StagesQuery};

/// The metric whose samples are stages.
pub(super) const SLEEP_STAGE: &str = "SleepStage";
/// The column with the beginning of a total's period.
const PERIOD: &str = "period_start_time";

/// Stages of sleep with conflicts between sources resolved, each with the number of its cycle.
#[utoipa::path(get, path = "/data/v0/{svc_userid}/sleep_stages", tag = "sleep",
    params(("svc_userid" = Uuid, Path), Checked<StagesQuery>),
    responses(Rows, (status = 403), (status = 422)))]
pub async fn sleep_stages(
    State(app): State<AppState>,
    asking: Asking,
    Checked(query): Checked<StagesQuery>,
) -> Result<Response, ApiError> {
    let permitted = PermittedSleepQuery::new(&app, &asking, &query.cycles).await?;
    let spec = StagesSpec {
        cycles: permitted.cycles(&query.cycles)?,
        merge_overlapping: query.merge_overlapping,
        merge_contiguous: query.merge_contiguous,
    };
    permitted
        .answer(Question::Stages(spec), None, &query.cycles.form)
        .await
}

/// Sleep cycles: nights and naps, each in one row.
#[utoipa::path(get, path = "/data/v0/{svc_userid}/sleep_cycles", tag = "sleep",
    params(("svc_userid" = Uuid, Path), Checked<CyclesQuery>),
    responses(Rows, (status = 403), (status = 422)))]
pub async fn sleep_cycles(
    State(app): State<AppState>,
    asking: Asking,
    Checked(query): Checked<CyclesQuery>,
) -> Result<Response, ApiError> {
    let permitted = PermittedSleepQuery::new(&app, &asking, &query).await?;
    let spec = permitted.cycles(&query)?;
    permitted.answer(Question::Cycles(spec), None, &query.form).await
}

/// How long each stage lasted in each period.
#[utoipa::path(get, path = "/data/v0/{svc_userid}/sleep_agg", tag = "sleep",
    params(("svc_userid" = Uuid, Path), Checked<AggregateQuery>),
    responses(Rows, (status = 403), (status = 422)))]
pub async fn sleep_agg(
    State(app): State<AppState>,
    asking: Asking,
    Checked(query): Checked<AggregateQuery>,
) -> Result<Response, ApiError> {
    let permitted = PermittedSleepQuery::new(&app, &asking, &query.cycles).await?;
    let spec = SleepTotalsSpec {
        cycles: permitted.cycles(&query.cycles)?,
        mode: query.mode,
        period: query.period,
        zone: query.zone,
        functions: query.functions,
        most_cells: app.settings.cell_limit,
    };
    // What begins before or ends after the time in which sleep is looked for is counted when it is read.
    spec.refuse_too_many(spec.periods_in(spec.cycles.reads()))?;
    let grid = spec.period.grid(&spec.zone, query.cycles.range);
    let whole = query.partial.then(|| {
        let ends = spec.period.trunc(&spec.zone, query.cycles.range.end()) == query.cycles.range.end();
        WholeBins::of(
            &grid,
            ends,
            &permitted.permit.windows().within(query.cycles.range),
        )
    });
    permitted
        .answer(Question::Aggregate(spec), whole, &query.cycles.form)
        .await
}

/// The meanings of the stages of sleep.
pub(super) fn stage_table(app: &App) -> Arc<StageTable> {
    Arc::new(StageTable::new(app.types.registry().sleep_stages()))
}

const STAGES: [ListedColumn; 7] = [
    ListedColumn::new("stage", ColumnKind::Whole),
    ListedColumn::new("name", ColumnKind::Text),
    ListedColumn::new("label", ColumnKind::Text),
    ListedColumn::new("depth", ColumnKind::Whole),
    ListedColumn::new("is_asleep", ColumnKind::Flag),
    ListedColumn::new("is_in_bed", ColumnKind::Flag),
    ListedColumn::new("priority", ColumnKind::Whole),
];

/// What the stages of sleep mean.
#[utoipa::path(get, path = "/data/v0/{svc_userid}/sleep_stage_metadata", tag = "sleep",
    params(("svc_userid" = Uuid, Path), Checked<ListingQuery>),
    responses((status = 200, description = "The table of stages", body = [SleepStage]), (status = 403),
        (status = 422)))]
pub async fn sleep_stage_metadata(
    State(app): State<AppState>,
    reader: Reader,
    Owner(owner): Owner,
    Checked(query): Checked<ListingQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let _permit = app
        .grants
        .windows(&reader, owner, &TypeId::new(SLEEP_STAGE), TimeRange::ALWAYS)
        .await?;
    let stages = app.types.registry().sleep_stages();
    listed_as(&app, &headers, query.form, &STAGES, stages).await
}

/// A question about somebody's sleep, with its permit.
struct PermittedSleepQuery<'a> {
    app: &'a App,
    asking: &'a Asking,
    own: bool,
    clip: bool,
    permit: Readable,
    stages: Arc<StageTable>,
    /// What shapes the answer and is not part of the address.
    etag_parts: String,
}

impl<'a> PermittedSleepQuery<'a> {
    async fn new(app: &'a App, asking: &'a Asking, query: &CyclesQuery) -> Result<Self, ApiError> {
        let (reader, owner) = (&asking.request.reader, asking.owner);
        let own = reader.owns(owner);
        // Another person's sleep beyond the asked range must not be shown.
        let clip = query.clip || !own || query.range.is_empty();
        let range = if clip { query.range } else { around(query.range) };
        let permit = app
            .grants
            .windows(reader, owner, &TypeId::new(SLEEP_STAGE), range)
            .await?;
        let etag_parts = format!("{own} {:?}", permit.windows());
        Ok(Self {
            app,
            asking,
            own,
            clip,
            permit,
            stages: stage_table(app),
            etag_parts,
        })
    }

    fn cycles(&self, query: &CyclesQuery) -> Result<CyclesSpec, ApiError> {
        let set =
            |name: &str, stages: &[i64]| match stages.iter().find(|stage| self.stages.get(**stage).is_none())
            {
                Some(unknown) => Err(invalid(
                    ["query", name],
                    format!(
                        "there is no stage {unknown}; use some of {}",
                        self.stages.described()
                    ),
                )),
                None => Ok(stages.iter().copied().collect::<StageSet>()),
            };
        Ok(CyclesSpec {
            range: query.range,
            clip: self.clip,
            gap: query.gap,
            gap_stages: set("gap_stages", &query.gap_stages)?,
            shown: query
                .stages
                .as_deref()
                .map(|stages| set("stages", stages))
                .transpose()?,
            nights: query.nights,
        })
    }

    /// The partition of the stages.
    async fn partition(&self) -> Result<TypedPartition, ApiError> {
        let resolved = self.app.types.find(self.asking.owner, SLEEP_STAGE).await?;
        Ok(TypedPartition::of(resolved.data_type))
    }

    async fn answer(
        self,
        question: Question,
        whole: Option<WholeBins>,
        form: &AnswerForm,
    ) -> Result<Response, ApiError> {
        let app = self.app;
        let partition = self.partition().await?;
        let names = match &question {
            Question::Stages(spec) if self.own && !spec.merge_contiguous => {
                Some(Arc::new(self.source_names().await?))
            }
            _ => None,
        };
        let slot = self.asking.request.admitted(app).await?;
        let prepared = app
            .questions
            .sleep(&self.permit, &partition, &self.stages, question, names)
            .await?
            .marking(whole, PERIOD)?;
        self.asking
            .answer(app, slot, prepared, form, &self.etag_parts)
            .await
    }

    /// The ids under which `data_sources` lists the sources.
    async fn source_names(&self) -> Result<SourceNames, ApiError> {
        let known = self.app.catalog.sources_of(self.asking.owner).await?;
        Ok(known.into_iter().map(|source| (source.key, source.id)).collect())
    }
}
