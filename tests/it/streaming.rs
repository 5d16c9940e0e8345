//! However large the answer: memory stays flat, a client that does not read holds up nobody, and one that
//! goes away is forgotten.

use std::time::{Duration, Instant};

use futures::StreamExt as _;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::harness::{Almanac, Call, METHODS, Person, Setup, Table, id, instant};

const ROWS: u32 = 1_000_000;
/// MiB of resident memory that a server may reach while it answers, whatever the answer's size.
const MEMORY_LIMIT: u64 = 256;

/// A person with a million rows in several objects.
async fn with_a_million_rows(server: &Almanac) -> Person {
    let person = server.person();
    for part in 0..10 {
        let samples: Vec<Value> = (0..ROWS / 10).map(|n| sample(part * (ROWS / 10) + n)).collect();
        person.records("HeartRate", &samples).await;
    }
    server.restart();
    person
}

fn sample(n: u32) -> Value {
    serde_json::json!({
        "uuid": id(n), "start_date": instant(n), "end_date": instant(n), "value": f64::from(n % 113) + 0.25,
        "source_properties": {
            "name": "Watch", "productType": "Watch6,1", "sourceBundleIdentifier": "com.example.health",
        },
    })
}

fn whole_month(person: &Person, method: &str) -> Call {
    person
        .metric_samples("HeartRate", "2024-05-01", "2024-06-01")
        .with("output", method)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_million_rows_in_every_method_in_flat_memory() {
    let server = Setup::default().start();
    let person = with_a_million_rows(&server).await;
    for method in METHODS {
        server.forget_peak();
        let began = Instant::now();
        let response = whole_month(&person, method).open().await.unwrap();
        assert_eq!(response.status().as_u16(), 200);
        let first_byte = began.elapsed();
        // Whole answers would fill this process's memory, so they are counted as they come, and one is read
        // in full below.
        let (mut bytes, mut lines) = (0_usize, 0_usize);
        let mut body = response.bytes_stream();
        while let Some(chunk) = body.next().await {
            let chunk = chunk.expect("the whole answer");
            bytes += chunk.len();
            lines += chunk.split(|byte| *byte == b'\n').count() - 1;
        }
        let peak = server.peak_memory();
        println!(
            "{method}: {bytes} bytes in {:?}, the first after {first_byte:?}, peak {peak} MiB",
            began.elapsed()
        );
        assert!(peak < MEMORY_LIMIT, "{method}: {peak} MiB");
        match method {
            "ndjson" => assert_eq!(lines, ROWS as usize),
            "csv" | "quotecsv" => assert_eq!(lines, ROWS as usize + 1),
            _ => assert!(bytes > 1 << 19, "{method}: {bytes} bytes"),
        }
    }
    let reply = whole_month(&person, "arrow").await.must_be(200);
    assert_in_order(&Table::read("arrow", &reply.body));
}

/// Each row once, in the order of the starts.
fn assert_in_order(table: &Table) {
    assert_eq!(table.rows.len(), ROWS as usize);
    for (n, row) in table.rows.iter().enumerate() {
        let n = n as u32;
        assert!(
            row["uuid"].is_string() && row["value"].as_f64() == Some(f64::from(n % 113) + 0.25),
            "row {n} is {row}"
        );
    }
}

/// A request whose answer nobody reads.
async fn ask_and_not_read(server: &Almanac, person: &Person, method: &str) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port())).await.unwrap();
    let request = format!(
        "GET \
         /data/v0/{}/metric_samples?metric=HeartRate&start_time=2024-05-01&end_time=2024-06-01\
         &output={method} \
         HTTP/1.1\r\nHost: almanac\r\nAuthorization: Bearer {}\r\n\r\n",
        person.id,
        person.token()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut status = [0; 12];
    stream.read_exact(&mut status).await.unwrap();
    assert!(status.ends_with(b"200"), "{}", String::from_utf8_lossy(&status));
    stream
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_do_not_read_or_go_away_cost_nothing_that_lasts() {
    let server = Setup::default().start();
    let person = with_a_million_rows(&server).await;
    server.forget_peak();
    let mut idle = Vec::new();
    for method in METHODS.iter().filter(|method| **method != "parquet") {
        idle.push(ask_and_not_read(&server, &person, method).await);
    }
    for _ in 0..20 {
        let reply = person
            .metric_samples("HeartRate", "2024-05-01T00:00:00Z", "2024-05-01T00:01:00Z")
            .attempt();
        let reply = tokio::time::timeout(Duration::from_secs(10), reply)
            .await
            .expect("others wait for a client that does not read")
            .unwrap();
        assert_eq!(reply.must_be(200).rows().len(), 60);
    }
    let peak = server.peak_memory();
    println!("peak with {} idle clients: {peak} MiB", idle.len());
    assert!(peak < MEMORY_LIMIT, "{peak} MiB");
    drop(idle);
    until_no_request_runs(&server).await;

    // Clients that go away in the middle, many times: nothing may pile up.
    for n in 0..40 {
        let response = whole_month(&person, METHODS[n % METHODS.len()])
            .open()
            .await
            .unwrap();
        let mut body = response.bytes_stream();
        drop(body.next().await);
    }
    until_no_request_runs(&server).await;
    assert!(
        server.peak_memory() < MEMORY_LIMIT,
        "{} MiB",
        server.peak_memory()
    );
}

/// The processor time that the process has used, in hundredths of a second.
fn processor_time(server: &Almanac) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", server.pid())).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

/// Waits until the process rests: a query that nobody waits for any more would keep it busy.
async fn until_no_request_runs(server: &Almanac) {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let before = processor_time(server);
        tokio::time::sleep(Duration::from_millis(300)).await;
        if processor_time(server) - before <= 3 {
            return;
        }
        assert!(
            Instant::now() < deadline,
            "something still runs although nobody waits for it"
        );
    }
}

