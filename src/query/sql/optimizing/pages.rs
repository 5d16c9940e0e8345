//! Keeps pages, which skip rows, as they were before they are sorted again.
//!
//! Where a sort asks for the rows of a limit, the engine tells the sort below the limit how many of them it
//! wants, and forgets those that the limit skips. So an operator through which no such wish passes is put
//! above each limit that skips rows, before orders are brought about. Knows plans only.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::common::Result;
use datafusion::physical_plan::PlanProperties;
use datafusion::physical_plan::limit::GlobalLimitExec;
use futures::StreamExt as _;
use futures::stream::BoxStream;

use super::rules::{Rule, replacing};
use crate::query::operator::{Input, Operator, Plan, Step, Task, like, only};

/// The name of the rule that brings orders about, and moves sorts.
const SORTING_RULE: &str = "EnsureRequirements";

/// `rules` with the rule of this file before sorts are moved.
pub(in crate::query::sql) fn with_page_rule(rules: &[Rule]) -> Vec<Rule> {
    let mut rules = rules.to_vec();
    let place = rules.iter().position(|rule| rule.name() == SORTING_RULE);
    rules.insert(place.unwrap_or(0), replacing("keep_pages", kept));
    rules
}

/// The page that begins with a limit which skips rows, if this is one.
#[expect(clippy::unnecessary_wraps, reason = "rules may fail")]
fn kept(plan: &Plan) -> Result<Option<Plan>> {
    let limit = plan.downcast_ref::<GlobalLimitExec>();
    let skips = limit.is_some_and(|limit| limit.skip() > 0);
    Ok(skips.then(|| -> Plan { Arc::new(PageExec::over(Page, vec![Arc::clone(plan)])) }))
}

/// The rows of a page. They are in the order in which they arrive, which is not declared to be kept: the
/// engine moves sorts below what keeps the order of rows.
#[derive(Clone, Debug)]
pub(in crate::query) struct Page;

pub(in crate::query) type PageExec = Operator<Page>;

impl Step for Page {
    const NAME: &'static str = "PageExec";
    const YIELDS_BY_ITSELF: bool = true;

    fn gives(&self, inputs: &[Plan]) -> PlanProperties {
        like(inputs)
    }

    fn run(self, inputs: Vec<Input>, _task: &Task) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        Ok(only(inputs)?.open()?.boxed())
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::AsArray as _;
    use datafusion::arrow::datatypes::Int64Type;
    use datafusion::prelude::SessionConfig;

    use super::*;
    use crate::query::sql::optimizing::test_context::context;

    #[tokio::test]
    async fn a_page_that_is_sorted_again_has_its_own_rows() {
        let context = context(100, SessionConfig::new(), with_page_rule);
        let page = "(SELECT id, id % 7 AS k FROM t ORDER BY id DESC LIMIT 10 OFFSET 10)";
        let counted = format!(
            "(SELECT id, row_number() OVER (ORDER BY id DESC, k) AS n FROM {page} AS page) AS counted"
        );
        for (text, expected) in [
            (format!("SELECT id FROM {page}"), (80..90).rev().collect()),
            (
                format!("SELECT id FROM {page} ORDER BY id DESC"),
                (80..90).rev().collect(),
            ),
            (
                format!("SELECT id FROM {page} ORDER BY id DESC, k"),
                (80..90).rev().collect(),
            ),
            (
                format!("SELECT id FROM {page} ORDER BY id DESC LIMIT 3"),
                vec![89, 88, 87],
            ),
            (
                format!("SELECT id FROM {page} ORDER BY id DESC, k LIMIT 3 OFFSET 4"),
                vec![85, 84, 83],
            ),
            (
                format!("SELECT id FROM {page} ORDER BY id"),
                (80..90).collect::<Vec<i64>>(),
            ),
            (
                format!("SELECT id FROM {counted} ORDER BY n"),
                (80..90).rev().collect(),
            ),
            (
                "SELECT id FROM (SELECT id FROM t ORDER BY id DESC OFFSET 97) ORDER BY id DESC LIMIT 2"
                    .to_owned(),
                vec![2, 1],
            ),
        ] {
            let found = context.sql(&text).await.unwrap().collect().await.unwrap();
            let found: Vec<i64> = found
                .iter()
                .flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec())
                .collect();
            assert_eq!(found, expected, "{text}");
        }
    }
}
