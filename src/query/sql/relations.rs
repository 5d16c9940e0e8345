//! What a query reads: the tables and functions of its author, as the planner wants them.
//!
//! [`holdings`] says what there is and is answered from above; [`tables`] and [`information_schema`] make
//! tables of it, [`functions`] make them of the answers to [`calls`], and an [`answer_exec`] is what all of
//! them become in a plan. Knows permits, types and the questions of this room; knows nothing of the text of a
//! query.

pub(super) mod answer_exec;
pub(super) mod calls;
pub(super) mod functions;
pub(super) mod holdings;
mod information_schema;
mod narrowing;
pub(super) mod tables;
