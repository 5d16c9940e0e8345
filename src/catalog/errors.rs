//! What can go wrong in the catalogue, in terms of what the caller can do: try later, make room, repair, or
//! correct the call.

use thiserror::Error;

use crate::model::ids::PersonId;

#[derive(Debug, Error)]
pub enum CatalogError {
    /// Nothing is known to be damaged; the same call may succeed later.
    #[error("the catalogue cannot be reached or is busy: {detail}; try again later")]
    Unavailable { detail: String },
    /// Somebody else held what this needed, and the database undid it for that reason. The same call will
    /// succeed once they are done.
    #[error("the catalogue is busy with the same rows: {detail}; try again")]
    Contended { detail: String },
    /// The database was asked to commit and did not say whether it did, nor could it be asked.
    #[error("the database did not say whether it committed: {detail}")]
    Unknown { detail: String },
    #[error("the catalogue has no room left: {detail}; free disk space, then try again")]
    Full { detail: String },
    /// The process may not write where the catalogue is, or nobody may.
    #[error(
        "the catalogue cannot be written: {detail}; give the user that this runs as the right to write to \
         it and to its directory"
    )]
    ReadOnly { detail: String },
    /// The file is not a database, or does not begin like one.
    #[error(
        "the catalogue is not a database, or its header is damaged ({detail}): correct \
         ALMANAC_DATABASE_URL, put a backup in its place, or move it away and run `almanac check --repair`, \
         which makes it anew from the object store"
    )]
    NoDatabase { detail: String },
    /// Nothing is made in the place of the catalogue, whose log would be taken for that of the new one.
    #[error(
        "{log} holds changes of a catalogue that is missing or empty: put the catalogue back beside it, or \
         move this file away, too, if the catalogue is lost"
    )]
    LogAlone { log: String },
    /// It would become part of the catalogue beside it, and destroy it.
    #[error(
        "{log} is not the log of the catalogue beside it, or not of the state that it is in: put back the \
         one that it belongs to, or move this file away if only the one beside it is wanted. If nobody put \
         another there, that one is damaged where its numbers stand, and the log is its own, with what was \
         acknowledged last: keep copies of both, and do not move the log away"
    )]
    LogOfAnother { log: String },
    /// Stored bytes are not those that were written. Nothing derived from them was returned.
    #[error("the catalogue is damaged: {what}; run `almanac check`")]
    Corrupt { what: String },
    #[error(
        "the catalogue was written by a newer release: it has schema version {found}, this release knows \
         {known}; upgrade first"
    )]
    TooNew { found: i64, known: i64 },
    #[error(
        "the catalogue is of an earlier release: it has schema version {found}, this release has {known}; \
         start the service of this release first, which brings it up to date"
    )]
    TooOld { found: i64, known: i64 },
    /// It is not repeated: where in it a password stands is not known.
    #[error(
        "the catalogue's address is not understood: expected sqlite://PATH or postgres://USER@HOST/DATABASE"
    )]
    Address,
    #[error("{what} already exists")]
    Exists { what: String },
    #[error("{what} is not in the catalogue")]
    Missing { what: String },
    /// Nothing is taken from or for a person whose erasure is under way.
    #[error("person {person} is being erased; nothing is stored for them before that is over")]
    Erased { person: PersonId },
    /// The database refused a statement that should have been right.
    #[error("the catalogue refused a statement: {detail}")]
    Refused { detail: String },
}

/// The extended result code of SQLite if there is no room for the index of its log.
pub(super) const NO_ROOM_FOR_SHARED_MEMORY: u32 = 4874;

impl CatalogError {
    /// The error for an extended result code of SQLite.
    pub(super) fn of_sqlite(code: u32, detail: String) -> Self {
        match (code, code & 0xff) {
            (NO_ROOM_FOR_SHARED_MEMORY, _) | (_, 13) => Self::Full { detail },
            (_, 11) => Self::Corrupt { what: detail },
            (_, 26) => Self::NoDatabase { detail },
            // Busy, locked, out of memory, read-only, interrupted, input or output error, cannot open,
            // protocol.
            (_, 5 | 6 | 7 | 8 | 9 | 10 | 14 | 15) => Self::Unavailable { detail },
            (_, 19) if matches!(code, 1555 | 2067) => Self::Exists { what: detail },
            _ => Self::Refused { detail },
        }
    }

    /// `None` for damage: for callers to whom that says nothing, or who know that it is told elsewhere.
    pub fn unless_corrupt<T>(outcome: Result<T, Self>) -> Result<Option<T>, Self> {
        match outcome {
            Ok(done) => Ok(Some(done)),
            Err(Self::Corrupt { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) fn corrupt(what: impl Into<String>) -> Self {
        Self::Corrupt { what: what.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_database_is_not_sent_to_the_check_that_found_it() {
        let said = CatalogError::of_sqlite(26, "file is not a database".to_owned()).to_string();
        assert!(
            said.contains("not a database") && !said.contains("`almanac check`"),
            "{said}"
        );
    }
}
