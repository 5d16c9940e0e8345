//! What a person's partitions are made of, as of one moment.
//!
//! Everything read is held against the digests that commits keep, so that a row that got lost is noticed as well as one that changed.

use std::collections::HashMap;

use bytes::Bytes;

use super::Catalog;
use super::database::{Session, Value};
use super::errors::CatalogError;
use super::records::{Partition, PartitionSummary, Piece, Place};
use super::rows::{DeadRow, Ledger, PartitionRow, id, piece_of, text};
use super::tables::{DEAD_ROWS, LEDGERS, PARTITIONS, PIECES, one_of};
use crate::model::ids::{PersonId, PieceId, RecordId};
use crate::model::registry::TypeId;

/// Blobs fetched by one statement.
const BLOBS_AT_ONCE: usize = 64;

impl Catalog {
    /// The current versions of a person's partitions, in the order of `types`; 0 where nothing was ever stored.
    pub async fn versions(&self, person: PersonId, types: &[TypeId]) -> Result<Vec<i64>, CatalogError> {
        if types.is_empty() {
            return Ok(Vec::new());
        }
        let (rest, values) = of_types(person, types);
        let mut versions = vec![0; types.len()];
        for record in self.database.select(&PARTITIONS, &rest, values).await? {
            let (data_type, version) = (record.text(1)?, record.int(2)?);
            for (wanted, found) in types.iter().zip(&mut versions) {
                if *wanted.0 == *data_type {
                    *found = version;
                }
            }
        }
        Ok(versions)
    }

    /// A person's partitions in the order of `types` (each named once), all as of one moment. The bytes of tail pieces that are `held` are left out.
    pub async fn snapshot(
        &self,
        person: PersonId,
        types: &[TypeId],
        held: &(dyn Fn(PieceId) -> bool + Send + Sync),
    ) -> Result<Vec<Partition>, CatalogError> {
        if types.is_empty() {
            return Ok(Vec::new());
        }
        let mut session = self.database.read().await?;
        let mut contents = read_contents(&mut session, person, types).await?;
        if contents.len() < types.len() {
            verify_partitions(&mut session, person).await?;
        }
        let mut wanted = Vec::new();
        for content in contents.values() {
            wanted.extend(
                content
                    .pieces
                    .iter()
                    .filter(|(piece, _)| matches!(piece.place, Place::Tail { .. }) && !held(piece.id))
                    .map(|(piece, _)| piece.id),
            );
        }
        let mut blobs = read_blobs(&mut session, &wanted).await?;
        session.commit().await?;

        let mut partitions = Vec::with_capacity(types.len());
        for data_type in types {
            let Some(content) = contents.remove(data_type) else {
                partitions.push(Partition {
                    person,
                    data_type: data_type.clone(),
                    version: 0,
                    records: 0,
                    pieces: Vec::new(),
                });
                continue;
            };
            let mut pieces: Vec<Piece> = content.pieces.into_iter().map(|(piece, _)| piece).collect();
            for piece in &mut pieces {
                if let Some(blob) = blobs.remove(&piece.id) {
                    piece.place = Place::Tail {
                        blob: Some(verified_blob(piece, blob)?),
                    };
                }
            }
            pieces.sort_by_key(|piece| (piece.bounds.min_start, piece.id));
            partitions.push(Partition {
                person,
                data_type: data_type.clone(),
                version: content.row.version,
                records: content.row.records,
                pieces,
            });
        }
        if blobs.is_empty() {
            Ok(partitions)
        } else {
            Err(CatalogError::corrupt("more tail bytes were found than pieces"))
        }
    }

    /// What is stored of a person, by data type.
    pub async fn partitions_of(&self, person: PersonId) -> Result<Vec<PartitionSummary>, CatalogError> {
        let mut session = self.database.read().await?;
        let rows = verify_partitions(&mut session, person).await?;
        session.commit().await?;
        Ok(rows.iter().map(PartitionRow::summary).collect())
    }
}

/// A partition with everything that its digest covers, held against it.
pub(super) struct Content {
    pub row: PartitionRow,
    /// Each with the checksum of its row.
    pub pieces: Vec<(Piece, u32)>,
    /// Each with the checksum of its row.
    pub dead: Vec<(DeadRow, u32)>,
}

