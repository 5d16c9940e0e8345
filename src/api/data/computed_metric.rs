//! Metrics as their series are to be computed, several of them alike: from where, of what, and shown in which
//! unit.
//!
//! Knows types, permits and units; knows nothing of how series are put together, nor of answers.

use std::sync::Arc;

use crate::api::app::App;
use crate::api::problem::{ApiError, invalid};
use crate::auth::grants::{GrantAuthority, Readable};
use crate::auth::tokens::Reader;
use crate::model::grid::Grid;
use crate::model::ids::PersonId;
use crate::model::registry::{MetricKind, MetricTraits, TypeId};
use crate::model::time::TimeRange;
use crate::model::zone::Zone;
use crate::people::preferences::Preferences;
use crate::query::TypedPartition;
use crate::query::filter::Condition;
use crate::query::series::{AskedSeries, Calculation, Gaps, Measure, SeriesSpec};
use crate::query::sleep::StageTable;
use crate::query::units::{DisplayUnit, UnitRole};

use super::named_metrics::{NamedMetric, stages};
use super::partitions::metric_partition;
use super::units::{RequestedUnits, UnitHindrance, held_by};

/// What is computed of all metrics of one request.
pub(super) struct Computation<'a> {
    pub(super) app: &'a App,
    pub(super) reader: &'a Reader,
    pub(super) owner: PersonId,
    pub(super) preferences: Preferences,
    pub(super) grid: &'a Grid,
    pub(super) zone: Zone,
    pub(super) calculations: &'a [Calculation],
    /// The parameter that the calculations are given in.
    pub(super) parameter: &'static str,
    pub(super) gaps: Gaps,
    pub(super) units: RequestedUnits,
}

/// One metric, as it is to be computed.
pub(super) struct ComputedMetric {
    partition: TypedPartition,
    conditions: Vec<Condition>,
    pub(super) spec: SeriesSpec,
    stages: Option<Arc<StageTable>>,
    /// The unit that its values are shown in; `None` if it has no unit.
    pub(super) unit: Option<DisplayUnit>,
}

impl Computation<'_> {
    pub(super) async fn of_each(&self, metrics: Vec<NamedMetric>) -> Result<Vec<ComputedMetric>, ApiError> {
        let mut computed = Vec::with_capacity(metrics.len());
        for metric in metrics {
            computed.push(self.of(metric).await?);
        }
        Ok(computed)
    }

    async fn of(&self, metric: NamedMetric) -> Result<ComputedMetric, ApiError> {
        let NamedMetric {
            resolved,
            traits,
            column,
        } = metric;
        let named = resolved.id();
        refuse_calculations(self.calculations, &traits, named.as_str(), self.parameter)?;
        let (partition, conditions) = metric_partition(self.app, self.reader, self.owner, &resolved).await?;
        let spec = SeriesSpec {
            column,
            grid: self.grid.clone(),
            zone: self.zone,
            measure: Measure::of(&traits),
            calculations: self.calculations.to_vec(),
            gaps: self.gaps,
            chosen_sources: self.preferences.chosen_sources(&resolved.data_type.id),
        };
        let unit = self
            .units
            .display_unit(self.app, self.reader, &resolved.data_type, |moves_zero| {
                hindrance(&spec, self.parameter, moves_zero)
            })
            .await?;
        Ok(ComputedMetric {
            partition,
            conditions,
            spec,
            stages: stages(self.app, &traits),
            unit,
        })
    }
}

impl ComputedMetric {
    /// The question for its series, as far as `permit` goes.
    pub(super) fn within<'a>(&'a self, permit: &'a Readable) -> AskedSeries<'a, GrantAuthority> {
        AskedSeries {
            permit,
            partition: &self.partition,
            conditions: &self.conditions,
            spec: self.spec.clone(),
            stages: self.stages.clone(),
        }
    }
}

/// What the reader may see of each metric.
pub(super) async fn windows_of_each(
    app: &App,
    reader: &Reader,
    owner: PersonId,
    metrics: &[String],
    range: TimeRange,
) -> Result<Vec<Readable>, ApiError> {
    let mut permits = Vec::with_capacity(metrics.len());
    for metric in metrics {
        let metric = TypeId::new(metric);
        permits.push(app.grants.windows(reader, owner, &metric, range).await?);
    }
    Ok(permits)
}

/// Refuses calculations that mean nothing where values add up.
pub(super) fn refuse_calculations(
    calculations: &[Calculation],
    traits: &MetricTraits,
    metric: &str,
    parameter: &'static str,
) -> Result<(), ApiError> {
    let refused = calculations
        .iter()
        .find(|calculation| !calculation.fits_amounts());
    match refused.filter(|_| traits.kind == Some(MetricKind::Cumulative)) {
        None => Ok(()),
        Some(refused) => Err(invalid(
            ["query", parameter],
            format!("{refused} is not supported on cumulative metrics such as {metric}; count is"),
        )),
    }
}

/// Why a series cannot be shown in units with a different zero. `parameter`: the one that its calculations
/// are given in.
pub(super) fn hindrance(
    spec: &SeriesSpec,
    parameter: &'static str,
    moves_zero: bool,
) -> Option<(&'static str, UnitHindrance)> {
    if !moves_zero {
        None
    } else if spec.gaps.replace {
        Some(("replace_nulls", UnitHindrance::ReplacedNulls))
    } else if spec.calculations.contains(&Calculation::Sum) {
        Some((parameter, UnitHindrance::Sums))
    } else {
        None
    }
}

/// What is in the unit of a metric: its values, which are called `values`, and those of its calculations that
/// are, by what `name` calls them.
pub(super) fn in_unit_of_metric(
    values: &str,
    calculations: &[Calculation],
    name: impl Fn(Calculation) -> String,
) -> Vec<(String, UnitRole)> {
    let calculated = calculations
        .iter()
        .filter_map(|calculation| Some((name(*calculation), held_by(*calculation)?)));
    std::iter::once((values.to_owned(), UnitRole::Values))
        .chain(calculated)
        .collect()
}
