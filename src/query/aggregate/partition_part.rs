//! One partition with its part of a question, and the rows that the question selects of it.
//!
//! Knows tables and the fields of groups; must not know how rows are counted or summed.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::logical_expr::Expr;

use crate::model::columns::ID;
use crate::model::permit::ReadPermit;
use crate::query::for_others::OriginalLength;
use crate::query::ground::operator::Plan;
use crate::query::{QueryError, Questions, TypedPartition};
use crate::store::snapshot::Snapshot;

use super::groups;
use super::spec::AggregateSpec;

/// One partition with its part of the question.
pub(super) struct PartitionPart<'a, Authority> {
    pub permit: &'a ReadPermit<Authority>,
    pub partition: &'a TypedPartition,
    pub condition: Option<Expr>,
    pub snapshot: &'a Arc<Snapshot>,
    pub spec: &'a AggregateSpec,
}

impl<Authority> Questions<Authority> {
    /// Whether a piece of the partition may hold rows that the spec selects.
    pub(super) fn may_have_rows(&self, part: &PartitionPart<'_, Authority>) -> Result<bool, QueryError> {
        let table = self.table(
            part.permit,
            part.partition,
            part.snapshot,
            OriginalLength::Dropped,
        )?;
        Ok(table.may_have_rows())
    }

    /// The rows of a partition that the spec selects: their times, group fields, and `columns`.
    pub(super) fn rows_of(
        &self,
        part: &PartitionPart<'_, Authority>,
        columns: &[&str],
        lengths: OriginalLength,
    ) -> Result<Plan, QueryError> {
        let PartitionPart {
            permit,
            partition,
            condition,
            snapshot,
            spec,
        } = part;
        let mut names: BTreeSet<String> = columns.iter().map(|name| (*name).to_owned()).collect();
        for (value, _) in groups::values_of(&spec.group, partition) {
            names.extend(value.column_refs().into_iter().map(|column| column.name.clone()));
        }
        let of_condition = condition.as_ref().map(Expr::column_refs).unwrap_or_default();
        let by_id = names.contains(ID) || of_condition.iter().any(|column| column.name == ID);
        let table = self.table(permit, partition, snapshot, lengths)?;
        let rows = table.without_ids(!by_id).meeting(condition.clone());
        Ok(rows.rows(names.iter().map(String::as_str))?)
    }
}
