//! The words of the domain: ids, instants, ranges, data types and their layouts. No I/O, and nothing
//! that waits, but for a cache whose entry somebody else is finding.

pub mod cache;
pub mod clock;
pub mod duration;
pub mod erasure;
pub mod faults;
pub mod geo;
pub mod grid;
pub mod hexadecimal;
pub mod ids;
pub mod meters;
pub mod nearest;
pub mod objects;
pub mod permit;
pub mod registry;
pub mod sleep;
pub mod sources;
pub mod stored_json;
pub mod sum;
pub mod summary;
pub mod text;
pub mod time;
pub mod units;
pub mod uuid_text;
pub mod version;
pub mod zone;
