//! Collect, for files: contents that were announced and never came, and parts that no content names.
//!
//! A part is durable before it is named, and is named at once or never: what is older than any write can be
//! and has no name will not get one.

use std::time::Duration;

use futures::TryStreamExt as _;

use super::collect::ORPHAN_AGE;
use super::stores::UpkeepStores;
use crate::store::StoreError;
use crate::store::contents::FILES_FOLDER;

/// How long a content whose time is over stays, for uploads that began before.
const PATIENCE: Duration = Duration::from_hours(1);
/// Paths looked at together.
const PATHS_AT_ONCE: usize = 1_000;

/// Removes the parts of files that are of no use to anybody any more; returns how many.
pub async fn remove_unnamed_parts(stores: &UpkeepStores) -> Result<usize, StoreError> {
    let contents = stores.contents();
    contents.forget_expired(PATIENCE).await?;
    let limit = stores.ago(ORPHAN_AGE);
    let mut listed = stores.objects().list(FILES_FOLDER)?;
    let mut removed = 0;
    let mut old = Vec::new();
    loop {
        let object = match listed.try_next().await {
            // Somebody removed it since it was listed.
            Err(StoreError::Missing { .. }) => continue,
            object => object?,
        };
        let is_end = object.is_none();
        let is_old = object.filter(|object| object.modified_at < limit);
        old.extend(is_old.map(|object| object.path));
        if old.len() >= PATHS_AT_ONCE || is_end {
            // The parts of one content side by side, so that it is looked up once.
            old.sort_unstable();
            for orphan in contents.unreferenced(&std::mem::take(&mut old)).await? {
                stores.objects().delete(&orphan).await?;
                removed += 1;
            }
        }
        if is_end {
            return Ok(removed);
        }
    }
}
