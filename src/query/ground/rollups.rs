//! Rollups in memory: what immutable pieces come to in a minute, a quarter of an hour or an hour, kept as
//! long as there is room, and the names of the columns in which they stand beside rows. Who makes them and
//! where they serve is decided where series are.

use std::collections::HashSet;
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;

use crate::model::cache::Cache;
use crate::model::ids::PieceId;
use crate::model::meters::CacheMeters;
use crate::people::preferences::SourceOrder;
use crate::store::piece::ObjectName;
use crate::store::replaced::Replaced;
use crate::store::rollups::Step;

use super::measure::Counting;

/// How many rows a rollup stands for; null in a row that is one. Fields that a person names have printable
/// names, so none is called like these.
pub(in crate::query) const ROLLUP_COUNT: &str = "\u{1}rollup count";
pub(in crate::query) const ROLLUP_SUM: &str = "\u{1}rollup sum";
pub(in crate::query) const ROLLUP_MIN: &str = "\u{1}rollup min";
pub(in crate::query) const ROLLUP_MAX: &str = "\u{1}rollup max";
/// Whether the row is part of an amount over a very long time.
pub(in crate::query) const ROLLUP_LONG: &str = "\u{1}rollup long";

/// What the rollups of a piece say.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::query) enum Kind {
    /// Count, sum, least and greatest of the points in a rollup, for each source or for all together.
    Points(Counting),
    /// The same of all samples that start in a rollup, however long they last.
    Starts,
    /// What falls to a rollup of the amounts that count there, with the order of sources by which that was
    /// decided, where one source is chosen.
    Amounts(Counting, Option<Arc<SourceOrder>>),
}

/// What rollups are kept by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::query) struct Key {
    pub(in crate::query) piece: PieceId,
    /// Months since year 0.
    pub(in crate::query) month: i64,
    pub(in crate::query) step: Step,
    pub(in crate::query) kind: Kind,
}

/// Bytes of the minutes of a full month.
const LARGE: u64 = 2 << 20;

/// The rollups of one piece and month.
#[derive(Clone, Debug)]
pub(in crate::query) enum Held {
    Rollups(Arc<RecordBatch>),
    /// Some row lasts from one rollup into the next.
    Unfit,
}

/// Rollups in memory. Cheap to clone; all clones share what is held. Lives as long as the process.
#[derive(Clone)]
pub(in crate::query) struct Rollups {
    pub(in crate::query) held: Cache<Key, Held>,
}

impl Rollups {
    /// `memory`: how many bytes of rollups to keep. None at all: every answer is computed from rows.
    pub(in crate::query) fn new(memory: u64) -> Self {
        let weigh = |key: &Key, held: &Held| {
            let order = match &key.kind {
                Kind::Amounts(_, Some(order)) => order.memory(),
                _ => 0,
            };
            let rollups = match held {
                Held::Rollups(rollups) => memory_of(rollups),
                Held::Unfit => 64,
            };
            order.saturating_add(rollups)
        };
        Self {
            held: Cache::of_bytes(memory, LARGE, weigh),
        }
    }

    /// Has `meters` tell how much is held.
    pub(in crate::query) fn watched_by(&self, meters: &CacheMeters) {
        meters.watch("rollups", &self.held);
    }

    /// Holds nothing any more of objects in whose place are others.
    pub(in crate::query) fn forget(&self, replaced: &Replaced) {
        let pieces = replaced.iter().filter_map(|path| ObjectName::parse(path));
        let pieces: HashSet<PieceId> = pieces.map(|name| name.piece).collect();
        self.held.retain(|key| !pieces.contains(&key.piece));
    }

    /// Holds nothing any more, whosever it was.
    pub(in crate::query) fn forget_all(&self) {
        self.held.clear();
    }
}

/// Bytes of the columns, those counted once that stand there under several names.
fn memory_of(rollups: &RecordBatch) -> usize {
    let columns = rollups.columns().iter().enumerate();
    let first_of_its_kind = columns.filter(|(place, column)| {
        let before = rollups.columns().iter().take(*place);
        !before.into_iter().any(|other| Arc::ptr_eq(other, column))
    });
    first_of_its_kind
        .map(|(_, column)| column.get_array_memory_size())
        .sum()
}

impl fmt::Debug for Rollups {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Rollups({} held)", self.held.len())
    }
}
