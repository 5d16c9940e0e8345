//! A person's own types: what a definition may say, how it may grow, and the type that it becomes.

use arrow::datatypes::DataType as ArrowType;
use serde_json::json;
use uuid::Uuid;

use super::*;
use crate::model::faults::Fault;

fn define(base: Base, body: &Value) -> Definition {
    Definition::read(base, body).unwrap_or_else(|faults| panic!("{faults:?}"))
}

fn build(definition: &Definition) -> DataType {
    let registry = registry();
    let id = Uuid::parse_str("0191f0c4-5b1e-7c3a-9d52-6f1a2b3c4d5e").unwrap();
    DataType::from_definition(
        person(),
        id,
        registry.get(definition.base.as_str()).unwrap(),
        definition,
        3,
    )
    .unwrap()
}

fn kinds(faults: Result<Definition, Vec<Fault>>) -> Vec<(String, &'static str)> {
    let place = |fault: &Fault| {
        serde_json::to_value(&fault.loc)
            .unwrap()
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_str)
            .collect::<Vec<_>>()
            .join(".")
    };
    faults
        .unwrap_err()
        .iter()
        .map(|fault| (place(fault), fault.kind))
        .collect()
}

fn reading() -> Value {
    json!({"name": "Reading", "description": "Time with a book", "record_spec": {"schema": {
        "properties": {
            "title": {"type": "string", "minLength": 1}, "pages": {"type": "integer"},
            "mood": {"enum": ["good", "bad"]}, "notes": {},
        },
        "required": ["title"]}}})
}

#[test]
fn rule_6_a_persons_event_is_a_type_like_any_other() {
    let kind = build(&define(Base::Event, &reading()));
    assert_eq!(kind.id.as_str(), "Event/0191f0c4-5b1e-7c3a-9d52-6f1a2b3c4d5e");
    assert_eq!(
        (kind.class, kind.api_version, kind.owner),
        (RecordClass::Event, ApiVersion::V1, Some(person()))
    );
    let read: Vec<&str> = kind
        .layout
        .read
        .iter()
        .map(|column| column.name.as_str())
        .collect();
    assert_eq!(
        read,
        [
            "id",
            "start_time",
            "end_time",
            "tags",
            "sources",
            "title",
            "pages",
            "mood",
            "notes",
            "extras"
        ]
    );
    assert_eq!(
        (kind.layout.version, kind.layout.undeclared),
        (3, Undeclared::AsGiven)
    );
    let stored = |name: &str| kind.layout.storage.field_with_name(name).unwrap().clone();
    assert_eq!(stored("pages").data_type(), &ArrowType::Int64);
    assert_eq!(stored("mood").data_type(), &ArrowType::Utf8);
    assert!(is_json_text(&stored("notes")));
    let entry = kind.catalog_entry(person());
    assert_eq!(entry["categories"], json!(["user_configured"]));
    assert_eq!(
        entry["record_spec"],
        json!({"type": "event", "schema": reading()["record_spec"]["schema"]})
    );
    assert_eq!(
        (&entry["metric_kind"], &entry["unit"], &entry["column_name"]),
        (&json!(null), &json!(null), &json!("event"))
    );
}

#[test]
fn rule_6_what_is_read_from_a_persons_type_can_be_written_back() {
    let validator = compile(&build(&define(Base::Event, &reading())).schema.value()).unwrap();
    let row = json!({
        "id": "0191f0c4-5b1e-7c3a-9d52-6f1a2b3c4d60", "start_time": "2024-05-01T10:00:00Z",
        "end_time": "2024-05-01T10:00:00Z", "tags": null, "sources": null, "title": "Emma", "pages": null,
        "mood": null, "notes": null, "extras": null,
    });
    assert!(validator.is_valid(&row));
    assert!(!validator.is_valid(&json!({"start_time": "2024-05-01T10:00:00Z", "title": null})));
    assert!(!validator.is_valid(&json!({"start_time": "2024-05-01T10:00:00Z"})));
    assert!(
        !validator
            .is_valid(&json!({"start_time": "2024-05-01T10:00:00Z", "title": "Emma", "mood": "middling"}))
    );
    assert!(validator.is_valid(
        &json!({"start_time": "2024-05-01T10:00:00Z", "title": "Emma", "unknown": {"kept": true}})
    ));
}

