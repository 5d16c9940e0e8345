//! Reads a comparison of rows, as `(a, b) = (1, 2)`, as comparisons of their values.
//!
//! The engine makes structures of rows and compares them as a whole, where null equals null, and `IS NULL` is
//! false of all of them. In SQL rows are equal if all of their values are, and it is unknown whether they are
//! as long as that depends on null. So comparisons are written out value by value; where that is not possible
//! they are refused. Knows the grammar only.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, ObjectNamePart,
    Spanned as _, UnaryOperator, Value, VisitorMut,
};

use super::copies::Copies;
use super::refusal::{Refusal, Where};

/// Writes out the comparisons of a query.
#[derive(Default)]
pub(super) struct Rows {
    copies: Copies,
}

impl VisitorMut for Rows {
    type Break = Refusal;

    /// What is inside an expression was visited before.
    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Refusal> {
        match self.written_out(expr) {
            Ok(None) => ControlFlow::Continue(()),
            Ok(Some(written_out)) => {
                *expr = written_out;
                ControlFlow::Continue(())
            }
            Err(refused) => ControlFlow::Break(refused),
        }
    }
}

/// Values of two rows that are compared with each other.
type Pair<'a> = (&'a Expr, &'a Expr);

impl Rows {
    /// The comparison without rows, if it is one of rows.
    fn written_out(&mut self, expr: &Expr) -> Result<Option<Expr>, Refusal> {
        match expr {
            Expr::BinaryOp { left, op, right } => match pairs_of(op, left, right)? {
                Some(pairs) => Ok(Some(self.compared(&pairs, op)?)),
                None => Ok(None),
            },
            Expr::IsDistinctFrom(left, right) => match pairs(left, right)? {
                Some(pairs) => {
                    let any = self.distinct(&pairs, Expr::IsDistinctFrom)?;
                    Ok(Some(joined(any, &BinaryOperator::Or)))
                }
                None => Ok(None),
            },
            Expr::IsNotDistinctFrom(left, right) => match pairs(left, right)? {
                Some(pairs) => {
                    let all = self.distinct(&pairs, Expr::IsNotDistinctFrom)?;
                    Ok(Some(joined(all, &BinaryOperator::And)))
                }
                None => Ok(None),
            },
            Expr::IsNull(value) => self.each(value, Expr::IsNull),
            Expr::IsNotNull(value) => self.each(value, Expr::IsNotNull),
            Expr::InList { expr, list, negated } => self.listed(expr, list, *negated),
            Expr::Between {
                expr,
                negated,
                low,
                high,
            } => self.between(expr, *negated, low, high),
            Expr::InSubquery { expr, .. } if row(expr).is_some() => refused(
                expr,
                "IN with a query compares one value, not a row; write EXISTS with a query that compares each \
                 value, or join it",
            ),
            Expr::AnyOp { left, .. } | Expr::AllOp { left, .. } if row(left).is_some() => refused(
                left,
                "ANY and ALL compare one value, not a row; write IN with a list of rows, or join them",
            ),
            Expr::Case {
                operand: Some(operand),
                ..
            } if row(operand).is_some() => refused(
                operand,
                "CASE compares one value, not a row; write CASE WHEN with a comparison of the row in each",
            ),
            _ => Ok(None),
        }
    }

    /// What is asked of each value of a row, and must hold for all.
    fn each(&mut self, value: &Expr, asked: fn(Box<Expr>) -> Expr) -> Result<Option<Expr>, Refusal> {
        let Some(values) = row(value) else {
            return Ok(None);
        };
        let mut all = Vec::with_capacity(values.len());
        for value in values {
            all.push(asked(self.copies.copy(value)?));
        }
        Ok(Some(joined(all, &BinaryOperator::And)))
    }

