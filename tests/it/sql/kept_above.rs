//! Conditions that name no column, above aggregates and windows: these have a row of nothing, too.

use serde_json::{Value, json};

use super::rows;
use crate::harness::person;

const NUMBERS: &str = "(VALUES (1), (2), (3), (4)) AS t(n)";
const OTHERS: &str = "(VALUES (1), (2), (3), (4)) AS v(k)";

#[tokio::test]
async fn a_condition_without_columns_decides_whether_there_is_the_row_of_an_aggregate() {
    let person = person();
    let largest = format!("(SELECT max(n) FROM {NUMBERS})");
    let counted = format!("SELECT count(*) AS c FROM {NUMBERS}");
    for (text, expected) in [
        (format!("{counted} HAVING {largest} > 1000"), json!([])),
        (format!("{counted} HAVING {largest} > 3"), json!([{"c": 4}])),
        (
            format!("{counted} HAVING {largest} > 3 AND count(*) > 4"),
            json!([]),
        ),
        (format!("{counted} HAVING random() > 2"), json!([])),
        (
            format!("SELECT avg(n) AS c FROM {NUMBERS} HAVING {largest} IS NULL"),
            json!([]),
        ),
        (
            format!("SELECT c FROM ({counted}) AS x WHERE {largest} > 1000"),
            json!([]),
        ),
        (
            format!("SELECT c FROM ({counted}) AS x WHERE (SELECT false)"),
            json!([]),
        ),
        (
            format!("SELECT c FROM ({counted}) AS x WHERE (SELECT true)"),
            json!([{"c": 4}]),
        ),
        (
            format!("WITH x AS ({counted}) SELECT c FROM x WHERE c > 3 AND {largest} > 1000"),
            json!([]),
        ),
        (
            format!(
                "SELECT c FROM ({counted} UNION ALL SELECT 7 FROM {NUMBERS} WHERE n = 1) AS x \
                 WHERE {largest} > 1000"
            ),
            json!([]),
        ),
        (
            format!(
                "SELECT m, c FROM (SELECT max(n) AS m FROM {NUMBERS}) AS q LEFT JOIN ({counted}) AS z \
                 ON 1 = 0"
            ),
            json!([{"m": 4, "c": null}]),
        ),
        (
            format!(
                "SELECT m, c FROM (SELECT max(n) AS m FROM {NUMBERS}) AS q LEFT JOIN ({counted}) AS z \
                 ON m < 4"
            ),
            json!([{"m": 4, "c": null}]),
        ),
        (
            format!(
                "SELECT m, c FROM ({counted}) AS z RIGHT JOIN (SELECT max(n) AS m FROM {NUMBERS}) AS q \
                 ON 1 = 0"
            ),
            json!([{"m": 4, "c": null}]),
        ),
        // With GROUP BY there is no row of nothing.
        (
            format!("SELECT count(*) AS c FROM {NUMBERS} GROUP BY n > 0 HAVING {largest} > 1000"),
            json!([]),
        ),
    ] {
        assert_eq!(Value::Array(rows(&person, &text).await), expected, "{text}");
    }
}

#[tokio::test]
async fn chance_chooses_among_groups_and_not_among_what_they_are_made_of() {
    let person = person();
    // Thirty-two groups of four, of which some are hardly ever not chosen.
    let many = format!("{NUMBERS}, (VALUES (1), (2), (3), (4), (5), (6), (7), (8)) AS u(m), {OTHERS}");
    for (text, size) in [
        (
            format!("SELECT m, k, count(*) AS c FROM {many} GROUP BY m, k HAVING random() < 0.5"),
            4,
        ),
        (
            format!(
                "SELECT c FROM (SELECT count(*) OVER (PARTITION BY m, k) AS c FROM {many}) AS x \
                 WHERE random() < 0.5"
            ),
            4,
        ),
        (
            format!("SELECT c FROM (SELECT count(*) OVER () AS c FROM {many}) AS x WHERE random() < 0.5"),
            128,
        ),
    ] {
        let found = rows(&person, &text).await;
        assert!(
            found.iter().all(|row| row["c"] == json!(size)),
            "{text}: {found:?}"
        );
    }
}
