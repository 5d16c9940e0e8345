//! Reads the data of a report, by the same questions as the routes use.

use std::sync::Arc;

use datafusion::arrow::array::{Array as _, AsArray as _, PrimitiveArray, RecordBatch};
use datafusion::arrow::datatypes::{Float64Type, Int64Type, TimestampMicrosecondType};
use datafusion::common::{DataFusionError, internal_datafusion_err};
use futures::StreamExt as _;
use uuid::Uuid;

use crate::model::geo::Position;
use crate::model::ids::PersonId;
use crate::model::permit::ReadPermit;
use crate::model::registry::{MetricTraits, TypeId};
use crate::model::time::Instant;
use crate::query::engine::deadline_passed;
use crate::query::ground::events::{FIRST_KNOWN, FIRST_UNKNOWN};
use crate::query::places::Granted;
use crate::query::places::raw::RawSpec;
use crate::query::places::visits::VISIT_COLUMNS;
use crate::query::series::{AskedSeries, Gaps, Measure, SeriesSpec};
use crate::query::shape::IdForm;
use crate::query::sleep::StageTable;
use crate::query::sleep::spec::{CyclesSpec, Question, StageSet};
use crate::query::{Prepared, QueryError, Questions, ReadState, TypedPartition};

use super::days::{Daily, Days};
use super::material::{Material, Targets};
use super::metric::Metric;
use super::new_place::{self, VisitedPlace, VisitedPlaces};
use super::nights::{self, CYCLE_GAP, Cycle, Nights};
use super::report::Report;

/// A metric that may be read on all days of the report.
pub struct AskedMetric<Authority> {
    pub permit: ReadPermit<Authority>,
    pub partition: TypedPartition,
    pub traits: MetricTraits,
    /// Sources that the person prefers to all others, best first.
    pub chosen_sources: Vec<Uuid>,
    /// For stages of sleep: the meaning of their values.
    pub stages: Option<Arc<StageTable>>,
}

/// Sleep that may be read from [`super::nights_read`] on.
pub struct SleepSource<Authority> {
    pub granted: Granted<Authority>,
    pub stages: Arc<StageTable>,
}

/// The data that a report may read.
pub struct InsightSources<Authority> {
    pub person: PersonId,
    pub days: Days,
    pub metrics: Vec<AskedMetric<Authority>>,
    pub sleep: Option<SleepSource<Authority>>,
    /// Visits in [`super::visits_read`], and in [`super::updates_read`] the updates from which visits are
    /// derived where there are none.
    pub places: Option<(Granted<Authority>, Granted<Authority>)>,
    pub targets: Targets,
}

impl<Authority> Questions<Authority> {
    /// The states of all that the report is computed from.
    pub async fn states_of_insights(
        &self,
        asked: &InsightSources<Authority>,
    ) -> Result<Vec<ReadState>, QueryError> {
        let metrics = asked.metrics.iter();
        let metrics = metrics.map(|metric| (&metric.permit, &metric.partition));
        let sleep = asked.sleep.iter().map(|sleep| &sleep.granted);
        let places = asked
            .places
            .iter()
            .flat_map(|(visits, updates)| [visits, updates]);
        let others = sleep
            .chain(places)
            .map(|granted| (&granted.permit, &granted.partition));
        let mut read: Vec<(&ReadPermit<Authority>, &TypedPartition)> = metrics.chain(others).collect();
        // Stages of sleep are looked at as a metric and as nights.
        read.sort_by(|(_, one), (_, other)| one.id.cmp(&other.id));
        read.dedup_by(|(_, one), (_, other)| one.id == other.id);
        let ids: Vec<TypeId> = read.iter().map(|(_, partition)| partition.id.clone()).collect();
        let snapshots = self.snapshots.get(asked.person, &ids).await?;
        let states = read
            .iter()
            .zip(&snapshots)
            .map(|(&(permit, partition), snapshot)| ReadState::of(permit, partition, snapshot));
        Ok(states.collect())
    }

