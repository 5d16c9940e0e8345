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

mod unreadable;

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::StreamExt as _;
use uuid::Uuid;

use super::check::catalogue_complaints;
use super::identity::{self, ApartError};
use crate::catalog::records::{Piece, Place};
use crate::catalog::{Catalog, CatalogError, ObjectCursor};
use crate::model::clock::Clock;
use crate::model::ids::{IdSource, PersonId};
use crate::store::StoreError;
use crate::store::contents::Contents;
use crate::store::objects::{ObjectStorage, ObjectStoreSettings};
use crate::store::sealing::{self, PersonKeys};

use unreadable::Unreadable;

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
    /// A description of the damage. Objects that are damaged or cannot be read were not copied; damaged rows
    /// of the catalogue were copied as they are, and those that are missing or unreadable are missing in the
    /// copy.
    pub wrong: Vec<String>,
}

/// A copy with everything in it, from which nothing can be served yet.
#[derive(Debug)]
#[must_use = "it is no backup before it is finished"]
pub struct UnfinishedCopy {
    directory: PathBuf,
    /// What was copied.
    pub report: BackupReport,
}

impl UnfinishedCopy {
    /// Makes it one that can be served. When this returns `Ok` and nothing is wrong, the copy is complete,
    /// verified, and survives a power cut.
    pub fn finish(self) -> Result<BackupReport, StoreError> {
        let Self { directory, report } = self;
        mark(&directory)?;
        rename_catalogue(
            &directory.join(UNFINISHED_CATALOGUE),
            &directory.join(CATALOGUE_FILE),
        )?;
        sync(&directory)?;
        Ok(report)
    }
}

/// Makes `directory` that of an unfinished copy, of which nothing is there yet. Whoever has anything to do
/// before it can be copied calls this first.
pub fn begin(directory: &Path) -> Result<(), StoreError> {
    keep_place(&directory.join(UNFINISHED_CATALOGUE))?;
    sync(directory)
}

/// Copies everything into `directory`, which is empty or was begun. Whatever else belongs to the copy is put
/// beside it before it is finished.
pub async fn back_up(
    catalog: &Catalog,
    objects: &ObjectStorage,
    keys: Option<&Arc<PersonKeys>>,
    directory: &Path,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
    tell: &(dyn Fn(BackupProgress) + Sync),
) -> Result<UnfinishedCopy, StoreError> {
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
            let mut copying = Copying {
                from: objects,
                to: &target,
                copied: &mut copied,
                missing: Vec::new(),
                unreadable: Unreadable::new(objects, keys),
            };
            copying.objects(&copy, tell).await?;
            let contents = Contents::new(
                copy.clone(),
                objects.clone(),
                Arc::clone(&clock),
                Arc::clone(&ids),
            );
            copying.files(&copy, &contents).await?;
            Ok::<_, StoreError>(copying.missing)
        }
        .await;
        copy.close().await;
        match outcome {
            Ok(missing) if missing.is_empty() => break,
            Ok(_) if attempt < ATTEMPTS => keep_place(&file)?,
            Ok(missing) => {
                let lost = missing.into_iter().map(|path| format!("object {path} is lost"));
                copied.wrong.extend(lost);
                break;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(UnfinishedCopy {
        directory: directory.to_owned(),
        report: copied,
    })
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

/// What is copied, and how far that has come.
struct Copying<'a> {
    from: &'a ObjectStorage,
    to: &'a ObjectStorage,
    copied: &'a mut BackupReport,
    /// Objects that are missing: they may have been removed since the catalogue was copied.
    missing: Vec<String>,
    unreadable: Unreadable<'a>,
}

impl Copying<'_> {
    /// Copies the objects that pieces are in.
    async fn objects(
        &mut self,
        catalog: &Catalog,
        tell: &(dyn Fn(BackupProgress) + Sync),
    ) -> Result<(), StoreError> {
        tell(BackupProgress::Objects(
            catalog.object_totals().await?.objects.max(0).cast_unsigned(),
        ));
        let mut after: Option<ObjectCursor> = None;
        loop {
            let page = catalog.object_paths(after.as_ref()).await?;
            let Some(last) = page.last() else {
                return Ok(());
            };
            after = Some(last.clone());
            for partition in
                page.chunk_by(|one, other| (one.person, &one.data_type) == (other.person, &other.data_type))
            {
                let Some(first) = partition.first() else { continue };
                for piece in &pieces_of(catalog, first).await? {
                    let Place::Object { path, .. } = &piece.place else {
                        continue;
                    };
                    if !partition.iter().any(|cursor| cursor.path == *path) {
                        continue;
                    }
                    let bytes = piece.bytes.max(0).cast_unsigned();
                    self.object(first.person, path, piece.checksum, bytes).await?;
                    tell(BackupProgress::Object);
                }
            }
        }
    }

    /// Copies the bytes of all people's files.
    async fn files(&mut self, catalog: &Catalog, contents: &Contents) -> Result<(), StoreError> {
        for person in catalog.people_ids().await? {
            let known = match contents.of_person(person).await {
                // Already reported.
                Err(error) if error.is_damage() => contents.sound_of_person(person).await?,
                known => known?,
            };
            for content in known {
                for (path, part) in content.objects() {
                    self.object(person, &path, part.checksum, part.object_bytes())
                        .await?;
                }
            }
        }
        Ok(())
    }

    /// Copies an object of a person's, or takes note of why it could not be read.
    async fn object(
        &mut self,
        person: PersonId,
        path: &str,
        checksum: u32,
        bytes: u64,
    ) -> Result<(), StoreError> {
        match copy_object(self.from, self.to, path, checksum).await? {
            Outcome::WasThere => {}
            Outcome::Copied => {
                self.copied.objects += 1;
                self.copied.bytes += bytes;
                self.unreadable.has_read();
            }
            Outcome::Unread(StoreError::Missing { .. }) => self.missing.push(path.to_owned()),
            Outcome::Unread(StoreError::Corrupt { what }) => self.copied.wrong.push(what),
            Outcome::Unread(error) => {
                let what = self.unreadable.judge(person, path, error).await?;
                self.copied.wrong.extend(what);
            }
        }
        Ok(())
    }
}

