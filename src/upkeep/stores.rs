//! What jobs work with, and the one way in which they change anything: these pieces in the place of those.

use std::sync::Arc;
use std::time::Duration;

use crate::catalog::Catalog;
use crate::catalog::records::{CommitOutcome, NewPiece, NewPlace, Replace};
use crate::model::clock::Clock;
use crate::model::ids::{IdSource, PersonId, PieceId, RecordId};
use crate::model::registry::TypeId;
use crate::model::time::Instant;
use crate::store::StoreError;
use crate::store::contents::Contents;
use crate::store::files::PieceFiles;
use crate::store::objects::ObjectStorage;
use crate::store::snapshot::Snapshots;

/// The stores, the clock and the ids. Cheap to clone.
#[derive(Clone)]
pub struct UpkeepStores {
    pub catalog: Catalog,
    pub snapshots: Snapshots,
    pub files: PieceFiles,
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn IdSource>,
}

/// A partition to work on.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PartitionKey {
    pub person: PersonId,
    pub data_type: TypeId,
}

/// A piece that was read, and which of its rows were left out.
pub(super) struct Input {
    pub piece: PieceId,
    pub dead: Arc<[RecordId]>,
}

impl UpkeepStores {
    #[must_use]
    pub fn objects(&self) -> &ObjectStorage {
        self.files.objects()
    }

    /// The bytes of files.
    #[must_use]
    pub fn contents(&self) -> Contents {
        Contents::new(
            self.catalog.clone(),
            self.objects().clone(),
            Arc::clone(&self.clock),
            Arc::clone(&self.ids),
        )
    }

    /// The moment that lies `age` back.
    pub(super) fn ago(&self, age: Duration) -> Instant {
        let age = i64::try_from(age.as_micros()).unwrap_or(i64::MAX);
        Instant::from_micros(self.clock.now().micros().saturating_sub(age))
    }

    /// Puts `output` in the place of `inputs`. When somebody else was faster, nothing happens and the objects
    /// of `output` are removed.
    pub(super) async fn replace(
        &self,
        key: &PartitionKey,
        inputs: &[Input],
        output: Vec<NewPiece>,
    ) -> Result<CommitOutcome, StoreError> {
        let written: Vec<String> = output.iter().filter_map(path_of).collect();
        let applied = inputs
            .iter()
            .flat_map(|input| input.dead.iter().map(|record| (input.piece, *record)))
            .collect();
        let replace = Replace {
            person: key.person,
            data_type: key.data_type.clone(),
            inputs: inputs.iter().map(|input| input.piece).collect(),
            applied,
            output,
        };
        let outcome = self.catalog.replace(replace).await?;
        if outcome == CommitOutcome::Stale {
            for path in written {
                self.objects().delete(&path).await?;
            }
        }
        Ok(outcome)
    }
}

fn path_of(piece: &NewPiece) -> Option<String> {
    match &piece.place {
        NewPlace::Object { path, .. } => Some(path.clone()),
        NewPlace::Tail { .. } => None,
    }
}
