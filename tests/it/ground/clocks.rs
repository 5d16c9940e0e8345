//! A node whose clock is wrong works beside one whose clock is right.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sqlx::{Connection as _, PgConnection};
use uuid::Uuid;

use crate::harness::{Backends, Setup, heart_rate, id, instant};

use super::commits::{ROWS, half_sent, in_small_chunks, values};
use super::shared_directory;

const PATIENCE: Duration = Duration::from_mins(2);

/// The library that lies to a process about the time.
fn lying_library() -> PathBuf {
    let places = fs::read_dir("/usr/lib").expect("a directory of libraries");
    let found = places
        .flatten()
        .map(|place| place.path().join("faketime/libfaketimeMT.so.1"))
        .find(|library| library.exists());
    found.expect("libfaketime is installed (tests/all does it)")
}

/// A server that believes it is `ahead` of everybody else. How fast time passes is left alone.
pub(crate) fn mistaken(setup: Setup, ahead: &str) -> Setup {
    setup
        .with("LD_PRELOAD", &lying_library().display().to_string())
        .with("FAKETIME", ahead)
        .with("FAKETIME_DONT_FAKE_MONOTONIC", "1")
}

async fn database(backends: &Backends) -> PgConnection {
    PgConnection::connect(backends.setting("ALMANAC_DATABASE_URL"))
        .await
        .expect("the catalogue")
}

/// How many rows of the catalogue `sql` counts, with one text bound.
async fn count(database: &mut PgConnection, sql: &'static str, bound: &str) -> i64 {
    sqlx::query_scalar(sql)
        .bind(bound)
        .fetch_one(database)
        .await
        .expect("a count")
}

/// Puts an object that nothing names into `folder`, and waits until a search noticed it.
async fn searched(database: &mut PgConnection, folder: &Path) {
    let name = format!("{}.parquet", Uuid::now_v7());
    fs::write(folder.join(&name), "nothing names this").expect("an object that nothing names");
    let begun = Instant::now();
    let pattern = format!("%{name}");
    while count(
        database,
        "SELECT count(*) FROM strays WHERE path LIKE $1",
        &pattern,
    )
    .await
        == 0
    {
        assert!(begun.elapsed() < PATIENCE, "nobody searches");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_that_is_ahead_removes_nothing_of_a_body_on_its_way() {
    let directory = tempfile::TempDir::new().unwrap();
    let Some(backends) = shared_directory(directory.path()) else {
        return;
    };
    let near = in_small_chunks()
        .no_upkeep()
        .on(backends.clone())
        .in_dir(directory.path())
        .start();
    let (person, mut sending, rest) = half_sent(&near).await;
    let objects = near.objects();
    let folder = objects[0].parent().expect("a folder").to_owned();
    let mut database = database(&backends).await;
    for ahead in ["+0", "+9h", "+18h", "+27h", "+1y"] {
        let setup = Setup::default()
            .busy_upkeep()
            .with("ALMANAC_SEARCH_INTERVAL", "50ms")
            .with("ALMANAC_COLLECT_ANYWAY", "true");
        let far = mistaken(setup, ahead)
            .on(backends.clone())
            .in_dir(directory.path())
            .start();
        // Two of them, one after the other: between them lies a whole search.
        searched(&mut database, &folder).await;
        searched(&mut database, &folder).await;
        assert_eq!(far.metrics().await.sum(&["almanac_upkeep_failures_total"]), 0.0);
    }
    // Had an object of the body been removed, its commit would be refused, or its rows could not be read.
    assert!(sending.send(&rest).await);
    let (status, answer) = sending.answer().await;
    assert_eq!(status, 201, "{answer}");
    assert_eq!(values(&person).await, vec![60.0; 2 * ROWS as usize]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_taken_by_a_clock_a_year_ahead_is_soon_free() {
    let directory = tempfile::TempDir::new().unwrap();
    let Some(backends) = shared_directory(directory.path()) else {
        return;
    };
    // It takes this lease again and again, whether there is something to do or not.
    let purging = || {
        Setup::default()
            .busy_upkeep()
            .with("ALMANAC_PURGE_DELETED_AFTER", "2s")
    };
    let far = mistaken(purging(), "+1y")
        .on(backends.clone())
        .in_dir(directory.path())
        .start();
    let near = purging().on(backends.clone()).in_dir(directory.path()).prepare();
    let mut database = database(&backends).await;
    let held = "SELECT count(*) FROM leases WHERE name = $1";
    // The clock's owner dies with the lease in hand; whoever gives it back in time is let live on.
    let begun = Instant::now();
    loop {
        while count(&mut database, held, "purge").await == 0 {
            assert!(begun.elapsed() < PATIENCE, "nobody purges");
        }
        far.kill();
        if count(&mut database, held, "purge").await == 1 {
            break;
        }
        far.launch();
    }
    near.launch();
    let person = near.person();
    person
        .records("HeartRate", &[heart_rate(id(1), &instant(1), 60)])
        .await;
    let begun = Instant::now();
    let until: &str = "SELECT count(*) FROM leases WHERE name = $1 AND held_until > \
                       (extract(epoch FROM now()) * 1000000)::bigint + 120000000";
    assert_eq!(
        count(&mut database, until, "purge").await,
        0,
        "the lease is of the clock"
    );
    near.until_objects(1).await;
    // The row of the dead is replaced or gone once its half minute is over.
    let dead: String =
        sqlx::query_scalar("SELECT coalesce(max(holder), '') FROM leases WHERE name = 'purge'")
            .fetch_one(&mut database)
            .await
            .unwrap();
    let same = "SELECT count(*) FROM leases WHERE name = 'purge' AND holder = $1";
    while !dead.is_empty() && count(&mut database, same, &dead).await == 1 {
        assert!(begun.elapsed() < PATIENCE, "the lease of the dead is never free");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
