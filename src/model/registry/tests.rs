//! The built-in types as a whole: what the tables promise, every type keeps.

mod definitions;
mod layouts;

use std::collections::HashSet;

use serde_json::{Value, json};

use super::schema::compile;
use super::*;
use crate::model::ids::PersonId;

fn registry() -> Registry {
    Registry::builtin().unwrap()
}

fn person() -> PersonId {
    "0191f0c4-0000-7000-8000-000000000001".parse().unwrap()
}

#[test]
fn rule_1_1_how_a_metric_is_merged_fits_what_it_is() {
    let registry = registry();
    let built_in = registry
        .types()
        .iter()
        .filter(|kind| kind.api_version == ApiVersion::V0);
    let metrics: Vec<&MetricTraits> = built_in.filter_map(|kind| kind.metric.as_ref()).collect();
    let count = |is: &dyn Fn(&MetricTraits) -> bool| metrics.iter().filter(|metric| is(metric)).count();
    let is = |kind, merge| move |metric: &MetricTraits| metric.kind == Some(kind) && metric.merge == merge;
    assert_eq!(count(&is(MetricKind::Cumulative, MergePolicy::BestSource)), 22);
    assert_eq!(count(&is(MetricKind::Cumulative, MergePolicy::SumAll)), 42);
    assert_eq!(count(&is(MetricKind::Cumulative, MergePolicy::SleepPriority)), 0);
    assert_eq!(count(&is(MetricKind::Discrete, MergePolicy::SumAll)), 0);
    assert_eq!(count(&is(MetricKind::Discrete, MergePolicy::SleepPriority)), 1);
    assert_eq!(count(&|metric| metric.kind == Some(MetricKind::Discrete)), 134);
    assert_eq!(
        count(&|metric| metric.kind.is_none()),
        1,
        "a mood is neither an amount nor a level"
    );
    // What is added up over sources and time is added up by default, and nothing else is.
    assert_eq!(
        count(&|metric| metric.default_aggregate == DefaultAggregate::Sum),
        64
    );
    assert_eq!(
        count(&|metric| metric.default_aggregate == DefaultAggregate::Leq),
        2
    );
    assert!(
        metrics
            .iter()
            .all(|metric| !metric.value_column.is_empty() && !metric.group.is_empty())
    );
}

#[test]
fn rule_6_every_type_of_the_catalogue_is_there() {
    let registry = registry();
    let of = |api_version, class| {
        registry
            .types()
            .iter()
            .filter(|kind| kind.api_version == api_version && kind.class == class)
            .count()
    };
    assert_eq!(of(ApiVersion::V0, RecordClass::Metric), 200);
    assert_eq!(registry.types().len(), 220);
    assert_eq!(of(ApiVersion::V1alpha1, RecordClass::Metric), 3);
    assert_eq!(of(ApiVersion::V1alpha1, RecordClass::Event), 3);
    assert_eq!(
        registry
            .types()
            .iter()
            .filter(|kind| !kind.recordable)
            .map(|kind| kind.id.as_str())
            .collect::<Vec<_>>(),
        ["FileInput"]
    );
    // Tombstones are never stored, and files are documents of their own.
    assert_eq!(
        registry
            .types()
            .iter()
            .filter(|kind| !kind.queryable)
            .map(|kind| kind.id.as_str())
            .collect::<Vec<_>>(),
        ["DeletedRecord", "FileInput"]
    );
}

#[test]
fn rule_6_1_reference_names_are_aliases_that_are_never_listed() {
    let registry = registry();
    let aliases = [
        (
            "EnvironmentalAudioLevelIncraeseEvent",
            "EnvironmentalAudioLevelIncreaseEvent",
        ),
        (
            "HeadphonesAudioLevelIncraeseEvent",
            "HeadphonesAudioLevelIncreaseEvent",
        ),
        ("AppleWatchExerciseTime", "WatchExerciseTime"),
        ("AppleWatchMoveTime", "WatchMoveTime"),
        ("AppleWatchStandTime", "WatchStandTime"),
        ("Tombstone", "DeletedRecord"),
    ];
    for (alias, id) in aliases {
        assert_eq!(registry.get(alias).unwrap().id.as_str(), id);
        assert!(registry.types().iter().all(|kind| kind.id.as_str() != alias));
    }
    assert!(registry.get("heartrate").is_none());
    assert!(registry.get("").is_none());
}

