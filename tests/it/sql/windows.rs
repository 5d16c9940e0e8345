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
             count(*) OVER (ORDER BY {order} RANGE BETWEEN {frame}) AS c FROM {numbers} \
             ORDER BY t.i NULLS LAST"
        );
        let found = rows(&person, &text).await;
        let found: Vec<_> = found.iter().map(|row| row["c"].clone()).collect();
        assert_eq!(found, expected.map(|c| json!(c)), "{text}");
    }
}

#[tokio::test]
async fn a_frame_reaches_as_many_rows_as_it_says_however_many() {
    let person = person();
    for far in [
        "9223372036854775808",
        "18446744073709551614",
        "18446744073709551615",
    ] {
        for (frame, of_rows, of_groups) in [
            ("1 PRECEDING AND {} FOLLOWING", [4, 4, 3, 2], [4, 4, 4, 3]),
            ("UNBOUNDED PRECEDING AND {} FOLLOWING", [4, 4, 4, 4], [4, 4, 4, 4]),
            ("{} PRECEDING AND CURRENT ROW", [1, 2, 3, 4], [1, 3, 3, 4]),
            ("{} PRECEDING AND {} FOLLOWING", [4, 4, 4, 4], [4, 4, 4, 4]),
            ("{} PRECEDING AND {} PRECEDING", [0, 0, 0, 0], [0, 0, 0, 0]),
            ("UNBOUNDED PRECEDING AND {} PRECEDING", [0, 0, 0, 0], [0, 0, 0, 0]),
            ("{} FOLLOWING AND UNBOUNDED FOLLOWING", [0, 0, 0, 0], [0, 0, 0, 0]),
            ("{} FOLLOWING AND {} FOLLOWING", [0, 0, 0, 0], [0, 0, 0, 0]),
        ] {
            let frame = frame.replace("{}", far);
            for (units, expected) in [("ROWS", of_rows), ("GROUPS", of_groups)] {
                let text = format!(
                    "SELECT count(*) OVER (ORDER BY i {units} BETWEEN {frame}) AS c \
                     FROM (VALUES (1), (2), (2), (4)) AS t(i) ORDER BY i"
                );
                let found = rows(&person, &text).await;
                let found: Vec<_> = found.iter().map(|row| row["c"].clone()).collect();
                assert_eq!(found, expected.map(|c| json!(c)), "{text}");
            }
        }
    }
}

#[tokio::test]
async fn a_moving_frame_of_equal_values_has_no_deviation() {
    let person = person();
    let numbers = "(VALUES (1, 1000000000.5::double), (2, 0.1::double), (3, 7.3::double), (4, 7.3::double), \
                   (5, 7.3::double), (6, NULL)) AS t(n, v)";
    for call in [
        "stddev(v)",
        "stddev_pop(v)",
        "stddev_samp(v)",
        "var(v)",
        "var_pop(v)",
        "var_samp(v)",
    ] {
        let text = format!(
            "SELECT n, {call} OVER (ORDER BY n ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS d FROM {numbers} \
             ORDER BY n"
        );
        let found = rows(&person, &text).await;
        assert!(found[3]["d"].as_f64().unwrap() > 1.0, "{text}: {found:?}");
        assert_eq!(found[4]["d"].as_f64(), Some(0.0), "{text}");
        assert_eq!(found[5]["d"].as_f64(), Some(0.0), "{text}");
    }
}

#[tokio::test]
async fn a_moving_sum_forgets_what_has_left_its_frame() {
    let person = person();
    let before = "1 PRECEDING AND CURRENT ROW";
    let after = "CURRENT ROW AND UNBOUNDED FOLLOWING";
    for (values, call, frame, expected) in [
        (
            "(1, 1e17), (2, 1.0), (3, 1.0), (4, 1.0)",
            "sum",
            before,
            [Some(2.0), Some(2.0)],
        ),
        (
            "(1, 1e17), (2, 1.0), (3, 1.0), (4, 3.0)",
            "avg",
            before,
            [Some(1.0), Some(2.0)],
        ),
        (
            "(1, 9007199254740993), (2, 1), (3, 2), (4, 3)",
            "avg",
            before,
            [Some(1.5), Some(2.5)],
        ),
        (
            "(1, 1e308), (2, 1e308), (3, 1.0), (4, 2.0), (5, 3.0)",
            "sum",
            before,
            [Some(3.0), Some(5.0)],
        ),
        (
            "(1, 'NaN'::double), (2, 1.0), (3, 2.0), (4, NULL)",
            "sum",
            before,
            [Some(3.0), Some(2.0)],
        ),
        (
            "(1, 'inf'::double), (2, NULL), (3, NULL), (4, 1.0)",
            "mean",
            before,
            [None, Some(1.0)],
        ),
        (
            "(1, 1e17), (2, 1e17), (3, 1.0), (4, 1.0), (5, 2.0)",
            "sum",
            after,
            [Some(3.0), Some(2.0)],
        ),
        (
            "(1, 1e17), (2, 1e17), (3, 1.0), (4, 1.0), (5, 2.0)",
            "avg",
            after,
            [Some(1.5), Some(2.0)],
        ),
    ] {
        let text = format!(
            "SELECT i, {call}(v) OVER (ORDER BY i ROWS BETWEEN {frame}) AS s \
             FROM (VALUES {values}) AS t(i, v) ORDER BY i"
        );
        let found = rows(&person, &text).await;
        let last: Vec<_> = found.iter().map(|row| row["s"].as_f64()).collect();
        assert_eq!(last[last.len() - 2..], expected, "{text}");
    }
}
