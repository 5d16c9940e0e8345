//! `ALMANAC_MASTER_KEY_FILE`: what is stored of people says nothing to whoever has the disks, the bucket or a
//! backup.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use reqwest::Method;
use serde_json::{Value, json};

use crate::files::{FILES, announce, put, upload};
use crate::ground::{lose_catalogue, said};
use crate::harness::{Backends, KEY_SERVICE_TOKEN, KeyService, Person, Setup, heart_rate, id, instant};

/// A word that stands in everything that the tests store.
const WORD: &str = "Xylophonkonzert";

fn master_key(folder: &Path) -> PathBuf {
    let path = folder.join("master.key");
    std::fs::write(&path, "5a".repeat(32)).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    path
}

fn encrypting(folder: &Path) -> Setup {
    Setup::default()
        .with(
            "ALMANAC_MASTER_KEY_FILE",
            &master_key(folder).display().to_string(),
        )
        .with("ALMANAC_PERSON_KEYS", &folder.join("keys").display().to_string())
}

/// The files below `folder` in which the word stands as it is: that of the parts of files, where nothing
/// seals them. Rows are compressed besides; what is beneath them is looked at in the tests of the store.
fn files_with_the_word(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_with_the_word(&path));
        } else {
            let content = std::fs::read(&path).unwrap();
            if content.windows(WORD.len()).any(|part| part == WORD.as_bytes()) {
                found.push(path);
            }
        }
    }
    found
}

/// Records that stay in the tail, records that do not, and a file.
async fn live(person: &Person) -> Value {
    let note =
        json!({"id": id(1), "recorded_at": instant(1), "note": WORD, "sources": ["com.example.notes"]});
    person.records("MomentAnnotation", &[note]).await;
    let beats: Vec<Value> = (0..20_000)
        .map(|n| {
            let mut beat = heart_rate(id(n), &instant(n), 60);
            beat["remark"] = json!(format!("{WORD} {n}"));
            beat
        })
        .collect();
    person.records("HeartRate", &beats).await;
    put(person, "/notes", "diary.txt", WORD.repeat(1000).as_bytes()).await
}

async fn assert_there(person: &Person, file: &Value) {
    assert_eq!(person.rows("event", "MomentAnnotation").await[0]["note"], WORD);
    let beats = person.all_samples("HeartRate").await;
    assert_eq!(beats.len(), 20_000);
    assert_eq!(beats[7]["extras"]["remark"], json!(format!("{WORD} 7")));
    let path = format!("{FILES}/{}/download", file["id"].as_str().unwrap());
    let bytes = person.get(&path).await.must_be(200).body;
    assert!(bytes == WORD.repeat(1000).as_bytes());
    let part = person
        .get(&path)
        .header("range", "bytes=15-29")
        .await
        .must_be(206);
    assert_eq!(part.body, WORD);
}

#[tokio::test]
async fn what_is_stored_says_nothing_without_the_keys() {
    for backends in Backends::available() {
        let folder = tempfile::tempdir().unwrap();
        let server = encrypting(folder.path()).no_upkeep().on(backends.clone()).start();
        let person = server.person();
        let file = live(&person).await;
        assert_there(&person, &file).await;
        server.kill();
        server.launch();
        assert_there(&person, &file).await;
        server.stop();
        // Rows in the tail, objects, parts of files: all that this machine has of them.
        assert_eq!(files_with_the_word(server.data_dir()), Vec::<PathBuf>::new());
        let checked = server.run(&["check"]);
        assert!(checked.status.success(), "{checked:?}");

        // Flushed, merged, written down beside the data, and read again.
        let busy = encrypting(folder.path())
            .busy_upkeep()
            .on(backends)
            .in_dir(server.data_dir())
            .start();
        let person = busy.person_called(person.id);
        busy.until_no_tail().await;
        assert_there(&person, &file).await;
        assert_eq!(files_with_the_word(busy.data_dir()), Vec::<PathBuf>::new());
        let checked = busy.run(&["check"]);
        assert!(checked.status.success(), "{checked:?}");
    }
}

/// Changes the newest manifest in the folder of a person.
fn change_newest(folder: &Path, changed: impl Fn(Vec<u8>) -> Vec<u8>) {
    let entries = std::fs::read_dir(folder).unwrap();
    let newest = entries.map(|entry| entry.unwrap().path()).max().unwrap();
    let content = std::fs::read(&newest).unwrap();
    std::fs::write(&newest, changed(content)).unwrap();
}

