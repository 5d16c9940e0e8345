//! Turns a stream of batches into a stream of chunks.

use std::pin::Pin;
use std::task::{Context, Poll};

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use bytes::Bytes;
use futures::stream::{self, Stream};

use super::chunks::Chunks;
use super::encoder::{EncodeError, Encoder, Progress};
use super::forms::encoder;
use super::packing::Packing;
use crate::query::spill_files::SpillFiles;

/// Forms that collect rows before they write any yield to other tasks after this many steps.
const SILENT_STEPS: u32 = 8;

/// Encodes `batches`, all of which have the schema `schema`.
///
/// Nothing is yielded before the first batch has arrived (or the end, or an error), so a caller that waits
/// for the first chunk before it answers can still turn an early failure into a status. After that, chunks
/// are about 64 KiB, or less when the batches come more slowly than they are written. After an error the
/// stream ends, without the bytes that would complete the form.
///
/// Encoding runs where the stream is polled: about 100 µs a chunk of text, some milliseconds for a row group
/// of Parquet. `jscolumns` writes to a file of `spill` once an answer exceeds a mebibyte.
pub fn encode<S, E>(
    packing: impl Into<Packing>,
    schema: SchemaRef,
    spill: SpillFiles,
    batches: S,
) -> impl Stream<Item = Result<Bytes, E>> + Send
where
    S: Stream<Item = Result<RecordBatch, E>> + Send,
    E: From<EncodeError> + Send,
{
    let mut encoding = Encoding {
        batches: Box::pin(batches),
        chunks: Chunks::default(),
        phase: Phase::New {
            packing: packing.into(),
            schema,
            spill,
        },
        silent: 0,
    };
    stream::poll_fn(move |context| {
        let next = encoding.poll_next(context);
        encoding.silent = 0;
        if let Poll::Ready(Some(Err(_))) = &next {
            encoding.phase = Phase::Over;
            encoding.chunks = Chunks::default();
        }
        next
    })
}

struct Encoding<S> {
    batches: Pin<Box<S>>,
    chunks: Chunks,
    phase: Phase,
    /// How many steps in a row did work without yielding a chunk.
    silent: u32,
}

enum Phase {
    New {
        packing: Packing,
        schema: SchemaRef,
        spill: SpillFiles,
    },
    /// Nothing of a batch is left to write.
    Waiting {
        encoder: Box<dyn Encoder>,
        started: bool,
    },
    Writing(Box<dyn Encoder>),
    Finishing(Box<dyn Encoder>),
    Over,
}

impl<S, E> Encoding<S>
where
    S: Stream<Item = Result<RecordBatch, E>>,
    E: From<EncodeError>,
{
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, E>>> {
        loop {
            if self.silent == SILENT_STEPS {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            self.silent += 1;
            match std::mem::replace(&mut self.phase, Phase::Over) {
                Phase::New {
                    packing,
                    schema,
                    spill,
                } => {
                    let mut encoder = encoder(packing, &schema, &spill)?;
                    encoder.start(&mut self.chunks)?;
                    self.phase = Phase::Waiting {
                        encoder,
                        started: false,
                    };
                }
                Phase::Waiting { mut encoder, started } => match self.batches.as_mut().poll_next(context) {
                    Poll::Pending => {
                        self.phase = Phase::Waiting { encoder, started };
                        let waiting = if started { self.chunks.take(true) } else { None };
                        return waiting.map_or(Poll::Pending, |chunk| Poll::Ready(Some(Ok(chunk))));
                    }
                    Poll::Ready(Some(batch)) => {
                        encoder.batch(&batch?)?;
                        self.phase = Phase::Writing(encoder);
                    }
                    Poll::Ready(None) => self.phase = Phase::Finishing(encoder),
                },
                Phase::Writing(mut encoder) => {
                    if let Some(chunk) = self.chunks.take(false) {
                        self.phase = Phase::Writing(encoder);
                        return Poll::Ready(Some(Ok(chunk)));
                    }
                    self.phase = match encoder.write(&mut self.chunks)? {
                        Progress::More => Phase::Writing(encoder),
                        Progress::Done => Phase::Waiting {
                            encoder,
                            started: true,
                        },
                    };
                }
                Phase::Finishing(mut encoder) => {
                    if let Some(chunk) = self.chunks.take(false) {
                        self.phase = Phase::Finishing(encoder);
                        return Poll::Ready(Some(Ok(chunk)));
                    }
                    if encoder.finish(&mut self.chunks)? == Progress::More {
                        self.phase = Phase::Finishing(encoder);
                    }
                }
                Phase::Over => return Poll::Ready(self.chunks.take(true).map(Ok)),
            }
        }
    }
}
