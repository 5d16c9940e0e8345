//! A full disk: writes are refused with 503, reads go on, nothing acknowledged is lost, and with room again
//! writes succeed.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Person, Setup, at, heart_rate, id, instant, skip_without};

/// A small disk in memory, for as long as the value lives.
struct SmallDisk(TempDir);

impl SmallDisk {
    /// `None`, with a printed reason, where mounting is not allowed.
    fn mount(size: &str) -> Option<Self> {
        let directory = TempDir::new().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
            .arg(directory.path())
            .output();
        match mounted {
            Ok(output) if output.status.success() => Some(Self(directory)),
            Ok(output) => {
                let reason = String::from_utf8_lossy(&output.stderr);
                skip_without(&format!("no disk can be mounted here: {}", reason.trim()));
                None
            }
            Err(error) => {
                skip_without(&format!("no disk can be mounted here: {error}"));
                None
            }
        }
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn grow(&self, size: &str) {
        let status = Command::new("mount")
            .args(["-o", &format!("remount,size={size}")])
            .arg(self.path())
            .status()
            .unwrap();
        assert!(status.success());
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("-l").arg(self.path()).status());
    }
}

/// Records that no compression makes small.
fn large_records(round: u32) -> Vec<Value> {
    let mut state = u64::from(round) << 32 | 0x9E37_79B9;
    let mut noise = || {
        let mut text = Vec::new();
        for _ in 0..125 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            text.push(format!("{state:016x}"));
        }
        text.concat()
    };
    (0..100)
        .map(|n| {
            json!({
                "uuid": id(round * 100 + n), "start_date": instant(round * 100 + n), "value": 1,
                "extras": {"noise": noise()},
            })
        })
        .collect()
}

async fn ids(person: &Person) -> usize {
    let reply = person
        .metric_samples("HeartRate", "2024-05-01", "2024-06-01")
        .with("output", "csv")
        .await
        .must_be(200);
    crate::harness::Table::read("csv", &reply.body).rows.len()
}

#[tokio::test]
async fn a_full_disk_refuses_writes_with_503_and_reads_go_on() {
    let Some(disk) = SmallDisk::mount("24m") else {
        return;
    };
    let server = Setup::default()
        .in_dir(&disk.path().join("data"))
        .with("ALMANAC_FLUSH_AGE", "200ms")
        .with("ALMANAC_UPKEEP_INTERVAL", "100ms")
        .start();
    let person = server.person();
    let mut accepted = 0;
    let mut refused = None;
    for round in 0..400 {
        let reply = person.lines("HeartRate", &large_records(round)).await;
        if reply.status != 201 {
            refused = Some(reply);
            break;
        }
        accepted += 100;
    }
    let refused = refused.expect("the disk never filled up");
    assert!(accepted > 0);
    assert!(refused.header("retry-after").is_some(), "{refused}");
    refused.problem(503);
    assert_eq!(
        ids(&person).await,
        accepted,
        "what was accepted, and nothing of what was refused"
    );
    server.nobody().get("/health/live").await.must_be(200);
    assert!(server.nobody().get("/metrics").await.status == 200);

    // A crash on the full disk loses nothing either.
    server.kill();
    server.launch();
    assert_eq!(ids(&person).await, accepted);

    disk.grow("256m");
    for _ in 0..100 {
        if person
            .lines("RestingHeartRate", &[heart_rate(id(1), &at("10:00"), 50)])
            .await
            .status
            == 201
        {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    person.records("HeartRate", &large_records(401)).await;
    assert_eq!(ids(&person).await, accepted + 100);
    drop(server);
}
