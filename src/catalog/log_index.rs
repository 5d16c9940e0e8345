//! In which state SQLite's log is, told without a statement.
//!
//! Whoever begins to read from SQLite takes a lock and compares the head of the log's index, which all
//! processes share, with the one that it saw last: the same head, the same rows
//! (<https://sqlite.org/walformat.html>). The head alone can be had for far less than finding a row costs, so
//! it is read here. Knows no statements of others.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

use rusqlite::Connection;

/// The head of the index, of which there are two copies at its beginning.
const HEAD: usize = 48;
/// The version of the format, by which every head begins.
const VERSION: u32 = 3_007_000;
/// Where a head says that it is one.
const IS_INITIALISED: usize = 12;

/// The head of the index. Every commit makes another one, whoever commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LogState([u8; HEAD]);

/// The index of the log of one database.
///
/// The file must not be closed while anybody of this process has the database open, which would let go of all
/// locks that SQLite has on it; so it goes last, and a process opens a database once.
#[derive(Debug)]
pub(super) struct LogIndex(File);

impl LogIndex {
    /// The index of the log that `connection` uses, which stays the same while the connection is open; `None`
    /// where there is no such log.
    pub(super) fn of(connection: &Connection) -> Option<Self> {
        // Makes the index, if nobody did so before. An index that lies where there is no log belongs to
        // nobody, and would never change.
        let mode = connection.pragma_query_value(None, "journal_mode", |row| row.get::<_, String>(0));
        if mode.ok()? != "wal" {
            return None;
        }
        let mut path = PathBuf::from(connection.path()?).into_os_string();
        path.push("-shm");
        File::open(path).ok().map(Self)
    }

    /// The state that the log is in now; `None` while somebody changes it, and where the index is of a form
    /// that is not known here.
    ///
    /// Rows that are read after this are of this state or of a later one.
    pub(super) fn state(&self) -> Option<LogState> {
        let mut heads = [0; 2 * HEAD];
        self.0.read_exact_at(&mut heads, 0).ok()?;
        // They are written one after the other.
        let (one, other) = heads.split_at(HEAD);
        let is_known = one.starts_with(&VERSION.to_ne_bytes()) && one.get(IS_INITIALISED) == Some(&1);
        (one == other && is_known).then_some(LogState(one.try_into().ok()?))
    }
}
