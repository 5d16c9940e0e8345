//! Locations as they were recorded.

use arrow::datatypes::{DataType, TimeUnit};
use serde_json::{Value, json};

use super::{between, keys, own, rows, update, visit};
use crate::harness::{ALL_TIME, METHODS, Person, Setup, Table, at, id, person, texts};

const UPDATE: [&str; 15] = [
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

fn maps(n: u32, moment: &str, source: &str) -> Value {
    json!({
        "uuid": id(n), "timestamp": moment, "latitude_degrees": 48.1, "longitude_degrees": 11.5,
        "horizontal_accuracy_meters": 8, "source_id": source, "extras": {"activity": "walking"},
    })
}

#[tokio::test]
async fn rule_4_5_updates_of_the_device_have_the_published_columns() {
    let person = person();
    let full = json!({
        "uuid": id(1), "timestamp": at("10:00"), "latitude_degrees": 47.25, "longitude_degrees": 8.5,
        "horizontal_accuracy_meters": 5.0, "vertical_accuracy_meters": 3.0, "altitude_meters": 408.5,
        "ellipsoidal_altitude_meters": 455.5, "speed": -1.0, "speed_accuracy_meters": -1.0,
        "course_heading_degrees": -1.0, "course_heading_accuracy_degrees": -1.0, "floor": 3,
        "source_is_simulated_by_software": false, "source_is_produced_by_accessory": true,
    });
    person
        .records(
            "PlatformLocationUpdate",
            &[full.clone(), update(id(2), &at("10:05"), 47.3, 8.6, 9.0)],
        )
        .await;
    let found = rows(between(
        own(&person, "platform_location_updates"),
        &at("10:00"),
        &at("11:00"),
    ))
    .await;
    assert_eq!(found[0], full, "-1 means unknown and stays");
    assert!(found.iter().all(|row| keys(row) == UPDATE), "{found:?}");
    assert!(found[1]["altitude_meters"].is_null() && found[1]["floor"].is_null());
    assert_eq!(
        rows(between(
            own(&person, "platform_location_updates"),
            &at("10:00"),
            &at("10:05")
        ))
        .await
        .len(),
        1,
        "the end is not part"
    );
}

#[tokio::test]
async fn every_output_method_tells_the_same_updates() {
    let person = person();
    person
        .records(
            "PlatformLocationUpdate",
            &[update(id(1), &at("10:00"), 47.25, 8.5, 9.0)],
        )
        .await;
    person
        .records("MapsLocationUpdate", &[maps(2, &at("10:01"), "a")])
        .await;
    for method in METHODS {
        let reply = between(own(&person, "location_updates"), &at("10:00"), &at("11:00"))
            .with("output", method)
            .await
            .must_be(200);
        let table = Table::read(method, &reply.body);
        assert_eq!(table.rows.len(), 2, "{method}");
        assert_eq!(table.columns[..15], UPDATE, "{method}");
        assert_eq!(table.columns[15..], ["location_source"], "{method}");
        if let Some(schema) = table.schema {
            let kind = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
            assert_eq!(
                schema.field_with_name("timestamp").unwrap().data_type(),
                &kind,
                "{method}"
            );
        }
    }
}

#[tokio::test]
async fn rule_4_5_visits_are_selected_by_intersection_and_keep_their_sentinels() {
    let person = person();
    let visits = [
        visit(id(1), "0001-01-01T00:00:00Z", &at("09:00"), 1.0, 1.0),
        visit(id(2), &at("08:00"), &at("10:00"), 2.0, 2.0),
        visit(id(3), &at("12:00"), "4001-01-01T00:00:00Z", 3.0, 3.0),
        visit(id(4), "0001-01-01T00:00:00Z", "4001-01-01T00:00:00Z", 4.0, 4.0),
        visit(id(5), "2019-01-01T00:00:00Z", "2019-01-02T00:00:00Z", 5.0, 5.0),
    ];
    person.records("PlatformLocationVisit", &visits).await;
    let during = |start: &'static str, end: &'static str| {
        let call = between(own(&person, "platform_location_visits"), start, end);
        async move { texts(&rows(call).await, "uuid") }
    };
    let ids = |numbers: &[u32]| numbers.iter().map(|n| id(*n).to_string()).collect::<Vec<_>>();
    assert_eq!(
        during("2024-05-01T08:30:00Z", "2024-05-01T08:40:00Z").await,
        ids(&[1, 4, 2])
    );
    assert_eq!(
        during("2024-05-01T10:00:00Z", "2024-05-01T12:00:00Z").await,
        ids(&[4]),
        "touching is not intersecting"
    );
    assert_eq!(during("3000-01-01", "3000-01-02").await, ids(&[4, 3]));
    assert_eq!(during("0500-01-01", "0500-01-02").await, ids(&[1, 4]));
    assert_eq!(
        during("2019-01-01T12:00:00Z", "2019-01-01T13:00:00Z").await,
        ids(&[1, 4, 5])
    );
    let all = rows(between(
        own(&person, "platform_location_visits"),
        ALL_TIME.0,
        ALL_TIME.1,
    ))
    .await;
    assert_eq!(
        keys(&all[0]),
        [
            "uuid",
            "latitude_degrees",
            "longitude_degrees",
            "horizontal_accuracy_meters",
            "arrival_date",
            "departure_date"
        ]
    );
    for given in &visits {
        assert!(all.contains(given), "{given} among {all:?}");
    }
}

#[tokio::test]
async fn who_reported_a_place_is_read_and_written_back() {
    let person = person();
    let phone = json!({"name": "Phone", "version": "3", "productType": "iPhone15,2",
        "operatingSystemVersion": [17, 4, 1], "sourceBundleIdentifier": "com.example.places", "build": "a1"});
    let watch = json!({"name": "Watch", "model": "Watch", "manufacturer": null, "hardwareVersion": "Watch6,2",
        "softwareVersion": "10.4"});
    let with_source = |mut record: Value| {
        record["source_properties"] = phone.clone();
        record["device_properties"] = watch.clone();
        record["activity"] = json!("walking");
        record
    };
    let sources = || async {
        let listed = person.get("/data/v1alpha1/data_sources").await;
        listed.must_be(200).json()
    };
    for (data_type, table, v0, record) in [
        (
            "PlatformLocationUpdate",
            "platform_location_update",
            "platform_location_updates",
            update(id(1), &at("10:00"), 47.25, 8.5, 9.0),
        ),
        (
            "PlatformLocationVisit",
            "platform_location_visit",
            "platform_location_visits",
            visit(id(2), &at("10:00"), &at("10:30"), 47.25, 8.5),
        ),
        (
            "MapsLocationUpdate",
            "maps_location_update",
            "maps_location_updates",
            update(id(3), &at("10:00"), 47.25, 8.5, 9.0),
        ),
    ] {
        let bare = person.record(data_type, &record).await;
        assert_eq!(bare.json()["stored"], 1, "{bare}");
        let asked = || between(own(&person, v0), &at("09:00"), &at("11:00"));
        let at_v0 = rows(asked()).await.remove(0);
        let record = with_source(record);
        person.record(data_type, &record).await.upload();
        let row = person.rows("event", data_type).await.remove(0);
        for (name, given) in record["source_properties"].as_object().unwrap() {
            let shown = if name == "build" {
                &row["extras"]["source_properties"][name]
            } else {
                &row["source_properties"][name]
            };
            assert_eq!(shown, given, "{data_type} {name}");
        }
        assert_eq!(row["device_properties"], watch, "{data_type}");
        let known = sources().await;
        let again = person.record(data_type, &row).await;
        assert_eq!(again.json()["unchanged"], 1, "{data_type}: {again}");
        assert_eq!(sources().await, known);
        let selected = person
            .read("event", data_type)
            .with("columns", "source_properties")
            .await;
        assert_eq!(
            selected.must_be(200).rows(),
            [json!({"source_properties": row["source_properties"]})]
        );
        let sql = format!("SELECT source_properties, device_properties FROM {table}");
        let told = person
            .post("/data/v1/sql", &json!({"query": sql, "output": "jstable"}))
            .await;
        assert!(told.must_be(200).text().contains("com.example.places"));
        assert_eq!(
            keys(&rows(asked()).await[0]),
            keys(&at_v0),
            "v0 has its columns and no others"
        );
    }
}

#[tokio::test]
async fn maps_updates_can_be_those_of_one_source() {
    let person = person();
    let bundled = json!({
        "uuid": id(3), "timestamp": at("10:02"), "latitude_degrees": 1, "longitude_degrees": 2,
        "source_properties": {"name": "Maps", "sourceBundleIdentifier": "com.example.maps"},
    });
    person
        .records(
            "MapsLocationUpdate",
            &[
                maps(1, &at("10:00"), "phone"),
                maps(2, &at("10:01"), "export"),
                bundled,
            ],
        )
        .await;
    let of = |source: Option<String>| {
        let call = between(own(&person, "maps_location_updates"), &at("10:00"), &at("11:00"));
        let call = source
            .iter()
            .fold(call, |call, source| call.with("svc_source_id", source));
        async move { rows(call).await }
    };
    let all = of(None).await;
    assert_eq!(all.len(), 3);
    assert_eq!(
        keys(&all[0]),
        [
            "uuid",
            "timestamp",
            "latitude_degrees",
            "longitude_degrees",
            "horizontal_accuracy_meters",
            "source_id",
            "extras"
        ]
    );
    assert_eq!(all[0]["extras"], json!({"activity": "walking"}));
    assert_eq!(
        texts(&of(Some("export".to_owned())).await, "uuid"),
        [id(2).to_string()]
    );
    assert_eq!(
        texts(&of(Some("com.example.maps".to_owned())).await, "uuid"),
        [id(3).to_string()]
    );
    let sources = person.sources().await;
    let listed = sources
        .iter()
        .find(|source| source["vendor_id"] == json!("com.example.maps"))
        .unwrap();
    let by_id = of(Some(listed["id"].as_str().unwrap().to_owned())).await;
    assert_eq!(texts(&by_id, "uuid"), [id(3).to_string()]);
    assert!(of(Some("nobody".to_owned())).await.is_empty());
}

async fn bounds(person: &Person, source: Option<&str>) -> (Value, Value) {
    let call = own(person, "maps_location_updates/bounds");
    let call = source
        .iter()
        .fold(call, |call, source| call.with("source", source));
    let found = call.await.must_be(200).json();
    assert_eq!(keys(&found), ["start_date", "end_date"]);
    (found["start_date"].clone(), found["end_date"].clone())
}

#[tokio::test]
async fn rule_4_6_bounds_are_the_first_and_last_moment() {
    let almanac = Setup::default().busy_upkeep().start();
    let person = almanac.person();
    assert_eq!(bounds(&person, None).await, (Value::Null, Value::Null));
    let records = [
        maps(1, &at("10:00"), "a"),
        maps(2, &at("11:00"), "b"),
        maps(3, "2021-01-01T00:00:00.000001Z", "a"),
        maps(4, &at("12:00"), "a"),
    ];
    person.records("MapsLocationUpdate", &records).await;
    let span = |start: &str, end: &str| (json!(start), json!(end));
    let all = span("2021-01-01T00:00:00.000001Z", &at("12:00"));
    assert_eq!(bounds(&person, None).await, all);
    assert_eq!(bounds(&person, Some("b")).await, span(&at("11:00"), &at("11:00")));
    assert_eq!(bounds(&person, Some("c")).await, (Value::Null, Value::Null));
    // Deleted rows bound nothing, flushed or not.
    person.delete("MapsLocationUpdate", id(3)).await;
    person.delete("MapsLocationUpdate", id(4)).await;
    assert_eq!(bounds(&person, None).await, span(&at("10:00"), &at("11:00")));
    assert_eq!(bounds(&almanac.person(), None).await, (Value::Null, Value::Null));
}

#[tokio::test]
async fn rule_4_5_both_sources_in_one_shape() {
    let person = person();
    person
        .records(
            "PlatformLocationUpdate",
            &[
                update(id(1), &at("10:00"), 47.0, 8.0, 5.0),
                update(id(3), &at("10:02"), 47.2, 8.0, 5.0),
            ],
        )
        .await;
    person
        .records("MapsLocationUpdate", &[maps(2, &at("10:01"), "a")])
        .await;
    let of = |sources: &'static [&'static str]| {
        let call = between(own(&person, "location_updates"), &at("10:00"), &at("11:00"));
        let call = sources
            .iter()
            .fold(call, |call, source| call.with("location_sources", source));
        async move { rows(call).await }
    };
    let all = of(&[]).await;
    assert_eq!(texts(&all, "uuid"), [1, 2, 3].map(|n| id(n).to_string()));
    assert_eq!(
        texts(&all, "location_source"),
        [
            "platform_location_update",
            "maps_location_update",
            "platform_location_update"
        ]
    );
    assert!(all.iter().all(|row| keys(row) == keys(&all[0])), "one shape");
    assert_eq!(of(&["mobile_os", "maps"]).await, all);
    assert_eq!(of(&["maps,mobile_os"]).await, all);
    assert_eq!(texts(&of(&["maps"]).await, "uuid"), [id(2).to_string()]);
    assert_eq!(
        texts(&of(&["mobile_os"]).await, "uuid"),
        [1, 3].map(|n| id(n).to_string())
    );
    let refused = between(own(&person, "location_updates"), &at("10:00"), &at("11:00"))
        .with("location_sources", "gps")
        .await;
    assert_eq!(refused.faults(), ["query.location_sources"]);
}

