//! Plans as text: of a query with EXPLAIN, of any question with `explain`. They show what is pushed down, and
//! nobody's values.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{query, rows};
use crate::harness::{ALL_TIME, Almanac, Person, Setup, at, heart_rate, id, instant, person, steps, texts};

/// A sample's value that no duration, count or size in a plan is ever written as.
const UNLIKE_A_MEASURE: f64 = 98_765.5;

async fn plan(person: &Person, text: &str) -> String {
    texts(&rows(person, text).await, "plan").join("\n")
}

async fn beating(person: &Person) {
    let beats: Vec<Value> = (0..200)
        .map(|n| heart_rate(id(n), &instant(n * 60), 60.0 + f64::from(n) / 7.0))
        .collect();
    person.records("HeartRate", &beats).await;
}

#[tokio::test]
async fn columns_times_and_limits_reach_the_scan() {
    let person = person();
    beating(&person).await;
    let found = plan(
        &person,
        "EXPLAIN SELECT value FROM heart_rate WHERE start_date >= '2024-05-01T01:00:00Z'",
    )
    .await;
    assert!(
        found.contains("AnswerExec: records of heart_rate, narrowed by time, columns=[start_date, value]"),
        "{found}"
    );
    assert!(!found.contains("source_properties"), "{found}");
    let found = plan(&person, "EXPLAIN SELECT count(value) FROM heart_rate").await;
    assert!(
        found.contains("AnswerExec: records of heart_rate, columns=[value]"),
        "{found}"
    );
    let found = plan(&person, "EXPLAIN SELECT value FROM heart_rate LIMIT 3").await;
    assert!(found.contains("fetch=3"), "{found}");
    // Rows come in their order: nothing sorts them again.
    let found = plan(
        &person,
        "EXPLAIN SELECT value FROM heart_rate ORDER BY start_date",
    )
    .await;
    assert!(!found.contains("SortExec"), "{found}");
    let found = plan(
        &person,
        "EXPLAIN SELECT heart_rate FROM series('HeartRate', '1d')",
    )
    .await;
    assert!(found.contains("AnswerExec: series of HeartRate"), "{found}");
}

#[tokio::test]
async fn what_the_snapshot_knows_is_not_read() {
    let person = person();
    beating(&person).await;
    let known = "SELECT count(*) AS n, min(start_date) AS first, max(start_date) AS last FROM heart_rate";
    let answered = rows(&person, known).await;
    assert_eq!(answered[0]["n"], json!(200));
    assert_eq!(texts(&answered, "first"), [instant(0)]);
    assert_eq!(texts(&answered, "last"), [instant(199 * 60)]);
    let found = plan(&person, &format!("EXPLAIN {known}")).await;
    assert!(!found.contains("AnswerExec"), "{found}");
    // Which rows are left of a piece of which some are dead, only the rows tell.
    person.delete("HeartRate", id(199)).await;
    let answered = rows(&person, known).await;
    assert_eq!(answered[0]["n"], json!(199));
    assert_eq!(texts(&answered, "last"), [instant(198 * 60)]);
    let found = plan(&person, &format!("EXPLAIN {known}")).await;
    assert!(found.contains("AnswerExec"), "{found}");
    let found = plan(&person, "EXPLAIN SELECT count(*) FROM heart_rate").await;
    assert!(!found.contains("AnswerExec"), "{found}");
    assert_eq!(
        rows(&person, "SELECT count(*) AS n FROM heart_rate").await[0]["n"],
        json!(199)
    );
}

#[tokio::test]
async fn the_last_records_are_read_from_the_end() {
    let person = person();
    beating(&person).await;
    let last = "SELECT start_date, value FROM heart_rate ORDER BY start_date DESC LIMIT 2";
    let answered = rows(&person, last).await;
    assert_eq!(
        texts(&answered, "start_date"),
        [instant(199 * 60), instant(198 * 60)]
    );
    let found = plan(&person, &format!("EXPLAIN {last}")).await;
    assert!(found.contains("records of heart_rate, from the end"), "{found}");
    assert!(!found.contains("SortExec"), "{found}");
    // By anything else they are sorted.
    let largest = "EXPLAIN SELECT start_date, value FROM heart_rate ORDER BY value DESC LIMIT 2";
    let found = plan(&person, largest).await;
    assert!(
        found.contains("SortExec") && !found.contains("from the end"),
        "{found}"
    );
}