#[test]
fn rule_6_a_member_that_may_not_be_there_is_written_back_as_null() {
    let schema = json!({"properties": {"never": false, "part": {"type": "object",
        "properties": {"never": false, "a": {"type": "integer"}}}}});
    let body = json!({"name": "X", "record_spec": {"schema": schema}});
    let validator = compile(&build(&define(Base::Event, &body)).schema.value()).unwrap();
    let fits = |never: Value, within: Value| {
        validator.is_valid(&json!({"start_time": "2024-05-01T10:00:00Z", "never": never,
            "part": {"never": within, "a": 1}}))
    };
    assert!(fits(Value::Null, Value::Null));
    assert!(!fits(json!(1), Value::Null) && !fits(Value::Null, json!(false)));
}

#[test]
fn a_blank_unit_is_none_and_blanks_around_one_are_left_out() {
    let body = |unit: &str| json!({"name": "Tea", "record_spec": {"unit": unit}});
    for (sent, unit) in [
        ("", None),
        (" \t", None),
        ("cups", Some("cups")),
        (" cups ", Some("cups")),
    ] {
        assert_eq!(
            define(Base::Metric, &body(sent)).unit.as_deref(),
            unit,
            "{sent:?}"
        );
    }
    let cups = define(Base::Metric, &body("cups"));
    assert_eq!(cups.amended(&body(" cups ")).unwrap(), cups);
    assert!(cups.amended(&body("")).is_err(), "a unit stays");
    let before = Definition {
        unit: Some(" cups ".to_owned()),
        ..cups
    };
    assert_eq!(before.amended(&body(" cups ")).unwrap(), before);
}

#[test]
fn rule_6_a_persons_metric_has_its_unit_and_scale() {
    let body = json!({
        "name": "Energy",
        "record_spec": {
            "type": "metric", "aggregation": "cumulative", "unit": null,
            "scale": {"min": 1, "max": 9, "step": 2}, "value_map": {"1": "low", "9": "high"},
            "schema": "{\"properties\": {\"place\": {\"type\": \"string\"}}}",
        },
    });
    let kind = build(&define(Base::Metric, &body));
    assert_eq!(
        kind.layout.storage.field_with_name("value").unwrap().data_type(),
        &ArrowType::Int64
    );
    assert!(kind.layout.storage.field_with_name("unit").is_ok());
    let validator = compile(&kind.schema.value()).unwrap();
    let record = |value: Value| json!({"start_time": "2024-05-01", "value": value});
    assert!(validator.is_valid(&record(json!(3))));
    for value in [json!(2), json!(11), json!(0), json!(3.5), json!("3"), json!(null)] {
        assert!(!validator.is_valid(&record(value.clone())), "{value}");
    }
    let entry = kind.catalog_entry(person());
    assert_eq!(
        entry["record_spec"],
        json!({
            "type": "metric", "aggregation": "cumulative", "unit": null,
            "scale": {"min": 1, "max": 9, "step": 2}, "value_map": {"1": "low", "9": "high"},
            "schema": {"properties": {"place": {"type": "string"}}},
        })
    );
    let weighed = build(&define(
        Base::Metric,
        &json!({"name": "Tea", "record_spec": {"unit": "mL"}}),
    ));
    assert_eq!(
        weighed
            .layout
            .read
            .iter()
            .find(|column| column.name == "unit")
            .unwrap()
            .from,
        ReadFrom::Constant("mL".to_owned())
    );
    assert_eq!(
        weighed
            .layout
            .storage
            .field_with_name("value")
            .unwrap()
            .data_type(),
        &ArrowType::Float64
    );
    assert_eq!(
        (
            &weighed.catalog_entry(person())["unit"],
            &weighed.catalog_entry(person())["metric_kind"]
        ),
        (&json!("mL"), &json!("discrete"))
    );
}

#[test]
fn rule_6_members_of_metrics_on_an_event_are_refused() {
    for (name, value) in [
        ("unit", json!("kg")),
        ("aggregation", json!("discrete")),
        ("scale", json!({"min": 0, "max": 1})),
        ("value_map", json!({"0": "no"})),
    ] {
        let refused = Definition::read(Base::Event, &json!({"name": "Run", "record_spec": {name: value}}));
        assert_eq!(
            kinds(refused),
            [(format!("body.record_spec.{name}"), "event_member")]
        );
        define(Base::Event, &json!({"name": "Run", "record_spec": {name: null}}));
    }
}

