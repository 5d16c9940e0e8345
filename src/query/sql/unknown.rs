//! Keeps what is unknown apart from what is false.
//!
//! A comparison with null is neither true nor false, and neither is its opposite. The optimizer forgets that
//! in two cases: it takes a value for not found in a subquery where it is unknown whether it is, and two
//! lists that have nothing in common for a condition that never holds. Where a row is only kept or not, the
//! difference matters to no condition but `NOT IN` beside others, and all others stay as they are. Everywhere
//! else they are written so that nothing can be forgotten. Knows plans and expressions only.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode as _, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, Result, ScalarValue, Spans, plan_err};
use datafusion::logical_expr::expr::{BinaryExpr, Case, Exists, InSubquery, SetComparison, SetQuantifier};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    ColumnarValue, Expr, Filter, Join, JoinType, LogicalPlan, LogicalPlanBuilder, Operator,
    ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Subquery, Volatility, lit,
};

/// The same plan, of which no rule of the optimizer forgets what is unknown.
pub(super) fn kept(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut keeping = Keeping {
        apart: Arc::new(ScalarUDF::new_from_impl(Apart::new())),
        named: 0,
    };
    let rewritten = plan.transform_up_with_subqueries(|plan| {
        let schema = merge_schema(&plan.inputs());
        if let LogicalPlan::Filter(filter) = plan {
            let predicate = keeping.conjunct(filter.predicate, &schema)?;
            return Ok(Transformed::yes(LogicalPlan::Filter(Filter::try_new(
                predicate,
                filter.input,
            )?)));
        }
        if let LogicalPlan::Join(join) = plan {
            return Ok(Transformed::yes(keeping.join(join, &schema)?));
        }
        let names = NamePreserver::new(&plan);
        plan.map_expressions(|expr| {
            refuse_subqueries(&expr)?;
            let name = names.save(&expr);
            let kept = keeping.lists(expr)?;
            Ok(kept.update_data(|expr| name.restore(expr)))
        })
    })?;
    Ok(rewritten.data)
}

struct Keeping {
    apart: Arc<ScalarUDF>,
    /// How many subqueries have a name of their own.
    named: usize,
}

impl Keeping {
    /// A join. Subqueries in the condition of an inner join become a filter of the joined rows, which is the
    /// same; of others the engine knows none.
    fn join(&mut self, mut join: Join, schema: &DFSchema) -> Result<LogicalPlan> {
        let Some(condition) = join.filter.take() else {
            return Ok(LogicalPlan::Join(join));
        };
        if join.join_type == JoinType::Inner && has_subqueries(&condition)? {
            let condition = self.conjunct(condition, schema)?;
            let joined = Arc::new(LogicalPlan::Join(join));
            return Ok(LogicalPlan::Filter(Filter::try_new(condition, joined)?));
        }
        refuse_subqueries(&condition)?;
        join.filter = Some(self.selecting(condition, schema)?);
        Ok(LogicalPlan::Join(join))
    }

    /// A condition that must hold, whatever others there are.
    fn conjunct(&mut self, expr: Expr, schema: &DFSchema) -> Result<Expr> {
        match as_membership(expr) {
            Expr::BinaryExpr(BinaryExpr {
                left,
                op: Operator::And,
                right,
            }) => Ok(self.conjunct(*left, schema)?.and(self.conjunct(*right, schema)?)),
            // Joined with the subquery as SQL says.
            expr @ Expr::InSubquery(_) => Ok(expr),
            Expr::Not(inner) if matches!(*inner, Expr::InSubquery(_)) => Ok(Expr::Not(inner)),
            expr => self.selecting(expr, schema),
        }
    }

    /// A condition of which only matters whether it holds.
    fn selecting(&mut self, expr: Expr, schema: &DFSchema) -> Result<Expr> {
        match as_membership(expr) {
            Expr::BinaryExpr(BinaryExpr {
                left,
                op: op @ (Operator::And | Operator::Or),
                right,
            }) => {
                let (left, right) = (self.selecting(*left, schema)?, self.selecting(*right, schema)?);
                Ok(Expr::BinaryExpr(BinaryExpr::new(
                    Box::new(left),
                    op,
                    Box::new(right),
                )))
            }
            expr @ Expr::InSubquery(InSubquery { negated: false, .. }) => Ok(expr),
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
        let value = as_outer(*value, schema)?;
        self.named += 1;
        // A name that nobody else has: it may read from the same table as the query around it.
        let name = format!("__compared_{}", self.named);
        let column = Expr::Column(Column::from(subquery.subquery.schema().qualified_field(0)));
        let rows = LogicalPlanBuilder::from(Arc::unwrap_or_clone(subquery.subquery))
            .project([column.alias(name.as_str())])?
            .build()?;
        let row = Expr::Column(Column::new_unqualified(name));
        let comparison = Expr::BinaryExpr(BinaryExpr::new(Box::new(value), op, Box::new(row)));
        let decides = if all {
            Expr::Not(Box::new(comparison.clone()))
        } else {
            comparison.clone()
        };
        let is_decided = exists(&rows, decides)?;
        let is_unknown = exists(&rows, Expr::IsNull(Box::new(comparison)))?;
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

    /// Lists that are not merged with each other.
    fn lists(&self, expr: Expr) -> Result<Transformed<Expr>> {
        let mut lists = 0;
        expr.apply(|part| {
            lists += usize::from(is_list(part));
            Ok(TreeNodeRecursion::Continue)
        })?;
        if lists < 2 {
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

fn has_subqueries(expr: &Expr) -> Result<bool> {
    expr.exists(|part| {
        Ok(matches!(
            part,
            Expr::Exists(_) | Expr::InSubquery(_) | Expr::SetComparison(_)
        ))
    })
}

/// Refuses what can only be a condition on rows.
fn refuse_subqueries(expr: &Expr) -> Result<()> {
    if has_subqueries(expr)? {
        return plan_err!(
            "EXISTS, IN, ANY and ALL with a query belong into WHERE, HAVING, or the ON of an inner join; \
             join the query, or count its rows, to have it as a value"
        );
    }
    Ok(())
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

/// A list, or what the optimizer may make one of.
const fn is_list(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::InList(_) | Expr::BinaryExpr(BinaryExpr { op: Operator::Or, .. })
    )
}

/// A value of the query around a subquery, as it is named inside.
fn as_outer(value: Expr, schema: &DFSchema) -> Result<Expr> {
    let outer = value.transform_up(|expr| match expr {
        Expr::Column(column) => {
            let field = schema.qualified_field_from_column(&column)?.1;
            Ok(Transformed::yes(Expr::OuterReferenceColumn(
                Arc::clone(field),
                column,
            )))
        }
        Expr::Exists(_) | Expr::InSubquery(_) | Expr::SetComparison(_) | Expr::ScalarSubquery(_) => {
            plan_err!("a subquery is compared with another one; name the first in a query of its own")
        }
        expr => Ok(Transformed::no(expr)),
    })?;
    Ok(outer.data)
}

fn exists(rows: &LogicalPlan, condition: Expr) -> Result<Expr> {
    let subquery = LogicalPlanBuilder::from(rows.clone())
        .filter(condition)?
        .build()?;
    let outer_ref_columns = subquery.all_out_ref_exprs();
    let subquery = Subquery {
        subquery: Arc::new(subquery),
        outer_ref_columns,
        spans: Spans::new(),
    };
    Ok(Expr::Exists(Exists::new(subquery, false)))
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
