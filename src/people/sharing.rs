//! Sharing: what people let others read, the groups that shares are given to, and the log of what was read.
//!
//! A share names types and files, a window of time, and people and groups. It allows only reading, and only
//! what it names. Knows documents and types; knows nothing of HTTP, and makes no permits.

pub mod access_log;
mod ended_groups;
mod errors;
mod grantee;
pub mod groups;
mod handle;
pub mod members;
pub mod received;
pub mod shares;
pub mod terms;
#[cfg(test)]
mod tests;
mod text;

pub use errors::SharingError;
pub use grantee::{Grantee, grant_id};
pub use handle::Sharing;
