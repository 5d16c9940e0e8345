//! Limits the size of a query once each name is replaced by what it stands for: counted in its plan, before
//! that is optimized.
//!
//! A named query is copied as often as it is read from, and the expression of a column as often as its name
//! is used; both double with every line of text that uses a name twice. Optimizers process all of it without
//! yielding, in memory that is in no pool. The text does not show what `*` and the columns behind it stand
//! for, so it cannot be counted there.
//!
//! The engine checks a plan from each subquery on, and on the way from each subquery within that one, so that
//! what stands in the innermost of them is checked twice as often with each that is around it. So it counts
//! twice as much, too.
//!
//! The optimizer writes `a BETWEEN b AND c` as two comparisons of `a`, `coalesce(a, b)` as a `CASE` that has
//! `a` twice, and a short `CASE` of truth values with `AND` and `OR`, where each condition stands again with
//! the others. So these double with every level, too. Of such copies there may be far fewer: a `CASE` in a
//! `CASE` is looked through more than once. Knows plans only.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{TreeNode as _, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result, ScalarValue, plan_err};
use datafusion::logical_expr::expr::Case;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable as _, LogicalPlan};

use super::sort_keys::KeyCounter;

/// The most steps of a plan, each counted as often as it is copied and checked.
const MOST_STEPS: usize = 4_096;
/// The most columns of a step. Several passes look each of them up among the others.
const MOST_COLUMNS: usize = 2_000;
/// The most parts of expressions, each counted as often as it may be copied and checked.
const MOST_PARTS: u64 = 1 << 19;
/// The most parts that the optimizer copies of an expression to write it in another way.
const MOST_COPIED: u64 = 1 << 14;
/// The most conditions of a `CASE` of truth values that the optimizer writes with `AND` and `OR`.
const MOST_CONDITIONS: usize = 2;
/// Functions of which the optimizer copies all arguments but the last.
const COPIED_FUNCTIONS: [&str; 2] = ["coalesce", "nvl"];
/// The most subqueries of expressions within each other. People write two or three.
const MOST_WITHIN: u32 = 8;

/// Refuses a plan that becomes too large.
pub(in crate::query::sql) fn refuse_large(plan: &LogicalPlan) -> Result<()> {
    let mut counting = PartCounter {
        steps: 0,
        parts: 0,
        copied: 0,
        within: 0,
        keys: KeyCounter::default(),
    };
    counting.step(plan).map(drop)
}

/// Refuses a step of too many columns.
pub(in crate::query::sql) fn refuse_wide(columns: usize) -> Result<()> {
    if columns <= MOST_COLUMNS {
        return Ok(());
    }
    plan_err!(
        "a step of the query has more than {MOST_COLUMNS} columns once each * stands for them; name those \
         that you need, and join fewer queries with many columns"
    )
}

struct PartCounter {
    steps: usize,
    parts: u64,
    copied: u64,
    /// How many subqueries are around the step that is counted.
    within: u32,
    keys: KeyCounter,
}

/// The counts for one step.
struct StepCounts {
    /// The number of parts that replace each column.
    columns: Vec<u64>,
    /// How many copies of a condition on it there may be: one for each input of a union.
    copies: u64,
}

/// The counts for an expression.
struct PartCounts {
    /// Its parts, those that are copied as often as they are there afterwards.
    parts: u64,
    /// Those among them that are copies.
    copied: u64,
}

impl PartCounter {
    /// Fails as soon as a limit is exceeded, so that counting takes no longer than the limits allow.
    fn step(&mut self, plan: &LogicalPlan) -> Result<StepCounts> {
        self.steps += 1_usize << self.within;
        if self.steps > MOST_STEPS {
            return plan_err!(
                "the query has more than {MOST_STEPS} steps once each name stands for the query behind it, \
                 those of a subquery counted twice for each subquery that they are in; read from fewer names \
                 more than once, and join instead of asking within"
            );
        }
        refuse_wide(plan.schema().fields().len())?;
        self.keys.take(plan)?;
        let inputs = plan.inputs();
        let schema = merge_schema(&inputs);
        let counted = inputs.iter().map(|input| self.step(input));
        let counted = counted.collect::<Result<Vec<_>>>()?;
        let copies = counted.iter().map(|input| input.copies);
        let copies = match plan {
            LogicalPlan::Union(_) => copies.fold(0, u64::saturating_add),
            _ => copies.max().unwrap_or(1),
        };
        let mut parts = Vec::new();
        plan.apply_expressions(|expression| {
            let within = self.expression(expression, &schema, &inputs, &counted)?;
            self.take_copied(within.copied.saturating_mul(copies))?;
            self.take(within.parts.saturating_mul(copies))?;
            parts.push(within.parts);
            Ok(TreeNodeRecursion::Continue)
        })?;
        let columns = columns(plan, &counted, &parts);
        Ok(StepCounts { columns, copies })
    }

    fn take(&mut self, parts: u64) -> Result<()> {
        let checked = parts.saturating_mul(1_u64 << self.within);
        self.parts = self.parts.saturating_add(checked);
        if self.parts > MOST_PARTS {
            return plan_err!(
                "the query has more than {MOST_PARTS} parts once each name stands for what it is computed \
                 from; say names of computed columns less often"
            );
        }
        Ok(())
    }

