//! Reads the text of a query: from its words to one statement that may be planned.
//!
//! [`text`] limits the words before they are parsed, [`clauses`] and [`calls`] refuse what a query may not
//! say, each with a [`refusal`], and [`statement`] puts in the [`parameters`], writes out what the engine
//! reads otherwise or not at all ([`fetched_rows`], [`named_windows`], [`replaced_columns`],
//! [`sorted_columns`], [`rows`], [`any_item`]), adds the seconds that timestamps leave out
//! ([`short_times`]), and returns what is left. Errors of the parser and of the planner get their place in
//! the text here ([`explained`]), and words that tell authors of their [`mistakes`]. Knows the grammar; knows
//! nothing of who may read what, or of what tables and columns a name stands for.

mod any_item;
mod called;
mod calls;
mod clauses;
mod copies;
mod distinct_from;
pub(super) mod explained;
mod fetched_rows;
mod hidden_names;
mod mistakes;
mod named_windows;
mod not_exists;
pub(super) mod parameters;
mod refusal;
mod replaced_columns;
mod rows;
mod short_texts;
mod short_times;
mod sorted_columns;
pub(super) mod statement;
pub(super) mod text;
