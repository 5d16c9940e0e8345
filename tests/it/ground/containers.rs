//! Two containers on one directory: both run the service as process 1.

use serde_json::Value;

use crate::harness::{Setup, heart_rate, id, instant, number};

use super::{said, shared_directory};

/// Enough for a body to be written as objects of its own.
const ROWS: u32 = 6000;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_processes_of_one_number_share_a_directory() {
    let directory = tempfile::TempDir::new().unwrap();
    let Some(backends) = shared_directory(directory.path()) else {
        return;
    };
    let contained = || {
        Setup::default()
            .no_upkeep()
            .on(backends.clone())
            .in_dir(directory.path())
            .in_container()
            .start()
    };
    let servers = [contained(), contained()];
    let mut writing = Vec::new();
    for turn in 0..6_u32 {
        for (number, server) in servers.iter().enumerate() {
            let value = turn * 2 + number as u32;
            let person = server.person();
            writing.push(tokio::spawn(async move {
                let records: Vec<Value> = (0..ROWS).map(|n| heart_rate(id(n), &instant(n), value)).collect();
                person.records("HeartRate", &records).await;
                (person, value)
            }));
        }
    }
    for written in writing {
        let (person, value) = written.await.unwrap();
        // Read at the other node: it was stored, not remembered.
        for server in &servers {
            let samples = server.person_called(person.id).all_samples("HeartRate").await;
            assert_eq!(samples.len(), ROWS as usize);
            for sample in samples {
                assert!(
                    (number(&sample, "value") - f64::from(value)).abs() < 1e-9,
                    "{sample}"
                );
            }
        }
    }
    let (told, status) = said(&servers[0], &["check"]);
    assert_eq!(status, Some(0), "{told}");
}
