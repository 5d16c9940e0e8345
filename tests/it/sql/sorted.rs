//! What rows are sorted by.

use serde_json::json;

use super::rows;
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
