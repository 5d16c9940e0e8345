//! What bad input gets: 422 with the place and what is probably meant, and the service lives.

use std::fmt::Write as _;

use serde_json::json;

use super::{SQL, query, rows, wrong};
use crate::harness::{at, heart_rate, id, person};

#[tokio::test]
async fn only_reading_is_allowed_and_the_rest_is_refused_by_name() {
    let person = person();
    for (text, word) in [
        ("DROP TABLE heart_rate", "DROP"),
        ("INSERT INTO heart_rate VALUES (1)", "INSERT"),
        ("UPDATE heart_rate SET value = 1", "UPDATE"),
        ("DELETE FROM heart_rate", "DELETE"),
        ("CREATE TABLE t AS SELECT 1", "CREATE"),
        ("CREATE VIEW v AS SELECT 1", "CREATE"),
        (
            "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '/etc/passwd'",
            "CREATE",
        ),
        ("COPY (SELECT 1) TO '/tmp/x.csv'", "COPY"),
        ("SET datafusion.execution.batch_size = 1", "SET"),
        ("RESET datafusion.execution.batch_size", "RESET"),
        ("SHOW TABLES", "SHOW"),
        ("SHOW ALL", "SHOW"),
        ("DESCRIBE heart_rate", "DESCRIBE"),
        ("PREPARE p AS SELECT 1", "PREPARE"),
        ("EXECUTE p", "EXECUTE"),
        ("BEGIN", "BEGIN"),
        ("TRUNCATE TABLE heart_rate", "TRUNCATE"),
        ("CREATE FUNCTION f() RETURNS INT RETURN 1", "CREATE"),
        ("SELECT 1 INTO t", "INTO"),
        (
            "WITH RECURSIVE t AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM t) SELECT * FROM t",
            "RECURSIVE",
        ),
        ("SELECT range(0, 1000000000)", "range"),
        ("SELECT * FROM generate_series(1, 10)", "generate_series"),
        ("SELECT input_file_name() FROM heart_rate", "input_file_name"),
        ("SELECT * FROM read_csv('/etc/passwd')", "read_csv"),
        (
            "SELECT * FROM parquet_metadata('/etc/passwd')",
            "parquet_metadata",
        ),
        ("SELECT * FROM '/etc/passwd'", "/etc/passwd"),
        ("SELECT * FROM \"file:///etc/passwd\"", "file:///etc/passwd"),
        (
            "SELECT arrow_cast(NULL, 'FixedSizeBinary(2000000000)')",
            "arrow_cast",
        ),
        ("SELECT levenshtein(uuid, uuid) FROM heart_rate", "levenshtein"),
        ("SELECT CAST(NULL AS BIGINT[2000000000])", "BIGINT[2000000000]"),
        ("SELECT NULL::INT[9][9][9]", "INT[9]"),
        (
            "SELECT count(*) FROM heart_rate GROUP BY CUBE (value, uuid)",
            "CUBE",
        ),
        (
            "SELECT median(value) OVER (ORDER BY start_date) FROM heart_rate",
            "median",
        ),
        (
            "SELECT array_agg(value) OVER (ORDER BY start_date) FROM heart_rate",
            "array_agg",
        ),
        (
            "SELECT regexp_like(uuid, unit) FROM heart_rate",
            "regular expression",
        ),
        ("SELECT uuid ~ unit FROM heart_rate", "regular expression"),
        ("SELECT 1 FROM heart_rate WHERE unit ~ '('", "unclosed group"),
        ("SELECT regexp_like(unit, '[a') FROM heart_rate", "regex"),
        ("SELECT 'a' !~* '*'", "regex"),
        ("SELECT uuid ~ 'a{1000}{1000}' FROM heart_rate", "too large"),
        (
            "SELECT regexp_like(uuid, 'a{1000}{1000}') FROM heart_rate",
            "too large",
        ),
        (
            "SELECT regexp_replace(uuid, 'a{1000}{1000}', '') FROM heart_rate",
            "too large",
        ),
        ("SELECT regexp_count(uuid, '(') FROM heart_rate", "unclosed group"),
        ("EXPLAIN DROP TABLE heart_rate", "not allowed"),
        ("SELECT 1 FROM heart_rate WHERE uuid LIKE unit", "LIKE"),
        ("SELECT uuid NOT ILIKE '%' || unit FROM heart_rate", "LIKE"),
        ("SELECT 'a' LIKE (SELECT max(unit) FROM heart_rate) AS a", "LIKE"),
        (
            "SELECT approx_percentile_cont(value, 0.5, 10000000000000) FROM heart_rate",
            "centroids",
        ),
        (
            "SELECT approx_percentile_cont(0.5, 500 * 500) WITHIN GROUP (ORDER BY value) FROM heart_rate",
            "centroids",
        ),
        (
            "SELECT approx_percentile_cont_with_weight(value, 1, 0.5, 0) FROM heart_rate",
            "centroids",
        ),
        (
            "SELECT * FROM location_series(DATE '-200000-01-01', DATE '+200000-01-01', 60)",
            "0001 to 9999",
        ),
        (
            "SELECT * FROM sleep_agg(DATE '2024-01-01', DATE '+20000-01-01', 'P1D', 'UTC')",
            "0001 to 9999",
        ),
    ] {
        let message = wrong(&person, text).await;
        assert!(message.contains(word), "{text}: {message}");
    }
}

