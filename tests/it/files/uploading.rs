//! Bytes on their way in: whole, in parts, broken off, and by those who may not.

use std::time::Duration;

use bytes::Bytes;
use futures::SinkExt as _;
use reqwest::{Body, Method};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::{FILES, announce, announcement, download, get, put, send, upload, upload_part};
use crate::harness::{Almanac, Backends, Person, Reply, Setup, person, until};

/// More than a part of an upload.
const LARGE: usize = 40 << 20;

fn pattern(length: usize) -> Bytes {
    (0..length)
        .map(|at| (at as u32).wrapping_mul(2_654_435_761) as u8)
        .collect::<Vec<u8>>()
        .into()
}

fn there(reply: Reply) -> usize {
    let reply = reply.must_be(308);
    let Some(range) = reply.header("range") else {
        return 0;
    };
    let last: usize = range.strip_prefix("bytes=0-").unwrap().parse().unwrap();
    last + 1
}

async fn ask(url: &str, total: usize) -> usize {
    there(upload_part(url, &format!("bytes */{total}"), b"").await)
}

/// The same address at another node, as a load balancer would have it.
fn at(server: &Almanac, url: &str) -> String {
    let path = url.find("/input/").map(|at| &url[at..]).unwrap();
    format!("{}{path}", server.url())
}

#[tokio::test]
async fn put_and_post_take_bytes_without_a_token() {
    let person = person();
    for method in [Method::PUT, Method::POST] {
        let (file, url) = announce(&person, "/", "a", 3).await;
        let sent = send(method, &url).body("abc").await.must_be(200);
        assert_eq!(sent.json()["id"], file["id"]);
        assert!(sent.header("etag").is_some());
        assert_eq!(download(&person, &file).await.must_be(200).text(), "abc");
    }
    let (file, url) = announce(&person, "/", "nothing", 0).await;
    upload(&url, "").await.must_be(200);
    assert_eq!(download(&person, &file).await.must_be(200).body.len(), 0);
}

#[tokio::test]
async fn parts_come_one_after_the_other_until_the_file_is_whole() {
    for backends in Backends::available() {
        let server = Setup::default().on(backends).start();
        let person = server.person();
        let (file, url) = announce(&person, "/", "a", 10).await;
        assert_eq!(ask(&url, 10).await, 0);
        assert_eq!(there(upload_part(&url, "bytes 0-3/10", b"0123").await), 4);
        assert_eq!(
            there(upload_part(&url, "bytes 6-9/10", b"6789").await),
            4,
            "a gap"
        );
        assert_eq!(
            there(upload_part(&url, "bytes 2-5/10", b"2345").await),
            6,
            "some of it again"
        );
        server.restart();
        assert_eq!(ask(&url, 10).await, 6);
        assert_eq!(get(&person, &file).await["state"], "created");
        upload_part(&url, "bytes 6-9/*", b"6789").await.must_be(200);
        assert_eq!(download(&person, &file).await.must_be(200).text(), "0123456789");
        let asked = upload_part(&url, "bytes */10", b"").await.must_be(200);
        assert_eq!(asked.json()["id"], file["id"], "it is all there");
        upload_part(&url, "bytes */11", b"").await.problem(400);
        upload_part(&url, "bytes 6-9/10", b"6789").await.problem(403);
        put(&person, "/", "a", b"another").await;
        upload_part(&url, "bytes */10", b"").await.problem(403);
    }
}

#[tokio::test]
async fn lengths_that_are_wrong_leave_the_version_created() {
    let person = person();
    let (file, url) = announce(&person, "/", "a", 5).await;
    upload(&url, "1234").await.problem(400);
    upload(&url, "123456").await.problem(413);
    // Without a length in the head.
    let chunked = |bytes: &'static [u8]| {
        let pieces: Vec<_> = bytes
            .chunks(2)
            .map(|piece| Ok::<_, std::io::Error>(Bytes::from_static(piece)))
            .collect();
        upload(&url, Body::wrap_stream(futures::stream::iter(pieces)))
    };
    chunked(b"1234").await.problem(400);
    chunked(b"123456").await.problem(413);
    for (range, bytes) in [
        ("bytes 0-3/9", &b"1234"[..]),
        ("bytes 0-9/5", b"1234567890"),
        ("bytes 0-3/5", b"123"),
        ("bytes 3-0/5", b"1"),
        ("bytes 0-3", b"1234"),
        ("lines 0-3/5", b"1234"),
        ("bytes */6", b""),
    ] {
        let reply = upload_part(&url, range, bytes).await;
        assert_eq!(reply.status, 400, "{range}: {reply}");
    }
    upload_part(&url, "bytes 0-1/5", b"1234").await.problem(413);
    let packed = send(Method::PUT, &url).header("content-encoding", "gzip");
    packed.body("12345").await.problem(415);
    assert_eq!(get(&person, &file).await["state"], "created");
    upload(&url, "12345").await.must_be(200);
    assert_eq!(download(&person, &file).await.must_be(200).text(), "12345");
}

