//! The interface that every form implements.

use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use parquet::errors::ParquetError;
use thiserror::Error;

use super::chunks::Chunks;

/// The most bytes of one row in a text form: a row is built whole before it is sent, in memory that no pool
/// counts.
pub(super) const LARGEST_ROW: usize = 64 << 20;

/// Why an answer could not be written.
#[derive(Debug, Error)]
pub enum EncodeError {
    #[error(
        "column '{column}' holds values without a text form, such as maps; choose arrow, arrowraw or parquet, \
         or select its parts, of a map map_keys and map_values"
    )]
    Unsupported { column: String },
    #[error(
        "column '{column}' holds intervals, which Parquet cannot; cast it to a text or choose another output"
    )]
    Interval { column: String },
    #[error("column '{column}' is shown in the time zone '{zone}', which is not known")]
    UnknownZone { column: String, zone: String },
    #[error("one row would be longer than {LARGEST_ROW} bytes")]
    LongRow,
    #[error("column '{column}' holds text that is not the JSON it should be")]
    BrokenJson { column: String },
    #[error("the temporary file of an answer failed")]
    Spool(#[from] std::io::Error),
    #[error("the answer could not be written as Arrow")]
    Arrow(#[from] ArrowError),
    #[error("the answer could not be written as Parquet")]
    Parquet(#[from] ParquetError),
}

/// Refuses a row that is too long. `written` is the row, possibly with a little text before it.
pub(super) const fn refuse_long_row(written: &[u8]) -> Result<(), EncodeError> {
    if written.len() > LARGEST_ROW {
        return Err(EncodeError::LongRow);
    }
    Ok(())
}

/// Whether there is more to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Call again, after sending what is in the output.
    More,
    Done,
}

/// An encoder of one form. Call `start`, then for each batch `batch` and `write` until it is done, then
/// `finish` until it is done.
///
/// `write` and `finish` stop soon after a chunk is full, so that an answer takes no more memory than a batch
/// and a few chunks. The output is a complete answer only when `finish` has returned [`Progress::Done`].
pub trait Encoder: Send {
    /// Writes what precedes the first row. All batches have the encoder's schema.
    fn start(&mut self, out: &mut Chunks) -> Result<(), EncodeError>;

    /// Accepts the next batch. The previous one has been written completely.
    fn batch(&mut self, batch: &RecordBatch) -> Result<(), EncodeError>;

    /// Writes a part of the batch.
    fn write(&mut self, out: &mut Chunks) -> Result<Progress, EncodeError>;

    /// Writes what follows the last row.
    fn finish(&mut self, out: &mut Chunks) -> Result<Progress, EncodeError>;
}
