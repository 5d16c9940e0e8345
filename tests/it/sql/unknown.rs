//! A comparison with null is neither true nor false, wherever it stands: against a model that knows that.

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use super::{SQL, alike, rows, wrong};
use crate::harness::{Person, heart_rate, id, instant, person, texts};

const CASES: usize = 300;
/// The values that are recorded; `n` is null where one is zero.
const RECORDED: [i64; 8] = [0, 1, 2, 3, 4, 5, 6, 0];

/// Conditions on `n`.
#[derive(Clone, Debug)]
enum Condition {
    Compared(Operator, i64),
    Listed(bool, Vec<Option<i64>>),
    /// Equal to an item of an array.
    Held(Vec<Option<i64>>),
    /// Written like one of these, by a regular expression.
    Written(bool, Vec<i64>),
    /// `[NOT] IN` the rows.
    Found(bool, Rows),
    /// Compared with `ANY` or `ALL` of the rows.
    Quantified(Operator, bool, Rows),
    Not(Box<Self>),
    Both(Box<Self>, Box<Self>),
    Either(Box<Self>, Box<Self>),
    IsNull(Box<Self>),
    IsNotTrue(Box<Self>),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Operator {
    Equal,
    Unequal,
    Less,
    AtLeast,
}

/// The recorded values of at least `from`, of which one may be null.
#[derive(Clone, Copy, Debug)]
struct Rows {
    from: i64,
    null: i64,
}

impl Operator {
    pub(super) const fn text(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::Unequal => "<>",
            Self::Less => "<",
            Self::AtLeast => ">=",
        }
    }

    pub(super) fn holds(self, one: Option<i64>, other: Option<i64>) -> Option<bool> {
        let (one, other) = (one?, other?);
        Some(match self {
            Self::Equal => one == other,
            Self::Unequal => one != other,
            Self::Less => one < other,
            Self::AtLeast => one >= other,
        })
    }
}

impl Rows {
    fn text(self) -> String {
        format!(
            "(SELECT nullif(value, {}) FROM heart_rate WHERE value >= {})",
            self.null, self.from
        )
    }

    fn values(self) -> impl Iterator<Item = Option<i64>> {
        let values = RECORDED.into_iter().filter(move |value| *value >= self.from);
        values.map(move |value| (value != self.null).then_some(value))
    }
}

pub(super) fn not(truth: Option<bool>) -> Option<bool> {
    truth.map(|truth| !truth)
}

pub(super) fn either(truths: impl IntoIterator<Item = Option<bool>>) -> Option<bool> {
    let mut found = Some(false);
    for truth in truths {
        match truth {
            Some(true) => return Some(true),
            None => found = None,
            Some(false) => {}
        }
    }
    found
}

pub(super) fn all(truths: impl IntoIterator<Item = Option<bool>>) -> Option<bool> {
    not(either(truths.into_iter().map(not)))
}

impl Condition {
    fn text(&self) -> String {
        let negation = |negated: &bool| if *negated { "NOT " } else { "" };
        let listed = |values: &[Option<i64>]| {
            let written = |value: &Option<i64>| value.map_or("NULL".to_owned(), |value| value.to_string());
            let values: Vec<String> = values.iter().map(written).collect();
            values.join(", ")
        };
        match self {
            Self::Compared(op, value) => format!("n {} {value}", op.text()),
            Self::Listed(negated, values) => format!("n {}IN ({})", negation(negated), listed(values)),
            Self::Held(values) => format!("n = ANY (ARRAY[{}])", listed(values)),
            Self::Written(negated, values) => {
                let values: Vec<String> = values.iter().map(i64::to_string).collect();
                let op = if *negated { "!~" } else { "~" };
                format!(
                    "CAST(CAST(n AS BIGINT) AS VARCHAR) {op} '^({})$'",
                    values.join("|")
                )
            }
            Self::Found(negated, rows) => format!("n {}IN {}", negation(negated), rows.text()),
            Self::Quantified(op, all, rows) => {
                format!(
                    "n {} {}{}",
                    op.text(),
                    if *all { "ALL" } else { "ANY" },
                    rows.text()
                )
            }
            Self::Not(inner) => format!("NOT ({})", inner.text()),
            Self::Both(one, other) => format!("({} AND {})", one.text(), other.text()),
            Self::Either(one, other) => format!("({} OR {})", one.text(), other.text()),
            Self::IsNull(inner) => format!("({}) IS NULL", inner.text()),
            Self::IsNotTrue(inner) => format!("({}) IS NOT TRUE", inner.text()),
        }
    }

