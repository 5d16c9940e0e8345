//! Names that several things have: keys of groups, queries from WITH, members of structures.

use serde_json::{Value, json};

use super::{query, rows, wrong};
use crate::harness::{Person, at, heart_rate, id, person};

/// Three moments on two days.
async fn beating(person: &Person) {
    let beat = |n: u32, day: u32, value: f64| heart_rate(id(n), &format!("2024-05-0{day}T10:00:00Z"), value);
    let beats = [beat(1, 1, 60.5), beat(2, 1, 60.5), beat(3, 2, 70.25)];
    person.records("HeartRate", &beats).await;
}

fn days(of: [(&str, u32); 2]) -> Vec<Value> {
    let row = |(day, n)| json!({"day": day, "start_date": format!("{day}T10:00:00Z"), "n": n});
    of.map(row).to_vec()
}

#[tokio::test]
async fn keys_of_groups_may_be_converted_from_one_column() {
    let person = person();
    beating(&person).await;
    let expected = days([("2024-05-01", 2), ("2024-05-02", 1)]);
    for text in [
        "SELECT CAST(start_date AS DATE) AS day, start_date, count(*) AS n FROM heart_rate GROUP BY 1, 2 \
         ORDER BY 1",
        "SELECT CAST(start_date AS DATE) AS day, start_date, count(*) AS n FROM heart_rate \
         GROUP BY day, start_date ORDER BY day",
        "SELECT start_date::date AS day, start_date, count(*) AS n FROM heart_rate \
         GROUP BY start_date::date, start_date ORDER BY start_date::date",
        "SELECT (start_date::date) AS day, start_date, count(*) AS n FROM heart_rate \
         GROUP BY ALL ORDER BY day",
        "SELECT * FROM (SELECT CAST(start_date AS DATE) AS day, start_date, count(*) AS n FROM heart_rate \
         GROUP BY 1, 2) AS t ORDER BY day",
        "WITH t AS (SELECT CAST(start_date AS DATE) AS day, start_date, count(*) AS n FROM heart_rate \
         GROUP BY 1, 2) SELECT day, start_date, n FROM t ORDER BY day",
    ] {
        assert_eq!(rows(&person, text).await, expected, "{text}");
    }
    let several = "SELECT CAST(value AS BIGINT) AS whole, CAST(value AS TEXT) AS text, value, count(*) AS n \
                   FROM heart_rate WHERE CAST(value AS BIGINT) > 60 GROUP BY 1, 2, 3 \
                   HAVING CAST(value AS BIGINT) < 100";
    let expected = [json!({"whole": 70, "text": "70.25", "value": 70.25, "n": 1})];
    assert_eq!(rows(&person, several).await, expected);
    let within = "SELECT CAST(CAST(start_date AS DATE) AS TEXT) AS text, CAST(start_date AS DATE) AS day, \
                  start_date, count(*) AS n FROM heart_rate GROUP BY 1, 2, 3 ORDER BY 1";
    let expected = days([("2024-05-01", 2), ("2024-05-02", 1)])
        .into_iter()
        .map(|mut row| {
            row["text"] = row["day"].clone();
            row
        });
    assert_eq!(rows(&person, within).await, expected.collect::<Vec<Value>>());
    let zones = "SELECT start_date AT TIME ZONE 'Europe/Berlin' AS there, start_date, count(*) AS n \
                 FROM heart_rate GROUP BY 1, 2 ORDER BY 2";
    let found = rows(&person, zones).await;
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(found[0]["there"], json!("2024-05-01T12:00:00+02:00"));
}

