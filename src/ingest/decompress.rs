//! Decompresses a request body as a stream, according to its content encoding.
//!
//! Lives as long as one request. Memory is a few buffers of fixed size, however well the body was compressed:
//! the output is handed on piece by piece, and the limit on its size is checked before each piece. Knows gzip
//! and zstd; knows nothing of the content.

use std::borrow::Cow;
use std::io::{self, Write};

use flate2::write::MultiGzDecoder;
use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation, OutBuffer};
use zstd::zstd_safe::get_error_name;
use zstd::zstd_safe::zstd_sys::ZSTD_ErrorCode;

use crate::model::excerpt;

/// The first bytes of each gzip stream.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
/// How many compressed bytes of gzip are decompressed at a time. Deflate expands at most about a thousand
/// times, so at most four megabytes come out.
const GZIP_STEP: usize = 4 * 1024;
/// How many decompressed bytes of zstd are handed on at a time.
const ZSTD_STEP: usize = 128 * 1024;
/// The widest zstd window accepted: 8 MiB, the most that HTTP allows a sender.
const ZSTD_WINDOW_LOG: u32 = 23;

/// A content encoding of a request body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentEncoding {
    Identity,
    Gzip,
    Zstd,
}

/// `Content-Encoding` names an unknown encoding.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("content-encoding {0:?} is not known; use gzip, zstd or none")]
pub struct UnknownEncoding(String);

impl ContentEncoding {
    /// Reads the value of the `Content-Encoding` header, which may name one encoding.
    pub fn from_header(value: &str) -> Result<Self, UnknownEncoding> {
        match value.trim().to_ascii_lowercase().as_str() {
            "" | "identity" => Ok(Self::Identity),
            "gzip" | "x-gzip" => Ok(Self::Gzip),
            "zstd" => Ok(Self::Zstd),
            _ => Err(UnknownEncoding(excerpt::beginning(value).into_owned())),
        }
    }
}

/// Why a body could not be decompressed.
#[derive(Debug, thiserror::Error)]
pub enum DecompressError<E> {
    /// The body has more bytes than allowed once decompressed.
    #[error("the body has more than {limit} bytes after decompression")]
    TooLarge { limit: u64 },
    /// It is not what its content encoding says, or takes more memory than a body may.
    #[error("the body cannot be decompressed: {0}")]
    NotDecompressed(String),
    /// The receiver's error; no further bytes are handed out.
    #[error("the receiver refused the bytes")]
    Receiver(E),
}

/// Turns the bytes of a request into the bytes of its content.
pub struct Decompressor {
    inner: Inner,
    handed_out: u64,
    limit: u64,
}

enum Inner {
    Identity,
    Gzip {
        decoder: Box<MultiGzDecoder<Vec<u8>>>,
        beginning: Beginning,
    },
    Zstd {
        decoder: Decoder<'static>,
        buffer: Vec<u8>,
        frames: Frames,
    },
}

/// What of zstd's frames has come so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Frames {
    None,
    /// The last one goes on.
    Open,
    Whole,
}

/// The first bytes of a body that should be gzip. The library says of all that is none, and of all that
/// breaks off, that its checksum does not match.
#[derive(Debug, Default)]
struct Beginning {
    /// Bytes of the body so far.
    length: usize,
    is_other: bool,
}

impl Beginning {
    fn take(&mut self, chunk: &[u8]) {
        let expected = GZIP_MAGIC.iter().skip(self.length);
        self.is_other |= chunk
            .iter()
            .zip(expected)
            .any(|(byte, expected)| byte != expected);
        self.length = self.length.saturating_add(chunk.len());
    }

    fn damaged<E>(&self, error: &io::Error) -> DecompressError<E> {
        if self.is_other {
            let reason = "it is not a gzip stream; send content-encoding: gzip only with a body that is one";
            return DecompressError::NotDecompressed(reason.to_owned());
        }
        damaged(error)
    }

    /// The fault of a body that should have gone on, or should have ended otherwise.
    fn damaged_at_the_end<E>(&self, error: &io::Error) -> DecompressError<E> {
        if self.is_other {
            return self.damaged(error);
        }
        let reason = if self.length == 0 {
            "it is empty, and so no gzip stream"
        } else {
            "it breaks off before its checksum, does not match it, or is followed by something else; send \
             all of it and nothing else"
        };
        DecompressError::NotDecompressed(reason.to_owned())
    }
}

