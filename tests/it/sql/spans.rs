//! Spans of time have one length, by which they are compared, and parts like those of a clock.

use serde_json::{Value, json};

use super::{rows, wrong};
use crate::harness::{person, texts};

/// A difference of 36 hours, one of 12, and one that is not known.
const SPANS: &str = "(SELECT n, CAST(e AS TIMESTAMP) - CAST(s AS TIMESTAMP) AS d FROM (VALUES \
                     ('long', '2024-05-01T00:00:00', '2024-05-02T12:00:00'), \
                     ('short', '2024-05-01T00:00:00', '2024-05-01T12:00:00'), \
                     ('unknown', NULL, '2024-05-01T12:00:00')) AS v(n, s, e)) AS spans";

#[tokio::test]
async fn a_difference_is_compared_with_an_interval_by_its_length() {
    let person = person();
    for (condition, expected) in [
        ("d > INTERVAL '1 day'", vec!["long"]),
        ("d < INTERVAL '1 day'", vec!["short"]),
        ("INTERVAL '1 day' > d", vec!["short"]),
        ("NOT d > INTERVAL '1 day'", vec!["short"]),
        ("d < INTERVAL '1 month'", vec!["long", "short"]),
        ("d = INTERVAL '1 day 12 hours'", vec!["long"]),
        ("d = INTERVAL '36 hours'", vec!["long"]),
        ("d IS DISTINCT FROM INTERVAL '36 hours'", vec!["short", "unknown"]),
        ("d BETWEEN INTERVAL '1 day' AND INTERVAL '2 days'", vec!["long"]),
        (
            "d NOT BETWEEN INTERVAL '1 day' AND INTERVAL '2 days'",
            vec!["short"],
        ),
        ("d IN (INTERVAL '12 hours', INTERVAL '1 month')", vec!["short"]),
        ("d NOT IN (INTERVAL '12 hours', INTERVAL '1 month')", vec!["long"]),
        (
            "CASE d WHEN INTERVAL '36 hours' THEN true ELSE false END",
            vec!["long"],
        ),
        ("d > '1 day'", vec!["long"]),
        ("d > INTERVAL '1 day' AND d < INTERVAL '37 hours'", vec!["long"]),
    ] {
        let text = format!("SELECT n FROM {SPANS} WHERE {condition} ORDER BY n");
        assert_eq!(texts(&rows(&person, &text).await, "n"), expected, "{text}");
    }
    let times = "(VALUES (TIMESTAMP '2024-05-01T00:00:00'), (TIMESTAMP '2024-05-02T08:00:00')) AS v(t)";
    let text = format!("SELECT max(t) - min(t) > INTERVAL '1 day' AS is_long FROM {times}");
    assert_eq!(rows(&person, &text).await, [json!({"is_long": true})]);
    for (selected, expected) in [
        ("d > '1 day'", [json!(true), json!(false), Value::Null]),
        ("'36 hours' <= d", [json!(true), json!(false), Value::Null]),
        (
            "d BETWEEN '1 hour' AND '1 day'",
            [json!(false), json!(true), Value::Null],
        ),
    ] {
        let text = format!("SELECT {selected} AS holds FROM {SPANS} ORDER BY n");
        let expected = expected.map(|holds| json!({"holds": holds}));
        assert_eq!(rows(&person, &text).await, expected, "{text}");
    }
    let text = format!("SELECT n, d > '1 day' FROM {SPANS} WHERE n = 'long'");
    let found = rows(&person, &text).await;
    let names: Vec<&String> = found[0].as_object().unwrap().keys().collect();
    assert_eq!(names[0], "n");
    assert!(names[1].starts_with("spans.d > "), "{names:?}");
    let text = format!("SELECT count(*) AS n FROM {SPANS} HAVING max(d) > INTERVAL '1 day'");
    assert_eq!(rows(&person, &text).await, [json!({"n": 3})]);
}

#[tokio::test]
async fn intervals_are_compared_and_sorted_by_their_length() {
    let person = person();
    for (condition, expected) in [
        ("INTERVAL '1 day' = INTERVAL '24 hours'", json!(true)),
        ("INTERVAL '1 day' <> INTERVAL '24 hours'", json!(false)),
        ("INTERVAL '36 hours' > INTERVAL '1 day'", json!(true)),
        ("INTERVAL '1 month' < INTERVAL '40 days'", json!(true)),
        ("INTERVAL '1 year' = INTERVAL '360 days'", json!(true)),
        ("INTERVAL '1 day' = NULL", Value::Null),
        ("INTERVAL '25 hours' > '1 day'", json!(true)),
        ("'24 hours' = INTERVAL '1 day'", json!(true)),
        ("INTERVAL '25 hours' IN ('1 day', '1 day 1 hour')", json!(true)),
    ] {
        let text = format!("SELECT {condition} AS holds");
        assert_eq!(rows(&person, &text).await, [json!({"holds": expected})], "{text}");
    }
    let intervals = "(VALUES ('month', INTERVAL '1 month'), ('forty days', INTERVAL '40 days'), \
                     ('hours', INTERVAL '23 hours'), ('day', INTERVAL '1 day')) AS v(n, i)";
    let sorted = rows(&person, &format!("SELECT n FROM {intervals} ORDER BY i")).await;
    assert_eq!(texts(&sorted, "n"), ["hours", "day", "month", "forty days"]);
    let sorted = rows(
        &person,
        &format!("SELECT n FROM {intervals} ORDER BY i DESC LIMIT 2"),
    )
    .await;
    assert_eq!(texts(&sorted, "n"), ["forty days", "month"]);
    for function in ["max(i)", "min(i) OVER ()", "greatest(i, INTERVAL '1 day')"] {
        let refused = wrong(&person, &format!("SELECT {function} FROM {intervals}")).await;
        assert!(
            refused.contains("cannot be used on intervals"),
            "{function}: {refused}"
        );
    }
}

#[tokio::test]
async fn a_difference_has_days_and_a_time_beside_them() {
    let person = person();
    let parts = "extract(day FROM d) AS day, extract(hour FROM d) AS hour, extract(minute FROM d) AS minute, \
                 extract(second FROM d) AS second, date_part('millisecond', d) AS ms, date_part('us', d) AS \
                 us, extract(epoch FROM d) AS epoch";
    let (first, last) = (
        "TIMESTAMP '2024-05-01T00:00:00'",
        "TIMESTAMP '2024-05-02T08:12:07.5'",
    );
    for (difference, sign) in [
        (format!("{last} - {first}"), 1),
        (format!("{first} - {last}"), -1),
    ] {
        let text = format!("SELECT {parts} FROM (VALUES (1), (2)) AS v(n), (SELECT {difference} AS d) AS w");
        let expected = json!({
            "day": sign, "hour": 8 * sign, "minute": 12 * sign, "second": 7 * sign, "ms": 7_500 * sign,
            "us": 7_500_000 * sign, "epoch": 115_927.5 * f64::from(sign),
        });
        assert_eq!(rows(&person, &text).await, [expected.clone(), expected], "{text}");
    }
    let text = format!("SELECT extract(week FROM {last} - {first}) AS weeks");
    let refused = wrong(&person, &text).await;
    assert!(refused.contains("has no weeks"), "{refused}");
}
