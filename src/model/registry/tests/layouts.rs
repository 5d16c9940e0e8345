//! The columns of built-in types, as they are stored and as they are read.

use arrow::datatypes::{DataType as ArrowType, Field};
use serde_json::json;

use super::super::column::column;
use super::*;

fn names(layout: &Layout) -> Vec<&str> {
    layout
        .storage
        .fields()
        .iter()
        .map(|field| field.name().as_str())
        .collect()
}

fn read(layout: &Layout) -> Vec<&str> {
    layout.read.iter().map(|column| column.name.as_str()).collect()
}

#[test]
fn rule_1_6_samples_are_read_in_the_shape_clients_know() {
    let registry = registry();
    let layout = &registry.get("StepCount").unwrap().layout;
    assert_eq!(
        read(layout),
        [
            "uuid",
            "start_date",
            "end_date",
            "value",
            "unit",
            "count",
            "has_undetermined_duration",
            "extras",
            "source_properties",
            "device_properties"
        ]
    );
    assert_eq!(layout.read[4].from, ReadFrom::Constant("steps".to_owned()));
    assert_eq!(
        names(layout),
        [
            "id",
            "start_time",
            "end_time",
            "value",
            "count",
            "has_undetermined_duration",
            "source_properties",
            "device_properties",
            "tags",
            "sources",
            "source",
            "source_class",
            "extras",
        ]
    );
    assert_eq!(
        layout.storage.field_with_name("value").unwrap().data_type(),
        &ArrowType::Float64
    );
    assert!(Arc::ptr_eq(
        &layout.storage,
        &registry.get("SleepStage").unwrap().layout.storage
    ));
    let ArrowType::Struct(members) = layout
        .storage
        .field_with_name("source_properties")
        .unwrap()
        .data_type()
    else {
        panic!("no struct")
    };
    assert_eq!(
        members
            .iter()
            .map(|member| member.name().as_str())
            .collect::<Vec<_>>(),
        [
            "name",
            "version",
            "productType",
            "operatingSystemVersion",
            "sourceBundleIdentifier"
        ]
    );
    assert!(
        members
            .iter()
            .all(|member| member.data_type() == &dictionary_text())
    );
    let names = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    assert_eq!(
        layout.times,
        TimeFields::StartEnd {
            start: names(&["start_date", "start_time"]),
            end: names(&["end_date", "end_time"])
        }
    );
    assert_eq!(layout.id, ["uuid", "id"]);
}

#[test]
fn rule_5_8_annotations_are_read_in_the_shape_clients_know() {
    let registry = registry();
    let columns = |name: &str| read(&registry.get(name).unwrap().layout).join(" ");
    assert_eq!(
        columns("NumericAnnotation"),
        "id recorded_at source_name source_id sources value note tags metadata unit extras"
    );
    assert_eq!(
        columns("MomentAnnotation"),
        "id recorded_at source_name source_id sources note tags metadata extras"
    );
    assert_eq!(
        columns("DurationAnnotation"),
        "id recorded_at start_time end_time source_name source_id sources note tags metadata extras"
    );
    assert_eq!(
        columns("Metric"),
        "id start_time end_time tags sources value unit extras"
    );
    assert_eq!(columns("Event"), "id start_time end_time tags sources extras");
    let duration = &registry.get("DurationAnnotation").unwrap().layout;
    assert_eq!(
        (&duration.read[1].from, &duration.times),
        (&ReadFrom::Span, &TimeFields::RecordedAt)
    );
    let kind = |name: &str| {
        registry
            .get(name)
            .unwrap()
            .layout
            .storage
            .field_with_name("value")
            .unwrap()
            .data_type()
            .clone()
    };
    assert_eq!(kind("BooleanAnnotation"), ArrowType::Boolean);
    assert_eq!(kind("NumericAnnotation"), ArrowType::Float64);
    assert_eq!(kind("ScaleAnnotation"), ArrowType::Int64);
}

