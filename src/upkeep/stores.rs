//! What jobs work with, and the only way in which they change anything: replacing pieces by others.

use std::sync::Arc;

use crate::catalog::Catalog;
use crate::catalog::records::{CommitOutcome, NewPiece, Piece, Replace};
use crate::model::clock::Clock;
use crate::model::ids::{IdSource, PersonId, PieceId, RecordId};
use crate::model::registry::TypeId;
use crate::store::StoreError;
use crate::store::contents::Contents;
use crate::store::files::PieceFiles;
use crate::store::objects::ObjectStorage;
use crate::store::orphans::delete_uncommitted;
use crate::store::sealing::PersonKeys;
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

impl Input {
    /// All rows of a piece but those that were dead when it was read.
    pub(super) fn of(piece: &Piece) -> Self {
        Self {
            piece: piece.id,
            dead: Arc::clone(&piece.dead),
        }
    }
}

impl UpkeepStores {
    #[must_use]
    pub fn objects(&self) -> &ObjectStorage {
        self.files.objects()
    }

    /// The keys of people, where encryption is enabled.
    #[must_use]
    pub const fn keys(&self) -> Option<&Arc<PersonKeys>> {
        self.snapshots.keys()
    }

    /// The contents of files.
    #[must_use]
    pub fn contents(&self) -> Contents {
        Contents::new(
            self.catalog.clone(),
            self.objects().clone(),
            Arc::clone(&self.clock),
            Arc::clone(&self.ids),
        )
    }

    /// Replaces `inputs` by `output`. If somebody else was faster, nothing happens and the objects of
    /// `output` are removed.
    pub(super) async fn replace(
        &self,
        key: &PartitionKey,
        inputs: &[Input],
        output: Vec<NewPiece>,
    ) -> Result<CommitOutcome, StoreError> {
        let written = output.clone();
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
        let outcome = self.catalog.replace(replace).await;
        if !matches!(outcome, Ok(CommitOutcome::Done))
            && let Err(error) = delete_uncommitted(&self.catalog, self.objects(), &written).await
        {
            tracing::warn!(%error, "objects that were not committed stay until they are collected");
        }
        Ok(outcome?)
    }
}