fn with_another_first_byte(mut content: Vec<u8>) -> Vec<u8> {
    content[0] ^= 1;
    content
}

#[tokio::test]
async fn a_manifest_damaged_where_it_begins_is_written_anew_and_holds_up_no_rebuild() {
    let folder = tempfile::tempdir().unwrap();
    let server = encrypting(folder.path()).busy_upkeep().start();
    let person = server.person();
    person
        .records("HeartRate", &[heart_rate(id(1), &instant(1), 60)])
        .await;
    let manifests = server.data_dir().join(format!("objects/people/{}", person.id));
    for jobs in ["almanac_upkeep_flushes_total", "almanac_upkeep_manifests_total"] {
        server
            .until(jobs, async || server.metrics().await.sum(&[jobs]) >= 1.0)
            .await;
    }
    server.stop();
    let at_rest = encrypting(folder.path())
        .no_upkeep()
        .in_dir(server.data_dir())
        .prepare();
    let changes: [fn(Vec<u8>) -> Vec<u8>; 3] = [
        with_another_first_byte,
        |_| Vec::new(),
        |content| vec![0; content.len()],
    ];
    for changed in changes {
        change_newest(&manifests, changed);
        let (text, status) = said(&at_rest, &["check"]);
        assert!(status == Some(1) && text.contains("--repair"), "{text}");
        let (text, status) = said(&at_rest, &["check", "--repair"]);
        assert_eq!(status, Some(0), "{text}");
    }
    change_newest(&manifests, with_another_first_byte);
    lose_catalogue(server.data_dir());
    let (text, status) = said(&at_rest, &["check", "--repair"]);
    assert!(
        status == Some(1) && text.contains("wrong: left out") && !text.contains("not finished"),
        "{text}"
    );
    at_rest.launch();
    let person = at_rest.person_called(person.id);
    assert_eq!(person.all_samples("HeartRate").await.len(), 1);
}

#[tokio::test]
async fn what_was_stored_before_stays_readable() {
    let folder = tempfile::tempdir().unwrap();
    let server = Setup::default().start();
    let person = server.person();
    let file = live(&person).await;
    server.stop();
    assert_ne!(
        files_with_the_word(server.data_dir()),
        Vec::<PathBuf>::new(),
        "without keys it says something"
    );
    let server = encrypting(folder.path()).in_dir(server.data_dir()).start();
    let person = server.person_called(person.id);
    assert_there(&person, &file).await;
    assert!(server.run(&["check"]).status.success());
}

#[tokio::test]
async fn without_keys_nothing_starts_and_nothing_is_collected() {
    let folder = tempfile::tempdir().unwrap();
    let server = encrypting(folder.path()).start();
    let person = server.person();
    let file = live(&person).await;
    server.stop();
    let without = Setup::default().in_dir(server.data_dir()).prepare();
    assert!(without.try_launch().is_err(), "it started");
    assert!(
        without.log().contains("ALMANAC_MASTER_KEY_FILE"),
        "{}",
        without.log()
    );
    for command in ["check", "backup"] {
        let target = folder.path().join(command);
        let arguments = [command, target.to_str().unwrap()];
        let given = if command == "backup" {
            &arguments[..]
        } else {
            &arguments[..1]
        };
        assert_eq!(without.run(given).status.code(), Some(1), "{command}");
    }
    server.launch();
    assert_there(&server.person_called(person.id), &file).await;
}

#[tokio::test]
async fn a_place_of_keys_that_is_not_the_right_one_makes_no_second_keys() {
    let folder = tempfile::tempdir().unwrap();
    let server = encrypting(folder.path()).start();
    let person = server.person();
    let file = live(&person).await;
    server.stop();
    let empty = folder.path().join("empty");
    let elsewhere = encrypting(folder.path())
        .with("ALMANAC_PERSON_KEYS", &empty.display().to_string())
        .in_dir(server.data_dir())
        .prepare();
    assert!(elsewhere.try_launch().is_err(), "it started");
    assert!(elsewhere.log().contains("another place"), "{}", elsewhere.log());
    assert_eq!(elsewhere.run(&["check"]).status.code(), Some(1));
    server.launch();
    assert_there(&server.person_called(person.id), &file).await;
}

