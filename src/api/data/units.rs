//! The units in which the values of a metric are shown: those that the question names, those that the reader
//! prefers, or those in which they are stored.

use crate::api::app::App;
use crate::api::problem::{ApiError, invalid};
use crate::api::query_params::Params;
use crate::auth::tokens::Reader;
use crate::model::columns::{UNIT, VALUE};
use crate::model::registry::{DataType, ReadColumn, ReadFrom};
use crate::model::units::{Conversion, UnitSystem};
use crate::people::preferences::Preferences;
use crate::people::types::ResolvedType;
use crate::query::Prepared;
use crate::query::filter::Condition;
use crate::query::series::Calculation;
use crate::query::units::{DisplayUnit, UnitRole};

/// What of a question rules out units other than the stored ones.
#[derive(Clone, Copy, Debug)]
pub(super) enum UnitHindrance {
    /// A filter compares values.
    FilteredValues,
    /// A filter compares the unit.
    FilteredUnit,
    /// Records are grouped by their values.
    GroupedValues,
    /// Values are summed up, and the zeros of the two units differ.
    Sums,
    /// Nulls become 0, and the zeros of the two units differ.
    ReplacedNulls,
}

impl UnitHindrance {
    /// Why values that are kept in one unit cannot be shown in another.
    fn message(self, kept: &str, shown: &str) -> String {
        let why = match self {
            Self::FilteredValues => format!("a filter compares values as they are kept, in {kept}"),
            Self::FilteredUnit => format!("a filter compares the unit in which values are kept, {kept}"),
            Self::GroupedValues => format!("groups by value are of values as they are kept, in {kept}"),
            Self::Sums => {
                format!("a sum cannot be converted to {shown}, because the zeros of the two units differ")
            }
            Self::ReplacedNulls => format!("what replaces nulls is 0 {kept}, which is not 0 {shown}"),
        };
        format!("{why}; leave units out, or name catalogue")
    }
}

/// The unit system of `units`, if one is named.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestedUnits(Option<UnitSystem>);

impl RequestedUnits {
    /// `Some` unless the name is unknown.
    pub(super) fn read(params: &mut Params<'_>) -> Option<Self> {
        let before = params.is_sent("units");
        let system = params.choice("units");
        (system.is_some() || !before).then_some(Self(system))
    }

    /// Records in the units that are asked for, and the unit of their values, which shapes the answer. The
    /// conditions that select the records come with the parameter that they are given in.
    pub(super) async fn show_records(
        self,
        app: &App,
        reader: &Reader,
        resolved: &ResolvedType,
        selected: (&[Condition], &'static str),
        prepared: Prepared,
    ) -> Result<(Prepared, Option<DisplayUnit>), ApiError> {
        let unit = self.of_records(app, reader, resolved, selected).await?;
        let prepared = in_display_unit(prepared, resolved, unit.as_ref())?;
        Ok((prepared, unit))
    }

    /// The unit in which the values of records are shown, if all of them have the same unit. The conditions
    /// come with the parameter that they are given in.
    async fn of_records(
        self,
        app: &App,
        reader: &Reader,
        resolved: &ResolvedType,
        (conditions, parameter): (&[Condition], &'static str),
    ) -> Result<Option<DisplayUnit>, ApiError> {
        let columns = &resolved.data_type.layout.read;
        let is_constant =
            |column: &ReadColumn| column.name == UNIT && matches!(column.from, ReadFrom::Constant(_));
        if !columns.iter().any(is_constant) {
            return Ok(None);
        }
        self.display_unit(app, reader, &resolved.data_type, |_| {
            compares_measures(conditions, parameter)
        })
        .await
    }

    /// The unit in which the values of a metric are shown to `reader`. `hindrance` says which part of the
    /// question rules out units other than the stored ones, and the parameter that it comes from; it is told
    /// whether the conversion moves zero. A question that names the units is then refused; one from a reader
    /// who only prefers them gets the stored units. `None`: the metric has no unit.
    pub(super) async fn display_unit(
        self,
        app: &App,
        reader: &Reader,
        data_type: &DataType,
        hindrance: impl Fn(bool) -> Option<(&'static str, UnitHindrance)>,
    ) -> Result<Option<DisplayUnit>, ApiError> {
        let stored = data_type.metric.as_ref().and_then(|metric| metric.unit.clone());
        let Some(stored) = stored else { return Ok(None) };
        let units = app.types.registry().units();
        let shown = |system: UnitSystem| units.shown(system, &stored, data_type.id.as_str());
        let preferred = match self.0 {
            // Preferences are only read where they make a difference.
            None if UnitSystem::ALL.into_iter().any(|system| shown(system).is_some()) => {
                Preferences::of(&app.catalog, reader.person()).await?.units()
            }
            _ => None,
        };
        let as_stored = |beside: bool| DisplayUnit {
            unit: stored.clone(),
            conversion: None,
            beside,
        };
        let Some((unit, conversion)) = self.0.or(preferred).and_then(shown) else {
            return Ok(Some(as_stored(self.0.is_some())));
        };
        let moves_zero = matches!(conversion, Conversion::Linear { plus, .. } if plus != 0.0);
        match (hindrance(moves_zero), self.0) {
            (None, _) => Ok(Some(DisplayUnit {
                unit,
                conversion: Some(conversion),
                beside: true,
            })),
            (Some(_), None) => Ok(Some(as_stored(true))),
            (Some((parameter, hindrance)), Some(_)) => {
                Err(invalid(["query", parameter], hindrance.message(&stored, &unit)))
            }
        }
    }
}

/// Records with the units of their columns, and with the values of the value column converted to `unit`.
fn in_display_unit(
    prepared: Prepared,
    resolved: &ResolvedType,
    unit: Option<&DisplayUnit>,
) -> Result<Prepared, ApiError> {
    let prepared = prepared.with_units(&resolved.data_type.column_units());
    let Some(unit) = unit else { return Ok(prepared) };
    Ok(prepared.in_unit(unit, &[(VALUE, UnitRole::Values)], UNIT)?)
}

/// Whether a condition compares values or their unit.
pub(super) fn compares_measures(
    conditions: &[Condition],
    parameter: &'static str,
) -> Option<(&'static str, UnitHindrance)> {
    let hindrance = conditions
        .iter()
        .find_map(|condition| match condition.field.as_str() {
            VALUE => Some(UnitHindrance::FilteredValues),
            UNIT => Some(UnitHindrance::FilteredUnit),
            _ => None,
        })?;
    Some((parameter, hindrance))
}

/// What a column of a series holds of the metric, if anything.
pub(super) const fn held_by(calculation: Calculation) -> Option<UnitRole> {
    match calculation {
        Calculation::Count => None,
        Calculation::Delta | Calculation::Std | Calculation::Sum => Some(UnitRole::Differences),
        Calculation::Max
        | Calculation::Min
        | Calculation::Mean
        | Calculation::Uniques
        | Calculation::AllPoints
        | Calculation::RollingMean
        | Calculation::First
        | Calculation::Last
        | Calculation::Median
        | Calculation::Percentile(_) => Some(UnitRole::Values),
    }
}
