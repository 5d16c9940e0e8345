//! Calendars, their events, and workouts.

use arrow::datatypes::DataType;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{between, flushed, keys, own, rows};
use crate::harness::{ALL_TIME, METHODS, Person, Setup, Table, at, id, person, texts};

const EVENT: [&str; 29] = [
    "calendar_event_id",
    "calendar_id",
    "start_date",
    "end_date",
    "allow_new_time_proposals",
    "availability",
    "calendar_item_external_identifier",
    "calendar_item_identifier",
    "event_identifier",
    "creation_date",
    "last_modified_date",
    "occurrence_date",
    "extras",
    "geolocation",
    "has_alarms",
    "has_attendees",
    "has_notes",
    "has_recurrence_rules",
    "is_all_day",
    "is_detached",
    "location",
    "notes",
    "title",
    "url",
    "time_zone",
    "organizer",
    "participants",
    "recurrence_rules",
    "status",
];

fn event(n: u32, calendar: Uuid, start: &str, end: &str) -> Value {
    json!({"calendar_event_id": id(n), "calendar_id": calendar, "start_date": start, "end_date": end})
}

fn participant(name: &str) -> Value {
    json!({
        "contact_id": null, "is_current_user": false, "name": name, "participant_role": "required",
        "participant_status": "accepted", "participant_type": "person",
        "url": format!("mailto:{name}@example.com"),
    })
}

fn full_event() -> Value {
    json!({
        "calendar_event_id": id(1), "calendar_id": id(100), "start_date": at("10:00"),
        "end_date": at("11:00"), "allow_new_time_proposals": true,
        "availability": "busy", "calendar_item_external_identifier": "X-1", "calendar_item_identifier": "I-1",
        "event_identifier": "E-1",
        "creation_date": at("01:00"), "last_modified_date": at("02:00"), "occurrence_date": at("10:00"),
        "extras": {"colour": "blue"},
        "geolocation": {
            "altitude": 400.5, "ellipsoidal_altitude": 447.5, "floor": 2.0, "horizontal_accuracy": 5.0,
            "latitude": 47.25, "longitude": 8.5, "radius": 50.0, "vertical_accuracy": 3.0,
            "is_produced_by_accessory": false, "is_simulated_by_software": true,
            "location_timestamp": at("09:00"), "title": "Office",
        },
        "has_alarms": true, "has_attendees": true, "has_notes": true, "has_recurrence_rules": true,
        "is_all_day": false, "is_detached": false,
        "location": "Office", "notes": "Bring \"cake\"", "title": "Planning", "url": "https://example.com",
        "time_zone": "Europe/Zurich",
        "organizer": participant("Ada"), "participants": [participant("Grace"), participant("Edsger")],
        "recurrence_rules": [{
            "calendar_id": id(100), "recurrence_rule_id": id(200), "days_of_the_month": [1, -1],
            "days_of_the_week": [{"day": 2, "week": 0}], "days_of_the_year": null, "months_of_the_year": [],
            "set_positions": null, "weeks_of_the_year": null, "first_day_of_the_week": 2,
            "frequency": "weekly", "interval": 1,
        }],
        "status": "confirmed",
    })
}

#[tokio::test]
async fn an_event_comes_back_with_every_field() {
    let person = person();
    person
        .records(
            "CalendarEvent",
            &[full_event(), event(2, id(100), &at("10:30"), &at("10:40"))],
        )
        .await;
    let found = rows(between(
        own(&person, "calendar_events"),
        &at("10:00"),
        &at("11:00"),
    ))
    .await;
    assert_eq!(found[0], full_event());
    assert_eq!(keys(&found[0]), EVENT);
    assert_eq!(keys(&found[1]), EVENT, "every field is present");
    let given = ["calendar_event_id", "calendar_id", "start_date", "end_date"];
    assert!(
        EVENT
            .iter()
            .all(|name| found[1][name].is_null() != given.contains(name)),
        "{}",
        found[1]
    );
}

