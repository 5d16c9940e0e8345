//! Partial results of immutable pieces, so that a year of days need not be read row by row for each question.
//!
//! The rows of one piece, one calendar month and one step (a minute, a quarter of an hour or an hour) are
//! reduced to *rollups* once, and kept in memory as long as there is room. Rollups replace rows only where
//! that changes no answer: where no row in them is dead, every edge of the question falls on an edge of
//! rollups, and no point lasts from one rollup into the next; for amounts, also only where the piece is the
//! only one with rows in that time and has no dead ones. Everywhere else rows are read. A piece never
//! changes, so rollups never go stale. Rollups cover all that the piece has in the month, for any reader and
//! any part of it, and they are made when a plan runs. Knows snapshots, scans and series; knows nothing of
//! HTTP.

mod as_rows;
mod cut_stretch;
mod find_or_make;
mod leaf;
mod mixed_input;
mod rollup_source;
mod spans;

pub(in crate::query) use leaf::RowsOrRollupsExec;
pub(in crate::query) use rollup_source::RollupsAsked;

#[cfg(test)]
mod tests;
