//! Window functions, and the rows that their frames reach.

use serde_json::json;

use super::rows;
use crate::harness::person;

#[tokio::test]
async fn a_frame_ends_where_it_says_at_the_ends_of_whole_numbers_too() {
    let person = person();
    let large = "(VALUES (9223372036854775806), (9223372036854775807), (NULL)) AS t(i)";
    let small = "(VALUES (-9223372036854775807 - 1), (-9223372036854775807), (NULL)) AS t(i)";
    for (numbers, order, frame, expected) in [
        (large, "i", "CURRENT ROW AND 1 FOLLOWING", [2, 1, 1]),
        (large, "i", "1 FOLLOWING AND 5 FOLLOWING", [1, 0, 1]),
        (large, "i", "1 PRECEDING AND CURRENT ROW", [1, 2, 1]),
        (
            large,
            "i",
            "9223372036854775807 PRECEDING AND 9223372036854775807 FOLLOWING",
            [2, 2, 1],
        ),
        (small, "i DESC", "CURRENT ROW AND 1 FOLLOWING", [1, 2, 1]),
        (small, "i NULLS FIRST", "1 PRECEDING AND CURRENT ROW", [1, 2, 1]),
        (small, "i NULLS FIRST", "5 PRECEDING AND 1 PRECEDING", [0, 1, 1]),
    ] {
        let text = format!(
            "SELECT rank() OVER (ORDER BY {order}) AS place, \
             count(*) OVER (ORDER BY {order} RANGE BETWEEN {frame}) AS c FROM {numbers} ORDER BY t.i NULLS LAST"
        );
        let found = rows(&person, &text).await;
        let found: Vec<_> = found.iter().map(|row| row["c"].clone()).collect();
        assert_eq!(found, expected.map(|c| json!(c)), "{text}");
    }
}
