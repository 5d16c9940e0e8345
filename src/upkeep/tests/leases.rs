//! One node at a time.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

use futures::future::BoxFuture;
use object_store::memory::InMemory;
use prometheus_client::metrics::counter::Counter;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::catalog::test_databases::{address_in, file_in};
use crate::model::meters::{Meters, UpkeepMeters};
use crate::store::faults::{Fate, Fault, FaultyStore, Operation};
use crate::store::folder_names::PEOPLE_FOLDER;
use crate::upkeep::Upkeep;
use crate::upkeep::lease::{LeaseRefusals, Leases};
use crate::upkeep::manifest::write_manifest;
use crate::upkeep::scrub::Scrub;

/// The leases of a node of this name.
fn leases_of(bench: &Bench, name: &str) -> Leases {
    Leases::new(
        bench.stores.catalog.clone(),
        name.to_owned(),
        UpkeepMeters::default(),
    )
}

/// Once it has a token, stops when the store is asked whose manifests it has, and counts how often it is.
#[derive(Debug, Default)]
struct StopsAtLists {
    stop: OnceLock<CancellationToken>,
    lists: AtomicUsize,
}

#[async_trait::async_trait]
impl Fate for StopsAtLists {
    async fn fault_for(&self, operation: Operation, path: &str) -> Option<Fault> {
        if let (Operation::List, Some(stop)) = (operation, self.stop.get())
            && path.starts_with(PEOPLE_FOLDER)
        {
            self.lists.fetch_add(1, Ordering::Relaxed);
            stop.cancel();
        }
        None
    }

    fn later(&self, _work: BoxFuture<'static, ()>) {}
}

/// Once it has a set, fails every read and notes what was to be read.
#[derive(Debug, Default)]
struct Unreadable {
    asked: Mutex<Option<BTreeSet<String>>>,
}

#[async_trait::async_trait]
impl Fate for Unreadable {
    async fn fault_for(&self, operation: Operation, path: &str) -> Option<Fault> {
        let mut asked = self.asked.lock().unwrap();
        let asked = asked.as_mut().filter(|_| operation == Operation::Get)?;
        asked.insert(path.to_owned());
        Some(Fault::Fail)
    }

