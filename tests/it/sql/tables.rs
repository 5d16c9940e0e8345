//! Tables: the person's types by readable names, with the columns of the raw answers.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{SQL, query, rows, wrong};
use crate::harness::{METHODS, Setup, Table, at, heart_rate, id, instant, number, person, steps, texts};

#[tokio::test]
async fn a_table_has_the_rows_and_columns_of_the_raw_answer() {
    let person = person();
    let beats: Vec<Value> = (0..500)
        .map(|n| heart_rate(id(n), &instant(n * 977 % 40_000), f64::from(n % 90) + 0.5))
        .collect();
    person.records("HeartRate", &beats).await;
    person
        .record(
            "CalendarEvent",
            &json!({"calendar_event_id": id(9000), "calendar_id": id(9001), "title": "tea",
            "start_date": at("10:00"), "end_date": at("11:00")}),
        )
        .await
        .upload();
    for (table, class, data_type) in [
        ("heart_rate", "metric", "HeartRate"),
        ("\"HeartRate\"", "metric", "HeartRate"),
        ("own.calendar_event", "event", "CalendarEvent"),
        ("step_count", "metric", "StepCount"),
    ] {
        let raw = person.rows(class, data_type).await;
        assert_eq!(
            rows(&person, &format!("SELECT * FROM {table}")).await,
            raw,
            "{table}"
        );
    }
}

#[tokio::test]
async fn conditions_on_times_select_what_they_say() {
    let person = person();
    person
        .records(
            "StepCount",
            &[
                steps(id(1), &at("09:00"), &at("10:00"), 1.0),
                steps(id(2), &at("10:00"), &at("10:00"), 2.0),
                steps(id(3), &at("10:00"), &at("11:00"), 4.0),
                steps(id(4), &at("12:00"), &at("13:00"), 8.0),
            ],
        )
        .await;
    for (condition, sum) in [
        ("start_date >= '2024-05-01T10:00:00Z'", 14.0),
        ("start_date > TIMESTAMP '2024-05-01 10:00:00'", 8.0),
        ("end_date <= '2024-05-01T10:00:00Z'", 3.0),
        ("end_date < '2024-05-01T10:00:00Z'", 0.0),
        ("end_date = '2024-05-01T10:00:00Z'", 3.0),
        ("end_date >= '2024-05-01T10:00:00Z'", 15.0),
        (
            "start_date BETWEEN '2024-05-01T10:00:00Z' AND '2024-05-01T11:00:00Z'",
            6.0,
        ),
        (
            "start_date < '2024-05-01T10:00:00Z' OR start_date > '2024-05-01T11:00:00Z'",
            9.0,
        ),
        ("'2024-05-01T12:00:00Z' <= start_date AND value > 1", 8.0),
        ("start_date > '2025-01-01' AND start_date < '2024-01-01'", 0.0),
    ] {
        let found = rows(
            &person,
            &format!("SELECT coalesce(sum(value), 0) AS sum FROM step_count WHERE {condition}"),
        )
        .await;
        assert_eq!(number(&found[0], "sum"), sum, "{condition}");
    }
    let counted = rows(&person, "SELECT count(*) AS n FROM step_count").await;
    assert_eq!(counted, [json!({"n": 4})]);
}

