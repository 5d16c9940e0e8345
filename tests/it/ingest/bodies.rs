//! Bodies as they travel: media types, lengths, compression, limits, and very many lines.

use std::io::Write as _;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::stream;
use reqwest::{Body, Method};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::harness::{Setup, at, heart_rate, id, jsonl, person, shared};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

#[tokio::test]
async fn every_name_of_the_media_types_is_understood() {
    let person = person();
    let types = [
        "application/json",
        "application/json; charset=utf-8",
        "APPLICATION/JSON",
        "application/x-jsonl",
        "application/jsonl",
        "application/x-ndjson",
        "application/x-jsonl;charset=UTF-8",
    ];
    for (n, media_type) in types.iter().enumerate() {
        let body = heart_rate(id(n as u32), &at("10:00"), 60).to_string();
        person
            .ingest("HeartRate")
            .header("content-type", media_type)
            .body(body)
            .await
            .upload();
    }
    assert_eq!(person.all_samples("HeartRate").await.len(), types.len());
}

#[tokio::test]
async fn lines_may_end_in_any_way() {
    let person = person();
    let line = |n: u32| heart_rate(id(n), &at("10:00"), 60).to_string();
    let body = format!("{}\r\n{}\n\n{}\n", line(1), line(2), line(3))
        .trim_end()
        .to_owned();
    person
        .ingest("HeartRate")
        .header("content-type", "application/x-jsonl")
        .body(body)
        .await
        .upload();
    assert_eq!(person.all_samples("HeartRate").await.len(), 3);
}

#[tokio::test]
async fn a_byte_order_mark_may_stand_before_any_json() {
    let person = person();
    let one = |n: u32| heart_rate(id(n), &at("10:00"), 60);
    let wrapped = |n: u32| {
        let moment = at("10:00");
        let metadata = json!({"data_type": "HeartRate", "source": ["a"], "recorded_at": moment, "id": id(n)});
        json!({"data": "{\"value\": 61}", "metadata": metadata})
    };
    let two = format!("{}\n{}", one(2), one(3));
    for (path, media_type, body) in [
        (
            "/ingest/v1/record/HeartRate",
            "application/json",
            one(1).to_string(),
        ),
        ("/ingest/v1/record/HeartRate", "application/x-jsonl", two),
        ("/ingest/v1/record", "application/json", wrapped(4).to_string()),
        (
            "/ingest/v1/record/batch",
            "application/json",
            json!([wrapped(5)]).to_string(),
        ),
        (
            "/ingest/v1/record/batch",
            "application/x-jsonl",
            wrapped(6).to_string(),
        ),
        (
            "/input/v1/data_type/Event",
            "application/json",
            json!({"name": "Tea"}).to_string(),
        ),
    ] {
        let sent = |text: String| {
            let call = person.call(Method::POST, path);
            call.header("content-type", media_type).body(text)
        };
        // Only one is no part of the text.
        let twice = sent(format!("\u{feff}\u{feff}{body}"));
        if media_type == "application/json" {
            twice.await.must_be(422);
        }
        let reply = sent(format!("\u{feff}{body}")).await;
        assert!([200, 201].contains(&reply.status), "{path} {media_type}: {reply}");
    }
    assert_eq!(person.all_samples("HeartRate").await.len(), 6);
}

#[tokio::test]
async fn gzip_and_zstd_bodies_are_understood() {
    let person = person();
    let lines = |n: u32| {
        jsonl(
            &(n..n + 500)
                .map(|n| heart_rate(id(n), &at("10:00"), 60))
                .collect::<Vec<_>>(),
        )
    };
    for (coding, body) in [
        ("gzip", gzip(lines(0).as_bytes())),
        ("zstd", zstd(lines(500).as_bytes())),
        ("identity", lines(1000).into_bytes()),
    ] {
        let call = person
            .ingest("HeartRate")
            .header("content-type", "application/x-jsonl")
            .header("content-encoding", coding);
        call.body(body).await.upload();
    }
    assert_eq!(person.all_samples("HeartRate").await.len(), 1500);
}

