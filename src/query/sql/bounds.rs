//! Bounds what a query takes while it runs, in time and in memory.
//!
//! Before it runs, steps are refused that nothing could interrupt ([`endless`]), functions are limited
//! whose results grow ([`growth`], [`bounded`]), and so are regular expressions ([`pattern_sizes`]) and what
//! stands between joined texts ([`separators`]). While it runs, patterns are weighed against the texts that
//! they meet ([`matching`]), and a [`guard`] stands above each operator. How large a plan becomes is limited
//! beside this, in `unfolding`. Knows expressions, plans and batches; knows nothing of the text of a query or
//! of who reads what.

mod arguments;
pub(super) mod bounded;
mod cheap;
pub(super) mod endless;
mod growth;
pub(super) mod guard;
mod matching;
mod pattern_sizes;
pub(super) mod separators;
mod weighed;
mod weighed_like;
mod widths;
