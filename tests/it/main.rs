//! The service as its users meet it: the real binary over HTTP, one module for each part of the URL tree, and
//! suites that prove what it promises.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test says what it skipped, and shows the log of a server that failed"
)]
#![expect(
    clippy::float_cmp,
    reason = "values come back exactly as they were sent, or not at all"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "a test takes what it needs from the machine that it runs on"
)]

mod harness;

mod aggregates;
mod annotations;
mod auth;
mod commandline;
mod corruption;
mod crash;
mod data_v0;
mod data_v1;
mod data_v1alpha1;
mod encryption;
mod erasure;
mod exports;
mod failing_backends;
mod files;
mod frames;
mod full_disk;
mod ground;
mod ingest;
mod input;
mod insight;
mod model_based;
mod places;
mod preferences;
mod reflections;
mod running;
mod selector;
mod series;
mod sessions;
mod sharing;
mod sleep;
mod sql;
mod streaming;
mod tags;
mod types_round_trip;
mod units;
mod user_info;
mod wall;
mod ways_of_asking;
