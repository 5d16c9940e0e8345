//! Marks the bins of an answer that are incomplete. A bin that is cut by the range, or by the reader's
//! permit, covers only a part of its time, but looks like all others; on request, a column marks it.
//!
//! Knows grids, windows of permits and plans; knows nothing of what the rows mean.

use std::hash::Hash;
use std::sync::Arc;

use datafusion::arrow::array::{AsArray as _, BooleanArray};
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, FieldRef, TimestampMicrosecondType};
use datafusion::common::{Result, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};

use crate::model::grid::Grid;
use crate::model::permit::Windows;

use super::columns::ColumnError;
use super::{Prepared, QueryError};

/// The name of that column.
const PARTIAL: &str = "partial";

/// The starts of complete bins: stretches of microseconds since 1970, ascending and disjoint.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WholeBins(Vec<(i64, i64)>);

impl WholeBins {
    /// The bins of `grid` that lie inside one of `seen`. The last bin of a grid is cut where its range ends;
    /// `ends_at_edge` says that it would have ended there anyway.
    #[must_use]
    pub fn of(grid: &Grid, ends_at_edge: bool, seen: &Windows) -> Self {
        let end = grid.edge(grid.len());
        let stretch = |window: &crate::model::time::TimeRange| {
            let first = match grid.bin_of(window.start()) {
                Some(bin) if grid.edge(bin) < window.start() => grid.edge(bin + 1),
                Some(bin) => grid.edge(bin),
                None => end,
            };
            let behind_last = match grid.bin_of(window.end()) {
                Some(bin) => grid.edge(bin),
                None if ends_at_edge => end,
                None => grid.edge(grid.len().saturating_sub(1)),
            };
            (first < behind_last).then(|| (first.micros(), behind_last.micros()))
        };
        Self(seen.as_slice().iter().filter_map(stretch).collect())
    }

    fn has(&self, start: i64) -> bool {
        let begun = self.0.partition_point(|(first, _)| *first <= start);
        let stretch = begun.checked_sub(1).and_then(|place| self.0.get(place));
        stretch.is_some_and(|(_, behind_last)| start < *behind_last)
    }
}

impl Prepared {
    /// This answer with a column that marks incomplete bins. `time`: the column of their starts.
    /// Without `whole`, the answer is unchanged.
    pub fn marking(self, whole: Option<WholeBins>, time: &str) -> Result<Self, QueryError> {
        let Some(whole) = whole else { return Ok(self) };
        let schema = self.plan.schema();
        if schema.column_with_name(PARTIAL).is_some() {
            return Err(ColumnError::Taken(PARTIAL).into());
        }
        let begins: Arc<dyn PhysicalExpr> = Arc::new(Column::new(
            time,
            schema
                .index_of(time)
                .map_err(|error| datafusion::common::DataFusionError::ArrowError(Box::new(error), None))?,
        ));
        let function = ScalarUDF::new_from_impl(IsPartial {
            whole,
            signature: Signature::any(1, Volatility::Immutable),
        });
        let options = Arc::new(ConfigOptions::default());
        let expr = ScalarFunctionExpr::try_new(Arc::new(function), vec![begins], &schema, options)?;
        self.with_column(Arc::new(expr), Field::new(PARTIAL, ArrowType::Boolean, false))
    }
}

/// `is_partial(time)`: whether the bin that begins at `time` is incomplete.
#[derive(Debug, PartialEq, Eq, Hash)]
struct IsPartial {
    whole: WholeBins,
    signature: Signature,
}

impl ScalarUDFImpl for IsPartial {
    fn name(&self) -> &'static str {
        "is_partial"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[ArrowType]) -> Result<ArrowType> {
        Ok(ArrowType::Boolean)
    }

    fn return_field_from_args(&self, _arguments: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(Arc::new(Field::new(self.name(), ArrowType::Boolean, false)))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [argument] = arguments.args.as_slice() else {
            return internal_err!("is_partial takes one argument");
        };
        let array = argument.to_array(arguments.number_rows)?;
        let Some(starts) = array.as_primitive_opt::<TimestampMicrosecondType>() else {
            return internal_err!("is_partial takes microseconds");
        };
        let partial = starts.values().iter().map(|start| Some(!self.whole.has(*start)));
        Ok(ColumnarValue::Array(Arc::new(partial.collect::<BooleanArray>())))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::duration::Truncation;
    use crate::model::time::{Instant, TimeRange};
    use crate::model::zone::Zone;

    fn range(start: i64, end: i64) -> TimeRange {
        TimeRange::between(Instant::from_micros(start), Instant::from_micros(end))
    }

    proptest! {
        #[test]
        fn a_bin_is_whole_where_all_of_it_is_seen(
            (start, length, width) in (0_i64..50, 1_i64..200, 1_i64..40),
            cuts in prop::collection::vec((0_i64..250, 1_i64..80), 1..4),
        ) {
            let asked = range(start, start + length);
            let grid = Grid::uniform(asked, width);
            let windows = cuts.iter().map(|(from, long)| range(*from, from + long));
            let windows = Windows::new(windows).within(asked);
            let whole = WholeBins::of(&grid, length % width == 0, &windows);
            for (begin, _) in grid.bins() {
                let own = range(begin.micros(), begin.micros() + width);
                let expected = windows.as_slice().iter()
                    .any(|seen| seen.start() <= own.start() && own.end() <= seen.end());
                prop_assert_eq!(whole.has(begin.micros()), expected, "{:?} in {:?}", own, windows);
            }
        }
    }

    #[test]
    fn days_of_a_zone_are_cut_at_both_ends() {
        let zone = Zone::parse("America/New_York").unwrap();
        let hour = 3_600_000_000;
        // From one in the morning of the first day until two in the morning of the fourth, there.
        let asked = range(5 * hour + hour, 5 * hour + 3 * 24 * hour + 2 * hour);
        let grid = Truncation::DAYS.grid(&zone, asked);
        let whole = WholeBins::of(&grid, false, &Windows::new([asked]));
        let marks: Vec<bool> = grid.bins().map(|(begin, _)| whole.has(begin.micros())).collect();
        assert_eq!(marks, [false, true, true, false]);
    }
}
