//! The table functions of SQL queries: each is planned as its endpoint plans it, about the caller.

use std::sync::Arc;

use datafusion::common::{DataFusionError, Result, plan_err};

use crate::api::data::named_metrics::{series_traits, stages};
use crate::api::data::partitions::partitions_of;
use crate::api::data::sleep::{SLEEP_STAGE, USUAL_GAP, stage_table};
use crate::api::data::whereabouts::LOOK_BACK;
use crate::auth::grants::GrantAuthority;
use crate::model::duration::{SampleRate, Truncation, parse_length};
use crate::model::grid::Grid;
use crate::model::registry::{DataType, RecordClass, TypeId};
use crate::model::time::{Instant, MICROS_PER_SECOND, TimeRange};
use crate::model::zone::Zone;
use crate::people::preferences::Preferences;
use crate::people::types::{ResolvedType, TypesError};
use crate::query::aggregate::{AggregateMeasure, AggregateSpec};
use crate::query::filter::Condition;
use crate::query::places::at_time::AtTimeSpec;
use crate::query::places::series::PlaceSeriesSpec;
use crate::query::places::updates::Updates;
use crate::query::places::{Granted, LocationSource, PLATFORM_UPDATES, PLATFORM_VISITS};
use crate::query::series::{AskedSeries, Counting, Gaps, Measure, SeriesSpec};
use crate::query::shape::IdForm;
use crate::query::sleep::spec::{CyclesSpec, Mode, Question, SleepTotalsSpec, StageSet, StagesSpec};
use crate::query::sql::{Call, Span, outside};
use crate::query::statistic::Statistic;
use crate::query::summary::RecordSummary;
use crate::query::{Order, Prepared, TypedPartition};

use super::holdings::{Readings, Unanswered};
use super::names::resolve_name;

impl Readings {
    pub(super) async fn called(&self, call: &Call) -> Result<Prepared> {
        match call {
            Call::Series {
                metric,
                rate,
                span,
                zone,
            } => self.series(metric, *rate, *span, *zone).await,
            Call::SleepStages(span) => {
                let range = whole(*span)?;
                let question = Question::Stages(StagesSpec {
                    cycles: cycles(range)?,
                    merge_overlapping: true,
                    merge_contiguous: true,
                });
                self.sleep(range, question).await
            }
            Call::SleepCycles(span) => {
                let range = whole(*span)?;
                self.sleep(range, Question::Cycles(cycles(range)?)).await
            }
            Call::SleepAgg { span, period, zone } => self.sleep_totals(*span, *period, *zone).await,
            Call::LocationAt(time) => self.location_at(*time).await,
            Call::LocationUpdates(span) => self.location_updates(*span).await,
            Call::LocationSeries { span, step } => self.location_series(*span, *step).await,
            Call::Agg {
                data_type,
                periods,
                totals,
                span,
                zone,
            } => self.periods(data_type, *periods, totals, *span, *zone).await,
        }
    }

    async fn series(&self, metric: &str, rate: SampleRate, span: Span, zone: Zone) -> Result<Prepared> {
        let (app, reader, owner) = (&self.app, &self.reader, self.reader.person());
        let resolved = self.resolved(metric).await?;
        let traits = series_traits(app, owner, &resolved)
            .await
            .map_err(Unanswered::wrapped)?
            .map_err(|message| wrong("series", &message))?;
        let (partitions, conditions) = partitions_of(app, reader, owner, &resolved, Vec::new())
            .await
            .map_err(Unanswered::wrapped)?;
        let Some(partition) = partitions.first() else {
            return plan_err!("'{metric}' has no series");
        };
        let range = self
            .closed(span, &resolved.data_type, &partitions, &conditions)
            .await?;
        let grid = match rate {
            SampleRate::Width(micros) => Grid::uniform(range, micros),
            SampleRate::Calendar(truncation) => truncation.grid(&zone, range),
        };
        let mut spec = SeriesSpec {
            column: traits.value_column.clone(),
            grid,
            zone,
            measure: Measure::of(&traits),
            calculations: Vec::new(),
            gaps: Gaps::default(),
            chosen_sources: Vec::new(),
        };
        self.refuse_too_many("series", spec.cells())?;
        if spec.measure.counting() == Counting::BestSource {
            let preferences = Preferences::of(&app.catalog, owner).await;
            let preferences = preferences.map_err(Unanswered::wrapped)?;
            spec.chosen_sources = preferences.chosen_sources(&resolved.data_type.id);
        }
        let granted = self.granted(&resolved.data_type.id, range, &resolved).await?;
        let asked = AskedSeries {
            permit: &granted.permit,
            partition,
            conditions: &conditions,
            spec,
            stages: stages(app, &traits),
        };
        app.questions.series(asked).await.map_err(outside)
    }

