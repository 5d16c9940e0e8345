//! Questions: each turns plain data into a DataFusion plan, and that into a stream of record batches.
//!
//! A question is a spec that can be built, printed and compared without HTTP. It reads stored rows only
//! through a [`ReadPermit`](crate::model::permit::ReadPermit), which names one person, one data type and the
//! windows of time that the reader may see. Each question has a module of its own; [`ground`] holds what
//! they share and knows none of them. Knows Arrow, DataFusion, the store's snapshots, the partitions
//! and sources that the catalogue lists, how people order their sources, and what intake keeps of members
//! that were sent before their declaration; must not know HTTP, tokens or request bodies.

pub mod aggregate;
mod answer_columns;
pub mod attached;
pub mod available;
pub mod explain;
mod ground;
pub mod insight;
pub mod page_of_prepared;
pub mod partial;
pub mod places;
mod quantile;
pub mod records;
mod select_partitions;
pub mod selector;
pub mod series;
pub mod sleep;
pub mod sql;
pub mod statistic;
pub mod summary;
#[cfg(test)]
mod test_engine;
pub mod totals;
pub mod units;

pub use ground::errors::QueryError;
pub use ground::order::Order;
pub use ground::prepared::{Prepared, ReadState, Scope};
pub use ground::questions::{QueryCacheSizes, Questions};
pub use ground::typed_partition::TypedPartition;
pub use ground::{annotation_definitions, columns, engine, filter, paging, shape, spill_files, sweep};
use ground::{ended, for_others, operator, together};
