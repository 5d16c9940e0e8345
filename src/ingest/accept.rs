//! Turns one body of records into an upload: bytes in, faults or work out.
//!
//! Lives as long as one request. Rows leave it chunk by chunk, so a body of any length takes the memory of
//! one chunk. Knows bodies, decoders and intakes; knows nothing of HTTP, of looking up the names of types, or
//! of the queue.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant as Moment};

use sha2::Sha256;
use uuid::Uuid;

use crate::catalog::records::SeenSource;
use crate::model::faults::{Fault, LocPart, MOST_FAULTS, first_of};
use crate::model::ids::PersonId;
use crate::model::registry::TypeId;

use super::body::{BodyError, BodyReader, RecordPosition};
use super::bounds::VALUE_BYTES;
use super::compile::CompiledType;
use super::context::DecodeContext;
use super::decode::{DecodeError, DecodedRows, RecordDecoder};
use super::errors::AssembleError;
use super::intake::{CHUNK_ROWS, Intake, Rows};
use super::memory::{Allowance, LEAST_MEMORY, NoRoom};
use super::named_sources::{MostSources, NamedSources, TooManySources};
use super::stores::IntakeStores;
use super::tombstone::{Tombstone, are_tombstones, decode_tombstone};
use super::upload::Work;

/// Bytes of rows that may wait before they are written.
const CHUNK_BYTES: usize = 32 << 20;
/// A chunk takes this many times its size: as columns, as the batch made of them and the columns they lack,
/// sorted, and in written form.
const FACTOR: usize = 4;
/// How many bytes of a body are decoded before it is looked at what they take: rows may take many times their
/// JSON.
const PIECE_BYTES: usize = 64 << 10;
/// How many files one body may name.
const MOST_FILES: usize = 1000;
/// Memory for what is remembered of one id that the caller chose.
const ID_BYTES: usize = 64;
/// A body that takes longer is compared with its partition again.
const COMPARISON_FRESH_FOR: Duration = Duration::from_secs(20);

