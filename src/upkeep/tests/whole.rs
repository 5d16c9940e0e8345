//! Everything at once: a check of all, a copy of all, and a catalogue made anew from the objects.

use std::path::Path;
use std::sync::Mutex;

use super::*;
use crate::catalog::CatalogError;
use crate::catalog::documents::{Change, Changed, Document, DocumentKind};
use crate::catalog::test_databases::file_in;
use crate::upkeep::backup::{
    BackupReport, CATALOGUE_FILE, COPY_MARK, OBJECTS_FOLDER, UNFINISHED_CATALOGUE, back_up, begin,
};
use crate::upkeep::check::{self, check};
use crate::upkeep::flush::flush;
use crate::upkeep::identity::{ApartError, settle};

/// What a check complains of.
async fn complaints(bench: &Bench) -> Vec<String> {
    let said = Mutex::new(Vec::new());
    let tell = |told| {
        if let check::CheckProgress::Wrong(what) = told {
            said.lock().unwrap().push(what);
        }
    };
    let checked = check(&bench.stores, &tell).await.unwrap();
    let said = said.into_inner().unwrap();
    assert_eq!(checked.wrong, said.len());
    said
}

/// A partition with some of everything: objects, tail, dead rows in both, retired objects.
async fn lived_in() -> Bench {
    let bench = Bench::new().await;
    for piece in 0..5 {
        bench
            .put(
                &many(piece * 1_000, 1_000, LAST_DAY_OF_2023 + piece as i64),
                piece < 4,
            )
            .await;
    }
    bench.put(&many(500, 1_000, LAST_DAY_OF_2023 + DAY), true).await;
    assert!(
        compact(&bench.stores, &bench.key, &Limits::default())
            .await
            .unwrap()
    );
    bench.delete(&[record(1), record(4_999)]).await;
    bench
}

/// The partition of the person of `key` in another directory.
async fn opened(directory: tempfile::TempDir, key: &PartitionKey) -> Bench {
    let objects =
        ObjectStorage::open(&ObjectStoreSettings::Local(directory.path().join(OBJECTS_FOLDER))).unwrap();
    Bench {
        key: key.clone(),
        ..Bench::over(directory, objects).await
    }
}