#[tokio::test]
async fn what_is_longer_or_says_more_than_it_may_is_refused_by_name() {
    let person = person();
    for (text, word) in [
        ("SELECT repeat('a', 1000000000)", "repeat"),
        ("SELECT lpad('a', 1000000000)", "lpad"),
        (
            "SELECT rpad(v, 2000000, 'é') FROM (VALUES ('a'), ('b')) AS t (v)",
            "rpad",
        ),
        (
            "SELECT repeat(v, 2000000) FROM (VALUES ('a'), ('bb')) AS t (v)",
            "repeat",
        ),
        (
            "SELECT value FROM heart_rate FETCH FIRST 10 PERCENT ROWS ONLY",
            "PERCENT",
        ),
        (
            "SELECT value FROM heart_rate ORDER BY 1 FETCH FIRST ROW WITH TIES",
            "WITH TIES",
        ),
        (
            "SELECT value FROM heart_rate LIMIT 1 FETCH FIRST ROW ONLY",
            "LIMIT and FETCH",
        ),
    ] {
        let message = wrong(&person, text).await;
        assert!(message.contains(word), "{text}: {message}");
    }
}

#[tokio::test]
async fn what_would_be_passed_over_in_silence_is_refused_by_name() {
    let person = person();
    for (text, word) in [
        ("FROM heart_rate", "FROM alone"),
        ("SELECT value FROM heart_rate PREWHERE value > 90", "PREWHERE"),
        ("SELECT value FROM heart_rate TABLESAMPLE (10)", "TABLESAMPLE"),
        (
            "SELECT value FROM (SELECT * FROM heart_rate) t TABLESAMPLE (10)",
            "TABLESAMPLE",
        ),
        (
            "SELECT value FROM heart_rate START WITH value > 1 CONNECT BY value > 90",
            "CONNECT BY",
        ),
        ("SELECT value FROM heart_rate WITH (NOLOCK)", "WITH after"),
        ("SELECT value FROM heart_rate PARTITION (p0)", "PARTITION"),
        (
            "SELECT value FROM heart_rate SETTINGS max_threads = 1",
            "SETTINGS",
        ),
        ("SELECT value FROM heart_rate FORMAT CSV", "FORMAT"),
        ("SELECT value FROM heart_rate FOR UPDATE", "FOR UPDATE"),
        (
            "SELECT value, count(*) FROM heart_rate GROUP BY value WITH TOTALS",
            "GROUP BY WITH",
        ),
        (
            "SELECT 1 FROM heart_rate a GLOBAL JOIN heart_rate b ON a.uuid = b.uuid",
            "GLOBAL",
        ),
        ("EXPLAIN VERBOSE SELECT 1", "EXPLAIN"),
        ("SELECT count(DISTINCT *) FROM heart_rate", "count(DISTINCT *)"),
        ("SELECT * ILIKE '%u%' FROM heart_rate", "ILIKE after *"),
        (
            "SELECT value FROM heart_rate |> WHERE value > 90",
            "|> is not allowed",
        ),
        (
            "SELECT count(*) FROM (SELECT value FROM heart_rate |> LIMIT 1) t",
            "|> is not allowed",
        ),
        ("SELECT unit::char(2) FROM heart_rate", "CHAR(2)"),
        ("SELECT value::float(53) FROM heart_rate", "FLOAT(53)"),
        (
            "SELECT CAST(named_struct('a', unit) AS STRUCT<a VARCHAR(2)>) AS s FROM heart_rate",
            "VARCHAR(2)",
        ),
        (
            "SELECT CAST(named_struct('a', [value]) AS STRUCT<a FLOAT(53)[]>) AS s FROM heart_rate",
            "FLOAT(53)",
        ),
        ("SELECT abs(DISTINCT value) FROM heart_rate", "DISTINCT"),
        (
            "SELECT approx_percentile_cont(DISTINCT value, 0.5) FROM heart_rate",
            "DISTINCT is not allowed in 'approx_percentile_cont'",
        ),
        (
            "SELECT covar_pop(DISTINCT value, value) FROM heart_rate",
            "DISTINCT is not allowed in 'covar_pop'",
        ),
        ("SELECT upper(unit) OVER () FROM heart_rate", "OVER"),
        (
            "SELECT make_map('a', 1) OVER () AS m",
            "OVER is not allowed with make_map",
        ),
        (
            "SELECT upper(unit) FILTER (WHERE value > 1) FROM heart_rate",
            "FILTER is not allowed with upper",
        ),
        (
            "SELECT sum(value) OVER (w ORDER BY value) FROM heart_rate",
            "no window w",
        ),
        (
            "SELECT unit FROM heart_rate WHERE value IN (SELECT sum(value) OVER w FROM heart_rate) \
             WINDOW w AS (ORDER BY value)",
            "no window w",
        ),
    ] {
        let message = wrong(&person, text).await;
        assert!(message.contains(word), "{text}: {message}");
    }
}

