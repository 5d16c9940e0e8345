//! One person's trouble, or zeal, is theirs alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::harness::{Backends, Setup, heart_rate, id, instant, number};

/// How many write to one partition at the same time.
const WRITERS: u32 = 4;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_large_body_is_stored_however_often_others_write_to_its_partition() {
    let Some(backends) = Backends::networked() else {
        return;
    };
    let directory = tempfile::TempDir::new().unwrap();
    let near = Setup::default()
        .no_upkeep()
        .on(backends.clone())
        .in_dir(directory.path())
        .start();
    // The same signing key, so that one token opens both.
    let far = Setup::default()
        .no_upkeep()
        .on(backends)
        .in_dir(directory.path())
        .start();
    let (busy, other) = (near.person(), far.person());
    let over = Arc::new(AtomicBool::new(false));
    let stored = Arc::new(Semaphore::new(0));
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let (busy, over, stored) = (busy.clone(), Arc::clone(&over), Arc::clone(&stored));
            tokio::spawn(async move {
                let mut written = 0_u32;
                while !over.load(Ordering::Relaxed) {
                    let n = 100_000 + writer;
                    busy.records("HeartRate", &[heart_rate(id(n), &instant(n), written)])
                        .await;
                    written += 1;
                    if written == 1 {
                        stored.add_permits(1);
                    }
                }
                written
            })
        })
        .collect();
    let all_stored = tokio::time::timeout(Duration::from_mins(1), stored.acquire_many(WRITERS));
    let _all = all_stored.await.expect("every writer stores something").unwrap();
    let same_person_far = far.person_called(busy.id);
    let body: Vec<Value> = (0..20_000).map(|n| heart_rate(id(n), &instant(n), 60)).collect();
    let begun = Instant::now();
    let large = tokio::spawn(async move { same_person_far.lines("HeartRate", &body).await });
    let mut longest = Duration::ZERO;
    let mut n = 0;
    while !large.is_finished() {
        let asked = Instant::now();
        other
            .records("HeartRate", &[heart_rate(id(n), &instant(n), 1)])
            .await;
        longest = longest.max(asked.elapsed());
        n += 1;
    }
    let elapsed = begun.elapsed();
    large.await.unwrap().upload();
    over.store(true, Ordering::Relaxed);
    let mut written = 0;
    for writer in writers {
        written += writer.await.unwrap();
    }
    println!("20,000 rows in {elapsed:?} beside {written} writes; others waited {longest:?} at the most");
    assert!(
        longest < Duration::from_secs(5),
        "another person's write took {longest:?}"
    );
    let samples = busy.samples("HeartRate", "2024-05-01", "2024-06-01").await;
    let of_body = samples
        .iter()
        .filter(|sample| number(sample, "value") == 60.0)
        .count();
    assert!(of_body >= 20_000, "{of_body}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_body_that_is_dear_to_put_together_makes_nobody_else_wait() {
    let server = Setup::default().no_upkeep().start();
    let (dear, other) = (server.person(), server.person());
    let lines: Vec<Value> = (0..4096_u32)
        .map(|n| {
            let mut record = heart_rate(id(1), &instant(n), n);
            record["sources"] = json!([format!("{n:07}{}", "s".repeat(1500))]);
            record
        })
        .collect();
    let begun = Instant::now();
    let call = dear.lines("HeartRate", &lines);
    let large = tokio::spawn(async move { call.await });
    let mut longest = Duration::ZERO;
    let mut n = 0;
    while !large.is_finished() {
        let asked = Instant::now();
        other
            .records("HeartRate", &[heart_rate(id(n), &instant(n), 1)])
            .await;
        longest = longest.max(asked.elapsed());
        n += 1;
    }
    large.await.unwrap().upload();
    println!(
        "the body took {:?}; others waited {longest:?} at the most",
        begun.elapsed()
    );
    assert!(
        longest < Duration::from_secs(3),
        "another person's write took {longest:?}"
    );
    assert_eq!(dear.all_samples("HeartRate").await.len(), 1);
}
