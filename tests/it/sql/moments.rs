//! Moments beside texts and dates, in all years and zones.

use serde_json::json;

use super::{rows, wrong};
use crate::harness::{Person, id, person};

/// One event.
async fn drinking() -> Person {
    let person = person();
    let tea = person.define("Event", &json!({"name": "Tea"})).await;
    let cup = json!({"id": id(1), "start_time": "2024-05-01T10:00:00Z"});
    person.records(&tea, &[cup]).await;
    person
}

#[tokio::test]
async fn what_is_chosen_among_moments_is_one_however_it_is_written() {
    let person = drinking().await;
    for (chosen, expected) in [
        ("nullif(start_time, '0001-01-01')", Some("2024-05-01T10:00:00Z")),
        ("nullif(start_time, '2024-05-01T10:00:00Z')", None),
        (
            "nullif(start_time, DATE '9999-12-31')",
            Some("2024-05-01T10:00:00Z"),
        ),
        ("coalesce(start_time, '2024-03-31')", Some("2024-05-01T10:00:00Z")),
        (
            "coalesce(NULL, '9999-03-31', start_time)",
            Some("9999-03-31T00:00:00Z"),
        ),
        (
            "coalesce(nullif(start_time, start_time), DATE '0001-01-02')",
            Some("0001-01-02T00:00:00Z"),
        ),
        ("greatest(start_time, '9999-01-01')", Some("9999-01-01T00:00:00Z")),
        (
            "least(start_time, DATE '0001-01-02', NULL)",
            Some("0001-01-02T00:00:00Z"),
        ),
        ("nvl(start_time, '0001-01-02')", Some("2024-05-01T10:00:00Z")),
        (
            "nvl2('a', '0001-01-02', start_time)",
            Some("0001-01-02T00:00:00Z"),
        ),
        (
            "nvl2(nullif('a', 'a'), start_time, DATE '9999-01-02')",
            Some("9999-01-02T00:00:00Z"),
        ),
        ("nvl2(true, start_time, NULL)", Some("2024-05-01T10:00:00Z")),
        (
            "CASE WHEN false THEN start_time ELSE '9999-05-02' END",
            Some("9999-05-02T00:00:00Z"),
        ),
        (
            "CASE WHEN true THEN '0001-05-02' ELSE start_time END",
            Some("0001-05-02T00:00:00Z"),
        ),
        (
            "CASE WHEN false THEN start_time ELSE DATE '9999-05-02' END",
            Some("9999-05-02T00:00:00Z"),
        ),
        (
            "coalesce(NULL, TIMESTAMP '2024-05-01 10:30')",
            Some("2024-05-01T10:30:00Z"),
        ),
        (
            "coalesce(NULL, CAST('2024-05-01T10:30' AS TIMESTAMP))",
            Some("2024-05-01T10:30:00Z"),
        ),
        (
            "CASE start_time WHEN '0001-01-01' THEN NULL ELSE start_time END",
            Some("2024-05-01T10:00:00Z"),
        ),
    ] {
        let found = rows(&person, &format!("SELECT {chosen} AS chosen FROM tea")).await;
        assert_eq!(found, [json!({"chosen": expected})], "{chosen}");
    }
    // Other values are chosen from as before.
    let others = "SELECT coalesce(NULL, 2) AS two, nullif('a', 'a') AS nothing, greatest(1, 2.5) AS more, \
                  least('b', 'a') AS first";
    let expected = json!({"two": 2, "nothing": null, "more": 2.5, "first": "a"});
    assert_eq!(rows(&person, others).await, [expected]);
    wrong(&person, "SELECT coalesce(start_time, 1) FROM tea").await;
    wrong(&person, "SELECT nvl2('a', start_time) FROM tea").await;
    let message = wrong(&person, "SELECT coalesce()").await;
    assert_eq!(message.matches("coercion failed").count(), 1, "{message}");
    wrong(&person, "SELECT nullif(start_time) FROM tea").await;
}

#[tokio::test]
async fn a_local_time_that_is_shown_twice_or_never_is_a_moment() {
    let person = drinking().await;
    for (local, expected) in [
        (
            "TIMESTAMP '2024-10-27 02:30:00' AT TIME ZONE 'Europe/Berlin'",
            "2024-10-27T01:30:00Z",
        ),
        (
            "TIMESTAMP '2024-03-31 02:30:00' AT TIME ZONE 'Europe/Berlin'",
            "2024-03-31T01:30:00Z",
        ),
        (
            "TIMESTAMP '2024-05-01 12:00:00' AT TIME ZONE 'Europe/Berlin'",
            "2024-05-01T10:00:00Z",
        ),
        (
            "DATE '2024-05-01' AT TIME ZONE 'Europe/Berlin'",
            "2024-04-30T22:00:00Z",
        ),
        ("CAST(NULL AS TIMESTAMP) AT TIME ZONE 'Europe/Berlin'", ""),
        ("start_time AT TIME ZONE 'Europe/Berlin'", "2024-05-01T10:00:00Z"),
    ] {
        let found = rows(
            &person,
            &format!("SELECT to_char(({local}) AT TIME ZONE 'UTC', '%Y-%m-%dT%H:%M:%SZ') AS moment FROM tea"),
        )
        .await;
        assert_eq!(
            found[0]["moment"].as_str().unwrap_or_default(),
            expected,
            "{local}"
        );
    }
    // Values that differ from row to row are converted in the same way.
    let changing = "SELECT count(*) AS n FROM (VALUES (TIMESTAMP '2024-10-27 02:30:00'), \
                    (TIMESTAMP '2024-03-31 02:30:00'), (NULL)) AS t(local) \
                    WHERE local AT TIME ZONE 'Europe/Berlin' \
                    IN ('2024-10-27T01:30:00Z', '2024-03-31T01:30:00Z')";
    assert_eq!(rows(&person, changing).await, [json!({"n": 2})]);
}
