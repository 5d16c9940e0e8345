//! The store alone is enough: a lost catalogue comes back from manifests and objects.

use prometheus_client::metrics::counter::Counter;

use super::*;
use crate::catalog::access_log::LogEntry;
use crate::catalog::documents::{Change, Document, DocumentKind, Link};
use crate::catalog::records::{Effect, SeenSource, StoredDefinition, UploadReceipt};
use crate::model::ids::UploadId;
use crate::model::time::TimeRange;
use crate::store::faults::{Fault, Faults, FaultyStore, Operation};
use crate::upkeep::check::older_complaints;
use crate::upkeep::flush::flush;
use crate::upkeep::lost_manifests::{complaints, write_lost};
use crate::upkeep::manifest::{replace_manifests, write_changed, write_manifest};
use crate::upkeep::manifest_names::{manifest_path, numbers};
use crate::upkeep::rebuild::{RebuildReport, is_ours, rebuild};
use crate::upkeep::repair::repair;
use crate::upkeep::scrub::Scrub;

#[tokio::test]
async fn a_store_that_lost_its_name_is_known_by_what_it_holds() {
    let blank = Bench::new().await;
    assert!(!is_ours(blank.stores.objects()).await.unwrap());
    assert!(is_ours(written_down().await.stores.objects()).await.unwrap());
}

/// A person with some of everything, written down.
async fn written_down() -> Bench {
    let bench = Bench::new().await;
    let person = bench.key.person;
    for piece in 0..5 {
        bench
            .put(&many(piece * 1_000, 1_000, LAST_DAY_OF_2023), piece < 4)
            .await;
    }
    assert!(
        compact(&bench.stores, &bench.key, &Limits::default())
            .await
            .unwrap()
    );
    // What was counted until then is of a day that is over.
    bench.pass(Duration::from_hours(24));
    // Deleted and replaced since their objects were written.
    bench.delete(&[record(1), record(4_999)]).await;
    bench.put(&[(record(2), LAST_DAY_OF_2023, 8.0)], false).await;
    let catalog = &bench.stores.catalog;
    let upload = UploadReceipt {
        person,
        upload: UploadId(Uuid::now_v7()),
        key: None,
        effect: Effect::default(),
    };
    let source = SeenSource {
        person,
        key: "watch".to_owned(),
        name: Some("Watch".to_owned()),
    };
    let commit = Commit {
        uploads: vec![upload],
        sources: vec![source],
        ..Commit::default()
    };
    assert_eq!(catalog.commit(commit).await.unwrap(), CommitOutcome::Done);
    let now = bench.clock.now();
    let definition = StoredDefinition {
        id: Uuid::now_v7(),
        person,
        base: "Event".to_owned(),
        body: "{\"name\":\"Tea\"}".to_owned(),
        version: 1,
        deprecated: false,
        created_at: now,
        updated_at: now,
    };
    catalog.insert_definition(&definition).await.unwrap();
    assert!(
        catalog
            .swap_preferences(person, None, "{\"zone\":\"UTC\"}")
            .await
            .unwrap()
    );
    let document = Document {
        kind: DocumentKind::Tag,
        id: Uuid::now_v7(),
        person,
        name: Some("tea".to_owned()),
        body: "{}".to_owned(),
        version: 1,
        created_at: now,
        updated_at: now,
        deleted_at: None,
    };
    let link = Link {
        kind: "about",
        target: Uuid::now_v7(),
    };
    let insert = Change::Insert {
        document,
        links: vec![link],
        limit: 10,
    };
    catalog.change_documents(vec![insert]).await.unwrap();
    assert!(write_manifest(&bench.stores, person).await.unwrap());
    let entry = LogEntry {
        person,
        id: Uuid::now_v7(),
        at: now,
        actor: PersonId(Uuid::now_v7()),
        body: "{}".to_owned(),
        rows: Some(3),
        outcome: "read".to_owned(),
    };
    catalog.log_access(vec![entry]).await.unwrap();
    assert!(write_manifest(&bench.stores, person).await.unwrap());
    bench
}