/// Those of the named partitions that exist.
pub(super) async fn read_contents(
    session: &mut Session,
    person: PersonId,
    types: &[TypeId],
) -> Result<HashMap<TypeId, Content>, CatalogError> {
    let (rest, values) = of_types(person, types);
    let mut contents = HashMap::with_capacity(types.len());
    let mut any_dead = false;
    for record in session.select(&PARTITIONS, &rest, values.clone()).await? {
        let row = PartitionRow::of(&record)?;
        any_dead |= row.dead > 0;
        contents.insert(
            row.data_type.clone(),
            Content {
                row,
                pieces: Vec::new(),
                dead: Vec::new(),
            },
        );
    }
    if contents.is_empty() {
        return Ok(contents);
    }
    for record in session.select(&PIECES, &rest, values.clone()).await? {
        let content = contents
            .get_mut(&TypeId(record.text(1)?.into()))
            .ok_or_else(|| CatalogError::corrupt("a piece belongs to no partition"))?;
        content.pieces.push((piece_of(&record)?, record.checksum));
    }
    if any_dead {
        for record in session.select(&DEAD_ROWS, &rest, values).await? {
            let dead = DeadRow::of(&record)?;
            let content = contents
                .get_mut(&dead.data_type)
                .ok_or_else(|| CatalogError::corrupt("a dead row belongs to no partition"))?;
            content.dead.push((dead, record.checksum));
        }
    }
    for content in contents.values_mut() {
        content.settle()?;
    }
    Ok(contents)
}

impl Content {
    /// Compares with the partition's digest and hands each piece its dead rows.
    fn settle(&mut self) -> Result<(), CatalogError> {
        let digest = self
            .pieces
            .iter()
            .map(|(_, checksum)| checksum)
            .chain(self.dead.iter().map(|(_, checksum)| checksum))
            .fold(0, |all, one| all ^ one);
        let complete = self.pieces.len() as i64 == self.row.pieces && self.dead.len() as i64 == self.row.dead && digest == self.row.digest;
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

/// Every partition of a person, held against the person's digest.
pub(super) async fn verify_partitions(session: &mut Session, person: PersonId) -> Result<Vec<PartitionRow>, CatalogError> {
    let ledger = session.select(&LEDGERS, "WHERE person = $1", vec![id(person.0)]).await?;
    let ledger = ledger.first().map_or_else(|| Ok(Ledger::empty(person)), Ledger::of)?;
    let mut rows = Vec::new();
    let mut digest = 0;
    for record in session
        .select(&PARTITIONS, "WHERE person = $1 ORDER BY data_type", vec![id(person.0)])
        .await?
    {
        digest ^= record.checksum;
        rows.push(PartitionRow::of(&record)?);
    }
    if rows.len() as i64 == ledger.partitions && digest == ledger.digest {
        Ok(rows)
    } else {
        Err(CatalogError::corrupt(format!(
            "partitions of person {person} were lost or invented"
        )))
    }
}

async fn read_blobs(session: &mut Session, pieces: &[PieceId]) -> Result<HashMap<PieceId, Vec<u8>>, CatalogError> {
    let mut blobs = HashMap::with_capacity(pieces.len());
    for some in pieces.chunks(BLOBS_AT_ONCE) {
        let (list, values) = one_of(1, some.iter().map(|piece| id(piece.0)).collect());
        for row in session
            .fetch(format!("SELECT piece, blob FROM blobs WHERE piece IN {list}"), values)
            .await?
        {
            let piece = PieceId::from_slice(&row.bytes(0)?).ok_or_else(|| CatalogError::corrupt("a blob's id is no id"))?;
            blobs.insert(piece, row.bytes(1)?);
        }
    }
    match pieces.iter().find(|piece| !blobs.contains_key(piece)) {
        Some(lost) => Err(CatalogError::corrupt(format!("the bytes of tail piece {lost} are lost"))),
        None => Ok(blobs),
    }
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

pub(super) fn of_types(person: PersonId, types: &[TypeId]) -> (String, Vec<Value>) {
    let (list, mut names) = one_of(2, types.iter().map(|data_type| text(&data_type.0)).collect());
    names.insert(0, id(person.0));
    (format!("WHERE person = $1 AND data_type IN {list}"), names)
}
