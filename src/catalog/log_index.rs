//! Tells the state of SQLite's log without a statement.
//!
//! When a reader begins, SQLite takes a lock and compares the head of the log's index, which all processes
//! share, with the one that it saw last: the same head means the same rows
//! (<https://sqlite.org/walformat.html>). Reading the head alone costs far less than finding a row, so it is
//! read here. Knows nothing of statements.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

use rusqlite::Connection;

/// The length of the index's head. The index begins with two copies of it.
const HEAD: usize = 48;
/// The version of the format, which begins every head.
const VERSION: u32 = 3_007_000;
/// Where a head says that it is initialised.
const IS_INITIALISED: usize = 12;
/// Where a head says how many frames the log has. How many of them are in the database stands behind the
/// heads.
const FRAMES: usize = 16;

/// The head of the index. Every commit, of any process, changes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LogState([u8; HEAD]);

/// The index of one database's log.
///
/// The file must not be closed while this process has the database open: that would release all locks that
/// SQLite holds on it. So it is closed last, and a process opens a database once.
#[derive(Debug)]
pub(super) struct LogIndex(File);

impl LogIndex {
    /// The index of the log that `connection` uses, which stays the same while the connection is open; `None`
    /// where there is no such log.
    pub(super) fn of(connection: &Connection) -> Option<Self> {
        // This creates the index, if nobody did before. An index file without a log belongs to nobody, and
        // would never change.
        let mode = connection.pragma_query_value(None, "journal_mode", |row| row.get::<_, String>(0));
        if mode.ok()? != "wal" {
            return None;
        }
        let mut path = PathBuf::from(connection.path()?).into_os_string();
        path.push("-shm");
        File::open(path).ok().map(Self)
    }

    /// The present state of the log; `None` while somebody changes it, and where the format of the index is
    /// unknown.
    ///
    /// Rows that are read after this are of this state or a later one.
    pub(super) fn state(&self) -> Option<LogState> {
        let mut heads = [0; 2 * HEAD];
        self.0.read_exact_at(&mut heads, 0).ok()?;
        // The two are written one after the other.
        let (one, other) = heads.split_at(HEAD);
        (one == other && is_known(one)).then_some(LogState(one.try_into().ok()?))
    }

    /// Whether a transaction that has begun to write may begin another round of the log, over what is in it:
    /// all of that is in the database, too. `true` where that cannot be told.
    pub(super) fn may_begin_round(&self) -> bool {
        let mut bytes = [0; 2 * HEAD + 4];
        if self.0.read_exact_at(&mut bytes, 0).is_err() || !is_known(&bytes) {
            return true;
        }
        bytes[FRAMES..FRAMES + 4] == bytes[2 * HEAD..]
    }
}

fn is_known(head: &[u8]) -> bool {
    head.starts_with(&VERSION.to_ne_bytes()) && head.get(IS_INITIALISED) == Some(&1)
}
