//! Writes archives as ZIP, from front to back without seeking.
//!
//! A member begins before its length is known, so its length and checksum follow it. Compressed content is
//! stored as it is, so that a reader finds it contiguously in the archive; text is deflated. Members of four
//! gigabytes and more, and archives that long, are written in the form that has room for them (ZIP64). The
//! archive's comment is a digest of everything before it. Pure: bytes in, bytes out; knows nothing of what
//! members mean.

use std::io::Write as _;

use bytes::Bytes;
use chrono::{DateTime, Datelike as _, Timelike as _};
use flate2::Compression;
use flate2::write::DeflateEncoder;
use sha2::{Digest as _, Sha256};

use crate::model::time::Instant;

pub(super) const LOCAL_HEADER: u32 = 0x0403_4b50;
pub(super) const CENTRAL_HEADER: u32 = 0x0201_4b50;
pub(super) const END: u32 = 0x0605_4b50;
pub(super) const END_64: u32 = 0x0606_4b50;
pub(super) const LOCATOR_64: u32 = 0x0706_4b50;
const DESCRIPTOR: u32 = 0x0807_4b50;

/// The length of the fixed part of the end record.
pub(super) const END_BYTES: usize = 22;
/// The prefix of the comment, followed by the SHA-256 of all bytes before the comment in hexadecimal digits.
pub(super) const COMMENT: &str = "sha256:";
/// The length of the comment.
pub(super) const COMMENT_BYTES: usize = COMMENT.len() + 64;

/// The value of a field that is too narrow for its number; the extra field `WIDE_EXTRA` contains the number.
pub(super) const WIDE: u32 = u32::MAX;
pub(super) const WIDE_EXTRA: u16 = 1;
const WIDE_COUNT: usize = 0xffff;

/// Lengths follow the bytes; names are UTF-8.
const FLAGS: u16 = 1 << 3 | 1 << 11;
const VERSION: u16 = 20;
const VERSION_64: u16 = 45;
/// Written on Unix.
const MADE_ON: u16 = 3 << 8;
/// A plain file that its owner may read and write.
const MODE: u32 = 0o100_600 << 16;

/// A member is longer than was announced when it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a member of an archive grew beyond what was announced")]
pub(super) struct TooLong;

/// How a member is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packing {
    Stored,
    Deflated,
}

impl Packing {
    pub(super) const fn method(self) -> u16 {
        match self {
            Self::Stored => 0,
            Self::Deflated => 8,
        }
    }
}

/// A member that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub bytes: u64,
    pub sha256: [u8; 32],
}

/// Writes an archive. The bytes that its functions return must be written in the order of the calls.
pub(super) struct ZipWriter {
    /// The number of bytes so far.
    at: u64,
    date: u16,
    time: u16,
    written: Vec<Entry>,
    open: Option<Open>,
}

/// The directory's entry for a member.
struct Entry {
    name: String,
    packing: Packing,
    checksum: u32,
    packed: u64,
    bytes: u64,
    offset: u64,
}

struct Open {
    name: String,
    packing: Packing,
    /// Whether its lengths use 64-bit fields.
    wide: bool,
    offset: u64,
    deflate: Option<DeflateEncoder<Vec<u8>>>,
    checksum: crc32fast::Hasher,
    digest: Sha256,
    packed: u64,
    bytes: u64,
}

impl ZipWriter {
    /// `moment` is the modification time of all members.
    pub(super) fn new(moment: Instant) -> Self {
        let moment = DateTime::from_timestamp_micros(moment.micros()).unwrap_or_default();
        let year = (moment.year() - 1980).clamp(0, 127) as u16;
        Self {
            at: 0,
            date: year << 9 | (moment.month() as u16) << 5 | moment.day() as u16,
            time: (moment.hour() as u16) << 11 | (moment.minute() as u16) << 5 | (moment.second() as u16 / 2),
            written: Vec::new(),
            open: None,
        }
    }

    /// Begins a member of at most `most` bytes, with the given packing.
    pub(super) fn begin(&mut self, name: &str, packing: Packing, most: u64) -> Bytes {
        let wide = most >= u64::from(WIDE);
        let mut head = Vec::with_capacity(64 + name.len());
        put_32(&mut head, LOCAL_HEADER);
        put_16(&mut head, if wide { VERSION_64 } else { VERSION });
        self.put_common(&mut head, packing);
        put_32(&mut head, 0);
        let lengths = if wide { WIDE } else { 0 };
        put_32(&mut head, lengths);
        put_32(&mut head, lengths);
        put_16(&mut head, name.len() as u16);
        put_16(&mut head, if wide { 20 } else { 0 });
        head.extend_from_slice(name.as_bytes());
        if wide {
            put_16(&mut head, WIDE_EXTRA);
            put_16(&mut head, 16);
            put_64(&mut head, 0);
            put_64(&mut head, 0);
        }
        let deflates = packing == Packing::Deflated;
        self.open = Some(Open {
            name: name.to_owned(),
            packing,
            wide,
            offset: self.at,
            deflate: deflates.then(|| DeflateEncoder::new(Vec::new(), Compression::default())),
            checksum: crc32fast::Hasher::new(),
            digest: Sha256::new(),
            packed: 0,
            bytes: 0,
        });
        self.emit(head)
    }

