//! Copies everything of one moment into a directory from which the service can be started, while it keeps
//! running here.
//!
//! The catalogue is copied first. What it names is immutable and outlives its replacement by the grace
//! period, so there is time to copy the objects; if one is gone all the same, the catalogue is copied again.
//!
//! The copy is a pair of its own, with an identity of its own: to its catalogue everything that came later
//! looks like garbage, so it must not count as the catalogue of the store that it was copied from. Until it
//! is complete its catalogue has another name, and is the first thing in the directory, so that nobody takes
//! that for a copy, or for a place where an installation can be made.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::StreamExt as _;
use uuid::Uuid;

use super::check::catalogue_complaints;
use super::identity::{self, ApartError};
use crate::catalog::records::{Piece, Place};
use crate::catalog::{Catalog, CatalogError, ObjectCursor};
use crate::model::clock::Clock;
use crate::model::ids::IdSource;
use crate::store::StoreError;
use crate::store::contents::Contents;
use crate::store::objects::{ObjectStorage, ObjectStoreSettings};
use crate::store::sealing::{self, PersonKeys};

/// The names of the catalogue and the objects in a data directory.
pub const CATALOGUE_FILE: &str = "catalogue.db";
pub const OBJECTS_FOLDER: &str = "objects";
/// Marks a data directory as a copy, which is not to be used with a catalogue or objects from elsewhere.
pub const COPY_MARK: &str = "made-by-backup.txt";
/// For whoever finds it.
const COPY_MARK_TEXT: &str = "\
`almanac backup` made this directory. Its catalogue and its objects are in it, and as long as this file is
here too, almanac refuses to use it with a catalogue or objects from elsewhere.
";
/// The catalogue of an incomplete copy, from which nothing can be served.
pub const UNFINISHED_CATALOGUE: &str = "catalogue.unfinished";

/// How often the catalogue is copied before giving up.
const ATTEMPTS: usize = 3;

/// What is reported while a copy is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackupProgress {
    /// This many objects will be copied.
    Objects(u64),
    Object,
}

/// The result of a copy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BackupReport {
    pub objects: u64,
    pub bytes: u64,
    /// A description of the damage. Damaged objects were not copied; damaged rows of the catalogue were
    /// copied as they are, and those that are missing or unreadable are missing in the copy.
    pub wrong: Vec<String>,
}

/// Copies everything into the empty `directory`. When this returns `Ok` and nothing is wrong, the copy is
/// complete, verified, and survives a power cut.
pub async fn back_up(
    catalog: &Catalog,
    objects: &ObjectStorage,
    keys: Option<&Arc<PersonKeys>>,
    directory: &Path,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
    tell: &(dyn Fn(BackupProgress) + Sync),
) -> Result<BackupReport, StoreError> {
    let identity = ids.next();
    let file = directory.join(UNFINISHED_CATALOGUE);
    let mut copied = BackupReport::default();
    for attempt in 1.. {
        let mut wrong = catalog.copy_to(&file).await?;
        let copy = Catalog::open(&format!("sqlite://{}", file.display()), Arc::clone(&clock)).await?;
        wrong.extend(catalogue_complaints(&copy).await?);
        wrong.sort_unstable();
        wrong.dedup();
        copied.wrong = wrong;
        let outcome = async {
            let target = target(directory, keys).await?;
            identify(&copy, &target, identity).await?;
            let mut missing = copy_objects(&copy, objects, &target, &mut copied, tell).await?;
            let contents = Contents::new(
                copy.clone(),
                objects.clone(),
                Arc::clone(&clock),
                Arc::clone(&ids),
            );
            missing.extend(copy_files(&copy, &contents, objects, &target, &mut copied).await?);
            Ok::<_, StoreError>(missing)
        }
        .await;
        copy.close().await;
        match outcome {
            Ok(missing) if missing.is_empty() => break,
            Ok(_) if attempt < ATTEMPTS => remove(&file)?,
            Ok(missing) => {
                let lost = missing.into_iter().map(|path| format!("object {path} is lost"));
                copied.wrong.extend(lost);
                break;
            }
            Err(error) => return Err(error),
        }
    }
    mark(directory)?;
    finish(&file, &directory.join(CATALOGUE_FILE))?;
    sync(directory)?;
    Ok(copied)
}

/// The object store of the copy.
async fn target(directory: &Path, keys: Option<&Arc<PersonKeys>>) -> Result<ObjectStorage, StoreError> {
    let objects = ObjectStorage::open(&ObjectStoreSettings::Local(directory.join(OBJECTS_FOLDER)))?;
    let Some(keys) = keys else {
        return Ok(objects);
    };
    // Under the same keys, which are not part of the copy.
    sealing::mark(&objects, keys, false).await?;
    Ok(sealing::over(objects, keys))
}

/// Marks a directory as a copy, before there is anything in it that could be served.
fn mark(directory: &Path) -> Result<(), StoreError> {
    let path = directory.join(COPY_MARK);
    let written = File::create(&path).and_then(|mut file| {
        file.write_all(COPY_MARK_TEXT.as_bytes())?;
        file.sync_all()
    });
    written.map_err(|error| StoreError::Unavailable {
        detail: format!("{}: {error}", path.display()),
    })
}

