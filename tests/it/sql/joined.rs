//! Joins of all kinds of a table with itself, whose columns have the same names on both sides: against a
//! model that tries each row with each.

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use super::unknown::{Operator, all, either, not, operators};
use super::{alike, rows};
use crate::harness::{Person, heart_rate, id, instant, person};

const CASES: usize = 300;
/// The recorded values of `n` and `m`.
const RECORDED: [[Option<i64>; 2]; 9] = [
    [Some(1), Some(1)],
    [Some(1), Some(2)],
    [Some(2), Some(1)],
    [Some(2), None],
    [Some(3), Some(2)],
    [Some(3), Some(3)],
    [None, Some(1)],
    [None, None],
    [Some(4), Some(4)],
];

/// The columns of a pair of rows, any of which may be missing.
type Pair = [Option<i64>; 4];

const COLUMNS: [&str; 4] = ["a.n", "a.m", "b.n", "b.m"];

#[derive(Clone, Copy, Debug)]
enum Operand {
    Column(usize),
    Constant(i64),
}

#[derive(Clone, Debug)]
enum Condition {
    Compared(Operand, Operator, Operand),
    IsNull(Operand),
    Not(Box<Self>),
    Both(Box<Self>, Box<Self>),
    Either(Box<Self>, Box<Self>),
}

impl Operand {
    fn text(self) -> String {
        match self {
            Self::Column(place) => COLUMNS[place].to_owned(),
            Self::Constant(value) => value.to_string(),
        }
    }

    fn value(self, pair: &Pair) -> Option<i64> {
        match self {
            Self::Column(place) => pair[place],
            Self::Constant(value) => Some(value),
        }
    }
}

impl Condition {
    fn text(&self) -> String {
        match self {
            Self::Compared(one, op, other) => format!("{} {} {}", one.text(), op.text(), other.text()),
            Self::IsNull(operand) => format!("{} IS NULL", operand.text()),
            Self::Not(inner) => format!("NOT ({})", inner.text()),
            Self::Both(one, other) => format!("({} AND {})", one.text(), other.text()),
            Self::Either(one, other) => format!("({} OR {})", one.text(), other.text()),
        }
    }

    fn holds(&self, pair: &Pair) -> Option<bool> {
        match self {
            Self::Compared(one, op, other) => op.holds(one.value(pair), other.value(pair)),
            Self::IsNull(operand) => Some(operand.value(pair).is_none()),
            Self::Not(inner) => not(inner.holds(pair)),
            Self::Both(one, other) => all([one.holds(pair), other.holds(pair)]),
            Self::Either(one, other) => either([one.holds(pair), other.holds(pair)]),
        }
    }
}

fn conditions() -> impl Strategy<Value = Condition> {
    let operand = || {
        prop_oneof![
            3 => (0_usize..4).prop_map(Operand::Column),
            1 => (1_i64..5).prop_map(Operand::Constant),
        ]
    };
    let leaf = prop_oneof![
        4 => (operand(), operators(), operand())
            .prop_map(|(one, op, other)| Condition::Compared(one, op, other)),
        1 => (0_usize..4).prop_map(|place| Condition::IsNull(Operand::Column(place))),
    ];
    leaf.prop_recursive(2, 5, 2, |inner| {
        let boxed = || inner.clone().prop_map(Box::new);
        prop_oneof![
            boxed().prop_map(Condition::Not),
            (boxed(), boxed()).prop_map(|(one, other)| Condition::Both(one, other)),
            (boxed(), boxed()).prop_map(|(one, other)| Condition::Either(one, other)),
        ]
    })
}

/// The rows of a join: `keeps` says of each side whether its rows stay that match nothing.
fn joined(on: &Condition, keeps: [bool; 2]) -> Vec<Pair> {
    let matches = |[n, m]: [Option<i64>; 2], [other_n, other_m]: [Option<i64>; 2]| {
        let pair = [n, m, other_n, other_m];
        (on.holds(&pair) == Some(true)).then_some(pair)
    };
    let mut pairs = Vec::new();
    for left in RECORDED {
        let found: Vec<Pair> = RECORDED
            .into_iter()
            .filter_map(|right| matches(left, right))
            .collect();
        if found.is_empty() && keeps[0] {
            pairs.push([left[0], left[1], None, None]);
        }
        pairs.extend(found);
    }
    for right in RECORDED {
        let is_found = RECORDED.into_iter().any(|left| matches(left, right).is_some());
        if !is_found && keeps[1] {
            pairs.push([None, None, right[0], right[1]]);
        }
    }
    pairs
}

