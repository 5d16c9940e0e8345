//! Manifests that are sent in parts, and what comes between their beginning and their end.

use std::sync::Mutex;

use bytes::Bytes;
use futures::future::BoxFuture;
use object_store::ObjectStore;
use object_store::memory::InMemory;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::*;
use crate::catalog::NoticedDeletion;
use crate::store::faults::{Fate, Fault, FaultyStore, Operation};
use crate::upkeep::erasure_check::traces_left;
use crate::upkeep::lost_manifests::{complaints, write_lost};
use crate::upkeep::manifest::write_manifest;
use crate::upkeep::manifest_names::{TakenNumbers, manifest_path};
use crate::upkeep::purge::{forget_older_manifests, purge_deleted};
use crate::upkeep::rebuild::rebuild;

/// What the first manifest says.
const FIRST: &str = "{}";
/// What is said once the large manifest is on its way.
const LATER: &str = "{\"zone\":\"UTC\"}";

/// A step of the second manifest's way into the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Claim,
    FirstPart,
    End,
}

impl Step {
    /// The operation, and how many others of its kind come before it.
    const fn operation(self) -> (Operation, usize) {
        match self {
            Self::Claim => (Operation::Put, 0),
            Self::FirstPart => (Operation::Part, 0),
            Self::End => (Operation::Put, 1),
        }
    }
}

/// Holds an operation on one object until it may go on.
#[derive(Debug, Default)]
struct HoldsStep {
    path: Mutex<Option<String>>,
    /// What is held, after so many others of its kind.
    held: Mutex<Option<(Operation, usize)>>,
    /// What fails once.
    fails: Mutex<Option<Operation>>,
    /// How often somebody put something there.
    puts: Mutex<usize>,
    has_begun: Notify,
    goes_on: Notify,
}

impl HoldsStep {
    fn holds(&self, operation: Operation) -> bool {
        let is_due = |held: &mut (Operation, usize)| {
            let is_due = *held == (operation, 0);
            if held.0 == operation && !is_due {
                held.1 -= 1;
            }
            is_due
        };
        self.held.lock().unwrap().take_if(is_due).is_some()
    }

    fn fails(&self, operation: Operation) -> bool {
        let mut fails = self.fails.lock().unwrap();
        fails.take_if(|fails| *fails == operation).is_some()
    }
}

#[async_trait::async_trait]
impl Fate for HoldsStep {
    async fn fault_for(&self, operation: Operation, path: &str) -> Option<Fault> {
        if self.path.lock().unwrap().as_deref() != Some(path) {
            return None;
        }
        if operation == Operation::Put {
            *self.puts.lock().unwrap() += 1;
        }
        if self.holds(operation) {
            self.has_begun.notify_one();
            self.goes_on.notified().await;
        }
        self.fails(operation).then_some(Fault::Fail)
    }

    fn later(&self, _work: BoxFuture<'static, ()>) {}
}

/// Somebody with a small manifest, who has said too much since for one request.
struct Talkative {
    bench: Bench,
    fate: Arc<HoldsStep>,
    said: String,
}

impl Talkative {
    /// In a directory and in memory.
    async fn all() -> [Self; 2] {
        let (directory, fate) = (tempfile::tempdir().unwrap(), Arc::new(HoldsStep::default()));
        let at = ObjectStoreSettings::Local(directory.path().join("objects"));
        let objects = ObjectStorage::open(&at).unwrap();
        let objects = objects.beneath(|store| held(store, &fate));
        let in_directory = Self::over(directory, objects, fate, 4 << 20).await;
        let fate = Arc::new(HoldsStep::default());
        let objects = ObjectStorage::over(held(Arc::new(InMemory::new()), &fate));
        let in_memory = Self::over(tempfile::tempdir().unwrap(), objects, fate, 24 << 20).await;
        [in_directory, in_memory]
    }

    async fn over(
        directory: tempfile::TempDir,
        objects: ObjectStorage,
        fate: Arc<HoldsStep>,
        letters: usize,
    ) -> Self {
        let bench = Bench::over(directory, objects).await;
        let (catalog, person) = (&bench.stores.catalog, bench.key.person);
        catalog.ensure_person(person, None).await.unwrap();
        assert!(catalog.swap_preferences(person, None, FIRST).await.unwrap());
        assert!(write_manifest(&bench.stores, person).await.unwrap());
        // Nothing in it repeats, so that it takes half as much room when it is compressed.
        let said: String = (0..letters / 32)
            .map(|_| Uuid::new_v4().simple().to_string())
            .collect();
        assert!(
            catalog
                .swap_preferences(person, Some(FIRST), &said)
                .await
                .unwrap()
        );
        Self { bench, fate, said }
    }

    /// Begins to write the second manifest, which is held in the middle; then something else is said.
    async fn begun(&self) -> JoinHandle<Result<bool, StoreError>> {
        self.begun_until(Step::FirstPart).await
    }

