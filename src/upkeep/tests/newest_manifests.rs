//! The newest manifest of everybody is one that a catalogue can be made from, and says no less than those
//! before it.

use std::sync::Mutex;

use prometheus_client::metrics::counter::Counter;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::catalog::test_databases::file_in;
use crate::model::meters::Meters;
use crate::upkeep::Upkeep;
use crate::upkeep::check::{CheckProgress, check, older_complaints};
use crate::upkeep::collect::{CONDEMNED_AGE, ORPHAN_AGE, remove_orphans};
use crate::upkeep::identity::settle;
use crate::upkeep::lost_manifests::complaints;
use crate::upkeep::manifest::{write_changed, write_manifest};
use crate::upkeep::manifest_names::{manifest_path, numbers};
use crate::upkeep::rebuild::rebuild;
use crate::upkeep::repair::repair;
use crate::upkeep::scrub::Scrub;

/// Stores a record of the person, and what is known of them then as this manifest.
async fn write_down(bench: &Bench, number: i64) {
    bench.pass(Duration::from_secs(1));
    bench.put(&many(number as u128, 1, LAST_DAY_OF_2023), false).await;
    assert!(write_manifest(&bench.stores, bench.key.person).await.unwrap());
    let person = bench.key.person;
    assert_eq!(numbers(bench.stores.objects(), person).await.unwrap()[0], number);
}

/// Changes a manifest of the person in the store.
async fn change(bench: &Bench, number: i64, changed: impl Fn(&[u8]) -> Vec<u8>) {
    let (objects, path) = (bench.stores.objects(), manifest_path(bench.key.person, number));
    let content = objects.get(&path).await.unwrap();
    objects.replace(&path, changed(&content).into()).await.unwrap();
}

fn with_a_bit_flipped(content: &[u8]) -> Vec<u8> {
    let mut content = content.to_vec();
    let middle = content.len() / 2;
    content[middle] ^= 1;
    content
}

/// What another release would have written.
fn of_another_format(content: &[u8]) -> Vec<u8> {
    let changed = |heading: &mut serde_json::Value| heading["format"] = 2.into();
    with_heading(content, changed)
}

/// What a release would have written that knew one table less.
fn of_fewer_tables(content: &[u8]) -> Vec<u8> {
    with_heading(content, |heading| {
        let tables = heading["columns"].as_array_mut().unwrap();
        let before = tables.len();
        tables.retain(|table| table[0] != "updated_days");
        assert_eq!(tables.len(), before - 1);
    })
}

/// What a release would have written that knew one more.
fn of_more_tables(content: &[u8]) -> Vec<u8> {
    with_heading(content, |heading| {
        let tables = heading["columns"].as_array_mut().unwrap();
        tables.push(serde_json::json!(["dreams", ["person"]]));
    })
}

fn with_heading(content: &[u8], change: impl Fn(&mut serde_json::Value)) -> Vec<u8> {
    let lines = String::from_utf8(zstd::decode_all(content).unwrap()).unwrap();
    let (before, ending) = lines.trim_end().rsplit_once('\n').unwrap();
    let (heading, rows) = before.split_once('\n').unwrap();
    let mut heading: serde_json::Value = serde_json::from_str(heading).unwrap();
    change(&mut heading);
    let before = format!("{heading}\n{rows}\n");
    let mut ending: serde_json::Value = serde_json::from_str(ending).unwrap();
    ending["checksum"] = crc32fast::hash(before.as_bytes()).into();
    zstd::encode_all(format!("{before}{ending}\n").as_bytes(), 3).unwrap()
}

/// The catalogue as it is now, kept beside the same store.
async fn copied(bench: &Bench) -> Bench {
    let directory = tempfile::tempdir().unwrap();
    let file = |directory: &tempfile::TempDir| file_in(directory.path());
    let address = format!("sqlite://{}", file(&bench.directory).display());
    let mut connection = SqliteConnection::connect(&address).await.unwrap();
    let copy = format!("VACUUM INTO '{}'", file(&directory).display());
    connection.execute(AssertSqlSafe(copy)).await.unwrap();
    Bench {
        key: bench.key.clone(),
        ..Bench::over(directory, bench.stores.objects().clone()).await
    }
}

