//! One body of records on its way to an upload: bytes in, faults or work out.
//!
//! Lives as long as one request. Rows leave it chunk by chunk, so a body of any length takes the memory of
//! one chunk. Knows bodies, decoders and intakes; knows nothing of HTTP, of names of types that are looked
//! up, or of the queue.

use std::collections::HashMap;
use std::sync::Arc;

use crate::catalog::records::SeenSource;
use crate::model::faults::{Fault, LocPart};
use crate::model::ids::{PersonId, RecordId};
use crate::model::registry::{Layout, TypeId};

use super::assemble::AssembleError;
use super::body::{BodyError, BodyReader, Place};
use super::compile::CompiledType;
use super::decode::{DecodeContext, DecodeError, DecodedRows, RecordDecoder};
use super::intake::{CHUNK_ROWS, Intake, IntakeStores, Rows};
use super::merge::Change;
use super::tombstone::{TOMBSTONE_TYPE, Tombstone, decode_tombstone};
use super::upload::{PartitionChanges, Work};

/// Faults beyond so many are not looked for: the caller has enough to mend.
const FAULTS: usize = 100;
/// Bytes of JSON that may wait as rows before they are written.
const CHUNK_BYTES: usize = 32 << 20;

/// Why a body is not accepted.
#[derive(Debug, thiserror::Error)]
pub enum AcceptError {
    #[error("the body has more than {0} bytes")]
    TooLarge(u64),
    #[error("the body is damaged: {0}")]
    Damaged(String),
    #[error("records are not valid")]
    Invalid(Vec<Fault>),
    #[error(transparent)]
    Decode(#[from] DecodeError),
    #[error(transparent)]
    Assemble(#[from] AssembleError),
}

/// What a body comes to: rows to store, or records to delete.
#[derive(Debug)]
pub enum Accepted {
    Rows { work: Work, sources: Vec<SeenSource> },
    Deletions(Vec<Tombstone>),
}

/// Takes one body whose records are all of one type.
pub struct Acceptance {
    person: PersonId,
    receiver: Receiver,
    intake: Intake,
    sources: HashMap<String, SeenSource>,
}

/// What decodes the records, with the faults found so far.
struct Receiver {
    decoder: Decoder,
    faults: Vec<Fault>,
}

enum Decoder {
    Records(Box<RecordDecoder>),
    Tombstones {
        compiled: Arc<CompiledType>,
        context: DecodeContext,
        found: Vec<Tombstone>,
    },
}

/// The body has faults enough.
struct Enough;

impl Receiver {
    fn receive(&mut self, place: Place, json: &[u8]) -> Result<(), Enough> {
        let result = match &mut self.decoder {
            Decoder::Records(decoder) => decoder.push(place, json),
            Decoder::Tombstones {
                compiled,
                context,
                found,
            } => decode_tombstone(compiled, context, place, json).map(|tombstone| found.push(tombstone)),
        };
        if let Err(faults) = result {
            self.faults.extend(faults);
        }
        if self.faults.len() < FAULTS {
            Ok(())
        } else {
            Err(Enough)
        }
    }
}

impl Acceptance {
    pub fn new(
        shared: IntakeStores,
        person: PersonId,
        compiled: Arc<CompiledType>,
        context: DecodeContext,
    ) -> Result<Self, AcceptError> {
        let data_type = Arc::clone(compiled.data_type());
        let decoder = if data_type.id.as_str() == TOMBSTONE_TYPE {
            Decoder::Tombstones {
                compiled,
                context,
                found: Vec::new(),
            }
        } else {
            Decoder::Records(Box::new(RecordDecoder::new(compiled, context)?))
        };
        let receiver = Receiver {
            decoder,
            faults: Vec::new(),
        };
        Ok(Self {
            person,
            receiver,
            intake: Intake::new(shared, person, data_type),
            sources: HashMap::new(),
        })
    }

    /// Takes the next bytes of the body.
    pub async fn feed(&mut self, reader: &mut BodyReader, chunk: &[u8]) -> Result<(), AcceptError> {
        let receiver = &mut self.receiver;
        let fed = reader.feed(chunk, |place, json| receiver.receive(place, json));
        self.judge(fed)?;
        let full = |decoder: &RecordDecoder| decoder.len() >= CHUNK_ROWS || decoder.bytes() >= CHUNK_BYTES;
        if let Decoder::Records(decoder) = &mut self.receiver.decoder
            && self.receiver.faults.is_empty()
            && full(decoder)
        {
            let rows = decoder.take()?;
            self.push(rows).await?;
        }
        Ok(())
    }

    /// The body is over.
    pub async fn finish(mut self, reader: BodyReader) -> Result<Accepted, AcceptError> {
        let receiver = &mut self.receiver;
        let fed = reader.finish(|place, json| receiver.receive(place, json));
        let judged = self.judge(fed);
        let faults = std::mem::take(&mut self.receiver.faults);
        if judged.is_err() || !faults.is_empty() {
            self.intake.abandon().await;
            return Err(judged.err().unwrap_or(AcceptError::Invalid(faults)));
        }
        match &mut self.receiver.decoder {
            Decoder::Tombstones { found, .. } => Ok(Accepted::Deletions(std::mem::take(found))),
            Decoder::Records(decoder) => {
                let rows = decoder.take()?;
                self.push(rows).await?;
                let sources = self.sources.into_values().collect();
                Ok(Accepted::Rows {
                    work: self.intake.finish().await?,
                    sources,
                })
            }
        }
    }

    /// Removes what was written for a body that was given up.
    pub async fn abandon(self) {
        self.intake.abandon().await;
    }

    async fn push(&mut self, decoded: DecodedRows) -> Result<(), AcceptError> {
        for source in &decoded.sources {
            let seen = SeenSource {
                person: self.person,
                key: source.key.clone(),
                name: source.name.clone(),
            };
            self.sources.entry(source.key.clone()).or_insert(seen);
        }
        if !decoded.given.is_empty() {
            self.intake
                .push(Rows {
                    batch: decoded.rows,
                    given: decoded.given,
                    undated: decoded.undated,
                })
                .await?;
        }
        Ok(())
    }

    fn judge(&mut self, fed: Result<(), BodyError<Enough>>) -> Result<(), AcceptError> {
        match fed {
            Ok(()) => Ok(()),
            Err(BodyError::Receiver(Enough)) => {
                Err(AcceptError::Invalid(std::mem::take(&mut self.receiver.faults)))
            }
            Err(BodyError::TooLarge { limit }) => Err(AcceptError::TooLarge(limit)),
            Err(BodyError::Damaged(reason)) => Err(AcceptError::Damaged(reason)),
            Err(BodyError::LineTooLong { index, limit }) => {
                let loc = [LocPart::from("body"), LocPart::Index(index)];
                Err(AcceptError::Invalid(vec![Fault::new(
                    loc,
                    "too_long",
                    format!("the line has more than {limit} bytes"),
                )]))
            }
        }
    }
}

/// Deletions as changes of the partitions that may hold the records. `partitions_of` says which those are.
pub fn deletions<'a>(
    tombstones: &[Tombstone],
    mut partitions_of: impl FnMut(&str) -> Vec<(TypeId, Arc<Layout>)> + 'a,
) -> Vec<PartitionChanges> {
    let mut changes: Vec<PartitionChanges> = Vec::new();
    for tombstone in tombstones {
        for (data_type, layout) in partitions_of(&tombstone.data_type) {
            delete_from(&mut changes, data_type, layout, tombstone.record);
        }
    }
    changes
}

fn delete_from(
    changes: &mut Vec<PartitionChanges>,
    data_type: TypeId,
    layout: Arc<Layout>,
    record: RecordId,
) {
    if let Some(partition) = changes
        .iter_mut()
        .find(|partition| partition.data_type == data_type)
    {
        if let Some(Change::Delete { records }) = partition.changes.last_mut() {
            records.push(record);
        }
        return;
    }
    changes.push(PartitionChanges {
        data_type,
        layout,
        changes: vec![Change::Delete {
            records: vec![record],
        }],
    });
}
