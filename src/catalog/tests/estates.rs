//! Everything known of a person is read, page by page, and nothing twice.

use std::collections::BTreeMap;

use super::*;
use crate::catalog::documents::{Change, Changed, Document, DocumentKind, Link};
use crate::catalog::estates::LostRows;
use crate::catalog::records::StoredDefinition;

fn note(person: PersonId, kind: DocumentKind, number: i64) -> Change {
    let at = Instant::from_micros(number % 7);
    Change::Insert {
        document: Document {
            kind,
            id: Uuid::now_v7(),
            person,
            name: None,
            body: "{}".to_owned(),
            version: 1,
            created_at: at,
            updated_at: at,
            deleted_at: None,
        },
        links: vec![Link {
            kind: "about",
            target: Uuid::from_u128(number.unsigned_abs().into()),
        }],
        limit: u64::MAX,
    }
}

#[tokio::test]
async fn an_estate_of_many_pages_is_read_once_and_whole() {
    for bench in Bench::all().await {
        let (person, other) = (person(), person());
        for owner in [person, other] {
            let changes = (0..700).map(|number| {
                let kind = if number % 2 == 0 {
                    DocumentKind::Tag
                } else {
                    DocumentKind::Annotation
                };
                note(owner, kind, number)
            });
            let changed = bench.catalog.change_documents(changes.collect()).await;
            assert_eq!(changed.unwrap(), Changed::Done);
        }
        for name in ["HeartRate", "Event", "StepCount"] {
            let pieces = vec![tail(b"one"), object("data/x.parquet"), tail(b"two")];
            let change = PartitionChange {
                data_type: TypeId(name.into()),
                ..change(person, NOTHING, pieces)
            };
            assert_eq!(
                bench.catalog.commit(one(change)).await.unwrap(),
                CommitOutcome::Done
            );
        }
        let mut estate = bench.catalog.read_estate(person).await.unwrap().unwrap();
        let mut rows: BTreeMap<String, Vec<String>> = BTreeMap::new();
        while let Some(page) = estate.next().await.unwrap() {
            let written = page.rows.iter().map(|row| serde_json::to_string(row).unwrap());
            rows.entry(page.table).or_default().extend(written);
        }
        estate.end().await.unwrap();
        let counts: BTreeMap<&str, usize> = rows
            .iter_mut()
            .map(|(table, rows)| {
                let read = rows.len();
                rows.sort_unstable();
                rows.dedup();
                assert_eq!(read, rows.len(), "{table}: a row was read twice");
                (table.as_str(), read)
            })
            .collect();
        assert_eq!(
            counts,
            BTreeMap::from([
                ("people", 1),
                ("ledgers", 1),
                ("partitions", 3),
                ("pieces", 9),
                ("documents", 700),
                ("links", 700),
                ("folders", 2),
                ("blobs", 6),
            ])
        );
    }
}

/// A person with a row in each table whose rows are counted.
async fn counted(bench: &Bench) -> PersonId {
    let person = person();
    let first = tail(b"one");
    let pieces = vec![first.clone(), object("data/x.parquet")];
    let source = SeenSource {
        person,
        key: "watch".to_owned(),
        name: None,
    };
    let commit = Commit {
        sources: vec![source],
        ..one(change(person, NOTHING, pieces))
    };
    assert_eq!(bench.catalog.commit(commit).await.unwrap(), CommitOutcome::Done);
    let replacing = PartitionChange {
        dead: vec![(first.id, record())],
        records_delta: 0,
        ..change(person, bench.stamp(person).await, vec![tail(b"two")])
    };
    assert_eq!(
        bench.catalog.commit(one(replacing)).await.unwrap(),
        CommitOutcome::Done
    );
    let now = Instant::from_micros(0);
    let definition = StoredDefinition {
        id: Uuid::now_v7(),
        person,
        base: "Event".to_owned(),
        body: "{}".to_owned(),
        version: 1,
        deprecated: false,
        created_at: now,
        updated_at: now,
    };
    bench.catalog.insert_definition(&definition).await.unwrap();
    let changes = vec![note(person, DocumentKind::Tag, 1)];
    let changed = bench.catalog.change_documents(changes).await.unwrap();
    assert_eq!(changed, Changed::Done);
    person
}

async fn read_to_the_end(bench: &Bench, person: PersonId) -> Result<(), CatalogError> {
    let mut estate = bench.catalog.read_estate(person).await?.unwrap();
    while estate.next().await?.is_some() {}
    estate.end().await
}

/// Rows that are counted.
const COUNTED: [&str; 12] = [
    "ledgers",
    "partitions",
    "pieces WHERE path IS NULL",
    "pieces WHERE path IS NOT NULL",
    "dead_rows",
    "blobs",
    "sources",
    "definitions",
    "documents",
    "links",
    "folders WHERE kind = 'sources'",
    "folders WHERE kind = 'tag'",
];

async fn lose(bench: &Bench, rows: &str) {
    let mut session = bench.catalog.database.write().await.unwrap();
    let removing = session.execute(format!("DELETE FROM {rows}"), Vec::new());
    assert!(removing.await.unwrap() > 0, "{rows}");
    session.commit().await.unwrap();
}

async fn lost_rows(bench: &Bench, person: PersonId) -> LostRows {
    let mut estate = bench.catalog.read_estate(person).await.unwrap().unwrap();
    while estate.next().await.unwrap().is_some() {}
    estate.end_lacking().await.unwrap()
}

