//! Updates of both sources in one shape: the device's, with a column that says which kind each row is.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::common::{Result, ScalarValue, internal_datafusion_err};
use datafusion::physical_plan::union::UnionExec;
use datafusion::prelude::lit;

use crate::model::registry::timestamp;
use crate::model::time::TimeRange;
use crate::query::ground::computed::{Columns, projected};
use crate::query::ground::partitions_in_turn::merged;
use crate::query::operator::{Plan, ascending, known_order};
use crate::query::paging::RowKey;
use crate::query::shape::IdForm;
use crate::query::{Prepared, QueryError, Questions, ReadState, Scope};

use super::location_source::LocationSource;
use super::pinned::{Granted, Pinned, PinnedSource, with_rows};
use super::raw::{RawSpec, columns};

/// The columns of an update of the device.
pub const UPDATE_COLUMNS: &[&str] = &[
    "uuid",
    "timestamp",
    "latitude_degrees",
    "longitude_degrees",
    "horizontal_accuracy_meters",
    "vertical_accuracy_meters",
    "altitude_meters",
    "ellipsoidal_altitude_meters",
    "speed",
    "speed_accuracy_meters",
    "course_heading_degrees",
    "course_heading_accuracy_degrees",
    "floor",
    "source_is_simulated_by_software",
    "source_is_produced_by_accessory",
];

/// The columns of an update from a maps provider.
pub const MAPS_COLUMNS: &[&str] = &[
    "uuid",
    "timestamp",
    "latitude_degrees",
    "longitude_degrees",
    "horizontal_accuracy_meters",
    "source_id",
    "extras",
];

pub(super) const LOCATION_SOURCE: &str = "location_source";

/// The columns that locate a row of both kinds.
pub const UPDATES_KEY: RowKey = RowKey {
    kind: Some((
        LOCATION_SOURCE,
        &[LocationSource::MobileOs.kind(), LocationSource::Maps.kind()],
    )),
    ..UPDATE_KEY
};
/// The columns that locate a row of one kind.
pub const UPDATE_KEY: RowKey = RowKey {
    start: "timestamp",
    end: None,
    id: Some("uuid"),
    kind: None,
};

/// The columns of a device's update with their types, to fill in those that another source lacks.
fn kinds() -> impl Iterator<Item = (&'static str, ArrowType)> {
    UPDATE_COLUMNS.iter().map(|name| {
        let kind = match *name {
            "floor" => ArrowType::Int64,
            "source_is_simulated_by_software" | "source_is_produced_by_accessory" => ArrowType::Boolean,
            "timestamp" => timestamp(),
            "uuid" => ArrowType::Utf8,
            _ => ArrowType::Float64,
        };
        (*name, kind)
    })
}

/// One source with its updates.
#[derive(Debug)]
pub struct Updates<Authority> {
    pub source: LocationSource,
    pub granted: Granted<Authority>,
}

pub(super) fn scope_of<Authority>(
    sources: &[Updates<Authority>],
    visits: Option<&Granted<Authority>>,
) -> Scope {
    let granted = sources.iter().map(|updates| &updates.granted).chain(visits);
    Scope::of(granted.map(|granted| &granted.permit))
}

type PinnedPlaces<'a, Authority> = (
    Vec<PinnedSource<'a, Authority>>,
    Option<Pinned<'a, Authority>>,
    Vec<ReadState>,
);

impl<Authority> Questions<Authority> {
    /// The updates of all `sources`, by time.
    pub async fn location_updates(
        &self,
        sources: &[Updates<Authority>],
        ids: IdForm,
    ) -> Result<Prepared, QueryError> {
        let (pinned, _, states) = self.pinned_with_visits(sources, None).await?;
        let plan = self.update_rows(&pinned, ids)?;
        Ok(Prepared::of(plan, states, scope_of(sources, None)))
    }

    /// Updates and visits as of one moment, and their states.
    pub(super) async fn pinned_with_visits<'a>(
        &self,
        sources: &'a [Updates<Authority>],
        visits: Option<&'a Granted<Authority>>,
    ) -> Result<PinnedPlaces<'a, Authority>, QueryError> {
        let granted: Vec<&Granted<Authority>> = sources
            .iter()
            .map(|updates| &updates.granted)
            .chain(visits)
            .collect();
        let mut pinned = self.pinned(&granted).await?;
        let states = pinned.iter().map(Pinned::state).collect();
        let visits = visits.and_then(|_| pinned.pop());
        Ok((
            sources.iter().map(|updates| updates.source).zip(pinned).collect(),
            visits,
            states,
        ))
    }

    fn update_rows(&self, sources: &[PinnedSource<'_, Authority>], ids: IdForm) -> Result<Plan, QueryError> {
        let mut plans = Vec::with_capacity(sources.len());
        for (source, pinned) in with_rows(sources, None) {
            let (rows, shown) = self.stored_updates(*source, pinned, ids, None)?;
            plans.push(projected(rows, shown)?);
        }
        if plans.len() == 1 {
            return Ok(plans.remove(0));
        }
        let order = plans
            .first()
            .and_then(|plan| ascending(&plan.schema(), &["timestamp", "uuid"]))
            .ok_or_else(|| internal_datafusion_err!("an order has keys"))?;
        // An update ends when it starts, and ids as text sort like ids.
        let sorted = plans.into_iter().map(|plan| known_order(plan, order.clone()));
        let union = UnionExec::try_new(sorted.collect::<Result<_>>()?)?;
        Ok(Arc::new(merged(order, union)))
    }

    /// The updates of one source in stored form, and the expressions that show them in the columns of a
    /// device's update: null where the source has none, with the kind of the row.
    pub(super) fn stored_updates(
        &self,
        source: LocationSource,
        pinned: &Pinned<'_, Authority>,
        ids: IdForm,
        wanted: Option<TimeRange>,
    ) -> Result<(Plan, Columns), QueryError> {
        let spec = RawSpec {
            columns: match source {
                LocationSource::MobileOs => UPDATE_COLUMNS.to_vec(),
                LocationSource::Maps => MAPS_COLUMNS.to_vec(),
            },
            only: None,
            ids,
        };
        let rows = self.chosen(pinned, &spec, wanted)?;
        let Granted { permit, partition } = pinned.granted;
        let mut own = columns(&rows.schema(), permit, partition, &spec)?;
        let mut shown = Vec::with_capacity(UPDATE_COLUMNS.len() + 1);
        for (name, holds) in kinds() {
            let column = own.iter().position(|(_, own)| own == name);
            shown.push(match column {
                Some(column) => own.swap_remove(column),
                None => (lit(ScalarValue::try_from(&holds)?), name.to_owned()),
            });
        }
        let kind = ScalarValue::from(source.kind());
        let kind = ScalarValue::Dictionary(Box::new(ArrowType::Int32), Box::new(kind));
        shown.push((lit(kind), LOCATION_SOURCE.to_owned()));
        Ok((rows, shown))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::registry::Registry;

    #[test]
    fn rule_4_5_the_one_shape_is_that_of_the_devices_updates() {
        let registry = Registry::builtin().unwrap();
        let storage = &registry
            .get(super::super::PLATFORM_UPDATES)
            .unwrap()
            .layout
            .storage;
        for (name, kind) in kinds().filter(|(name, _)| !["uuid", "timestamp"].contains(name)) {
            assert_eq!(
                storage.field_with_name(name).unwrap().data_type(),
                &kind,
                "{name}"
            );
        }
    }
}
