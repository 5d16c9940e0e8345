//! The index of ids that an object carries: whether a row with some id is in it, and about where.
//!
//! Whoever stores records asks every object of a person for ids that mostly are in none of them. So the index
//! answers in two steps. A bloom filter, small enough to stay in memory, says of nearly all ids that they are
//! not there. For one of a thousand it says "perhaps"; then a table on disk, of which some blocks are read,
//! says where the row would be, and is wrong once in thirty thousand times. Ids themselves are read after
//! that only.
//!
//! An object of many rows has several indexes, one for each section of its rows, so that whoever writes it
//! holds no more than one section. Each stands behind the rows that it is of, in the part that the checksums
//! of blocks cover; the footer has the list.
//!
//! Knows hashes and row numbers; knows nothing of pieces, nor of who asks.

pub(super) mod filter;
pub(super) mod hashed;
pub(super) mod section;
pub(super) mod table;
#[cfg(test)]
mod tests;
pub(super) mod writing;
