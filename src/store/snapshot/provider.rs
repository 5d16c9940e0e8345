//! Provides snapshots, from memory where they are current. Knows the catalogue; knows nothing of what is in
//! rows.

use std::sync::Arc;

use ahash::{HashMap, HashMapExt, HashSet, HashSetExt};
use arrow::array::RecordBatch;

use super::state::{PieceContent, Snapshot, SnapshotPiece, added, decoded};
use super::tail_rows::TailRows;
use crate::catalog::Catalog;
use crate::catalog::records::{PartitionChange, Place, Stamp};
use crate::model::cache::Cache;
use crate::model::cache_pool::Member;
use crate::model::ids::{PersonId, PieceId, RecordId};
use crate::model::meters::CacheMeters;
use crate::model::registry::TypeId;
use crate::store::StoreError;
use crate::store::sealing::{PersonKey, PersonKeys};

/// The size of a snapshot with a long tail.
const LARGE_SNAPSHOT_BYTES: u64 = 2 << 20;

/// Provides snapshots. Cheap to clone; all clones share what is in memory. Lives as long as the process.
#[derive(Clone)]
pub struct Snapshots {
    catalog: Catalog,
    /// Open the tail, where it is sealed.
    keys: Option<Arc<PersonKeys>>,
    known: Cache<(PersonId, TypeId), Arc<Snapshot>>,
}

impl Snapshots {
    /// `memory`: how many bytes of snapshots to keep.
    #[must_use]
    pub fn new(catalog: Catalog, memory: u64) -> Self {
        Self {
            catalog,
            keys: None,
            known: Cache::of_bytes(memory, LARGE_SNAPSHOT_BYTES, |_, snapshot: &Arc<Snapshot>| {
                snapshot.memory()
            }),
        }
    }

    /// These snapshots with the keys of people, where encryption is enabled.
    #[must_use]
    pub fn opening(self, keys: Option<Arc<PersonKeys>>) -> Self {
        Self { keys, ..self }
    }

    /// The keys of people, where encryption is enabled.
    #[must_use]
    pub const fn keys(&self) -> Option<&Arc<PersonKeys>> {
        self.keys.as_ref()
    }

    /// The key that opens a person's tail, if any of `blobs` is sealed.
    pub async fn opener(
        &self,
        person: PersonId,
        mut blobs: impl Iterator<Item = &[u8]> + Send,
    ) -> Result<Option<PersonKey>, StoreError> {
        match &self.keys {
            Some(keys) if blobs.any(PersonKey::is_sealed) => keys.key_of(person).await.map(Some),
            _ => Ok(None),
        }
    }

    /// Lets `meters` show how much is held.
    pub fn watched_by(&self, meters: &CacheMeters) {
        meters.watch("snapshots", &self.known);
    }

    /// What is held, as a member of a pool.
    #[must_use]
    pub fn pooled(&self) -> Member {
        Member::of(&self.known)
    }

    /// Drops everything from memory.
    pub fn forget_all(&self) {
        self.known.clear();
    }

    /// The partitions of a person in the order of `types`, all as of one moment that is not before the call.
    pub async fn get(&self, person: PersonId, types: &[TypeId]) -> Result<Vec<Arc<Snapshot>>, StoreError> {
        let mut distinct: Vec<TypeId> = Vec::with_capacity(types.len());
        let mut seen = HashSet::with_capacity(types.len());
        distinct.extend(types.iter().filter(|data_type| seen.insert(*data_type)).cloned());

        let mut current = self.remembered(person, &distinct);
        let stamps = if current.len() == distinct.len() {
            self.catalog.stamps(person, &distinct).await?
        } else {
            Vec::new()
        };
        if !are_current(&current, &distinct, &stamps) {
            self.refresh(person, &distinct, &mut current).await?;
        }
        in_order(&current, types)
    }

    /// The partitions of all `wanted` types of which a person has live records, in the order of their names
    /// and as of one moment.
    pub async fn recorded(
        &self,
        person: PersonId,
        wanted: impl Fn(&TypeId) -> bool,
    ) -> Result<Vec<Arc<Snapshot>>, StoreError> {
        let recorded = self.catalog.recorded_types(person).await?.into_iter();
        let (types, stamps): (Vec<TypeId>, Vec<Stamp>) =
            recorded.filter(|(data_type, _)| wanted(data_type)).unzip();
        let mut current = self.remembered(person, &types);
        if !are_current(&current, &types, &stamps) {
            self.refresh(person, &types, &mut current).await?;
        }
        in_order(&current, &types)
    }

    /// The snapshot of a partition in memory, however old: for callers that notice staleness before anything
    /// rests on it.
    #[must_use]
    pub fn cached(&self, person: PersonId, data_type: &TypeId) -> Option<Arc<Snapshot>> {
        self.known.get(&(person, data_type.clone()))
    }

