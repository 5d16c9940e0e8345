//! Builds the rollups of an object that is being written.

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Schema};
use bytes::Bytes;
use parquet::file::metadata::KeyValue;

use super::gather::{GatheredRollups, Gatherer};
use super::stored_rollups::{StoredRollups, encode, footer_entry};
use super::{ROWS_A_ROLLUP, Step};
use crate::model::columns::VALUE;
use crate::store::errors::StoreError;

/// About how many rollups are stored together, so that no more are held before they are compressed.
const AT_A_TIME: usize = 8_192;

/// The rollups of an object that is being written.
pub(in crate::store) struct Keeping {
    steps: [OfStep; Step::COARSE_FIRST.len()],
    encoded: Encoded,
}

/// The rollups of one step.
struct OfStep {
    step: Step,
    gatherer: Gatherer,
    month: OpenMonth,
}

/// A month whose rollups may be kept when it is over.
#[derive(Default)]
struct OpenMonth {
    blobs: Vec<(Bytes, u32)>,
    rollups: i64,
    rows: i64,
}

/// The encoded rollups, with their places relative to the first.
#[derive(Default)]
struct Encoded {
    list: Vec<StoredRollups>,
    content: Vec<u8>,
}

impl Keeping {
    /// `None` where rows have no numbers to roll up.
    pub(in crate::store) fn of(columns: &Schema) -> Option<Self> {
        let value = columns.field_with_name(VALUE).ok()?;
        (*value.data_type() == DataType::Float64).then(|| Self {
            steps: Step::COARSE_FIRST.map(OfStep::of),
            encoded: Encoded::default(),
        })
    }

    /// Takes the next rows of the object.
    pub(in crate::store) fn take(&mut self, rows: &RecordBatch) -> Result<(), StoreError> {
        for of_step in &mut self.steps {
            of_step.gatherer.take(rows)?;
            for gathered in of_step.gatherer.ready() {
                of_step.month.add(of_step.step, &gathered, &mut self.encoded)?;
            }
        }
        Ok(())
    }

    /// The bytes to write at `start` of the object, and the footer entry for them; `None` where there would
    /// not be much fewer rollups than rows.
    pub(in crate::store) fn finish(self, start: u64) -> Result<Option<(Vec<u8>, KeyValue)>, StoreError> {
        let Self { steps, mut encoded } = self;
        for mut of_step in steps {
            for gathered in of_step.gatherer.finish()? {
                of_step.month.add(of_step.step, &gathered, &mut encoded)?;
            }
        }
        if encoded.list.is_empty() {
            return Ok(None);
        }
        for stored in &mut encoded.list {
            stored.start += start;
        }
        Ok(Some((encoded.content, footer_entry(&encoded.list)?)))
    }
}

impl OfStep {
    fn of(step: Step) -> Self {
        Self {
            step,
            gatherer: Gatherer::new(step, true).at_a_time(AT_A_TIME),
            month: OpenMonth::default(),
        }
    }
}

impl OpenMonth {
    /// Takes a part of the month. After the last, the month is stored, if that is worth it.
    fn add(
        &mut self,
        step: Step,
        gathered: &GatheredRollups,
        encoded: &mut Encoded,
    ) -> Result<(), StoreError> {
        let rollups = gathered.rollups.num_rows();
        if rollups > 0 {
            self.blobs.push(encode(&gathered.rollups)?);
        }
        self.rollups += rollups as i64;
        self.rows += gathered.rows;
        if !gathered.ends_month {
            return Ok(());
        }
        let month = std::mem::take(self);
        if month.rows < month.rollups.saturating_mul(ROWS_A_ROLLUP) {
            return Ok(());
        }
        for (blob, checksum) in month.blobs {
            encoded.list.push(StoredRollups {
                step,
                month: gathered.month,
                start: encoded.content.len() as u64,
                bytes: u32::try_from(blob.len()).map_err(StoreError::rows)?,
                checksum,
                points: gathered.are_points,
            });
            encoded.content.extend_from_slice(&blob);
        }
        Ok(())
    }
}
