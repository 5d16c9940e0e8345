//! The log that SQLite writes ahead of its file, looked at before SQLite does.
//!
//! After a crash SQLite goes through the log up to the first frame that is not as it was written, and takes
//! that for the place where a crash broke a write off: what stands behind is gone without a word. A write
//! that breaks off is the last one. So where whole transactions, and more after them, stand behind such a
//! frame, it was not a crash; what was acknowledged is there, and to go on would be to lose it. Knows frames
//! and checksums; knows nothing of what is in them.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::catalog::errors::CatalogError;

/// What the name of the log ends with, after that of the file.
const SUFFIX: &str = "-wal";
/// What the name of a log ends with that was set aside.
const SET_ASIDE: &str = "-wal.damaged";
const HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
/// How logs begin; the last bit says in which order the bytes of checksums are.
const MAGIC: u32 = 0x377f_0682;
/// A log may be written while it is read here. What is wrong then is right a moment later.
const LOOKS: usize = 3;
const PAUSE: Duration = Duration::from_millis(50);

/// Where a log differs from what was written though the writing went on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Damage {
    /// Bytes before it.
    sound: u64,
    /// Transactions behind it.
    transactions: usize,
}

/// Refuses a database whose log is damaged.
pub(super) fn refuse_damaged(database: &Path) -> Result<(), CatalogError> {
    let log = beside(database, SUFFIX);
    match looked(&log).map_err(|error| unreadable(&log, &error))? {
        None => Ok(()),
        Some(Damage { sound, transactions }) => Err(CatalogError::Corrupt {
            what: format!(
                "{}: it differs from what was written behind byte {sound}, and {transactions} transactions \
                 or more that were acknowledged stand there. Restore a backup, or go on without them by \
                 `almanac check --repair`, which keeps a copy of the file",
                log.display()
            ),
        }),
    }
}

/// Cuts a damaged log where it is damaged, after a copy of it was put aside; says so, if it was.
pub(super) fn cut_damaged(database: &Path) -> Result<Option<String>, CatalogError> {
    let log = beside(database, SUFFIX);
    let cut = || -> io::Result<Option<String>> {
        let Some(Damage { sound, transactions }) = looked(&log)? else {
            return Ok(None);
        };
        let copy = beside(database, SET_ASIDE);
        if copy.try_exists()? {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                format!("{} is there from before; move it away", copy.display()),
            ));
        }
        std::fs::copy(&log, &copy)?;
        File::open(&copy)?.sync_all()?;
        let file = File::options().write(true).open(&log)?;
        file.set_len(sound)?;
        file.sync_all()?;
        Ok(Some(format!(
            "{}: {transactions} transactions or more behind byte {sound} are given up; {} has the whole file",
            log.display(),
            copy.display()
        )))
    };
    cut().map_err(|error| unreadable(&log, &error))
}

fn unreadable(log: &Path, error: &io::Error) -> CatalogError {
    CatalogError::Unavailable {
        detail: format!("{}: {error}", log.display()),
    }
}

