//! `/data`: what is recorded, and what can be.

pub mod metrics_catalog;