    fn take_copied(&mut self, parts: u64) -> Result<()> {
        let checked = parts.saturating_mul(1_u64 << self.within);
        self.copied = self.copied.saturating_add(checked);
        if self.copied > MOST_COPIED {
            return plan_err!(
                "what BETWEEN, coalesce, nvl and CASE look at has more than {MOST_COPIED} parts once each \
                 name stands for what it is computed from, twice as many or more with each of them that is \
                 within another; give coalesce all of its values at once, or nest less"
            );
        }
        Ok(())
    }

    /// The counts for an expression, including those of the columns that it names.
    fn expression(
        &mut self,
        whole: &Expr,
        schema: &DFSchema,
        inputs: &[&LogicalPlan],
        counted: &[StepCounts],
    ) -> Result<PartCounts> {
        let alone = match whole {
            Expr::Column(column) => {
                let mut known = inputs.iter().zip(counted).filter_map(|(input, counted)| {
                    let place = input.schema().maybe_index_of_column(column)?;
                    counted.columns.get(place).copied()
                });
                known.next().unwrap_or(1)
            }
            Expr::ScalarSubquery(query) => self.inner(&query.subquery)?,
            Expr::Exists(exists) => self.inner(&exists.subquery.subquery)?,
            Expr::InSubquery(within) => self.inner(&within.subquery.subquery)?,
            Expr::SetComparison(compared) => self.inner(&compared.subquery.subquery)?,
            _ => 1,
        };
        if is_constant_list(whole) {
            return Ok(PartCounts { parts: 1, copied: 0 });
        }
        let mut counts = PartCounts {
            parts: alone,
            copied: 0,
        };
        let mut copies = copies_of_children(whole, schema).into_iter();
        whole.apply_children(|child| {
            let within = self.expression(child, schema, inputs, counted)?;
            let copied = within.parts.saturating_mul(copies.next().unwrap_or(0));
            let parts = counts.parts.saturating_add(within.parts);
            counts.parts = parts.saturating_add(copied);
            counts.copied = counts.copied.saturating_add(within.copied).saturating_add(copied);
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(counts)
    }

    /// A subquery in an expression is not merged into it.
    fn inner(&mut self, plan: &LogicalPlan) -> Result<u64> {
        if self.within == MOST_WITHIN {
            return plan_err!(
                "more than {MOST_WITHIN} subqueries are within each other once each name stands for the \
                 query behind it; join some of them instead"
            );
        }
        self.within += 1;
        let counted = self.step(plan);
        self.within -= 1;
        counted.map(|_| 1)
    }
}

/// Whether it is an array of constants, which is one constant before anything is copied.
fn is_constant_list(expr: &Expr) -> bool {
    match expr {
        Expr::ScalarFunction(call) => {
            call.func.name() == "make_array" && call.args.iter().all(|item| matches!(item, Expr::Literal(..)))
        }
        _ => false,
    }
}

/// How many copies the optimizer makes of each of the expressions in this one, up to the last that it copies.
fn copies_of_children(expr: &Expr, schema: &DFSchema) -> Vec<u64> {
    match expr {
        Expr::Between(_) => vec![1],
        Expr::ScalarFunction(call) if COPIED_FUNCTIONS.contains(&call.func.name()) => {
            let conditions = call.args.len().saturating_sub(1);
            let beside_others = if conditions <= MOST_CONDITIONS && may_be_truth(expr, schema) {
                conditions as u64
            } else {
                0
            };
            vec![1 + beside_others; conditions]
        }
        Expr::Case(case) if is_short(case) && may_be_truth(expr, schema) => {
            let conditions = case.when_then_expr.len();
            [conditions as u64, 0].repeat(conditions)
        }
        _ => Vec::new(),
    }
}

/// Whether the optimizer writes a `CASE` with `AND` and `OR` if it is one of truth values.
fn is_short(case: &Case) -> bool {
    let chosen = || case.when_then_expr.iter().map(|(_, then)| then.as_ref());
    let is_known = |then: &Expr| matches!(then, Expr::Literal(..));
    let is_true = |then: &&Expr| matches!(then, Expr::Literal(ScalarValue::Boolean(Some(true)), _));
    case.expr.is_none()
        && (case.when_then_expr.len() <= MOST_CONDITIONS
            || (chosen().all(is_known) && chosen().filter(is_true).count() <= MOST_CONDITIONS))
}

/// What cannot be typed yet may be anything.
fn may_be_truth(expr: &Expr, schema: &DFSchema) -> bool {
    !expr
        .get_type(schema)
        .is_ok_and(|data_type| data_type != DataType::Boolean)
}

/// The number of parts that replace each column of a step.
fn columns(plan: &LogicalPlan, inputs: &[StepCounts], parts: &[u64]) -> Vec<u64> {
    let width = plan.schema().fields().len();
    let found = match plan {
        LogicalPlan::Projection(_) => parts.to_vec(),
        LogicalPlan::Union(_) => {
            let at = |place| {
                inputs
                    .iter()
                    .filter_map(move |input| input.columns.get(place).copied())
            };
            (0..width).map(|place| at(place).max().unwrap_or(1)).collect()
        }
        // Aggregates are computed where they stand; expressions to group by may be moved elsewhere.
        LogicalPlan::Aggregate(aggregate) => {
            let groups = parts.iter().take(aggregate.group_expr.len()).copied();
            groups.chain(aggregate.aggr_expr.iter().map(|_| 1)).collect()
        }
        LogicalPlan::Window(_) => {
            let before = inputs.iter().flat_map(|input| input.columns.iter().copied());
            before.chain(std::iter::repeat(1)).take(width).collect()
        }
        _ => inputs
            .iter()
            .flat_map(|input| input.columns.iter().copied())
            .collect(),
    };
    if found.len() == width {
        return found;
    }
    let most = found.iter().chain(parts).copied().max().unwrap_or(1);
    vec![most; width]
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::functions::core::expr_fn::{coalesce, nvl};
    use datafusion::logical_expr::{LogicalPlanBuilder, col, exists, lit, when};

    use super::*;

    /// A plan whose condition asks so many times for one like it, and so on.
    fn nested(depth: usize, times: usize) -> LogicalPlan {
        let rows = LogicalPlanBuilder::empty(true);
        if depth == 0 {
            return rows.build().unwrap();
        }
        let inner = Arc::new(nested(depth - 1, times));
        let questions = std::iter::repeat_n(exists(inner), times);
        let condition = questions.reduce(Expr::and).unwrap();
        rows.filter(condition).unwrap().build().unwrap()
    }

    fn refusal(plan: &LogicalPlan) -> Option<String> {
        refuse_large(plan).err().map(|error| error.strip_backtrace())
    }

    #[test]
    fn subqueries_within_each_other_are_limited() {
        assert_eq!(refusal(&nested(8, 1)), None);
        let message = refusal(&nested(9, 1)).unwrap();
        assert!(message.contains("within each other"), "{message}");
    }

    #[test]
    fn steps_of_many_columns_are_refused() {
        let wide = |columns: usize| {
            let columns = (0..columns).map(|column| lit(1).alias(format!("c{column}")));
            let rows = LogicalPlanBuilder::empty(true);
            let rows = rows.project(columns.collect::<Vec<_>>()).unwrap();
            rows.project(vec![col("c0")]).unwrap().build().unwrap()
        };
        assert_eq!(refusal(&wide(MOST_COLUMNS)), None);
        let message = refusal(&wide(MOST_COLUMNS + 1)).unwrap();
        assert!(message.contains("2000 columns once each *"), "{message}");
    }

    type Make = fn(Expr) -> Expr;

    /// A plan of one column, which is made from `first`, and so many times from what was made before.
    fn made(first: Expr, depth: usize, make: Make) -> LogicalPlan {
        let made = (0..depth).fold(first, |made, _| make(made));
        let rows = LogicalPlanBuilder::empty(true);
        rows.project(vec![made]).unwrap().build().unwrap()
    }

    #[test]
    fn what_the_optimizer_writes_twice_counts_twice() {
        let makers: [(Expr, usize, Make); 6] = [
            (lit(1), 12, |made| coalesce(vec![made, lit(2)])),
            (lit(1), 12, |made| nvl(made, lit(2))),
            (lit(true), 12, |made| made.between(lit(false), lit(true))),
            (lit(true), 12, |made| {
                when(made, lit(false)).otherwise(lit(true)).unwrap()
            }),
            // Written with AND and OR, the first value stands there three times.
            (lit(true), 8, |made| coalesce(vec![made, lit(false)])),
            (lit(true), 8, |made| nvl(made, lit(false))),
        ];
        for (first, most, make) in makers {
            assert_eq!(refusal(&made(first.clone(), most, make)), None);
            for depth in [most + 1, 40, 90] {
                let message = refusal(&made(first.clone(), depth, make)).unwrap();
                assert!(message.contains("what BETWEEN, coalesce, nvl"), "{message}");
            }
        }
        // Of the last value there is no second one.
        let last = |made| coalesce(vec![lit(1), made]);
        assert_eq!(refusal(&made(lit(2), 40, last)), None);
    }

    #[test]
    fn copies_of_a_column_count_as_what_it_is_computed_from() {
        let mut rows = LogicalPlanBuilder::empty(true)
            .project(vec![lit(1).alias("a")])
            .unwrap();
        for _ in 0..15 {
            let next = coalesce(vec![col("a"), lit(2)]).alias("a");
            rows = rows.project(vec![next]).unwrap();
        }
        let message = refusal(&rows.build().unwrap()).unwrap();
        assert!(message.contains("what BETWEEN, coalesce, nvl"), "{message}");
    }

    #[test]
    fn a_step_counts_as_often_as_it_is_checked() {
        // On each level there are twice as many, each of which counts twice as much: 4 ^ 5 in the innermost,
        // and 682 around them.
        assert_eq!(refusal(&nested(5, 2)), None);
        let message = refusal(&nested(6, 2)).unwrap();
        assert!(message.contains("steps once each name stands for"), "{message}");
    }
}