#[tokio::test]
async fn what_is_aggregated_may_be_converted_from_one_column() {
    let person = person();
    beating(&person).await;
    let day = "SELECT max(start_date) AS last, max(start_date::date) AS day FROM heart_rate";
    let expected = json!({"last": "2024-05-02T10:00:00Z", "day": "2024-05-02"});
    assert_eq!(rows(&person, day).await, [expected]);
    for (plain, converted, expected) in [
        (
            "sum(value)",
            "sum(CAST(value AS BIGINT))",
            json!({"a": 191.25, "b": 190}),
        ),
        (
            "count(DISTINCT value)",
            "count(DISTINCT (CAST(value AS BIGINT)))",
            json!({"a": 2, "b": 2}),
        ),
        (
            "max(value + 1)",
            "max(CAST(value AS BIGINT) + 1)",
            json!({"a": 71.25, "b": 71}),
        ),
    ] {
        let expected = [expected];
        for keys in ["", "GROUP BY unit", "GROUP BY unit HAVING max(value) > 70"] {
            let text = format!("SELECT {plain} AS a, {converted} AS b FROM heart_rate {keys}");
            assert_eq!(rows(&person, &text).await, expected, "{text}");
            let text = format!("SELECT * FROM ({text}) AS t ORDER BY b");
            assert_eq!(rows(&person, &text).await, expected, "{text}");
        }
    }
    let unnamed = "SELECT max(value), max(CAST(value AS BIGINT)) FROM heart_rate";
    let found = rows(&person, unnamed).await;
    let values: Vec<&Value> = found[0].as_object().unwrap().values().collect();
    assert_eq!(values, [&json!(70.25), &json!(70)]);
}

/// The columns that are computed have the names that they have without such keys.
#[tokio::test]
async fn keys_of_one_column_do_not_change_the_names_of_columns() {
    let person = person();
    beating(&person).await;
    let names = async |text: &str| -> Vec<String> {
        let found = rows(&person, text).await;
        found[0].as_object().unwrap().keys().cloned().collect()
    };
    let plain =
        "SELECT CAST(start_date AS DATE), max(CAST(start_date AS DATE)), count(*) FROM heart_rate GROUP BY 1";
    let plain = names(plain).await;
    let both = "SELECT CAST(start_date AS DATE), max(CAST(start_date AS DATE)), count(*), start_date \
                FROM heart_rate GROUP BY 1, 4";
    let both = names(both).await;
    assert_eq!(both[..3], plain[..]);
    assert_eq!(both[3], "start_date");
}

#[tokio::test]
async fn a_column_that_is_cut_keeps_its_name() {
    let person = person();
    beating(&person).await;
    for (text, expected) in [
        (
            "SELECT CAST(h.value AS varchar(2)) FROM heart_rate h ORDER BY h.value DESC LIMIT 1",
            json!({"value": "70"}),
        ),
        (
            "SELECT CAST(value AS varchar(2)) FROM heart_rate ORDER BY heart_rate.value DESC LIMIT 1",
            json!({"value": "70"}),
        ),
        (
            "SELECT CAST(h.value AS varchar(2)), count(*) AS n FROM heart_rate h GROUP BY h.value \
             ORDER BY h.value LIMIT 1",
            json!({"value": "60", "n": 2}),
        ),
        (
            "SELECT CAST(a.value AS varchar(2)), b.value AS whole FROM heart_rate a JOIN heart_rate b \
             ON a.uuid = b.uuid ORDER BY a.value DESC, b.uuid LIMIT 1",
            json!({"value": "70", "whole": 70.25}),
        ),
        (
            "SELECT max(CAST(value AS varchar(1))) AS short, max(value) AS whole FROM heart_rate",
            json!({"short": "7", "whole": 70.25}),
        ),
        (
            "SELECT CAST(value AS varchar(1)) AS short, value, count(*) AS n FROM heart_rate GROUP BY 1, 2 \
             ORDER BY 1 LIMIT 1",
            json!({"short": "6", "value": 60.5, "n": 2}),
        ),
        (
            "SELECT x.value FROM (SELECT CAST(value AS varchar(1)) FROM heart_rate WHERE value > 70) x",
            json!({"value": "7"}),
        ),
        (
            "WITH x AS (SELECT CAST(h.value AS varchar(1)) FROM heart_rate h WHERE h.value > 70) \
             SELECT value FROM x",
            json!({"value": "7"}),
        ),
        (
            "SELECT CAST(value AS varchar(1)) FROM heart_rate UNION ALL SELECT '8' \
             ORDER BY value DESC LIMIT 1",
            json!({"value": "8"}),
        ),
        (
            "SELECT DISTINCT CAST(value AS varchar(1)) FROM heart_rate ORDER BY value LIMIT 1",
            json!({"value": "6"}),
        ),
    ] {
        assert_eq!(rows(&person, text).await, [expected], "{text}");
    }
}

