//! One record on its way from text to columns, in the form that both ways of decoding give.

use std::sync::Arc;

use super::columns::Cell;
use crate::model::ids::RecordId;
use crate::model::time::Instant;

/// How far ahead of the clock a measurement may lie: clocks of devices and zones of importers are wrong by
/// hours, not by days.
const FARTHEST_AHEAD: i64 = 24 * 3600 * 1_000_000;

/// A record that is valid.
#[derive(Debug)]
pub(super) struct Row<'a> {
    /// The caller's id; one is made where there is none.
    pub id: Option<RecordId>,
    pub start: Instant,
    pub end: Instant,
    /// Neither was sent: they are the time of acceptance, unless the record is stored already.
    pub undated: bool,
    /// The type's own columns that have a value, each by its place among them.
    pub cells: Vec<(usize, Cell<'a>)>,
    pub source: SourceMark,
    /// A JSON object as text.
    pub extras: Option<String>,
}

/// Where a record comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SourceMark {
    /// The source's place among those of the rows not yet taken.
    pub number: usize,
    /// Code of its class.
    pub class: i8,
    /// The definition among its sources, or the first of them.
    pub source_id: Option<Arc<str>>,
}

/// The latest start that a measurement may have.
pub(super) const fn latest_start(now: Instant) -> Instant {
    Instant::from_micros(now.micros().saturating_add(FARTHEST_AHEAD))
}
