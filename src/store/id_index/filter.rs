//! Bloom filters as Parquet defines them (split blocks, XXH64), queried for many ids at once.
//!
//! Each id is hashed once for all filters, and ids are queried in the order of their hashes, so that a filter
//! is walked from front to back: a pass over memory instead of a jump per id. That makes ten thousand new ids
//! against millions of rows cheap.

use std::ops::Range;

use bytes::Bytes;
use parquet::bloom_filter::Sbbf;
use parquet::errors::ParquetError;

use super::hashed::{HashedId, part_of};
use crate::model::ids::RecordId;

/// The constants of the format, one for each word of a block.
const SALT: [[u32; 2]; 4] = [
    [0x47b6_137b, 0x4497_4d91],
    [0x8824_ad5b, 0xa2b7_289d],
    [0x7054_95c7, 0x2df1_424b],
    [0x9efc_4947, 0x5c6b_fb31],
];

/// A block of a filter: its eight words, in pairs.
type Block = [u64; SALT.len()];

/// The size of a block.
pub(in crate::store) const BLOCK_BYTES: usize = size_of::<Block>();

/// Ids in the order of their hashes, with what every filter needs first of each.
#[derive(Clone, Debug)]
pub(in crate::store) struct AskedIds {
    ids: Vec<HashedId>,
    /// Apart from the ids, since the first look at a filter needs nothing else.
    looks: Vec<Look>,
}

#[derive(Clone, Copy, Debug)]
struct Look {
    hash: u64,
    /// The bits that are set in the first two words if the id is there.
    first: u64,
}

impl AskedIds {
    pub(in crate::store) fn new(ids: &[RecordId]) -> Self {
        let ids = HashedId::all(ids);
        let looks = ids.iter().map(|id| Look {
            hash: id.hash,
            first: bits(id.hash, SALT[0]),
        });
        Self {
            looks: looks.collect(),
            ids,
        }
    }

    pub(in crate::store) fn as_slice(&self) -> &[HashedId] {
        &self.ids
    }

    /// Which of the ids belong to the blocks `blocks`, of `of` in all.
    fn numbers(&self, blocks: Range<usize>, of: usize) -> Range<usize> {
        let before = |block: usize| self.looks.partition_point(|look| part_of(look.hash, of) < block);
        before(blocks.start)..before(blocks.end)
    }
}

/// The bytes of a bloom filter of the ids with these hashes.
pub(super) fn filter_of(hashes: &[u64], blocks: usize) -> Vec<u8> {
    let mut filter = vec![Block::default(); blocks];
    for hash in hashes {
        if let Some(block) = filter.get_mut(part_of(*hash, blocks)) {
            for (words, salts) in block.iter_mut().zip(SALT) {
                *words |= bits(*hash, salts);
            }
        }
    }
    let words = filter.iter().flatten();
    words.flat_map(|words| words.to_le_bytes()).collect()
}

/// A bloom filter of the ids of some rows, or some blocks of one.
pub(in crate::store) struct Filter {
    content: Bytes,
    /// The number of its first block.
    first: usize,
    /// How many blocks the whole filter has.
    blocks: usize,
}

impl Filter {
    /// From the bytes of a column's filter in a Parquet file, header included.
    pub(in crate::store) fn of_column(bytes: &[u8]) -> Result<Self, ParquetError> {
        let filter = Sbbf::from_bytes(bytes)?;
        let mut blocks = Vec::with_capacity(filter.num_blocks() * BLOCK_BYTES);
        filter.write_bitset(&mut blocks)?;
        Ok(Self::whole(blocks.into()))
    }

    /// A filter with all its blocks.
    pub(in crate::store) fn whole(content: Bytes) -> Self {
        Self {
            first: 0,
            blocks: content.len() / BLOCK_BYTES,
            content,
        }
    }

    /// Some blocks of a filter that has `blocks` in all.
    pub(in crate::store) fn part(content: Bytes, first: usize, blocks: usize) -> Self {
        Self {
            content,
            first,
            blocks,
        }
    }