    /// Begins to write the second manifest, which is held at this step; then something else is said.
    async fn begun_until(&self, step: Step) -> JoinHandle<Result<bool, StoreError>> {
        let (stores, person) = (self.bench.stores.clone(), self.bench.key.person);
        *self.fate.path.lock().unwrap() = Some(manifest_path(person, 2));
        *self.fate.held.lock().unwrap() = Some(step.operation());
        let catalog = stores.catalog.clone();
        let writing = tokio::spawn(async move { write_manifest(&stores, person).await });
        self.fate.has_begun.notified().await;
        let swapped = catalog.swap_preferences(person, Some(&self.said), LATER).await;
        assert!(swapped.unwrap());
        writing
    }
}

fn held(store: Arc<dyn ObjectStore>, fate: &Arc<HoldsStep>) -> Arc<FaultyStore> {
    Arc::new(FaultyStore::new(store, Arc::clone(fate)))
}

/// How many notices there are that manifests of somebody must go, due before `moment` or at once.
async fn waiting(bench: &Bench, moment: Option<Instant>) -> usize {
    let catalog = &bench.stores.catalog;
    catalog
        .people_needing_manifest(moment, None)
        .await
        .unwrap()
        .sound
        .len()
}

async fn taken(bench: &Bench) -> (Vec<i64>, Vec<i64>) {
    let TakenNumbers { manifests, claims } = TakenNumbers::of(bench.stores.objects(), bench.key.person)
        .await
        .unwrap();
    (manifests, claims)
}

/// Loses the catalogue; what the person said according to the one that is made from the store.
async fn rebuilt(bench: Bench) -> (Bench, Option<String>) {
    let bench = bench.without_catalogue().await;
    let rebuilt = rebuild(&bench.stores).await.unwrap();
    assert_eq!((rebuilt.done.len(), rebuilt.failed.len()), (1, 0), "{rebuilt:?}");
    let person = bench.stores.catalog.person(bench.key.person).await.unwrap();
    let said = person.and_then(|person| person.preferences);
    (bench, said)
}

#[tokio::test]
async fn a_large_manifest_that_was_overtaken_takes_nobodys_place() {
    for talkative in Talkative::all().await {
        let slow = talkative.begun().await;
        let Talkative { bench, fate, .. } = talkative;
        let (stores, person) = (&bench.stores, bench.key.person);
        assert_eq!(taken(&bench).await, (vec![1], vec![2]));
        assert!(write_manifest(stores, person).await.unwrap());
        assert_eq!(taken(&bench).await, (vec![3, 1], vec![]));
        fate.goes_on.notify_one();
        assert!(!slow.await.unwrap().unwrap(), "others were faster");
        assert_eq!(taken(&bench).await, (vec![3, 1], vec![]));
        assert_eq!(complaints(stores, person).await.unwrap(), [""; 0]);
        assert!(!write_manifest(stores, person).await.unwrap(), "it is up to date");
        let (_bench, said) = rebuilt(bench).await;
        assert_eq!(said.as_deref(), Some(LATER));
    }
}

#[tokio::test]
async fn a_large_manifest_that_nobody_overtook_is_the_newest() {
    for talkative in Talkative::all().await {
        let slow = talkative.begun().await;
        let Talkative { bench, fate, said } = talkative;
        fate.goes_on.notify_one();
        assert!(slow.await.unwrap().unwrap());
        assert_eq!(taken(&bench).await, (vec![2, 1], vec![]));
        let (_bench, back) = rebuilt(bench).await;
        assert!(back == Some(said));
    }
}

#[tokio::test]
async fn what_was_removed_does_not_come_back_with_a_large_manifest() {
    let judge = |_: PersonId, outcome: Result<(), StoreError>| outcome;
    for talkative in Talkative::all().await {
        let slow = talkative.begun().await;
        let Talkative { bench, fate, .. } = talkative;
        let (stores, person) = (&bench.stores, bench.key.person);
        let forget_at_once = async || {
            let forgotten = forget_older_manifests(stores, None, |_| false, judge);
            forgotten.await.unwrap();
        };
        stores.catalog.request_manifest(person).await.unwrap();
        forget_at_once().await;
        assert_eq!(taken(&bench).await, (vec![3], vec![]));
        assert_eq!(waiting(&bench, None).await, 1, "an older one may still appear");
        fate.goes_on.notify_one();
        assert!(!slow.await.unwrap().unwrap());
        assert_eq!(taken(&bench).await, (vec![3], vec![]));
        // As if it had died before it could remove its own, soon or after others had looked once more.
        for newest in [4, 6] {
            let older = Bytes::from_static(b"older");
            let path = manifest_path(person, 2);
            stores.objects().put(&path, older).await.unwrap();
            forget_at_once().await;
            assert_eq!(taken(&bench).await, (vec![newest], vec![]));
            forget_at_once().await;
            assert_eq!(taken(&bench).await, (vec![newest + 1], vec![]));
        }
        bench.pass(Duration::from_hours(2));
        forget_at_once().await;
        assert_eq!(taken(&bench).await, (vec![8], vec![]));
        assert_eq!(waiting(&bench, Some(Instant::MAX)).await, 0);
    }
}

#[tokio::test]
async fn what_is_purged_while_a_large_manifest_is_written_is_looked_for_again_at_once() {
    for talkative in Talkative::all().await {
        let slow = talkative.begun().await;
        let Talkative { bench, fate, .. } = talkative;
        let deletion = NoticedDeletion {
            person: bench.key.person,
            data_type: bench.key.data_type.clone(),
            noticed_at: bench.clock.now(),
        };
        purge_deleted(&bench.stores, &[deletion]).await.unwrap();
        assert_eq!(taken(&bench).await, (vec![3], vec![]));
        assert_eq!(waiting(&bench, None).await, 1);
        fate.goes_on.notify_one();
        assert!(!slow.await.unwrap().unwrap());
    }
}

#[tokio::test]
async fn a_number_that_is_claimed_after_others_have_looked_is_given_up() {
    let judge = |_: PersonId, outcome: Result<(), StoreError>| outcome;
    for talkative in Talkative::all().await {
        let slow = talkative.begun_until(Step::Claim).await;
        let Talkative { bench, fate, .. } = talkative;
        let (stores, person) = (&bench.stores, bench.key.person);
        assert!(write_manifest(stores, person).await.unwrap());
        assert_eq!(taken(&bench).await, (vec![2, 1], vec![]));
        stores.catalog.request_manifest(person).await.unwrap();
        let forgotten = forget_older_manifests(stores, None, |_| false, judge);
        forgotten.await.unwrap();
        assert_eq!(taken(&bench).await, (vec![3], vec![]));
        assert_eq!(waiting(&bench, Some(Instant::MAX)).await, 0);
        assert_eq!(*fate.puts.lock().unwrap(), 2);
        fate.goes_on.notify_one();
        assert!(!slow.await.unwrap().unwrap());
        assert_eq!(taken(&bench).await, (vec![3], vec![]));
        assert_eq!(*fate.puts.lock().unwrap(), 2, "it was claimed, and nothing else");
    }
}

#[tokio::test]
async fn a_large_manifest_that_was_overtaken_is_removed_although_the_store_is_away_for_a_moment() {
    for talkative in Talkative::all().await {
        let slow = talkative.begun_until(Step::End).await;
        let Talkative { bench, fate, .. } = talkative;
        let (stores, person) = (&bench.stores, bench.key.person);
        assert_eq!(taken(&bench).await, (vec![1], vec![2]));
        assert!(write_manifest(stores, person).await.unwrap());
        assert_eq!(taken(&bench).await, (vec![3, 1], vec![]));
        *fate.fails.lock().unwrap() = Some(Operation::Delete);
        fate.goes_on.notify_one();
        assert!(slow.await.unwrap().is_err());
        assert_eq!(taken(&bench).await, (vec![3, 1], vec![]));
    }
}

#[tokio::test]
async fn a_claim_that_a_crash_left_is_no_manifest_and_goes_with_the_older_ones() {
    for talkative in Talkative::all().await {
        let killed = talkative.begun().await;
        killed.abort();
        assert!(killed.await.unwrap_err().is_cancelled());
        let bench = talkative.bench;
        let (stores, person) = (&bench.stores, bench.key.person);
        assert_eq!(taken(&bench).await, (vec![1], vec![2]));
        assert_eq!(complaints(stores, person).await.unwrap(), [""; 0]);
        assert_eq!(write_lost(stores).await.unwrap().sound.len(), 0);
        let spill = bench.directory.path().join("spill");
        let traces = traces_left(stores, PersonId(Uuid::now_v7()), &spill).await;
        assert_eq!(traces.unwrap().left, [""; 0]);
        let (bench, said) = rebuilt(bench).await;
        assert_eq!(said.as_deref(), Some(FIRST));
        assert!(write_manifest(&bench.stores, person).await.unwrap());
        assert_eq!(taken(&bench).await, (vec![3, 1], vec![]));
    }
}

#[tokio::test]
async fn a_large_manifest_that_cannot_be_written_leaves_no_claim() {
    for Talkative { bench, .. } in Talkative::all().await {
        bench.put(&many(0, 3, LAST_DAY_OF_2023), false).await;
        tamper(&bench, "UPDATE blobs SET blob = X'00'").await;
        for _ in 0..2 {
            let written = write_manifest(&bench.stores, bench.key.person).await;
            assert!(written.unwrap_err().is_damage());
            assert_eq!(taken(&bench).await, (vec![1], vec![]));
        }
    }
}