#[tokio::test]
async fn windows_over_the_newest_first_are_read_from_the_end_wherever_nulls_would_be() {
    let person = person();
    beating(&person).await;
    for window in [
        "row_number() OVER (ORDER BY start_date DESC)",
        "row_number() OVER (ORDER BY start_date DESC NULLS LAST)",
        "rank() OVER (ORDER BY start_date DESC NULLS FIRST)",
    ] {
        let newest = format!(
            "SELECT start_date, place FROM (SELECT start_date, {window} AS place FROM heart_rate) t \
             WHERE place <= 2 ORDER BY place"
        );
        let answered = rows(&person, &newest).await;
        let expected = [instant(199 * 60), instant(198 * 60)];
        assert_eq!(texts(&answered, "start_date"), expected, "{window}");
        let found = plan(&person, &format!("EXPLAIN {newest}")).await;
        assert!(found.contains("records of heart_rate, from the end"), "{found}");
    }
    let newest = "SELECT start_date FROM heart_rate QUALIFY row_number() OVER (ORDER BY start_date DESC) = 1";
    assert_eq!(
        texts(&rows(&person, newest).await, "start_date"),
        [instant(199 * 60)]
    );
}

#[tokio::test]
async fn conditions_on_what_is_measured_reach_the_pages() {
    let (_server, person) = in_objects().await;
    let found = plan(
        &person,
        "EXPLAIN SELECT value FROM heart_rate WHERE value > 59 AND unit = 'bpm'",
    )
    .await;
    assert!(
        found.contains("skips by [value]") || found.contains("skips by [unit, value]"),
        "{found}"
    );
    let answered = rows(&person, "SELECT value FROM heart_rate WHERE value > 59").await;
    assert_eq!(answered.len(), 1);
    assert!(
        rows(&person, "SELECT value FROM heart_rate WHERE value > 60")
            .await
            .is_empty()
    );
    // A function is called where it stands.
    let found = plan(
        &person,
        "EXPLAIN SELECT value FROM heart_rate WHERE abs(value) > 59",
    )
    .await;
    assert!(!found.contains("skips by"), "{found}");
}

#[tokio::test]
async fn analyze_runs_the_query_and_says_what_it_took() {
    let person = person();
    beating(&person).await;
    let found = plan(
        &person,
        "EXPLAIN ANALYZE SELECT value FROM heart_rate WHERE value > 80",
    )
    .await;
    assert!(
        found.contains("output_rows=") && found.contains("elapsed_compute="),
        "{found}"
    );
    let only = plan(&person, "EXPLAIN SELECT value FROM heart_rate WHERE value > 80").await;
    assert!(!only.contains("metrics"), "{only}");
    query(&person, "EXPLAIN ANALYZE SELECT 1 / 0").await.must_be(422);
}

#[tokio::test]
async fn every_read_explains_itself_without_anybodys_values() {
    let server = Setup::default().busy_upkeep().start();
    let person = server.person();
    beating(&person).await;
    person
        .records(
            "StepCount",
            &[steps(id(900), &at("09:00"), &at("10:00"), UNLIKE_A_MEASURE)],
        )
        .await;
    person.delete("HeartRate", id(3)).await;
    let of_person = |route: &str| format!("/data/v0/{}/{route}", person.id);
    let calls = [
        (
            person
                .get(&of_person("metric_samples"))
                .with("metric", "HeartRate"),
            "ProjectionExec",
        ),
        (
            person
                .get(&of_person("metric_time_series"))
                .with("metric", "StepCount")
                .with("samprate", "1y")
                .with("output", "jstable"),
            "SeriesExec",
        ),
        (
            person.get(&of_person("sleep_cycles")).with("output", "csv"),
            "SleepExec",
        ),
        (
            person.get("/data/v1alpha1/metric/HeartRate").with("limit", "2"),
            "GlobalLimitExec",
        ),
        (person.get(&of_person("location_updates")), "ProjectionExec"),
    ];
    for (call, operator) in calls {
        let call = call.with("start_time", ALL_TIME.0).with("end_time", ALL_TIME.1);
        let reply = call
            .header("accept", "text/plain")
            .with("explain", "analyze")
            .await
            .must_be(200);
        assert_eq!(reply.header("content-type"), Some("text/plain; charset=utf-8"));
        let text = reply.text();
        assert!(text.contains(operator), "{text}");
        let dead = id(3);
        for value in [
            person.id.to_string(),
            dead.to_string(),
            dead.simple().to_string(),
            UNLIKE_A_MEASURE.to_string(),
            ".parquet".to_owned(),
        ] {
            assert!(!text.contains(&value), "{value} in {text}");
        }
    }
    let unknown = person.read("metric", "HeartRate").with("explain", "why").await;
    assert_eq!(unknown.faults(), ["query.explain"]);
}

