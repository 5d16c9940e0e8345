//! The law: whatever is put, replaced, deleted, flushed, compacted, and however the server ends and starts
//! again, a read shows what a plain map would.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use serde_json::Value;
use tokio::runtime::Runtime;
use uuid::Uuid;

use crate::harness::{ALL_TIME, Almanac, Backends, Person, Setup, heart_rate, id, instant, number};

const CASES: u32 = 12;
const IDS: u32 = 24;

#[derive(Clone, Debug)]
enum Step {
    /// Puts or replaces, the last of equal ids winning.
    Put(Vec<Sample>),
    /// Enough rows for an object of their own, overlapping the ids of the small ones.
    PutMany {
        first: u32,
        value: u32,
    },
    Delete(Vec<u32>),
    DeleteOfAnotherType(u32),
    /// A body with a fault in it: no effect.
    Refused(Vec<Sample>),
    /// Long enough for upkeep to have been there.
    Wait,
    Restart,
    Kill,
    Read {
        from: u32,
        to: u32,
    },
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    id: u32,
    second: u32,
    value: u32,
}

fn sample() -> impl Strategy<Value = Sample> {
    (0..IDS, 0..200_u32, 0..5_u32).prop_map(|(id, second, value)| Sample { id, second, value })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => prop::collection::vec(sample(), 1..12).prop_map(Step::Put),
        1 => (0..IDS, 0..5_u32).prop_map(|(first, value)| Step::PutMany { first, value }),
        4 => prop::collection::vec(0..IDS, 1..6).prop_map(Step::Delete),
        1 => (0..IDS).prop_map(Step::DeleteOfAnotherType),
        1 => prop::collection::vec(sample(), 1..6).prop_map(Step::Refused),
        3 => Just(Step::Wait),
        1 => Just(Step::Restart),
        1 => Just(Step::Kill),
        4 => (0..200_u32, 0..200_u32).prop_map(|(a, b)| Step::Read { from: a.min(b), to: a.max(b) }),
    ]
}

/// What the store should hold: per id, the second and the value.
type Model = BTreeMap<u32, (u32, u32)>;

const MANY: u32 = 12_000;

async fn take(
    server: &Almanac,
    person: &Person,
    model: &mut Model,
    step: &Step,
) -> Result<(), TestCaseError> {
    match step {
        Step::Put(samples) => {
            put(person, model, samples).await?;
        }
        Step::PutMany { first, value } => {
            let samples: Vec<Sample> = (*first..first + MANY)
                .map(|id| Sample {
                    id,
                    second: id,
                    value: *value,
                })
                .collect();
            put(person, model, &samples).await?;
        }
        Step::Delete(ids) => {
            let tombstones: Vec<Value> = ids
                .iter()
                .map(|n| serde_json::json!({"deleted_id": id(*n), "deleted_type": "HeartRate"}))
                .collect();
            let counts = person.lines("DeletedRecord", &tombstones).await.counts();
            let before = model.len();
            model.retain(|id, _| !ids.contains(id));
            prop_assert_eq!(counts, [0, 0, 0, (before - model.len()) as u64]);
        }
        Step::DeleteOfAnotherType(n) => drop(person.delete("StepCount", id(*n)).await),
        Step::Refused(samples) => {
            let mut records = records(samples);
            records.push(serde_json::json!({"value": "none"}));
            person.lines("HeartRate", &records).await.faults();
        }
        Step::Wait => tokio::time::sleep(Duration::from_millis(120)).await,
        Step::Restart => server.restart(),
        Step::Kill => {
            server.kill();
            server.launch();
        }
        Step::Read { from, to } => {
            let rows = person.samples("HeartRate", &instant(*from), &instant(*to)).await;
            let within: Model = model
                .iter()
                .filter(|(_, (second, _))| (from..to).contains(&second))
                .map(|(id, kept)| (*id, *kept))
                .collect();
            agree(&rows, &within)?;
        }
    }
    Ok(())
}

/// Puts, and holds what is answered against what a map says: new, replaced, unchanged.
async fn put(person: &Person, model: &mut Model, samples: &[Sample]) -> Result<(), TestCaseError> {
    let counts = person.lines("HeartRate", &records(samples)).await.counts();
    // Whether it was there before, and whether another version of it is there now.
    let mut touched: BTreeMap<u32, (bool, bool)> = BTreeMap::new();
    for sample in samples {
        let kept = (sample.second, sample.value);
        let before = model.insert(sample.id, kept);
        touched.entry(sample.id).or_insert((before.is_some(), false)).1 |= before != Some(kept);
    }
    let count = |of: (bool, bool)| touched.values().filter(|touched| **touched == of).count() as u64;
    prop_assert_eq!(
        counts,
        [count((false, true)), count((true, true)), count((true, false)), 0]
    );
    Ok(())
}

fn records(samples: &[Sample]) -> Vec<Value> {
    samples
        .iter()
        .map(|sample| heart_rate(id(sample.id), &instant(sample.second), sample.value))
        .collect()
}

/// Every row once, with its last value, and in the order of (start, id).
fn agree(rows: &[Value], model: &Model) -> Result<(), TestCaseError> {
    let shown: Vec<(String, Uuid, u32)> = rows
        .iter()
        .map(|row| {
            let moment = row["start_date"].as_str().unwrap().to_owned();
            (
                moment,
                Uuid::parse_str(row["uuid"].as_str().unwrap()).unwrap(),
                number(row, "value") as u32,
            )
        })
        .collect();
    let mut expected: Vec<(String, Uuid, u32)> = model
        .iter()
        .map(|(n, (second, value))| (instant(*second), id(*n), *value))
        .collect();
    expected.sort();
    prop_assert_eq!(shown, expected);
    Ok(())
}

fn holds_on(backends: Backends) {
    let server = Setup::default().busy_upkeep().on(backends).start();
    let mut runner = TestRunner::new(Config {
        cases: CASES,
        failure_persistence: None,
        max_shrink_iters: 40,
        ..Config::default()
    });
    let steps = prop::collection::vec(step(), 5..30);
    let outcome = runner.run(&steps, |steps| {
        // A runtime for each case: its connections end with it, as the server may.
        Runtime::new().unwrap().block_on(async {
            let person = server.person();
            let mut model = Model::new();
            for step in &steps {
                take(&server, &person, &mut model, step).await?;
            }
            agree(&person.samples("HeartRate", ALL_TIME.0, ALL_TIME.1).await, &model)?;
            let ids: Vec<Uuid> = model.keys().map(|n| id(*n)).collect();
            prop_assert_eq!(person.rows("metric", "HeartRate").await.len(), ids.len());
            Ok(())
        })
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
    let checked = server.run(&["check"]);
    assert_eq!(
        checked.status.code(),
        Some(0),
        "{}{}",
        String::from_utf8_lossy(&checked.stdout),
        String::from_utf8_lossy(&checked.stderr)
    );
}

#[test]
fn the_store_is_a_map_on_sqlite_and_a_local_directory() {
    holds_on(Backends::embedded());
}

#[test]
fn the_store_is_a_map_on_postgresql_and_s3() {
    if let Some(backends) = Backends::networked() {
        holds_on(backends);
    }
}