/// Overlapping pieces, samples that last long, and some that begin together, recorded out of order.
async fn with_scattered_samples(server: &Almanac) -> Person {
    let person = server.person();
    for part in 0..4_u32 {
        let samples: Vec<Value> = (0..30_000_u32)
            .map(|n| {
                // Those of the last part crowd together.
                let begin = if part < 3 {
                    (n * 37 + part * 11) % 100_000
                } else {
                    90_000 + n % 3
                };
                let number = part * 30_000 + n;
                let end = if n % 5_000 == 0 { begin + 50_000 } else { begin };
                serde_json::json!({
                    "uuid": id(number), "start_date": instant(begin), "end_date": instant(end),
                    "value": 60 + number % 9,
                })
            })
            .collect();
        person.records("HeartRate", &samples).await;
    }
    person
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rule_5_2_many_ask_for_the_last_first_and_nobody_is_turned_away() {
    let server = Setup::default().with("ALMANAC_MEMORY_LIMIT", "128MiB").start();
    let person = with_scattered_samples(&server).await;
    // From the middle of the time in which samples begin, so that some reach into it from before.
    let ask = |sort: &str| {
        let call = person.get("/data/v1alpha1/metric/HeartRate").with("sort", sort);
        call.with("start_time", &instant(20_000))
            .with("end_time", &instant(95_000))
    };
    let ids = |rows: Vec<Value>| rows.into_iter().map(|row| row["id"].clone()).collect::<Vec<_>>();
    let mut expected = ids(ask("asc").await.must_be(200).rows());
    expected.reverse();
    assert!(expected.len() > 80_000, "{}", expected.len());
    let answers = futures::future::join_all((0..20).map(|_| ask("desc").attempt())).await;
    for answer in answers {
        assert!(
            ids(answer.unwrap().must_be(200).rows()) == expected,
            "the same rows the other way around"
        );
    }
}
