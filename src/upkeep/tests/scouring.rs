//! What was removed is in the database's own files for a while, and then no longer.

use std::sync::Mutex;

use super::erasing::database_files_with;
use super::*;
use crate::catalog::CatalogError;
use crate::catalog::documents::{Change, Document, DocumentKind};
use crate::model::meters::Meters;
use crate::upkeep::Upkeep;
use crate::upkeep::manifest::write_manifest;
use crate::upkeep::repair::{give_up_lost, overwrite_given_up};
use crate::upkeep::scour::Scouring;

const SECRET: &str = "what nobody should read any more";

/// What upkeep does after a change, when it was a while ago.
async fn round(bench: &Bench) {
    let stop = tokio_util::sync::CancellationToken::new();
    let upkeep = Upkeep::new(settings(), bench.stores.clone(), Meters::default(), stop);
    upkeep.flush_due().await.unwrap();
    upkeep.write_manifests().await.unwrap();
    upkeep.purge_due().await.unwrap();
}

async fn make_known_and_remove(bench: &Bench) {
    let catalog = &bench.stores.catalog;
    catalog.set_fact("a secret", SECRET).await.unwrap();
    catalog.forget_fact("a secret").await.unwrap();
    assert!(is_known(bench));
}

fn is_known(bench: &Bench) -> bool {
    !database_files_with(bench, SECRET).is_empty()
}

#[tokio::test]
async fn a_job_scours_after_it_removed_something_and_not_again_too_soon() {
    let bench = Bench::new().await;
    let catalog = &bench.stores.catalog;
    let scouring = |job| Scouring::of(job, catalog, Duration::from_hours(20));
    let job = scouring("a job");
    make_known_and_remove(&bench).await;
    job.scour_due().await.unwrap();
    assert!(is_known(&bench), "the job removed nothing");
    scouring("another").expect_removal().await.unwrap();
    job.scour_due().await.unwrap();
    assert!(is_known(&bench), "nor did it then");
    job.expect_removal().await.unwrap();
    job.scour_due().await.unwrap();
    assert!(!is_known(&bench));

    make_known_and_remove(&bench).await;
    job.expect_removal().await.unwrap();
    bench.pass(Duration::from_mins(59));
    job.expect_removal().await.unwrap();
    job.scour_due().await.unwrap();
    assert!(is_known(&bench), "the last time was an hour ago or less");
    bench.pass(Duration::from_mins(2));
    scouring("a job").scour_due().await.unwrap();
    assert!(!is_known(&bench));

    make_known_and_remove(&bench).await;
    bench.pass(Duration::from_hours(2));
    job.scour_due().await.unwrap();
    assert!(is_known(&bench), "what others remove without a note waits");
}

#[tokio::test]
async fn a_clock_that_was_ahead_and_a_damaged_note_keep_nothing_from_being_overwritten() {
    let bench = Bench::new().await;
    let scouring = Scouring::of("a job", &bench.stores.catalog, Duration::from_hours(20));
    let right = bench.clock.now();
    bench.pass(Duration::from_hours(24 * 365));
    scouring.expect_removal().await.unwrap();
    scouring.scour_due().await.unwrap();
    bench.clock.set(right);
    make_known_and_remove(&bench).await;
    scouring.expect_removal().await.unwrap();
    scouring.scour_due().await.unwrap();
    assert!(!is_known(&bench), "nobody waits for that year");

    make_known_and_remove(&bench).await;
    tamper(
        &bench,
        "UPDATE meta SET checksum = checksum + 1 WHERE name = 'scour:a job'",
    )
    .await;
    scouring.scour_due().await.unwrap();
    assert!(!is_known(&bench));
    scouring.expect_removal().await.unwrap();
}

