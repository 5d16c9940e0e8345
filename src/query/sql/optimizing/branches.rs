//! Gives out the branches of a union one after the other, as they are written.
//!
//! The engine gives them out as they come. Where it sorts them, each by itself, what one has found decides
//! which of equal rows another one keeps; so they are sorted together. Knows plans only.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
#[expect(clippy::disallowed_types, reason = "this is what is replaced")]
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{ExecutionPlan as _, ExecutionPlanProperties as _};

use super::rules::{Rule, replaced};
use crate::query::ground::operator::limited;
use crate::query::ground::partitions_in_turn::{in_one_partition, merged};
use crate::query::operator::Plan;

/// `rules`, and last the rule of this file: others know how to move the engine's own operator.
pub(in crate::query::sql) fn with_branches_in_turn(rules: &[Rule]) -> Vec<Rule> {
    let mut rules = rules.to_vec();
    rules.push(Arc::new(BranchesInTurn));
    rules
}

#[derive(Debug)]
struct BranchesInTurn;

impl PhysicalOptimizerRule for BranchesInTurn {
    fn name(&self) -> &'static str {
        "branches_in_turn"
    }

    fn schema_check(&self) -> bool {
        true
    }

    fn optimize(&self, plan: Plan, _config: &ConfigOptions) -> Result<Plan> {
        Ok(in_one_partition(replaced(plan, in_turn)?))
    }
}

/// What takes the place of the engine's operator that merges several partitions, if this is one.
fn in_turn(plan: &Plan) -> Result<Option<Plan>> {
    if let Some(merge) = plan.downcast_ref::<SortPreservingMergeExec>() {
        return sorted(merge).map(Some);
    }
    #[expect(clippy::disallowed_types, reason = "this is what is replaced")]
    let coalesced = plan.downcast_ref::<CoalescePartitionsExec>();
    Ok(coalesced.map(|coalesced| {
        let one = in_one_partition(Arc::clone(coalesced.input()));
        limited(one, coalesced.fetch())
    }))
}

/// What gives the rows of a merge in an order that is no chance: one sort, where all that is merged is sorted
/// for it, and otherwise a merge in which equal rows come in the order of their branches.
fn sorted(merge: &SortPreservingMergeExec) -> Result<Plan> {
    let (order, limit) = (merge.expr().clone(), merge.fetch());
    if let Some(Unsorted { rows, kept }) = unsorted(merge.input())?
        && (kept.is_none() || kept == limit)
    {
        let sort = SortExec::new(order, in_one_partition(rows)).with_fetch(kept);
        return Ok(limited(Arc::new(sort), limit.filter(|_| kept.is_none())));
    }
    let merge = merged(order, Arc::clone(merge.input()));
    Ok(Arc::new(merge.with_fetch(limit)))
}

/// What is sorted before it is merged.
struct Unsorted {
    rows: Plan,
    /// How many rows each of the sorts keeps, if not all.
    kept: Option<usize>,
}

