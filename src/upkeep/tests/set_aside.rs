//! One person's trouble is theirs alone: what is damaged is set aside and counted, and all else goes on.

use std::sync::Mutex;

use futures::future::BoxFuture;
use prometheus_client::metrics::counter::Counter;
use tokio_util::sync::CancellationToken;

use super::erasing::begin;
use super::*;
use crate::catalog::documents::Changed;
use crate::catalog::erasures::Erasure;
use crate::model::erasure::ErasureMark;
use crate::model::meters::Meters;
use crate::store::contents::Content;
use crate::store::faults::{Fate, Fault, Faults, FaultyStore, Operation};
use crate::store::folder_names::{DATA_FOLDER, PEOPLE_FOLDER};
use crate::upkeep::Upkeep;
use crate::upkeep::erase::ERASURE_LENGTH;
use crate::upkeep::erasure_notes::remember;
use crate::upkeep::manifest::write_manifest;
use crate::upkeep::manifest_names::{manifest_path, numbers};
use crate::upkeep::scrub::Scrub;
use crate::upkeep::settled_partitions::SettledPartitions;

/// Two people with four objects and a tail each; the first one's key is the bench's.
async fn neighbours() -> (Bench, PartitionKey) {
    let mut bench = Bench::new().await;
    let neighbour = bench.key.clone();
    bench.key.person = PersonId(Uuid::now_v7());
    for key in [neighbour.clone(), bench.key.clone()] {
        bench.key = key;
        for piece in 0..4 {
            bench.put(&many(piece * 10, 10, LAST_DAY_OF_2023), true).await;
        }
        bench.put(&many(100, 10, LAST_DAY_OF_2023), false).await;
    }
    (bench, neighbour)
}

fn upkeep(bench: &Bench) -> (Upkeep, Meters) {
    let meters = Meters::default();
    let upkeep = Upkeep::new(
        settings(),
        bench.stores.clone(),
        meters.clone(),
        CancellationToken::new(),
    );
    (upkeep, meters)
}

#[tokio::test]
async fn a_damaged_row_of_one_person_stops_neither_flush_nor_compaction_nor_collection_of_others() {
    for sql in [
        "UPDATE pieces SET row_count = row_count + 1 WHERE person = $ AND path IS NULL",
        "UPDATE pieces SET row_count = row_count + 1 WHERE person = $ AND path IS NOT NULL",
        "UPDATE partitions SET records = records + 1 WHERE person = $",
        "UPDATE blobs SET blob = x'00' WHERE piece IN (SELECT piece FROM pieces WHERE person = $)",
    ] {
        let (mut bench, neighbour) = neighbours().await;
        let person = bench.key.person.0.simple().to_string();
        tamper(&bench, &sql.replace('$', &format!("x'{person}'"))).await;
        bench.pass(Duration::from_mins(5));
        let (upkeep, meters) = upkeep(&bench);
        upkeep.flush_due().await.unwrap();
        upkeep
            .compact_due(&mut SettledPartitions::default())
            .await
            .unwrap();
        assert_eq!(meters.set_aside_partitions.get(), 1, "{sql}");
        bench.pass(Duration::from_mins(11));
        upkeep.collect_due().await.unwrap();
        upkeep.search_orphans().await.unwrap();
        bench.key = neighbour;
        let pieces = bench.snapshot().await.pieces.clone();
        assert!(pieces.len() < 5, "{sql}: {} pieces", pieces.len());
        assert!(
            pieces
                .iter()
                .all(|piece| matches!(piece.content, PieceContent::Object(_))),
            "{sql}"
        );
        assert_eq!(bench.visible().await.len(), 50, "{sql}");
        assert!(meters.upkeep.collected_objects.get() >= 4, "{sql}");
        let checked = crate::upkeep::check::check(&bench.stores, &|_| ()).await.unwrap();
        assert!(checked.wrong > 0, "{sql}");
    }
}

