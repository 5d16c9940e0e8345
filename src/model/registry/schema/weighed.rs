//! Patterns of own schemas, with a limit on what they may cost in one text.
//!
//! The engine takes a step for each byte of a text and each state of a pattern at worst, and a text may be as
//! long as a body. A text that a pattern would take too long for is not simply invalid: behind `not` it would
//! be valid. So the check as a whole has no answer ([`weighing`]). Knows schemas only.

use std::cell::Cell;

use jsonschema::{Keyword, ValidationError, ValidationOptions, Validator};
use serde_json::{Value, json};

use super::{PATTERN_BYTES, linear_patterns};
use crate::model::weighed_pattern::{CostlyText, FEW_STEPS, number_of_states};

/// The most states of a pattern that only the engine of schemas understands: fewer than it has bytes.
const MOST_STATES: u64 = PATTERN_BYTES as u64;

thread_local! {
    /// Set where the current check met a text that is too long for a pattern.
    static MET: Cell<Option<CostlyText>> = const { Cell::new(None) };
}

/// The answer of `check`, unless a weighed pattern met a text that it is too costly for.
pub fn weighing<T>(check: impl FnOnce() -> T) -> Result<T, CostlyText> {
    MET.set(None);
    let answer = check();
    MET.take().map_or(Ok(answer), Err)
}

/// Options under which patterns are weighed, of which a value meets `met` at most.
#[must_use]
pub fn with_weighed_patterns(options: ValidationOptions<'_>, met: u64) -> ValidationOptions<'_> {
    let most = FEW_STEPS / met.max(1);
    options.with_keyword("pattern", move |_, pattern, _| {
        Ok(Box::new(PatternKeyword::new(pattern, most)?))
    })
}

/// The keyword `pattern`.
struct PatternKeyword {
    states: u64,
    most: u64,
    /// Checks the pattern and nothing else.
    checked: Validator,
}

impl PatternKeyword {
    fn new(pattern: &Value, most: u64) -> Result<Self, ValidationError<'static>> {
        let checked = jsonschema::draft202012::options()
            .with_pattern_options(linear_patterns())
            .build(&json!({"pattern": pattern}))?;
        Ok(Self {
            states: states(pattern.as_str().unwrap_or_default()),
            most,
            checked,
        })
    }

    /// Whether a text is too long, or another one was.
    fn is_too_costly(&self, value: &Value) -> bool {
        let bytes = value.as_str().map_or(0, str::len);
        if self.states.saturating_mul(bytes as u64) > self.most {
            MET.set(Some(CostlyText { bytes }));
        }
        MET.get().is_some()
    }
}

impl<'v> Keyword<'v> for PatternKeyword {
    fn validate(&self, value: &'v Value) -> Result<(), ValidationError<'v>> {
        if self.is_too_costly(value) {
            return Err(ValidationError::custom("a pattern is too costly for the text"));
        }
        self.checked.validate(value)
    }

    fn is_valid(&self, value: &'v Value) -> bool {
        !self.is_too_costly(value) && self.checked.is_valid(value)
    }
}

fn states(pattern: &str) -> u64 {
    number_of_states(pattern).unwrap_or(MOST_STATES)
}

/// The patterns of a schema that check the names of members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PatternsOfNames {
    /// The most states that a name meets, with the patterns it meets several times.
    states: u64,
}

impl PatternsOfNames {
    /// `checks`: how often one value may be checked.
    #[must_use]
    pub fn of(schema: &Value, checks: u64) -> Self {
        Self {
            states: largest_of_names(schema).saturating_mul(checks),
        }
    }

    /// Refuses a record with a name that is too long for the patterns.
    pub fn weigh(self, record: &Value) -> Result<(), CostlyText> {
        if self.states == 0 {
            return Ok(());
        }
        let bytes = longest_name(record);
        if self.states.saturating_mul(bytes as u64) > FEW_STEPS {
            return Err(CostlyText { bytes });
        }
        Ok(())
    }
}

