//! Gives expressions the value that they have in SQL, where the engine computes another one or none.
//!
//! Each file stands for one rule: what is unknown is not false ([`unknown`], [`truths`], [`any_item`]),
//! what is null has no members and no items ([`members`]), a subquery sees what is found for the row around
//! it ([`outward`]), a list what is in it for that row ([`by_row`]), a pattern finds what it says
//! ([`patterns`], [`similar_to`]), whole numbers do not start again at the other end ([`checked`],
//! [`exact_sum`]) nor do distances from them ([`wide_frames`]), what has left a frame has no part in its
//! sum ([`moving`]), an order changes no count ([`unordered`]), zero is one number ([`one_zero`]), a moment
//! has a value in all years ([`moments`], [`choices`], [`all_years`]), also at times that clocks show twice
//! or never ([`local_times`]), and a span of time one length ([`spans`], [`extract`]). Knows expressions,
//! functions and arrays; knows nothing of the text of a query or of what its tables hold.

pub(super) mod all_years;
pub(super) mod any_item;
mod by_array;
pub(super) mod by_row;
pub(super) mod checked;
pub(super) mod choices;
mod date_trunc;
pub(super) mod exact_sum;
mod extract;
mod local_times;
pub(super) mod members;
pub(super) mod moments;
pub(super) mod moving;
pub(super) mod one_zero;
pub(super) mod outward;
pub(super) mod patterns;
mod same_value;
mod similar_to;
pub(super) mod spans;
pub(super) mod truths;
pub(super) mod unknown;
pub(super) mod unordered;
pub(super) mod wide_frames;