    /// The report as of a moment.
    pub async fn insights(&self, asked: InsightSources<Authority>) -> Result<Report, QueryError> {
        let gathered = Box::pin(self.gathered(asked));
        self.engine.in_time(gathered).await
    }

    async fn gathered(&self, asked: InsightSources<Authority>) -> Result<Report, QueryError> {
        let mut metrics = Vec::with_capacity(asked.metrics.len());
        for asked_metric in &asked.metrics {
            let metric = Metric {
                id: asked_metric.partition.data_type.id.to_string(),
                unit: asked_metric.traits.unit.clone().unwrap_or_default(),
                kind: asked_metric.traits.kind,
            };
            metrics.push((metric, self.daily(&asked.days, asked_metric).await?));
        }
        let nights = match &asked.sleep {
            Some(sleep) => Some(self.nights(&asked.days, sleep).await?),
            None => None,
        };
        let visited_places = match &asked.places {
            Some((visits, updates)) => Some(self.visited_places(&asked.days, visits, updates).await?),
            None => None,
        };
        let material = Material {
            days: asked.days,
            metrics,
            nights,
            visited_places,
            targets: asked.targets,
        };
        Ok(material.report(asked.person))
    }

    async fn daily(&self, days: &Days, metric: &AskedMetric<Authority>) -> Result<Daily, QueryError> {
        let grid = days
            .grid()
            .ok_or_else(|| internal_datafusion_err!("a report without days"))?;
        let spec = SeriesSpec {
            column: "value".to_owned(),
            grid,
            zone: *days.zone(),
            measure: Measure::of(&metric.traits),
            calculations: Vec::new(),
            gaps: Gaps::default(),
            chosen_sources: metric.chosen_sources.clone(),
        };
        let asked = AskedSeries {
            permit: &metric.permit,
            partition: &metric.partition,
            conditions: &[],
            spec,
            stages: metric.stages.clone(),
        };
        let mut values = Vec::with_capacity(days.today() + 1);
        self.read_through(self.series(asked).await?, |batch| {
            let column = batch.column_by_name("value").ok_or_else(|| lacks("value"))?;
            let column = column.as_primitive::<Float64Type>();
            values.extend(column.iter().map(|value| value.map(settled)));
            Ok(())
        })
        .await?;
        Ok(Daily(values))
    }

    async fn nights(&self, days: &Days, sleep: &SleepSource<Authority>) -> Result<Nights, QueryError> {
        let range = nights::reads(days).ok_or_else(|| internal_datafusion_err!("a report without nights"))?;
        let spec = CyclesSpec {
            range,
            clip: true,
            gap: CYCLE_GAP,
            gap_stages: StageSet::default(),
            shown: None,
            nights: None,
        };
        let Granted { permit, partition } = &sleep.granted;
        let prepared = self
            .sleep(permit, partition, &sleep.stages, Question::Cycles(spec), None)
            .await?;
        let mut cycles = Vec::new();
        self.read_through(prepared, |batch| {
            let (starts, ends) = (moments(batch, "start_time")?, moments(batch, "end_time")?);
            let in_bed_ends = moments(batch, "in_bed_end_time")?;
            let asleep = batch
                .column_by_name("total_time_asleep_ms")
                .and_then(|column| column.as_primitive_opt::<Int64Type>())
                .ok_or_else(|| lacks("total_time_asleep_ms"))?;
            let totals = batch
                .column_by_name("sleep_stage_totals")
                .and_then(|column| column.as_list_opt::<i32>())
                .ok_or_else(|| lacks("sleep_stage_totals"))?;
            for row in 0..batch.num_rows() {
                let totals = totals.value(row);
                let shown = totals
                    .as_struct_opt()
                    .and_then(|totals| totals.column_by_name("sleep_stage"))
                    .and_then(|column| column.as_primitive_opt::<Int64Type>())
                    .ok_or_else(|| lacks("sleep_stage"))?;
                cycles.push(Cycle {
                    start: Instant::from_micros(starts.value(row)),
                    end: Instant::from_micros(ends.value(row)),
                    in_bed_end: Instant::from_micros(in_bed_ends.value(row)),
                    asleep: asleep.value(row) * 1_000,
                    is_only_in_bed: shown.values().iter().all(|stage| sleep.stages.is_in_bed(*stage)),
                });
            }
            Ok(())
        })
        .await?;
        Ok(Nights::of(days, &cycles))
    }

