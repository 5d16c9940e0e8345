//! Copy: everything of one moment into a directory from which the service can be started, while it goes on
//! running here.
//!
//! The catalogue is copied first. What it names is immutable and outlives its replacement by the grace
//! period, so there is time to copy the objects; if one is gone all the same, the catalogue is copied anew.

use std::path::Path;
use std::sync::Arc;

use futures::StreamExt as _;

use crate::catalog::records::Place;
use crate::catalog::{Catalog, ObjectCursor};
use crate::model::clock::Clock;
use crate::model::ids::SystemIds;
use crate::store::StoreError;
use crate::store::contents::Contents;
use crate::store::objects::{ObjectStorage, ObjectStoreSettings};

/// What the catalogue and the objects are called in a data directory.
pub const CATALOGUE_FILE: &str = "catalogue.db";
pub const OBJECTS_FOLDER: &str = "objects";

/// Times that the catalogue is copied before giving up.
const ATTEMPTS: usize = 3;

/// What whoever waits for a copy is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// So many objects are to be copied.
    Objects(u64),
    Object,
}

/// What was copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    pub objects: u64,
    pub bytes: u64,
}

/// Copies everything into `directory`, which holds nothing yet. When this returns `Ok`, the copy is whole,
/// verified, and survives a power cut.
pub async fn copy(
    catalog: &Catalog,
    objects: &ObjectStorage,
    directory: &Path,
    clock: Arc<dyn Clock>,
    tell: &(dyn Fn(Told) + Sync),
) -> Result<Copied, StoreError> {
    let target = ObjectStorage::open(&ObjectStoreSettings::Local(directory.join(OBJECTS_FOLDER)))?;
    let file = directory.join(CATALOGUE_FILE);
    let mut copied = Copied::default();
    for attempt in 1.. {
        catalog.export_to(&file).await?;
        let copy = Catalog::open(&format!("sqlite://{}", file.display()), Arc::clone(&clock)).await?;
        let outcome = async {
            copy_objects(&copy, objects, &target, &mut copied, tell).await?;
            let contents = Contents::new(
                copy.clone(),
                objects.clone(),
                Arc::clone(&clock),
                Arc::new(SystemIds),
            );
            copy_files(&copy, &contents, objects, &target, &mut copied).await
        }
        .await;
        copy.close().await;
        match outcome {
            Err(StoreError::Missing { .. }) if attempt < ATTEMPTS => remove(&file)?,
            outcome => {
                outcome?;
                break;
            }
        }
    }
    sync(directory)?;
    Ok(copied)
}

async fn copy_objects(
    catalog: &Catalog,
    from: &ObjectStorage,
    to: &ObjectStorage,
    copied: &mut Copied,
    tell: &(dyn Fn(Told) + Sync),
) -> Result<(), StoreError> {
    tell(Told::Objects(
        catalog.object_totals().await?.objects.max(0).cast_unsigned(),
    ));
    let mut after: Option<ObjectCursor> = None;
    loop {
        let page = catalog.object_paths(after.as_ref()).await?;
        let Some(last) = page.last() else { return Ok(()) };
        after = Some(last.clone());
        for partition in
            page.chunk_by(|one, other| (one.person, &one.data_type) == (other.person, &other.data_type))
        {
            let Some(first) = partition.first() else { continue };
            let snapshot = catalog
                .snapshot(first.person, std::slice::from_ref(&first.data_type), &|_| true)
                .await?;
            for piece in snapshot.iter().flat_map(|partition| &partition.pieces) {
                let Place::Object { path, .. } = &piece.place else {
                    continue;
                };
                if !partition.iter().any(|cursor| cursor.path == *path) {
                    continue;
                }
                if copy_object(from, to, path, piece.checksum).await? {
                    copied.objects += 1;
                    copied.bytes += piece.bytes.max(0).cast_unsigned();
                }
                tell(Told::Object);
            }
        }
    }
}

/// The bytes of everybody's files.
async fn copy_files(
    catalog: &Catalog,
    contents: &Contents,
    from: &ObjectStorage,
    to: &ObjectStorage,
    copied: &mut Copied,
) -> Result<(), StoreError> {
    for person in catalog.people().await? {
        for content in contents.of_person(person.id).await? {
            for (path, part) in content.objects() {
                if copy_object(from, to, &path, part.checksum).await? {
                    copied.objects += 1;
                    copied.bytes += part.object_bytes();
                }
            }
        }
    }
    Ok(())
}

/// Copies an object unless it is there; what is there was verified when it was put there.
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

fn remove(file: &Path) -> Result<(), StoreError> {
    std::fs::remove_file(file).map_err(|error| StoreError::Unavailable {
        detail: format!("{}: {error}", file.display()),
    })
}

fn sync(directory: &Path) -> Result<(), StoreError> {
    let synced = std::fs::File::open(directory).and_then(|directory| directory.sync_all());
    synced.map_err(|error| StoreError::Unavailable {
        detail: format!("{}: {error}", directory.display()),
    })
}
