//! What bad input gets.

use serde_json::{Value, json};

use super::{FILES, announce, announcement, download, each, file_path, put, upload};
use crate::harness::{Setup, person};

#[tokio::test]
async fn names_and_lengths_that_cannot_be_are_refused_with_their_place() {
    let person = person();
    let with = |member: &str, value: Value| {
        let mut body = announcement("/a", "b", 1);
        body[member] = value;
        body
    };
    let long = |length: usize| json!("x".repeat(length));
    let mut cases = vec![
        (with("content_length", json!(-1)), "body.content_length"),
        (with("content_length", json!("1")), "body.content_length"),
        (with("content_length", json!(1.5)), "body.content_length"),
        (with("content_type", json!(null)), "body.content_type"),
        (with("content_type", json!("text/plain\0")), "body.content_type"),
        (with("content_type", long(256)), "body.content_type"),
        (with("source_id", json!("a\0")), "body.source_id"),
        (
            json!({"path": "/", "name": "a", "content_type": "b"}),
            "body.content_length",
        ),
        (
            json!({"path": "/", "content_length": 1, "content_type": "b"}),
            "body.name",
        ),
        (json!([]), "body"),
    ];
    for name in ["", ".", "..", "a/b", "/", "a\0b", "\n", "\u{7f}", "\u{9f}"] {
        cases.push((with("name", json!(name)), "body.name"));
    }
    cases.push((with("name", long(256)), "body.name"));
    for path in [
        "", "a", "a/b", "//", "/a//b", "/.", "/..", "/a/../b", "/a/./b", "/a\0", "/\t", " /a",
    ] {
        cases.push((with("path", json!(path)), "body.path"));
    }
    cases.push((with("path", json!(format!("/{}", "x".repeat(256)))), "body.path"));
    cases.push((with("path", json!("/abc".repeat(257))), "body.path"));
    for (body, place) in cases {
        let reply = person.post(FILES, &body).await;
        assert_eq!(reply.faults(), [place], "{body}");
    }
    let several = json!({"path": "a", "name": "", "content_type": "b", "content_length": -1});
    let faults = person.post(FILES, &several).await.faults();
    assert_eq!(faults, ["body.path", "body.name", "body.content_length"]);
    let relative = person
        .post(FILES, &announcement("a", "b", 1))
        .await
        .must_be(422)
        .json();
    assert_eq!(relative["detail"][0]["msg"], "path must start with a slash");
    person.post(FILES, &json!(null)).body("{").await.must_be(422);
    person
        .post(FILES, &json!({}))
        .header("content-type", "text/plain")
        .await
        .problem(415);
    let huge = announcement("/", &"x".repeat(2 << 20), 1);
    assert!([413, 422].contains(&person.post(FILES, &huge).await.status));
    assert_eq!(
        person.get(FILES).await.must_be(200).json(),
        json!({"files": [], "folders": []})
    );
}

#[tokio::test]
async fn any_unicode_survives_in_its_composed_form() {
    let person = person();
    let cases = [
        (
            "/Zu\u{308}rich/\u{1f3d4}",
            "Cafe\u{301}.txt",
            "/Zürich/\u{1f3d4}",
            "Café.txt",
        ),
        ("/日本/", "مرحبا ‎.md", "/日本", "مرحبا ‎.md"),
        ("/ a ", " %2F%00?#&+\\", "/ a ", " %2F%00?#&+\\"),
    ];
    for (path, name, stored_path, stored_name) in cases {
        let file = put(&person, path, name, b"1").await;
        assert_eq!(
            (&file["path"], &file["name"]),
            (&json!(stored_path), &json!(stored_name))
        );
        let call = person.get(FILES).with("path", path).with("name", name);
        let found = call.await.must_be(200).json();
        assert_eq!(each(&found, "id"), [file["id"].as_str().unwrap()]);
        download(&person, &file).await.must_be(200);
        // The same name in another form is the same name.
        put(&person, stored_path, stored_name, b"2").await;
        assert_eq!(
            person.get(&file_path(&file)).await.must_be(200).json()["state"],
            "archived"
        );
    }
}

#[tokio::test]
async fn questions_that_mean_nothing_are_refused() {
    let person = person();
    let ask = |path: &str, name: &str, value: &str| person.get(&format!("{FILES}{path}")).with(name, value);
    for (name, value) in [
        ("path", "a"),
        ("path", "/a/../b"),
        ("name", "a/b"),
        ("state", "nosuch"),
        ("state", "created,nosuch"),
        ("include_archived", "maybe"),
        ("include_deleted", "2"),
        ("start_time", "yesterday"),
        ("end_time", "0"),
        ("svc_userid", "me"),
    ] {
        assert_eq!(
            ask("", name, value).await.faults(),
            [format!("query.{name}")],
            "{value}"
        );
    }
    let inverted = ask("", "start_time", "2024-02-01").with("end_time", "2024-01-01");
    assert_eq!(inverted.await.faults(), ["query.end_time"]);
    let changes = person.get(&format!("{FILES}/recent_changes")).await;
    assert_eq!(changes.faults(), ["query.start_time", "query.end_time"]);
    for id in [
        "x",
        "%00",
        "%2e%2e",
        "recent",
        "00000000-0000-0000-0000-00000000000g",
    ] {
        person.get(&format!("{FILES}/{id}")).await.problem(404);
        person.get(&format!("{FILES}/{id}/download")).await.problem(404);
        person
            .call(reqwest::Method::DELETE, &format!("{FILES}/{id}"))
            .await
            .problem(404);
    }
    let nobody = person.showing("x");
    nobody.get(FILES).await.problem(401);
    nobody.post(FILES, &json!({})).await.problem(401);
}

#[tokio::test]
async fn who_passes_a_limit_hears_which() {
    let server = Setup::default()
        .with("ALMANAC_LIMIT_FILES", "3")
        .with("ALMANAC_LIMIT_FILE_BYTES", "100")
        .with("ALMANAC_LIMIT_ALL_FILE_BYTES", "250")
        .start();
    let person = server.person();
    let refused = |length: usize| {
        let call = person.post(FILES, &announcement("/", "x", length));
        async move {
            call.await.must_be(422).json()["detail"][0]["msg"]
                .as_str()
                .unwrap()
                .to_owned()
        }
    };
    assert!(refused(101).await.contains("100 bytes"));
    let (_, url) = announce(&person, "/", "a", 100).await;
    announce(&person, "/", "a", 100).await;
    let full = refused(51).await;
    assert!(full.contains("250 bytes") && full.contains("200"), "{full}");
    announce(&person, "/", "b", 50).await;
    assert!(refused(0).await.contains("3 files"));
    upload(&url, vec![0; 100]).await.must_be(200);
    announce(&server.person(), "/", "a", 100).await;
}
