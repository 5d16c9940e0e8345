//! The data directory: for its owner's eyes only, and shared by processes without harm.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::harness::{Almanac, Setup, at, heart_rate, id};

fn everything_in(directory: &Path, found: &mut Vec<PathBuf>) {
    found.push(directory.to_owned());
    for path in fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
    {
        if path.is_dir() {
            everything_in(&path, found);
        } else {
            found.push(path);
        }
    }
}

#[tokio::test]
async fn nobody_else_can_look_into_the_data_directory() {
    let server = Setup::default().busy_upkeep().start();
    let person = server.person();
    person
        .records("HeartRate", &[heart_rate(id(1), &at("10:00"), 60)])
        .await;
    server.until_objects(1).await;
    server.stop();
    server.launch();
    let mut found = Vec::new();
    everything_in(server.data_dir(), &mut found);
    let has = |end: &str| found.iter().any(|path| path.to_string_lossy().ends_with(end));
    assert!(
        has(".parquet") && has("spill") && has("catalogue.db") && has("signing.key"),
        "{found:?}"
    );
    for path in &found {
        let about = fs::metadata(path).unwrap();
        let wanted = if about.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(about.mode() & 0o777, wanted, "{}", path.display());
    }
}

fn spill_directories(server: &Almanac) -> Vec<PathBuf> {
    let entries = fs::read_dir(server.data_dir().join("spill")).unwrap();
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    found.sort();
    found
}

#[tokio::test]
async fn a_second_process_leaves_the_first_ones_spilled_rows_alone() {
    let directory = TempDir::new().unwrap();
    let data = directory.path().join("data");
    let first = Setup::default().in_dir(&data).start();
    let of_the_first = spill_directories(&first);
    assert_eq!(of_the_first.len(), 1);
    let second = Setup::default().in_dir(&data).start();
    let is_told = |server: &Almanac| {
        server
            .log()
            .contains("another process serves this data directory")
    };
    assert!(is_told(&second) && !is_told(&first), "{}", second.log());
    let of_both = spill_directories(&second);
    assert_eq!(of_both.len(), 2);
    assert!(of_both.contains(&of_the_first[0]));
    second.stop();
    assert_eq!(
        spill_directories(&first),
        of_the_first,
        "a process takes its own along"
    );
    first.kill();
    assert_eq!(spill_directories(&first), of_the_first);
    first.launch();
    let of_the_next = spill_directories(&first);
    assert_eq!(of_the_next.len(), 1);
    assert_ne!(of_the_next, of_the_first, "what a dead process left is gone");
}