    fn distinct(
        &mut self,
        pairs: &[Pair<'_>],
        asked: fn(Box<Expr>, Box<Expr>) -> Expr,
    ) -> Result<Vec<Expr>, Refusal> {
        let mut each = Vec::with_capacity(pairs.len());
        for (left, right) in pairs {
            each.push(asked(self.copies.copy(left)?, self.copies.copy(right)?));
        }
        Ok(each)
    }

    fn compared(&mut self, pairs: &[Pair<'_>], op: &BinaryOperator) -> Result<Expr, Refusal> {
        match op {
            BinaryOperator::Eq => self.all_pairs(pairs, op, &BinaryOperator::And),
            BinaryOperator::NotEq => self.all_pairs(pairs, op, &BinaryOperator::Or),
            BinaryOperator::Lt | BinaryOperator::LtEq => self.ordered(pairs, &BinaryOperator::Lt, op),
            _ => self.ordered(pairs, &BinaryOperator::Gt, op),
        }
    }

    fn all_pairs(
        &mut self,
        pairs: &[Pair<'_>],
        op: &BinaryOperator,
        joined_by: &BinaryOperator,
    ) -> Result<Expr, Refusal> {
        let mut all = Vec::with_capacity(pairs.len());
        for pair in pairs {
            all.push(self.pair(pair, op)?);
        }
        Ok(joined(all, joined_by))
    }

    fn pair(&mut self, (left, right): &Pair<'_>, op: &BinaryOperator) -> Result<Expr, Refusal> {
        Ok(Expr::BinaryOp {
            left: self.copies.copy(left)?,
            op: op.clone(),
            right: self.copies.copy(right)?,
        })
    }

    /// The first values that differ decide, and after all others the last, which are compared by `last`. So
    /// the first half decides, or is equal and the second one decides.
    fn ordered(
        &mut self,
        pairs: &[Pair<'_>],
        strictly: &BinaryOperator,
        last: &BinaryOperator,
    ) -> Result<Expr, Refusal> {
        if let [pair] = pairs {
            return self.pair(pair, last);
        }
        let (first, second) = pairs.split_at(pairs.len() / 2);
        let decided = self.ordered(first, strictly, strictly)?;
        let equal = self.all_pairs(first, &BinaryOperator::Eq, &BinaryOperator::And)?;
        let after = self.ordered(second, strictly, last)?;
        let after = joined(vec![equal, after], &BinaryOperator::And);
        Ok(joined(vec![decided, after], &BinaryOperator::Or))
    }

    fn listed(&mut self, value: &Expr, list: &[Expr], negated: bool) -> Result<Option<Expr>, Refusal> {
        if row(value).is_none() && !list.iter().any(|member| row(member).is_some()) {
            return Ok(None);
        }
        let mut equal = Vec::with_capacity(list.len());
        for member in list {
            if let Some(pairs) = pairs(value, member)? {
                equal.push(self.compared(&pairs, &BinaryOperator::Eq)?);
            }
        }
        Ok(Some(denied_if(negated, joined(equal, &BinaryOperator::Or))))
    }

    fn between(
        &mut self,
        value: &Expr,
        negated: bool,
        low: &Expr,
        high: &Expr,
    ) -> Result<Option<Expr>, Refusal> {
        let (Some(low), Some(high)) = (pairs(value, low)?, pairs(value, high)?) else {
            return Ok(None);
        };
        let from = self.compared(&low, &BinaryOperator::GtEq)?;
        let to = self.compared(&high, &BinaryOperator::LtEq)?;
        Ok(Some(denied_if(
            negated,
            joined(vec![from, to], &BinaryOperator::And),
        )))
    }
}

/// The values of a row, if it is one.
fn row(expr: &Expr) -> Option<Vec<&Expr>> {
    match expr {
        Expr::Nested(inner) => row(inner),
        Expr::Tuple(values) => Some(values.iter().collect()),
        Expr::Function(function) if is_row(function) => match &function.args {
            FunctionArguments::List(list) => list.args.iter().map(value).collect(),
            _ => None,
        },
        _ => None,
    }
}

fn is_row(function: &Function) -> bool {
    matches!(
        function.name.0.as_slice(),
        [ObjectNamePart::Identifier(name)] if name.value.eq_ignore_ascii_case("row")
    )
}

const fn value(argument: &FunctionArg) -> Option<&Expr> {
    match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Some(value),
        _ => None,
    }
}

/// The pairs of values of what an operator compares, if it compares rows.
fn pairs_of<'a>(
    op: &BinaryOperator,
    left: &'a Expr,
    right: &'a Expr,
) -> Result<Option<Vec<Pair<'a>>>, Refusal> {
    match op {
        BinaryOperator::Eq
        | BinaryOperator::NotEq
        | BinaryOperator::Lt
        | BinaryOperator::LtEq
        | BinaryOperator::Gt
        | BinaryOperator::GtEq => pairs(left, right),
        _ => Ok(None),
    }
}

/// The values of two rows that are compared with each other, if these are rows.
fn pairs<'a>(left: &'a Expr, right: &'a Expr) -> Result<Option<Vec<Pair<'a>>>, Refusal> {
    let (lefts, rights) = match (row(left), row(right)) {
        (None, None) => return Ok(None),
        (Some(lefts), Some(rights)) => (lefts, rights),
        (Some(_), None) => return refused(left, NO_ROW),
        (None, Some(_)) => return refused(right, NO_ROW),
    };
    if lefts.is_empty() || lefts.len() != rights.len() {
        let (one, other) = (lefts.len(), rights.len());
        let message = format!("a row of {one} values is compared with one of {other}");
        return refused(left, &message);
    }
    let pairs: Vec<Pair<'a>> = lefts.into_iter().zip(rights).collect();
    let mut values = pairs.iter().flat_map(|(left, right)| [*left, *right]);
    match values.find(|value| row(value).is_some()) {
        Some(within) => refused(
            within,
            "a row within a row is not compared; write all values in one row",
        ),
        None => Ok(Some(pairs)),
    }
}

/// Why a row is not compared with what is none.
const NO_ROW: &str = "a row is compared with something that is not written as a row; compare it with as many \
                      values in parentheses, or each of its values by itself";

fn refused<Found>(expr: &Expr, message: &str) -> Result<Found, Refusal> {
    Err(Refusal {
        message: message.to_owned(),
        place: Where::At(expr.span().start),
    })
}

/// Conditions joined by `AND` or `OR`, within each other no deeper than need be.
fn joined(mut conditions: Vec<Expr>, op: &BinaryOperator) -> Expr {
    while conditions.len() > 1 {
        let mut halved = Vec::with_capacity(conditions.len().div_ceil(2));
        let mut rest = conditions.into_iter();
        while let Some(left) = rest.next() {
            halved.push(match rest.next() {
                Some(right) => Expr::BinaryOp {
                    left: Box::new(left),
                    op: op.clone(),
                    right: Box::new(right),
                },
                None => left,
            });
        }
        conditions = halved;
    }
    let only = conditions.pop();
    only.unwrap_or_else(|| Expr::Value(Value::Boolean(*op == BinaryOperator::And).into()))
}

fn denied_if(negated: bool, condition: Expr) -> Expr {
    if negated {
        Expr::UnaryOp {
            op: UnaryOperator::Not,
            expr: Box::new(condition),
        }
    } else {
        condition
    }
}
