//! An archive on its way to its owner, how many there may be, and how long.

use reqwest::Method;
use sha2::{Digest as _, Sha256};

use super::{EXPORT, at, count, fetch, order, parts, ready, some_records, status};
use crate::harness::{Backends, Setup, person};

#[tokio::test]
async fn an_archive_is_kept_and_not_shown_and_goes_on_where_it_broke_off() {
    for backends in Backends::available() {
        let server = Setup::default().on(backends).start();
        let person = server.person();
        some_records(&person).await;
        let id = order(&person).await;
        let export = ready(&person, &id).await;
        let whole = fetch(&person, &id).await;
        let head = |name: &str| whole.header(name).unwrap_or_default().to_owned();
        assert_eq!(head("content-type"), "application/zip");
        assert!(head("content-disposition").starts_with("attachment;"), "{whole}");
        assert_eq!(
            (head("accept-ranges"), head("content-encoding")),
            ("bytes".to_owned(), String::new())
        );
        assert_eq!(whole.body.len() as u64, count(&export, "bytes"));
        let mut digest = String::new();
        for byte in Sha256::digest(&whole.body) {
            digest = format!("{digest}{byte:02x}");
        }
        assert_eq!(export["sha256"], digest.as_str());
        let tag = head("etag");
        assert_eq!(tag, format!("\"{digest}\""));

        let path = format!("{}/content", at(&id));
        let half = whole.body.len() / 2;
        let first = person
            .get(&path)
            .header("range", &format!("bytes=0-{}", half - 1));
        let first = first.await.must_be(206);
        let rest = person.get(&path).header("range", &format!("bytes={half}-"));
        let rest = rest.header("if-range", &tag).await.must_be(206);
        assert!([first.body.as_ref(), rest.body.as_ref()].concat() == whole.body);
        let other = person
            .get(&path)
            .header("range", "bytes=5-")
            .header("if-range", "\"other\"");
        assert!(other.await.must_be(200).body == whole.body);
        person.get(&path).header("if-none-match", &tag).await.must_be(304);
        let beyond = format!("bytes={}-", whole.body.len());
        person.get(&path).header("range", &beyond).await.problem(416);
    }
}

#[tokio::test]
async fn what_is_being_made_is_no_archive_yet_and_there_is_one_at_a_time() {
    // Nobody works, so nothing becomes ready.
    let server = Setup::default().no_upkeep().start();
    let person = server.person();
    let id = order(&person).await;
    assert_eq!(status(&person, &id).await["state"], "waiting");
    person.get(&format!("{}/content", at(&id))).await.problem(409);
    let busy = person.call(Method::POST, EXPORT).await;
    assert!(busy.header("retry-after").is_some(), "{busy}");
    busy.problem(429);
    order(&server.person()).await;
    person.call(Method::DELETE, &at(&id)).await.must_be(204);
    order(&person).await;
}

#[tokio::test]
async fn there_is_a_limit_to_exports_that_are_kept() {
    let server = Setup::default().with("ALMANAC_LIMIT_EXPORTS", "2").start();
    let person = server.person();
    let mut ids = Vec::new();
    for _ in 0..2 {
        let id = order(&person).await;
        ready(&person, &id).await;
        ids.push(id);
    }
    let refused = person.call(Method::POST, EXPORT).await;
    assert_eq!(refused.faults(), ["body"]);
    assert!(refused.text().contains("ALMANAC_LIMIT_EXPORTS"), "{refused}");
    let info = person.get("/user/v1alpha1/info").await.must_be(200).json();
    assert_eq!(
        info["limits"]["exports"],
        serde_json::json!({"limit": 2, "used": 2})
    );
    person.call(Method::DELETE, &at(&ids[0])).await.must_be(204);
    order(&person).await;
}

#[tokio::test]
async fn an_archive_expires_and_nothing_of_it_is_left() {
    let server = Setup::default().with("ALMANAC_EXPORT_LIFETIME", "1s").start();
    let person = server.person();
    some_records(&person).await;
    let id = order(&person).await;
    server
        .until("it does not expire", async || {
            person.get(&at(&id)).await.status != 200
        })
        .await;
    person.get(&format!("{}/content", at(&id))).await.problem(404);
    server
        .until("its objects stay", async || parts(&server).is_empty())
        .await;
    assert!(server.run(&["check"]).status.success());
}

#[tokio::test]
async fn a_deleted_export_leaves_no_object() {
    let server = Setup::default().start();
    let person = server.person();
    some_records(&person).await;
    let id = order(&person).await;
    ready(&person, &id).await;
    assert_eq!(parts(&server).len(), 1);
    assert!(server.run(&["check"]).status.success());
    person.call(Method::DELETE, &at(&id)).await.must_be(204);
    assert!(parts(&server).is_empty());
}

#[tokio::test]
async fn a_backup_has_the_archives_too() {
    let server = Setup::default().start();
    let person = server.person();
    some_records(&person).await;
    let id = order(&person).await;
    ready(&person, &id).await;
    let whole = fetch(&person, &id).await;
    let copy = tempfile::tempdir().unwrap();
    let target = copy.path().join("copy");
    assert!(server.run(&["backup", target.to_str().unwrap()]).status.success());
    let second = Setup::default().in_dir(&target).start();
    let there = second.person_called(person.id);
    assert!(fetch(&there, &id).await.body == whole.body);
    assert!(second.run(&["check"]).status.success());
}

#[tokio::test]
async fn a_parameter_that_is_not_known_is_named() {
    let reply = person().get(EXPORT).with("colour", "red").await.must_be(200);
    assert_eq!(reply.header("x-ignored-parameters"), Some("colour"));
}
