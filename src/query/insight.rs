//! Insights: what the last days show compared with those before, and nothing that the records do not show.
//!
//! A report is computed from daily values, nights and stays, which are read through permits by the same
//! questions as the routes use, so every number can be retrieved from the routes that the finding names.
//! Where there is too little data, the report says what it skipped, and nothing is filled in. Texts are put
//! together from fixed words; equal data gives an equal report. Knows series, sleep and places; knows nothing
//! of HTTP.

mod changes;
mod days;
mod draft;
mod earlier_places;
mod gather;
mod material;
mod metric;
mod new_place;
mod nights;
pub mod report;
mod statistics;
mod streak;
#[cfg(test)]
mod tests;
mod unusual;

pub use days::Days;
pub use gather::{AskedMetric, InsightSources, SleepSource};
pub use material::{Material, Targets};
pub use metric::{HEART_RATE_VARIABILITY, METRICS, Metric, RESTING_HEART_RATE, SLEEP, STEPS};
pub use new_place::{updates_read, visits_read};
pub use nights::reads as nights_read;
