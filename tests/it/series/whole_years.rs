//! A year of seconds: 31.6 million rows out of a handful of samples, in flat memory.

use std::time::{Duration, Instant};

use futures::StreamExt as _;
use serde_json::Value;

use super::{sample, series};
use crate::harness::{Setup, id};

/// MiB of resident memory that a server may reach, whatever the answer's size.
const MEMORY_LIMIT: u64 = 256;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rule_1_2c_a_year_of_seconds_streams_in_flat_memory() {
    let server = Setup::default().start();
    let person = server.person();
    let hours = (0..24).map(|hour| {
        let (start, end) = (
            format!("2024-03-01T{hour:02}:00:00Z"),
            format!("2024-03-01T{hour:02}:59:30Z"),
        );
        sample(id(hour), u64::from(hour % 2), &start, &end, f64::from(hour))
    });
    let mut samples: Vec<Value> = hours.collect();
    samples.push(sample(
        id(99),
        1,
        "2024-01-15T00:00:00Z",
        "2024-11-15T00:00:00Z",
        1e6,
    ));
    person.records("StepCount", &samples).await;
    person.records("Weight", &samples).await;
    for metric in ["StepCount", "Weight"] {
        server.forget_peak();
        let call = series(&person, metric, "2024-01-01", "2025-01-01")
            .with("samprate", "1")
            .with("output", "arrowraw");
        let began = Instant::now();
        let response = call.open().await.unwrap();
        assert_eq!(response.status().as_u16(), 200);
        let first_byte = began.elapsed();
        let mut bytes = 0_usize;
        let mut body = response.bytes_stream();
        while let Some(chunk) = body.next().await {
            bytes += chunk.expect("an answer that goes on").len();
        }
        let peak = server.peak_memory();
        println!(
            "{metric}: {bytes} bytes in {:?}, the first after {first_byte:?}, peak {peak} MiB",
            began.elapsed()
        );
        assert!(bytes > 31_622_400, "{bytes} bytes are no year of seconds");
        assert!(peak < MEMORY_LIMIT, "{metric}: {peak} MiB");
        assert!(
            first_byte < Duration::from_secs(5),
            "the first byte came after {first_byte:?}"
        );
    }
}