/// All that there is of the person beside records.
async fn beside_records(bench: &Bench) -> String {
    let (catalog, person) = (&bench.stores.catalog, bench.key.person);
    let all = (
        catalog.person(person).await.unwrap(),
        catalog.sources_of(person).await.unwrap(),
        catalog.definitions_of(person).await.unwrap(),
        catalog.documents_of(person, DocumentKind::Tag).await.unwrap(),
        catalog.partitions_of(person).await.unwrap(),
        catalog.accesses(person, None, 10).await.unwrap(),
        catalog.updates_between(person, TimeRange::ALWAYS).await.unwrap(),
    );
    format!("{all:#?}")
}

async fn sound(bench: &Bench) {
    let checked = crate::upkeep::check::check(&bench.stores, &|_| ()).await.unwrap();
    let complaints = crate::upkeep::check::catalogue_complaints(&bench.stores.catalog).await;
    assert_eq!((checked.wrong, complaints.unwrap()), (0, Vec::new()));
}

#[tokio::test]
async fn a_person_comes_back_just_as_their_manifest_was_written() {
    let bench = written_down().await;
    let (rows, rest) = (bench.visible().await, beside_records(&bench).await);
    let bench = bench.without_catalogue().await;
    let RebuildReport {
        done, wrong, failed, ..
    } = rebuild(&bench.stores).await.unwrap();
    assert_eq!((wrong, failed), (Vec::new(), Vec::new()));
    // The objects that were replaced are still there and not named.
    assert_eq!(done.len(), 2, "{done:?}");
    assert!(done[0].contains("as of 2"), "{done:?}");
    assert!(done[1].contains("4 objects"), "{done:?}");
    assert_eq!(bench.visible().await, rows);
    assert_eq!(beside_records(&bench).await, rest);
    sound(&bench).await;
    assert_eq!(rebuild(&bench.stores).await.unwrap(), RebuildReport::default());
    // Life goes on.
    flush(&bench.stores, &bench.key).await.unwrap();
    assert_eq!(bench.visible().await, rows);
    assert!(write_manifest(&bench.stores, bench.key.person).await.unwrap());
}

#[tokio::test]
async fn bodies_that_were_never_accepted_or_came_later_stay_out_and_are_kept() {
    let bench = written_down().await;
    let rows = bench.visible().await;
    bench.put(&many(9_000, 10, LAST_DAY_OF_2023), true).await;
    let part = format!("files/{}/{}/{}", bench.key.person, Uuid::now_v7(), Uuid::now_v7());
    let bytes = bytes::Bytes::from_static(b"bytes");
    bench.stores.objects().put(&part, bytes).await.unwrap();
    let bench = bench.without_catalogue().await;
    let rebuilt = rebuild(&bench.stores).await.unwrap();
    assert!(
        rebuilt.done.iter().any(|done| done.contains(&part)),
        "{rebuilt:?}"
    );
    assert_eq!(bench.visible().await, rows);
    assert_eq!(bench.stores.catalog.orphan_totals().await.unwrap().kept, 6);
    let before = bench.paths().await.1;
    for _ in 0..4 {
        bench.pass(collect::ORPHAN_AGE * 2);
        collect::remove_orphans(&bench.stores, true).await.unwrap();
    }
    assert_eq!(bench.paths().await.1, before);
    bench.stores.objects().get(&part).await.unwrap();
}

#[tokio::test]
async fn a_catalogue_is_older_than_its_store_if_what_it_knows_was_replaced() {
    let bench = written_down().await;
    let (objects, person) = (bench.stores.objects(), bench.key.person);
    let known = manifest_path(person, numbers(objects, person).await.unwrap()[0]);
    let content = objects.get(&known).await.unwrap();
    // The number between was claimed in vain, or is that of one that went with the known one.
    let newest = numbers(objects, person).await.unwrap()[0] + 2;
    objects
        .put(&manifest_path(person, newest), content)
        .await
        .unwrap();
    assert_eq!(complaints(&bench.stores, person).await.unwrap(), [""; 0]);
    objects.delete(&known).await.unwrap();
    let told = complaints(&bench.stores, person).await.unwrap();
    assert!(
        matches!(told.as_slice(), [told] if told.contains("older than the store")),
        "{told:?}"
    );
}

