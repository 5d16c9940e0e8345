//! Cuts texts to the length of the type that they are made into, which the engine passes over.
//!
//! `CAST(a AS varchar(20))` is at most twenty characters long. Knows the grammar only.

use std::convert::Infallible;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    CharacterLength, DataType, Expr, Ident, Select, SelectItem, Value, VisitorMut,
};

use super::called::call;
use super::distinct_from::taken;

/// Writes lengths of texts as calls that cut them.
pub(super) struct ShortTexts;

impl VisitorMut for ShortTexts {
    type Break = Infallible;

    /// A column that is made into another type keeps its name, also if it is cut.
    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Infallible> {
        for item in &mut select.projection {
            if let SelectItem::UnnamedExpr(expr) = item
                && let Some(alias) = column_cut(expr).and_then(last_name).cloned()
            {
                let expr = taken(expr);
                *item = SelectItem::ExprWithAlias { expr, alias };
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        if let Expr::Cast { data_type, .. } = expr
            && let Some(length) = length_of(data_type)
        {
            *data_type = DataType::Varchar(None);
            let length = Expr::Value(Value::Number(length.to_string(), false).into());
            *expr = call("left", vec![taken(expr), length]);
        }
        ControlFlow::Continue(())
    }
}

/// The column that is all of what `expr` makes into a text of some length.
pub(super) fn column_cut(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::Cast { expr, data_type, .. } if length_of(data_type).is_some() => {
            last_name(expr).map(|_| expr.as_ref())
        }
        _ => None,
    }
}

/// The column that `expr` is, or makes into another type, and all of it.
pub(super) fn column_made_from(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) => Some(expr),
        Expr::Cast { expr, data_type, .. } if length_of(data_type).is_none() => column_made_from(expr),
        Expr::Nested(expr) => column_made_from(expr),
        _ => None,
    }
}

/// The name of a column without that of its table.
pub(super) fn last_name(column: &Expr) -> Option<&Ident> {
    match column {
        Expr::Identifier(name) => Some(name),
        Expr::CompoundIdentifier(names) => names.last(),
        _ => None,
    }
}

/// The length, if the type gives one: at most the longest that `left` takes, and longer than all texts.
fn length_of(data_type: &DataType) -> Option<u64> {
    match data_type {
        DataType::Varchar(Some(CharacterLength::IntegerLength { length, unit: None })) => {
            Some((*length).min(i64::MAX.unsigned_abs()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::dialect::GenericDialect;
    use datafusion::sql::sqlparser::parser::Parser;

    use super::*;
    use crate::query::sql::walking::change_through;

    #[test]
    fn a_text_is_cut_to_the_length_of_its_type() {
        for (text, expected) in [
            (
                "SELECT CAST(t.a AS VARCHAR(2)) FROM t",
                "SELECT left(CAST(t.a AS VARCHAR), 2) AS a FROM t",
            ),
            (
                "SELECT upper(a::varchar(2)) FROM t WHERE CAST(CAST(b AS varchar(3)) AS varchar(1)) = 'x'",
                "SELECT upper(left(a::VARCHAR, 2)) FROM t WHERE left(CAST(left(CAST(b AS VARCHAR), 3) \
                 AS VARCHAR), 1) = 'x'",
            ),
            (
                "SELECT CAST(a AS VARCHAR(18446744073709551615)) FROM t",
                "SELECT left(CAST(a AS VARCHAR), 9223372036854775807) AS a FROM t",
            ),
            (
                "SELECT CAST(a AS VARCHAR) FROM t",
                "SELECT CAST(a AS VARCHAR) FROM t",
            ),
        ] {
            let mut statements = Parser::parse_sql(&GenericDialect {}, text).unwrap();
            let ControlFlow::Continue(()) = change_through(&mut statements, &mut ShortTexts);
            assert_eq!(statements[0].to_string(), expected);
        }
    }
}