#[tokio::test]
async fn people_rules_and_places_are_structs_in_frames_also_after_a_flush() {
    let almanac = Setup::default().busy_upkeep().start();
    let person = almanac.person();
    let others = (10..20).map(|n| event(n, id(100), &at("12:00"), &at("12:30")));
    let all: Vec<Value> = std::iter::once(full_event()).chain(others).collect();
    person.records("CalendarEvent", &all).await;
    flushed(&almanac).await;
    for method in METHODS {
        let reply = between(own(&person, "calendar_events"), ALL_TIME.0, ALL_TIME.1)
            .with("output", method)
            .await
            .must_be(200);
        let table = Table::read(method, &reply.body);
        assert_eq!(
            (table.rows.len(), &table.columns[..]),
            (11, &EVENT.map(str::to_owned)[..]),
            "{method}"
        );
        let Some(schema) = table.schema else { continue };
        let kind = |name: &str| schema.field_with_name(name).unwrap().data_type().clone();
        for name in ["organizer", "geolocation"] {
            assert!(
                matches!(kind(name), DataType::Struct(_)),
                "{method} {name}: {}",
                kind(name)
            );
        }
        for name in ["participants", "recurrence_rules"] {
            let DataType::List(item) = kind(name) else {
                panic!("{method} {name}: {}", kind(name))
            };
            assert!(
                matches!(item.data_type(), DataType::Struct(_)),
                "{method} {name}: {item}"
            );
        }
    }
    let found = rows(between(
        own(&person, "calendar_events"),
        &at("10:00"),
        &at("11:00"),
    ))
    .await;
    assert_eq!(found, [full_event()]);
    person.records("CalendarEvent", &found).await;
    assert_eq!(
        rows(between(
            own(&person, "calendar_events"),
            &at("10:00"),
            &at("11:00")
        ))
        .await,
        found,
        "written back, nothing changes"
    );
}

#[tokio::test]
async fn a_participant_of_whom_only_a_name_or_a_contact_is_known_is_a_participant() {
    let person = person();
    let mut invited = event(1, id(100), &at("10:00"), &at("11:00"));
    invited["organizer"] = json!(id(7));
    invited["participants"] = json!(["grace@example.com", {"name": "Ada", "unheard_of": 1}]);
    person.records("CalendarEvent", &[invited.clone()]).await;
    let found = rows(between(
        own(&person, "calendar_events"),
        &at("10:00"),
        &at("11:00"),
    ))
    .await;
    assert_eq!(found[0]["organizer"]["contact_id"], json!(id(7)));
    assert_eq!(found[0]["participants"][0]["name"], json!("grace@example.com"));
    assert_eq!(keys(&found[0]["participants"][0]).len(), 7);
    assert_eq!(
        found[0]["extras"]["participants"], invited["participants"],
        "what has no column is kept"
    );
    for bad in [
        json!({"participants": [1]}),
        json!({"organizer": "nobody"}),
        json!({"recurrence_rules": [{"frequency": "weekly"}]}),
        json!({"geolocation": {"latitude": 91}}),
    ] {
        let mut refused = event(2, id(100), &at("10:00"), &at("11:00"));
        refused
            .as_object_mut()
            .unwrap()
            .extend(bad.as_object().unwrap().clone());
        let faults = person.record("CalendarEvent", &refused).await.faults();
        let name = bad.as_object().unwrap().keys().next().unwrap();
        assert!(
            faults.iter().any(|place| place.contains(name.as_str())),
            "{name}: {faults:?}"
        );
    }
}

