//! The same question again: answered as before, while nothing that it is about has changed.

use serde_json::json;

use crate::harness::{ALL_TIME, Call, Person, Reply, Setup, at, heart_rate, id, person, steps, until};
use crate::sharing::{share, share_of};

/// What an answer says of itself.
const TOLD: [&str; 6] = [
    "content-type",
    "content-disposition",
    "etag",
    "x-svc-range",
    "x-ignored-parameters",
    "x-svc-next-cursor",
];

const DAY: [(&str, &str); 2] = [("start_time", "2024-05-01"), ("end_time", "2024-05-02")];

async fn with_samples() -> Person {
    let person = person();
    person
        .records("HeartRate", &[heart_rate(id(1), &at("10:00"), 60)])
        .await;
    person
        .records("StepCount", &[steps(id(2), &at("10:00"), &at("11:00"), 100)])
        .await;
    person
}

fn of_the_day(call: Call) -> Call {
    DAY.iter()
        .fold(call, |call, (name, value)| call.with(name, value))
}

/// Questions about heart rate.
fn questions(person: &Person) -> Vec<Call> {
    let of_person = |route: &str| of_the_day(person.get(&format!("/data/v0/{}/{route}", person.id)));
    vec![
        of_person("metric_samples").with("metric", "HeartRate"),
        of_person("metric_samples")
            .with("metric", "HeartRate")
            .with("output", "arrow"),
        of_person("metric_time_series")
            .with("metric", "HeartRate")
            .with("output", "jstable"),
        of_the_day(person.get("/data/v0/time_series_grouped"))
            .with("metrics", "HeartRate")
            .with("output", "jscolumns"),
        of_the_day(person.get("/data/v1alpha1/metric/HeartRate/agg/day")).with("function", "max"),
        person.read("metric", "HeartRate"),
        person.read("metric", "HeartRate").with("colour", "red"),
        person.read("metric", "HeartRate").with("limit", "1"),
        person.get("/data/v1alpha1/event/HeartRate/latest"),
        person
            .get("/data/v1/records")
            .with("q", "HeartRate[1d] @ 1714608000"),
    ]
}

fn is_again(reply: &Reply) -> bool {
    let timing = reply.header("server-timing").expect("times");
    let (ran, again) = (timing.contains("run;dur="), timing.contains("again"));
    assert_ne!(ran, again, "{timing}");
    again
}

#[tokio::test]
async fn what_is_asked_again_is_answered_as_before_with_its_length() {
    let person = with_samples().await;
    for (first, again) in questions(&person).into_iter().zip(questions(&person)) {
        let (first, again) = (first.await.must_be(200), again.await.must_be(200));
        assert!(!is_again(&first), "{first}");
        assert!(is_again(&again), "{again}");
        assert_eq!(again.body, first.body);
        for name in TOLD {
            assert_eq!(again.header(name), first.header(name), "{name}");
        }
        let length = again.body.len().to_string();
        assert_eq!(again.header("content-length"), Some(length.as_str()), "{again}");
    }
}

#[tokio::test]
async fn what_has_changed_is_answered_as_it_is_now() {
    let person = with_samples().await;
    for call in questions(&person) {
        call.await.must_be(200);
    }
    person
        .records("HeartRate", &[heart_rate(id(1), &at("10:00"), 61)])
        .await;
    for call in questions(&person) {
        let reply = call.await.must_be(200);
        assert!(!is_again(&reply), "{reply}");
        assert!(!reply.body.windows(4).any(|part| part == b"60.0"), "{reply}");
    }
    person.delete("HeartRate", id(1)).await;
    for call in questions(&person) {
        let reply = call.await;
        assert!(reply.status == 404 || !is_again(&reply), "{reply}");
    }
}

#[tokio::test]
async fn what_is_preferred_belongs_to_the_question() {
    let person = with_samples().await;
    let asked = || {
        let route = format!("/data/v0/{}/metric_time_series", person.id);
        of_the_day(person.get(&route))
            .with("metric", "StepCount")
            .with("output", "jstable")
    };
    assert!(!is_again(&asked().await.must_be(200)));
    assert!(is_again(&asked().await.must_be(200)));
    let sources = person
        .get("/data/v1alpha1/data_sources")
        .await
        .must_be(200)
        .json();
    let order = json!({"source_order": {"StepCount": [sources[0]["id"]]}});
    person
        .post("/user/v1alpha1/preferences", &order)
        .await
        .must_be(200);
    assert!(!is_again(&asked().await.must_be(200)));
}