#[tokio::test]
async fn a_manifest_that_the_store_lost_is_told_and_written_anew() {
    let bench = written_down().await;
    let (stores, person) = (&bench.stores, bench.key.person);
    assert_eq!(write_lost(stores).await.unwrap().sound.len(), 0);
    for _ in 0..2 {
        let all = numbers(stores.objects(), person).await.unwrap();
        for number in all {
            stores
                .objects()
                .delete(&manifest_path(person, number))
                .await
                .unwrap();
        }
        let told = complaints(stores, person).await.unwrap();
        assert!(
            matches!(told.as_slice(), [told] if told.contains("is lost")),
            "{told:?}"
        );
        assert_eq!(write_lost(stores).await.unwrap().sound.len(), 1);
        assert_eq!(complaints(stores, person).await.unwrap(), [""; 0]);
        assert_eq!(write_lost(stores).await.unwrap().sound.len(), 0);
    }
}

/// Changes a manifest of the person in the store.
fn damage_manifest(bench: &Bench, number: i64, change: impl Fn(&mut Vec<u8>)) {
    let path = manifest_path(bench.key.person, number);
    let file = bench.directory.path().join("objects").join(path);
    let mut content = std::fs::read(&file).unwrap();
    change(&mut content);
    std::fs::write(&file, content).unwrap();
}

fn flip_a_bit(content: &mut [u8]) {
    let middle = content.len() / 2;
    content[middle] ^= 1;
}

#[tokio::test]
async fn a_manifest_that_is_damaged_is_told_and_written_anew_above_the_sound_one_before_it() {
    let bench = written_down().await;
    let (stores, person) = (&bench.stores, bench.key.person);
    crate::upkeep::identity::settle(&stores.catalog, stores.objects(), stores.ids.as_ref(), false)
        .await
        .unwrap();
    assert_eq!(numbers(stores.objects(), person).await.unwrap(), [2, 1]);
    assert_eq!(repair(stores).await.unwrap(), [""; 0]);
    damage_manifest(&bench, 2, |content| flip_a_bit(content));
    let told = complaints(stores, person).await.unwrap();
    assert!(
        matches!(told.as_slice(), [told] if told.contains("differs from") && told.contains("--repair")),
        "{told:?}"
    );
    let repaired = repair(stores).await.unwrap();
    assert!(
        matches!(repaired.as_slice(), [repaired] if repaired.contains("written anew")),
        "{repaired:?}"
    );
    assert_eq!(numbers(stores.objects(), person).await.unwrap(), [3, 2, 1]);
    // Cut off anywhere, and emptied, too.
    for (number, kept) in [(3, 0), (4, 50)] {
        damage_manifest(&bench, number, |content| content.truncate(kept));
        assert_eq!(repair(stores).await.unwrap().len(), 1, "{number}");
        sound(&bench).await;
    }
    let (rows, rest) = (bench.visible().await, beside_records(&bench).await);
    let bench = bench.without_catalogue().await;
    assert_eq!(rebuild(&bench.stores).await.unwrap().wrong, [""; 0]);
    assert_eq!(
        (bench.visible().await, beside_records(&bench).await),
        (rows, rest)
    );
}

#[tokio::test]
async fn a_scrub_writes_damaged_manifests_anew_and_one_that_cannot_be_stops_no_others() {
    let mut bench = Bench::new().await;
    let people: Vec<PersonId> = (1..=70).map(|person| PersonId(Uuid::from_u128(person))).collect();
    for person in &people {
        bench.key.person = *person;
        bench.put(&many(0, 1, LAST_DAY_OF_2023), false).await;
        assert!(write_manifest(&bench.stores, *person).await.unwrap());
        if person.0.as_u128() % 23 == 1 {
            damage_manifest(&bench, 1, |content| flip_a_bit(content));
        }
    }
    // Of the first one nothing can be written.
    let first = format!("WHERE hex(person) = '{}'", people[0].0.simple()).to_uppercase();
    tamper(
        &bench,
        &format!("UPDATE pieces SET checksum = checksum + 1 {first}"),
    )
    .await;
    let (stores, corrupt) = (&bench.stores, Counter::default());
    let mut scrub = Scrub::default();
    assert!(
        scrub
            .step(stores, &corrupt)
            .await
            .is_err_and(|error| error.is_damage())
    );
    for _ in 0..2 {
        scrub.step(stores, &corrupt).await.unwrap();
        assert!(Scrub::is_due(stores).await.unwrap());
    }
    // Another node goes on behind those.
    Scrub::default().step(stores, &corrupt).await.unwrap();
    assert!(!Scrub::is_due(stores).await.unwrap());
    assert_eq!(corrupt.get(), 3);
    for person in &people[1..] {
        assert_eq!(complaints(stores, *person).await.unwrap(), [""; 0]);
    }
    assert_eq!(complaints(stores, people[0]).await.unwrap().len(), 1);
}

