//! Reads what a person's partitions are made of, as of one moment.
//!
//! Everything is verified against the digests that commits keep, so that a lost row is noticed as well as a
//! changed one.

use std::collections::HashMap;

use bytes::Bytes;

use super::Catalog;
use super::database::{Session, Value};
use super::errors::CatalogError;
use super::records::{Partition, PartitionSummary, Piece, Place, Stamp};
use super::rows::{DeadRow, Ledger, PartitionRow, id, piece_of, text};
use super::tables::{DEAD_ROWS, LEDGERS, PARTITIONS, PIECES};
use super::verified_rows::{VerifiedRow, one_of};
use crate::model::ids::{PersonId, PieceId, RecordId};
use crate::model::registry::TypeId;

/// Conditions that select a person's rows in the two tables.
const LEDGER_OF: &str = "WHERE person = $1";
const PARTITIONS_OF: &str = "WHERE person = $1 ORDER BY data_type";
/// How many blobs one statement fetches.
const BLOBS_AT_ONCE: usize = 64;

impl Catalog {
    /// What a person's partitions hold now, in the order of `types`; version 0 where nothing was ever stored.
    pub async fn stamps(&self, person: PersonId, types: &[TypeId]) -> Result<Vec<Stamp>, CatalogError> {
        if types.is_empty() {
            return Ok(Vec::new());
        }
        let (rest, values) = of_types(person, types);
        let mut stamps = vec![Stamp::default(); types.len()];
        for verified in self.database.find(&PARTITIONS, &rest, values).await? {
            let row = PartitionRow::of(&verified)?;
            for (wanted, found) in types.iter().zip(&mut stamps) {
                if *wanted == row.data_type {
                    *found = row.stamp();
                }
            }
        }
        Ok(stamps)
    }

    /// A person's partitions in the order of `types` (each named once), all as of one moment. The bytes of
    /// tail pieces that are `held` are left out.
    pub async fn snapshot(
        &self,
        person: PersonId,
        types: &[TypeId],
        held: &(dyn Fn(PieceId) -> bool + Send + Sync),
    ) -> Result<Vec<Partition>, CatalogError> {
        let partitions = self.changed_since(person, types, &|_| None, held).await?;
        partitions
            .into_iter()
            .map(|partition| {
                partition.ok_or_else(|| CatalogError::corrupt("a partition that was asked for is missing"))
            })
            .collect()
    }

    /// A person's partitions as `snapshot` returns them; `None` for those that still hold what is `known`.
    pub async fn changed_since(
        &self,
        person: PersonId,
        types: &[TypeId],
        known: &(dyn Fn(&TypeId) -> Option<Stamp> + Send + Sync),
        held: &(dyn Fn(PieceId) -> bool + Send + Sync),
    ) -> Result<Vec<Option<Partition>>, CatalogError> {
        if types.is_empty() {
            return Ok(Vec::new());
        }
        let mut session = self.database.read().await?;
        let rows = read_rows(&mut session, person, types).await?;
        if rows.len() < types.len() {
            verify_partitions(&mut session, person).await?;
        }
        let stamp_of = |data_type: &TypeId| {
            rows.iter()
                .find(|row| row.data_type == *data_type)
                .map_or_else(Stamp::default, PartitionRow::stamp)
        };
        let changed: Vec<bool> = types
            .iter()
            .map(|data_type| known(data_type) != Some(stamp_of(data_type)))
            .collect();
        let rows = rows
            .into_iter()
            .filter(|row| known(&row.data_type) != Some(row.stamp()))
            .collect();
        let mut verified = read_partitions(&mut session, person, rows).await?;
        let mut blobs = read_blobs(&mut session, &not_held(&verified, held)).await?;
        session.commit().await?;

        let mut partitions = Vec::with_capacity(types.len());
        for (data_type, changed) in types.iter().zip(changed) {
            partitions.push(match verified.remove(data_type) {
                _ if !changed => None,
                None => Some(Partition {
                    person,
                    data_type: data_type.clone(),
                    stamp: Stamp::default(),
                    records: 0,
                    pieces: Vec::new(),
                }),
                Some(partition) => Some(partition.into_partition(&mut blobs)?),
            });
        }
        Ok(partitions)
    }

    /// What is stored of a person, by data type.
    pub async fn partitions_of(&self, person: PersonId) -> Result<Vec<PartitionSummary>, CatalogError> {
        let rows = self.partition_rows(person).await?;
        Ok(rows.iter().map(PartitionRow::summary).collect())
    }

    /// The pieces of a partition, verified, without the bytes of the tail.
    pub async fn pieces_of(&self, person: PersonId, data_type: &TypeId) -> Result<Vec<Piece>, CatalogError> {
        let partitions = self
            .snapshot(person, std::slice::from_ref(data_type), &|_| true)
            .await?;
        Ok(partitions
            .into_iter()
            .flat_map(|partition| partition.pieces)
            .collect())
    }

