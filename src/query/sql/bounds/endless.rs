//! Refuses, before planning, expressions that take or keep more than a few steps for each row: windows and
//! patterns that are computed anew for each row, and summaries of any size. And aggregates that would take
//! all rows, though those that differ are asked for.
//!
//! Such a step cannot be interrupted, so no deadline would help. Knows expressions only.

use datafusion::common::tree_node::TreeNode as _;
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};

use super::cheap::{literal, with_flags};
use super::pattern_sizes::PatternSizes;

/// Functions that take one step for each row over a window, however wide the window is.
const WINDOW_FUNCTIONS: [&str; 20] = [
    "avg",
    "count",
    "cume_dist",
    "dense_rank",
    "first_value",
    "lag",
    "last_value",
    "lead",
    "max",
    "min",
    "nth_value",
    "ntile",
    "percent_rank",
    "rank",
    "row_number",
    "stddev",
    "stddev_pop",
    "sum",
    "var",
    "var_pop",
];

/// Summaries of a distribution, with the index of the argument that says how fine they are.
const SUMMARIES: [(&str, usize); 2] = [
    ("approx_percentile_cont", 2),
    ("approx_percentile_cont_with_weight", 3),
];
/// The most parts of a summary: ten times the usual number. Each group of rows has that many.
const MOST_CENTROIDS: u64 = 1_000;

/// Aggregates that take all rows also where `DISTINCT` asks for those that differ.
const OF_ALL_ROWS: [&str; 14] = [
    "approx_percentile_cont",
    "corr",
    "covar_pop",
    "covar_samp",
    "nth_value",
    "regr_avgx",
    "regr_avgy",
    "regr_count",
    "regr_intercept",
    "regr_r2",
    "regr_slope",
    "regr_sxx",
    "regr_sxy",
    "regr_syy",
];

/// The operators whose right side is a regular expression.
const MATCHING: [Operator; 4] = [
    Operator::RegexMatch,
    Operator::RegexIMatch,
    Operator::RegexNotMatch,
    Operator::RegexNotIMatch,
];

/// Why a pattern of LIKE is refused.
pub(in crate::query::sql) const OF_LIKE: &str =
    "the pattern of LIKE and ILIKE is the same for all rows, and not computed from them";
/// Why a regular expression is refused.
pub(in crate::query::sql) const OF_EXPRESSIONS: &str =
    "a regular expression is a text in the query or a parameter, and not computed";

/// Why flags of a regular expression are refused.
const OF_FLAGS: &str =
    "the flags of a regular expression are a text in the query or a parameter, and not computed";

/// Refuses `expr` itself, without looking inside it. `sizes`: those of patterns, which count with others.
pub(super) fn refuse(expr: &Expr, sizes: &mut PatternSizes) -> Result<()> {
    match expr {
        Expr::WindowFunction(window) => {
            let name = window.fun.name();
            if !WINDOW_FUNCTIONS.contains(&name) {
                return plan_err!("'{name}' is not allowed with OVER");
            }
            if window.params.distinct {
                return plan_err!("DISTINCT is not allowed in '{name}' with OVER");
            }
            Ok(())
        }
        Expr::AggregateFunction(aggregate) => refuse_aggregate(aggregate),
        Expr::Like(like) if !is_constant(&like.pattern) => {
            plan_err!("{OF_LIKE}")
        }
        expr => match regular_expression(expr) {
            None => Ok(()),
            Some(_) if has_computed_flags(expr) => plan_err!("{OF_FLAGS}"),
            Some(Expr::Literal(pattern, _)) => refuse_pattern(pattern, flags(expr), sizes),
            Some(_) => plan_err!("{OF_EXPRESSIONS}"),
        },
    }
}

/// Whether a regular expression may be another one in each row because of its flags.
fn has_computed_flags(expr: &Expr) -> bool {
    flags_argument(expr).is_some_and(|flags| !matches!(flags, Expr::Literal(..)))
}

fn flags(expr: &Expr) -> &str {
    match expr {
        Expr::BinaryExpr(BinaryExpr {
            op: Operator::RegexIMatch | Operator::RegexNotIMatch,
            ..
        }) => "i",
        expr => flags_argument(expr).and_then(literal).unwrap_or_default(),
    }
}