#[tokio::test]
async fn an_older_value_does_not_win_because_its_body_was_written_earlier() {
    let bench = Bench::new().await;
    let id = record(1);
    // A large body is written, somebody else writes the same record, and the body is committed after that.
    let target = Target {
        person: bench.key.person,
        data_type: bench.key.data_type.clone(),
        layout_version: 1,
    };
    let written = write_batch(
        bench.stores.objects(),
        bench.stores.ids.as_ref(),
        target,
        &rows(&[(id, LAST_DAY_OF_2023, 2.0)]),
    )
    .await
    .unwrap();
    bench.put(&[(id, LAST_DAY_OF_2023, 4.0)], true).await;
    bench.change(written, &[id]).await;
    let before = bench.visible().await;
    assert!((before[&id].1 - 2.0).abs() < f64::EPSILON);
    write_manifest(&bench.stores, bench.key.person).await.unwrap();
    let bench = bench.without_catalogue().await;
    rebuild(&bench.stores).await.unwrap();
    assert_eq!(bench.visible().await, before);
}

#[tokio::test]
async fn the_last_two_manifests_are_kept_and_the_one_before_helps_when_the_last_is_damaged() {
    let bench = written_down().await;
    let person = bench.key.person;
    assert!(!write_manifest(&bench.stores, person).await.unwrap());
    let before = bench.visible().await;
    for number in 0..3_i64 {
        bench
            .put(&many(20_000 + number as u128, 1, LAST_DAY_OF_2023), false)
            .await;
        assert!(write_manifest(&bench.stores, person).await.unwrap());
    }
    assert_eq!(numbers(bench.stores.objects(), person).await.unwrap(), [5, 4]);
    damage_manifest(&bench, 5, |content| flip_a_bit(content));
    let bench = bench.without_catalogue().await;
    let rebuilt = rebuild(&bench.stores).await.unwrap();
    assert!(
        matches!(rebuilt.wrong.as_slice(), [wrong] if wrong.contains("left out: manifest")),
        "{rebuilt:?}"
    );
    assert_eq!(bench.visible().await.len(), before.len() + 2);
    sound(&bench).await;
}

#[tokio::test]
async fn a_catalogue_that_has_lost_a_row_is_not_written_down_over_what_it_was() {
    let bench = written_down().await;
    let person = bench.key.person;
    let (rows, rest) = (bench.visible().await, beside_records(&bench).await);
    for lost in ["dead_rows", "documents", "blobs"] {
        tamper(&bench, &format!("DELETE FROM {lost}")).await;
        let written = write_changed(&bench.stores, person).await;
        assert!(written.is_err_and(|error| error.is_damage()), "{lost}");
    }
    assert_eq!(numbers(bench.stores.objects(), person).await.unwrap(), [2, 1]);
    let bench = bench.without_catalogue().await;
    let RebuildReport { wrong, failed, .. } = rebuild(&bench.stores).await.unwrap();
    assert_eq!((wrong, failed), (Vec::new(), Vec::new()));
    assert_eq!(
        (bench.visible().await, beside_records(&bench).await),
        (rows, rest)
    );
}

