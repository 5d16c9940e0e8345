//! Bounds what a query becomes once each name in it is replaced by what it stands for, which doubles with
//! every name that is used twice.
//!
//! It is counted twice, because no single count comes early enough and sees everything. [`in_text`] counts
//! before planning how often queries under a name are read, since the planner itself walks through all of
//! them. [`in_plan`] counts before optimizing what the optimizer will copy, which also takes in the
//! expressions of columns, and the keys by which rows are ordered and divided ([`sort_keys`]): only a plan
//! shows what these are. Knows nothing of how long a query then runs.

pub(super) mod in_plan;
pub(super) mod in_text;
mod sort_keys;