#[tokio::test]
async fn events_are_selected_by_intersection_and_by_calendar() {
    let person = person();
    let (work, home) = (
        id(100),
        Uuid::from_u128(0xABCD_0000_0000_4000_8000_0000_0000_00EF),
    );
    let mut loud = event(5, home, &at("10:50"), &at("10:55"));
    loud["calendar_id"] = json!(home.to_string().to_uppercase());
    let events = [
        event(1, work, &at("09:00"), &at("10:00")),
        event(2, work, &at("09:30"), &at("10:30")),
        event(3, home, &at("10:15"), &at("10:15")),
        event(4, home, &at("11:00"), &at("12:00")),
        loud,
    ];
    person.records("CalendarEvent", &events).await;
    let of = |calendars: Option<String>| {
        let call = between(own(&person, "calendar_events"), &at("10:00"), &at("11:00"));
        let call = calendars
            .iter()
            .fold(call, |call, ids| call.with("calendar_ids", ids));
        async move { texts(&rows(call).await, "calendar_event_id") }
    };
    let ids = |numbers: &[u32]| numbers.iter().map(|n| id(*n).to_string()).collect::<Vec<_>>();
    assert_eq!(of(None).await, ids(&[2, 3, 5]));
    assert_eq!(of(Some(work.to_string())).await, ids(&[2]));
    assert_eq!(of(Some(home.to_string().to_uppercase())).await, ids(&[3, 5]));
    assert_eq!(of(Some(format!("{work},{home}"))).await, ids(&[2, 3, 5]));
    assert_eq!(of(Some(id(9).to_string())).await, ids(&[]));
    let refused = between(own(&person, "calendar_events"), &at("10:00"), &at("11:00"))
        .with("calendar_ids", &format!("{work},work"))
        .await;
    assert_eq!(refused.faults(), ["query.calendar_ids"]);
}

#[tokio::test]
async fn events_and_calendars_are_joined_by_id_however_it_was_spelt() {
    let person = person();
    let calendar = Uuid::from_u128(0xABCD_EF00_0000_4000_8000_0000_0000_00EF);
    let (loud, simple) = (calendar.to_string().to_uppercase(), calendar.simple().to_string());
    let mixed = loud.replacen('A', "a", 1);
    person
        .records(
            "Calendar",
            &[json!({"calendar_id": loud, "calendar_identifier": "B", "calendar_name": "W"})],
        )
        .await;
    let mut events = Vec::new();
    for (n, spelling) in [&loud, &mixed, &simple].into_iter().enumerate() {
        let mut event = event(n as u32 + 1, calendar, &at("10:00"), &at("10:30"));
        event["calendar_id"] = json!(spelling);
        events.push(event);
    }
    person.records("CalendarEvent", &events).await;
    let calendars = rows(own(&person, "calendars")).await;
    assert_eq!(texts(&calendars, "calendar_id"), [calendar.to_string()]);
    for spelling in [&calendar.to_string(), &loud, &mixed, &simple] {
        let call = between(own(&person, "calendar_events"), &at("10:00"), &at("11:00"))
            .with("calendar_ids", spelling);
        let found = rows(call).await;
        assert_eq!(
            texts(&found, "calendar_id"),
            vec![calendar.to_string(); 3],
            "{spelling}"
        );
        let filtered = person
            .read("event", "CalendarEvent")
            .with("filter", &format!("calendar_id:{spelling}"));
        assert_eq!(filtered.await.must_be(200).rows().len(), 3, "{spelling}");
        let others = person
            .read("event", "CalendarEvent")
            .with("filter", &format!("calendar_id!={spelling}"));
        assert!(others.await.must_be(200).rows().is_empty(), "{spelling}");
    }
}

#[tokio::test]
async fn calendars_keep_the_time_of_their_first_upload() {
    let person = person();
    let calendar = |n: u32, name: &str| {
        json!({
            "calendar_id": id(n), "calendar_identifier": name, "calendar_name": name,
        })
    };
    person.records("Calendar", &[calendar(1, "a")]).await;
    person.records("Calendar", &[calendar(2, "b")]).await;
    let stored = rows(own(&person, "calendars")).await;
    let counted = person.updates("Calendar").await;
    person.records("Calendar", &[calendar(1, "a")]).await;
    assert_eq!(rows(own(&person, "calendars")).await, stored);
    assert_eq!(person.updates("Calendar").await, counted, "nothing was changed");
    person.records("Calendar", &[calendar(1, "renamed")]).await;
    let renamed = rows(own(&person, "calendars")).await;
    assert_eq!(texts(&renamed, "calendar_name"), ["renamed", "b"]);
    assert_eq!(texts(&renamed, "inserted_at"), texts(&stored, "inserted_at"));
}

