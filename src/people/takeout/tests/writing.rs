//! How the content of an archive is written, whatever happens meanwhile.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use serde_json::json;
use uuid::Uuid;

use super::orders::Bench;
use crate::catalog::documents::{Change, Changed, Document, DocumentKind};
use crate::catalog::test_databases::file_in;
use crate::people::files::{AnnouncedFile, File, FileSettings, Files, Received, SentBytes};
use crate::people::limits::PersonLimits;
use crate::people::takeout::ExportError;
use crate::people::takeout::archive::Archive;
use crate::people::takeout::content;
use crate::people::takeout::format::{
    ACCESS_LOG, DATA_TYPES, FILES, KeptDocument, MEMBERSHIPS, SHARES, SOURCES, content_member,
};
use crate::people::takeout::outlet::{LocalOutlet, Outlet};
use crate::people::takeout::zip::LOCAL_HEADER;
use crate::store::StoreError;

/// The version of ZIP in which lengths have 64 bits.
const WIDE_VERSION: u16 = 45;

/// The files of everybody on a bench.
fn files(bench: &Bench) -> Files {
    let settings = FileSettings {
        limits: PersonLimits::GENEROUS,
        upload_lifetime: Duration::from_hours(1),
        scanned: false,
    };
    let stores = &bench.stores;
    let (clock, ids) = (stores.clock.clone(), stores.ids.clone());
    Files::new(stores.catalog.clone(), stores.contents(), clock, ids, settings)
}

/// A file that consists of its name.
async fn put(bench: &Bench, name: &'static str) -> File {
    let announced = AnnouncedFile {
        path: "/".to_owned(),
        name: name.to_owned(),
        content_type: "text/plain".to_owned(),
        size: name.len() as u64,
        source_id: None,
        source_name: None,
        must_be_first: false,
    };
    let files = files(bench);
    let id = files.create(bench.person, announced).await.unwrap().file.id;
    let bytes = futures::stream::iter([Ok::<_, ()>(Bytes::from_static(name.as_bytes()))]);
    match files.receive(id, SentBytes::All, bytes).await.unwrap() {
        Received::Whole(file) => *file,
        Received::Partly(bytes) => panic!("{bytes} bytes came"),
    }
}

/// Deletes a file and lets so much time pass that it is gone for good.
async fn remove_for_good(bench: &Bench, id: Uuid) {
    let files = files(bench);
    files.delete(bench.person, id, |_| true).await.unwrap();
    let document = bench.stores.catalog.document(DocumentKind::File, id).await;
    let deleted = document.unwrap().unwrap();
    let outcome = files.remove_for_good(bench.person, &[deleted]).await.unwrap();
    assert_eq!(outcome.removed, 1);
}

#[tokio::test]
async fn what_is_removed_for_good_meanwhile_is_left_out_and_is_no_damage() {
    let bench = Bench::new().await;
    bench.enrol().await;
    let [kept, early, late] = ["kept", "early", "late"].map(|name| put(&bench, name));
    let (kept, early, late) = (kept.await, early.await, late.await);
    let path = bench.directory.path().join("archive.zip");
    let mut outlet = LocalOutlet::begin(&path, &|_, _| {}).await.unwrap();
    let moment = bench.stores.clock.now();
    let written_to = Outlet::Local(&mut outlet);
    let mut archive = content::Archive::begun(&bench.exports, bench.person, written_to, moment);
    let listed = archive.list_of_files().await.unwrap();
    assert_eq!(listed.len(), 3);
    // One goes before its turn, the other one while it is read.
    remove_for_good(&bench, early.id).await;
    let found = bench.exports.contents().get(late.content).await.unwrap();
    remove_for_good(&bench, late.id).await;
    assert!(!archive.bytes(&found.unwrap()).await.unwrap());
    for content in listed {
        archive.content(content).await.unwrap();
    }
    archive.end(moment.to_rfc3339()).await.unwrap();
    outlet.finish().await.unwrap();

    let read = Archive::open(&path).unwrap();
    let removed: BTreeSet<Uuid> = read.manifest.removed.iter().copied().collect();
    assert_eq!(removed, BTreeSet::from([early.content, late.content]));
    assert_eq!(
        (read.manifest.counts.files, read.manifest.counts.contents),
        (3, 1)
    );
    for gone in [early, late] {
        let told = format!("the bytes of file {}, which was removed for good", gone.id);
        let left_out = &read.manifest.left_out;
        assert!(
            left_out.iter().any(|what| what.starts_with(&told)),
            "{left_out:?}"
        );
        assert!(read.region(&content_member(gone.content)).unwrap().is_none());
    }
    let region = read.region(&content_member(kept.content)).unwrap();
    assert_eq!(region.unwrap().bytes(0, 10).unwrap(), "kept");
}