#[tokio::test]
async fn damaged_or_unknown_compression_is_refused_and_nothing_stored() {
    let person = person();
    let lines = jsonl(
        &(0..500)
            .map(|n| heart_rate(id(n), &at("10:00"), 60))
            .collect::<Vec<_>>(),
    );
    let whole = gzip(lines.as_bytes());
    let cut = whole[..whole.len() / 2].to_vec();
    let mut flipped = whole.clone();
    let place = flipped.len() - 6;
    flipped[place] ^= 1;
    let zstd_cut = zstd(lines.as_bytes());
    let zstd_cut = zstd_cut[..zstd_cut.len() / 2].to_vec();
    for (coding, body) in [
        ("gzip", cut),
        ("gzip", flipped),
        ("gzip", lines.clone().into_bytes()),
        ("zstd", zstd_cut),
        ("zstd", whole.clone()),
        ("br", whole),
        ("rubbish", lines.into_bytes()),
    ] {
        let call = person
            .ingest("HeartRate")
            .header("content-type", "application/x-jsonl")
            .header("content-encoding", coding);
        let reply = call.body(body).await;
        assert!(matches!(reply.status, 400 | 415 | 422), "{coding}: {reply}");
    }
    assert!(person.all_samples("HeartRate").await.is_empty());
}

