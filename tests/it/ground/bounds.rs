//! Nothing that people send makes the service take more memory, or more of the tail, than it was given.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Setup, heart_rate, id, instant, jsonl, number};

use super::slowly::Sending;

/// What the process may take, in MiB.
const MEMORY: u64 = 256;

#[tokio::test]
async fn a_text_beyond_the_limit_is_refused_with_its_place() {
    let server = Setup::default().with("ALMANAC_TEXT_LIMIT", "1000").start();
    let person = server.person();
    let mut record = heart_rate(id(1), &instant(1), 60);
    record["sources"] = json!(["x".repeat(1001)]);
    assert_eq!(
        person.record("HeartRate", &record).await.faults(),
        ["body.sources"]
    );
    record["sources"] = json!(["x".repeat(1000)]);
    person.record("HeartRate", &record).await.upload();
    for n in 0..20 {
        record[format!("beyond_{n}")] = json!("x".repeat(100));
    }
    let refused = person.record("HeartRate", &record).await;
    assert_eq!(refused.faults(), ["body.extras"]);
    assert!(refused.text().contains("may have 2000 bytes"), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn texts_that_compress_well_are_flushed_and_compacted_in_little_memory() {
    let server = Setup::default().no_upkeep().start();
    let person = server.person();
    let text = "well compressed ".repeat(60_000);
    let record = |n: u32| {
        json!({
            "uuid": id(n), "recorded_at": instant(n), "note": text, "sources": ["com.example.notes"],
        })
    };
    for n in 0..60 {
        person
            .lines("MomentAnnotation", &[record(2 * n), record(2 * n + 1)])
            .await
            .upload();
    }
    server.stop();
    let busy = Setup::default().busy_upkeep().in_dir(server.data_dir()).start();
    busy.until_no_tail().await;
    let peak = busy.peak_memory();
    assert!(peak < MEMORY, "flushing took {peak} MiB");
    let metrics = busy.metrics().await;
    assert_eq!(metrics.sum(&["almanac_upkeep_failures_total"]), 0.0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn unfinished_bodies_share_a_budget() {
    let server = Setup::default().no_upkeep().start();
    let records: Vec<Value> = (0..30_000).map(|n| heart_rate(id(n), &instant(n), 60)).collect();
    let body = jsonl(&records);
    let mut sending = Vec::new();
    for _ in 0..24 {
        let (person, body) = (server.person(), body.clone());
        let mut one = Sending::open(&server, &person, "HeartRate", body.len() + 1).await;
        sending.push(tokio::spawn(async move {
            one.send(&body).await;
            tokio::time::sleep(Duration::from_secs(3)).await;
            one.send("\n").await;
            one.answer().await
        }));
    }
    let mut statuses = Vec::new();
    for one in sending {
        let (status, answer) = one.await.unwrap();
        assert!(matches!(status, 201 | 429), "{answer}");
        if status == 429 {
            assert!(answer.to_ascii_lowercase().contains("retry-after:"), "{answer}");
        }
        statuses.push(status);
    }
    assert!(statuses.contains(&201), "{statuses:?}");
    let peak = server.peak_memory();
    assert!(peak < MEMORY, "unfinished bodies took {peak} MiB");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_body_with_a_fault_hears_of_it_in_little_memory() {
    let server = Setup::default()
        .no_upkeep()
        .with("ALMANAC_BODY_MEMORY", "4MiB")
        .with("ALMANAC_SLOW_CLIENT_LIMIT", "10m")
        .start();
    // The first large body could take more than there is, so another one comes before.
    let records: Vec<Value> = (0..1000).map(|n| heart_rate(id(n), &instant(n), 60)).collect();
    let half = jsonl(&records);
    let mut first = Sending::open(&server, &server.person(), "HeartRate", 2 * half.len()).await;
    assert!(first.send(&half).await);
    tokio::time::sleep(Duration::from_millis(500)).await;
    let valid = "{}\n".repeat(500_000);
    let reply = server
        .person()
        .ingest("MomentAnnotation")
        .header("content-type", "application/x-jsonl")
        .body(format!("5\n{valid}6\n"))
        .await;
    let faults = reply.faults();
    assert!(
        faults.len() == 2 && faults[0].starts_with("body.0") && faults[1].starts_with("body.500001"),
        "{faults:?}"
    );
    assert!(first.send(&half).await);
    let (status, answer) = first.answer().await;
    assert_eq!(status, 201, "{answer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_takes_longer_than_the_grace_period_is_stored() {
    let server = Setup::default()
        .busy_upkeep()
        .with("ALMANAC_BODY_MEMORY", "4MiB")
        .start();
    let person = server.person();
    let of = |range: std::ops::Range<u32>, value: u32| -> Vec<Value> {
        range.map(|n| heart_rate(id(n), &instant(n), value)).collect()
    };
    person.records("HeartRate", &of(0..6000, 1)).await;
    let body = jsonl(&of(0..9000, 2));
    let mut sending = Sending::open(&server, &person, "HeartRate", body.len()).await;
    let parts: Vec<&str> = body.split_inclusive('\n').collect();
    for (turn, part) in parts.chunks(1000).enumerate() {
        assert!(sending.send(&part.concat()).await);
        // Meanwhile others write, so that what the body was held against is rewritten and collected.
        let from = 10_000 + turn as u32 * 1000;
        person.records("HeartRate", &of(from..from + 20, 3)).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let (status, answer) = sending.answer().await;
    assert_eq!(status, 201, "{answer}");
    let samples = person.samples("HeartRate", "2024-05-01", "2024-06-01").await;
    let sent = samples.iter().filter(|sample| number(sample, "value") == 2.0);
    assert_eq!((sent.count(), samples.len()), (9000, 9000 + 9 * 20));
}

#[tokio::test]
async fn a_tail_that_nobody_flushes_has_an_end() {
    let server = Setup::default()
        .no_upkeep()
        .with("ALMANAC_TAIL_LIMIT", "256KiB")
        .start();
    let person = server.person();
    let mut refused = None;
    let mut accepted = 0;
    for n in 0..200 {
        let records: Vec<Value> = (n * 500..(n + 1) * 500)
            .map(|n| heart_rate(id(n), &instant(n), 60))
            .collect();
        let reply = person.lines("HeartRate", &records).await;
        if reply.status != 201 {
            refused = Some(reply);
            break;
        }
        accepted += 500;
    }
    let refused = refused.expect("a refusal");
    assert!(refused.header("retry-after").is_some(), "{refused}");
    refused.problem(503);
    person.delete("HeartRate", id(0)).await;
    let left = person
        .samples("HeartRate", "2024-05-01", "2024-06-01")
        .await
        .len();
    assert_eq!(left, accepted - 1, "reading and deleting go on");
    server.stop();
    let busy = Setup::default().busy_upkeep().in_dir(server.data_dir()).start();
    busy.until_no_tail().await;
    let person = busy.person_called(person.id);
    person
        .records("HeartRate", &[heart_rate(id(0), &instant(0), 60)])
        .await;
}

#[tokio::test]
async fn a_wrapped_batch_costs_what_it_is_long() {
    let server = Setup::default().no_upkeep().start();
    let person = server.person();
    let wrapped = |data_type: &str, data: &Value| {
        json!({
            "data": data.to_string(), "metadata": {"data_type": data_type},
        })
    };

    // Members that nobody knows, all in one wrapping.
    let value = json!({"start_date": instant(1), "value": 60});
    let mut one = wrapped("HeartRate", &value);
    for n in 0..40_000 {
        one[format!("m{n}")] = json!(n);
    }
    let begun = std::time::Instant::now();
    person
        .post("/ingest/v1/record/batch", &json!([one]))
        .await
        .upload();
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());

    // More mistakes than anybody wants to read.
    let mistakes = vec![json!({}); 100_000];
    let refused = person.post("/ingest/v1/record/batch", &json!(mistakes)).await;
    assert!(
        refused.faults().len() <= 101,
        "a hundred, and the note that there may be more"
    );

    // Types that change from record to record.
    server.forget_peak();
    let records: Vec<Value> = (0..20_000_u32)
        .map(|n| {
            let data_type = if n % 2 == 0 {
                "HeartRate"
            } else {
                "RestingHeartRate"
            };
            wrapped(data_type, &json!({"start_date": instant(n), "value": 60}))
        })
        .collect();
    person
        .post("/ingest/v1/record/batch", &json!(records))
        .await
        .upload();
    let peak = server.peak_memory();
    assert!(peak < MEMORY, "alternating types took {peak} MiB");
    assert_eq!(person.all_samples("RestingHeartRate").await.len(), 10_000);
}

#[tokio::test]
async fn a_wrapped_batch_deletes_what_it_recorded_before_and_nothing_after() {
    let server = Setup::default().no_upkeep().start();
    let person = server.person();
    let wrapped = |data_type: &str, data: &Value| {
        json!({
            "data": data.to_string(), "metadata": {"data_type": data_type},
        })
    };
    let record = |n: u32| wrapped("HeartRate", &heart_rate(id(n), &instant(n), 60));
    let deletion = |n: u32| {
        wrapped(
            "DeletedRecord",
            &json!({"deleted_id": id(n), "deleted_type": "HeartRate"}),
        )
    };
    let batch = json!([
        record(1),
        deletion(1),
        deletion(2),
        record(2),
        record(3),
        deletion(1)
    ]);
    person.post("/ingest/v1/record/batch", &batch).await.upload();
    let left: Vec<String> = crate::harness::texts(&person.all_samples("HeartRate").await, "uuid");
    assert_eq!(left, [id(2).to_string(), id(3).to_string()]);
}