    async fn sleep_totals(&self, span: Span, period: Truncation, zone: Zone) -> Result<Prepared> {
        let stage = self.resolved(SLEEP_STAGE).await?;
        let partition = TypedPartition::of(Arc::clone(&stage.data_type));
        let range = self.closed(span, &stage.data_type, &[partition], &[]).await?;
        self.refuse_too_many("sleep_agg", period.grid(&zone, range).len())?;
        let question = Question::Aggregate(SleepTotalsSpec {
            cycles: cycles(range)?,
            mode: Mode::End,
            period,
            zone,
            functions: vec![Statistic::Sum],
            most_cells: self.app.settings.cell_limit,
        });
        self.sleep(range, question).await
    }

    async fn sleep(&self, range: TimeRange, question: Question) -> Result<Prepared> {
        let app = &self.app;
        let resolved = self.resolved(SLEEP_STAGE).await?;
        let Granted { permit, partition } = self.granted(&TypeId::new(SLEEP_STAGE), range, &resolved).await?;
        let stages = stage_table(app);
        let prepared = app
            .questions
            .sleep(&permit, &partition, &stages, question, None)
            .await;
        prepared.map_err(outside)
    }

    async fn location_at(&self, time: Instant) -> Result<Prepared> {
        let Some(spec) = AtTimeSpec::new(time, LOOK_BACK * MICROS_PER_SECOND, false, IdForm::Text) else {
            return plan_err!("'location_at': there is no time after this");
        };
        let (updates, visits) = self.places(spec.reads(), spec.reads_visits()).await?;
        let prepared = self
            .app
            .questions
            .location_at(&updates, Some(&visits), spec)
            .await;
        prepared.map_err(outside)
    }

    async fn location_series(&self, span: Span, step: i64) -> Result<Prepared> {
        let updates = self.resolved(PLATFORM_UPDATES).await?;
        let partition = TypedPartition::of(Arc::clone(&updates.data_type));
        let spec = PlaceSeriesSpec {
            range: self.closed(span, &updates.data_type, &[partition], &[]).await?,
            sample_rate: step,
            look_back: LOOK_BACK * MICROS_PER_SECOND,
            change_meters: None,
        };
        self.refuse_too_many("location_series", spec.slots())?;
        let (updates, visits) = self.places(spec.reads(), spec.reads_visits()).await?;
        let prepared = self
            .app
            .questions
            .location_series(&updates, Some(&visits), &spec)
            .await;
        prepared.map_err(outside)
    }

    async fn location_updates(&self, span: Span) -> Result<Prepared> {
        let range = whole(span)?;
        let (updates, _) = self.places(range, range).await?;
        let prepared = self.app.questions.location_updates(&updates, IdForm::Text).await;
        prepared.map_err(outside)
    }

    async fn periods(
        &self,
        name: &str,
        periods: Truncation,
        computed: &[Statistic],
        span: Span,
        zone: Zone,
    ) -> Result<Prepared> {
        let (app, reader, owner) = (&self.app, &self.reader, self.reader.person());
        let resolved = self.resolved(name).await?;
        let (id, class) = (&resolved.data_type.id, resolved.data_type.class);
        if !computed.is_empty() && class != RecordClass::Metric {
            return plan_err!("'agg': {id} is not a metric; leave the function out to count its records");
        }
        let (partitions, conditions) = partitions_of(app, reader, owner, &resolved, Vec::new())
            .await
            .map_err(Unanswered::wrapped)?;
        let range = self
            .closed(span, &resolved.data_type, &partitions, &conditions)
            .await?;
        let mut chosen_sources = Vec::new();
        if computed.contains(&Statistic::Sum) {
            let preferences = Preferences::of(&app.catalog, owner).await;
            let preferences = preferences.map_err(Unanswered::wrapped)?;
            let ids = partitions.iter().map(|partition| &partition.data_type.id);
            chosen_sources.extend(
                ids.map(|id| (id.clone(), preferences.chosen_sources(id)))
                    .filter(|(_, chosen)| !chosen.is_empty()),
            );
        }
        let spec = AggregateSpec {
            conditions,
            range,
            periods,
            zone,
            measure: if computed.is_empty() {
                AggregateMeasure::Count
            } else {
                AggregateMeasure::Values(computed.to_vec())
            },
            group: Vec::new(),
            order: Order::Ascending,
            chosen_sources,
            most_cells: app.settings.cell_limit,
        };
        let granted = self.granted(id, range, &resolved).await?;
        let prepared = app.questions.aggregate(&granted.permit, &partitions, &spec).await;
        prepared.map_err(outside)
    }