#[tokio::test]
async fn a_zstd_window_that_is_too_wide_is_not_called_damage() {
    let person = person();
    let line = heart_rate(id(1), &at("10:00"), 60).to_string();
    let send = |path: &str, body: &str, window_log: u32| {
        let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
        encoder.window_log(window_log).unwrap();
        encoder.write_all(body.as_bytes()).unwrap();
        person
            .call(Method::POST, path)
            .header("content-type", "application/json")
            .header("content-encoding", "zstd")
            .body(encoder.finish().unwrap())
    };
    for (path, body) in [
        ("/ingest/v1/record/HeartRate", line.as_str()),
        ("/user/v1alpha1/tag", r#"{"name": "tea"}"#),
    ] {
        let refused = send(path, body, 24).await;
        assert_eq!(refused.faults(), ["body"], "{refused}");
        let message = refused.json()["detail"][0]["msg"].as_str().unwrap().to_owned();
        assert!(message.contains("a window of more than 8 MiB"), "{message}");
        assert!(!message.contains("damaged"), "{message}");
        send(path, body, 23).await.must_be(201);
    }
}

#[tokio::test]
async fn no_content_length_is_411() {
    let person = person();
    let text = heart_rate(id(1), &at("10:00"), 60).to_string();
    let pieces = stream::iter([Ok::<_, std::io::Error>(Bytes::from(text))]);
    let reply = person
        .ingest("HeartRate")
        .header("content-type", "application/json")
        .body(Body::wrap_stream(pieces))
        .await;
    reply.problem(411);
    assert!(person.all_samples("HeartRate").await.is_empty());
}

#[tokio::test]
async fn a_body_shorter_than_its_content_length_stores_nothing() {
    let person = person();
    let body = heart_rate(id(1), &at("10:00"), 60).to_string();
    let head = format!(
        "POST /ingest/v1/record/HeartRate HTTP/1.1\r\nHost: almanac\r\nAuthorization: Bearer \
         {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        person.token(),
        body.len() + 10
    );
    let mut stream = TcpStream::connect(("127.0.0.1", shared().port())).await.unwrap();
    stream
        .write_all(format!("{head}{body}").as_bytes())
        .await
        .unwrap();
    stream.shutdown().await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(
        answer.is_empty() || answer.starts_with("HTTP/1.1 400"),
        "{answer}"
    );
    assert!(person.all_samples("HeartRate").await.is_empty());
}

const MEBIBYTE: usize = 1 << 20;

#[tokio::test]
async fn a_body_over_the_limit_is_413_before_memory_grows() {
    let server = Setup::default().start();
    let person = server.person();
    person
        .records("HeartRate", &[heart_rate(id(1), &at("10:00"), 60)])
        .await;
    server.forget_peak();
    let before = server.peak_memory();
    let filler = json!({"start_date": at("10:00"), "value": 60, "extras": {"filler": "x".repeat(1 << 20)}})
        .to_string()
        + "\n";
    let lines = filler.repeat(80);
    // 80 MiB as they are; 80 MiB and 2 GiB that travel as a few kilobytes.
    let plain = person
        .ingest("HeartRate")
        .header("content-type", "application/x-jsonl")
        .body(lines.clone())
        .await;
    plain.problem(413);
    let spaces = vec![b' '; 64 * MEBIBYTE];
    let bomb: Vec<u8> = (0..32).flat_map(|_| zstd(&spaces)).collect();
    for (coding, body) in [
        ("gzip", gzip(lines.as_bytes())),
        ("zstd", zstd(lines.as_bytes())),
        ("zstd", bomb),
    ] {
        assert!(body.len() < 8 * MEBIBYTE);
        for media_type in ["application/x-jsonl", "application/json"] {
            let call = person
                .ingest("HeartRate")
                .header("content-type", media_type)
                .header("content-encoding", coding);
            call.body(body.clone()).await.problem(413);
        }
    }
    let grown = server.peak_memory() - before;
    // A few times the limit, which one body may well take up, and not what the body would have become.
    assert!(grown < 300, "memory grew by {grown} MiB");
    assert_eq!(person.all_samples("HeartRate").await.len(), 1);
}

#[tokio::test]
async fn a_body_just_below_the_limit_is_accepted() {
    let person = person();
    let filler = json!({"start_date": at("10:00"), "value": 60, "extras": {"filler": "x".repeat(MEBIBYTE)}})
        .to_string()
        + "\n";
    let lines = filler.repeat(63);
    person
        .ingest("HeartRate")
        .header("content-type", "application/x-jsonl")
        .body(lines)
        .await
        .upload();
    assert_eq!(
        person.read("metric", "HeartRate").await.must_be(200).rows().len(),
        63
    );
}

#[tokio::test]
async fn a_million_lines_are_accepted_in_bounded_memory_and_all_come_back() {
    const MEMORY_LIMIT: u64 = 400;
    let server = Setup::default().start();
    let person = server.person();
    let mut body = String::with_capacity(60 << 20);
    for n in 0..1_000_000_u32 {
        use std::fmt::Write as _;
        writeln!(
            body,
            "{{\"start_date\":\"{}\",\"value\":{}}}",
            crate::harness::instant(n),
            n % 100
        )
        .unwrap();
    }
    assert!(body.len() < 64 * MEBIBYTE);
    person
        .ingest("HeartRate")
        .header("content-type", "application/x-jsonl")
        .body(body)
        .await
        .upload();
    let peak = server.peak_memory();
    println!("peak while accepting a million lines: {peak} MiB");
    assert!(peak < MEMORY_LIMIT, "{peak} MiB");
    let reply = person
        .metric_samples("HeartRate", "2024-05-01", "2024-06-01")
        .with("output", "csv")
        .await
        .must_be(200);
    assert_eq!(reply.text().lines().count(), 1_000_001);
    assert_eq!(person.updates("HeartRate").await, 1_000_000);
    let day = person
        .samples("HeartRate", "2024-05-12T13:46:38Z", "2024-05-12T13:46:41Z")
        .await;
    let values: Vec<f64> = day
        .iter()
        .map(|row| crate::harness::number(row, "value"))
        .collect();
    assert_eq!(values, [98.0, 99.0], "the last lines, in order");
}

#[tokio::test]
async fn large_and_small_bodies_replace_each_others_records() {
    let person = person();
    let day = |value: u32| -> Vec<_> {
        (0..20_000)
            .map(|n| heart_rate(id(n), &crate::harness::instant(n), value))
            .collect()
    };
    person.records("HeartRate", &day(1)).await;
    person
        .records(
            "HeartRate",
            &[heart_rate(id(19_999), &crate::harness::instant(0), 5)],
        )
        .await;
    person.delete("HeartRate", id(7)).await;
    let count = |samples: &[serde_json::Value], value: f64| {
        samples
            .iter()
            .filter(|sample| crate::harness::number(sample, "value") == value)
            .count()
    };
    let samples = person.all_samples("HeartRate").await;
    assert_eq!(
        (samples.len(), count(&samples, 1.0), count(&samples, 5.0)),
        (19_999, 19_998, 1)
    );
    person.records("HeartRate", &day(2)).await;
    let samples = person.all_samples("HeartRate").await;
    assert_eq!((samples.len(), count(&samples, 2.0)), (20_000, 20_000));
}