impl Decompressor {
    /// Refuses a body of more than `limit` bytes, counted after decompression.
    pub fn new(encoding: ContentEncoding, limit: u64) -> io::Result<Self> {
        let inner = match encoding {
            ContentEncoding::Identity => Inner::Identity,
            ContentEncoding::Gzip => Inner::Gzip {
                decoder: Box::new(MultiGzDecoder::new(Vec::new())),
                beginning: Beginning::default(),
            },
            ContentEncoding::Zstd => {
                let mut decoder = Decoder::new()?;
                decoder.set_parameter(DParameter::WindowLogMax(ZSTD_WINDOW_LOG))?;
                Inner::Zstd {
                    decoder,
                    buffer: vec![0; ZSTD_STEP],
                    frames: Frames::None,
                }
            }
        };
        Ok(Self {
            inner,
            handed_out: 0,
            limit,
        })
    }

    /// A number of bytes that decompresses to a few megabytes at most.
    #[must_use]
    pub const fn step(&self) -> usize {
        match self.inner {
            Inner::Identity => 64 * 1024,
            Inner::Gzip { .. } => GZIP_STEP,
            // A block of four bytes may stand for 128 KiB of the same byte.
            Inner::Zstd { .. } => 128,
        }
    }

    /// Accepts the next bytes of the request and returns what they decompress to. A few megabytes at most, if
    /// they are no more than a step.
    pub fn unpack<'c, E>(&mut self, step: &'c [u8]) -> Result<Cow<'c, [u8]>, DecompressError<E>> {
        if matches!(self.inner, Inner::Identity) {
            self.feed(step, |_| Ok::<(), E>(()))?;
            return Ok(Cow::Borrowed(step));
        }
        let mut unpacked = Vec::new();
        self.feed(step, |piece| {
            unpacked.extend_from_slice(piece);
            Ok::<(), E>(())
        })?;
        Ok(Cow::Owned(unpacked))
    }

    /// Accepts the next bytes of the request and hands what they decompress to to `each`, in pieces.
    pub fn feed<E>(
        &mut self,
        chunk: &[u8],
        mut each: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), DecompressError<E>> {
        match &mut self.inner {
            Inner::Identity => hand_out(&mut self.handed_out, self.limit, chunk, &mut each),
            Inner::Gzip { decoder, beginning } => {
                beginning.take(chunk);
                for step in chunk.chunks(GZIP_STEP) {
                    let written = decoder.write_all(step).and_then(|()| decoder.flush());
                    written.map_err(|error| beginning.damaged(&error))?;
                    hand_out(&mut self.handed_out, self.limit, decoder.get_ref(), &mut each)?;
                    decoder.get_mut().clear();
                }
                Ok(())
            }
            Inner::Zstd {
                decoder,
                buffer,
                frames,
            } => {
                if chunk.is_empty() {
                    return Ok(());
                }
                let mut input = InBuffer::around(chunk);
                loop {
                    let mut output = OutBuffer::around(buffer.as_mut_slice());
                    let hint = decoder
                        .run(&mut input, &mut output)
                        .map_err(|error| zstd_fault(&error))?;
                    let written = output.pos();
                    *frames = if hint == 0 { Frames::Whole } else { Frames::Open };
                    hand_out(
                        &mut self.handed_out,
                        self.limit,
                        buffer.get(..written).unwrap_or_default(),
                        &mut each,
                    )?;
                    let drained = written < buffer.len();
                    if input.pos() == chunk.len() && (drained || hint == 0) {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Ends the request: hands out what is left.
    pub fn finish<E>(
        mut self,
        mut each: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), DecompressError<E>> {
        match self.inner {
            Inner::Gzip {
                mut decoder,
                beginning,
            } => {
                decoder
                    .try_finish()
                    .map_err(|error| beginning.damaged_at_the_end(&error))?;
                hand_out(&mut self.handed_out, self.limit, decoder.get_ref(), &mut each)
            }
            Inner::Zstd { frames, .. } => {
                let reason = match frames {
                    Frames::None => "it is empty, and so no zstd frame",
                    Frames::Open => "it breaks off",
                    Frames::Whole => return Ok(()),
                };
                Err(DecompressError::NotDecompressed(reason.to_owned()))
            }
            Inner::Identity => Ok(()),
        }
    }
}

fn damaged<E>(error: &io::Error) -> DecompressError<E> {
    DecompressError::NotDecompressed(error.to_string())
}

/// The fault of a body that should be zstd. The library says only in its own terms that a window is too wide,
/// which is no damage, and that something is no frame.
fn zstd_fault<E>(error: &io::Error) -> DecompressError<E> {
    let said = error.to_string();
    let is = |code: ZSTD_ErrorCode| said == get_error_name(0_usize.wrapping_sub(code as usize));
    let reason = if is(ZSTD_ErrorCode::ZSTD_error_frameParameter_windowTooLarge) {
        "a zstd frame needs a window of more than 8 MiB; compress at a level up to 19, or with --long=23"
    } else if is(ZSTD_ErrorCode::ZSTD_error_prefix_unknown) {
        "it holds something that is no zstd frame; send content-encoding: zstd only with such frames"
    } else {
        return DecompressError::NotDecompressed(said);
    };
    DecompressError::NotDecompressed(reason.to_owned())
}

fn hand_out<E>(
    handed_out: &mut u64,
    limit: u64,
    piece: &[u8],
    each: &mut impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), DecompressError<E>> {
    *handed_out = handed_out.saturating_add(u64::try_from(piece.len()).unwrap_or(u64::MAX));
    if *handed_out > limit {
        return Err(DecompressError::TooLarge { limit });
    }
    if piece.is_empty() {
        return Ok(());
    }
    each(piece).map_err(DecompressError::Receiver)
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use proptest::prelude::*;

    use super::*;

    fn gzip(content: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    /// The content, and the largest piece that was handed out.
    fn decompress(
        encoding: ContentEncoding,
        body: &[u8],
        chunk: usize,
        limit: u64,
    ) -> Result<(Vec<u8>, usize), DecompressError<()>> {
        let mut decompressor = Decompressor::new(encoding, limit).unwrap();
        let mut content = Vec::new();
        let mut largest = 0;
        let mut each = |piece: &[u8]| {
            largest = largest.max(piece.len());
            content.extend_from_slice(piece);
            Ok(())
        };
        for part in body.chunks(chunk) {
            decompressor.feed(part, &mut each)?;
        }
        decompressor.finish(&mut each)?;
        Ok((content, largest))
    }

    #[test]
    fn unknown_encodings_are_named() {
        assert_eq!(
            ContentEncoding::from_header("br"),
            Err(UnknownEncoding("br".to_owned()))
        );
        assert_eq!(ContentEncoding::from_header(" GZIP "), Ok(ContentEncoding::Gzip));
        assert!(ContentEncoding::from_header("gzip, zstd").is_err());
    }

    #[test]
    fn too_large_only_after_decompression_trips_before_memory_grows() {
        let bomb = vec![b' '; 64 * 1024 * 1024];
        for (encoding, body) in [
            (ContentEncoding::Gzip, gzip(&bomb)),
            (
                ContentEncoding::Zstd,
                zstd::encode_all(bomb.as_slice(), 3).unwrap(),
            ),
        ] {
            assert!(body.len() < 100_000);
            let (content, largest) = decompress(encoding, &body, body.len(), u64::MAX).unwrap();
            assert_eq!(content.len(), bomb.len());
            assert!(largest <= 5 * 1024 * 1024, "a piece of {largest} bytes");
            let error = decompress(encoding, &body, body.len(), 1_000_000).unwrap_err();
            assert!(matches!(error, DecompressError::TooLarge { limit: 1_000_000 }));
        }
        assert!(matches!(
            decompress(ContentEncoding::Identity, b"12345", 2, 4),
            Err(DecompressError::TooLarge { .. })
        ));
    }

    #[test]
    fn a_body_that_breaks_off_is_damaged() {
        let content = b"{\"value\": 1}\n".repeat(1000);
        for (encoding, body) in [
            (ContentEncoding::Gzip, gzip(&content)),
            (
                ContentEncoding::Zstd,
                zstd::encode_all(content.as_slice(), 3).unwrap(),
            ),
        ] {
            for kept in [1, 8, body.len() / 2, body.len() - 1] {
                let outcome = decompress(encoding, &body[..kept], 7, u64::MAX);
                assert!(
                    matches!(outcome, Err(DecompressError::NotDecompressed(_))),
                    "{encoding:?} {kept} of {}: {outcome:?}",
                    body.len()
                );
            }
            assert!(matches!(
                decompress(encoding, b"{\"value\": 1}", 100, u64::MAX),
                Err(DecompressError::NotDecompressed(_))
            ));
        }
    }

    #[test]
    fn what_is_no_gzip_stream_and_what_breaks_off_are_told_apart() {
        let content = b"{\"value\": 1}\n".repeat(1000);
        let whole = gzip(&content);
        let mut changed = whole.clone();
        let place = changed.len() - 6;
        changed[place] ^= 1;
        let followed = [whole.as_slice(), b"{}"].concat();
        for (body, told) in [
            (&b""[..], "it is empty"),
            (&content[..1], "it is not a gzip stream"),
            (&content[..12], "it is not a gzip stream"),
            (&content[..], "it is not a gzip stream"),
            (&whole[..1], "it breaks off"),
            (&whole[..whole.len() / 2], "it breaks off"),
            (&whole[..whole.len() - 1], "it breaks off"),
            (&changed[..], "does not match it"),
            (&followed[..], "is followed by something else"),
        ] {
            for chunk in [1, 7, 10_000] {
                let Err(DecompressError::NotDecompressed(reason)) =
                    decompress(ContentEncoding::Gzip, body, chunk, u64::MAX)
                else {
                    panic!("{} bytes were taken", body.len());
                };
                assert!(reason.contains(told), "{}: {reason}", body.len());
            }
        }
    }

    #[test]
    fn a_zstd_window_that_is_too_wide_and_what_is_no_zstd_frame_are_told_apart() {
        let content = b"{\"value\": 1}\n".repeat(1000);
        let of_window = |log: u32| {
            // Its length is not announced, so the frame names the whole window.
            let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
            encoder.window_log(log).unwrap();
            encoder.write_all(&content).unwrap();
            encoder.finish().unwrap()
        };
        let widest = of_window(ZSTD_WINDOW_LOG);
        let too_wide = of_window(ZSTD_WINDOW_LOG + 1);
        let followed = [widest.as_slice(), b"{}"].concat();
        for chunk in [1, 7, 10_000] {
            let read = |body: &[u8]| decompress(ContentEncoding::Zstd, body, chunk, u64::MAX);
            assert_eq!(read(&widest).unwrap().0, content);
            for (body, told) in [
                (&b""[..], "it is empty"),
                (&too_wide[..], "a window of more than 8 MiB"),
                (&content[..], "no zstd frame"),
                (&followed[..], "no zstd frame"),
            ] {
                let reason = read(body).unwrap_err().to_string();
                assert!(reason.contains(told), "{reason}");
            }
        }
    }

    #[test]
    fn several_members_and_frames_are_one_body() {
        let mut body = gzip(b"{}\n");
        body.extend(gzip(b"{}"));
        assert_eq!(
            decompress(ContentEncoding::Gzip, &body, 5, 100).unwrap().0,
            b"{}\n{}"
        );
        let mut body = zstd::encode_all(&b"{}\n"[..], 3).unwrap();
        body.extend(zstd::encode_all(&b"{}"[..], 3).unwrap());
        assert_eq!(
            decompress(ContentEncoding::Zstd, &body, 5, 100).unwrap().0,
            b"{}\n{}"
        );
    }

    proptest! {
        /// Content survives compression, whatever the chunks.
        #[test]
        fn what_was_compressed_comes_back(
            content in proptest::collection::vec(any::<u8>(), 0..5000),
            chunk in 1_usize..600
        ) {
            prop_assert_eq!(
                &decompress(ContentEncoding::Gzip, &gzip(&content), chunk, u64::MAX)
                    .unwrap()
                    .0,
                &content
            );
            let body = zstd::encode_all(content.as_slice(), 3).unwrap();
            prop_assert_eq!(
                &decompress(ContentEncoding::Zstd, &body, chunk, u64::MAX)
                    .unwrap()
                    .0,
                &content
            );
        }

        /// Any bytes at all are content or damage, never a crash.
        #[test]
        fn arbitrary_bytes_do_not_panic(
            body in proptest::collection::vec(any::<u8>(), 0..500),
            chunk in 1_usize..100
        ) {
            for encoding in [
                ContentEncoding::Identity,
                ContentEncoding::Gzip,
                ContentEncoding::Zstd,
            ] {
                if let Ok((content, _)) = decompress(encoding, &body, chunk, 100_000) {
                    prop_assert!(content.len() <= 100_000);
                }
            }
        }
    }
}
