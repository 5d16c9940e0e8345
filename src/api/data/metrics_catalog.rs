//! `GET /data/v0/metrics_catalog`: the metrics that can be read as samples and series.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use crate::api::app::AppState;
use crate::api::extract::Checked;
use crate::api::listed::{ListingQuery, listed_as};
use crate::api::problem::ApiError;
use crate::auth::tokens::Reader;
use crate::model::registry::{ApiVersion, DataType, MetricKind};
use crate::output::{ColumnKind, ListedColumn};

const COLUMNS: [ListedColumn; 6] = [
    ListedColumn::new("name", ColumnKind::Text),
    ListedColumn::new("description", ColumnKind::Text),
    ListedColumn::new("unit", ColumnKind::Text),
    ListedColumn::new("value_column", ColumnKind::Text),
    ListedColumn::new("is_time_series", ColumnKind::Flag),
    ListedColumn::new("metric_kind", ColumnKind::Text),
];

/// One metric.
#[derive(Debug, Serialize, ToSchema)]
pub struct DataMetric {
    pub name: String,
    pub description: String,
    /// Empty where the metric has no unit.
    pub unit: String,
    /// Name of the value column in series.
    pub value_column: String,
    pub is_time_series: bool,
    /// `cumulative` or `discrete`.
    #[schema(required)]
    pub metric_kind: Option<MetricKind>,
}

/// All metrics.
#[utoipa::path(get, path = "/data/v0/metrics_catalog", tag = "data v0", params(Checked<ListingQuery>),
    responses((status = 200, description = "Metrics", body = [DataMetric])))]
pub async fn metrics_catalog(
    _reader: Reader,
    State(app): State<AppState>,
    Checked(query): Checked<ListingQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let types = app.types.registry().types().iter();
    let metrics: Vec<DataMetric> = types.filter_map(|data_type| entry(data_type)).collect();
    listed_as(&app, &headers, query.form, &COLUMNS, &metrics).await
}

fn entry(data_type: &DataType) -> Option<DataMetric> {
    let metric = data_type
        .metric
        .as_ref()
        .filter(|_| data_type.api_version == ApiVersion::V0)?;
    Some(DataMetric {
        name: data_type.id.to_string(),
        description: data_type.description.clone(),
        unit: metric.unit.clone().unwrap_or_default(),
        value_column: metric.value_column.clone(),
        is_time_series: true,
        metric_kind: metric.kind,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use serde_json::{Value, json};

    use super::*;
    use crate::model::ids::PersonId;
    use crate::model::registry::Registry;

    fn entries(registry: &Registry) -> Vec<DataMetric> {
        let types = registry.types().iter();
        types.filter_map(|data_type| entry(data_type)).collect()
    }

    #[test]
    fn rule_6_3_the_v0_list_is_the_v0_metrics_of_the_v1_list() {
        let registry = Registry::builtin().unwrap();
        let v0: Vec<Value> = entries(&registry).iter().map(|entry| json!(entry.name)).collect();
        let person: PersonId = "0191f0c4-0000-7000-8000-000000000001".parse().unwrap();
        let v1: Vec<Value> = registry
            .types()
            .iter()
            .map(|kind| kind.catalog_entry(person))
            .filter(|entry| entry["class"] == "metric" && entry["api_version"] == "v0")
            .map(|entry| entry["id"].clone())
            .collect();
        assert_eq!(v0, v1);
        assert_eq!(v0.len(), 200);
    }

    #[test]
    fn rule_6_3_value_columns_are_unique_and_every_unit_is_known() {
        let registry = Registry::builtin().unwrap();
        let mut columns = HashSet::new();
        for data_type in registry.types() {
            if let Some(entry) = entry(data_type) {
                assert!(columns.insert(entry.value_column.clone()), "{entry:?}");
                let unit = data_type.metric.as_ref().and_then(|metric| metric.unit.as_ref());
                assert!(unit.is_some(), "{entry:?}");
            }
        }
    }

    #[test]
    fn rule_6_3_entries_read_as_clients_expect() {
        let registry = Registry::builtin().unwrap();
        let heart_rate = entry(registry.get("HeartRate").unwrap()).unwrap();
        assert_eq!(
            serde_json::to_value(heart_rate).unwrap(),
            json!({
                "name": "HeartRate", "description": "Beats of the heart per minute.", "unit": "bpm",
                "metric_kind": "discrete", "is_time_series": true, "value_column": "heart_rate",
            })
        );
    }
}
