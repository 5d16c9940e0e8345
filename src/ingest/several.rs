//! Turns one body with records of several types into an upload.
//!
//! Lives as long as one request, and has one decoder for each type however often types alternate. The order
//! between types does not matter; within one, a tombstone deletes what came before it. Knows decoders and
//! changes; knows nothing of HTTP or of what is stored.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use crate::catalog::records::SeenSource;
use crate::model::faults::Fault;
use crate::model::ids::{PersonId, RecordId};
use crate::model::registry::{Layout, TypeId};

use super::accept::FilesRead;
use super::body::RecordPosition;
use super::changes::Change;
use super::compile::CompiledType;
use super::context::DecodeContext;
use super::decode::{DecodeError, RecordDecoder};
use super::deleted_ids::DeletedIds;
use super::tombstone::{Target, TargetPlace, are_tombstones};
use super::upload::PartitionChanges;

/// How often one body may delete what it itself recorded before, or switch to another definition of one type;
/// each time takes additional memory.
const MOST_TURNS: usize = 4096;

/// Why a record is not accepted.
#[derive(Debug)]
pub enum NotTaken {
    Invalid(Vec<Fault>),
    Decode(DecodeError),
}

/// Collects the records of one body.
pub struct Several {
    person: PersonId,
    partitions: HashMap<TypeId, PartitionRows>,
    /// The order in which the types first appeared.
    met: Vec<TypeId>,
    /// What is deleted, in lists that all partitions share from which the same is deleted.
    lists: Vec<List>,
    known_lists: HashMap<Vec<TargetPlace>, DeletionList>,
    seen: SourcesSeen,
    turns: usize,
    row_bytes: usize,
}

/// A list of deletions from the same places, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeletionList(usize);

/// Deletions in the order of their lines.
struct List {
    from: Vec<TypeId>,
    records: Vec<RecordId>,
}

/// Where the records came from, as far as they name it.
#[derive(Debug, Default)]
pub struct SourcesSeen {
    pub sources: HashMap<String, SeenSource>,
    pub files: FilesRead,
}

/// What one body asks of a partition.
struct PartitionRows {
    layout: Arc<Layout>,
    decoder: Option<RecordDecoder>,
    /// The definition that all records of the decoder belong to.
    definition: Option<Arc<str>>,
    done: Vec<SealedChange>,
    /// The lists of what is deleted from it.
    deleted: Vec<DeletedFromPartition>,
    /// The ids of the records that the decoder holds.
    put: HashSet<RecordId>,
}

/// A list of what is deleted from one partition. Its deletions after the first `done` precede everything that
/// the decoder holds. Those of several lists may come in any order, since a record belongs to one definition.
struct DeletedFromPartition {
    list: DeletionList,
    /// The definition that the records must belong to.
    definition: Option<Arc<str>>,
    done: usize,
}

/// A change, of which the ids to delete are still in their list.
enum SealedChange {
    Put(Change),
    Delete {
        list: DeletionList,
        part: Range<usize>,
        definition: Option<Arc<str>>,
    },
}

impl Several {
    #[must_use]
    pub fn new(person: PersonId) -> Self {
        Self {
            person,
            partitions: HashMap::new(),
            met: Vec::new(),
            lists: Vec::new(),
            known_lists: HashMap::new(),
            seen: SourcesSeen::default(),
            turns: 0,
            row_bytes: 0,
        }
    }

    /// About how many bytes the rows take so far.
    #[must_use]
    pub const fn row_bytes(&self) -> usize {
        self.row_bytes
    }

    /// Accepts a record of a type. Tombstones are not stored: they are for `delete`.
    pub fn put(
        &mut self,
        compiled: &Arc<CompiledType>,
        context: &DecodeContext,
        place: RecordPosition,
        json: &[u8],
    ) -> Result<(), NotTaken> {
        let data_type = compiled.data_type();
        if are_tombstones(&data_type.id) {
            return Err(NotTaken::Decode(DecodeError::Tombstone));
        }
        let partition = partition(
            &mut self.partitions,
            &mut self.met,
            &data_type.id,
            &data_type.layout,
        );
        if partition.decoder.is_some() && partition.definition != context.definition {
            turn(&mut self.turns, place)?;
            partition
                .seal(self.person, &self.lists, &mut self.seen)
                .map_err(NotTaken::Decode)?;
            partition.decoder = None;
        }
        let decoder = match &mut partition.decoder {
            Some(decoder) => decoder,
            none => {
                partition.definition.clone_from(&context.definition);
                let decoder = RecordDecoder::new(Arc::clone(compiled), context.clone());
                none.insert(decoder.map_err(NotTaken::Decode)?)
            }
        };
        let before = decoder.bytes();
        decoder.push(place, json).map_err(NotTaken::Invalid)?;
        self.row_bytes += decoder.bytes().saturating_sub(before);
        partition.put.extend(decoder.last_given_id());
        Ok(())
    }

