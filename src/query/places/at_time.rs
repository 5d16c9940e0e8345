//! Where somebody was at one moment: the nearest plausible update or, without one, a visit.
//!
//! Searches near the moment first, and farther away only while nothing is found: a place known an hour ago
//! costs the reading of that hour, however far back the caller allows.

use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, DictionaryArray, FixedSizeBinaryArray, Float64Array, Int32Array, RecordBatch, StringArray,
    TimestampMicrosecondArray, new_null_array,
};
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, Int32Type, Schema, SchemaRef};
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_expr::projection::Projector;
use datafusion::physical_plan::PlanProperties;
use futures::stream::BoxStream;
use futures::{FutureExt as _, StreamExt as _};

use crate::model::columns::START;
use crate::model::registry::timestamp;
use crate::model::time::{Instant, MICROS_PER_HOUR, TimeRange};
use crate::query::ground::computed::projector;
use crate::query::ground::row_times::micros_of;
use crate::query::ground::table::within;
use crate::query::operator::{Input, Operator, Plan, Step, Task, one_partition};
use crate::query::shape::IdForm;
use crate::query::{Prepared, QueryError, Questions};

use super::fixes::{ACCURACY, LATITUDE, LONGITUDE, Places, uncertainty};
use super::location_source::LocationSource;
use super::pinned::{Granted, with_rows};
use super::updates::{LOCATION_SOURCE, Updates, scope_of};
use super::visits::{Standing, Visit, collected};
use super::wider_range::{widened, with_leaving};

/// The kind of a row that is a visit.
const VISIT: &str = "platform_location_visit";
/// The width of the first search: microseconds on either side of the moment.
const FIRST_SEARCH: i64 = 4 * MICROS_PER_HOUR;
/// The factor by which each search is wider than the previous one.
const FARTHER: i64 = 8;

/// A question about a moment. Equal specs give equal answers on equal data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AtTimeSpec {
    /// The microsecond that begins with the moment.
    moment: TimeRange,
    /// Microseconds to look back; and forward, with `include_after`.
    window: i64,
    include_after: bool,
    ids: IdForm,
}

impl AtTimeSpec {
    /// `None` at the end of time.
    #[must_use]
    pub fn new(time: Instant, window: i64, include_after: bool, ids: IdForm) -> Option<Self> {
        let behind = Instant::from_micros(time.micros().checked_add(1)?);
        Some(Self {
            moment: TimeRange::new(time, behind)?,
            window,
            include_after,
            ids,
        })
    }

    /// The time in which updates have to be read for it.
    #[must_use]
    pub fn reads(&self) -> TimeRange {
        self.around(self.window)
    }

    /// The time in which visits have to be read for it.
    #[must_use]
    pub fn reads_visits(&self) -> TimeRange {
        with_leaving(self.reads())
    }

    const fn time(&self) -> i64 {
        self.moment.start().micros()
    }

    /// The moments that are at most `width` away, both ends included.
    fn around(&self, width: i64) -> TimeRange {
        widened(self.moment, width, if self.include_after { width } else { 0 })
    }

    /// The widths of the searches.
    fn searches(&self) -> impl Iterator<Item = i64> + use<> {
        let window = self.window;
        std::iter::successors(Some(FIRST_SEARCH.min(window)), move |width| {
            (*width < window).then(|| width.saturating_mul(FARTHER).min(window))
        })
    }

    /// Whether a moment is inside the window.
    const fn admits(&self, moment: i64) -> bool {
        let away = moment.saturating_sub(self.time());
        away.saturating_abs() <= self.window && (away <= 0 || self.include_after)
    }

    /// Sorts nearer moments first; of two equally near ones, the earlier.
    const fn distance(&self, moment: i64) -> (i64, bool) {
        let away = moment.saturating_sub(self.time());
        (away.saturating_abs(), away > 0)
    }
}

