//! The keys of an installation that issues its own tokens: the one that it signs with, and those that check
//! what was signed before.

pub mod ring;
mod signing_key;

pub use signing_key::{FILE_NAME, KeyError, SigningKey};
