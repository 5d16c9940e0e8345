//! Derives a range of time from conditions on the times of records.
//!
//! The range is scanned instead of all time; the conditions are still evaluated on its rows. Knows
//! expressions and times only.

use datafusion::common::ScalarValue;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};

use crate::model::time::{Instant, TimeRange};

/// The columns of a table that hold the times of its records.
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

    /// Whether a condition restricts times.
    pub(super) fn are_in(&self, condition: &Expr) -> bool {
        Bounds::WIDEST.narrowed(self, condition) != Bounds::WIDEST
    }

    /// A range that contains all records that meet all of `conditions`.
    pub(super) fn range(&self, conditions: &[Expr]) -> TimeRange {
        conditions
            .iter()
            .fold(Bounds::WIDEST, |bounds, condition| {
                bounds.narrowed(self, condition)
            })
            .range()
    }
}

/// A record must end after `after` and begin before `before`. The two may cross: the conditions that a record
/// begins by four and ends after six leave no moment between them.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Bounds {
    after: Instant,
    before: Instant,
}

impl Bounds {
    const WIDEST: Self = Self {
        after: TimeRange::ALWAYS.start(),
        before: TimeRange::ALWAYS.end(),
    };

    fn narrowed(self, times: &TimeColumns, condition: &Expr) -> Self {
        match condition {
            Expr::BinaryExpr(BinaryExpr {
                left,
                op: Operator::And,
                right,
            }) => self.narrowed(times, left).narrowed(times, right),
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                if let Some((end, moment)) = compared(times, left, right) {
                    self.with(end, *op, moment)
                } else if let (Some((end, moment)), Some(op)) = (compared(times, right, left), op.swap()) {
                    self.with(end, op, moment)
                } else {
                    self
                }
            }
            Expr::Between(between) if !between.negated => {
                let low = compared(times, &between.expr, &between.low);
                let high = compared(times, &between.expr, &between.high);
                let bounds = low.map_or(self, |(end, moment)| self.with(end, Operator::GtEq, moment));
                high.map_or(bounds, |(end, moment)| bounds.with(end, Operator::LtEq, moment))
            }
            _ => self,
        }
    }

    fn with(self, end: End, op: Operator, moment: Instant) -> Self {
        let next = |by: i64| Instant::from_micros(moment.micros().saturating_add(by));
        let (after, before) = match (op, end) {
            (Operator::Gt | Operator::GtEq, End::Start) => (Some(moment), None),
            // A record that ends when a range begins is not in it.
            (Operator::Gt | Operator::GtEq, End::End) => (Some(next(-1)), None),
            (Operator::Lt | Operator::LtEq, _) => (None, Some(next(1))),
            (Operator::Eq, End::Start) => (Some(moment), Some(next(1))),
            (Operator::Eq, End::End) => (Some(next(-1)), Some(next(1))),
            _ => (None, None),
        };
        Self {
            after: after.map_or(self.after, |after| after.max(self.after)),
            before: before.map_or(self.before, |before| before.min(self.before)),
        }
    }

    /// A record within crossing bounds lasts over the last moment before which it must have begun.
    fn range(self) -> TimeRange {
        let last = Instant::from_micros(self.before.micros().saturating_sub(1));
        TimeRange::between(self.after.min(last), self.before)
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
            conditions in prop::collection::vec(
                (any::<bool>(), any::<bool>(), 0..OPERATORS.len(), 0_i64..8), 1..4,
            ),
            start in 0_i64..8,
            length in 0_i64..4
        ) {
            let end = start + length;
            let mut exprs = Vec::new();
            let mut met = true;
            for (of_start, swapped, op, at) in conditions {
                let op = OPERATORS[op];
                let column = col(if of_start { "start_time" } else { "end_time" });
                met &= holds(op, if of_start { start } else { end }, at) || op == Operator::NotEq;
                exprs.push(match op.swap() {
                    Some(op) if swapped => {
                        Expr::BinaryExpr(BinaryExpr::new(Box::new(moment(at)), op, Box::new(column)))
                    }
                    _ => Expr::BinaryExpr(BinaryExpr::new(Box::new(column), op, Box::new(moment(at)))),
                });
            }
            let range = times().range(&exprs);
            let selected = range.selects(Instant::from_micros(start), Instant::from_micros(end));
            prop_assert!(!met || selected, "{range:?}");
        }
    }

    #[test]
    fn a_record_that_lasts_over_all_that_is_named_is_in_the_range() {
        let conditions = [col("start_time").lt_eq(moment(4)), col("end_time").gt(moment(6))];
        let range = times().range(&conditions);
        assert!(range.selects(Instant::from_micros(4), Instant::from_micros(7)));
        assert_eq!(
            range,
            TimeRange::between(Instant::from_micros(4), Instant::from_micros(5))
        );
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
