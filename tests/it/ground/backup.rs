//! A backup verifies what it copies.

use std::path::PathBuf;

use tempfile::TempDir;
use uuid::Uuid;

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

#[tokio::test]
async fn a_damaged_row_is_told_and_damaged_in_the_copy_and_all_others_are_copied() {
    let server = super::flushing().start();
    let (one, other) = (server.person(), server.person());
    for person in [&one, &other] {
        let records: Vec<_> = (0..100).map(|n| heart_rate(id(n), &instant(n), 60)).collect();
        person.records("HeartRate", &records).await;
        person.define("Event", &serde_json::json!({"name": "Tea"})).await;
    }
    server.until_objects(2).await;
    server.stop();
    let home = TempDir::new().unwrap();
    let owner = one.id.to_string();
    for table in ["definitions", "pieces"] {
        let only = format!("WHERE person = x'{}'", owner.replace('-', ""));
        tamper(
            &server,
            &format!("UPDATE {table} SET checksum = checksum - 1 {only}"),
        )
        .await;
        let copy = home.path().join(table);
        let (text, status) = said(&server, &["backup", copy.to_str().unwrap()]);
        assert_eq!(status, Some(1), "{table}: {text}");
        let damage = format!("wrong: table {table}, person {owner}: 1 row differs from what was written");
        assert!(text.contains(&damage), "{table}: {text}");
        let (checked, status) = said(&server, &["check", "--data-dir", copy.to_str().unwrap()]);
        assert_eq!(status, Some(1), "{table}: {checked}");
        assert!(checked.contains(&damage), "{table}: {checked}");
        let restored = Setup::default().no_upkeep().in_dir(&copy).start();
        let there = super::on(&restored, &other);
        assert_eq!(there.all_samples("HeartRate").await.len(), 100, "{table}");
        // What no sound row names cannot be known.
        let is_of_owner = |path: &PathBuf| path.to_string_lossy().contains(&owner);
        let is_copied = restored.objects().iter().any(is_of_owner);
        assert_eq!(is_copied, table == "definitions", "{table}");
    }
}

#[tokio::test]
async fn a_backup_that_fails_leaves_nothing_that_can_be_taken_for_one() {
    let server = super::flushing().start();
    for _ in 0..5 {
        let person = server.person();
        person
            .records("HeartRate", &[heart_rate(id(1), &instant(1), 60)])
            .await;
    }
    server.until_objects(5).await;
    server.stop();
    // Nobody can open what leads to itself. That nothing of so many people can be read is no damage of
    // theirs.
    for object in server.objects() {
        std::fs::remove_file(&object).unwrap();
        std::os::unix::fs::symlink(&object, &object).unwrap();
    }
    let home = TempDir::new().unwrap();
    let (new, empty) = (home.path().join("new"), home.path().join("empty"));
    std::fs::create_dir(&empty).unwrap();
    for place in [&new, &empty] {
        let (text, status) = said(&server, &["backup", place.to_str().unwrap()]);
        assert_eq!(status, Some(1), "{text}");
        assert!(text.contains("the backup is not complete"), "{text}");
    }
    assert!(!new.exists());
    assert_eq!(std::fs::read_dir(&empty).unwrap().count(), 0);
}

#[test]
fn a_backup_that_was_killed_is_not_used_and_nothing_is_made_of_it() {
    let server = Setup::default().prepare();
    let home = TempDir::new().unwrap();
    let place = home.path().join("killed");
    std::fs::create_dir(&place).unwrap();
    std::fs::write(place.join("catalogue.unfinished"), "").unwrap();
    let place = place.to_str().unwrap();
    let user = Uuid::new_v4().to_string();
    for command in [
        &["serve"][..],
        &["init"],
        &["check"],
        &["check", "--repair"],
        &["status"],
        &["users"],
        &["token", "--user", &user],
        &["query", "SELECT 1", "--user", &user],
        &["backup", "elsewhere"],
        &["import", "archive.zip"],
        &["key", "list"],
    ] {
        let (text, status) = said(&server, &[command, &["--data-dir", place]].concat());
        assert_eq!(status, Some(2), "{command:?}: {text}");
        assert!(text.contains("was not finished"), "{command:?}: {text}");
    }
    let left: Vec<_> = std::fs::read_dir(place).unwrap().flatten().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[tokio::test]
async fn a_backup_is_served_with_what_is_in_it_whatever_the_surroundings_say() {
    let home = TempDir::new().unwrap();
    let store = home.path().join("store").display().to_string();
    let server = super::flushing().with("ALMANAC_OBJECT_STORE", &store).start();
    let person = server.person();
    let record = heart_rate(id(1), &instant(1), 60);
    person.records("HeartRate", &[record]).await;
    let copy = home.path().join("copy");
    let (text, status) = said(&server, &["backup", copy.to_str().unwrap()]);
    assert_eq!(status, Some(0), "{text}");
    server.stop();
    let of_copy = ["--data-dir", copy.to_str().unwrap()];
    let command = |name: &str, more: &[&str]| said(&server, &[&[name][..], &of_copy, more].concat());
    for name in ["serve", "check", "status", "users", "config"] {
        let (text, status) = command(name, &[]);
        assert_eq!(status, Some(2), "{name}: {text}");
        assert!(
            text.contains("environment ALMANAC_OBJECT_STORE"),
            "{name}: {text}"
        );
    }
    let (own, live) = (copy.join("objects"), "belongs to the object store");
    let (text, status) = command("check", &["--object-store", own.to_str().unwrap()]);
    assert_eq!(status, Some(0), "{text}");
    // Whoever removes the mark is still told whose store it is.
    std::fs::remove_file(copy.join("made-by-backup.txt")).unwrap();
    let (text, status) = command("serve", &[]);
    assert!(status == Some(1) && text.contains(live), "{text}");
    let served = Setup::default().no_upkeep().in_dir(&copy).start();
    let there = super::on(&served, &person);
    assert_eq!(there.all_samples("HeartRate").await.len(), 1);
}

#[tokio::test]
async fn a_catalogue_that_is_no_database_is_called_that() {
    let server = Setup::default().start();
    server.stop();
    for beside in ["-wal", "-shm"] {
        drop(std::fs::remove_file(
            server.data_dir().join(format!("catalogue.db{beside}")),
        ));
    }
    std::fs::write(
        server.data_dir().join("catalogue.db"),
        "no database\n".repeat(1_000),
    )
    .unwrap();
    let (text, status) = said(&server, &["check"]);
    assert_eq!(status, Some(1), "{text}");
    assert!(
        text.contains("is not a database") && !text.contains("run `almanac check`"),
        "{text}"
    );
}
