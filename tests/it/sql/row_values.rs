//! Rows of values that are compared with each other: value by value, and unknown where these are.

use serde_json::{Value, json};

use super::{rows, wrong};
use crate::harness::person;

const ROWS: &str =
    "(VALUES (1, 1, 'x'), (2, 1, NULL), (3, NULL, 'x'), (4, NULL, NULL), (5, 2, 'y')) AS t(n, j, k)";

const TRUE: Option<bool> = Some(true);
const FALSE: Option<bool> = Some(false);

#[tokio::test]
async fn rows_are_compared_value_by_value() {
    let person = person();
    for (condition, expected) in [
        ("(j, k) = (1, 'x')", [TRUE, None, None, None, FALSE]),
        ("ROW(j, k) = ROW(1, 'x')", [TRUE, None, None, None, FALSE]),
        ("(j, k) <> (1, 'x')", [FALSE, None, None, None, TRUE]),
        ("NOT (j, k) = (1, 'x')", [FALSE, None, None, None, TRUE]),
        ("(j, k) = (1, 'y')", [FALSE, None, FALSE, None, FALSE]),
        ("(j, k) < (1, 'y')", [TRUE, None, None, None, FALSE]),
        ("(j, k) <= (1, 'w')", [FALSE, None, None, None, FALSE]),
        ("(j, k) > (1, 'w')", [TRUE, None, None, None, TRUE]),
        ("(j, k) >= (1, 'x')", [TRUE, None, None, None, TRUE]),
        // What comes after the first values that differ does not matter.
        ("(n, j, k) < (3, 0, 'a')", [TRUE, TRUE, None, FALSE, FALSE]),
        ("(j, k) IN ((1, 'x'), (2, 'y'))", [TRUE, None, None, None, TRUE]),
        (
            "(j, k) NOT IN ((1, 'x'), (2, 'y'))",
            [FALSE, None, None, None, FALSE],
        ),
        ("(j, k) NOT IN ((1, 'z'))", [TRUE, None, TRUE, None, TRUE]),
        (
            "(j, k) BETWEEN (1, 'a') AND (1, 'y')",
            [TRUE, None, None, None, FALSE],
        ),
        ("(j, k) IS NULL", [FALSE, FALSE, FALSE, TRUE, FALSE]),
        ("(j, k) IS NOT NULL", [TRUE, FALSE, FALSE, FALSE, TRUE]),
        (
            "(j, k) IS DISTINCT FROM (1, 'x')",
            [FALSE, TRUE, TRUE, TRUE, TRUE],
        ),
        (
            "(j, k) IS NOT DISTINCT FROM (1, NULL)",
            [FALSE, TRUE, FALSE, FALSE, FALSE],
        ),
        ("(1, NULL) = (1, NULL)", [None; 5]),
        ("(1, NULL) = (1, n)", [None; 5]),
        ("(1, NULL) = (2, n)", [FALSE; 5]),
        ("(j + 1, upper(k)) = (2, 'X')", [TRUE, None, None, None, FALSE]),
    ] {
        let text = format!("SELECT {condition} AS c FROM {ROWS} ORDER BY n");
        let found = rows(&person, &text).await;
        let found: Vec<Option<bool>> = found.iter().map(|row| row["c"].as_bool()).collect();
        assert_eq!(found, expected, "{text}");
        let kept = expected.iter().filter(|truth| **truth == TRUE).count();
        let text = format!("SELECT count(*) AS c FROM {ROWS} WHERE {condition}");
        assert_eq!(rows(&person, &text).await, [json!({"c": kept})], "{text}");
    }
    let text = format!(
        "SELECT count(*) AS c FROM {ROWS} JOIN (VALUES (1, 'x'), (2, 'y')) AS u(a, b) \
         ON (t.j, t.k) = (u.a, u.b)"
    );
    assert_eq!(rows(&person, &text).await, [json!({"c": 2})], "{text}");
}

#[tokio::test]
async fn rows_that_cannot_be_compared_value_by_value_are_refused() {
    let person = person();
    let many = vec!["(1, 'x')"; 1_100].join(", ");
    let many = format!("(j, k) IN ({many})");
    for (condition, reason) in [
        ("(j, k) IN (SELECT 1, 'x')", "IN with a query compares one value"),
        (
            "(j, k) = (1, 2, 3)",
            "a row of 2 values is compared with one of 3",
        ),
        ("(j, k) = j", "with something that is not written as a row"),
        (
            "n IN ((1, 2), (3, 4))",
            "with something that is not written as a row",
        ),
        ("(j, (k, n)) = (1, ('x', 2))", "a row within a row"),
        (
            "CASE (j, k) WHEN (1, 'x') THEN true END",
            "CASE compares one value",
        ),
        ("(j, k) = ANY (ARRAY[1])", "ANY and ALL compare one value"),
        (many.as_str(), "parts once they are written out"),
    ] {
        let text = format!("SELECT n FROM {ROWS} WHERE {condition}");
        let refused = wrong(&person, &text).await;
        assert!(refused.contains(reason), "{condition}: {refused}");
        assert!(refused.contains("line 1, column"), "{condition}: {refused}");
    }
}

#[tokio::test]
async fn it_is_unknown_whether_a_value_is_any_item_beside_null() {
    let person = person();
    let arrays = "(SELECT n, v, CASE WHEN n = 4 THEN array_remove(make_array(1), 1) \
                  WHEN n = 3 THEN make_array(1) WHEN n < 5 THEN make_array(1, nullif(n, n)) END AS l \
                  FROM (VALUES (1, 1), (2, 5), (3, NULL), (4, NULL), (5, 5)) AS t(n, v)) AS u";
    for (condition, expected) in [
        ("v = ANY (l)", [TRUE, None, None, FALSE, None]),
        ("NOT (v = ANY (l))", [FALSE, None, None, TRUE, None]),
        ("v < ANY (l)", [None, None, None, FALSE, None]),
        ("v <> ANY (l)", [None, TRUE, None, FALSE, None]),
        ("v <> ALL (l)", [FALSE, None, None, TRUE, None]),
        ("v = ANY (ARRAY[1])", [TRUE, FALSE, None, None, FALSE]),
        ("v = ANY (ARRAY[1, NULL])", [TRUE, None, None, None, None]),
        (
            "v = ANY (CAST(ARRAY[1, NULL] AS BIGINT[]))",
            [TRUE, None, None, None, None],
        ),
        ("1 = ANY (ARRAY[1, NULL])", [TRUE; 5]),
        ("61 = ANY (ARRAY[1, NULL])", [None; 5]),
        ("61 = ANY (CAST(ARRAY[1, NULL] AS BIGINT[]))", [None; 5]),
        ("61 > ANY (ARRAY[NULL, 99])", [None; 5]),
        ("61 = ANY (ARRAY[1, 2])", [FALSE; 5]),
        ("NOT (61 = ANY (ARRAY[v, 5]))", [TRUE, TRUE, None, None, TRUE]),
        ("61 <> ALL (ARRAY[1, NULL])", [None; 5]),
    ] {
        let text = format!("SELECT {condition} AS c FROM {arrays} ORDER BY n");
        let found = rows(&person, &text).await;
        let found: Vec<Option<bool>> = found.iter().map(|row| row["c"].as_bool()).collect();
        assert_eq!(found, expected, "{text}");
        let kept = expected.iter().filter(|truth| **truth == TRUE).count();
        let text = format!("SELECT count(*) AS c FROM {arrays} WHERE {condition}");
        assert_eq!(
            Value::Array(rows(&person, &text).await),
            json!([{"c": kept}]),
            "{text}"
        );
    }
}
