//! Where an object keeps its rollups: after its rows, in the part that the checksums of blocks cover. The
//! footer has the list.

use std::sync::Arc;

use arrow::array::{RecordBatch, TimestampMicrosecondArray};
use arrow::datatypes::TimestampMicrosecondType;
use bytes::Bytes;
use parquet::file::metadata::{KeyValue, ParquetMetaData};
use serde::{Deserialize, Serialize};

use super::gather::numbers;
use super::{Step, schema};
use crate::model::columns::START;
use crate::store::arrange::with_columns;
use crate::store::errors::StoreError;
use crate::store::footer_facts;
use crate::store::tail::{self, Unpacker};

/// The footer's key for the list.
const ROLLUPS_KEY: &str = "almanac.rollups";

/// The place of rollups of one step and month in an object. A month may have several, one after the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct StoredRollups {
    pub(in crate::store) step: Step,
    pub(in crate::store) month: i64,
    pub(in crate::store) start: u64,
    pub(in crate::store) bytes: u32,
    pub(in crate::store) checksum: u32,
    /// Whether every row lies within its rollup from start to end, and no earlier row lasts into the month.
    pub(in crate::store) points: bool,
}

/// Rollups as they are stored, and the checksum. Starts are stored as differences: these are nearly all
/// alike, while the starts themselves would be more than half of the bytes.
pub(super) fn encode(rollups: &RecordBatch) -> Result<(Bytes, u32), StoreError> {
    let mut before = 0;
    let after = restarted(rollups, |start| {
        start.wrapping_sub(std::mem::replace(&mut before, start))
    })?;
    tail::encode(&after)
}

/// The rollups that `encode` encoded.
pub(in crate::store) fn decode(
    blob: &[u8],
    checksum: u32,
    unpacker: &Unpacker,
) -> Result<RecordBatch, StoreError> {
    let after = with_columns(&unpacker.decode(blob, checksum)?, &schema())?;
    let mut start: i64 = 0;
    restarted(&after, |after| {
        start = start.wrapping_add(after);
        start
    })
}

/// The same rollups with other starts.
fn restarted(rollups: &RecordBatch, start: impl FnMut(i64) -> i64) -> Result<RecordBatch, StoreError> {
    let starts = numbers::<TimestampMicrosecondType>(rollups, START)?.iter();
    let starts = TimestampMicrosecondArray::from_iter_values(starts.copied().map(start));
    let mut columns = rollups.columns().to_vec();
    let place = rollups.schema_ref().index_of(START)?;
    columns[place] = Arc::new(starts.with_timezone("UTC"));
    Ok(RecordBatch::try_new(schema(), columns)?)
}

/// The footer entry for stored rollups.
pub(super) fn footer_entry(stored: &[StoredRollups]) -> Result<KeyValue, StoreError> {
    footer_facts::entry(ROLLUPS_KEY, stored)
}

/// The rollups listed in a footer.
pub(in crate::store) fn stored_rollups(footer: &ParquetMetaData) -> Vec<StoredRollups> {
    let list = footer_facts::fact(footer, ROLLUPS_KEY);
    // A list that cannot be understood counts as missing: the rows contain the same.
    list.and_then(|list| serde_json::from_str(list).ok())
        .unwrap_or_default()
}