/// The content of a manifest, as a catalogue wrote it that had lost one row of a table.
fn without_a_row(content: &[u8], table: &str) -> Vec<u8> {
    let text = String::from_utf8(zstd::decode_all(content).unwrap()).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines.pop();
    let is_of_table = |line: &&str| line.starts_with(&format!("[\"{table}\""));
    lines.remove(lines.iter().position(is_of_table).unwrap());
    let mut text = lines.join("\n");
    text.push('\n');
    // All but the heading are rows.
    let ending = serde_json::json!({
        "rows": lines.len() - 1,
        "checksum": crc32fast::hash(text.as_bytes()),
    });
    text += &ending.to_string();
    text.push('\n');
    zstd::encode_all(text.as_bytes(), 0).unwrap()
}

#[tokio::test]
async fn the_manifest_before_helps_where_the_last_was_written_by_a_catalogue_that_had_lost_a_row() {
    for table in ["dead_rows", "pieces", "partitions", "blobs"] {
        let bench = written_down().await;
        let rows = bench.visible().await;
        damage_manifest(&bench, 2, |content| *content = without_a_row(content, table));
        // It is what was written, so only what it says is wrong.
        assert_eq!(
            complaints(&bench.stores, bench.key.person).await.unwrap(),
            [""; 0]
        );
        let bench = bench.without_catalogue().await;
        let RebuildReport { wrong, failed, .. } = rebuild(&bench.stores).await.unwrap();
        assert_eq!(failed, [""; 0], "{table}");
        let path = manifest_path(bench.key.person, 2);
        assert!(
            matches!(wrong.as_slice(), [wrong] if wrong.starts_with(&format!("left out: manifest {path}"))),
            "{table}: {wrong:?}"
        );
        assert_eq!(bench.visible().await, rows, "{table}");
    }
}

#[tokio::test]
async fn a_manifest_that_lacks_no_records_is_taken_and_a_whole_one_before_it_told() {
    for table in ["documents", "links", "sources", "definitions", "folders"] {
        let bench = written_down().await;
        let (person, rows) = (bench.key.person, bench.visible().await);
        damage_manifest(&bench, 2, |content| *content = without_a_row(content, table));
        let bench = bench.without_catalogue().await;
        let RebuildReport { wrong, failed, .. } = rebuild(&bench.stores).await.unwrap();
        assert_eq!(failed, [""; 0], "{table}");
        let [last, before] = [2, 1].map(|number| manifest_path(person, number));
        assert!(
            matches!(wrong.as_slice(), [wrong] if wrong.starts_with(&format!("manifest {last} "))
                && wrong.contains(&format!("{before} is whole"))),
            "{table}: {wrong:?}"
        );
        assert_eq!(bench.visible().await, rows, "{table}");
        // Which the one before does not say.
        let accesses = bench.stores.catalog.accesses(person, None, 10).await.unwrap();
        assert_eq!(accesses.entries.len(), 1, "{table}");
    }
}

#[tokio::test]
async fn the_last_manifest_is_taken_where_none_has_the_bytes_of_a_tail() {
    let bench = written_down().await;
    let person = bench.key.person;
    for number in [1, 2] {
        damage_manifest(&bench, number, |content| {
            *content = without_a_row(content, "blobs");
        });
    }
    let bench = bench.without_catalogue().await;
    let RebuildReport { wrong, failed, .. } = rebuild(&bench.stores).await.unwrap();
    assert_eq!(failed, [""; 0]);
    let last = manifest_path(person, 2);
    assert!(
        matches!(wrong.as_slice(), [wrong] if wrong.starts_with(&format!("manifest {last} "))),
        "{wrong:?}"
    );
    let tags = bench.stores.catalog.documents_of(person, DocumentKind::Tag).await;
    assert_eq!(tags.unwrap().len(), 1);
}

#[tokio::test]
async fn the_last_manifest_is_taken_where_the_one_before_names_objects_that_are_gone() {
    let bench = written_down().await;
    let person = bench.key.person;
    bench.put(&many(9_000, 10, LAST_DAY_OF_2023), true).await;
    for number in [3, 4] {
        assert!(write_changed(&bench.stores, person).await.unwrap());
        assert_eq!(numbers(bench.stores.objects(), person).await.unwrap()[0], number);
    }
    damage_manifest(&bench, 4, |content| *content = without_a_row(content, "blobs"));
    let (live, _) = bench.paths().await;
    bench.stores.objects().delete(&live[0]).await.unwrap();
    let bench = bench.without_catalogue().await;
    let RebuildReport { wrong, failed, .. } = rebuild(&bench.stores).await.unwrap();
    assert_eq!(failed, [""; 0]);
    let last = manifest_path(person, 4);
    assert!(
        matches!(wrong.as_slice(), [wrong] if wrong.starts_with(&format!("manifest {last} "))
            && !wrong.contains("is whole")),
        "{wrong:?}"
    );
}