#[tokio::test]
async fn calendars_with_a_comma_in_their_identifier_can_be_chosen() {
    let person = person();
    let calendar = |n: u32, name: &str| {
        json!({
            "calendar_id": id(n), "calendar_identifier": name, "calendar_name": name,
        })
    };
    person
        .records(
            "Calendar",
            &[calendar(1, "A,1"), calendar(2, "B"), calendar(3, "C")],
        )
        .await;
    let of = async |values: &[&str]| {
        let call = values.iter().fold(own(&person, "calendars"), |call, value| {
            call.with("vendor_ids", value)
        });
        let mut names = texts(&rows(call).await, "calendar_identifier");
        names.sort();
        names
    };
    assert_eq!(of(&["A,1"]).await, ["A,1"]);
    assert_eq!(of(&["A,1", "B"]).await, ["A,1", "B"]);
    assert_eq!(of(&["B,C"]).await, ["B", "C"]);
}

#[tokio::test]
async fn all_day_events_take_place_on_the_days_of_their_own_zone() {
    let person = person();
    let all_day = |n: u32, start: &str, end: &str, zone: Value| {
        let mut event = event(n, id(100), start, end);
        event["is_all_day"] = json!(true);
        event["time_zone"] = zone;
        event
    };
    let events = [
        all_day(
            1,
            "2024-05-01T00:00:00Z",
            "2024-05-02T00:00:00Z",
            json!("America/New_York"),
        ),
        all_day(
            2,
            "2024-05-01T04:00:00Z",
            "2024-05-02T03:59:59Z",
            json!("America/New_York"),
        ),
        all_day(3, "2024-05-01T00:00:00Z", "2024-05-01T00:00:00Z", json!(null)),
        all_day(
            4,
            "2024-05-01T00:00:00Z",
            "2024-05-01T23:59:59Z",
            json!("Pacific/Auckland"),
        ),
        all_day(
            5,
            "2024-05-01T00:00:00Z",
            "2024-05-02T00:00:00Z",
            json!("nowhere/at all"),
        ),
    ];
    person.records("CalendarEvent", &events).await;
    let during = |start: &'static str, end: &'static str| {
        let call = between(own(&person, "calendar_events"), start, end);
        async move {
            let mut found = texts(&rows(call).await, "calendar_event_id");
            found.sort();
            found
        }
    };
    let ids = |numbers: &[u32]| numbers.iter().map(|n| id(*n).to_string()).collect::<Vec<_>>();
    assert_eq!(
        during("2024-05-01T04:00:00Z", "2024-05-01T05:00:00Z").await,
        ids(&[1, 2, 3, 4, 5])
    );
    assert_eq!(
        during("2024-05-01T03:00:00Z", "2024-05-01T04:00:00Z").await,
        ids(&[3, 4, 5]),
        "New York still has April"
    );
    assert_eq!(
        during("2024-05-02T03:00:00Z", "2024-05-02T04:00:00Z").await,
        ids(&[1, 2]),
        "New York still has the first of May"
    );
    assert_eq!(
        during("2024-04-30T12:00:00Z", "2024-04-30T13:00:00Z").await,
        ids(&[4]),
        "Auckland has it already"
    );
    let shown = rows(between(
        own(&person, "calendar_events"),
        "2024-04-30T12:00:00Z",
        "2024-04-30T13:00:00Z",
    ))
    .await;
    assert_eq!(
        shown[0]["start_date"],
        json!("2024-05-01T00:00:00Z"),
        "as it was recorded"
    );
}

fn calendar(n: u32, identifier: &str) -> Value {
    json!({
        "calendar_id": id(n), "calendar_identifier": identifier, "calendar_name": "Work",
        "calendar_color": "#3366FF", "calendar_type": "caldav", "calendar_source_id": "S1",
        "calendar_source_name": "Example", "source_type": "caldav", "svc_source": "phone",
        "inserted_at": at("10:00"), "is_immutable": false, "is_subscribed": true, "color": "blue",
    })
}

async fn calendars(person: &Person, vendors: &[&str]) -> Vec<Value> {
    let call = vendors.iter().fold(own(person, "calendars"), |call, vendor| {
        call.with("vendor_ids", vendor)
    });
    rows(call).await
}

