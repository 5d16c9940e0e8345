//! Names beside positions.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use arrow::datatypes::DataType;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::{between, keys, own, rows, update};
use crate::erasure::erase;
use crate::harness::{METHODS, Person, Setup, Table, at, id, number, person};

async fn whereabouts(person: &Person, what: &str) -> Vec<Value> {
    let call = between(own(person, what), &at("10:00"), &at("11:00")).with("time", &at("10:30"));
    rows(call.with("reverse_geocode", "true")).await
}

async fn in_reykjavik_and_at_sea(person: &Person) {
    let records = [
        update(id(1), &at("10:00"), 64.1466, -21.9426, 5.0),
        update(id(2), &at("10:15"), 64.1466, -21.9426, 5.0),
        update(id(3), &at("10:40"), 0.0, -140.0, 5.0),
    ];
    person.records("PlatformLocationUpdate", &records).await;
}

#[tokio::test]
async fn rule_4_7_places_have_names_and_details_and_the_sea_has_none() {
    let person = person();
    in_reykjavik_and_at_sea(&person).await;
    let found = whereabouts(&person, "location_at_time").await;
    assert_eq!(found[0]["address"], json!("Reykjavik, Capital Region, Iceland"));
    let details = &found[0]["location_details"];
    assert_eq!(
        keys(details),
        [
            "formatted",
            "components",
            "geometry",
            "distance_m",
            "annotations",
            "attribution"
        ]
    );
    assert_eq!(details["formatted"], found[0]["address"]);
    assert_eq!(
        details["components"],
        json!({
            "_type": "city", "city": "Reykjavik", "county": null, "state": "Capital Region",
            "state_code": null, "postcode": null, "country": "Iceland", "country_code": "is",
        })
    );
    assert_eq!(keys(&details["geometry"]), ["lat", "lng"]);
    assert!(number(details, "distance_m") < 5_000.0, "{details}");
    assert_eq!(
        details["annotations"]["timezone"],
        json!({"name": "Atlantic/Reykjavik"})
    );
    assert!(
        details["annotations"]["DMS"]["lat"]
            .as_str()
            .unwrap()
            .ends_with('N'),
        "{details}"
    );
    assert!(
        details["attribution"].as_str().unwrap().contains("GeoNames"),
        "{details}"
    );

    let series = whereabouts(&person, "location_time_series").await;
    assert_eq!(series.len(), 4);
    assert_eq!(series[0]["location_details"], *details);
    assert_eq!(series[2]["address"], found[0]["address"]);
    assert_eq!(
        (&series[3]["address"], &series[3]["location_details"]),
        (&Value::Null, &Value::Null),
        "a thousand kilometres from anywhere"
    );
    let without = rows(between(
        own(&person, "location_time_series"),
        &at("10:00"),
        &at("11:00"),
    ))
    .await;
    assert!(
        !keys(&without[0]).contains(&"address"),
        "names are told to those who ask"
    );
    let empty = between(own(&person, "location_time_series"), &at("01:00"), &at("02:00"))
        .with("reverse_geocode", "1");
    assert!(rows(empty).await.is_empty());
    let refused = between(own(&person, "location_time_series"), &at("10:00"), &at("11:00"))
        .with("reverse_geocode", "perhaps");
    assert_eq!(refused.await.faults(), ["query.reverse_geocode"]);
}

#[tokio::test]
async fn details_are_a_struct_in_frames() {
    let person = person();
    in_reykjavik_and_at_sea(&person).await;
    for method in METHODS {
        let call = between(own(&person, "location_time_series"), &at("10:00"), &at("11:00"))
            .with("reverse_geocode", "true");
        let reply = call.with("output", method).await.must_be(200);
        let table = Table::read(method, &reply.body);
        assert_eq!(table.rows.len(), 4, "{method}");
        assert_eq!(table.columns[6..], ["address", "location_details"], "{method}");
        if let Some(schema) = table.schema {
            assert!(
                matches!(schema.field(7).data_type(), DataType::Struct(_)),
                "{method}"
            );
        }
    }
}

#[tokio::test]
async fn names_are_loaded_when_first_asked_for_and_take_little_memory() {
    let almanac = Setup::default().no_upkeep().start();
    let person = almanac.person();
    in_reykjavik_and_at_sea(&person).await;
    rows(own(&person, "location_at_time").with("time", &at("10:30"))).await;
    almanac.forget_peak();
    let before = almanac.peak_memory();
    assert!(whereabouts(&person, "location_at_time").await[0]["address"].is_string());
    let taken = almanac.peak_memory() - before;
    println!("names of places take {taken} MiB");
    assert!((8..96).contains(&taken), "{taken} MiB");
}

/// How an outside geocoder behaves.
#[derive(Clone, Copy, Debug)]
enum Behaviour {
    Answers,
    Fails,
    Hangs,
}

/// An outside geocoder; its address, and how often it was asked.
async fn outside(behaviour: Behaviour) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    tokio::spawn(async move {
        while let Ok((mut connection, _)) = listener.accept().await {
            let count = Arc::clone(&count);
            tokio::spawn(async move {
                let mut request = vec![0; 4096];
                let read = connection.read(&mut request).await.unwrap_or(0);
                let request = String::from_utf8_lossy(&request[..read]).into_owned();
                count.fetch_add(1, Ordering::SeqCst);
                assert!(
                    request.starts_with("GET /reverse?format=jsonv2&addressdetails=1&lat="),
                    "{request}"
                );
                assert!(request.contains("user-agent: almanac/"), "{request}");
                let body = json!({
                    "display_name": "Somewhere else, Iceland", "lat": "64.1466", "lon": "-21.9426",
                    "licence": "by others",
                    "address": {
                        "city": "Somewhere else", "postcode": "101", "country": "Iceland",
                        "country_code": "is",
                    },
                })
                .to_string();
                let status = match behaviour {
                    Behaviour::Answers => "200 OK",
                    Behaviour::Fails => "500 Oh no",
                    Behaviour::Hangs => return tokio::time::sleep(Duration::from_mins(10)).await,
                };
                let answer = format!(
                    "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: \
                     {}\r\nconnection: close\r\n\r\n{body}",
                    body.len()
                );
                let _the_client_may_be_gone = connection.write_all(answer.as_bytes()).await;
            });
        }
    });
    (url, asked)
}

