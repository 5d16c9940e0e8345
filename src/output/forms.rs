//! Maps each form's name to its encoder.

use arrow::datatypes::SchemaRef;

use super::columns::ColumnObject;
use super::delimited::{Delimited, Quoting};
use super::encoder::{EncodeError, Encoder};
use super::ipc::{IpcFile, IpcStream};
use super::method::OutputMethod;
use super::packing::Packing;
use super::parquet_file::ParquetFile;
use super::rows::{Framing, RowObjects};
use crate::query::spill_files::SpillFiles;

/// The encoder of a form. One that has to collect more than memory allows writes it to `spill`.
pub fn encoder(
    packing: impl Into<Packing>,
    schema: &SchemaRef,
    spill: &SpillFiles,
) -> Result<Box<dyn Encoder>, EncodeError> {
    let Packing { method, buffers } = packing.into();
    Ok(match method {
        OutputMethod::Ndjson => Box::new(RowObjects::new(schema, Framing::Lines)?),
        OutputMethod::Jstable => Box::new(RowObjects::new(schema, Framing::Array)?),
        OutputMethod::Jscolumns => Box::new(ColumnObject::new(schema, spill.clone())?),
        OutputMethod::Arrow => Box::new(IpcFile::new(schema, buffers)?),
        OutputMethod::Arrowraw => Box::new(IpcStream::new(schema, buffers)?),
        OutputMethod::Parquet => Box::new(ParquetFile::new(schema)?),
        OutputMethod::Csv => Box::new(Delimited::new(schema, Quoting::WhereNeeded)?),
        OutputMethod::Quotecsv => Box::new(Delimited::new(schema, Quoting::Everywhere)?),
        OutputMethod::DefusedCsv => Box::new(Delimited::defused(schema, Quoting::WhereNeeded)?),
        OutputMethod::DefusedQuotecsv => Box::new(Delimited::defused(schema, Quoting::Everywhere)?),
    })
}
