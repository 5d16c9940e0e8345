//! Which rows of a partition are read: those that intersect one of some windows.
//!
//! The rule is here twice: as code that selects rows, and as a condition by which readers of files skip what
//! cannot hold any. Knows bounds of pieces and times; knows nothing of files.

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::datatypes::Schema;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, Literal};

use crate::catalog::records::Bounds;
use crate::model::columns::{END, START};
use crate::model::time::{Instant, TimeRange};

/// What to read of a partition.
#[derive(Clone, Debug)]
pub(in crate::query) struct Selection {
    /// Only rows that intersect one of these are selected.
    pub windows: Arc<[TimeRange]>,
    /// If given, only rows that begin in this are selected.
    pub begins: Option<TimeRange>,
}

impl Selection {
    /// Whether a piece may hold selected rows.
    pub(in crate::query) fn may_hold(&self, bounds: Bounds) -> bool {
        let begins = |range: TimeRange| bounds.min_start < range.end() && bounds.max_start >= range.start();
        let intersects = |window: &TimeRange| {
            bounds.min_start < window.end()
                && (bounds.max_end > window.start() || bounds.max_start >= window.start())
        };
        self.begins.is_none_or(begins) && self.windows.iter().any(intersects)
    }

    /// Whether every row is selected that starts between two moments, both inclusive.
    pub(super) fn holds_all(&self, first: Instant, last: Instant) -> bool {
        let holds = |range: &TimeRange| range.start() <= first && last < range.end();
        self.windows.iter().any(holds) && self.begins.as_ref().is_none_or(holds)
    }

    /// The time that selected rows touch; they start before its end.
    pub(in crate::query::ground) fn touched(&self) -> Option<Range<i64>> {
        let from = self.windows.iter().map(|window| window.start()).min()?;
        let before = self.windows.iter().map(|window| window.end()).max()?;
        let (from, before) = match self.begins {
            Some(begins) => (from.max(begins.start()), before.min(begins.end())),
            None => (from, before),
        };
        Some(from.micros()..before.micros())
    }

    /// The rows, given in the order of their starts, that are selected, if they follow one another and each
    /// begins in the window. Most questions have one window, and few rows reach into it from before.
    pub(super) fn run(&self, starts: &[i64], ends: &[i64]) -> Option<Range<usize>> {
        let [window] = self.windows.as_ref() else {
            return None;
        };
        let [earlier, begun] = self.may_intersect(window, starts);
        // Without a way out at the first of them, so that several are compared at a time.
        let reaches = |any, end: &i64| any | (*end > window.start().micros());
        let any_reaches = ends.get(earlier)?.iter().fold(false, reaches);
        (!any_reaches).then_some(begun)
    }

    /// Which of the rows, given in the order of their starts, are selected. Applies the intersect rule `start
    /// < to and (end > from or start >= from)` for any window, and then `begins`. The end matters only for
    /// rows that begin before a window.
    pub(super) fn selected(&self, starts: &[i64], ends: &[i64]) -> Vec<bool> {
        let mut selected = vec![false; starts.len()];
        for window in self.windows.iter() {
            let [earlier, begun] = self.may_intersect(window, starts);
            if let Some(selected) = selected.get_mut(begun) {
                selected.fill(true);
            }
            if let (Some(selected), Some(ends)) = (selected.get_mut(earlier.clone()), ends.get(earlier)) {
                for (selected, end) in selected.iter_mut().zip(ends) {
                    *selected |= *end > window.start().micros();
                }
            }
        }
        selected
    }

    /// The rows that begin before a window and those that begin in it, of those that may begin where they do.
    fn may_intersect(&self, window: &TimeRange, starts: &[i64]) -> [Range<usize>; 2] {
        let before = |moment: Instant| starts.partition_point(|start| *start < moment.micros());
        let rows_in = |range: &TimeRange| before(range.start())..before(range.end());
        let may_begin = self.begins.as_ref().map_or(0..starts.len(), rows_in);
        let begin_in = rows_in(window);
        let to = begin_in.end.min(may_begin.end);
        let from = begin_in.start.clamp(may_begin.start.min(to), to);
        [may_begin.start.min(from)..from, from..to]
    }

    /// The same rule as a condition.
    fn condition(&self, schema: &Schema) -> Result<Arc<dyn PhysicalExpr>> {
        let [start, end] = ends(schema)?;
        let any = self
            .windows
            .iter()
            .map(|window| {
                let from = moment(window.start());
                let begins_before = binary(&start, Operator::Lt, &moment(window.end()));
                let reaches = binary(
                    &binary(&end, Operator::Gt, &from),
                    Operator::Or,
                    &binary(&start, Operator::GtEq, &from),
                );
                binary(&begins_before, Operator::And, &reaches)
            })
            .reduce(|either, or| binary(&either, Operator::Or, &or));
        let any = any.unwrap_or_else(|| Arc::new(Literal::new(ScalarValue::Boolean(Some(false)))));
        let Some(begins) = self.begins else { return Ok(any) };
        let after = binary(&start, Operator::GtEq, &moment(begins.start()));
        let before = binary(&start, Operator::Lt, &moment(begins.end()));
        Ok(binary(
            &binary(&after, Operator::And, &before),
            Operator::And,
            &any,
        ))
    }