#[tokio::test]
async fn an_answer_is_for_whom_it_was_made() {
    let server = Setup::default().start();
    let (one, other) = (server.person(), server.person());
    for (person, value) in [(&one, 60), (&other, 70)] {
        person
            .records("HeartRate", &[heart_rate(id(1), &at("10:00"), value)])
            .await;
    }
    let read = |person: &Person| person.read("metric", "HeartRate");
    for _ in 0..2 {
        for (person, value) in [(&one, 60.0), (&other, 70.0)] {
            assert_eq!(read(person).await.must_be(200).json()[0]["value"], value);
        }
    }
    share(&one, &share_of(&["HeartRate"], &other)).await;
    let of_one = || {
        let route = format!("/data/v0/{}/metric_samples", one.id);
        let call = other.get(&route).with("metric", "HeartRate");
        call.with("start_time", ALL_TIME.0).with("end_time", ALL_TIME.1)
    };
    for _ in 0..3 {
        assert!(!is_again(&of_one().await.must_be(200)));
    }
}

#[tokio::test]
async fn who_has_the_answer_hears_so_until_it_is_another() {
    let person = with_samples().await;
    for (first, again) in questions(&person).into_iter().zip(questions(&person)) {
        let first = first.await.must_be(200);
        let tag = first.header("etag").unwrap().to_owned();
        let unchanged = again.header("if-none-match", &tag).await.must_be(304);
        assert_eq!(unchanged.header("etag"), Some(tag.as_str()));
        assert!(unchanged.body.is_empty());
    }
    let tags = questions(&person).into_iter().map(async |call| {
        let reply = call.await.must_be(200);
        reply.header("etag").unwrap().to_owned()
    });
    let tags = futures::future::join_all(tags).await;
    person
        .records("HeartRate", &[heart_rate(id(1), &at("10:00"), 61)])
        .await;
    for (call, tag) in questions(&person).into_iter().zip(tags) {
        let reply = call.header("if-none-match", &tag).await.must_be(200);
        assert_ne!(reply.header("etag"), Some(tag.as_str()));
    }
}

#[tokio::test]
async fn what_is_asked_as_of_now_is_answered_as_of_then() {
    let person = person();
    let soon = chrono::Utc::now() - chrono::Duration::seconds(58);
    let record = heart_rate(id(1), &soon.to_rfc3339(), 60);
    person.records("HeartRate", &[record]).await;
    let minute = || person.get("/data/v1/records").with("q", "HeartRate[60s]");
    for _ in 0..2 {
        assert_eq!(minute().await.must_be(200).text().lines().count(), 1);
    }
    until(async || match minute().await.must_be(200).text() {
        "" => Ok(()),
        shown => Err(shown.to_owned()),
    })
    .await;
}

#[tokio::test]
async fn what_a_type_is_belongs_to_the_question() {
    let person = person();
    let tea = person.define("Event", &json!({"name": "tea"})).await;
    let path = |way: &str| format!("/data/v1alpha1/event/{tea}/agg/{way}");
    let asked = || of_the_day(person.get(&path("day")));
    asked().await.must_be(200);
    assert!(is_again(&asked().await.must_be(200)));
    let route = format!("/input/v1/data_type/{tea}");
    person
        .put(&route, &json!({"description": "green"}))
        .await
        .must_be(200);
    assert!(!is_again(&asked().await.must_be(200)));
}

#[tokio::test]
async fn a_session_that_ended_hears_nothing_again() {
    let person = with_samples().await;
    let made = person
        .post("/user/v1alpha1/session", &json!({"name": "short"}))
        .await
        .must_be(201)
        .json();
    let guest = person.showing(made["token"].as_str().unwrap());
    let read = || guest.read("metric", "HeartRate");
    read().await.must_be(200);
    assert!(is_again(&read().await.must_be(200)));
    let route = format!("/user/v1alpha1/session/{}", made["id"].as_str().unwrap());
    person.call(reqwest::Method::DELETE, &route).await.must_be(200);
    read().await.must_be(401);
}
