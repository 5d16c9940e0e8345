//! The first transaction in each round of the log has the first page, by which the logs of other databases,
//! and of other states of a database, are told from its own.

use std::sync::Arc;

use super::*;
use crate::catalog::Catalog;
use crate::catalog::database::Database;
use crate::model::clock::SystemClock;

/// Needs one page, and not the first.
const CHANGE: &str = "UPDATE t SET a = a + 1";

async fn open_at(path: &Path) -> Database {
    let address = format!("sqlite://{}", path.display());
    Database::open(&address, 1).await.unwrap()
}

async fn change(database: &Database) {
    let mut session = database.write().await.unwrap();
    assert_eq!(session.execute(CHANGE.to_owned(), Vec::new()).await.unwrap(), 1);
    session.commit().await.unwrap();
}

/// Makes a database and closes it.
async fn make(path: &Path) {
    let database = open_at(path).await;
    let mut session = database.write().await.unwrap();
    session.define("CREATE TABLE t (a INTEGER)").await.unwrap();
    let row = "INSERT INTO t VALUES (0)".to_owned();
    session.execute(row, Vec::new()).await.unwrap();
    session.commit().await.unwrap();
    database.close().await;
}

/// The file and the log of a database, as a crash leaves them.
fn left_of(path: &Path) -> (Vec<u8>, Vec<u8>) {
    let log = std::fs::read(beside(path, SUFFIX)).unwrap();
    (std::fs::read(path).unwrap(), log)
}

fn first_pages_in(log: &[u8]) -> usize {
    let content = scanned(log, log.first_chunk().unwrap()).unwrap();
    assert!(content.has_any);
    content.first_pages.len()
}

/// Whether this log is taken for that of this file.
fn is_taken(file: &[u8], log: &[u8]) -> bool {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("put.db");
    std::fs::write(&path, file).unwrap();
    std::fs::write(beside(&path, SUFFIX), log).unwrap();
    match refuse_damaged(&path) {
        Ok(()) => true,
        Err(CatalogError::LogOfAnother { .. }) => false,
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn the_first_transaction_of_a_round_has_the_first_page_and_no_other_has() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("one.db");
    make(&path).await;
    let database = open_at(&path).await;
    let log = || std::fs::read(beside(&path, SUFFIX)).unwrap();
    let empty = database.write().await.unwrap();
    empty.commit().await.unwrap();
    assert_eq!(log(), b"", "nothing was changed");
    change(&database).await;
    assert_eq!(first_pages_in(&log()), 1);
    assert_eq!(log().len(), HEADER + 2 * FRAME);
    for frames in 3..6 {
        change(&database).await;
        assert_eq!(log().len(), HEADER + frames * FRAME);
    }
    // Another process moves the log into the file.
    let checkpoint = "PRAGMA wal_checkpoint(PASSIVE)";
    let other = Connection::open(&path).unwrap();
    let moved = other.query_row(checkpoint, [], |row| row.get::<_, i64>(2));
    assert_eq!(moved.unwrap(), 5);
    let before = log();
    change(&database).await;
    assert_ne!(log()[..HEADER], before[..HEADER], "another round begins");
    assert_eq!(first_pages_in(&log()), 1);
    change(&database).await;
    assert_eq!(first_pages_in(&log()), 1);
    other.close().unwrap();
    database.scour().await.unwrap();
    assert_eq!(log(), b"");
    change(&database).await;
    assert_eq!(first_pages_in(&log()), 1);
    database.close().await;
}

#[tokio::test]
async fn a_log_is_taken_that_goes_on_from_the_state_of_the_file_and_no_other_is() {
    let directory = tempfile::tempdir().unwrap();
    let [path, other] = ["one.db", "other.db"].map(|name| directory.path().join(name));
    make(&path).await;
    make(&other).await;
    let other = std::fs::read(other).unwrap();
    let mut states = Vec::new();
    for _ in 0..4 {
        let database = open_at(&path).await;
        change(&database).await;
        states.push(left_of(&path));
        database.close().await;
    }
    for (state, (file, _)) in states.iter().enumerate() {
        for (round, (_, log)) in states.iter().enumerate() {
            // The next state has all of the round in its file.
            let fits = round == state || round + 1 == state;
            assert_eq!(is_taken(file, log), fits, "{state}, {round}");
        }
    }
    // Its rows get other pages.
    let before = std::fs::read(&path).unwrap();
    let database = open_at(&path).await;
    database.scour().await.unwrap();
    change(&database).await;
    let (after, log) = left_of(&path);
    assert!(is_taken(&after, &log));
    assert!(!is_taken(&before, &log));
    database.close().await;
    for (_, log) in &states {
        assert!(!is_taken(&other, log));
        assert!(!is_taken(&other, &log[..HEADER + 2 * FRAME]));
        // Nothing in it has ended.
        assert!(is_taken(&other, &log[..HEADER]));
    }
}

#[tokio::test]
async fn what_a_crash_left_of_a_log_is_refused_beside_what_went_on_from_it() {
    let directory = tempfile::tempdir().unwrap();
    let [path, restarted] = ["one.db", "restarted.db"].map(|name| directory.path().join(name));
    make(&path).await;
    let database = open_at(&path).await;
    change(&database).await;
    let (file, log) = left_of(&path);
    database.close().await;
    std::fs::write(&restarted, &file).unwrap();
    std::fs::write(beside(&restarted, SUFFIX), &log).unwrap();
    let database = open_at(&restarted).await;
    change(&database).await;
    change(&database).await;
    let (_, longer) = left_of(&restarted);
    assert_eq!(longer.len(), log.len() + 3 * FRAME);
    assert_eq!(first_pages_in(&longer), 2);
    database.close().await;
    let stopped = std::fs::read(&restarted).unwrap();
    assert!(is_taken(&file, &longer));
    assert!(is_taken(&stopped, &longer), "it has all of this");
    assert!(!is_taken(&stopped, &log), "it would lose what came then");
}

#[tokio::test]
async fn a_copy_that_sqlite_made_is_told_from_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let [path, copy] = ["one.db", "copy.db"].map(|name| directory.path().join(name));
    make(&path).await;
    let database = open_at(&path).await;
    let mut session = database.write().await.unwrap();
    session.define("CREATE TABLE u (a INTEGER)").await.unwrap();
    session.commit().await.unwrap();
    database.close().await;
    let database = open_at(&path).await;
    change(&database).await;
    let other = Connection::open(&path).unwrap();
    other
        .execute_batch(&format!("VACUUM INTO '{}'", copy.display()))
        .unwrap();
    other.close().unwrap();
    change(&database).await;
    let (file, log) = left_of(&path);
    database.close().await;
    let database = open_at(&path).await;
    change(&database).await;
    let (next_file, next_log) = left_of(&path);
    database.close().await;
    let copied = std::fs::read(&copy).unwrap();
    // As its functions for backups leave it in a new file.
    let mut backed_up = copied.clone();
    backed_up[40..44].copy_from_slice(&1_u32.to_be_bytes());
    for (file, log) in [(&file, &log), (&next_file, &next_log)] {
        assert!(is_taken(file, log));
        assert!(!is_taken(&copied, log));
        assert!(!is_taken(&backed_up, log));
    }
}

