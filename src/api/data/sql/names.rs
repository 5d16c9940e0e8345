//! The names of tables: built-in types by their ids in snake case, types that people made by their ids, and
//! by their names if these are not taken.

use std::collections::BTreeSet;
use std::sync::Arc;

use uuid::Uuid;

use crate::api::app::App;
use crate::api::problem::ApiError;
use crate::auth::tokens::Reader;
use crate::model::ids::PersonId;
use crate::model::registry::{Base, DataType, Registry, TypeId};
use crate::model::text::composed;

/// `HeartRate` as `heart_rate`; separators in a name become one underscore.
pub(super) fn snake(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    let letters: Vec<char> = name.chars().collect();
    for (place, letter) in letters.iter().enumerate() {
        let before = place.checked_sub(1).and_then(|before| letters.get(before));
        let after = letters.get(place + 1);
        let begins = letter.is_uppercase()
            && before.is_some_and(|before| {
                before.is_lowercase()
                    || before.is_ascii_digit()
                    || (before.is_uppercase() && after.is_some_and(|after| after.is_lowercase()))
            });
        if begins || (!letter.is_alphanumeric() && !snake.ends_with('_')) {
            snake.push('_');
        }
        if letter.is_alphanumeric() {
            snake.extend(letter.to_lowercase());
        }
    }
    snake.trim_matches('_').to_owned()
}

/// The built-in type of this name.
pub(super) fn built_in<'a>(registry: &'a Registry, name: &str) -> Option<&'a Arc<DataType>> {
    let by_snake = || {
        registry
            .types()
            .iter()
            .find(|known| snake(known.id.as_str()) == name)
    };
    registry.get(name).or_else(by_snake)
}

/// The id of the type of `owner` that a name stands for, whether or not the caller may see it. Of the types
/// that somebody else made, only those that are shared with the reader have names: what is not shared must
/// neither change what a name stands for nor be looked through.
pub(super) async fn resolve_name(
    app: &App,
    reader: &Reader,
    owner: PersonId,
    name: &str,
) -> Result<Option<TypeId>, ApiError> {
    if let Some(known) = built_in(app.types.registry(), name) {
        return Ok(Some(known.id.clone()));
    }
    if let Some(id) = TypeId::parse(name).filter(|id| id.definition().is_some()) {
        return Ok(Some(id));
    }
    if !reader.owns(owner) {
        let shared = own_types_shared(app, reader, owner).await?;
        return Ok(only_called(name, shared.iter()));
    }
    let own = app.types.all_own(owner).await?;
    Ok(only_called(name, own.live().map(|own| &own.data_type)))
}

/// The id of the only one of `types` that has this name, as it is or in snake case.
fn only_called<'a>(name: &str, types: impl Iterator<Item = &'a Arc<DataType>>) -> Option<TypeId> {
    let asked = composed(name);
    let mut named = types.filter(|data_type| {
        let called = composed(&data_type.name);
        called == asked || snake(&called) == asked
    });
    match (named.next(), named.next()) {
        (Some(only), None) => Some(only.id.clone()),
        _ => None,
    }
}

/// The types that `owner` made and shares with the reader. Only somebody with whom a whole base is shared has
/// the list of all of them read; those that are shared one by one are looked up one by one.
async fn own_types_shared(
    app: &App,
    reader: &Reader,
    owner: PersonId,
) -> Result<Vec<Arc<DataType>>, ApiError> {
    let opened = app.sharing.openings_for(reader.person()).await?.remove(&owner);
    let openings = opened.unwrap_or_default().openings;
    let is_shared = |id: &TypeId| openings.iter().any(|opening| opening.shows(id));
    if [Base::Event, Base::Metric]
        .iter()
        .any(|base| is_shared(&TypeId::new(base.as_str())))
    {
        let own = app.types.all_own(owner).await?;
        let live = own.live().map(|own| Arc::clone(&own.data_type));
        return Ok(live.filter(|data_type| is_shared(&data_type.id)).collect());
    }
    let named = openings
        .iter()
        .filter_map(|opening| opening.types.as_ref())
        .flatten();
    let named = named.filter(|id| Base::named(id.base()).is_some());
    let named: BTreeSet<Uuid> = named.filter_map(TypeId::definition).collect();
    let mut shared = Vec::with_capacity(named.len());
    for id in named {
        let own = app.types.own(owner, id).await?;
        let own = own.filter(|own| !own.definition.deprecated && is_shared(&own.data_type.id));
        shared.extend(own.map(|own| own.data_type));
    }
    Ok(shared)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_are_those_that_people_would_write() {
        for (id, name) in [
            ("HeartRate", "heart_rate"),
            ("StepCount", "step_count"),
            ("SleepStage", "sleep_stage"),
            ("CalendarEvent", "calendar_event"),
            ("VO2Max", "vo2_max"),
            ("HeartRateVariabilitySDNN", "heart_rate_variability_sdnn"),
            ("Cups of tea", "cups_of_tea"),
            ("  Éclairs/day ", "éclairs_day"),
        ] {
            assert_eq!(snake(id), name, "{id}");
        }
    }

    #[test]
    fn no_two_types_have_one_name() {
        let registry = Registry::builtin().unwrap();
        let names: HashSet<String> = registry
            .types()
            .iter()
            .map(|known| snake(known.id.as_str()))
            .collect();
        assert_eq!(names.len(), registry.types().len());
        for known in registry.types() {
            assert_eq!(
                built_in(&registry, &snake(known.id.as_str())).unwrap().id,
                known.id
            );
        }
    }
}
