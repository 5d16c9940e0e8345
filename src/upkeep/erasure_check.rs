//! Checks whether anything is left of a person. Looks wherever data of people can be: in every table of the
//! catalogue, in the names of all objects, in manifests, in unfinished uploads, and in what questions spilled
//! to disk.

use std::path::Path;
use std::time::{Duration, SystemTime};

use futures::TryStreamExt as _;

use super::erase::FOLDERS_OF_PEOPLE;
use super::manifest::{Mention, mention_of};
use super::stores::UpkeepStores;
use crate::catalog::erasures::{Erasure, spellings_of};
use crate::model::ids::PersonId;
use crate::model::time::Instant;
use crate::store::StoreError;
use crate::store::folder_names::{PEOPLE_FOLDER, WHOLE_STORE};

/// What is known of a person's erasure, and a description of what is left of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracesLeft {
    pub erasure: Option<Erasure>,
    pub left: Vec<String>,
    /// What others still say of the person where no erasure removes it.
    pub stays: Vec<String>,
}

/// Looks for what is left of a person. `spill`: where questions on this machine put what exceeds their
/// memory.
pub async fn traces_left(
    stores: &UpkeepStores,
    person: PersonId,
    spill: &Path,
) -> Result<TracesLeft, StoreError> {
    let erasure = stores.catalog.erasure_of(person).await?;
    let (mut left, mut stays) = (Vec::new(), Vec::new());
    for trace in stores.catalog.traces_of(person).await? {
        let found = if trace.stays { &mut stays } else { &mut left };
        found.push(format!("catalogue: table {}: {} rows", trace.table, trace.rows));
    }
    in_store(stores, person, &mut left, &mut stays).await?;
    if let Some(keys) = stores.keys()
        && keys.has(person).await?
    {
        left.push("keys: the person's key".to_owned());
    }
    // These do not say whose they are. Those written before the erasure may be the person's.
    if let Some(age) = erasure.and_then(|erasure| age_of(erasure.begun_at)) {
        for path in stores.objects().interrupted_uploads(age).await? {
            left.push(format!(
                "store: {path}: an upload that was not finished; its owner is unknown"
            ));
        }
        let mut spilled = Vec::new();
        older_files(spill, age, &mut spilled).map_err(|error| StoreError::Unavailable {
            detail: format!("{}: {error}", spill.display()),
        })?;
        for path in spilled {
            left.push(format!(
                "spill: {path}: left by a question from before; its owner is unknown"
            ));
        }
    }
    left.sort_unstable();
    stays.sort_unstable();
    Ok(TracesLeft { erasure, left, stays })
}

async fn in_store(
    stores: &UpkeepStores,
    person: PersonId,
    left: &mut Vec<String>,
    stays: &mut Vec<String>,
) -> Result<(), StoreError> {
    let objects = stores.objects();
    let names = spellings_of(person);
    let mut manifests = Vec::new();
    let mut listed = objects.list(WHOLE_STORE)?;
    while let Some(object) = listed.try_next().await? {
        if names.iter().any(|name| object.path.contains(name)) {
            left.push(format!("store: {}", object.path));
        } else if object.path.starts_with(PEOPLE_FOLDER) && !object.is_claim() {
            manifests.push(object.path);
        }
    }
    for folder in FOLDERS_OF_PEOPLE {
        let folder = format!("{folder}/{person}");
        if objects.is_empty_folder(&folder).await? {
            left.push(format!("store: {folder}: an empty folder"));
        }
    }
    for path in manifests {
        match mention_of(objects, &path, person).await {
            Ok(Mention::Nowhere) | Err(StoreError::Missing { .. }) => {}
            Ok(Mention::WhereItStays) => stays.push(format!("store: {path} names the person")),
            Ok(Mention::Elsewhere) => left.push(format!("store: {path} names the person")),
            Err(StoreError::Corrupt { what }) => {
                left.push(format!("store: {what}: what it says cannot be told"));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// How long ago a moment was, by this machine's clock. `None`: it is in the future.
#[expect(
    clippy::disallowed_methods,
    reason = "it is compared with the ages of files, which are told by this machine's clock too"
)]
fn age_of(moment: Instant) -> Option<Duration> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?;
    let then = Duration::from_micros(u64::try_from(moment.micros()).ok()?);
    now.checked_sub(then)
}

/// The files below a directory that nobody has written to for `age`. Skips empty files: the locks that say
/// whose parts are whose.
fn older_files(directory: &Path, age: Duration, found: &mut Vec<String>) -> std::io::Result<()> {
    let entries = match std::fs::read_dir(directory) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let metadata = match entry.metadata() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            metadata => metadata?,
        };
        if metadata.is_dir() {
            older_files(&entry.path(), age, found)?;
        } else if metadata.len() > 0 && metadata.modified()?.elapsed().is_ok_and(|elapsed| elapsed > age) {
            found.push(entry.path().display().to_string());
        }
    }
    Ok(())
}