#[tokio::test]
async fn deleted_records_are_gone_from_the_files_of_the_database_within_the_time() {
    let bench = Bench::new().await;
    bench
        .put(&[(record(1), LAST_DAY_OF_2023, 123_456_788.0)], false)
        .await;
    bench.put(&many(100, 10, LAST_DAY_OF_2023), false).await;
    bench.delete(&[record(1)]).await;
    let living = bench.visible().await;
    bench.pass(Duration::from_mins(2));
    round(&bench).await;
    assert!(
        !database_files_with(&bench, "123456788").is_empty(),
        "a flush overwrites nothing"
    );
    bench.pass(Duration::from_hours(24 * 29));
    round(&bench).await;
    let found = database_files_with(&bench, "123456788");
    assert!(found.is_empty(), "{found:?}");
    assert_eq!(bench.visible().await, living);
}

#[tokio::test]
async fn what_is_removed_at_once_is_gone_from_the_files_of_the_database_within_the_time() {
    let bench = Bench::new().await;
    let now = bench.clock.now();
    let tag = Document {
        kind: DocumentKind::Tag,
        id: Uuid::now_v7(),
        person: bench.key.person,
        name: Some(SECRET.to_owned()),
        body: "{}".to_owned(),
        version: 1,
        created_at: now,
        updated_at: now,
        deleted_at: None,
    };
    let removal = tag.removal();
    let insertion = Change::Insert {
        document: tag,
        links: Vec::new(),
        limit: 10,
    };
    let catalog = &bench.stores.catalog;
    catalog.change_documents(vec![insertion]).await.unwrap();
    assert!(write_manifest(&bench.stores, bench.key.person).await.unwrap());
    catalog.change_documents(vec![removal]).await.unwrap();
    round(&bench).await;
    assert!(is_known(&bench));
    bench.pass(Duration::from_hours(24 * 29));
    round(&bench).await;
    assert!(!is_known(&bench));
}

/// Gives up what is lost; returns what was told of it.
async fn given_up(bench: &Bench) -> Vec<String> {
    let told = Mutex::new(Vec::new());
    let tell = |line| told.lock().unwrap().push(line);
    give_up_lost(&bench.stores, &tell).await.unwrap();
    told.into_inner().unwrap()
}

#[tokio::test]
async fn bytes_whose_rows_were_given_up_go_once_no_row_differs_that_may_name_them() {
    let bench = Bench::new().await;
    let catalog = &bench.stores.catalog;
    bench.put(&many(0, 3, LAST_DAY_OF_2023), false).await;
    tamper(&bench, "DELETE FROM pieces").await;
    tamper(&bench, "UPDATE people SET checksum = checksum + 1").await;
    let told = given_up(&bench).await;
    assert!(catalog.has_bytes_of_nothing().await.unwrap(), "{told:?}");
    tamper(&bench, "UPDATE people SET checksum = checksum - 1").await;
    let told = given_up(&bench).await;
    let is_told = told.iter().any(|told| told.contains("bytes of 1 tail pieces"));
    assert!(is_told, "{told:?}");
    assert!(!catalog.has_bytes_of_nothing().await.unwrap());
    assert_eq!(given_up(&bench).await, [""; 0]);
}

#[tokio::test]
async fn what_was_given_up_is_told_also_if_it_cannot_be_overwritten_yet() {
    let bench = Bench::new().await;
    bench.put(&many(0, 3, LAST_DAY_OF_2023), false).await;
    tamper(&bench, "DELETE FROM pieces").await;
    let address = format!("sqlite://{}", file_in(bench.directory.path()).display());
    let mut reader = SqliteConnection::connect(&address).await.unwrap();
    reader
        .execute("BEGIN; SELECT count(*) FROM people")
        .await
        .unwrap();
    let told = given_up(&bench).await;
    let of_person = told
        .iter()
        .any(|told| told.contains(&format!("person {}: given up", bench.key.person)));
    assert!(
        of_person && told.iter().any(|told| told.contains("bytes of 1 tail")),
        "{told:?}"
    );
    let refused = overwrite_given_up(&bench.stores).await.unwrap_err();
    assert!(matches!(refused, CatalogError::Contended { .. }), "{refused}");
    reader.execute("COMMIT").await.unwrap();
    make_known_and_remove(&bench).await;
    overwrite_given_up(&bench.stores).await.unwrap();
    assert!(!is_known(&bench), "the note of it stays");
}