    fn holds(&self, n: Option<i64>) -> Option<bool> {
        let negated_if = |negated: bool, truth| if negated { not(truth) } else { truth };
        let equals = |value| Operator::Equal.holds(n, value);
        match self {
            Self::Compared(op, value) => op.holds(n, Some(*value)),
            Self::Listed(negated, values) => {
                negated_if(*negated, either(values.iter().map(|value| equals(*value))))
            }
            Self::Held(values) => either(values.iter().map(|value| equals(*value))),
            Self::Written(negated, values) => {
                negated_if(*negated, either(values.iter().map(|value| equals(Some(*value)))))
            }
            Self::Found(negated, rows) => negated_if(*negated, either(rows.values().map(equals))),
            Self::Quantified(op, every, rows) => {
                let compared = rows.values().map(|value| op.holds(n, value));
                if *every { all(compared) } else { either(compared) }
            }
            Self::Not(inner) => not(inner.holds(n)),
            Self::Both(one, other) => all([one.holds(n), other.holds(n)]),
            Self::Either(one, other) => either([one.holds(n), other.holds(n)]),
            Self::IsNull(inner) => Some(inner.holds(n).is_none()),
            Self::IsNotTrue(inner) => Some(inner.holds(n) != Some(true)),
        }
    }
}

pub(super) fn operators() -> impl Strategy<Value = Operator> {
    prop_oneof![
        Just(Operator::Equal),
        Just(Operator::Unequal),
        Just(Operator::Less),
        Just(Operator::AtLeast),
    ]
}

fn conditions() -> impl Strategy<Value = Condition> {
    let rows = || (0_i64..9, 0_i64..9).prop_map(|(from, null)| Rows { from, null });
    let listed = prop::collection::vec(prop::option::weighted(0.9, 0_i64..8), 1..7);
    // An array of nothing but null has no type.
    let held = (
        0_i64..8,
        prop::collection::vec(prop::option::weighted(0.9, 0_i64..8), 0..6),
    );
    let written = prop::collection::vec(0_i64..8, 1..7);
    let leaf = prop_oneof![
        (operators(), 0_i64..8).prop_map(|(op, value)| Condition::Compared(op, value)),
        (any::<bool>(), listed).prop_map(|(negated, values)| Condition::Listed(negated, values)),
        held.prop_map(|(first, rest)| {
            let values = std::iter::once(Some(first)).chain(rest);
            Condition::Held(values.collect())
        }),
        (any::<bool>(), written).prop_map(|(negated, values)| Condition::Written(negated, values)),
        (any::<bool>(), rows()).prop_map(|(negated, rows)| Condition::Found(negated, rows)),
        (operators(), any::<bool>(), rows()).prop_map(|(op, all, rows)| Condition::Quantified(op, all, rows)),
    ];
    leaf.prop_recursive(3, 8, 2, |inner| {
        let boxed = || inner.clone().prop_map(Box::new);
        prop_oneof![
            boxed().prop_map(Condition::Not),
            (boxed(), boxed()).prop_map(|(one, other)| Condition::Both(one, other)),
            (boxed(), boxed()).prop_map(|(one, other)| Condition::Either(one, other)),
            boxed().prop_map(Condition::IsNull),
            boxed().prop_map(Condition::IsNotTrue),
        ]
    })
}

