//! Names the columns of an answer: each by the name that the query gives it, and no two by the same one.
//!
//! Knows the grammar and plans; knows nothing of what columns hold.

pub(super) mod columns;
mod conversions;
pub(super) mod duplicate_names;
pub(super) mod group_keys;

use datafusion::sql::planner::IdentNormalizer;
use datafusion::sql::sqlparser::ast::Ident;

/// A name as the planner takes it.
pub(super) fn planned_name(name: &Ident) -> String {
    IdentNormalizer::default().normalize(name.clone())
}