    /// The location updates of both partitions, and the visits.
    async fn places(
        &self,
        range: TimeRange,
        visits_in: TimeRange,
    ) -> Result<(Vec<Updates<GrantAuthority>>, Granted<GrantAuthority>)> {
        let mut updates = Vec::with_capacity(LocationSource::ALL.len());
        for source in LocationSource::ALL {
            let resolved = self.resolved(source.updates()).await?;
            let granted = self
                .granted(&TypeId::new(source.updates()), range, &resolved)
                .await?;
            updates.push(Updates { source, granted });
        }
        let resolved = self.resolved(PLATFORM_VISITS).await?;
        let visits = self
            .granted(&TypeId::new(PLATFORM_VISITS), visits_in, &resolved)
            .await?;
        Ok((updates, visits))
    }

    /// The caller's type of that name.
    async fn resolved(&self, name: &str) -> Result<ResolvedType> {
        let (app, reader, owner) = (&self.app, &self.reader, self.reader.person());
        let id = resolve_name(app, reader, owner, name)
            .await
            .map_err(Unanswered::wrapped)?;
        let name = id.as_ref().map_or(name, TypeId::as_str);
        match app.types.find(owner, name).await {
            Ok(resolved) if resolved.data_type.queryable => Ok(resolved),
            Ok(_) => plan_err!("'{name}' cannot be read"),
            Err(error @ TypesError::Unknown { .. }) => {
                plan_err!("'{name}': {error}")
            }
            Err(error) => Err(Unanswered::wrapped(error)),
        }
    }

    /// The permit of the caller to read their own data.
    async fn granted(
        &self,
        id: &TypeId,
        range: TimeRange,
        resolved: &ResolvedType,
    ) -> Result<Granted<GrantAuthority>> {
        let owner = self.reader.person();
        let permit = self.app.grants.windows(&self.reader, owner, id, range).await;
        Ok(Granted {
            permit: permit.map_err(Unanswered::wrapped)?,
            partition: TypedPartition::of(Arc::clone(&resolved.data_type)),
        })
    }

    /// The range with its open ends replaced by those of what is recorded.
    async fn closed(
        &self,
        span: Span,
        data_type: &DataType,
        partitions: &[TypedPartition],
        conditions: &[Condition],
    ) -> Result<TimeRange> {
        let range = match span {
            Span {
                start: Some(start),
                end: Some(end),
            } => (start, end),
            Span { start, end } => {
                let recorded = self.recorded(data_type, partitions, conditions).await?;
                let last = recorded
                    .last_start
                    .map(|start| Instant::from_micros(start.micros() + 1));
                let ends = recorded.last_end.into_iter().chain(last).max();
                let start = start.or(recorded.first_start).or(end).unwrap_or(Instant::MIN);
                (start, end.or(ends).unwrap_or(start).max(start))
            }
        };
        TimeRange::new(range.0, range.1).ok_or_else(inverted)
    }

    async fn recorded(
        &self,
        data_type: &DataType,
        partitions: &[TypedPartition],
        conditions: &[Condition],
    ) -> Result<RecordSummary> {
        let owner = self.reader.person();
        let permit = self
            .app
            .grants
            .windows(&self.reader, owner, &data_type.id, TimeRange::ALWAYS)
            .await
            .map_err(Unanswered::wrapped)?;
        let summary = self.app.questions.summary(&permit, partitions, conditions).await;
        summary.map_err(outside)
    }

    fn refuse_too_many(&self, function: &str, cells: u64) -> Result<()> {
        let limit = self.app.settings.cell_limit;
        if cells <= limit {
            return Ok(());
        }
        plan_err!(
            "'{function}': {cells} cells exceed the limit of {limit}; ask for wider windows or a shorter \
             range"
        )
    }
}

fn inverted() -> DataFusionError {
    DataFusionError::Plan("the start of a range is after its end".to_owned())
}

fn wrong(function: &str, message: &str) -> DataFusionError {
    DataFusionError::Plan(format!("'{function}': {message}"))
}

/// An open end means all of time: cycles are found in whatever there is.
fn whole(span: Span) -> Result<TimeRange> {
    let start = span.start.unwrap_or(TimeRange::ALWAYS.start());
    let end = span.end.unwrap_or(TimeRange::ALWAYS.end());
    TimeRange::new(start, end).ok_or_else(inverted)
}

fn cycles(range: TimeRange) -> Result<CyclesSpec> {
    Ok(CyclesSpec {
        range,
        clip: true,
        gap: parse_length(USUAL_GAP).map_err(|error| wrong("sleep_cycles", &error.to_string()))?,
        gap_stages: StageSet::default(),
        shown: None,
        nights: None,
    })
}