/// As in SQL, where only a name that stands alone in `ORDER BY` means what is selected.
#[tokio::test]
async fn rows_are_sorted_by_expressions_about_a_column_that_is_cut() {
    let person = person();
    beating(&person).await;
    for (text, expected) in [
        (
            "SELECT CAST(value AS varchar(1)) FROM heart_rate ORDER BY value % 70 LIMIT 1",
            json!({"value": "7"}),
        ),
        (
            "SELECT CAST(h.value AS varchar(1)) FROM heart_rate h ORDER BY -value LIMIT 1",
            json!({"value": "7"}),
        ),
        (
            "SELECT CAST(value AS varchar(1)) FROM heart_rate ORDER BY value > 70, value LIMIT 1",
            json!({"value": "6"}),
        ),
        (
            "SELECT CAST(value AS varchar(1)), sum(value) AS total FROM heart_rate GROUP BY value \
             HAVING sum(value) > 100 ORDER BY sum(value)",
            json!({"value": "6", "total": 121.0}),
        ),
        (
            "SELECT CAST(value AS varchar(1)), max(value) AS most FROM heart_rate \
             GROUP BY CAST(value AS varchar(1)) ORDER BY max(value) DESC LIMIT 1",
            json!({"value": "7", "most": 70.25}),
        ),
    ] {
        assert_eq!(rows(&person, text).await, [expected], "{text}");
    }
}

#[tokio::test]
async fn what_is_cut_is_told_apart_from_its_column() {
    let person = person();
    beating(&person).await;
    for text in [
        "SELECT a.value FROM heart_rate a JOIN heart_rate b \
         ON CAST(a.uuid AS varchar(36)) = CAST(b.uuid AS varchar(36)) WHERE b.value > 70",
        "SELECT a.value FROM heart_rate a JOIN heart_rate b \
         ON CAST(a.value AS varchar(2)) = left(CAST(b.value AS text), 2) WHERE b.value > 70",
        "SELECT value FROM heart_rate WHERE CAST(value AS varchar(2)) IN \
         (SELECT left(CAST(b.value AS text), 2) FROM heart_rate b WHERE b.value > 70)",
        "SELECT value FROM heart_rate a WHERE EXISTS (SELECT 1 FROM heart_rate b \
         WHERE CAST(a.value AS varchar(2)) = left(CAST(b.value AS text), 2) AND b.value > 70)",
        "SELECT (SELECT max(b.value) FROM heart_rate b WHERE CAST(a.value AS varchar(5)) = \
         CAST(b.value AS text)) AS value FROM heart_rate a WHERE a.value > 70",
        "WITH t AS (SELECT max(value) AS most FROM heart_rate \
         ORDER BY max(CAST(value AS varchar(1))), max(CAST(value AS varchar(2)))) \
         SELECT most AS value FROM t",
    ] {
        assert_eq!(rows(&person, text).await, [json!({"value": 70.25})], "{text}");
    }
}

#[tokio::test]
async fn rows_are_sorted_by_a_column_whose_name_another_one_has() {
    let person = person();
    beating(&person).await;
    for (text, expected) in [
        (
            "SELECT -h.value AS value FROM heart_rate h ORDER BY h.value DESC LIMIT 1",
            json!({"value": -70.25}),
        ),
        (
            "SELECT -h.value AS value, h.value FROM heart_rate h \
             ORDER BY lower(h.unit), h.value DESC LIMIT 1",
            json!({"value": -70.25, "value_2": 70.25}),
        ),
    ] {
        assert_eq!(rows(&person, text).await, [expected], "{text}");
    }
    let both = "SELECT -h.value AS value FROM heart_rate h ORDER BY h.value > 70, value";
    let message = wrong(&person, both).await;
    assert!(message.contains("ambiguous"), "{message}");
}

