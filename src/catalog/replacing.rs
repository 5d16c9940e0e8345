//! Moves the same rows into other pieces: this is how flush and compaction change the catalogue without
//! changing an answer.

use std::collections::{BTreeSet, HashSet};

use super::Catalog;
use super::database::{Patience, Session, Value};
use super::errors::CatalogError;
use super::inserting::Existing;
use super::ledgers::lock_people;
use super::orphans::{paths_of, refuse_condemned};
use super::reading::{VerifiedPartition, read_partitions, read_rows};
use super::records::{Bounds, CommitOutcome, NewPlace, Place, Replace};
use super::rows::{DeadRow, PartitionRow, id, piece_values, text};
use super::stored_partitions::store_partitions;
use super::tables::{DEAD_ROWS, PIECES, RETIRED_OBJECTS};
use super::verified_rows::one_of;
use super::witness::Attempts;
use crate::model::clock::Clock;
use crate::model::ids::{PieceId, RecordId};
use crate::model::time::Instant;

/// How many pieces one statement removes.
const PIECES_AT_ONCE: usize = 64;

impl Catalog {
    /// Replaces `inputs` by `output`, if they all still exist. Their objects are retired, and their rows that
    /// died after the inputs were read are dead in the output too.
    pub async fn replace(&self, replace: Replace) -> Result<CommitOutcome, CatalogError> {
        let mut attempts = Attempts::begin();
        loop {
            match self.try_replace(&replace).await {
                Err(error) if attempts.go_on(&error).await => {}
                outcome => return outcome,
            }
        }
    }

    async fn try_replace(&self, replace: &Replace) -> Result<CommitOutcome, CatalogError> {
        let mut session = self.database.write().await?;
        let outcome = apply(&mut session, replace, &*self.time).await?;
        match outcome {
            CommitOutcome::Done => self.conclude(session).await?,
            CommitOutcome::Stale => session.rollback().await?,
        }
        Ok(outcome)
    }
}

async fn apply(
    session: &mut Session,
    replace: &Replace,
    clock: &dyn Clock,
) -> Result<CommitOutcome, CatalogError> {
    let people = BTreeSet::from([replace.person]);
    let mut ledgers = lock_people(session, &people, clock, Patience::Waits).await?;
    let now = session.now(clock).await?;
    let rows = read_rows(session, replace.person, std::slice::from_ref(&replace.data_type)).await?;
    let mut partitions = read_partitions(session, replace.person, rows).await?;
    let Some(partition) = partitions.remove(&replace.data_type) else {
        return Ok(CommitOutcome::Stale);
    };
    let Some(inputs) = check_inputs(&partition, replace) else {
        return Ok(CommitOutcome::Stale);
    };
    let stored = partition.row.checksum();
    retire_objects(session, &partition, &inputs.ids, now).await?;
    let mut row = without(&partition, &inputs.ids);
    remove_pieces(session, replace).await?;
    insert_outputs(session, replace, &inputs, now, &mut row).await?;
    row.version += 1;
    store_partitions(session, vec![(row, Some(stored))], &mut ledgers).await?;
    Ok(CommitOutcome::Done)
}

/// The pieces that are replaced.
struct Inputs {
    ids: HashSet<PieceId>,
    /// The newest sequence of them.
    sequence: i64,
    /// Rows that died after the inputs were read.
    late: Vec<RecordId>,
}

/// The inputs as they are now; `None` if the output was not made from what is stored now.
fn check_inputs(partition: &VerifiedPartition, replace: &Replace) -> Option<Inputs> {
    let ids: HashSet<PieceId> = replace.inputs.iter().copied().collect();
    let sequences: Vec<i64> = partition
        .pieces
        .iter()
        .filter(|(piece, _)| ids.contains(&piece.id))
        .map(|(piece, _)| piece.sequence)
        .collect();
    if sequences.len() < ids.len() {
        return None;
    }
    let applied: HashSet<(PieceId, RecordId)> = replace.applied.iter().copied().collect();
    // A row that was left out as dead is alive again where a database lost its last commits.
    let dead_now: HashSet<(PieceId, RecordId)> = partition
        .dead
        .iter()
        .map(|(dead, _)| (dead.piece, dead.record))
        .collect();
    if !applied.is_subset(&dead_now) {
        return None;
    }
    let late = partition
        .dead
        .iter()
        .filter(|(dead, _)| ids.contains(&dead.piece) && !applied.contains(&(dead.piece, dead.record)))
        .map(|(dead, _)| dead.record)
        .collect();
    Some(Inputs {
        ids,
        sequence: sequences.into_iter().max().unwrap_or(0),
        late,
    })
}

