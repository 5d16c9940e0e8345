//! A directory of backups: each in a directory of its own, named after the time when it was made, of which
//! only the newest are kept. An unfinished backup has another name, so that whatever has the name of a backup
//! is one.
//!
//! Removes nothing but directories with names that it gave. Knows names and times; knows nothing of what is
//! copied.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use crate::model::time::Instant;
use crate::store::local::{SystemDisk, make_lasting};

use super::failed::Failed;

/// The form of a backup's name: zeros stand for the digits of the time in UTC.
const NAME_FORM: &str = "almanac-0000-00-00T000000Z";
/// Follows the time if an earlier backup was begun in the same second: a number from two.
const NUMBER_FORM: &str = "-00";
/// Follows the name of a backup that is unfinished, or not whole.
const UNFINISHED_SUFFIX: &str = ".unfinished";
const LOCK: &str = ".almanac-backups";

pub(super) struct Backups {
    directory: PathBuf,
    /// Locked as long as this lives.
    _lock: File,
}

/// What became of earlier backups.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct EarlierBackups {
    pub removed: usize,
    /// Those whose names lie ahead of the newest, which a clock that was ahead, or is behind now, gave them.
    pub ahead: Vec<PathBuf>,
}

/// A backup that is being made.
pub(super) struct UnfinishedBackup {
    pub unfinished: PathBuf,
    finished: PathBuf,
}

impl Backups {
    /// The backups in `directory`, which is created if needed. Removes what earlier runs left unfinished.
    pub(super) fn open(directory: &Path) -> Result<Self, Failed> {
        let failed = |error: io::Error| unusable(directory, &error);
        make_lasting(directory, &SystemDisk).map_err(failed)?;
        let lock = File::create(directory.join(LOCK)).map_err(failed)?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => Failed::because(format!(
                "another backup into {} is under way",
                directory.display()
            )),
            TryLockError::Error(error) => failed(error),
        })?;
        let backups = Self {
            directory: directory.to_owned(),
            _lock: lock,
        };
        for name in backups.names()? {
            if name.strip_suffix(UNFINISHED_SUFFIX).is_some_and(is_backup) {
                backups.remove(&name)?;
            }
        }
        Ok(backups)
    }

    /// The directory for a backup that begins at `now`.
    pub(super) fn begin(&self, now: Instant) -> Result<UnfinishedBackup, Failed> {
        let time: String = now
            .to_rfc3339()
            .chars()
            .take(19)
            .filter(|letter| *letter != ':')
            .collect();
        let name = self.unused(&format!("almanac-{time}Z"))?;
        let finished = self.directory.join(&name);
        if !is_backup(&name) || finished.exists() {
            return Err(Failed::because(format!(
                "{} cannot be the name of a new backup",
                finished.display()
            )));
        }
        Ok(UnfinishedBackup {
            unfinished: self.directory.join(name + UNFINISHED_SUFFIX),
            finished,
        })
    }

    /// A name that sorts after all others of the same second, even if earlier ones were removed meanwhile: by
    /// name, the newest comes last.
    fn unused(&self, of_second: &str) -> Result<String, Failed> {
        let names = self.names()?;
        let same = names.iter().filter(|name| is_backup(name));
        let counted = same.filter_map(|name| match name.strip_prefix(of_second)? {
            "" => Some(1),
            again => again.strip_prefix('-')?.parse::<u32>().ok(),
        });
        Ok(match counted.max() {
            None => of_second.to_owned(),
            Some(last) => format!("{of_second}-{:02}", last + 1),
        })
    }

    /// Gives a complete backup its final name.
    pub(super) fn finish(&self, begun: &UnfinishedBackup) -> Result<PathBuf, Failed> {
        std::fs::rename(&begun.unfinished, &begun.finished)
            .and_then(|()| File::open(&self.directory)?.sync_all())
            .map_err(|error| unusable(&self.directory, &error))?;
        Ok(begun.finished.clone())
    }

    /// Removes all but the newest `kept`, of which `newest` was made just now. What is dated ahead of that
    /// stays and does not count: it may be older, and would take the place of newer ones for years.
    pub(super) fn keep(&self, kept: usize, newest: &Path) -> Result<EarlierBackups, Failed> {
        let mut names = self.names()?;
        names.retain(|name| is_backup(name));
        names.sort_unstable();
        let count = names.partition_point(|name| self.directory.join(name).as_path() <= newest);
        let ahead = names.split_off(count);
        let old = names.len().saturating_sub(kept);
        for name in names.iter().take(old) {
            self.remove(name)?;
        }
        Ok(EarlierBackups {
            removed: old,
            ahead: ahead.iter().map(|name| self.directory.join(name)).collect(),
        })
    }

    fn names(&self) -> Result<Vec<String>, Failed> {
        let failed = |error: io::Error| unusable(&self.directory, &error);
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.directory).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let is_directory = entry.file_type().map_err(failed)?.is_dir();
            names.extend(entry.file_name().into_string().ok().filter(|_| is_directory));
        }
        Ok(names)
    }

    fn remove(&self, name: &str) -> Result<(), Failed> {
        let path = self.directory.join(name);
        std::fs::remove_dir_all(&path).map_err(|error| unusable(&path, &error))
    }
}

