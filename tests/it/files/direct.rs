//! Bytes that are sent to S3 itself.

use std::str::FromStr as _;
use std::time::Duration;

use futures::TryStreamExt as _;
use object_store::ObjectStore as _;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::path::Path;
use reqwest::Method;
use serde_json::Value;

use super::scanning::{HARM, Scanner, until_scanned};
use super::{FILES, announce, download, each, file_path, get, send, upload};
use crate::harness::{ALL_TIME, Almanac, Backends, Person, Setup, until};

fn on(backends: &Backends) -> Setup {
    let setup = Setup::default().on(backends.clone());
    setup.with("ALMANAC_DIRECT_UPLOADS", "true")
}

/// The objects that were put into the store and not taken in yet.
async fn incoming(backends: &Backends) -> Vec<String> {
    let url = backends.setting("ALMANAC_OBJECT_STORE");
    let (bucket, prefix) = url.strip_prefix("s3://").unwrap().split_once('/').unwrap();
    let mut builder = AmazonS3Builder::new().with_bucket_name(bucket);
    for (name, value) in backends.settings() {
        if let Ok(key) = AmazonS3ConfigKey::from_str(&name.to_ascii_lowercase()) {
            builder = builder.with_config(key, value);
        }
    }
    let store = builder.build().unwrap();
    let folder = Path::from(format!("{prefix}/incoming"));
    let listed: Vec<_> = store.list(Some(&folder)).try_collect().await.unwrap();
    listed
        .into_iter()
        .map(|object| object.location.to_string())
        .collect()
}

/// The state of a file, found out without looking at the file itself.
async fn state_from_afar(person: &Person, file: &Value) -> String {
    let changes = person.get(&format!("{FILES}/recent_changes"));
    let changes = changes
        .with("start_time", ALL_TIME.0)
        .with("end_time", ALL_TIME.1);
    let changes = changes.await.must_be(200).json();
    let (ids, states) = (each(&changes, "id"), each(&changes, "state"));
    let at = ids.iter().position(|id| *id == file["id"]).unwrap();
    states[at].clone()
}

async fn until_uploaded_from_afar(person: &Person, file: &Value) {
    until(async || match state_from_afar(person, file).await.as_str() {
        "uploaded" => Ok(()),
        state => Err(format!("nobody took it in: {state}")),
    })
    .await;
}

#[tokio::test]
async fn bytes_that_were_put_into_the_store_become_the_file() {
    let Some(backends) = Backends::networked() else {
        return;
    };
    let server = on(&backends).start();
    let person = server.person();
    let (file, url) = announce(&person, "/", "a", 5).await;
    assert!(url.starts_with(backends.setting("AWS_ENDPOINT_URL")), "{url}");
    assert_eq!(get(&person, &file).await["state"], "created");
    download(&person, &file).await.problem(409);
    upload(&url, "green").await.must_be(200);
    assert_eq!(get(&person, &file).await["state"], "uploaded");
    let bytes = download(&person, &file).await.must_be(200);
    assert_eq!(bytes.text(), "green");
    let sum = "\"ba4788b226aa8dc2e6dc74248bb9f618cfa8c959e0c26c147be48f6839a0b088\"";
    assert_eq!(bytes.header("etag"), Some(sum), "the checksum of what was sent");

    let (_, url) = announce(&person, "/", "a", 3).await;
    upload(&url, "tea").await.must_be(200);
    let listed = person.get(FILES).with("include_archived", "1");
    let listed = listed.await.must_be(200).json();
    assert_eq!(each(&listed, "state"), ["archived", "uploaded"]);

    let (large, url) = announce(&person, "/", "large", 20 << 20).await;
    upload(&url, vec![7; 20 << 20]).await.must_be(200);
    server
        .until("it is not taken in", async || {
            get(&person, &large).await["state"] == "uploaded"
        })
        .await;
    let part = person.get(&format!("{}/download", file_path(&large)));
    let part = part.header("range", "bytes=-2").await.must_be(206);
    assert_eq!(part.body[..], [7, 7]);
    server
        .until("what was taken in stays", async || {
            incoming(&backends).await.is_empty()
        })
        .await;
}

#[tokio::test]
async fn an_address_is_good_for_one_file_of_one_length() {
    let Some(backends) = Backends::networked() else {
        return;
    };
    let server = on(&backends).start();
    let person = server.person();
    let (file, url) = announce(&person, "/", "a", 3).await;
    let (other, other_url) = announce(&person, "/", "b", 3).await;
    for bytes in ["te", "teas", ""] {
        assert_eq!(upload(&url, bytes).await.status, 403, "{bytes:?}");
    }
    let path = |url: &str| url.split_once('?').map(|(path, _)| path.to_owned()).unwrap();
    let query = |url: &str| url.split_once('?').map(|(_, query)| query.to_owned()).unwrap();
    let later = url.replace("X-Amz-Expires=", "X-Amz-Expires=1");
    assert_ne!(later, url);
    for altered in [
        format!("{}?{}", path(&other_url), query(&url)),
        format!("{}/x?{}", path(&url), query(&url)),
        url.replace("content-length%3Bhost", "host"),
        format!("{url}0"),
        later,
        path(&url),
    ] {
        assert_eq!(upload(&altered, "tea").await.status, 403, "{altered}");
    }
    for method in [Method::GET, Method::DELETE, Method::POST] {
        let status = send(method.clone(), &url).await.status;
        assert!((400..500).contains(&status), "{method}: {status}");
    }
    assert_eq!(get(&person, &file).await["state"], "created");
    assert_eq!(get(&person, &other).await["state"], "created");
    upload(&url, "tea").await.must_be(200);
    assert_eq!(get(&person, &file).await["state"], "uploaded");
    assert_eq!(get(&person, &other).await["state"], "created");
}

