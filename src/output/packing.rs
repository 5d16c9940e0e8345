//! How the bytes of an answer are packed: in which form, and whether compressed.

use std::fmt;
use std::str::FromStr;

use arrow::error::ArrowError;
use arrow::ipc::CompressionType;
use arrow::ipc::writer::IpcWriteOptions;

use super::method::{OutputMethod, UnknownMethod, unknown};

/// The `compression` parameter: how the buffers inside an Arrow answer are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BufferCompression {
    #[default]
    None,
    Lz4,
    Zstd,
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
    pub const ALL: [Self; 3] = [Self::Zstd, Self::Lz4, Self::None];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }

    pub(super) fn options(self) -> Result<IpcWriteOptions, ArrowError> {
        IpcWriteOptions::default().try_with_compression(match self {
            Self::None => None,
            Self::Lz4 => Some(CompressionType::LZ4_FRAME),
            Self::Zstd => Some(CompressionType::ZSTD),
        })
    }
}

impl FromStr for BufferCompression {
    type Err = UnknownMethod;

    fn from_str(name: &str) -> Result<Self, UnknownMethod> {
        Self::ALL
            .into_iter()
            .find(|compression| compression.name() == name)
            .ok_or_else(|| unknown("compression", name, &Self::ALL.map(Self::name)))
    }
}

impl fmt::Display for BufferCompression {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