/// The most states of one pattern of names, wherever it stands.
fn largest_of_names(schema: &Value) -> u64 {
    let below = |values: &mut dyn Iterator<Item = &Value>| values.map(largest_of_names).max();
    match schema {
        Value::Object(keywords) => {
            let named = keywords.get("patternProperties").and_then(Value::as_object);
            let here = named.and_then(|named| named.keys().map(|pattern| states(pattern)).max());
            here.max(below(&mut keywords.values())).unwrap_or_default()
        }
        Value::Array(values) => below(&mut values.iter()).unwrap_or_default(),
        _ => 0,
    }
}

fn longest_name(value: &Value) -> usize {
    match value {
        Value::Object(members) => {
            let lengths = members
                .iter()
                .map(|(name, value)| name.len().max(longest_name(value)));
            lengths.max().unwrap_or_default()
        }
        Value::Array(values) => values.iter().map(longest_name).max().unwrap_or_default(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn validator(schema: &Value, met: u64) -> Validator {
        let options = jsonschema::draft202012::options().with_pattern_options(linear_patterns());
        with_weighed_patterns(options, met).build(schema).unwrap()
    }

    #[test]
    fn what_a_pattern_is_too_costly_for_is_neither_valid_nor_invalid() {
        let pattern = json!({"pattern": "[ab]*a[ab]{400}c"});
        for schema in [
            pattern.clone(),
            json!({"not": pattern}),
            json!({"anyOf": [pattern, true]}),
            json!({"propertyNames": pattern}),
        ] {
            let validator = validator(&schema, 1);
            let text = |bytes: usize| "ab".repeat(bytes / 2);
            let (long, short) = if schema.get("propertyNames").is_some() {
                (json!({text(1 << 20): 1}), json!({text(1 << 10): 1}))
            } else {
                (json!(text(1 << 20)), json!(text(1 << 10)))
            };
            let costly = weighing(|| validator.is_valid(&long));
            assert_eq!(costly, Err(CostlyText { bytes: 1 << 20 }), "{schema}");
            assert!(weighing(|| validator.is_valid(&short)).is_ok(), "{schema}");
        }
    }

    #[test]
    fn a_weighed_pattern_says_what_any_says() {
        let schema = json!({"properties": {"a": {"pattern": "^\\d{3}$"}}});
        let weighed = validator(&schema, 1);
        let usual = jsonschema::draft202012::options()
            .with_pattern_options(linear_patterns())
            .build(&schema)
            .unwrap();
        for record in [
            json!({"a": "123"}),
            json!({"a": "12"}),
            json!({"a": 5}),
            json!({}),
        ] {
            assert_eq!(
                weighing(|| weighed.is_valid(&record)),
                Ok(usual.is_valid(&record)),
                "{record}"
            );
            let said = |validator: &Validator| -> Vec<String> {
                let errors = validator.iter_errors(&record);
                errors
                    .map(|error| format!("{} {error}", error.instance_path()))
                    .collect()
            };
            assert_eq!(said(&weighed), said(&usual), "{record}");
        }
    }

    #[test]
    fn names_are_weighed_where_patterns_check_them() {
        let schema = json!({"properties": {"a": {"patternProperties": {"[ab]*a[ab]{400}c": {}}}}});
        let names = PatternsOfNames::of(&schema, 1);
        assert_eq!(names.weigh(&json!({"a": {"b".repeat(1_000): 1}})), Ok(()));
        let bytes = 1 << 20;
        let long = json!({"a": [{"b".repeat(bytes): 1}]});
        assert_eq!(names.weigh(&long), Err(CostlyText { bytes }));
        let none = PatternsOfNames::of(&json!({"properties": {"a": {"pattern": "a"}}}), 1);
        assert_eq!(none, PatternsOfNames::default());
        assert_eq!(none.weigh(&long), Ok(()));
    }
}
