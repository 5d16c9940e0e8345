//! The names of the preferences that the service itself reads, as they are sent and stored. Knows nothing of
//! their values.

pub(super) const TIME_ZONE: &str = "timezone";
pub(super) const SOURCE_ORDER: &str = "source_order";
pub(super) const INSIGHT_TARGETS: &str = "insight_targets";
pub(super) const UNITS: &str = "units";
