//! Ingestion: turns what a request brings into durable rows.
//!
//! A body is cut into records (`body`), each of which is decoded and validated against its type (`decode`);
//! tombstones and the older wrapped form have their own decoders. Knows types, faults and Arrow; knows
//! nothing of HTTP or of who is asking.

pub mod accept;
pub mod alike;
pub mod assemble;
mod belonging;
pub mod body;
pub mod bounds;
mod cells;
pub mod changes;
pub mod coerce;
mod columns;
mod compare_lines;
pub mod compare_rows;
pub mod compile;
pub mod context;
pub mod dating;
pub mod decode;
pub mod decompress;
pub mod deleted_ids;
pub mod deletions;
pub mod errors;
mod extras;
mod fast;
mod faults;
mod field_plan;
mod forward;
mod general;
pub mod intake;
mod json;
mod json_tokens;
pub mod late;
pub mod legacy;
pub mod lines;
mod member_order;
mod memo;
pub mod memory;
pub mod merge;
mod misread;
pub mod named_sources;
mod naming;
mod natural;
mod origins;
pub mod placed;
pub mod pressure;
pub mod queue;
mod row;
mod scalar;
pub mod several;
pub mod stored;
pub mod stores;
pub mod submit;
pub mod tombstone;
pub mod upload;

#[cfg(test)]
mod tests;