#[tokio::test]
async fn what_must_not_be_known_goes_although_rows_are_lost_and_what_is_there_comes_back() {
    let bench = written_down().await;
    let person = bench.key.person;
    for lost in ["documents", "blobs"] {
        tamper(&bench, &format!("DELETE FROM {lost}")).await;
    }
    let refused = write_changed(&bench.stores, person).await;
    assert!(refused.is_err_and(|error| error.is_damage()));
    replace_manifests(&bench.stores, person).await.unwrap();
    assert_eq!(numbers(bench.stores.objects(), person).await.unwrap(), [3]);
    // Nothing that is left has the rows.
    assert!(write_changed(&bench.stores, person).await.unwrap());
    assert_eq!(numbers(bench.stores.objects(), person).await.unwrap(), [4, 3]);
    let bench = bench.without_catalogue().await;
    let RebuildReport { wrong, failed, .. } = rebuild(&bench.stores).await.unwrap();
    assert_eq!(failed, [""; 0]);
    let path = manifest_path(person, 4);
    let lacks = format!("manifest {path} lacks rows that were lost before: ");
    assert!(
        matches!(wrong.as_slice(), [wrong] if wrong.starts_with(&lacks)),
        "{wrong:?}"
    );
    assert!(!bench.visible().await.is_empty());
    sound(&bench).await;
}

#[tokio::test]
async fn who_has_no_manifest_gets_one_of_what_is_there_although_rows_are_lost() {
    let bench = Bench::new().await;
    let person = bench.key.person;
    for piece in 0..2 {
        bench
            .put(&many(piece * 10, 10, LAST_DAY_OF_2023), piece == 0)
            .await;
    }
    let rows = bench.visible().await;
    let source = SeenSource {
        person,
        key: "watch".to_owned(),
        name: None,
    };
    let commit = Commit {
        sources: vec![source],
        ..Commit::default()
    };
    bench.stores.catalog.commit(commit).await.unwrap();
    tamper(&bench, "DELETE FROM sources").await;
    assert!(write_changed(&bench.stores, person).await.unwrap());
    tamper(&bench, "DELETE FROM blobs").await;
    let refused = write_changed(&bench.stores, person).await;
    assert!(refused.is_err_and(|error| error.is_damage()));
    // One that the store has lost is no first one.
    let objects = bench.stores.objects();
    assert_eq!(numbers(objects, person).await.unwrap(), [1]);
    let first = manifest_path(person, 1);
    let content = objects.get(&first).await.unwrap();
    objects.delete(&first).await.unwrap();
    let refused = write_changed(&bench.stores, person).await;
    assert!(refused.is_err_and(|error| error.is_damage()));
    objects.put(&first, content).await.unwrap();
    let bench = bench.without_catalogue().await;
    assert_eq!(rebuild(&bench.stores).await.unwrap().failed, [""; 0]);
    assert_eq!(bench.visible().await, rows);
}

#[tokio::test]
async fn what_is_lost_after_that_stays_in_the_manifests_that_have_it() {
    let bench = written_down().await;
    let person = bench.key.person;
    tamper(&bench, "DELETE FROM documents").await;
    replace_manifests(&bench.stores, person).await.unwrap();
    bench.put(&[(record(7), LAST_DAY_OF_2023, 9.0)], false).await;
    assert!(write_changed(&bench.stores, person).await.unwrap());
    assert_eq!(numbers(bench.stores.objects(), person).await.unwrap(), [4, 3]);
    tamper(&bench, "DELETE FROM sources").await;
    for _ in 0..2 {
        let refused = write_changed(&bench.stores, person).await;
        assert!(refused.is_err_and(|error| error.is_damage()));
        assert_eq!(numbers(bench.stores.objects(), person).await.unwrap(), [4, 3]);
    }
    // What must not be known goes all the same, and what is lost by then is known from then on.
    replace_manifests(&bench.stores, person).await.unwrap();
    assert!(write_changed(&bench.stores, person).await.unwrap());
    assert_eq!(numbers(bench.stores.objects(), person).await.unwrap(), [6, 5]);
}