    /// Those of `asked` that may be there, among those whose blocks are here. The others of these are not.
    pub(in crate::store) fn suspects(&self, asked: &AskedIds) -> Vec<HashedId> {
        let here = asked.numbers(self.first..self.first + self.blocks_here(), self.blocks);
        let looks = asked.looks.get(here.clone()).unwrap_or_default();
        let ids = asked.ids.get(here).unwrap_or_default();
        // Most ids fail at the first words, unpredictably. The results are summed up instead of branched on,
        // so that the processor never mispredicts and fetches the next blocks meanwhile.
        let mut candidates = vec![0_u32; looks.len() + 1];
        let mut count = 0;
        for (index, look) in looks.iter().enumerate() {
            let [first, ..] = self.block(look.hash);
            if let Some(place) = candidates.get_mut(count) {
                *place = index as u32;
            }
            count += usize::from(first & look.first == look.first);
        }
        candidates.truncate(count);
        let candidates = candidates.iter().filter_map(|index| ids.get(*index as usize));
        candidates
            .filter(|id| may_hold(&self.block(id.hash), id.hash))
            .copied()
            .collect()
    }

    fn block(&self, hash: u64) -> Block {
        let (blocks, _) = self.content.as_chunks::<BLOCK_BYTES>();
        let number = part_of(hash, self.blocks).wrapping_sub(self.first);
        // There is no filter without blocks; if there were, it would have to let everything pass.
        blocks.get(number).map_or([u64::MAX; SALT.len()], words)
    }

    fn blocks_here(&self) -> usize {
        self.content.len() / BLOCK_BYTES
    }

    pub(in crate::store) fn memory(&self) -> usize {
        self.content.len()
    }
}

/// Whether an id may be there, according to the block that it belongs to.
pub(in crate::store) fn may_be_in(block: &[u8], id: &HashedId) -> bool {
    let block = block.first_chunk();
    block.is_none_or(|block| may_hold(&words(block), id.hash))
}

fn words(block: &[u8; BLOCK_BYTES]) -> Block {
    let (words, _) = block.as_chunks::<8>();
    std::array::from_fn(|number| {
        words
            .get(number)
            .map_or(u64::MAX, |word| u64::from_le_bytes(*word))
    })
}

fn may_hold(block: &Block, hash: u64) -> bool {
    block.iter().zip(SALT).all(|(words, salts)| {
        let asked = bits(hash, salts);
        words & asked == asked
    })
}

/// The bits that an id sets in two words, one in each, according to their salts.
fn bits(hash: u64, salts: [u32; 2]) -> u64 {
    let [first, second] = salts.map(|salt| (hash as u32).wrapping_mul(salt) >> 27);
    1 << first | 1 << (second + u32::BITS)
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn it_answers_as_the_format_demands() {
        let mut theirs = Sbbf::new_with_ndv_fpp(1_000, 0.01).unwrap();
        let ids: Vec<RecordId> = (0..20_000_u32)
            .map(|number| RecordId(Uuid::new_v5(&Uuid::NAMESPACE_OID, &number.to_le_bytes())))
            .collect();
        for id in ids.iter().take(1_000) {
            theirs.insert(id.as_bytes().as_slice());
        }
        let mut bytes = Vec::new();
        theirs.write(&mut bytes).unwrap();
        let ours = Filter::of_column(&bytes).unwrap();
        let mut expected = ids.clone();
        expected.retain(|id| theirs.check(id.as_bytes().as_slice()));
        let suspects = ours.suspects(&AskedIds::new(&ids));
        let mut suspects: Vec<RecordId> = suspects.into_iter().map(|id| id.id).collect();
        expected.sort_unstable();
        suspects.sort_unstable();
        assert_eq!(suspects, expected);
        assert!(expected.len() < 2_000, "{}", expected.len());
    }
}