/// The pieces of the partition that an object belongs to.
async fn pieces_of(catalog: &Catalog, object: &ObjectCursor) -> Result<Vec<Piece>, CatalogError> {
    match catalog.pieces_of(object.person, &object.data_type).await {
        // Already reported. What the intact rows name can be repaired with them.
        Err(CatalogError::Corrupt { .. }) => catalog.sound_pieces_of(object.person, &object.data_type).await,
        pieces => pieces,
    }
}

/// What became of one object.
enum Outcome {
    /// It was in the copy, where it was verified when it was written.
    WasThere,
    Copied,
    /// It could not be read as it was written.
    Unread(StoreError),
}

/// Copies an object. An error means that the copy could not be written.
async fn copy_object(
    from: &ObjectStorage,
    to: &ObjectStorage,
    path: &str,
    checksum: u32,
) -> Result<Outcome, StoreError> {
    match to.size(path).await {
        Ok(_) => return Ok(Outcome::WasThere),
        Err(StoreError::Missing { .. }) => {}
        Err(error) => return Err(error),
    }
    let mut content = match from.stream(path).await {
        Ok(content) => content,
        Err(error) => return Ok(Outcome::Unread(error)),
    };
    let mut writer = to.upload(path)?;
    let mut found = crc32fast::Hasher::new();
    while let Some(part) = content.next().await {
        match part {
            Ok(part) => {
                found.update(&part);
                writer.write(part).await?;
            }
            Err(error) => {
                writer.abort().await?;
                return Ok(Outcome::Unread(error));
            }
        }
    }
    if found.finalize() != checksum {
        writer.abort().await?;
        return Ok(Outcome::Unread(StoreError::corrupt(format!(
            "object {path} differs from what was written, so it was not copied"
        ))));
    }
    writer.finish().await?;
    Ok(Outcome::Copied)
}

/// Renames a closed catalogue, and the log that it may have left.
fn rename_catalogue(file: &Path, finished: &Path) -> Result<(), StoreError> {
    let renamed = match std::fs::rename(Catalog::log_of(file), Catalog::log_of(finished)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        // The catalogue last: without it nothing can be served.
        _ => std::fs::rename(file, finished),
    };
    renamed.map_err(|error| StoreError::Unavailable {
        detail: format!("{}: {error}", finished.display()),
    })
}

/// Puts an empty file where the catalogue will be, or empties the one that was there, so that there is one at
/// every moment. Only its owner may read it.
fn keep_place(file: &Path) -> Result<(), StoreError> {
    let mut options = OpenOptions::new();
    let opened = options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(file);
    opened.map(drop).map_err(|error| StoreError::Unavailable {
        detail: format!("{}: {error}", file.display()),
    })
}

fn sync(directory: &Path) -> Result<(), StoreError> {
    let synced = File::open(directory).and_then(|directory| directory.sync_all());
    synced.map_err(|error| StoreError::Unavailable {
        detail: format!("{}: {error}", directory.display()),
    })
}
