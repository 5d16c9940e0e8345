//! `IS [NOT] DISTINCT FROM` and `NOT EXISTS` beside other operators, without parentheses: the former against
//! a model that is written as the text is.

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::json;

use super::rows;
use super::unknown::{all, either, not};
use crate::harness::person;

const CASES: usize = 300;

/// The columns of a row: two truth values and a number.
#[derive(Clone, Copy, Debug)]
struct Row {
    f: Option<bool>,
    g: Option<bool>,
    x: Option<i64>,
}

/// Conditions from what binds least to what binds most.
#[derive(Clone, Debug)]
struct Either(Vec<Both>);

#[derive(Clone, Debug)]
struct Both(Vec<Perhaps>);

#[derive(Clone, Debug)]
struct Perhaps {
    negated: bool,
    condition: Distinct,
}

#[derive(Clone, Debug)]
enum Distinct {
    /// A condition, and those that it is distinct from, one after the other.
    Chain(Simple, Vec<(bool, Simple)>),
    Number(bool, i64),
}

#[derive(Clone, Debug)]
enum Simple {
    F,
    G,
    Equal(i64),
    Between(i64, i64),
    Listed(i64),
    Enclosed(Box<Either>),
    Case(Box<[Either; 3]>),
    Exists(Box<Either>),
}

const fn operator(distinct: bool) -> &'static str {
    if distinct {
        "IS DISTINCT FROM"
    } else {
        "IS NOT DISTINCT FROM"
    }
}

impl Either {
    fn text(&self) -> String {
        let parts: Vec<String> = self.0.iter().map(Both::text).collect();
        parts.join(" OR ")
    }

    fn holds(&self, row: Row) -> Option<bool> {
        either(self.0.iter().map(|part| part.holds(row)))
    }
}

impl Both {
    fn text(&self) -> String {
        let parts: Vec<String> = self.0.iter().map(Perhaps::text).collect();
        parts.join(" AND ")
    }

    fn holds(&self, row: Row) -> Option<bool> {
        all(self.0.iter().map(|part| part.holds(row)))
    }
}

impl Perhaps {
    fn text(&self) -> String {
        format!(
            "{}{}",
            if self.negated { "NOT " } else { "" },
            self.condition.text()
        )
    }

    fn holds(&self, row: Row) -> Option<bool> {
        let truth = self.condition.holds(row);
        if self.negated { not(truth) } else { truth }
    }
}

impl Distinct {
    fn text(&self) -> String {
        match self {
            Self::Chain(first, others) => others.iter().fold(first.text(), |text, (distinct, other)| {
                format!("{text} {} {}", operator(*distinct), other.text())
            }),
            Self::Number(distinct, value) => format!("x {} {value} + 1", operator(*distinct)),
        }
    }

    fn holds(&self, row: Row) -> Option<bool> {
        match self {
            Self::Chain(first, others) => others.iter().fold(first.holds(row), |truth, (distinct, other)| {
                Some((truth != other.holds(row)) == *distinct)
            }),
            Self::Number(distinct, value) => Some((row.x != Some(value + 1)) == *distinct),
        }
    }
}

impl Simple {
    fn text(&self) -> String {
        match self {
            Self::F => "f".to_owned(),
            Self::G => "g".to_owned(),
            Self::Equal(value) => format!("x = {value}"),
            Self::Between(from, to) => format!("x BETWEEN {from} AND {to}"),
            Self::Listed(value) => format!("x IN ({value}, NULL)"),
            Self::Enclosed(inner) => format!("({})", inner.text()),
            Self::Case(parts) => {
                let [when, then, otherwise] = parts.as_ref();
                format!(
                    "CASE WHEN {} THEN {} ELSE {} END",
                    when.text(),
                    then.text(),
                    otherwise.text()
                )
            }
            Self::Exists(inner) => {
                format!(
                    "(EXISTS (SELECT 1 FROM (VALUES (1)) AS o(n) WHERE n = 1 AND ({})))",
                    inner.text()
                )
            }
        }
    }

    fn holds(&self, row: Row) -> Option<bool> {
        match self {
            Self::F => row.f,
            Self::G => row.g,
            Self::Equal(value) => row.x.map(|x| x == *value),
            Self::Between(from, to) => row.x.map(|x| (*from..=*to).contains(&x)),
            Self::Listed(value) => (row.x == Some(*value)).then_some(true),
            Self::Enclosed(inner) => inner.holds(row),
            Self::Case(parts) => {
                let [when, then, otherwise] = parts.as_ref();
                if when.holds(row) == Some(true) {
                    then.holds(row)
                } else {
                    otherwise.holds(row)
                }
            }
            Self::Exists(inner) => Some(inner.holds(row) == Some(true)),
        }
    }
}

