//! Where an object keeps its rollups: behind its rows, in the part that the checksums of blocks cover. The
//! footer has the list.

use parquet::file::metadata::{KeyValue, ParquetMetaData};
use serde::{Deserialize, Serialize};

use super::Step;
use crate::store::errors::StoreError;

/// What the footer calls the list.
const ROLLUPS_KEY: &str = "almanac.rollups";

/// Where rollups of one step and month stand in an object. A month may have several, one behind the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct Shelf {
    pub(super) step: Step,
    pub(super) month: i64,
    pub(super) start: u64,
    pub(super) bytes: u32,
    pub(super) checksum: u32,
    /// Whether every row lies in its rollup from start to end, and none from before lasts into the month.
    pub(super) points: bool,
}

/// What a footer is to say of them.
pub(super) fn said_of(shelves: &[Shelf]) -> Result<KeyValue, StoreError> {
    let list = serde_json::to_string(shelves).map_err(StoreError::rows)?;
    Ok(KeyValue::new(ROLLUPS_KEY.to_owned(), list))
}

/// The shelves that a footer tells of.
pub(in crate::store) fn shelves(footer: &ParquetMetaData) -> Vec<Shelf> {
    let facts = footer.file_metadata().key_value_metadata().into_iter().flatten();
    let mut lists = facts.filter(|fact| fact.key == ROLLUPS_KEY);
    let list = lists.next().and_then(|fact| fact.value.as_deref());
    // What is not understood is as good as not there: rows say the same.
    list.and_then(|list| serde_json::from_str(list).ok())
        .unwrap_or_default()
}
