//! Keeps what is unknown apart from what is false.
//!
//! A comparison with null is neither true nor false, and neither is its opposite. The optimizer forgets that
//! in two cases: it takes a value for not found in a subquery where it is unknown whether it is, and it
//! merges lists by how their members are written, as if each of them were a value that differs from those
//! written in another way. Where a row is only kept or not, that is right for lists of constants, and all
//! conditions but some `NOT IN` stay as they are. Everywhere else they are written so that nothing can be
//! forgotten.
//!
//! The same is done where subqueries about the row around them are joined with it in a way that forgets what
//! they mean: that there is a row that says of nothing how much it is. Where they skip rows, and nothing else
//! says the same, they are refused. Knows plans and expressions only.

use std::sync::Arc;

use datafusion::arrow::array::Array as _;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode as _, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, Result, ScalarValue, Spans, plan_err};
use datafusion::logical_expr::expr::{BinaryExpr, Case, Exists, InSubquery, SetComparison, SetQuantifier};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    ColumnarValue, Distinct, Expr, FetchType, Filter, Join, JoinType, Limit, LogicalPlan, LogicalPlanBuilder,
    Operator, Projection, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, SkipType, Sort, Subquery,
    SubqueryAlias, Volatility, lit, scalar_subquery,
};

const ARRAY_HAS: &str = "array_has";
const MAKE_ARRAY: &str = "make_array";
const REGEXP_LIKE: &str = "regexp_like";

