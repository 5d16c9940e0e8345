//! What stands beside the interface: health, metrics, headers, caching, compression, CORS, documentation, and
//! the end of the process.

mod caching;
mod directory;
mod documents;
mod ending;
mod headers;
mod parameters;
mod refusals;
mod schemas;
mod silence;
