//! How the bytes of an answer are packed: in which form, and whether compressed.

use std::fmt;

use arrow::error::ArrowError;
use arrow::ipc::CompressionType;
use arrow::ipc::writer::IpcWriteOptions;

use super::method::OutputMethod;
use crate::model::names::named;

named! {
    "compression",
    /// The `compression` parameter: how the buffers inside an Arrow answer are compressed.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub enum BufferCompression {
        Zstd = "zstd",
        Lz4 = "lz4",
        #[default]
        None = "none",
    }
}

/// A form with its compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Packing {
    pub method: OutputMethod,
    /// Compression inside the form; for Arrow only.
    pub buffers: BufferCompression,
}

impl From<OutputMethod> for Packing {
    fn from(method: OutputMethod) -> Self {
        Self {
            method,
            buffers: BufferCompression::None,
        }
    }
}

impl BufferCompression {
    pub(super) fn options(self) -> Result<IpcWriteOptions, ArrowError> {
        IpcWriteOptions::default().try_with_compression(match self {
            Self::None => None,
            Self::Lz4 => Some(CompressionType::LZ4_FRAME),
            Self::Zstd => Some(CompressionType::ZSTD),
        })
    }
}

impl fmt::Display for BufferCompression {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
