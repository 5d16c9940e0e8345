//! `almanac export`: the same archive, written by whoever runs the service.

use std::path::Path;

use super::{imported, some_records};
use crate::files::{download, put};
use crate::harness::{Almanac, Backends, Setup};

/// What `almanac export` says, and its status.
fn export(server: &Almanac, archive: &Path, user: &str) -> (String, Option<i32>) {
    let archive = archive.to_str().expect("a path");
    let output = server.run(&["export", archive, "--user", user]);
    let text = [output.stdout, output.stderr].concat();
    (String::from_utf8_lossy(&text).into_owned(), output.status.code())
}

/// The names of what is in a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder").flatten();
    entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect()
}

#[tokio::test]
async fn an_archive_is_written_beside_the_service_and_without_it() {
    for backends in Backends::available() {
        let folder = tempfile::tempdir().unwrap();
        let server = Setup::default().on(backends).busy_upkeep().start();
        let person = server.person();
        some_records(&person).await;
        let file = put(&person, "/", "note", b"bytes").await;
        let user = person.id.to_string();
        for name in ["beside", "without"] {
            let path = folder.path().join(name);
            let (said, status) = export(&server, &path, &user);
            assert_eq!(status, Some(0), "{said}");
            let bytes = std::fs::read(&path).unwrap();
            assert!(
                said.contains(&format!("{} bytes, SHA-256 ", bytes.len())),
                "{said}"
            );
            let there = Setup::default().start();
            imported(&there, &path, None);
            let copy = there.person_called(person.id);
            assert_eq!(
                copy.all_samples("HeartRate").await.len(),
                50,
                "records of the archive written {name} the service"
            );
            assert_eq!(
                download(&copy, &file).await.must_be(200).body,
                b"bytes".as_slice()
            );
            if name == "beside" {
                server.stop();
            }
        }
        let mut found = names(folder.path());
        found.sort();
        assert_eq!(found, ["beside", "without"], "nothing else is left");
    }
}

#[tokio::test]
async fn an_export_never_takes_the_place_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let server = Setup::default().start();
    let person = server.person();
    some_records(&person).await;
    let path = folder.path().join("mine");
    std::fs::write(&path, "precious").unwrap();
    let (said, status) = export(&server, &path, &person.id.to_string());
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("mine"), "{said}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
    let (said, status) = export(
        &server,
        &folder.path().join("no/such/folder"),
        &person.id.to_string(),
    );
    assert_eq!(status, Some(1), "{said}");
    assert_eq!(names(folder.path()), ["mine"]);
}

#[tokio::test]
async fn nobody_has_no_archive() {
    let folder = tempfile::tempdir().unwrap();
    let server = Setup::default().start();
    let nobody = uuid::Uuid::new_v4().to_string();
    let (said, status) = export(&server, &folder.path().join("archive"), &nobody);
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains(&format!("there is no person {nobody}")), "{said}");
    assert!(names(folder.path()).is_empty());
}
