//! Copies of parts of a query, of which there may be only so many: what is written out in full may repeat
//! parts that are long, and parts within these. Knows expressions only.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, Spanned as _};

use super::refusal::{Refusal, Where};
use crate::query::sql::walking::look_at_expressions;

/// The most parts that all copies have together.
const MOST_COPIED: usize = 4_096;

/// Copies expressions, and counts what is copied.
#[derive(Default)]
pub(super) struct Copies {
    parts: usize,
}

impl Copies {
    pub(super) fn copy(&mut self, expr: &Expr) -> Result<Box<Expr>, Refusal> {
        let within = look_at_expressions(expr, &mut |_| {
            self.parts += 1;
            if self.parts <= MOST_COPIED {
                return ControlFlow::Continue(());
            }
            ControlFlow::Break(Refusal {
                message: format!(
                    "the comparisons of rows and with ANY up to here have more than {MOST_COPIED} parts once \
                     they are written out value by value; compare shorter lists, or join with VALUES"
                ),
                place: Where::At(expr.span().start),
            })
        });
        match within {
            ControlFlow::Continue(()) => Ok(Box::new(expr.clone())),
            ControlFlow::Break(refusal) => Err(refusal),
        }
    }
}