#[tokio::test]
async fn from_a_catalogue_that_is_older_than_its_store_nothing_is_written() {
    let bench = Bench::new().await;
    write_down(&bench, 1).await;
    let older = copied(&bench).await;
    for number in 2..=6 {
        write_down(&bench, number).await;
    }
    change(&bench, 6, with_a_bit_flipped).await;
    let person = bench.key.person;
    let told = complaints(&older.stores, person).await.unwrap();
    assert!(
        matches!(told.as_slice(), [older, damage] if older.contains("older than the store")
            && damage.contains("differs from") && !damage.contains("--repair")),
        "{told:?}"
    );
    let corrupt = Counter::default();
    assert_eq!(repair(&older.stores).await.unwrap(), [""; 0]);
    Scrub::default().step(&older.stores, &corrupt).await.unwrap();
    assert_eq!(corrupt.get(), 0);
    assert_eq!(numbers(bench.stores.objects(), person).await.unwrap(), [6, 5]);
    // The right catalogue is another matter.
    assert_eq!(repair(&bench.stores).await.unwrap().len(), 1);
    assert_eq!(complaints(&bench.stores, person).await.unwrap(), [""; 0]);
}

/// Collects whatever is garbage now.
async fn collect_garbage(bench: &Bench) {
    for _ in 0..4 {
        bench.pass(ORPHAN_AGE + CONDEMNED_AGE);
        remove_orphans(&bench.stores, true).await.unwrap();
    }
}

#[tokio::test]
async fn what_an_older_catalogue_lacks_stays_in_the_store_while_it_is_used() {
    let bench = Bench::new().await;
    write_down(&bench, 1).await;
    let older = copied(&bench).await;
    bench.put(&many(100, 5, LAST_DAY_OF_2023), true).await;
    let lacked = bench.paths().await.0;
    assert_eq!(lacked.len(), 1);
    for number in 2..=4 {
        write_down(&bench, number).await;
    }
    let person = bench.key.person;
    let meters = Meters::default();
    let upkeep = Upkeep::new(
        settings(),
        older.stores.clone(),
        meters.clone(),
        CancellationToken::new(),
    );
    for record in 50..53 {
        older.put(&many(record, 1, LAST_DAY_OF_2023), false).await;
        older.pass(Duration::from_mins(15));
        upkeep.flush_due().await.unwrap();
        upkeep.write_manifests().await.unwrap();
        upkeep.collect_due().await.unwrap();
        upkeep.search_orphans().await.unwrap();
        assert_eq!(meters.set_aside_partitions.get(), 1);
    }
    assert_eq!(older.visible().await.len(), 4);
    assert_eq!(
        (meters.upkeep.flushes.get(), meters.upkeep.manifests.get()),
        (3, 0)
    );
    assert!(meters.store.corrupt.get() >= 3);
    collect_garbage(&older).await;
    assert!(bench.paths().await.1.contains(&lacked[0]));
    let objects = bench.stores.objects();
    assert_eq!(numbers(objects, person).await.unwrap(), [4, 3]);
    let told = complaints(&older.stores, person).await.unwrap();
    assert!(
        matches!(told.as_slice(), [told] if told.contains("older than the store")),
        "{told:?}"
    );
    let told = older_complaints(&older.stores.catalog, objects).await.unwrap();
    assert!(
        matches!(told.as_slice(), [told] if told.contains(&person.to_string())),
        "{told:?}"
    );
    // The operator decides for it.
    for number in [4, 3] {
        objects.delete(&manifest_path(person, number)).await.unwrap();
    }
    assert_eq!(repair(&older.stores).await.unwrap().len(), 1);
    assert_eq!(numbers(objects, person).await.unwrap(), [2]);
    assert_eq!(complaints(&older.stores, person).await.unwrap(), [""; 0]);
    let told = older_complaints(&older.stores.catalog, objects).await.unwrap();
    assert_eq!(told, [""; 0]);
    collect_garbage(&older).await;
    assert!(!bench.paths().await.1.contains(&lacked[0]));
    assert_eq!(older.visible().await.len(), 4);
}

