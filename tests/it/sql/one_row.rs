//! Subqueries that are values, and aggregate what they find for the row around them.

use serde_json::json;

use super::{rows, wrong};
use crate::harness::{Person, person};

const OUTER: &str = "(VALUES (1, 1), (0, 2), (-1, 3)) AS a(n, t)";
/// Of which two rows are found for the first, none for the second, and one for the third.
const INNER: &str = "(VALUES (5, 1), (7, 1), (9, 3)) AS e(n, t)";

fn found() -> String {
    format!("FROM {INNER} WHERE e.t = a.t")
}

/// What a value is for each of the rows around it.
async fn values(person: &Person, value: &str) -> Vec<Option<i64>> {
    let text = format!("SELECT a.t, {value} AS found FROM {OUTER} ORDER BY a.t");
    let rows = rows(person, &text).await;
    rows.iter().map(|row| row["found"].as_i64()).collect()
}

#[tokio::test]
async fn a_value_of_which_a_condition_does_not_hold_is_null() {
    let person = person();
    let found = found();
    for (value, expected) in [
        (
            format!("(SELECT max(e.n) {found} HAVING count(*) < 2)"),
            [None, None, Some(9)],
        ),
        (
            format!("(SELECT count(*) {found} HAVING count(*) < 2)"),
            [None, Some(0), Some(1)],
        ),
        (
            format!("(SELECT count(*) {found} HAVING count(*) <= a.n)"),
            [None, Some(0), None],
        ),
        // True of nothing, and unknown of the third.
        (
            format!("(SELECT count(*) {found} HAVING count(*) < nullif(1, count(*)))"),
            [None, Some(0), None],
        ),
        (
            format!("(SELECT count(*) {found} HAVING max(e.n) > 5)"),
            [Some(2), None, Some(1)],
        ),
        (
            format!("(SELECT count(*) {found} HAVING count(*) = 0 OR max(e.n) = 9)"),
            [None, Some(0), Some(1)],
        ),
        (
            format!("coalesce((SELECT max(e.n) {found} HAVING count(*) > 1), -5)"),
            [Some(7), Some(-5), Some(-5)],
        ),
        (
            format!("(SELECT x.c FROM (SELECT count(*) AS c {found}) AS x WHERE x.c <> 2)"),
            [None, Some(0), Some(1)],
        ),
        (
            format!("(SELECT count(*) {found} HAVING count(*) < 2) + (SELECT count(*) {found})"),
            [None, Some(0), Some(2)],
        ),
    ] {
        assert_eq!(values(&person, &value).await, expected, "{value}");
    }
    for (condition, expected) in [
        (
            format!("a.n >= (SELECT count(*) {found} HAVING count(*) <= a.n)"),
            1,
        ),
        (format!("10 > (SELECT max(e.n) {found} HAVING count(*) < 2)"), 1),
        (
            format!("(SELECT count(*) {found} HAVING count(*) < 2) IS NULL"),
            1,
        ),
        (
            format!("NOT ((SELECT count(*) {found} HAVING count(*) < 2) > 0)"),
            1,
        ),
    ] {
        let text = format!("SELECT count(*) AS kept FROM {OUTER} WHERE {condition}");
        assert_eq!(rows(&person, &text).await, [json!({"kept": expected})], "{text}");
    }
}

#[tokio::test]
async fn a_count_that_a_condition_makes_null_is_known_to_be_null_wherever_it_is_named() {
    let person = person();
    let counted = format!(
        "(SELECT a.t, (SELECT count(*) {} HAVING count(*) < 2) AS c FROM {OUTER} GROUP BY a.t) AS x",
        found()
    );
    for condition in [
        "x.c IS NULL",
        "EXISTS (SELECT 1 FROM (VALUES (1), (2), (3)) AS f(t) WHERE f.t = x.t AND x.c IS NULL)",
        "(x.c IN (SELECT f.t FROM (VALUES (0), (1)) AS f(t))) IS NULL",
    ] {
        let text = format!("SELECT count(*) AS kept FROM {counted} WHERE {condition}");
        assert_eq!(rows(&person, &text).await, [json!({"kept": 1})], "{text}");
    }
}

