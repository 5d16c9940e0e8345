//! Keys of a GROUP BY whose names are the same: what is converted has the name of what it is converted from,
//! and so has a moment in a time zone. The planner finds a key by its name, and what is aggregated too. So
//! such keys, and conversions in what is aggregated, are planned within a condition that always holds: it
//! gives them names of their own, and the optimizer removes it.
//!
//! Knows the grammar and plans.

use std::collections::HashMap;
use std::convert::Infallible;
use std::ops::ControlFlow;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::{Expr as Planned, LogicalPlan};
use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CaseWhen, Expr, GroupByExpr, Ident, Query, Select, SelectItem, Value, Visitor, VisitorMut,
};

use super::conversions::{in_calls_alike, keeps_name};
use super::planned_name;
use crate::query::sql::walking::{change_through, look_through};

/// The beginning of the texts by which keys are told apart.
pub(super) const KEY: &str = "__key_";

/// Why a query is refused in which two such keys are still the same.
const ALIKE_KEYS: &str = "keys of GROUP BY require unique expression names, and what is converted \
                          keeps the name of its column: convert it in a subquery, under a name of its own";

/// The plan, unless keys of one GROUP BY have one name in it.
pub(in crate::query::sql) fn refuse_alike_keys(plan: LogicalPlan) -> Result<LogicalPlan> {
    plan.apply_with_subqueries(|step| {
        if let LogicalPlan::Aggregate(aggregate) = step {
            let mut named: HashMap<String, &Planned> = HashMap::new();
            for key in &aggregate.group_expr {
                let name = key.schema_name().to_string();
                if named.insert(name, key).is_some_and(|other| other != key) {
                    return plan_err!("{ALIKE_KEYS}");
                }
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(plan)
}

/// Gives the keys whose names are those of others names of their own, wherever they stand.
pub(in crate::query::sql) fn named_apart(query: &mut Query) {
    let mut keys = Keys::default();
    let ControlFlow::Continue(()) = look_through(query, &mut keys);
    let mut naming = Naming {
        keys: keys.0,
        open: Vec::new(),
    };
    let ControlFlow::Continue(()) = change_through(query, &mut naming);
}

/// Gives keys their names. One may be a part of another, which is compared before that has its name.
struct Naming {
    keys: Vec<Expr>,
    /// Which keys the expressions being walked through are, from the outermost on.
    open: Vec<Option<usize>>,
}

impl VisitorMut for Naming {
    type Break = Infallible;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        self.open.push(self.keys.iter().position(|key| key == expr));
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        if let Some(number) = self.open.pop().flatten() {
            let key = std::mem::replace(expr, Expr::Value(Value::Null.into()));
            *expr = under_a_name(number, key);
        }
        ControlFlow::Continue(())
    }
}

/// A name as it would be if no key had been given one of its own.
pub(super) fn own_name(name: &str) -> String {
    const END: &str = " END";
    let begin = format!("CASE WHEN Utf8(\"{KEY}");
    let mut own = name.to_owned();
    // The last one to begin has no other one in it.
    while let Some((before, after)) = own.rsplit_once(&begin) {
        let Some((_, key)) = after.split_once(" THEN ") else {
            break;
        };
        let (key, after) = key.split_once(END).unwrap_or((key, ""));
        own = [before, key, after].concat();
    }
    own
}

/// `CASE WHEN '__key_1' = '__key_1' THEN key END`.
fn under_a_name(number: usize, key: Expr) -> Expr {
    let text = || {
        Box::new(Expr::Value(
            Value::SingleQuotedString(format!("{KEY}{number}")).into(),
        ))
    };
    Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: vec![CaseWhen {
            condition: Expr::BinaryOp {
                left: text(),
                op: BinaryOperator::Eq,
                right: text(),
            },
            result: key,
        }],
        else_result: None,
    }
}

/// The keys, and conversions of what is aggregated, that have the names of others, each once.
#[derive(Default)]
struct Keys(Vec<Expr>);

impl Visitor for Keys {
    type Break = Infallible;

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<Self::Break> {
        let selected = &select.projection;
        let keys: Vec<&Expr> = match &select.group_by {
            GroupByExpr::All(_) => selected.iter().filter_map(expression).collect(),
            GroupByExpr::Expressions(keys, _) => keys.iter().map(|key| meant(key, selected)).collect(),
        };
        for key in keys.into_iter().map(bare) {
            if keeps_name(key) && !self.0.contains(key) {
                self.0.push(key.clone());
            }
        }
        for conversion in in_calls_alike(select) {
            if !self.0.contains(&conversion) {
                self.0.push(conversion);
            }
        }
        ControlFlow::Continue(())
    }
}

/// The expression that a key names by its place among what is selected, or by the name that it has there.
fn meant<'a>(key: &'a Expr, selected: &'a [SelectItem]) -> &'a Expr {
    let item = match key {
        Expr::Value(value) => match &value.value {
            Value::Number(place, _) => place.parse::<usize>().ok().and_then(|place| {
                let before = place.checked_sub(1)?;
                selected.get(before)
            }),
            _ => None,
        },
        Expr::Identifier(name) => selected.iter().find(|item| is_called(item, name)),
        _ => None,
    };
    item.and_then(expression).unwrap_or(key)
}

const fn expression(item: &SelectItem) -> Option<&Expr> {
    match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    }
}

fn is_called(item: &SelectItem, name: &Ident) -> bool {
    let SelectItem::ExprWithAlias { alias, .. } = item else {
        return false;
    };
    planned_name(alias) == planned_name(name)
}

fn bare(expr: &Expr) -> &Expr {
    match expr {
        Expr::Nested(inner) => bare(inner),
        expr => expr,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_what_it_would_be_without_keys() {
        let key = |number: usize, name: &str| {
            format!("CASE WHEN Utf8(\"{KEY}{number}\") = Utf8(\"{KEY}{number}\") THEN {name} END")
        };
        assert_eq!(own_name(&key(0, "t.a")), "t.a");
        let sum = format!("max({}) + {} + Int64(1)", key(0, "t.a"), key(12, "b"));
        assert_eq!(own_name(&sum), "max(t.a) + b + Int64(1)");
        assert_eq!(own_name(&key(0, &key(1, "t.a"))), "t.a");
        let within = format!(
            "max({}) + {}",
            key(0, &key(1, "t.a")),
            key(2, "CASE WHEN a THEN b END")
        );
        assert_eq!(own_name(&within), "max(t.a) + CASE WHEN a THEN b END");
        for name in ["a", "CASE WHEN a THEN b END"] {
            assert_eq!(own_name(name), name);
        }
    }
}