/// A server, and a person with something of everything that is asked about, all of it in objects.
async fn in_objects() -> (Almanac, Person) {
    let server = Setup::default().busy_upkeep().start();
    let person = server.person();
    let (start, end) = (at("09:00"), at("10:00"));
    let each = [
        ("HeartRate", heart_rate(id(1), &start, 60.0)),
        ("StepCount", steps(id(2), &start, &end, 42.5)),
        (
            "SleepStage",
            json!({"uuid": id(3), "start_date": start, "end_date": end, "value": 3}),
        ),
        (
            "PlatformLocationUpdate",
            json!({"uuid": id(4), "timestamp": start, "latitude_degrees": 47.0, "longitude_degrees": 8.0,
                "horizontal_accuracy_meters": 9.0}),
        ),
        (
            "MapsLocationUpdate",
            json!({"uuid": id(5), "timestamp": start, "latitude_degrees": 48.1, "longitude_degrees": 11.5,
                "horizontal_accuracy_meters": 8, "source_id": "maps"}),
        ),
        (
            "PlatformLocationVisit",
            json!({"uuid": id(6), "arrival_date": start, "departure_date": end, "latitude_degrees": 47.0,
                "longitude_degrees": 8.0, "horizontal_accuracy_meters": 9.0}),
        ),
        (
            "Calendar",
            json!({"calendar_id": id(7), "calendar_identifier": "A", "calendar_name": "W"}),
        ),
        (
            "CalendarEvent",
            json!({"calendar_event_id": id(8), "calendar_id": id(7), "start_date": start, "end_date": end}),
        ),
        (
            "PlatformWorkout",
            json!({"platform_workout_id": id(9), "start_date": start, "end_date": end}),
        ),
    ];
    let count = each.len();
    for (data_type, record) in each {
        person.record(data_type, &record).await.upload();
    }
    server.until_objects(count).await;
    server.restart();
    (server, person)
}

#[tokio::test]
async fn the_plan_of_each_endpoint_is_what_it_was() {
    let (_server, person) = in_objects().await;
    let day = [("start_time", "2024-05-01"), ("end_time", "2024-05-02")];
    let ranged = |route: &str| {
        let call = person.get(route);
        day.iter()
            .fold(call, |call, (name, value)| call.with(name, value))
    };
    let of_person = |route: &str| format!("/data/v0/{}/{route}", person.id);
    let own = |route: &str| ranged(&of_person(route));
    let calls = [
        (
            "metric_samples",
            own("metric_samples").with("metric", "HeartRate"),
        ),
        (
            "metric_samples, two columns and a limit",
            own("metric_samples")
                .with("metric", "HeartRate")
                .with("columns", "start_date,value")
                .with("limit", "1"),
        ),
        (
            "metric_time_series of an amount",
            own("metric_time_series")
                .with("metric", "StepCount")
                .with("samprate", "1h"),
        ),
        (
            "metric_time_series of a level",
            own("metric_time_series")
                .with("metric", "HeartRate")
                .with("calculations", "max"),
        ),
        (
            "time_series_grouped",
            ranged("/data/v0/time_series_grouped")
                .with("metrics", "StepCount")
                .with("metrics", "HeartRate"),
        ),
        ("sleep_stages", own("sleep_stages")),
        ("sleep_cycles", own("sleep_cycles")),
        (
            "sleep_cycles_extended",
            own("sleep_cycles_extended").with("metrics", "HeartRate"),
        ),
        ("sleep_agg", own("sleep_agg")),
        ("platform_location_updates", own("platform_location_updates")),
        ("platform_location_visits", own("platform_location_visits")),
        ("maps_location_updates", own("maps_location_updates")),
        ("location_updates", own("location_updates")),
        (
            "location_at_time",
            person
                .get(&of_person("location_at_time"))
                .with("time", "2024-05-01T12:00:00Z"),
        ),
        ("location_time_series", own("location_time_series")),
        ("calendars", person.get(&of_person("calendars"))),
        ("calendar_events", own("calendar_events")),
        ("platform_workouts", own("platform_workouts")),
        (
            "records by a selector",
            person
                .get("/data/v1/records")
                .with("q", "HeartRate[1d] @ 1714608000"),
        ),
        ("metric", ranged("/data/v1alpha1/metric/HeartRate")),
        (
            "metric, filtered, from the end",
            ranged("/data/v1alpha1/metric/HeartRate")
                .with("filter", "value>60")
                .with("sort", "desc")
                .with("limit", "1"),
        ),
        (
            "event/latest",
            person.get("/data/v1alpha1/event/CalendarEvent/latest"),
        ),
        (
            "metric/agg",
            ranged("/data/v1alpha1/metric/StepCount/agg/day").with("function", "sum"),
        ),
        ("event/agg", ranged("/data/v1alpha1/event/CalendarEvent/agg/day")),
    ];
    let mut plans = String::new();
    for (name, call) in calls {
        let call = call.with("output", "arrow").with("explain", "plan");
        let reply = call.await.must_be(200);
        let _written = writeln!(plans, "{name}\n{}", reply.text());
    }
    insta::assert_snapshot!(plans);
}

#[tokio::test]
async fn the_plan_of_a_lookup_is_what_it_was() {
    let person = person();
    beating(&person).await;
    let found = plan(
        &person,
        "EXPLAIN SELECT local_day(start_date, 'UTC') AS day, avg(value) FROM heart_rate \
         WHERE start_date >= '2024-05-01' AND start_date < '2024-05-02' GROUP BY day ORDER BY day",
    )
    .await;
    insta::assert_snapshot!(found);
}