#[tokio::test]
async fn columns_keys_and_patterns_of_a_query_are_limited() {
    let person = person();
    let listed = |item: &str, times: usize| vec![item; times].join(", ");
    let columns: Vec<String> = (0..700).map(|column| format!("1 AS c{column}")).collect();
    let wide = format!("WITH w AS (SELECT {})", columns.join(", "));
    let keys = |count: usize| {
        let keys: Vec<String> = (0..count).map(|key| format!("round(value, {key})")).collect();
        keys.join(", ")
    };
    let windows = |times: usize, call: &str, window: &str| {
        let calls: Vec<String> = (0..times)
            .map(|time| format!("{call} OVER ({window})").replace('#', &time.to_string()))
            .collect();
        format!("SELECT {} FROM heart_rate", calls.join(", "))
    };
    let running = "PARTITION BY unit, value, uuid ORDER BY start_date";
    let moving = "PARTITION BY unit ORDER BY start_date ROWS BETWEEN # PRECEDING AND CURRENT ROW";
    let receding = "PARTITION BY unit ORDER BY start_date ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING";
    for (text, expected) in [
        (
            format!("SELECT count(*) OVER (PARTITION BY {}) FROM heart_rate", keys(33)),
            "more than 32 keys of PARTITION BY",
        ),
        (
            windows(101, "sum(value + #)", "PARTITION BY unit"),
            "more than 100 keys in all windows together",
        ),
        (
            windows(34, "max(value + #)", running),
            "more than 100 keys in all windows together",
        ),
        (
            windows(101, "min(value + #)", receding),
            "more than 100 keys in all windows together",
        ),
        (
            windows(34, "count(value + #)", running),
            "more than 100 keys in all windows together",
        ),
        (
            windows(101, "row_number()", moving),
            "more than 100 keys in all windows together",
        ),
        (
            windows(
                17,
                "sum(value + #)",
                &format!("PARTITION BY {} ORDER BY start_date", keys(31)),
            ),
            "more than 512 keys, counted with each function",
        ),
        (
            format!("SELECT value FROM heart_rate ORDER BY {}", keys(257)),
            "more than 256 keys together",
        ),
        (
            format!("SELECT array_agg(value ORDER BY {}) FROM heart_rate", keys(257)),
            "more than 256 keys together",
        ),
        (
            format!("SELECT DISTINCT ON ({}) value FROM heart_rate", keys(257)),
            "more than 256 keys together",
        ),
        (
            format!(
                "WITH t AS (SELECT value FROM heart_rate ORDER BY {} LIMIT 1) \
                 SELECT * FROM t a, t b, t c",
                keys(100)
            ),
            "more than 256 keys together",
        ),
        (
            format!("SELECT {} FROM heart_rate", listed("value", 1001)),
            "more than 1000 columns are named",
        ),
        (
            format!("VALUES ({})", listed("1", 1001)),
            "more than 1000 columns are named",
        ),
        (
            format!("SELECT {} FROM heart_rate", listed("*", 103)),
            "all columns of more than 102 tables",
        ),
        (
            format!("{wide} SELECT {} FROM w", listed("*", 3)),
            "more than 2000 columns",
        ),
        (
            format!("SELECT {} FROM heart_rate", listed("unit ~ '[ab]{100000}'", 3)),
            "too large together",
        ),
    ] {
        let message = wrong(&person, &text).await;
        assert!(message.contains(expected), "{message}");
    }
    // Windows that are computed together count once, unless the results of their functions have an order.
    for text in [
        windows(101, "sum(value + #)", "PARTITION BY unit ORDER BY start_date"),
        windows(101, "lag(value, #)", "PARTITION BY unit ORDER BY start_date"),
        windows(33, "max(value + #)", running),
        windows(33, "row_number()", moving),
    ] {
        assert!(rows(&person, &text).await.is_empty(), "{text}");
    }
}

