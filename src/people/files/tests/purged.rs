//! What was deleted is gone for good when its time is over, and not before.

use sqlx::Connection as _;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::catalog::documents::{Change, Changed, Document, DocumentKind};
use crate::catalog::test_databases::{address_in, files_with};
use crate::model::meters::Meters;
use crate::people::purging::Purging;
use crate::upkeep::lease::Leases;
use crate::upkeep::manifest::write_manifest;
use crate::upkeep::manifest_names::numbers;
use crate::upkeep::purge::forget_older_manifests;

async fn delete(bench: &Bench, id: Uuid) {
    bench.files.delete(bench.person, id, |_| true).await.unwrap();
}

async fn document(bench: &Bench, id: Uuid) -> Document {
    let found = bench.catalog.document(DocumentKind::File, id).await.unwrap();
    found.unwrap()
}

fn annotation(bench: &Bench, deleted_at: Option<Instant>) -> Document {
    let now = bench.clock.now();
    Document {
        kind: DocumentKind::Annotation,
        id: Uuid::now_v7(),
        person: bench.person,
        name: None,
        body: "{}".to_owned(),
        version: 1,
        created_at: now,
        updated_at: now,
        deleted_at,
    }
}

async fn insert(bench: &Bench, document: Document) {
    let insert = Change::Insert {
        document,
        links: Vec::new(),
        limit: 10,
    };
    let changed = bench.catalog.change_documents(vec![insert]).await.unwrap();
    assert_eq!(changed, Changed::Done);
}

/// Whether a version is gone for good.
async fn is_purged(bench: &Bench, version: &Document) -> bool {
    let purged = bench
        .files
        .remove_for_good(bench.person, std::slice::from_ref(version));
    purged.await.unwrap().removed == 1
}

#[tokio::test]
async fn a_version_that_is_purged_takes_its_bytes_along_unless_another_one_has_them() {
    for bench in Bench::all().await {
        let first = bench.put("a", b"bytes").await;
        delete(&bench, first).await;
        let restored = bench.files.restore(bench.person, first).await.unwrap().id;
        let kept = bench.put("b", b"others").await;
        assert!(
            !is_purged(&bench, &document(&bench, kept).await).await,
            "it was not deleted"
        );
        assert!(is_purged(&bench, &document(&bench, first).await).await);
        assert_eq!(bench.bytes(restored).await.unwrap(), b"bytes");
        assert_eq!((bench.usage().await, bench.objects().await), (11, 2));
        let content = bench.files.content(&bench.get(restored).await).await.unwrap();
        delete(&bench, restored).await;
        assert!(is_purged(&bench, &document(&bench, restored).await).await);
        assert_eq!((bench.usage().await, bench.objects().await), (6, 1));
        let late = bench.files.contents().examine(&content).await;
        assert!(matches!(late, Err(StoreError::Missing { .. })), "{late:?}");
        assert_eq!(bench.bytes(kept).await.unwrap(), b"others");
    }
}

#[tokio::test]
async fn what_is_restored_at_the_last_moment_is_not_purged() {
    for bench in Bench::all().await {
        let id = bench.put("a", b"bytes").await;
        delete(&bench, id).await;
        let seen = document(&bench, id).await;
        let restored = bench.files.restore(bench.person, id).await.unwrap().id;
        assert!(
            !is_purged(&bench, &seen).await,
            "it has changed since it was seen"
        );
        assert!(is_purged(&bench, &document(&bench, id).await).await);
        assert_eq!(bench.bytes(restored).await.unwrap(), b"bytes");
    }
}

