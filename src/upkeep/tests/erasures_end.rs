//! An erasure ends once, when nothing is left in the files of the database either. What its person has since
//! is theirs, however late somebody goes on with the erasure.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::BoxFuture;
use object_store::memory::InMemory;
use tokio::sync::Notify;

use super::erasing::{begin, database_files_with, friends, go_on, left, sharing_friend};
use super::*;
use crate::catalog::CatalogError;
use crate::catalog::test_databases::file_in;
use crate::store::faults::{Fate, Fault, FaultyStore, Operation};
use crate::store::sealing::{MasterKeys, PersonKeys, Wrapping};
use crate::upkeep::erase::{ERASURE_LENGTH, erase};
use crate::upkeep::manifest::write_manifest;
use crate::upkeep::manifest_names::{manifest_path, numbers};
use crate::upkeep::rebuild::rebuild;

/// Once it is armed, holds up whoever asks next for a list.
#[derive(Debug, Default)]
struct HeldUp {
    is_armed: AtomicBool,
    arrived: Notify,
    goes_on: Notify,
}

#[async_trait::async_trait]
impl Fate for HeldUp {
    async fn fault_for(&self, operation: Operation, _path: &str) -> Option<Fault> {
        if operation == Operation::List && self.is_armed.swap(false, Ordering::Relaxed) {
            self.arrived.notify_one();
            self.goes_on.notified().await;
        }
        None
    }

