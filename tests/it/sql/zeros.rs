//! Zero and negative zero are one number, wherever a query compares them.

use serde_json::{Value, json};

use super::rows;
use crate::harness::{Person, id, instant, person};

/// Zero, negative zero and one.
const ZEROS: &str = "(VALUES (0.0::double, 1), (-0.0::double, 2), (1.0::double, 3)) t(w, n)";

async fn found(person: &Person, text: &str) -> Value {
    let rows = rows(person, text).await;
    rows[0]["found"].clone()
}

#[tokio::test]
async fn zeros_are_equal_in_conditions() {
    let person = person();
    for (condition, count) in [
        ("w = 0.0", 2),
        ("w = 0.0 AND w = -0.0", 2),
        ("w = 0.0 AND w <> -0.0", 0),
        ("w >= 0.0 AND w > -0.0", 1),
        ("w <= -0.0 AND w < 0.0", 0),
        ("-0.0 >= w AND 0.0 > w", 0),
        ("w = 0.0 AND w = 0.0 * -1.0", 2),
        ("w = 0.0 AND w = '-0'::double", 2),
        ("w = 0 AND w IS NOT DISTINCT FROM -0.0", 2),
        ("w BETWEEN -0.0 AND 0.5 AND w > 0.0", 0),
        ("0.0 = -0.0", 3),
        ("-0.0 BETWEEN 0.0 AND w AND w = 1", 1),
        ("w IN (0.0, 5.0, 6.0, 7.0)", 2),
        ("w IN (-0.0, 5.0, 6.0, 7.0)", 2),
        ("w IN (0, 5, 6, 7)", 2),
        ("w IN (0)", 2),
        ("w NOT IN (0.0, 5.0, 6.0, 7.0)", 1),
        ("w NOT IN (-0.0, 5.0)", 1),
        ("w IN (n - n, 5.0, 6.0, 7.0)", 2),
        ("w IN (5.0, 6.0, 7.0, 8.0)", 0),
        ("w = 0.0 OR w = 5.0 OR w = 6.0 OR w = 7.0", 2),
        ("5 = w OR 6 = w OR 7 = w OR -0.0 = w", 2),
        ("NOT (w = 0 OR w = 5 OR w = 6 OR w = 7)", 1),
        ("w = 1.0 - 1.0 OR w = 5 OR w = 6 OR w = 7", 2),
        ("w = 0.0 * -1.0 OR w = 5 OR w = 6 OR w = 7", 2),
        ("w IN (1.0 - 1.0, 5, 6, 7)", 2),
        (
            "(w = 0 OR w = 5 OR w = 6 OR w = 7) AND w IN (-0.0, 1.0, 6.0, 8.0)",
            2,
        ),
        (
            "(w = 0 OR w = 1 OR w = 6 OR w = 7) AND w NOT IN (-0.0, 5.0, 6.0, 8.0)",
            1,
        ),
        ("(w = 0 OR w = 5 OR w = 6 OR w = 7) IS NOT FALSE", 2),
        ("(w IN (5, 6, 7, 0)) IS TRUE", 2),
        ("array_has(make_array(9.0, w), 0.0)", 2),
        ("array_has(make_array(0.0, 9.0), w)", 2),
        ("array_has_any(make_array(w), make_array(0.0, 9.0))", 2),
        ("array_position(make_array(9.0, w), 0.0) = 2", 2),
        ("make_array(w) = make_array(0.0)", 2),
        ("struct(w) = struct(-0.0)", 2),
        ("make_array(w) IS DISTINCT FROM make_array(0.0)", 1),
    ] {
        let text = format!("SELECT count(*) AS found FROM {ZEROS} WHERE {condition}");
        assert_eq!(found(&person, &text).await, json!(count), "{condition}");
    }
}

#[tokio::test]
async fn a_zero_that_a_subquery_names_is_either_of_both() {
    let person = person();
    for zero in ["0.0", "-0.0", "0.0 * -1.0"] {
        let text = format!(
            "SELECT count(*) AS found FROM (SELECT w, {zero} AS z FROM {ZEROS}) \
             WHERE w = z OR w = 5 OR w = 6 OR w = 7"
        );
        assert_eq!(found(&person, &text).await, json!(2), "{zero}");
    }
}

#[tokio::test]
async fn zeros_are_equal_in_joins_that_are_sorted() {
    let person = person();
    for text in [
        format!("SELECT t.n FROM {ZEROS} JOIN (SELECT 0.0::double AS z) AS b ON t.w = b.z ORDER BY t.n"),
        format!(
            "SELECT t.n FROM {ZEROS} JOIN (SELECT -0.0::double AS z) AS b ON t.w = b.z ORDER BY t.n DESC"
        ),
        format!(
            "SELECT t.n FROM {ZEROS} JOIN (VALUES (0.0::double, 1), (7.0, 2)) AS b(z, m) ON t.w = b.z \
             ORDER BY t.n"
        ),
        format!("SELECT t.n FROM {ZEROS} WHERE t.w IN (SELECT 0.0::double AS z) ORDER BY t.n"),
    ] {
        assert_eq!(rows(&person, &text).await.len(), 2, "{text}");
    }
}