#[tokio::test]
async fn functions_of_time_reach_the_open_ends_of_visits() {
    let person = person();
    let visit = json!({
        "uuid": id(1), "arrival_date": "0001-01-01T00:00:00Z", "departure_date": "4001-01-01T00:00:00Z",
        "latitude_degrees": 47.0, "longitude_degrees": 8.0, "horizontal_accuracy_meters": 10.0,
    });
    person.records("PlatformLocationVisit", &[visit]).await;
    for (expression, expected) in [
        ("date_trunc('day', departure_date)", json!("4001-01-01T00:00:00Z")),
        ("date_trunc('year', arrival_date)", json!("0001-01-01T00:00:00Z")),
        (
            "date_trunc('second', arrival_date)",
            json!("0001-01-01T00:00:00Z"),
        ),
        (
            "departure_date AT TIME ZONE 'Europe/Berlin'",
            json!("4001-01-01T01:00:00+01:00"),
        ),
        (
            "date_trunc('month', departure_date AT TIME ZONE 'Asia/Tokyo') AT TIME ZONE 'UTC'",
            json!("4000-12-31T15:00:00Z"),
        ),
        ("to_char(departure_date, '%Y-%m')", json!("4001-01")),
        ("to_char(arrival_date, '%Y')", json!("0001")),
        ("coalesce(arrival_date, now()) < now()", json!(true)),
        ("departure_date > current_timestamp", json!(true)),
        ("nullif(departure_date, now()) = departure_date", json!(true)),
        (
            "date_trunc('day', '9999-12-31T10:00:00') = '9999-12-31'",
            json!(true),
        ),
        (
            "date_trunc('quarter', TIMESTAMP '4001-05-06 10:00:00') = '4001-04-01'",
            json!(true),
        ),
        (
            "date_trunc('week', DATE '4001-01-03') = '4001-01-01'",
            json!(true),
        ),
    ] {
        let found = rows(
            &person,
            &format!("SELECT {expression} AS x FROM platform_location_visit"),
        )
        .await;
        assert_eq!(found, [json!({"x": expected})], "{expression}");
    }
    for expression in [
        "date_bin(INTERVAL '1 day', departure_date)",
        "to_timestamp(departure_date)",
    ] {
        let refused = wrong(
            &person,
            &format!("SELECT {expression} AS x FROM platform_location_visit"),
        )
        .await;
        assert!(refused.contains("1677 to 2262"), "{expression}: {refused}");
    }
    let zone = "SELECT departure_date AT TIME ZONE 'Mars' FROM platform_location_visit";
    let refused = wrong(&person, zone).await;
    assert!(refused.contains("'Mars' is not a time zone"), "{refused}");
}

#[tokio::test]
async fn the_last_moment_there_is_is_a_moment_like_others() {
    let person = person();
    let last = "9999-12-31T23:59:59.999999Z";
    let tea = person.define("Event", &json!({"name": "Tea"})).await;
    let cup = |number: u32, start: &str| json!({"id": id(number), "start_time": start});
    person.records(&tea, &[cup(1, last), cup(2, &at("10:00"))]).await;
    let counted = rows(&person, "SELECT count(*) AS n FROM tea").await;
    assert_eq!(counted, [json!({"n": 2})]);
    let found = rows(&person, "SELECT start_time FROM tea ORDER BY start_time").await;
    assert_eq!((found.len(), &found[1]["start_time"]), (2, &json!(last)));
    let found = rows(
        &person,
        "SELECT start_time FROM tea WHERE start_time > '2200-01-01'",
    )
    .await;
    assert_eq!(found, [json!({"start_time": last})]);
    for (condition, expected) in [
        ("start_time >= '0001-01-01' AND start_time < '9999-12-31'", 1),
        (
            "start_time BETWEEN '0001-01-01' AND '9999-12-31T23:59:59.999999Z'",
            2,
        ),
        ("start_time > TIMESTAMP '9999-12-31 00:00:00'", 1),
        ("start_time > TIMESTAMPTZ '9999-12-31T01:00:00+01:00'", 1),
        ("start_time >= DATE '9999-12-31'", 1),
        ("CAST('9999-12-31' AS TIMESTAMP) <= start_time", 1),
        (
            "start_time IN ('2024-05-01T10:00:00Z', '9999-12-31T23:59:59.999999Z')",
            2,
        ),
        ("start_time IS DISTINCT FROM '9999-12-31T23:59:59.999999Z'", 1),
        ("start_time > now()", 1),
        (
            "EXISTS (SELECT 1 FROM tea AS other WHERE other.start_time > tea.start_time \
             AND other.start_time > '9999-01-01')",
            1,
        ),
    ] {
        let counted = rows(
            &person,
            &format!("SELECT count(*) AS n FROM tea WHERE {condition}"),
        )
        .await;
        assert_eq!(counted, [json!({"n": expected})], "{condition}");
    }
    let refused = wrong(&person, "SELECT count(*) FROM tea WHERE start_time < 'tomorrow'").await;
    assert!(refused.contains("tomorrow"), "{refused}");
}

