//! Lists from memory are those that the catalogue would give.

use super::*;
use crate::catalog::documents::{Change, Changed, Document, DocumentKind};
use crate::catalog::test_databases::file_in;

async fn put_at(bench: &Bench, path: &str, name: &str) -> Uuid {
    let file = AnnouncedFile {
        path: path.to_owned(),
        ..announced(name, 3)
    };
    let id = bench.announce(file).await.unwrap();
    assert!(matches!(bench.upload(id, b"one").await, Ok(Received::Whole(_))));
    id
}

const ALWAYS: TimeRange = TimeRange::ALWAYS;

fn filters(middle: Instant) -> Vec<ListingFilter> {
    let mut filters = Vec::new();
    for path in [None, Some("/"), Some("/a"), Some("/a/b"), Some("/nothing")] {
        for name in [None, Some("one"), Some("none")] {
            for created_in in [ALWAYS, TimeRange::between(middle, Instant::MAX)] {
                for all in [false, true] {
                    filters.push(ListingFilter {
                        path: path.map(str::to_owned),
                        name: name.map(str::to_owned),
                        states: Vec::new(),
                        include_archived: all,
                        include_deleted: all,
                        created_in,
                    });
                }
            }
        }
    }
    filters
}

/// Asks for all kinds of lists, twice of the files that keep lists, once of those that keep none.
async fn compare(bench: &Bench, middle: Instant) {
    let (keeping, reading) = (&bench.files, bench.files.clone().keeping_lists(0));
    let too_small = bench.files.clone().keeping_lists(1000);
    let person = bench.person;
    for filter in filters(middle) {
        let read = reading.list(person, &filter, |_| true).await.unwrap();
        for files in [keeping, keeping, &too_small] {
            let listed = files.list(person, &filter, |_| true).await.unwrap();
            assert_eq!(listed, read, "{filter:?}");
        }
    }
    let ranges = [
        ALWAYS,
        TimeRange::between(Instant::MIN, middle),
        TimeRange::between(middle, Instant::MAX),
        TimeRange::between(Instant::MIN, Instant::MIN),
    ];
    for range in ranges {
        let read = reading.changes(person, range, |_| true).await.unwrap();
        for files in [keeping, keeping, &too_small] {
            let told = files.changes(person, range, |_| true).await.unwrap();
            assert_eq!(told, read, "{range:?}");
        }
    }
}

#[tokio::test]
async fn whatever_happens_to_files_lists_from_memory_are_right() {
    for bench in Bench::all().await {
        compare(&bench, bench.clock.now()).await;
        for path in ["/", "/a", "/a/b", "/a-b", "/a/b/c", "/ab", "/b"] {
            put_at(&bench, path, "one").await;
            bench.pass(Duration::from_secs(1));
        }
        let first = put_at(&bench, "/a", "two").await;
        bench.pass(Duration::from_mins(1));
        let middle = bench.clock.now();
        compare(&bench, middle).await;
        let second = put_at(&bench, "/a", "two").await;
        compare(&bench, middle).await;
        bench.pass(Duration::from_mins(1));
        for id in [first, second] {
            bench.files.delete(bench.person, id, |_| true).await.unwrap();
        }
        compare(&bench, middle).await;
        let restored = bench.files.restore(bench.person, first).await.unwrap();
        compare(&bench, middle).await;
        let deleted = bench.catalog.document(DocumentKind::File, first).await.unwrap();
        let outcome = bench
            .files
            .remove_for_good(bench.person, &[deleted.unwrap()])
            .await
            .unwrap();
        assert_eq!(outcome.removed, 1);
        compare(&bench, middle).await;
        let ids: Vec<Uuid> = bench
            .everything()
            .await
            .files
            .iter()
            .map(|file| file.id)
            .collect();
        assert!(ids.contains(&restored.id) && !ids.contains(&first));
    }
}

#[tokio::test]
async fn versions_that_are_deleted_at_one_moment_are_listed_as_deleted() {
    for bench in Bench::all().await {
        let ids = [
            bench.create("a", 3).await.unwrap(),
            bench.create("b", 3).await.unwrap(),
        ];
        assert_eq!(bench.everything().await.files.len(), 2);
        for id in ids {
            bench.files.delete(bench.person, id, |_| true).await.unwrap();
        }
        let listed = bench.everything().await.files;
        assert_eq!(listed.len(), 2);
        assert!(listed.iter().all(|file| file.state == FileState::Deleted));
    }
}

/// Makes the row of a version differ from what was written, so that nobody can read it any more.
fn damage(bench: &Bench, id: Uuid) {
    let catalogue = rusqlite::Connection::open(file_in(bench.directory.path())).unwrap();
    let sql = "UPDATE documents SET checksum = checksum + 1 WHERE document = ?1";
    assert_eq!(catalogue.execute(sql, [id.as_bytes()]).unwrap(), 1);
}

#[tokio::test]
async fn versions_are_not_read_again_until_one_of_them_changes() {
    let bench = Bench::sqlite().await;
    let id = bench.put("a", b"one").await;
    let listed = bench.everything().await;
    damage(&bench, id);
    assert_eq!(bench.everything().await, listed);
    let told = bench.files.changes(bench.person, ALWAYS, |_| true).await.unwrap();
    assert_eq!(told, listed.files);
    let tag = Document {
        kind: DocumentKind::Tag,
        id: Uuid::now_v7(),
        person: bench.person,
        name: None,
        body: "{}".to_owned(),
        version: 1,
        created_at: bench.clock.now(),
        updated_at: bench.clock.now(),
        deleted_at: None,
    };
    let tagged = Change::Insert {
        document: tag,
        links: Vec::new(),
        limit: 10,
    };
    let changed = bench.catalog.change_documents(vec![tagged]).await.unwrap();
    assert_eq!(changed, Changed::Done);
    assert_eq!(bench.everything().await, listed, "the tag is no file");
    bench.create("b", 3).await.unwrap();
    let all = ListingFilter {
        path: None,
        name: None,
        states: FileState::ALL.to_vec(),
        include_archived: false,
        include_deleted: false,
        created_in: ALWAYS,
    };
    let failed = bench.files.list(bench.person, &all, |_| true).await;
    assert!(matches!(failed, Err(FilesError::Store(_))), "{failed:?}");
}
