//! The interface: routes, what requests must look like, what answers look like.
//!
//! Handlers are thin: they turn strings into domain types, ask for a permit, call a module below, and choose
//! the form of the answer. No other module knows status codes. Knows no Parquet and no SQL.

pub mod accepted;
pub mod admission;
pub mod answer;
pub mod answer_form;
pub mod answer_headers;
pub mod app;
pub mod body;
pub mod cursor;
pub mod data;
pub mod docs;
pub mod document;
pub mod download;
pub mod endpoints;
pub mod entity_tags;
pub mod entry_columns;
pub mod extract;
pub mod failures;
pub mod header_names;
pub mod health;
pub mod ingest;
pub mod input;
pub mod layers;
pub mod listed;
pub mod metrics;
pub mod path_ids;
mod paths;
pub mod problem;
pub mod query_params;
pub mod rates;
pub mod readiness;
pub mod recent_answers;
pub mod repeats;
pub mod routes;
pub mod row_count;
mod run_blocking;
pub mod serve;
pub mod settings;
mod spellings;
pub mod traces;
pub mod user;
pub mod whole_body;
