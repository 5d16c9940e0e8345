//! Series: one metric on a grid of time, a value for every bin.
//!
//! A [`SeriesSpec`] says which bins, what a value means and which statistics stand beside it. The plan reads stored rows once, in the order of their
//! starts, and gives out bins as soon as no row to come can reach them: memory is what is open at one moment, however long the answer. Amounts are spread
//! evenly over the time they cover and counted once where several sources cover it ([`amounts`]); levels are points of every bin they touch ([`levels`]).
//! Knows grids, permits and stored rows; knows nothing of HTTP or of where a person's order of sources is kept.

mod amounts;
mod bins;
mod calculation;
mod clip;
mod exec;
mod grouped;
mod levels;
mod output;
mod points;
mod prepare;
mod ranking;
mod resolve;
mod rows;
mod spec;
mod sum;
#[cfg(test)]
mod tests;

pub use calculation::{Calculation, UnknownCalculation};
pub use exec::SeriesExec;
pub use grouped::GroupedExec;
pub use prepare::SeriesSource;
pub use ranking::Ranking;
pub use spec::{Base, Counting, Gaps, Measure, SeriesSpec};