#[tokio::test]
async fn parameters_are_values_of_their_types() {
    let person = person();
    person
        .records(
            "HeartRate",
            &(0..10)
                .map(|n| heart_rate(id(n), &instant(n), n))
                .collect::<Vec<_>>(),
        )
        .await;
    let ask =
        |text: &str, parameters: Value| person.post(SQL, &json!({"query": text, "parameters": parameters}));
    let list = ask(
        "SELECT value FROM heart_rate WHERE start_date >= $1 AND value <> $2 ORDER BY value DESC LIMIT $3",
        json!(["2024-05-01T00:00:05Z", 7.0, 3]),
    );
    assert_eq!(
        list.await.must_be(200).rows(),
        [
            json!({"value": 9.0}),
            json!({"value": 8.0}),
            json!({"value": 6.0})
        ]
    );
    let named = ask(
        "SELECT $word AS word, $none AS nothing, 1 + $whole AS whole, value FROM heart_rate WHERE value IN \
         ($a, $b)",
        json!({"word": "it's; DROP TABLE x --", "none": null, "whole": 1, "a": 3, "b": -1}),
    );
    assert_eq!(
        named.await.must_be(200).rows(),
        [json!({"word": "it's; DROP TABLE x --", "nothing": null, "whole": 2, "value": 3.0})]
    );
    let listed = ask(
        "SELECT count(*) AS n FROM heart_rate WHERE array_has($1, value)",
        json!([[1.0, 2.0, 30.0]]),
    );
    assert_eq!(listed.await.must_be(200).rows(), [json!({"n": 2})]);
    for (text, parameters) in [
        ("SELECT $1", json!([])),
        ("SELECT $2", json!(["one"])),
        ("SELECT $a", json!({"b": 1})),
        ("SELECT $0", json!([1])),
    ] {
        assert_eq!(ask(text, parameters).await.faults(), ["body.query"], "{text}");
    }
    for (text, parameters) in [
        ("SELECT 1", json!(["one too many"])),
        ("SELECT $a", json!({"a": 1, "b": 2})),
        ("SELECT $1", json!([{"a": 1}])),
        ("SELECT $1", json!([[[1]]])),
        ("SELECT $1", json!("text")),
        ("SELECT $1", json!(1)),
        ("SELECT $1", json!(["x".repeat(5_000)])),
    ] {
        assert_eq!(
            ask(text, parameters).await.faults(),
            ["body.parameters"],
            "{text}"
        );
    }
}

#[tokio::test]
async fn every_output_method_holds_the_same_rows() {
    let person = person();
    person
        .records(
            "HeartRate",
            &(0..50)
                .map(|n| heart_rate(id(n), &instant(n), n))
                .collect::<Vec<_>>(),
        )
        .await;
    let text = "SELECT value, start_date, id FROM (SELECT value, start_date, uuid AS id FROM heart_rate) \
                ORDER BY value";
    let expected = rows(&person, text).await;
    assert_eq!(expected.len(), 50);
    for method in METHODS {
        let reply = person
            .post(SQL, &json!({"query": text, "output": method}))
            .await
            .must_be(200);
        let table = Table::read(method, &reply.body);
        assert_eq!(table.rows.len(), 50, "{method}");
    }
    let unknown = person
        .post(SQL, &json!({"query": "SELECT 1", "output": "xml"}))
        .await;
    assert_eq!(unknown.faults(), ["body.output"]);
}

