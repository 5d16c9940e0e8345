//! The index of ids that an object carries: whether a row with some id is in it, and roughly where.
//!
//! A write that stores records asks every object of a person for ids that are usually in none of them. So the
//! index answers in two steps. A bloom filter, small enough to stay in memory, rules out nearly all ids that
//! are absent. For one in a thousand of those it says "perhaps"; then a table on disk, of which some blocks
//! are read, says where the row would be, and is wrong once in thirty thousand times. Ids themselves are read
//! only after that.
//!
//! An object of many rows has several indexes, one for each section of its rows, so that its writer holds
//! only one section. Each follows the rows it covers, in the part that the checksums of blocks cover; the
//! footer has the list.
//!
//! Knows hashes and row numbers; knows nothing of pieces, nor of who asks.

pub(super) mod filter;
pub(super) mod hashed;
pub(super) mod section;
pub(super) mod table;
#[cfg(test)]
mod tests;
pub(super) mod writing;
