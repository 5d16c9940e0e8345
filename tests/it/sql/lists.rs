//! Lists of which a member is computed for each row.

use serde_json::json;

use super::rows;
use crate::harness::person;

#[tokio::test]
async fn a_member_that_a_condition_gives_is_one_only_where_the_condition_holds() {
    let person = person();
    let table = "(VALUES (1, true), (1, false), (3, false), (11, true)) AS t(j, b)";
    for (condition, count) in [
        ("1 IN (CASE WHEN b THEN 1 END, 3)", 2),
        ("2 NOT IN (CASE WHEN b THEN 1 ELSE NULL END, 3)", 2),
        ("j + 0 IN (CASE WHEN b THEN 1 END, 3)", 2),
        ("j NOT IN (11, 12, 13, 14, CASE WHEN b THEN 1 END)", 0),
        ("j NOT IN (11, 12, 13, 14, CASE WHEN b THEN 1.5e0 END)", 1),
        ("j IN (12, 13, 14, CASE WHEN b THEN 1 WHEN j = 3 THEN 3 END)", 2),
        ("j IN (12, 13, 14, CASE WHEN b THEN 11 ELSE 3 END)", 2),
        ("j = ANY(ARRAY[11, 12, 13, 14, CASE WHEN b THEN 1 END])", 2),
        ("j <> ALL(ARRAY[11, 12, 13, 14, CASE WHEN b THEN 1 END])", 0),
        (
            "array_has(make_array(11, 12, 13, 14, CASE WHEN b THEN 1 END), j)",
            2,
        ),
        ("j::text IN ('12', '13', '14', CASE WHEN b THEN '1' END)", 1),
        ("j IN (10 + 1, 12, 13, CAST('3' AS INT))", 2),
    ] {
        let text = format!("SELECT count(*) AS found FROM {table} WHERE {condition}");
        assert_eq!(
            rows(&person, &text).await,
            [json!({"found": count})],
            "{condition}"
        );
    }
}

#[tokio::test]
async fn groups_by_such_a_list_keep_its_name() {
    let person = person();
    let table = "(VALUES (1, true), (1, false), (3, true)) AS t(j, b)";
    let list = "j IN (11, 12, 13, CASE WHEN b THEN 1 END)";
    let found = rows(
        &person,
        &format!("SELECT {list} AS l, count(*) AS n FROM {table} GROUP BY {list} ORDER BY l"),
    )
    .await;
    assert_eq!(
        found,
        [
            json!({"l": false, "n": 1}),
            json!({"l": true, "n": 1}),
            json!({"l": null, "n": 1})
        ]
    );
}
