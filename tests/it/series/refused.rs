//! What gets no series, and what is said about it.

use serde_json::{Value, json};

use super::{grouped, series};
use crate::harness::{Call, Person, Reply, at, person, shared};

fn day(person: &Person, metric: &str) -> Call {
    series(person, metric, &at("00:00"), "2024-05-02T00:00:00Z").with("output", "ndjson")
}

/// The one fault of an answer, and its words.
#[track_caller]
fn fault(reply: &Reply) -> (String, String) {
    let faults = reply.faults();
    assert_eq!(faults.len(), 1, "{reply}");
    (
        faults[0].clone(),
        reply.json()["detail"][0]["msg"].as_str().unwrap().to_owned(),
    )
}

#[tokio::test]
async fn rule_1_2a_widths_that_are_none() {
    let person = person();
    for rate in [
        "0",
        "-1",
        "1e-9",
        "0.0000001",
        "NaN",
        "inf",
        "",
        "abc",
        "1D",
        "1d12h",
        "0d",
    ] {
        let reply = day(&person, "HeartRate").with("samprate", rate).await;
        assert_eq!(reply.faults(), ["query.samprate"], "{rate}");
    }
}

#[tokio::test]
async fn rule_1_2c_more_cells_than_the_limit() {
    let person = person();
    let reply = series(&person, "HeartRate", "2000-01-01", "2024-01-01")
        .with("samprate", "1")
        .with("output", "ndjson")
        .await;
    let (place, message) = fault(&reply);
    assert_eq!(place, "query.samprate");
    assert!(
        message.contains("757382400 cells exceed the limit of 50000000"),
        "{message}"
    );
    let whole = ("0001-01-01T00:00:00Z", "9999-12-31T00:00:00Z");
    for rate in ["0.000001", "1us", "60"] {
        let reply = series(&person, "HeartRate", whole.0, whole.1)
            .with("samprate", rate)
            .with("output", "ndjson")
            .await;
        assert_eq!(fault(&reply).0, "query.samprate", "{rate}");
    }
    // A year of seconds has 31.6 million bins: with one column it is allowed, with two it is not.
    let year = || {
        series(&person, "HeartRate", "2024-01-01", "2025-01-01")
            .with("samprate", "1")
            .with("output", "arrow")
    };
    assert_eq!(
        year().with("calculations", "max").await.faults(),
        ["query.samprate"]
    );
    let metrics = grouped(&person, "2024-01-01", "2025-01-01")
        .with("samprate", "1")
        .with("output", "arrow");
    assert_eq!(
        metrics.with("metrics", "HeartRate,StepCount").await.faults(),
        ["query.samprate"]
    );
}

#[tokio::test]
async fn a_type_that_is_no_metric_is_422_in_a_series() {
    let person = person();
    day(&person, "NoSuchMetric").await.problem(404);
    day(&person, "Metric/0191f0c4-5b1e-7c3a-9d52-000000000000")
        .await
        .problem(404);
    for name in ["PlatformWorkout", "CalendarEvent", "MomentAnnotation", "Metric"] {
        let (place, message) = fault(&day(&person, name).await);
        assert_eq!(place, "query.metric");
        assert!(message.starts_with(name), "{message}");
    }
}

#[tokio::test]
async fn rule_1_6_grouped_names_each_metric_that_cannot_be_had() {
    let person = person();
    let call = || grouped(&person, &at("00:00"), &at("01:00")).with("output", "ndjson");
    assert_eq!(call().await.faults(), ["query.metrics"]);
    assert_eq!(call().with("metrics", "").await.faults(), ["query.metrics"]);
    let reply = call()
        .with("metrics", "HeartRate,Nonsense,PlatformWorkout")
        .with("metrics", "HeartRate")
        .await;
    let values: Vec<Value> = reply.json()["detail"]
        .as_array()
        .unwrap()
        .iter()
        .map(|fault| fault["value"].clone())
        .collect();
    assert_eq!(reply.faults(), ["query.metrics"; 3]);
    assert_eq!(
        values,
        [json!("Nonsense"), json!("PlatformWorkout"), json!("HeartRate")]
    );
}

