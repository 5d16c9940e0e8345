//! `/ingest/v1`: what is accepted, what a record's identity means, and what bad input gets.

mod asking;
mod bodies;
mod counting;
mod identity;
mod legacy;
mod refused;
mod replaying;
mod shapes;
mod tombstones;
mod units;