async fn recorded() -> Person {
    let person = person();
    let values = RECORDED.into_iter().zip(0..);
    let records: Vec<Value> = values
        .map(|(value, n)| heart_rate(id(n), &instant(n), value as u32))
        .collect();
    person.records("HeartRate", &records).await;
    person
}

#[tokio::test]
async fn what_is_unknown_is_neither_true_nor_false_wherever_it_stands() {
    let person = recorded().await;
    let mut runner = TestRunner::deterministic();
    for case in 0..CASES {
        let condition = conditions().new_tree(&mut runner).unwrap().current();
        let clause = ["WHERE", "JOIN (SELECT 1 AS one) AS o ON"][case % 2];
        let text = format!(
            "SELECT n FROM (SELECT nullif(value, 0) AS n FROM heart_rate) AS t {clause} {} ORDER BY n",
            condition.text()
        );
        let found = rows(&person, &text).await;
        let mut expected: Vec<Option<i64>> = RECORDED
            .iter()
            .map(|value| (*value != 0).then_some(*value))
            .filter(|n| condition.holds(*n) == Some(true))
            .collect();
        expected.sort_by_key(|n| n.unwrap_or(i64::MAX));
        let found: Vec<Option<i64>> = found
            .iter()
            .map(|row| row["n"].as_f64().map(|n| n as i64))
            .collect();
        assert_eq!(found, expected, "{text}");
    }
}

#[tokio::test]
async fn lists_that_have_nothing_in_common_leave_null_unknown() {
    let person = recorded().await;
    for (condition, expected) in [
        ("NOT (n IN (1, 4) AND n IN (2, 3))", json!(6)),
        ("(n IN (1, 2) AND n IN (3, -5)) IS NULL", json!(2)),
        ("NOT ((n = 1 OR n = 4) AND (n = 2 OR n = 3))", json!(6)),
        ("((n = 1 OR n = 4) AND n NOT IN (1, 4)) IS NULL", json!(2)),
        (
            "(NOT (n <> 1 AND n <> 4) AND NOT (n <> 2 AND n <> 3)) IS NULL",
            json!(2),
        ),
        ("NOT (n = ANY (ARRAY[1, 4]) AND n = ANY (ARRAY[2, 3]))", json!(6)),
    ] {
        let text = format!(
            "SELECT count(*) AS kept FROM (SELECT nullif(value, 0) AS n FROM heart_rate) AS t \
             WHERE {condition}"
        );
        assert_eq!(rows(&person, &text).await, [json!({"kept": expected})], "{text}");
        // The condition says the same as a value.
        let text = format!(
            "SELECT sum(CASE WHEN kept THEN 1 ELSE 0 END) AS kept FROM (SELECT {condition} AS kept FROM \
             (SELECT nullif(value, 0) AS n FROM heart_rate) AS t) AS u"
        );
        assert_eq!(rows(&person, &text).await, [json!({"kept": expected})], "{text}");
    }
}

