//! Questions: from plain data to a DataFusion plan to a stream of batches.
//!
//! A question is written down as a spec that can be built, printed and compared without HTTP. It reads only
//! through a [`ReadPermit`](crate::model::permit::ReadPermit), which names one person, one type and the
//! windows that may be seen. What every question stands on is in [`ground`]; above it is a module for each,
//! and `ground` knows none of them. Knows Arrow, DataFusion and the store's snapshots; knows nothing of HTTP,
//! tokens or bodies.

pub mod aggregate;
pub mod attached;
pub mod available;
pub mod explain;
mod ground;
pub mod insight;
pub mod page;
pub mod partial;
pub mod places;
pub mod records;
pub mod selector;
pub mod series;
pub mod sleep;
pub mod sql;
pub mod totals;
pub mod units;

pub use ground::archive::{Archive, Kept};
pub use ground::errors::QueryError;
pub use ground::order::{Order, UnknownOrder};
pub use ground::partition::Partition;
pub use ground::prepared::{Prepared, ReadState, Scope};
pub use ground::{columns, definitions, engine, filter, paging, shape, spill_files, sweep};
use ground::{operator, shared, together};