#[tokio::test]
async fn a_pattern_that_is_the_same_for_all_rows_may_be_put_together() {
    let person = person();
    person
        .record("HeartRate", &heart_rate(id(1), &at("10:00"), 60.0))
        .await
        .upload();
    let found = "SELECT count(*) AS n FROM heart_rate WHERE uuid LIKE '%' || lower('0') || '%'";
    assert_eq!(rows(&person, found).await, [json!({"n": 1})]);
    let middle = "SELECT approx_percentile_cont(value, 0.5, 1000) AS middle FROM heart_rate";
    assert_eq!(rows(&person, middle).await, [json!({"middle": 60.0})]);
}

#[tokio::test]
async fn what_would_give_wrong_rows_is_refused_at_its_place() {
    let person = person();
    for (text, expected) in [
        (
            "SELECT * FROM (VALUES (1)) AS a(k) FULL JOIN (VALUES (1)) AS b(k) USING (k)",
            "line 1, column 36: FULL JOIN with USING",
        ),
        (
            "SELECT 1 FROM heart_rate a NATURAL RIGHT OUTER JOIN heart_rate b",
            "line 1, column 36: RIGHT JOIN with USING",
        ),
        (
            "SELECT 1 EXCEPT ALL SELECT 2",
            "line 1, column 17: EXCEPT ALL is not allowed",
        ),
        (
            "SELECT 1 UNION ALL (SELECT 1 INTERSECT ALL SELECT 2)",
            "line 1, column 40: INTERSECT ALL is not allowed",
        ),
        (
            "SELECT 1 LIMIT (SELECT 1)",
            "line 1, column 17: LIMIT and OFFSET are numbers",
        ),
    ] {
        let message = wrong(&person, text).await;
        assert!(message.starts_with(expected), "{text}: {message}");
    }
    // What the refusal says.
    let whole = "SELECT coalesce(a.k, b.k) AS k FROM (VALUES (1), (2)) AS a(k) FULL JOIN (VALUES (2), (3)) \
                 AS b(k) ON a.k = b.k ORDER BY k";
    let expected = [json!({"k": 1}), json!({"k": 2}), json!({"k": 3})];
    assert_eq!(rows(&person, whole).await, expected);
}

#[tokio::test]
async fn a_fault_has_its_place_and_the_nearest_name() {
    let person = person();
    for (text, expected) in [
        (
            "SELECT\n  valeu FROM heart_rate",
            "line 2, column 3: there is no column valeu; did you mean value?",
        ),
        (
            "SELECT 1 FROM heartrate",
            "line 1, column 15: there is no table heartrate; did you mean heart_rate?",
        ),
        (
            "SELECT 1 FROM nothing.like_it",
            "line 1, column 23: there is no table nothing.like_it",
        ),
        (
            "SELECT local_dya(now())",
            "line 1, column 8: Invalid function 'local_dya'; did you mean 'local_day'?",
        ),
        ("SELEC 1", "line 1, column 1: "),
        ("SELECT (1 + FROM", "line 1, column 17: "),
        ("SELECT 'open", "line 1, column 8: "),
        (
            "SELECT * FROM series('HartRate', '1d')",
            "line 1, column 22: 'HartRate'",
        ),
        (
            "WITH RECURSIVE t AS (SELECT 1) SELECT * FROM t",
            "line 1, column 6: WITH RECURSIVE",
        ),
        (
            "WITH a AS (INSERT INTO t VALUES (1)) SELECT 1",
            "line 1, column 12: INSERT is not allowed",
        ),
        (
            "EXPLAIN INSERT INTO t VALUES (1)",
            "line 1, column 9: INSERT is not allowed",
        ),
        (
            "EXPLAIN ANALYZE DELETE FROM t",
            "line 1, column 17: DELETE is not allowed",
        ),
        (
            "EXPLAIN VERBOSE SELECT 1",
            "line 1, column 9: EXPLAIN has one form",
        ),
        (
            "SELECT 1; SELECT 2",
            "line 1, column 11: send one query at a time",
        ),
        ("SELECT 1 INTO t", "line 1, column 10: SELECT INTO"),
        ("FROM heart_rate", "line 1, column 1: FROM alone"),
        (
            "SELECT 1 FROM (\nFROM heart_rate) t",
            "line 2, column 1: FROM alone",
        ),
        (
            "SELECT value, count(*) FROM heart_rate\nGROUP BY ROLLUP (value)",
            "line 2, column 10: GROUPING SETS",
        ),
        (
            "SELECT count(*) FROM heart_rate GROUP BY GROUPING SETS ((value), ())",
            "line 1, column 42: GROUPING SETS",
        ),
        (
            "SELECT value FROM heart_rate TABLESAMPLE (10)",
            "line 1, column 30: TABLESAMPLE",
        ),
        (
            "SELECT 1 FROM heart_rate WHERE uuid LIKE '%' || unit",
            "line 1, column 42: the pattern of LIKE",
        ),
        (
            "SELECT 1 FROM heart_rate WHERE uuid ~ unit",
            "line 1, column 39: a regular expression",
        ),
        (
            "SELECT regexp_like(uuid, lower(unit)) FROM heart_rate",
            "line 1, column 26: a regular expression",
        ),
        (
            "SELECT * FROM heart_rate PIVOT (sum(value) FOR unit IN ('a', 'b'))",
            "line 1, column 26: PIVOT is not allowed",
        ),
        (
            "SELECT * FROM heart_rate MATCH_RECOGNIZE (PARTITION BY unit ORDER BY value MEASURES value AS v \
             PATTERN (a) DEFINE a AS value > 1)",
            "line 1, column 26: MATCH_RECOGNIZE is not allowed",
        ),
    ] {
        let message = wrong(&person, text).await;
        assert!(message.starts_with(expected), "{text}: {message}");
    }
    for text in ["", "   ", "-- nothing", ";"] {
        wrong(&person, text).await;
    }
    let joins: Vec<String> = (0..52).map(|n| format!("heart_rate t{n}")).collect();
    let message = wrong(&person, &format!("SELECT 1 FROM\n{}", joins.join("\n, "))).await;
    assert!(
        message.starts_with("line 53, column 3: the query reads from"),
        "{message}"
    );
}