#[tokio::test]
async fn a_log_is_taken_whose_round_began_as_tables_were_made_or_brought_up_to_date() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("one.db");
    let address = format!("sqlite://{}", path.display());
    // As if the last migration were to come.
    let earlier = "DELETE FROM schema_versions WHERE version = 11; DROP TABLE updated_days;";
    for earlier in [
        String::new(),
        earlier.to_owned(),
        // And as if rounds had not been counted.
        format!("{earlier} PRAGMA user_version = 0"),
    ] {
        Connection::open(&path).unwrap().execute_batch(&earlier).unwrap();
        let catalog = Catalog::open(&address, Arc::new(SystemClock)).await.unwrap();
        let (file, log) = left_of(&path);
        assert_ne!(first_pages_in(&log), 0, "{earlier}");
        assert!(is_taken(&file, &log), "{earlier}");
        catalog.close().await;
    }
}

#[tokio::test]
async fn a_log_without_the_first_page_is_taken_only_where_rounds_were_not_counted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("one.db");
    make(&path).await;
    // As an earlier release writes.
    let left = |before: &str| {
        Connection::open(&path).unwrap().execute_batch(before).unwrap();
        let open = Connection::open(&path).unwrap();
        open.execute_batch(CHANGE).unwrap();
        let (file, log) = left_of(&path);
        assert_eq!(first_pages_in(&log), 0);
        (file, log)
    };
    let (file, log) = left("");
    assert!(!is_taken(&file, &log));
    let (file, log) = left("PRAGMA user_version = 0");
    assert!(is_taken(&file, &log));
    // This release goes on in that log, and counts.
    std::fs::write(&path, file).unwrap();
    std::fs::write(beside(&path, SUFFIX), log).unwrap();
    let database = open_at(&path).await;
    change(&database).await;
    let (file, log) = left_of(&path);
    assert_eq!(first_pages_in(&log), 1);
    assert!(is_taken(&file, &log));
    database.close().await;
    let database = open_at(&path).await;
    change(&database).await;
    let (file, next) = left_of(&path);
    assert_eq!(first_pages_in(&next), 1);
    assert!(is_taken(&file, &next));
    assert!(is_taken(&file, &log), "it has all of this");
    database.close().await;
}
