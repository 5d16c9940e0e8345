//! How the bytes of an answer are packed: in which form, and compressed or not.

use std::fmt;
use std::str::FromStr;

use arrow::error::ArrowError;
use arrow::ipc::CompressionType;
use arrow::ipc::writer::IpcWriteOptions;
use bytes::Bytes;
use futures::stream::{self, Stream, StreamExt as _};
use std::io::{self, Write as _};
use zstd::stream::write::Encoder;

use super::encoder::EncodeError;
use super::method::{OutputMethod, UnknownMethod, unknown};

/// The fastest level: answers are made while they are sent.
const LEVEL: i32 = 1;

/// The `compression` parameter: how the buffers inside an Arrow frame are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FrameCompression {
    #[default]
    None,
    Lz4,
    Zstd,
}

/// A form, with what compresses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Packing {
    pub method: OutputMethod,
    /// Inside of the form; of Arrow only.
    pub frame: FrameCompression,
    /// All of it, for the way: `Content-Encoding: zstd`.
    pub whole: bool,
}

impl From<OutputMethod> for Packing {
    fn from(method: OutputMethod) -> Self {
        Self {
            method,
            frame: FrameCompression::None,
            whole: false,
        }
    }
}

impl FrameCompression {
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

impl FromStr for FrameCompression {
    type Err = UnknownMethod;

    fn from_str(name: &str) -> Result<Self, UnknownMethod> {
        Self::ALL
            .into_iter()
            .find(|compression| compression.name() == name)
            .ok_or_else(|| unknown("compression", name, &Self::ALL.map(Self::name)))
    }
}

impl fmt::Display for FrameCompression {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// `chunks` as one zstd frame. After an error the frame stays open, so that a part is never taken for all.
pub fn compressed<S, E>(chunks: S) -> impl Stream<Item = Result<Bytes, E>> + Send
where
    S: Stream<Item = Result<Bytes, E>> + Send,
    E: From<EncodeError> + Send,
{
    let state = Encoder::new(Vec::new(), LEVEL).map(|encoder| (Box::pin(chunks), encoder));
    stream::unfold(Some(state), |state| async {
        let (mut chunks, mut encoder) = match state? {
            Ok(state) => state,
            Err(error) => return Some((Err(failed(error)), None)),
        };
        loop {
            match chunks.next().await {
                Some(Ok(chunk)) => {
                    if let Err(error) = encoder.write_all(&chunk) {
                        return Some((Err(failed(error)), None));
                    }
                    let ready = std::mem::take(encoder.get_mut());
                    if !ready.is_empty() {
                        return Some((Ok(ready.into()), Some(Ok((chunks, encoder)))));
                    }
                }
                Some(Err(error)) => return Some((Err(error), None)),
                None => {
                    let rest = encoder.finish().map(Bytes::from).map_err(failed);
                    return Some((rest, None));
                }
            }
        }
    })
}

fn failed<E: From<EncodeError>>(error: io::Error) -> E {
    EncodeError::Compression(error).into()
}