#[tokio::test]
async fn an_address_that_is_used_again_changes_nothing() {
    let Some(backends) = Backends::networked() else {
        return;
    };
    let server = on(&backends).start();
    let person = server.person();
    let (file, url) = announce(&person, "/", "a", 3).await;
    upload(&url, "tea").await.must_be(200);
    let before = get(&person, &file).await;
    assert_eq!(before["state"], "uploaded");
    upload(&url, "ale").await.must_be(200);
    assert_eq!(incoming(&backends).await.len(), 1);
    assert_eq!(download(&person, &file).await.must_be(200).text(), "tea");
    server
        .until("it is not removed", async || incoming(&backends).await.is_empty())
        .await;
    assert_eq!(get(&person, &file).await, before);
    assert_eq!(download(&person, &file).await.must_be(200).text(), "tea");
}

#[tokio::test]
async fn an_address_ends_with_its_time_in_the_store_too() {
    let Some(backends) = Backends::networked() else {
        return;
    };
    let server = on(&backends).with("ALMANAC_UPLOAD_LIFETIME", "1s").start();
    let person = server.person();
    let (file, url) = announce(&person, "/", "a", 3).await;
    // The store counts whole seconds.
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(upload(&url, "tea").await.status, 403);
    assert_eq!(get(&person, &file).await["state"], "created");
}

#[tokio::test]
async fn what_came_is_taken_in_after_a_restart_and_on_another_node() {
    let Some(backends) = Backends::networked() else {
        return;
    };
    let server = on(&backends).start();
    let person = server.person();
    let (file, url) = announce(&person, "/", "a", 3).await;
    server.kill();
    upload(&url, "tea").await.must_be(200);
    server.launch();
    until_uploaded_from_afar(&person, &file).await;
    let (second, url) = announce(&person, "/", "b", 3).await;
    server.kill();
    upload(&url, "ale").await.must_be(200);
    let other: Almanac = on(&backends).start();
    let there = other.person_called(person.id);
    assert_eq!(get(&there, &second).await["state"], "uploaded");
    assert_eq!(download(&there, &second).await.must_be(200).text(), "ale");
    assert_eq!(download(&there, &file).await.must_be(200).text(), "tea");
}

#[tokio::test]
async fn what_came_is_looked_through_before_it_is_handed_out() {
    let Some(backends) = Backends::networked() else {
        return;
    };
    let (scanner, address) = Scanner::listen("127.0.0.1:0").await;
    drop(scanner);
    let server = on(&backends).with("ALMANAC_CLAMD", &address).start();
    let person = server.person();
    let (clean, url) = announce(&person, "/", "clean", 3).await;
    upload(&url, "tea").await.must_be(200);
    assert_eq!(get(&person, &clean).await["scan_state"], "pending");
    download(&person, &clean).await.problem(409);
    let (infected, url) = announce(&person, "/", "infected", HARM.len()).await;
    upload(&url, HARM).await.must_be(200);
    assert_eq!(get(&person, &infected).await["scan_state"], "pending");
    let (_scanner, _) = Scanner::listen(&address).await;
    assert_eq!(until_scanned(&person, &clean).await["scan_state"], "clean");
    assert_eq!(until_scanned(&person, &infected).await["scan_state"], "infected");
    download(&person, &clean).await.must_be(200);
    download(&person, &infected).await.problem(403);
}

#[tokio::test]
async fn deleting_what_never_came_takes_nothing_in() {
    let Some(backends) = Backends::networked() else {
        return;
    };
    let server = on(&backends).start();
    let person = server.person();
    let (file, url) = announce(&person, "/", "a", 3).await;
    person.call(Method::DELETE, &file_path(&file)).await.must_be(204);
    // The store does not know that.
    upload(&url, "tea").await.must_be(200);
    assert_eq!(get(&person, &file).await["state"], "deleted");
    download(&person, &file).await.problem(404);
}

#[tokio::test]
async fn what_is_nothing_or_too_large_for_one_request_comes_through_the_service() {
    let Some(backends) = Backends::networked() else {
        return;
    };
    let server = on(&backends).start();
    let person = server.person();
    let (file, url) = announce(&person, "/", "nothing", 0).await;
    assert!(url.starts_with(&server.url()), "{url}");
    upload(&url, "").await.must_be(200);
    assert_eq!(get(&person, &file).await["state"], "uploaded");
    let (_, url) = announce(&person, "/", "huge", (5 << 30) + 1).await;
    assert!(url.starts_with(&server.url()), "{url}");
    let (_, url) = announce(&person, "/", "large", 5 << 30).await;
    assert!(!url.starts_with(&server.url()), "{url}");
}

#[tokio::test]
async fn a_directory_is_reached_by_nobody_else() {
    let server = Setup::default().with("ALMANAC_DIRECT_UPLOADS", "true").start();
    let person = server.person();
    let (file, url) = announce(&person, "/", "a", 3).await;
    assert!(url.starts_with(&server.url()), "{url}");
    upload(&url, "tea").await.must_be(200);
    assert_eq!(download(&person, &file).await.must_be(200).text(), "tea");
    assert!(
        server.log().contains("ALMANAC_DIRECT_UPLOADS"),
        "{}",
        server.log()
    );
}