#[tokio::test]
async fn versions_that_share_their_bytes_are_purged_together_in_one_change() {
    for bench in Bench::all().await {
        let kept = bench.put("kept", b"others").await;
        let mut deleted = Vec::new();
        for name in ["a", "b", "c"] {
            let first = bench.put(name, b"bytes").await;
            delete(&bench, first).await;
            let restored = bench.files.restore(bench.person, first).await.unwrap().id;
            deleted.push(first);
            // Of the last one a version with the bytes stays.
            if name != "c" {
                delete(&bench, restored).await;
                deleted.push(restored);
            }
        }
        let mut documents = Vec::new();
        for id in deleted {
            documents.push(document(&bench, id).await);
        }
        let counted = async || {
            let state = bench.catalog.person_state(bench.person).await.unwrap();
            state.unwrap().changes()
        };
        let before = counted().await;
        let purged = bench
            .files
            .remove_for_good(bench.person, &documents)
            .await
            .unwrap();
        assert_eq!((purged.removed, purged.kept.len()), (5, 0));
        assert_eq!(counted().await - before, 1);
        assert_eq!((bench.usage().await, bench.objects().await), (11, 2));
        assert_eq!(bench.bytes(kept).await.unwrap(), b"others");
    }
}

#[tokio::test]
async fn a_version_whose_content_or_its_links_are_damaged_stays_and_keeps_no_other() {
    for damage in [
        "UPDATE documents SET checksum = checksum + 1 WHERE document = $1 AND person = $2",
        "INSERT INTO links (kind, target, document, person, checksum) VALUES ('about', $2, $1, $2, 0)",
    ] {
        let bench = Bench::sqlite().await;
        let mut documents = Vec::new();
        for name in ["a", "b", "c"] {
            let id = bench.put(name, b"bytes").await;
            delete(&bench, id).await;
            documents.push(document(&bench, id).await);
        }
        let damaged = bench.get(documents[1].id).await;
        let address = address_in(bench.directory.path());
        let mut connection = sqlx::SqliteConnection::connect(&address).await.unwrap();
        let changed = sqlx::query(damage)
            .bind(damaged.content.as_bytes().to_vec())
            .bind(bench.person.0.as_bytes().to_vec())
            .execute(&mut connection)
            .await
            .unwrap();
        assert_eq!(changed.rows_affected(), 1);
        connection.close().await.unwrap();
        let purged = bench
            .files
            .remove_for_good(bench.person, &documents)
            .await
            .unwrap();
        assert_eq!((purged.removed, purged.kept.len()), (2, 1), "{damage}");
        assert_eq!(bench.get(damaged.id).await.state, FileState::Deleted);
        assert_eq!(bench.objects().await, 1);
    }
}

fn purging(bench: &Bench, after: Duration) -> Purging {
    Purging {
        catalog: bench.catalog.clone(),
        files: bench.files.clone(),
        leases: Leases::new(bench.catalog.clone(), "one".to_owned(), Meters::default().upkeep),
        after,
        interval: Duration::from_secs(1),
    }
}

#[tokio::test]
async fn damaged_rows_of_what_was_deleted_keep_nothing_else() {
    let bench = Bench::sqlite().await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        let document = Document {
            person: PersonId(Uuid::now_v7()),
            ..annotation(&bench, Some(bench.clock.now()))
        };
        ids.push(document.id);
        insert(&bench, document).await;
        bench.pass(Duration::from_secs(1));
    }
    let address = address_in(bench.directory.path());
    let mut connection = sqlx::SqliteConnection::connect(&address).await.unwrap();
    let sql = "UPDATE documents SET checksum = checksum + 1 WHERE document = $1";
    let sql = sqlx::query(sql).bind(ids[0].as_bytes().to_vec());
    assert_eq!(sql.execute(&mut connection).await.unwrap().rows_affected(), 1);
    connection.close().await.unwrap();
    let purging = purging(&bench, Duration::from_secs(1));
    bench.pass(Duration::from_secs(1));
    assert_eq!(purging.purge().await.unwrap(), 2);
    assert_eq!(purging.purge().await.unwrap(), 0);
}

