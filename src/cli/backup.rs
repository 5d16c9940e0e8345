//! `almanac backup`: a copy from which the service can be started again, made while it runs.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::auth::keys::ring;
use crate::auth::settings::Provider;
use crate::catalog::Catalog;
use crate::model::clock::{Clock, SystemClock};
use crate::upkeep::copy::{Told, copy};
use crate::upkeep::identity;

use super::backups::Backups;
use super::progress::Progress;
use super::settings::Settings;
use super::stores::{self, OpenedStore};
use super::{Failed, data_directory, installation, print, runtimes};

/// Where a backup goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackupOrder {
    /// Into a directory that is new or empty.
    Into(PathBuf),
    /// Into one of its own below `directory`, of which the newest are kept.
    Among { directory: PathBuf, kept: usize },
}

pub fn run(settings: &Settings, order: &BackupOrder) -> Result<(), Failed> {
    installation::needed(settings)?;
    match order {
        BackupOrder::Into(directory) => copied_into(settings, directory),
        BackupOrder::Among { directory, kept } => {
            let backups = Backups::open(directory)?;
            let begun = backups.begin(SystemClock.now())?;
            match copied_into(settings, &begun.unfinished) {
                Ok(()) => {
                    let place = backups.finish(&begun)?;
                    let removed = backups.keep(*kept)?;
                    print(&format!("{}: kept, {removed} older removed\n", place.display()))
                }
                Err(failed) => Err(begun.given_up(&failed)),
            }
        }
    }
}

fn copied_into(settings: &Settings, directory: &Path) -> Result<(), Failed> {
    refuse_full(directory)?;
    data_directory::open(directory)?;
    let runtime = runtimes::many_threads()?;
    runtime.block_on(back_up(settings, directory))
}

async fn back_up(settings: &Settings, directory: &Path) -> Result<(), Failed> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let catalog = Catalog::open(&settings.database_url, Arc::clone(&clock))
        .await
        .map_err(Failed::from_error)?;
    let OpenedStore { objects, keys } = stores::open(settings).await?;
    identity::compare(&catalog, &objects)
        .await
        .map_err(Failed::from_error)?;
    if settings.identity.provider == Provider::Embedded {
        copy_keys(&settings.data_dir, directory)?;
    }
    let progress = Progress::new("objects");
    let tell = |told| match told {
        Told::Objects(total) => progress.expect(total),
        Told::Object => progress.advance(),
    };
    let copied = copy(&catalog, &objects, keys.as_ref(), directory, clock, &tell).await;
    progress.finish();
    catalog.close().await;
    let copied = copied.map_err(|error| Failed::because(format!("the backup is not complete: {error}")))?;
    for what in &copied.wrong {
        print(&format!("wrong: {what}\n"))?;
    }
    print(&format!(
        "copied the catalogue and {} objects ({} bytes) to {}\n",
        copied.objects,
        copied.bytes,
        directory.display()
    ))?;
    match copied.wrong.len() {
        0 => Ok(()),
        count => Err(Failed::because(format!(
            "the copy is not what was written once, {count} things are wrong: keep the earlier ones, and run \
             `almanac check`"
        ))),
    }
}

fn refuse_full(directory: &Path) -> Result<(), Failed> {
    let is_empty = match std::fs::read_dir(directory) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => true,
        Err(error) => {
            return Err(Failed::because(format!(
                "{} cannot be used: {error}",
                directory.display()
            )));
        }
    };
    if is_empty {
        Ok(())
    } else {
        Err(Failed::because(format!(
            "{} is not empty: name a new or an empty directory",
            directory.display()
        )))
    }
}

/// The keys, for their owner only. A service that never made a token has none.
fn copy_keys(from: &Path, to: &Path) -> Result<(), Failed> {
    let failed = |error: io::Error| Failed::because(format!("the signing key cannot be copied: {error}"));
    for (path, _) in ring::files_in(from).map_err(failed)? {
        let Some(name) = path.file_name() else { continue };
        let key = std::fs::read(&path).map_err(failed)?;
        let mut options = OpenOptions::new();
        let mut file: File = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(to.join(name))
            .map_err(failed)?;
        file.write_all(&key)
            .and_then(|()| file.sync_all())
            .map_err(failed)?;
    }
    Ok(())
}
