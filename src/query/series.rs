//! Series: one metric on a grid of time, a value for every bin.
//!
//! A [`SeriesSpec`] says which bins there are, what a value means and which statistics accompany it. The plan
//! reads stored rows once, in the order of their starts, and emits a bin as soon as no later row can reach
//! it: only what is open at one moment is in memory, however long the answer. Amounts are spread evenly over
//! the time they cover; where several sources may have measured the same, they compete for it
//! ([`competing`]). Logged amounts and levels each stand for themselves ([`independent`]). Amounts can also
//! be split by other columns of their samples ([`by_group`]). Knows grids, permits, stored rows and the
//! sources that the catalogue lists; knows nothing of HTTP or of what a person prefers: the sources that they
//! chose come with the question.

mod bins;
mod by_group;
mod calculation;
mod competing;
mod contest;
mod grouped;
mod independent;
mod output;
mod points;
mod prepare;
mod ranking;
mod resolve;
pub(in crate::query) mod rollups;
mod rows;
mod series_exec;
mod spec;
#[cfg(test)]
mod tests;

pub use super::ground::measure::{Base, Counting, Measure};
pub(in crate::query) use by_group::{AmountsByGroupExec, AmountsSpec};
pub use calculation::Calculation;
pub use prepare::AskedSeries;
pub use ranking::Ranking;
pub(in crate::query) use series_exec::SeriesExec;
pub use spec::{Gaps, SeriesSpec, TIME};
