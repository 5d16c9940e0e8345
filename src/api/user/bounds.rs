//! The ends of a time that is shared: members that may be absent, null or a moment.
//!
//! Knows how they are sent; knows nothing of what is shared.

use serde::{Deserialize, Deserializer};

use crate::model::faults::Fault;
use crate::model::time::{Instant, parse_instant};

/// A member that was sent, even if as null.
#[expect(
    clippy::option_option,
    reason = "absent, null and a value are three things to say"
)]
pub(super) fn sent<'de, D, T>(deserializer: D) -> Result<Option<Option<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::<T>::deserialize(deserializer).map(Some)
}

/// The moment that a bound names. A bound without an offset would mean another moment to the next reader.
#[expect(
    clippy::option_option,
    reason = "absent, null and a value are three things to say"
)]
pub(super) fn bound(
    faults: &mut Vec<Fault>,
    member: &str,
    sent: Option<Option<String>>,
) -> Option<Option<Instant>> {
    let Some(text) = sent? else {
        return Some(None);
    };
    let moment = match parse_instant(&text) {
        Ok(moment) if has_offset(&text) => return Some(Some(moment)),
        Ok(_) => "a bound needs an offset from UTC, such as 2024-01-24T00:00:00+01:00".to_owned(),
        Err(error) => error.to_string(),
    };
    faults.push(Fault::new(["body", member], "datetime_parsing", moment).with_value(text));
    None
}

/// Whether the text of an instant states its offset.
fn has_offset(text: &str) -> bool {
    let time = text.get(10..).unwrap_or_default();
    time.ends_with(['Z', 'z']) || time.contains(['+', '-'])
}
