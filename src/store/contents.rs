//! Contents: the bytes of files, of exports and of frames, each a list of parts in the object store.
//!
//! A part is an object: bytes of the content, then the checksums of their blocks. It is durable before it is
//! registered, and registered before it is acknowledged. The list is a document of the catalogue, so what was
//! received survives a restart and any node can continue it; a part that no list names is garbage. A complete
//! content never changes again, and several files may share it. Knows nothing of paths, states or HTTP.

mod content;
mod handle;
mod incoming;
mod open_part;
mod parts;
mod reading;
mod usage;

pub use content::{Content, ContentKind, MOST_PARTS, PART_BYTES, Part, PartName};
pub use handle::Contents;
pub use incoming::IncomingName;
pub use open_part::OpenPart;
pub use parts::PartWriter;
pub use usage::Usage;
