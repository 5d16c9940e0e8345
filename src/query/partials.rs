//! Partial results of immutable pieces, so that a year of days need not be read row by row each time it is
//! asked for.
//!
//! For one piece, one calendar month and one step (a minute or a quarter of an hour) the rows are brought
//! down to *cells* once, and kept in memory as long as there is room. Cells take the place of rows only where
//! that changes no answer: where the piece is the only one with rows in that time, none of its rows is dead,
//! every edge of the question falls on an edge of cells, and no point lasts from one cell into the next.
//! Everywhere else rows are read. A piece never changes, so cells never go stale. Knows snapshots, scans and
//! series; knows nothing of HTTP.

mod cells;
mod cut;
mod patchwork;
mod prepare;
mod spans;

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use moka::future::Cache;

use crate::model::ids::PieceId;
use crate::people::preferences::SourceOrder;

use super::series::Counting;

pub(in crate::query) use cells::{CELL_COUNT, CELL_LONG, CELL_MAX, CELL_MIN, CELL_SUM};
pub(in crate::query) use prepare::Patchwork;

/// How long a cell is. The edges of every zone's periods fall on quarters of an hour since 1970, and most
/// windows on minutes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::query) enum Step {
    Minute,
    Quarter,
}

impl Step {
    pub(in crate::query) const COARSE_FIRST: [Self; 2] = [Self::Quarter, Self::Minute];

    pub(in crate::query) const fn micros(self) -> i64 {
        match self {
            Self::Minute => 60_000_000,
            Self::Quarter => 900_000_000,
        }
    }
}

/// What the cells of a piece say.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::query) enum Kind {
    /// Count, sum, least and greatest of the points in a cell, for each source or for all together.
    Points(Counting),
    /// The same of all samples that start in a cell, however long they last.
    Starts,
    /// What falls to a cell of the amounts that count there, with the order of sources by which that was
    /// decided, where one source is chosen.
    Amounts(Counting, Option<Arc<SourceOrder>>),
}

/// What cells are kept by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    piece: PieceId,
    /// Months since year 0.
    month: i64,
    step: Step,
    kind: Kind,
}

/// The cells of one piece and month.
#[derive(Clone, Debug)]
enum Held {
    Cells(Arc<RecordBatch>),
    /// Some row lasts from one cell into the next.
    Unfit,
}

/// Cells in memory. Cheap to clone; all clones share what is held. Lives as long as the process.
#[derive(Clone)]
pub(in crate::query) struct Partials {
    held: Cache<Key, Held>,
}

impl Partials {
    /// `memory`: how many bytes of cells to keep. None at all: every answer is computed from rows.
    pub(in crate::query) fn new(memory: u64) -> Self {
        let weigh = |key: &Key, held: &Held| {
            let order = match &key.kind {
                Kind::Amounts(_, Some(order)) => order.memory(),
                _ => 0,
            };
            let cells = match held {
                Held::Cells(cells) => cells.get_array_memory_size(),
                Held::Unfit => 64,
            };
            u32::try_from(order.saturating_add(cells)).unwrap_or(u32::MAX)
        };
        Self {
            held: Cache::builder().max_capacity(memory).weigher(weigh).build(),
        }
    }

    /// Holds nothing any more, whosever it was.
    pub(in crate::query) async fn forget_all(&self) {
        self.held.invalidate_all();
        self.held.run_pending_tasks().await;
    }
}

impl fmt::Debug for Partials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Partials({} held)", self.held.entry_count())
    }
}

#[cfg(test)]
mod tests;
