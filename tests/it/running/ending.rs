//! SIGTERM ends with status 0, after what was accepted is done.

use futures::future::join_all;

use crate::harness::{Almanac, Setup, heart_rate, id, instant, texts};

#[tokio::test]
async fn an_idle_server_ends_with_0() {
    let server = Almanac::start();
    server.person().get("/data/v0/metrics_catalog").await.must_be(200);
    assert_eq!(server.stop().code(), Some(0));
}

/// Waits until the first of the requests is stored.
async fn until_committed(server: &Almanac) {
    server
        .until("nothing is ever stored", async || {
            server.metrics().await.sum(&["almanac_commit_requests_count"]) > 0.0
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_accepted_is_done_before_the_end() {
    let server = Almanac::start();
    let person = server.person();
    let day: Vec<_> = (0..20_000).map(|n| heart_rate(id(n), &instant(n), 60)).collect();
    let calls = (0..8_u32).map(|n| {
        let (call, only) = (
            person.lines("HeartRate", &day),
            person.lines("RestingHeartRate", &[heart_rate(id(n), &instant(n), 60)]),
        );
        async move { (call.attempt().await, only.attempt().await) }
    });
    let (answers, ()) = tokio::join!(join_all(calls), async {
        until_committed(&server).await;
        server.ask_to_stop();
    });
    assert_eq!(server.stop().code(), Some(0));
    server.launch();
    let accepted: Vec<_> = answers
        .iter()
        .enumerate()
        .filter(|(_, (_, only))| only.as_ref().is_ok_and(|reply| reply.status == 201))
        .map(|(n, _)| id(n as u32).to_string())
        .collect();
    let kept = texts(&person.all_samples("RestingHeartRate").await, "uuid");
    assert!(
        accepted.iter().all(|id| kept.contains(id)),
        "accepted {accepted:?}, kept {kept:?}"
    );
    if answers
        .iter()
        .any(|(day, _)| day.as_ref().is_ok_and(|reply| reply.status == 201))
    {
        assert_eq!(person.all_samples("HeartRate").await.len(), 20_000);
    }
}

#[tokio::test]
async fn an_answer_underway_is_finished_before_the_end() {
    let server = Setup::default().start();
    let person = server.person();
    let day: Vec<_> = (0..100_000).map(|n| heart_rate(id(n), &instant(n), 60)).collect();
    person.records("HeartRate", &day).await;
    let response = person
        .metric_samples("HeartRate", "2024-05-01", "2024-06-01")
        .with("output", "csv")
        .open()
        .await
        .unwrap();
    server.ask_to_stop();
    let body = response.text().await.expect("the whole answer");
    assert_eq!(body.lines().count(), 100_001);
    assert_eq!(server.stop().code(), Some(0));
}
