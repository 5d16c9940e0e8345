//! The functions that a query may call: those of DataFusion that neither reach beyond the query nor generate
//! data from nothing, and our own.

mod local_day;

use std::sync::Arc;

use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{AggregateUDF, ScalarUDF};

use super::bounds::bounded::Bounded;
use super::meaning::all_years::{self, AtTimeZone};
use super::meaning::any_item::AnyItem;
use super::meaning::choices;
use super::meaning::exact_sum::ExactSum;
use super::meaning::moving::Moving;
use crate::model::time::Instant;
use local_day::LocalDay;

/// Functions that make lists as long as a number in the query says, those that take far longer than their
/// input is long, and those that reveal files or the program.
const REFUSED_FUNCTIONS: [&str; 14] = [
    "range",
    "generate_series",
    "array_repeat",
    "list_repeat",
    "array_resize",
    "list_resize",
    "arrow_cast",
    "arrow_try_cast",
    "levenshtein",
    "input_file_name",
    "file_row_index",
    "version",
    "arrow_metadata",
    "with_metadata",
];

/// Whether this is a function that a query may not call.
pub(super) fn is_refused(name: &str) -> bool {
    REFUSED_FUNCTIONS.contains(&name.to_ascii_lowercase().as_str())
}

/// The scalar functions that may be called at `now`.
pub(super) fn scalars(state: &SessionState, now: Instant) -> Vec<Arc<ScalarUDF>> {
    let mut allowed: Vec<Arc<ScalarUDF>> = Vec::new();
    for function in state.scalar_functions().values() {
        let known = allowed.iter().any(|known| known.name() == function.name());
        if !known && !is_refused(function.name()) {
            let ours = all_years::instead_of(function, now).or_else(|| choices::instead_of(function));
            allowed.push(Bounded::around(ours.as_ref().unwrap_or(function)));
        }
    }
    allowed.push(Arc::new(ScalarUDF::new_from_impl(LocalDay::new())));
    allowed.push(Arc::new(ScalarUDF::new_from_impl(AtTimeZone::new())));
    allowed.push(Arc::new(ScalarUDF::new_from_impl(AnyItem::new())));
    allowed
}

/// The aggregate functions, of which `sum` fails rather than being wrong, and none remembers what has left a
/// frame.
pub(super) fn aggregates(state: &SessionState) -> Vec<Arc<AggregateUDF>> {
    // A session enters each function under its aliases itself.
    let named = state.aggregate_functions().iter();
    let named = named.filter(|(name, function)| *name == function.name());
    let ours = named.map(|(_, function)| ExactSum::around(&Moving::around(function)));
    ours.collect()
}