#[test]
fn rule_6_names_of_standard_members_are_refused() {
    for name in [
        "id",
        "start_time",
        "end_time",
        "tags",
        "sources",
        "extras",
        "source",
        "source_class",
    ] {
        let refused = Definition::read(
            Base::Event,
            &json!({"name": "Run", "record_spec": {"schema": {"properties": {name: {"type": "string"}}}}}),
        );
        assert_eq!(
            kinds(refused),
            [(
                format!("body.record_spec.schema.properties.{name}"),
                "reserved_name"
            )]
        );
    }
}

#[test]
fn rule_6_only_metrics_have_a_value_and_a_unit_of_their_own() {
    let schema = json!({
        "properties": {
            "value": {"type": "string"}, "unit": {"type": "object", "properties": {"a": {"type": "integer"}}},
        },
    });
    let kind = build(&define(
        Base::Event,
        &json!({"name": "Bet", "record_spec": {"schema": schema}}),
    ));
    let stored = |name: &str| {
        kind.layout
            .storage
            .field_with_name(name)
            .unwrap()
            .data_type()
            .clone()
    };
    assert_eq!(stored("value"), ArrowType::Utf8);
    assert!(matches!(stored("unit"), ArrowType::Struct(_)));
    assert_eq!(
        kinds(Definition::read(
            Base::Metric,
            &json!({"name": "Bet", "record_spec": {"schema": schema}})
        )),
        [
            (
                "body.record_spec.schema.properties.value".to_owned(),
                "reserved_name"
            ),
            (
                "body.record_spec.schema.properties.unit".to_owned(),
                "reserved_name"
            )
        ]
    );
}

#[test]
fn rule_6_a_metric_may_describe_its_value_and_unit_again() {
    let metric = |value: Value, unit: Value| {
        json!({
            "name": "Mood",
            "record_spec": {
                "unit": "points",
                "schema": {"properties": {"value": value, "unit": unit}, "required": ["value", "unit"]},
            },
        })
    };
    let plain = build(&define(
        Base::Metric,
        &metric(
            json!({"type": "number", "description": "How good"}),
            json!({"type": "string"}),
        ),
    ));
    assert_eq!(
        plain.schema.value()["properties"]["value"],
        json!({"description": "How good", "type": "number"}),
        "what binds nothing more leaves the schema as it is"
    );
    let bound = build(&define(
        Base::Metric,
        &metric(
            json!({"type": "integer", "maximum": 10}),
            json!({"const": "points"}),
        ),
    ));
    let stored = |name: &str| {
        bound
            .layout
            .storage
            .field_with_name(name)
            .map(|field| field.data_type().clone())
    };
    assert_eq!(
        stored("value").unwrap(),
        ArrowType::Float64,
        "as every metric without a scale"
    );
    assert!(stored("unit").is_err(), "the unit of all is not stored with each");
    let validator = compile(&bound.schema.value()).unwrap();
    let is_valid = |value: Value| {
        validator.is_valid(&json!({"start_time": "2024-05-01", "value": value, "unit": "points"}))
    };
    assert_eq!(
        [json!(3), json!(3.5), json!(11)].map(is_valid),
        [true, false, false]
    );
    assert_eq!(
        kinds(Definition::read(
            Base::Metric,
            &metric(json!({}), json!({"const": "grams"}))
        )),
        [("body.record_spec.schema.properties.unit".to_owned(), "unit")]
    );
}

#[test]
fn rule_8_8_a_name_is_a_composed_line_without_blanks_around_it() {
    let named = |name: &str| Definition::read(Base::Event, &json!({"name": name}));
    assert_eq!(named("cafe\u{301}").unwrap().name, "caf\u{e9}");
    for name in [" x", "x ", "a\nb", "a\u{0}b"] {
        let wrong = [("body.name".to_owned(), "value_error")];
        assert_eq!(kinds(named(name)), wrong, "{name:?}");
    }
    // One from before this was a rule stays until it is changed.
    let older = Definition {
        name: " cafe\u{301}".to_owned(),
        ..named("x").unwrap()
    };
    older.validate().unwrap();
    for change in [
        json!({"description": "y"}),
        json!({"name": " cafe\u{301}", "description": "y"}),
    ] {
        assert_eq!(older.amended(&change).unwrap().name, " caf\u{e9}", "{change}");
    }
    assert!(older.amended(&json!({"name": " y"})).is_err());
}