/// Why a body is not accepted.
#[derive(Debug, thiserror::Error)]
pub enum AcceptError {
    #[error("the body has more than {0} bytes")]
    TooLarge(u64),
    #[error("the body cannot be decompressed: {0}")]
    NotDecompressed(String),
    #[error("records are not valid")]
    Invalid(Vec<Fault>),
    #[error(transparent)]
    TooManySources(#[from] TooManySources),
    #[error(transparent)]
    Decode(#[from] DecodeError),
    #[error(transparent)]
    Assemble(#[from] AssembleError),
    #[error(transparent)]
    NoRoom(#[from] NoRoom),
}

/// The result of a body: rows to store, or records to delete.
#[derive(Debug)]
pub enum Accepted {
    Rows(RecordedWork),
    Deletions(Vec<Tombstone>, Allowance),
}

/// What a body is to change, and what comes with it.
#[derive(Debug)]
pub struct RecordedWork {
    pub work: Work,
    pub sources: Vec<SeenSource>,
    /// The files that the records were read from.
    pub files: FilesRead,
    /// The part of the memory for bodies that the rows hold.
    pub memory: Allowance,
}

/// Files that records name as their origin, each with the type of these records.
pub type FilesRead = BTreeSet<(Uuid, TypeId)>;

/// Takes one body whose records are all of one type.
pub struct Acceptance {
    person: PersonId,
    receiver: Receiver,
    intake: Intake,
    sources: NamedSources,
    files: FilesRead,
    memory: Allowance,
    /// When the partition was last looked at.
    looked_at: Moment,
}

/// The decoder of the records, with the faults found so far.
struct Receiver {
    decoder: Decoder,
    faults: Vec<Fault>,
    /// Bytes of rows that may wait in the decoder.
    most_bytes: usize,
}

enum Decoder {
    Records(Box<RecordDecoder>),
    Tombstones {
        compiled: Arc<CompiledType>,
        context: DecodeContext,
        found: Vec<Tombstone>,
        /// Bytes of the names of types in them.
        named: usize,
    },
}

/// Why the rest of a body is not decoded.
enum Stop {
    /// The body has enough faults.
    Enough,
    Failed(DecodeError),
}

impl Receiver {
    fn receive(&mut self, place: RecordPosition, json: &[u8]) -> Result<(), Stop> {
        let result = match &mut self.decoder {
            Decoder::Records(decoder) => decoder.push(place, json),
            Decoder::Tombstones {
                compiled,
                context,
                found,
                named,
            } => decode_tombstone(compiled, context, place, json).map(|tombstone| {
                *named += tombstone.data_type.len();
                found.push(tombstone);
            }),
        };
        if let Err(faults) = result {
            self.faults.extend(faults);
        }
        if self.faults.len() >= MOST_FAULTS {
            return Err(Stop::Enough);
        }
        if self.faults.is_empty() {
            Ok(())
        } else {
            self.drop_what_is_full().map_err(Stop::Failed)
        }
    }

    /// Nothing of a body with a fault is stored: the rest of it is decoded only to find its other faults.
    /// Rows are dropped a chunk at a time.
    fn drop_what_is_full(&mut self) -> Result<(), DecodeError> {
        if let Decoder::Tombstones { found, named, .. } = &mut self.decoder {
            (*found, *named) = (Vec::new(), 0);
        }
        if let Some(decoder) = self.full_decoder() {
            drop(decoder.take()?);
        }
        Ok(())
    }

    /// The decoder, if no more rows may wait in it.
    fn full_decoder(&mut self) -> Option<&mut RecordDecoder> {
        match &mut self.decoder {
            Decoder::Records(decoder)
                if decoder.len() >= CHUNK_ROWS || decoder.bytes() >= self.most_bytes =>
            {
                Some(decoder)
            }
            _ => None,
        }
    }
}

impl Acceptance {
    pub fn new(
        shared: IntakeStores,
        person: PersonId,
        compiled: Arc<CompiledType>,
        context: DecodeContext,
        memory: Allowance,
        most: MostSources,
    ) -> Result<Self, AcceptError> {
        let data_type = Arc::clone(compiled.data_type());
        let decoder = if are_tombstones(&data_type.id) {
            Decoder::Tombstones {
                compiled,
                context,
                found: Vec::new(),
                named: 0,
            }
        } else {
            Decoder::Records(Box::new(RecordDecoder::new(compiled, context)?))
        };
        let receiver = Receiver {
            decoder,
            faults: Vec::new(),
            most_bytes: CHUNK_BYTES.min(memory.share() / (2 * FACTOR)),
        };
        Ok(Self {
            person,
            receiver,
            intake: Intake::new(shared, person, data_type),
            sources: NamedSources::new(most),
            files: FilesRead::new(),
            memory,
            looked_at: Moment::now(),
        })
    }

    /// Accepts the next bytes of the body.
    pub async fn feed(&mut self, reader: &mut BodyReader, chunk: &[u8]) -> Result<(), AcceptError> {
        for step in chunk.chunks(reader.step()) {
            let unpacked = match reader.unpack(step) {
                Ok(unpacked) => unpacked,
                Err(error) => return self.judge(Err(error)),
            };
            let held = match &unpacked {
                Cow::Borrowed(_) => 0,
                Cow::Owned(unpacked) => unpacked.capacity(),
            };
            for piece in unpacked.chunks(PIECE_BYTES) {
                let receiver = &mut self.receiver;
                let taken = reader.take(piece, |place, json| receiver.receive(place, json));
                self.judge(taken)?;
                self.make_room(reader, held).await?;
                self.write_what_is_full().await?;
            }
        }
        if self.looked_at.elapsed() > COMPARISON_FRESH_FOR {
            self.intake.look_again().await?;
            self.looked_at = Moment::now();
        }
        Ok(())
    }

    /// Ensures that the body has the memory that it takes now, besides `unpacked` bytes to be decoded next.
    async fn make_room(&mut self, reader: &BodyReader, unpacked: usize) -> Result<(), AcceptError> {
        let waiting = match &self.receiver.decoder {
            Decoder::Records(decoder) => decoder.bytes().saturating_mul(FACTOR),
            Decoder::Tombstones { found, named, .. } => found.len() * size_of::<Tombstone>() * 2 + named,
        };
        let bytes = waiting + unpacked + reader.waiting() + self.intake.bytes() + self.remembered();
        let wanted = bytes.next_multiple_of(LEAST_MEMORY);
        // Memory is given back only if it is much: a body that wrote its rows makes room for others.
        if wanted > self.memory.bytes() || wanted < self.memory.bytes() / 2 {
            self.memory.resize(wanted).await?;
        }
        Ok(())
    }

    /// Bytes of what is remembered of rows that were written.
    fn remembered(&self) -> usize {
        self.intake.ids().saturating_mul(ID_BYTES) + self.sources.bytes()
    }

    async fn write_what_is_full(&mut self) -> Result<(), AcceptError> {
        let receiver = &mut self.receiver;
        if receiver.faults.is_empty()
            && let Some(decoder) = receiver.full_decoder()
        {
            let rows = decoder.take()?;
            self.push(rows).await?;
        }
        Ok(())
    }

    /// Ends the body. Returns the digest of its content too, if `reader` makes one.
    pub async fn finish(mut self, reader: BodyReader) -> Result<(Accepted, Option<Sha256>), AcceptError> {
        // The memory that a whole record takes while it is decoded is known beforehand.
        let decoded = reader.waiting_values().saturating_mul(VALUE_BYTES);
        let wanted = self.memory.bytes().saturating_add(decoded);
        if let Err(error) = self.memory.resize(wanted).await {
            self.intake.abandon().await;
            return Err(error.into());
        }
        let receiver = &mut self.receiver;
        let (fed, digest) = match reader.finish(|place, json| receiver.receive(place, json)) {
            Ok(digest) => (Ok(()), digest),
            Err(error) => (Err(error), None),
        };
        let judged = self.judge(fed);
        let faults = std::mem::take(&mut self.receiver.faults);
        if judged.is_err() || !faults.is_empty() {
            self.intake.abandon().await;
            return Err(judged.err().unwrap_or(AcceptError::Invalid(faults)));
        }
        match &mut self.receiver.decoder {
            Decoder::Tombstones { found, .. } => {
                let deletions = Accepted::Deletions(std::mem::take(found), self.memory);
                Ok((deletions, digest))
            }
            Decoder::Records(decoder) => {
                let rows = decoder.take()?;
                self.push(rows).await?;
                let remembered = self.remembered();
                let sources = self.sources.seen_of(self.person);
                let work = self.intake.finish().await?;
                let mut memory = self.memory;
                // Its memory exceeds what is left: the rows in memory, or the ids of those written.
                let left = memory.bytes().min(work.bytes() + remembered);
                memory.resize(left).await?;
                let rows = RecordedWork {
                    work,
                    sources,
                    files: self.files,
                    memory,
                };
                Ok((Accepted::Rows(rows), digest))
            }
        }
    }

    /// Removes what was written for a body that is given up.
    pub async fn abandon(self) {
        self.intake.abandon().await;
    }

    async fn push(&mut self, decoded: DecodedRows) -> Result<(), AcceptError> {
        self.sources.add(decoded.sources)?;
        let data_type = &decoded.data_type.id;
        let files = decoded.files.into_iter().map(|file| (file, data_type.clone()));
        self.files.extend(files);
        refuse_too_many(&self.files).map_err(AcceptError::Invalid)?;
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

    fn judge(&mut self, fed: Result<(), BodyError<Stop>>) -> Result<(), AcceptError> {
        match fed {
            Ok(()) => Ok(()),
            Err(BodyError::Receiver(Stop::Enough)) => {
                let faults = std::mem::take(&mut self.receiver.faults);
                Err(AcceptError::Invalid(first_of(faults, "body")))
            }
            Err(BodyError::Receiver(Stop::Failed(error))) => Err(error.into()),
            Err(BodyError::TooLarge { limit }) => Err(AcceptError::TooLarge(limit)),
            Err(BodyError::NotDecompressed(reason)) => Err(AcceptError::NotDecompressed(reason)),
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

/// Refuses a body that names too many files, since each has to be looked up.
pub fn refuse_too_many(files: &FilesRead) -> Result<(), Vec<Fault>> {
    if files.len() <= MOST_FILES {
        return Ok(());
    }
    let message = format!("the records name more than {MOST_FILES} files in their sources; send them apart");
    Err(vec![Fault::new(["body"], "limit_reached", message)])
}
