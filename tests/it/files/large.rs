//! However large the file: memory stays flat in both directions.

use bytes::Bytes;
use futures::StreamExt as _;
use reqwest::{Body, Method};

use super::{announce, file_path, send};
use crate::harness::{Backends, Setup};

const MEBIBYTE: usize = 1 << 20;
/// MiB of resident memory that a server may reach while it takes or gives a file, whatever the file's size.
const MEMORY_LIMIT: u64 = 256;

/// Sends and fetches `mebibytes` of a sparse file: every mebibyte begins with its number and is empty
/// otherwise.
async fn there_and_back(backends: Backends, mebibytes: usize) {
    let server = Setup::default().on(backends).start();
    let person = server.person();
    let length = mebibytes * MEBIBYTE;
    let (file, url) = announce(&person, "/", "large", length).await;
    let source = futures::stream::iter(0..mebibytes as u64).map(|number| {
        let mut piece = vec![0; MEBIBYTE];
        piece[..8].copy_from_slice(&number.to_le_bytes());
        Ok::<_, std::io::Error>(Bytes::from(piece))
    });
    server.forget_peak();
    let call = send(Method::PUT, &url).header("content-length", &length.to_string());
    call.body(Body::wrap_stream(source)).await.must_be(200);
    let up = server.peak_memory();

    server.forget_peak();
    let response = person
        .get(&format!("{}/download", file_path(&file)))
        .open()
        .await
        .unwrap();
    assert_eq!(response.content_length(), Some(length as u64));
    let (mut body, mut at) = (response.bytes_stream(), 0_usize);
    while let Some(bytes) = body.next().await {
        for byte in bytes.expect("the whole file") {
            let (number, place) = ((at / MEBIBYTE) as u64, at % MEBIBYTE);
            let expected = number.to_le_bytes().get(place).copied().unwrap_or(0);
            assert_eq!(byte, expected, "byte {at}");
            at += 1;
        }
    }
    assert_eq!(at, length);
    let down = server.peak_memory();
    println!("{mebibytes} MiB: at most {up} MiB resident while it came, {down} MiB while it went");
    assert!(up < MEMORY_LIMIT && down < MEMORY_LIMIT, "{up} MiB, {down} MiB");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_file_comes_and_goes_in_flat_memory() {
    for backends in Backends::available() {
        there_and_back(backends, 200).await;
    }
}

/// With `ALMANAC_TEST_LARGE_FILE_MIB=5120`, 5 GiB on the embedded backends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_huge_file_comes_and_goes_in_flat_memory() {
    match std::env::var("ALMANAC_TEST_LARGE_FILE_MIB") {
        Ok(mebibytes) => there_and_back(Backends::embedded(), mebibytes.parse().expect("a number")).await,
        Err(_) => println!("skipped: ALMANAC_TEST_LARGE_FILE_MIB is not set"),
    }
}