#[tokio::test]
async fn text_that_looks_like_a_formula_is_defused_in_csv_where_that_is_asked_for() {
    let person = person();
    let asked = |output: &str, defuse: Value| {
        let query = "SELECT '=1+1' AS formula, -2 AS number";
        json!({"query": query, "output": output, "defuse_formulas": defuse})
    };
    for (output, defuse, expected) in [
        ("csv", json!(true), "'=1+1,-2"),
        ("quotecsv", json!(true), "\"'=1+1\",\"-2\""),
        ("csv", json!(false), "\n=1+1,-2"),
        ("csv", Value::Null, "\n=1+1,-2"),
        ("jstable", json!(true), "\"=1+1\""),
    ] {
        let reply = person.post(SQL, &asked(output, defuse)).await.must_be(200);
        assert!(reply.text().contains(expected), "{reply}");
    }
    let wrong = person.post(SQL, &asked("csv", json!("yes"))).await;
    assert_eq!(wrong.faults(), ["body.defuse_formulas"]);
}

#[tokio::test]
async fn columns_with_one_name_are_told_apart() {
    let person = person();
    person
        .record("HeartRate", &heart_rate(id(1), &at("10:00"), 60.0))
        .await
        .upload();
    let found = rows(
        &person,
        "SELECT l.value, r.value, r.value AS value_2 FROM heart_rate AS l JOIN heart_rate AS r USING (uuid)",
    )
    .await;
    assert_eq!(found, [json!({"value": 60.0, "value_3": 60.0, "value_2": 60.0})]);
    let found = rows(
        &person,
        "SELECT value, value, 1, 1, value AS value_2, value FROM heart_rate",
    )
    .await;
    assert_eq!(
        found,
        [
            json!({"value": 60.0, "value_3": 60.0, "Int64(1)": 1, "Int64(1)_2": 1, "value_2": 60.0,
            "value_4": 60.0})
        ]
    );
    for (text, expected) in [
        (
            "SELECT 1 AS a, 2 AS a, 3 AS a",
            json!({"a": 1, "a_2": 2, "a_3": 3}),
        ),
        (
            "SELECT 1 AS \"A\", 2 AS A, 3 AS a",
            json!({"A": 1, "a": 2, "a_2": 3}),
        ),
        (
            "SELECT 1, 1, 2 AS \"Int64(1)\"",
            json!({"Int64(1)": 1, "Int64(1)_2": 1, "Int64(1)_3": 2}),
        ),
        (
            "SELECT value AS a, lower('BPM') AS a FROM heart_rate LIMIT 1",
            json!({"a": 60.0, "a_2": "bpm"}),
        ),
        (
            "SELECT value, value + 0 AS value FROM heart_rate",
            json!({"value": 60.0, "value_2": 60.0}),
        ),
        (
            "SELECT value + 1 AS value, value FROM heart_rate",
            json!({"value": 61.0, "value_2": 60.0}),
        ),
        (
            "SELECT count(*), COUNT(*), sum(value) AS n, max(value) AS n FROM heart_rate",
            json!({"count(*)": 1, "count(*)_2": 1, "n": 60.0, "n_2": 60.0}),
        ),
        (
            "SELECT value AS u, count(*) AS u FROM heart_rate GROUP BY u ORDER BY u_2 DESC, u",
            json!({"u": 60.0, "u_2": 1}),
        ),
        (
            "WITH t AS (SELECT value AS a FROM heart_rate) SELECT a, a + 1 AS a FROM t",
            json!({"a": 60.0, "a_2": 61.0}),
        ),
        (
            "SELECT a.*, * FROM (VALUES (1, 2)) a(x, y)",
            json!({"x": 1, "y": 2, "x_2": 1, "y_2": 2}),
        ),
        (
            "SELECT y, *, x + 5 AS x FROM (VALUES (1, 2)) a(x, y)",
            json!({"y": 2, "x": 1, "y_2": 2, "x_2": 6}),
        ),
    ] {
        assert_eq!(rows(&person, text).await, [expected], "{text}");
    }
    for order in ["a", "a DESC", "a_2 DESC"] {
        let numbers = "(VALUES (1, 6), (2, 5)) t(x, y)";
        let text = format!("SELECT x AS a, y AS a FROM {numbers} ORDER BY {order}");
        let (first, last) = (json!({"a": 1, "a_2": 6}), json!({"a": 2, "a_2": 5}));
        let expected = if order == "a DESC" {
            [last, first]
        } else {
            [first, last]
        };
        assert_eq!(rows(&person, &text).await, expected, "{order}");
    }
    let united = "SELECT 1 AS a, 2 AS a UNION ALL SELECT 3, 3 ORDER BY a_2";
    let expected = [json!({"a": 1, "a_2": 2}), json!({"a": 3, "a_2": 3})];
    assert_eq!(rows(&person, united).await, expected);
    // Inside of a query a name that means two columns stays an error.
    for text in [
        "SELECT a FROM (SELECT 1 AS a, 2 AS a) t",
        "WITH t AS (SELECT 1 AS a, 2 AS a) SELECT a AS b FROM t",
        "SELECT value FROM heart_rate l JOIN heart_rate r ON l.uuid = r.uuid",
    ] {
        let message = wrong(&person, text).await;
        assert!(!message.contains("__column"), "{text}: {message}");
    }
    let joined = "SELECT * FROM heart_rate AS l JOIN heart_rate AS r ON l.uuid = r.uuid";
    for method in METHODS {
        let reply = person
            .post(SQL, &json!({"query": joined, "output": method}))
            .await
            .must_be(200);
        assert_eq!(Table::read(method, &reply.body).rows.len(), 1, "{method}");
    }
}

