//! `/data/v1alpha1`: records of events and metrics, what there is, and where it came from.

mod bases;
mod called;
mod filters;
mod light;
mod own_names;
mod pages;
mod records;
mod sources;