#[test]
fn rule_4_5_places_are_read_in_the_shape_clients_know() {
    let registry = registry();
    let columns = |name: &str| read(&registry.get(name).unwrap().layout).join(" ");
    assert!(columns("PlatformLocationUpdate").starts_with(
        "uuid timestamp latitude_degrees longitude_degrees horizontal_accuracy_meters \
         vertical_accuracy_meters altitude_meters ellipsoidal_altitude_meters speed speed_accuracy_meters \
         course_heading_degrees course_heading_accuracy_degrees floor source_is_simulated_by_software \
         source_is_produced_by_accessory"
    ));
    assert!(columns("PlatformLocationVisit").starts_with(
        "uuid latitude_degrees longitude_degrees horizontal_accuracy_meters arrival_date departure_date"
    ));
}

#[test]
fn every_layout_has_the_columns_the_store_relies_on() {
    for kind in registry().types() {
        let layout = &kind.layout;
        let names = names(layout);
        assert_eq!(&names[..3], ["id", "start_time", "end_time"], "{}", kind.id);
        assert_eq!(
            &names[names.len() - 3..],
            ["source", "source_class", "extras"],
            "{}",
            kind.id
        );
        assert_eq!(
            names.iter().collect::<HashSet<_>>().len(),
            names.len(),
            "{} has a column twice",
            kind.id
        );
        assert!(
            layout.storage.fields()[3..]
                .iter()
                .all(|field| field.is_nullable()),
            "{}",
            kind.id
        );
        assert!(
            is_json_text(layout.storage.field_with_name("extras").unwrap()),
            "{}",
            kind.id
        );
        assert!(!layout.id.is_empty(), "{} has no name for its id", kind.id);
        for column in &layout.read {
            if let ReadFrom::Column(stored) = &column.from {
                assert!(
                    layout.storage.column_with_name(stored).is_some(),
                    "{}: {stored}",
                    kind.id
                );
            }
        }
        for (alias, name) in &layout.aliases {
            assert!(
                layout.storage.column_with_name(name).is_some()
                    && layout.storage.column_with_name(alias).is_none(),
                "{}: {alias}",
                kind.id
            );
        }
    }
}

