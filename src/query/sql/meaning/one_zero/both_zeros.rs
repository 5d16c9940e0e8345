//! Lists of constants, with both zeros. Knows expressions only.

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

use crate::query::sql::keep_names::rewrite_keeping_names;

use super::zeros::{is_zero, zeros};

/// Gives the lists that the optimizer makes both zeros, if they have one.
///
/// It makes one list of `w = 0.0 OR w = 5.0 OR …` as soon as all of these values are constants, which some
/// are only once it has computed them or has found them in a subquery.
#[derive(Debug)]
pub(in crate::query::sql) struct BothZeros;

impl OptimizerRule for BothZeros {
    fn name(&self) -> &'static str {
        "both_zeros"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(&self, plan: LogicalPlan, _config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        rewrite_keeping_names(plan, |expr| Ok(with_both_zeros(expr)))
    }
}

fn with_both_zeros(expr: Expr) -> Transformed<Expr> {
    let Expr::InList(mut list) = expr else {
        return Transformed::no(expr);
    };
    let mut first = None;
    let mut has_both = false;
    for member in &list.list {
        match member {
            Expr::Literal(value, _) if is_zero(value) => {
                has_both |= *first.get_or_insert(value) != value;
            }
            Expr::Literal(..) => {}
            // Such a list is compared with values that have one zero.
            _ => return Transformed::no(Expr::InList(list)),
        }
    }
    let lacking = first.filter(|_| !has_both).and_then(other_zero);
    let lacks = lacking.is_some();
    list.list.extend(lacking.map(|zero| Expr::Literal(zero, None)));
    Transformed::new_transformed(Expr::InList(list), lacks)
}

/// The zero with the other sign. Zeros are told apart by their bits here.
fn other_zero(zero: &ScalarValue) -> Option<ScalarValue> {
    let zeros = zeros(&zero.data_type())?;
    zeros.into_iter().find(|other| other != zero)
}
