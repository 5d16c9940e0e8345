//! What disasters leave behind: damage that may be mended, earlier states to go back to, backups.

use std::collections::BTreeMap;
use std::path::PathBuf;

use bytes::Bytes;

use crate::model::time::Instant;
use crate::simulation::history::Rows;

/// Something that is not as it was written.
pub(in crate::simulation) struct Damage {
    pub owner: usize,
    pub(super) what: Damaged,
}

pub(super) enum Damaged {
    Object {
        path: String,
        content: Bytes,
    },
    Blob {
        piece: Vec<u8>,
        content: Vec<u8>,
    },
    Row {
        piece: Vec<u8>,
    },
    /// A number in a row that every commit looks at.
    Number {
        table: Counted,
    },
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Counted {
    Ledgers,
    /// The partition of one type.
    Partitions(usize),
}

impl Counted {
    pub(super) const fn more(self) -> &'static str {
        match self {
            Self::Ledgers => {
                "UPDATE ledgers SET partitions = partitions + $2 WHERE person = $1 AND $3 IS NOT NULL"
            }
            Self::Partitions(_) => {
                "UPDATE partitions SET records = records + $2 WHERE person = $1 AND data_type = $3"
            }
        }
    }
}

/// The database at an earlier moment.
pub(in crate::simulation) struct Earlier {
    pub(super) file: PathBuf,
    pub(super) taken_at: Instant,
}

/// A backup, and what was in it when it was made.
pub(in crate::simulation) struct Backup {
    pub(super) directory: tempfile::TempDir,
    pub(super) people: Vec<(Rows, BTreeMap<u32, u32>)>,
}