#[tokio::test]
async fn what_is_lost_is_the_same_until_more_is() {
    let bench = Bench::sqlite().await;
    let person = counted(&bench).await;
    let mut before = lost_rows(&bench, person).await;
    assert_eq!(before, LostRows::default());
    for (number, lost) in (2..).zip(["links", "documents", "sources", "dead_rows", "blobs"]) {
        lose(&bench, lost).await;
        let after = lost_rows(&bench, person).await;
        assert_ne!(after, before, "{lost}");
        let changes = vec![note(person, DocumentKind::Tag, number)];
        let changed = bench.catalog.change_documents(changes).await.unwrap();
        assert_eq!(changed, Changed::Done, "{lost}");
        assert_eq!(lost_rows(&bench, person).await, after, "{lost}");
        before = after;
    }
}

#[tokio::test]
async fn what_is_there_is_all_once_lost_rows_are_given_up() {
    for lost in COUNTED {
        let bench = Bench::sqlite().await;
        let (catalog, person) = (&bench.catalog, counted(&bench).await);
        assert_eq!(catalog.lost_of(person).await.unwrap(), None, "{lost}");
        assert_eq!(catalog.give_up_lost(person).await.unwrap(), [""; 0], "{lost}");
        lose(&bench, lost).await;
        assert!(catalog.lost_of(person).await.unwrap().is_some(), "{lost}");
        assert_ne!(catalog.give_up_lost(person).await.unwrap(), [""; 0], "{lost}");
        assert_eq!(catalog.lost_of(person).await.unwrap(), None, "{lost}");
        assert_eq!(catalog.complaints().await.unwrap(), [""; 0], "{lost}");
        assert_eq!(
            catalog.damaged_partitions(person).await.unwrap(),
            [""; 0],
            "{lost}"
        );
        assert_eq!(
            catalog.damaged_documents(person).await.unwrap(),
            [""; 0],
            "{lost}"
        );
        assert_eq!(
            catalog.damaged_registers(person).await.unwrap(),
            [""; 0],
            "{lost}"
        );
        assert_eq!(catalog.give_up_lost(person).await.unwrap(), [""; 0], "{lost}");
    }
}

#[tokio::test]
async fn a_partition_whose_row_is_lost_is_what_its_pieces_are() {
    let bench = Bench::sqlite().await;
    let person = counted(&bench).await;
    let (before, state) = (
        bench.stamp(person).await,
        bench.catalog.person_state(person).await,
    );
    lose(&bench, "partitions").await;
    assert_eq!(bench.catalog.give_up_lost(person).await.unwrap().len(), 2);
    let after = bench.stamp(person).await;
    assert_eq!((after.digest, after.version), (before.digest, 1));
    assert_ne!(bench.catalog.person_state(person).await.unwrap(), state.unwrap());
}

#[tokio::test]
async fn people_whose_rows_are_lost_come_back_without_their_names_and_are_counted() {
    let bench = Bench::sqlite().await;
    let catalog = &bench.catalog;
    let (one, other) = (counted(&bench).await, person());
    catalog.ensure_person(other, Some("other")).await.unwrap();
    assert_eq!(catalog.give_up_lost_people().await.unwrap(), [""; 0]);
    catalog.database.allow_loose_ends().await.unwrap();
    lose(&bench, "people").await;
    assert!(catalog.damaged_roster().await.unwrap().is_some());
    let told = catalog.give_up_lost_people().await.unwrap();
    assert_eq!(told.len(), 2, "{told:?}");
    for person in [one, other] {
        let told_of = told.iter().any(|told| told.contains(&person.to_string()));
        assert!(told_of, "{told:?}");
        assert_eq!(catalog.person(person).await.unwrap().unwrap().name, None);
    }
    assert_eq!(catalog.damaged_roster().await.unwrap(), None);
    assert_eq!(catalog.lost_of(one).await.unwrap(), None);

    lose(&bench, "meta WHERE name = 'people'").await;
    let told = catalog.give_up_lost_people().await.unwrap();
    assert_eq!(told, ["given up: the number of people"]);
    assert_eq!(catalog.damaged_roster().await.unwrap(), None);
    // Of somebody else nothing is left.
    let of_other = format!("WHERE person = x'{}'", other.0.simple());
    for table in ["manifests", "ledgers", "people"] {
        lose(&bench, &format!("{table} {of_other}")).await;
    }
    let told = catalog.give_up_lost_people().await.unwrap();
    assert_eq!(told, ["given up: people: there are 1, not 2"]);
    assert!(catalog.ensure_person(person(), None).await.unwrap());
    assert_eq!(catalog.damaged_roster().await.unwrap(), None);
}

#[tokio::test]
async fn nothing_is_given_up_where_a_row_differs_from_what_was_written() {
    let bench = Bench::sqlite().await;
    let person = counted(&bench).await;
    lose(&bench, "sources").await;
    let mut session = bench.catalog.database.write().await.unwrap();
    let changing = session.execute("UPDATE links SET checksum = checksum + 1".to_owned(), Vec::new());
    assert!(changing.await.unwrap() > 0);
    session.commit().await.unwrap();
    for _ in 0..2 {
        let given_up = bench.catalog.give_up_lost(person).await;
        assert!(
            matches!(given_up, Err(CatalogError::Corrupt { .. })),
            "{given_up:?}"
        );
    }
}

#[tokio::test]
async fn an_estate_that_has_lost_a_row_that_is_counted_does_not_come_to_its_end() {
    for lost in COUNTED {
        let bench = Bench::sqlite().await;
        let person = counted(&bench).await;
        read_to_the_end(&bench, person).await.unwrap();
        lose(&bench, lost).await;
        let read = read_to_the_end(&bench, person).await;
        assert!(
            matches!(read, Err(CatalogError::Corrupt { .. })),
            "{lost}: {read:?}"
        );
    }
}