#[test]
fn rule_6_2_published_oddities_are_kept() {
    let registry = registry();
    let metric = |name: &str| registry.get(name).unwrap().metric.clone().unwrap();
    assert_eq!(metric("BasalCaloriesBurned").ucum.as_deref(), Some("kcal"));
    assert_eq!(metric("ReportedMood").kind, None);
    assert_eq!(metric("SixMinuteWalkDistance").kind, Some(MetricKind::Cumulative));
    assert_eq!(metric("SixMinuteWalkDistance").merge, MergePolicy::All);
    assert_eq!(metric("FallCount").kind, Some(MetricKind::Discrete));
    assert_eq!(metric("SleepStage").merge, MergePolicy::SleepPriority);
    let mood = registry.get("ReportedMood").unwrap().catalog_entry(person());
    assert_eq!(
        (&mood["metric_kind"], &mood["record_spec"]["aggregation"]),
        (&json!(null), &json!("discrete"))
    );
}

/// The built-in metrics whose values are in `unit`.
fn of_unit<'a>(registry: &'a Registry, unit: &str) -> Vec<(&'a DataType, &'a MetricTraits)> {
    let types = registry.types().iter();
    let metrics = types.filter_map(|kind| Some((&**kind, kind.metric.as_ref()?)));
    metrics
        .filter(|(_, traits)| traits.unit.as_deref() == Some(unit))
        .collect()
}

#[test]
fn rule_6_2_events_have_the_value_0_and_are_never_added_up() {
    let registry = registry();
    let presences = of_unit(&registry, "presence");
    assert_eq!(presences.len(), 19);
    for (kind, traits) in presences {
        assert_eq!(traits.kind, Some(MetricKind::Discrete), "{}", kind.id);
        assert_eq!(traits.merge, MergePolicy::All, "{}", kind.id);
        assert_eq!(traits.default_aggregate, DefaultAggregate::Last, "{}", kind.id);
        let during = json!({"start_date": "2024-05-01T10:00:00Z", "value": 0});
        assert!(
            compile(&kind.schema.value()).unwrap().is_valid(&during),
            "{}",
            kind.id
        );
    }
}

#[test]
fn rule_6_2_severities_of_another_list_become_those_of_the_catalogue() {
    let registry = registry();
    let units = registry.units();
    let theirs = "HKCategoryValueSeverity";
    let severities = of_unit(&registry, "severity");
    assert_eq!(severities.len(), 36);
    for (kind, traits) in severities {
        let converted = |code: f64| units.convert(code, theirs, traits, kind.id.as_str());
        let codes = [0.0, 1.0, 2.0, 3.0, 4.0].map(|code| converted(code).unwrap());
        assert_eq!(json!(codes), json!([0.0, 0.0, 1.0, 2.0, 3.0]), "{}", kind.id);
        assert!(converted(5.0).is_err(), "{}", kind.id);
    }
    let says_not_present = |code: f64| units.is_absent(theirs, code);
    assert_eq!([0.0, 1.0, 2.0].map(says_not_present), [false, true, false]);
}

#[test]
fn rule_6_3_every_schema_is_valid_and_accepts_its_own_examples() {
    for kind in registry().types() {
        let validator = compile(&kind.schema.value()).unwrap_or_else(|error| panic!("{}: {error}", kind.id));
        let schema = kind.schema.value();
        let examples = schema["examples"]
            .as_array()
            .unwrap_or_else(|| panic!("{} has no examples", kind.id));
        assert!(!examples.is_empty(), "{}", kind.id);
        for example in examples {
            if let Err(error) = validator.validate(example) {
                panic!("{}: {error} at {} in {example}", kind.id, error.instance_path());
            }
        }
    }
}

#[test]
fn rule_6_what_is_read_can_be_written_back() {
    for kind in registry().types() {
        let validator = compile(&kind.schema.value()).unwrap();
        for example in kind.schema.value()["examples"].as_array().unwrap() {
            let mut row = serde_json::Map::new();
            for column in &kind.layout.read {
                let value = match column.from {
                    ReadFrom::Id => json!("0191f0c4-5b1e-7c3a-9d52-6f1a2b3c4d5e"),
                    ReadFrom::Start | ReadFrom::End => json!("2024-05-01T10:00:00Z"),
                    ReadFrom::Span => {
                        json!({"start_time": "2024-05-01T10:00:00Z", "end_time": "2024-05-01T10:00:00Z"})
                    }
                    _ => example.get(&column.name).cloned().unwrap_or(Value::Null),
                };
                row.insert(column.name.clone(), value);
            }
            if let Err(error) = validator.validate(&Value::Object(row)) {
                panic!("{}: {error} at {}", kind.id, error.instance_path());
            }
        }
    }
}