#[tokio::test]
async fn only_what_was_deleted_long_ago_is_purged() {
    let bench = Bench::sqlite().await;
    let after = Duration::from_hours(30 * 24);
    let purging = purging(&bench, after);
    let gone = annotation(&bench, Some(bench.clock.now()));
    let stays = annotation(&bench, None);
    for document in [&gone, &stays] {
        insert(&bench, document.clone()).await;
    }
    let (old, new) = (bench.put("a", b"old").await, bench.put("a", b"new").await);
    let deleted = bench.put("b", b"deleted").await;
    delete(&bench, deleted).await;
    bench.pass(after);
    assert_eq!(purging.purge().await.unwrap(), 0);
    bench.pass(Duration::from_secs(1));
    assert_eq!(purging.purge().await.unwrap(), 2);
    assert_eq!(purging.purge().await.unwrap(), 0);
    let annotations = bench
        .catalog
        .documents_of(bench.person, DocumentKind::Annotation)
        .await
        .unwrap();
    assert_eq!(annotations, [stays]);
    assert!(matches!(
        bench.files.get(bench.person, deleted).await,
        Err(FilesError::Unknown(_))
    ));
    // What newer versions took the place of was not deleted.
    assert_eq!(bench.get(old).await.state, FileState::Archived);
    assert_eq!(bench.bytes(new).await.unwrap(), b"new");
}

#[tokio::test]
async fn what_cannot_be_purged_counts_as_work_that_failed() {
    let bench = Bench::sqlite().await;
    let meters = Meters::default().upkeep;
    let purging = Purging {
        leases: Leases::new(bench.catalog.clone(), "one".to_owned(), meters.clone()),
        interval: Duration::ZERO,
        ..purging(&bench, Duration::ZERO)
    };
    bench.catalog.close().await;
    let stop = CancellationToken::new();
    let counted = async {
        while meters.failures.get() == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        stop.cancel();
    };
    let both = async { tokio::join!(purging.run(stop.clone()), counted) };
    tokio::time::timeout(Duration::from_mins(1), both).await.unwrap();
}

#[tokio::test]
async fn what_is_purged_is_not_in_the_files_of_the_database_either() {
    let bench = Bench::sqlite().await;
    let purging = purging(&bench, Duration::from_hours(1));
    let secrets = ["what nobody should read any more", "nor-this-name"];
    let deleted_at = Some(bench.clock.now());
    insert(
        &bench,
        Document {
            body: format!("{{\"note\":\"{}\"}}", secrets[0]),
            ..annotation(&bench, deleted_at)
        },
    )
    .await;
    let file = bench.put(secrets[1], b"bytes").await;
    delete(&bench, file).await;
    bench.pass(Duration::from_hours(1) + Duration::from_secs(1));
    for secret in secrets {
        assert!(!files_with(bench.directory.path(), secret).is_empty());
    }
    assert_eq!(purging.purge().await.unwrap(), 2);
    for secret in secrets {
        let found = files_with(bench.directory.path(), secret);
        assert!(found.is_empty(), "{secret}: {found:?}");
    }
}

#[tokio::test]
async fn manifests_that_have_what_was_purged_do_not_wait_for_their_time() {
    let bench = Bench::sqlite().await;
    let stores = bench.upkeep();
    let purging = purging(&bench, Duration::from_hours(1));
    let manifests = async || numbers(&bench.objects, bench.person).await.unwrap();
    let deleted_at = Some(bench.clock.now());
    insert(&bench, annotation(&bench, deleted_at)).await;
    assert!(write_manifest(&stores, bench.person).await.unwrap());
    let of_annotation = manifests().await;
    bench.pass(Duration::from_hours(1) + Duration::from_secs(1));
    assert_eq!(purging.purge().await.unwrap(), 1);
    let judge = |_, outcome| outcome;
    let set_aside = forget_older_manifests(&stores, None, |_| false, judge)
        .await
        .unwrap();
    assert!(set_aside.is_empty());
    let of_nothing = manifests().await;
    assert!(
        of_nothing.iter().all(|number| !of_annotation.contains(number)),
        "{of_nothing:?}"
    );

    let file = bench.put("a", b"bytes").await;
    delete(&bench, file).await;
    assert!(write_manifest(&stores, bench.person).await.unwrap());
    let of_file = manifests().await;
    bench.pass(Duration::from_hours(1) + Duration::from_secs(1));
    assert_eq!(purging.purge().await.unwrap(), 1);
    forget_older_manifests(&stores, None, |_| false, judge)
        .await
        .unwrap();
    let of_nothing = manifests().await;
    assert!(
        of_nothing.iter().all(|number| !of_file.contains(number)),
        "{of_nothing:?}"
    );
}
