//! Keeps what is unknown apart from what is false.
//!
//! A comparison with null is neither true nor false, and neither is its opposite. The optimizer forgets that
//! in two cases: it takes a value for not found in a subquery where it is unknown whether it is, and it
//! merges lists by how their members are written, as if each of them were a value that differs from those
//! written in another way. Where a row is only kept or not, that is right for lists of constants, and all
//! conditions but some `NOT IN` stay as they are. Everywhere else they are written so that nothing can be
//! forgotten.
//!
//! Subqueries about the row around them are written anew, too, where they are joined with it in a way that
//! forgets what they mean: that the aggregate of nothing is a row as well, or that a condition leaves no row.
//! Where they skip rows, and nothing else says the same, they are refused. And a subquery that is a value may
//! be null, whatever its column holds. Knows plans and expressions only.

mod lists;
mod lost_limits;
mod missing_rows;
mod outer_references;
mod single_row;
mod sought_values;
mod subqueries;

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode as _, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, Result, ScalarValue, Spans, plan_err};
use datafusion::logical_expr::expr::{BinaryExpr, Case, Exists, InSubquery, SetComparison, SetQuantifier};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    ColumnarValue, Expr, Join, JoinType, LogicalPlan, LogicalPlanBuilder, Operator, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, Subquery, Volatility, lit,
};

use crate::query::sql::unfolding::in_plan;
use crate::query::sql::walking::change_steps;

use lists::{is_constant, is_list, may_be_merged, may_lists_meet};
use lost_limits::refuse_lost_limits;
use missing_rows::with_nulls_for_missing_rows;
use outer_references::{as_outer, with_nulls};
use single_row::{SingleRow, refuse_single_rows};
use sought_values::rows_where;
use subqueries::{has_subqueries, refuse_subqueries};

/// The most aggregates that one query has beside its subqueries: one for each column that is asked for.
const MOST_COPIED: usize = 256;