#[tokio::test]
async fn replaced_objects_are_deleted_only_after_the_manifest_names_what_took_their_place() {
    let bench = written_down().await;
    let rows = bench.visible().await;
    for piece in 10..14 {
        bench
            .put(&many(piece * 1_000, 1_000, LAST_DAY_OF_2023), true)
            .await;
    }
    write_manifest(&bench.stores, bench.key.person).await.unwrap();
    compact(&bench.stores, &bench.key, &Limits::default())
        .await
        .unwrap();
    let grace = settings().grace_period;
    bench.pass(grace + Duration::from_secs(1));
    assert!(remove_retired(&bench.stores, grace).await.unwrap() > 0);
    let now = bench.visible().await;
    assert_eq!(now.len(), rows.len() + 4_000);
    let bench = bench.without_catalogue().await;
    rebuild(&bench.stores).await.unwrap();
    assert_eq!(bench.visible().await, now);
    sound(&bench).await;
}

#[tokio::test]
async fn an_interrupted_rebuild_is_continued_and_one_persons_object_stops_nobody_elses() {
    let directory = tempfile::tempdir().unwrap();
    let local = ObjectStorage::open(&ObjectStoreSettings::Local(directory.path().join("objects"))).unwrap();
    let faults = Arc::new(Faults::default());
    let objects = ObjectStorage::over(Arc::new(FaultyStore::new(local.store(), Arc::clone(&faults))));
    let mut bench = Bench::over(directory, objects).await;
    let mut expected = Vec::new();
    for person in 0..3 {
        bench.key.person = PersonId(Uuid::from_u128(person + 1));
        bench.put(&many(person * 100, 10, LAST_DAY_OF_2023), true).await;
        write_manifest(&bench.stores, bench.key.person).await.unwrap();
        expected.push((bench.key.person, bench.visible().await));
    }
    let mut bench = bench.without_catalogue().await;
    // The identity is read and given; then the first manifest cannot be.
    crate::upkeep::identity::write(bench.stores.objects(), Uuid::now_v7())
        .await
        .unwrap();
    faults.once(Operation::Get, Fault::Delay(Duration::ZERO));
    faults.once(Operation::Get, Fault::Fail);
    let first = rebuild(&bench.stores).await.unwrap();
    assert_eq!((first.done.len(), first.failed.len()), (2, 1), "{first:?}");
    assert!(bench.stores.catalog.unfinished_rebuild().await.unwrap().is_some());
    let second = rebuild(&bench.stores).await.unwrap();
    assert_eq!((second.done.len(), second.failed.len()), (1, 0), "{second:?}");
    assert_eq!(bench.stores.catalog.unfinished_rebuild().await.unwrap(), None);
    for (person, rows) in expected {
        bench.key.person = person;
        assert_eq!(bench.visible().await, rows);
    }
    sound(&bench).await;
}

#[tokio::test]
async fn without_manifests_the_objects_alone_are_enough_for_their_rows() {
    let bench = written_down().await;
    flush(&bench.stores, &bench.key).await.unwrap();
    let grace = settings().grace_period;
    bench.pass(grace + Duration::from_secs(1));
    remove_retired(&bench.stores, grace).await.unwrap();
    let before = bench.visible().await;
    std::fs::remove_dir_all(bench.directory.path().join("objects/people")).unwrap();
    let bench = bench.without_catalogue().await;
    let rebuilt = rebuild(&bench.stores).await.unwrap();
    assert_eq!((rebuilt.done.len(), rebuilt.failed.len()), (1, 0), "{rebuilt:?}");
    let mut expected = before;
    // They were deleted after their object was written, which only the catalogue knew.
    expected.insert(record(1), (LAST_DAY_OF_2023 + SECOND, 1.0));
    assert_eq!(bench.visible().await, expected);
    sound(&bench).await;
}