/// Inserts the pieces of the output with their dead rows and blobs, and counts them in the partition's row.
async fn insert_outputs(
    session: &mut Session,
    replace: &Replace,
    inputs: &Inputs,
    now: Instant,
    row: &mut PartitionRow,
) -> Result<(), CatalogError> {
    let (person, data_type, sequence) = (replace.person, &replace.data_type, inputs.sequence);
    let mut blobs = Vec::new();
    let mut pieces = Vec::new();
    let mut dead = Vec::new();
    for piece in &replace.output {
        pieces.push(piece_values(person, data_type, piece, sequence, now));
        if let NewPlace::Tail { blob, .. } = &piece.place {
            blobs.push((piece.id.as_bytes().to_vec(), blob.to_vec()));
        }
        // It is not known here which of several outputs holds the row. An id that is dead in a piece without
        // it does no harm.
        dead.extend(
            inputs
                .late
                .iter()
                .map(|record| DeadRow::values(person, data_type, piece.id, *record, sequence)),
        );
    }
    let written = session.insert(&PIECES, pieces, Existing::Refuse).await?;
    for (piece, checksum) in replace.output.iter().zip(written.checksums) {
        row.gain(piece, checksum);
    }
    let written = session.insert(&DEAD_ROWS, dead, Existing::Refuse).await?;
    for checksum in written.checksums {
        row.dead += 1;
        row.digest ^= checksum;
    }
    session.insert_blobs(blobs).await?;
    refuse_condemned(session, paths_of(&replace.output)).await
}

/// The partition's row without `inputs` and their dead rows.
fn without(partition: &VerifiedPartition, inputs: &HashSet<PieceId>) -> PartitionRow {
    let mut row = PartitionRow {
        pieces: 0,
        dead: 0,
        digest: 0,
        bytes: 0,
        bounds: None,
        ..partition.row.clone()
    };
    for (piece, checksum) in partition
        .pieces
        .iter()
        .filter(|(piece, _)| !inputs.contains(&piece.id))
    {
        row.pieces += 1;
        row.bytes += piece.bytes;
        row.digest ^= checksum;
        row.bounds = Some(
            row.bounds
                .map_or(piece.bounds, |bounds: Bounds| bounds.union(piece.bounds)),
        );
    }
    for (_, checksum) in partition
        .dead
        .iter()
        .filter(|(dead, _)| !inputs.contains(&dead.piece))
    {
        row.dead += 1;
        row.digest ^= checksum;
    }
    row
}

async fn retire_objects(
    session: &mut Session,
    partition: &VerifiedPartition,
    inputs: &HashSet<PieceId>,
    now: Instant,
) -> Result<(), CatalogError> {
    let rows = partition
        .pieces
        .iter()
        .filter(|(piece, _)| inputs.contains(&piece.id))
        .filter_map(|(piece, _)| match &piece.place {
            Place::Object { path, .. } => Some(vec![text(path), Value::Int(now.micros())]),
            Place::Tail { .. } => None,
        })
        .collect();
    session.insert(&RETIRED_OBJECTS, rows, Existing::Replace).await?;
    Ok(())
}

async fn remove_pieces(session: &mut Session, replace: &Replace) -> Result<(), CatalogError> {
    for some in replace.inputs.chunks(PIECES_AT_ONCE) {
        let ids: Vec<Value> = some.iter().map(|piece| id(piece.0)).collect();
        let (list, mut values) = one_of(3, ids.clone());
        values.splice(0..0, [id(replace.person.0), text(&replace.data_type.0)]);
        for table in [DEAD_ROWS.name, PIECES.name] {
            let sql = format!("DELETE FROM {table} WHERE person = $1 AND data_type = $2 AND piece IN {list}");
            session.execute(sql, values.clone()).await?;
        }
        let (list, values) = one_of(1, ids);
        session
            .execute(format!("DELETE FROM blobs WHERE piece IN {list}"), values)
            .await?;
    }
    Ok(())
}