#[tokio::test]
async fn what_the_store_alone_knows_of_somebody_is_told_and_stays_unless_they_were_erased() {
    let mut bench = Bench::new().await;
    let UpkeepStores { catalog, ids, .. } = &bench.stores;
    settle(catalog, bench.stores.objects(), ids.as_ref(), false)
        .await
        .unwrap();
    write_down(&bench, 1).await;
    let older = copied(&bench).await;
    bench.key.person = PersonId(Uuid::now_v7());
    bench.put(&many(100, 5, LAST_DAY_OF_2023), true).await;
    write_down(&bench, 1).await;
    let lacked = bench.paths().await.1;
    collect_garbage(&older).await;
    assert_eq!(bench.paths().await.1, lacked);
    let told = Mutex::new(Vec::new());
    let tell = |progress| {
        if let CheckProgress::Wrong(what) = progress {
            told.lock().unwrap().push(what);
        }
    };
    check(&older.stores, &tell).await.unwrap();
    let told = told.into_inner().unwrap();
    let person = bench.key.person.to_string();
    assert!(
        matches!(told.as_slice(), [told] if told.contains(&person) && told.contains("older than the store")),
        "{told:?}"
    );
    older
        .stores
        .catalog
        .begin_erasure(bench.key.person)
        .await
        .unwrap();
    collect_garbage(&older).await;
    assert_eq!(bench.paths().await.1, [""; 0]);
}

#[tokio::test]
async fn a_catalogue_from_before_somebodys_first_manifest_is_older_too() {
    let mut bench = Bench::new().await;
    write_down(&bench, 1).await;
    bench.key.person = PersonId(Uuid::now_v7());
    let (person, objects) = (bench.key.person, bench.stores.objects().clone());
    let before = copied(&bench).await;
    bench.stores.catalog.ensure_person(person, None).await.unwrap();
    let known = copied(&bench).await;
    bench.put(&many(100, 5, LAST_DAY_OF_2023), true).await;
    write_down(&bench, 1).await;
    let lacked = bench.paths().await.1;
    // Whom it does not know becomes known with the first token or record.
    before.stores.catalog.ensure_person(person, None).await.unwrap();
    for older in [&before, &known] {
        older.put(&many(50, 1, LAST_DAY_OF_2023), false).await;
        let told = complaints(&older.stores, person).await.unwrap();
        assert!(
            matches!(told.as_slice(), [told] if told.contains("older than the store")),
            "{told:?}"
        );
        let written = write_changed(&older.stores, person).await;
        assert!(written.is_err_and(|error| error.is_damage()));
        assert_eq!(repair(&older.stores).await.unwrap(), [""; 0]);
        collect_garbage(older).await;
        assert_eq!(bench.paths().await.1, lacked);
        assert_eq!(numbers(&objects, person).await.unwrap(), [1]);
    }
    assert_eq!(complaints(&bench.stores, person).await.unwrap(), [""; 0]);
    // The operator decides for it.
    objects.delete(&manifest_path(person, 1)).await.unwrap();
    assert!(write_manifest(&known.stores, person).await.unwrap());
    assert_eq!(complaints(&known.stores, person).await.unwrap(), [""; 0]);
    collect_garbage(&known).await;
    assert!(!bench.paths().await.1.contains(&lacked[0]));
}

