//! The times of the dead rows of pieces.
//!
//! A piece knows its dead rows by their ids alone. Summaries of a whole piece remain valid except where its
//! dead rows lie: so their times are looked up once for each state of a piece and kept in memory, bounded.
//! Knows pieces; knows nothing of questions.

use std::sync::Arc;

use datafusion::common::Result;

use crate::model::cache::Cache;
use crate::model::ids::{PieceId, RecordId};
use crate::store::arrange::KeyColumns;
use crate::store::find::Finder;
use crate::store::snapshot::{Snapshot, SnapshotPiece};

use super::errors::outside;

/// Pieces with more dead rows than this are not looked up.
pub(in crate::query) const MOST_DEAD: usize = 256;
/// The number of states of pieces that are kept: eight megabytes at the very most.
const MOST_KEPT: u64 = 1_000;

/// A dead row, in microseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::query) struct DeadRow {
    pub(in crate::query) start: i64,
    pub(in crate::query) end: i64,
}

/// The dead rows of pieces. Cheap to clone; all clones share what is kept. Lives as long as the process.
#[derive(Clone, Debug)]
pub(in crate::query) struct DeadRows {
    finder: Finder,
    known: Cache<State, Arc<[DeadRow]>>,
}

/// A piece in the state in which these rows are dead.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    piece: PieceId,
    dead: Arc<[RecordId]>,
}

impl DeadRows {
    pub(in crate::query) fn new(finder: Finder) -> Self {
        Self {
            finder,
            known: Cache::of(MOST_KEPT),
        }
    }

    /// The dead rows of a piece, by their starts; `None` if they are too many, or not all of them are found.
    pub(in crate::query) async fn of(
        &self,
        snapshot: &Snapshot,
        piece: &SnapshotPiece,
    ) -> Result<Option<Arc<[DeadRow]>>> {
        if piece.dead.is_empty() {
            return Ok(Some(Arc::new([])));
        }
        if piece.dead.len() > MOST_DEAD {
            return Ok(None);
        }
        let state = State {
            piece: piece.id,
            dead: Arc::clone(&piece.dead),
        };
        let found = self
            .known
            .get_or_find(&state, self.look_up(snapshot, piece))
            .await?;
        Ok(Some(found).filter(|found| found.len() == piece.dead.len()))
    }

    async fn look_up(&self, snapshot: &Snapshot, piece: &SnapshotPiece) -> Result<Arc<[DeadRow]>> {
        let unharmed = snapshot.only(vec![SnapshotPiece {
            dead: Arc::new([]),
            ..piece.clone()
        }]);
        let found = self.finder.live_rows_of(&unharmed, &piece.dead).await;
        let mut rows = Vec::with_capacity(piece.dead.len());
        for found in found.map_err(outside)? {
            let keys = KeyColumns::of(&found.rows).map_err(outside)?;
            let times = keys.starts.values().iter().zip(keys.ends.values());
            rows.extend(times.map(|(start, end)| DeadRow {
                start: *start,
                end: *end,
            }));
        }
        rows.sort_unstable();
        Ok(rows.into())
    }

    /// Drops everything that is kept, for all people.
    pub(in crate::query) fn forget_all(&self) {
        self.known.clear();
    }
}
