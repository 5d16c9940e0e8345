//! What rows are sorted by.

use serde_json::json;

use super::{alike, rows};
use crate::harness::person;

#[tokio::test]
async fn a_key_that_is_named_again_changes_nothing() {
    let person = person();
    let numbers = "(VALUES ('a', 2), ('a', 1), ('b', 3)) AS t(s, j)";
    for (asked, expected) in [
        ("ORDER BY s, j, s", [1, 3]),
        ("ORDER BY s, j DESC, t.s, j", [2, 3]),
        ("ORDER BY s, j, j::bigint DESC", [1, 3]),
    ] {
        let found = rows(
            &person,
            &format!("SELECT DISTINCT ON (s) s, j FROM {numbers} {asked}"),
        )
        .await;
        let expected = [
            json!({"s": "a", "j": expected[0]}),
            json!({"s": "b", "j": expected[1]}),
        ];
        assert_eq!(found, expected, "{asked}");
    }
    let found = rows(
        &person,
        &format!(
            "SELECT s, first_value(j ORDER BY j, s, j) AS f, last_value(j ORDER BY j, s, j) AS l \
             FROM {numbers} GROUP BY s ORDER BY s, s"
        ),
    )
    .await;
    assert_eq!(
        found,
        [
            json!({"s": "a", "f": 1, "l": 2}),
            json!({"s": "b", "f": 3, "l": 3})
        ]
    );
}

#[tokio::test]
async fn aggregates_that_no_order_changes_take_one() {
    let person = person();
    let numbers = "(VALUES ('a', 1, NULL), ('a', 3, 2), ('a', NULL, 1), ('b', 5, NULL)) AS t(s, i, j)";
    for (call, [of_a, of_b, of_all]) in [
        ("avg(i ORDER BY j)", [json!(2.0), json!(5.0), json!(3.0)]),
        ("mean(i ORDER BY j DESC, i)", [json!(2.0), json!(5.0), json!(3.0)]),
        ("count(i ORDER BY j)", [json!(2), json!(1), json!(3)]),
        ("count(* ORDER BY j)", [json!(3), json!(1), json!(4)]),
        ("count(s, i ORDER BY j)", [json!(2), json!(1), json!(3)]),
        ("count(DISTINCT i ORDER BY i)", [json!(2), json!(1), json!(3)]),
        (
            "count(i ORDER BY j) FILTER (WHERE i > 1)",
            [json!(1), json!(1), json!(2)],
        ),
        (
            "stddev(i ORDER BY j)",
            [json!(2_f64.sqrt()), json!(null), json!(2.0)],
        ),
        (
            "stddev_pop(i ORDER BY i)",
            [json!(1.0), json!(0.0), json!((8_f64 / 3.0).sqrt())],
        ),
        ("var(i ORDER BY j)", [json!(2.0), json!(null), json!(4.0)]),
        (
            "var_pop(i ORDER BY j)",
            [json!(1.0), json!(0.0), json!(8.0 / 3.0)],
        ),
        ("median(i ORDER BY j)", [json!(2.0), json!(5.0), json!(3.0)]),
        ("bit_and(i ORDER BY j)", [json!(1), json!(5), json!(1)]),
        ("bit_or(i ORDER BY j)", [json!(3), json!(5), json!(7)]),
        ("bit_xor(i ORDER BY j)", [json!(2), json!(5), json!(7)]),
        ("sum(i ORDER BY j)", [json!(4), json!(5), json!(9)]),
        ("max(i ORDER BY j)", [json!(3), json!(5), json!(5)]),
    ] {
        let text = format!("SELECT {call} AS v FROM {numbers} GROUP BY s ORDER BY s");
        let grouped = json!([{"v": of_a}, {"v": of_b}]);
        let found = json!(rows(&person, &text).await);
        assert!(alike(&found, &grouped), "{text}: {found}");
        let text = format!("SELECT {call} AS v FROM {numbers}");
        let found = json!(rows(&person, &text).await);
        assert!(alike(&found, &json!([{"v": of_all}])), "{text}: {found}");
    }
    let text = format!(
        "SELECT avg(i ORDER BY j), avg(i), array_agg(i ORDER BY i DESC NULLS LAST) FILTER (WHERE i > 0) AS l \
         FROM {numbers} GROUP BY s ORDER BY s LIMIT 1"
    );
    assert_eq!(
        rows(&person, &text).await,
        [json!({"avg(t.i) ORDER BY [t.j ASC NULLS LAST]": 2.0, "avg(t.i)": 2.0, "l": [3, 1]})]
    );
}

#[tokio::test]
async fn fetch_says_how_many_rows_as_limit_does() {
    let person = person();
    let numbers = "(VALUES (1), (2), (3), (4), (5)) AS t(n)";
    for (asked, expected) in [
        ("ORDER BY n FETCH FIRST 2 ROWS ONLY", vec![1, 2]),
        ("ORDER BY n OFFSET 3 ROWS FETCH NEXT 5 ROWS ONLY", vec![4, 5]),
        ("ORDER BY n DESC FETCH FIRST ROW ONLY", vec![5]),
        ("ORDER BY n FETCH FIRST 0 ROWS ONLY", vec![]),
    ] {
        let found = rows(&person, &format!("SELECT n FROM {numbers} {asked}")).await;
        let expected: Vec<_> = expected.into_iter().map(|n| json!({"n": n})).collect();
        assert_eq!(found, expected, "{asked}");
    }
    let within = format!(
        "SELECT sum(n) AS n FROM (SELECT n FROM {numbers} ORDER BY n DESC FETCH FIRST 2 ROWS ONLY) AS last"
    );
    assert_eq!(rows(&person, &within).await, [json!({"n": 9})]);
}
