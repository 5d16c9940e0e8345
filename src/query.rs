//! Questions: from plain data to a DataFusion plan to a stream of batches.
//!
//! A question is written down as a spec that can be built, printed and compared without HTTP. It reads only
//! through a [`ReadPermit`](crate::model::permit::ReadPermit), which names one person, one type and the
//! windows that may be seen. Knows Arrow, DataFusion and the store's snapshots; knows nothing of HTTP, tokens
//! or bodies.

pub mod aggregate;
pub mod available;
mod backwards;
pub mod columns;
pub mod definitions;
pub mod engine;
pub mod explain;
pub mod files;
pub mod filter;
mod grown;
mod in_turn;
pub mod insight;
mod json_text;
mod operator;
pub mod paging;
pub mod partial;
mod partials;
pub mod places;
pub mod records;
pub mod scan;
pub mod selector;
pub mod series;
pub mod shape;
mod shared;
pub mod sleep;
pub mod spill_files;
pub mod sql;
mod stored;
pub mod sweep;
mod together;
pub mod totals;
pub mod units;
