//! A person's places at regular moments: at each, the last known place that is not older than the look-back.

use std::sync::Arc;

use datafusion::arrow::array::{
    DictionaryArray, Float64Builder, Int32Array, RecordBatch, StringArray, TimestampMicrosecondBuilder,
};
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, Int32Type, Schema, SchemaRef};
use datafusion::common::{Result, internal_err};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::PlanProperties;
use futures::stream::{BoxStream, StreamExt as _, try_unfold};

use crate::model::registry::{dictionary_text, timestamp};
use crate::model::time::TimeRange;
use crate::query::ground::turn::Turn;
use crate::query::operator::{Input, Needs, Operator, Plan, Step, Task, ascending, one_partition};
use crate::query::{Prepared, QueryError, Questions};

use super::as_of::{AsOf, Change, Changes, Placed, Slots};
use super::fixes::Fixes;
use super::location_source::LocationSource;
use super::pinned::Granted;
use super::updates::{LOCATION_SOURCE, Updates, scope_of};
use super::visits::{Fallback, collected};
use super::wider_range::{widened, with_leaving};

/// The column of a row's moment.
pub const SLOT: &str = "slice_time";
/// The number of rows in a batch.
const BATCH_ROWS: usize = 8_192;

/// A question for a series of places. Equal specs give equal answers on equal data.
#[derive(Clone, Debug, PartialEq)]
pub struct PlaceSeriesSpec {
    pub range: TimeRange,
    /// Microseconds from one slot to the next, above zero.
    pub sample_rate: i64,
    /// Microseconds for which a place stays known.
    pub look_back: i64,
    /// Rows nearer than this to the previous row are left out.
    pub change_meters: Option<f64>,
}

impl PlaceSeriesSpec {
    /// The time in which updates have to be read for it.
    #[must_use]
    pub fn reads(&self) -> TimeRange {
        widened(self.range, self.look_back, 0)
    }

    /// The time in which visits have to be read for it.
    #[must_use]
    pub fn reads_visits(&self) -> TimeRange {
        with_leaving(self.reads())
    }

    #[must_use]
    pub const fn slots(&self) -> u64 {
        let length = self.range.end().micros() - self.range.start().micros();
        length.unsigned_abs().div_ceil(self.sample_rate.unsigned_abs())
    }
}

impl<Authority> Questions<Authority> {
    /// The series. Permits are requested for `PlaceSeriesSpec::reads` and `PlaceSeriesSpec::reads_visits`.
    pub async fn location_series(
        &self,
        updates: &[Updates<Authority>],
        visits: Option<&Granted<Authority>>,
        spec: &PlaceSeriesSpec,
    ) -> Result<Prepared, QueryError> {
        let scope = scope_of(updates, visits);
        let (pinned, visits, states) = self.pinned_with_visits(updates, visits).await?;
        let mut inputs = vec![self.fixes(&pinned, spec.reads())?];
        if let Some(visits) = visits {
            inputs.push(self.visits(&visits, spec.reads_visits())?);
        }
        let step = PlaceSeries {
            slots: Slots {
                start: spec.range.start().micros(),
                end: spec.range.end().micros(),
                rate: spec.sample_rate,
            },
            look_back: spec.look_back,
            change_meters: spec.change_meters,
        };
        let plan: Plan = Arc::new(Operator::over(step, inputs));
        Ok(Prepared::of(plan, states, scope))
    }
}

/// Computes places at slots from fixes by time and from visits.
#[derive(Clone, Debug)]
struct PlaceSeries {
    slots: Slots,
    look_back: i64,
    change_meters: Option<f64>,
}

impl PlaceSeries {
    fn schema() -> SchemaRef {
        Arc::new(Schema::new(vec![
            Field::new(SLOT, timestamp(), false),
            Field::new("lat", ArrowType::Float64, false),
            Field::new("long", ArrowType::Float64, false),
            Field::new("time", timestamp(), false),
            Field::new("distance_change_m", ArrowType::Float64, true),
            Field::new(LOCATION_SOURCE, dictionary_text(), false),
        ]))
    }
}

impl Step for PlaceSeries {
    const NAME: &'static str = "PlaceSeriesExec";

    fn needs(&self, inputs: &[Plan]) -> Vec<Needs> {
        Needs::by_start(inputs)
    }

    fn gives(&self, _inputs: &[Plan]) -> PlanProperties {
        let schema = Self::schema();
        let order = ascending(&schema, &[SLOT]);
        one_partition(schema, order)
    }

    fn run(self, inputs: Vec<Input>, task: &Task) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let mut inputs = inputs.into_iter();
        let Some(fixes) = inputs.next() else {
            return internal_err!("places are found among fixes");
        };
        let walk = Walk {
            fixes: fixes.open()?,
            visits: inputs.next().map(|visits| visits.open()).transpose()?,
            batch: None,
            row: 0,
            as_of: None,
            rows: Rows::new(task.schema(), Changes::new(self.change_meters)),
            turn: Turn::new(),
            step: self,
        };
        Ok(try_unfold(walk, Walk::next).boxed())
    }
}

