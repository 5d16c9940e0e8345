//! How what clients and jobs did at a node ended, and what they were shown.

use uuid::Uuid;

use super::history::{Did, Key, Rows, Token};
use super::records::start_of;
use crate::catalog::records::Stamp;
use crate::model::permit::Windows;
use crate::model::time::Instant;

/// How a request ended.
#[derive(Debug)]
pub(super) enum Answer {
    Wrote(Did),
    /// It certainly did not and will not happen.
    Refused(String),
    Unknown(String),
    Read(Seen),
    Shared(Uuid),
    /// Nothing was done, because another request came first.
    Overtaken(String),
    Shown(Shown),
    /// A share ended while it was read by.
    BrokenOff,
    /// What was stored contradicts itself.
    Wrong(String),
    Failed(String),
    Done,
    /// A check found this.
    Complaints(Vec<String>),
}

/// What was read of a person, and what tells the states of their partitions apart.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    pub rows: Rows,
    pub stamps: Vec<Stamp>,
}

/// What a reader was shown: of each type nothing, or what lies in some windows.
#[derive(Clone, Debug, Default)]
pub(super) struct Shown {
    pub windows: Vec<Option<Windows>>,
    pub rows: Rows,
}

impl Shown {
    /// Whether these are all rows that lie in the windows.
    pub(super) fn is_all_of(&self, rows: &Rows) -> bool {
        rows.iter()
            .filter(|(key, token)| self.opens(**key, **token))
            .eq(self.rows.iter())
    }

    pub(super) fn opens(&self, key: Key, token: Token) -> bool {
        let (Key::Given(data_type, _) | Key::New(data_type, _)) = key;
        let windows = self.windows.get(data_type).and_then(Option::as_ref);
        windows.is_some_and(|windows| windows.contain(Instant::from_micros(start_of(token))))
    }
}