#[tokio::test]
async fn lists_that_meet_forget_neither_null_nor_columns() {
    let person = recorded().await;
    let numbers = "(VALUES (1, 3), (2, NULL), (3, 3), (NULL, 1)) AS v(c, d)";
    for (condition, expected) in [
        ("c IN (1, 2) AND c NOT IN (1, NULL)", 0),
        ("c NOT IN (1, NULL) AND c IN (1, 2)", 0),
        ("c IN (1, 2) AND NOT (c IN (1, NULL))", 0),
        ("c IN (1, 2) AND NOT (c = 1 OR c = NULL)", 0),
        ("c IN (1, 2, 3, 4, 5) AND c NOT IN (1, NULL, 7, 8)", 0),
        ("NOT (c IN (1, 2) AND c NOT IN (1, NULL))", 2),
        ("c IN (1, 2) AND c NOT IN (1, d)", 0),
        ("c IN (1, 2) AND c NOT IN (2, d)", 1),
        ("c IN (1, d, 5, 6) AND c NOT IN (3, 5, 6, 7)", 1),
        ("c IN (d, 5, 6, 7) AND c IN (3, 5, 6, 7)", 1),
        ("c NOT IN (1, 5, 6, 7) OR c NOT IN (2, 8, 9, 10)", 3),
        ("c NOT IN (1, 5, 6, NULL) OR c NOT IN (2, 8, 9, 10)", 2),
        ("c NOT IN (1, 5, 6, 7) OR (c NOT IN (2, 8, 9, 10) AND true)", 3),
        ("c NOT IN (5, NULL) AND c NOT IN (6, 7)", 0),
        ("c IN (1, NULL) AND c IN (2, NULL)", 0),
        ("c IN (1, NULL) OR c IN (2, NULL)", 2),
    ] {
        let text = format!("SELECT count(*) AS kept FROM {numbers} WHERE {condition}");
        assert_eq!(rows(&person, &text).await, [json!({"kept": expected})], "{text}");
    }
    // Texts, parameters, and lists that meet only once names are replaced by what stands behind them.
    for (query, parameters, expected) in [
        (
            "SELECT count(*) AS kept FROM (VALUES ('a'), ('b')) AS v(c) WHERE c IN ('a', 'b') \
             AND c NOT IN ('a', NULL)",
            json!([]),
            0,
        ),
        (
            "SELECT count(*) AS kept FROM (VALUES (1), (2)) AS v(c) WHERE c IN (1, 2) AND c NOT IN ($1, $2)",
            json!([1, null]),
            0,
        ),
        (
            "SELECT count(*) AS kept FROM (SELECT c IN (1, 2, 3, 4) AS p, c IN (5, 6, 7, 8) AS q \
             FROM (VALUES (1), (NULL)) AS v(c)) AS w WHERE NOT (p AND q)",
            json!([]),
            1,
        ),
        (
            "SELECT count(*) AS kept FROM (SELECT c IN (1, 2, 3, 4) AS p FROM (VALUES (1), (NULL)) AS v(c)) \
             AS w WHERE NOT (p AND NOT p)",
            json!([]),
            1,
        ),
        (
            "SELECT count(*) AS kept FROM (SELECT c IN (1, 2, 3, 4) AS p FROM (VALUES (1), (NULL)) AS v(c) \
             GROUP BY c IN (1, 2, 3, 4)) AS w WHERE (p AND NOT p) IS NULL",
            json!([]),
            1,
        ),
        (
            "WITH w AS (SELECT c FROM (VALUES (1), (2)) AS v(c) WHERE c IN (1, 2, 3, 4)) \
             SELECT count(*) AS kept FROM w WHERE c NOT IN (1, NULL, 5, 6)",
            json!([]),
            0,
        ),
    ] {
        let body = json!({"query": query, "parameters": parameters});
        let found = person.post(SQL, &body).await.must_be(200).rows();
        assert_eq!(found, [json!({"kept": expected})], "{query}");
    }
}

#[tokio::test]
async fn a_long_list_is_compared_with_as_a_short_one_is() {
    let person = person();
    let long: Vec<Option<i32>> = (100..5_100).map(Some).collect();
    let with_null: Vec<Option<i32>> = long.iter().copied().chain([None]).collect();
    for (condition, list, expected) in [
        ("c < ANY($1)", &long, 1),
        ("c > ANY($1)", &long, 1),
        ("NOT (c > ANY($1))", &long, 1),
        ("(c > ANY($1)) IS NULL", &long, 1),
        ("(c > ANY($1)) IS NULL", &with_null, 2),
        ("NOT (c > ANY($1))", &with_null, 0),
    ] {
        let text =
            format!("SELECT count(*) AS n FROM (VALUES (5), (9999), (NULL)) AS v(c) WHERE {condition}");
        let body = json!({"query": text, "parameters": [list]});
        let found = person.post(SQL, &body).await.must_be(200).rows();
        assert_eq!(found, [json!({"n": expected})], "{condition}");
    }
}

