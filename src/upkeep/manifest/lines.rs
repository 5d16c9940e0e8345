//! The lines of a manifest, which are JSON: a heading, rows of the catalogue with the names of their tables,
//! and the number of rows with a checksum of everything before. Compressed with Zstandard.
//!
//! Knows what lines look like; knows nothing of which rows there are, or of the store.

use std::io::{BufRead as _, BufReader, Cursor, Write as _};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use zstd::stream::{read::Decoder, write::Encoder};

use crate::catalog::estates::{EstateReader, LostRows};
use crate::model::ids::PersonId;
use crate::model::time::Instant;
use crate::store::StoreError;

pub(super) const FORMAT: u32 = 1;
/// Decent compression; they are written often.
const COMPRESSION_LEVEL: i32 = 3;
/// How many compressed bytes are sent together.
const SENT_AT_ONCE: usize = 1 << 20;

/// The first line.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Heading {
    pub(super) format: u32,
    pub person: PersonId,
    /// When its content was read, by the database's clock, in microseconds.
    pub read_at: i64,
    /// The columns of each table.
    pub(super) columns: Vec<(String, Vec<String>)>,
    /// The catalogue had lost rows, and what it had before must not be known any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) lacks_rows: bool,
}

impl Heading {
    #[must_use]
    pub const fn moment(&self) -> Instant {
        Instant::from_micros(self.read_at)
    }
}

/// The last line.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Ending {
    pub(super) rows: u64,
    checksum: u32,
    /// What the catalogue had lost, where rows are lacking. The first release that wrote such manifests does
    /// not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) lost: Option<LostRows>,
}

/// A line in between.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Row(pub String, pub Vec<Value>);

/// Compresses lines.
pub(super) struct Lines {
    encoder: Encoder<'static, Vec<u8>>,
    checksum: crc32fast::Hasher,
    rows: u64,
}

impl Lines {
    pub(super) fn begin(person: PersonId, read_at: Instant, lacks_rows: bool) -> Result<Self, StoreError> {
        let columns = EstateReader::columns().into_iter().map(|(table, columns)| {
            let columns = columns.into_iter().map(str::to_owned).collect();
            (table.to_owned(), columns)
        });
        let heading = Heading {
            format: FORMAT,
            person,
            read_at: read_at.micros(),
            columns: columns.collect(),
            lacks_rows,
        };
        let mut lines = Self {
            encoder: Encoder::new(Vec::new(), COMPRESSION_LEVEL).map_err(unwritable)?,
            checksum: crc32fast::Hasher::new(),
            rows: 0,
        };
        lines.line(&heading)?;
        Ok(lines)
    }

    pub(super) fn row(&mut self, row: &Row) -> Result<(), StoreError> {
        self.rows += 1;
        self.line(row)
    }

    fn line(&mut self, line: &impl Serialize) -> Result<(), StoreError> {
        let mut text = serde_json::to_vec(line).map_err(unwritable)?;
        text.push(b'\n');
        self.checksum.update(&text);
        self.encoder.write_all(&text).map_err(unwritable)
    }

    /// The compressed bytes, once there are enough of them.
    pub(super) fn ready(&mut self) -> Option<Bytes> {
        let compressed = self.encoder.get_mut();
        (compressed.len() >= SENT_AT_ONCE).then(|| std::mem::take(compressed).into())
    }

    pub(super) fn end(mut self, lost: Option<LostRows>) -> Result<Bytes, StoreError> {
        let ending = Ending {
            rows: self.rows,
            checksum: self.checksum.clone().finalize(),
            lost,
        };
        self.line(&ending)?;
        Ok(self.encoder.finish().map_err(unwritable)?.into())
    }
}

pub(super) fn lines_of(content: &Bytes) -> Option<BufReader<Decoder<'static, BufReader<Cursor<Bytes>>>>> {
    let decoder = Decoder::new(Cursor::new(content.clone())).ok()?;
    Some(BufReader::new(decoder))
}

/// The first and the last line, if everything is what was written.
pub(super) fn verify(content: &Bytes) -> Option<(Heading, Ending)> {
    let mut lines = lines_of(content)?;
    let (mut heading, mut count) = (None, 0_u64);
    let mut checksum = crc32fast::Hasher::new();
    let mut line = String::new();
    loop {
        line.clear();
        if lines.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if heading.is_none() {
            heading = Some(serde_json::from_str(&line).ok()?);
        } else if line.starts_with('{') {
            let ending: Ending = serde_json::from_str(&line).ok()?;
            let is_whole = ending.checksum == checksum.finalize() && ending.rows == count;
            return heading.filter(|_| is_whole).map(|heading| (heading, ending));
        } else {
            count += 1;
        }
        checksum.update(line.as_bytes());
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` hands over")]
pub(super) fn unwritable(error: impl ToString) -> StoreError {
    StoreError::Unavailable {
        detail: format!("a manifest: {}", error.to_string()),
    }
}

pub(super) fn unreadable() -> StoreError {
    StoreError::corrupt("a manifest cannot be read")
}
