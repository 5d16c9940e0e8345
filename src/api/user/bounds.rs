//! The ends of a time that is shared.
//!
//! Knows how they are spelt; knows nothing of what is shared.

use crate::model::faults::Fault;
use crate::model::time::{Instant, parse_instant};

/// The moment that a bound names. A bound without an offset would mean another moment to the next reader.
pub(super) fn bound(faults: &mut Vec<Fault>, member: &str, text: String) -> Option<Instant> {
    let wrong = match parse_instant(&text) {
        Ok(moment) if has_offset(&text) => return Some(moment),
        Ok(_) => "a bound needs an offset from UTC, such as 2024-01-24T00:00:00+01:00".to_owned(),
        Err(error) => error.to_string(),
    };
    faults.push(Fault::new(["body", member], "datetime_parsing", wrong).with_value(text));
    None
}

/// Whether the text of an instant states its offset.
fn has_offset(text: &str) -> bool {
    let time = text.get(10..).unwrap_or_default();
    time.ends_with(['Z', 'z']) || time.contains(['+', '-'])
}
