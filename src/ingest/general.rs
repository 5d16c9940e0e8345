//! Decodes a record's text to a row the complete way: every rule, every type, every fault with its place.
//!
//! Holds one record at a time. The fast way (`fast`) may take a shorter path to the same row, and comes here
//! whenever it meets anything unusual; only this module refuses records.

mod filling;
mod reading;
mod sources;
mod taking;
mod times;
mod validating;

use super::body::RecordPosition;
use super::columns::Cell;
use super::compile::CompiledType;
use super::context::DecodeContext;
use crate::model::faults::Fault;
use crate::model::ids::RecordId;
use crate::model::time::Instant;

pub(super) use filling::Repeatable;

use reading::Reading;
use sources::FoundSource;

/// The extras of a record may be this many times as long as one text.
const EXTRAS_FACTOR: usize = 2;

/// Most bytes of a record's extras.
pub(super) fn longest_extras(context: &DecodeContext) -> usize {
    context.text_limit.saturating_mul(EXTRAS_FACTOR)
}

/// A valid record, and what later records can reuse from it.
#[derive(Debug)]
pub(super) struct Complete<'a> {
    pub id: Option<RecordId>,
    pub start: Instant,
    pub end: Instant,
    /// Neither start nor end was sent.
    pub undated: bool,
    pub cells: Vec<Cell<'a>>,
    pub extras: Option<String>,
    pub source: FoundSource,
    pub repeatable: Vec<Repeatable<'a>>,
    /// Whether the source is determined by the source columns and the marks among extras.
    pub source_is_plain: bool,
}

/// Decodes the record `json`, which stands at `place`. `too_long_a_name`: the member in which its writer
/// gives itself one.
pub(super) fn decode<'a>(
    compiled: &CompiledType,
    context: &DecodeContext,
    place: RecordPosition,
    json: &'a [u8],
    too_long_a_name: Option<&'static str>,
) -> Result<Complete<'a>, Vec<Fault>> {
    let mut reading = Reading::of(compiled, context, place, json)?;
    reading.convert_unit();
    reading.stop_at_faults()?;
    reading.validate()?;
    let id = reading.id();
    let span = reading.times(context);
    let (cells, repeatable) = reading.cells();
    reading.hold_sources_to_length(too_long_a_name);
    let source = reading.source(context);
    reading.hold_value_to_limits(context, &source);
    let extras = std::mem::take(&mut reading.extras).into_text();
    let most = longest_extras(context);
    if extras.as_ref().is_some_and(|extras| extras.len() > most) {
        reading.fault_extras_too_long(most);
    }
    reading.stop_at_faults()?;
    let Some((start, end)) = span else {
        return Err(reading.faults);
    };
    Ok(Complete {
        id,
        start,
        end,
        undated: reading.undated,
        cells,
        extras,
        source_is_plain: reading.source_is_plain,
        source,
        repeatable,
    })
}
