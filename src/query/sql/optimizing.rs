//! Keeps the optimizer from changing which rows a plan returns, and from plans that memory does not suffice
//! for. What it would change in the value of an expression is set right in `meaning`.
//!
//! It derives too much from constants in conditions of joins ([`constants_last`]), moves conditions below
//! what they are about ([`kept_above`]), believes in constants of a side that an outer join may fill with
//! nulls ([`outer_side`]), confuses columns of one name ([`namesakes`]), loses rows of a page that is sorted
//! again ([`pages`]), keeps all rows of a limit in memory ([`large_limits`]), does not plan what is sorted
//! twice by one value ([`sorted_once`]), and leaves the order of a union's branches to chance ([`branches`]).
//! Knows plans and rules; knows nothing of the text of a query.

pub(super) mod branches;
pub(super) mod constants_last;
pub(super) mod kept_above;
pub(super) mod large_limits;
pub(super) mod namesakes;
pub(super) mod outer_side;
pub(super) mod pages;
mod rules;
pub(super) mod sorted_once;
#[cfg(test)]
mod test_context;
