//! Who does not take an answer holds nothing: a client of HTTP/2 that asks much and takes nothing.

use std::time::{Duration, Instant};

use axum::http::Request;
use bytes::Bytes;
use serde_json::Value;
use tokio::net::TcpStream;

use crate::harness::{ALL_TIME, Almanac, Person, Setup, heart_rate, id, instant};

/// A client that leaves answers no room.
async fn without_room(server: &Almanac) -> (h2::client::SendRequest<Bytes>, tokio::task::JoinHandle<()>) {
    let stream = TcpStream::connect(("127.0.0.1", server.port())).await.unwrap();
    let (client, connection) = h2::client::Builder::new()
        .initial_window_size(0)
        .handshake(stream)
        .await
        .unwrap();
    // Pings are answered for as long as this runs.
    let driven = tokio::spawn(async move { drop(connection.await) });
    (client, driven)
}

fn question(server: &Almanac, person: &Person) -> Request<()> {
    let path = format!(
        "{}/data/v0/{}/metric_samples?metric=HeartRate&start_time={}&end_time={}",
        server.url(),
        person.id,
        ALL_TIME.0,
        ALL_TIME.1
    );
    Request::get(path)
        .header("authorization", format!("Bearer {}", person.token()))
        .body(())
        .unwrap()
}

async fn running(server: &Almanac) -> f64 {
    server.metrics().await.sum(&["almanac_query_queue_running"])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_that_nobody_takes_keep_no_places_and_keep_nobody_out() {
    let server = Setup::default()
        .no_upkeep()
        .with("ALMANAC_SLOW_CLIENT_LIMIT", "2s")
        .with("ALMANAC_CONCURRENT_QUERIES", "4")
        .start();
    let (greedy, other) = (server.person(), server.person());
    let records: Vec<Value> = (0..20_000).map(|n| heart_rate(id(n), &instant(n), 60)).collect();
    greedy.records("HeartRate", &records).await;
    other.records("HeartRate", &records[..1]).await;

    let (mut client, driven) = without_room(&server).await;
    let mut answers = Vec::new();
    for _ in 0..64 {
        client = client.ready().await.unwrap();
        let (answer, _) = client.send_request(question(&server, &greedy), true).unwrap();
        answers.push(tokio::spawn(async move {
            // Held, and never read.
            let answer = answer.await;
            tokio::time::sleep(Duration::from_secs(30)).await;
            drop(answer);
        }));
    }
    let begun = Instant::now();
    while running(&server).await < 2.0 {
        assert!(
            begun.elapsed() < Duration::from_secs(10),
            "no question is ever asked"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // Meanwhile others are answered at once: places are counted per person.
    for _ in 0..5 {
        let asked = Instant::now();
        assert_eq!(other.all_samples("HeartRate").await.len(), 1);
        assert!(asked.elapsed() < Duration::from_secs(1), "{:?}", asked.elapsed());
    }
    // And what is not taken ends, though the client answers pings.
    let begun = Instant::now();
    while running(&server).await > 0.0 {
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "places are held for ever"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    for answer in answers {
        answer.abort();
    }
    driven.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_without_requests_end_and_do_not_shut_others_out() {
    let server = Setup::default()
        .with("ALMANAC_SLOW_CLIENT_LIMIT", "1s")
        .with("ALMANAC_CONNECTION_LIMIT", "8")
        .with("ALMANAC_ADDRESS_CONNECTIONS", "1000")
        .start();
    let person = server.person();
    let mut idle = Vec::new();
    for _ in 0..8 {
        let stream = TcpStream::connect(("127.0.0.1", server.port())).await.unwrap();
        if let Ok(Ok((client, connection))) =
            tokio::time::timeout(Duration::from_secs(1), h2::client::handshake::<_>(stream)).await
        {
            idle.push((client, tokio::spawn(connection)));
        }
    }
    assert!(idle.len() >= 7, "{}", idle.len());
    let asked = tokio::time::timeout(Duration::from_secs(20), person.get("/data/v0/metrics_catalog"));
    assert_eq!(asked.await.expect("shut out").status, 200);
    for (_client, connection) in idle {
        let ended = tokio::time::timeout(Duration::from_secs(10), connection).await;
        assert!(ended.is_ok(), "a connection without a request lives for ever");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_asks_and_takes_back_ends_its_own_connection_only() {
    let server = Setup::default().no_upkeep().start();
    let (greedy, other) = (server.person(), server.person());
    other
        .records("HeartRate", &[heart_rate(id(1), &instant(1), 60)])
        .await;
    let stream = TcpStream::connect(("127.0.0.1", server.port())).await.unwrap();
    let (mut client, connection) = h2::client::handshake(stream).await.unwrap();
    let driven = tokio::spawn(connection);
    let mut asked = 0;
    while asked < 20_000 {
        let Ok(ready) = client.ready().await else { break };
        client = ready;
        let Ok((answer, mut stream)) = client.send_request(question(&server, &greedy), true) else {
            break;
        };
        stream.send_reset(h2::Reason::CANCEL);
        drop(answer);
        asked += 1;
        if asked % 1000 == 0 {
            let begun = Instant::now();
            assert_eq!(other.all_samples("HeartRate").await.len(), 1);
            assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
        }
    }
    driven.abort();
    let peak = server.peak_memory();
    assert!(peak < 256, "{peak} MiB");
}
