//! Who is asking, and what they may read.
//!
//! Tokens become a [`tokens::Reader`] or are refused; readers get permits or are refused. Both decisions are
//! made here and nowhere else. Knows nothing of routes, rows or plans.

pub mod disclosures;
pub mod file_grants;
pub mod grants;
pub mod grounds;
pub mod jwks;
mod key_set;
pub mod keys;
pub mod mint;
mod new_secret;
pub mod reach;
pub mod settings;
mod still_given;
pub mod tickets;
mod ties;
pub mod tokens;
