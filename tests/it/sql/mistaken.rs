//! What ordinary mistakes get: a sentence about the query, in which nothing of the engine shows.

use super::{rows, wrong};
use crate::harness::person;

#[tokio::test]
async fn a_function_that_takes_other_arguments_says_which() {
    let person = person();
    for (call, expected) in [
        (
            "sum(uuid)",
            "line 1, column 8: an argument of sum is String, where it takes Decimal, UInt64, ",
        ),
        (
            "sum(unit)",
            "line 1, column 8: an argument of sum is String, where it takes Decimal, UInt64, ",
        ),
        (
            "avg(start_date)",
            "line 1, column 8: an argument of avg is Timestamp(µs, \"UTC\"), where it takes Decimal, \
             Duration or Float64",
        ),
        (
            "mean(unit)",
            "line 1, column 8: an argument of avg is String, where",
        ),
        (
            "round('x')",
            "line 1, column 8: an argument of round is String, where it takes Decimal, Integer, Float32 or \
             Float64",
        ),
        ("sum(value, 1)", "line 1, column 8: sum takes 1 argument, not 2"),
        (
            "round(value, 1, 2)",
            "line 1, column 8: round takes 1 or 2 arguments, not 3",
        ),
        (
            "extract(year FROM 5)",
            "line 1, column 8: an argument of date_part is Int64, where it takes Timestamp, Date, Time, \
             Interval or Duration",
        ),
        (
            "substr('abc')",
            "line 1, column 8: substr takes 2 or 3 arguments, not 1",
        ),
        (
            "substring('abc')",
            "line 1, column 8: substr takes 2 or 3 arguments, not 1",
        ),
        (
            "substr(unit, 1, 2, 3)",
            "line 1, column 8: substr takes 2 or 3 arguments, not 4",
        ),
        (
            "left('1', unit)",
            "line 1, column 8: left does not take arguments of the types Utf8, Utf8",
        ),
        (
            "coalesce(named_struct('a', 1), named_struct('b', 2))",
            "line 1, column 8: structures have a type in common only if their members have the same names",
        ),
        (
            "grouping(1)",
            "line 1, column 8: an argument of grouping is not in GROUP BY",
        ),
        (
            "value, count(*)",
            "line 1, column 8: SELECT has heart_rate.value, which is neither in GROUP BY nor in an aggregate",
        ),
    ] {
        let message = wrong(&person, &format!("SELECT {call} FROM heart_rate")).await;
        assert!(message.starts_with(expected), "{call}: {message}");
    }
}

#[tokio::test]
async fn values_that_cannot_be_compared_are_named() {
    let person = person();
    for (text, expected) in [
        (
            "SELECT value FROM heart_rate WHERE value BETWEEN start_date AND end_date",
            "line 1, column 42: BETWEEN finds no type in which to compare Float64 with Timestamp(µs",
        ),
        (
            "SELECT 1 BETWEEN 'x' AND [1]",
            "line 1, column 10: BETWEEN finds no type in which to compare Int64 with List(Int64)",
        ),
        (
            "SELECT sum(value) OVER (ORDER BY end_date - start_date RANGE BETWEEN 1 PRECEDING AND CURRENT \
             ROW) FROM heart_rate",
            "line 1, column 19: a window that is ordered by Duration(µs) needs a frame of ROWS or GROUPS;",
        ),
        (
            "SELECT rank() OVER (ORDER BY INTERVAL '1 day') FROM heart_rate",
            "line 1, column 15: a window that is ordered by Interval(",
        ),
        (
            "SELECT [1].x",
            "line 1, column 12: a dot reads members of columns only; write ['x'] instead of .x",
        ),
    ] {
        let message = wrong(&person, text).await;
        assert!(message.starts_with(expected), "{text}: {message}");
    }
    // What the messages say to write instead.
    rows(
        &person,
        "SELECT rank() OVER (ORDER BY end_date - start_date ROWS UNBOUNDED PRECEDING) AS place \
         FROM heart_rate",
    )
    .await;
    rows(&person, "SELECT (struct(1))['c0'] AS one").await;
}

#[tokio::test]
async fn what_is_read_from_says_how_it_is_written() {
    let person = person();
    let half = "(SELECT uuid, value FROM heart_rate)";
    for (text, expected) in [
        (
            format!("SELECT * FROM {half} NATURAL JOIN {half}"),
            "; give each table and subquery there an alias of its own",
        ),
        (
            "SELECT u.l FROM (SELECT [1, 2] AS l) AS t CROSS JOIN LATERAL unnest(t.l) AS u(l)".to_owned(),
            "unnest does not stand behind LATERAL; write it in SELECT, beside the other columns",
        ),
        ("SELECT mod(7, 2)".to_owned(), "Invalid function 'mod'"),
    ] {
        let message = wrong(&person, &text).await;
        assert!(message.ends_with(expected), "{text}: {message}");
    }
    // What the messages say to write instead.
    rows(
        &person,
        &format!("SELECT * FROM {half} AS a NATURAL JOIN {half} AS b"),
    )
    .await;
    let found = rows(
        &person,
        "SELECT t.n, unnest(t.l) AS l FROM (SELECT 1 AS n, [1, 2] AS l) AS t",
    )
    .await;
    assert_eq!(found.len(), 2);
}