#[tokio::test]
async fn a_column_is_replaced_also_beside_others_of_its_name() {
    let person = person();
    beating(&person).await;
    for (text, expected) in [
        (
            "SELECT * REPLACE (value * 2 AS value), value FROM (SELECT value FROM heart_rate) \
             ORDER BY 1 LIMIT 1",
            json!({"value": 121.0, "value_2": 60.5}),
        ),
        (
            "SELECT * REPLACE (value * 2 AS value), count(*) OVER () AS value \
             FROM (SELECT value FROM heart_rate) ORDER BY 1 LIMIT 1",
            json!({"value": 121.0, "value_2": 3}),
        ),
        (
            "SELECT a.* REPLACE (a.value * 2 AS value), b.value \
             FROM (SELECT uuid AS id, value FROM heart_rate) a \
             JOIN heart_rate b ON a.id = b.uuid WHERE b.value > 70",
            json!({"id": id(3), "value": 140.5, "value_2": 70.25}),
        ),
        (
            "(WITH x AS (SELECT 1 AS a) SELECT * REPLACE (2 AS a) FROM x)",
            json!({"a": 2}),
        ),
        (
            "WITH x AS (SELECT 5 AS a) (WITH x AS (SELECT 1 AS b), y AS (SELECT b, 3 AS c FROM x) \
             SELECT * REPLACE (2 AS b), y.c FROM x JOIN y USING (b))",
            json!({"b": 2, "c": 3, "c_2": 3}),
        ),
        (
            "(WITH x AS (SELECT 1 AS a) SELECT * REPLACE (2 AS a) FROM x) UNION ALL \
             (WITH x AS (SELECT 7 AS b, 8 AS c) SELECT * REPLACE (9 AS b) FROM (SELECT b FROM x) y) \
             ORDER BY 1 DESC LIMIT 1",
            json!({"a": 9}),
        ),
    ] {
        assert_eq!(rows(&person, text).await, [expected], "{text}");
    }
    for text in [
        "SELECT * REPLACE (2 AS Value) FROM (SELECT 1 AS value)",
        "SELECT t.* FROM (SELECT * REPLACE (2 AS VALUE) FROM (SELECT 1 AS value)) t",
    ] {
        assert_eq!(rows(&person, text).await, [json!({"value": 2})], "{text}");
    }
    let twice = "SELECT * REPLACE (1 AS value, 2 AS Value) FROM heart_rate";
    let message = wrong(&person, twice).await;
    assert_eq!(message, "line 1, column 36: REPLACE names value more than once");
    let message = wrong(&person, "SELECT * REPLACE (1 AS nosuch) FROM heart_rate").await;
    assert!(message.contains("no column nosuch that REPLACE"), "{message}");
}

