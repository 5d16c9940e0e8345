//! Ingestion: turns what a request brings into durable rows.
//!
//! A body is decompressed (`decompress`) and cut into records (`body`, `lines`). Each is decoded and
//! validated against its type, by `decode`, on a fast way or a complete one (`fast`, `general`); tombstones
//! and the older wrapped form have decoders of their own (`tombstone`, `legacy`). Rows of a large body are
//! written as objects while it arrives (`intake`). What several requests ask of one partition is merged with
//! what is stored there (`merge_changes`), becomes a change of the catalogue (`assemble`), and is committed
//! in groups (`queue`). Knows types, Arrow, the catalogue and the store; knows nothing of HTTP or of who is
//! asking.

pub mod accept;
pub mod assemble;
mod belonging;
pub mod body;
pub mod bounds;
mod cells;
pub mod changes;
pub mod coerce;
mod columns;
pub mod compare_columns;
mod compare_lines;
pub mod compare_rows;
pub mod compile;
pub mod context;
pub mod dating;
mod declared;
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
mod given_once;
pub mod intake;
mod json;
mod json_tokens;
pub mod late;
pub mod legacy;
pub mod lines;
mod member_order;
mod memo;
pub mod memory;
pub mod merge_changes;
mod misread;
pub mod named_sources;
mod naming;
mod natural;
mod original;
mod origins;
pub mod pieces_by_id;
pub mod pressure;
pub mod queue;
mod row;
mod scalar;
pub mod several;
mod spread_extras;
pub mod stored;
pub mod stores;
pub mod submit;
pub mod tombstone;
pub mod upload;
mod versions;

#[cfg(test)]
mod tests;