impl UnfinishedBackup {
    /// Reports a backup that failed or is not whole: what there is of it stays until the next run, so that
    /// the cause can be found.
    pub(super) fn given_up(&self, failed: Failed) -> Failed {
        let what = if self.unfinished.exists() {
            format!("what there is of it is in {}, and ", self.unfinished.display())
        } else {
            String::new()
        };
        failed.with(format!("{what}no earlier backup was removed"))
    }
}

fn unusable(place: &Path, error: &io::Error) -> Failed {
    Failed::because(format!(
        "the directory of backups {} cannot be used: {error}",
        place.display()
    ))
}

fn is_backup(name: &str) -> bool {
    let has_form = |text: &str, form: &str| {
        text.len() == form.len()
            && text.bytes().zip(form.bytes()).all(|(byte, form)| match form {
                b'0' => byte.is_ascii_digit(),
                form => byte == form,
            })
    };
    match name.split_at_checked(NAME_FORM.len()) {
        Some((time, "")) => has_form(time, NAME_FORM),
        Some((time, again)) => has_form(time, NAME_FORM) && has_form(again, NUMBER_FORM),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::time::parse_instant;

    fn made(backups: &Backups, at: &str) -> PathBuf {
        let begun = backups.begin(parse_instant(at).unwrap()).unwrap();
        std::fs::create_dir(&begun.unfinished).unwrap();
        std::fs::write(begun.unfinished.join("catalogue.db"), "").unwrap();
        backups.finish(&begun).unwrap()
    }

    #[test]
    fn the_newest_are_kept_and_nothing_else_is_touched() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("backups");
        std::fs::create_dir_all(place.join("almanac-of-my-own")).unwrap();
        std::fs::write(place.join("almanac-2020-01-01T000000Z"), "a file").unwrap();
        let backups = Backups::open(&place).unwrap();
        for day in 1..=4 {
            let newest = made(&backups, &format!("2026-01-0{day}T03:00:00.25Z"));
            backups.keep(2, &newest).unwrap();
        }
        let mut names = backups.names().unwrap();
        names.sort_unstable();
        assert_eq!(
            names,
            [
                "almanac-2026-01-03T030000Z",
                "almanac-2026-01-04T030000Z",
                "almanac-of-my-own"
            ]
        );
        assert!(place.join("almanac-2020-01-01T000000Z").is_file());
    }

    #[test]
    fn what_is_dated_ahead_takes_nobodys_place() {
        let directory = tempfile::tempdir().unwrap();
        let backups = Backups::open(directory.path()).unwrap();
        let ahead = made(&backups, "2030-01-01T03:00:00Z");
        let mut places = Vec::new();
        for day in 1..=3 {
            let newest = made(&backups, &format!("2026-01-0{day}T03:00:00Z"));
            let earlier = EarlierBackups {
                removed: usize::from(day > 2),
                ahead: vec![ahead.clone()],
            };
            assert_eq!(backups.keep(2, &newest).unwrap(), earlier);
            places.push(newest);
        }
        assert!(!places[0].exists() && places[1].exists() && places[2].exists() && ahead.exists());
    }

    #[test]
    fn one_at_a_time_and_what_broke_off_is_gone_with_the_next() {
        let directory = tempfile::tempdir().unwrap();
        let backups = Backups::open(directory.path()).unwrap();
        assert!(
            Backups::open(directory.path()).is_err(),
            "another one is under way"
        );
        let begun = backups.begin(Instant::from_micros(0)).unwrap();
        std::fs::create_dir(&begun.unfinished).unwrap();
        drop(backups);
        let backups = Backups::open(directory.path()).unwrap();
        assert!(!begun.unfinished.exists());
        made(&backups, "1970-01-01");
    }

    #[test]
    fn those_of_one_second_have_names_of_their_own_and_the_newest_is_the_last() {
        let directory = tempfile::tempdir().unwrap();
        let backups = Backups::open(directory.path()).unwrap();
        for last in ["", "-02", "-03"] {
            let place = made(&backups, "2026-01-01T03:00:00.5Z");
            assert!(
                place.ends_with(format!("almanac-2026-01-01T030000Z{last}")),
                "{place:?}"
            );
            backups.keep(1, &place).unwrap();
            assert!(place.exists(), "the newest is kept: {place:?}");
        }
        assert_eq!(backups.names().unwrap().len(), 1);
        assert!(is_backup("almanac-2026-01-01T030000Z-17"));
        assert!(!is_backup("almanac-2026-01-01T030000Z-1") && !is_backup("almanac-2026-01-01T030000Z-mine"));
    }
}
