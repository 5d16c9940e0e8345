//! The metrics that a request names: which of them have a series, and what their columns are called.
//!
//! Knows types; knows nothing of grids, permits or what is asked about the metrics.

use std::collections::HashSet;
use std::sync::Arc;

use crate::api::app::App;
use crate::api::problem::ApiError;
use crate::model::excerpt::beginning;
use crate::model::faults::{Fault, MOST_FAULTS, first_of};
use crate::model::ids::PersonId;
use crate::model::registry::{Base, MergePolicy, MetricTraits};
use crate::people::types::{ResolvedType, TypesError};
use crate::query::series::Calculation;
use crate::query::sleep::StageTable;

use super::sleep::stage_table;

/// A metric of a request.
pub(super) struct NamedMetric {
    pub resolved: ResolvedType,
    pub traits: MetricTraits,
    /// The name of its column.
    pub column: String,
}

/// The metrics of a request: each metric once, no two columns of one name.
pub(super) async fn named_metrics(
    app: &App,
    owner: PersonId,
    names: &[String],
) -> Result<Vec<NamedMetric>, ApiError> {
    let mut metrics: Vec<NamedMetric> = Vec::with_capacity(names.len());
    let mut faults = Vec::new();
    let mut seen = HashSet::new();
    for name in names {
        if faults.len() >= MOST_FAULTS {
            break;
        }
        let resolved = match app.types.find(owner, name).await {
            Ok(resolved) => resolved,
            Err(error @ TypesError::Unknown { .. }) => {
                faults.push(wrong_metric(name, error.to_string()));
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let traits = match series_traits(app, owner, &resolved).await? {
            Ok(traits) => traits,
            Err(message) => {
                faults.push(wrong_metric(name, message));
                continue;
            }
        };
        if !seen.insert((resolved.data_type.id.clone(), resolved.annotation)) {
            faults.push(wrong_metric(name, format!("{} is named twice", beginning(name))));
            continue;
        }
        let taken = metrics.iter().any(|metric| metric.column == traits.value_column);
        let column = if taken {
            name.clone()
        } else {
            traits.value_column.clone()
        };
        metrics.push(NamedMetric {
            resolved,
            traits,
            column,
        });
    }
    if faults.is_empty() {
        Ok(metrics)
    } else {
        Err(ApiError::invalid_all(first_of(faults, "query")))
    }
}

fn wrong_metric(name: &str, message: String) -> Fault {
    Fault::new(["query", "metrics"], "value_error", message).with_value(name)
}

/// The metric traits of a type of `owner`, or why it has no series. Records of annotations are stored as
/// those of a base, but each annotation says for itself whether they add up.
pub(super) async fn series_traits(
    app: &App,
    owner: PersonId,
    resolved: &ResolvedType,
) -> Result<Result<MetricTraits, String>, ApiError> {
    let id = &resolved.data_type.id;
    let traits = match &resolved.data_type.metric {
        Some(_) if Base::named(id.as_str()).is_some() => {
            return Ok(Err(format!(
                "{id} is the base of metrics; name one of them, {id}/<uuid>"
            )));
        }
        Some(traits) => traits.clone(),
        None => {
            return Ok(Err(format!(
                "{id} is not a time series; /data/v0/metrics_catalog lists those there are"
            )));
        }
    };
    let kind = match resolved.annotation {
        Some(annotation) => {
            app.annotations
                .metric_kind(owner, id.as_str(), annotation)
                .await?
        }
        None => None,
    };
    Ok(Ok(MetricTraits {
        kind: kind.or(traits.kind),
        ..traits
    }))
}

/// The meanings of the stages of sleep, if the metric is one of them.
pub(super) fn stages(app: &App, traits: &MetricTraits) -> Option<Arc<StageTable>> {
    let is_sleep = traits.merge == MergePolicy::SleepPriority;
    is_sleep.then(|| stage_table(app))
}

/// The calculations in their order, each once.
pub(super) fn each_once(mut calculations: Vec<Calculation>) -> Vec<Calculation> {
    let mut seen = HashSet::new();
    calculations.retain(|calculation| seen.insert(*calculation));
    calculations
}
