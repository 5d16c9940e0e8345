//! Documents: what a person writes, keeps and shares, beside their records.
//!
//! A document has an id, an owner, possibly a name that is unique for its owner, and links by which it is
//! found from what it refers to. Its body is JSON text and opaque here. Several documents change in one
//! transaction or not at all.

mod changing;
mod deleted;
mod document;
mod links_of_kind;
mod reading;
mod same_ids;

pub use deleted::{DeletedPage, DeletedPlace};
pub(super) use document::document_of;
pub use document::{Change, Changed, Document, DocumentCursor, DocumentKind, DocumentStamp, Link};
pub(super) use reading::counted_documents;
pub(super) use same_ids::{BY_DOCUMENT, links_of_one};