async fn recorded() -> Person {
    let person = person();
    let whole = json!({"type": ["integer", "null"]});
    let schema = json!({"properties": {"n": whole, "m": whole}});
    let pairs = json!({"name": "Pairs", "record_spec": {"schema": schema}});
    let pairs = person.define("Event", &pairs).await;
    let records = RECORDED.into_iter().zip(0..).map(|([n, m], number)| {
        let mut record = json!({"id": id(number), "start_time": instant(number)});
        for (name, value) in [("n", n), ("m", m)] {
            if let Some(value) = value {
                record[name] = json!(value);
            }
        }
        record
    });
    person.records(&pairs, &records.collect::<Vec<Value>>()).await;
    person
}

async fn found(person: &Person, text: &str) -> Vec<Pair> {
    let found = rows(person, text).await;
    let column = |row: &Value, name: &str| row[name].as_i64();
    let mut pairs: Vec<Pair> = found
        .iter()
        .map(|row| ["an", "am", "bn", "bm"].map(|name| column(row, name)))
        .collect();
    pairs.sort_unstable();
    pairs
}

#[tokio::test]
async fn each_kind_of_join_has_the_rows_that_match_and_those_that_it_keeps() {
    let person = recorded().await;
    let mut runner = TestRunner::deterministic();
    let kinds = [
        ("JOIN", [false, false]),
        ("LEFT JOIN", [true, false]),
        ("RIGHT JOIN", [false, true]),
        ("FULL JOIN", [true, true]),
    ];
    for case in 0..CASES {
        let (kind, keeps) = kinds[case % kinds.len()];
        let mut some = || conditions().new_tree(&mut runner).unwrap().current();
        let (mut on, kept) = (some(), some());
        if case % 3 > 0 {
            // Most joins have a key.
            let key = Condition::Compared(Operand::Column(0), Operator::Equal, Operand::Column(2 + case % 2));
            on = Condition::Both(Box::new(key), Box::new(on));
        }
        let text = format!(
            "SELECT a.n AS an, a.m AS am, b.n AS bn, b.m AS bm \
             FROM pairs AS a {kind} pairs AS b ON {} WHERE {}",
            on.text(),
            kept.text()
        );
        let mut expected = joined(&on, keeps);
        expected.retain(|pair| kept.holds(pair) == Some(true));
        expected.sort_unstable();
        assert_eq!(found(&person, &text).await, expected, "{text}");
    }
}

#[tokio::test]
async fn a_filter_on_one_side_stays_on_that_side() {
    let person = recorded().await;
    for (text, expected) in [
        (
            "pairs AS a RIGHT JOIN pairs AS b ON a.n = b.n WHERE a.m IS NULL",
            4,
        ),
        ("pairs AS a LEFT JOIN pairs AS b ON a.n = b.m AND 2 = a.n", 11),
        (
            "pairs AS a WHERE a.n IN (SELECT b.m FROM pairs AS b WHERE b.n > 1) AND a.n = 2",
            2,
        ),
    ] {
        let counted = rows(&person, &format!("SELECT count(*) AS rows FROM {text}")).await;
        assert_eq!(counted, [json!({"rows": expected})], "{text}");
    }
}

#[tokio::test]
async fn parts_of_objects_are_compared_across_joins() {
    let person = person();
    let beats: Vec<Value> = [("W", 50.0), ("W", 70.0), ("P", 60.0)]
        .into_iter()
        .zip(0..)
        .map(|((source, value), n)| {
            let mut beat = heart_rate(id(n), &instant(n), value);
            beat["source_properties"] = json!({"name": source});
            beat
        })
        .collect();
    person.records("HeartRate", &beats).await;
    for (text, expected) in [
        (
            "SELECT a.source_properties['name'] AS s, count(*) AS n FROM heart_rate a LEFT JOIN heart_rate b \
             ON a.value <> b.value WHERE a.source_properties['name'] <> b.source_properties['name'] \
             GROUP BY a.source_properties['name'] ORDER BY 1",
            json!([{"s": "P", "n": 2}, {"s": "W", "n": 2}]),
        ),
        (
            "SELECT DISTINCT coalesce(b.unit, 'n') AS u FROM heart_rate a JOIN heart_rate b \
             ON a.value = b.value WHERE a.source_properties['name'] = upper(b.source_properties['name'])",
            json!([{"u": "bpm"}]),
        ),
        (
            "SELECT max(b.source_properties['name']) AS s FROM heart_rate a FULL JOIN heart_rate b \
             ON a.value = b.value WHERE a.value BETWEEN length(b.source_properties['name']) AND 55",
            json!([{"s": "W"}]),
        ),
        (
            "SELECT DISTINCT s FROM (SELECT source_properties AS o, length(source_properties['name']) AS s, \
             value AS v FROM (SELECT * FROM heart_rate UNION ALL SELECT * FROM heart_rate WHERE \
             source_properties['name'] <> 'W') ORDER BY v LIMIT 3) AS b \
             WHERE o['name'] <> upper(o['name']) OR o['name'] LIKE '%W%'",
            json!([{"s": 1}]),
        ),
    ] {
        let found = Value::Array(rows(&person, text).await);
        assert!(alike(&found, &expected), "{text}: {found}");
    }
}
