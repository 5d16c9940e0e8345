//! Archives without the bytes of files that were removed for good while they were made.

use reqwest::Method;
use serde_json::{Value, json};

use super::forged::Forged;
use super::{archive, import, imported, some_records};
use crate::files::{download, file_path, put};
use crate::harness::Setup;

#[tokio::test]
async fn what_was_removed_for_good_while_an_archive_was_made_is_not_brought_back() {
    let folder = tempfile::tempdir().unwrap();
    let server = Setup::default().start();
    let person = server.person();
    some_records(&person).await;
    let kept = put(&person, "/", "kept", b"kept").await;
    let gone = put(&person, "/", "gone", b"gone").await;
    person.call(Method::DELETE, &file_path(&gone)).await.must_be(204);
    let mut taken = Forged::of(&archive(&person, folder.path()).await);
    let files: Vec<Value> = serde_json::from_slice(taken.member("files.json")).unwrap();
    let listed = files.iter().find(|file| file["id"] == gone["id"]);
    let content = listed.unwrap()["body"]["content"].as_str().unwrap();
    let without = taken.without(&format!("files/{content}"));

    let elsewhere = Setup::default().start();
    let there = elsewhere.person_called(person.id);
    let path = folder.path().join("without.zip");
    without.clone().write(&path);
    let (text, status) = import(&elsewhere, &path, None);
    assert_eq!(status, Some(1), "{text}");
    assert!(text.contains("are missing"), "{text}");
    without
        .with_manifest(|manifest| manifest["removed"] = json!([content]))
        .write(&path);
    imported(&elsewhere, &path, None);
    there.get(&file_path(&gone)).await.problem(404);
    assert_eq!(download(&there, &kept).await.must_be(200).text(), "kept");
    assert_eq!(there.all_samples("HeartRate").await.len(), 50);
    assert!(elsewhere.run(&["check"]).status.success());
}
