//! A service whose standard output and error lead nowhere any more.

use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::harness::{Ended, Setup};

#[tokio::test]
async fn a_log_that_nobody_takes_stops_no_answer() {
    let server = Setup::default().with("ALMANAC_LOG", "debug").prepare();
    let mut child = server
        .command(&["serve", "--demo"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop((child.stdout.take(), child.stderr.take()));
    let mut process = Ended(child);
    let deadline = Instant::now() + Duration::from_mins(1);
    loop {
        assert!(process.0.try_wait().unwrap().is_none(), "the server ended");
        if let Ok(reply) = server.nobody().get("/health/ready").attempt().await {
            reply.must_be(200);
            break;
        }
        assert!(Instant::now() < deadline, "the server was not ready in time");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let person = server.person();
    for _ in 0..3 {
        server.nobody().get("/health/live").await.must_be(200);
        server.nobody().get("/data/v1/catalog").await.must_be(401);
        person.all_samples("HeartRate").await;
    }
}