/// Conditions within others at most `depth` times, with subqueries or without.
fn conditions(depth: usize, subqueries: bool) -> BoxedStrategy<Either> {
    let mut simple = vec![
        Just(Simple::F).boxed(),
        Just(Simple::G).boxed(),
        (1_i64..4).prop_map(Simple::Equal).boxed(),
        (0_i64..3, 1_i64..4)
            .prop_map(|(from, to)| Simple::Between(from, to))
            .boxed(),
        (1_i64..4).prop_map(Simple::Listed).boxed(),
    ];
    if depth > 0 {
        let inner = || conditions(depth - 1, subqueries);
        simple.extend([
            inner()
                .prop_map(|inner| Simple::Enclosed(Box::new(inner)))
                .boxed(),
            [inner(), inner(), inner()]
                .prop_map(|parts| Simple::Case(Box::new(parts)))
                .boxed(),
        ]);
    }
    if subqueries {
        // Where a subquery stands, others are compared with its truth value.
        let inner = conditions(0, false).prop_map(|inner| Simple::Exists(Box::new(inner)));
        simple.push(inner.boxed());
    }
    let simple = proptest::strategy::Union::new(simple);
    let others = prop::collection::vec((any::<bool>(), simple.clone()), 0..3);
    let distinct = prop_oneof![
        3 => (simple, others).prop_map(|(first, others)| Distinct::Chain(first, others)),
        1 => (any::<bool>(), 0_i64..3).prop_map(|(distinct, value)| Distinct::Number(distinct, value)),
    ];
    let perhaps = (prop::bool::weighted(0.25), distinct)
        .prop_map(|(negated, condition)| Perhaps { negated, condition });
    let both = prop::collection::vec(perhaps, 1..3).prop_map(Both);
    prop::collection::vec(both, 1..3).prop_map(Either).boxed()
}

fn all_rows() -> Vec<Row> {
    let truths = [Some(true), Some(false), None];
    let mut all = Vec::new();
    for f in truths {
        for g in truths {
            all.extend([Some(1), Some(2), Some(3), None].map(|x| Row { f, g, x }));
        }
    }
    all
}

/// The rows as a table `v`.
fn table() -> String {
    fn written<T: ToString>(value: Option<T>) -> String {
        value.map_or("NULL".to_owned(), |value| value.to_string())
    }
    let rows: Vec<String> = all_rows()
        .iter()
        .enumerate()
        .map(|(id, row)| {
            format!(
                "({id}, {}, {}, {})",
                written(row.f),
                written(row.g),
                written(row.x)
            )
        })
        .collect();
    format!("(VALUES {}) AS v(id, f, g, x)", rows.join(", "))
}

#[tokio::test]
async fn what_is_distinct_ends_where_a_comparison_ends() {
    let person = person();
    let mut runner = TestRunner::deterministic();
    for case in 0..CASES {
        let condition = conditions(case % 3, false)
            .new_tree(&mut runner)
            .unwrap()
            .current();
        let expected: Vec<usize> = all_rows()
            .into_iter()
            .enumerate()
            .filter_map(|(id, row)| (condition.holds(row) == Some(true)).then_some(id))
            .collect();
        let text = format!(
            "SELECT id FROM {} WHERE {} ORDER BY id",
            table(),
            condition.text()
        );
        let found: Vec<usize> = rows(&person, &text)
            .await
            .iter()
            .map(|row| row["id"].as_u64().unwrap() as usize)
            .collect();
        assert_eq!(found, expected, "{text}");
    }
}

#[tokio::test]
async fn what_is_distinct_is_so_beside_a_subquery() {
    let person = person();
    let mut runner = TestRunner::deterministic();
    for _ in 0..60 {
        let inner = conditions(0, true).new_tree(&mut runner).unwrap().current();
        let expected = all_rows()
            .into_iter()
            .filter(|row| inner.holds(*row) == Some(true))
            .count();
        let text = format!("SELECT count(*) AS n FROM {} WHERE {}", table(), inner.text());
        assert_eq!(rows(&person, &text).await, [json!({"n": expected})], "{text}");
    }
}

