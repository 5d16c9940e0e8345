//! What one person has that cannot be read keeps nobody else from being checked and copied.

use std::sync::Mutex;

use async_trait::async_trait;
use bytes::Bytes;
use futures::future::BoxFuture;
use sha2::{Digest as _, Sha256};

use super::erasures_end::keys_in;
use super::*;
use crate::catalog::documents::Changed;
use crate::store::contents::Content;
use crate::store::faults::{Fate, Fault, FaultyStore, Operation};
use crate::store::sealing::{self, PersonKeys};
use crate::upkeep::backup::{BackupReport, back_up};
use crate::upkeep::check::{self, CheckTotals, check};

/// Lets nothing be read whose path contains any of these, as a disk with a bad sector does.
#[derive(Debug, Default)]
struct Unreadable(Mutex<Vec<String>>);

impl Unreadable {
    fn add(&self, part_of_path: &str) {
        self.0.lock().unwrap().push(part_of_path.to_owned());
    }
}

#[async_trait]
impl Fate for Unreadable {
    async fn fault_for(&self, operation: Operation, path: &str) -> Option<Fault> {
        let parts_of_paths = self.0.lock().unwrap();
        let is_unreadable = parts_of_paths.iter().any(|part| path.contains(part));
        (operation == Operation::Get && is_unreadable).then_some(Fault::Fail)
    }

