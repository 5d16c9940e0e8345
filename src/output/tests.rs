//! Every form read back by somebody else's reader.

mod binary_forms;
mod frames;
mod sample;
mod streaming;
mod text_forms;
mod uniform;
mod weight;

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;

use crate::query::spill_files::SpillFiles;

use super::{Chunks, EncodeError, OutputMethod, Packing, Progress, encoder};

/// A whole answer.
fn encoded(
    method: impl Into<Packing>,
    schema: &SchemaRef,
    batches: &[RecordBatch],
) -> Result<Vec<u8>, EncodeError> {
    let mut encoder = encoder(method, schema, &SpillFiles::default())?;
    let mut chunks = Chunks::default();
    let mut bytes = Vec::new();
    let mut drain = |chunks: &mut Chunks| bytes.extend(std::iter::from_fn(|| chunks.take(true)).flatten());
    encoder.start(&mut chunks)?;
    for batch in batches {
        encoder.batch(batch)?;
        while encoder.write(&mut chunks)? == Progress::More {
            drain(&mut chunks);
        }
    }
    while encoder.finish(&mut chunks)? == Progress::More {
        drain(&mut chunks);
    }
    drain(&mut chunks);
    Ok(bytes)
}

fn text(method: OutputMethod, schema: &SchemaRef, batches: &[RecordBatch]) -> String {
    String::from_utf8(encoded(method, schema, batches).unwrap()).unwrap()
}