#[tokio::test]
async fn an_erasure_whose_row_is_damaged_holds_up_no_other() {
    let (mut bench, neighbour) = neighbours().await;
    let damaged = bench.key.person;
    begin(&bench).await;
    bench.key = neighbour;
    begin(&bench).await;
    let damage = async |step: i64| {
        let person = damaged.0.simple();
        let sql = format!("UPDATE erasures SET checksum = checksum + {step} WHERE person = x'{person}'");
        tamper(&bench, &sql).await;
    };
    damage(1).await;
    bench.pass(ERASURE_LENGTH);
    let (upkeep, meters) = upkeep(&bench);
    let is_over = async |person| {
        let erasure = bench.stores.catalog.erasure_of(person).await.unwrap();
        erasure.is_some_and(|erasure| erasure.is_over())
    };
    // Whether or not there is anything else to do.
    for _ in 0..2 {
        upkeep.erase_due().await.unwrap();
        assert!(is_over(bench.key.person).await);
        assert_eq!(meters.set_aside_partitions.get(), 1);
    }
    damage(-1).await;
    upkeep.erase_due().await.unwrap();
    assert!(is_over(damaged).await);
    assert_eq!(meters.set_aside_partitions.get(), 0);
}

#[tokio::test]
async fn an_erasure_whose_row_is_damaged_keeps_no_note_of_another_unheeded() {
    let (bench, neighbour) = neighbours().await;
    begin(&bench).await;
    tamper(&bench, "UPDATE erasures SET checksum = checksum + 1").await;
    let noted = Erasure {
        mark: ErasureMark::of(neighbour.person),
        person: None,
        begun_at: bench.clock.now(),
        purged_at: None,
        ended_at: None,
    };
    remember(bench.stores.objects(), &noted).await.unwrap();
    let (upkeep, meters) = upkeep(&bench);
    for _ in 0..2 {
        upkeep.heed_erasures().await.unwrap();
        let is_being_erased = bench.stores.catalog.is_being_erased(neighbour.person);
        assert!(is_being_erased.await.unwrap());
        assert_eq!(meters.set_aside_partitions.get(), 1);
    }
}

/// Changes behind the catalogue's back how many rows the tail of a partition is said to have.
async fn damage_tail(bench: &Bench, key: &PartitionKey, by: i64) {
    let person = key.person.0.simple();
    let sql =
        format!("UPDATE pieces SET row_count = row_count + {by} WHERE person = x'{person}' AND path IS NULL");
    tamper(bench, &sql).await;
}

#[tokio::test]
async fn a_damaged_partition_stays_set_aside_until_it_is_looked_at_again() {
    let (mut bench, neighbour) = neighbours().await;
    let damaged = bench.key.clone();
    damage_tail(&bench, &damaged, 1).await;
    let (upkeep, meters) = upkeep(&bench);
    let mut settled = SettledPartitions::default();
    // How often somebody met the damage, how many partitions are set aside, and what was compacted.
    let told = || {
        (
            meters.store.corrupt.get(),
            meters.set_aside_partitions.get(),
            meters.upkeep.compactions.get(),
        )
    };
    upkeep.compact_due(&mut settled).await.unwrap();
    assert_eq!(told(), (1, 1, 1));
    // Whether or not there is anything else to do.
    upkeep.compact_due(&mut settled).await.unwrap();
    assert_eq!(told(), (1, 1, 1));
    bench.key = neighbour;
    for piece in 20..24 {
        bench.put(&many(piece * 10, 10, LAST_DAY_OF_2023), true).await;
    }
    upkeep.compact_due(&mut settled).await.unwrap();
    assert_eq!(told(), (1, 1, 2));
    // It is whole again, and another node compacts it.
    damage_tail(&bench, &damaged, -1).await;
    assert!(
        compact(&bench.stores, &damaged, &Limits::default())
            .await
            .unwrap()
    );
    upkeep.compact_due(&mut settled).await.unwrap();
    assert_eq!(told(), (1, 0, 2));
}

#[tokio::test]
async fn what_a_store_that_was_away_held_up_is_compacted_once_it_is_back() {
    let (bench, faults) = faulty().await;
    for piece in 0..4 {
        bench.put(&many(piece * 10, 10, LAST_DAY_OF_2023), true).await;
    }
    let (upkeep, meters) = upkeep(&bench);
    let mut settled = SettledPartitions::default();
    let told = || (meters.set_aside_partitions.get(), meters.upkeep.compactions.get());
    faults.lasting(Operation::Put, Some(Fault::Fail));
    for _ in 0..2 {
        upkeep.compact_due(&mut settled).await.unwrap();
        assert_eq!(told(), (1, 0));
    }
    faults.lasting(Operation::Put, None);
    upkeep.compact_due(&mut settled).await.unwrap();
    assert_eq!(told(), (0, 1));
}

