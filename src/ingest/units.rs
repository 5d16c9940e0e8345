//! Decides whether a converted value keeps its original.

use crate::model::units::Conversion;

/// Whether a conversion changed what was sent, so that the original is worth keeping. Another spelling of the
/// catalogue's unit changes nothing.
pub(super) fn leaves_original(conversion: Conversion, value: f64, converted: f64) -> bool {
    match conversion {
        Conversion::Same => false,
        Conversion::Linear { .. } | Conversion::Codes(_) => true,
        Conversion::FractionUpTo { .. } => value.to_bits() != converted.to_bits(),
    }
}