#[test]
fn rule_1_6_the_scale_of_a_cumulative_metric_begins_at_0_or_above() {
    let body = |aggregation: &str, min: i64| {
        json!({
            "name": "Drift", "record_spec": {"aggregation": aggregation, "scale": {"min": min, "max": 5}},
        })
    };
    let wrong = [("body.record_spec.scale.min".to_owned(), "scale")];
    assert_eq!(
        kinds(Definition::read(Base::Metric, &body("cumulative", -5))),
        wrong
    );
    let discrete = define(Base::Metric, &body("discrete", -5));
    let added_up = json!({"record_spec": {"aggregation": "cumulative"}});
    assert_eq!(kinds(discrete.amended(&added_up)), wrong);
    define(Base::Metric, &body("cumulative", 0));
    // One from before this was a rule is still a type, and is amended otherwise.
    let older = Definition {
        aggregation: Some(MetricKind::Cumulative),
        ..discrete
    };
    build(&older);
    older.validate().unwrap();
    let amended = older.amended(&json!({"description": "Of clocks"})).unwrap();
    assert_eq!(amended.description, "Of clocks");
}

#[test]
fn what_is_found_out_of_a_record_cannot_be_required_of_it() {
    let body = |name: &str| {
        json!({
            "name": "Tea", "record_spec": {"schema": {"properties": {}, "required": [name]}},
        })
    };
    let wrong = [("body.record_spec.schema.required".to_owned(), "required")];
    for name in ["source", "source_class"] {
        assert_eq!(kinds(Definition::read(Base::Event, &body(name))), wrong);
    }
    let tea = define(Base::Event, &body("sources"));
    // One from before this was a rule is still a type, and is amended otherwise.
    let older = Definition {
        schema: Some(json!({"properties": {}, "required": ["source"]})),
        ..tea
    };
    build(&older);
    assert_eq!(
        older
            .amended(&json!({"description": "Green"}))
            .unwrap()
            .description,
        "Green"
    );
}

#[test]
fn rule_6_everything_wrong_with_a_definition_is_told() {
    assert_eq!(
        kinds(Definition::read(Base::Event, &json!([]))),
        [("body".to_owned(), "object_type")]
    );
    assert_eq!(
        kinds(Definition::read(Base::Event, &json!({}))),
        [("body.name".to_owned(), "missing")]
    );
    let cases = [
        (
            json!({"name": 3, "description": 4}),
            vec!["string_type", "string_type"],
        ),
        (
            json!({"name": "X", "record_spec": {"type": "event"}}),
            vec!["literal_error"],
        ),
        (
            json!({"name": "X", "record_spec": {"aggregation": "sum"}}),
            vec!["literal_error"],
        ),
        (
            json!({"name": "X", "record_spec": {"scale": {"min": 5, "max": 1}}}),
            vec!["scale"],
        ),
        (
            json!({"name": "X", "record_spec": {"scale": {"min": 0.5, "max": 1}}}),
            vec!["scale"],
        ),
        (
            json!({"name": "X", "record_spec": {"value_map": {"1": 2}}}),
            vec!["object_type"],
        ),
        (
            json!({"name": "X", "record_spec": {"schema": "not json"}}),
            vec!["schema"],
        ),
        (
            json!({"name": "X", "record_spec": {"schema": {"properties": {"a": {"type": "text"}}}}}),
            vec!["schema"],
        ),
        (
            json!({"name": "X", "record_spec": {"schema": {"properties": {"a": {"pattern": "("}}}}}),
            vec!["schema"],
        ),
        (
            json!({
                "name": "X",
                "record_spec": {"schema": {"properties": {"a": {"$ref": "https://example.com/schema"}}}},
            }),
            vec!["schema"],
        ),
        (
            json!({"name": "X", "record_spec": {"schema": {"type": "array"}}}),
            vec!["schema"],
        ),
        (
            json!({"name": "X", "record_spec": {"schema": {"properties": {"": {}}, "required": ["b"]}}}),
            vec!["name", "required"],
        ),
        (
            json!({"name": "X", "record_spec": 7, "deprecated": "yes"}),
            vec!["bool_type", "object_type"],
        ),
    ];
    for (body, expected) in cases {
        let found: Vec<_> = kinds(Definition::read(Base::Metric, &body))
            .into_iter()
            .map(|(_, kind)| kind)
            .collect();
        assert_eq!(found, expected, "{body}");
    }
    let mut deep = json!({});
    for _ in 0..100 {
        deep = json!({"properties": {"a": deep}});
    }
    assert_eq!(
        kinds(Definition::read(
            Base::Event,
            &json!({"name": "X", "record_spec": {"schema": deep}})
        ))[0]
            .1,
        "schema"
    );
}

