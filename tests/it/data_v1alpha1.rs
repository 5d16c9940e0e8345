//! `/data/v1alpha1`: records of events and metrics, what there is, and where it came from.

mod filters;
mod records;
mod sources;