#[tokio::test]
async fn rule_4_1_what_cannot_be_believed_is_still_told_as_it_was() {
    let person = person();
    let records = [
        update(id(1), &at("10:00"), 0.0, 0.0, -1.0),
        json!({"uuid": id(2), "timestamp": at("10:01"), "latitude_degrees": 0, "longitude_degrees": 0}),
        update(id(3), &at("10:02"), 90.0, 12.0, 5.0),
        update(id(4), &at("10:03"), -90.0, -12.0, 5.0),
        update(id(5), &at("10:04"), 10.0, 180.0, 5.0),
        update(id(6), &at("10:05"), 10.0, -180.0, 5.0),
    ];
    person.records("PlatformLocationUpdate", &records).await;
    let again = json!({
        "uuid": id(7), "timestamp": at("10:06"), "latitude_degrees": 10, "longitude_degrees": 180,
        "note": "the complete way",
    });
    person.record("PlatformLocationUpdate", &again).await.upload();
    let found = rows(between(
        own(&person, "platform_location_updates"),
        &at("10:00"),
        &at("11:00"),
    ))
    .await;
    let told: Vec<(f64, f64)> = found
        .iter()
        .map(|row| {
            (
                row["latitude_degrees"].as_f64().unwrap(),
                row["longitude_degrees"].as_f64().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            (0.0, 0.0),
            (0.0, 0.0),
            (90.0, 12.0),
            (-90.0, -12.0),
            (10.0, -180.0),
            (10.0, -180.0),
            (10.0, -180.0)
        ]
    );
    assert_eq!(found[0]["horizontal_accuracy_meters"], json!(-1.0));
    for (latitude, longitude) in [(90.1, 0.0), (-90.000_001, 0.0), (0.0, 180.1), (0.0, -181.0)] {
        for data_type in ["PlatformLocationUpdate", "MapsLocationUpdate"] {
            let faults = person
                .record(data_type, &update(id(9), &at("10:00"), latitude, longitude, 5.0))
                .await
                .faults();
            assert!(
                faults.iter().any(|place| place.ends_with("tude_degrees")),
                "{faults:?}"
            );
        }
        person
            .record(
                "PlatformLocationVisit",
                &visit(id(9), &at("10:00"), &at("11:00"), latitude, longitude),
            )
            .await
            .faults();
    }
}

#[tokio::test]
async fn locations_are_replaced_and_deleted_like_anything_else() {
    let almanac = Setup::default().busy_upkeep().start();
    let person = almanac.person();
    let read = || between(own(&person, "location_updates"), &at("10:00"), &at("11:00"));
    person
        .records(
            "PlatformLocationUpdate",
            &[update(id(1), &at("10:00"), 1.0, 1.0, 5.0)],
        )
        .await;
    person
        .records("MapsLocationUpdate", &[maps(2, &at("10:01"), "a")])
        .await;
    person
        .records(
            "PlatformLocationUpdate",
            &[update(id(1), &at("10:30"), 2.0, 2.0, 5.0)],
        )
        .await;
    let found = rows(read()).await;
    assert_eq!(texts(&found, "timestamp"), [at("10:01"), at("10:30")]);
    person.delete("MapsLocationUpdate", id(2)).await;
    person.delete("PlatformLocationUpdate", id(2)).await;
    assert_eq!(texts(&rows(read()).await, "uuid"), [id(1).to_string()]);
    let visits = || {
        between(
            own(&person, "platform_location_visits"),
            &at("10:00"),
            &at("11:00"),
        )
    };
    person
        .records(
            "PlatformLocationVisit",
            &[visit(id(1), &at("10:00"), &at("10:20"), 1.0, 1.0)],
        )
        .await;
    person
        .records(
            "PlatformLocationVisit",
            &[visit(id(1), &at("10:00"), &at("10:40"), 1.0, 1.0)],
        )
        .await;
    assert_eq!(texts(&rows(visits()).await, "departure_date"), [at("10:40")]);
    person.delete("PlatformLocationVisit", id(1)).await;
    assert!(rows(visits()).await.is_empty());
}

#[tokio::test]
async fn bad_ranges_and_people_are_named() {
    let person = person();
    for what in [
        "platform_location_updates",
        "platform_location_visits",
        "maps_location_updates",
        "location_updates",
        "platform_workouts",
        "calendar_events",
    ] {
        assert_eq!(
            own(&person, what).with("start_time", "2024-05-01").await.faults(),
            ["query.end_time"],
            "{what}"
        );
        assert_eq!(
            between(own(&person, what), &at("11:00"), &at("10:00"))
                .await
                .faults(),
            ["query.end_time"],
            "{what}"
        );
        assert!(
            rows(between(own(&person, what), &at("10:00"), &at("10:00")))
                .await
                .is_empty(),
            "{what}"
        );
        assert_eq!(
            between(own(&person, what), &at("10:00"), &at("11:00"))
                .with("output", "xml")
                .await
                .faults(),
            ["query.output"],
            "{what}"
        );
    }
    let stranger = crate::harness::person();
    for what in [
        "platform_location_updates",
        "platform_location_visits",
        "maps_location_updates",
        "maps_location_updates/bounds",
        "location_updates",
        "platform_workouts",
        "calendar_events",
        "calendars",
    ] {
        let call = stranger.get(&format!("/data/v0/{}/{what}", person.id));
        between(call, &at("10:00"), &at("11:00")).await.problem(403);
    }
    let call = person.get("/data/v0/somebody/location_updates");
    assert_eq!(
        between(call, &at("10:00"), &at("11:00")).await.faults(),
        ["path.svc_userid"]
    );
}

#[tokio::test]
async fn ends_that_nobody_knows_are_null_where_that_is_asked() {
    let person = person();
    let visits = [
        visit(id(1), "0001-01-01T00:00:00Z", &at("09:00"), 1.0, 1.0),
        visit(id(2), &at("08:00"), &at("10:00"), 2.0, 2.0),
        visit(id(3), &at("12:00"), "4001-01-01T00:00:00Z", 3.0, 3.0),
    ];
    person.records("PlatformLocationVisit", &visits).await;
    let ask = || {
        between(
            own(&person, "platform_location_visits"),
            &at("00:00"),
            &at("23:00"),
        )
    };
    let ends = |rows: &[Value]| -> Vec<(Value, Value)> {
        let of = |row: &Value| (row["arrival_date"].clone(), row["departure_date"].clone());
        rows.iter().map(of).collect()
    };
    let expected = [
        (Value::Null, json!(at("09:00"))),
        (json!(at("08:00")), json!(at("10:00"))),
        (json!(at("12:00")), Value::Null),
    ];
    let null = ask().with("open_ends", "null").await.must_be(200).rows();
    assert_eq!(ends(&null), expected);
    let again = person
        .lines("PlatformLocationVisit", &null)
        .await
        .must_be(201)
        .json();
    assert_eq!(again["unchanged"], json!(3), "sent as they were read: {again}");
    let usual = ask().await.must_be(200).rows();
    assert_eq!(ask().with("open_ends", "sentinel").await.rows(), usual);
    assert_eq!(usual[0]["arrival_date"], "0001-01-01T00:00:00Z");
    assert_eq!(
        ask().with("open_ends", "never").await.faults(),
        ["query.open_ends"]
    );
    for method in METHODS {
        let reply = ask()
            .with("open_ends", "null")
            .with("output", method)
            .await
            .must_be(200);
        assert_eq!(Table::read(method, &reply.body).rows.len(), 3, "{method}");
    }
}