    fn later(&self, _work: BoxFuture<'static, ()>) {}
}

/// Keys of people in a directory.
pub(super) fn keys_in(directory: &std::path::Path) -> PersonKeys {
    let master = directory.join("master");
    std::fs::write(&master, "0f".repeat(32)).unwrap();
    std::fs::set_permissions(&master, Permissions::from_mode(0o600)).unwrap();
    let place = ObjectStorage::open(&ObjectStoreSettings::Local(directory.join("keys"))).unwrap();
    PersonKeys::new(
        place,
        Wrapping::new(Some(MasterKeys::read(&master).unwrap()), None),
    )
}

#[tokio::test]
async fn a_node_that_knows_an_erasure_from_before_its_end_leaves_who_began_anew_alone() {
    let bench = Bench::new().await;
    friends(&bench).await;
    begin(&bench).await;
    bench.pass(ERASURE_LENGTH);
    let catalog = &bench.stores.catalog;
    let known = catalog.erasures_under_way().await.unwrap().remove(0);
    assert!(go_on(&bench, usize::MAX).await);
    let over = catalog.erasure_of(bench.key.person).await.unwrap();
    assert!(over.is_some_and(|erasure| erasure.is_over()), "{over:?}");
    bench.put(&many(900, 3, LAST_DAY_OF_2023), true).await;
    bench.put(&many(910, 3, LAST_DAY_OF_2023), false).await;
    let stored = bench.visible().await;
    assert_eq!(stored.len(), 6);
    bench.pass(ERASURE_LENGTH);
    erase(&bench.stores, &known).await.unwrap();
    assert_eq!(bench.visible().await, stored);
    assert_eq!(catalog.erasure_of(bench.key.person).await.unwrap(), over);
}

#[tokio::test]
async fn a_node_that_is_held_up_while_it_erases_leaves_who_began_anew_alone() {
    let directory = tempfile::tempdir().unwrap();
    let fate = Arc::new(HeldUp::default());
    let objects = ObjectStorage::over(Arc::new(FaultyStore::new(
        Arc::new(InMemory::new()),
        Arc::clone(&fate),
    )));
    let keys = Arc::new(keys_in(directory.path()));
    let mut bench = Bench::over(directory, objects).await;
    bench.stores.snapshots = bench.stores.snapshots.opening(Some(Arc::clone(&keys)));
    let person = bench.key.person;
    bench.put(&many(0, 3, LAST_DAY_OF_2023), true).await;
    keys.ensured(person).await.unwrap();
    begin(&bench).await;
    bench.pass(ERASURE_LENGTH);
    let catalog = &bench.stores.catalog;
    let erasure = catalog.erasures_under_way().await.unwrap().remove(0);
    fate.is_armed.store(true, Ordering::Relaxed);
    let meanwhile = async {
        fate.arrived.notified().await;
        erase(&bench.stores, &erasure).await.unwrap();
        assert_eq!(catalog.erasures_under_way().await.unwrap(), []);
        assert!(!keys.has(person).await.unwrap());
        bench.put(&many(900, 3, LAST_DAY_OF_2023), true).await;
        keys.ensured(person).await.unwrap();
        let over = catalog.erasure_of(person).await.unwrap();
        fate.goes_on.notify_one();
        over
    };
    let (held_up, over) = tokio::join!(erase(&bench.stores, &erasure), meanwhile);
    held_up.unwrap();
    assert_eq!(bench.visible().await.len(), 3);
    assert!(keys.has(person).await.unwrap());
    assert_eq!(catalog.erasure_of(person).await.unwrap(), over);
}

#[tokio::test]
async fn an_erasure_that_damage_held_open_ends_with_nothing_in_the_files_of_the_database() {
    let bench = Bench::new().await;
    let friend = friends(&bench).await;
    let person = bench.key.person.to_string();
    let of_friend = format!("WHERE hex(person) = '{}'", friend.0.simple()).to_uppercase();
    let damage = async |step: i64| {
        let sql = format!("UPDATE documents SET checksum = checksum + {step} {of_friend}");
        tamper(&bench, &sql).await;
    };
    damage(1).await;
    begin(&bench).await;
    bench.pass(ERASURE_LENGTH);
    let erasure = bench.stores.catalog.erasures_under_way().await.unwrap().remove(0);
    let held_open = erase(&bench.stores, &erasure).await;
    assert!(held_open.is_err_and(|error| error.is_damage()));
    damage(-1).await;
    // What is removed now cannot be overwritten: somebody reads an earlier state of the database.
    let file = file_in(bench.directory.path());
    let address = format!("sqlite://{}", file.display());
    let mut reader = SqliteConnection::connect(&address).await.unwrap();
    reader
        .execute("BEGIN; SELECT COUNT(*) FROM people;")
        .await
        .unwrap();
    let refused = erase(&bench.stores, &erasure).await;
    assert!(
        matches!(refused, Err(StoreError::Catalog(CatalogError::Contended { .. }))),
        "{refused:?}"
    );
    reader.close().await.unwrap();
    assert!(!database_files_with(&bench, &person).is_empty());
    erase(&bench.stores, &erasure).await.unwrap();
    assert_eq!(bench.stores.catalog.erasures_under_way().await.unwrap(), []);
    assert_eq!(left(&bench).await, [""; 0]);
    let found = database_files_with(&bench, &person);
    assert!(found.is_empty(), "{found:?}");
}

#[tokio::test]
async fn an_erasure_waits_where_manifests_of_somebody_who_is_lost_name_its_person() {
    let bench = Bench::new().await;
    let friend = sharing_friend(&bench).await;
    let of_friend = format!("WHERE hex(person) = '{}'", friend.0.simple()).to_uppercase();
    let lose = format!(
        "PRAGMA foreign_keys = OFF; CREATE TABLE lost AS SELECT * FROM people {of_friend}; DELETE FROM \
         people {of_friend}"
    );
    bench.stores.catalog.request_manifest(friend).await.unwrap();
    tamper(&bench, &lose).await;
    begin(&bench).await;
    bench.pass(ERASURE_LENGTH);
    let erasure = bench.stores.catalog.erasures_under_way().await.unwrap().remove(0);
    for _ in 0..2 {
        let held_open = erase(&bench.stores, &erasure).await;
        assert!(
            held_open.as_ref().is_err_and(StoreError::is_damage),
            "{held_open:?}"
        );
    }
    tamper(&bench, "INSERT INTO people SELECT * FROM lost; DROP TABLE lost").await;
    erase(&bench.stores, &erasure).await.unwrap();
    assert_eq!(bench.stores.catalog.erasures_under_way().await.unwrap(), []);
    assert_eq!(left(&bench).await, [""; 0]);
}

#[tokio::test]
async fn whoever_may_have_come_back_after_an_erasure_keeps_nobody_else_out_of_a_rebuilt_catalogue() {
    let bench = Bench::new().await;
    let friend = friends(&bench).await;
    let person = bench.key.person;
    begin(&bench).await;
    assert!(go_on(&bench, usize::MAX).await);
    bench.pass(ERASURE_LENGTH);
    assert!(go_on(&bench, usize::MAX).await);
    bench.put(&many(900, 3, LAST_DAY_OF_2023), true).await;
    bench.pass(ERASURE_LENGTH);
    assert!(write_manifest(&bench.stores, person).await.unwrap());
    let written = numbers(bench.stores.objects(), person).await.unwrap();
    assert_eq!(written.len(), 1);
    let path = manifest_path(person, written[0]);
    let file = bench.directory.path().join("objects").join(path);
    let content = std::fs::read(&file).unwrap();
    std::fs::write(&file, b"no manifest").unwrap();
    let bench = bench.without_catalogue().await;
    let catalog = &bench.stores.catalog;
    let rebuilt = rebuild(&bench.stores).await.unwrap();
    assert_eq!(rebuilt.failed.len(), 1, "{rebuilt:?}");
    assert_eq!(catalog.people_ids().await.unwrap(), [friend]);
    assert_eq!(catalog.erasure_of(person).await.unwrap(), None);
    assert!(catalog.unfinished_rebuild().await.unwrap().is_some());
    std::fs::write(&file, content).unwrap();
    let rebuilt = rebuild(&bench.stores).await.unwrap();
    assert_eq!(rebuilt.failed, [""; 0]);
    assert_eq!(bench.visible().await.len(), 3, "{rebuilt:?}");
    assert_eq!(catalog.unfinished_rebuild().await.unwrap(), None);
}