#[test]
fn rule_6_a_definition_grows_and_never_changes_what_is_stored() {
    let old = define(Base::Event, &reading());
    let change = |schema: Value| old.amended(&json!({"record_spec": {"schema": schema}}));
    let mut grown = reading()["record_spec"]["schema"].clone();
    grown["properties"]["rating"] = json!({"type": "number"});
    let new = change(grown.clone()).unwrap();
    assert_eq!(
        (new.name.as_str(), new.properties().unwrap().len()),
        ("Reading", 5)
    );
    grown["properties"]["pages"] = json!({"type": ["integer", "null"], "minimum": 1});
    assert!(change(grown.clone()).is_ok());
    grown["properties"]["pages"] = json!({"type": "string"});
    assert_eq!(kinds(change(grown.clone()))[0].1, "kind_changed");
    assert_eq!(
        kinds(change(json!({"properties": {"title": {"type": "string"}}}))).len(),
        3
    );
    assert!(old.amended(&json!({"deprecated": true})).unwrap().deprecated);
    let metric = define(
        Base::Metric,
        &json!({"name": "Tea", "record_spec": {"unit": "mL"}}),
    );
    assert_eq!(
        kinds(metric.amended(&json!({"record_spec": {"unit": "L"}}))),
        [("body.record_spec.unit".to_owned(), "unit_changed")]
    );
    assert_eq!(
        kinds(metric.amended(&json!({"record_spec": {"scale": {"min": 0, "max": 5}}}))),
        [("body.record_spec.scale".to_owned(), "kind_changed")]
    );
    let added_up = json!({"record_spec": {"aggregation": "cumulative"}});
    assert_eq!(
        kinds(metric.amended(&added_up)),
        [("body.record_spec.aggregation".to_owned(), "kind_changed")]
    );
    let amounts = define(
        Base::Metric,
        &json!({"name": "Tea", "record_spec": {"aggregation": "cumulative"}}),
    );
    assert_eq!(amounts.amended(&added_up).unwrap(), amounts);
    assert!(
        amounts
            .amended(&json!({"record_spec": {"aggregation": "discrete"}}))
            .is_ok()
    );
}

#[test]
fn rule_6_a_new_type_is_no_wider_than_its_files_may_be() {
    let wide = |members: usize| {
        let named = |number| (format!("m{number}"), json!({"type": "number"}));
        let inner: serde_json::Map<String, Value> = (0..members).map(named).collect();
        json!({"properties": {"o": {"type": "object", "properties": {
            "in": {"type": "object", "properties": inner}, "any": {"type": "object"},
        }}}})
    };
    let body = |schema: Value| json!({"name": "Wide", "record_spec": {"schema": schema}});
    let widest = define(Base::Event, &body(wide(999)));
    let fault = [(
        "body.record_spec.schema.properties".to_owned(),
        "too_many_properties",
    )];
    assert_eq!(kinds(Definition::read(Base::Event, &body(wide(1000)))), fault);
    let mut grown = wide(999);
    grown["properties"]["more"] = json!({"type": "number"});
    assert_eq!(kinds(widest.amended(&body(grown))), fault);
    // What was defined before stays, and may be changed.
    let mut stored = widest;
    stored.schema = Some(wide(2000));
    let mut grown = wide(2000);
    grown["properties"]["more"] = json!({"type": "number"});
    assert_eq!(
        stored.amended(&body(grown)).unwrap().properties().unwrap().len(),
        2
    );
}

#[test]
fn rule_6_a_new_type_is_no_longer_than_what_is_read_together_may_be() {
    let described = |length: usize| json!({"name": "Long", "description": "x".repeat(length)});
    let length = |definition: &Definition| serde_json::to_string(definition).unwrap().len();
    let around = length(&define(Base::Event, &described(0)));
    let most = (64 << 10) - around;
    let longest = define(Base::Event, &described(most));
    assert_eq!(length(&longest), 64 << 10);
    let fault = [("body".to_owned(), "too_long")];
    assert_eq!(kinds(Definition::read(Base::Event, &described(most + 1))), fault);
    assert_eq!(kinds(longest.amended(&described(most + 1))), fault);
    // What was defined before stays, and may be changed.
    let mut stored = longest;
    stored.description = "x".repeat(900_000);
    let archived = stored.amended(&json!({"deprecated": true})).unwrap();
    let restored = archived.amended(&json!({"deprecated": false})).unwrap();
    assert_eq!(restored, stored);
}