#[tokio::test]
async fn calendars_have_every_field_and_are_found_by_their_identifiers() {
    let person = person();
    assert!(calendars(&person, &[]).await.is_empty());
    let bare = json!({
        "calendar_id": id(2), "calendar_identifier": "B 2", "calendar_name": "Bare",
        "inserted_at": at("11:00"),
    });
    person
        .records("Calendar", &[calendar(1, "A/1"), bare, calendar(3, "C-3")])
        .await;
    let all = calendars(&person, &[]).await;
    assert_eq!(all[0], calendar(1, "A/1"));
    let found = texts(&all, "calendar_identifier");
    assert_eq!(found, ["A/1", "C-3", "B 2"], "as they were uploaded");
    for row in &all {
        assert_eq!(
            keys(row),
            [
                "calendar_id",
                "calendar_identifier",
                "calendar_name",
                "calendar_color",
                "calendar_type",
                "calendar_source_id",
                "calendar_source_name",
                "source_type",
                "svc_source",
                "inserted_at",
                "is_immutable",
                "is_subscribed",
                "color"
            ]
        );
        assert!(
            row.as_object().unwrap().iter().all(|(_, value)| !value.is_null()),
            "{row}"
        );
    }
    assert_eq!(texts(&all, "color"), ["blue", "blue", ""]);
    assert_eq!(
        texts(&calendars(&person, &["B 2"]).await, "calendar_id"),
        [id(2).to_string()]
    );
    assert_eq!(calendars(&person, &["A/1", "C-3"]).await.len(), 2);
    assert_eq!(calendars(&person, &["A/1,C-3"]).await.len(), 2);
    assert!(calendars(&person, &["nothing"]).await.is_empty());
    person.delete("Calendar", id(1)).await;
    assert_eq!(calendars(&person, &[]).await.len(), 2);
}

#[tokio::test]
async fn a_workout_comes_back_with_every_field() {
    let almanac = Setup::default().busy_upkeep().start();
    let person = almanac.person();
    let statistics = json!({
        "HeartRate": {
            "average": 142, "minimum": 96, "maximum": 171, "unit": "bpm", "startDate": at("07:00"),
            "endDate": at("07:42"),
        },
    });
    let full = json!({
        "platform_workout_id": id(1), "all_statistics": statistics, "device": {"name": "Watch"},
        "duration": 2460.5, "start_date": at("07:00"),
        "end_date": at("07:42"), "extras": {"weather": "fair"}, "has_undetermined_duration": false,
        "source_revision": {"version": "10.4", "productType": "Watch6,2"},
        "workout_activities": [{
            "uuid": id(9), "startDate": at("07:00"), "endDate": at("07:42"), "duration": 2460.5,
            "workoutConfiguration": {"activityType": "running"}, "allStatistics": statistics,
            "workoutEvents": [{"type": "lap"}],
        }],
        "workout_activity_type": "running", "workout_events": [{"type": "pause", "start_date": at("07:20")}],
    });
    let bare = json!({"platform_workout_id": id(2), "start_date": at("08:00"), "end_date": at("08:30")});
    person.records("PlatformWorkout", &[full.clone(), bare]).await;
    for in_objects in [false, true] {
        if in_objects {
            flushed(&almanac).await;
        }
        let found = rows(between(
            own(&person, "platform_workouts"),
            &at("07:30"),
            &at("09:00"),
        ))
        .await;
        assert_eq!(found[0], full, "in objects: {in_objects}");
        assert_eq!(
            keys(&found[0]),
            full.as_object().unwrap().keys().collect::<Vec<_>>()
        );
        let expected = json!({
            "platform_workout_id": id(2), "all_statistics": {}, "device": null, "duration": 1800.0,
            "start_date": at("08:00"), "end_date": at("08:30"), "extras": null,
            "has_undetermined_duration": false, "source_revision": {}, "workout_activities": [],
            "workout_activity_type": "", "workout_events": [],
        });
        assert_eq!(found[1], expected, "what is promised is there: {in_objects}");
    }
    let recorded = |filter: &'static str| {
        let call = person
            .get("/data/v1alpha1/event/PlatformWorkout")
            .with("filter", filter);
        rows(between(call, &at("07:30"), &at("09:00")))
    };
    let bare = recorded("duration:null").await;
    assert_eq!(texts(&bare, "platform_workout_id"), [id(2).to_string()]);
    for promised in [
        "all_statistics",
        "duration",
        "has_undetermined_duration",
        "source_revision",
        "workout_activities",
        "workout_events",
    ] {
        let value = &bare[0][promised];
        assert!(value.is_null(), "nothing was recorded as {promised}: {value}");
    }
    assert!(recorded("duration:1800").await.is_empty());
    assert!(
        rows(between(
            own(&person, "platform_workouts"),
            &at("07:42"),
            &at("08:00")
        ))
        .await
        .is_empty(),
        "touching"
    );
    person.delete("PlatformWorkout", id(1)).await;
    assert_eq!(
        rows(between(
            own(&person, "platform_workouts"),
            &at("07:30"),
            &at("09:00")
        ))
        .await
        .len(),
        1
    );
}