fn beside(database: &Path, suffix: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn looked(log: &Path) -> io::Result<Option<Damage>> {
    let mut seen = None;
    for look in 0..LOOKS {
        if look > 0 {
            std::thread::sleep(PAUSE);
        }
        let begin = match read_header(log) {
            Ok(begin) => begin,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let damage = match &begin {
            // Nothing was written yet.
            None => None,
            Some(header) => scanned(BufReader::with_capacity(1 << 20, File::open(log)?), header)?,
        };
        if damage.is_none() {
            return Ok(None);
        }
        // A log that was begun anew meanwhile was read in two parts that have nothing to do with each other.
        if read_header(log)? == begin {
            seen = damage;
        }
    }
    Ok(seen)
}

fn read_header(log: &Path) -> io::Result<Option<[u8; HEADER]>> {
    let mut header = [0; HEADER];
    match File::open(log)?.read_exact(&mut header) {
        Ok(()) => Ok(Some(header)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

/// Goes through a log with this header from its beginning. Each frame goes on from the checksum of the one
/// before; what an undone write left behind the end does not.
fn scanned(mut log: impl Read, header: &[u8; HEADER]) -> io::Result<Option<Damage>> {
    let (magic, page) = (word(header, 0), word(header, 8) as usize);
    if !page.is_power_of_two() || !(512..=65_536).contains(&page) {
        // Not even how long a frame is can be told.
        return Ok(Some(Damage {
            sound: 0,
            transactions: 0,
        }));
    }
    let stored = Sum(word(header, 24), word(header, 28));
    let header_is_sound = magic & !1 == MAGIC && Sum::default().and(&header[..24], magic) == stored;
    let (mut is_sound, mut before) = (header_is_sound, stored);
    let mut sound = if is_sound { HEADER as u64 } else { 0 };
    let (mut transactions, mut behind_one, mut goes_on) = (0, false, false);
    let mut mark = header_is_sound.then(|| marked(header, 16));
    io::copy(&mut (&mut log).take(HEADER as u64), &mut io::sink())?;
    let mut frame = vec![0; FRAME_HEADER + page];
    while read_whole(&mut log, &mut frame)? {
        let stored = Sum(word(&frame, 16), word(&frame, 20));
        // What an earlier round left is marked otherwise.
        let mark = *mark.get_or_insert_with(|| marked(&frame, 8));
        let follows = marked(&frame, 8) == mark
            && before.and(&frame[..8], magic).and(&frame[FRAME_HEADER..], magic) == stored;
        before = stored;
        is_sound &= follows;
        if is_sound {
            sound += frame.len() as u64;
            continue;
        }
        goes_on |= follows && behind_one;
        // The last frame of a transaction says how long the database is.
        behind_one = follows && word(&frame, 4) != 0;
        transactions += usize::from(behind_one);
    }
    // What begins a log is on disk before anything else of it is.
    let is_damaged = goes_on || !header_is_sound && transactions > 0;
    Ok(is_damaged.then_some(Damage { sound, transactions }))
}

/// Whether there was another whole frame.
fn read_whole(log: &mut impl Read, frame: &mut [u8]) -> io::Result<bool> {
    match log.read_exact(frame) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// What all frames of one round of the log have in common with its beginning.
fn marked(bytes: &[u8], at: usize) -> (u32, u32) {
    (word(bytes, at), word(bytes, at + 4))
}

/// A number of the log, which is written with its highest byte first.
fn word(bytes: &[u8], at: usize) -> u32 {
    let four = bytes.get(at..at + 4).and_then(|four| four.try_into().ok());
    four.map_or(0, u32::from_be_bytes)
}

/// The checksum of everything up to some place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum(u32, u32);

impl Sum {
    /// The same with `bytes` behind it. `magic` says in which order their bytes are read.
    fn and(self, bytes: &[u8], magic: u32) -> Self {
        let read = if magic & 1 == 1 {
            u32::from_be_bytes
        } else {
            u32::from_le_bytes
        };
        let (words, _rest) = bytes.as_chunks::<4>();
        let (pairs, _rest) = words.as_chunks::<2>();
        pairs.iter().fold(self, |Self(first, second), [one, other]| {
            let first = first.wrapping_add(read(*one)).wrapping_add(second);
            Self(first, second.wrapping_add(read(*other)).wrapping_add(first))
        })
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;

    /// A database with a log of so many transactions, as a crash leaves it.
    fn crashed(transactions: usize) -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let open = Connection::open(directory.path().join("open.db")).unwrap();
        open.execute_batch("PRAGMA journal_mode = wal; PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (a)")
            .unwrap();
        for number in 1..transactions {
            open.execute("INSERT INTO t VALUES (?1)", [number.to_string().repeat(2_000)])
                .unwrap();
        }
        let database = directory.path().join("crashed.db");
        std::fs::copy(directory.path().join("open.db"), &database).unwrap();
        std::fs::copy(directory.path().join("open.db-wal"), beside(&database, SUFFIX)).unwrap();
        (directory, database)
    }

    fn flip(database: &Path, place: usize) {
        let log = beside(database, SUFFIX);
        let mut bytes = std::fs::read(&log).unwrap();
        bytes[place] ^= 4;
        std::fs::write(&log, bytes).unwrap();
    }

    #[test]
    fn a_log_as_it_was_written_is_taken_wherever_a_crash_broke_it_off() {
        let (_directory, database) = crashed(20);
        refuse_damaged(&database).unwrap();
        let log = beside(&database, SUFFIX);
        let bytes = std::fs::read(&log).unwrap();
        for length in [0, 10, HEADER, HEADER + 100, bytes.len() / 2, bytes.len() - 1] {
            std::fs::write(&log, &bytes[..length]).unwrap();
            refuse_damaged(&database).unwrap();
        }
        std::fs::remove_file(&log).unwrap();
        refuse_damaged(&database).unwrap();
    }

    #[test]
    fn the_last_write_may_have_broken_off_anywhere() {
        let (_directory, database) = crashed(20);
        let length = std::fs::metadata(beside(&database, SUFFIX)).unwrap().len();
        flip(&database, length as usize - 100);
        refuse_damaged(&database).unwrap();
    }

    #[test]
    fn what_an_earlier_round_left_behind_the_end_is_no_damage() {
        let directory = tempfile::tempdir().unwrap();
        let database = directory.path().join("open.db");
        let open = Connection::open(&database).unwrap();
        open.execute_batch("PRAGMA journal_mode = wal; CREATE TABLE t (a)")
            .unwrap();
        for number in 0..100 {
            if number == 90 {
                let checkpoint = "PRAGMA wal_checkpoint(RESTART)";
                open.query_row(checkpoint, [], |row| row.get::<_, i64>(0))
                    .unwrap();
            }
            open.execute("INSERT INTO t VALUES (?1)", [number.to_string().repeat(2_000)])
                .unwrap();
        }
        refuse_damaged(&database).unwrap();
    }

    #[test]
    fn a_bit_that_turned_over_before_other_transactions_is_told_and_can_be_cut_off() {
        let length = {
            let (_directory, database) = crashed(20);
            std::fs::metadata(beside(&database, SUFFIX)).unwrap().len() as usize
        };
        for place in [2, 10, 20, HEADER + 2, HEADER + 9, HEADER + 500, length / 2] {
            let (_directory, database) = crashed(20);
            flip(&database, place);
            let refused = refuse_damaged(&database).unwrap_err();
            assert!(
                matches!(refused, CatalogError::Corrupt { .. }),
                "{place}: {refused}"
            );
            let told = cut_damaged(&database).unwrap().unwrap();
            assert!(told.contains("given up"), "{told}");
            assert!(beside(&database, SET_ASIDE).exists());
            refuse_damaged(&database).unwrap();
            let open = Connection::open(&database).unwrap();
            open.query_row("PRAGMA quick_check", [], |row| row.get::<_, String>(0))
                .unwrap();
        }
    }
}
