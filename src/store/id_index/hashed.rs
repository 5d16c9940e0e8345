//! Ids by their hash, as filters and tables of ids use them.

use crate::model::ids::RecordId;
use crate::model::sort_scattered::sort_scattered;

/// An id together with its hash. Ordered by hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::store) struct HashedId {
    pub hash: u64,
    pub id: RecordId,
}

impl HashedId {
    pub(in crate::store) fn new(id: RecordId) -> Self {
        Self {
            hash: xxh64(*id.as_bytes()),
            id,
        }
    }

    /// All of `ids`, in the order in which filters and tables are queried.
    pub(super) fn all(ids: &[RecordId]) -> Vec<Self> {
        let mut hashed: Vec<Self> = ids.iter().copied().map(Self::new).collect();
        sort_scattered(&mut hashed, |hashed| hashed.hash);
        hashed
    }
}

/// Which of `parts` parts an id belongs to, by the first bits of its hash. Ids in the order of their hashes
/// belong to parts in order.
pub(super) fn part_of(hash: u64, parts: usize) -> usize {
    // Both numbers fit into 32 bits, so the product fits.
    ((hash >> 32).wrapping_mul(parts as u64) >> 32) as usize
}

/// XXH64 with seed 0 of exactly 16 bytes.
pub(super) fn xxh64(bytes: [u8; 16]) -> u64 {
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
