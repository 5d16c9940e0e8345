//! Turns a request body into records: decompresses it, then cuts it into lines or collects it into one
//! object.
//!
//! Lives as long as one request; for lines its memory is bounded, whatever the body's length. Knows nothing
//! of HTTP beyond the names of media types and encodings, and nothing of what a record means.

use std::borrow::Cow;
use std::fmt;
use std::io;

use sha2::{Digest as _, Sha256};

use super::bounds;
use super::decompress::{ContentEncoding, DecompressError, Decompressor};
use super::lines::{Lines, LinesError, unmarked};
use crate::model::faults::LocPart;

/// Where in a body a record stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RecordPosition {
    /// The whole body is the record.
    Whole,
    /// The record is this line (or element), from 0.
    Line(usize),
}

impl RecordPosition {
    /// The beginning of the `loc` of every fault found there.
    #[must_use]
    pub fn loc(self) -> Vec<LocPart> {
        let body = LocPart::Name("body".to_owned());
        match self {
            Self::Whole => vec![body],
            Self::Line(index) => vec![body, LocPart::Index(index)],
        }
    }
}

impl From<usize> for RecordPosition {
    fn from(line: usize) -> Self {
        Self::Line(line)
    }
}

impl fmt::Display for RecordPosition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole => formatter.write_str("body"),
            Self::Line(index) => write!(formatter, "line {index}"),
        }
    }
}

/// How records stand in a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyForm {
    /// `application/json`: one object.
    Object,
    /// `application/x-jsonl` and its other names: one object a line.
    Lines,
}

impl BodyForm {
    /// The form that a `Content-Type` names; parameters such as a charset do not matter. Without one the body
    /// is taken as an object.
    #[must_use]
    pub fn from_media_type(content_type: Option<&str>) -> Option<Self> {
        let essence = content_type
            .unwrap_or("application/json")
            .split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .to_ascii_lowercase();
        match essence.as_str() {
            "application/json" => Some(Self::Object),
            "application/x-jsonl"
            | "application/jsonl"
            | "application/x-ndjson"
            | "application/ndjson"
            | "application/jsonlines"
            | "application/x-jsonlines" => Some(Self::Lines),
            _ => None,
        }
    }
}

/// How large a body may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyLimits {
    /// Bytes of the whole body, after decompression.
    pub body: u64,
    /// Bytes of one line.
    pub line: usize,
}

/// Why a body yielded no records. An error of the receiver is passed on as it was.
#[derive(Debug, thiserror::Error)]
pub enum BodyError<E> {
    #[error("the body has more than {limit} bytes")]
    TooLarge { limit: u64 },
    #[error("line {index} has more than {limit} bytes")]
    LineTooLong { index: usize, limit: usize },
    /// The bytes are not what `Content-Encoding` says, or take more memory than a body may.
    #[error("the body cannot be decompressed: {0}")]
    NotDecompressed(String),
    #[error("a record was refused")]
    Receiver(E),
}

/// Accepts a body in chunks and hands out its records as JSON text.
pub struct BodyReader {
    decompressor: Decompressor,
    buffer: BodyBuffer,
    /// Takes in what the body decompresses to.
    digest: Option<Sha256>,
}

/// What was read of a body and is not handed out yet.
enum BodyBuffer {
    Object(Vec<u8>),
    Lines(Lines),
}

impl BodyReader {
    pub fn new(form: BodyForm, encoding: ContentEncoding, limits: BodyLimits) -> io::Result<Self> {
        let buffer = match form {
            BodyForm::Object => BodyBuffer::Object(Vec::new()),
            BodyForm::Lines => BodyBuffer::Lines(Lines::new(limits.line)),
        };
        Ok(Self {
            decompressor: Decompressor::new(encoding, limits.body)?,
            buffer,
            digest: None,
        })
    }

    /// The reader also digests the content, whatever it was compressed with.
    #[must_use]
    pub fn digested(self, digest: Option<Sha256>) -> Self {
        Self { digest, ..self }
    }

    /// Bytes that wait for the rest of their record.
    #[must_use]
    pub const fn waiting(&self) -> usize {
        match &self.buffer {
            BodyBuffer::Object(bytes) => bytes.capacity(),
            BodyBuffer::Lines(lines) => lines.waiting(),
        }
    }

    /// The number of values of the unfinished record, where that number matters. Lines are decoded one by one
    /// as they come, so for them it is 0.
    #[must_use]
    pub fn waiting_values(&self) -> usize {
        match &self.buffer {
            BodyBuffer::Object(bytes) => bounds::values(bytes, bounds::MOST_VALUES),
            BodyBuffer::Lines(_) => 0,
        }
    }

    /// How much of a body is best fed at once, so that it decompresses to no more than a few megabytes.
    #[must_use]
    pub const fn step(&self) -> usize {
        self.decompressor.step()
    }