#[tokio::test]
async fn zeros_are_equal_in_windows_cases_and_groups() {
    let person = person();
    for (text, expected) in [
        (
            format!("SELECT max(c) AS found FROM (SELECT count(*) OVER (PARTITION BY w) AS c FROM {ZEROS})"),
            2,
        ),
        (
            format!("SELECT sum(r) AS found FROM (SELECT rank() OVER (ORDER BY w) AS r FROM {ZEROS})"),
            5,
        ),
        (
            format!("SELECT sum(r) AS found FROM (SELECT rank() OVER (ORDER BY w DESC) AS r FROM {ZEROS})"),
            5,
        ),
        (
            format!(
                "SELECT max(c) AS found FROM (SELECT count(*) OVER (PARTITION BY make_array(w)) AS c \
                 FROM {ZEROS})"
            ),
            2,
        ),
        (
            format!("SELECT sum(CASE w WHEN 0 THEN 1 WHEN 5 THEN 10 ELSE 100 END) AS found FROM {ZEROS}"),
            102,
        ),
        (format!("SELECT count(nullif(w, 0.0)) AS found FROM {ZEROS}"), 1),
        (format!("SELECT count(nullif(w, -0.0)) AS found FROM {ZEROS}"), 1),
        (
            format!("SELECT count(*) AS found FROM (SELECT w, count(*) FROM {ZEROS} GROUP BY w)"),
            2,
        ),
        (
            format!(
                "SELECT max(c) AS found FROM (SELECT make_array(w) AS l, count(*) AS c FROM {ZEROS} \
                 GROUP BY make_array(w))"
            ),
            2,
        ),
        (
            format!(
                "SELECT max(c) AS found FROM (SELECT s, count(*) AS c FROM (SELECT struct(w) AS s \
                 FROM {ZEROS}) GROUP BY s)"
            ),
            2,
        ),
        (
            format!("SELECT count(*) AS found FROM (SELECT DISTINCT make_array(w) AS l FROM {ZEROS})"),
            2,
        ),
        (
            format!("SELECT count(DISTINCT make_array(w)) AS found FROM {ZEROS}"),
            2,
        ),
        (format!("SELECT count(DISTINCT w) AS found FROM {ZEROS}"), 2),
        (
            format!("SELECT count(DISTINCT w) * 10 + count(DISTINCT n) AS found FROM {ZEROS}"),
            23,
        ),
        (
            format!("SELECT count(DISTINCT w) FILTER (WHERE n < 4) AS found FROM {ZEROS}"),
            2,
        ),
        (
            format!(
                "SELECT max(c) AS found FROM (SELECT n < 4 AS g, count(DISTINCT w) + count(*) AS c \
                 FROM {ZEROS} GROUP BY n < 4)"
            ),
            5,
        ),
        (
            format!("SELECT cardinality(array_agg(DISTINCT w ORDER BY w)) AS found FROM {ZEROS}"),
            2,
        ),
        (
            format!(
                "WITH l AS (SELECT make_array(w) AS l FROM {ZEROS}) \
                 SELECT count(*) AS found FROM l AS a JOIN l AS b ON a.l = b.l"
            ),
            5,
        ),
    ] {
        assert_eq!(found(&person, &text).await, json!(expected), "{text}");
    }
}

#[tokio::test]
async fn stored_zeros_are_equal_and_keep_their_sign() {
    let person = person();
    let beats: Vec<Value> = (1..)
        .zip([0.0, -0.0, 1.0])
        .map(|(n, value)| json!({"uuid": id(n), "start_date": instant(n), "value": value}))
        .collect();
    person.records("HeartRate", &beats).await;
    for condition in [
        "value = 0",
        "value IN (0, 5, 6, 7)",
        "value = -0.0 OR value = 5 OR value = 6 OR value = 7",
    ] {
        let text = format!("SELECT count(*) AS found FROM heart_rate WHERE {condition}");
        assert_eq!(found(&person, &text).await, json!(2), "{condition}");
    }
    let joined = "SELECT a.value FROM heart_rate AS a JOIN (SELECT 0.0 AS zero) AS b ON a.value = b.zero \
                  ORDER BY a.unit, a.start_date DESC";
    assert_eq!(rows(&person, joined).await.len(), 2);
    let kept = rows(
        &person,
        "SELECT value FROM heart_rate WHERE value IN (0, 5, 6, 7) ORDER BY start_date",
    )
    .await;
    let signs = kept
        .iter()
        .map(|row| row["value"].as_f64().is_some_and(f64::is_sign_negative));
    assert_eq!(signs.collect::<Vec<_>>(), [false, true]);
}
