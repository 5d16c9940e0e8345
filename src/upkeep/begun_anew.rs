//! Whether somebody who was erased began anew after that, as far as their manifests tell. Changes nothing.

use super::manifest::Manifest;
use super::manifest_names::{manifest_path, numbers};
use super::stores::UpkeepStores;
use crate::model::ids::PersonId;
use crate::model::time::Instant;
use crate::store::StoreError;

/// If a manifest of a person was written after their erasure was over: the paths of those with higher
/// numbers, which were written before that. `None`: none was. `Corrupt` where one that cannot be read may be.
pub async fn manifests_above(
    stores: &UpkeepStores,
    person: PersonId,
    ended_at: Instant,
) -> Result<Option<Vec<String>>, StoreError> {
    let (mut before, mut unreadable) = (Vec::new(), None);
    for number in numbers(stores.objects(), person).await? {
        let path = manifest_path(person, number);
        match Manifest::fetch(stores.objects(), &path).await {
            Ok(manifest) if manifest.heading.moment() > ended_at => return Ok(Some(before)),
            Ok(_) => before.push(path),
            Err(error @ StoreError::Corrupt { .. }) => unreadable = Some(error),
            Err(error) => return Err(error),
        }
    }
    // Whether it is from before the erasure or after it is for the operator to find out.
    unreadable.map_or(Ok(None), Err)
}
