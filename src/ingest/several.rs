//! Turns one body with records of several types into an upload.
//!
//! Lives as long as one request, and has one decoder for each type however often types alternate. The order
//! between types does not matter; within one, a tombstone deletes what came before it. Knows decoders and
//! changes; knows nothing of HTTP or of what is stored.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use crate::catalog::records::SeenSource;
use crate::model::faults::Fault;
use crate::model::ids::{PersonId, RecordId};
use crate::model::registry::{Layout, TypeId};

use super::accept::FilesRead;
use super::body::Place;
use super::compile::CompiledType;
use super::context::DecodeContext;
use super::decode::{DecodeError, RecordDecoder};
use super::merge::Change;
use super::tombstone::Target;
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
    partitions: HashMap<TypeId, Partition>,
    /// The order in which the types first appeared.
    met: Vec<TypeId>,
    seen: Seen,
    turns: usize,
}

/// Where the records came from, as far as they name it.
#[derive(Debug, Default)]
pub struct Seen {
    pub sources: HashMap<String, SeenSource>,
    pub files: FilesRead,
}

struct Partition {
    layout: Arc<Layout>,
    decoder: Option<RecordDecoder>,
    /// The definition that all records of the decoder belong to.
    definition: Option<Arc<str>>,
    done: Vec<Change>,
    /// Deletions that precede everything that the decoder holds, by the definition that the records must
    /// belong to. Among themselves they may come in any order, since a record belongs to one definition.
    deleted: BTreeMap<Option<Arc<str>>, Vec<RecordId>>,
    /// The ids of the records that the decoder holds.
    put: HashSet<RecordId>,
}

impl Several {
    #[must_use]
    pub fn new(person: PersonId) -> Self {
        Self {
            person,
            partitions: HashMap::new(),
            met: Vec::new(),
            seen: Seen::default(),
            turns: 0,
        }
    }

    /// Accepts a record of a type.
    pub fn put(
        &mut self,
        compiled: &Arc<CompiledType>,
        context: &DecodeContext,
        place: Place,
        json: &[u8],
    ) -> Result<(), NotTaken> {
        let data_type = compiled.data_type();
        let partition = partition(
            &mut self.partitions,
            &mut self.met,
            &data_type.id,
            &data_type.layout,
        );
        if partition.decoder.is_some() && partition.definition != context.definition {
            turn(&mut self.turns, place)?;
            partition
                .seal(self.person, &mut self.seen)
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
        decoder.push(place, json).map_err(NotTaken::Invalid)?;
        partition.put.extend(decoder.last_given_id());
        Ok(())
    }

    /// Accepts a deletion from some partitions.
    pub fn delete(&mut self, from: &[Target], place: Place, record: RecordId) -> Result<(), NotTaken> {
        for target in from {
            let (data_type, layout) = (&target.data_type, &target.layout);
            let partition = partition(&mut self.partitions, &mut self.met, data_type, layout);
            if partition.put.contains(&record) {
                turn(&mut self.turns, place)?;
                partition
                    .seal(self.person, &mut self.seen)
                    .map_err(NotTaken::Decode)?;
            }
            let of_definition = partition.deleted.entry(target.definition.clone());
            of_definition.or_default().push(record);
        }
        Ok(())
    }

    /// Ends the body and returns its changes.
    pub fn finish(mut self) -> Result<(Vec<PartitionChanges>, Seen), DecodeError> {
        let mut changes = Vec::with_capacity(self.met.len());
        for data_type in self.met {
            let Some(mut partition) = self.partitions.remove(&data_type) else {
                continue;
            };
            partition.seal(self.person, &mut self.seen)?;
            changes.push(PartitionChanges {
                data_type,
                layout: partition.layout,
                changes: partition.done,
            });
        }
        Ok((changes, self.seen))
    }
}

/// Counts a point at which later changes have to be kept apart from earlier ones.
fn turn(turns: &mut usize, place: Place) -> Result<(), NotTaken> {
    *turns += 1;
    if *turns <= MOST_TURNS {
        return Ok(());
    }
    let message = "records and deletions of them, or definitions, alternate too often; send them apart";
    let fault = Fault::new(place.loc(), "value_error", message);
    Err(NotTaken::Invalid(vec![fault]))
}

fn partition<'p>(
    partitions: &'p mut HashMap<TypeId, Partition>,
    met: &mut Vec<TypeId>,
    data_type: &TypeId,
    layout: &Arc<Layout>,
) -> &'p mut Partition {
    partitions.entry(data_type.clone()).or_insert_with(|| {
        met.push(data_type.clone());
        Partition {
            layout: Arc::clone(layout),
            decoder: None,
            definition: None,
            done: Vec::new(),
            deleted: BTreeMap::new(),
            put: HashSet::new(),
        }
    })
}

impl Partition {
    /// Ensures that later changes come after everything so far.
    fn seal(&mut self, person: PersonId, all: &mut Seen) -> Result<(), DecodeError> {
        let deleted = std::mem::take(&mut self.deleted).into_iter();
        self.done
            .extend(deleted.map(|(definition, records)| Change::Delete { records, definition }));
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
        self.done.push(Change::Put {
            rows: decoded.rows,
            given: decoded.given.into(),
            undated: decoded.undated.into(),
        });
        Ok(())
    }
}
