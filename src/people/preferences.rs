//! What a person prefers: their zone, what they pinned, and which of their sources they trust most.
//!
//! Stored as one JSON object in the catalogue. A change names what it changes; the rest stays. Stored
//! preferences were checked, so readers need not check again. Knows the catalogue and the types, own and
//! shared; knows nothing of HTTP.

mod errors;
mod fields;
mod known_sources;
mod named_types;
mod names;
mod order;

use std::collections::HashSet;

use serde_json::{Map, Value};
use uuid::Uuid;

use crate::catalog::Catalog;
use crate::model::faults::{Fault, LocPart, MOST_FAULTS, first_of};
use crate::model::ids::PersonId;
use crate::model::registry::{RecordClass, TypeId};
use crate::model::stored_json;
use crate::model::units::UnitSystem;
use crate::model::zone::Zone;

use super::attempts::repeat_while_overtaken;
use super::condition::Condition;

pub use errors::PreferencesError;
pub use known_sources::{KnownSources, SourcesByRecency};
pub use named_types::KnownTypes;
pub use order::{SourceOrder, SourcePlace};

use named_types::NamedTypes;
use names::{INSIGHT_TARGETS, SOURCE_ORDER, TIME_ZONE, UNITS};

/// The most bytes of a person's preferences.
const MOST_BYTES: usize = 256 * 1024;

/// The preferences of one person, as they were when they were read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Preferences(Map<String, Value>);

impl Preferences {
    /// The preferences of `person`; empty if they never set any.
    pub async fn of(catalog: &Catalog, person: PersonId) -> Result<Self, PreferencesError> {
        let stored = catalog.person(person).await?.and_then(|known| known.preferences);
        stored.map_or_else(|| Ok(Self::default()), |text| Self::read(person, &text))
    }

    /// Changes what `body` names: a value replaces the old one, null clears it, and what is not named stays.
    /// Returns the resulting preferences.
    pub async fn change(
        catalog: &Catalog,
        known: KnownTypes<'_>,
        person: PersonId,
        body: &Value,
        condition: &Condition,
    ) -> Result<Self, PreferencesError> {
        let held = Self::of(catalog, person).await?;
        let changes = checked(known, person, body, &held).await?;
        catalog.ensure_person(person, None).await?;
        repeat_while_overtaken(|| async {
            let before = catalog.person(person).await?.and_then(|known| known.preferences);
            condition.hold().await?;
            let held = before
                .as_deref()
                .map_or_else(|| Ok(Self::default()), |text| Self::read(person, text))?;
            let after = held.with(&changes);
            let text = Value::Object(after.0.clone()).to_string();
            if text.len() > MOST_BYTES {
                return Err(PreferencesError::Invalid(vec![too_long(text.len())]));
            }
            if catalog.swap_preferences(person, before.as_deref(), &text).await? {
                Ok(after)
            } else {
                Err(PreferencesError::Overtaken)
            }
        })
        .await
    }

    /// The preferences by their names on the wire.
    #[must_use]
    pub const fn members(&self) -> &Map<String, Value> {
        &self.0
    }

    #[must_use]
    pub fn time_zone(&self) -> Option<Zone> {
        self.0
            .get(TIME_ZONE)
            .and_then(Value::as_str)
            .and_then(Zone::parse)
    }

    /// The units in which the person wants to see values, if they chose any.
    #[must_use]
    pub fn units(&self) -> Option<UnitSystem> {
        self.0.get(UNITS)?.as_str()?.parse().ok()
    }

    /// The person's target of this name, such as `daily_steps`, if they set one.
    #[must_use]
    pub fn target(&self, name: &str) -> Option<f64> {
        self.0.get(INSIGHT_TARGETS)?.get(name)?.as_f64()
    }

    /// The person's order of the sources of a metric, best first.
    #[must_use]
    pub fn chosen_sources(&self, metric: &TypeId) -> Vec<Uuid> {
        let listed = self
            .0
            .get(SOURCE_ORDER)
            .and_then(|orders| orders.get(metric.as_str()));
        let ids = listed.and_then(Value::as_array).into_iter().flatten();
        ids.filter_map(|id| Uuid::parse_str(id.as_str()?).ok()).collect()
    }

    /// The metrics whose sources the person ordered.
    fn ordered_metrics(&self) -> Vec<TypeId> {
        let orders = self.0.get(SOURCE_ORDER).and_then(Value::as_object);
        let names = orders.into_iter().flat_map(Map::keys);
        names.filter_map(|name| TypeId::parse(name)).collect()
    }

