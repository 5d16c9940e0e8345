//! Partial results of immutable pieces, so that a year of days need not be read row by row each time it is
//! asked for.
//!
//! For one piece, one calendar month and one step (a minute or a quarter of an hour) the rows are brought
//! down to *cells* once, and kept in memory as long as there is room. Cells take the place of rows only
//! where that changes no answer: where the piece is the only one with rows in that time, none of its rows
//! is dead, every edge of the question falls on an edge of cells, and no point lasts from one cell into
//! the next. Everywhere else rows are read. A piece never changes, so cells never go stale. Cells are of
//! all that the piece has in the month, whoever asks and for whichever part of it, and they are made when
//! a plan runs. Knows snapshots, scans and series; knows nothing of HTTP.

mod asked;
mod cells;
mod cut;
mod leaf;
mod made;
mod patchwork;
mod spans;

pub(in crate::query) use asked::CellsAsked;
pub(in crate::query) use leaf::PartialsExec;

#[cfg(test)]
mod tests;
