//! Aggregates that come out the same in whatever order rows arrive, which an `ORDER BY` says nothing about.
//!
//! The engine hands what rows are ordered by to an aggregate as if it were further arguments: where rows are
//! grouped most of them end, as they take only one, and `count` of several values leaves out a row of which
//! nothing but the order is null. Knows plans and expressions only.

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::AnalyzerRule;

use crate::query::sql::keep_names::rewrite_keeping_names;
use crate::query::sql::walking::change_steps;

/// Aggregates that no order changes. Percentiles are not among them: their `ORDER BY` names the values.
const UNORDERED: [&str; 28] = [
    "approx_distinct",
    "avg",
    "bit_and",
    "bit_or",
    "bit_xor",
    "bool_and",
    "bool_or",
    "corr",
    "count",
    "covar_pop",
    "covar_samp",
    "max",
    "median",
    "min",
    "regr_avgx",
    "regr_avgy",
    "regr_count",
    "regr_intercept",
    "regr_r2",
    "regr_slope",
    "regr_sxx",
    "regr_sxy",
    "regr_syy",
    "stddev",
    "stddev_pop",
    "sum",
    "var",
    "var_pop",
];

/// Takes `ORDER BY` out of aggregates that it does not change.
#[derive(Debug)]
pub(in crate::query::sql) struct Unordered;

impl AnalyzerRule for Unordered {
    fn name(&self) -> &'static str {
        "unordered"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        change_steps(plan, &mut |plan| {
            rewrite_keeping_names(plan, |expr| Ok(unordered(expr)))
        })
    }
}

fn unordered(expr: Expr) -> Transformed<Expr> {
    match expr {
        Expr::AggregateFunction(mut call)
            if !call.params.order_by.is_empty() && UNORDERED.contains(&call.func.name()) =>
        {
            call.params.order_by.clear();
            Transformed::yes(Expr::AggregateFunction(call))
        }
        other => Transformed::no(other),
    }
}