    fn later(&self, _work: BoxFuture<'static, ()>) {}
}

#[tokio::test]
async fn nodes_that_scrub_in_turns_check_each_object_once() {
    let directory = tempfile::tempdir().unwrap();
    let fate = Arc::new(Unreadable::default());
    let objects = ObjectStorage::over(Arc::new(FaultyStore::new(
        Arc::new(InMemory::new()),
        Arc::clone(&fate),
    )));
    let bench = Bench::over(directory, objects).await;
    for piece in 0..20 {
        bench.put(&many(piece * 10, 10, LAST_DAY_OF_2023), true).await;
    }
    let all: BTreeSet<String> = bench.paths().await.0.into_iter().collect();
    let (mut first, mut second, corrupt) = (Scrub::default(), Scrub::default(), Counter::default());
    let mut checked = BTreeSet::new();
    for step in 0..3 {
        let node = if step == 1 { &mut second } else { &mut first };
        *fate.asked.lock().unwrap() = Some(BTreeSet::new());
        // It ends after a few objects that cannot be read.
        node.step(&bench.stores, &corrupt).await.unwrap_err();
        let asked = fate.asked.lock().unwrap().take().unwrap();
        assert!(asked.is_disjoint(&checked), "step {step}: {asked:?}");
        checked.extend(asked);
    }
    assert_eq!(checked, all);
    assert!(!Scrub::is_due(&bench.stores).await.unwrap());
}

#[tokio::test]
async fn a_job_runs_on_one_node_at_a_time() {
    let bench = Bench::new().await;
    let node = |name: &str| leases_of(&bench, name);
    let (first, second, stop) = (node("first"), node("second"), CancellationToken::new());
    let (begun, has_begun) = oneshot::channel();
    let (finish, may_finish) = oneshot::channel();
    let work = async {
        begun.send(()).unwrap();
        may_finish.await.unwrap();
        Ok(1)
    };
    let other = async {
        has_begun.await.unwrap();
        assert_eq!(second.alone("flush", &stop, async { Ok(2) }).await.unwrap(), None);
        assert_eq!(
            second.alone("compact", &stop, async { Ok(3) }).await.unwrap(),
            Some(3)
        );
        finish.send(()).unwrap();
    };
    let (done, ()) = tokio::join!(first.alone("flush", &stop, work), other);
    assert_eq!(done.unwrap(), Some(1));
    assert_eq!(
        second.alone("flush", &stop, async { Ok(4) }).await.unwrap(),
        Some(4)
    );
}

#[tokio::test]
async fn work_that_is_stopped_gives_its_lease_back() {
    let bench = Bench::new().await;
    let node = |name: &str| leases_of(&bench, name);
    let stop = CancellationToken::new();
    let endless = async {
        stop.cancel();
        std::future::pending::<Result<(), StoreError>>().await
    };
    assert_eq!(node("first").alone("flush", &stop, endless).await.unwrap(), None);
    assert_eq!(
        node("second")
            .alone("flush", &CancellationToken::new(), async { Ok(1) })
            .await
            .unwrap(),
        Some(1)
    );
}

#[tokio::test]
async fn a_renewal_that_fails_is_tried_again_before_work_is_dropped() {
    let bench = Bench::new().await;
    let stop = CancellationToken::new();
    let file = file_in(bench.directory.path());
    let rename = async |from: &str, to: &str| {
        let address = format!("sqlite://{}", file.display());
        let mut connection = SqliteConnection::connect(&address).await.unwrap();
        let sql = format!("ALTER TABLE {from} RENAME TO {to}");
        connection.execute(AssertSqlSafe(sql)).await.unwrap();
    };
    let pass = async |seconds: u64| tokio::time::sleep(Duration::from_secs(seconds)).await;
    // The first renewal is due after ten seconds.
    let work = async {
        pass(9).await;
        rename("leases", "elsewhere").await;
        pass(3).await;
        rename("elsewhere", "leases").await;
        pass(3).await;
        let other = leases_of(&bench, "second");
        other.alone("flush", &stop, async { Ok(2) }).await
    };
    let done = leases_of(&bench, "first").alone("flush", &stop, work).await;
    assert_eq!(
        done.unwrap(),
        Some(None),
        "the work was done, and nobody else's beside it"
    );
}

#[tokio::test]
async fn work_ends_with_its_lease_also_while_a_renewal_waits() {
    let bench = Bench::new().await;
    let catalog = &bench.stores.catalog;
    // While somebody else writes, a renewal waits for ten seconds.
    catalog.ensure_person(bench.key.person, None).await.unwrap();
    let hold = catalog.hold(bench.key.person).await.unwrap();
    let begun = std::time::Instant::now();
    let taken = begun.checked_sub(Duration::from_millis(29_500)).unwrap();
    let lost = leases_of(&bench, "first").renew_until_lost("flush", taken).await;
    let ended = begun.elapsed();
    hold.give_back().await.unwrap();
    let told = lost.unwrap_err().to_string();
    assert!(told.contains("before it was over"), "{told}");
    assert!(ended < Duration::from_secs(5), "{ended:?}");
}

#[tokio::test]
async fn a_sweep_over_people_without_changes_lets_others_go_on() {
    let people = || (1..=64).map(|number| PersonId(Uuid::from_u128(number)));
    let directory = tempfile::tempdir().unwrap();
    let fate = Arc::new(StopsAtLists::default());
    let objects = ObjectStorage::over(Arc::new(FaultyStore::new(
        Arc::new(InMemory::new()),
        Arc::clone(&fate),
    )));
    let bench = Bench::over(directory, objects).await;
    for person in people() {
        bench.stores.catalog.ensure_person(person, None).await.unwrap();
    }
    // The first and the last have changes, which the store is asked about.
    for person in people().skip(1).take(62) {
        assert!(write_manifest(&bench.stores, person).await.unwrap());
        assert!(!write_manifest(&bench.stores, person).await.unwrap());
    }
    let stop = fate.stop.get_or_init(CancellationToken::new).clone();
    let upkeep = Upkeep::new(settings(), bench.stores.clone(), Meters::default(), stop);
    upkeep.write_manifests().await.unwrap();
    let lists = fate.lists.load(Ordering::Relaxed);
    assert_eq!(lists, 1, "it goes on after it was stopped");
}

#[tokio::test]
async fn the_lease_of_a_node_that_died_ends_by_itself() {
    let bench = Bench::new().await;
    assert!(
        bench
            .stores
            .catalog
            .acquire_lease("flush", "dead", Duration::from_secs(30))
            .await
            .unwrap()
    );
    let leases = leases_of(&bench, "alive");
    let stop = CancellationToken::new();
    assert_eq!(leases.alone("flush", &stop, async { Ok(1) }).await.unwrap(), None);
    bench.pass(Duration::from_secs(31));
    assert_eq!(
        leases.alone("flush", &stop, async { Ok(1) }).await.unwrap(),
        Some(1)
    );
}

#[test]
fn refusals_are_one_delay_only_while_they_follow_each_other() {
    let begin = std::time::Instant::now();
    let at = |seconds: u64| begin + Duration::from_secs(seconds);
    // Twice in three hours, and nothing in between.
    let mut refused = LeaseRefusals::first(at(0));
    assert!(!refused.again(at(3 * 3_600)));
    // Every five seconds: told once in ten minutes.
    let mut refused = LeaseRefusals::first(at(0));
    let told: Vec<u64> = (1..=250)
        .map(|round| round * 5)
        .filter(|second| refused.again(at(*second)))
        .collect();
    assert_eq!(told, [600, 1_200]);
}

#[tokio::test]
async fn a_lease_taken_by_a_clock_that_was_wrong_is_free_again() {
    let bench = Bench::new().await;
    bench.pass(Duration::from_hours(365 * 24));
    let taken = bench
        .stores
        .catalog
        .acquire_lease("flush", "ahead", Duration::from_secs(30));
    assert!(taken.await.unwrap());
    bench.clock.set(Instant::from_micros(
        bench.clock.now().micros() - 365 * 24 * 3600 * SECOND,
    ));
    let leases = leases_of(&bench, "alive");
    let stop = CancellationToken::new();
    assert_eq!(
        leases.alone("flush", &stop, async { Ok(1) }).await.unwrap(),
        Some(1)
    );
}

#[tokio::test]
async fn a_lease_that_is_damaged_is_free_and_is_replaced() {
    let bench = Bench::new().await;
    let acquire = async |holder: &str| {
        let length = Duration::from_secs(30);
        let acquired = bench.stores.catalog.acquire_lease("flush", holder, length).await;
        acquired.unwrap()
    };
    assert!(acquire("dead").await);
    tamper(&bench, "UPDATE leases SET checksum = checksum + 1").await;
    assert!(acquire("alive").await);
    assert!(!acquire("another").await);
    assert!(acquire("alive").await);
}

#[tokio::test]
async fn nodes_whose_clocks_differ_hold_a_lease_by_one_time() {
    let bench = Bench::new().await;
    let ahead = Arc::new(ManualClock::at(Instant::from_micros(
        bench.clock.now().micros() + 24 * 3600 * SECOND,
    )));
    let address = address_in(bench.directory.path());
    let other = Catalog::open(&address, ahead)
        .await
        .unwrap()
        .keeping_time(bench.clock.clone());
    let length = Duration::from_secs(30);
    assert!(other.acquire_lease("flush", "ahead", length).await.unwrap());
    let ours = &bench.stores.catalog;
    assert!(!ours.acquire_lease("flush", "here", length).await.unwrap());
    bench.pass(Duration::from_secs(31));
    assert!(ours.acquire_lease("flush", "here", length).await.unwrap());
    assert!(!other.acquire_lease("flush", "ahead", length).await.unwrap());
}

/// The log of the catalogue, of which every commit makes another.
async fn log_of(bench: &Bench) -> Vec<u8> {
    tokio::fs::read(file_in(bench.directory.path()).with_extension("db-wal"))
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_with_nothing_to_do_writes_nothing() {
    let bench = Bench::new().await;
    for piece in 0..4 {
        bench.put(&many(piece * 10, 10, LAST_DAY_OF_2023), true).await;
    }
    let stop = CancellationToken::new();
    let upkeep = Upkeep::start(
        settings(),
        bench.stores.clone(),
        Meters::default(),
        stop.clone(),
        &tokio::runtime::Handle::current(),
    );
    let replaced = async || bench.paths().await.1.len() > 1;
    while replaced().await {
        tokio::time::sleep(Duration::from_millis(20)).await;
        bench.pass(Duration::from_mins(1));
    }
    let mut before = log_of(&bench).await;
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let now = log_of(&bench).await;
        if now == before {
            stop.cancel();
            upkeep.await.unwrap();
            return;
        }
        before = now;
    }
    panic!("it still writes");
}
