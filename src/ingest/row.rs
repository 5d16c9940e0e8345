//! One record between text and columns, in the form that both ways of decoding produce.

use std::sync::Arc;

use super::columns::Cell;
use crate::model::ids::RecordId;
use crate::model::time::Instant;

/// How far ahead of the clock a measurement may lie: the clocks of devices and the zones of importers are
/// wrong by hours, not by days.
const FARTHEST_AHEAD: i64 = 24 * 3600 * 1_000_000;

/// A valid record.
#[derive(Debug)]
pub(super) struct Row<'a> {
    /// The caller's id, if there is one; otherwise an id is made later.
    pub id: Option<RecordId>,
    pub start: Instant,
    pub end: Instant,
    /// Neither was sent: both are the time of acceptance, unless the record is stored already.
    pub undated: bool,
    /// The values in the type's own columns, each with the column's position among them.
    pub cells: Vec<(usize, Cell<'a>)>,
    pub source: SourceMark,
    /// A JSON object as text.
    pub extras: Option<String>,
}

/// Where a record comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SourceMark {
    /// The source's position among those of the rows not yet taken.
    pub number: usize,
    /// The code of its class.
    pub class: i8,
    /// The definition among its sources, or the first of them.
    pub source_id: Option<Arc<str>>,
}

/// The latest start that a measurement may have.
pub(super) const fn latest_start(now: Instant) -> Instant {
    Instant::from_micros(now.micros().saturating_add(FARTHEST_AHEAD))
}
