//! Almanac: one store per person for everything they measure.
//!
//! The modules below depend on each other only downwards, in this order: `cli`, `api`, `auth`, `output`,
//! `query`, `people`, `ingest`, `upkeep`, `store`, `catalog`, `model`. `api` knows no Parquet, `query` knows
//! no HTTP, `model` does no I/O.

#![cfg_attr(
    test,
    expect(
        clippy::disallowed_methods,
        reason = "a test takes what it needs from the machine that it runs on"
    )
)]

pub mod api;
pub mod auth;
pub mod catalog;
pub mod cli;
pub mod ingest;
pub mod model;
pub mod output;
pub mod people;
pub mod query;
#[cfg(test)]
mod simulation;
pub mod store;
pub mod upkeep;
