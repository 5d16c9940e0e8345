//! What all questions share.
//!
//! From the bottom: how rows are keyed and measured ([`key`], [`row_times`], [`row_sizes`], [`measure`],
//! [`events`]), the framework of operators and the sweep; files and scans of them; the rows that a permit
//! makes visible, as a table ([`table`], [`for_others`]); the columns of an answer; and the engine that runs
//! a plan. Knows nothing of any question.

pub mod annotation_definitions;
pub(in crate::query) mod apart;
pub(in crate::query) mod backwards;
mod bursts;
pub(in crate::query) mod clip_windows;
pub mod columns;
pub(in crate::query) mod computed;
pub(in crate::query) mod constant_text;
pub(in crate::query) mod dead;
pub(in crate::query) mod ended;
pub mod engine;
pub(in crate::query) mod errors;
mod estimated_starts;
pub(in crate::query) mod events;
pub(in crate::query) mod files;
pub mod filter;
mod first_rows;
pub(in crate::query) mod for_others;
pub(in crate::query) mod grown;
mod in_slices;
pub(in crate::query) mod in_turn;
pub(in crate::query) mod json_items;
pub(in crate::query) mod json_text;
pub(in crate::query) mod key;
mod logical;
pub(in crate::query) mod measure;
pub(in crate::query) mod merge_sorted;
pub(in crate::query) mod operator;
pub(in crate::query) mod order;
pub mod paging;
pub(in crate::query) mod partitions_in_turn;
pub(in crate::query) mod prepared;
pub(in crate::query) mod questions;
pub(in crate::query) mod rollups;
pub(in crate::query) mod row_sizes;
pub(in crate::query) mod row_times;
pub(in crate::query) mod scan;
pub mod shape;
pub mod spill_files;
pub mod sweep;
pub(in crate::query) mod table;
pub(in crate::query) mod together;
pub(in crate::query) mod turn;
pub(in crate::query) mod typed_partition;
pub(in crate::query) mod uuid_text;
pub(in crate::query) mod version_numbers;