#[tokio::test]
async fn a_computation_that_fails_is_the_querys_fault() {
    let person = person();
    person
        .record("HeartRate", &heart_rate(id(1), &at("10:00"), 60.0))
        .await
        .upload();
    for text in [
        "SELECT 1 / 0",
        "SELECT cast(value AS INT) / (cast(value AS INT) - 60) FROM heart_rate",
        "SELECT cast(uuid AS INT) FROM heart_rate",
        "SELECT cast('x' AS TIMESTAMP)",
        "SELECT local_day(start_date, 'Mars/Olympus') FROM heart_rate",
        "SELECT local_day(start_date, uuid) FROM heart_rate",
        "SELECT factorial(cast(value AS BIGINT)) FROM heart_rate",
        "SELECT (SELECT value FROM heart_rate UNION ALL SELECT 1) FROM heart_rate",
    ] {
        let reply = query(&person, text).await;
        assert_eq!(reply.status, 422, "{text}: {reply}");
    }
}

#[tokio::test]
async fn a_whole_number_that_does_not_fit_is_an_error_and_no_other_number() {
    let person = person();
    let numbers = "(VALUES (1, 9223372036854775807), (1, 1), (2, -9223372036854775808)) t(g, n)";
    for text in [
        "SELECT 9223372036854775807 + 1".to_owned(),
        "SELECT 9223372036854775807 * 2".to_owned(),
        "SELECT -9223372036854775807 - 2".to_owned(),
        "SELECT -(-9223372036854775807 - 1)".to_owned(),
        "SELECT 2147483647::INT * 2::INT".to_owned(),
        "SELECT sum(x) FROM (VALUES (9223372036854775807), (1)) t(x)".to_owned(),
        format!("SELECT n + 1 FROM {numbers}"),
        format!("SELECT n * 2 FROM {numbers} WHERE g = 1"),
        format!("SELECT n - 1 FROM {numbers}"),
        format!("SELECT -n FROM {numbers}"),
        format!("SELECT 1 FROM {numbers} WHERE n + 1 > 0"),
        format!("SELECT sum(n) FROM {numbers} WHERE g = 1"),
        format!("SELECT sum(DISTINCT n) FROM {numbers} WHERE g = 1"),
        format!("SELECT g, sum(n) FROM {numbers} GROUP BY g"),
        format!("SELECT sum(n) OVER (ORDER BY n DESC) FROM {numbers} WHERE g = 1"),
        format!("SELECT sum(n) OVER (ORDER BY n DESC ROWS 1 PRECEDING) FROM {numbers} WHERE g = 1"),
        format!("SELECT sum(n + 1) FROM {numbers} WHERE g = 1"),
        "SELECT sum(TIMESTAMP '9999-01-01' - TIMESTAMP '0001-01-01') \
         FROM (VALUES (1), (2), (3), (4), (5), (6)) a(n), (VALUES (1), (2), (3), (4), (5), (6)) b(n)"
            .to_owned(),
    ] {
        let message = wrong(&person, &text).await;
        assert!(message.contains("an integer overflowed"), "{text}: {message}");
    }
    // What fits is found, whatever it passes on the way.
    let found = rows(
        &person,
        &format!(
            "SELECT sum(n) AS sum, sum(DISTINCT n) AS one, -1 - 1 + 2 * 3 AS four, \
             sum(g) AS g FROM {numbers}"
        ),
    )
    .await;
    let expected = json!({"sum": 0, "one": 0, "four": 4, "g": 4});
    assert_eq!(found, [expected]);
    let found = rows(
        &person,
        &format!(
            "SELECT g + 1 AS next, count(*) AS n, sum(g) AS sum FROM {numbers} GROUP BY g + 1 ORDER BY g + 1"
        ),
    )
    .await;
    let expected = [
        json!({"next": 2, "n": 2, "sum": 2}),
        json!({"next": 3, "n": 1, "sum": 2}),
    ];
    assert_eq!(found, expected);
    // Names are those of the engine's own arithmetic, and sums of nothing are null.
    let found = rows(&person, "SELECT 1 + 2 * 3, sum(1) FILTER (WHERE false) AS none").await;
    assert_eq!(
        found,
        [json!({"Int64(1) + Int64(2) * Int64(3)": 7, "none": null})]
    );
    let sliding = format!(
        "SELECT sum(g) OVER (ORDER BY n ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS sum FROM {numbers} \
         ORDER BY n"
    );
    let found = rows(&person, &sliding).await;
    assert_eq!(found, [json!({"sum": 2}), json!({"sum": 3}), json!({"sum": 2})]);
    let chained = format!(
        "SELECT g{} AS n FROM {numbers} WHERE g = 1 LIMIT 1",
        " + g".repeat(395)
    );
    assert_eq!(rows(&person, &chained).await, [json!({"n": 396})]);
}

