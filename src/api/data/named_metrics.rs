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
use crate::model::registry::{Base, DataType, MergePolicy, MetricTraits};
use crate::people::types::{ResolvedType, TypesError};
use crate::query::series::Calculation;
use crate::query::sleep::StageTable;

/// The metrics of a request with the names of their columns: each metric once, no two columns of one name.
pub(super) async fn named_metrics(
    app: &App,
    owner: PersonId,
    names: &[String],
) -> Result<Vec<(ResolvedType, String)>, ApiError> {
    let mut metrics: Vec<(ResolvedType, String)> = Vec::with_capacity(names.len());
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
        let traits = match series_traits(&resolved.data_type) {
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
        let taken = metrics.iter().any(|(_, column)| *column == traits.value_column);
        let column = if taken {
            name.clone()
        } else {
            traits.value_column.clone()
        };
        metrics.push((resolved, column));
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

/// The metric traits of a type, or why it has no series.
pub(super) fn series_traits(data_type: &DataType) -> Result<&MetricTraits, String> {
    let id = &data_type.id;
    match &data_type.metric {
        Some(_) if Base::named(id.as_str()).is_some() => Err(format!(
            "{id} is the base of metrics; name one of them, {id}/<uuid>"
        )),
        Some(traits) => Ok(traits),
        None => Err(format!(
            "{id} is not a time series; /data/v0/metrics_catalog lists those there are"
        )),
    }
}

/// The meanings of the stages of sleep, if the metric is one of them.
pub(super) fn stages(app: &App, traits: &MetricTraits) -> Option<Arc<StageTable>> {
    let is_sleep = traits.merge == MergePolicy::SleepPriority;
    is_sleep.then(|| Arc::new(StageTable::new(app.types.registry().sleep_stages())))
}

/// The calculations in their order, each once.
pub(super) fn each_once(mut calculations: Vec<Calculation>) -> Vec<Calculation> {
    let mut seen = HashSet::new();
    calculations.retain(|calculation| seen.insert(*calculation));
    calculations
}