#[tokio::test]
async fn a_value_of_which_there_is_no_row_is_null_whatever_its_column_holds() {
    let person = person();
    let found = found();
    for (value, expected) in [
        // A count is never null.
        (
            format!("coalesce((SELECT count(*) {found} GROUP BY e.t), 6)"),
            [Some(2), Some(6), Some(1)],
        ),
        (format!("(SELECT e.n FROM {INNER} WHERE e.n > 7)"), [Some(9); 3]),
        (format!("(SELECT e.n FROM {INNER} WHERE e.n > 9)"), [None; 3]),
        (
            format!("coalesce((SELECT e.n FROM {INNER} WHERE e.n > 9), 6)"),
            [Some(6); 3],
        ),
        (
            format!("coalesce((SELECT 1 FROM {INNER} LIMIT 0), 6)"),
            [Some(6); 3],
        ),
        (
            format!(
                "CASE WHEN (SELECT count(*) FROM {INNER} GROUP BY e.t HAVING count(*) > 2) IS NULL THEN 6 END"
            ),
            [Some(6); 3],
        ),
        (
            format!("(SELECT 1) + (SELECT count(*) FROM {INNER})"),
            [Some(4); 3],
        ),
    ] {
        assert_eq!(values(&person, &value).await, expected, "{value}");
    }
    let text =
        format!("SELECT count(*) AS kept FROM {OUTER} WHERE (SELECT count(*) {found} GROUP BY e.t) IS NULL");
    assert_eq!(rows(&person, &text).await, [json!({"kept": 1})], "{text}");
    let none = format!("(SELECT e.n FROM {INNER} WHERE e.n > 9)");
    let text = format!("SELECT count(x.c) AS kept FROM (SELECT {none} AS c FROM {OUTER}) AS x");
    assert_eq!(rows(&person, &text).await, [json!({"kept": 0})], "{text}");
}

#[tokio::test]
async fn a_value_of_nothing_is_what_it_is_computed_to_be() {
    let person = person();
    let found = found();
    for (value, expected) in [
        (format!("(SELECT max(e.n) {found})"), [Some(7), None, Some(9)]),
        (format!("(SELECT count(*) {found})"), [Some(2), Some(0), Some(1)]),
        (
            format!("coalesce((SELECT max(e.n) {found}), 0)"),
            [Some(7), Some(0), Some(9)],
        ),
        (
            format!("(SELECT coalesce(max(e.n), 0) - count(*) {found})"),
            [Some(5), Some(0), Some(8)],
        ),
        (
            format!("(SELECT x.c + 1 FROM (SELECT count(*) AS c {found}) AS x)"),
            [Some(3), Some(1), Some(2)],
        ),
        (
            format!("(SELECT 4 FROM (SELECT count(*) AS c {found}) AS x)"),
            [Some(4); 3],
        ),
        (
            format!("(SELECT DISTINCT count(*) {found})"),
            [Some(2), Some(0), Some(1)],
        ),
        (
            format!("(SELECT count(*) AS c {found} ORDER BY c LIMIT 1)"),
            [Some(2), Some(0), Some(1)],
        ),
        // With GROUP BY there is no row where nothing is found.
        (
            format!("(SELECT count(*) {found} GROUP BY e.t)"),
            [Some(2), None, Some(1)],
        ),
        (
            format!("(SELECT count(*) {found} GROUP BY e.t HAVING count(*) < 2)"),
            [None, None, Some(1)],
        ),
        // What is found is the same for all rows around it.
        (
            format!("(SELECT max(e.n) FROM {INNER} HAVING count(*) > 3)"),
            [None; 3],
        ),
        (
            format!("(SELECT max(x.c) FROM (SELECT count(*) AS c FROM {INNER}) AS x)"),
            [Some(3); 3],
        ),
    ] {
        assert_eq!(values(&person, &value).await, expected, "{value}");
    }
}

#[tokio::test]
async fn more_than_a_value_of_what_is_aggregated_for_a_row_is_refused() {
    let person = person();
    let found = found();
    for value in [
        format!("(SELECT max(x.c) FROM (SELECT count(*) AS c {found}) AS x)"),
        format!("(SELECT count(*) FROM (SELECT max(e.n) {found}) AS x)"),
        format!("coalesce((SELECT sum(x.c) FROM (SELECT count(*) AS c {found}) AS x), 3)"),
        format!(
            "(SELECT max(f.n) FROM (SELECT max(e.n) AS m {found}) AS x JOIN (VALUES (7)) AS f(n) \
             ON f.n = x.m)"
        ),
        format!("(SELECT max(e.n) {found} OFFSET 1)"),
    ] {
        for text in [
            format!("SELECT a.t, {value} AS found FROM {OUTER}"),
            format!("SELECT a.t FROM {OUTER} WHERE a.n < {value}"),
        ] {
            let refused = wrong(&person, &text).await;
            assert!(
                refused.contains("aggregates in a query of their own"),
                "{text}: {refused}"
            );
        }
    }
}