    /// Refuses preferences from elsewhere whose form the interface would not accept. It does not check
    /// whether the types that they name exist: stored preferences may name one that is gone.
    pub fn judge(members: &Map<String, Value>) -> Result<(), Vec<Fault>> {
        let length = Value::Object(members.clone()).to_string().len();
        if length > MOST_BYTES {
            return Err(vec![too_long(length)]);
        }
        let faults = first_of(fields::faults_of(members), "body");
        if faults.is_empty() { Ok(()) } else { Err(faults) }
    }

    fn read(person: PersonId, text: &str) -> Result<Self, PreferencesError> {
        stored_json::read(text)
            .map(Self)
            .map_err(|error| PreferencesError::Damaged {
                person,
                reason: error.to_string(),
            })
    }

    fn with(mut self, changes: &Map<String, Value>) -> Self {
        for (name, value) in changes {
            if value.is_null() {
                self.0.shift_remove(name);
            } else {
                self.0.insert(name.clone(), value.clone());
            }
        }
        self
    }
}

fn too_long(length: usize) -> Fault {
    let message = format!("preferences may be {MOST_BYTES} bytes long, these would be {length}");
    Fault::new(["body"], "too_long", message)
}

/// The members of `body` if all of them are valid, with types replaced by their ids. Types that are `held`
/// already are not looked up again.
async fn checked(
    known: KnownTypes<'_>,
    person: PersonId,
    body: &Value,
    held: &Preferences,
) -> Result<Map<String, Value>, PreferencesError> {
    let Value::Object(members) = body else {
        let fault = Fault::new(["body"], "dict_type", "preferences are a JSON object");
        return Err(PreferencesError::Invalid(vec![fault]));
    };
    // What is too long to be kept, whatever else it has, is not examined: that takes long.
    let kept = members.values().filter(|value| !value.is_null());
    let length: usize = kept.map(|value| value.to_string().len()).sum();
    if length > MOST_BYTES {
        return Err(PreferencesError::Invalid(vec![too_long(length)]));
    }
    let faults = fields::faults_of(members);
    if !faults.is_empty() {
        return Err(PreferencesError::Invalid(first_of(faults, "body")));
    }
    let mut changes = members.clone();
    fields::write_whole(&mut changes);
    let mut named = NamedTypes::of(known, person, held.ordered_metrics());
    let mut faults = unknown_selections(&mut named, members, held).await?;
    if let Some(Value::Object(orders)) = members.get(SOURCE_ORDER) {
        let by_id = orders_by_id(&mut named, orders, &mut faults).await?;
        changes.insert(SOURCE_ORDER.to_owned(), Value::Object(by_id));
    }
    if faults.is_empty() {
        Ok(changes)
    } else {
        Err(PreferencesError::Invalid(first_of(faults, "body")))
    }
}

/// The faults of the types that `members` select and that are not selected already.
async fn unknown_selections(
    named: &mut NamedTypes<'_>,
    members: &Map<String, Value>,
    held: &Preferences,
) -> Result<Vec<Fault>, PreferencesError> {
    let selected = fields::selected_types(&held.0).into_iter();
    let selected: HashSet<&str> = selected.map(|(_, name)| name).collect();
    let mut faults = Vec::new();
    for (loc, name) in fields::selected_types(members) {
        if faults.len() >= MOST_FAULTS {
            break;
        }
        if !selected.contains(name) {
            faults.extend(named.find(name, loc).await?.err());
        }
    }
    Ok(faults)
}

/// The orders of sources by the ids of the metrics that they are for.
async fn orders_by_id(
    named: &mut NamedTypes<'_>,
    orders: &Map<String, Value>,
    faults: &mut Vec<Fault>,
) -> Result<Map<String, Value>, PreferencesError> {
    let mut by_id = Map::new();
    for (name, sources) in orders {
        if faults.len() >= MOST_FAULTS {
            break;
        }
        let loc: Vec<LocPart> = vec!["body".into(), SOURCE_ORDER.into(), name.as_str().into()];
        let wrong = |loc: Vec<LocPart>, message: String| Fault::new(loc, "value_error", message);
        match named.find(name, loc.clone()).await? {
            Ok((id, RecordClass::Metric)) if by_id.contains_key(id.as_str()) => {
                faults.push(wrong(loc, format!("{id} is ordered twice")));
            }
            Ok((id, RecordClass::Metric)) => {
                by_id.insert(id.as_str().to_owned(), sources.clone());
            }
            Ok((id, _)) => {
                let message = format!("{id} is not a metric; only metrics have an order of sources");
                faults.push(wrong(loc, message));
            }
            Err(fault) => faults.push(fault),
        }
    }
    Ok(by_id)
}