#[tokio::test]
async fn what_the_optimizer_makes_a_list_of_is_one() {
    let person = person();
    let (numbers, words) = (
        "(VALUES (1), (2), (NULL)) AS v(c)",
        "(VALUES ('foo'), (NULL)) AS v(c)",
    );
    for (rows, condition, parameters, expected) in [
        (
            numbers,
            "NOT (c = ANY($1) AND c = ANY($2))",
            json!([[1, 4], [2, 3]]),
            2,
        ),
        (
            numbers,
            "(c = ANY($1) AND c IN (2, 3, 4, 5)) IS NULL",
            json!([[1, 6]]),
            1,
        ),
        (
            numbers,
            "c IN (1, 2, 3, 4) AND NOT (c = ANY($1))",
            json!([[1, null]]),
            0,
        ),
        (
            numbers,
            "c IN (1, 2, 3, 4) AND NOT (c = ANY($1))",
            json!([[1, 7]]),
            1,
        ),
        (
            numbers,
            "c IN (1, 2, 3, 4) AND c = ANY($1)",
            json!([[1, null]]),
            1,
        ),
        (
            numbers,
            "c IN (1, 2, 3, 4) AND NOT array_has($1, c)",
            json!([[1, null]]),
            0,
        ),
        (
            words,
            "NOT (c ~ '^(foo|bar)$' AND c ~ '^(baz|qux)$')",
            json!([]),
            1,
        ),
        (
            words,
            "NOT (c ~ '^foo$|^bar$' AND c ~ '^baz$|^qux$')",
            json!([]),
            1,
        ),
        (
            words,
            "(c ~ '^(foo|bar)$' AND c IN ('baz', 'qux')) IS NULL",
            json!([]),
            1,
        ),
        (words, "(c ~ '^(foo)$' AND c ~ '^(bar)$') IS NULL", json!([]), 1),
        (words, "c !~ '^(foo|bar)$' OR c !~ '^(baz|qux)$'", json!([]), 1),
        (
            words,
            "NOT (regexp_like(c, '^(foo|bar)$') AND regexp_like(c, '^(baz|qux)$'))",
            json!([]),
            1,
        ),
    ] {
        let query = format!("SELECT count(*) AS kept FROM {rows} WHERE {condition}");
        let body = json!({"query": query, "parameters": parameters});
        let found = person.post(SQL, &body).await.must_be(200).rows();
        assert_eq!(found, [json!({"kept": expected})], "{query}");
    }
}

#[tokio::test]
async fn lists_of_constants_stay_as_they_are_where_rows_are_only_kept() {
    let person = recorded().await;
    for condition in [
        "value IN (1, 2, 3, 4) AND value NOT IN (5, 6, 7, 8)",
        "value IN (1, 2, 3, 4) AND (value = 1 OR value = 2)",
        "unit IN ('a', 'b', 'c', 'd') OR value IN (1, 2, 3, 4)",
        "unit = ANY (ARRAY['a', 'b', 'c', 'd']) AND unit ~ '^(a|b)$'",
        "NOT (unit = ANY (ARRAY['a', 'b', 'c', 'd'])) AND unit !~ '^(e|f)$'",
    ] {
        let text = format!("EXPLAIN SELECT count(*) FROM heart_rate WHERE {condition}");
        let plan = texts(&rows(&person, &text).await, "plan").join("\n");
        assert!(!plan.contains("apart("), "{text}: {plan}");
    }
    let text = "EXPLAIN SELECT count(*) FROM (SELECT value IN (1, 2, 3, 4) AS p FROM heart_rate) AS t \
                WHERE p AND NOT p";
    let plan = texts(&rows(&person, text).await, "plan").join("\n");
    assert!(plan.contains("apart("), "{plan}");
}

