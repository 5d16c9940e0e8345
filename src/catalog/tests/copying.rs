//! A copy has what there is, and the damage that there is.

use super::*;
use crate::catalog::database::{Database, Value};
use crate::catalog::inserting::Existing;
use crate::catalog::tables::{ALL, Kind, OF_THIS_STORE, Table};
use crate::catalog::test_databases::file_in;

/// A row of a table: `number` where nothing else is asked for.
fn row_of(table: &Table, person: PersonId, number: u64) -> Vec<Value> {
    let bytes = Uuid::from_u64_pair(1, number).as_bytes().to_vec();
    let value = |(name, kind): &(&str, Kind)| match kind {
        Kind::Int => Value::Int(1),
        Kind::Text => Value::Text(format!("text {number}")),
        Kind::Bytes if *name == "person" => Value::Bytes(person.0.as_bytes().to_vec()),
        Kind::Bytes => Value::Bytes(bytes.clone()),
        Kind::OptionalInt => Value::NullInt,
        Kind::OptionalText => Value::NullText,
    };
    table.columns.iter().map(value).collect()
}

fn copied() -> impl Iterator<Item = &'static Table> {
    let is_copied = |table: &&Table| !OF_THIS_STORE.iter().any(|other| other.name == table.name);
    ALL.iter().copied().filter(is_copied)
}

/// A row in each table that is copied, all of one person.
async fn with_a_row_in_each(bench: &Bench) -> PersonId {
    let person = person();
    let mut session = bench.catalog.database.write().await.unwrap();
    for table in copied() {
        let row = row_of(table, person, 1);
        session.insert(table, vec![row], Existing::Refuse).await.unwrap();
    }
    session.commit().await.unwrap();
    person
}

async fn run(database: &Database, sql: &str) {
    let mut session = database.write().await.unwrap();
    let changed = session.execute(sql.to_owned(), Vec::new()).await.unwrap();
    assert!(changed > 0, "{sql}");
    session.commit().await.unwrap();
}

async fn count(catalog: &Catalog, table: &str) -> i64 {
    let sql = format!("SELECT COUNT(*) FROM {table}");
    let rows = catalog.database.fetch(sql, Vec::new()).await.unwrap();
    rows[0].int(0).unwrap()
}

/// What copying the catalogue tells, and the copy.
async fn copy_of(bench: &Bench, name: &str) -> (Vec<String>, Catalog) {
    let path = bench.directory.path().join(name);
    let told = bench.catalog.copy_to(&path).await.unwrap();
    let address = format!("sqlite://{}", path.display());
    (told, Catalog::open(&address, bench.clock.clone()).await.unwrap())
}

#[tokio::test]
async fn a_damaged_row_of_any_table_is_told_and_damaged_in_the_copy_too() {
    for table in copied() {
        let bench = Bench::sqlite().await;
        let person = with_a_row_in_each(&bench).await;
        let sql = format!("UPDATE {} SET checksum = checksum - 1", table.name);
        run(&bench.catalog.database, &sql).await;
        let (told, copy) = copy_of(&bench, "copy.sqlite").await;
        let of_table = format!("table {}", table.name);
        let about: Vec<_> = told.iter().filter(|what| what.starts_with(&of_table)).collect();
        assert_eq!(about.len(), 1, "{told:?}");
        assert!(about[0].contains("from what was written"), "{told:?}");
        assert_eq!(
            about[0].contains(&person.to_string()),
            table.has_owner(),
            "{told:?}"
        );
        assert_eq!(
            copy.damaged_rows().await.unwrap(),
            bench.catalog.damaged_rows().await.unwrap()
        );
        for other in copied() {
            let (here, there) = (
                count(&bench.catalog, other.name).await,
                count(&copy, other.name).await,
            );
            assert_eq!(here, there, "{} with damage in {}", other.name, table.name);
        }
    }
}

#[tokio::test]
async fn a_row_that_names_nobody_is_copied_as_it_is() {
    let bench = Bench::sqlite().await;
    with_a_row_in_each(&bench).await;
    bench.catalog.database.allow_loose_ends().await.unwrap();
    run(&bench.catalog.database, "UPDATE people SET person = x'00'").await;
    let (told, copy) = copy_of(&bench, "copy.sqlite").await;
    assert!(
        told.iter()
            .any(|what| what.starts_with("table people: 1 row differs")),
        "{told:?}"
    );
    assert_eq!(
        (count(&copy, "people").await, count(&copy, "sources").await),
        (1, 1)
    );
}

