//! Encodes Arrow IPC: the file (Feather v2, `arrow`) and the stream (`arrowraw`).
//!
//! Bodies are compressed only on request: on one machine and in one data centre copying is cheaper than
//! compressing, and readers can map a file as it is. The buffers of a batch are sent without being copied.
//! The file's structure around them and its footer come from Arrow's own writer, which sees the same batches
//! but whose bytes are only counted. Compressed data is new bytes anyhow, so all of it comes from that
//! writer.

use std::io::{self, Write};
use std::sync::Arc;

use arrow::buffer::Buffer;
use arrow::datatypes::{Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::ipc::writer::{
    DictionaryTracker, FileWriter, IpcDataGenerator, IpcWriteContext, IpcWriteOptions, StreamEncoder,
    write_message,
};
use arrow::record_batch::RecordBatch;
use bytes::Bytes;

use super::chunks::Chunks;
use super::encoder::{EncodeError, Encoder, Progress};
use super::packing::BufferCompression;
use super::portable::{Dictionaries, Portable};

/// Encodes record batches, and nothing else, with dictionary columns as their keys.
///
/// The message of a batch does not distinguish a dictionary's keys from plain integers; only the schema does.
struct Batches {
    portable: Portable,
    encoder: StreamEncoder,
    /// The batch that `Encoder::batch` has accepted and `Encoder::write` has not yet written.
    waiting: Option<RecordBatch>,
}

impl Batches {
    fn new(schema: &SchemaRef, options: &IpcWriteOptions) -> Result<Self, ArrowError> {
        let portable = Portable::new(schema, Dictionaries::AsKeys);
        let nothing = Arc::new(Schema::empty());
        let mut encoder = StreamEncoder::try_new_with_options(&nothing, options.clone())?;
        // The first call also returns the schema, which here is not the one that readers get. Later calls
        // take the columns from the batch alone.
        encoder.encode(&RecordBatch::new_empty(nothing))?;
        Ok(Self {
            portable,
            encoder,
            waiting: None,
        })
    }

    fn take(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        self.waiting = Some(self.portable.apply(batch)?);
        Ok(())
    }

    /// Writes the message of a batch and returns its length.
    fn write(&mut self, batch: &RecordBatch, out: &mut Chunks) -> Result<usize, ArrowError> {
        let mut length = 0;
        for buffer in self.encoder.encode(batch)? {
            length += buffer.len();
            out.push_buffer(buffer);
        }
        Ok(length)
    }
}

impl Chunks {
    fn push_buffer(&mut self, buffer: Buffer) {
        struct OwnedBuffer(Buffer);
        impl AsRef<[u8]> for OwnedBuffer {
            fn as_ref(&self) -> &[u8] {
                self.0.as_slice()
            }
        }
        if Self::copies(buffer.len()) {
            self.push_copy(buffer.as_slice());
        } else {
            self.push(Bytes::from_owner(OwnedBuffer(buffer)));
        }
    }
}

/// The stream: schema, then for each batch the dictionaries that have grown, and its rows.
pub(super) struct IpcStream {
    batches: Batches,
    tracker: DictionaryTracker,
    options: IpcWriteOptions,
    /// How many dictionary values the reader has received.
    sent_values: Option<usize>,
}

impl IpcStream {
    pub(super) fn new(schema: &SchemaRef, compression: BufferCompression) -> Result<Self, EncodeError> {
        let options = compression.options()?;
        let batches = Batches::new(schema, &options)?;
        Ok(Self {
            batches,
            tracker: DictionaryTracker::new(false),
            options,
            sent_values: None,
        })
    }

    fn send_dictionaries(&mut self, out: &mut Chunks) -> Result<(), EncodeError> {
        let values = self.batches.portable.dictionary_values();
        if values == self.sent_values {
            return Ok(());
        }
        let empty = self.batches.portable.dictionaries()?;
        let generator = IpcDataGenerator::default();
        let (dictionaries, _) = generator.encode(
            &empty,
            &mut self.tracker,
            &self.options,
            &mut IpcWriteContext::default(),
        )?;
        for dictionary in dictionaries {
            write_message(out.open(), dictionary, &self.options)?;
        }
        self.sent_values = values;
        Ok(())
    }
}

impl Encoder for IpcStream {
    fn start(&mut self, out: &mut Chunks) -> Result<(), EncodeError> {
        let generator = IpcDataGenerator::default();
        let schema = self.batches.portable.schema();
        let message =
            generator.schema_to_bytes_with_dictionary_tracker(schema, &mut self.tracker, &self.options);
        write_message(out.open(), message, &self.options)?;
        Ok(())
    }

    fn batch(&mut self, batch: &RecordBatch) -> Result<(), EncodeError> {
        Ok(self.batches.take(batch)?)
    }

    fn write(&mut self, out: &mut Chunks) -> Result<Progress, EncodeError> {
        self.send_dictionaries(out)?;
        if let Some(batch) = self.batches.waiting.take() {
            self.batches.write(&batch, out)?;
        }
        Ok(Progress::Done)
    }

    fn finish(&mut self, out: &mut Chunks) -> Result<Progress, EncodeError> {
        self.send_dictionaries(out)?;
        out.open()
            .extend_from_slice(&[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]);
        Ok(Progress::Done)
    }
}

/// The file: schema, rows, dictionaries, footer.
pub(super) struct IpcFile {
    batches: Batches,
    writer: FileWriter<CountingSink>,
    compressed: bool,
}

impl IpcFile {
    pub(super) fn new(schema: &SchemaRef, compression: BufferCompression) -> Result<Self, EncodeError> {
        let options = compression.options()?;
        let batches = Batches::new(schema, &options)?;
        let writer = FileWriter::try_new_with_options(
            CountingSink {
                kept: Vec::new(),
                keep: true,
                counted: 0,
            },
            batches.portable.schema(),
            options,
        )?;
        let compressed = compression != BufferCompression::None;
        Ok(Self {
            batches,
            writer,
            compressed,
        })
    }

    fn flush(&mut self, out: &mut Chunks) {
        out.open().append(&mut self.writer.get_mut().kept);
    }
}

impl Encoder for IpcFile {
    fn start(&mut self, out: &mut Chunks) -> Result<(), EncodeError> {
        self.flush(out);
        Ok(())
    }

    fn batch(&mut self, batch: &RecordBatch) -> Result<(), EncodeError> {
        Ok(self.batches.take(batch)?)
    }

    fn write(&mut self, out: &mut Chunks) -> Result<Progress, EncodeError> {
        let Some(batch) = self.batches.waiting.take() else {
            return Ok(Progress::Done);
        };
        if self.compressed {
            self.writer.write(&batch)?;
            self.flush(out);
            return Ok(Progress::Done);
        }
        let written = self.batches.write(&batch, out)?;
        let ledger = self.writer.get_mut();
        (ledger.keep, ledger.counted) = (false, 0);
        self.writer.write(&batch)?;
        let ledger = self.writer.get_mut();
        ledger.keep = true;
        if ledger.counted != written {
            return Err(ArrowError::IpcError(format!(
                "a message of {written} bytes was entered as {}",
                ledger.counted
            ))
            .into());
        }
        Ok(Progress::Done)
    }

    fn finish(&mut self, out: &mut Chunks) -> Result<Progress, EncodeError> {
        if self.batches.portable.dictionary_values().is_some() {
            let dictionaries = self.batches.portable.dictionaries()?;
            self.writer.write(&dictionaries)?;
        }
        self.writer.finish()?;
        self.flush(out);
        Ok(Progress::Done)
    }
}

/// The sink of the file writer: keeps the bytes that are to be sent and counts the rest.
#[derive(Debug)]
struct CountingSink {
    kept: Vec<u8>,
    keep: bool,
    counted: usize,
}

impl Write for CountingSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.keep {
            self.kept.extend_from_slice(bytes);
        }
        self.counted += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
