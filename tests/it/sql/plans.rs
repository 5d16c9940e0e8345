//! Plans as text: of a query with EXPLAIN, of any question with `explain`. They show what is pushed down, and
//! nobody's values.

use serde_json::Value;

use super::{query, rows};
use crate::harness::{ALL_TIME, Person, Setup, at, heart_rate, id, instant, person, steps, texts};

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
    let found = plan(&person, "EXPLAIN SELECT count(*) FROM heart_rate").await;
    assert!(
        found.contains("AnswerExec: records of heart_rate, columns=[]"),
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
        .records("StepCount", &[steps(id(900), &at("09:00"), &at("10:00"), 42.5)])
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
            "42.5".to_owned(),
            ".parquet".to_owned(),
        ] {
            assert!(!text.contains(&value), "{value} in {text}");
        }
    }
    let unknown = person.read("metric", "HeartRate").with("explain", "why").await;
    assert_eq!(unknown.faults(), ["query.explain"]);
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