/// The state of a series between two batches.
struct Walk {
    step: PlaceSeries,
    fixes: SendableRecordBatchStream,
    visits: Option<SendableRecordBatchStream>,
    batch: Option<Fixes>,
    row: usize,
    as_of: Option<AsOf>,
    rows: Rows,
    /// Places that are too near make no rows, however many there are.
    turn: Turn,
}

impl Walk {
    async fn next(mut self) -> Result<Option<(RecordBatch, Self)>> {
        let mut as_of = match self.as_of.take() {
            Some(as_of) => as_of,
            None => self.begin().await?,
        };
        loop {
            self.look_ahead().await?;
            let until = self.batch.as_ref().map_or(i64::MAX, |batch| batch.time(self.row));
            while let Some(placed) = as_of.next_before(until) {
                self.rows.add(placed);
                if self.rows.len() >= BATCH_ROWS {
                    self.as_of = Some(as_of);
                    return Ok(Some((self.rows.finish()?, self)));
                }
                self.turn.spend(1);
                self.turn.give_way().await;
            }
            let Some(batch) = self.batch.as_ref().filter(|_| !as_of.is_done()) else {
                break;
            };
            // Most fixes before the next slot are superseded before it.
            let latest = batch.latest(self.row, as_of.next_slot());
            self.row = latest.end.max(self.row + 1);
            latest
                .filter_map(|row| batch.fix(row))
                .for_each(|fix| as_of.take(fix));
        }
        if self.rows.len() == 0 {
            return Ok(None);
        }
        self.as_of = Some(as_of);
        Ok(Some((self.rows.finish()?, self)))
    }

    async fn begin(&mut self) -> Result<AsOf> {
        let visits = match self.visits.take() {
            Some(rows) => collected(rows).await?,
            None => Vec::new(),
        };
        Ok(AsOf::new(
            self.step.slots,
            self.step.look_back,
            Fallback::new(visits),
        ))
    }

    /// Reads until the next fix is available or the input ends.
    async fn look_ahead(&mut self) -> Result<()> {
        while self.batch.as_ref().is_none_or(|batch| self.row >= batch.len()) {
            self.row = 0;
            self.batch = self
                .fixes
                .next()
                .await
                .transpose()?
                .as_ref()
                .map(Fixes::of)
                .transpose()?;
            if self.batch.is_none() {
                break;
            }
        }
        Ok(())
    }
}

/// Rows of the answer under construction.
struct Rows {
    schema: SchemaRef,
    changes: Changes,
    slots: TimestampMicrosecondBuilder,
    latitudes: Float64Builder,
    longitudes: Float64Builder,
    times: TimestampMicrosecondBuilder,
    distances: Float64Builder,
    sources: Vec<LocationSource>,
}

impl Rows {
    fn new(schema: SchemaRef, changes: Changes) -> Self {
        let times = || TimestampMicrosecondBuilder::new().with_data_type(timestamp());
        Self {
            schema,
            changes,
            slots: times(),
            latitudes: Float64Builder::new(),
            longitudes: Float64Builder::new(),
            times: times(),
            distances: Float64Builder::new(),
            sources: Vec::new(),
        }
    }

    fn len(&self) -> usize {
        self.sources.len()
    }

    fn add(&mut self, placed: Placed) {
        let distance = match self.changes.include(placed.position) {
            Change::First => None,
            Change::Moved(distance) => Some(distance),
            Change::TooNear => return,
        };
        self.slots.append_value(placed.slot);
        self.latitudes.append_value(placed.position.latitude);
        self.longitudes.append_value(placed.position.longitude);
        self.times.append_value(placed.time);
        self.distances.append_option(distance);
        self.sources.push(placed.source);
    }

    fn finish(&mut self) -> Result<RecordBatch> {
        let sources = std::mem::take(&mut self.sources);
        let names = StringArray::from_iter_values(LocationSource::ALL.map(LocationSource::name));
        let keys = Int32Array::from_iter_values(sources.into_iter().map(|source| source as i32));
        Ok(RecordBatch::try_new(
            Arc::clone(&self.schema),
            vec![
                Arc::new(self.slots.finish()),
                Arc::new(self.latitudes.finish()),
                Arc::new(self.longitudes.finish()),
                Arc::new(self.times.finish()),
                Arc::new(self.distances.finish()),
                Arc::new(DictionaryArray::<Int32Type>::try_new(keys, Arc::new(names))?),
            ],
        )?)
    }
}

#[cfg(test)]
mod tests;
