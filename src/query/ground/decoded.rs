//! Few rows of objects, from what is decoded already.
//!
//! Stands above a scan, and answers in its place where the rows lie in few stretches: without opening a
//! reader of Parquet, and without decoding what was decoded a moment ago. Where there are more the scan is
//! run. Knows which rows are wanted; knows nothing of what they mean.

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{AsArray as _, BooleanArray, RecordBatch, TimestampMicrosecondArray};
use datafusion::arrow::compute::filter_record_batch;
use datafusion::arrow::datatypes::{SchemaRef, TimestampMicrosecondType};
use datafusion::common::{DataFusionError, Result, internal_datafusion_err};
use datafusion::physical_plan::PlanProperties;
use futures::stream::BoxStream;
use futures::{FutureExt as _, StreamExt, TryStreamExt as _};

use crate::model::ids::RecordId;
use crate::model::time::TimeRange;
use crate::store::decoded::{DecodedRows, Stretch, can_be_kept, stretches};
use crate::store::files::{ObjectPlace, PieceFile};

use super::operator::{Input, Operator, Plan, Step, Task, like, only};

/// Where rows lie in more stretches, a scan has decoded them before the first of them is wanted again.
pub(super) const MOST_STRETCHES: usize = 8;

/// Rows of some objects, one object after the other.
#[derive(Clone, Debug)]
pub(super) struct DecodedScan {
    pub decoded: DecodedRows,
    /// With the ids whose row does not count.
    pub objects: Vec<(ObjectPlace, Arc<[RecordId]>)>,
    /// Rows are selected that intersect one of these.
    pub windows: Vec<TimeRange>,
    /// And that begin in this, if it is given.
    pub begins: Option<TimeRange>,
}

/// An object, which of its rows do not count, and where those are that may be selected.
type Found = (Arc<PieceFile>, Arc<[RecordId]>, Vec<Stretch>);

impl DecodedScan {
    /// `scan`: the same rows, read as Parquet.
    pub(super) fn or(self, scan: Plan) -> Plan {
        Arc::new(Operator::over(self, vec![scan]))
    }

    /// The time that selected rows touch, and before which they start.
    fn touched(&self) -> Option<Range<i64>> {
        let from = self.windows.iter().map(|window| window.start()).min()?;
        let before = self.windows.iter().map(|window| window.end()).max()?;
        let (from, before) = match self.begins {
            Some(begins) => (from.max(begins.start()), before.min(begins.end())),
            None => (from, before),
        };
        Some(from.micros()..before.micros())
    }

    /// Where the rows are, unless there are too many, or their columns have to be converted. An object that
    /// cannot be opened is for the scan to complain about.
    async fn find(&self, schema: &SchemaRef) -> Option<Vec<Found>> {
        let touched = self.touched()?;
        let mut found = Vec::with_capacity(self.objects.len());
        let mut left = MOST_STRETCHES;
        for (place, dead) in &self.objects {
            let file = self.decoded.open(place).await.ok()?;
            if !can_be_kept(&file, schema) {
                return None;
            }
            let stretches = stretches(&file, touched.start, touched.end, left)?;
            left -= stretches.len();
            found.push((file, Arc::clone(dead), stretches));
        }
        Some(found)
    }

    fn rows(self, found: Vec<Found>, schema: SchemaRef) -> BoxStream<'static, Result<RecordBatch>> {
        let stretches = found.into_iter().flat_map(|(file, dead, stretches)| {
            stretches
                .into_iter()
                .map(move |stretch| (Arc::clone(&file), Arc::clone(&dead), stretch))
        });
        let scan = Arc::new(self);
        futures::stream::iter(stretches)
            .then(move |(file, dead, stretch)| {
                let (scan, schema) = (Arc::clone(&scan), Arc::clone(&schema));
                async move {
                    let rows = scan.decoded.read(&file, stretch, &schema).await;
                    let rows = rows.map_err(|error| DataFusionError::External(Box::new(error)))?;
                    scan.selected(&rows, &dead)
                }
            })
            .try_filter(|rows| std::future::ready(rows.num_rows() > 0))
            .boxed()
    }

    /// Those of the rows that are selected and count.
    fn selected(&self, rows: &RecordBatch, dead: &[RecordId]) -> Result<RecordBatch> {
        let (starts, ends) = (moments(rows, "start_time")?, moments(rows, "end_time")?);
        // As the condition of the scan has it, since either may answer.
        let intersects = |start: i64, end: i64| {
            self.windows.iter().any(|window| {
                let (from, to) = (window.start().micros(), window.end().micros());
                start < to && (end > from || start >= from)
            })
        };
        let begins = |start: i64| {
            self.begins
                .is_none_or(|range| range.start().micros() <= start && start < range.end().micros())
        };
        let times = starts.values().iter().zip(ends.values());
        let mut keep: Vec<bool> = times
            .map(|(start, end)| intersects(*start, *end) && begins(*start))
            .collect();
        if !dead.is_empty() {
            let ids = rows
                .column_by_name("id")
                .and_then(|ids| ids.as_fixed_size_binary_opt());
            let ids = ids.ok_or_else(|| internal_datafusion_err!("rows that may be dead have no ids"))?;
            for (row, keep) in keep.iter_mut().enumerate() {
                let id = RecordId::from_slice(ids.value(row));
                *keep &= id.is_none_or(|id| dead.binary_search(&id).is_err());
            }
        }
        let first = keep.iter().position(|keep| *keep).unwrap_or(keep.len());
        let length = keep[first..].iter().take_while(|keep| **keep).count();
        if keep[first + length..].contains(&true) {
            Ok(filter_record_batch(rows, &BooleanArray::from(keep))?)
        } else {
            Ok(rows.slice(first, length))
        }
    }
}

impl Step for DecodedScan {
    const NAME: &'static str = "DecodedExec";
    const KEEPS_ORDER: bool = true;

    fn detail(&self) -> String {
        format!(
            "objects={}, stretches<={MOST_STRETCHES}, or else",
            self.objects.len()
        )
    }

    fn gives(&self, inputs: &[Plan]) -> PlanProperties {
        like(inputs)
    }

    fn run(self, inputs: Vec<Input>, task: &Task) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let scan = only(inputs)?;
        let schema = task.schema();
        let rows = async move {
            match self.find(&schema).await {
                Some(found) => Ok(self.rows(found, schema)),
                None => scan.open().map(StreamExt::boxed),
            }
        };
        Ok(rows.into_stream().try_flatten().boxed())
    }
}

fn moments<'r>(rows: &'r RecordBatch, name: &str) -> Result<&'r TimestampMicrosecondArray> {
    rows.column_by_name(name)
        .and_then(|column| column.as_primitive_opt::<TimestampMicrosecondType>())
        .ok_or_else(|| internal_datafusion_err!("rows have no {name}"))
}