    /// Adds the next bytes of the open member.
    pub(super) fn add(&mut self, bytes: Bytes) -> Result<Bytes, TooLong> {
        let Some(open) = &mut self.open else {
            return Err(TooLong);
        };
        open.checksum.update(&bytes);
        open.digest.update(&bytes);
        open.bytes += bytes.len() as u64;
        let packed = match &mut open.deflate {
            // Writing into memory does not fail.
            Some(deflate) => deflate
                .write_all(&bytes)
                .map(|()| std::mem::take(deflate.get_mut()).into())
                .map_err(|_| TooLong)?,
            None => bytes,
        };
        open.packed += packed.len() as u64;
        if !open.wide && open.bytes.max(open.packed) >= u64::from(WIDE) {
            return Err(TooLong);
        }
        self.at += packed.len() as u64;
        Ok(packed)
    }

    /// Ends the open member.
    pub(super) fn end(&mut self) -> Result<(Bytes, Member), TooLong> {
        let Some(mut open) = self.open.take() else {
            return Err(TooLong);
        };
        let mut tail = match open.deflate.take() {
            Some(deflate) => deflate.finish().map_err(|_| TooLong)?,
            None => Vec::new(),
        };
        open.packed += tail.len() as u64;
        let checksum = open.checksum.finalize();
        put_32(&mut tail, DESCRIPTOR);
        put_32(&mut tail, checksum);
        if open.wide {
            put_64(&mut tail, open.packed);
            put_64(&mut tail, open.bytes);
        } else {
            put_32(&mut tail, open.packed as u32);
            put_32(&mut tail, open.bytes as u32);
        }
        self.written.push(Entry {
            name: open.name,
            packing: open.packing,
            checksum,
            packed: open.packed,
            bytes: open.bytes,
            offset: open.offset,
        });
        let member = Member {
            bytes: open.bytes,
            sha256: open.digest.finalize().into(),
        };
        Ok((self.emit(tail), member))
    }

    /// Gives up the open member: what was written of it stays, and the directory does not name it.
    pub(super) fn give_up(&mut self) {
        self.open = None;
    }

    /// Everything after the last member except the comment, whose length alone is known.
    pub(super) fn finish(mut self) -> Bytes {
        let begins = self.at;
        let mut directory = Vec::new();
        for entry in &self.written {
            self.put_entry(&mut directory, entry);
        }
        let bytes = directory.len() as u64;
        let count = self.written.len();
        let ends = begins + bytes;
        if count >= WIDE_COUNT || ends >= u64::from(WIDE) {
            put_32(&mut directory, END_64);
            put_64(&mut directory, 44);
            put_16(&mut directory, MADE_ON | VERSION_64);
            put_16(&mut directory, VERSION_64);
            put_32(&mut directory, 0);
            put_32(&mut directory, 0);
            put_64(&mut directory, count as u64);
            put_64(&mut directory, count as u64);
            put_64(&mut directory, bytes);
            put_64(&mut directory, begins);
            put_32(&mut directory, LOCATOR_64);
            put_32(&mut directory, 0);
            put_64(&mut directory, ends);
            put_32(&mut directory, 1);
        }
        put_32(&mut directory, END);
        put_16(&mut directory, 0);
        put_16(&mut directory, 0);
        let short = count.min(WIDE_COUNT) as u16;
        put_16(&mut directory, short);
        put_16(&mut directory, short);
        put_32(&mut directory, narrow(bytes));
        put_32(&mut directory, narrow(begins));
        put_16(&mut directory, COMMENT_BYTES as u16);
        self.emit(directory)
    }

    fn put_entry(&self, directory: &mut Vec<u8>, entry: &Entry) {
        let wide: Vec<u64> = [entry.bytes, entry.packed, entry.offset]
            .into_iter()
            .filter(|value| *value >= u64::from(WIDE))
            .collect();
        let version = if wide.is_empty() { VERSION } else { VERSION_64 };
        put_32(directory, CENTRAL_HEADER);
        put_16(directory, MADE_ON | version);
        put_16(directory, version);
        self.put_common(directory, entry.packing);
        put_32(directory, entry.checksum);
        put_32(directory, narrow(entry.packed));
        put_32(directory, narrow(entry.bytes));
        put_16(directory, entry.name.len() as u16);
        put_16(
            directory,
            if wide.is_empty() {
                0
            } else {
                4 + 8 * wide.len() as u16
            },
        );
        // No comment, first disk, no internal attributes.
        for _ in 0..3 {
            put_16(directory, 0);
        }
        put_32(directory, MODE);
        put_32(directory, narrow(entry.offset));
        directory.extend_from_slice(entry.name.as_bytes());
        if !wide.is_empty() {
            put_16(directory, WIDE_EXTRA);
            put_16(directory, 8 * wide.len() as u16);
            for value in wide {
                put_64(directory, value);
            }
        }
    }

    /// Writes what both headers of a member have in common: flags, packing and time.
    fn put_common(&self, head: &mut Vec<u8>, packing: Packing) {
        put_16(head, FLAGS);
        put_16(head, packing.method());
        put_16(head, self.time);
        put_16(head, self.date);
    }

    fn emit(&mut self, bytes: Vec<u8>) -> Bytes {
        self.at += bytes.len() as u64;
        bytes.into()
    }
}

fn narrow(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(WIDE)
}

fn put_16(bytes: &mut Vec<u8>, value: u16) {
    bytes.extend_from_slice(&value.to_le_bytes());
}

fn put_32(bytes: &mut Vec<u8>, value: u32) {
    bytes.extend_from_slice(&value.to_le_bytes());
}

fn put_64(bytes: &mut Vec<u8>, value: u64) {
    bytes.extend_from_slice(&value.to_le_bytes());
}