#[tokio::test]
async fn rule_1_6_the_search_for_metrics_that_cannot_be_had_ends() {
    let person = person();
    let names: Vec<String> = (0..300).map(|number| format!("Nope{number}")).collect();
    let reply = grouped(&person, &at("00:00"), &at("01:00"))
        .with("output", "csv")
        .with("metrics", &names.join(","))
        .await;
    let places = reply.faults();
    assert_eq!((places.len(), places[100].as_str()), (101, "query"));
    assert_eq!(reply.json()["detail"][100]["type"], "more_faults");
}

#[tokio::test]
async fn rule_1_5c_calculations_that_do_not_fit() {
    let person = person();
    let (place, message) = fault(&day(&person, "HeartRate").with("calculations", "variance").await);
    assert_eq!(place, "query.calculations");
    assert!(
        message.contains("\"variance\"")
            && message.contains("max, min, delta, mean, uniques, allpoints, rollingmean"),
        "{message}"
    );
    for metric in ["StepCount", "CaloriesConsumed", "SixMinuteWalkDistance"] {
        let (place, message) = fault(
            &day(&person, metric)
                .with("calculations", "count")
                .with("calculations", "max")
                .await,
        );
        assert_eq!(place, "query.calculations");
        assert!(
            message.contains("max is not supported on cumulative metrics"),
            "{message}"
        );
        day(&person, metric)
            .with("calculations", "count")
            .await
            .must_be(200);
    }
}

#[tokio::test]
async fn everything_else_that_is_wrong_is_named_at_once() {
    let person = person();
    let reply = person
        .get(&format!("/data/v0/{}/metric_time_series", person.id))
        .with("start_time", "yesterday")
        .with("samprate", "0")
        .with("tz", "Mars/Olympus")
        .with("replace_nulls", "perhaps")
        .with("calculations", "nonsense")
        .await;
    assert_eq!(
        reply.faults(),
        [
            "query.metric",
            "query.start_time",
            "query.end_time",
            "query.output",
            "query.samprate",
            "query.tz",
            "query.calculations",
            "query.replace_nulls"
        ]
    );
    let zone = &reply.json()["detail"][5]["msg"];
    assert!(zone.as_str().unwrap().contains("\"Mars/Olympus\""), "{zone}");
    let counted = person
        .get("/data/v1alpha1/event/MomentAnnotation/agg/day")
        .with("start_time", "2024-05-01")
        .with("end_time", "2024-05-02")
        .with("time_zone", "Mars/Olympus")
        .await;
    let (one, other) = (&reply.json()["detail"][5], &counted.json()["detail"][0]);
    assert_eq!(
        (&one["type"], &one["msg"]),
        (&other["type"], &other["msg"]),
        "the same fault for each of its names"
    );
    assert_eq!(
        day(&person, "HeartRate").with("output", "xml").await.faults(),
        ["query.output"]
    );
    let inverted = series(&person, "HeartRate", &at("11:00"), &at("10:00")).with("output", "csv");
    assert_eq!(inverted.await.faults(), ["query.end_time"]);
    let reply = day(&person, "HeartRate")
        .with("sampel_rate", "5")
        .await
        .must_be(200);
    assert_eq!(
        reply.header("x-ignored-parameters"),
        Some("sampel_rate;nearest=sample_rate")
    );
}

#[tokio::test]
async fn another_persons_series_is_refused_whatever_it_is_of() {
    let (person, other) = (person(), shared().person());
    for metric in ["HeartRate", "NoSuchMetric"] {
        series(&person, metric, &at("10:00"), &at("11:00"))
            .with("output", "csv")
            .await
            .must_be(200 + 204 * u16::from(metric == "NoSuchMetric"));
        let path = format!("/data/v0/{}/metric_time_series", other.id);
        let call = person.get(&path).with("metric", metric).with("output", "csv");
        call.with("start_time", &at("10:00"))
            .with("end_time", &at("11:00"))
            .await
            .problem(403);
        let call = grouped(&person, &at("10:00"), &at("11:00"))
            .with("metrics", metric)
            .with("output", "csv");
        call.with("svc_userid", &other.id.to_string()).await.problem(403);
    }
}