#[tokio::test]
async fn own_types_are_tables_by_id_and_by_name_where_it_is_free() {
    let person = person();
    let tea = person
        .define(
            "Event",
            &json!({"name": "Cups of tea", "description": "How many cups",
            "record_spec": {"schema": {
                "properties": {"cups": {"type": "integer", "description": "so many"}}}}}),
        )
        .await;
    person
        .record(
            &tea,
            &json!({"start_time": at("10:00"), "end_time": at("10:00"), "cups": 3, "note": "late"}),
        )
        .await
        .upload();
    for table in [
        format!("\"{tea}\""),
        "cups_of_tea".to_owned(),
        "\"Cups of tea\"".to_owned(),
    ] {
        let found = rows(&person, &format!("SELECT cups, extras FROM {table}")).await;
        assert_eq!(found, [json!({"cups": 3, "extras": {"note": "late"}})], "{table}");
    }
    // A name that is no longer free stands for neither.
    person
        .define("Event", &json!({"name": "cups of TEA", "record_spec": {}}))
        .await;
    query(&person, "SELECT * FROM cups_of_tea").await.must_be(422);
    let all = rows(&person, "SELECT count(*) AS n FROM event").await;
    assert_eq!(all, [json!({"n": 1})]);
}

#[tokio::test]
async fn the_information_schema_tells_of_tables_columns_and_what_they_mean() {
    let person = person();
    let tea = person
        .define(
            "Event",
            &json!({"name": "Tea", "description": "How much tea",
            "record_spec": {"schema": {
                "properties": {"cups": {"type": "integer", "description": "so many"}}}}}),
        )
        .await;
    let found = rows(
        &person,
        "SELECT table_name, unit, comment FROM information_schema.tables WHERE data_type IN ('HeartRate', \
         'StepCount') ORDER BY 1",
    )
    .await;
    assert_eq!(texts(&found, "table_name"), ["heart_rate", "step_count"]);
    assert!(
        found
            .iter()
            .all(|row| row["comment"].as_str().is_some_and(|comment| comment.len() > 5)),
        "{found:?}"
    );
    let found = person.post(
        SQL,
        &json!({"query": "SELECT column_name, data_type, comment FROM information_schema.columns \
        WHERE table_name = $1 AND column_name = 'cups'", "parameters": [tea]}),
    );
    assert_eq!(
        found.await.must_be(200).rows(),
        [json!({"column_name": "cups", "data_type": "Int64", "comment": "so many"})]
    );
    let schemas = rows(
        &person,
        "SELECT schema_name FROM information_schema.schemata ORDER BY 1",
    )
    .await;
    assert_eq!(texts(&schemas, "schema_name"), ["information_schema", "own"]);
}

