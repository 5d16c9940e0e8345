//! A subquery about the row around it sees what is found for that row, or is refused.

use serde_json::json;

use super::{rows, wrong};
use crate::harness::person;

const OUTER: &str = "(VALUES (1, 1), (2, 2), (3, 3)) AS a(n, t)";
/// Two for the first row of `OUTER`, one for the second, none for the third.
const INNER: &str = "(VALUES (1, 1), (5, 1), (2, 2), (7, 4)) AS e(n, t)";

#[tokio::test]
async fn a_window_over_what_is_found_for_a_row_is_one_of_its_partitions_or_refused() {
    let person = person();
    let numbered = format!("SELECT e.n, row_number() OVER (ORDER BY e.n) AS r FROM {INNER} WHERE e.t = a.t");
    let first = format!("SELECT x.n FROM ({numbered}) AS x WHERE x.r = 1");
    for text in [
        format!("SELECT count(*) AS kept FROM {OUTER} WHERE a.n IN ({first})"),
        format!("SELECT count(*) AS kept FROM {OUTER} WHERE a.n NOT IN ({first})"),
        format!("SELECT count(*) AS kept FROM {OUTER} WHERE EXISTS ({first})"),
        format!("SELECT count(*) AS kept FROM {OUTER} WHERE NOT EXISTS ({first})"),
        format!("SELECT count(*) AS kept FROM {OUTER} WHERE a.n >= ALL ({first})"),
        format!("SELECT count(*) AS kept FROM {OUTER} WHERE a.n IN ({first}) OR a.n = 9"),
        format!("SELECT a.n, (SELECT max(y.n) FROM ({first}) AS y) AS m FROM {OUTER}"),
        format!("SELECT a.n, x.n AS m FROM {OUTER}, LATERAL ({numbered}) AS x WHERE x.r = 1"),
        format!("SELECT a.n, x.n AS m FROM {OUTER} LEFT JOIN LATERAL ({numbered}) AS x ON x.r = 1"),
        // Some of a partition is for others.
        format!(
            "SELECT a.n, x.r FROM {OUTER}, LATERAL (SELECT row_number() OVER (PARTITION BY e.t ORDER BY e.n) \
             AS r FROM {INNER} WHERE e.t = a.t AND e.n >= a.n) AS x"
        ),
        format!(
            "SELECT a.n, x.r FROM {OUTER}, LATERAL (SELECT row_number() OVER (PARTITION BY e.t ORDER BY e.n) \
             AS r, count(*) OVER () AS c FROM {INNER} WHERE e.t = a.t) AS x"
        ),
    ] {
        let refused = wrong(&person, &text).await;
        assert!(refused.contains("PARTITION BY what"), "{text}: {refused}");
    }
    let text = format!(
        "SELECT a.n, x.n AS m FROM {OUTER}, LATERAL (SELECT e.n, row_number() OVER (PARTITION BY e.t \
         ORDER BY e.n DESC) AS r FROM {INNER} WHERE e.t = a.t) AS x WHERE x.r = 1 ORDER BY a.n"
    );
    let expected = [json!({"n": 1, "m": 5}), json!({"n": 2, "m": 2})];
    assert_eq!(rows(&person, &text).await, expected, "{text}");
    // What the refusal says.
    let text = format!(
        "SELECT a.n, x.n AS m FROM {OUTER} JOIN (SELECT e.n, e.t, row_number() OVER (PARTITION BY e.t \
         ORDER BY e.n DESC) AS r FROM {INNER}) AS x ON x.t = a.t AND x.r = 1 ORDER BY a.n"
    );
    assert_eq!(rows(&person, &text).await, expected, "{text}");
}

#[tokio::test]
async fn joins_in_which_rows_for_others_would_match_are_refused() {
    let person = person();
    for (condition, word) in [
        (
            format!(
                "EXISTS (SELECT 1 FROM (VALUES (2), (9)) AS f(n) LEFT JOIN (SELECT e.n FROM {INNER} WHERE \
                 e.t = a.t) AS x ON x.n = f.n WHERE x.n IS NULL)"
            ),
            "LEFT, RIGHT or FULL JOIN",
        ),
        (
            format!(
                "EXISTS (SELECT e.n FROM {INNER} WHERE e.t < 3 EXCEPT SELECT e.n FROM {INNER} \
                 WHERE e.t = a.t)"
            ),
            "EXCEPT",
        ),
    ] {
        let text = format!("SELECT count(*) AS kept FROM {OUTER} WHERE {condition}");
        let refused = wrong(&person, &text).await;
        assert!(refused.contains(word), "{text}: {refused}");
    }
}