#[tokio::test]
async fn a_store_that_is_refused_is_not_marked_as_encrypted() {
    let folder = tempfile::tempdir().unwrap();
    let server = Setup::default().start();
    let stranger = encrypting(folder.path()).start();
    let (person, other) = (server.person(), stranger.person());
    let beat = heart_rate(id(1), &instant(1), 60);
    for person in [&person, &other] {
        person.records("HeartRate", std::slice::from_ref(&beat)).await;
    }
    server.stop();
    stranger.stop();
    let store = server.data_dir().join("objects");
    let astray = encrypting(folder.path())
        .with("ALMANAC_OBJECT_STORE", &store.display().to_string())
        .in_dir(stranger.data_dir())
        .prepare();
    assert!(astray.try_launch().is_err(), "it started");
    for command in [&["init"][..], &["check"], &["check", "--repair"]] {
        let (text, status) = said(&astray, command);
        assert_eq!(status, Some(1), "{command:?}: {text}");
    }
    assert!(!store.join("sealed.json").exists());
    server.launch();
    assert_eq!(person.all_samples("HeartRate").await.len(), 1);
}

#[tokio::test]
async fn whose_key_is_destroyed_is_gone_from_every_backup() {
    const ACCOUNT: &str = "/user/v1alpha1/account";
    let folder = tempfile::tempdir().unwrap();
    let server = encrypting(folder.path()).busy_upkeep().start();
    let (person, other) = (server.person(), server.person());
    live(&person).await;
    let kept = live(&other).await;
    let copy = folder.path().join("copy");
    let backup = server.run(&["backup", copy.to_str().unwrap()]);
    assert!(backup.status.success(), "{backup:?}");
    assert_eq!(files_with_the_word(&copy), Vec::<PathBuf>::new());

    let asked = person.call(Method::DELETE, ACCOUNT).await.must_be(202).json();
    let confirmation = asked["confirmation"].as_str().unwrap();
    person
        .call(Method::DELETE, ACCOUNT)
        .with("confirm", confirmation)
        .await
        .must_be(202);
    let key = folder.path().join(format!("keys/{}.key", person.id));
    for _ in 0..300 {
        if !key.exists() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    assert!(!key.exists(), "the key is still there:\n{}", server.log());
    server.stop();

    // The copy has everything of both, and opens what is the other's.
    let restored = encrypting(folder.path()).no_upkeep().in_dir(&copy).start();
    assert_there(&restored.person_called(other.id), &kept).await;
    let lost = restored.person_called(person.id);
    let read = lost
        .metric_samples(
            "HeartRate",
            crate::harness::ALL_TIME.0,
            crate::harness::ALL_TIME.1,
        )
        .await;
    assert_ne!(read.status, 200, "{read}");
}

/// Whoever sends to the store itself would go round what seals.
#[tokio::test]
async fn uploads_do_not_go_past_what_seals_them() {
    let Some(backends) = Backends::networked() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let server = encrypting(folder.path())
        .with("ALMANAC_DIRECT_UPLOADS", "true")
        .on(backends.clone())
        .start();
    let person = server.person();
    let (file, url) = announce(&person, "/", "a", WORD.len()).await;
    assert!(
        !url.starts_with(backends.setting("AWS_ENDPOINT_URL")),
        "an address of the store itself: {url}"
    );
    upload(&url, WORD).await.must_be(200);
    let path = format!("{FILES}/{}/download", file["id"].as_str().unwrap());
    assert_eq!(person.get(&path).await.must_be(200).body, WORD);
}

#[test]
fn a_key_that_others_can_read_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let setup = encrypting(folder.path());
    std::fs::set_permissions(folder.path().join("master.key"), PermissionsExt::from_mode(0o644)).unwrap();
    let server = setup.prepare();
    assert!(server.try_launch().is_err(), "it started");
    assert!(server.log().contains("chmod 600"), "{}", server.log());
}

/// A file that nobody else may read.
fn private(folder: &Path, name: &str, content: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, content).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    path.display().to_string()
}

fn served_by(service: &KeyService, folder: &Path) -> Setup {
    Setup::default()
        .with("ALMANAC_KEY_SERVICE", service.url())
        .with(
            "ALMANAC_KEY_SERVICE_TOKEN_FILE",
            &private(folder, "token", KEY_SERVICE_TOKEN),
        )
        .with("ALMANAC_PERSON_KEYS", &folder.join("keys").display().to_string())
}

