//! `/user/v1alpha1/preferences`: what a person prefers, and the order of their sources (rule 1.4e).

use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Backends, Person, Setup, id, person, steps};
use crate::sharing::{at, share, share_of};

const PATH: &str = "/user/v1alpha1/preferences";

async fn of(person: &Person) -> Value {
    person.get(PATH).await.must_be(200).json()
}

async fn change(person: &Person, body: &Value) -> Value {
    person.post(PATH, body).await.must_be(200).json()
}

#[tokio::test]
async fn nothing_is_preferred_at_first() {
    assert_eq!(of(&person()).await, json!({}));
}

#[tokio::test]
async fn what_is_sent_replaces_what_is_absent_stays_and_null_clears() {
    let person = person();
    let first = json!({
        "timezone": "America/New_York",
        "calendars": ["home"],
        "location_resolution": {"maps": 10},
        "periods_of_day": {
            "morning": "06:00:00", "afternoon": "12:00:00", "evening": "18:00:00", "end_of_day": "22:30:00",
        },
        "selected_metrics": ["HeartRate", "StepCount"],
    });
    assert_eq!(change(&person, &first).await, first);
    let second = json!({
        "timezone": "Asia/Kathmandu", "location_resolution": null, "pinned_metrics_count_map": {"home": 3},
    });
    let expected = json!({
        "timezone": "Asia/Kathmandu",
        "calendars": ["home"],
        "periods_of_day": {
            "morning": "06:00:00", "afternoon": "12:00:00", "evening": "18:00:00", "end_of_day": "22:30:00",
        },
        "selected_metrics": ["HeartRate", "StepCount"],
        "pinned_metrics_count_map": {"home": 3},
    });
    assert_eq!(change(&person, &second).await, expected);
    assert_eq!(of(&person).await, expected);
    assert_eq!(change(&person, &json!({})).await, expected);
}

#[tokio::test]
async fn rule_1_4e_an_order_of_sources_names_metrics_and_sources() {
    let person = person();
    person
        .records(
            "StepCount",
            &[steps(id(1), "2024-05-01T10:00:00Z", "2024-05-01T10:05:00Z", 10)],
        )
        .await;
    let sources = person.sources().await;
    let source = sources[0]["id"].clone();
    let order = json!({"source_order": {"StepCount": [source, id(7)], "HeartRate": []}});
    assert_eq!(change(&person, &order).await, order);
    assert_eq!(of(&person).await, order);
    let own = person
        .define("Metric", &json!({"name": "Cups", "record_spec": {"unit": "1"}}))
        .await;
    let order = json!({"source_order": {(own.as_str()): [source]}, "selected_metrics": [own]});
    assert_eq!(change(&person, &order).await, order);
}

#[tokio::test]
async fn types_of_any_class_are_selected_and_as_often_as_there_is_room() {
    let person = person();
    let own = person
        .define("Metric", &json!({"name": "Cups", "record_spec": {"unit": "1"}}))
        .await;
    let names = vec![own.as_str(); 1_000];
    let selected = json!({
        "selected_metrics": ["PlatformWorkout", "MomentAnnotation", "StepCount"],
        "selected_metrics_map": {"home": names, "work": names, "sport": names, "sleep": names},
    });
    assert_eq!(change(&person, &selected).await, selected);
}

