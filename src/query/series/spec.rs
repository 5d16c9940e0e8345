//! The question of a series as plain data; equal questions are equal specs.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};

use uuid::Uuid;

use crate::model::grid::Grid;
use crate::model::zone::Zone;

use crate::people::preferences::SourceOrder;
use crate::query::ground::measure::{Base, Counting, Measure};
use crate::query::ground::rollups::Kind;
use crate::store::rollups::Step;

use super::calculation::{Calculation, Form};

/// The column with the beginning of each bin, also where periods are aggregated.
pub const TIME: &str = "time";

/// One metric on a grid. Equal specs give equal answers on equal data.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SeriesSpec {
    /// The name of the value's column in the answer.
    pub column: String,
    pub grid: Grid,
    /// The zone in which times are shown. It moves no bin.
    pub zone: Zone,
    pub measure: Measure,
    /// Each at most once.
    pub calculations: Vec<Calculation>,
    pub gaps: Gaps,
    /// Sources that the person prefers to all others for this metric, best first.
    pub chosen_sources: Vec<Uuid>,
}

/// How bins without a value are treated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Gaps {
    /// Leaves out rows without a value. Applies before `replace`.
    pub drop: bool,
    /// Replaces remaining nulls with 0, or an empty list.
    pub replace: bool,
}

impl Gaps {
    /// Rows without a value are left out.
    pub const DROPPED: Self = Self {
        drop: true,
        replace: false,
    };
}

impl SeriesSpec {
    /// Bins times columns, without the column of times.
    #[must_use]
    pub fn cells(&self) -> u64 {
        self.grid.len().saturating_mul(1 + self.calculations.len() as u64)
    }

    /// The columns `time`, the value, the calculations.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        let time = DataType::Timestamp(TimeUnit::Microsecond, Some(self.zone.written().into()));
        let mut fields = vec![
            Field::new(TIME, time, false),
            Field::new(&self.column, DataType::Float64, true),
        ];
        fields.extend(self.calculations.iter().map(|calculation| {
            let data_type = match calculation.form() {
                Form::Number => DataType::Float64,
                Form::Whole => DataType::Int64,
                Form::List => DataType::List(Arc::new(Field::new("item", DataType::Float64, true))),
            };
            Field::new(calculation.column(&self.column), data_type, true)
        }));
        Arc::new(Schema::new(fields))
    }

    /// Whether every value of a bin is kept until the bin is complete.
    pub(super) fn needs_values(&self) -> bool {
        self.calculations
            .iter()
            .any(|calculation| calculation.needs_values())
    }

    /// How many statistics sort the values of a bin.
    pub(super) fn sorted_statistics(&self) -> usize {
        let calculations = self.calculations.iter();
        calculations
            .filter(|calculation| calculation.needs_values())
            .count()
    }

    /// The rollups that can replace rows in this series, judging by the question alone.
    pub(super) fn rollups_that_serve(
        &self,
        order: impl FnOnce() -> Arc<SourceOrder>,
    ) -> Option<(Step, Kind)> {
        let step = Step::COARSE_FIRST
            .into_iter()
            .find(|step| self.grid.begins_at_multiples_of(step.micros()))?;
        let kind = match self.measure {
            Measure::Amounts(counting) if self.calculations.is_empty() => {
                Kind::Amounts(counting, (counting == Counting::BestSource).then(order))
            }
            Measure::Levels {
                base: Base::Mean,
                counting,
            } if !self.needs_values() && !self.needs_places() => Kind::Points(counting),
            _ => return None,
        };
        Some((step, kind))
    }

    pub(super) fn needs_places(&self) -> bool {
        let base = matches!(self.measure, Measure::Levels { base: Base::Last, .. });
        base || self
            .calculations
            .iter()
            .any(|calculation| calculation.needs_places())
    }

    /// Whether the answer depends on the order of records that start and end together.
    pub(super) fn needs_ids(&self) -> bool {
        self.needs_places() || self.calculations.contains(&Calculation::AllPoints)
    }
}