    /// The list of deletions from these targets.
    pub fn list_for(&mut self, targets: Vec<Target>) -> DeletionList {
        let places: Vec<TargetPlace> = targets.iter().map(Target::place).collect();
        if let Some(known) = self.known_lists.get(&places) {
            return *known;
        }
        let list = DeletionList(self.lists.len());
        let mut from = Vec::with_capacity(targets.len());
        for target in targets {
            let (data_type, layout) = (target.data_type, target.layout);
            let partition = partition(&mut self.partitions, &mut self.met, &data_type, &layout);
            partition.deleted.push(DeletedFromPartition {
                list,
                definition: target.definition,
                done: 0,
            });
            from.push(data_type);
        }
        let records = Vec::new();
        self.lists.push(List { from, records });
        self.known_lists.insert(places, list);
        list
    }

    /// Accepts a deletion from the targets of a list.
    pub fn delete(
        &mut self,
        list: DeletionList,
        place: RecordPosition,
        record: RecordId,
    ) -> Result<(), NotTaken> {
        let from = self.lists.get(list.0).map(|list| list.from.as_slice());
        for data_type in from.unwrap_or_default() {
            let Some(partition) = self.partitions.get_mut(data_type) else {
                continue;
            };
            if partition.put.contains(&record) {
                turn(&mut self.turns, place)?;
                partition
                    .seal(self.person, &self.lists, &mut self.seen)
                    .map_err(NotTaken::Decode)?;
            }
        }
        if let Some(list) = self.lists.get_mut(list.0).filter(|list| !list.from.is_empty()) {
            list.records.push(record);
        }
        Ok(())
    }

    /// Ends the body and returns its changes.
    pub fn finish(mut self) -> Result<(Vec<PartitionChanges>, SourcesSeen), DecodeError> {
        let mut sealed = Vec::with_capacity(self.met.len());
        for data_type in self.met {
            let Some(mut partition) = self.partitions.remove(&data_type) else {
                continue;
            };
            partition.seal(self.person, &self.lists, &mut self.seen)?;
            sealed.push((data_type, partition));
        }
        let lists: Vec<Arc<[RecordId]>> = self.lists.into_iter().map(|list| list.records.into()).collect();
        let changes = sealed.into_iter().map(|(data_type, partition)| PartitionChanges {
            data_type,
            layout: partition.layout,
            changes: partition
                .done
                .into_iter()
                .map(|done| done.with_ids(&lists))
                .collect(),
        });
        Ok((changes.collect(), self.seen))
    }
}

/// Counts a point at which later changes have to be kept apart from earlier ones.
fn turn(turns: &mut usize, place: RecordPosition) -> Result<(), NotTaken> {
    *turns += 1;
    if *turns <= MOST_TURNS {
        return Ok(());
    }
    let message = "records and deletions of them, or definitions, alternate too often; send them apart";
    let fault = Fault::new(place.loc(), "value_error", message);
    Err(NotTaken::Invalid(vec![fault]))
}

fn partition<'p>(
    partitions: &'p mut HashMap<TypeId, PartitionRows>,
    met: &mut Vec<TypeId>,
    data_type: &TypeId,
    layout: &Arc<Layout>,
) -> &'p mut PartitionRows {
    partitions.entry(data_type.clone()).or_insert_with(|| {
        met.push(data_type.clone());
        PartitionRows {
            layout: Arc::clone(layout),
            decoder: None,
            definition: None,
            done: Vec::new(),
            deleted: Vec::new(),
            put: HashSet::new(),
        }
    })
}

impl PartitionRows {
    /// Ensures that later changes come after everything so far.
    fn seal(&mut self, person: PersonId, lists: &[List], all: &mut SourcesSeen) -> Result<(), DecodeError> {
        for deleted in &mut self.deleted {
            let listed = lists.get(deleted.list.0).map_or(0, |list| list.records.len());
            if deleted.done < listed {
                self.done.push(SealedChange::Delete {
                    list: deleted.list,
                    part: deleted.done..listed,
                    definition: deleted.definition.clone(),
                });
                deleted.done = listed;
            }
        }
        self.put.clear();
        let Some(decoder) = self.decoder.as_mut().filter(|decoder| !decoder.is_empty()) else {
            return Ok(());
        };
        let decoded = decoder.take()?;
        for source in decoded.sources {
            let seen = SeenSource {
                person,
                key: source.key.clone(),
                name: source.name,
            };
            all.sources.entry(source.key).or_insert(seen);
        }
        let data_type = &decoded.data_type.id;
        let files = decoded.files.into_iter().map(|file| (file, data_type.clone()));
        all.files.extend(files);
        let change = Change::put(decoded.rows, decoded.given.into(), decoded.undated.into());
        self.done.push(SealedChange::Put(change));
        Ok(())
    }
}

impl SealedChange {
    fn with_ids(self, lists: &[Arc<[RecordId]>]) -> Change {
        match self {
            Self::Put(change) => change,
            Self::Delete {
                list,
                part,
                definition,
            } => {
                let ids = lists.get(list.0).cloned().unwrap_or_default();
                Change::Delete {
                    records: DeletedIds::part(ids, part),
                    definition,
                }
            }
        }
    }
}