/// The plan, written so that no rule of the optimizer forgets what is unknown.
pub(in crate::query::sql) fn keep_unknown(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut keeping = UnknownKeeper {
        apart: Arc::new(ScalarUDF::new_from_impl(Apart::new())),
        may_meet: may_lists_meet(&plan)?,
        copied: 0,
        named: 0,
        may_become_null: false,
    };
    let rewritten = change_steps(plan, &mut |plan| {
        let schema = merge_schema(&plan.inputs());
        if let LogicalPlan::Filter(filter) = plan {
            let predicate = keeping.single_rows(filter.predicate, &schema)?;
            let predicate = keeping.conjunct(predicate, &schema)?;
            return Ok(Transformed::yes(rows_where(predicate, filter.input)?));
        }
        if let LogicalPlan::Join(join) = plan {
            return Ok(Transformed::yes(keeping.join(join, &schema)?));
        }
        let names = NamePreserver::new(&plan);
        plan.map_expressions(|expr| {
            refuse_subqueries(&expr)?;
            let name = names.save(&expr);
            let with_values = keeping.single_rows(expr, &schema)?;
            let kept = keeping.lists(with_values)?.data;
            Ok(Transformed::yes(name.restore(kept)))
        })
    })?;
    // Whoever walks through it next meets each copy.
    in_plan::refuse_large(&rewritten)?;
    rewritten.apply_with_subqueries(|plan| {
        plan.apply_expressions(|expr| {
            expr.apply(|part| {
                if let Expr::Exists(exists) = part {
                    refuse_lost_limits(&exists.subquery.subquery, true, false)?;
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    let (plan, may_be_missing) = with_nulls_for_missing_rows(rewritten)?;
    if may_be_missing || keeping.may_become_null {
        with_nulls(plan)
    } else {
        Ok(plan)
    }
}

struct UnknownKeeper {
    apart: Arc<ScalarUDF>,
    /// Whether there are lists that could be merged. Wherever they stand: conditions move to where the
    /// columns that they are about are computed.
    may_meet: bool,
    /// How many aggregates were written beside their subqueries.
    copied: usize,
    /// How many subqueries have a name of their own.
    named: usize,
    /// Whether a value may be null that was planned as one that is not.
    may_become_null: bool,
}

impl UnknownKeeper {
    /// A join. Subqueries in the condition of an inner join become a filter of the joined rows, which is the
    /// same; of others the engine knows none.
    fn join(&mut self, mut join: Join, schema: &DFSchema) -> Result<LogicalPlan> {
        let Some(condition) = join.filter.take() else {
            return Ok(LogicalPlan::Join(join));
        };
        if join.join_type == JoinType::Inner && has_subqueries(&condition)? {
            let condition = self.single_rows(condition, schema)?;
            let condition = self.conjunct(condition, schema)?;
            return rows_where(condition, Arc::new(LogicalPlan::Join(join)));
        }
        refuse_subqueries(&condition)?;
        join.filter = Some(self.selecting(condition, schema, false)?);
        Ok(LogicalPlan::Join(join))
    }

    /// An expression in which subqueries of one row are values.
    fn single_rows(&mut self, expr: Expr, schema: &DFSchema) -> Result<Expr> {
        let with_values = expr.transform_up(|expr| self.single_row(expr, schema))?;
        Ok(with_values.data)
    }

    /// The one row that aggregates what is found for the row around it, or a comparison with it. The engine
    /// groups what it finds for all rows around the subquery, and has no group where it finds nothing. Where
    /// the row is a value, the engine then puts in what the aggregate of no rows is, such as zero for a
    /// count; but it does not consider whether conditions on the aggregate would leave that row.
    fn single_row(&mut self, expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
        let (Expr::Exists(Exists { subquery, .. })
        | Expr::InSubquery(InSubquery { subquery, .. })
        | Expr::SetComparison(SetComparison { subquery, .. })
        | Expr::ScalarSubquery(subquery)) = &expr
        else {
            return Ok(Transformed::no(expr));
        };
        let Some(row) = SingleRow::of(&subquery.subquery)? else {
            refuse_single_rows(&subquery.subquery)?;
            return Ok(Transformed::no(expr));
        };
        let value = match &expr {
            // Whatever its columns are.
            Expr::Exists(_) => None,
            Expr::ScalarSubquery(_) if row.is_known => return Ok(Transformed::no(expr)),
            _ => match self.value_of_row(&row, schema)? {
                Some(value) => Some(value),
                // Refused by the engine.
                None => return Ok(Transformed::no(expr)),
            },
        };
        let row_exists = self.conditions_left(&row, schema)?;
        self.may_become_null |= row_exists.is_some() && matches!(expr, Expr::ScalarSubquery(_));
        let (when_row, otherwise) = compared_or_existing(expr, value);
        Ok(Transformed::yes(match row_exists {
            Some(row_exists) => Expr::Case(Case::new(
                None,
                vec![(Box::new(row_exists), Box::new(when_row))],
                otherwise.map(|otherwise| Box::new(lit(otherwise))),
            )),
            None => when_row,
        }))
    }

    /// The value of a row of one column, as it is written beside the subquery.
    fn value_of_row(&mut self, row: &SingleRow, schema: &DFSchema) -> Result<Option<Expr>> {
        let [column] = row.columns.as_slice() else {
            return Ok(None);
        };
        self.count_copies(std::iter::once(column))?;
        Ok(Some(row.beside(column.clone(), schema)?))
    }

    /// The conditions under which there is the row, as one. `None`: it is always there.
    fn conditions_left(&mut self, row: &SingleRow, schema: &DFSchema) -> Result<Option<Expr>> {
        self.count_copies(row.conditions.iter())?;
        let mut row_exists: Option<Expr> = None;
        for condition in &row.conditions {
            let holds = row.beside(condition.clone(), schema)?;
            let holds = self.lists(holds)?.data;
            row_exists = Some(match row_exists {
                Some(others) => others.and(holds),
                None => holds,
            });
        }
        Ok(row_exists)
    }

    /// Counts the copies of an aggregate that expressions on its columns become.
    fn count_copies<'a>(&mut self, mut expressions: impl Iterator<Item = &'a Expr>) -> Result<()> {
        expressions.try_for_each(|expression| {
            expression.apply(|part| {
                self.copied += usize::from(matches!(part, Expr::Column(_)));
                if self.copied > MOST_COPIED {
                    return plan_err!(
                        "the query asks for more than {MOST_COPIED} aggregates of what is found for the row \
                         around a subquery; name the aggregates in a query of their own, with GROUP BY, and \
                         join that"
                    );
                }
                Ok(TreeNodeRecursion::Continue)
            })?;
            Ok(())
        })
    }

    /// A condition that must hold, whatever others there are.
    fn conjunct(&mut self, expr: Expr, schema: &DFSchema) -> Result<Expr> {
        match as_membership(expr) {
            Expr::BinaryExpr(BinaryExpr {
                left,
                op: Operator::And,
                right,
            }) => Ok(self.conjunct(*left, schema)?.and(self.conjunct(*right, schema)?)),
            Expr::InSubquery(within) => self.sought(within, schema),
            Expr::Not(inner) => match as_membership(*inner) {
                Expr::InSubquery(within) => {
                    let negated = !within.negated;
                    self.sought(InSubquery { negated, ..within }, schema)
                }
                inner => self.selecting(Expr::Not(Box::new(inner)), schema, false),
            },
            expr => self.selecting(expr, schema, false),
        }
    }

    /// A value that must be among the rows of a subquery, or among none of them.
    fn sought(&mut self, within: InSubquery, schema: &DFSchema) -> Result<Expr> {
        let is_joined = within.subquery.outer_ref_columns.is_empty() && !is_constant(&within.expr)?;
        if is_joined || !within.negated {
            // Joined with the subquery as SQL says.
            return Ok(Expr::InSubquery(within));
        }
        // Of a row that is not compared with this one, it does not matter that its value is unknown. The
        // engine's join looks for null among all rows, or among none where it has no column to join by.
        let (rows, comparison) = self.compared(*within.expr, within.subquery, Operator::Eq, schema)?;
        exists(&rows, Expr::IsNotFalse(Box::new(comparison)), true)
    }

    /// A condition of which only matters whether it holds. `is_either`: it may hold in place of another one.
    fn selecting(&mut self, expr: Expr, schema: &DFSchema, is_either: bool) -> Result<Expr> {
        match as_membership(expr) {
            Expr::BinaryExpr(BinaryExpr {
                left,
                op: op @ (Operator::And | Operator::Or),
                right,
            }) => {
                let is_either = is_either || op == Operator::Or;
                let left = self.selecting(*left, schema, is_either)?;
                let right = self.selecting(*right, schema, is_either)?;
                Ok(Expr::BinaryExpr(BinaryExpr::new(
                    Box::new(left),
                    op,
                    Box::new(right),
                )))
            }
            expr @ Expr::InSubquery(InSubquery { negated: false, .. }) => Ok(expr),
            expr if may_be_merged(&expr, is_either)? => Ok(expr),
            expr => {
                let exact = expr.transform_up(|expr| self.subquery(as_membership(expr), schema))?;
                Ok(self.lists(exact.data)?.data)
            }
        }
    }

    /// A comparison with all rows of a subquery as true, false, or null.
    fn subquery(&mut self, expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
        let (value, subquery, op, all) = match expr {
            Expr::InSubquery(within) => {
                let op = if within.negated {
                    Operator::NotEq
                } else {
                    Operator::Eq
                };
                (within.expr, within.subquery, op, within.negated)
            }
            Expr::SetComparison(compared) => {
                let all = matches!(compared.quantifier, SetQuantifier::All);
                (compared.expr, compared.subquery, compared.op, all)
            }
            expr => return Ok(Transformed::no(expr)),
        };
        let (rows, comparison) = self.compared(*value, subquery, op, schema)?;
        let decides = if all {
            Expr::Not(Box::new(comparison.clone()))
        } else {
            comparison.clone()
        };
        let is_decided = exists(&rows, decides, false)?;
        let is_unknown = exists(&rows, Expr::IsNull(Box::new(comparison)), false)?;
        let unknown = Expr::Literal(ScalarValue::Boolean(None), None);
        Ok(Transformed::yes(Expr::Case(Case::new(
            None,
            vec![
                (Box::new(is_decided), Box::new(lit(!all))),
                (Box::new(is_unknown), Box::new(unknown)),
            ],
            Some(Box::new(lit(all))),
        ))))
    }

    /// The rows of a subquery, and how a value around it compares with each.
    fn compared(
        &mut self,
        value: Expr,
        subquery: Subquery,
        op: Operator,
        schema: &DFSchema,
    ) -> Result<(LogicalPlan, Expr)> {
        let value = as_outer(value, schema)?;
        self.named += 1;
        // A name that nobody else has: it may read from the same table as the query around it.
        let name = format!("__compared_{}", self.named);
        let column = Expr::Column(Column::from(subquery.subquery.schema().qualified_field(0)));
        let rows = LogicalPlanBuilder::from(Arc::unwrap_or_clone(subquery.subquery))
            .project([column.alias(name.as_str())])?
            .build()?;
        let row = Expr::Column(Column::new_unqualified(name));
        let comparison = Expr::BinaryExpr(BinaryExpr::new(Box::new(value), op, Box::new(row)));
        Ok((rows, comparison))
    }

    /// Lists that are not merged with others.
    fn lists(&self, expr: Expr) -> Result<Transformed<Expr>> {
        if !self.may_meet {
            return Ok(Transformed::no(expr));
        }
        expr.transform_up(|part| {
            if is_list(&part) {
                return Ok(Transformed::yes(self.apart.call(vec![part])));
            }
            Ok(Transformed::no(part))
        })
    }
}

/// What an expression on a subquery of a single row of this value is where there is the row, and what it is
/// where there is none: `None` for the value itself, which is null there.
fn compared_or_existing(expr: Expr, value: Option<Expr>) -> (Expr, Option<bool>) {
    match (expr, value) {
        (Expr::Exists(exists), _) => (lit(!exists.negated), Some(exists.negated)),
        (Expr::InSubquery(within), Some(value)) => {
            let op = if within.negated {
                Operator::NotEq
            } else {
                Operator::Eq
            };
            let compared = BinaryExpr::new(within.expr, op, Box::new(value));
            (Expr::BinaryExpr(compared), Some(within.negated))
        }
        (Expr::SetComparison(set), Some(value)) => {
            let all = matches!(set.quantifier, SetQuantifier::All);
            let compared = BinaryExpr::new(set.expr, set.op, Box::new(value));
            (Expr::BinaryExpr(compared), Some(all))
        }
        (Expr::ScalarSubquery(_), Some(value)) => (value, None),
        (expr, _) => (expr, None),
    }
}

/// `= ANY` of a subquery and `<> ALL` of one, as what they mean.
fn as_membership(expr: Expr) -> Expr {
    match expr {
        Expr::SetComparison(SetComparison {
            expr,
            subquery,
            op: op @ (Operator::Eq | Operator::NotEq),
            quantifier,
        }) if matches!(quantifier, SetQuantifier::All) == (op == Operator::NotEq) => {
            Expr::InSubquery(InSubquery::new(expr, subquery, op == Operator::NotEq))
        }
        expr => expr,
    }
}

/// Whether there is a row for which a condition holds, or none.
fn exists(rows: &LogicalPlan, condition: Expr, negated: bool) -> Result<Expr> {
    let mut subquery = LogicalPlanBuilder::from(rows.clone())
        .filter(condition)?
        .build()?;
    let outer_ref_columns = subquery.all_out_ref_exprs();
    if outer_ref_columns.is_empty() {
        // The answer is the same for all rows around it, each of which is joined with what was found.
        subquery = LogicalPlanBuilder::from(subquery).limit(0, Some(1))?.build()?;
    }
    let subquery = Subquery {
        subquery: Arc::new(subquery),
        outer_ref_columns,
        spans: Spans::new(),
    };
    Ok(Expr::Exists(Exists::new(subquery, negated)))
}

/// The condition that it is given. No rule of the optimizer looks into it.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Apart {
    signature: Signature,
}

impl Apart {
    fn new() -> Self {
        Self {
            signature: Signature::exact(vec![DataType::Boolean], Volatility::Immutable),
        }
    }
}

impl ScalarUDFImpl for Apart {
    fn name(&self) -> &'static str {
        "apart"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _given: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let given = arguments.args.into_iter().next();
        Ok(given.unwrap_or(ColumnarValue::Scalar(ScalarValue::Boolean(None))))
    }
}