/// Queries within each other, each of which asks whether the next one finds a row.
fn existing(depth: usize) -> String {
    let within = " WHERE EXISTS (SELECT 1 AS one FROM heart_rate".repeat(depth);
    format!("SELECT 1 AS one FROM heart_rate{within}{}", ")".repeat(depth))
}

/// Named queries, each of which asks whether the one before it finds a row: the text itself is not deep.
fn existing_by_name(depth: usize) -> String {
    let next = |name: &str| format!("SELECT 1 AS one FROM heart_rate WHERE EXISTS (SELECT 1 FROM {name})");
    chain(
        depth,
        "SELECT 1 AS one FROM heart_rate",
        next,
        "SELECT one FROM LAST",
    )
}

/// Queries within each other, each of which is asked twice: whether a value is found, and whether it is
/// unknown if it is.
fn unequal(depth: usize) -> String {
    let within = "value NOT IN (SELECT value FROM heart_rate WHERE ".repeat(depth);
    let others = ") OR value = 1".repeat(depth);
    format!("SELECT value FROM heart_rate WHERE {within}value = 2{others}")
}

/// Whether a value is the maximum of what is found beside it, added to itself so many times.
fn doubled_maximum(times: usize) -> String {
    let maximum = "SELECT max(g.value) AS m FROM heart_rate g WHERE g.start_date = h.start_date".to_owned();
    let doubled = |text: String, _| format!("SELECT x.m + x.m AS m FROM ({text}) AS x");
    let found = (0..times).fold(maximum, doubled);
    format!("SELECT 1 AS one FROM heart_rate h WHERE h.value IN ({found})")
}