#[test]
fn columns_follow_the_schema_of_their_property() {
    let list = |item: ArrowType| ArrowType::List(Arc::new(Field::new("item", item, true)));
    let cases = [
        (json!({"type": "string"}), ArrowType::Utf8),
        (json!({"type": ["string", "null"]}), ArrowType::Utf8),
        (json!({"type": "string", "format": "date-time"}), timestamp()),
        (json!({"type": "string", "format": "uuid"}), ArrowType::Utf8),
        (
            json!({"anyOf": [{"type": "number"}, {"type": "null"}]}),
            ArrowType::Float64,
        ),
        (
            json!({"oneOf": [{"type": "null"}, {"type": "integer"}]}),
            ArrowType::Int64,
        ),
        (json!({"type": "boolean"}), ArrowType::Boolean),
        (json!({"enum": ["low", "high", null]}), ArrowType::Utf8),
        (
            json!({"type": "array", "items": {"type": "integer"}}),
            list(ArrowType::Int64),
        ),
        (
            json!({"type": "array", "items": {"type": ["string", "null"]}}),
            list(ArrowType::Utf8),
        ),
        (
            json!({"type": "object", "properties": {"when": {"type": "string", "format": "date-time"}}}),
            { ArrowType::Struct(vec![Field::new("when", timestamp(), true)].into()) },
        ),
    ];
    for (property, kind) in cases {
        let column = column("own", &property);
        assert_eq!(
            (column.data_type(), is_json_text(&column)),
            (&kind, false),
            "{property}"
        );
    }
    let open = [
        json!({}),
        json!(true),
        json!({"type": "object"}),
        json!({"type": "array"}),
        json!({"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}}),
        json!({"type": ["string", "number"]}),
        json!({"anyOf": [{"type": "string"}, {"type": "number"}]}),
        json!({"enum": [1, "two"]}),
        json!({"$ref": "#/$defs/thing"}),
    ];
    for property in open {
        let column = column("own", &property);
        assert!(is_json_text(&column) && column.is_nullable(), "{property}");
    }
}

#[test]
fn people_rules_and_places_of_calendar_events_are_structs() {
    let registry = registry();
    let storage = &registry.get("CalendarEvent").unwrap().layout.storage;
    let members = |name: &str| {
        let (ArrowType::Struct(members), is_list) = (match storage.field_with_name(name).unwrap().data_type()
        {
            ArrowType::List(item) => (item.data_type().clone(), true),
            other => (other.clone(), false),
        }) else {
            panic!("{name} is no struct")
        };
        let names: Vec<String> = members.iter().map(|member| member.name().clone()).collect();
        (names.join(" "), is_list)
    };
    let participant =
        "contact_id is_current_user name participant_role participant_status participant_type url";
    assert_eq!(members("organizer"), (participant.to_owned(), false));
    assert_eq!(members("participants"), (participant.to_owned(), true));
    assert_eq!(
        members("recurrence_rules"),
        (
            "calendar_id recurrence_rule_id days_of_the_month days_of_the_week days_of_the_year \
             months_of_the_year set_positions weeks_of_the_year first_day_of_the_week frequency interval"
                .to_owned(),
            true
        )
    );
    assert_eq!(
        members("geolocation"),
        (
            "altitude ellipsoidal_altitude floor horizontal_accuracy latitude longitude radius \
             vertical_accuracy is_produced_by_accessory is_simulated_by_software location_timestamp title"
                .to_owned(),
            false
        )
    );
    let unmarked = column(
        "own",
        &json!({"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}}),
    );
    assert!(
        is_json_text(&unmarked),
        "without the mark a list of objects stays text"
    );
}

/// The properties of a schema at every depth, with their paths.
fn properties(schema: &Value, path: &str) -> Vec<(String, Value)> {
    let choices = ["anyOf", "oneOf"]
        .into_iter()
        .filter_map(|keyword| schema.get(keyword)?.as_array())
        .flatten();
    let mut found: Vec<(String, Value)> = choices
        .chain(schema.get("items"))
        .flat_map(|part| properties(part, path))
        .collect();
    let members = schema.get("properties").and_then(Value::as_object);
    for (name, property) in members.into_iter().flatten() {
        let path = format!("{path}{name}");
        found.extend(properties(property, &format!("{path}.")));
        found.push((path, property.clone()));
    }
    found
}

#[test]
fn every_name_of_a_source_a_device_or_an_account_is_marked() {
    /// Names of what was recorded, and of who is in it.
    const OF_SOMETHING_ELSE: [&str; 1] = ["FileInput.name"];
    let registry = registry();
    for kind in registry.types() {
        // The name of an annotation is what the person records.
        let is_definition = |path: &str| kind.id.base().ends_with("Annotation") && path == "source_name";
        for (path, property) in properties(&kind.schema.value(), "") {
            let name = path.rsplit('.').next().unwrap_or(&path);
            let names = name == "name" || name.ends_with("_name") || name == "svc_source";
            let is_marked = ["x-private", "x-names-owner"]
                .iter()
                .any(|mark| property.get(*mark).is_some());
            let of_something_else = OF_SOMETHING_ELSE.contains(&format!("{}.{path}", kind.id).as_str());
            assert!(
                !names || is_marked || of_something_else || is_definition(&path),
                "{}.{path} is the name of something: of what?",
                kind.id
            );
        }
    }
}

#[test]
fn every_mark_of_a_name_that_tells_whose_record_it_is_reaches_its_column() {
    let registry = registry();
    for kind in registry.types() {
        let layout = &kind.layout;
        let marked = properties(&kind.schema.value(), "")
            .iter()
            .filter(|(_, property)| property.get("x-names-owner").is_some())
            .count();
        assert_eq!(layout.owners_names.len(), marked, "{}", kind.id);
        for name in &layout.owners_names {
            let column = layout.storage.field_with_name(&name.column).unwrap();
            let Some(member) = &name.member else {
                continue;
            };
            let object = match column.data_type() {
                ArrowType::List(item) => item.data_type(),
                other => other,
            };
            let ArrowType::Struct(members) = object else {
                panic!("{name:?} of {} is in no struct", kind.id)
            };
            assert!(members.find(member).is_some(), "{name:?}");
            if let Some(beside) = &name.where_true {
                let (_, mark) = members.find(beside).unwrap();
                assert_eq!(*mark.data_type(), ArrowType::Boolean, "{name:?}");
            }
        }
    }
    let of = |name: &str| registry.get(name).unwrap().layout.owners_names.len();
    assert_eq!((of("HeartRate"), of("Calendar"), of("CalendarEvent")), (2, 3, 6));
}
