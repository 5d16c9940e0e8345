//! What operators see and who else does.

use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::harness::{Almanac, Setup, heart_rate, id, instant};

#[tokio::test]
async fn metrics_are_shown_at_an_address_of_their_own_where_there_is_one() {
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap().to_string();
    drop(other);
    let server = Setup::default()
        .with("ALMANAC_OPERATIONS_ADDRESS", &address)
        .start();
    let asked = async |path: &str| {
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        client
            .get(format!("http://{address}{path}"))
            .send()
            .await
            .unwrap()
            .status()
            .as_u16()
    };
    for path in ["/metrics", "/health/live", "/health/ready"] {
        assert_eq!(asked(path).await, 200, "{path}");
    }
    assert_eq!(asked("/data/v0/metrics_catalog").await, 404);
    assert_eq!(asked("/openapi.json").await, 404);
    server.nobody().get("/health/ready").await.must_be(200);
    assert_eq!(server.nobody().get("/metrics").await.status, 401);
    assert!(server.stop().success());
}

#[tokio::test]
async fn a_service_that_is_stopping_is_not_ready() {
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap();
    drop(other);
    let server = Setup::default()
        .with("ALMANAC_OPERATIONS_ADDRESS", &address.to_string())
        .start();
    // Something is under way that it waits for.
    let mut underway = TcpStream::connect(("127.0.0.1", server.port())).await.unwrap();
    let body = heart_rate(id(1), &instant(1), 60).to_string();
    let head = format!(
        "POST /ingest/v1/record/HeartRate HTTP/1.1\r\nHost: almanac\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{{",
        server.person().token(),
        body.len()
    );
    underway.write_all(head.as_bytes()).await.unwrap();
    server.nobody().get("/health/ready").await.must_be(200);
    server.ask_to_stop();
    let ready = format!("http://{address}/health/ready");
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let mut reply = client.get(&ready).send().await.unwrap();
    while reply.status() == 200 {
        tokio::time::sleep(Duration::from_millis(10)).await;
        reply = client.get(&ready).send().await.unwrap();
    }
    assert_eq!(reply.status(), 503);
    assert!(reply.headers().contains_key("retry-after"));
    underway.write_all(&body.as_bytes()[1..]).await.unwrap();
    let mut answer = String::new();
    underway.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    assert!(server.stop().success());
}

#[tokio::test]
async fn no_log_says_what_was_asked_however_much_it_says() {
    let server = Setup::default().with("ALMANAC_LOG", "trace").start();
    let person = server.person();
    let secret = "a-word-of-their-own";
    let asked = json!({"query": format!("SELECT '{secret}' AS a, $1 AS b"), "parameters": [secret]});
    person.post("/data/v1/sql", &asked).await.must_be(200);
    assert!(server.stop().success());
    let log = server.log();
    assert!(log.contains("answered") && !log.contains(secret), "{log}");
}

#[tokio::test]
async fn the_log_says_who_asked_with_which_token_unless_it_must_not() {
    for (said, shown) in [("true", true), ("false", false)] {
        let server = Setup::default().with("ALMANAC_LOG_PEOPLE", said).start();
        let person = server.person();
        let sessions = person.get("/user/v1alpha1/session").await.must_be(200).rows();
        let session = sessions[0]["id"].as_str().unwrap().to_owned();
        server.stop();
        let log = server.log();
        let line = log
            .lines()
            .find(|line| line.contains("/user/v1alpha1/session"))
            .unwrap();
        assert_eq!(line.contains(&person.id.to_string()), shown, "{line}");
        assert_eq!(line.contains(&session), shown, "{line}");
    }
}

#[tokio::test]
async fn the_pages_run_nothing_but_themselves() {
    let server = Almanac::start();
    let page = server.nobody().get("/docs/").await.must_be(200);
    let policy = page.header("content-security-policy").unwrap();
    assert!(
        policy.contains("default-src 'none'") && policy.contains("script-src 'self'"),
        "{policy}"
    );
    assert!(
        !policy.contains("unsafe-eval") && !policy.contains("script-src 'self' 'unsafe-inline'"),
        "{policy}"
    );
    // A page with a script of its own would not run under that.
    assert!(!page.text().contains("<script>"), "{page}");
}