#[tokio::test]
async fn whoever_keeps_objects_from_being_collected_is_set_aside_and_told() {
    let (bench, neighbour) = neighbours().await;
    for key in [&bench.key, &neighbour] {
        assert!(compact(&bench.stores, key, &Limits::default()).await.unwrap());
    }
    damage_tail(&bench, &bench.key, 1).await;
    bench.pass(Duration::from_mins(11));
    let (upkeep, meters) = upkeep(&bench);
    upkeep.collect_due().await.unwrap();
    let told = || {
        (
            meters.set_aside_partitions.get(),
            meters.upkeep.collected_objects.get(),
        )
    };
    assert_eq!(told(), (1, 4));
    assert_eq!((meters.upkeep.failures.get(), meters.store.corrupt.get()), (1, 1));
    // Nothing is left to collect, as after an erasure.
    tamper(&bench, "DELETE FROM retired_objects").await;
    upkeep.collect_due().await.unwrap();
    assert_eq!(told(), (0, 4));
}

/// A partition over a store with faults.
async fn faulty() -> (Bench, Arc<Faults>) {
    let faults = Arc::new(Faults::default());
    (suffering(&faults).await, faults)
}

/// A partition over a store that suffers what `fate` decides.
async fn suffering(fate: &Arc<impl Fate + 'static>) -> Bench {
    let directory = tempfile::tempdir().unwrap();
    let local = ObjectStorage::open(&ObjectStoreSettings::Local(directory.path().join("objects"))).unwrap();
    let objects = ObjectStorage::over(Arc::new(FaultyStore::new(local.store(), Arc::clone(fate))));
    Bench::over(directory, objects).await
}

/// Lets nothing be written into some folders.
#[derive(Debug, Default)]
struct Closes(Mutex<Vec<String>>);

impl Closes {
    /// Closes the folders of these people in `folder`, and opens all others.
    fn only(&self, folder: &str, people: &[PersonId]) {
        let folders = people.iter().map(|person| format!("{folder}/{person}/"));
        *self.0.lock().unwrap() = folders.collect();
    }
}

#[async_trait::async_trait]
impl Fate for Closes {
    async fn fault_for(&self, operation: Operation, path: &str) -> Option<Fault> {
        let closed = self.0.lock().unwrap();
        let is_closed = closed.iter().any(|folder| path.starts_with(folder.as_str()));
        (operation == Operation::Put && is_closed).then_some(Fault::Fail)
    }