    /// The pieces of a partition whose own rows are intact, whatever is wrong with the others.
    pub async fn sound_pieces_of(
        &self,
        person: PersonId,
        data_type: &TypeId,
    ) -> Result<Vec<Piece>, CatalogError> {
        let (rest, values) = of_types(person, std::slice::from_ref(data_type));
        let rows = self.database.fetch(PIECES.select(&rest), values).await?;
        let sound = rows.iter().filter_map(|row| PIECES.verify(row).ok());
        Ok(sound.filter_map(|row| piece_of(&row).ok()).collect())
    }

    /// The types of which a person has live records, in the order of their names, each with what its
    /// partition holds now.
    pub async fn recorded_types(&self, person: PersonId) -> Result<Vec<(TypeId, Stamp)>, CatalogError> {
        let rows = self.partition_rows(person).await?;
        let recorded = rows.iter().filter(|row| row.records > 0);
        let mut types: Vec<(TypeId, Stamp)> =
            recorded.map(|row| (row.data_type.clone(), row.stamp())).collect();
        // Each database orders text in its own way.
        types.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        Ok(types)
    }

    /// All partitions of a person as of one moment.
    async fn partition_rows(&self, person: PersonId) -> Result<Vec<PartitionRow>, CatalogError> {
        // These are two statements and two moments: but if nothing was committed in between, the partitions
        // match the ledger. If they do not, a transaction finds out whether anything is wrong.
        let key = || vec![id(person.0)];
        let ledger = self.database.find(&LEDGERS, LEDGER_OF, key()).await?;
        let rows = self.database.find(&PARTITIONS, PARTITIONS_OF, key()).await?;
        if let Ok(rows) = held_against(person, &ledger, &rows) {
            return Ok(rows);
        }
        let mut session = self.database.read().await?;
        let rows = verify_partitions(&mut session, person).await?;
        session.commit().await?;
        Ok(rows)
    }
}

/// A partition with everything that its digest covers, verified against it.
pub(super) struct VerifiedPartition {
    pub row: PartitionRow,
    /// Each with the checksum of its row.
    pub pieces: Vec<(Piece, u32)>,
    /// Each with the checksum of its row.
    pub dead: Vec<(DeadRow, u32)>,
}

/// The rows of those of the named partitions that exist.
pub(super) async fn read_rows(
    session: &mut Session,
    person: PersonId,
    types: &[TypeId],
) -> Result<Vec<PartitionRow>, CatalogError> {
    let (rest, values) = of_types(person, types);
    session
        .select(&PARTITIONS, &rest, values)
        .await?
        .iter()
        .map(PartitionRow::of)
        .collect()
}

/// One person's partitions, verified, as the same transaction sees them.
pub(super) async fn read_partitions(
    session: &mut Session,
    person: PersonId,
    rows: Vec<PartitionRow>,
) -> Result<HashMap<TypeId, VerifiedPartition>, CatalogError> {
    let types: Vec<TypeId> = rows.iter().map(|row| row.data_type.clone()).collect();
    let any_dead = rows.iter().any(|row| row.dead > 0);
    let mut partitions: HashMap<TypeId, VerifiedPartition> = rows
        .into_iter()
        .map(|row| {
            (
                row.data_type.clone(),
                VerifiedPartition {
                    row,
                    pieces: Vec::new(),
                    dead: Vec::new(),
                },
            )
        })
        .collect();
    if partitions.is_empty() {
        return Ok(partitions);
    }
    let (rest, values) = of_types(person, &types);
    for verified in session.select(&PIECES, &rest, values.clone()).await? {
        let data_type = TypeId(verified.text(1)?.into());
        let partition = partitions
            .get_mut(&data_type)
            .ok_or_else(|| CatalogError::corrupt("a piece belongs to no partition"))?;
        partition.pieces.push((piece_of(&verified)?, verified.checksum));
    }
    if any_dead {
        for verified in session.select(&DEAD_ROWS, &rest, values).await? {
            let dead = DeadRow::of(&verified)?;
            let partition = partitions
                .get_mut(&dead.data_type)
                .ok_or_else(|| CatalogError::corrupt("a dead row belongs to no partition"))?;
            partition.dead.push((dead, verified.checksum));
        }
    }
    for partition in partitions.values_mut() {
        partition.verify_and_hand_out_dead_rows()?;
    }
    Ok(partitions)
}

impl VerifiedPartition {
    /// The partition, with the blobs read for it.
    fn into_partition(self, blobs: &mut HashMap<PieceId, Vec<u8>>) -> Result<Partition, CatalogError> {
        let mut pieces: Vec<Piece> = self.pieces.into_iter().map(|(piece, _)| piece).collect();
        for piece in &mut pieces {
            if let Some(blob) = blobs.remove(&piece.id) {
                piece.place = Place::Tail {
                    blob: Some(verified_blob(piece, blob)?),
                };
            }
        }
        pieces.sort_by_key(|piece| (piece.bounds.min_start, piece.id));
        Ok(Partition {
            person: self.row.person,
            stamp: self.row.stamp(),
            records: self.row.records,
            data_type: self.row.data_type,
            pieces,
        })
    }