/// The same plan, of which no rule of the optimizer forgets what is unknown.
pub(in crate::query::sql) fn kept(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut keeping = Keeping {
        apart: Arc::new(ScalarUDF::new_from_impl(Apart::new())),
        may_meet: may_lists_meet(&plan)?,
        named: 0,
    };
    let rewritten = plan.transform_up_with_subqueries(|plan| {
        let schema = merge_schema(&plan.inputs());
        if let LogicalPlan::Filter(filter) = plan {
            let predicate = keeping.single_rows(filter.predicate, &schema)?;
            let predicate = keeping.conjunct(predicate, &schema)?;
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
    rewritten.data.apply_with_subqueries(|plan| {
        plan.apply_expressions(|expr| {
            expr.apply(|part| {
                if let Expr::Exists(exists) = part {
                    refuse_lost_limits(&exists.subquery.subquery, true, false)?;
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(rewritten.data)
}

struct Keeping {
    apart: Arc<ScalarUDF>,
    /// Whether there are lists that could be merged. Wherever they stand: conditions move to where the
    /// columns that they are about are computed.
    may_meet: bool,
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
            let condition = self.single_rows(condition, schema)?;
            let condition = self.conjunct(condition, schema)?;
            let joined = Arc::new(LogicalPlan::Join(join));
            return Ok(LogicalPlan::Filter(Filter::try_new(condition, joined)?));
        }
        refuse_subqueries(&condition)?;
        join.filter = Some(self.selecting(condition, schema, false)?);
        Ok(LogicalPlan::Join(join))
    }

    /// A condition in which subqueries of one row are values.
    fn single_rows(&self, condition: Expr, schema: &DFSchema) -> Result<Expr> {
        let with_values = condition.transform_up(|expr| self.single_row(expr, schema))?;
        Ok(with_values.data)
    }

    /// A comparison with the one row that aggregates what is found for the row around it. The engine groups
    /// what it finds for all rows, and has no group, and so no row, where nothing is found.
    fn single_row(&self, expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
        let (Expr::Exists(Exists { subquery, .. })
        | Expr::InSubquery(InSubquery { subquery, .. })
        | Expr::SetComparison(SetComparison { subquery, .. })) = &expr
        else {
            return Ok(Transformed::no(expr));
        };
        let Some(row) = SingleRow::of(&subquery.subquery)? else {
            refuse_single_rows(&subquery.subquery)?;
            return Ok(Transformed::no(expr));
        };
        let value = match (&expr, row.columns.as_slice()) {
            // Whatever its columns are.
            (Expr::Exists(_), _) => None,
            (_, [column]) => Some(row.beside(column.clone(), schema)?),
            // Refused by the engine.
            _ => return Ok(Transformed::no(expr)),
        };
        let mut is_left: Option<Expr> = None;
        for condition in &row.conditions {
            let holds = row.beside(condition.clone(), schema)?;
            let holds = self.lists(holds)?.data;
            is_left = Some(match is_left {
                Some(others) => others.and(holds),
                None => holds,
            });
        }
        let (compared, without) = match (expr, value) {
            (Expr::Exists(exists), _) => (lit(!exists.negated), exists.negated),
            (Expr::InSubquery(within), Some(value)) => {
                let op = if within.negated {
                    Operator::NotEq
                } else {
                    Operator::Eq
                };
                let compared = BinaryExpr::new(within.expr, op, Box::new(value));
                (Expr::BinaryExpr(compared), within.negated)
            }
            (Expr::SetComparison(set), Some(value)) => {
                let all = matches!(set.quantifier, SetQuantifier::All);
                let compared = BinaryExpr::new(set.expr, set.op, Box::new(value));
                (Expr::BinaryExpr(compared), all)
            }
            (expr, _) => return Ok(Transformed::no(expr)),
        };
        Ok(Transformed::yes(match is_left {
            Some(is_left) => Expr::Case(Case::new(
                None,
                vec![(Box::new(is_left), Box::new(compared))],
                Some(Box::new(lit(without))),
            )),
            None => compared,
        }))
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

/// Whether there is more than one list in a query, or one that has a name: where the name stands, conditions
/// get what stands behind it, each of them.
fn may_lists_meet(plan: &LogicalPlan) -> Result<bool> {
    let mut lists = 0;
    plan.apply_with_subqueries(|plan| {
        let is_condition = matches!(plan, LogicalPlan::Filter(_) | LogicalPlan::Join(_));
        let uses = if is_condition { 1 } else { 2 };
        plan.apply_expressions(|expr| {
            expr.apply(|part| {
                if is_list(part) {
                    lists += uses;
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(lists > 1)
}

/// Whether a condition is a list that holds for the same rows after it was merged with others that are.
///
/// Beside `AND`, what lists have in common, and what is left of one without the members of another one, is
/// found by comparing how members are written: the members must be constants, and null in a list of what a
/// value is not would be lost. Beside `OR`, lists of what a value is not become true if they have nothing in
/// common, which they are not for null.
fn may_be_merged(condition: &Expr, is_either: bool) -> Result<bool> {
    let (condition, is_opposite) = match condition {
        Expr::Not(inner) => (inner.as_ref(), true),
        condition => (condition, false),
    };
    let Some(list) = as_list(condition)? else {
        return Ok(false);
    };
    let negated = list.negated != is_opposite;
    if (negated && is_either) || list.value.exists(|part| Ok(is_list(part) || is_subquery(part)))? {
        return Ok(false);
    }
    Ok(list.is_constant && (list.is_known || !negated))
}

/// What a list, however it is written, means to the optimizer.
struct List<'a> {
    value: &'a Expr,
    /// Whether all members are the same in every row.
    is_constant: bool,
    /// Whether no member is null.
    is_known: bool,
    negated: bool,
}

/// The list that a condition is or may become, unless it is a chain of `OR`.
fn as_list(condition: &Expr) -> Result<Option<List<'_>>> {
    if let Some(matched) = as_match(condition) {
        return Ok(Some(List {
            value: matched.value,
            is_constant: is_constant(matched.pattern)?,
            is_known: true,
            negated: matched.negated,
        }));
    }
    match condition {
        Expr::InList(list) => {
            let mut is_all_constant = true;
            for member in &list.list {
                is_all_constant &= is_constant(member)?;
            }
            Ok(Some(List {
                value: list.expr.as_ref(),
                is_constant: is_all_constant,
                is_known: list.list.iter().all(is_known),
                negated: list.negated,
            }))
        }
        Expr::ScalarFunction(call) if call.func.name() == ARRAY_HAS => {
            let [items, value] = call.args.as_slice() else {
                return Ok(None);
            };
            Ok(Some(List {
                value,
                is_constant: is_constant(items)?,
                is_known: holds_known(items),
                negated: false,
            }))
        }
        _ => Ok(None),
    }
}

/// A text that is matched with a regular expression.
struct Match<'a> {
    value: &'a Expr,
    pattern: &'a Expr,
    negated: bool,
}

/// The match that a condition is. Where letters of both cases are the same, none becomes a list.
fn as_match(condition: &Expr) -> Option<Match<'_>> {
    match condition {
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: op @ (Operator::RegexMatch | Operator::RegexNotMatch),
            right,
        }) => Some(Match {
            value: left,
            pattern: right,
            negated: *op == Operator::RegexNotMatch,
        }),
        Expr::ScalarFunction(call) if call.func.name() == REGEXP_LIKE => {
            let [value, pattern, ..] = call.args.as_slice() else {
                return None;
            };
            Some(Match {
                value,
                pattern,
                negated: false,
            })
        }
        _ => None,
    }
}

/// Whether a pattern may mean whole texts, such as `^(foo|bar)$` or `^foo$|^bar$`.
fn may_list_texts(pattern: &Expr) -> bool {
    let text = match pattern {
        Expr::Literal(value, _) => value.try_as_str().flatten(),
        _ => None,
    };
    text.is_none_or(|text| text.contains(['(', '|']))
}

/// Whether an expression has the same value in every row.
fn is_constant(expr: &Expr) -> Result<bool> {
    let varies = expr.exists(|part| {
        Ok(is_subquery(part)
            || is_list(part)
            || matches!(part, Expr::Column(_) | Expr::OuterReferenceColumn(..)))
    })?;
    Ok(!varies)
}

/// Whether a constant is a value, and not null.
fn is_known(constant: &Expr) -> bool {
    match constant {
        Expr::Literal(value, _) => !value.is_null(),
        Expr::Cast(cast) => is_known(&cast.expr),
        Expr::Negative(inner) => is_known(inner),
        _ => false,
    }
}

/// Whether an array of constants has no item that is null.
fn holds_known(items: &Expr) -> bool {
    match items {
        Expr::Literal(ScalarValue::List(lists), _) => lists.null_count() + lists.values().null_count() == 0,
        Expr::ScalarFunction(call) if call.func.name() == MAKE_ARRAY => call.args.iter().all(is_known),
        Expr::Cast(cast) => holds_known(&cast.expr),
        _ => false,
    }
}

const fn is_subquery(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::Exists(_) | Expr::InSubquery(_) | Expr::SetComparison(_) | Expr::ScalarSubquery(_)
    )
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

/// A list, or what the optimizer may make one of: a chain of `OR`, or of what is the same once its `NOT` is
/// written inside, an item that an array has, as `= ANY` of an array is planned, or a match with whole texts.
fn is_list(expr: &Expr) -> bool {
    match expr {
        Expr::InList(_) | Expr::BinaryExpr(BinaryExpr { op: Operator::Or, .. }) => true,
        Expr::Not(inner) => matches!(
            inner.as_ref(),
            Expr::BinaryExpr(BinaryExpr {
                op: Operator::And,
                ..
            })
        ),
        Expr::ScalarFunction(call) if call.func.name() == ARRAY_HAS => true,
        expr => as_match(expr).is_some_and(|matched| may_list_texts(matched.pattern)),
    }
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
        expr if is_subquery(&expr) => {
            plan_err!("a subquery is compared with another one; name the first in a query of its own")
        }
        expr => Ok(Transformed::no(expr)),
    })?;
    Ok(outer.data)
}

/// The row of a subquery that aggregates, without `GROUP BY`, what it finds for the row around it.
struct SingleRow {
    aggregate: LogicalPlan,
    /// What the subquery makes of the columns of the aggregate.
    columns: Vec<Expr>,
    /// Conditions on the columns of the aggregate, under which there is the row.
    conditions: Vec<Expr>,
}

impl SingleRow {
    fn of(rows: &LogicalPlan) -> Result<Option<Self>> {
        let input = match rows {
            LogicalPlan::Aggregate(aggregate) if is_grouped_by_the_engine(rows)? => {
                refuse_single_rows(&aggregate.input)?;
                let columns = aggregate.schema.columns();
                return Ok(Some(Self {
                    aggregate: rows.clone(),
                    columns: columns.into_iter().map(Expr::Column).collect(),
                    conditions: Vec::new(),
                }));
            }
            LogicalPlan::Projection(Projection { input, .. })
            | LogicalPlan::SubqueryAlias(SubqueryAlias { input, .. })
            | LogicalPlan::Filter(Filter { input, .. })
            | LogicalPlan::Sort(Sort { input, .. })
            | LogicalPlan::Distinct(Distinct::All(input)) => input,
            LogicalPlan::Limit(limit) if leaves_the_first(limit)? => &limit.input,
            _ => return Ok(None),
        };
        let Some(mut row) = Self::of(input)? else {
            return Ok(None);
        };
        match rows {
            LogicalPlan::Projection(selected) => {
                let columns = selected.expr.iter();
                row.columns = columns
                    .map(|column| row.of_aggregate(column.clone(), input.schema()))
                    .collect::<Result<_>>()?;
            }
            LogicalPlan::Filter(kept) => {
                let condition = row.of_aggregate(kept.predicate.clone(), input.schema())?;
                row.conditions.push(condition);
            }
            _ => {}
        }
        Ok(Some(row))
    }

    /// An expression on columns that are made of the row, written as one on the columns of the aggregate.
    fn of_aggregate(&self, expr: Expr, schema: &DFSchema) -> Result<Expr> {
        let written = expr.transform_down(|expr| match expr {
            Expr::Column(column) => {
                let made = self.columns.get(schema.index_of_column(&column)?).cloned();
                let made = made.unwrap_or(Expr::Column(column));
                Ok(Transformed::new(made, true, TreeNodeRecursion::Jump))
            }
            expr => Ok(Transformed::no(expr)),
        })?;
        Ok(written.data.unalias())
    }

    /// An expression on the columns of the aggregate, as it is written beside the subquery.
    fn beside(&self, expr: Expr, schema: &DFSchema) -> Result<Expr> {
        let written = expr.transform_down(|expr| match expr {
            Expr::Column(column) => {
                let value =
                    Projection::try_new(vec![Expr::Column(column)], Arc::new(self.aggregate.clone()))?;
                let value = scalar_subquery(Arc::new(LogicalPlan::Projection(value)));
                Ok(Transformed::new(value, true, TreeNodeRecursion::Jump))
            }
            Expr::OuterReferenceColumn(_, column) if schema.has_column(&column) => {
                Ok(Transformed::yes(Expr::Column(column)))
            }
            Expr::ScalarSubquery(value) if value.outer_ref_columns.is_empty() => {
                Ok(Transformed::no(Expr::ScalarSubquery(value)))
            }
            expr if is_subquery(&expr) => plan_err!(
                "an aggregate of what is found for the row around it is compared with a subquery; give that \
                 subquery GROUP BY, or name the other in a query of its own"
            ),
            expr => Ok(Transformed::no(expr)),
        })?;
        Ok(written.data)
    }
}

/// Whether a limit leaves the first row if there is one.
fn leaves_the_first(limit: &Limit) -> Result<bool> {
    let is_from_the_first = matches!(limit.get_skip_type()?, SkipType::Literal(0));
    let is_for_one = match limit.get_fetch_type()? {
        FetchType::Literal(most) => most != Some(0),
        FetchType::UnsupportedExpr => false,
    };
    Ok(is_from_the_first && is_for_one)
}

/// Whether an aggregate of all rows becomes one of the rows that belong to each row around the subquery.
fn is_grouped_by_the_engine(plan: &LogicalPlan) -> Result<bool> {
    let LogicalPlan::Aggregate(aggregate) = plan else {
        return Ok(false);
    };
    if !aggregate.group_expr.is_empty() {
        return Ok(false);
    }
    let mut refers_outside = false;
    aggregate.input.apply(|plan| {
        // What stands beside LATERAL refers to its neighbours.
        if matches!(plan, LogicalPlan::Subquery(_)) {
            return Ok(TreeNodeRecursion::Jump);
        }
        refers_outside |= plan.contains_outer_reference();
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(refers_outside)
}

/// Refuses such rows where more is made of them: there, it matters that the row is missing.
fn refuse_single_rows(rows: &LogicalPlan) -> Result<()> {
    rows.apply(|plan| {
        if matches!(plan, LogicalPlan::Subquery(_)) {
            return Ok(TreeNodeRecursion::Jump);
        }
        if is_grouped_by_the_engine(plan)? {
            return plan_err!(
                "a subquery of IN, EXISTS, ANY or ALL joins, skips or aggregates what it has aggregated for \
                 the row around it; compare with the aggregate itself, as in n = (SELECT max(...) ...), or \
                 name the aggregates in a query of their own, with GROUP BY, and join that"
            );
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

/// Refuses limits of `EXISTS` that matter and would be left out: of rows that depend on the row around them,
/// and of what comes after such rows. Returns whether there were any.
///
/// `any`: it only matters whether there is a row. `is_about_outer`: there were such rows before.
fn refuse_lost_limits(rows: &LogicalPlan, any: bool, is_about_outer: bool) -> Result<bool> {
    match rows {
        // What stands beside LATERAL is joined otherwise.
        LogicalPlan::Subquery(_) => Ok(is_about_outer),
        LogicalPlan::Limit(limit) => {
            let is_harmless = any && matches!(limit.get_skip_type()?, SkipType::Literal(0));
            let is_about_outer = refuse_lost_limits(&limit.input, is_harmless, is_about_outer)?;
            // No rows at all stay none.
            let is_of_none = matches!(limit.get_fetch_type()?, FetchType::Literal(Some(0)));
            if is_about_outer && !is_harmless && !is_of_none {
                return plan_err!(
                    "a subquery that depends on the row around it has OFFSET, or LIMIT where more matters \
                     than whether there is a row; number its rows with row_number() in a query of its own, \
                     and join that"
                );
            }
            Ok(is_about_outer)
        }
        LogicalPlan::Filter(filter) => {
            let is_about_outer = refuse_lost_limits(&filter.input, false, is_about_outer)?;
            if is_about_outer {
                // These are joined with what is filtered.
                filter.predicate.apply(|part| {
                    if let Expr::Exists(Exists { subquery, .. })
                    | Expr::InSubquery(InSubquery { subquery, .. }) = part
                    {
                        refuse_lost_limits(&subquery.subquery, matches!(part, Expr::Exists(_)), true)?;
                    }
                    Ok(TreeNodeRecursion::Continue)
                })?;
            }
            Ok(is_about_outer || filter.predicate.contains_outer())
        }
        rows => {
            let any = any
                && match rows {
                    LogicalPlan::Projection(_)
                    | LogicalPlan::SubqueryAlias(_)
                    | LogicalPlan::Sort(_)
                    | LogicalPlan::Distinct(_)
                    | LogicalPlan::Window(_) => true,
                    LogicalPlan::Aggregate(aggregate) => !aggregate.group_expr.is_empty(),
                    _ => false,
                };
            let mut is_about_outer = is_about_outer;
            for input in rows.inputs() {
                is_about_outer = refuse_lost_limits(input, any, is_about_outer)?;
            }
            Ok(is_about_outer)
        }
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