    fn later(&self, _work: BoxFuture<'static, ()>) {}
}

/// Six people with four objects each, and what closes their folders.
async fn six_people() -> (Bench, Vec<PersonId>, Arc<Closes>) {
    let closes = Arc::new(Closes::default());
    let mut bench = suffering(&closes).await;
    let people: Vec<PersonId> = (1..=6).map(|person| PersonId(Uuid::from_u128(person))).collect();
    for person in &people {
        bench.key.person = *person;
        for piece in 0..4 {
            bench.put(&many(piece * 10, 10, LAST_DAY_OF_2023), true).await;
        }
    }
    (bench, people, closes)
}

#[tokio::test]
async fn those_who_cannot_be_written_down_keep_nobody_elses_objects_however_many_they_are() {
    let (mut bench, people, closes) = six_people().await;
    for person in &people {
        bench.key.person = *person;
        assert!(
            compact(&bench.stores, &bench.key, &Limits::default())
                .await
                .unwrap()
        );
    }
    closes.only(PEOPLE_FOLDER, &people[..5]);
    bench.pass(Duration::from_mins(11));
    let (upkeep, meters) = upkeep(&bench);
    let told = || {
        (
            meters.set_aside_partitions.get(),
            meters.upkeep.collected_objects.get(),
        )
    };
    assert!(
        upkeep.collect_due().await.is_err(),
        "it may be everybody's trouble"
    );
    assert_eq!(told(), (5, 0));
    upkeep.collect_due().await.unwrap();
    assert_eq!(told(), (5, 4));
    assert!(upkeep.collect_due().await.is_err(), "they are tried again");
    assert_eq!(told(), (5, 4));
    closes.only(PEOPLE_FOLDER, &[]);
    for _ in 0..2 {
        upkeep.collect_due().await.unwrap();
    }
    assert_eq!(told(), (0, 24));
}

#[tokio::test]
async fn those_whose_objects_cannot_be_written_keep_nobody_from_being_compacted_again() {
    let (bench, people, closes) = six_people().await;
    closes.only(DATA_FOLDER, &people);
    let (upkeep, meters) = upkeep(&bench);
    let mut settled = SettledPartitions::default();
    let told = || (meters.set_aside_partitions.get(), meters.upkeep.compactions.get());
    assert!(upkeep.compact_due(&mut settled).await.is_err());
    assert_eq!(told(), (5, 0));
    upkeep.compact_due(&mut settled).await.unwrap();
    assert_eq!(told(), (6, 0));
    closes.only(DATA_FOLDER, &people[..5]);
    assert!(upkeep.compact_due(&mut settled).await.is_err());
    upkeep.compact_due(&mut settled).await.unwrap();
    assert_eq!(told(), (5, 1));
}

#[tokio::test]
async fn an_object_that_cannot_be_read_stops_neither_scrub_nor_check() {
    let (bench, faults) = faulty().await;
    for piece in 0..3 {
        bench.put(&many(piece * 10, 10, LAST_DAY_OF_2023), true).await;
    }
    crate::upkeep::identity::settle(
        &bench.stores.catalog,
        bench.stores.objects(),
        bench.stores.ids.as_ref(),
        false,
    )
    .await
    .unwrap();
    let paths = bench.paths().await.0;
    let last = bench.directory.path().join("objects").join(&paths[2]);
    let mut content = std::fs::read(&last).unwrap();
    content[40] ^= 1;
    std::fs::write(&last, content).unwrap();
    let corrupt = Counter::default();
    faults.once(Operation::Get, Fault::Fail);
    assert!(Scrub::default().step(&bench.stores, &corrupt).await.is_err());
    assert_eq!(corrupt.get(), 1, "those after it were looked at");
    // The identity of the store is looked for first.
    faults.once(Operation::Get, Fault::Delay(Duration::ZERO));
    faults.once(Operation::Get, Fault::Fail);
    let checked = crate::upkeep::check::check(&bench.stores, &|_| ()).await.unwrap();
    assert_eq!((checked.objects, checked.wrong), (3, 2));
}

/// Announces a file of a person whose time to arrive is over at once; returns the id of its content.
async fn announce(bench: &Bench, person: PersonId) -> Uuid {
    let (contents, now) = (bench.stores.contents(), bench.clock.now());
    let content = Content::announced(Uuid::now_v7(), person, 1, now, now);
    let usage = contents.usage(person).await.unwrap().with(1);
    let changes = vec![content.insertion().unwrap(), usage.change(&content).unwrap()];
    let changed = bench.stores.catalog.change_documents(changes).await;
    assert_eq!(changed.unwrap(), Changed::Done);
    content.id
}

#[tokio::test]
async fn damage_to_one_persons_announced_files_and_manifests_does_not_end_the_search_for_orphans() {
    for damage in [
        "UPDATE documents SET checksum = checksum + 1 WHERE kind = 'file_content' AND person = $",
        "UPDATE documents SET checksum = checksum + 1 WHERE kind = 'file_usage' AND person = $",
        "UPDATE links SET checksum = checksum + 1 WHERE kind = 'open_content' AND person = $",
        "UPDATE manifests SET checksum = checksum + 1 WHERE person = $",
    ] {
        let (bench, neighbour) = neighbours().await;
        let mut announced = Vec::new();
        for key in [&bench.key, &neighbour] {
            announced.push(announce(&bench, key.person).await);
            assert!(write_manifest(&bench.stores, key.person).await.unwrap());
        }
        // What the search has to write anew.
        let lost = manifest_path(neighbour.person, 1);
        bench.stores.objects().delete(&lost).await.unwrap();
        let person = format!("x'{}'", bench.key.person.0.simple());
        tamper(&bench, &damage.replace('$', &person)).await;
        bench.pass(Duration::from_hours(2));
        let (upkeep, meters) = upkeep(&bench);
        upkeep.search_orphans().await.unwrap();
        assert_eq!(meters.set_aside_partitions.get(), 1, "{damage}");
        assert_eq!(meters.upkeep.manifests.get(), 1, "{damage}");
        let contents = bench.stores.contents();
        assert!(contents.get(announced[1]).await.unwrap().is_none(), "{damage}");
    }
}

#[tokio::test]
async fn a_damaged_notice_of_one_persons_deletions_does_not_end_the_purge() {
    for of_manifests in [false, true] {
        let (mut bench, neighbour) = neighbours().await;
        let damaged = std::mem::replace(&mut bench.key, neighbour);
        for person in [damaged.person, bench.key.person] {
            assert!(write_manifest(&bench.stores, person).await.unwrap());
            bench.stores.catalog.request_manifest(person).await.unwrap();
        }
        let neighbour = std::mem::replace(&mut bench.key, damaged.clone());
        if !of_manifests {
            // Otherwise the purge of this would put a new notice in the place of the damaged one.
            bench.delete(&[record(1)]).await;
        }
        bench.key = neighbour;
        bench.delete(&[record(1)]).await;
        while bench.stores.catalog.notice_deletions().await.unwrap() > 0 {}
        let person = damaged.person.0.simple();
        let which = if of_manifests { "=" } else { "<>" };
        let sql = format!(
            "UPDATE deletions SET checksum = checksum + 1 WHERE person = x'{person}' AND data_type {which} ''"
        );
        tamper(&bench, &sql).await;
        bench.pass(settings().purge_deleted_after);
        let (upkeep, meters) = upkeep(&bench);
        upkeep.purge_due().await.unwrap();
        assert_eq!(meters.set_aside_partitions.get(), 1, "{sql}");
        let pieces = bench.snapshot().await.pieces.clone();
        assert!(pieces.iter().all(|piece| piece.dead.is_empty()), "{sql}");
        let manifests = numbers(bench.stores.objects(), bench.key.person).await.unwrap();
        assert!(!manifests.contains(&1), "{sql}: {manifests:?}");
    }
}

#[tokio::test]
async fn rows_that_vanish_are_told_whatever_table_they_were_in() {
    for (table, key) in [
        ("sources", "source_key"),
        ("definitions", "definition"),
        ("people", "person"),
        ("pieces", "piece"),
        ("partitions", "data_type"),
    ] {
        let bench = Bench::new().await;
        bench.put(&many(0, 10, LAST_DAY_OF_2023), true).await;
        let catalog = &bench.stores.catalog;
        let person = bench.key.person;
        let source = crate::catalog::records::SeenSource {
            person,
            key: "watch".to_owned(),
            name: None,
        };
        let commit = Commit {
            sources: vec![source],
            ..Commit::default()
        };
        catalog.commit(commit).await.unwrap();
        let now = bench.clock.now();
        let definition = crate::catalog::records::StoredDefinition {
            id: Uuid::now_v7(),
            person,
            base: "Event".to_owned(),
            body: "{}".to_owned(),
            version: 1,
            deprecated: false,
            created_at: now,
            updated_at: now,
        };
        catalog.insert_definition(&definition).await.unwrap();
        assert_eq!(
            crate::upkeep::check::catalogue_complaints(catalog).await.unwrap(),
            Vec::<String>::new()
        );
        if table == "people" {
            catalog
                .ensure_person(PersonId(Uuid::from_u128(1)), None)
                .await
                .unwrap();
            let nobody = "x'00000000000000000000000000000001'";
            for table in ["manifests", "ledgers", "people"] {
                tamper(&bench, &format!("DELETE FROM {table} WHERE person = {nobody}")).await;
            }
        } else {
            tamper(&bench, &format!("DELETE FROM {table} WHERE {key} IS NOT NULL")).await;
        }
        let complaints = crate::upkeep::check::catalogue_complaints(catalog).await.unwrap();
        assert!(!complaints.is_empty(), "{table}");
        if table == "sources" {
            assert!(matches!(
                catalog.sources_of(person).await,
                Err(crate::catalog::CatalogError::Corrupt { .. })
            ));
        }
    }
}