#[tokio::test]
async fn a_name_from_with_hides_the_same_name_around_it() {
    let person = person();
    for (text, expected) in [
        (
            "WITH a AS (SELECT 1 AS x) SELECT t.x AS inner, a.x AS outer \
             FROM (WITH a AS (SELECT 2 AS x) SELECT a.x FROM a) AS t, a",
            json!({"inner": 2, "outer": 1}),
        ),
        (
            "WITH a AS (SELECT 1 AS x) SELECT (WITH a AS (SELECT x + 1 AS x FROM a) SELECT a.x FROM a) \
             AS inner, x AS outer FROM a",
            json!({"inner": 2, "outer": 1}),
        ),
        (
            "WITH a AS (WITH a AS (SELECT 3 AS x) SELECT x FROM a) SELECT x FROM a",
            json!({"x": 3}),
        ),
        (
            "WITH a AS (SELECT 1 AS x), b AS (WITH A AS (SELECT 2 AS x) \
             SELECT c.x FROM (WITH a AS (SELECT 4 AS x) SELECT * FROM a) AS c JOIN a ON a.x < c.x) \
             SELECT a.x AS outer, b.x AS inner FROM a, b",
            json!({"outer": 1, "inner": 4}),
        ),
        (
            "WITH \"a within 1\" AS (SELECT 7 AS x), a AS (SELECT 1 AS x) \
             SELECT t.x AS inner, t.other AS other, a.x AS outer \
             FROM (WITH a AS (SELECT 2 AS x) SELECT a.x, o.x AS other FROM a, \"a within 1\" AS o) AS t, a",
            json!({"inner": 2, "other": 7, "outer": 1}),
        ),
    ] {
        assert_eq!(rows(&person, text).await, [expected], "{text}");
    }
    let twice = "WITH a AS (SELECT 1), a AS (SELECT 2) SELECT * FROM a";
    let message = wrong(&person, twice).await;
    assert!(message.contains("WITH defines a more than once"), "{message}");
    let within =
        "WITH a AS (SELECT 0) SELECT * FROM (WITH a AS (SELECT 1), a AS (SELECT 2) SELECT * FROM a) AS t";
    let message = wrong(&person, within).await;
    let column = within.find("a AS (SELECT 2)").unwrap() + 1;
    assert_eq!(
        message,
        format!("line 1, column {column}: WITH defines a more than once")
    );
}

#[tokio::test]
async fn a_member_with_capitals_is_told_with_its_quotes() {
    let person = person();
    let beat = json!({"uuid": id(1), "start_date": at("10:00"), "end_date": at("10:00"), "value": 60.0,
        "source_properties": {"name": "one", "sourceBundleIdentifier": "two"}});
    person.records("HeartRate", &[beat]).await;
    let written = "SELECT source_properties.\"sourceBundleIdentifier\" AS source FROM heart_rate";
    assert_eq!(rows(&person, written).await, [json!({"source": "two"})]);
    let message = wrong(
        &person,
        "SELECT source_properties.sourceBundleIdentifier FROM heart_rate",
    )
    .await;
    let expected = "line 1, column 26: the structure has no member sourcebundleidentifier; capitals count \
                    within double quotes: write \"sourceBundleIdentifier\"";
    assert_eq!(message, expected);
    let message = wrong(&person, "SELECT source_properties.nothing FROM heart_rate").await;
    assert_eq!(message, "line 1, column 26: the structure has no member nothing");
}

#[tokio::test]
async fn the_column_that_a_form_cannot_hold_is_named() {
    let person = person();
    for column in ["INTERVAL '1 day'", "[INTERVAL '1 day']"] {
        let asked = json!({"query": format!("SELECT 1 AS x, {column} AS span"), "output": "parquet"});
        let reply = person.post(super::SQL, &asked).await;
        assert_eq!(reply.faults(), ["body.query"], "{reply}");
        let message = reply.json()["detail"][0]["msg"].as_str().unwrap().to_owned();
        assert!(message.starts_with("column 'span' holds intervals"), "{message}");
    }
    query(&person, "SELECT INTERVAL '1 day' AS span")
        .await
        .must_be(200);
    for (output, is_text) in [
        ("ndjson", true),
        ("jstable", true),
        ("jscolumns", true),
        ("csv", true),
        ("quotecsv", true),
        ("arrow", false),
        ("arrowraw", false),
        ("parquet", false),
    ] {
        let asked = json!({"query": "SELECT 1 AS x, MAP {'a': 1} AS pairs", "output": output});
        let reply = person.post(super::SQL, &asked).await;
        if !is_text {
            reply.must_be(200);
            continue;
        }
        assert_eq!(reply.faults(), ["body.query"], "{output}: {reply}");
        let message = reply.json()["detail"][0]["msg"].as_str().unwrap().to_owned();
        assert!(message.starts_with("column 'pairs' holds"), "{message}");
        assert!(message.contains("choose arrow, arrowraw or parquet"), "{message}");
    }
    assert_eq!(
        rows(
            &person,
            "SELECT map_keys(MAP {'a': 1}) AS k, map_values(MAP {'a': 1}) AS v"
        )
        .await,
        [json!({"k": ["a"], "v": [1]})]
    );
}