#[tokio::test]
async fn what_is_in_no_row_that_it_is_compared_with_is_kept() {
    let person = recorded().await;
    let (outer, inner) = (
        "(VALUES (1, 1), (2, 2), (3, 3), (NULL, 9), (NULL, 0)) AS a(n, t)",
        "(VALUES (1, 1), (5, 2), (NULL, 3), (NULL, 9)) AS e(n, t)",
    );
    for (condition, expected) in [
        (format!("a.n NOT IN (SELECT e.n FROM {inner} WHERE e.t = a.t)"), 2),
        (format!("NOT a.n IN (SELECT e.n FROM {inner} WHERE e.t = a.t)"), 2),
        (
            format!("NOT (a.n = ANY (SELECT e.n FROM {inner} WHERE e.t = a.t))"),
            2,
        ),
        (format!("a.n <> ALL (SELECT e.n FROM {inner} WHERE e.t = a.t)"), 2),
        (format!("a.n NOT IN (SELECT e.n FROM {inner} WHERE e.t < a.t)"), 4),
        (format!("a.n NOT IN (SELECT e.n FROM {inner})"), 0),
        (format!("5 NOT IN (SELECT e.n FROM {inner})"), 0),
        (format!("5 NOT IN (SELECT e.n FROM {inner} WHERE e.n < 5)"), 5),
        (format!("NULL NOT IN (SELECT e.n FROM {inner} WHERE e.n > 5)"), 5),
    ] {
        let text = format!("SELECT count(*) AS kept FROM {outer} WHERE {condition}");
        assert_eq!(rows(&person, &text).await, [json!({"kept": expected})], "{text}");
    }
    let text = "EXPLAIN SELECT count(*) FROM heart_rate WHERE 5 NOT IN (SELECT value FROM heart_rate)";
    let plan = texts(&rows(&person, text).await, "plan").join("\n");
    assert!(plan.contains("fetch=1"), "one row answers for all: {plan}");
    let text = format!(
        "SELECT count(*) AS kept FROM (SELECT a.t FROM {outer} EXCEPT SELECT a.t FROM {outer} \
         WHERE a.n NOT IN (SELECT e.n FROM {inner} WHERE e.t = a.t)) AS r"
    );
    assert_eq!(rows(&person, &text).await, [json!({"kept": 3})]);
}

#[tokio::test]
async fn an_aggregate_of_what_is_found_for_a_row_is_one_row() {
    let person = person();
    let outer = "(VALUES (1, 1), (0, 2), (5, 3), (NULL, 4)) AS a(n, t)";
    let found = "FROM (VALUES (1, 1), (1, 1), (5, 3), (7, 4)) AS e(n, t) WHERE e.t = a.t";
    for (condition, expected) in [
        (format!("a.n IN (SELECT max(e.n) {found})"), 2),
        (format!("a.n NOT IN (SELECT max(e.n) {found})"), 0),
        (format!("NOT (a.n IN (SELECT max(e.n) {found}))"), 0),
        (format!("(a.n IN (SELECT max(e.n) {found})) IS NULL"), 2),
        (format!("a.n IN (SELECT count(*) {found})"), 1),
        (format!("a.n NOT IN (SELECT count(*) {found})"), 2),
        (format!("a.n >= ALL (SELECT count(*) {found})"), 2),
        (format!("a.n < ANY (SELECT count(*) {found})"), 1),
        (format!("a.n IN (SELECT max(e.n) {found} LIMIT 1)"), 2),
        (
            format!("a.n IN (SELECT coalesce(max(e.n), 8) - count(*) - 8 {found})"),
            1,
        ),
        (format!("EXISTS (SELECT max(e.n) {found})"), 4),
        (format!("NOT EXISTS (SELECT max(e.n) {found})"), 0),
        (format!("EXISTS (SELECT 1 {found} HAVING count(*) > 1)"), 1),
        (format!("NOT EXISTS (SELECT 1 {found} HAVING count(*) > 1)"), 3),
        (format!("EXISTS (SELECT 1 {found} HAVING count(*) = 0)"), 1),
        (format!("EXISTS (SELECT 1 {found} HAVING max(e.n) >= a.n)"), 2),
        (format!("EXISTS (SELECT 1 {found} HAVING count(*) <= a.n)"), 2),
        (
            format!("a.n NOT IN (SELECT max(e.n) {found} HAVING count(*) > 0)"),
            1,
        ),
        (format!("a.n IN (SELECT 0 {found} HAVING count(*) = 0)"), 1),
        (
            format!("a.n IN (SELECT x.c FROM (SELECT count(*) AS c {found}) AS x WHERE x.c < 2)"),
            1,
        ),
        // With GROUP BY there is none where nothing is found.
        (format!("a.n NOT IN (SELECT max(e.n) {found} GROUP BY e.t)"), 1),
        (format!("EXISTS (SELECT max(e.n) {found} GROUP BY e.t)"), 3),
    ] {
        let text = format!("SELECT count(*) AS kept FROM {outer} WHERE {condition}");
        assert_eq!(rows(&person, &text).await, [json!({"kept": expected})], "{text}");
    }
    for condition in [
        format!(
            "EXISTS (SELECT 1 FROM (SELECT max(e.n) AS m {found}) AS x JOIN (VALUES (1)) AS f(n) \
             ON f.n = x.m)"
        ),
        format!("a.n IN (SELECT count(*) FROM (SELECT max(e.n) {found}) AS x)"),
        format!("EXISTS (SELECT max(e.n) {found} OFFSET 1)"),
    ] {
        let text = format!("SELECT count(*) AS kept FROM {outer} WHERE {condition}");
        let refused = wrong(&person, &text).await;
        assert!(
            refused.contains("aggregates in a query of their own"),
            "{text}: {refused}"
        );
    }
}

