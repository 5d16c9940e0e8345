//! Checks SQLite's write-ahead log before SQLite opens it.
//!
//! After a crash SQLite reads the log up to the first frame that is not as it was written, takes that for a
//! write that the crash cut off, and silently drops what follows. But a write that is cut off is the last
//! one. Where complete transactions, and more after them, follow such a frame, it was not a crash:
//! acknowledged changes are there, and going on would lose them. Knows frames and checksums; knows nothing of
//! what is in them.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::catalog::errors::CatalogError;

/// The suffix of the log's name, after the name of the file.
const SUFFIX: &str = "-wal";
/// The suffix of the name of a log that was set aside.
const SET_ASIDE: &str = "-wal.damaged";
const HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
/// How logs begin; the last bit gives the byte order of the checksums.
const MAGIC: u32 = 0x377f_0682;
/// How often to look: a log may be written while it is read here, and then looks damaged only for a moment.
const LOOKS_AT_LOG: usize = 3;
const PAUSE_BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// Where a log differs from what was written, although writing continued after it.
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

/// Cuts a damaged log where it is damaged, after setting a copy aside; describes the damage, if any.
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
    for look in 0..LOOKS_AT_LOG {
        if look > 0 {
            std::thread::sleep(PAUSE_BETWEEN_LOOKS);
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
        // If the log was restarted meanwhile, two unrelated parts of it were read.
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

/// Reads a log with this header from its beginning. The checksum of each frame continues that of the frame
/// before; frames that an undone write left behind the end do not.
fn scanned(mut log: impl Read, header: &[u8; HEADER]) -> io::Result<Option<Damage>> {
    let (magic, page) = (word(header, 0), word(header, 8) as usize);
    if !page.is_power_of_two() || !(512..=65_536).contains(&page) {
        // Not even the length of a frame is known.
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
        // Frames left from an earlier round carry another mark.
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
        // The last frame of a transaction gives the size of the database.
        behind_one = follows && word(&frame, 4) != 0;
        transactions += usize::from(behind_one);
    }
    // The header is on disk before anything else of the log.
    let is_damaged = goes_on || !header_is_sound && transactions > 0;
    Ok(is_damaged.then_some(Damage { sound, transactions }))
}

/// Whether another complete frame was read.
fn read_whole(log: &mut impl Read, frame: &mut [u8]) -> io::Result<bool> {
    match log.read_exact(frame) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// What all frames of one round of the log share with its header.
fn marked(bytes: &[u8], at: usize) -> (u32, u32) {
    (word(bytes, at), word(bytes, at + 4))
}

/// A number of the log, which is big-endian.
fn word(bytes: &[u8], at: usize) -> u32 {
    let four = bytes.get(at..at + 4).and_then(|four| four.try_into().ok());
    four.map_or(0, u32::from_be_bytes)
}

/// The checksum of everything up to some point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum(u32, u32);

impl Sum {
    /// The same extended by `bytes`. `magic` gives their byte order.
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

    /// A database with a log of `transactions` transactions, as a crash leaves it.
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