    /// A consequence of [`Selection::condition`] in parts that each use one column: such parts let the reader
    /// skip pages, not only whole row groups. No record ends before it starts, so one that begins in a window
    /// does not end before the window.
    pub(super) fn reaching(&self, schema: &Schema) -> Result<Arc<dyn PhysicalExpr>> {
        let selected = self.condition(schema)?;
        let first = self.windows.iter().map(|window| window.start()).min();
        let last = self.windows.iter().map(|window| window.end()).max();
        let (Some(first), Some(last)) = (first, last) else {
            return Ok(selected);
        };
        let [start, end] = ends(schema)?;
        let begins_before = binary(&start, Operator::Lt, &moment(last));
        let ends_after = binary(&end, Operator::GtEq, &moment(first));
        Ok(binary(
            &binary(&begins_before, Operator::And, &ends_after),
            Operator::And,
            &selected,
        ))
    }
}

/// The columns of a record's start and end.
fn ends(schema: &Schema) -> Result<[Arc<dyn PhysicalExpr>; 2]> {
    let column = |name: &str| -> Result<Arc<dyn PhysicalExpr>> {
        Ok(Arc::new(Column::new(name, schema.index_of(name)?)))
    };
    Ok([column(START)?, column(END)?])
}

fn binary(
    left: &Arc<dyn PhysicalExpr>,
    operator: Operator,
    right: &Arc<dyn PhysicalExpr>,
) -> Arc<dyn PhysicalExpr> {
    Arc::new(BinaryExpr::new(Arc::clone(left), operator, Arc::clone(right)))
}

fn moment(instant: Instant) -> Arc<dyn PhysicalExpr> {
    Arc::new(Literal::new(ScalarValue::TimestampMicrosecond(
        Some(instant.micros()),
        Some("UTC".into()),
    )))
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{AsArray as _, RecordBatch, TimestampMicrosecondArray};
    use proptest::prelude::*;

    use super::*;

    fn ranges(spans: &[(i64, i64)]) -> Arc<[TimeRange]> {
        let range = |(from, length): &(i64, i64)| {
            TimeRange::between(Instant::from_micros(*from), Instant::from_micros(from + length))
        };
        spans.iter().map(range).collect()
    }

    fn rows(times: &[(i64, i64)]) -> RecordBatch {
        let column = |of: fn(&(i64, i64)) -> i64| {
            let moments = TimestampMicrosecondArray::from_iter_values(times.iter().map(of));
            Arc::new(moments.with_timezone("UTC")) as _
        };
        RecordBatch::try_from_iter([
            ("start_time", column(|(start, _)| *start)),
            ("end_time", column(|(start, length)| start + length)),
        ])
        .unwrap()
    }

    fn met(condition: &Arc<dyn PhysicalExpr>, rows: &RecordBatch) -> Vec<bool> {
        let met = condition.evaluate(rows).unwrap().into_array(rows.num_rows());
        met.unwrap()
            .as_boolean()
            .iter()
            .map(|met| met == Some(true))
            .collect()
    }

    proptest! {
        #[test]
        fn conditions_code_and_bounds_select_the_same_rows(
            windows in prop::collection::vec((0_i64..12, 0_i64..5), 0..4),
            begins in prop::option::of((0_i64..12, 0_i64..8)),
            times in prop::collection::vec((0_i64..14, 0_i64..5), 1..12),
        ) {
            let selection = Selection {
                windows: ranges(&windows),
                begins: begins.map(|begins| ranges(&[begins])[0]),
            };
            let mut times = times;
            times.sort_unstable();
            let rows = rows(&times);
            let (starts, ends): (Vec<_>, Vec<_>) =
                times.iter().map(|(start, length)| (*start, start + length)).unzip();
            let selected = selection.selected(&starts, &ends);
            prop_assert_eq!(&met(&selection.condition(rows.schema_ref()).unwrap(), &rows), &selected);
            let reaching = met(&selection.reaching(rows.schema_ref()).unwrap(), &rows);
            prop_assert_eq!(&reaching, &selected);
            if let Some(run) = selection.run(&starts, &ends) {
                let in_run: Vec<_> = (0..times.len()).map(|row| run.contains(&row)).collect();
                prop_assert_eq!(&in_run, &selected);
            }
            let any = selected.contains(&true);
            let least = |of: fn(&(i64, i64)) -> i64| {
                Instant::from_micros(times.iter().map(of).min().unwrap())
            };
            let most = |of: fn(&(i64, i64)) -> i64| {
                Instant::from_micros(times.iter().map(of).max().unwrap())
            };
            let bounds = Bounds {
                min_start: least(|(start, _)| *start),
                max_start: most(|(start, _)| *start),
                max_end: most(|(start, length)| start + length),
            };
            prop_assert!(!any || selection.may_hold(bounds));
            let holds_all = selection.holds_all(bounds.min_start, bounds.max_start);
            prop_assert!(!holds_all || selected.iter().all(|selected| *selected));
            let touched = selection.touched();
            for ((start, length), selected) in times.iter().zip(&selected) {
                let touches = touched.as_ref().is_some_and(|touched| {
                    *start < touched.end && start + length >= touched.start
                });
                prop_assert!(!selected || touches, "{start} for {length} lies beyond {touched:?}");
            }
        }
    }
}