#[tokio::test]
async fn what_contains_a_list_binds_more() {
    let person = person();
    let table = "(VALUES (true, make_array(1)), (false, make_array(2)), (NULL, make_array(1))) AS v(f, l)";
    for (condition, expected) in [
        ("f IS DISTINCT FROM l @> make_array(1)", 1),
        ("f IS NOT DISTINCT FROM l @> make_array(1)", 2),
        ("l @> make_array(1) IS DISTINCT FROM f", 1),
        ("f IS NOT DISTINCT FROM make_array(1) <@ l AND f", 1),
        ("NOT f IS DISTINCT FROM l @> make_array(1)", 2),
        ("f IS DISTINCT FROM l @> make_array(1) IS DISTINCT FROM true", 2),
        ("(f IS DISTINCT FROM (l @> make_array(1)))", 1),
    ] {
        let text = format!("SELECT count(*) AS n FROM {table} WHERE {condition}");
        assert_eq!(rows(&person, &text).await, [json!({"n": expected})], "{text}");
    }
}

#[tokio::test]
async fn what_is_distinct_may_stand_anywhere() {
    let person = person();
    let table = "(VALUES (true, 1), (true, 2), (false, 1), (NULL, NULL)) AS v(f, x)";
    for (text, expected) in [
        (
            format!("SELECT count(*) AS n FROM {table} WHERE f IS NOT DISTINCT FROM false AND false"),
            0,
        ),
        (
            format!("SELECT count(*) AS n FROM {table} WHERE x IS DISTINCT FROM 1 AND x IS NOT NULL"),
            1,
        ),
        (
            format!("SELECT count(*) AS n FROM {table} WHERE x is not /* at all */ distinct\nfrom 1 or f"),
            3,
        ),
        (
            format!("SELECT count(*) FILTER (WHERE x IS DISTINCT FROM 1 AND f) AS n FROM {table}"),
            1,
        ),
        (
            format!(
                "SELECT count(*) AS n FROM {table} JOIN (VALUES (1)) AS w(y) \
                 ON x IS NOT DISTINCT FROM y AND f"
            ),
            1,
        ),
        (
            format!(
                "SELECT count(*) AS n FROM {table} WHERE x IS DISTINCT FROM (SELECT 1) \
                 AND x IN (SELECT y FROM (VALUES (1), (2)) AS w(y) WHERE y IS DISTINCT FROM 1 AND y > 0)"
            ),
            1,
        ),
        (
            format!("SELECT sum(CASE WHEN x IS DISTINCT FROM 1 OR f THEN 1 END) AS n FROM {table}"),
            3,
        ),
    ] {
        assert_eq!(rows(&person, &text).await, [json!({"n": expected})], "{text}");
    }
    let chained = vec!["x IS DISTINCT FROM 7"; 150].join(" AND ");
    let text = format!("SELECT count(*) AS n FROM {table} WHERE {chained}");
    assert_eq!(rows(&person, &text).await, [json!({"n": 4})]);
}

#[tokio::test]
async fn not_exists_denies_all_that_binds_more_than_not() {
    let person = person();
    let there = "EXISTS (SELECT 1 FROM (VALUES (1)) AS o(n) WHERE n = 1)";
    let nowhere = "EXISTS (SELECT 1 FROM (VALUES (1)) AS o(n) WHERE n = 2)";
    for (condition, expected) in [
        (format!("NOT {there} IS NULL"), 3),
        (format!("NOT {there} IS NOT NULL"), 0),
        (format!("(NOT {there}) IS NOT NULL"), 3),
        (format!("NOT {there} IN (true, false)"), 0),
        (format!("(NOT {there}) IN (true, false)"), 3),
        (format!("NOT {there} IS NOT DISTINCT FROM f"), 2),
        (format!("(NOT {there}) IS NOT DISTINCT FROM f"), 1),
        (format!("NOT {there} = f IS NULL"), 2),
        (format!("f AND NOT {nowhere} IS NULL"), 1),
        (format!("NOT {nowhere} AND f"), 1),
        (format!("NOT {there} OR f"), 1),
        (format!("CASE WHEN NOT {there} IS NULL THEN f END"), 1),
        (
            format!("EXISTS (SELECT 1 FROM (VALUES (1)) AS p(m) WHERE NOT {there} IS NULL) AND f"),
            1,
        ),
    ] {
        let text =
            format!("SELECT count(*) AS n FROM (VALUES (true), (false), (NULL)) AS v(f) WHERE {condition}");
        assert_eq!(rows(&person, &text).await, [json!({"n": expected})], "{text}");
    }
}
