//! In which units the values of a metric are told: as the question says, as the reader prefers, or as they
//! are kept.

use crate::api::app::App;
use crate::api::problem::{ApiError, invalid};
use crate::api::query_params::Params;
use crate::auth::tokens::Reader;
use crate::model::registry::{DataType, ReadColumn, ReadFrom};
use crate::model::units::{Conversion, UnitSystem};
use crate::people::preferences::Preferences;
use crate::people::types::Named;
use crate::query::Prepared;
use crate::query::filter::Condition;
use crate::query::series::Calculation;
use crate::query::units::{DisplayUnit, Holds};

/// The field in which records hold what is measured.
pub(super) const VALUE: &str = "value";
/// The column that names the unit of the one measure of an answer.
pub(super) const UNIT: &str = "unit";

/// `units`, where they are named.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted(Option<UnitSystem>);

impl Wanted {
    /// `Some` unless the name is unknown.
    pub(super) fn read(params: &mut Params<'_>) -> Option<Self> {
        let before = params.is_sent("units");
        let system = params.choice("units");
        (system.is_some() || !before).then_some(Self(system))
    }

    /// How the values of records are told, where all of them are in one unit. The conditions on them come
    /// with the parameter that they stand in.
    pub(super) async fn of_records(
        self,
        app: &App,
        reader: &Reader,
        named: &Named,
        (conditions, parameter): (&[Condition], &'static str),
    ) -> Result<Option<DisplayUnit>, ApiError> {
        let columns = &named.data_type.layout.read;
        let is_constant =
            |column: &ReadColumn| column.name == UNIT && matches!(column.from, ReadFrom::Constant(_));
        if !columns.iter().any(is_constant) {
            return Ok(None);
        }
        self.told(app, reader, &named.data_type, |_| {
            compares_values(conditions, parameter)
        })
        .await
    }

    /// How the values of a metric are told to `reader`. `hindrance`: what of the question cannot be answered
    /// in other units than those in which values are kept; whether zero is another zero there is told to it.
    /// Whoever names the units is refused then; whoever only prefers some gets them as they are kept. `None`:
    /// it has no unit.
    pub(super) async fn told(
        self,
        app: &App,
        reader: &Reader,
        data_type: &DataType,
        hindrance: impl Fn(bool) -> Option<(&'static str, &'static str)>,
    ) -> Result<Option<DisplayUnit>, ApiError> {
        let kept = data_type.metric.as_ref().and_then(|metric| metric.unit.clone());
        let Some(kept) = kept else { return Ok(None) };
        let units = app.types.registry().units();
        let shown = |system: UnitSystem| units.shown(system, &kept, data_type.id.as_str());
        let preferred = match self.0 {
            // Nobody is asked what they prefer where it makes no difference.
            None if UnitSystem::ALL.into_iter().any(|system| shown(system).is_some()) => {
                Preferences::of(&app.catalog, reader.person()).await?.units()
            }
            _ => None,
        };
        let as_kept = |beside: bool| DisplayUnit {
            unit: kept.clone(),
            conversion: None,
            beside,
        };
        let Some((unit, conversion)) = self.0.or(preferred).and_then(shown) else {
            return Ok(Some(as_kept(self.0.is_some())));
        };
        let moves_zero = matches!(conversion, Conversion::Linear { plus, .. } if plus != 0.0);
        match (hindrance(moves_zero), self.0) {
            (None, _) => Ok(Some(DisplayUnit {
                unit,
                conversion: Some(conversion),
                beside: true,
            })),
            (Some(_), None) => Ok(Some(as_kept(true))),
            (Some((parameter, what)), Some(_)) => Err(invalid(
                ["query", parameter],
                format!("{what} {kept}; leave units out, or name catalogue"),
            )),
        }
    }
}

/// Records with the units of their columns, and with the values in the column of that name told as asked.
pub(super) fn told_as(
    prepared: Prepared,
    named: &Named,
    told: Option<&DisplayUnit>,
) -> Result<Prepared, ApiError> {
    let prepared = prepared.with_units(&named.data_type.column_units());
    let Some(told) = told else { return Ok(prepared) };
    Ok(prepared.in_unit(told, &[(VALUE, Holds::Values)], UNIT)?)
}

/// Whether a condition compares values.
pub(super) fn compares_values(
    conditions: &[Condition],
    parameter: &'static str,
) -> Option<(&'static str, &'static str)> {
    let is_value = |condition: &Condition| condition.field == VALUE;
    conditions
        .iter()
        .any(is_value)
        .then_some((parameter, "a filter compares values as they are kept, in"))
}

/// What a column of a series holds of the metric, if anything.
pub(super) const fn held_by(calculation: Calculation) -> Option<Holds> {
    match calculation {
        Calculation::Count => None,
        Calculation::Delta | Calculation::Std | Calculation::Sum => Some(Holds::Differences),
        Calculation::Max
        | Calculation::Min
        | Calculation::Mean
        | Calculation::Uniques
        | Calculation::AllPoints
        | Calculation::RollingMean
        | Calculation::First
        | Calculation::Last
        | Calculation::Median
        | Calculation::Percentile(_) => Some(Holds::Values),
    }
}
