//! What stands beside the interface: health, metrics, headers, caching, compression, CORS, documentation, and
//! the end of the process.

mod caching;
mod conditions;
mod directory;
mod documents;
mod ending;
mod forms;
mod headers;
mod heads;
mod named_headers;
mod parameters;
mod refusals;
mod repeated;
mod schemas;
mod silence;
mod traces;
mod wrong_types;