#[tokio::test]
async fn a_column_alone_is_what_it_is_among_all_and_no_other_is_read() {
    let person = person();
    // It takes place on the whole day, which is told by columns that need not be asked for.
    let mut all_day = event(2, id(100), &at("12:00"), &at("12:00"));
    all_day["is_all_day"] = json!(true);
    person.records("CalendarEvent", &[full_event(), all_day]).await;
    let workout = json!({"platform_workout_id": id(3), "start_date": at("10:00"), "end_date": at("10:30")});
    person.records("PlatformWorkout", &[workout]).await;
    for (path, count) in [("calendar_events", 2), ("platform_workouts", 1)] {
        let ask = || between(own(&person, path), &at("10:00"), &at("11:00"));
        let all = rows(ask()).await;
        assert_eq!(all.len(), count, "{path}");
        for name in keys(&all[0]) {
            let alone = rows(ask().with("columns", name)).await;
            let expected: Vec<Value> = all.iter().map(|row| json!({name: row[name]})).collect();
            assert_eq!(alone, expected, "{path} {name}");
        }
        ask().with("columns", "colour").await.must_be(422);
    }
    let plan = between(own(&person, "platform_workouts"), &at("10:00"), &at("11:00"))
        .with("columns", "duration")
        .with("explain", "plan")
        .await
        .must_be(200);
    let plan = plan.text();
    assert!(
        plan.contains("duration") && !plan.contains("workout_events"),
        "{plan}"
    );
}

#[tokio::test]
async fn what_is_a_list_of_structures_is_not_compared_with_a_text() {
    let person = person();
    for (route, filter) in [
        ("event/CalendarEvent", "participants:a"),
        ("event/CalendarEvent", "participants!=a"),
        ("event/CalendarEvent", "recurrence_rules=a"),
        ("event/PlatformWorkout", "workout_activities:a"),
        ("event/PlatformWorkout/summary", "workout_activities!=a"),
    ] {
        let asked = |filter: &str| {
            person
                .get(&format!("/data/v1alpha1/{route}"))
                .with("start_time", ALL_TIME.0)
                .with("end_time", ALL_TIME.1)
                .with("filter", filter)
        };
        assert_eq!(asked(filter).await.faults(), ["query.filter"], "{route} {filter}");
        let field = filter.split([':', '!', '=']).next().unwrap();
        asked(&format!("{field}:null")).await.must_be(200);
    }
    let selected = person
        .get("/data/v1/records")
        .with("q", r#"PlatformWorkout{workout_activities="a"}[9y]"#);
    assert_eq!(selected.await.faults(), ["query.q"]);
}

#[tokio::test]
async fn a_limit_may_be_as_great_as_numbers_are() {
    let person = person();
    for limit in [i64::MAX as u64 - 1, i64::MAX as u64] {
        for route in ["event/CalendarEvent", "event/MomentAnnotation"] {
            let asked = person
                .get(&format!("/data/v1alpha1/{route}"))
                .with("start_time", ALL_TIME.0)
                .with("end_time", ALL_TIME.1)
                .with("limit", &limit.to_string());
            assert_eq!(asked.await.must_be(200).rows().len(), 0);
        }
    }
}