#[tokio::test]
async fn a_deep_or_huge_query_is_refused_and_the_service_lives() {
    let person = person();
    person
        .record("HeartRate", &heart_rate(id(1), &at("10:00"), 60.0))
        .await
        .upload();
    let joins = |count: usize| {
        let others: Vec<String> = (0..count)
            .map(|n| format!("JOIN heart_rate t{n} ON t.uuid = t{n}.uuid"))
            .collect();
        format!("SELECT count(*) FROM heart_rate t {}", others.join(" "))
    };
    let commas = vec!["heart_rate"; 60]
        .iter()
        .enumerate()
        .map(|(n, t)| format!("{t} t{n}"))
        .collect::<Vec<_>>();
    for text in [
        format!("SELECT '{}'", "x".repeat(70_000)),
        format!("SELECT {}1{}", "(".repeat(3_000), ")".repeat(3_000)),
        format!("SELECT {}1{}", "abs(".repeat(3_000), ")".repeat(3_000)),
        format!("SELECT 1{}", " + 1".repeat(10_000)),
        format!("SELECT {}1", "- ".repeat(10_000)),
        format!("SELECT {}true", "NOT ".repeat(10_000)),
        format!("SELECT 1{}", "::int".repeat(10_000)),
        format!("SELECT a{} FROM t", "[1]".repeat(10_000)),
        format!("SELECT 1{}", " UNION ALL SELECT 1".repeat(3_000)),
        format!(
            "SELECT {} 1 {}",
            "CASE WHEN true THEN".repeat(2_000),
            "END".repeat(2_000)
        ),
        format!(
            "SELECT * FROM {}heart_rate{}",
            "(SELECT * FROM ".repeat(2_000),
            ")".repeat(2_000)
        ),
        joins(51),
        unequal(20),
        doubled_maximum(30),
        format!("SELECT {} FROM heart_rate", vec!["uuid || 'x'"; 65].join(", ")),
        format!("SELECT 1 FROM {}", commas.join(", ")),
    ] {
        wrong(&person, &text).await;
    }
    assert_eq!(
        query(&person, &joins(50)).await.must_be(200).rows(),
        [json!({"count(*)": 1})]
    );
    assert_eq!(rows(&person, &existing(8)).await, [json!({"one": 1})]);
    // What is just allowed is answered or refused, and takes nothing down.
    for text in [
        unequal(2),
        unequal(4),
        doubled_maximum(3),
        format!("SELECT 1{} AS sum", " + 1".repeat(395)),
        format!("SELECT {}true AS truth", "NOT ".repeat(60)),
        format!("SELECT value{} AS sum FROM heart_rate", " + value".repeat(395)),
        format!(
            "SELECT {}value{} AS value FROM heart_rate",
            "abs(".repeat(39),
            ")".repeat(39)
        ),
        format!("SELECT {}1{} AS one", "abs(".repeat(39), ")".repeat(39)),
        format!(
            "SELECT value FROM heart_rate WHERE {} value = 1",
            "value = 2 OR ".repeat(195)
        ),
        joins(12),
    ] {
        let reply = query(&person, &text).await;
        assert!(matches!(reply.status, 200 | 422), "{reply}");
    }
    assert_eq!(rows(&person, "SELECT 1 AS one").await, [json!({"one": 1})]);
    for (text, reason) in [
        (existing(9), "more than 8 subqueries"),
        (existing(39), "more than 8 subqueries"),
        (existing_by_name(12), "more than 8 subqueries"),
        (unequal(8), "those of a subquery counted twice"),
        (doubled_maximum(10), "more than 256 aggregates"),
    ] {
        let message = wrong(&person, &text).await;
        assert!(message.contains(reason), "{text}: {message}");
    }
}

#[tokio::test]
async fn what_grows_upon_itself_is_stopped() {
    let person = person();
    let doubled = |make: &str, first: &str| {
        let mut text = format!("WITH t0 AS (SELECT {first} AS a)");
        for n in 1..60 {
            let _written = write!(text, ", t{n} AS (SELECT {make} AS a FROM t{})", n - 1);
        }
        text + " SELECT a FROM t59"
    };
    for (make, first) in [
        ("concat(a, a)", "'x'"),
        ("a || a", "'x'"),
        ("replace(a, 'x', 'xxxxxxxxxx')", "'x'"),
        ("regexp_replace(a, 'x', 'xxxxxxxxxx', 'g')", "'x'"),
        ("[a, a]", "'x'"),
        ("make_array(a, a)", "'x'"),
        ("array_concat(a, a)", "[1]"),
        ("struct(a, a)", "'x'"),
    ] {
        let reply = query(&person, &doubled(make, first)).await;
        assert_eq!(reply.status, 422, "{make}: {reply}");
    }
    // So is what compares each with each, in which nobody comes in between.
    let numbers: Vec<String> = (0..60).map(|n| format!("({n})")).collect();
    let numbers = numbers.join(", ");
    let tables = ["a", "b", "c"].map(|name| format!("(VALUES {numbers}) {name}(n)"));
    let lists = format!(
        "SELECT array_agg(a.n) AS mine, array_agg(b.n + 100) AS theirs FROM {}",
        tables.join(", ")
    );
    for function in ["array_has_any", "array_has_all"] {
        let text = format!("SELECT {function}(mine, theirs) AS found FROM ({lists})");
        let reply = query(&person, &text).await;
        assert_eq!(reply.status, 422, "{function}: {reply}");
        assert!(reply.text().contains("comparisons"), "{function}: {reply}");
    }
    let found = rows(
        &person,
        "SELECT array_has_any([1, 2], [2, 3]) AS one, array_has_all([1, 2], [2]) AS two, \
         strpos('abc', 'c') AS three, btrim('xxaxx', 'x') AS four, trim('  b ') AS five",
    )
    .await;
    let expected = json!({"one": true, "two": true, "three": 3, "four": "a", "five": "b"});
    assert_eq!(found, [expected]);
}

/// `count` queries after each other, each made of the name of the one before.
fn chain(count: usize, first: &str, next: impl Fn(&str) -> String, last: &str) -> String {
    let mut text = format!("WITH t0 AS ({first})");
    for n in 1..=count {
        let _written = write!(text, ", t{n} AS ({})", next(&format!("t{}", n - 1)));
    }
    format!("{text} {}", last.replace("LAST", &format!("t{count}")))
}

