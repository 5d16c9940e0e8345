//! What was deleted is gone from disk within the time that the operator sets.

use std::sync::Mutex;

use futures::future::BoxFuture;

use super::*;
use crate::model::meters::Meters;
use crate::store::faults::{Fate, Fault, FaultyStore, Operation};
use crate::upkeep::Upkeep;
use crate::upkeep::identity::IDENTITY_OBJECT;
use crate::upkeep::manifest::write_manifest;
use crate::upkeep::manifest_names::numbers;
use crate::upkeep::purge::purge_deleted;
use crate::upkeep::settled_partitions::SettledPartitions;

fn upkeep(bench: &Bench) -> Upkeep {
    let stop = tokio_util::sync::CancellationToken::new();
    Upkeep::new(settings(), bench.stores.clone(), Meters::default(), stop)
}

/// Everything that jobs find to do now.
async fn round(bench: &Bench) {
    let upkeep = upkeep(bench);
    upkeep.flush_due().await.unwrap();
    upkeep
        .compact_due(&mut SettledPartitions::default())
        .await
        .unwrap();
    upkeep.write_manifests().await.unwrap();
    upkeep.purge_due().await.unwrap();
    upkeep.collect_due().await.unwrap();
}

#[tokio::test]
async fn a_dead_row_is_gone_from_disk_within_the_time_however_few_there_are() {
    let bench = Bench::new().await;
    let rows = many(0, 1_000, LAST_DAY_OF_2023);
    bench.put(&rows, true).await;
    let before = bench.paths().await.1;
    bench.delete(&[record(7)]).await;
    let living = bench.visible().await;
    round(&bench).await;
    let day = Duration::from_hours(24);
    for _ in 0..20 {
        bench.pass(day);
        round(&bench).await;
    }
    assert_eq!(
        bench.paths().await.1,
        before,
        "so few are no reason to write a large object anew"
    );
    for _ in 20..29 {
        bench.pass(day);
        round(&bench).await;
    }
    let (live, all) = bench.paths().await;
    assert_eq!(live, all);
    assert!(
        !all.contains(before.first().unwrap()),
        "the object that held it is gone"
    );
    assert_eq!(bench.visible().await, living);
    assert_eq!(
        numbers(bench.stores.objects(), bench.key.person)
            .await
            .unwrap()
            .len(),
        1
    );
    // Nothing is written anew for nothing.
    for _ in 0..60 {
        bench.pass(day);
        round(&bench).await;
    }
    assert_eq!(bench.paths().await.1, all);
}

#[tokio::test]
async fn manifests_from_before_a_deletion_go_in_the_same_time() {
    let bench = Bench::new().await;
    bench.put(&many(0, 10, LAST_DAY_OF_2023), false).await;
    let manifests = async || numbers(bench.stores.objects(), bench.key.person).await.unwrap();
    assert!(write_manifest(&bench.stores, bench.key.person).await.unwrap());
    bench.delete(&[record(7)]).await;
    bench.pass(Duration::from_mins(2));
    round(&bench).await;
    assert_eq!(manifests().await, [2, 1], "the older one has the row in its tail");
    bench.pass(Duration::from_hours(24 * 29));
    round(&bench).await;
    assert_eq!(manifests().await.len(), 1);
    assert!(!manifests().await.contains(&1));
    assert_eq!(bench.visible().await.len(), 9);
}

#[tokio::test]
async fn a_dead_row_goes_from_an_object_however_little_memory_there_is_to_merge() {
    use crate::upkeep::compact::{RewriteOutcome, leave_dead_rows};

    let bench = Bench::new().await;
    let limits = Limits {
        memory: 1,
        ..Limits::default()
    };
    for piece in 0..4 {
        bench.put(&many(piece * 10, 10, LAST_DAY_OF_2023), true).await;
    }
    assert!(!compact(&bench.stores, &bench.key, &limits).await.unwrap());
    bench.delete(&[record(7)]).await;
    let living = bench.visible().await;
    let rewritten = leave_dead_rows(&bench.stores, &bench.key, &limits).await;
    assert_eq!(rewritten.unwrap(), RewriteOutcome::Done);
    assert!(
        bench
            .snapshot()
            .await
            .pieces
            .iter()
            .all(|piece| piece.dead.is_empty())
    );
    assert_eq!(bench.visible().await, living);
}

#[tokio::test]
async fn what_a_clock_that_was_ahead_noted_goes_in_the_usual_time_after_it_was_put_right() {
    let bench = Bench::new().await;
    let right = bench.clock.now();
    bench.pass(Duration::from_hours(24 * 400));
    for piece in 0..4 {
        bench
            .put(&many(piece * 1_000, 1_000, LAST_DAY_OF_2023), true)
            .await;
    }
    bench.pass(Duration::from_secs(10));
    round(&bench).await;
    let (live, all) = bench.paths().await;
    assert_eq!((live.len(), all.len()), (1, 5));
    bench.delete(&[record(7)]).await;
    round(&bench).await;
    bench.clock.set(right);
    round(&bench).await;
    assert_eq!(bench.paths().await.1, all, "the whole grace period is waited for");
    bench.pass(Duration::from_mins(11));
    round(&bench).await;
    assert_eq!(bench.paths().await.1, live);
    for _ in 0..29 {
        bench.pass(Duration::from_hours(24));
        round(&bench).await;
    }
    let (live_now, all) = bench.paths().await;
    assert_eq!(live_now, all);
    assert_ne!(live_now, live, "the object that held the deleted row is gone");
    assert_eq!(bench.visible().await.len(), 3_999);
}

