//! Gives out the branches of a union one after the other, as they are written.
//!
//! The engine gives them out as they come. Knows plans only.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult as _, TreeNode as _};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
#[expect(clippy::disallowed_types, reason = "this is what is replaced")]
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::limit::GlobalLimitExec;

use super::rules::Rule;
use crate::query::ground::partitions_in_turn::in_one_partition;

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

    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let in_turn = |plan: Arc<dyn ExecutionPlan>| -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
            #[expect(clippy::disallowed_types, reason = "this is what is replaced")]
            let Some(coalesced) = plan.downcast_ref::<CoalescePartitionsExec>() else {
                return Ok(Transformed::no(plan));
            };
            let one = in_one_partition(Arc::clone(coalesced.input()));
            Ok(Transformed::yes(match coalesced.fetch() {
                Some(limit) => Arc::new(GlobalLimitExec::new(one, 0, Some(limit))),
                None => one,
            }))
        };
        Ok(in_one_partition(plan.transform_up(in_turn).data()?))
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::util::pretty::pretty_format_batches;
    use datafusion::prelude::SessionConfig;

    use super::*;
    use crate::query::sql::optimizing::test_context::context;

    /// The rows of a query, without what frames them.
    async fn rows(text: &str) -> Vec<String> {
        let context = context(3, SessionConfig::new(), with_branches_in_turn);
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
        let grouped = format!("SELECT n % 2 AS odd, sum(n) FROM ({three}) GROUP BY odd ORDER BY odd");
        assert_eq!(rows(&grouped).await, ["0   | 2", "1   | 4"]);
    }
}
