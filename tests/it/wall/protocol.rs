//! HTTP as it is spoken: by old clients and load generators, and under pressure.

use std::time::Duration;

use futures::future::join_all;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::harness::{ALL_TIME, Almanac, Person, Setup, heart_rate, id, instant};

/// What came back, as it stood on the wire.
struct Answer {
    head: String,
    body: String,
}

impl Answer {
    fn header(&self, name: &str) -> Option<String> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        let found = lines.find(|(given, _)| given.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.to_ascii_lowercase())
    }

    fn status(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or_default()
    }
}

async fn connect(server: &Almanac) -> TcpStream {
    TcpStream::connect(("127.0.0.1", server.port())).await.unwrap()
}

fn request(person: &Person, line: &str, headers: &str, body: &str) -> String {
    let length = if body.is_empty() {
        String::new()
    } else {
        format!(
            "Content-Length: {}\r\nContent-Type: application/json\r\n",
            body.len()
        )
    };
    format!(
        "{line} HTTP/1.0\r\nAuthorization: Bearer {}\r\n{length}{headers}\r\n{body}",
        person.token()
    )
}

/// One answer, as a client of HTTP/1.0 reads it: to the length that was announced, or to the end.
async fn answer(stream: &mut TcpStream) -> Answer {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    let whole = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n")?;
        let answer = Answer {
            head: head.to_owned(),
            body: body.to_owned(),
        };
        let length: usize = answer.header("content-length")?.parse().unwrap();
        (answer.body.len() >= length).then_some(answer)
    };
    loop {
        if let Some(answer) = whole(&bytes) {
            return answer;
        }
        let read = tokio::time::timeout(Duration::from_secs(20), stream.read(&mut buffer));
        let read = read.await.expect("an answer that does not end").unwrap();
        if read == 0 {
            let text = String::from_utf8(bytes).unwrap();
            let (head, body) = text.split_once("\r\n\r\n").expect("a whole head");
            return Answer {
                head: head.to_owned(),
                body: body.to_owned(),
            };
        }
        bytes.extend_from_slice(&buffer[..read]);
    }
}

async fn has_ended(stream: &mut TcpStream) -> bool {
    let mut rest = [0];
    let read = tokio::time::timeout(Duration::from_millis(500), stream.read(&mut rest)).await;
    matches!(read, Ok(Ok(0)))
}

fn rows_of(person: &Person) -> String {
    format!(
        "/data/v0/{}/metric_samples?metric=HeartRate&start_time={}&end_time={}&output=ndjson",
        person.id, ALL_TIME.0, ALL_TIME.1
    )
}

