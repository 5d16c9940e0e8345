//! Compares what lines of a large body say with what the same body said before, and with what is stored.
//!
//! Few bodies name an id twice, so what was written is not kept in memory but read again. Knows rows and
//! pieces; knows nothing of what is counted.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{RecordBatch, UInt32Array};
use arrow::compute::take_record_batch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;

use crate::model::ids::{PieceId, RecordId};
use crate::store::blocking::run_blocking;
use crate::store::find::{Finder, FoundRows};
use crate::store::snapshot::SnapshotPiece;

use super::compare_columns::alike;
use super::errors::AssembleError;
use super::upload::WrittenRows;

/// How many rows are compared with each other at once.
const COMPARED_ROWS: usize = 8192;

/// Of ids that the body wrote already and that are each in a row of `batch`, those of which it wrote last
/// something else.
///
/// One piece is read at a time, and of it a part: the rows of one piece were in memory together when they
/// were written, and those of many pieces never.
pub(super) async fn changed_ids(
    finder: &Finder,
    written: &WrittenRows,
    batch: &RecordBatch,
    rows: &[(RecordId, usize)],
) -> Result<Vec<RecordId>, AssembleError> {
    let mut known: HashMap<PieceId, Vec<(RecordId, usize)>> = HashMap::new();
    for (id, row) in rows {
        if let Some(piece) = written.given.piece(*id) {
            known.entry(piece).or_default().push((*id, *row));
        }
    }
    let mut changed = Vec::new();
    for piece in &written.pieces.all() {
        let (Some(known), Some(piece)) = (known.get(&piece.id), SnapshotPiece::written(piece)) else {
            continue;
        };
        let own = written.base.only(vec![piece]);
        for part in known.chunks(COMPARED_ROWS) {
            let ids: Vec<RecordId> = part.iter().map(|(id, _)| *id).collect();
            let found = finder.live_rows_of(&own, &ids).await?;
            let rows: HashMap<RecordId, usize> = part.iter().copied().collect();
            let (schema, batch) = (Arc::clone(&written.layout.storage), batch.clone());
            let part = run_blocking::<_, AssembleError>(move || {
                // In the order of the found rows.
                let ids: Vec<RecordId> = found.iter().flat_map(|part| part.ids.iter().copied()).collect();
                let rows: Vec<usize> = ids.iter().filter_map(|id| rows.get(id).copied()).collect();
                let equal = are_equal(&schema, &found, &batch, &rows)?;
                let changed = ids.into_iter().zip(equal).filter(|(_, is_equal)| !is_equal);
                Ok(changed.map(|(id, _)| id).collect::<Vec<_>>())
            });
            changed.extend(part.await?);
        }
    }
    Ok(changed)
}

/// Of pairs of rows, the second ones that say something else than the first. Few are compared at once, since
/// comparing copies them.
pub(super) fn changed_rows(
    schema: &SchemaRef,
    batch: &RecordBatch,
    pairs: &[(usize, usize)],
) -> Result<Vec<usize>, AssembleError> {
    let mut changed = Vec::new();
    for pairs in pairs.chunks(COMPARED_ROWS) {
        let (before, now): (Vec<usize>, Vec<usize>) = pairs.iter().copied().unzip();
        let equal = alike(schema, &some(batch, &before)?, &some(batch, &now)?)?;
        let unequal = now.into_iter().zip(equal).filter(|(_, is_equal)| !is_equal);
        changed.extend(unequal.map(|(row, _)| row));
    }
    Ok(changed)
}

/// Whether each stored row equals the row of `batch` at the same position in `rows`.
pub(super) fn are_equal(
    schema: &SchemaRef,
    found: &[FoundRows],
    batch: &RecordBatch,
    rows: &[usize],
) -> Result<Vec<bool>, AssembleError> {
    let mut equal = Vec::with_capacity(rows.len());
    for part in found {
        let rows = rows.get(equal.len()..equal.len() + part.ids.len());
        let rows =
            rows.ok_or_else(|| AssembleError::Broken("rows were found that nobody wants".to_owned()))?;
        equal.extend(alike(schema, &part.rows, &some(batch, rows)?)?);
    }
    Ok(equal)
}

/// Some rows of a batch, in the order given.
fn some(batch: &RecordBatch, rows: &[usize]) -> Result<RecordBatch, ArrowError> {
    if let [first, ..] = rows
        && rows.iter().copied().eq(*first..first + rows.len())
    {
        return Ok(batch.slice(*first, rows.len()));
    }
    take_record_batch(
        batch,
        &UInt32Array::from_iter_values(rows.iter().map(|row| *row as u32)),
    )
}
