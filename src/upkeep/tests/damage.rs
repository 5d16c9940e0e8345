//! Damage is found and told, nothing of it is copied on, and a store that fails midway changes nothing.

use prometheus_client::metrics::counter::Counter;

use super::*;
use crate::store::StoreError;
use crate::store::faults::{Fault, Faults, FaultyStore, Operation};
use crate::upkeep::flush::flush;
use crate::upkeep::scrub::Scrub;

fn flip_a_bit(bench: &Bench, path: &str) {
    let file = bench.directory.path().join("objects").join(path);
    let mut content = std::fs::read(&file).unwrap();
    let middle = content.len() / 3;
    content[middle] ^= 4;
    std::fs::write(&file, content).unwrap();
}

#[tokio::test]
async fn a_scrub_finds_one_flipped_bit_and_takes_note_of_it() {
    let bench = Bench::new().await;
    for piece in 0..6 {
        bench
            .put(&many(piece * 1_000, 1_000, LAST_DAY_OF_2023), true)
            .await;
    }
    let corrupt = Counter::default();
    let is_due = async || Scrub::is_due(&bench.stores).await.unwrap();
    assert!(is_due().await);
    Scrub::default().step(&bench.stores, &corrupt).await.unwrap();
    assert!(!is_due().await);
    assert_eq!(
        (corrupt.get(), bench.stores.catalog.damages().await.unwrap()),
        (0, Vec::new())
    );

    let path = bench.paths().await.0[3].clone();
    flip_a_bit(&bench, &path);
    Scrub::default().step(&bench.stores, &corrupt).await.unwrap();
    assert_eq!(corrupt.get(), 0, "the next round begins in a week");
    bench.pass(Duration::from_hours(168));
    assert!(is_due().await);
    Scrub::default().step(&bench.stores, &corrupt).await.unwrap();
    let damages = bench.stores.catalog.damages().await.unwrap();
    assert_eq!((corrupt.get(), damages.len()), (1, 1));
    assert_eq!(damages[0].0, path);
    assert!(
        bench.paths().await.1.contains(&path),
        "nothing is deleted because it is damaged"
    );
}

#[tokio::test]
async fn a_round_of_the_scrub_that_a_clock_ended_that_was_ahead_delays_no_other() {
    let bench = Bench::new().await;
    bench.put(&many(0, 10, LAST_DAY_OF_2023), true).await;
    let corrupt = Counter::default();
    let is_due = async || Scrub::is_due(&bench.stores).await.unwrap();
    let right = bench.clock.now();
    bench.pass(Duration::from_hours(24 * 365));
    Scrub::default().step(&bench.stores, &corrupt).await.unwrap();
    assert!(!is_due().await);
    bench.clock.set(right);
    assert!(is_due().await);
    Scrub::default().step(&bench.stores, &corrupt).await.unwrap();
    assert!(!is_due().await, "the next round begins in a week");
    bench.pass(Duration::from_hours(168));
    assert!(is_due().await);
}

#[tokio::test]
async fn a_damaged_object_is_not_compacted() {
    let bench = Bench::new().await;
    for piece in 0..4 {
        bench
            .put(&many(piece * 1_000, 1_000, LAST_DAY_OF_2023), true)
            .await;
    }
    let (before, _) = bench.paths().await;
    flip_a_bit(&bench, &before[0]);
    let compacted = compact(&bench.stores, &bench.key, &Limits::default()).await;
    assert!(
        matches!(compacted, Err(StoreError::Corrupt { .. })),
        "{compacted:?}"
    );
    assert_eq!(bench.paths().await.0, before);
}

#[tokio::test]
async fn a_job_that_ends_anywhere_before_its_commit_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let local = ObjectStorage::open(&ObjectStoreSettings::Local(directory.path().join("objects"))).unwrap();
    let faults = Arc::new(Faults::default());
    let bench = Bench::over(
        directory,
        ObjectStorage::over(Arc::new(FaultyStore::new(local.store(), Arc::clone(&faults)))),
    )
    .await;
    for piece in 0..4 {
        bench
            .put(&many(piece * 10, 10, LAST_DAY_OF_2023), piece < 2)
            .await;
    }
    bench.delete(&[record(1), record(31)]).await;
    let (before, version) = (bench.visible().await, bench.snapshot().await.stamp.version);
    for fault in [Fault::Fail, Fault::NoRoom, Fault::LoseAnswer] {
        faults.once(Operation::Put, fault);
        assert!(flush(&bench.stores, &bench.key).await.is_err(), "{fault:?}");
        assert_eq!(
            (bench.visible().await, bench.snapshot().await.stamp.version),
            (before.clone(), version)
        );
    }
    assert_eq!(flush(&bench.stores, &bench.key).await.unwrap(), 2);
    bench.put(&many(50, 10, LAST_DAY_OF_2023), true).await;
    let before = bench.visible().await;
    for operation in [Operation::Put, Operation::Put] {
        faults.once(operation, Fault::LoseAnswer);
        assert!(
            compact(&bench.stores, &bench.key, &Limits::default())
                .await
                .is_err(),
            "{operation:?}"
        );
        assert_eq!(bench.visible().await, before);
    }
    assert!(
        compact(&bench.stores, &bench.key, &Limits::default())
            .await
            .unwrap()
    );
    assert_eq!(bench.visible().await, before);
    let (live, all) = bench.paths().await;
    assert_eq!(live.len(), 1);
    assert!(all.len() > live.len(), "orphans are left");
}

#[tokio::test]
async fn a_job_dropped_at_any_moment_leaves_the_rows_as_they_were() {
    let bench = Bench::new().await;
    let mut first = 0;
    for polls in 0..60 {
        bench.put(&many(first, 10, LAST_DAY_OF_2023), false).await;
        first += 10;
        let before = bench.visible().await;
        {
            let mut job = std::pin::pin!(flush(&bench.stores, &bench.key));
            for _ in 0..polls {
                if futures::poll!(&mut job).is_ready() {
                    break;
                }
                tokio::task::yield_now().await;
            }
        }
        assert_eq!(bench.visible().await, before, "dropped after {polls} polls");
    }
}

#[tokio::test]
async fn a_scrub_whose_notes_are_damaged_begins_anew_and_replaces_them() {
    let bench = Bench::new().await;
    bench.put(&many(0, 10, LAST_DAY_OF_2023), true).await;
    let (stores, corrupt) = (&bench.stores, Counter::default());
    Scrub::default().step(stores, &corrupt).await.unwrap();
    assert!(!Scrub::is_due(stores).await.unwrap());
    let notes = ["scrub:place", "scrub:manifests", "scrub:ended"];
    for note in notes {
        let sql = format!("UPDATE meta SET checksum = checksum + 1 WHERE name = '{note}'");
        tamper(&bench, &sql).await;
    }
    assert!(Scrub::is_due(stores).await.unwrap());
    Scrub::default().step(stores, &corrupt).await.unwrap();
    assert!(!Scrub::is_due(stores).await.unwrap());
    for note in notes {
        assert!(stores.catalog.fact(note).await.unwrap().is_some(), "{note}");
    }
}
