//! The same question in the ways in which people ask it, each with the number that it must give: other names,
//! dates without times, days of a zone, windows that are cut.

use serde_json::{Value, json};

use crate::harness::{Call, Person, heart_rate, id, person, steps};

/// Steps around the night in which New York's clocks went forward: by day there 1, 20, 300 and 4,000.
async fn walked() -> Person {
    let person = person();
    let walks = [
        ("2024-03-10T03:30:00Z", "2024-03-10T03:40:00Z", 1),
        ("2024-03-10T12:00:00Z", "2024-03-10T12:10:00Z", 20),
        ("2024-03-11T03:30:00Z", "2024-03-11T03:40:00Z", 300),
        ("2024-03-11T12:00:00Z", "2024-03-11T12:10:00Z", 4000),
    ];
    let records: Vec<Value> = (1..)
        .zip(walks)
        .map(|(n, (start, end, value))| steps(id(n), start, end, value))
        .collect();
    person.records("StepCount", &records).await;
    person
}

/// What is asked, the values that are answered, and the range that is understood.
type Way<'a> = (&'a str, &'a [f64], &'a str);

fn asked(person: &Person, path: &str, query: &str) -> Call {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs.fold(person.get(path), |call, pair| {
        let (name, value) = pair.split_once('=').unwrap();
        call.with(name, value)
    })
}

