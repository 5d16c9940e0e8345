//! The names of tables: built-in types by their ids in snake case, own types by their ids, and by their names
//! if these are not taken.

use std::sync::Arc;

use crate::api::app::App;
use crate::model::ids::PersonId;
use crate::model::registry::{DataType, Registry, TypeId};
use crate::model::text::composed;
use crate::people::types::TypesError;

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

/// The id of the type of `owner` that a name stands for, whether or not the caller may see it.
pub(super) async fn resolve_name(
    app: &App,
    owner: PersonId,
    name: &str,
) -> Result<Option<TypeId>, TypesError> {
    if let Some(known) = built_in(app.types.registry(), name) {
        return Ok(Some(known.id.clone()));
    }
    if let Some(id) = TypeId::parse(name).filter(|id| id.definition().is_some()) {
        return Ok(Some(id));
    }
    let own = app.types.all_own(owner).await?;
    let asked = composed(name);
    let mut named = own.live().filter(|own| {
        let called = composed(&own.data_type.name);
        called == asked || snake(&called) == asked
    });
    match (named.next(), named.next()) {
        (Some(only), None) => Ok(Some(only.data_type.id.clone())),
        _ => Ok(None),
    }
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
