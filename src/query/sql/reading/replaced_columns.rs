//! Reads the names of columns that `* REPLACE` gives other values as all names are read: the planner compares
//! them as they are written, and passes over those that it does not find. One that is named twice is refused.
//!
//! Knows the grammar only.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Select, SelectItem, VisitorMut};

use super::refusal::{Refusal, Where};
use crate::query::sql::naming::planned_name;

/// Writes each of these names as the planner writes that of a column.
pub(super) struct ReplacedColumns;

impl VisitorMut for ReplacedColumns {
    type Break = Refusal;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Refusal> {
        for item in &mut select.projection {
            let (SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options)) = item else {
                continue;
            };
            let mut known = HashSet::new();
            let replaced = options.opt_replace.iter_mut();
            for column in replaced.flat_map(|replaced| &mut replaced.items) {
                let name = planned_name(&column.column_name);
                if !known.insert(name.clone()) {
                    return ControlFlow::Break(Refusal {
                        message: format!("REPLACE names {name} more than once"),
                        place: Where::At(column.column_name.span.start),
                    });
                }
                column.column_name.value = name;
            }
        }
        ControlFlow::Continue(())
    }
}