#[tokio::test]
async fn a_key_service_wraps_the_keys_of_people() {
    let folder = tempfile::tempdir().unwrap();
    let service = KeyService::start().await;
    let server = served_by(&service, folder.path()).no_upkeep().start();
    let (person, other) = (server.person(), server.person());
    let file = live(&person).await;
    assert_there(&person, &file).await;
    let asked = service.asked();
    assert!(
        (1..20).contains(&asked),
        "asked {asked} times for the key of one person"
    );
    server.stop();
    assert_eq!(files_with_the_word(server.data_dir()), Vec::<PathBuf>::new());

    // Without it nothing is lost, and nothing is invented.
    service.goes_away();
    server.launch();
    let (person, other) = (server.person_called(person.id), server.person_called(other.id));
    let (from, to) = crate::harness::ALL_TIME;
    assert_eq!(person.metric_samples("HeartRate", from, to).await.status, 503);
    let beat = heart_rate(id(1), &instant(1), 60);
    assert_eq!(
        other.lines("HeartRate", std::slice::from_ref(&beat)).await.status,
        503
    );
    service.comes_back();
    assert_there(&person, &file).await;
    other.records("HeartRate", &[beat]).await;
    assert_eq!(other.all_samples("HeartRate").await.len(), 1);
}

/// On threads of its own: the key service answers while a command is waited for.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_service_that_opens_something_else_ruins_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let service = KeyService::start().await;
    let server = served_by(&service, folder.path()).no_upkeep().start();
    let person = server.person();
    let file = live(&person).await;
    server.stop();
    let keys = || {
        let entries = std::fs::read_dir(folder.path().join("keys")).unwrap();
        let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        files.retain(|path| path.is_file());
        files.sort();
        files
            .into_iter()
            .map(|path| (std::fs::read(&path).unwrap(), path))
            .collect::<Vec<_>>()
    };
    let before = keys();
    service.is_wrong(true);
    server.launch();
    let (person, other) = (server.person_called(person.id), server.person());
    let beat = heart_rate(id(77), &instant(1), 60);
    for writer in [&person, &other] {
        let refused = writer.lines("HeartRate", std::slice::from_ref(&beat)).await;
        assert_eq!(refused.status, 503, "{refused}");
    }
    let said = server.run(&["key", "rewrap"]);
    assert_eq!(said.status.code(), Some(1), "{said:?}");
    assert_eq!(keys(), before);
    service.is_wrong(false);
    assert_there(&person, &file).await;
    other.records("HeartRate", &[beat]).await;
    assert_eq!(other.all_samples("HeartRate").await.len(), 1);
}

/// On threads of its own: the key service answers while a command is waited for.
#[tokio::test(flavor = "multi_thread")]
async fn what_wrapped_the_keys_can_be_replaced_and_destroyed() {
    let folder = tempfile::tempdir().unwrap();
    let server = encrypting(folder.path()).no_upkeep().start();
    let person = server.person();
    let file = live(&person).await;
    server.stop();
    let (old, new) = ("5a".repeat(32), "a5".repeat(32));
    let filed = |name: &str, keys: &str| {
        encrypting(folder.path())
            .with("ALMANAC_MASTER_KEY_FILE", &private(folder.path(), name, keys))
            .no_upkeep()
            .in_dir(server.data_dir())
    };

    // A new master key before the old one, all keys wrapped by it, then the new one alone.
    let both = filed("both.key", &format!("{new}\n{old}\n")).prepare();
    for expected in ["rewrapped 1 of 1 keys\n", "rewrapped 0 of 1 keys\n"] {
        let said = both.run(&["key", "rewrap"]);
        assert!(said.status.success(), "{said:?}");
        assert_eq!(String::from_utf8_lossy(&said.stdout), expected);
    }
    let alone = filed("new.key", &new).start();
    assert_there(&alone.person_called(person.id), &file).await;
    alone.stop();
    let refused = filed("old.key", &old).prepare().run(&["key", "rewrap"]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");

    // From the file to a service.
    let service = KeyService::start().await;
    let moving = served_by(&service, folder.path())
        .with(
            "ALMANAC_MASTER_KEY_FILE",
            &private(folder.path(), "new.key", &new),
        )
        .in_dir(server.data_dir())
        .prepare();
    let said = moving.run(&["key", "rewrap"]);
    assert!(said.status.success(), "{said:?}");
    let served = served_by(&service, folder.path())
        .in_dir(server.data_dir())
        .start();
    assert_there(&served.person_called(person.id), &file).await;
}