#[tokio::test]
async fn a_row_that_cannot_be_read_is_told_and_left_out() {
    let bench = Bench::sqlite().await;
    let person = with_a_row_in_each(&bench).await;
    run(
        &bench.catalog.database,
        "UPDATE access_log SET body = CAST(x'ff' AS TEXT)",
    )
    .await;
    let (told, copy) = copy_of(&bench, "copy.sqlite").await;
    let expected = format!("table access_log, person {person}: 1 row cannot be read");
    assert!(told.contains(&expected), "{told:?}");
    assert_eq!(
        (count(&copy, "access_log").await, count(&copy, "documents").await),
        (0, 1)
    );
}

#[tokio::test]
async fn damage_and_loss_of_a_tail_are_told_and_the_rest_is_copied() {
    let bench = Bench::sqlite().await;
    let (one, other) = (person(), person());
    for person in [one, other] {
        let pieces = vec![tail(b"some rows"), tail(b"some more")];
        bench.catalog.commit(one_change(person, pieces)).await.unwrap();
    }
    let of_one = "(SELECT piece FROM pieces WHERE person = (SELECT MIN(person) FROM people) ORDER BY piece";
    let database = &bench.catalog.database;
    run(
        database,
        &format!("UPDATE blobs SET blob = x'00' WHERE piece = {of_one} LIMIT 1)"),
    )
    .await;
    run(
        database,
        &format!("DELETE FROM blobs WHERE piece = {of_one} DESC LIMIT 1)"),
    )
    .await;
    let (told, copy) = copy_of(&bench, "copy.sqlite").await;
    assert_eq!(told.len(), 2, "{told:?}");
    for what in ["differs from what was written", "is lost"] {
        let is_told = |said: &String| said.contains(&one.min(other).to_string()) && said.ends_with(what);
        assert!(told.iter().any(is_told), "{what}: {told:?}");
    }
    let whole = copy
        .snapshot(one.max(other), &[heart_rate()], &|_| false)
        .await
        .unwrap();
    assert_eq!(whole[0].pieces.len(), 2);
    assert_eq!(count(&copy, "blobs").await, 3);
}

fn one_change(person: PersonId, pieces: Vec<NewPiece>) -> Commit {
    one(change(person, NOTHING, pieces))
}

#[tokio::test]
async fn what_is_on_either_side_of_a_part_that_cannot_be_read_is_copied() {
    const ROWS: u64 = 5_000;
    let Bench {
        catalog,
        clock,
        address,
        directory,
    } = Bench::sqlite().await;
    let log = copied().find(|table| table.name == "access_log").unwrap();
    let people = copied().find(|table| table.name == "people").unwrap();
    let person = person();
    let mut session = catalog.database.write().await.unwrap();
    let row = row_of(people, person, 1);
    session.insert(people, vec![row], Existing::Refuse).await.unwrap();
    let rows = (0..ROWS).map(|number| row_of(log, person, number)).collect();
    session.insert(log, rows, Existing::Refuse).await.unwrap();
    session.commit().await.unwrap();
    catalog.close().await;
    let file = file_in(directory.path());
    let mut content = std::fs::read(&file).unwrap();
    let in_the_middle = content
        .windows(9)
        .position(|window| window == b"text 2500")
        .unwrap();
    let page = in_the_middle / 4096 * 4096;
    content[page..page + 4096].fill(0);
    std::fs::write(&file, content).unwrap();
    let bench = Bench {
        catalog: Catalog::open(&address, clock.clone()).await.unwrap(),
        clock,
        address,
        directory,
    };
    let (told, copy) = copy_of(&bench, "copy.sqlite").await;
    assert!(
        told.iter()
            .any(|what| what.starts_with("table access_log: some of it cannot be read")),
        "{told:?}"
    );
    let there = count(&copy, "access_log").await;
    assert!((ROWS as i64 - 200..ROWS as i64).contains(&there), "{there}");
    assert_eq!(copy.damaged_rows().await.unwrap(), [""; 0]);
}
