//! `/user/v1alpha1/export`, `almanac export` and `almanac import`: everything that a person has, taken away
//! and brought back.
//! brought back.

mod damaged;
mod everything;
mod fetching;
mod forged;
mod interrupted;
mod removed;
mod returning;
mod saving;

use std::path::{Path, PathBuf};

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Almanac, Person, Reply, until};

pub(crate) const EXPORT: &str = "/user/v1alpha1/export";

/// Orders an archive; its id.
pub(crate) async fn order(person: &Person) -> String {
    let reply = person.call(Method::POST, EXPORT).await.must_be(202);
    let export = reply.json();
    let id = export["id"].as_str().expect("an id").to_owned();
    assert_eq!(reply.header("location"), Some(at(&id).as_str()));
    id
}

pub(crate) fn at(id: &str) -> String {
    format!("{EXPORT}/{id}")
}

pub(crate) async fn status(person: &Person, id: &str) -> Value {
    person.get(&at(id)).await.must_be(200).json()
}

/// Waits until the export is done; what is said of it then.
pub(crate) async fn ready(person: &Person, id: &str) -> Value {
    until(async || {
        let export = status(person, id).await;
        if export["state"] == "ready" {
            return Ok(export);
        }
        assert!(
            export["state"] == "waiting" || export["state"] == "running",
            "{export}"
        );
        Err(format!("it is not ready: {export}"))
    })
    .await
}

pub(crate) async fn fetch(person: &Person, id: &str) -> Reply {
    person.get(&format!("{}/content", at(id))).await.must_be(200)
}

/// An archive of everything of the person, as a file in `folder`.
pub(crate) async fn archive(person: &Person, folder: &Path) -> PathBuf {
    let id = order(person).await;
    ready(person, &id).await;
    let path = folder.join(format!("{id}.zip"));
    std::fs::write(&path, fetch(person, &id).await.body).expect("the archive is kept");
    path
}

/// What `almanac import` says, and its status.
pub(crate) fn import(server: &Almanac, archive: &Path, user: Option<&Person>) -> (String, Option<i32>) {
    let user = user.map(|user| user.id.to_string());
    let mut arguments = vec!["import", archive.to_str().expect("a path")];
    if let Some(user) = &user {
        arguments.extend(["--user", user]);
    }
    let output = server.run(&arguments);
    let text = [output.stdout, output.stderr].concat();
    (String::from_utf8_lossy(&text).into_owned(), output.status.code())
}

/// What `almanac import` says, which must succeed.
#[track_caller]
pub(crate) fn imported(server: &Almanac, archive: &Path, user: Option<&Person>) -> String {
    let (text, status) = import(server, archive, user);
    assert_eq!(status, Some(0), "{text}");
    text
}

/// The objects of exports in a server's directory.
pub(crate) fn parts(server: &Almanac) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![server.data_dir().join("objects/exports")];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(folder) else {
            continue;
        };
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(path);
            }
        }
    }
    found
}

/// A few records of one type.
pub(crate) async fn some_records(person: &Person) {
    let records: Vec<Value> = (0..50)
        .map(|n| crate::harness::heart_rate(crate::harness::id(n), &crate::harness::instant(n * 60), 60 + n))
        .collect();
    person.records("HeartRate", &records).await;
}

pub(crate) fn count(export: &Value, name: &str) -> u64 {
    export[name]
        .as_u64()
        .unwrap_or_else(|| panic!("no {name}: {export}"))
}

#[tokio::test]
async fn an_order_is_made_told_of_and_listed() {
    let person = crate::harness::person();
    assert_eq!(person.get(EXPORT).await.must_be(200).json(), json!([]));
    some_records(&person).await;
    let id = order(&person).await;
    let export = ready(&person, &id).await;
    assert_eq!(count(&export, "done"), count(&export, "total"));
    assert!(
        count(&export, "total") > 10 && count(&export, "bytes") > 1000,
        "{export}"
    );
    assert_eq!(export["error"], Value::Null);
    let url = export["url"].as_str().expect("a url");
    assert!(url.ends_with(&format!("{}/content", at(&id))), "{url}");
    for name in ["created_at", "updated_at", "finished_at", "expires_at"] {
        assert!(export[name].is_string(), "{name} of {export}");
    }
    assert_eq!(person.get(EXPORT).await.must_be(200).json(), json!([export]));
    person.call(Method::DELETE, &at(&id)).await.must_be(204);
    person.call(Method::DELETE, &at(&id)).await.problem(404);
    person.get(&at(&id)).await.problem(404);
    person.get(&format!("{}/content", at(&id))).await.problem(404);
}

#[tokio::test]
async fn an_export_is_its_owners_alone() {
    let (owner, stranger) = (crate::harness::person(), crate::harness::person());
    some_records(&owner).await;
    crate::sharing::share(&owner, &crate::sharing::share_of(&["HeartRate"], &stranger)).await;
    let id = order(&owner).await;
    ready(&owner, &id).await;
    for path in [at(&id), format!("{}/content", at(&id))] {
        let foreign = stranger
            .get(&path)
            .with("svc_userid", &owner.id.to_string())
            .await;
        let unknown = stranger
            .get(&path.replace(&id, &uuid::Uuid::now_v7().to_string()))
            .await;
        assert_eq!(foreign.status, 404, "{foreign}");
        let without_ids = |reply: &Reply| {
            let body = reply.json();
            (
                body["type"].clone(),
                body["title"].clone(),
                body["status"].clone(),
            )
        };
        assert_eq!(without_ids(&foreign), without_ids(&unknown));
        owner.showing("nonsense").get(&path).await.problem(401);
    }
    stranger.call(Method::DELETE, &at(&id)).await.problem(404);
    owner.get(&at("no-id")).await.must_be(422);
    assert_eq!(stranger.get(EXPORT).await.must_be(200).json(), json!([]));
    assert_eq!(status(&owner, &id).await["state"], "ready");
}
