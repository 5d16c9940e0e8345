//! Copies of parts of a query, of which there may be only so many: what is written out in full may repeat
//! parts that are long, and parts within these. Knows expressions only.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, Spanned as _, visit_expressions};

use super::clauses::{Refusal, Where};

/// The most parts that all copies have together.
const MOST_COPIED: usize = 4_096;

/// Copies expressions, and counts what is copied.
#[derive(Default)]
pub(super) struct Copies {
    parts: usize,
}

impl Copies {
    pub(super) fn copy(&mut self, expr: &Expr) -> Result<Box<Expr>, Refusal> {
        let within = visit_expressions(expr, |_| {
            self.parts += 1;
            if self.parts > MOST_COPIED {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        if within.is_break() {
            return Err(Refusal {
                message: format!(
                    "the comparisons of rows and with ANY up to here have more than {MOST_COPIED} parts once \
                     they are written out value by value; compare shorter lists, or join with VALUES"
                ),
                place: Where::At(expr.span().start),
            });
        }
        Ok(Box::new(expr.clone()))
    }
}
