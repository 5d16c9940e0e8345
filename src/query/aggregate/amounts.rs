//! Sums of amounts: the part of each that falls into each period, counted once where several sources measured
//! the same, as in the metric's series.

use std::sync::Arc;

use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Expr, ident, lit};
use uuid::Uuid;

use crate::model::columns::{END, SOURCE, SOURCE_CLASS, START, VALUE};
use crate::people::preferences::{SourceOrder, SourcesByRecency};
use crate::query::for_others::OriginalLength;
use crate::query::ground::computed::projected;
use crate::query::ground::measure::{are_spread, counting_of_amounts};
use crate::query::ground::operator::Plan;
use crate::query::ground::rollups::ROLLUP_LONG;
use crate::query::series::{
    AmountsByGroupExec, AmountsSpec, AskedSeries, Counting, Gaps, Measure, Ranking, SeriesSpec, TIME,
};
use crate::query::{QueryError, Questions, TypedPartition};

use super::groups::{self, MOST_GROUPS};
use super::partition_part::PartitionPart;
use super::spec::{AggregateSpec, MEASURED, SUMMED};

/// Whether the spec sums amounts that are spread over time.
pub(super) fn are_summed(partition: &TypedPartition, spec: &AggregateSpec) -> bool {
    spec.sums() && are_spread(&partition.data_type)
}

/// Whether the sum depends on which source measured.
pub(super) fn competing(partition: &TypedPartition, spec: &AggregateSpec) -> bool {
    spec.sums() && counting_of_amounts(&partition.data_type) == Some(Counting::BestSource)
}

impl<Authority> Questions<Authority> {
    /// Parts of amounts as (time, group fields, null as the value to measure, value to sum).
    pub(super) fn amounts_by_period(
        &self,
        part: &PartitionPart<'_, Authority>,
        known: &Arc<SourcesByRecency>,
    ) -> Result<Plan, QueryError> {
        let PartitionPart { spec, partition, .. } = part;
        let chosen = spec
            .chosen_sources
            .iter()
            .find(|(metric, _)| *metric == partition.data_type.id);
        let chosen = chosen.map(|(_, sources)| sources.as_slice()).unwrap_or_default();
        let ranking = Ranking::new(SourceOrder::new(Arc::clone(known), chosen));
        let parts = if spec.group.is_empty() {
            self.amounts_together(part, ranking, chosen)?
        } else {
            self.amounts_by_group(part, ranking)?
        };
        let schema = parts.schema();
        let mut columns: Vec<(Expr, String)> = vec![(ident(TIME), TIME.to_owned())];
        for name in spec.group.iter().filter(|name| schema.index_of(name).is_ok()) {
            columns.push((ident(name), name.clone()));
        }
        columns.push((ident(SUMMED), SUMMED.to_owned()));
        if spec.measures() {
            columns.push((lit(ScalarValue::Float64(None)), MEASURED.to_owned()));
        }
        Ok(projected(parts, columns)?)
    }

    /// Parts of amounts without groups: a series of the periods.
    fn amounts_together(
        &self,
        part: &PartitionPart<'_, Authority>,
        ranking: Ranking,
        chosen: &[Uuid],
    ) -> Result<Plan, QueryError> {
        let PartitionPart { spec, partition, .. } = part;
        let series = SeriesSpec {
            column: SUMMED.to_owned(),
            grid: spec.periods.grid(&spec.zone, spec.range),
            zone: spec.zone,
            measure: Measure::Amounts(
                counting_of_amounts(&partition.data_type).unwrap_or(Counting::Everything),
            ),
            calculations: Vec::new(),
            gaps: Gaps::DROPPED,
            chosen_sources: chosen.to_vec(),
        };
        let one = AskedSeries {
            permit: part.permit,
            partition,
            conditions: &spec.conditions,
            spec: series,
            stages: None,
        };
        self.series_plan(one, part.snapshot, &Arc::new(ranking))
    }

    /// Parts of amounts with the fields of their groups.
    fn amounts_by_group(
        &self,
        part: &PartitionPart<'_, Authority>,
        ranking: Ranking,
    ) -> Result<Plan, QueryError> {
        let PartitionPart { spec, partition, .. } = part;
        let amounts = AmountsSpec {
            grid: spec.periods.grid(&spec.zone, spec.range),
            zone: spec.zone,
            counting: counting_of_amounts(&partition.data_type).unwrap_or(Counting::Everything),
            windows: part.permit.windows().clone(),
            ranking,
            group: groups::values_of(&spec.group, partition)
                .into_iter()
                .map(|(_, name)| name)
                .collect(),
            amount: SUMMED.to_owned(),
            most_groups: MOST_GROUPS,
            too_many: groups::too_many,
        };
        let samples = self.samples_with_groups(part)?;
        Ok(Arc::new(AmountsByGroupExec::try_new(samples, amounts)?))
    }

    /// Samples as a series reads them, along with the values of the group fields.
    fn samples_with_groups(&self, part: &PartitionPart<'_, Authority>) -> Result<Plan, QueryError> {
        const SAMPLE: [&str; 5] = [START, END, VALUE, SOURCE, SOURCE_CLASS];
        let rows = self.rows_of(part, &SAMPLE, OriginalLength::Marked)?;
        let mut columns: Vec<(Expr, String)> = SAMPLE.map(|name| (ident(name), name.to_owned())).into();
        if rows.schema().index_of(ROLLUP_LONG).is_ok() {
            columns.push((ident(ROLLUP_LONG), ROLLUP_LONG.to_owned()));
        }
        // A group field that is already a sample column is not added again.
        let others = groups::values_of(&part.spec.group, part.partition);
        columns.extend(
            others
                .into_iter()
                .filter(|(_, name)| !SAMPLE.contains(&name.as_str())),
        );
        Ok(projected(rows, columns)?)
    }
}