impl<Authority> Questions<Authority> {
    /// One row, or none. Permits are requested for `AtTimeSpec::reads` and `AtTimeSpec::reads_visits`.
    pub async fn location_at(
        &self,
        updates: &[Updates<Authority>],
        visits: Option<&Granted<Authority>>,
        spec: AtTimeSpec,
    ) -> Result<Prepared, QueryError> {
        let scope = scope_of(updates, visits);
        let (pinned, visits, states) = self.pinned_with_visits(updates, visits).await?;
        let (mut stored, mut sources) = (Vec::new(), Vec::new());
        for (source, pinned) in with_rows(&pinned, Some(spec.reads())) {
            let (rows, shown) = self.stored_updates(*source, pinned, spec.ids, Some(spec.reads()))?;
            sources.push(Source {
                source: *source,
                shown: projector(&rows.schema(), shown)?,
            });
            stored.push(rows);
        }
        let mut inputs = Vec::new();
        for width in spec.searches() {
            for rows in &stored {
                inputs.push(if width < spec.window {
                    within(rows, spec.around(width))?
                } else {
                    Arc::clone(rows)
                });
            }
        }
        let shapes = sources.iter().map(|source| source.shown.output_schema());
        let schema = Schema::try_merge(shapes.map(|shape| shape.as_ref().clone()));
        let schema = schema.map_err(DataFusionError::from)?;
        let step = Nearest {
            spec,
            schema: Arc::new(schema),
            searches: inputs.len(),
            sources: sources.into(),
        };
        if let Some(visits) = visits {
            inputs.push(self.visits(&visits, spec.reads_visits())?);
        }
        Ok(Prepared {
            schema: Arc::clone(&step.schema),
            plan: Arc::new(NearestExec::over(step, inputs)),
            states,
            scope,
        })
    }
}

/// A source of updates, and how one of them is shown.
#[derive(Clone, Debug)]
struct Source {
    source: LocationSource,
    shown: Projector,
}

/// Searches the updates of all sources, then again over more time, until a row is found; then the visits, if
/// they are an input. Updates arrive in stored form, because only one of those examined is shown.
#[derive(Clone, Debug)]
struct Nearest {
    spec: AtTimeSpec,
    schema: SchemaRef,
    sources: Arc<[Source]>,
    /// How many of the inputs are updates: one of each source for each search.
    searches: usize,
}

type NearestExec = Operator<Nearest>;

impl Step for Nearest {
    const NAME: &'static str = "NearestExec";

    fn gives(&self, _inputs: &[Plan]) -> PlanProperties {
        one_partition(Arc::clone(&self.schema), None)
    }

    fn run(self, inputs: Vec<Input>, _task: &Task) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let found = async move { self.found(&inputs).await }.into_stream();
        Ok(found.filter_map(|row| async { row.transpose() }).boxed())
    }
}

impl Nearest {
    async fn found(&self, inputs: &[Input]) -> Result<Option<RecordBatch>> {
        let (updates, visits) = inputs.split_at(self.searches.min(inputs.len()));
        for search in updates.chunks(self.sources.len().max(1)) {
            let mut best: Option<(Merit, RecordBatch, &Source)> = None;
            for (rows, source) in search.iter().zip(self.sources.iter()) {
                let found = nearest(rows.open()?, &self.spec, source.source).await?;
                if let Some((merit, row)) = found
                    && best.as_ref().is_none_or(|(known, ..)| merit < *known)
                {
                    best = Some((merit, row, source));
                }
            }
            if let Some((_, row, source)) = best {
                let row = source.shown.project_batch(&row)?;
                return Ok(Some(row.with_schema(Arc::clone(&self.schema))?));
            }
        }
        for visits in visits {
            if let Some((moment, visit)) = self.nearest_visit(visits).await? {
                return Ok(Some(as_update(&visit, moment, &self.schema)?));
            }
        }
        Ok(None)
    }

    async fn nearest_visit(&self, visits: &Input) -> Result<Option<(i64, Visit)>> {
        let spec = &self.spec;
        let visits = collected(visits.open()?).await?;
        Ok(visits
            .into_iter()
            .map(|visit| (visit.nearest(spec.time()), visit))
            .filter(|(moment, _)| spec.admits(*moment))
            .min_by_key(|(moment, visit)| -> ((i64, bool), Standing) {
                (spec.distance(*moment), visit.standing())
            }))
    }
}

/// How well an update answers, the smallest best: its distance in time, its uncertainty, whether it comes
/// from a maps provider.
type Merit = ((i64, bool), u64, bool);

