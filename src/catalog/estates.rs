//! Everything the catalogue knows of one person, as rows that can be written elsewhere and put back: people,
//! ledgers, pieces in their order, dead rows, the bytes of the tail, what people define, write and prefer,
//! and who read what of them.
//!
//! Read in one transaction, page by page, so that it takes the memory of a page, and put back in one
//! transaction. What is read is held against all counts and digests that there are, since what is written
//! down takes the place of what was written before. So is what is put back: where a partition, a piece or a
//! dead row is lacking it is refused, and where anything else is, that is said. Knows tables and columns;
//! knows nothing of what the rows mean, so a new table with a person in it only needs to be listed here, and
//! counted if its rows are.

mod counts;
mod giving_up;
pub(super) mod manifests;
mod pages;
mod reader;
mod states;
#[cfg(test)]
mod tests;
mod writer;

pub use counts::LostRows;
pub use manifests::KnownManifest;
pub use pages::EstatePage;
pub(super) use pages::parsed_row;
pub use reader::EstateReader;
pub use writer::{EstateWriter, Lack, PutBack};
