//! That what is kept is what would be found.

use std::sync::atomic::{AtomicI64, Ordering};

use super::*;

const SUM: &str = "SELECT value FROM sums WHERE name = $1";

/// A database as the catalogue sets it up, with one table.
struct Bench {
    directory: tempfile::TempDir,
    writer: Connection,
    lookups: Lookups,
}

impl Bench {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let writer = connect(directory.path());
        writer
            .execute_batch(
                "PRAGMA journal_mode = wal; CREATE TABLE sums (name TEXT PRIMARY KEY, value ANY) STRICT",
            )
            .unwrap();
        let lookups = Lookups::open(&file(directory.path()));
        Self {
            directory,
            writer,
            lookups,
        }
    }

    fn set(&self, name: &str, value: i64) {
        set(&self.writer, name, value);
    }

    fn found(&self, name: &str) -> Option<StoredValue> {
        found(&self.lookups, name).unwrap()
    }

    /// Lets nothing be read any more.
    fn takes_all_connections(&self) {
        let mut inner = self.lookups.inner();
        inner.idle.clear();
        inner.unopened = 0;
    }
}

fn file(directory: &Path) -> PathBuf {
    directory.join("sums.sqlite")
}

fn connect(directory: &Path) -> Connection {
    let connection = Connection::open(file(directory)).unwrap();
    connection
        .busy_timeout(std::time::Duration::from_secs(10))
        .unwrap();
    connection
}

fn set(connection: &Connection, name: &str, value: i64) {
    let set = "INSERT INTO sums VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value";
    connection.execute(set, (name, value)).unwrap();
}

fn statement(name: &str) -> BoundStatement {
    BoundStatement {
        sql: SUM.to_owned(),
        values: vec![Value::Text(name.to_owned())],
    }
}

/// The value of the row, if there is one.
fn found(lookups: &Lookups, name: &str) -> Result<Option<StoredValue>, BoundStatement> {
    let rows = lookups.look_up(statement(name))?;
    Ok(rows.first().map(|row| row[0].clone()))
}

#[test]
fn what_was_found_is_not_read_again_until_something_is_committed() {
    let bench = Bench::new();
    bench.set("one", 1);
    assert_eq!(bench.found("one"), Some(StoredValue::Integer(1)));
    assert_eq!(bench.found("none"), None);
    bench.takes_all_connections();
    assert_eq!(bench.found("one"), Some(StoredValue::Integer(1)));
    assert_eq!(bench.found("none"), None, "that there is none is kept as well");
    assert_eq!(found(&bench.lookups, "another"), Err(statement("another")));
    bench.set("another", 2);
    assert_eq!(
        found(&bench.lookups, "one"),
        Err(statement("one")),
        "it may be another row now"
    );
}

#[test]
fn a_commit_of_anybody_is_seen_at_once() {
    let bench = Bench::new();
    let another = connect(bench.directory.path());
    for value in 0..100 {
        set([&bench.writer, &another][value as usize % 2], "one", value);
        for _ in 0..2 {
            assert_eq!(bench.found("one"), Some(StoredValue::Integer(value)));
        }
        match value % 10 {
            // The log begins anew.
            3 => another.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap(),
            5 => another.execute_batch("PRAGMA wal_checkpoint(RESTART)").unwrap(),
            7 => another.execute_batch("VACUUM").unwrap(),
            _ => {}
        }
        assert_eq!(bench.found("one"), Some(StoredValue::Integer(value)));
    }
}

#[test]
fn what_is_not_committed_is_not_seen() {
    let bench = Bench::new();
    bench.set("one", 1);
    assert_eq!(bench.found("one"), Some(StoredValue::Integer(1)));
    // So many pages that some are written to the log before it is known how this ends.
    bench
        .writer
        .execute_batch("PRAGMA cache_size = 2; BEGIN")
        .unwrap();
    for number in 0..2_000 {
        bench.set(&format!("another {number:0200}"), 2);
    }
    bench.set("one", 2);
    assert_eq!(bench.found("one"), Some(StoredValue::Integer(1)));
    bench.writer.execute_batch("ROLLBACK").unwrap();
    assert_eq!(bench.found("one"), Some(StoredValue::Integer(1)));
}