#[tokio::test]
async fn a_decimal_keeps_its_digits_as_text() {
    let person = person();
    assert_eq!(
        rows(
            &person,
            "SELECT 1.10::decimal(10, 3) AS one, [2.5::decimal(10, 2)] AS more"
        )
        .await,
        [json!({"one": "1.100", "more": ["2.50"]})]
    );
}

#[tokio::test]
async fn a_member_of_an_object_that_is_null_is_null() {
    let person = person();
    let beat = |n: u32, value: f64| {
        let mut beat = heart_rate(id(n), &at(&format!("10:0{n}")), value);
        beat["device_properties"] = json!({"name": "watch"});
        beat
    };
    person.records("HeartRate", &[beat(1, 60.0), beat(2, 80.0)]).await;
    let some = "(SELECT CASE WHEN value > 70 THEN device_properties END AS p FROM heart_rate) t";
    let none = "(SELECT nullif(device_properties, device_properties) AS p FROM heart_rate) t";
    for (text, expected) in [
        (
            format!("SELECT count(*) AS n, count(p) AS k, count(p.name) AS m FROM {some}"),
            vec![json!({"n": 2, "k": 1, "m": 1})],
        ),
        (
            format!("SELECT count(*) AS n, count(p) AS k, count(p.name) AS m FROM {none}"),
            vec![json!({"n": 2, "k": 0, "m": 0})],
        ),
        (
            format!("SELECT p.name, count(*) AS n FROM {some} GROUP BY p.name ORDER BY p.name"),
            vec![
                json!({"t.p[name]": "watch", "n": 1}),
                json!({"t.p[name]": null, "n": 1}),
            ],
        ),
        (
            format!("SELECT count(*) AS n FROM {some} WHERE p.name = 'watch'"),
            vec![json!({"n": 1})],
        ),
    ] {
        assert_eq!(rows(&person, &text).await, expected, "{text}");
    }
    let columns = rows(&person, &format!("SELECT unnest(p) FROM {some}")).await;
    let names = columns.iter().filter(|row| row["t.p.name"] == json!("watch"));
    assert_eq!((columns.len(), names.count()), (2, 1), "{columns:?}");
}

#[tokio::test]
async fn nothing_is_in_a_list_or_a_map_that_is_null() {
    let person = person();
    let beats = [(1, 60.0), (2, 80.0)];
    let beats = beats.map(|(n, value)| heart_rate(id(n), &at(&format!("10:0{n}")), value));
    person.records("HeartRate", &beats).await;
    let lists =
        "(SELECT value, nullif(l, [60.0]) AS l FROM (SELECT value, [value] AS l FROM heart_rate) a) b";
    for (list, expected) in [
        ("array_append(l, 1.0)", ["1", "80,1"]),
        ("array_prepend(1.0, l)", ["1", "1,80"]),
        ("list_push_front(1.0, l)", ["1", "1,80"]),
        ("l || 1.0", ["1", "80,1"]),
        ("1.0 || l", ["1", "1,80"]),
        ("flatten([l])", ["", "80"]),
    ] {
        let text = format!("SELECT array_to_string({list}, ',') AS joined FROM {lists} ORDER BY value");
        let expected = expected.map(|joined| json!({"joined": joined}));
        assert_eq!(rows(&person, &text).await, expected, "{text}");
    }
    let map = "map(['a'], [value])";
    let found = format!(
        "SELECT count(*) AS n, count(map_extract(m, 'a')[1]) AS k FROM \
         (SELECT nullif({map}, {map}) AS m FROM heart_rate) t"
    );
    assert_eq!(rows(&person, &found).await, [json!({"n": 2, "k": 0})]);
}