#[tokio::test]
async fn who_came_back_from_objects_alone_is_written_down_above_the_damaged_manifests() {
    let bench = written_down().await;
    let person = bench.key.person;
    for number in [1, 2] {
        damage_manifest(&bench, number, |content| flip_a_bit(content));
    }
    let bench = bench.without_catalogue().await;
    let rebuilt = rebuild(&bench.stores).await.unwrap();
    assert_eq!((rebuilt.wrong.len(), rebuilt.failed.len()), (2, 0), "{rebuilt:?}");
    assert_eq!(complaints(&bench.stores, person).await.unwrap(), [""; 0]);
    assert!(write_manifest(&bench.stores, person).await.unwrap());
    assert_eq!(numbers(bench.stores.objects(), person).await.unwrap(), [3, 2]);
}

#[tokio::test]
async fn of_whom_nothing_came_back_is_written_down_above_the_damaged_manifests_too() {
    let bench = written_down().await;
    let person = bench.key.person;
    for number in [1, 2] {
        damage_manifest(&bench, number, |content| flip_a_bit(content));
    }
    std::fs::remove_dir_all(bench.directory.path().join("objects/data")).unwrap();
    let bench = bench.without_catalogue().await;
    let rebuilt = rebuild(&bench.stores).await.unwrap();
    assert_eq!((rebuilt.wrong.len(), rebuilt.failed.len()), (2, 0), "{rebuilt:?}");
    assert_eq!(bench.stores.catalog.people_ids().await.unwrap(), [person]);
    let (catalog, objects) = (&bench.stores.catalog, bench.stores.objects());
    assert_eq!(older_complaints(catalog, objects).await.unwrap(), [""; 0]);
    bench.put(&many(0, 3, LAST_DAY_OF_2023), false).await;
    assert_eq!(complaints(&bench.stores, person).await.unwrap(), [""; 0]);
    assert!(write_manifest(&bench.stores, person).await.unwrap());
    assert_eq!(numbers(objects, person).await.unwrap(), [3, 2]);
}

#[tokio::test]
async fn who_got_a_token_before_they_came_back_is_written_down_above_what_they_came_back_from() {
    let bench = written_down().await;
    let (person, rows) = (bench.key.person, bench.visible().await);
    let bench = bench.without_catalogue().await;
    bench.stores.catalog.begin_rebuild().await.unwrap();
    bench.stores.catalog.ensure_person(person, None).await.unwrap();
    assert_eq!(rebuild(&bench.stores).await.unwrap().failed, [""; 0]);
    assert_eq!(bench.visible().await, rows);
    assert_eq!(complaints(&bench.stores, person).await.unwrap(), [""; 0]);
    assert!(write_manifest(&bench.stores, person).await.unwrap());
    assert_eq!(numbers(bench.stores.objects(), person).await.unwrap(), [3, 2]);
}

#[tokio::test]
async fn a_damaged_object_without_which_a_partition_comes_back_is_never_collected() {
    let bench = Bench::new().await;
    for piece in 0..2 {
        bench.put(&many(piece * 10, 10, LAST_DAY_OF_2023), true).await;
    }
    let (_, before) = bench.paths().await;
    let file = bench.directory.path().join("objects").join(&before[0]);
    let content = std::fs::read(&file).unwrap();
    std::fs::write(&file, &content[..content.len() / 2]).unwrap();
    let bench = bench.without_catalogue().await;
    let rebuilt = rebuild(&bench.stores).await.unwrap();
    assert!(
        matches!(rebuilt.wrong.as_slice(), [wrong] if wrong.contains(&before[0])),
        "{rebuilt:?}"
    );
    assert_eq!(rebuilt.failed, [""; 0]);
    assert_eq!(bench.visible().await.len(), 10);
    for _ in 0..4 {
        bench.pass(collect::ORPHAN_AGE * 2);
        collect::remove_orphans(&bench.stores, true).await.unwrap();
    }
    assert_eq!(bench.paths().await.1, before);
}
