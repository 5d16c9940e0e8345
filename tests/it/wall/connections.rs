//! Clients of HTTP/2 that ask much and take nothing hold nothing, and what they give up is not stored.

use std::time::{Duration, Instant};

use axum::http::Request;
use bytes::Bytes;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
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
        assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
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

/// Sends the first of two records in HTTP/2, as a body that is announced to have both, and then what `ends`
/// it.
async fn half_a_body(
    server: &Almanac,
    person: &Person,
    ends: impl FnOnce(&mut h2::SendStream<Bytes>, Bytes),
) {
    let lines = [1, 2].map(|n| format!("{}\n", heart_rate(id(n), &instant(n), 60)));
    let request = Request::post(format!("{}/ingest/v1/record/HeartRate", server.url()))
        .header("authorization", format!("Bearer {}", person.token()))
        .header("content-type", "application/x-jsonl")
        .header("content-length", lines.concat().len());
    let stream = TcpStream::connect(("127.0.0.1", server.port())).await.unwrap();
    let (client, connection) = h2::client::handshake(stream).await.unwrap();
    let driven = tokio::spawn(connection);
    let mut client = client.ready().await.unwrap();
    let (answer, mut body) = client.send_request(request.body(()).unwrap(), false).unwrap();
    let [first, second] = lines.map(Bytes::from);
    body.send_data(first, false).unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    ends(&mut body, second);
    // The stream is gone, or has been answered, once this is there.
    drop(
        tokio::time::timeout(Duration::from_secs(5), answer)
            .await
            .unwrap(),
    );
    driven.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_of_a_body_is_stored_that_its_client_gave_up() {
    let server = Setup::default().no_upkeep().start();
    let (whole, given_up) = (server.person(), server.person());
    for reason in [h2::Reason::NO_ERROR, h2::Reason::CANCEL] {
        half_a_body(&server, &given_up, |body, _| body.send_reset(reason)).await;
    }
    half_a_body(&server, &whole, |body, rest| body.send_data(rest, true).unwrap()).await;
    // Long enough for what was given up, which came first.
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(whole.all_samples("HeartRate").await.len(), 2);
    assert_eq!(given_up.all_samples("HeartRate").await.len(), 0);
}

/// One frame of HTTP/2 that belongs to the connection and to no stream.
fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, 0, 0, 0, 0, 0], payload].concat()
}

/// Sends the same frame until `until`, or until the server has had enough. Takes the answers where `listens`.
async fn flood(port: u16, frame: Vec<u8>, listens: bool, until: Instant) {
    const SETTINGS: u8 = 4;
    let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let (mut from, mut to) = stream.into_split();
    let answers = tokio::spawn(async move {
        let mut answers = vec![0; 64 * 1024];
        while listens && matches!(from.read(&mut answers).await, Ok(1..)) {}
        tokio::time::sleep_until(until.into()).await;
    });
    let opening = [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        self::frame(SETTINGS, &[]),
    ]
    .concat();
    let many = frame.repeat(64 * 1024 / frame.len());
    let sending = async {
        to.write_all(&opening).await?;
        loop {
            to.write_all(&many).await?;
        }
    };
    let ended: Result<std::io::Result<()>, _> = tokio::time::timeout_at(until.into(), sending).await;
    drop((ended, to));
    answers.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn floods_of_pings_and_settings_hold_up_nobody_else() {
    const FLOODS: u32 = 4;
    const SECONDS: Duration = Duration::from_secs(3);
    let (ping, settings, priority, reset) = (
        frame(6, &[7; 8]),
        frame(4, &[0, 3, 0, 0, 0, 100]),
        frame(2, &[0; 5]),
        frame(3, &[0, 0, 0, 8]),
    );
    let server = Setup::default().start();
    let person = server.person();
    person
        .records("HeartRate", &[heart_rate(id(1), &instant(1), 60)])
        .await;
    for (name, frame) in [
        ("pings", ping),
        ("settings", settings),
        ("priorities of nothing", priority),
        ("resets of nothing", reset),
    ] {
        for listens in [true, false] {
            let until = Instant::now() + SECONDS;
            let floods: Vec<_> = (0..FLOODS)
                .map(|_| tokio::spawn(flood(server.port(), frame.clone(), listens, until)))
                .collect();
            while Instant::now() < until {
                let asked = Instant::now();
                assert_eq!(person.all_samples("HeartRate").await.len(), 1);
                let waited = asked.elapsed();
                assert!(waited < Duration::from_secs(2), "beside {name}: {waited:?}");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            for flood in floods {
                flood.await.unwrap();
            }
        }
    }
    let peak = server.peak_memory();
    assert!(peak < 256, "floods took {peak} MiB");
}