#[tokio::test]
async fn every_listed_column_of_every_table_can_be_asked_for() {
    let person = person();
    let tables = rows(&person, "SELECT table_name FROM information_schema.tables").await;
    assert!(tables.len() > 200, "{}", tables.len());
    // All of them have one of a few layouts; the rest of the time is better spent.
    for table in texts(&tables, "table_name").iter().step_by(17) {
        let columns = format!(
            "SELECT column_name FROM information_schema.columns WHERE table_name = '{table}' ORDER BY 1"
        );
        let listed = rows(&person, &columns);
        let names: Vec<String> = texts(&listed.await, "column_name")
            .iter()
            .map(|name| format!("\"{name}\""))
            .collect();
        let text = format!("SELECT {} FROM \"{table}\"", names.join(", "));
        assert!(rows(&person, &text).await.is_empty(), "{text}");
    }
}

#[tokio::test]
async fn what_needs_more_memory_or_time_than_there_is_is_told_so_and_nobody_else_waits() {
    let server = Setup::default()
        .with("ALMANAC_MEMORY_LIMIT", "16MiB")
        .with("ALMANAC_QUERY_DEADLINE", "10s")
        .with("ALMANAC_QUERY_THREADS", "2")
        .start();
    let (person, other) = (server.person(), server.person());
    let beats: Vec<Value> = (0..20_000).map(|n| heart_rate(id(n), &instant(n), n)).collect();
    person.records("HeartRate", &beats).await;
    for (text, statuses) in [
        (
            "WITH half AS (SELECT value FROM heart_rate UNION ALL SELECT value FROM heart_rate),
                  beats AS (SELECT * FROM half UNION ALL SELECT * FROM half)
             SELECT count(*) FROM beats a JOIN beats b ON a.value + b.value < 0",
            &[504][..],
        ),
        (
            "SELECT count(*) FROM (SELECT DISTINCT a.uuid || b.uuid FROM heart_rate a, heart_rate b)",
            &[422, 504],
        ),
        (
            "SELECT array_agg(a.uuid) FROM heart_rate a, heart_rate b",
            &[422, 504],
        ),
        (
            "SELECT max(s) FROM (SELECT sum(a.value) OVER () AS s FROM heart_rate a, heart_rate b)",
            &[422],
        ),
    ] {
        let begun = Instant::now();
        let (asked, besides) = tokio::join!(async { query(&person, text).await }, async {
            rows(&other, "SELECT count(*) AS n FROM heart_rate").await
        });
        assert!(statuses.contains(&asked.status), "{text}: {asked}");
        assert!(
            begun.elapsed() < Duration::from_mins(1),
            "{text}: {:?}",
            begun.elapsed()
        );
        assert_eq!(besides, [json!({"n": 0})]);
    }
    let late = server
        .metrics()
        .await
        .sum(&["almanac_query_deadlines_passed_total"]);
    assert!(late >= 1.0, "{late}");
    assert_eq!(
        rows(&person, "SELECT count(*) AS n FROM heart_rate").await,
        [json!({"n": 20_000})]
    );
}

#[tokio::test]
async fn rows_in_order_go_to_disk_with_a_large_limit_too() {
    const ROWS: u32 = 60_000;
    const LIMIT: u32 = 50_000;
    let server = Setup::default().with("ALMANAC_MEMORY_LIMIT", "16MiB").start();
    let person = server.person();
    let beats: Vec<Value> = (0..ROWS).map(|n| heart_rate(id(n), &instant(n), n)).collect();
    person.records("HeartRate", &beats).await;
    let text = format!("SELECT * FROM heart_rate ORDER BY value DESC LIMIT {LIMIT}");
    let found = rows(&person, &text).await;
    let values: Vec<f64> = found.iter().map(|row| number(row, "value")).collect();
    let expected: Vec<f64> = (ROWS - LIMIT..ROWS).rev().map(f64::from).collect();
    assert!(values == expected, "{} rows", values.len());
}