    fn later(&self, _work: BoxFuture<'static, ()>) {}
}

/// What so many people have: a piece and a file each. The people are in the order of their ids.
async fn with_people(count: usize) -> (Bench, Arc<Unreadable>, Vec<PersonId>) {
    let directory = tempfile::tempdir().unwrap();
    let local = ObjectStorage::open(&ObjectStoreSettings::Local(directory.path().join("objects"))).unwrap();
    let unreadable = Arc::new(Unreadable::default());
    let faulty = FaultyStore::new(local.store(), Arc::clone(&unreadable));
    let mut bench = Bench::over(directory, ObjectStorage::over(Arc::new(faulty))).await;
    let mut people = Vec::new();
    for number in 0..count {
        let person = PersonId(Uuid::from_u128(number as u128 + 1));
        bench.key.person = person;
        bench
            .put(&many(number as u128 * 100, 10, LAST_DAY_OF_2023), true)
            .await;
        file(&bench).await;
        people.push(person);
    }
    (bench, unreadable, people)
}

/// Stores a file of the bench's person.
async fn file(bench: &Bench) {
    let contents = bench.stores.contents();
    let now = bench.clock.now();
    let bytes = Bytes::from_static(b"some bytes of a file");
    let id = Uuid::now_v7();
    let content = Content::announced(id, bench.key.person, bytes.len() as u64, now, Instant::MAX);
    let mut part = contents.part(&content).unwrap();
    part.write(bytes.clone()).await.unwrap();
    let content = content.with_part(part.finish().await.unwrap(), Sha256::new_with_prefix(&bytes));
    let change = content.insertion().unwrap();
    let changed = bench.stores.catalog.change_documents(vec![change]).await;
    assert_eq!(changed.unwrap(), Changed::Done);
}

/// The only file of a person on the disk.
fn part_of(bench: &Bench, person: PersonId) -> std::path::PathBuf {
    let mut place = bench.directory.path().join(format!("objects/files/{person}"));
    while place.is_dir() {
        place = std::fs::read_dir(&place).unwrap().next().unwrap().unwrap().path();
    }
    place
}

/// What a check counts and complains of.
async fn checked(bench: &Bench) -> (CheckTotals, Vec<String>) {
    let said = Mutex::new(Vec::new());
    let tell = |told| {
        if let check::CheckProgress::Wrong(what) = told {
            said.lock().unwrap().push(what);
        }
    };
    let totals = check(&bench.stores, &tell).await.unwrap();
    (totals, said.into_inner().unwrap())
}

/// Copies everything into a new directory.
async fn copied(
    bench: &Bench,
    objects: &ObjectStorage,
    keys: Option<&Arc<PersonKeys>>,
) -> Result<BackupReport, StoreError> {
    let directory = tempfile::tempdir().unwrap();
    let (clock, ids) = (Arc::new(SystemClock), Arc::new(SystemIds::default()));
    let catalog = &bench.stores.catalog;
    let copied = back_up(catalog, objects, keys, directory.path(), clock, ids, &|_| ()).await;
    copied?.finish()
}

#[tokio::test]
async fn a_part_that_cannot_be_read_keeps_no_other_from_being_checked() {
    let (bench, unreadable, people) = with_people(3).await;
    let (totals, said) = checked(&bench).await;
    assert_eq!((totals.people, totals.objects, said), (3, 6, Vec::new()));
    unreadable.add(&format!("files/{}", people[0]));
    let damaged = part_of(&bench, people[1]);
    let mut content = std::fs::read(&damaged).unwrap();
    content[0] ^= 1;
    std::fs::write(&damaged, content).unwrap();
    let (totals, said) = checked(&bench).await;
    assert_eq!(
        (totals.people, totals.objects, totals.wrong),
        (3, 6, 2),
        "{said:?}"
    );
    for (person, what) in people.iter().zip(&said) {
        assert!(what.starts_with(&format!("person {person}, files: ")), "{what}");
    }
    let name = damaged.file_name().unwrap().to_str().unwrap();
    assert!(said[1].contains(name), "{said:?}");
}

#[tokio::test]
async fn what_cannot_be_read_keeps_nothing_else_from_being_copied() {
    let (bench, unreadable, people) = with_people(3).await;
    let objects = bench.stores.objects();
    let sound = copied(&bench, objects, None).await.unwrap();
    assert_eq!((sound.objects, sound.wrong), (6, Vec::new()));
    unreadable.add(&format!("files/{}", people[0]));
    unreadable.add(&format!("data/{}", people[1]));
    let report = copied(&bench, objects, None).await.unwrap();
    assert_eq!((report.objects, report.wrong.len()), (4, 2), "{report:?}");
    for person in &people[..2] {
        let person = format!("person {person}, object ");
        assert!(
            report.wrong.iter().any(|what| what.starts_with(&person)),
            "{report:?}"
        );
    }
}

#[tokio::test]
async fn a_store_that_is_down_ends_a_copy() {
    let (bench, unreadable, _) = with_people(1).await;
    unreadable.add("");
    let report = copied(&bench, bench.stores.objects(), None).await;
    assert!(
        matches!(report, Err(StoreError::Unavailable { .. })),
        "{report:?}"
    );
}

#[tokio::test]
async fn as_many_people_as_fail_in_a_round_end_a_copy() {
    let (bench, unreadable, people) = with_people(6).await;
    for person in &people[..4] {
        unreadable.add(&person.to_string());
    }
    let report = copied(&bench, bench.stores.objects(), None).await.unwrap();
    assert_eq!((report.objects, report.wrong.len()), (4, 8), "{report:?}");
    unreadable.add(&people[4].to_string());
    let report = copied(&bench, bench.stores.objects(), None).await;
    assert!(
        matches!(report, Err(StoreError::Unavailable { .. })),
        "{report:?}"
    );
}

#[tokio::test]
async fn a_lost_key_is_told_once_and_keeps_nobody_else_from_being_copied() {
    let directory = tempfile::tempdir().unwrap();
    let keys = Arc::new(keys_in(directory.path()));
    let local = ObjectStorage::open(&ObjectStoreSettings::Local(directory.path().join("objects"))).unwrap();
    sealing::mark(&local, &keys, false).await.unwrap();
    let mut bench = Bench::over(directory, sealing::over(local.clone(), &keys)).await;
    for number in 1..=3 {
        bench.key.person = PersonId(Uuid::from_u128(number));
        bench.put(&many(number * 100, 10, LAST_DAY_OF_2023), true).await;
        file(&bench).await;
    }
    let lost = PersonId(Uuid::from_u128(2));
    let key = bench.directory.path().join(format!("keys/{lost}.key"));
    std::fs::remove_file(key).unwrap();
    // As another process, which remembers no keys.
    let again = Arc::new(keys_in(bench.directory.path()));
    let objects = sealing::over(local.clone(), &again);
    let report = copied(&bench, &objects, Some(&again)).await.unwrap();
    assert_eq!((report.objects, report.wrong.len()), (4, 1), "{report:?}");
    assert!(report.wrong[0].contains(&lost.to_string()), "{report:?}");
    assert!(!again.has(lost).await.unwrap(), "no other key is made for them");

    // Where no key can be opened, nothing of it is one person's.
    for number in [1, 3] {
        let person = PersonId(Uuid::from_u128(number));
        std::fs::write(bench.directory.path().join(format!("keys/{person}.key")), "none").unwrap();
    }
    let again = Arc::new(keys_in(bench.directory.path()));
    let objects = sealing::over(local, &again);
    let report = copied(&bench, &objects, Some(&again)).await;
    assert!(report.is_err(), "{report:?}");
}
