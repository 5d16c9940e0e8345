//! Requests that are refused before their body was read, by clients that read no answer before they have sent
//! everything.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use crate::harness::{Almanac, Setup};

/// Much more than the system's buffers hold.
const LARGE: usize = 12 << 20;

/// One kept connection.
struct Connection(TcpStream);

impl Connection {
    fn to(server: &Almanac) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        Self(stream)
    }

    /// Sends a whole request, then reads a whole answer: its head, in lower case.
    fn call(&mut self, head: &str, body: &[u8]) -> String {
        let head = format!(
            "{head}\r\nHost: almanac\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        self.0.write_all(head.as_bytes()).unwrap();
        self.0.write_all(body).unwrap();
        self.answer()
    }

    fn answer(&mut self) -> String {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            self.0.read_exact(&mut byte).unwrap();
            head.extend(byte);
        }
        let head = String::from_utf8(head).unwrap().to_lowercase();
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        let mut body = vec![0; length.unwrap().parse().unwrap()];
        self.0.read_exact(&mut body).unwrap();
        head
    }
}

#[tokio::test]
async fn an_early_refusal_reaches_its_client_and_leaves_the_connection_in_order() {
    let server = Setup::default().with("ALMANAC_BODY_LIMIT", "20MiB").start();
    let token = server.person().token().to_owned();
    let post = |path: &str, token: &str, media_type: &str| {
        format!("POST {path} HTTP/1.1\r\nAuthorization: Bearer {token}\r\nContent-Type: {media_type}")
    };
    let jsonl = "application/x-jsonl";
    let (spaces, too_many_spaces) = (vec![b' '; LARGE], vec![b' '; 21 << 20]);
    let wrong_lines = b"{\"start_date\":\"x\",\"value\":1}\n".repeat(LARGE / 29);
    let mut connection = Connection::to(&server);
    for (status, head, body) in [
        (
            "401",
            post("/ingest/v1/record/HeartRate", "nobodys", jsonl),
            &spaces,
        ),
        ("404", post("/ingest/v1/record/Nope", &token, jsonl), &spaces),
        ("404", post("/nowhere", &token, jsonl), &spaces),
        ("405", post("/data/v1/catalog", &token, jsonl), &spaces),
        (
            "413",
            post("/ingest/v1/record/HeartRate", &token, jsonl),
            &too_many_spaces,
        ),
        (
            "413",
            post("/user/v1alpha1/preferences", &token, "application/json"),
            &too_many_spaces,
        ),
        (
            "415",
            post("/ingest/v1/record/HeartRate", &token, "text/plain"),
            &spaces,
        ),
        (
            "422",
            post("/ingest/v1/record/HeartRate", &token, jsonl),
            &wrong_lines,
        ),
    ] {
        let answer = connection.call(&head, body);
        assert!(
            answer.starts_with(&format!("http/1.1 {status}")),
            "{head}: {answer}"
        );
        assert!(!answer.contains("connection: close"), "{head}: {answer}");
        let next = connection.call("GET /health/live HTTP/1.1", b"");
        assert!(next.starts_with("http/1.1 200"), "after {status}: {next}");
    }
    let metrics = server.metrics().await;
    assert!(metrics.has(&["record"]), "refusals are counted like answers");
}

#[tokio::test]
async fn a_body_that_was_not_asked_for_is_not_asked_for_by_a_refusal() {
    let server = crate::harness::shared();
    let mut connection = Connection::to(server);
    let head = "POST /ingest/v1/record/HeartRate HTTP/1.1\r\nHost: almanac\r\nContent-Type: \
                application/json\r\nExpect: 100-continue";
    connection
        .0
        .write_all(format!("{head}\r\nContent-Length: 1000000\r\n\r\n").as_bytes())
        .unwrap();
    let answer = connection.answer();
    assert!(
        answer.starts_with("http/1.1 401") && answer.contains("connection: close"),
        "{answer}"
    );
    assert_eq!(
        connection.0.read(&mut [0]).unwrap(),
        0,
        "the connection is open still"
    );
}

#[tokio::test]
async fn half_a_head_is_given_up_after_the_limit_for_slow_clients() {
    let server = Setup::default().with("ALMANAC_SLOW_CLIENT_LIMIT", "1s").start();
    let mut connection = Connection::to(&server);
    connection
        .0
        .write_all(b"GET /health/live HTTP/1.1\r\nHo")
        .unwrap();
    let mut answer = Vec::new();
    connection
        .0
        .read_to_end(&mut answer)
        .expect("given up before reading takes too long");
}
