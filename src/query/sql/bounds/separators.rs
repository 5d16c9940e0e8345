//! Refuses long separators of joined texts.
//!
//! What `string_agg` makes is counted as memory only once a batch of rows is joined, and where the rows are
//! sorted or distinct only as rows and never as the text that they become. So what stands between two of them
//! may not be far longer than a row. Knows expressions and plans only.

use datafusion::common::tree_node::{TreeNode as _, TreeNodeRecursion};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::{Expr, LogicalPlan};

const JOINING: &str = "string_agg";
/// The most bytes of a separator.
const LONGEST: usize = 128;

/// Refuses a plan that joins texts with long separators. It is optimized: constants are computed.
pub(in crate::query::sql) fn refuse_long(plan: &LogicalPlan) -> Result<()> {
    plan.apply_with_subqueries(|step| {
        step.apply_expressions(|expr| {
            expr.apply(|part| {
                refuse(part)?;
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(())
}

fn refuse(expr: &Expr) -> Result<()> {
    let Expr::AggregateFunction(call) = expr else {
        return Ok(());
    };
    let separator = match call.params.args.get(1) {
        Some(Expr::Literal(separator, _)) if call.func.name() == JOINING => separator.try_as_str().flatten(),
        // The engine takes only constants.
        _ => None,
    };
    if separator.is_some_and(|separator| separator.len() > LONGEST) {
        return plan_err!("the separator of {JOINING} has more than {LONGEST} bytes; use a shorter one");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use datafusion::prelude::SessionContext;

    use super::*;

    #[tokio::test]
    async fn a_separator_is_short_however_it_is_written() {
        let context = SessionContext::new();
        for (separator, is_refused) in [
            ("', '", false),
            ("chr(10)", false),
            ("repeat('x', 128)", false),
            ("repeat('x', 129)", true),
            ("concat(repeat('x', 100), repeat('y', 100))", true),
        ] {
            for text in [
                format!("SELECT string_agg(x, {separator}) FROM (VALUES ('a'), ('b')) t(x)"),
                format!("SELECT string_agg(x, {separator} ORDER BY x) FROM (VALUES ('a'), ('b')) t(x)"),
                format!("SELECT string_agg(DISTINCT x, {separator}) FROM (VALUES ('a'), ('b')) t(x)"),
                format!("SELECT (SELECT string_agg(x, {separator}) FROM (VALUES ('a'), ('b')) t(x))"),
            ] {
                let plan = context.sql(&text).await.unwrap().into_optimized_plan().unwrap();
                assert_eq!(refuse_long(&plan).is_err(), is_refused, "{text}");
            }
        }
    }
}