#[test]
fn rule_6_values_outside_a_metric_are_refused() {
    let registry = registry();
    let accepts = |name: &str, value: Value| {
        let record = json!({"start_date": "2024-05-01T10:00:00Z", "value": value});
        compile(&registry.get(name).unwrap().schema.value())
            .unwrap()
            .is_valid(&record)
    };
    assert!(accepts("StepCount", json!(0)) && !accepts("StepCount", json!(-1)));
    assert!(accepts("BodyTemperature", json!(-1)) && !accepts("BodyTemperature", json!("97")));
    assert!(accepts("SleepStage", json!(5)) && accepts("SleepStage", json!(4.0)));
    for stage in [json!(6), json!(-1), json!(2.5), json!(null)] {
        assert!(!accepts("SleepStage", stage.clone()), "{stage}");
    }
    assert!(accepts("SymptomHeadache", json!(3)) && !accepts("SymptomHeadache", json!(4)));
}

#[test]
fn rule_6_3_a_catalogue_entry_has_every_field_and_agrees_with_itself() {
    let fields = [
        "api_version",
        "categories",
        "class",
        "column_name",
        "deprecated",
        "description",
        "svc_userid",
        "icon",
        "id",
        "metric_kind",
        "name",
        "queryable",
        "recordable",
        "record_spec",
        "unit",
    ];
    for kind in registry().types() {
        let entry = kind.catalog_entry(person());
        let names: HashSet<&str> = entry.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(names, HashSet::from(fields), "{}", kind.id);
        assert_eq!(entry["record_spec"]["type"], entry["class"], "{}", kind.id);
        assert_eq!(entry["svc_userid"], json!(person().to_string()));
        assert!(
            !entry["description"].as_str().unwrap().is_empty() && !entry["name"].as_str().unwrap().is_empty()
        );
    }
}

#[test]
fn rule_6_3_every_category_has_a_name_of_the_interface() {
    for category in Category::ALL {
        assert_eq!(category.name().parse::<Category>(), Ok(category));
        assert_eq!(serde_json::to_value(category).unwrap(), json!(category.name()));
    }
    for kind in registry().types() {
        for category in &kind.categories {
            assert!(category.parse::<Category>().is_ok(), "{}: {category}", kind.id);
        }
    }
    assert!("Sleep".parse::<Category>().is_err());
}

#[test]
fn rule_6_3_entries_read_as_clients_expect() {
    let registry = registry();
    let heart_rate = registry.get("HeartRate").unwrap();
    let entry = heart_rate.catalog_entry(person());
    assert_eq!(entry["column_name"], "heart_rate");
    assert_eq!(entry["categories"], json!(["healthkit", "health"]));
    assert_eq!(
        entry["record_spec"],
        json!({
            "type": "metric", "aggregation": "discrete", "unit": "bpm", "scale": null, "value_map": null,
            "schema": null,
        })
    );
    let sharer = "0191f0c4-0000-7000-8000-000000000002".parse().unwrap();
    let shared = json!(heart_rate.listed_entry(sharer, true));
    assert_eq!(shared["recordable"], json!(false));
    assert_eq!(
        shared["svc_userid"],
        json!("0191f0c4-0000-7000-8000-000000000002")
    );
    assert_eq!(
        shared["categories"],
        json!(["healthkit", "health", "shared_type"])
    );
    assert_eq!(
        heart_rate.detailed_entry(person(), false)["record_spec"]["schema"]["title"],
        json!("Heart Rate")
    );
    assert_eq!(
        registry.get("CalendarEvent").unwrap().column_name(),
        "calendar_event"
    );
    assert_eq!(
        registry.get("Note").unwrap().list_entry(),
        json!({
            "name": "Note", "description": "A text the person wrote, such as a journal entry.",
            "class": "entry", "category": ["annotations"],
        })
    );
}

#[test]
fn rule_5_5_type_ids_take_a_uuid_in_any_case() {
    let upper = TypeId::parse("Event/0191F0C4-5B1E-7C3A-9D52-6F1A2B3C4D5E").unwrap();
    assert_eq!(upper.as_str(), "Event/0191f0c4-5b1e-7c3a-9d52-6f1a2b3c4d5e");
    assert_eq!((upper.base(), upper.definition().is_some()), ("Event", true));
    let plain = TypeId::parse("HeartRate").unwrap();
    assert_eq!((plain.base(), plain.definition()), ("HeartRate", None));
    for text in [
        "",
        "/",
        "Event/",
        "Event/latest",
        "Event/0191f0c45b1e7c3a9d526f1a2b3c4d5e",
        "Event/0191f0c4-5b1e-7c3a-9d52-6f1a2b3c4d5e/x",
        "../x",
        "Heart Rate",
    ] {
        assert_eq!(TypeId::parse(text), None, "{text}");
    }
}