    /// The snapshots of the partitions in memory, however old.
    fn remembered(&self, person: PersonId, types: &[TypeId]) -> HashMap<TypeId, Arc<Snapshot>> {
        let known = |data_type: &TypeId| {
            let snapshot = self.cached(person, data_type)?;
            Some((data_type.clone(), snapshot))
        };
        types.iter().filter_map(known).collect()
    }

    /// Applies a successful commit, so that the next read of the partition need not ask for its pieces.
    /// `rows` are those of `change.add` in order, as far as they are in the tail; `gathered` are pieces whose
    /// rows are among them; `stamp` is what the partition has now.
    pub fn committed(
        &self,
        change: &PartitionChange,
        rows: Vec<Option<RecordBatch>>,
        gathered: &[PieceId],
        stamp: Stamp,
    ) {
        let key = (change.person, change.data_type.clone());
        let Some(before) = self
            .known
            .get(&key)
            .filter(|before| Some(before.stamp) == change.expected)
            .filter(|before| before.stamp.version + 1 == stamp.version)
        else {
            return;
        };
        let stay = before.pieces.iter().filter(|piece| !gathered.contains(&piece.id));
        let mut pieces: Vec<SnapshotPiece> = Vec::with_capacity(before.pieces.len() + change.add.len());
        pieces.extend(stay.cloned());
        for (piece, rows) in change
            .add
            .iter()
            .zip(rows.into_iter().chain(std::iter::repeat(None)))
        {
            let Some(piece) = added(piece, rows) else { return };
            pieces.push(piece);
        }
        let mut dead_in: HashMap<PieceId, Vec<RecordId>> = HashMap::new();
        for (piece, record) in &change.dead {
            dead_in.entry(*piece).or_default().push(*record);
        }
        for piece in &mut pieces {
            if let Some(mut dead) = dead_in.remove(&piece.id) {
                dead.extend_from_slice(&piece.dead);
                dead.sort_unstable();
                piece.dead = dead.into();
            }
        }
        if !dead_in.is_empty() {
            return;
        }
        pieces.sort_by_key(|piece| (piece.bounds.min_start, piece.id));
        let after = Snapshot {
            person: before.person,
            data_type: before.data_type.clone(),
            stamp,
            records: before.records + change.records_delta,
            pieces,
        };
        self.known.insert(key, Arc::new(after));
    }

    async fn refresh(
        &self,
        person: PersonId,
        types: &[TypeId],
        current: &mut HashMap<TypeId, Arc<Snapshot>>,
    ) -> Result<(), StoreError> {
        let mut held: HashMap<PieceId, Arc<TailRows>> = HashMap::new();
        for piece in current.values().flat_map(|snapshot| &snapshot.pieces) {
            if let PieceContent::Tail(rows) = &piece.content {
                held.insert(piece.id, Arc::clone(rows));
            }
        }
        let known: HashMap<TypeId, Stamp> = current
            .iter()
            .map(|(data_type, snapshot)| (data_type.clone(), snapshot.stamp))
            .collect();
        let stamp_of = |data_type: &TypeId| known.get(data_type).copied();
        let changed = self
            .catalog
            .changed_since(person, types, &stamp_of, &|piece| held.contains_key(&piece))
            .await?;
        let read = changed.iter().flatten().flat_map(|partition| &partition.pieces);
        let blobs = read.filter_map(|piece| match &piece.place {
            Place::Tail { blob: Some(blob) } => Some(&blob[..]),
            _ => None,
        });
        let key = self.opener(person, blobs).await?;
        for partition in changed.into_iter().flatten() {
            let snapshot = Arc::new(decoded(partition, &held, key.as_ref())?);
            let key = (person, snapshot.data_type.clone());
            // Somebody else may have stored a later state by now. Then this one is found out of date at its
            // next use, as it would be if a lower version were the later one.
            self.known.insert(key, Arc::clone(&snapshot));
            current.insert(snapshot.data_type.clone(), snapshot);
        }
        Ok(())
    }
}

/// Whether the snapshots of all `types` are there and have these stamps.
fn are_current(snapshots: &HashMap<TypeId, Arc<Snapshot>>, types: &[TypeId], stamps: &[Stamp]) -> bool {
    let is_current = |(data_type, stamp): (&TypeId, &Stamp)| {
        snapshots
            .get(data_type)
            .is_some_and(|snapshot| snapshot.stamp == *stamp)
    };
    stamps.len() == types.len() && types.iter().zip(stamps).all(is_current)
}

/// The snapshots in the order of `types`.
fn in_order(
    snapshots: &HashMap<TypeId, Arc<Snapshot>>,
    types: &[TypeId],
) -> Result<Vec<Arc<Snapshot>>, StoreError> {
    let snapshot_of = |data_type: &TypeId| {
        let lost = || StoreError::corrupt(format!("partition {} was not read", data_type.0));
        snapshots.get(data_type).cloned().ok_or_else(lost)
    };
    types.iter().map(snapshot_of).collect()
}