#[tokio::test]
async fn a_request_says_once_for_whom_it_is() {
    let server = Almanac::start();
    for (version, hosts, status) in [
        ("1.1", "", "400"),
        ("1.1", "Host: a\r\nHost: b\r\n", "400"),
        ("1.0", "Host: a\r\nHost: a\r\n", "400"),
        ("1.1", "Host: a\r\n", "200"),
        ("1.0", "", "200"),
    ] {
        let mut stream = connect(&server).await;
        let head = format!("GET /health/live HTTP/{version}\r\nConnection: close\r\n{hosts}\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        assert_eq!(answer(&mut stream).await.status(), status, "{version} {hosts:?}");
    }
}

#[tokio::test]
async fn a_body_in_malformed_chunks_is_not_said_to_have_announced_its_length() {
    let server = Almanac::start();
    let person = server.person();
    let mut stream = connect(&server).await;
    let head = format!(
        "POST /user/v1alpha1/tag HTTP/1.1\r\nHost: almanac\r\nAuthorization: Bearer {}\r\nContent-Type: \
         application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
        person.token()
    );
    stream
        .write_all(format!("{head}zz\r\n").as_bytes())
        .await
        .unwrap();
    let answer = answer(&mut stream).await;
    assert_eq!(answer.status(), "400", "{}", answer.head);
    assert!(
        answer.body.contains("its chunks are malformed"),
        "{}",
        answer.body
    );
    assert!(!answer.body.contains("announced"), "{}", answer.body);
}

#[tokio::test]
async fn http_1_0_without_keep_alive_is_one_answer_and_the_end() {
    let server = Almanac::start();
    let person = server.person();
    let records: Vec<Value> = (0..2_000).map(|n| heart_rate(id(n), &instant(n), 60)).collect();
    person.records("HeartRate", &records).await;
    let expected = person.get(&rows_of(&person)).await.text().to_owned();
    for (line, status, body) in [
        ("GET /health/live".to_owned(), "200", None),
        ("GET /no/such/route".to_owned(), "404", None),
        (format!("GET {}", rows_of(&person)), "200", Some(expected)),
    ] {
        let mut stream = connect(&server).await;
        stream
            .write_all(request(&person, &line, "", "").as_bytes())
            .await
            .unwrap();
        let answer = answer(&mut stream).await;
        assert_eq!(answer.status(), status, "{line}: {}", answer.head);
        assert_eq!(
            answer.header("transfer-encoding"),
            None,
            "{line}: {}",
            answer.head
        );
        assert_ne!(
            answer.header("connection").as_deref(),
            Some("keep-alive"),
            "{line}"
        );
        assert!(has_ended(&mut stream).await, "{line}: {}", answer.head);
        if let Some(body) = body {
            assert!(answer.body == body, "{line}: {} bytes", answer.body.len());
        }
    }
}

#[tokio::test]
async fn http_1_0_with_keep_alive_goes_on_where_the_length_is_known() {
    let server = Almanac::start();
    let person = server.person();
    let mut stream = connect(&server).await;
    let record = heart_rate(id(1), &instant(0), 60).to_string();
    let mut connections = 1;
    for round in 0..20 {
        let (line, body) = match round % 4 {
            0 => ("GET /health/live".to_owned(), ""),
            1 => ("POST /ingest/v1/record/HeartRate".to_owned(), record.as_str()),
            2 => ("GET /data/v0/metrics_catalog".to_owned(), ""),
            _ => (format!("GET {}", rows_of(&person)), ""),
        };
        let sent = request(&person, &line, "Connection: Keep-Alive\r\n", body);
        stream.write_all(sent.as_bytes()).await.unwrap();
        let answer = answer(&mut stream).await;
        assert!(answer.status().starts_with('2'), "{line}: {}", answer.head);
        assert_eq!(
            answer.header("transfer-encoding"),
            None,
            "{line}: {}",
            answer.head
        );
        // Whoever is told that the connection stays has to know where the answer ends.
        if answer.header("connection").as_deref() == Some("keep-alive") {
            assert!(
                answer.header("content-length").is_some(),
                "{line}: {}",
                answer.head
            );
        } else {
            assert!(has_ended(&mut stream).await, "{line}: {}", answer.head);
            stream = connect(&server).await;
            connections += 1;
        }
    }
    assert!(connections <= 11, "{connections} connections for twenty requests");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pressure_is_one_line_of_the_log_a_second_with_a_count() {
    let server = Setup::default()
        .no_upkeep()
        .with("ALMANAC_CONCURRENT_QUERIES", "1")
        .with("ALMANAC_QUEUE_PATIENCE", "200ms")
        .start();
    let (greedy, other) = (server.person(), server.person());
    let records: Vec<Value> = (0..60_000).map(|n| heart_rate(id(n), &instant(n), 60)).collect();
    greedy.records("HeartRate", &records).await;
    // Asks for much and does not take it.
    let mut stream = connect(&server).await;
    let asked = request(&greedy, &format!("GET {}", rows_of(&greedy)), "", "");
    stream.write_all(asked.as_bytes()).await.unwrap();
    let mut beginning = [0; 64];
    stream.read_exact(&mut beginning).await.unwrap();
    let asked = (0..40).map(|_| async { other.get(&rows_of(&other)).await.status });
    let refused = join_all(asked)
        .await
        .into_iter()
        .filter(|status| *status == 503)
        .count();
    assert!(refused > 1, "{refused} were refused");
    // What is available is a question too.
    let available = other.get("/data/v1alpha1/data_available");
    let available = available
        .with("start_time", ALL_TIME.0)
        .with("end_time", ALL_TIME.1);
    assert_eq!(available.await.status, 503);
    let told = |log: &str| log.matches("there was no room for them").count();
    let begun = std::time::Instant::now();
    while told(&server.log()) == 0 {
        assert!(begun.elapsed() < Duration::from_secs(10), "{}", server.log());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let log = server.log();
    assert!(told(&log) <= 3, "{log}");
    assert!(!log.contains("the request failed"), "{log}");
    drop(stream);
}
