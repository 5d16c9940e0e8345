//! Kill -9 at any moment: what was acknowledged is there, once, with its last value; what was deleted is not;
//! nothing is invented; and a request that had no answer happened wholly or not at all.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::harness::{Backends, Person, Setup, heart_rate, id, instant, number};

const WRITERS: u32 = 4;
const ROUNDS: u32 = 20;
/// Each writer has as many ids to itself.
const IDS: u32 = 40_000;

/// What one writer knows to be stored: per id the value.
type Known = BTreeMap<u32, u32>;

/// One client that writes until the server dies.
struct Writer {
    person: Person,
    first: u32,
    random: Random,
    known: Known,
}

impl Writer {
    /// Writes until a request fails. Returns what the store would hold if that last request did happen.
    async fn write(&mut self, acknowledged: &AtomicU64, over: &AtomicBool) -> Known {
        loop {
            let (call, after) = self.next_request();
            match call.attempt().await {
                Ok(reply) if reply.status == 201 => {
                    self.known = after;
                    acknowledged.fetch_add(1, Ordering::Relaxed);
                }
                // Refused while shutting down or under pressure: the server says that nothing happened.
                Ok(reply) => {
                    assert!(matches!(reply.status, 429 | 503), "{reply}");
                    if over.load(Ordering::Relaxed) {
                        return self.known.clone();
                    }
                }
                Err(_) => return after,
            }
        }
    }

    fn next_request(&mut self) -> (crate::harness::Call, Known) {
        let mut after = self.known.clone();
        let value = self.random.below(1_000_000);
        match self.random.below(24) {
            // Many at once, over the same ids again and again: they go straight to an object.
            0 => {
                let count = 9_000 + self.random.below(3_000);
                let from = self.random.below(IDS - count);
                let records: Vec<Value> = (from..from + count).map(|n| self.sample(n, value)).collect();
                after.extend((from..from + count).map(|n| (n, value)));
                (self.person.lines("HeartRate", &records), after)
            }
            1..=7 => {
                let ids: Vec<u32> = (0..=self.random.below(15))
                    .map(|_| self.random.below(300))
                    .collect();
                let tombstone =
                    |n: &u32| json!({"deleted_id": id(self.first + n), "deleted_type": "HeartRate"});
                let call = self
                    .person
                    .lines("DeletedRecord", &ids.iter().map(tombstone).collect::<Vec<_>>());
                after.retain(|n, _| !ids.contains(n));
                (call, after)
            }
            _ => {
                let ids: Vec<u32> = (0..=self.random.below(20))
                    .map(|_| self.random.below(300))
                    .collect();
                let records: Vec<Value> = ids.iter().map(|n| self.sample(*n, value)).collect();
                after.extend(ids.iter().map(|n| (*n, value)));
                (self.person.lines("HeartRate", &records), after)
            }
        }
    }

    fn sample(&self, n: u32, value: u32) -> Value {
        heart_rate(id(self.first + n), &instant(n), value)
    }
}

/// A small generator: the same seed gives the same run of decisions.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % u64::from(bound)) as u32
    }
}

/// What is stored of one writer's ids, every id at most once.
async fn stored(person: &Person, first: u32) -> Known {
    let reply = person
        .metric_samples("HeartRate", "2024-05-01", "2024-06-01")
        .with("output", "csv")
        .await
        .must_be(200);
    let (low, high) = (id(first), id(first + IDS));
    let mut found = Known::new();
    let table = crate::harness::Table::read("csv", &reply.body);
    for row in &table.rows {
        let record = Uuid::parse_str(row["uuid"].as_str().unwrap()).unwrap();
        if low <= record && record < high {
            let n = (record.as_u128() - low.as_u128()) as u32;
            let value: f64 = row["value"].as_str().unwrap().parse().unwrap();
            assert_eq!(
                found.insert(n, value as u32),
                None,
                "record {record} is there twice"
            );
        }
    }
    found
}