fn unsorted(plan: &Plan) -> Result<Option<Unsorted>> {
    if let Some(sort) = plan.downcast_ref::<SortExec>() {
        return Ok(Some(Unsorted {
            rows: Arc::clone(sort.input()),
            kept: sort.fetch(),
        }));
    }
    let Some(union) = plan.downcast_ref::<UnionExec>() else {
        return Ok(None);
    };
    let sorts = union.inputs().iter().map(|branch| {
        let sort = branch.downcast_ref::<SortExec>()?;
        let is_whole = sort.fetch().is_none() && branch.output_partitioning().partition_count() == 1;
        is_whole.then(|| Arc::clone(sort.input()))
    });
    let Some(branches) = sorts.collect::<Option<Vec<_>>>() else {
        return Ok(None);
    };
    Ok(Some(Unsorted {
        rows: UnionExec::try_new(branches)?,
        kept: None,
    }))
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::util::pretty::pretty_format_batches;
    use datafusion::prelude::SessionConfig;

    use super::*;
    use crate::query::sql::optimizing::test_context::context;

    /// The rows of a query, without what frames them.
    async fn rows(text: &str) -> Vec<String> {
        rows_of(3, text).await
    }

    /// The same over a table of so many ids.
    async fn rows_of(ids: i64, text: &str) -> Vec<String> {
        let context = context(ids, SessionConfig::new(), with_branches_in_turn);
        let rows = context.sql(text).await.unwrap().collect().await.unwrap();
        let shown = pretty_format_batches(&rows).unwrap().to_string();
        let lines = shown.lines().skip(3).filter(|line| line.starts_with('|'));
        lines
            .map(|line| line.trim_matches(['|', ' ']).to_owned())
            .collect()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn rows_of_a_union_come_in_the_order_of_its_branches() {
        let three = "SELECT 3 AS n UNION ALL SELECT 1 UNION ALL SELECT 2";
        for _ in 0..20 {
            for (text, expected) in [
                (three.to_owned(), vec!["3", "1", "2"]),
                (format!("{three} LIMIT 1"), vec!["3"]),
                (format!("{three} LIMIT 2 OFFSET 1"), vec!["1", "2"]),
                (format!("SELECT first_value(n) FROM ({three})"), vec!["3"]),
                (format!("SELECT last_value(n) FROM ({three})"), vec!["2"]),
                (
                    format!("SELECT array_to_string(array_agg(n), ',') FROM ({three})"),
                    vec!["3,1,2"],
                ),
                (
                    format!("SELECT n * 10 + row_number() OVER () FROM ({three})"),
                    vec!["31", "12", "23"],
                ),
                (
                    "SELECT id FROM t WHERE id > 0 UNION ALL SELECT count(*) FROM t UNION ALL SELECT 7 WHERE \
                     1 = 2 UNION ALL SELECT 8"
                        .to_owned(),
                    vec!["1", "2", "3", "8"],
                ),
            ] {
                assert_eq!(rows(&text).await, expected, "{text}");
            }
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_is_sorted_above_a_union_stays_sorted() {
        let three = "SELECT 3 AS n UNION ALL SELECT 1 UNION ALL SELECT 2";
        assert_eq!(rows(&format!("{three} ORDER BY n")).await, ["1", "2", "3"]);
        let pairs = format!("SELECT a.n * 10 + b.n AS m FROM ({three}) a JOIN ({three}) b ON a.n < b.n");
        assert_eq!(rows(&format!("{pairs} ORDER BY m")).await, ["12", "13", "23"]);
        let each =
            "(SELECT id FROM t ORDER BY id DESC LIMIT 2) UNION ALL (SELECT id FROM t ORDER BY id LIMIT 2)";
        assert_eq!(rows(&format!("{each} ORDER BY id")).await, ["0", "1", "1", "2"]);
        let grouped = format!("SELECT n % 2 AS odd, sum(n) FROM ({three}) GROUP BY odd ORDER BY odd");
        assert_eq!(rows(&grouped).await, ["0   | 2", "1   | 4"]);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn of_rows_that_sort_alike_the_same_are_kept_in_the_same_order() {
        let branch = |number: i32| format!("SELECT id % 3 AS rest, {number} AS branch, id FROM t");
        let three = [1, 2, 3].map(branch).join(" UNION ALL ");
        for (ending, found) in [
            ("ORDER BY rest", 15_000),
            ("ORDER BY rest LIMIT 40", 40),
            ("ORDER BY rest DESC LIMIT 40 OFFSET 4990", 40),
            ("ORDER BY branch, rest LIMIT 5010", 5_010),
        ] {
            let text = format!("{three} {ending}");
            let first = rows_of(5_000, &text).await;
            assert_eq!(first.len(), found, "{text}");
            for _ in 0..15 {
                assert!(rows_of(5_000, &text).await == first, "{text}");
            }
        }
    }
}
