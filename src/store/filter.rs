//! Bloom filters as Parquet defines them (split blocks, XXH64), asked for many ids at once.
//!
//! The id is hashed once for all filters, and ids are asked in the order of their hashes, so that a filter is
//! walked from front to back: a pass over memory instead of a jump per id. That is what makes ten thousand
//! new ids against millions of rows cheap.

use parquet::bloom_filter::Sbbf;
use parquet::errors::ParquetError;

use crate::model::ids::RecordId;

/// The constants of the format, one for each word of a block.
const SALT: [u32; 8] = [
    0x47b6_137b,
    0x4497_4d91,
    0x8824_ad5b,
    0xa2b7_289d,
    0x7054_95c7,
    0x2df1_424b,
    0x9efc_4947,
    0x5c6b_fb31,
];

/// A bloom filter of one row group.
pub(super) struct Filter {
    blocks: Vec<[u32; 8]>,
}

/// An id together with its hash. Ordered by hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct HashedId {
    hash: u64,
    pub id: RecordId,
}

impl HashedId {
    pub(super) fn new(id: RecordId) -> Self {
        Self {
            hash: xxh64(*id.as_bytes()),
            id,
        }
    }

    /// Of each of `ids`, in the order in which filters are asked.
    pub(super) fn all(ids: &[RecordId]) -> Vec<Self> {
        let mut hashed: Vec<Self> = ids.iter().copied().map(Self::new).collect();
        hashed.sort_unstable();
        hashed
    }
}

/// The ids of a row group, for those which its bloom filter takes for ids of its own and are not: so that it
/// is read once for them, and not again and again. Made of the ids as they were read; lets one other id in
/// forty pass.
pub(super) struct SecondLook {
    bits: Vec<u64>,
}

impl SecondLook {
    /// Bits for each id, rounded up to a power of two.
    const BITS_PER_ID: usize = 8;

    pub(super) fn of(ids: &[RecordId]) -> Self {
        let words = (ids.len() * Self::BITS_PER_ID).next_power_of_two().max(64) / 64;
        let mut look = Self { bits: vec![0; words] };
        for id in ids {
            for (word, bit) in look.places(*id) {
                if let Some(word) = look.bits.get_mut(word) {
                    *word |= 1 << bit;
                }
            }
        }
        look
    }

    pub(super) fn may_hold(&self, id: RecordId) -> bool {
        self.places(id)
            .into_iter()
            .all(|(word, bit)| self.bits.get(word).is_none_or(|word| (word >> bit) & 1 == 1))
    }

    /// Four bits of an id, by its hash mixed once more: what the filter looks at has agreed already.
    fn places(&self, id: RecordId) -> [(usize, u32); 4] {
        let mixed = xxh64(*id.as_bytes()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        [0, 16, 32, 48].map(|turn| {
            let part = mixed.rotate_left(turn).wrapping_mul(0xc2b2_ae3d_27d4_eb4f) >> 32;
            let place = part as usize & (self.bits.len() * 64 - 1);
            (place / 64, (place % 64) as u32)
        })
    }

    pub(super) fn memory(&self) -> usize {
        self.bits.len() * 8
    }
}

impl Filter {
    /// From the bytes that stand in the file, header included.
    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self, ParquetError> {
        let filter = Sbbf::from_bytes(bytes)?;
        let mut words = Vec::with_capacity(filter.num_blocks() * 32);
        filter.write_bitset(&mut words)?;
        let (words, _) = words.as_chunks::<4>();
        let (blocks, _) = words.as_chunks::<8>();
        Ok(Self {
            blocks: blocks.iter().map(|block| block.map(u32::from_le_bytes)).collect(),
        })
    }

