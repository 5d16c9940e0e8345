//! `almanac backup`: a copy from which the service can be restored, made while the service runs.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::auth::keys::ring;
use crate::auth::settings::Provider;
use crate::catalog::CatalogError;
use crate::model::clock::{Clock, SystemClock};
use crate::model::ids::SystemIds;
use crate::store::StoreError;
use crate::store::objects::ObjectStoreSettings;
use crate::upkeep::backup::{self, BackupProgress, BackupReport};
use crate::upkeep::check::older_complaints;
use crate::upkeep::identity::{self, ApartError};

use super::backups::{Backups, EarlierBackups};
use super::check::things;
use super::failed::Failed;
use super::progress::Progress;
use super::settings::Settings;
use super::standard_output::print;
use super::stores::{self, OpenedStore};
use super::{copies, data_directory, installation, runtimes};

/// Where a backup goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackupOrder {
    /// Into a directory that is new or empty.
    Into(PathBuf),
    /// Into a new directory below `directory`, where only the newest backups are kept.
    Among { directory: PathBuf, kept: usize },
}

pub fn run(settings: &Settings, order: &BackupOrder) -> Result<(), Failed> {
    installation::needed(settings)?;
    let (BackupOrder::Into(directory) | BackupOrder::Among { directory, .. }) = order;
    refuse_within_store(settings, directory)?;
    match order {
        BackupOrder::Into(directory) => conclude(&copied_into(settings, directory)?, directory),
        BackupOrder::Among { directory, kept } => {
            let backups = Backups::open(directory)?;
            let begun = backups.begin(SystemClock.now())?;
            let copied = copied_into(settings, &begun.unfinished).map_err(|failed| begun.given_up(failed))?;
            if !copied.wrong.is_empty() {
                let concluded = conclude(&copied, &begun.unfinished);
                return concluded.map_err(|failed| begun.given_up(failed));
            }
            let place = backups.finish(&begun)?;
            // Before anything is printed: where nobody can be told, old backups still go.
            let earlier = backups.keep(*kept, &place);
            conclude(&copied, &place)?;
            let EarlierBackups { removed, ahead } = earlier?;
            print(&format!("{}: kept, {removed} older removed\n", place.display()))?;
            for place in ahead {
                print(&format!(
                    "{}: dated ahead of this one, so it stays and is not counted\n",
                    place.display()
                ))?;
            }
            Ok(())
        }
    }
}

fn copied_into(settings: &Settings, directory: &Path) -> Result<BackupReport, Failed> {
    refuse_full(directory)?;
    let is_new = !directory.exists();
    data_directory::open(directory)?;
    backup::begin(directory)
        .map_err(|error| incomplete(&error))
        .and_then(|()| runtimes::many_threads())
        .and_then(|runtime| runtime.block_on(back_up(settings, directory)))
        .map_err(|failed| undone(directory, is_new, failed))
}

async fn back_up(settings: &Settings, directory: &Path) -> Result<BackupReport, Failed> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let catalog = stores::catalog(settings).await?;
    let OpenedStore { objects, keys } = stores::open(settings).await?;
    match identity::compare(&catalog, &objects).await {
        // The identity of the store is a row of the catalogue like others: the backup reports damage in it.
        Ok(()) | Err(ApartError::Catalog(CatalogError::Corrupt { .. })) => {}
        Err(error) => return Err(Failed::from_error(error)),
    }
    // What the catalogue lacks is not in the copy, which must not take the place of one that has it.
    let lacked = older_complaints(&catalog, &objects).await;
    let lacked = lacked.unwrap_or_else(|error| vec![error.to_string()]);
    let progress = Progress::new("objects");
    let tell = |told| match told {
        BackupProgress::Objects(total) => progress.expect(total),
        BackupProgress::Object => progress.advance(),
    };
    let ids = Arc::new(SystemIds::default());
    let copied = backup::back_up(&catalog, &objects, keys.as_ref(), directory, clock, ids, &tell).await;
    progress.finish();
    catalog.close().await;
    let mut copied = copied.map_err(|error| incomplete(&error))?;
    copied.report.wrong.extend(lacked);
    // Before it is finished, since without them it would look like one that never made a token.
    if settings.identity.provider == Provider::Embedded {
        copy_keys(&settings.data_dir, directory)?;
    }
    copied.finish().map_err(|error| incomplete(&error))
}

fn incomplete(error: &StoreError) -> Failed {
    Failed::because(format!("the backup is not complete: {error}"))
}

/// Reports what was copied, and fails if any of it is damaged or lacking.
fn conclude(copied: &BackupReport, directory: &Path) -> Result<(), Failed> {
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
            "the backup is not whole, {}: keep earlier backups, and run `almanac check`",
            things(count, "wrong")
        ))),
    }
}

/// Removes the files of a failed backup, so that nobody takes them for one.
fn undone(directory: &Path, is_new: bool, failed: Failed) -> Failed {
    match emptied(directory, is_new) {
        Ok(()) => failed,
        Err(error) => failed.with(format!(
            "what was made of it in {} is not a backup, and could not be removed: {error}",
            directory.display()
        )),
    }
}

/// Empties the directory, which held nothing before.
fn emptied(directory: &Path, is_new: bool) -> io::Result<()> {
    if is_new {
        return std::fs::remove_dir_all(directory);
    }
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            std::fs::remove_dir_all(entry.path())?;
        } else {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// A copy within the store would be copied and moved along with it, and its signing key too.
fn refuse_within_store(settings: &Settings, directory: &Path) -> Result<(), Failed> {
    match &settings.objects {
        ObjectStoreSettings::Local(store) if copies::is_within(directory, store) => {
            Err(Failed::wrong_usage(format!(
                "{} is within the object store {}: name a directory elsewhere",
                directory.display(),
                store.display()
            )))
        }
        _ => Ok(()),
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

/// Copies the keys, readable by their owner only. A service that never made a token has none.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_of_which_anything_is_wrong_is_not_whole() {
        let concluded = |wrong: &[&str]| {
            let copied = BackupReport {
                wrong: wrong.iter().map(|what| (*what).to_owned()).collect(),
                ..BackupReport::default()
            };
            conclude(&copied, Path::new("backup")).map_err(|failed| failed.to_string())
        };
        assert_eq!(concluded(&[]), Ok(()));
        for (wrong, told) in [
            (&["a person is lacking"][..], "not whole, 1 thing is wrong:"),
            (&["one", "other"][..], "not whole, 2 things are wrong:"),
        ] {
            let failed = concluded(wrong).unwrap_err();
            assert!(failed.contains(told), "{failed}");
        }
    }

    #[test]
    fn what_failed_leaves_nothing_that_it_made() {
        let home = tempfile::tempdir().unwrap();
        for is_new in [true, false] {
            let directory = home.path().join("backup");
            std::fs::create_dir_all(directory.join("objects/data")).unwrap();
            std::fs::write(directory.join("catalogue.unfinished"), "").unwrap();
            let told = undone(&directory, is_new, Failed::wrong_usage("it broke off"));
            assert_eq!(told.to_string(), "it broke off");
            assert_eq!(directory.exists(), !is_new);
            assert!(is_new || std::fs::read_dir(&directory).unwrap().next().is_none());
        }
    }
}
