//! Archives whose making is interrupted, or that end while somebody fetches them.

use rand_bytes::bytes;
use reqwest::Method;

use super::{at, count, fetch, order, parts, ready, status};
use crate::files::put;
use crate::harness::{Setup, until};

mod rand_bytes {
    /// Bytes that no compression makes fewer, the same each time.
    pub(super) fn bytes(count: usize) -> Vec<u8> {
        let mut state: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut bytes = Vec::with_capacity(count + 8);
        while bytes.len() < count {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            bytes.extend_from_slice(&state.to_le_bytes());
        }
        bytes.truncate(count);
        bytes
    }
}

#[tokio::test]
async fn a_server_that_is_killed_midway_begins_anew_and_leaves_nothing_behind() {
    let server = Setup::default().start();
    let person = server.person();
    let content = bytes(80 << 20);
    let file = put(&person, "/", "large", &content).await;
    let id = order(&person).await;
    // At least one part is there and named, and not all of them are.
    until(async || {
        let export = status(&person, &id).await;
        let is_begun = count(&export, "bytes") > 0 || export["state"] == "ready";
        if is_begun { Ok(()) } else { Err(export.to_string()) }
    })
    .await;
    server.kill();
    server.launch();
    let export = ready(&person, &id).await;
    let archive = fetch(&person, &id).await.body;
    assert_eq!(archive.len() as u64, count(&export, "bytes"));
    let name = format!("files/{}", content_of(&archive));
    assert!(
        archive
            .windows(name.len())
            .filter(|window| *window == name.as_bytes())
            .count()
            >= 2,
        "the bytes of {file} are in the archive and in its directory"
    );
    let expected = archive.len().div_ceil(32 << 20);
    let there = parts(&server);
    assert!(
        there.len() <= expected + 1,
        "{} parts for {} bytes: {there:?}",
        there.len(),
        archive.len()
    );
    let bytes: u64 = there
        .iter()
        .map(|path| std::fs::metadata(path).unwrap().len())
        .sum();
    assert!(
        bytes < archive.len() as u64 * 101 / 100,
        "nothing of the first attempt is left"
    );
    assert!(server.run(&["check"]).status.success());
}

/// The content whose bytes are in an archive with one file.
fn content_of(archive: &[u8]) -> String {
    let begins = archive
        .windows(6)
        .position(|window| window == b"files/")
        .expect("a file");
    String::from_utf8(archive[begins + 6..begins + 42].to_vec()).expect("an id")
}

#[tokio::test]
async fn a_server_that_is_told_to_stop_does_not_wait_for_an_archive() {
    let server = Setup::default().start();
    let person = server.person();
    put(&person, "/", "large", &bytes(60 << 20)).await;
    let id = order(&person).await;
    assert!(server.stop().success());
    server.launch();
    ready(&person, &id).await;
}

#[tokio::test]
async fn making_an_archive_takes_little_memory_however_large_it_is() {
    let server = Setup::default().start();
    let person = server.person();
    for number in 0..2 {
        put(&person, "/", &format!("large {number}"), &bytes(80 << 20)).await;
    }
    // What is kept of the uploads is there already; it is the growth that counts.
    let before = server.peak_memory();
    server.forget_peak();
    let id = order(&person).await;
    let export = ready(&person, &id).await;
    assert!(count(&export, "bytes") > 160 << 20);
    let grown = server.peak_memory().saturating_sub(before);
    assert!(grown < 100, "{grown} MiB for an archive of 160 MiB");
}

#[tokio::test]
async fn fetching_ends_with_the_archive_and_nothing_counts_as_damaged() {
    let server = Setup::default().start();
    let person = server.person();
    put(&person, "/", "large", &bytes(80 << 20)).await;
    let id = order(&person).await;
    ready(&person, &id).await;
    let fetching = person.get(&format!("{}/content", at(&id))).open().await;
    let mut fetching = fetching.expect("an answer");
    assert_eq!(fetching.status(), 200);
    fetching.chunk().await.expect("a beginning").expect("bytes");
    person.call(Method::DELETE, &at(&id)).await.must_be(204);
    assert!(fetching.bytes().await.is_err(), "the rest is gone");
    let metrics = server.metrics().await;
    assert_eq!(metrics.sum(&["almanac_store_corrupt_total"]), 0.0);
    assert!(!server.log().contains("damaged"), "{}", server.log());
}