#[tokio::test]
async fn limits_of_what_is_found_for_a_row_count_or_are_refused() {
    let person = person();
    let outer = "(VALUES (1, 1), (2, 2), (3, 3)) AS a(n, t)";
    let inner = "(VALUES (1, 1), (1, 1), (2, 2), (7, 4)) AS e(n, t)";
    for (condition, expected) in [
        (
            format!("EXISTS (SELECT 1 FROM {inner} WHERE e.t = a.t LIMIT 1)"),
            2,
        ),
        (
            format!("EXISTS (SELECT 1 FROM {inner} WHERE e.t = a.t LIMIT 5 OFFSET 0)"),
            2,
        ),
        (
            format!("NOT EXISTS (SELECT 1 FROM {inner} WHERE e.t = a.t LIMIT 1)"),
            1,
        ),
        (
            format!("EXISTS (SELECT 1 FROM (SELECT e.n, e.t FROM {inner} LIMIT 2) AS x WHERE x.t = a.t)"),
            1,
        ),
        (
            format!("a.n NOT IN (SELECT e.n FROM {inner} ORDER BY e.n DESC LIMIT 2)"),
            2,
        ),
        (
            format!("1 NOT IN (SELECT e.n FROM {inner} ORDER BY e.n OFFSET 2)"),
            3,
        ),
    ] {
        let text = format!("SELECT count(*) AS kept FROM {outer} WHERE {condition}");
        assert_eq!(rows(&person, &text).await, [json!({"kept": expected})], "{text}");
    }
    for condition in [
        format!("a.n NOT IN (SELECT e.n FROM {inner} WHERE e.t = a.t OFFSET 1)"),
        format!("a.n NOT IN (SELECT e.n FROM {inner} WHERE e.t = a.t LIMIT 1)"),
        format!("EXISTS (SELECT 1 FROM {inner} WHERE e.t = a.t OFFSET 1)"),
        format!("NOT EXISTS (SELECT 1 FROM {inner} WHERE e.t = a.t LIMIT 1 OFFSET 1)"),
        format!(
            "EXISTS (SELECT 1 FROM (SELECT e.n FROM {inner} WHERE e.t = a.t LIMIT 1) AS x WHERE x.n > 1)"
        ),
    ] {
        let text = format!("SELECT count(*) AS kept FROM {outer} WHERE {condition}");
        let refused = wrong(&person, &text).await;
        assert!(refused.contains("row_number()"), "{text}: {refused}");
    }
}