async fn each_gives(person: &Person, path: &str, always: &str, column: &str, ways: &[Way<'_>]) {
    for (query, values, range) in ways {
        let reply = asked(person, path, &format!("{always}&{query}"))
            .await
            .must_be(200);
        let found: Vec<f64> = reply
            .rows()
            .iter()
            .filter_map(|row| row[column].as_f64())
            .collect();
        assert_eq!(found, *values, "{query}");
        assert_eq!(reply.header("x-svc-range"), Some(*range), "{query}");
        assert_eq!(reply.header("x-ignored-parameters"), None, "{query}");
    }
}

const UTC_DAY: &str = "2024-03-10T00:00:00Z/2024-03-11T00:00:00Z";
const LOCAL_DAY: &str = "2024-03-10T05:00:00Z/2024-03-11T04:00:00Z";

#[tokio::test]
async fn every_spelling_of_a_day_gives_the_same_series() {
    let person = walked().await;
    let path = format!("/data/v0/{}/metric_time_series", person.id);
    let ways: &[Way<'_>] = &[
        (
            "metric=StepCount&start_time=2024-03-10&end_time=2024-03-11&samprate=1d",
            &[21.0],
            UTC_DAY,
        ),
        (
            "metric=StepCount&start=2024-03-10&end=2024-03-11&sample_rate=86400",
            &[21.0],
            UTC_DAY,
        ),
        (
            "data_type=StepCount&start=2024-03-10&end=2024-03-11&samprate=1d&tz=America/New_York",
            &[1.0, 20.0],
            UTC_DAY,
        ),
        (
            "metric=StepCount&start=2024-03-10&end=2024-03-11&samprate=1d&tz=America/New_York&dates=local",
            &[320.0],
            LOCAL_DAY,
        ),
        (
            "metric=StepCount&start=2024-03-10&end=2024-03-11&samprate=1d\
             &time_zone=America/New_York&dates=local&strict=true",
            &[320.0],
            LOCAL_DAY,
        ),
        (
            "metric=StepCount&start=2024-03-10T00:00:00Z&end=2024-03-11&samprate=1d\
             &tz=America/New_York&dates=local",
            &[1.0, 320.0],
            "2024-03-10T00:00:00Z/2024-03-11T04:00:00Z",
        ),
        (
            "metric=StepCount&start=2024-03-10T00:00-05:00&end=2024-03-11T00:00-04:00&samprate=1d\
             &tz=America/New_York",
            &[320.0],
            LOCAL_DAY,
        ),
    ];
    each_gives(&person, &path, "output=jstable", "step_count", ways).await;
}

#[tokio::test]
async fn a_sum_by_days_is_the_same_however_it_is_asked_for() {
    let person = walked().await;
    let path = "/data/v1alpha1/metric/StepCount/agg/day";
    let ways: &[Way<'_>] = &[
        ("start_time=2024-03-10&end_time=2024-03-11", &[21.0], UTC_DAY),
        (
            "start=2024-03-10&end=2024-03-11&tz=America/New_York",
            &[1.0, 20.0],
            UTC_DAY,
        ),
        (
            "start=2024-03-10&end=2024-03-11&tz=America/New_York&dates=local",
            &[320.0],
            LOCAL_DAY,
        ),
        (
            "start=2024-03-10&end=2024-03-12&time_zone=America/New_York&dates=local&output=ndjson",
            &[320.0, 4000.0],
            "2024-03-10T05:00:00Z/2024-03-12T04:00:00Z",
        ),
    ];
    for (query, values, range) in ways {
        let reply = asked(&person, path, &format!("function=sum&{query}"))
            .await
            .must_be(200);
        let rows: Vec<Value> = if query.contains("ndjson") {
            reply
                .text()
                .lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect()
        } else {
            reply.rows()
        };
        let found: Vec<f64> = rows.iter().filter_map(|row| row["sum"].as_f64()).collect();
        assert_eq!(found, *values, "{query}");
        assert_eq!(reply.header("x-svc-range"), Some(*range), "{query}");
    }
}

#[tokio::test]
async fn what_is_asked_twice_or_in_no_zone_is_refused() {
    let person = walked().await;
    let path = format!("/data/v0/{}/metric_time_series", person.id);
    let range = "start=2024-03-10&end=2024-03-11&samprate=1d";
    for (query, place) in [
        ("metric=StepCount&data_type=HeartRate", "query.metric"),
        ("metric=StepCount&tz=UTC&time_zone=Europe/Berlin", "query.tz"),
        ("metric=StepCount&start_time=2024-03-09", "query.start_time"),
        ("metric=StepCount&sample_rate=60", "query.samprate"),
        ("metric=StepCount&dates=local", "query.dates"),
        ("metric=StepCount&dates=mine&tz=UTC", "query.dates"),
        (
            "metric=StepCount&strict=true&timezone=Europe/Berlin",
            "query.timezone",
        ),
    ] {
        let reply = asked(&person, &path, &format!("output=jstable&{range}&{query}")).await;
        assert_eq!(reply.faults(), [place], "{query}");
    }
    // The zone of dates is read under the one name, and that of rows under the other.
    let path = "/data/v1alpha1/metric/StepCount/agg/day";
    let query = "function=sum&start=2024-03-10&end=2024-03-11&dates=local&tz=UTC&time_zone=Europe/Berlin";
    assert_eq!(asked(&person, path, query).await.faults(), ["query.tz"]);
}

#[tokio::test]
async fn windows_that_are_cut_are_marked_where_that_is_asked() {
    let person = walked().await;
    let marks = |rows: Vec<Value>| -> Vec<Value> { rows.iter().map(|row| row["partial"].clone()).collect() };
    let (cut, whole) = (json!(true), json!(false));
    let series = format!("/data/v0/{}/metric_time_series", person.id);
    let series = |query: &str| {
        let always = "output=jstable&metric=StepCount";
        asked(&person, &series, &format!("{always}&{query}"))
    };
    let days = "start=2024-03-10&end=2024-03-12&samprate=1d&tz=America/New_York";
    let unmarked = series(days).await.must_be(200).rows();
    assert_eq!(marks(unmarked), vec![Value::Null; 3]);
    let marked = series(&format!("{days}&partial=true")).await.must_be(200);
    assert_eq!(marks(marked.rows()), [cut.clone(), whole.clone(), cut.clone()]);
    let local = series(&format!("{days}&partial=true&dates=local"))
        .await
        .must_be(200);
    assert_eq!(marks(local.rows()), [whole.clone(), whole.clone()]);
    let thirds = "start=2024-03-10&end=2024-03-11&samprate=50000&partial=true";
    let thirds = series(thirds).await.must_be(200);
    assert_eq!(marks(thirds.rows()), [whole.clone(), cut.clone()]);
    let grouped = "metrics=StepCount&metrics=HeartRate&output=jstable&partial=true";
    let grouped = asked(
        &person,
        "/data/v0/time_series_grouped",
        &format!("{grouped}&{days}"),
    );
    assert_eq!(
        marks(grouped.await.must_be(200).rows()),
        [cut.clone(), whole.clone(), cut.clone()]
    );
    let sums = "function=sum&partial=true&start=2024-03-10&end=2024-03-11T12:00Z&tz=America/New_York";
    let sums = asked(&person, "/data/v1alpha1/metric/StepCount/agg/day", sums);
    assert_eq!(marks(sums.await.must_be(200).rows()), [cut.clone(), whole]);
    let only = series(&format!("{days}&partial=true&columns=partial"))
        .await
        .must_be(200);
    assert_eq!(only.rows()[0], json!({"partial": cut}));
}

#[tokio::test]
async fn the_range_of_a_selector_is_told() {
    let person = person();
    person
        .records("HeartRate", &[heart_rate(id(1), "2024-05-01T10:00:00Z", 60)])
        .await;
    let selected = person
        .get("/data/v1/records")
        .with("q", "HeartRate[1h] @ 1714561200")
        .await
        .must_be(200);
    assert_eq!(
        selected.header("x-svc-range"),
        Some("2024-05-01T10:00:00Z/2024-05-01T11:00:00Z")
    );
    assert_eq!(selected.text().lines().count(), 1);
}