#[tokio::test]
async fn what_lateral_aggregates_leaves_out_no_row_unless_a_condition_around_it_does() {
    let person = person();
    let found = format!("FROM {INNER} WHERE e.t = a.t");
    for lateral in [
        format!("SELECT max(e.n) AS m {found} HAVING count(*) > 1"),
        format!("SELECT x.m FROM (SELECT max(e.n) AS m {found}) AS x WHERE x.m > 1"),
        format!("SELECT count(*) AS m FROM (SELECT max(e.n) AS m {found}) AS x"),
        format!("SELECT x.m FROM (SELECT max(e.n) AS m {found}) AS x JOIN (VALUES (5)) AS f(n) ON f.n = x.m"),
        format!("SELECT max(e.n) AS m, 'most' AS what {found}"),
        // The aggregate is of all rows; what stands beside it is not.
        format!(
            "SELECT x.n AS m FROM (SELECT e.n {found}) AS x CROSS JOIN (SELECT count(*) AS c FROM {OUTER}) \
             AS y"
        ),
    ] {
        let text = format!("SELECT a.n, x.m FROM {OUTER}, LATERAL ({lateral}) AS x");
        let refused = wrong(&person, &text).await;
        assert!(refused.contains("what LATERAL aggregates"), "{text}: {refused}");
    }
    let all = format!("LATERAL (SELECT max(e.n) AS m, count(*) AS c {found}) AS x");
    let grouped = format!("LATERAL (SELECT max(e.n) AS m {found} GROUP BY e.t HAVING count(*) > 1) AS x");
    for (text, expected) in [
        (
            format!("SELECT a.n, x.m, x.c FROM {OUTER}, {all} ORDER BY a.n"),
            vec![
                json!({"n": 1, "m": 5, "c": 2}),
                json!({"n": 2, "m": 2, "c": 1}),
                json!({"n": 3, "m": null, "c": 0}),
            ],
        ),
        (
            format!("SELECT a.n, x.m FROM {OUTER}, {all} WHERE x.c > 1"),
            vec![json!({"n": 1, "m": 5})],
        ),
        (
            format!("SELECT a.n, x.m FROM {OUTER}, {grouped}"),
            vec![json!({"n": 1, "m": 5})],
        ),
    ] {
        assert_eq!(rows(&person, &text).await, expected, "{text}");
    }
}

#[tokio::test]
async fn a_name_from_two_queries_further_out_is_refused_as_what_it_is() {
    let person = person();
    let innermost = "(VALUES (5, 1), (2, 2)) AS c(n, t)";
    let within = |condition: &str| {
        format!(
            "SELECT count(*) AS kept FROM {OUTER} WHERE EXISTS (SELECT 1 FROM {INNER} WHERE e.t = a.t AND \
             {condition})"
        )
    };
    for condition in [
        format!("EXISTS (SELECT 1 FROM {innermost} WHERE c.t = a.t AND c.n = e.n)"),
        format!("NOT EXISTS (SELECT 1 FROM {innermost} WHERE c.t = a.t)"),
        format!("e.n IN (SELECT c.n FROM {innermost} WHERE c.t = a.t)"),
        format!("e.n > (SELECT min(c.n) FROM {innermost} WHERE c.t = a.t)"),
    ] {
        let text = within(&condition);
        let refused = wrong(&person, &text).await;
        assert!(refused.contains("a subquery names a.t"), "{text}: {refused}");
    }
    let near = within(&format!(
        "EXISTS (SELECT 1 FROM {innermost} WHERE c.t = e.t AND c.n = e.n)"
    ));
    assert_eq!(rows(&person, &near).await, [json!({"kept": 2})], "{near}");
}

#[tokio::test]
async fn what_cannot_be_joined_with_the_row_around_it_is_refused_with_another_way_to_ask() {
    let person = person();
    for text in [
        format!("SELECT a.n, (SELECT count(*) FROM {INNER} WHERE e.n < a.n) AS c FROM {OUTER}"),
        format!("SELECT a.n FROM {OUTER} WHERE (SELECT count(*) FROM {INNER} WHERE e.t >= a.n) > 1"),
        format!("SELECT avg((SELECT max(e.n) FROM {INNER} WHERE e.t < a.n)) AS m FROM {OUTER}"),
    ] {
        let refused = wrong(&person, &text).await;
        assert!(refused.contains("a subquery names a.n"), "{text}: {refused}");
        assert!(refused.contains("LEFT JOIN"), "{text}: {refused}");
    }
    for lateral in [
        "SELECT a.n + 1 AS m".to_owned(),
        format!("SELECT e.n AS m FROM {INNER} WHERE e.t = a.t ORDER BY e.n LIMIT 1"),
        format!("SELECT e.n AS m FROM {INNER} WHERE e.t = a.t AND 1 = 0"),
    ] {
        let text = format!("SELECT a.n, x.m FROM {OUTER}, LATERAL ({lateral}) AS x");
        let refused = wrong(&person, &text).await;
        assert!(refused.contains("this LATERAL subquery"), "{text}: {refused}");
    }
    // What the refusal says.
    let text = format!(
        "SELECT a.n, count(e.n) AS c FROM {OUTER} LEFT JOIN {INNER} ON e.n < a.n GROUP BY a.n ORDER BY a.n"
    );
    let expected = [
        json!({"n": 1, "c": 0}),
        json!({"n": 2, "c": 1}),
        json!({"n": 3, "c": 2}),
    ];
    assert_eq!(rows(&person, &text).await, expected, "{text}");
}