#[tokio::test]
async fn an_operator_may_name_a_service_and_its_answers_are_kept() {
    let (url, asked) = outside(Behaviour::Answers).await;
    let almanac = Setup::default().with("ALMANAC_GEOCODER_URL", &url).start();
    let person = almanac.person();
    in_reykjavik_and_at_sea(&person).await;
    let found = whereabouts(&person, "location_at_time").await;
    assert_eq!(found[0]["address"], json!("Somewhere else, Iceland"));
    assert_eq!(found[0]["location_details"]["attribution"], json!("by others"));
    assert_eq!(
        found[0]["location_details"]["components"]["postcode"],
        json!("101")
    );
    whereabouts(&person, "location_at_time").await;
    assert_eq!(
        asked.load(Ordering::SeqCst),
        1,
        "the same place is asked about once"
    );
    let series = whereabouts(&person, "location_time_series").await;
    assert_eq!(
        series[3]["address"],
        Value::Null,
        "what it says is too far from the sea"
    );
    assert_eq!(asked.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn what_it_answered_is_forgotten_when_somebody_was_erased() {
    let (url, asked) = outside(Behaviour::Answers).await;
    let almanac = Setup::default()
        .with("ALMANAC_GEOCODER_URL", &url)
        .with("ALMANAC_UPKEEP_INTERVAL", "50ms")
        .start();
    let (person, leaving) = (almanac.person(), almanac.person());
    for person in [&person, &leaving] {
        in_reykjavik_and_at_sea(person).await;
    }
    whereabouts(&person, "location_at_time").await;
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    erase(&leaving).await;
    almanac
        .until("the position is still remembered", async || {
            whereabouts(&person, "location_at_time").await;
            asked.load(Ordering::SeqCst) > 1
        })
        .await;
}

#[tokio::test]
async fn what_others_asked_is_asked_again_and_nobody_spends_what_is_everybodys() {
    let (url, asked) = outside(Behaviour::Answers).await;
    let almanac = Setup::default()
        .with("ALMANAC_GEOCODER_URL", &url)
        .with("ALMANAC_GEOCODER_PER_PERSON", "1")
        .start();
    for questions in 1..=2 {
        let person = almanac.person();
        in_reykjavik_and_at_sea(&person).await;
        let found = whereabouts(&person, "location_at_time").await;
        assert_eq!(found[0]["address"], json!("Somewhere else, Iceland"));
        assert_eq!(asked.load(Ordering::SeqCst), questions);
        // The other position of the series would be their second.
        let series = whereabouts(&person, "location_time_series").await;
        assert_eq!(
            series[0]["address"], found[0]["address"],
            "what is known stays known"
        );
        assert_eq!(asked.load(Ordering::SeqCst), questions);
    }
}

#[tokio::test]
async fn rule_4_7_a_geocoder_that_fails_never_fails_the_request() {
    for behaviour in [Behaviour::Fails, Behaviour::Hangs] {
        let (url, asked) = outside(behaviour).await;
        let setup = Setup::default()
            .with("ALMANAC_GEOCODER_URL", &url)
            .with("ALMANAC_GEOCODER_TIMEOUT", "200ms");
        let almanac = setup.start();
        let person = almanac.person();
        in_reykjavik_and_at_sea(&person).await;
        let call = || {
            own(&person, "location_at_time")
                .with("time", &at("10:30"))
                .with("reverse_geocode", "true")
        };
        let reply = call().await.must_be(200);
        let found = reply.rows();
        assert_eq!(
            (&found[0]["address"], &found[0]["location_details"]),
            (&Value::Null, &Value::Null),
            "{behaviour:?}"
        );
        assert_eq!(found[0]["uuid"], json!(id(2)), "{behaviour:?}");
        // Names that were missing may be there next time, so the answer is not the same as before.
        let again = call()
            .header("if-none-match", reply.header("etag").unwrap())
            .await;
        assert_eq!(again.status, 200, "{behaviour:?}");
        let later = call()
            .header("if-none-match", again.header("etag").unwrap())
            .await;
        assert_eq!(
            later.status, 200,
            "{behaviour:?}: nor while the geocoder is left alone"
        );
        assert_eq!(
            whereabouts(&person, "location_time_series").await.len(),
            4,
            "{behaviour:?}"
        );
        assert_eq!(
            asked.load(Ordering::SeqCst),
            1,
            "{behaviour:?}: it is left alone for a while"
        );
        assert!(
            almanac.metrics().await.sum(&["geocoder_failures"]) >= 1.0,
            "{behaviour:?}"
        );
    }
    let nobody = Setup::default()
        .with("ALMANAC_GEOCODER_URL", "http://127.0.0.1:1")
        .start();
    let person = nobody.person();
    in_reykjavik_and_at_sea(&person).await;
    assert_eq!(
        whereabouts(&person, "location_at_time").await[0]["address"],
        Value::Null
    );
}