/// The best row of one source; the rows come by time and id.
async fn nearest(
    mut rows: SendableRecordBatchStream,
    spec: &AtTimeSpec,
    source: LocationSource,
) -> Result<Option<(Merit, RecordBatch)>> {
    let mut best: Option<(Merit, RecordBatch)> = None;
    while let Some(batch) = rows.next().await {
        let batch = batch?;
        let (moments, places) = (micros_of(&batch, START)?, Places::of(&batch)?);
        // Later rows are mostly nearer: only the best row of a batch is taken out of it.
        let mut better: Option<(Merit, usize)> = None;
        for row in 0..batch.num_rows() {
            let moment = moments[row];
            if !spec.admits(moment) {
                continue;
            }
            let Some((_, accuracy)) = places.usable(row) else {
                continue;
            };
            let merit = (
                spec.distance(moment),
                uncertainty(accuracy),
                source == LocationSource::Maps,
            );
            let known = better.as_ref().map(|(known, _)| known);
            let known = known.or(best.as_ref().map(|(known, _)| known));
            if known.is_none_or(|known| merit < *known) {
                better = Some((merit, row));
            }
        }
        if let Some((merit, row)) = better {
            best = Some((merit, batch.slice(row, 1)));
        }
    }
    Ok(best)
}

/// A visit in the shape of an update.
fn as_update(visit: &Visit, moment: i64, schema: &SchemaRef) -> Result<RecordBatch> {
    let columns = schema.fields().iter();
    let columns = columns.map(|field| visit_column(field, visit, moment));
    let columns = columns.collect::<Result<Vec<_>>>()?;
    Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
}

/// The value that a visit gives to a column of updates; null if it knows none.
fn visit_column(field: &Field, visit: &Visit, moment: i64) -> Result<ArrayRef> {
    let number = |value: Option<f64>| Arc::new(Float64Array::from(vec![value])) as ArrayRef;
    Ok(match (field.name().as_str(), field.data_type()) {
        ("uuid", ArrowType::Utf8) => Arc::new(StringArray::from(vec![visit.id.to_string()])),
        ("uuid", _) => {
            let id = std::iter::once(visit.id.as_bytes());
            Arc::new(FixedSizeBinaryArray::try_from_iter(id)?)
        }
        ("timestamp", _) => {
            Arc::new(TimestampMicrosecondArray::from(vec![moment]).with_data_type(timestamp()))
        }
        (LATITUDE, _) => number(Some(visit.position.latitude)),
        (LONGITUDE, _) => number(Some(visit.position.longitude)),
        (ACCURACY, _) => number(visit.accuracy),
        (LOCATION_SOURCE, _) => {
            let kinds = Arc::new(StringArray::from(vec![VISIT]));
            let first = Int32Array::from(vec![0]);
            Arc::new(DictionaryArray::<Int32Type>::try_new(first, kinds)?)
        }
        (_, data_type) => new_null_array(data_type, 1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(window: i64, include_after: bool) -> AtTimeSpec {
        AtTimeSpec::new(Instant::from_micros(1_000), window, include_after, IdForm::Text).unwrap()
    }

    #[test]
    fn rule_4_2_both_ends_of_the_window_are_part_of_it() {
        let before = spec(600, false);
        assert!(before.admits(400) && before.admits(1_000) && !before.admits(399) && !before.admits(1_001));
        assert!(
            before
                .reads()
                .selects(Instant::from_micros(400), Instant::from_micros(400))
        );
        assert!(
            before
                .reads()
                .selects(before.moment.start(), before.moment.start())
        );
        let around = spec(600, true);
        assert!(around.admits(1_600) && !around.admits(1_601));
        assert!(
            around
                .reads()
                .selects(Instant::from_micros(1_600), Instant::from_micros(1_600))
        );
        assert!(around.distance(900) < around.distance(1_100), "before over after");
        assert!(
            around.distance(1_099) < around.distance(900),
            "nearer over before"
        );
    }

    #[test]
    fn the_search_begins_near_and_ends_at_the_window() {
        let widths = |window: i64| spec(window, false).searches().collect::<Vec<_>>();
        assert_eq!(widths(0), [0]);
        assert_eq!(widths(FIRST_SEARCH), [FIRST_SEARCH]);
        assert_eq!(
            widths(FIRST_SEARCH * 20),
            [FIRST_SEARCH, FIRST_SEARCH * 8, FIRST_SEARCH * 20]
        );
        assert_eq!(widths(i64::MAX).last(), Some(&i64::MAX));
    }
}
