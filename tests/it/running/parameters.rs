//! What the routes take, against what OpenAPI says that they take; other names, and names that nobody knows.

use std::collections::{BTreeMap, BTreeSet};

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{ALL_TIME, Call, Person, Reply, at, heart_rate, id, person, shared};

/// One operation of the interface as OpenAPI lists it.
struct Operation {
    method: Method,
    path: String,
    parameters: Vec<Value>,
    described: Value,
}

impl Operation {
    fn named(&self, place: &str) -> impl Iterator<Item = &str> {
        let here = self
            .parameters
            .iter()
            .filter(move |parameter| parameter["in"] == place);
        here.map(|parameter| parameter["name"].as_str().unwrap())
    }

    /// A request to a real address of it, with a body where it takes one.
    fn call(&self, person: &Person) -> Call {
        let path = self.path.replace("{svc_userid}", &person.id.to_string());
        let segment = |part: &str| {
            if part.starts_with('{') {
                id(1).to_string()
            } else {
                part.to_owned()
            }
        };
        let path: Vec<String> = path.split('/').map(segment).collect();
        let call = person.call(self.method.clone(), &path.join("/"));
        if self.described.get("requestBody").is_some() {
            call.header("content-type", "application/json").body("{}")
        } else {
            call
        }
    }
}

async fn operations() -> Vec<Operation> {
    let document = shared().nobody().get("/openapi.json").await.must_be(200).json();
    let mut operations = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, described) in methods.as_object().unwrap() {
            operations.push(Operation {
                method: method.to_uppercase().parse().unwrap(),
                path: path.clone(),
                parameters: described["parameters"].as_array().cloned().unwrap_or_default(),
                described: described.clone(),
            });
        }
    }
    operations
}

/// Those that a person asks, not a machine that looks after the service.
async fn interface() -> Vec<Operation> {
    let mut operations = operations().await;
    operations.retain(|operation| operation.described["tags"] != json!(["operation"]));
    // Who names a participant is asked for the group first; the operations are those of the same name
    // without.
    operations.retain(|operation| !operation.path.starts_with("/data/v0/pool/"));
    assert!(operations.len() > 30);
    operations
}