async fn survives(backends: Backends, rounds: u32) {
    let seed = std::env::var("ALMANAC_TEST_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or_else(crate::harness::now);
    println!("{rounds} rounds, seed {seed}");
    let mut random = Random(seed | 1);
    let server = Setup::default().busy_upkeep().on(backends).start();
    // Two people of two writers each: a partition is shared, ids are not.
    let people = [server.person(), server.person()];
    let mut writers: Vec<Writer> = (0..WRITERS)
        .map(|n| Writer {
            person: people[n as usize % 2].clone(),
            first: n * IDS,
            random: Random(seed.wrapping_mul(31).wrapping_add(u64::from(n)) | 1),
            known: Known::new(),
        })
        .collect();
    let acknowledged = Arc::new(AtomicU64::new(0));
    let over = Arc::new(AtomicBool::new(false));
    for round in 0..rounds {
        over.store(false, Ordering::Relaxed);
        let tasks: Vec<_> = writers
            .drain(..)
            .map(|mut writer| {
                let (acknowledged, over) = (Arc::clone(&acknowledged), Arc::clone(&over));
                tokio::spawn(async move {
                    let perhaps = writer.write(&acknowledged, &over).await;
                    (writer, perhaps)
                })
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(u64::from(random.below(500)))).await;
        over.store(true, Ordering::Relaxed);
        server.kill();
        let mut ended = Vec::new();
        for task in tasks {
            ended.push(task.await.unwrap());
        }
        server.launch();
        for (mut writer, perhaps) in ended {
            let found = stored(&writer.person, writer.first).await;
            if found != writer.known {
                assert!(
                    found == perhaps,
                    "round {round}, seed {seed}: {}",
                    difference(&found, &writer.known, &perhaps)
                );
            }
            writer.known = found;
            writers.push(writer);
        }
    }
    println!(
        "{} requests were acknowledged",
        acknowledged.load(Ordering::Relaxed)
    );
    assert!(
        acknowledged.load(Ordering::Relaxed) > u64::from(rounds),
        "hardly anything was written"
    );
    let checked = server.run(&["check"]);
    assert_eq!(
        checked.status.code(),
        Some(0),
        "{}{}",
        String::from_utf8_lossy(&checked.stdout),
        String::from_utf8_lossy(&checked.stderr)
    );
}

fn difference(found: &Known, known: &Known, perhaps: &Known) -> String {
    let differing = |other: &Known| -> Vec<(u32, Option<u32>, Option<u32>)> {
        let ids: std::collections::BTreeSet<u32> = found.keys().chain(other.keys()).copied().collect();
        ids.into_iter()
            .filter(|n| found.get(n) != other.get(n))
            .map(|n| (n, found.get(&n).copied(), other.get(&n).copied()))
            .take(5)
            .collect()
    };
    format!(
        "{} found, {} acknowledged, {} with the last request; (id, found, acknowledged): {:?}; (id, found, \
         with the last): {:?}",
        found.len(),
        known.len(),
        perhaps.len(),
        differing(known),
        differing(perhaps)
    )
}

fn rounds() -> u32 {
    std::env::var("ALMANAC_TEST_KILL_ROUNDS")
        .ok()
        .and_then(|rounds| rounds.parse().ok())
        .unwrap_or(ROUNDS)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledged_records_survive_kill_9_on_sqlite_and_a_local_directory() {
    survives(Backends::embedded(), rounds()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledged_records_survive_kill_9_on_postgresql_and_s3() {
    if let Some(backends) = Backends::networked() {
        survives(backends, rounds().div_ceil(2)).await;
    }
}

#[tokio::test]
async fn a_single_record_is_there_after_kill_9_at_once() {
    let server = Setup::default().start();
    let person = server.person();
    for n in 0..5 {
        person
            .records("HeartRate", &[heart_rate(id(n), &instant(n), n)])
            .await;
        server.kill();
        server.launch();
        let samples = person.all_samples("HeartRate").await;
        let values: Vec<f64> = samples.iter().map(|sample| number(sample, "value")).collect();
        assert_eq!(values, (0..=n).map(f64::from).collect::<Vec<_>>());
    }
}
