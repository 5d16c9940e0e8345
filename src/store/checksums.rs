//! Checksums of an object while it is written, and of any part of it while it is read.
//!
//! The object is divided into blocks of 16 KB, each with a CRC-32. Their table is inside the object, right
//! before Parquet's own indexes, and the footer's checksum in the catalogue covers both. So every byte that a
//! reader gets was verified: data pages, their headers, dictionaries and bloom filters alike.

use std::ops::Range;

use bytes::Bytes;

use crate::catalog::records::Footer;

pub(super) const BLOCK_BYTES: u64 = 16 << 10;
const ENTRY_BYTES: usize = 4;

/// Checksums of what has been written so far.
#[derive(Debug, Default)]
pub(super) struct Summing {
    whole: crc32fast::Hasher,
    block: crc32fast::Hasher,
    blocks: Vec<u8>,
    bytes: u64,
    /// Where the blocks end and the footer begins, with the checksum of what follows.
    footer: Option<(u64, crc32fast::Hasher)>,
}

impl Summing {
    pub(super) fn take(&mut self, content: &[u8]) {
        self.whole.update(content);
        if let Some((_, footer)) = &mut self.footer {
            footer.update(content);
            self.bytes += content.len() as u64;
            return;
        }
        let mut rest = content;
        while !rest.is_empty() {
            let room = (BLOCK_BYTES - self.bytes % BLOCK_BYTES) as usize;
            let (now, later) = rest.split_at(room.min(rest.len()));
            self.block.update(now);
            self.bytes += now.len() as u64;
            if self.bytes.is_multiple_of(BLOCK_BYTES) {
                self.end_block();
            }
            rest = later;
        }
    }

    /// Ends the part covered by blocks; returns their table, which must be written next.
    pub(super) fn end_of_blocks(&mut self) -> Vec<u8> {
        if !self.bytes.is_multiple_of(BLOCK_BYTES) {
            self.end_block();
        }
        self.footer = Some((self.bytes, crc32fast::Hasher::new()));
        std::mem::take(&mut self.blocks)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The checksum of the whole object, and the facts about its footer.
    pub(super) fn finish(self) -> (u32, Footer) {
        let footer = self.footer.map_or(
            Footer {
                bytes: 0,
                checksum: 0,
            },
            |(start, footer)| Footer {
                bytes: (self.bytes - start) as u32,
                checksum: footer.finalize(),
            },
        );
        (self.whole.finalize(), footer)
    }

    fn end_block(&mut self) {
        let block = std::mem::take(&mut self.block).finalize();
        self.blocks.extend_from_slice(&block.to_le_bytes());
    }
}

/// The table of an object's blocks, from a verified footer.
#[derive(Clone, Debug)]
pub(super) struct Blocks {
    table: Bytes,
    /// Where the blocks end.
    end: u64,
}

impl Blocks {
    /// The table of an object of `bytes` with the given footer, if the footer is long enough.
    pub(super) fn of(footer: &Bytes, bytes: u64) -> Option<Self> {
        let end = bytes.checked_sub(footer.len() as u64)?;
        let length = usize::try_from(end.div_ceil(BLOCK_BYTES))
            .ok()?
            .checked_mul(ENTRY_BYTES)?;
        (length <= footer.len()).then(|| Self {
            table: footer.slice(..length),
            end,
        })
    }

    /// Where the blocks end, if their table ends at `offset`.
    pub(super) fn end_before(offset: u64) -> Option<u64> {
        let with_table = |end: u64| end + end.div_ceil(BLOCK_BYTES) * ENTRY_BYTES as u64;
        let (mut least, mut most) = (0, offset);
        while least < most {
            let middle = least.midpoint(most);
            if with_table(middle) < offset {
                least = middle + 1;
            } else {
                most = middle;
            }
        }
        (with_table(least) == offset).then_some(least)
    }

    /// The whole blocks that contain `range`, unless it reaches beyond the last one.
    pub(super) fn widen(&self, range: &Range<u64>) -> Option<Range<u64>> {
        let within = range.start <= range.end && range.end <= self.end;
        within.then(|| {
            range.start / BLOCK_BYTES * BLOCK_BYTES..range.end.next_multiple_of(BLOCK_BYTES).min(self.end)
        })
    }

    /// Whether `content` is what was written at `range`, which `widen` returned.
    pub(super) fn verify(&self, range: &Range<u64>, content: &[u8]) -> bool {
        let first = (range.start / BLOCK_BYTES) as usize;
        range.start.is_multiple_of(BLOCK_BYTES)
            && content.len() as u64 == range.end - range.start
            && content
                .chunks(BLOCK_BYTES as usize)
                .enumerate()
                .all(|(index, block)| {
                    let at = (first + index) * ENTRY_BYTES;
                    self.table
                        .get(at..at + ENTRY_BYTES)
                        .is_some_and(|entry| entry == crc32fast::hash(block).to_le_bytes())
                })
    }

    pub(super) fn memory(&self) -> usize {
        self.table.len()
    }
}