#[tokio::test]
async fn what_stands_behind_a_name_counts_as_often_as_the_name_is_there() {
    let person = person();
    person
        .record("HeartRate", &heart_rate(id(1), &at("10:00"), 60.0))
        .await
        .upload();
    let value = "SELECT value AS a FROM heart_rate";
    let all = "SELECT count(*) AS n FROM LAST WHERE a > 1";
    let both = |name: &str| format!("SELECT * FROM {name} UNION ALL SELECT * FROM {name}");
    let joined = |name: &str| format!("SELECT x.a FROM {name} x JOIN {name} y ON x.a = y.a");
    let added = |name: &str| format!("SELECT a + a AS a FROM {name}");
    let grouped = |name: &str| format!("SELECT a * a AS a FROM {name} GROUP BY a * a");
    let chosen = |name: &str| format!("SELECT CASE WHEN a > 0 THEN a ELSE -a END AS a FROM {name}");
    let inner = |name: &str| {
        format!("SELECT (SELECT max(a) FROM {name}) + (SELECT min(a) FROM {name}) AS a FROM heart_rate")
    };
    let within = |name: &str| {
        format!("SELECT a FROM {name} WHERE a IN (SELECT a FROM {name}) AND EXISTS (SELECT 1 FROM {name})")
    };
    for many in [
        chain(24, value, both, all),
        chain(24, value, joined, all),
        chain(40, value, added, all),
        chain(40, value, grouped, all),
        chain(24, value, both, "SELECT (SELECT count(*) FROM LAST) AS n"),
        chain(24, value, both, "SELECT 1 AS one"),
        chain(40, value, chosen, all),
        chain(16, value, inner, all),
        chain(16, value, within, all),
    ] {
        let message = wrong(&person, &many).await;
        assert!(message.contains("once each name stands for"), "{message}");
    }
    // A few times is what names are for.
    for (few, n) in [
        (chain(5, value, both, all), 32),
        (chain(3, value, joined, all), 1),
        (chain(8, value, added, all), 1),
        (chain(4, value, chosen, all), 1),
        (chain(2, value, inner, all), 1),
        (chain(2, value, within, all), 1),
        (
            chain(40, value, |name| format!("SELECT a + 1 AS a FROM {name}"), all),
            1,
        ),
    ] {
        assert_eq!(rows(&person, &few).await, [json!({"n": n})], "{few}");
    }
}

#[tokio::test]
async fn a_body_is_what_it_is_documented_to_be() {
    let person = person();
    for (body, place) in [
        (json!({}), "body.query"),
        (json!({"query": 1}), "body.query"),
        (json!({"query": "SELECT 1", "more": 1}), "body.more"),
        (json!({"query": "SELECT '\u{0}'"}), "body.query"),
        (json!({"query": "SELECT 1", "output": 5}), "body.output"),
        (json!({"query": "SELECT 1", "output": ["csv"]}), "body.output"),
        (json!({"query": "SELECT 1", "output": "xml"}), "body.output"),
    ] {
        let reply = person.post(SQL, &body).await;
        assert_eq!(reply.faults(), [place], "{body}");
        let message = reply.json()["detail"][0]["msg"].as_str().unwrap().to_owned();
        assert!(
            place != "body.output" || message.contains("expected one of ndjson, jstable"),
            "{body}: {message}"
        );
    }
    person.get(SQL).await.must_be(405);
}

/// Each of them would be written twice as often as the one around it.
#[tokio::test]
async fn what_the_optimizer_writes_twice_is_not_nested_deep() {
    let person = person();
    let nested = |depth: usize, function: &str| {
        let opened = format!("{function}(").repeat(depth);
        let closed = ", 1.5)".repeat(depth);
        format!("SELECT count(*) AS n FROM heart_rate WHERE {opened}value{closed} > 2")
    };
    for function in ["coalesce", "nvl", "ifnull"] {
        let message = wrong(&person, &nested(20, function)).await;
        assert!(
            message.contains("give coalesce all of its values at once"),
            "{message}"
        );
    }
    assert_eq!(rows(&person, &nested(5, "coalesce")).await, [json!({"n": 0})]);
    let (opened, closed) = (
        "CASE WHEN ".repeat(20),
        " THEN value > 3 ELSE value > 2 END".repeat(20),
    );
    let truths = format!("SELECT value FROM heart_rate WHERE {opened}value > 1{closed}");
    let message = wrong(&person, &truths).await;
    assert!(
        message.contains("what BETWEEN, coalesce, nvl and CASE look at"),
        "{message}"
    );
    let chosen = ["coalesce(value, 1.5) AS value"; 16];
    let tables = chosen.iter().fold("heart_rate".to_owned(), |table, chosen| {
        format!("(SELECT {chosen} FROM {table})")
    });
    let message = wrong(&person, &format!("SELECT value FROM {tables} WHERE value > 2")).await;
    assert!(
        message.contains("give coalesce all of its values at once"),
        "{message}"
    );
}