    async fn visited_places(
        &self,
        days: &Days,
        visits: &Granted<Authority>,
        updates: &Granted<Authority>,
    ) -> Result<VisitedPlaces, QueryError> {
        let range = new_place::visits_read(days)
            .ok_or_else(|| internal_datafusion_err!("a report without places"))?;
        let spec = RawSpec {
            columns: VISIT_COLUMNS.to_vec(),
            only: None,
            ids: IdForm::Bytes,
        };
        let mut prepared = self.raw(visits, &spec).await?;
        let are_derived = self.location_bounds(visits).await?.records == 0;
        if are_derived {
            prepared = self.stays(updates, range, &prepared.schema, spec.ids).await?;
        }
        let mut stays = Vec::new();
        self.read_through(prepared, |batch| {
            let (arrivals, departures) = (moments(batch, "arrival_date")?, moments(batch, "departure_date")?);
            let numbers = |name: &str| {
                batch
                    .column_by_name(name)
                    .and_then(|column| column.as_primitive_opt::<Float64Type>().cloned())
                    .ok_or_else(|| lacks(name))
            };
            let (latitudes, longitudes) = (numbers("latitude_degrees")?, numbers("longitude_degrees")?);
            let accuracies = numbers("horizontal_accuracy_meters")?;
            for row in 0..batch.num_rows() {
                let (from, to) = (arrivals.value(row), departures.value(row));
                let position = Position::new(latitudes.value(row), longitudes.value(row));
                let accuracy = accuracies.is_valid(row).then(|| accuracies.value(row));
                let is_known = FIRST_KNOWN <= from && to < FIRST_UNKNOWN && from <= to;
                let is_place =
                    latitudes.is_valid(row) && longitudes.is_valid(row) && position.is_usable(accuracy);
                if is_known && is_place {
                    stays.push(VisitedPlace {
                        from: Instant::from_micros(from),
                        to: Instant::from_micros(to),
                        position,
                    });
                }
            }
            Ok(())
        })
        .await?;
        let days = days.clone();
        let looking = async move { Ok(VisitedPlaces::of(&days, stays, are_derived).await) };
        let looking = futures::stream::once(looking);
        let mut looked = Box::pin(self.engine.drive(looking, deadline_passed));
        let places = looked.next().await.transpose()?;
        Ok(places.ok_or_else(|| internal_datafusion_err!("nobody looked at the places of a report"))?)
    }

    async fn read_through(
        &self,
        prepared: Prepared,
        mut take: impl FnMut(&RecordBatch) -> Result<(), DataFusionError>,
    ) -> Result<(), QueryError> {
        let mut rows = Box::pin(
            self.engine
                .drive(self.engine.start(prepared.plan), deadline_passed),
        );
        while let Some(batch) = rows.next().await.transpose()? {
            take(&batch)?;
        }
        Ok(())
    }
}

/// Drops the last digits, which depend on the order in which amounts were added: equal data must give an
/// equal report.
fn settled(value: f64) -> f64 {
    format!("{value:.11e}").parse().unwrap_or(value)
}

fn moments<'a>(
    batch: &'a RecordBatch,
    name: &str,
) -> Result<&'a PrimitiveArray<TimestampMicrosecondType>, DataFusionError> {
    batch
        .column_by_name(name)
        .and_then(|column| column.as_primitive_opt())
        .ok_or_else(|| lacks(name))
}

fn lacks(name: &str) -> DataFusionError {
    internal_datafusion_err!("rows of a report lack {name}")
}