#[tokio::test]
async fn first_manifests_whose_writers_died_before_they_noted_them_are_not_taken_for_later_ones() {
    let bench = Bench::new().await;
    let (stores, person) = (&bench.stores, bench.key.person);
    stores.catalog.ensure_person(person, None).await.unwrap();
    assert_eq!(complaints(stores, person).await.unwrap(), [""; 0]);
    // Before it was sent, or twice after that. So it is with people whom an earlier release created.
    stores.catalog.expect_first_manifest(person).await.unwrap();
    for number in [1, 2] {
        write_down(&bench, number).await;
        tamper(&bench, "DELETE FROM manifests").await;
        assert_eq!(complaints(stores, person).await.unwrap(), [""; 0]);
    }
    write_down(&bench, 3).await;
    let told = older_complaints(&stores.catalog, stores.objects()).await.unwrap();
    assert_eq!(told, [""; 0]);
}

#[tokio::test]
async fn a_manifest_that_no_catalogue_could_be_made_from_is_told_and_written_anew() {
    let mut bench = Bench::new().await;
    write_down(&bench, 1).await;
    let path = manifest_path(bench.key.person, 1);
    let of_another = bench.stores.objects().get(&path).await.unwrap().to_vec();
    bench.key.person = PersonId(Uuid::now_v7());
    write_down(&bench, 1).await;
    let person = bench.key.person;
    let is_told_and_mended = async |fault: &str| {
        let told = complaints(&bench.stores, person).await.unwrap();
        assert!(
            matches!(told.as_slice(), [told] if told.contains(fault) && told.contains("--repair")),
            "{told:?}"
        );
        assert_eq!(repair(&bench.stores).await.unwrap().len(), 1);
        assert_eq!(complaints(&bench.stores, person).await.unwrap(), [""; 0]);
    };
    change(&bench, 1, |_| of_another.clone()).await;
    is_told_and_mended("is another").await;
    change(&bench, 2, of_another_format).await;
    is_told_and_mended("another release").await;
    change(&bench, 3, of_more_tables).await;
    is_told_and_mended("another release").await;
}

#[tokio::test]
async fn a_manifest_of_a_release_that_knew_fewer_tables_is_sound() {
    let bench = Bench::new().await;
    write_down(&bench, 1).await;
    change(&bench, 1, of_fewer_tables).await;
    assert_eq!(
        complaints(&bench.stores, bench.key.person).await.unwrap(),
        [""; 0]
    );
    let rows = bench.visible().await;
    let bench = bench.without_catalogue().await;
    let rebuilt = rebuild(&bench.stores).await.unwrap();
    assert_eq!((rebuilt.wrong, rebuilt.failed), (Vec::new(), Vec::new()));
    assert_eq!(bench.visible().await, rows);
}

#[tokio::test]
async fn a_manifest_that_cannot_be_read_keeps_no_others_from_being_checked() {
    let mut bench = Bench::new().await;
    let UpkeepStores { catalog, ids, .. } = &bench.stores;
    settle(catalog, bench.stores.objects(), ids.as_ref(), false)
        .await
        .unwrap();
    let people = [1, 2].map(|person| PersonId(Uuid::from_u128(person)));
    for person in people {
        bench.key.person = person;
        write_down(&bench, 1).await;
    }
    change(&bench, 1, with_a_bit_flipped).await;
    let folder = bench
        .directory
        .path()
        .join(format!("objects/people/{}", people[0]));
    std::fs::remove_dir_all(&folder).unwrap();
    std::fs::write(&folder, "no folder").unwrap();
    let told = Mutex::new(Vec::new());
    let tell = |progress| {
        if let CheckProgress::Wrong(what) = progress {
            told.lock().unwrap().push(what);
        }
    };
    check(&bench.stores, &tell).await.unwrap();
    let told = told.into_inner().unwrap();
    assert!(
        matches!(told.as_slice(), [one, other] if one.contains(&people[0].to_string())
            && other.contains(&people[1].to_string())),
        "{told:?}"
    );
}