fn ignored(reply: &Reply) -> BTreeSet<String> {
    let header = reply.header("x-ignored-parameters").unwrap_or_default();
    let names = header.split(", ").map(|item| item.split(';').next().unwrap());
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[tokio::test]
async fn every_operation_takes_exactly_the_parameters_that_openapi_lists() {
    let (person, operations) = (person(), interface().await);
    let all: BTreeSet<String> = operations
        .iter()
        .flat_map(|operation| operation.named("query").map(str::to_owned).collect::<Vec<_>>())
        .chain(["nobody_knows_this".to_owned()])
        .collect();
    for operation in operations {
        let mut call = operation.call(&person);
        // What names a participant is looked up before the operation is asked.
        let before = ["strict", "pool_id", "participant_id"];
        for name in all.iter().filter(|name| !before.contains(&name.as_str())) {
            call = call.with(name, "");
        }
        let reply = call.await;
        let aliases = operation.parameters.iter().flat_map(|parameter| {
            parameter["x-aliases"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|alias| alias.as_str().unwrap())
        });
        let mut unknown = all.clone();
        for name in before {
            unknown.remove(name);
        }
        for name in operation.named("query").chain(aliases) {
            unknown.remove(name);
        }
        assert_eq!(
            ignored(&reply),
            unknown,
            "{} {}",
            operation.method,
            operation.path
        );
    }
}

#[tokio::test]
async fn every_parameter_is_explained() {
    for operation in interface().await {
        for parameter in &operation.parameters {
            let place = format!("{parameter} of {} {}", operation.method, operation.path);
            let described = parameter["description"].as_str().unwrap_or_default();
            assert!(!described.is_empty(), "no description: {place}");
            assert!(!parameter["example"].is_null(), "no example: {place}");
            assert!(parameter["schema"].is_object(), "no schema: {place}");
            let required = parameter["required"].as_bool().unwrap();
            let default = parameter["schema"].get("default").is_some();
            assert!(
                required || default || described.contains("Left out: "),
                "neither a default nor what its absence means: {place}"
            );
            assert!(!(required && default), "a default of what is required: {place}");
        }
        let names: Vec<&Value> = operation
            .parameters
            .iter()
            .map(|parameter| &parameter["name"])
            .collect();
        let once: BTreeSet<String> = names.iter().map(ToString::to_string).collect();
        assert_eq!(once.len(), names.len(), "{names:?} of {}", operation.path);
    }
}

#[tokio::test]
async fn no_two_parameters_of_an_operation_share_a_name() {
    for operation in interface().await {
        let mut taken: BTreeMap<&str, &str> = BTreeMap::new();
        for parameter in operation
            .parameters
            .iter()
            .filter(|parameter| parameter["in"] == "query")
        {
            let name = parameter["name"].as_str().unwrap();
            let aliases = parameter["x-aliases"].as_array().into_iter().flatten();
            for spelling in aliases.map(|alias| alias.as_str().unwrap()).chain([name]) {
                let other = taken.insert(spelling, name);
                assert_eq!(
                    other, None,
                    "{spelling} of {} {}",
                    operation.method, operation.path
                );
            }
        }
    }
}

#[tokio::test]
async fn the_parts_of_a_path_are_those_that_openapi_lists() {
    for operation in operations().await {
        let parts: BTreeSet<&str> = operation.path.split(['{', '}']).skip(1).step_by(2).collect();
        let listed: BTreeSet<&str> = operation.named("path").collect();
        assert_eq!(parts, listed, "{}", operation.path);
    }
}

#[tokio::test]
async fn a_question_may_be_asked_with_the_other_names_of_its_parameters() {
    let person = person();
    person
        .records(
            "HeartRate",
            &[
                heart_rate(id(1), &at("10:00"), 60),
                heart_rate(id(2), &at("10:20"), 80),
            ],
        )
        .await;
    let path = format!("/data/v0/{}/metric_time_series", person.id);
    let usual = person
        .get(&path)
        .with("start_time", &at("10:00"))
        .with("end_time", &at("11:00"))
        .with("metric", "HeartRate")
        .with("samprate", "15m")
        .with("tz", "Asia/Tokyo")
        .with("output", "jstable")
        .await
        .must_be(200);
    let other = person
        .get(&path)
        .with("start", &at("10:00"))
        .with("end", &at("11:00"))
        .with("data_type", "HeartRate")
        .with("sample_rate", "15m")
        .with("time_zone", "Asia/Tokyo")
        .with("output", "jstable")
        .with("strict", "true")
        .await
        .must_be(200);
    assert_eq!(usual.rows().len(), 4);
    assert_eq!(other.rows(), usual.rows());
    assert_eq!(other.header("x-ignored-parameters"), None);
    let counted = person
        .get("/data/v1alpha1/event/HeartRate/agg/day")
        .with("start", ALL_TIME.0)
        .with("end", ALL_TIME.1)
        .with("tz", "Asia/Tokyo")
        .await
        .must_be(200);
    assert!(counted.text().contains("+09:00"), "{counted}");
}

#[tokio::test]
async fn a_parameter_under_two_names_must_have_one_value() {
    let person = person();
    let call = || {
        let call = person.read("event", "HeartRate/agg/day");
        call.with("time_zone", "Europe/Berlin")
    };
    call().with("tz", "Europe/Berlin").await.must_be(200);
    assert_eq!(call().with("tz", "UTC").await.faults(), ["query.time_zone"]);
}

#[tokio::test]
async fn strict_refuses_what_would_be_ignored_and_says_what_may_be_meant() {
    let person = person();
    let ask = || {
        person
            .metric_samples("HeartRate", ALL_TIME.0, ALL_TIME.1)
            .with("outptu", "csv")
    };
    let lenient = ask().await.must_be(200);
    assert_eq!(
        lenient.header("x-ignored-parameters"),
        Some("outptu;nearest=output")
    );
    ask().with("strict", "false").await.must_be(200);
    for strict in [
        ask().with("strict", "true"),
        ask().header("prefer", "handling=strict"),
        ask().header("prefer", "respond-async, Handling=\"strict\"; wait=10"),
    ] {
        let reply = strict.await;
        assert_eq!(reply.faults(), ["query.outptu"]);
        let fault = &reply.json()["detail"][0];
        assert_eq!(fault["type"], "extra_forbidden");
        assert!(fault["msg"].as_str().unwrap().contains("output"), "{fault}");
        assert_eq!(reply.header("x-ignored-parameters"), None);
    }
    ask().header("prefer", "handling=lenient").await.must_be(200);
    assert_eq!(ask().with("strict", "maybe").await.faults(), ["query.strict"]);
    person
        .metric_samples("HeartRate", ALL_TIME.0, ALL_TIME.1)
        .header("prefer", "handling=strict")
        .await
        .must_be(200);
}

#[tokio::test]
async fn strict_goes_for_every_operation() {
    let person = person();
    for operation in interface().await {
        let reply = operation
            .call(&person)
            .with("strict", "true")
            .with("nobody_knows_this", "1")
            .await;
        let place = "query.nobody_knows_this".to_owned();
        assert!(
            reply.faults().contains(&place),
            "{} {}: {reply}",
            operation.method,
            operation.path
        );
    }
}

#[tokio::test]
async fn the_document_names_the_public_address_as_its_server() {
    let server = crate::harness::Setup::default()
        .with("ALMANAC_PUBLIC_URL", "https://home.example/almanac")
        .start();
    let document = server.nobody().get("/openapi.json").await.must_be(200).json();
    assert_eq!(
        document["servers"],
        json!([{"url": "https://home.example/almanac"}])
    );
}

#[tokio::test]
async fn every_answer_and_every_body_has_a_schema() {
    for operation in operations().await {
        let place = format!("{} {}", operation.method, operation.path);
        for (status, response) in operation.described["responses"].as_object().unwrap() {
            let bodiless = ["304", "204", "303", "308"].contains(&status.as_str());
            assert_eq!(response.get("content").is_none(), bodiless, "{status} of {place}");
            for (media_type, content) in response["content"].as_object().into_iter().flatten() {
                assert!(content["schema"].is_object(), "{media_type} {status} of {place}");
            }
        }
        let body = &operation.described["requestBody"]["content"];
        for (media_type, content) in body.as_object().into_iter().flatten() {
            assert!(content["schema"].is_object(), "{media_type} to {place}");
        }
    }
}

#[tokio::test]
async fn machines_that_look_after_the_service_are_told_of_unknown_parameters_too() {
    for path in ["/health/live", "/health/ready", "/metrics", "/openapi.json"] {
        let path = format!("{path}?nobody_knows_this=1");
        let reply = shared().nobody().get(&path).await.must_be(200);
        assert_eq!(
            ignored(&reply),
            BTreeSet::from(["nobody_knows_this".to_owned()]),
            "{path}"
        );
        let strictly = shared().nobody().call(Method::GET, &path);
        strictly.header("prefer", "handling=strict").await.must_be(422);
    }
}

#[tokio::test]
async fn of_what_would_be_ignored_no_more_is_named_than_anybody_would_read() {
    let person = person();
    let ask = || {
        let call = person.metric_samples("HeartRate", ALL_TIME.0, ALL_TIME.1);
        (0..300).fold(call, |call, number| call.with(&format!("outptu{number}"), "csv"))
    };
    let reply = ask().await.must_be(200);
    let named = reply.header("x-ignored-parameters").unwrap();
    let items: Vec<&str> = named.split(", ").collect();
    assert_eq!(
        (items.len(), items[100]),
        (101, "200"),
        "the last says how many more there are"
    );
    let places = ask().with("strict", "true").await.faults();
    assert_eq!((places.len(), places[100].as_str()), (101, "query"));
}

#[tokio::test]
async fn a_value_that_is_no_text_was_sent_all_the_same() {
    let person = person();
    for (path, name) in [
        (format!("/data/v0/{}/metric_samples", person.id), "metric"),
        ("/data/v0/time_series_grouped".to_owned(), "metrics"),
    ] {
        let range = "start_time=2024-06-01&end_time=2024-06-02&output=csv";
        let reply = person.get(&format!("{path}?{range}&{name}=%FF")).await;
        assert_eq!(reply.faults(), [format!("query.{name}")], "{reply}");
        assert_eq!(reply.json()["detail"][0]["type"], "string_unicode");
    }
    let query = "start_time=2024-06-01&end_time=2024-06-02&metric=HeartRate&output=csv&dates=local&tz=%FF";
    let reply = person
        .get(&format!("/data/v0/{}/metric_time_series?{query}", person.id))
        .await;
    assert_eq!(reply.faults(), ["query.tz"], "{reply}");
}

#[tokio::test]
async fn an_unknown_parameter_is_ignored_even_if_it_is_no_text() {
    let person = person();
    let range = "start_time=2024-06-01&end_time=2024-06-02&metric=HeartRate";
    let path = format!("/data/v0/{}/metric_samples?{range}", person.id);
    let reply = person.get(&format!("{path}&colour=%FF&%FF=1")).await.must_be(200);
    assert_eq!(reply.header("x-ignored-parameters"), Some("colour, \"%FF\""));
    let reply = person.get(&format!("{path}&colour=%FF&strict=true")).await;
    assert_eq!(reply.faults(), ["query.colour"], "{reply}");
    assert_eq!(reply.json()["detail"][0]["type"], "extra_forbidden");
}

#[tokio::test]
async fn the_bounds_of_whole_numbers_are_those_that_openapi_lists() {
    let (person, operations) = (person(), interface().await);
    for operation in &operations {
        for parameter in operation.parameters.iter().filter(|one| one["in"] == "query") {
            let schema = &parameter["schema"];
            let is_bounded = schema["type"] != "integer" || schema["minimum"].is_i64();
            assert!(is_bounded, "{}: {parameter}", operation.path);
        }
    }
    for (path, name, most) in [
        ("/data/v0/{svc_userid}/platform_workouts", "limit", None),
        ("/user/v1alpha1/access_log", "limit", Some(1_000)),
        (
            "/data/v0/{svc_userid}/location_at_time",
            "window_size",
            Some(9_223_372_036_854),
        ),
        (
            "/data/v0/{svc_userid}/location_time_series",
            "sample_rate",
            Some(9_223_372_036_854),
        ),
        (
            "/data/v0/{svc_userid}/location_time_series",
            "look_back",
            Some(9_223_372_036_854),
        ),
    ] {
        let mut found = operations.iter().filter(|operation| operation.path == path);
        let operation = found.next().unwrap();
        let mut found = operation.parameters.iter().filter(|one| one["name"] == name);
        let schema = &found.next().unwrap()["schema"];
        assert_eq!(schema["maximum"].as_i64(), most, "{path} {name}");
        for (number, kind) in [
            (
                schema["minimum"].as_i64().map(|least| least - 1),
                "greater_than_equal",
            ),
            (most.map(|most| most + 1), "less_than_equal"),
        ] {
            let Some(number) = number else { continue };
            let reply = operation.call(&person).with(name, &number.to_string()).await;
            // What is missing has faults of its own.
            let faults = reply.must_be(422).json()["detail"].as_array().unwrap().clone();
            let mut here = faults
                .iter()
                .filter(|fault| fault["loc"] == json!(["query", name]));
            assert_eq!(here.next().unwrap()["type"], kind, "{path} {name}: {faults:?}");
        }
    }
}

#[tokio::test]
async fn a_whole_number_that_is_too_large_is_not_called_something_else() {
    let person = person();
    let at_time = format!("/data/v0/{}/location_at_time", person.id);
    for (call, name, number, most) in [
        (
            person.metric_samples("HeartRate", ALL_TIME.0, ALL_TIME.1),
            "limit",
            "99999999999999999999",
            "9223372036854775807",
        ),
        (
            person.get(&at_time).with("time", ALL_TIME.0),
            "window_size",
            "9223372036854775808",
            "9223372036854",
        ),
    ] {
        let reply = call.with(name, number).await;
        assert_eq!(reply.faults(), [format!("query.{name}")]);
        let expected = format!("{number} is too large; the most is {most}");
        assert_eq!(reply.json()["detail"][0]["msg"], expected);
    }
}