/// Makes a pair of the copied catalogue and the store beside it.
async fn identify(copy: &Catalog, target: &ObjectStorage, identity: Uuid) -> Result<(), StoreError> {
    copy.replace_store_identity(identity).await?;
    match identity::write(target, identity).await {
        Ok(_) => Ok(()),
        Err(ApartError::Store(error)) => Err(error),
        Err(error) => Err(StoreError::corrupt(error.to_string())),
    }
}

/// Copies the objects; returns those that are missing: they may have been removed since the catalogue was
/// copied.
async fn copy_objects(
    catalog: &Catalog,
    from: &ObjectStorage,
    to: &ObjectStorage,
    copied: &mut BackupReport,
    tell: &(dyn Fn(BackupProgress) + Sync),
) -> Result<Vec<String>, StoreError> {
    let mut missing = Vec::new();
    tell(BackupProgress::Objects(
        catalog.object_totals().await?.objects.max(0).cast_unsigned(),
    ));
    let mut after: Option<ObjectCursor> = None;
    loop {
        let page = catalog.object_paths(after.as_ref()).await?;
        let Some(last) = page.last() else {
            return Ok(missing);
        };
        after = Some(last.clone());
        for partition in
            page.chunk_by(|one, other| (one.person, &one.data_type) == (other.person, &other.data_type))
        {
            let Some(first) = partition.first() else { continue };
            let snapshot = catalog
                .snapshot(first.person, std::slice::from_ref(&first.data_type), &|_| true)
                .await;
            let pieces: Vec<Piece> = match snapshot {
                // Already reported. What the intact rows name can be repaired with them.
                Err(CatalogError::Corrupt { .. }) => {
                    catalog.sound_pieces_of(first.person, &first.data_type).await?
                }
                snapshot => snapshot?
                    .into_iter()
                    .flat_map(|partition| partition.pieces)
                    .collect(),
            };
            for piece in &pieces {
                let Place::Object { path, .. } = &piece.place else {
                    continue;
                };
                if !partition.iter().any(|cursor| cursor.path == *path) {
                    continue;
                }
                match copy_object(from, to, path, piece.checksum).await {
                    Ok(false) => {}
                    Ok(true) => {
                        copied.objects += 1;
                        copied.bytes += piece.bytes.max(0).cast_unsigned();
                    }
                    Err(StoreError::Missing { .. }) => missing.push(path.clone()),
                    Err(StoreError::Corrupt { what }) => copied.wrong.push(what),
                    Err(error) => return Err(error),
                }
                tell(BackupProgress::Object);
            }
        }
    }
}

/// Copies the bytes of all people's files; returns the parts that are missing.
async fn copy_files(
    catalog: &Catalog,
    contents: &Contents,
    from: &ObjectStorage,
    to: &ObjectStorage,
    copied: &mut BackupReport,
) -> Result<Vec<String>, StoreError> {
    let mut missing = Vec::new();
    for person in catalog.people_ids().await? {
        let known = match contents.of_person(person).await {
            // Already reported.
            Err(error) if error.is_damage() => contents.sound_of_person(person).await?,
            known => known?,
        };
        for content in known {
            for (path, part) in content.objects() {
                match copy_object(from, to, &path, part.checksum).await {
                    Ok(false) => {}
                    Ok(true) => {
                        copied.objects += 1;
                        copied.bytes += part.object_bytes();
                    }
                    Err(StoreError::Missing { .. }) => missing.push(path),
                    Err(StoreError::Corrupt { what }) => copied.wrong.push(what),
                    Err(error) => return Err(error),
                }
            }
        }
    }
    Ok(missing)
}

/// Copies an object unless it exists; an existing one was verified when it was written.
async fn copy_object(
    from: &ObjectStorage,
    to: &ObjectStorage,
    path: &str,
    checksum: u32,
) -> Result<bool, StoreError> {
    match to.size(path).await {
        Ok(_) => return Ok(false),
        Err(StoreError::Missing { .. }) => {}
        Err(error) => return Err(error),
    }
    let mut content = from.stream(path).await?;
    let mut upload = to.upload(path)?;
    let mut found = crc32fast::Hasher::new();
    while let Some(part) = content.next().await {
        let part = part?;
        found.update(&part);
        upload.write(part).await?;
    }
    if found.finalize() != checksum {
        upload.abort().await?;
        return Err(StoreError::corrupt(format!(
            "object {path} differs from what was written, so it was not copied"
        )));
    }
    upload.finish().await?;
    Ok(true)
}

/// Renames a closed catalogue, and the log that it may have left.
fn finish(file: &Path, finished: &Path) -> Result<(), StoreError> {
    let log_of = |file: &Path| {
        let mut name = file.as_os_str().to_owned();
        name.push("-wal");
        PathBuf::from(name)
    };
    let renamed = match std::fs::rename(log_of(file), log_of(finished)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        // The catalogue last: without it nothing can be served.
        _ => std::fs::rename(file, finished),
    };
    renamed.map_err(|error| StoreError::Unavailable {
        detail: format!("{}: {error}", finished.display()),
    })
}

fn remove(file: &Path) -> Result<(), StoreError> {
    std::fs::remove_file(file).map_err(|error| StoreError::Unavailable {
        detail: format!("{}: {error}", file.display()),
    })
}

fn sync(directory: &Path) -> Result<(), StoreError> {
    let synced = File::open(directory).and_then(|directory| directory.sync_all());
    synced.map_err(|error| StoreError::Unavailable {
        detail: format!("{}: {error}", directory.display()),
    })
}
