//! Reads rollups from the objects that keep them.

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;

use super::errors::StoreError;
use super::files::PieceFiles;
use super::outline::{ObjectPlace, Outline};
use super::rollups::gather::coarser;
use super::rollups::stored_rollups::{StoredRollups, decode};
use super::rollups::{Step, schema};

/// The rollups that an object keeps for one step and month.
#[derive(Clone, Debug)]
pub struct KeptRollups {
    pub rollups: RecordBatch,
    /// Whether every row lies within its rollup from start to end, and no earlier row lasts into the month.
    pub are_points: bool,
}

impl PieceFiles {
    /// The rollups of one step and month in an object; `None`: none are kept, or there are no rows. For
    /// objects written before hours were kept, these are made from quarters.
    pub async fn rollups(
        &self,
        place: &ObjectPlace,
        step: Step,
        month: i64,
    ) -> Result<Option<KeptRollups>, StoreError> {
        let object = self.outline(place).await?;
        let kept = self.taken_from(&object, step, month).await?;
        if kept.is_some() || step != Step::Hour {
            return Ok(kept);
        }
        let Some(quarters) = self.taken_from(&object, Step::Quarter, month).await? else {
            return Ok(None);
        };
        Ok(Some(KeptRollups {
            rollups: coarser(&quarters.rollups, step)?,
            are_points: quarters.are_points,
        }))
    }

    async fn taken_from(
        &self,
        object: &Outline,
        step: Step,
        month: i64,
    ) -> Result<Option<KeptRollups>, StoreError> {
        let stored = object.stored_rollups().iter();
        let stored: Vec<&StoredRollups> = stored
            .filter(|part| part.step == step && part.month == month)
            .collect();
        let Some(first) = stored.first() else {
            return Ok(None);
        };
        let range = |part: &&StoredRollups| part.start..part.start.saturating_add(u64::from(part.bytes));
        let ranges: Vec<_> = stored.iter().map(range).collect();
        let blobs = self.read(object, &ranges).await?;
        let taken = blobs.iter().zip(&stored);
        let taken = taken.map(|(blob, part)| decode(blob, part.checksum, self.unpacker()));
        let parts = taken.collect::<Result<Vec<_>, _>>()?;
        let rollups = match parts.as_slice() {
            [one] => one.clone(),
            several => concat_batches(&schema(), several)?,
        };
        Ok(Some(KeptRollups {
            rollups,
            are_points: first.points,
        }))
    }
}
