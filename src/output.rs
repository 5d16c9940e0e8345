//! Encodes answers as bytes: rows and frames in the form that the caller asked for.
//!
//! Every form is an incremental encoder that sees one batch at a time and keeps nothing of it, so memory
//! stays flat however long the answer is. An encoder lives as long as its answer. Knows Arrow and the forms;
//! knows nothing of HTTP, of people, or of where the batches come from.
//!
//! An answer that breaks off is never mistaken for a whole one: [`encode`] ends with an error, which resets
//! the transport, and the bytes that complete a form (the closing bracket, the footer) are written only after
//! the last batch has arrived without an error. `ndjson`, `csv` and `quotecsv` have no closing bytes, so for
//! them the reset of the transport is the only sign; a server must not swallow it.

mod cells;
mod chunks;
mod columns;
mod delimited;
mod dictionaries;
mod encoder;
mod flattened_members;
mod forms;
mod ipc;
mod listed;
mod method;
mod numbers;
mod packing;
mod parquet_file;
mod portable;
mod rows;
mod spool;
mod steps;
mod stream;
#[cfg(test)]
mod tests;
mod text;
mod times;
mod zones;

use crate::model::columns::{SPREAD, UNIT};
pub use chunks::Chunks;
pub use encoder::{EncodeError, Encoder, Progress};
pub use forms::encoder;
pub use listed::{ColumnKind, ListedColumn, joined, listed};
pub use method::{OutputMethod, RowFormat};
pub use packing::{BufferCompression, Packing};
pub use stream::encode;