#[tokio::test]
async fn questions_about_truth_are_columns_like_others() {
    let person = recorded().await;
    for (text, expected) in [
        (
            "SELECT count(*) FILTER (WHERE has_undetermined_duration IS NOT TRUE) AS n, \
             sum(value) FILTER (WHERE has_undetermined_duration IS NOT TRUE) AS sum FROM heart_rate",
            json!([{"n": 8, "sum": 21.0}]),
        ),
        (
            "SELECT sum(CASE WHEN (value > 3) IS TRUE THEN 1 END) AS n, \
             sum(CASE WHEN (value > 3) IS TRUE THEN value END) AS sum FROM heart_rate",
            json!([{"n": 3, "sum": 15.0}]),
        ),
        (
            "SELECT known, count(*) AS n FROM (SELECT (nullif(value, 0) > 3) IS NOT UNKNOWN AS known \
             FROM heart_rate LIMIT 10) AS t GROUP BY known ORDER BY known",
            json!([{"known": false, "n": 2}, {"known": true, "n": 6}]),
        ),
        (
            "SELECT high, count(*) AS n FROM (SELECT (nullif(value, 0) > 3) IS TRUE AS high FROM heart_rate \
             UNION ALL SELECT (nullif(value, 0) > 3) IS NOT FALSE FROM heart_rate) AS t \
             GROUP BY high ORDER BY high",
            json!([{"high": false, "n": 8}, {"high": true, "n": 8}]),
        ),
        (
            "SELECT (value > 3) IS FALSE, max(value) AS most FROM heart_rate GROUP BY (value > 3) IS FALSE \
             ORDER BY 2",
            json!([
                {"heart_rate.value > Int64(3) IS FALSE": true, "most": 3.0},
                {"heart_rate.value > Int64(3) IS FALSE": false, "most": 6.0},
            ]),
        ),
    ] {
        let found = Value::Array(rows(&person, text).await);
        assert!(alike(&found, &expected), "{text}: {found}");
    }
}

#[tokio::test]
async fn subqueries_about_the_row_around_them_are_compared_too() {
    let person = recorded().await;
    for (condition, expected) in [
        (
            "h.value >= ALL (SELECT value FROM heart_rate g WHERE g.value <= h.value)",
            8,
        ),
        (
            "h.value > ALL (SELECT value FROM heart_rate g WHERE g.value > h.value)",
            1,
        ),
        (
            "h.value NOT IN (SELECT value FROM heart_rate g WHERE g.value > h.value) OR h.value = 3",
            8,
        ),
        (
            "(h.value IN (SELECT nullif(value, 0) FROM heart_rate g WHERE g.value < h.value)) IS NULL",
            6,
        ),
        (
            "(h.value = ANY (SELECT value FROM heart_rate g WHERE g.start_date = h.start_date)) IS NOT TRUE",
            0,
        ),
    ] {
        let text = format!("SELECT count(*) AS kept FROM heart_rate h WHERE {condition}");
        assert_eq!(rows(&person, &text).await, [json!({"kept": expected})], "{text}");
    }
}

#[tokio::test]
async fn where_a_subquery_cannot_be_compared_with_it_is_refused() {
    let person = recorded().await;
    for text in [
        "SELECT count(*) FROM heart_rate a LEFT JOIN heart_rate b \
         ON a.value IN (SELECT value FROM heart_rate)",
        "SELECT value IN (SELECT value FROM heart_rate) FROM heart_rate",
        "SELECT value > ANY(SELECT value FROM heart_rate) FROM heart_rate",
        "SELECT 1 FROM heart_rate WHERE (SELECT max(value) FROM heart_rate) NOT IN (SELECT value FROM \
         heart_rate) IS NULL",
    ] {
        let refused = wrong(&person, text).await;
        assert!(refused.contains("quer"), "{refused}");
    }
}