    /// Decompresses the next bytes of the body, which are to be taken next.
    pub fn unpack<'c, E>(&mut self, step: &'c [u8]) -> Result<Cow<'c, [u8]>, BodyError<E>> {
        self.decompressor.unpack(step).map_err(flatten)
    }

    /// Takes the next bytes of what was unpacked, and hands the records they complete to `each`.
    pub fn take<E>(
        &mut self,
        unpacked: &[u8],
        mut each: impl FnMut(RecordPosition, &[u8]) -> Result<(), E>,
    ) -> Result<(), BodyError<E>> {
        self.buffer.take(unpacked, self.digest.as_mut(), &mut each)
    }

    /// Takes all that the next chunk decompresses to.
    pub fn feed<E>(
        &mut self,
        chunk: &[u8],
        each: impl FnMut(RecordPosition, &[u8]) -> Result<(), E>,
    ) -> Result<(), BodyError<E>> {
        let unpacked = self.unpack::<E>(chunk)?;
        self.take(&unpacked, each)
    }

    /// Ends the body: hands out what is left, and returns the digest that was asked for.
    pub fn finish<E>(
        self,
        mut each: impl FnMut(RecordPosition, &[u8]) -> Result<(), E>,
    ) -> Result<Option<Sha256>, BodyError<E>> {
        let (mut buffer, mut digest) = (self.buffer, self.digest);
        self.decompressor
            .finish(|piece| buffer.take(piece, digest.as_mut(), &mut each))
            .map_err(flatten)?;
        match buffer {
            BodyBuffer::Object(bytes) => {
                each(RecordPosition::Whole, unmarked(&bytes)).map_err(BodyError::Receiver)?;
            }
            BodyBuffer::Lines(mut lines) => lines
                .finish(|index, line| each(RecordPosition::Line(index), line))
                .map_err(from_lines)?,
        }
        Ok(digest)
    }
}

impl BodyBuffer {
    fn take<E>(
        &mut self,
        piece: &[u8],
        digest: Option<&mut Sha256>,
        each: &mut impl FnMut(RecordPosition, &[u8]) -> Result<(), E>,
    ) -> Result<(), BodyError<E>> {
        if let Some(digest) = digest {
            digest.update(piece);
        }
        match self {
            Self::Object(bytes) => {
                bytes.extend_from_slice(piece);
                Ok(())
            }
            Self::Lines(lines) => lines
                .feed(piece, |index, line| each(RecordPosition::Line(index), line))
                .map_err(from_lines),
        }
    }
}

fn from_lines<E>(error: LinesError<E>) -> BodyError<E> {
    match error {
        LinesError::TooLong { index, longest } => BodyError::LineTooLong {
            index,
            limit: longest,
        },
        LinesError::Receiver(error) => BodyError::Receiver(error),
    }
}

fn flatten<E>(error: DecompressError<BodyError<E>>) -> BodyError<E> {
    match error {
        DecompressError::TooLarge { limit } => BodyError::TooLarge { limit },
        DecompressError::NotDecompressed(what) => BodyError::NotDecompressed(what),
        DecompressError::Receiver(error) => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: BodyLimits = BodyLimits {
        body: 1000,
        line: 100,
    };

    fn read(form: BodyForm, body: &[u8]) -> Result<Vec<(RecordPosition, String)>, BodyError<()>> {
        let mut reader = BodyReader::new(form, ContentEncoding::Identity, LIMITS).unwrap();
        let mut seen = Vec::new();
        let mut each = |place, json: &[u8]| {
            seen.push((place, String::from_utf8_lossy(json).into_owned()));
            Ok(())
        };
        for chunk in body.chunks(5) {
            reader.feed(chunk, &mut each)?;
        }
        reader.finish(&mut each)?;
        Ok(seen)
    }

    #[test]
    fn media_types_of_both_forms() {
        assert_eq!(BodyForm::from_media_type(None), Some(BodyForm::Object));
        assert_eq!(
            BodyForm::from_media_type(Some("Application/JSON; charset=utf-8")),
            Some(BodyForm::Object)
        );
        for name in ["application/x-jsonl", "application/jsonl", "application/x-ndjson"] {
            assert_eq!(BodyForm::from_media_type(Some(name)), Some(BodyForm::Lines));
        }
        assert_eq!(BodyForm::from_media_type(Some("text/csv")), None);
    }

    #[test]
    fn an_object_may_be_pretty_printed() {
        assert_eq!(
            read(BodyForm::Object, b"{\n  \"a\": 1\n}\n").unwrap(),
            [(RecordPosition::Whole, "{\n  \"a\": 1\n}\n".to_owned())]
        );
    }

    #[test]
    fn a_byte_order_mark_before_a_body_of_either_form_is_no_part_of_it() {
        for (form, place) in [
            (BodyForm::Object, RecordPosition::Whole),
            (BodyForm::Lines, RecordPosition::Line(0)),
        ] {
            let seen = read(form, b"\xef\xbb\xbf{\"a\": 1}").unwrap();
            assert_eq!(seen, [(place, "{\"a\": 1}".to_owned())]);
            let twice = read(form, b"\xef\xbb\xbf\xef\xbb\xbf{}").unwrap();
            assert_eq!(twice, [(place, "\u{feff}{}".to_owned())]);
            let within = read(form, b" \xef\xbb\xbf{}").unwrap();
            assert_eq!(within, [(place, " \u{feff}{}".to_owned())]);
        }
    }

    #[test]
    fn lines_carry_their_place() {
        assert_eq!(
            read(BodyForm::Lines, b"{}\n\n[]").unwrap(),
            [
                (RecordPosition::Line(0), "{}".to_owned()),
                (RecordPosition::Line(2), "[]".to_owned())
            ]
        );
    }

    #[test]
    fn body_too_large_is_refused() {
        assert!(matches!(
            read(BodyForm::Object, &[b' '; 1001]),
            Err(BodyError::TooLarge { limit: 1000 })
        ));
        assert!(matches!(
            read(BodyForm::Lines, &[b'x'; 500]),
            Err(BodyError::LineTooLong { index: 0, limit: 100 })
        ));
    }
}