#[tokio::test]
async fn a_wrong_length_is_explained_by_what_is_wrong() {
    let person = person();
    let (_, url) = announce(&person, "/", "a", 5).await;
    for (range, bytes, status, message) in [
        (
            None,
            "abc",
            400,
            "the file was announced with 5 bytes, but the body has 3",
        ),
        (
            None,
            "abcdef",
            413,
            "the file was announced with 5 bytes, but the body has 6",
        ),
        (
            Some("bytes 0-9/5"),
            "ab",
            400,
            "the range goes beyond the 5 bytes with which the file was announced",
        ),
        (
            Some("bytes 0-1/6"),
            "ab",
            400,
            "the file was announced with 5 bytes, not 6",
        ),
        (
            Some("bytes 0-2/5"),
            "ab",
            400,
            "content-range names 3 bytes, but the body has 2",
        ),
    ] {
        let reply = match range {
            Some(range) => upload_part(&url, range, bytes.as_bytes()).await,
            None => upload(&url, bytes).await,
        };
        assert_eq!(reply.problem(status)["detail"], message, "{range:?}");
    }
}

#[tokio::test]
async fn an_empty_file_is_complete_for_a_sender_of_ranges_too() {
    let person = person();
    let (file, url) = announce(&person, "/", "nothing", 0).await;
    upload_part(&url, "bytes */5", b"").await.problem(400);
    assert_eq!(get(&person, &file).await["state"], "created");
    let reply = upload_part(&url, "bytes */0", b"").await.must_be(200);
    assert_eq!(reply.json()["state"], "uploaded");
    assert_eq!(download(&person, &file).await.must_be(200).body.len(), 0);
    upload_part(&url, "bytes */0", b"").await.must_be(200);
}

#[tokio::test]
async fn a_parameter_that_an_address_for_bytes_does_not_know_is_named() {
    let person = person();
    let (_, url) = announce(&person, "/", "a", 3).await;
    let strict = send(Method::PUT, &format!("{url}?zz9=1&strict=true"));
    assert_eq!(strict.body("abc").await.faults(), ["query.zz9"]);
    let reply = send(Method::PUT, &format!("{url}?zz9=1"))
        .body("abc")
        .await
        .must_be(200);
    assert_eq!(reply.header("x-ignored-parameters"), Some("zz9"));
}

#[tokio::test]
async fn an_address_is_good_for_one_file_until_it_is_there_and_no_longer() {
    let server = Setup::default().start();
    let person = server.person();
    let (file, url) = announce(&person, "/", "a", 3).await;
    let base = url.rsplit_once('/').unwrap().0;
    let ticket = url.rsplit('/').next().unwrap();
    let [id, second, signature] = ticket.split('.').collect::<Vec<_>>()[..] else {
        panic!("{ticket}")
    };
    let later: i64 = second.parse::<i64>().unwrap() + 1000;
    let other = uuid::Uuid::new_v4().simple();
    for altered in [
        format!("{id}.{later}.{signature}"),
        format!("{other}.{second}.{signature}"),
        format!("{id}.{second}.{}", signature.to_uppercase()),
        format!("{id}.{second}.{}", "0".repeat(64)),
        format!("{id}.{second}."),
        format!("{id}.{second}"),
        "x".to_owned(),
        "%00".to_owned(),
        "\u{e9}".repeat(3000),
    ] {
        upload(&format!("{base}/{altered}"), "abc").await.problem(403);
    }
    // One that another installation made.
    let elsewhere = Setup::default().start();
    let (_, foreign) = announce(&elsewhere.person(), "/", "a", 3).await;
    upload(&at(&server, &foreign), "abc").await.problem(403);
    send(Method::GET, &url).await.problem(405);

    upload(&url, "abc").await.must_be(200);
    upload(&url, "xyz").await.problem(403);
    assert_eq!(download(&person, &file).await.must_be(200).text(), "abc");
}

#[tokio::test]
async fn an_address_ends_with_its_time() {
    let server = Setup::default().with("ALMANAC_UPLOAD_LIFETIME", "1s").start();
    let person = server.person();
    let (file, url) = announce(&person, "/", "a", 3).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    upload(&url, "abc").await.problem(403);
    upload_part(&url, "bytes */3", b"").await.problem(403);
    assert_eq!(get(&person, &file).await["state"], "created");
}

#[tokio::test]
async fn the_address_is_built_on_the_public_url_alone() {
    let server = Setup::default()
        .with("ALMANAC_PUBLIC_URL", "https://files.example/here/")
        .start();
    let call = server.person().post(FILES, &announcement("/", "a", 1));
    let answer = call
        .header("host", "evil.example")
        .header("x-forwarded-host", "evil.example")
        .header("origin", "https://evil.example")
        .await
        .must_be(200)
        .json();
    let url = answer["url"].as_str().unwrap();
    assert!(
        url.starts_with("https://files.example/here/input/v1/upload/"),
        "{url}"
    );
}

