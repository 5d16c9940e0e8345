//! What is asked about the records of a type by period, as plain data, and the columns that plans for it
//! have.
//!
//! Knows no rows and no plans.

use uuid::Uuid;

use crate::model::duration::Truncation;
use crate::model::registry::TypeId;
use crate::model::time::TimeRange;
use crate::model::zone::Zone;
use crate::query::Order;
use crate::query::filter::Condition;
use crate::query::series::TIME;
use crate::query::statistic::Statistic;

/// The value on its way through a plan. Names of fields are printable, so no field can have this name.
pub(super) const MEASURED: &str = "\u{1}measured";
/// The column that is added up: the same value, or a part of an amount.
pub(super) const SUMMED: &str = "\u{1}summed";

/// A question about the records of a type by period. Equal specs give equal answers on equal data.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AggregateSpec {
    pub conditions: Vec<Condition>,
    pub range: TimeRange,
    pub periods: Truncation,
    pub zone: Zone,
    pub measure: AggregateMeasure,
    /// Fields whose values make groups within a period.
    pub group: Vec<String>,
    /// The direction in which periods run; groups always ascend.
    pub order: Order,
    /// By metric, the sources that the person prefers to all others, best first.
    pub chosen_sources: Vec<(TypeId, Vec<Uuid>)>,
    /// The most cells of the answer: rows times columns, where the column of times does not count.
    pub most_cells: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AggregateMeasure {
    /// The number of records.
    Count,
    /// Functions of their values, each at most once.
    Values(Vec<Statistic>),
}

impl AggregateSpec {
    /// Columns of the answer that are not fields of the records.
    pub(super) fn computed(&self) -> Vec<&'static str> {
        let measured = match &self.measure {
            AggregateMeasure::Count => vec!["count"],
            AggregateMeasure::Values(functions) => functions.iter().map(|function| function.name()).collect(),
        };
        [TIME].into_iter().chain(measured).collect()
    }

    pub(super) fn functions(&self) -> &[Statistic] {
        match &self.measure {
            AggregateMeasure::Count => &[],
            AggregateMeasure::Values(functions) => functions,
        }
    }

    /// Whether samples are needed one by one.
    pub(super) fn measures(&self) -> bool {
        self.functions()
            .iter()
            .any(|function| *function != Statistic::Sum)
    }

    pub(super) fn sums(&self) -> bool {
        self.functions().contains(&Statistic::Sum)
    }
}