#[tokio::test]
async fn the_bytes_of_a_file_that_is_still_there_are_lost() {
    let bench = Bench::new().await;
    bench.enrol().await;
    let file = put(&bench, "lost").await;
    let catalogue = rusqlite::Connection::open(file_in(bench.directory.path())).unwrap();
    let sql = "DELETE FROM documents WHERE document = ?1";
    assert_eq!(catalogue.execute(sql, [file.content.as_bytes()]).unwrap(), 1);
    let path = bench.directory.path().join("archive.zip");
    let saved = bench.exports.save(bench.person, &path, &|_, _| {}).await;
    assert!(
        matches!(saved, Err(ExportError::Store(StoreError::Corrupt { .. }))),
        "{saved:?}"
    );

    let given_up = bench.stores.catalog.give_up_lost(bench.person).await.unwrap();
    assert!(!given_up.is_empty());
    let path = bench.directory.path().join("without.zip");
    bench.exports.save(bench.person, &path, &|_, _| {}).await.unwrap();
    let archive = Archive::open(&path).unwrap();
    let told = format!("the bytes of file {}, which were lost and given up", file.id);
    assert_eq!(archive.manifest.removed, [file.content]);
    assert_eq!(archive.manifest.counts.files, 1);
    let left_out = &archive.manifest.left_out;
    assert!(left_out.contains(&told), "{left_out:?}");
}

#[tokio::test]
async fn every_list_has_room_for_more_than_four_gigabytes() {
    let bench = Bench::new().await;
    bench.enrol().await;
    let path = bench.directory.path().join("archive.zip");
    bench.exports.save(bench.person, &path, &|_, _| {}).await.unwrap();
    let archive = std::fs::read(&path).unwrap();
    for name in [FILES, ACCESS_LOG, DATA_TYPES, SHARES, SOURCES] {
        let mut places = archive.windows(name.len());
        let place = places.position(|bytes| bytes == name.as_bytes()).unwrap();
        let head = &archive[place - 30..];
        assert_eq!(head[..4], LOCAL_HEADER.to_le_bytes(), "{name}");
        assert_eq!(head[4..6], WIDE_VERSION.to_le_bytes(), "{name}");
    }
}

#[tokio::test]
async fn what_a_groups_owner_noted_about_a_member_is_not_in_the_members_archive() {
    let bench = Bench::new().await;
    bench.enrol().await;
    let (group, participant) = (Uuid::now_v7(), Uuid::now_v7());
    let joined_at = bench.stores.clock.now();
    let body = json!({"group": group, "participant": participant, "metadata": {"note": "suspected"}});
    let membership = Document {
        kind: DocumentKind::Membership,
        id: Uuid::now_v7(),
        person: bench.person,
        name: Some(group.to_string()),
        body: body.to_string(),
        version: 2,
        created_at: joined_at,
        updated_at: joined_at.after(Duration::from_mins(1)),
        deleted_at: None,
    };
    let insert = Change::Insert {
        document: membership,
        links: Vec::new(),
        limit: 1,
    };
    let changed = bench.stores.catalog.change_documents(vec![insert]).await;
    assert_eq!(changed.unwrap(), Changed::Done);
    let path = bench.directory.path().join("archive.zip");
    bench.exports.save(bench.person, &path, &|_, _| {}).await.unwrap();

    let archive = Archive::open(&path).unwrap();
    let kept: Result<Vec<KeptDocument>, _> = archive.list(MEMBERSHIPS).unwrap().collect();
    let kept = kept.unwrap().remove(0);
    let body: serde_json::Value = serde_json::from_str(kept.body.get()).unwrap();
    assert_eq!(body, json!({"group": group, "participant": participant}));
    assert_eq!((kept.version, &kept.updated_at), (1, &kept.created_at));
}
