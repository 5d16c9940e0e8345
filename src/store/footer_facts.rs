//! What the footer of an object says besides where its columns are: texts under keys. Knows nothing of what
//! they mean.

use parquet::file::metadata::{KeyValue, ParquetMetaData};
use serde::Serialize;

use super::errors::StoreError;

/// What a footer says under a key.
pub(super) fn fact<'f>(footer: &'f ParquetMetaData, key: &str) -> Option<&'f str> {
    let facts = footer.file_metadata().key_value_metadata()?;
    facts.iter().find(|fact| fact.key == key)?.value.as_deref()
}

/// A list as an entry of a footer.
pub(super) fn entry(key: &str, list: &[impl Serialize]) -> Result<KeyValue, StoreError> {
    let list = serde_json::to_string(list).map_err(StoreError::rows)?;
    Ok(KeyValue::new(key.to_owned(), list))
}
