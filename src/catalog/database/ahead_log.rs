//! Checks SQLite's write-ahead log before SQLite opens it.
//!
//! After a crash SQLite reads the log up to the first frame that is not as it was written, takes that for a
//! write that the crash cut off, and silently drops what follows. But a write that is cut off is the last
//! one. Where a transaction that is not as it was written has ended, and more was written after its end, it
//! was not a crash: acknowledged changes are there, and going on would lose them. Nor does SQLite ask whose
//! log it is. Knows frames, checksums and first pages; knows nothing of what else is in them.

mod first_page;
mod frame;

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::catalog::errors::CatalogError;

use first_page::FirstPage;
use frame::{FRAME_HEADER, Frame, Sum, marked, word};

/// The suffix of the log's name, after the name of the file.
const SUFFIX: &str = "-wal";
/// The suffix of the name of a log that was set aside.
const SET_ASIDE: &str = "-wal.damaged";
const HEADER: usize = 32;
/// What a disk writes whole or not at all.
const SECTOR: u64 = 512;
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

/// What is found in a log.
#[derive(Clone, Debug, Default)]
struct LogContent {
    damage: Option<Damage>,
    /// Whether it has a transaction before the damage.
    has_any: bool,
    /// The first pages before the damage, those that differ from the one before.
    first_pages: Vec<FirstPage>,
}

/// What is wrong with a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrong {
    OfAnother,
    Damaged(Damage),
}

/// Refuses a database whose log is damaged, or is that of another database or of another state of it.
pub(super) fn refuse_damaged(database: &Path) -> Result<(), CatalogError> {
    let log = log_of(database);
    match looked(database)? {
        None => Ok(()),
        Some(Wrong::OfAnother) => Err(CatalogError::LogOfAnother {
            log: log.display().to_string(),
        }),
        Some(Wrong::Damaged(Damage { sound, transactions })) => Err(CatalogError::Corrupt {
            what: format!(
                "{}: it differs from what was written behind byte {sound}, and {transactions} transactions \
                 or more that were acknowledged stand there. Restore a backup, or go on without them by \
                 `almanac check --repair`, which keeps a copy of the file",
                log.display()
            ),
        }),
    }
}

/// Refuses a log whose database is missing or empty, as after it was moved away: SQLite would take such a log
/// for nobody's and remove it, with what was acknowledged and stands there alone.
pub(super) fn refuse_left_alone(database: &Path) -> Result<(), CatalogError> {
    let log = log_of(database);
    let is_left_alone = || -> io::Result<bool> {
        // In this order: a database that is being made meanwhile has content before its log has.
        Ok(length(&log)? > HEADER as u64 && length(database)? == 0)
    };
    match is_left_alone() {
        Ok(false) => Ok(()),
        Ok(true) => Err(CatalogError::LogAlone {
            log: log.display().to_string(),
        }),
        Err(error) => Err(unreadable(&log, &error)),
    }
}

/// The length of a file; 0 if there is none.
fn length(path: &Path) -> io::Result<u64> {
    match std::fs::metadata(path) {
        Ok(found) => Ok(found.len()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error),
    }
}

