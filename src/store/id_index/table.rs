//! A table of ids: where in a section the row of an id would be.
//!
//! Ids belong to buckets by the first bits of their hash. For each id a bucket holds 22 other bits of the
//! hash, and the place of its row: which of up to 1,024 stretches of the section. A bucket is read and
//! searched as a whole.

use super::hashed::{HashedId, part_of};

pub(super) const ENTRY_BYTES: usize = size_of::<u32>();
pub(super) const OFFSET_BYTES: usize = size_of::<u32>();
/// How many rows a place has.
pub(super) const PLACE_ROWS: usize = 1 << 10;
/// How many bits identify a place.
const PLACE_BITS: u32 = 10;
/// The most rows whose places a table can identify.
pub(super) const MOST_ROWS: usize = PLACE_ROWS << PLACE_BITS;

/// Writes the table of ids with these hashes, in the order of their rows: the offset of each bucket, the end
/// of the last one, and the buckets.
pub(super) fn write(hashes: &[u64], buckets: usize, to: &mut Vec<u8>) {
    let mut offsets = vec![0_u32; buckets + 1];
    for hash in hashes {
        if let Some(after) = offsets.get_mut(part_of(*hash, buckets) + 1) {
            *after += 1;
        }
    }
    let mut before = 0;
    for offset in &mut offsets {
        before += *offset;
        *offset = before;
    }
    to.extend(offsets.iter().flat_map(|offset| offset.to_le_bytes()));

    let mut entries = vec![0_u32; hashes.len()];
    for (row, hash) in hashes.iter().enumerate() {
        let Some(next) = offsets.get_mut(part_of(*hash, buckets)) else {
            continue;
        };
        if let Some(entry) = entries.get_mut(*next as usize) {
            *entry = (fingerprint(*hash) << PLACE_BITS) | (row / PLACE_ROWS) as u32;
        }
        *next += 1;
    }
    to.extend(entries.iter().flat_map(|entry| entry.to_le_bytes()));
}

/// The places at which rows with one of `ids`, which belong to this bucket, may be.
pub(in crate::store) fn places(bucket: &[u8], ids: &[HashedId]) -> Vec<usize> {
    // Somebody who chooses ids may put all of them into one bucket, so it is not searched once per id.
    let mut wanted: Vec<u32> = ids.iter().map(|id| fingerprint(id.hash)).collect();
    wanted.sort_unstable();
    let (entries, _) = bucket.as_chunks::<ENTRY_BYTES>();
    let entries = entries.iter().map(|entry| u32::from_le_bytes(*entry));
    let meant = entries.filter(|entry| wanted.binary_search(&(entry >> PLACE_BITS)).is_ok());
    meant.map(|entry| entry as usize % (1 << PLACE_BITS)).collect()
}

/// 22 bits of a hash that was mixed once more: the bits used by bucket and filter have matched already.
fn fingerprint(hash: u64) -> u32 {
    (hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - 32 + PLACE_BITS)) as u32
}
