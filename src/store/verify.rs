//! Reads whole objects only to check that they are still what was written.

use futures::StreamExt as _;

use super::errors::StoreError;
use super::objects::ObjectStorage;

/// Compares an object with its checksum and length in the catalogue. `Corrupt` if it differs or is gone.
pub async fn verify_object(
    objects: &ObjectStorage,
    path: &str,
    bytes: i64,
    checksum: u32,
) -> Result<(), StoreError> {
    let mut content = match objects.stream(path).await {
        Err(StoreError::Missing { path }) => {
            return Err(StoreError::corrupt(format!("object {path} is lost")));
        }
        content => content?,
    };
    let mut hasher = crc32fast::Hasher::new();
    let mut length = 0;
    while let Some(part) = content.next().await {
        let part = part?;
        hasher.update(&part);
        length += part.len() as i64;
    }
    if length != bytes {
        return Err(StoreError::corrupt(format!(
            "object {path} has {length} bytes, not {bytes}"
        )));
    }
    if hasher.finalize() != checksum {
        return Err(StoreError::corrupt(format!(
            "object {path} differs from what was written"
        )));
    }
    Ok(())
}