#[tokio::test]
async fn a_whole_number_may_have_a_fraction_of_zeros_and_is_kept_without() {
    let person = person();
    let reply = person
        .post(PATH, &json!({}))
        .body(r#"{"location_resolution": {"maps": 10.0}, "pinned_metrics_count_map": {"home": 3e0}}"#)
        .await
        .must_be(200);
    assert!(reply.text().contains(r#""maps":10}"#), "{reply}");
    assert!(reply.text().contains(r#""home":3}"#), "{reply}");
}

#[tokio::test]
async fn what_cannot_be_kept_is_refused_with_its_place_and_changes_nothing() {
    let person = person();
    change(&person, &json!({"timezone": "UTC"})).await;
    let cases = [
        (json!([]), "body"),
        (json!({"timezone": "Mars/Olympus"}), "body.timezone"),
        (json!({"timezone": 5}), "body.timezone"),
        (json!({"nosuch": 1}), "body.nosuch"),
        (json!({"calendars": [1]}), "body.calendars.0"),
        (
            json!({"periods_of_day": {"morning": "6:00"}}),
            "body.periods_of_day.morning",
        ),
        (
            json!({"selected_metrics": ["HeartRate", "Nosuch"]}),
            "body.selected_metrics.1",
        ),
        (
            json!({"selected_metrics_map": {"home": ["HeartRate"], "work": ["Nosuch"]}}),
            "body.selected_metrics_map.work.0",
        ),
        (
            json!({"source_order": {"Nosuch": []}}),
            "body.source_order.Nosuch",
        ),
        (json!({"source_order": {"Event": []}}), "body.source_order.Event"),
        (
            json!({"source_order": {"StepCount": ["x"]}}),
            "body.source_order.StepCount.0",
        ),
        (json!({"calendars": ["x".repeat(300_000)]}), "body"),
    ];
    for (body, place) in cases {
        let mut body = body;
        if let Some(members) = body.as_object_mut() {
            members.insert("pinned_metrics_count_map".to_owned(), json!({"home": 1}));
        }
        assert_eq!(person.post(PATH, &body).await.faults(), [place]);
    }
    assert_eq!(of(&person).await, json!({"timezone": "UTC"}));
    person
        .post(PATH, &json!({"timezone": "UTC"}))
        .body("{")
        .await
        .must_be(422);
}

#[tokio::test]
async fn lists_have_a_length_that_is_allowed_and_the_search_for_faults_ends() {
    let person = person();
    let names = |count: usize| -> Vec<String> { (0..count).map(|number| format!("q{number:05}")).collect() };
    for (count, name) in [(25_000, "selected_metrics"), (1_001, "calendars")] {
        let reply = person.post(PATH, &json!({(name): names(count)})).await;
        assert_eq!(reply.faults(), [format!("body.{name}")]);
    }
    let orders: serde_json::Map<String, Value> =
        names(1_001).into_iter().map(|name| (name, json!([]))).collect();
    let reply = person.post(PATH, &json!({"source_order": orders})).await;
    assert_eq!(reply.faults(), ["body.source_order"]);
    let reply = person
        .post(PATH, &json!({"selected_metrics": names(1_000)}))
        .await;
    let places = reply.faults();
    assert_eq!((places.len(), places[100].as_str()), (101, "body"));
    assert_eq!(reply.json()["detail"][100]["type"], "more_faults");
    assert_eq!(of(&person).await, json!({}));
    change(&person, &json!({"calendars": names(1_000)})).await;
}

#[tokio::test]
async fn changes_at_the_same_time_are_all_kept() {
    let person = person();
    let names = ["calendars", "selected_calendar_vendor_ids", "selected_metrics"];
    let bodies = names.map(|name| json!({name: ["HeartRate"]}));
    let calls = bodies
        .iter()
        .map(|body| async { person.post(PATH, body).await.must_be(200) });
    join_all(calls).await;
    let kept = of(&person).await;
    assert_eq!(kept.as_object().unwrap().len(), names.len(), "{kept}");
}

#[tokio::test]
async fn preferences_are_each_persons_own() {
    let (one, other) = (person(), person());
    change(&one, &json!({"timezone": "UTC"})).await;
    assert_eq!(of(&other).await, json!({}));
}

#[tokio::test]
async fn documents_are_read_by_the_rules_for_every_body() {
    let server = Setup::default().with("ALMANAC_BODY_LIMIT", "3MB").start();
    let person = server.person();
    let own = person.define("Event", &json!({"name": "Tea"})).await;
    let large = json!({"calendars": ["x".repeat(900_000)]});
    assert_eq!(
        person.post(PATH, &large).await.faults(),
        ["body"],
        "too much to prefer, and not too much to read"
    );
    let too_large = json!({"name": "x".repeat(3_000_000)}).to_string();
    for (method, path) in [
        (Method::POST, PATH.to_owned()),
        (Method::POST, "/input/v1/data_type/Event".to_owned()),
        (Method::PUT, format!("/input/v1/data_type/{own}")),
    ] {
        let call = |media_type: &str| {
            person
                .call(method.clone(), &path)
                .header("content-type", media_type)
        };
        call("application/json")
            .body(too_large.clone())
            .await
            .problem(413);
        call("text/plain").body("{}").await.problem(415);
        call("application/x-jsonl").body("{}").await.problem(415);
        assert_eq!(
            call("application/json").body("{").await.faults(),
            ["body"],
            "{path}"
        );
        call("application/json")
            .header("content-encoding", "br")
            .body("{}")
            .await
            .problem(415);
    }
    let call = person
        .call(Method::POST, PATH)
        .header("content-type", "application/json; charset=utf-8");
    let packed = zstd::encode_all(&br#"{"timezone": "Asia/Kathmandu"}"#[..], 0).unwrap();
    call.header("content-encoding", "zstd")
        .body(packed)
        .await
        .must_be(200);
    assert_eq!(of(&person).await["timezone"], json!("Asia/Kathmandu"));
}

#[tokio::test]
async fn of_clients_that_race_none_loses_what_it_alone_has_set() {
    let zones = ["Europe/Paris", "Asia/Tokyo", "America/Lima", "Africa/Cairo"];
    let alone = [
        json!({"calendars": ["home"]}),
        json!({"selected_metrics": ["HeartRate"]}),
        json!({"pinned_metrics_count_map": {"home": 3}}),
        json!({"location_resolution": {"maps": 10}}),
    ];
    for backends in Backends::available() {
        let nodes = match &backends {
            embedded if embedded.settings().is_empty() => vec![Setup::default().start()],
            shared => vec![shared, shared]
                .into_iter()
                .map(|backends| Setup::default().on(backends.clone()).start())
                .collect(),
        };
        let person = nodes[0].person();
        let there: Vec<Person> = nodes.iter().map(|node| node.person_called(person.id)).collect();
        let racing = zones.iter().zip(&alone).enumerate().map(|(number, (zone, own))| {
            let person = &there[number % there.len()];
            let mut body = own.clone();
            body["timezone"] = json!(zone);
            async move { (change(person, &body).await, body) }
        });
        for (answer, body) in join_all(racing).await {
            for (name, value) in body.as_object().unwrap() {
                assert_eq!(answer[name], *value, "what was set by the time of the answer");
            }
        }
        for person in &there {
            let kept = of(person).await;
            for own in &alone {
                let (name, value) = own.as_object().unwrap().iter().next().unwrap();
                assert_eq!(kept[name], *value, "{kept}");
            }
            assert!(zones.iter().any(|zone| kept["timezone"] == *zone), "{kept}");
        }
    }
}

#[tokio::test]
async fn what_somebody_no_longer_shares_may_stay_in_preferences_that_name_it() {
    let (owner, reader) = (person(), person());
    let tea = json!({"annotation_type": "numeric", "name": "Tea", "description": "", "tags": []});
    let made = owner
        .post("/user/v1alpha1/annotation", &tea)
        .await
        .must_be(201)
        .json();
    let tea = format!("NumericAnnotation/{}", made["id"].as_str().unwrap());
    let given = share(&owner, &share_of(&[&tea], &reader)).await;
    let source = id(7);
    let named = json!({
        "selected_metrics": [tea, "HeartRate"],
        "selected_metrics_map": {"home": [tea]},
        "source_order": {&tea: [source]},
    });
    let named = change(&reader, &named).await;
    owner.call(Method::DELETE, &at(&given)).await.must_be(204);

    let mut whole = named.clone();
    whole["timezone"] = json!("Europe/Berlin");
    assert_eq!(change(&reader, &whole).await, whole);
    change(&reader, &json!({"selected_metrics": null})).await;
    // Elsewhere it may still be named.
    change(&reader, &json!({"selected_metrics": [tea]})).await;
    let other = json!({"selected_metrics": [format!("NumericAnnotation/{}", id(8))]});
    reader.post(PATH, &other).await.must_be(422);
    let cleared = json!({"selected_metrics": null, "selected_metrics_map": null, "source_order": null});
    change(&reader, &cleared).await;
    reader
        .post(PATH, &json!({"selected_metrics": [tea]}))
        .await
        .must_be(422);
}

#[tokio::test]
async fn of_as_many_changes_at_once_as_a_client_makes_all_succeed() {
    let person = person();
    let changes = (0..20).map(|number| {
        let body = json!({"pinned_metrics_count_map": {format!("place {number}"): number}});
        let person = &person;
        async move { change(person, &body).await }
    });
    assert_eq!(join_all(changes).await.len(), 20);
}

#[tokio::test]
async fn a_member_that_is_given_twice_is_refused_in_every_document() {
    let person = person();
    let annotation = "/user/v1alpha1/annotation";
    let own = "/input/v1/data_type/Event";
    for (path, body, place) in [
        (PATH, r#"{"timezone": "UTC", "timezone": "Asia/Tokyo"}"#, "body"),
        (
            PATH,
            r#"{"pinned_metrics_count_map": {"a": 1, "a": 2}}"#,
            "body.pinned_metrics_count_map",
        ),
        (
            annotation,
            r#"{"annotation_type": "moment", "name": "a", "name": "b", "description": "", "tags": []}"#,
            "body",
        ),
        (own, r#"{"name": "a", "name": "b", "record_spec": {}}"#, "body"),
        (
            own,
            r#"{"name": "a", "record_spec": {"schema": {"properties": {"x": {}, "x": {}}}}}"#,
            "body.record_spec.schema.properties",
        ),
        ("/user/v1alpha1/tag", r#"{"name": "a", "name": "b"}"#, "body"),
    ] {
        let sent = person.post(path, &json!({})).body(body);
        assert_eq!(sent.await.faults(), [place], "{body}");
    }
    assert_eq!(of(&person).await, json!({}));
    assert!(person.get(annotation).await.must_be(200).rows().is_empty());
}