#[tokio::test]
async fn damage_in_one_type_keeps_nothing_that_was_deleted_in_another_on_disk() {
    let mut bench = Bench::new().await;
    let damaged = bench.key.clone();
    bench.put(&many(0, 1_000, LAST_DAY_OF_2023), true).await;
    bench.delete(&[record(7)]).await;
    let (_, of_damaged) = bench.paths().await;
    // Its turn comes after that of the other.
    bench.key.data_type = TypeId::new("StepCount");
    bench.put(&many(5_000, 1_000, LAST_DAY_OF_2023), true).await;
    bench.delete(&[record(5_007)]).await;
    let file = bench.directory.path().join("objects").join(&of_damaged[0]);
    let mut content = std::fs::read(&file).unwrap();
    // Among its rows.
    content[64] ^= 4;
    std::fs::write(&file, content).unwrap();
    round(&bench).await;
    bench.pass(Duration::from_hours(24 * 30));
    round(&bench).await;
    let has_dead_rows = async |bench: &Bench| {
        let snapshot = bench.snapshot().await;
        snapshot.pieces.iter().any(|piece| !piece.dead.is_empty())
    };
    assert!(!has_dead_rows(&bench).await);
    assert_eq!(bench.visible().await.len(), 999);
    let waiting = bench.stores.catalog.deletions_before(Instant::MAX).await.unwrap();
    let waiting: Vec<TypeId> = waiting.sound.into_iter().map(|notice| notice.data_type).collect();
    assert_eq!(
        waiting,
        std::slice::from_ref(&damaged.data_type),
        "what is damaged stays noticed"
    );
    bench.key = damaged;
    assert!(has_dead_rows(&bench).await);
    assert_eq!(bench.paths().await.0.len(), 2);
}

/// Gives nothing out that has one of these in its name, and knows what was asked for.
#[derive(Debug, Default)]
struct Refusing {
    names: Mutex<Vec<&'static str>>,
    asked: Mutex<Vec<String>>,
}

#[async_trait::async_trait]
impl Fate for Refusing {
    async fn fault_for(&self, operation: Operation, path: &str) -> Option<Fault> {
        if operation != Operation::Get {
            return None;
        }
        self.asked.lock().unwrap().push(path.to_owned());
        let names = self.names.lock().unwrap();
        names
            .iter()
            .any(|name| path.contains(*name))
            .then_some(Fault::Fail)
    }

    fn later(&self, _work: BoxFuture<'static, ()>) {}
}

#[tokio::test]
async fn what_cannot_be_read_keeps_nothing_else_on_disk_and_a_store_that_does_not_answer_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let local = ObjectStorage::open(&ObjectStoreSettings::Local(directory.path().join("objects"))).unwrap();
    let fate = Arc::new(Refusing::default());
    let objects = ObjectStorage::over(Arc::new(FaultyStore::new(local.store(), Arc::clone(&fate))));
    let mut bench = Bench::over(directory, objects).await;
    for (number, data_type) in (0..).zip(["HeartRate", "StepCount", "Weight"]) {
        bench.key.data_type = TypeId::new(data_type);
        let first = number * 1_000;
        bench.put(&many(first, 1_000, LAST_DAY_OF_2023), true).await;
        bench.delete(&[record(first + 7)]).await;
    }
    let (live, _) = bench.paths().await;
    let of_first = live.iter().find(|path| path.contains("/HeartRate/")).unwrap();
    let file = bench.directory.path().join("objects").join(of_first);
    let mut content = std::fs::read(&file).unwrap();
    // Among its rows.
    content[64] ^= 4;
    std::fs::write(&file, content).unwrap();
    let catalog = &bench.stores.catalog;
    while catalog.notice_deletions().await.unwrap() > 0 {}
    let mut due = catalog.deletions_before(Instant::MAX).await.unwrap().sound;
    due.sort_by(|one, other| one.data_type.cmp(&other.data_type));
    let purged = async |refused: &[&'static str]| {
        *fate.names.lock().unwrap() = refused.to_vec();
        fate.asked.lock().unwrap().clear();
        // Damage, of the first one, comes second to what may pass.
        let failed = purge_deleted(&bench.stores, &due).await.unwrap_err();
        assert!(matches!(failed, StoreError::Unavailable { .. }), "{failed}");
        let asked = fate.asked.lock().unwrap();
        asked.iter().any(|path| path.contains("/Weight/"))
    };
    assert!(!purged(&["/StepCount/", IDENTITY_OBJECT]).await);
    assert!(purged(&["/StepCount/"]).await);
    let snapshot = bench.snapshot().await;
    assert!(snapshot.pieces.iter().all(|piece| piece.dead.is_empty()));
}