#[test]
fn rule_6_annotations_in_a_persons_schema_do_not_reach_the_product() {
    let body = json!({
        "name": "X",
        "record_spec": {
            "schema": {
                "properties": {
                    "when": {"type": "string", "x-role": "start", "x-hidden": true, "x-aliases": ["id"]},
                },
            },
        },
    });
    let kind = build(&define(Base::Event, &body));
    assert_eq!(
        kind.layout
            .read
            .iter()
            .filter(|column| column.from == ReadFrom::Column("when".to_owned()))
            .count(),
        1
    );
    assert!(kind.layout.aliases.is_empty());
}

fn annotated() -> Value {
    json!({"properties": {
        "version": {"type": "array", "items": {"type": "integer"}, "x-version": true},
        "o": {"type": "object", "properties": {
            "answer": {"type": "integer", "x-yes-no": true}, "text": {"type": "string", "x-version": true},
            "east": {"type": "number", "x-longitude": true}, "own": {"type": "string", "x-private": true},
            "called": {"type": "string", "x-names-owner": true},
        }},
    }})
}

#[test]
fn rule_6_annotations_of_members_do_not_reach_the_product_either() {
    let body = json!({"name": "X", "record_spec": {"schema": annotated()}});
    let plain = json!({"name": "X", "record_spec": {"schema": {"properties": {
        "version": {"type": "array", "items": {"type": "integer"}},
        "o": {"type": "object", "properties": {
            "answer": {"type": "integer"}, "text": {"type": "string"}, "east": {"type": "number"},
            "own": {"type": "string"}, "called": {"type": "string"},
        }},
    }}}});
    let [annotated, plain] = [body, plain].map(|body| build(&define(Base::Event, &body)));
    assert_eq!(annotated.layout.storage, plain.layout.storage);
    assert_eq!(annotated.layout.read, plain.layout.read);
    assert_eq!(annotated.layout.private, plain.layout.private);
    assert_eq!(annotated.layout.owners_names, plain.layout.owners_names);
    assert_eq!(*annotated.schema.value(), *plain.schema.value());
}

#[test]
fn rule_6_a_stored_type_keeps_what_its_annotations_made_of_it() {
    let mut stored = define(Base::Event, &json!({"name": "X"}));
    stored.schema = Some(annotated());
    let before = build(&stored);
    let column = |name: &str| {
        before
            .layout
            .storage
            .field_with_name(name)
            .unwrap()
            .data_type()
            .clone()
    };
    assert_eq!(column("version"), dictionary_text());
    let mut grown = annotated();
    grown["properties"]["more"] = json!({"type": "number", "x-yes-no": true});
    let spec = json!({"record_spec": {"schema": grown}});
    let after = build(&stored.amended(&spec).unwrap());
    for name in ["version", "o"] {
        let [after, before] =
            [&after, &before].map(|kind| kind.layout.storage.field_with_name(name).unwrap());
        assert_eq!(after, before);
    }
    let more = after.layout.storage.field_with_name("more").unwrap();
    assert_eq!(*more.data_type(), ArrowType::Float64);
}

#[test]
fn rule_6_definitions_are_kept_as_json() {
    for definition in [
        define(Base::Event, &reading()),
        define(
            Base::Metric,
            &json!({"name": "Tea", "record_spec": {"unit": "mL", "scale": null}}),
        ),
    ] {
        let kept = serde_json::to_string(&definition).unwrap();
        assert_eq!(serde_json::from_str::<Definition>(&kept).unwrap(), definition);
    }
}

#[test]
fn what_an_object_requires_is_not_gone_through_for_each_of_its_members() {
    let members: serde_json::Map<String, Value> = (0..2000)
        .map(|number| (format!("m{number:06}"), json!({"type": "string"})))
        .collect();
    let mut required: Vec<String> = (0..200_000).map(|number| format!("q{number:06}")).collect();
    required.push("m000007".to_owned());
    let mut stored = define(Base::Event, &json!({"name": "X"}));
    stored.schema = Some(json!({"properties": {
        "o": {"type": "object", "properties": members, "required": required},
    }}));
    let begun = std::time::Instant::now();
    let kind = build(&stored);
    let took = begun.elapsed();
    assert!(took < std::time::Duration::from_secs(2), "{took:?}");
    let schema = kind.schema.value();
    let members = &schema["properties"]["o"]["properties"];
    assert_eq!(members["m000007"]["type"], "string");
    assert_eq!(members["m000008"]["type"], json!(["string", "null"]));
}