#[tokio::test]
async fn a_check_of_what_is_sound_finds_nothing() {
    let bench = lived_in().await;
    assert_eq!(complaints(&bench).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_damaged_row_is_told_once_and_whose_it_is() {
    let bench = lived_in().await;
    let mut expected = Vec::new();
    for kind in [DocumentKind::Tag, DocumentKind::Annotation] {
        let (person, now) = (PersonId(Uuid::now_v7()), bench.clock.now());
        let document = Document {
            kind,
            id: Uuid::now_v7(),
            person,
            name: None,
            body: "{}".to_owned(),
            version: 1,
            created_at: now,
            updated_at: now,
            deleted_at: None,
        };
        let change = Change::Insert {
            document,
            links: Vec::new(),
            limit: 1,
        };
        let changed = bench.stores.catalog.change_documents(vec![change]).await;
        assert_eq!(changed.unwrap(), Changed::Done);
        let row = "1 row differs from what was written";
        expected.push(format!("table documents, person {person}: {row}"));
    }
    tamper(&bench, "UPDATE documents SET checksum = checksum + 1").await;
    expected.sort_unstable();
    let mut told = complaints(&bench).await;
    told.sort_unstable();
    assert_eq!(told, expected);
}

#[tokio::test]
async fn a_check_tells_of_every_damaged_object_and_forgets_what_was_put_right() {
    let bench = lived_in().await;
    bench.put(&many(9_000, 1_000, LAST_DAY_OF_2023), true).await;
    let (live, _) = bench.paths().await;
    let file = |path: &str| bench.directory.path().join(OBJECTS_FOLDER).join(path);
    let good = std::fs::read(file(&live[0])).unwrap();
    let mut damaged = good.clone();
    damaged[good.len() / 2] ^= 1;
    std::fs::write(file(&live[0]), &damaged).unwrap();
    std::fs::remove_file(file(&live[1])).unwrap();
    let said = complaints(&bench).await;
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(
        live[..2]
            .iter()
            .all(|path| said.iter().any(|what| what.contains(path))),
        "{said:?}"
    );

    std::fs::write(file(&live[0]), &good).unwrap();
    bench
        .stores
        .catalog
        .note_damage(&live[0], "it was damaged")
        .await
        .unwrap();
    assert_eq!(complaints(&bench).await.len(), 1);
    assert_eq!(bench.stores.catalog.damages().await.unwrap(), Vec::new());
}

#[tokio::test]
async fn a_check_tells_of_a_damaged_catalogue() {
    let bench = lived_in().await;
    bench.stores.catalog.close().await;
    let file = file_in(bench.directory.path());
    let good = std::fs::read(&file).unwrap();
    let path = bench.key.data_type.as_str().as_bytes();
    let places: Vec<usize> = good
        .windows(path.len())
        .enumerate()
        .filter(|(_, window)| *window == path)
        .map(|(at, _)| at)
        .collect();
    assert!(places.len() > 5, "{places:?}");
    for place in places.iter().copied().step_by(places.len().div_ceil(20)) {
        let mut damaged = good.clone();
        damaged[place] ^= 1;
        let elsewhere = tempfile::tempdir().unwrap();
        std::fs::write(file_in(elsewhere.path()), &damaged).unwrap();
        let objects = bench.stores.objects().clone();
        let other = Bench {
            key: bench.key.clone(),
            ..Bench::over(elsewhere, objects).await
        };
        let (table_damage, row_damage) = (
            other.stores.catalog.damaged_tables().await.unwrap(),
            complaints(&other).await,
        );
        // A place that no row stands at any more may differ without harm.
        if row_damage.is_empty() {
            assert_eq!(table_damage, Vec::<String>::new());
            assert_eq!(other.visible().await.len(), 4_998);
        }
    }
}

/// Copies everything into `directory`.
async fn copied(bench: &Bench, directory: &Path) -> BackupReport {
    let (catalog, objects) = (&bench.stores.catalog, bench.stores.objects());
    let (clock, ids) = (Arc::new(SystemClock), Arc::new(SystemIds::default()));
    let copied = back_up(catalog, objects, None, directory, clock, ids, &|_| ()).await;
    copied.unwrap().finish().unwrap()
}

#[tokio::test]
async fn a_copy_holds_what_was_there_and_can_be_served() {
    let bench = lived_in().await;
    let before = bench.visible().await;
    let directory = tempfile::tempdir().unwrap();
    let copied = copied(&bench, directory.path()).await;
    assert_eq!(copied.objects as usize, bench.paths().await.0.len());
    // What happens later is not in the copy.
    bench.delete(&[record(2)]).await;
    flush(&bench.stores, &bench.key).await.unwrap();
    let restored = opened(directory, &bench.key).await;
    assert_eq!(restored.visible().await, before);
    assert_eq!(complaints(&restored).await, Vec::<String>::new());
    restored.put(&many(20_000, 10, LAST_DAY_OF_2023), false).await;
    assert_eq!(restored.visible().await.len(), before.len() + 10);
}

#[tokio::test]
async fn a_copy_cannot_be_served_before_all_that_belongs_to_it_is_there() {
    let bench = lived_in().await;
    let (catalog, objects) = (&bench.stores.catalog, bench.stores.objects());
    let directory = tempfile::tempdir().unwrap();
    let (clock, ids) = (Arc::new(SystemClock), Arc::new(SystemIds::default()));
    let copied = back_up(catalog, objects, None, directory.path(), clock, ids, &|_| ()).await;
    let copied = copied.unwrap();
    let is_there = |name: &str| directory.path().join(name).exists();
    assert!(is_there(UNFINISHED_CATALOGUE) && !is_there(CATALOGUE_FILE));
    copied.finish().unwrap();
    assert!(!is_there(UNFINISHED_CATALOGUE) && is_there(CATALOGUE_FILE));
}

#[tokio::test]
async fn a_copy_of_what_is_being_made_anew_does_not_pass_for_everything() {
    let bench = lived_in().await;
    bench.stores.catalog.begin_rebuild().await.unwrap();
    let directory = tempfile::tempdir().unwrap();
    let told = copied(&bench, directory.path()).await.wrong;
    assert!(
        matches!(told.as_slice(), [told] if told.contains("almanac check --repair")),
        "{told:?}"
    );
    bench.stores.catalog.finish_rebuild().await.unwrap();
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(copied(&bench, directory.path()).await.wrong, [""; 0]);
}

#[tokio::test]
async fn a_copy_is_called_unfinished_before_there_is_anything_else_of_it() {
    let bench = lived_in().await;
    let (catalog, objects) = (&bench.stores.catalog, bench.stores.objects());
    let directory = tempfile::tempdir().unwrap();
    // It breaks off as soon as anything is to be copied.
    catalog.close().await;
    let (clock, ids) = (Arc::new(SystemClock), Arc::new(SystemIds::default()));
    let copied = back_up(catalog, objects, None, directory.path(), clock, ids, &|_| ()).await;
    assert!(copied.is_err(), "{copied:?}");
    assert!(directory.path().join(UNFINISHED_CATALOGUE).exists());
    for entry in std::fs::read_dir(directory.path()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(name.starts_with(UNFINISHED_CATALOGUE), "{name}");
    }
}

#[tokio::test]
async fn a_copy_that_has_begun_is_called_unfinished_and_is_made_in_the_same_place() {
    let bench = lived_in().await;
    let directory = tempfile::tempdir().unwrap();
    let is_there = |name: &str| directory.path().join(name).exists();
    begin(directory.path()).unwrap();
    assert!(is_there(UNFINISHED_CATALOGUE));
    assert_eq!(copied(&bench, directory.path()).await.wrong, [""; 0]);
    assert!(!is_there(UNFINISHED_CATALOGUE) && is_there(CATALOGUE_FILE));
    let restored = opened(directory, &bench.key).await;
    assert_eq!(restored.visible().await, bench.visible().await);
    // What is in use is never overwritten.
    let file = file_in(restored.directory.path());
    let refused = bench.stores.catalog.copy_to(&file).await;
    assert!(matches!(refused, Err(CatalogError::Exists { .. })), "{refused:?}");
}

/// Settles whether the catalogue of the first and the store of the second are a pair.
async fn settled(one: &Bench, other: &Bench) -> Result<Uuid, ApartError> {
    let UpkeepStores { catalog, ids, .. } = &one.stores;
    let settled = settle(catalog, other.stores.objects(), ids.as_ref(), false).await;
    settled.map(|settled| settled.identity)
}

#[tokio::test]
async fn a_copy_and_what_it_was_made_of_are_two_pairs() {
    let bench = lived_in().await;
    let live = settled(&bench, &bench).await.unwrap();
    let directory = tempfile::tempdir().unwrap();
    let wrong = copied(&bench, directory.path()).await.wrong;
    assert_eq!(wrong, Vec::<String>::new());
    assert!(directory.path().join(COPY_MARK).exists());
    let copy = opened(directory, &bench.key).await;
    assert_ne!(settled(&copy, &copy).await.unwrap(), live);
    for (one, other) in [(&copy, &bench), (&bench, &copy)] {
        let apart = settled(one, other).await;
        assert!(matches!(apart, Err(ApartError::Different { .. })), "{apart:?}");
    }
    assert_eq!(complaints(&copy).await, Vec::<String>::new());
    assert_eq!(settled(&bench, &bench).await.unwrap(), live);
}

#[tokio::test]
async fn a_copy_of_what_is_damaged_is_refused() {
    let bench = lived_in().await;
    let (live, _) = bench.paths().await;
    let file = bench.directory.path().join(OBJECTS_FOLDER).join(&live[0]);
    let mut content = std::fs::read(&file).unwrap();
    content[1_000] ^= 1;
    std::fs::write(&file, content).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let wrong = copied(&bench, directory.path()).await.wrong;
    assert_eq!(wrong.len(), 1, "{wrong:?}");
    assert!(wrong[0].contains(&live[0]), "{wrong:?}");
}
