//! Rollups in memory: summaries of immutable pieces by minute, quarter of an hour or hour, kept as long as
//! there is room, and the names of their columns beside rows. The series modules decide who makes rollups and
//! where they serve.

use std::collections::HashSet;
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;

use crate::model::cache::Cache;
use crate::model::cache_pool::Member;
use crate::model::ids::PieceId;
use crate::model::meters::CacheMeters;
use crate::people::preferences::SourceOrder;
use crate::store::piece::ObjectName;
use crate::store::replaced::Replaced;
use crate::store::rollups::Step;

use super::measure::Counting;

/// How many rows a rollup stands for; null in a plain row. Names of fields are printable, so no field can
/// have these names.
pub(in crate::query) const ROLLUP_COUNT: &str = "\u{1}rollup count";
pub(in crate::query) const ROLLUP_SUM: &str = "\u{1}rollup sum";
pub(in crate::query) const ROLLUP_MIN: &str = "\u{1}rollup min";
pub(in crate::query) const ROLLUP_MAX: &str = "\u{1}rollup max";
/// Whether the row is part of an amount over a very long time.
pub(in crate::query) const ROLLUP_LONG: &str = "\u{1}rollup long";

/// The content of the rollups of a piece.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::query) enum Kind {
    /// Count, sum, minimum and maximum of the points in a rollup, for each source or for all together.
    Points(Counting),
    /// Count, sum, minimum and maximum of all samples that start in a rollup, however long they last.
    Starts,
    /// The part of the counting amounts that falls into a rollup. Where one source is chosen, the order of
    /// sources that decided it is included.
    Amounts(Counting, Option<Arc<SourceOrder>>),
}

impl Kind {
    pub(in crate::query) const fn counting(&self) -> Counting {
        match self {
            Self::Points(counting) | Self::Amounts(counting, _) => *counting,
            Self::Starts => Counting::Everything,
        }
    }
}

/// The key of cached rollups.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::query) struct Key {
    pub(in crate::query) piece: PieceId,
    /// Months since year 0.
    pub(in crate::query) month: i64,
    pub(in crate::query) step: Step,
    pub(in crate::query) kind: Kind,
}

/// The size in bytes of what is kept besides the columns of a rollup.
const ENTRY_BYTES: usize = 256;
/// The size in bytes of a full month of minutes.
const LARGE: u64 = 2 << 20;

/// The rollups of one piece and month.
#[derive(Clone, Debug)]
pub(in crate::query) enum CachedRollups {
    Rollups(Arc<RecordBatch>),
    /// Some row spans more than one rollup.
    Unfit,
}

/// Rollups in memory. Cheap to clone; all clones share what is held. Lives as long as the process.
#[derive(Clone)]
pub(in crate::query) struct Rollups {
    pub(in crate::query) held: Cache<Key, CachedRollups>,
}

impl Rollups {
    /// `memory`: how many bytes of rollups to keep. With 0, every answer is computed from rows.
    pub(in crate::query) fn new(memory: u64) -> Self {
        let weigh = |key: &Key, held: &CachedRollups| {
            let order = match &key.kind {
                Kind::Amounts(_, Some(order)) => order.memory(),
                _ => 0,
            };
            let rollups = match held {
                CachedRollups::Rollups(rollups) => memory_of(rollups),
                CachedRollups::Unfit => 0,
            };
            order.saturating_add(rollups).saturating_add(ENTRY_BYTES)
        };
        Self {
            held: Cache::of_bytes(memory, LARGE, weigh),
        }
    }

    /// Makes `meters` report how much is held.
    pub(in crate::query) fn watched_by(&self, meters: &CacheMeters) {
        meters.watch("rollups", &self.held);
    }

    /// What is held, as a member of a pool.
    pub(in crate::query) fn pooled(&self) -> Member {
        Member::of(&self.held)
    }

    /// Drops what belongs to objects that were replaced.
    pub(in crate::query) fn forget(&self, replaced: &Replaced) {
        let pieces = replaced.iter().filter_map(|path| ObjectName::parse(path));
        let pieces: HashSet<PieceId> = pieces.map(|name| name.piece).collect();
        self.held.retain(|key| !pieces.contains(&key.piece));
    }

    /// Drops everything, for all people.
    pub(in crate::query) fn forget_all(&self) {
        self.held.clear();
    }
}

/// Bytes of the columns; an array that serves as several columns counts once.
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
