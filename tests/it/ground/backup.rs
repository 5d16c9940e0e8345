//! A backup verifies what it copies.

use tempfile::TempDir;

use super::{said, tamper};
use crate::harness::{Setup, heart_rate, id, instant};

#[tokio::test]
async fn a_catalogue_from_which_rows_are_missing_is_not_backed_up_in_silence() {
    let server = super::flushing().start();
    let person = server.person();
    let records: Vec<_> = (0..100).map(|n| heart_rate(id(n), &instant(n), 60)).collect();
    person.records("HeartRate", &records).await;
    person.define("Event", &serde_json::json!({"name": "Tea"})).await;
    server.until_objects(1).await;
    server.stop();
    let file = server.data_dir().join("catalogue.db");
    let home = TempDir::new().unwrap();
    let copy = home.path().join("sound");
    let (text, status) = said(&server, &["backup", copy.to_str().unwrap()]);
    assert_eq!(status, Some(0), "{text}");
    let whole = std::fs::read(&file).unwrap();
    for table in ["pieces", "partitions", "definitions"] {
        for beside in ["-wal", "-shm"] {
            drop(std::fs::remove_file(
                server.data_dir().join(format!("catalogue.db{beside}")),
            ));
        }
        std::fs::write(&file, &whole).unwrap();
        tamper(&server, &format!("DELETE FROM {table}")).await;
        let copy = home.path().join(table);
        let (text, status) = said(&server, &["backup", copy.to_str().unwrap()]);
        assert_eq!(status, Some(1), "{table}: {text}");
        assert!(text.contains("wrong: "), "{table}: {text}");
    }
}

#[tokio::test]
async fn an_object_that_is_lost_or_damaged_is_told_and_the_rest_is_copied() {
    let server = super::flushing().start();
    let (one, other) = (server.person(), server.person());
    for person in [&one, &other] {
        let records: Vec<_> = (0..100).map(|n| heart_rate(id(n), &instant(n), 60)).collect();
        person.records("HeartRate", &records).await;
    }
    server.until_objects(2).await;
    server.stop();
    let objects = server.objects();
    let damaged = objects
        .iter()
        .find(|path| path.to_string_lossy().contains(&one.id.to_string()))
        .unwrap();
    let mut content = std::fs::read(damaged).unwrap();
    content[100] ^= 1;
    std::fs::write(damaged, content).unwrap();
    let home = TempDir::new().unwrap();
    let copy = home.path().join("copy");
    let (text, status) = said(&server, &["backup", copy.to_str().unwrap()]);
    assert_eq!(status, Some(1), "{text}");
    assert!(
        text.contains(damaged.file_stem().unwrap().to_str().unwrap()),
        "{text}"
    );
    let restored = Setup::default().no_upkeep().in_dir(&copy).start();
    let there = super::on(&restored, &other);
    assert_eq!(there.all_samples("HeartRate").await.len(), 100);
}
