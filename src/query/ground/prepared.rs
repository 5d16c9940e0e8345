//! A question that is ready to run: its plan, and what distinguishes its answer from others.

use std::hash::{DefaultHasher, Hash, Hasher};

use datafusion::arrow::datatypes::SchemaRef;

use crate::catalog::records::Stamp;
use crate::model::permit::{ReadPermit, SharedWith, Windows};
use crate::model::registry::TypeId;
use crate::model::time::{Instant, MICROS_PER_DAY, TimeRange};
use crate::store::snapshot::{Snapshot, SnapshotPiece};

use super::operator::Plan;
use super::typed_partition::TypedPartition;

/// The name of the definitions among the states that an answer depends on.
const DEFINITIONS: &str = "definitions";

/// A question that is ready to run.
#[derive(Debug)]
pub struct Prepared {
    pub plan: Plan,
    pub schema: SchemaRef,
    /// The states of all that would be read, and of what only gives the answer columns; the same states give
    /// the same answer to the same reader.
    pub states: Vec<ReadState>,
    pub scope: Scope,
}

impl Prepared {
    /// An answer with the columns of its plan.
    pub(in crate::query) fn of(plan: Plan, states: Vec<ReadState>, scope: Scope) -> Self {
        Self {
            schema: plan.schema(),
            plan,
            states,
            scope,
        }
    }
}

/// Who reads, if not the owner, and what they may see of which types; empty for the owner. Answers of equal
/// scope go to the same reader through the same windows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Scope(Vec<(TypeId, SharedWith, Windows)>);

impl Scope {
    pub(in crate::query) fn of<'a, Authority: 'a>(
        permits: impl IntoIterator<Item = &'a ReadPermit<Authority>>,
    ) -> Self {
        let shared = |permit: &'a ReadPermit<Authority>| {
            let shared = permit.shared_with()?.clone();
            Some((permit.data_type().clone(), shared, permit.windows().clone()))
        };
        Self(permits.into_iter().filter_map(shared).collect())
    }

    /// Whether the owner is the only reader.
    #[must_use]
    pub const fn is_own(&self) -> bool {
        self.0.is_empty()
    }

    /// The scope of a question whose range moves with the clock: windows that end where it does are open
    /// there.
    #[must_use]
    pub fn regardless_of(self, range: TimeRange) -> Self {
        let opened = |window: &TimeRange| {
            let from_its_start = window.start() == range.start();
            let to_its_end = window.end() == range.end();
            TimeRange::between(
                if from_its_start {
                    Instant::MIN
                } else {
                    window.start()
                },
                if to_its_end { Instant::MAX } else { window.end() },
            )
        };
        let open = |windows: &Windows| Windows::new(windows.as_slice().iter().map(opened));
        let shared = self.0.into_iter().map(|(data_type, shared, windows)| {
            let edges = open(&shared.edges);
            (data_type, SharedWith { edges, ..shared }, open(&windows))
        });
        Self(shared.collect())
    }

    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }
}

/// The state of one partition that an answer is computed from, and its layout. Equal states give equal
/// answers; the `ETag` is made of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReadState {
    partition: TypeId,
    rows: RowsState,
    layout: u64,
}

/// The state of the rows that an answer is computed from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum RowsState {
    /// The state of the whole partition.
    Partition(Stamp),
    /// The state of the pieces that may have rows inside the windows of a reader who is not the owner:
    /// changes elsewhere do not matter.
    Pieces(u64),
    /// No row is read. The partition gives the answer columns all the same.
    Unread,
}

/// How far outside a window a row can lie and still affect the answer: days of whole-day events follow the
/// clock of their zone, and samples that overlap compete.
const NEIGHBOURHOOD: i64 = 2 * MICROS_PER_DAY;

impl RowsState {
    fn of<Authority>(permit: &ReadPermit<Authority>, snapshot: &Snapshot) -> Self {
        let Some(shared) = permit.shared_with() else {
            return Self::Partition(snapshot.stamp);
        };
        let is_near = |piece: &&SnapshotPiece| {
            shared.edges.as_slice().iter().any(|window| {
                piece.bounds.min_start.micros() < window.end().micros().saturating_add(NEIGHBOURHOOD)
                    && window.start().micros().saturating_sub(NEIGHBOURHOOD) <= piece.bounds.max_end.micros()
            })
        };
        let mut hasher = DefaultHasher::new();
        for piece in snapshot.pieces.iter().filter(is_near) {
            (piece.id, piece.checksum, &piece.dead).hash(&mut hasher);
        }
        Self::Pieces(hasher.finish())
    }
}

impl ReadState {
    /// The state of something shown along with rows, under a name that no partition has.
    pub(in crate::query) fn beside_rows(name: TypeId, state: u64) -> Self {
        Self {
            partition: name,
            rows: RowsState::Partition(Stamp::default()),
            layout: state,
        }
    }

    /// The state of a partition that only gives an answer columns.
    fn unread(partition: &TypedPartition) -> Self {
        Self {
            partition: partition.id.clone(),
            rows: RowsState::Unread,
            layout: partition.data_type.layout.state,
        }
    }

    #[must_use]
    pub fn of<Authority>(
        permit: &ReadPermit<Authority>,
        partition: &TypedPartition,
        snapshot: &Snapshot,
    ) -> Self {
        Self {
            partition: partition.id.clone(),
            rows: RowsState::of(permit, snapshot),
            layout: partition.data_type.layout.state,
        }
    }
}

/// The states that an answer over `partitions` depends on: of those that are `read`, which are some of them
/// in the same order; of the others, whose columns the answer has too; and of the definitions.
pub(in crate::query) fn states_of<'a, Authority>(
    permit: &ReadPermit<Authority>,
    partitions: &'a [TypedPartition],
    read: impl Iterator<Item = (&'a TypedPartition, &'a Snapshot)>,
) -> Vec<ReadState> {
    let mut read = read.peekable();
    let of_each = partitions.iter().map(|partition| {
        match read.next_if(|(of_rows, _)| std::ptr::eq(*of_rows, partition)) {
            Some((_, snapshot)) => ReadState::of(permit, partition, snapshot),
            None => ReadState::unread(partition),
        }
    });
    of_each.chain(definitions(permit, partitions)).collect()
}

/// The states of the definitions that an answer depends on: where a permit is for one of several, of that one
/// alone.
fn definitions<Authority>(
    permit: &ReadPermit<Authority>,
    partitions: &[TypedPartition],
) -> impl Iterator<Item = ReadState> {
    partitions.iter().filter_map(|partition| {
        let definitions = partition.definitions.as_ref()?;
        let state = permit
            .definition_within(&partition.id)
            .map_or_else(|| definitions.state(), |only| definitions.state_of(only));
        Some(ReadState::beside_rows(TypeId::new(DEFINITIONS), state))
    })
}
