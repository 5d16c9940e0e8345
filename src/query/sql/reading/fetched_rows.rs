//! Reads `FETCH FIRST 5 ROWS ONLY`, the spelling of the standard, as `LIMIT 5`, the only one that the engine
//! knows.
//!
//! Knows the grammar only.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, LimitClause, Query, Spanned as _, Value as Literal, VisitorMut};

use super::refusal::{Refusal, Where};

/// Moves the number of rows of each query to where the engine looks for it.
pub(super) struct FetchedRows;

impl VisitorMut for FetchedRows {
    type Break = Refusal;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Refusal> {
        let Some(fetch) = query.fetch.take() else {
            return ControlFlow::Continue(());
        };
        let place = Where::From(query.span().start, "FETCH");
        let refused = |message: &str| {
            let message = message.to_owned();
            ControlFlow::Break(Refusal { message, place })
        };
        if fetch.percent {
            return refused("FETCH takes a number of rows here, and no PERCENT");
        }
        if fetch.with_ties {
            return refused(
                "WITH TIES is not allowed; compare rank() OVER (ORDER BY …) with the number of rows",
            );
        }
        let one = || Expr::Value(Literal::Number("1".to_owned(), false).into());
        let rows = fetch.quantity.unwrap_or_else(one);
        match &mut query.limit_clause {
            Some(LimitClause::LimitOffset {
                limit: limit @ None, ..
            }) => *limit = Some(rows),
            Some(_) => return refused("LIMIT and FETCH both say how many rows; write one of them"),
            none => {
                *none = Some(LimitClause::LimitOffset {
                    limit: Some(rows),
                    offset: None,
                    limit_by: Vec::new(),
                });
            }
        }
        ControlFlow::Continue(())
    }
}