/// Whatever there is of a file after its sender disappeared, and the rest of it.
async fn resume(person: &Person, file: &Value, url: &str, bytes: &Bytes) {
    let there = ask(url, bytes.len()).await;
    println!("{there} of {} bytes were kept", bytes.len());
    assert!(there > 0 && there < bytes.len(), "{there}");
    let range = format!("bytes {there}-{}/{}", bytes.len() - 1, bytes.len());
    upload_part(url, &range, &bytes[there..]).await.must_be(200);
    assert!(download(person, file).await.must_be(200).body == *bytes);
}

/// Sends all but the end of a file and keeps the connection open; returns when a part of it is durable.
async fn send_most(url: &str, bytes: &Bytes) -> (impl Sized + use<>, tokio::task::JoinHandle<()>) {
    let (mut sender, receiver) = futures::channel::mpsc::channel::<Result<Bytes, std::io::Error>>(1);
    let call = send(Method::PUT, url)
        .header("content-length", &bytes.len().to_string())
        .body(Body::wrap_stream(receiver));
    let sending = tokio::spawn(async move { drop(call.attempt().await) });
    let most = bytes.slice(..bytes.len() - 1000);
    for piece in most.chunks(1 << 20) {
        sender.send(Ok(Bytes::copy_from_slice(piece))).await.unwrap();
    }
    until(async || match ask(url, bytes.len()).await {
        0 => Err("no part became durable".to_owned()),
        _ => Ok(()),
    })
    .await;
    (sender, sending)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_killed_midway_goes_on_after_a_restart() {
    for backends in Backends::available() {
        let server = Setup::default().on(backends).start();
        let person = server.person();
        let bytes = pattern(LARGE);
        let (file, url) = announce(&person, "/", "a", bytes.len()).await;
        let (held, sending) = send_most(&url, &bytes).await;
        server.kill();
        drop(held);
        sending.await.unwrap();
        server.launch();
        resume(&person, &file, &url, &bytes).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_killed_midway_goes_on_at_another_node() {
    let Some(backends) = Backends::networked() else {
        return;
    };
    let [one, other] = [(), ()].map(|()| Setup::default().on(backends.clone()).start());
    let person = one.person();
    let there = other.person_called(person.id);
    let bytes = pattern(LARGE);
    let (file, url) = announce(&person, "/", "a", bytes.len()).await;
    let (held, sending) = send_most(&url, &bytes).await;
    one.kill();
    drop(held);
    sending.await.unwrap();
    resume(&there, &file, &at(&other, &url), &bytes).await;
}

#[tokio::test]
async fn what_came_before_a_connection_broke_is_kept() {
    let server = Setup::default().start();
    let person = server.person();
    let (file, url) = announce(&person, "/", "a", 10).await;
    let path = url.strip_prefix(&server.url()).unwrap();
    let mut stream = TcpStream::connect(("127.0.0.1", server.port())).await.unwrap();
    let head = format!("PUT {path} HTTP/1.1\r\nHost: almanac\r\nContent-Length: 10\r\n\r\n012345");
    stream.write_all(head.as_bytes()).await.unwrap();
    // Half closed, so that an answer could come; what counts is what is kept.
    stream.shutdown().await.unwrap();
    let mut answer = Vec::new();
    drop(stream.read_to_end(&mut answer).await);
    server
        .until("what came was not kept", async || ask(&url, 10).await >= 6)
        .await;
    upload_part(&url, "bytes 6-9/10", b"6789").await.must_be(200);
    assert_eq!(download(&person, &file).await.must_be(200).text(), "0123456789");
}

#[tokio::test]
async fn more_uploads_than_there_are_places_are_told_to_wait() {
    let server = Setup::default().with("ALMANAC_CONCURRENT_UPLOADS", "1").start();
    let person = server.person();
    let (_, first) = announce(&person, "/", "a", 2).await;
    let (mut sender, receiver) = futures::channel::mpsc::channel::<Result<Bytes, std::io::Error>>(0);
    let call = send(Method::PUT, &first).body(Body::wrap_stream(receiver));
    let slow = tokio::spawn(async move { call.await });
    sender.send(Ok(Bytes::from_static(b"1"))).await.unwrap();
    let (_, second) = announce(&person, "/", "b", 1).await;
    // The first one has its place.
    let reply = until(async || {
        let reply = upload_part(&second, "bytes */1", b"").await;
        if reply.status == 429 {
            Ok(reply)
        } else {
            Err(reply.to_string())
        }
    })
    .await;
    assert!(reply.header("retry-after").is_some());
    sender.send(Ok(Bytes::from_static(b"2"))).await.unwrap();
    drop(sender);
    slow.await.unwrap().must_be(200);
    upload(&second, "1").await.must_be(200);
}

#[tokio::test]
async fn bytes_go_through_whatever_type_they_are_said_to_be() {
    let person = person();
    let file = put(&person, "/", "a", b"{not json").await;
    assert_eq!(file["source_data_types"], Value::Null);
    let (_, url) = announce(&person, "/", "b", 2).await;
    let json = send(Method::POST, &url).header("content-type", "application/json");
    assert_eq!(json.body("{}").await.must_be(200).json()["size"], json!(2));
}
