//! The bytes of a file, whole and in ranges.

use serde_json::json;

use super::{FILES, download, file_path, put, upload};
use crate::harness::{Almanac, Backends, Call, Person, Setup, person};

fn ask(person: &Person, file: &serde_json::Value) -> Call {
    person.get(&format!("{}/download", file_path(file)))
}

#[tokio::test]
async fn ranges_answer_the_bytes_they_name() {
    for backends in Backends::available() {
        let server = Setup::default().on(backends).start();
        let person = server.person();
        // More than one block of checksums.
        let bytes: Vec<u8> = (0..100_000_u32).map(|number| (number % 251) as u8).collect();
        let file = put(&person, "/", "a", &bytes).await;
        for (range, expected) in [
            ("bytes=0-0", 0..1),
            ("bytes=16383-16384", 16_383..16_385),
            ("bytes=20000-90000", 20_000..90_001),
            ("bytes=99999-", 99_999..100_000),
            ("bytes=-5", 99_995..100_000),
            ("bytes=50000-999999", 50_000..100_000),
        ] {
            let reply = ask(&person, &file).header("range", range).await.must_be(206);
            assert!(reply.body == bytes[expected.clone()], "{range}");
            let said = format!("bytes {}-{}/100000", expected.start, expected.end - 1);
            assert_eq!(reply.header("content-range"), Some(said.as_str()));
            assert_eq!(
                reply.header("content-length"),
                Some(expected.len().to_string().as_str())
            );
        }
        for range in ["bytes=100000-", "bytes=-0", "bytes=200000-300000"] {
            let reply = ask(&person, &file).header("range", range).await;
            assert_eq!(reply.header("content-range"), Some("bytes */100000"));
            reply.problem(416);
        }
        for range in ["bytes=5-2", "lines=1-2", "bytes=0-1,4-5", "nonsense"] {
            let reply = ask(&person, &file).header("range", range).await.must_be(200);
            assert!(reply.body == bytes, "{range}");
        }
    }
}

#[tokio::test]
async fn a_download_is_kept_and_not_shown() {
    let person = person();
    let body = json!({
        "path": "/", "name": "<Zoë> \"& co\".html", "content_type": "text/html; charset=utf-8",
        "content_length": 2000,
    });
    let answer = person.post(FILES, &body).await.must_be(200).json();
    upload(answer["url"].as_str().unwrap(), "x".repeat(2000))
        .await
        .must_be(200);
    let reply = ask(&person, &answer["file"])
        .header("accept-encoding", "gzip, zstd")
        .await
        .must_be(200);
    let head = |name: &str| reply.header(name).unwrap_or_default();
    assert_eq!(
        head("content-disposition"),
        "attachment; filename=\"<Zo_> _& co_.html\"; filename*=UTF-8''%3CZo%C3%AB%3E%20%22&%20co%22.html"
    );
    assert_eq!(head("content-type"), "text/html; charset=utf-8");
    assert_eq!(head("x-content-type-options"), "nosniff");
    assert_eq!((head("content-length"), head("content-encoding")), ("2000", ""));
    assert_eq!(head("accept-ranges"), "bytes");

    let body = json!({"path": "/", "name": "b", "content_type": "te<xt/ht\u{20ac}ml", "content_length": 0});
    let answer = person.post(FILES, &body).await.must_be(200).json();
    upload(answer["url"].as_str().unwrap(), "").await.must_be(200);
    let reply = download(&person, &answer["file"]).await.must_be(200);
    assert_eq!(reply.header("content-type"), Some("application/octet-stream"));
    assert_eq!(reply.header("content-length"), Some("0"));
}

#[tokio::test]
async fn what_is_known_is_not_sent_again() {
    let person = person();
    let file = put(&person, "/", "a", b"bytes").await;
    let tag = download(&person, &file).await.header("etag").unwrap().to_owned();
    assert!(tag.starts_with('"') && tag.len() == 66, "{tag}");
    let known = ask(&person, &file)
        .header("if-none-match", &tag)
        .await
        .must_be(304);
    assert_eq!(known.header("etag"), Some(tag.as_str()));
    let other = put(&person, "/", "b", b"bytes").await;
    assert_eq!(
        download(&person, &other).await.header("etag"),
        Some(tag.as_str()),
        "the same bytes"
    );
    let part = |condition: &str| {
        ask(&person, &file)
            .header("range", "bytes=1-2")
            .header("if-range", condition)
    };
    assert_eq!(part(&tag).await.must_be(206).text(), "yt");
    assert_eq!(part("\"other\"").await.must_be(200).text(), "bytes");
    assert_eq!(part(&format!("W/{tag}")).await.must_be(200).text(), "bytes");
    let head = person.call(reqwest::Method::HEAD, &format!("{}/download", file_path(&file)));
    let head = head.await.must_be(200);
    assert_eq!((head.header("content-length"), head.body.len()), (Some("5"), 0));
}

/// Changes a byte of the only part of the only file of a server.
fn damage_the_only_part(server: &Almanac, place: usize) {
    let mut parts = Vec::new();
    let mut folders = vec![server.data_dir().join("objects/files")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
        {
            if entry.is_dir() {
                folders.push(entry);
            } else {
                parts.push(entry);
            }
        }
    }
    let [part] = parts.as_slice() else {
        panic!("{parts:?}")
    };
    let mut bytes = std::fs::read(part).unwrap();
    bytes[place] ^= 1;
    std::fs::write(part, bytes).unwrap();
}

#[tokio::test]
async fn a_download_that_breaks_off_is_logged_with_the_id_of_its_request() {
    // Where nothing but errors is logged, too.
    let server = Setup::default().no_upkeep().with("ALMANAC_LOG", "error").start();
    let person = server.person();
    // Long enough that its end is read when its beginning is on the way.
    let file = put(&person, "/", "a", &vec![7; 10 << 20]).await;
    damage_the_only_part(&server, 9 << 20);
    let asked = ask(&person, &file).header("x-request-id", "broken-in-the-middle");
    assert!(asked.attempt().await.is_err());
    let is_logged =
        |line: &str| line.contains("a download broke off") && line.contains("broken-in-the-middle");
    assert!(server.log().lines().any(is_logged), "{}", server.log());
}

#[tokio::test]
async fn a_damaged_file_is_an_error_and_never_other_bytes() {
    let server = Setup::default().no_upkeep().start();
    let person = server.person();
    let file = put(&person, "/", "a", &vec![7; 50_000]).await;
    assert!(server.run(&["check"]).status.success());
    damage_the_only_part(&server, 40_000);
    download(&person, &file).await.problem(500);
    assert!(server.metrics().await.sum(&["almanac_store_corrupt_total"]) >= 1.0);
    let checked = server.run(&["check"]);
    assert!(!checked.status.success());
    assert!(String::from_utf8_lossy(&checked.stdout).contains("files"));
}

#[tokio::test]
async fn a_backup_has_the_files_too() {
    let server = Setup::default().no_upkeep().start();
    let person = server.person();
    let file = put(&person, "/", "a", b"bytes").await;
    let copy = tempfile::tempdir().unwrap();
    let target = copy.path().join("copy");
    assert!(server.run(&["backup", target.to_str().unwrap()]).status.success());
    let second = Setup::default().in_dir(&target).start();
    let there = second.person_called(person.id);
    assert_eq!(download(&there, &file).await.must_be(200).text(), "bytes");
    assert!(second.run(&["check"]).status.success());
}