#[test]
fn nobody_finds_what_was_replaced_before_they_asked() {
    let bench = Bench::new();
    bench.set("one", 0);
    let committed = AtomicI64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while committed.load(Ordering::Acquire) < 500 {
                    let least = committed.load(Ordering::Acquire);
                    // Whoever finds all connections taken asks the driver, which is not here.
                    if let Ok(Some(StoredValue::Integer(value))) = found(&bench.lookups, "one") {
                        assert!(value >= least, "{value} was found after {least} was committed");
                    }
                }
            });
        }
        for value in 1..=500 {
            bench.set("one", value);
            committed.store(value, Ordering::Release);
        }
    });
    assert_eq!(bench.found("one"), Some(StoredValue::Integer(500)));
}

#[test]
fn what_is_kept_is_bounded() {
    let bench = Bench::new();
    let long = "x".repeat(8 << 10);
    let insert = "INSERT INTO sums VALUES ($1, $2)";
    bench.writer.execute(insert, ("long", &long)).unwrap();
    for number in 0..20_000 {
        bench.found(&format!("{number:0100}"));
    }
    assert_eq!(bench.found("long"), Some(StoredValue::Text(long)));
    let kept = bench.lookups.inner().kept.bytes();
    assert!((1 << 20..=2 << 20).contains(&kept), "{kept}");
    bench.takes_all_connections();
    assert!(
        found(&bench.lookups, "long").is_err(),
        "long rows are read each time"
    );
    assert_eq!(bench.found(&format!("{:0100}", 19_999)), None);
}

#[test]
fn what_is_asked_for_once_displaces_nothing() {
    let bench = Bench::new();
    bench.set("one", 1);
    assert_eq!(bench.found("one"), Some(StoredValue::Integer(1)));
    let kept = bench.lookups.inner().kept.bytes();
    for number in 0..20_000 {
        let other = statement(&format!("{number:0100}"));
        assert!(bench.lookups.look_up_once(other).unwrap().is_empty());
    }
    assert_eq!(bench.lookups.inner().kept.bytes(), kept);
    bench.takes_all_connections();
    assert_eq!(bench.found("one"), Some(StoredValue::Integer(1)));
}

#[test]
fn what_was_forgotten_is_read_again() {
    let bench = Bench::new();
    bench.set("one", 1);
    assert_eq!(bench.found("one"), Some(StoredValue::Integer(1)));
    bench.lookups.forget_all();
    assert_eq!(bench.lookups.inner().kept.bytes(), 0);
    assert_eq!(bench.found("one"), Some(StoredValue::Integer(1)));
    bench.lookups.forget_all();
    bench.takes_all_connections();
    assert_eq!(found(&bench.lookups, "one"), Err(statement("one")));
}

#[test]
fn nothing_is_found_once_they_are_closed() {
    let bench = Bench::new();
    bench.set("one", 1);
    assert_eq!(bench.found("one"), Some(StoredValue::Integer(1)));
    bench.lookups.close();
    assert!(found(&bench.lookups, "one").is_err());
    // Nobody has the database open any more but the one who writes, and so it leaves one file.
    let Bench {
        directory,
        writer,
        lookups,
    } = bench;
    writer.close().unwrap();
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    drop(lookups);
}

#[test]
fn without_a_log_nothing_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    let writer = connect(directory.path());
    writer
        .execute_batch("CREATE TABLE sums (name TEXT PRIMARY KEY, value INTEGER)")
        .unwrap();
    // An index that another database left behind, which nobody changes.
    let other = Bench::new();
    other.set("one", 1);
    let index = |directory: &Path| directory.join("sums.sqlite-shm");
    std::fs::copy(index(other.directory.path()), index(directory.path())).unwrap();
    let lookups = Lookups::open(&file(directory.path()));
    assert!(lookups.0.index.is_none());
    for value in 0..3 {
        set(&writer, "one", value);
        assert_eq!(found(&lookups, "one"), Ok(Some(StoredValue::Integer(value))));
    }
}
