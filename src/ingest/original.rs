//! A value as it was before its unit was converted, where it comes back with a row that was read.
//!
//! Whoever reads a row may see its value in another unit than the type's: that value was converted twice, and
//! the original says better what it was. Knows units; knows nothing of records.

use super::compile::CompiledType;
use super::extras::{ORIGINAL_UNIT, ORIGINAL_VALUE};
use super::json;
use crate::model::units::{Conversion, is_same_quantity};

/// A value, and the unit in which it was sent.
#[derive(Debug)]
pub(super) struct Original {
    pub(super) value: f64,
    pub(super) unit: String,
}

/// What extras say of an original.
#[derive(Debug)]
pub(super) enum SaidOriginal {
    Nothing,
    All(Original),
    /// Only its value or only its unit, or something else in their place.
    Part,
}

impl SaidOriginal {
    /// What these members of extras say, each a name and JSON.
    pub(super) fn among<'m>(members: impl Iterator<Item = (&'m str, &'m str)>) -> Self {
        let (mut value, mut unit) = (None, None);
        for (name, raw) in members {
            match name {
                ORIGINAL_VALUE => value = Some(raw),
                ORIGINAL_UNIT => unit = Some(raw),
                _ => {}
            }
        }
        if value.is_none() && unit.is_none() {
            return Self::Nothing;
        }
        let value = value.and_then(|raw| serde_json::from_str(raw).ok());
        match (value, unit.and_then(json::text)) {
            (Some(value), Some(unit)) => Self::All(Original {
                value,
                unit: unit.into_owned(),
            }),
            _ => Self::Part,
        }
    }
}

impl Original {
    /// This value in the type's unit, if it is the quantity that `conversion` has made `converted`.
    pub(super) fn in_own_unit(
        &self,
        compiled: &CompiledType,
        converted: f64,
        conversion: Conversion,
    ) -> Option<f64> {
        let traits = compiled.data_type.metric.as_ref()?;
        let of_original = compiled
            .units()
            .conversion(&self.unit, traits, compiled.data_type.id.as_str())
            .ok()?;
        let value = of_original.apply(self.value);
        let between_zeros = of_original.offset().abs().max(conversion.offset().abs());
        is_same_quantity(value, converted, between_zeros).then_some(value)
    }
}
