//! `NOT IN` a query, of a value that is computed: whether null is in it is unknown, unless it is empty.

use serde_json::json;

use super::unknown::{Operator, all};
use super::{SQL, rows};
use crate::harness::person;

#[tokio::test]
async fn what_is_computed_is_sought_as_the_value_that_it_has() {
    let person = person();
    let outer = "(VALUES (1), (2), (3)) AS a(n)";
    let counted = "(SELECT count(*) AS n FROM (VALUES (1), (2), (3)) AS v(k) GROUP BY k) AS a";
    let inner = "FROM (VALUES (1), (5), (NULL)) AS e(c)";
    for (rows_around, sought, value) in [
        (outer, "CASE WHEN true THEN NULL ELSE a.n END", None),
        (outer, "CASE WHEN $1 THEN a.n END", None),
        (outer, "nvl2(true, NULL, a.n)", None),
        (outer, "a.n * NULL", None),
        (outer, "CAST(NULL AS BIGINT) + a.n", None),
        (
            outer,
            "CAST(CASE WHEN true THEN NULL ELSE a.n END AS DOUBLE)",
            None,
        ),
        (outer, "CASE WHEN true THEN 5 ELSE a.n END", Some(5)),
        (outer, "CASE WHEN true THEN 7 ELSE a.n END", Some(7)),
        (outer, "coalesce(CASE WHEN false THEN a.n END, 5)", Some(5)),
        // Null, though the column is not.
        (counted, "nullif(a.n, 1)", None),
        (counted, "CASE WHEN a.n > 5 THEN a.n END", None),
        (counted, "a.n + 4", Some(5)),
    ] {
        for (within, known, has_null) in [
            (format!("(SELECT c {inner})"), &[1, 5][..], true),
            (
                format!("(SELECT c {inner} WHERE c IS NOT NULL)"),
                &[1, 5][..],
                false,
            ),
            (
                format!("(SELECT c {inner} WHERE c IS NULL OR c < 5)"),
                &[1][..],
                true,
            ),
            (format!("(SELECT c {inner} WHERE c > 5)"), &[][..], false),
            (format!("(SELECT c {inner} WHERE c > a.n)"), &[5][..], false),
        ] {
            let found = known.iter().copied().map(Some).chain(has_null.then_some(None));
            let is_absent = all(found.map(|row| Operator::Unequal.holds(value, row)));
            for condition in [
                format!("{sought} NOT IN {within}"),
                format!("NOT ({sought} IN {within})"),
                format!("{sought} <> ALL {within}"),
                format!("a.n > 0 AND {sought} NOT IN {within} AND a.n < 9"),
                format!("({sought} NOT IN {within} OR a.n < 0)"),
            ] {
                let query = format!("SELECT count(*) AS kept FROM {rows_around} WHERE {condition}");
                let parameters = if sought.contains("$1") {
                    json!([false])
                } else {
                    json!([])
                };
                let body = json!({"query": query, "parameters": parameters});
                let found = person.post(SQL, &body).await.must_be(200).rows();
                let expected = if is_absent == Some(true) { 3 } else { 0 };
                assert_eq!(found, [json!({"kept": expected})], "{query}");
            }
        }
    }
}

#[tokio::test]
async fn what_is_found_for_the_row_around_it_is_sought_too() {
    let person = person();
    let found = "(SELECT max(m.k) FROM (VALUES (1, 5), (2, 6)) AS m(n, k) WHERE m.n = a.n)";
    for (within, expected) in [("(1), (5)", 1), ("(1), (NULL)", 0)] {
        let text = format!(
            "SELECT count(*) AS kept FROM (VALUES (1), (2), (3)) AS a(n) WHERE {found} NOT IN (SELECT c FROM \
             (VALUES {within}) AS e(c))"
        );
        assert_eq!(rows(&person, &text).await, [json!({"kept": expected})], "{text}");
    }
}