    /// Those of `ids` that may be in the row group. Those that are left out are not.
    pub(super) fn suspects(&self, ids: &[HashedId]) -> Vec<RecordId> {
        // Most ids fail at the first words, at random. Whether they do is added up instead of branched on, so
        // that the processor never guesses wrong and fetches the next blocks meanwhile.
        let mut candidates = vec![0_u32; ids.len() + 1];
        let mut count = 0;
        for (index, id) in ids.iter().enumerate() {
            let [first, second, ..] = self.block(id);
            let key = id.hash as u32;
            let both = (first >> bit(key, SALT[0])) & (second >> bit(key, SALT[1])) & 1;
            if let Some(place) = candidates.get_mut(count) {
                *place = index as u32;
            }
            count += both as usize;
        }
        candidates.truncate(count);
        candidates
            .iter()
            .filter_map(|index| ids.get(*index as usize))
            .filter(|id| self.may_hold(id))
            .map(|id| id.id)
            .collect()
    }

    fn may_hold(&self, id: &HashedId) -> bool {
        let key = id.hash as u32;
        self.block(id)
            .iter()
            .zip(SALT)
            .all(|(word, salt)| (word >> bit(key, salt)) & 1 == 1)
    }

    fn block(&self, id: &HashedId) -> &[u32; 8] {
        let index = ((id.hash >> 32) * self.blocks.len() as u64) >> 32;
        // There is no filter without blocks; one would have to let everything pass.
        self.blocks.get(index as usize).unwrap_or(&[u32::MAX; 8])
    }

    pub(super) fn memory(&self) -> usize {
        self.blocks.len() * 32
    }
}

/// Which bit of a word an id sets, by the word's salt.
fn bit(key: u32, salt: u32) -> u32 {
    key.wrapping_mul(salt) >> 27
}

/// XXH64 with seed 0 of exactly 16 bytes.
fn xxh64(bytes: [u8; 16]) -> u64 {
    const PRIMES: [u64; 5] = [
        0x9e37_79b1_85eb_ca87,
        0xc2b2_ae3d_27d4_eb4f,
        0x1656_67b1_9e37_79f9,
        0x85eb_ca77_c2b2_ae63,
        0x27d4_eb2f_1656_67c5,
    ];
    let mut hash = PRIMES[4].wrapping_add(bytes.len() as u64);
    let (words, _) = bytes.as_chunks::<8>();
    for word in words {
        let lane = u64::from_le_bytes(*word)
            .wrapping_mul(PRIMES[1])
            .rotate_left(31)
            .wrapping_mul(PRIMES[0]);
        hash = (hash ^ lane)
            .rotate_left(27)
            .wrapping_mul(PRIMES[0])
            .wrapping_add(PRIMES[3]);
    }
    hash = (hash ^ (hash >> 33)).wrapping_mul(PRIMES[1]);
    hash = (hash ^ (hash >> 29)).wrapping_mul(PRIMES[2]);
    hash ^ (hash >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn a_second_look_lets_all_ids_pass_that_are_there_and_few_others() {
        let ids = |numbers: std::ops::Range<u32>| {
            numbers.map(|number| RecordId(Uuid::new_v5(&Uuid::NAMESPACE_OID, &number.to_le_bytes())))
        };
        for count in [0, 1, 5, 1_000, 5_000] {
            let there: Vec<RecordId> = ids(0..count).collect();
            let look = SecondLook::of(&there);
            assert!(there.iter().all(|id| look.may_hold(*id)));
            let others = ids(10_000..20_000).filter(|id| look.may_hold(*id)).count();
            assert!(others < 300, "{others} of 10,000 beside {count}");
        }
    }

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
        let ours = Filter::from_bytes(&bytes).unwrap();
        let hashed: Vec<HashedId> = ids.iter().copied().map(HashedId::new).collect();
        let expected: Vec<RecordId> = ids
            .into_iter()
            .filter(|id| theirs.check(id.as_bytes().as_slice()))
            .collect();
        assert_eq!(ours.suspects(&hashed), expected);
        assert!(expected.len() < 2_000, "{}", expected.len());
    }
}
