//! What the first page of a database says: which database it is, and in which state. Whoever writes puts the
//! page into each round of the log, too; it is only read here.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use super::frame::word;

/// Where SQLite counts how often tables and indexes have changed.
const SCHEMA_AT: usize = 40;
/// Where it has the two numbers that an application may choose.
const ROUND_AT: usize = 60;
const NUMBER_AT: usize = 68;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FirstPage {
    /// By which a database is told from others; 0 if it has none, because an earlier release made it.
    number: u32,
    /// How many rounds of the log were begun; 0 if they were not counted, because an earlier release wrote
    /// it.
    round: u32,
    /// How often tables and indexes have changed. The copies that SQLite makes of a file have its number and
    /// its round, but other pages, and in these it counts one more, or anew.
    schema: u32,
}

impl FirstPage {
    /// The one in the file of a database, which may be missing or empty.
    pub(super) fn of(database: &Path) -> io::Result<Self> {
        let mut page = [0; NUMBER_AT + 4];
        let read = File::open(database).and_then(|mut file| file.read_exact(&mut page));
        match read.map_err(|error| (error.kind(), error)) {
            Ok(()) => Ok(Self::read(&page)),
            Err((io::ErrorKind::NotFound | io::ErrorKind::UnexpectedEof, _)) => Ok(Self::default()),
            Err((_, error)) => Err(error),
        }
    }

    pub(super) fn read(page: &[u8]) -> Self {
        Self {
            number: word(page, NUMBER_AT),
            round: word(page, ROUND_AT),
            schema: word(page, SCHEMA_AT),
        }
    }

    pub(super) const fn counts_no_rounds(self) -> bool {
        self.round == 0
    }

    /// Whether this one in the log may be of the same database as that in the file, which may be from before
    /// the database had a number.
    pub(super) const fn may_be_of(self, in_file: Self) -> bool {
        in_file.number == 0 || self.number == in_file.number
    }

    /// Whether this one in the log was the next after that in the file. The first transaction of a round
    /// changes no tables, unless no rounds were counted before.
    pub(super) const fn follows(self, in_file: Self) -> bool {
        self.may_be_of(in_file)
            && self.round == in_file.round.wrapping_add(1)
            && (self.schema == in_file.schema || in_file.counts_no_rounds())
    }
}
