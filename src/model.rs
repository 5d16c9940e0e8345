//! The words of the domain: ids, instants, ranges, data types and their layouts, and the small tools that
//! every room uses. No I/O, and nothing that waits, except that a cache may wait for another caller to fill
//! the same entry.

pub mod cache;
pub mod cache_pool;
pub mod clock;
pub mod columns;
pub mod duration;
pub mod erasure;
pub mod excerpt;
pub mod faults;
pub mod floats;
pub mod geo;
pub mod grid;
pub mod hexadecimal;
pub mod ids;
pub mod json_object;
pub mod meters;
pub mod metric;
pub mod names;
pub mod nearest;
pub mod nul;
pub mod permit;
pub mod registry;
pub mod release_guard;
pub mod sleep;
pub mod sort_scattered;
pub mod sources;
pub mod stored_json;
pub mod strict_json;
pub mod sum;
pub mod summary;
pub mod text;
pub mod time;
pub mod units;
pub mod uuid_text;
pub mod version;
pub mod weighed_pattern;
pub mod whole_units;
pub mod zone;