/// Cuts a damaged log where it is damaged, after setting a copy aside; describes the damage, if any.
pub(super) fn cut_damaged(database: &Path) -> Result<Option<String>, CatalogError> {
    let log = log_of(database);
    let Some(Wrong::Damaged(Damage { sound, transactions })) = looked(database)? else {
        return Ok(None);
    };
    let cut = || -> io::Result<Option<String>> {
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

/// The log of a database in this file.
pub(super) fn log_of(database: &Path) -> PathBuf {
    beside(database, SUFFIX)
}

fn beside(database: &Path, suffix: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// What is wrong with the log of a database.
fn looked(database: &Path) -> Result<Option<Wrong>, CatalogError> {
    let log = log_of(database);
    let mut seen = None;
    for look in 0..LOOKS_AT_LOG {
        if look > 0 {
            std::thread::sleep(PAUSE_BETWEEN_LOOKS);
        }
        // Each time, because who writes a log also moves it into the file.
        let in_file = FirstPage::of(database).map_err(|error| unreadable(database, &error))?;
        seen = wrong_in(&log, in_file).map_err(|error| unreadable(&log, &error))?;
        if seen.is_none() {
            break;
        }
    }
    Ok(seen)
}

/// What is wrong with the log of a database whose file has this first page.
fn wrong_in(log: &Path, in_file: FirstPage) -> io::Result<Option<Wrong>> {
    let begin = match read_header(log) {
        Ok(Some(begin)) => begin,
        // Nothing was written yet.
        Ok(None) => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let content = scanned(BufReader::with_capacity(1 << 20, File::open(log)?), &begin)?;
    let wrong = if content.goes_on_from(in_file) {
        content.damage.map(Wrong::Damaged)
    } else {
        Some(Wrong::OfAnother)
    };
    // If it was begun anew meanwhile, two unrelated parts of it were read, and whoever began it has it open.
    Ok(if wrong.is_some() && read_header(log)? != Some(begin) {
        None
    } else {
        wrong
    })
}

impl LogContent {
    /// Whether this is the log of a database whose file has this first page, and goes on from the state that
    /// the file is in: as before this round of the log, or with some of it.
    fn goes_on_from(&self, in_file: FirstPage) -> bool {
        let Some(first) = self.first_pages.first() else {
            // The first transaction of a round has one, unless an earlier release wrote it.
            return !self.has_any || in_file.counts_no_rounds();
        };
        if first.counts_no_rounds() || self.damage.is_some() {
            // Which rounds the log goes on from is not known.
            return self.first_pages.iter().any(|page| page.may_be_of(in_file));
        }
        self.first_pages.contains(&in_file) || first.follows(in_file)
    }
}

fn read_header(log: &Path) -> io::Result<Option<[u8; HEADER]>> {
    let mut header = [0; HEADER];
    match File::open(log)?.read_exact(&mut header) {
        Ok(()) => Ok(Some(header)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

/// A checksum that the next frame may continue.
#[derive(Clone, Copy)]
struct Link {
    sum: Sum,
    /// Whether a transaction ended with it. Its end was on disk before anything that follows was written.
    ends: bool,
}

/// Reads a log with this header from its beginning. The checksum of each frame continues that of the frame
/// before; frames that an undone write left behind the end do not.
///
/// Damage is told from a write that broke off by one thing alone: a frame of this round continues the end of
/// a transaction, and something before it is not as it was written. That end may itself be what is damaged:
/// see [`links_of`].
fn scanned(mut log: impl Read, header: &[u8; HEADER]) -> io::Result<LogContent> {
    let page = word(header, 8) as usize;
    if !page.is_power_of_two() || !(512..=65_536).contains(&page) {
        // Not even the length of a frame is known.
        let damage = Some(Damage {
            sound: 0,
            transactions: 0,
        });
        return Ok(LogContent {
            damage,
            ..LogContent::default()
        });
    }
    let (magic, stored) = (written_magic(header), Sum::read(header, 24));
    let summed = Sum::default().and(&header[..24], magic);
    let header_is_sound = word(header, 0) == magic && magic & !1 == MAGIC && summed == stored;
    let mut is_sound = header_is_sound;
    let mut at = HEADER as u64;
    let (mut sound, mut size) = (if is_sound { at } else { 0 }, 0);
    let (mut transactions, mut goes_on, mut first_pages) = (0, false, Vec::new());
    let mut links = [stored, summed].map(|sum| Link { sum, ends: false });
    let mut mark = header_is_sound.then(|| marked(header, 16));
    io::copy(&mut (&mut log).take(HEADER as u64), &mut io::sink())?;
    let mut bytes = vec![0; FRAME_HEADER + page];
    while read_whole(&mut log, &mut bytes)? {
        let frame = Frame::new(&bytes, magic);
        // Frames left from an earlier round carry another mark.
        let is_ours = frame.mark() == *mark.get_or_insert_with(|| frame.mark());
        let continued = links
            .into_iter()
            .find(|link| frame.summed(link.sum) == frame.stored());
        let follows = is_ours && continued.is_some();
        is_sound &= follows;
        if is_sound {
            sound += bytes.len() as u64;
            if frame.page() == 1 {
                let page = FirstPage::read(&bytes[FRAME_HEADER..]);
                if first_pages.last() != Some(&page) {
                    first_pages.push(page);
                }
            }
        } else if follows {
            goes_on |= continued.is_some_and(|link| link.ends);
            transactions += usize::from(frame.size() != 0);
        }
        links = match continued {
            Some(_) => {
                [Link {
                    sum: frame.stored(),
                    ends: frame.size() != 0,
                }; 2]
            }
            None => links_of(&frame, is_ours, at, links[0], size),
        };
        if is_sound && frame.size() != 0 {
            size = frame.size();
        }
        at += bytes.len() as u64;
    }
    // The header is on disk before anything else of the log.
    let is_damaged = goes_on || !header_is_sound && transactions > 0;
    let damage = is_damaged.then_some(Damage {
        sound,
        // The one whose end is damaged was not counted.
        transactions: transactions.max(1),
    });
    Ok(LogContent {
        damage,
        has_any: size != 0,
        first_pages,
    })
}

/// What may be continued of the frame at `at`, which does not continue the one before. The database had
/// `size` pages before.
///
/// If its checksum alone is not what was written, the next frame continues what the checksum should be. That
/// proves that the frame was written as it is, and so whether it ended a transaction.
///
/// If anything else is not, the next frame continues the checksum as it is, and whether that is the checksum
/// of an end remains to be found out. A crash may leave the beginning of a frame on the disk without the
/// rest, and then the rest, and the frames behind it, are those of a longer write that was undone earlier.
/// But what is within one sector is written together: a size and a checksum there belong to each other.
/// Elsewhere the frame has to be as it was written but for one bit.
fn links_of(frame: &Frame<'_>, is_ours: bool, at: u64, before: Link, size: u32) -> [Link; 2] {
    let is_within_a_sector = at % SECTOR + FRAME_HEADER as u64 <= SECTOR;
    let ended = if frame.size() == 0 {
        // The size itself may have been lost. The last page of a database that grew is the last one written.
        [size, frame.page()]
            .into_iter()
            .any(|size| frame.summed_with(before.sum, size) == frame.stored())
    } else {
        // An undone write may have begun at this very place, with another page and the same sum before it.
        is_within_a_sector || !before.ends && frame.is_one_bit_off(before.sum)
    };
    [
        Link {
            sum: frame.stored(),
            ends: is_ours && ended,
        },
        Link {
            sum: frame.summed(before.sum),
            ends: frame.size() != 0,
        },
    ]
}

/// How the log began when it was written: the bit that gives the byte order of the checksums may have turned
/// over, and then no checksum would be right.
fn written_magic(header: &[u8; HEADER]) -> u32 {
    let mut other = *header;
    other[3] ^= 1;
    let magic = word(&other, 0);
    if Sum::default().and(&other[..24], magic) == Sum::read(header, 24) {
        magic
    } else {
        word(header, 0)
    }
}

/// Whether another complete frame was read.
fn read_whole(log: &mut impl Read, frame: &mut [u8]) -> io::Result<bool> {
    match log.read_exact(frame) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
