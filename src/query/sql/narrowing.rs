//! What conditions on the times of records say about when the records are.
//!
//! A range that follows from the conditions is scanned in the place of all time; the conditions are held
//! against its rows all the same. Knows expressions and times only.

use datafusion::common::ScalarValue;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};

use crate::model::time::{Instant, TimeRange};

/// The columns of a table that say when its records are.
#[derive(Clone, Debug, Default)]
pub(super) struct TimeColumns {
    pub starts: Vec<String>,
    pub ends: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Start,
    End,
}

impl TimeColumns {
    fn end_of(&self, name: &str) -> Option<End> {
        if self.starts.iter().any(|known| known == name) {
            Some(End::Start)
        } else if self.ends.iter().any(|known| known == name) {
            Some(End::End)
        } else {
            None
        }
    }

    /// Whether a condition says something about times.
    pub(super) fn are_in(&self, condition: &Expr) -> bool {
        narrowed(TimeRange::ALWAYS, self, condition) != TimeRange::ALWAYS
    }

    /// A range in which all records lie that meet all of `conditions`.
    pub(super) fn range(&self, conditions: &[Expr]) -> TimeRange {
        conditions.iter().fold(TimeRange::ALWAYS, |range, condition| {
            narrowed(range, self, condition)
        })
    }
}

fn narrowed(range: TimeRange, times: &TimeColumns, condition: &Expr) -> TimeRange {
    match condition {
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: Operator::And,
            right,
        }) => narrowed(narrowed(range, times, left), times, right),
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            if let Some((end, moment)) = compared(times, left, right) {
                within(range, end, *op, moment)
            } else if let (Some((end, moment)), Some(op)) = (compared(times, right, left), op.swap()) {
                within(range, end, op, moment)
            } else {
                range
            }
        }
        Expr::Between(between) if !between.negated => {
            let low = compared(times, &between.expr, &between.low);
            let high = compared(times, &between.expr, &between.high);
            let range = low.map_or(range, |(end, moment)| within(range, end, Operator::GtEq, moment));
            high.map_or(range, |(end, moment)| within(range, end, Operator::LtEq, moment))
        }
        _ => range,
    }
}

/// A column of times and the moment it is compared with.
fn compared(times: &TimeColumns, column: &Expr, moment: &Expr) -> Option<(End, Instant)> {
    let (Expr::Column(column), Expr::Literal(moment, _)) = (column, moment) else {
        return None;
    };
    let ScalarValue::TimestampMicrosecond(Some(micros), _) = moment else {
        return None;
    };
    Some((times.end_of(&column.name)?, Instant::from_micros(*micros)))
}

/// What is left of a range. A record lies in a range if it shares time with it, or begins in it.
fn within(range: TimeRange, end: End, op: Operator, moment: Instant) -> TimeRange {
    let next = |by: i64| Instant::from_micros(moment.micros().saturating_add(by));
    let (first, last) = match (op, end) {
        (Operator::Gt | Operator::GtEq, End::Start) => (Some(moment), None),
        // One that ends at the moment at which a range begins does not lie in it.
        (Operator::Gt | Operator::GtEq, End::End) => (Some(next(-1)), None),
        (Operator::Lt | Operator::LtEq, _) => (None, Some(next(1))),
        (Operator::Eq, End::Start) => (Some(moment), Some(next(1))),
        (Operator::Eq, End::End) => (Some(next(-1)), Some(next(1))),
        _ => (None, None),
    };
    let start = first.map_or(range.start(), |first| first.max(range.start()));
    let end = last.map_or(range.end(), |last| last.min(range.end()));
    TimeRange::new(start, end).unwrap_or_else(|| TimeRange::between(start, start))
}

#[cfg(test)]
mod tests {
    use datafusion::prelude::{col, lit};
    use proptest::prelude::*;

    use super::*;

    fn moment(micros: i64) -> Expr {
        lit(ScalarValue::TimestampMicrosecond(
            Some(micros),
            Some("UTC".into()),
        ))
    }

    fn times() -> TimeColumns {
        TimeColumns {
            starts: vec!["start_time".to_owned()],
            ends: vec!["end_time".to_owned()],
        }
    }

    fn holds(op: Operator, left: i64, right: i64) -> bool {
        match op {
            Operator::Lt => left < right,
            Operator::LtEq => left <= right,
            Operator::Gt => left > right,
            Operator::GtEq => left >= right,
            Operator::Eq => left == right,
            _ => true,
        }
    }

    const OPERATORS: [Operator; 6] = [
        Operator::Lt,
        Operator::LtEq,
        Operator::Gt,
        Operator::GtEq,
        Operator::Eq,
        Operator::NotEq,
    ];

    proptest! {
        #[test]
        fn a_record_that_meets_the_conditions_is_selected_by_the_range(
            conditions in prop::collection::vec((any::<bool>(), any::<bool>(), 0..OPERATORS.len(), 0_i64..8), 1..4),
            start in 0_i64..8,
            length in 0_i64..4,
        ) {
            let end = start + length;
            let mut exprs = Vec::new();
            let mut met = true;
            for (of_start, swapped, op, at) in conditions {
                let op = OPERATORS[op];
                let column = col(if of_start { "start_time" } else { "end_time" });
                met &= holds(op, if of_start { start } else { end }, at) || op == Operator::NotEq;
                exprs.push(match op.swap() {
                    Some(op) if swapped => Expr::BinaryExpr(BinaryExpr::new(
                        Box::new(moment(at)), op, Box::new(column))),
                    _ => Expr::BinaryExpr(BinaryExpr::new(Box::new(column), op, Box::new(moment(at)))),
                });
            }
            let range = times().range(&exprs);
            let selected = range.selects(Instant::from_micros(start), Instant::from_micros(end));
            prop_assert!(!met || selected, "{range:?}");
        }
    }

    #[test]
    fn only_conditions_on_times_narrow() {
        let value = col("value").gt(moment(5));
        let either = col("start_time").gt(moment(5)).or(col("value").gt(lit(1)));
        assert!(!times().are_in(&value) && !times().are_in(&either));
        let both = col("start_time").gt(moment(5)).and(col("value").gt(lit(1)));
        assert_eq!(times().range(&[both]).start(), Instant::from_micros(5));
    }
}
