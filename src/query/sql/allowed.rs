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

#[cfg(test)]
mod tests {
    use datafusion::execution::session_state::SessionStateBuilder;

    use super::*;
    use crate::model::time::parse_instant;
    use crate::query::sql::stand_in::StandIn;

    /// Functions whose results are numbers, times and names, a part of what is given, or at most a few times
    /// as long; and `regexp_match`, which has its limit where its pattern is known.
    const LIMITED_BY_ARGUMENTS: &str = "\
        abs acos acosh array_add array_any_value array_avg array_compact array_dims array_distance \
        array_distinct array_element array_except array_has array_intersect array_length array_max \
        array_min array_ndims array_normalize array_pop_back array_pop_front array_position \
        array_positions array_product array_remove array_remove_all array_remove_n array_reverse \
        array_scale array_slice array_sort array_subtract array_sum arrow_field arrow_typeof ascii asin \
        asinh atan atan2 atanh bit_length cardinality cast_to_type cbrt ceil character_length chr \
        coalesce contains cos cosh cosine_distance cot current_date current_time date_bin date_part \
        date_trunc decode degrees empty ends_with exp factorial find_in_set flatten floor from_unixtime \
        gcd get_field greatest initcap inner_product isnan iszero lcm least left ln log log10 log2 lower \
        make_date make_time map_entries map_extract map_keys map_values nanvl now nullif nvl nvl2 \
        octet_length pi power radians random regexp_count regexp_instr regexp_like regexp_match reverse \
        right round signum sin sinh split_part sqrt starts_with string_to_array substr substr_index tan \
        tanh to_date to_hex to_local_time to_time to_timestamp to_timestamp_micros to_timestamp_millis \
        to_timestamp_nanos to_timestamp_seconds to_unixtime trunc try_cast_to_type union_extract \
        union_tag upper uuid \
        any_item at_time_zone local_day";

    /// A new version of the engine may have functions that nobody has looked at.
    #[test]
    fn each_function_has_a_limit_or_needs_none() {
        let state = SessionStateBuilder::new().with_default_features().build();
        let functions = scalars(&state, parse_instant("2024-01-01").unwrap());
        // For each function, whether it has a limit, and whether it is said to need none.
        let judged = functions.iter().map(|function| {
            let needs_none = LIMITED_BY_ARGUMENTS
                .split(' ')
                .any(|known| known == function.name());
            (StandIn::<Bounded>::is(function), needs_none, function.name())
        });
        let unclear = judged.filter(|(has_one, needs_none, _)| has_one == needs_none);
        let unclear: Vec<_> = unclear.collect();
        assert!(unclear.is_empty(), "{unclear:?}");
    }
}