    /// Verifies the partition's digest and hands each piece its dead rows.
    fn verify_and_hand_out_dead_rows(&mut self) -> Result<(), CatalogError> {
        let digest = self
            .pieces
            .iter()
            .map(|(_, checksum)| checksum)
            .chain(self.dead.iter().map(|(_, checksum)| checksum))
            .fold(0, |all, one| all ^ one);
        let complete = self.pieces.len() as i64 == self.row.pieces
            && self.dead.len() as i64 == self.row.dead
            && digest == self.row.digest;
        if !complete {
            return Err(CatalogError::corrupt(format!(
                "pieces of {} were lost or invented",
                self.row.data_type.0
            )));
        }
        let mut by_piece: HashMap<PieceId, Vec<RecordId>> = HashMap::new();
        for (dead, _) in &self.dead {
            by_piece.entry(dead.piece).or_default().push(dead.record);
        }
        for (piece, _) in &mut self.pieces {
            if let Some(mut dead) = by_piece.remove(&piece.id) {
                dead.sort_unstable();
                piece.dead = dead.into();
            }
        }
        if by_piece.is_empty() {
            Ok(())
        } else {
            Err(CatalogError::corrupt(format!(
                "dead rows of {} name pieces that do not exist",
                self.row.data_type.0
            )))
        }
    }
}

/// Every partition of a person, verified against the person's digest.
pub(super) async fn verify_partitions(
    session: &mut Session,
    person: PersonId,
) -> Result<Vec<PartitionRow>, CatalogError> {
    let key = || vec![id(person.0)];
    let ledger = session.select(&LEDGERS, LEDGER_OF, key()).await?;
    let rows = session.select(&PARTITIONS, PARTITIONS_OF, key()).await?;
    held_against(person, &ledger, &rows)
}

/// The partitions of a person, if they match the ledger.
fn held_against(
    person: PersonId,
    ledger: &[VerifiedRow],
    partitions: &[VerifiedRow],
) -> Result<Vec<PartitionRow>, CatalogError> {
    let ledger = ledger
        .first()
        .map_or_else(|| Ok(Ledger::empty(person)), Ledger::of)?;
    let digest = partitions.iter().fold(0, |digest, row| digest ^ row.checksum);
    let rows: Vec<PartitionRow> = partitions
        .iter()
        .map(PartitionRow::of)
        .collect::<Result<_, _>>()?;
    if rows.len() as i64 == ledger.partitions && digest == ledger.digest {
        Ok(rows)
    } else {
        Err(CatalogError::corrupt(format!(
            "partitions of person {person} were lost or invented"
        )))
    }
}

async fn read_blobs(
    session: &mut Session,
    pieces: &[PieceId],
) -> Result<HashMap<PieceId, Vec<u8>>, CatalogError> {
    let mut blobs = HashMap::with_capacity(pieces.len());
    for some in pieces.chunks(BLOBS_AT_ONCE) {
        let (list, values) = one_of(1, some.iter().map(|piece| id(piece.0)).collect());
        for row in session
            .fetch(
                format!("SELECT piece, blob FROM blobs WHERE piece IN {list}"),
                values,
            )
            .await?
        {
            let piece = PieceId::from_slice(&row.bytes(0)?)
                .ok_or_else(|| CatalogError::corrupt("a blob's id is not an id"))?;
            blobs.insert(piece, row.bytes(1)?);
        }
    }
    match pieces.iter().find(|piece| !blobs.contains_key(piece)) {
        Some(lost) => Err(CatalogError::corrupt(format!(
            "the bytes of tail piece {lost} are lost"
        ))),
        None => Ok(blobs),
    }
}

/// The tail pieces whose bytes the caller does not hold.
fn not_held(
    partitions: &HashMap<TypeId, VerifiedPartition>,
    held: &(dyn Fn(PieceId) -> bool + Send + Sync),
) -> Vec<PieceId> {
    let pieces = partitions.values().flat_map(|partition| &partition.pieces);
    pieces
        .filter(|(piece, _)| matches!(piece.place, Place::Tail { .. }) && !held(piece.id))
        .map(|(piece, _)| piece.id)
        .collect()
}

fn verified_blob(piece: &Piece, blob: Vec<u8>) -> Result<Bytes, CatalogError> {
    if crc32fast::hash(&blob) == piece.checksum {
        Ok(blob.into())
    } else {
        Err(CatalogError::corrupt(format!(
            "tail piece {} differs from what was written",
            piece.id
        )))
    }
}

fn of_types(person: PersonId, types: &[TypeId]) -> (String, Vec<Value>) {
    let (list, mut names) = one_of(2, types.iter().map(|data_type| text(&data_type.0)).collect());
    names.insert(0, id(person.0));
    (format!("WHERE person = $1 AND data_type IN {list}"), names)
}
