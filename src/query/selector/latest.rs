//! The record that began last, found without reading all: from the end of what is stored backwards, in ever
//! longer stretches.

use datafusion::arrow::array::AsArray;
use datafusion::arrow::compute::max;
use datafusion::arrow::datatypes::TimestampMicrosecondType;
use futures::StreamExt as _;

use crate::model::permit::ReadPermit;
use crate::model::registry::TypeId;
use crate::model::time::{Instant, TimeRange};
use crate::query::engine::late;
use crate::query::filter::Condition;
use crate::query::records::Columns;
use crate::query::{Archive, QueryError, Source};

const HOUR: i64 = 3_600_000_000;
/// How far back each try looks; after the last it is everything.
const STRETCHES: [i64; 4] = [HOUR, 48 * HOUR, 60 * 24 * HOUR, 5 * 366 * 24 * HOUR];

impl<Authority> Archive<Authority> {
    /// When the last of the records began that `permit` lets be seen. A record that began before it may be
    /// seen counts as well.
    pub async fn latest_start(
        &self,
        permit: &ReadPermit<Authority>,
        sources: &[Source],
        conditions: &[Condition],
    ) -> Result<Option<Instant>, QueryError> {
        let Some((first, end)) = self.stored_within(permit, sources).await? else {
            return Ok(None);
        };
        let stretches = STRETCHES
            .into_iter()
            .map(|length| Instant::from_micros(end.micros().saturating_sub(length)));
        for start in stretches.take_while(|start| *start > first).chain([first]) {
            let narrowed = permit.within(TimeRange::between(start, end));
            let found = self.last_start(&narrowed, sources, conditions).await?;
            // Whoever reaches into the stretch from before may not be the last to have begun before it.
            if found.is_some_and(|found| found >= start) || start == first {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// From when to when records begin that could be seen: the end is behind the last.
    async fn stored_within(
        &self,
        permit: &ReadPermit<Authority>,
        sources: &[Source],
    ) -> Result<Option<(Instant, Instant)>, QueryError> {
        let partitions: Vec<TypeId> = sources.iter().map(|source| source.partition.clone()).collect();
        let snapshots = self.snapshots.get(permit.owner(), &partitions).await?;
        let windows = permit.windows().as_slice();
        let Some(end) = windows.last().map(|window| window.end()) else {
            return Ok(None);
        };
        let pieces = snapshots
            .iter()
            .flat_map(|snapshot| snapshot.pieces.iter())
            .filter(|piece| piece.bounds.min_start < end);
        let bounds = pieces.fold(None, |known: Option<(Instant, Instant)>, piece| {
            // A part of a record may begin as late as the record ends.
            let begins = if permit.is_own() {
                piece.bounds.max_start
            } else {
                piece.bounds.max_start.max(piece.bounds.max_end)
            };
            let (first, last) = known.unwrap_or((piece.bounds.min_start, begins));
            Some((first.min(piece.bounds.min_start), last.max(begins)))
        });
        Ok(bounds.map(|(first, last)| {
            (
                first,
                Instant::from_micros(last.micros().saturating_add(1)).min(end),
            )
        }))
    }

    async fn last_start(
        &self,
        permit: &ReadPermit<Authority>,
        sources: &[Source],
        conditions: &[Condition],
    ) -> Result<Option<Instant>, QueryError> {
        let mut last = None;
        for plan in self.plans(permit, sources, conditions, Columns::Key).await? {
            let mut rows = Box::pin(self.engine.drive(self.engine.start(plan)?, late));
            while let Some(batch) = rows.next().await.transpose()? {
                let starts = batch
                    .column_by_name("start_time")
                    .and_then(|column| column.as_primitive_opt::<TimestampMicrosecondType>());
                last = last.max(starts.and_then(max).map(Instant::from_micros));
            }
        }
        Ok(last)
    }
}