fn flags_argument(expr: &Expr) -> Option<&Expr> {
    let Expr::ScalarFunction(call) = expr else {
        return None;
    };
    let place = match call.func.name() {
        "regexp_like" | "regexp_match" => 2,
        "regexp_replace" | "regexp_count" => 3,
        "regexp_instr" => 4,
        _ => return None,
    };
    call.args.get(place)
}

/// Refuses what is no regular expression, and what is too large beside those before it. Nothing is compiled
/// for that.
fn refuse_pattern(pattern: &ScalarValue, flags: &str, sizes: &mut PatternSizes) -> Result<()> {
    let Some(Some(pattern)) = pattern.try_as_str() else {
        return Ok(());
    };
    // The flag that all places are replaced is none of the pattern.
    match regex_syntax::parse(&with_flags(pattern, &flags.replace('g', ""))) {
        Ok(parsed) => sizes.take(&parsed),
        // It may be the flags that are wrong, which the engine says.
        Err(_) if !flags.is_empty() => Ok(()),
        Err(error) => plan_err!("{error}"),
    }
}

fn regular_expression(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::ScalarFunction(call) if call.func.name().starts_with("regexp_") => call.args.get(1),
        Expr::BinaryExpr(BinaryExpr { op, right, .. }) if MATCHING.contains(op) => Some(right.as_ref()),
        Expr::SimilarTo(like) => Some(like.pattern.as_ref()),
        _ => None,
    }
}

/// Whether the planner reduces it to one value.
fn is_constant(expr: &Expr) -> bool {
    let depends = expr.exists(|part| {
        Ok(!matches!(
            part,
            Expr::Literal(..)
                | Expr::Alias(_)
                | Expr::BinaryExpr(_)
                | Expr::Cast(_)
                | Expr::TryCast(_)
                | Expr::ScalarFunction(_)
        ))
    });
    matches!(depends, Ok(false)) && !expr.is_volatile()
}

fn refuse_aggregate(aggregate: &AggregateFunction) -> Result<()> {
    let name = aggregate.func.name();
    if aggregate.params.distinct && OF_ALL_ROWS.contains(&name) {
        return plan_err!("DISTINCT is not allowed in '{name}'; ask it FROM (SELECT DISTINCT …)");
    }
    let Some((_, position)) = SUMMARIES.iter().find(|(summary, _)| *summary == name) else {
        return Ok(());
    };
    match aggregate.params.args.get(*position) {
        None => Ok(()),
        Some(Expr::Literal(given, _)) if is_moderate(given) => Ok(()),
        Some(_) => plan_err!("the number of centroids of '{name}' is one from 1 to {MOST_CENTROIDS}"),
    }
}

fn is_moderate(centroids: &ScalarValue) -> bool {
    let number = match centroids {
        ScalarValue::Int64(Some(number)) => u64::try_from(*number).ok(),
        ScalarValue::UInt64(Some(number)) => Some(*number),
        _ => None,
    };
    number.is_some_and(|number| (1..=MOST_CENTROIDS).contains(&number))
}

#[cfg(test)]
mod tests {
    use datafusion::execution::session_state::SessionStateBuilder;

    use super::*;

    /// Aggregates that take each value once if asked to, that refuse it, or whose result is the same.
    const OF_DISTINCT_ROWS: &str = "\
        any_value approx_distinct approx_median approx_percentile_cont_with_weight array_agg avg bit_and \
        bit_or bit_xor bool_and bool_or count first_value grouping last_value max median min \
        percentile_cont stddev stddev_pop string_agg sum var var_pop";

    /// A new version of the engine may have aggregates that nobody has looked at.
    #[test]
    fn each_aggregate_takes_distinct_rows_or_is_refused() {
        let state = SessionStateBuilder::new().with_default_features().build();
        let names = state
            .aggregate_functions()
            .values()
            .map(|function| function.name());
        let judged = |name: &str| {
            let takes_them = OF_DISTINCT_ROWS.split(' ').any(|known| known == name);
            takes_them != OF_ALL_ROWS.contains(&name)
        };
        let unclear: Vec<&str> = names.filter(|name| !judged(name)).collect();
        assert!(unclear.is_empty(), "{unclear:?}");
    }
}
