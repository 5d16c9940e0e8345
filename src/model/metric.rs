//! What makes a type a metric: its unit, how its values are combined, and their names.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum MetricKind {
    Cumulative,
    Discrete,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MergePolicy {
    BestSource,
    SumAll,
    All,
    SleepPriority,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DefaultAggregate {
    Sum,
    Mean,
    Last,
    Leq,
}

/// What makes a type a metric.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricTraits {
    /// Catalogue unit: the unit of storage and of every answer. `None`: the type has no unit.
    pub unit: Option<String>,
    /// The same unit in UCUM.
    pub ucum: Option<String>,
    pub kind: Option<MetricKind>,
    /// Name of the value column in series.
    pub value_column: String,
    pub group: String,
    pub merge: MergePolicy,
    pub default_aggregate: DefaultAggregate,
}

/// The UCUM annotation of values that are codes, and measure nothing.
const CODE: &str = "{code}";

impl MetricTraits {
    /// Whether values are codes, such as stages and test results.
    #[must_use]
    pub fn is_code(&self) -> bool {
        self.ucum.as_deref() == Some(CODE)
    }
}
