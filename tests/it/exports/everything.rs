//! Whatever is stored of a person, in every kind there is: taken away, brought back somewhere else, and every
//! answer is the same.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, TestRunner};
use reqwest::Method;
use serde_json::{Value, json};

use super::{archive, imported};
use crate::files::{FILES, announce, put};
use crate::harness::{ALL_TIME, Backends, Person, Setup, Table, heart_rate, id, instant, steps};

/// Random choices, the same for the same seed.
pub(super) struct Choices(TestRunner);

impl Choices {
    pub(super) fn new() -> Self {
        Self(TestRunner::new_with_rng(
            Config::default(),
            proptest::test_runner::TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha),
        ))
    }

    fn one<S: Strategy>(&mut self, of: S) -> S::Value {
        of.new_tree(&mut self.0).expect("a value").current()
    }

    /// A time in May 2024, to the microsecond.
    fn moment(&mut self) -> String {
        let (second, fraction) = self.one((0_u32..30 * 86_400, 0_u32..1_000_000));
        instant(second).replace('Z', &format!(".{fraction:06}Z"))
    }

    fn text(&mut self) -> String {
        self.one("[a-zA-Zé日👍\"\\\\ ,\n]{0,12}")
    }

    fn number(&mut self) -> f64 {
        self.one(prop_oneof![
            -1e9..1e9_f64,
            Just(0.1 + 0.2),
            Just(1e-300),
            0.0..100.0_f64
        ])
    }
}

/// Everything that one can store, some of it replaced and deleted again.
pub(super) async fn live(person: &Person, random: &mut Choices) {
    every_type(person).await;
    random_records(person, random).await;
    own_types(person, random).await;
    notes(person).await;
    files(person, random).await;
    preferences(person).await;
}

/// The examples of every type that can be recorded.
async fn every_type(person: &Person) {
    for entry in person.get("/data/v1/catalog").await.must_be(200).rows() {
        if entry["recordable"] != json!(true) || entry["class"] == json!("tombstone") {
            continue;
        }
        let (id, version) = (
            entry["id"].as_str().expect("an id"),
            entry["api_version"].as_str().expect("a version"),
        );
        let path = format!("/data/v1/catalog/{id}/{version}/schema");
        let schema = person.get(&path).await.must_be(200).json();
        let examples = schema["examples"].as_array().cloned().unwrap_or_default();
        person.records(id, &examples).await;
    }
}

/// Records of all ages from several sources, with members that nobody declared; some are replaced, moved,
/// deleted.
async fn random_records(person: &Person, random: &mut Choices) {
    let mut records = Vec::new();
    for n in 0..400 {
        let moment = random.moment();
        let mut record = heart_rate(id(n), &moment, random.number());
        record["source_properties"] =
            json!({"name": format!("Watch {}", n % 3), "version": format!("{}.1", n % 5)});
        record[random.text() + "x"] = json!({"deep": [random.text(), random.number(), null, {"": n}]});
        records.push(record);
    }
    for some in records.chunks(90) {
        person.records("HeartRate", some).await;
    }
    for record in records.iter().step_by(7) {
        let mut other = record.clone();
        other["value"] = json!(random.number());
        let moment = random.moment();
        (other["start_date"], other["end_date"]) = (json!(moment), json!(moment));
        person.record("HeartRate", &other).await.upload();
    }
    for n in (0..400).step_by(11) {
        person.delete("HeartRate", id(n)).await;
    }
    let walks: Vec<Value> = (0..200)
        .map(|n| {
            let start = n * 600;
            let mut walk = steps(id(1000 + n), &instant(start), &instant(start + 300), n % 50);
            walk["svc_source_id"] = json!(["phone", "watch", "ring"][n as usize % 3]);
            walk
        })
        .collect();
    person.records("StepCount", &walks).await;
    // More than what stays in the tail.
    let many: Vec<Value> = (0..6000)
        .map(|n| heart_rate(id(100_000 + n), &instant(n * 11), random.number()))
        .collect();
    person.records("RestingHeartRate", &many).await;
}

async fn own_types(person: &Person, random: &mut Choices) {
    let schema = json!({"properties": {"kind": {"type": "string"}, "cups": {"type": "integer"}}});
    let tea = json!({"name": "Tea", "description": "hot", "record_spec": {"schema": schema}});
    let tea = person.define("Event", &tea).await;
    for cups in 0..20 {
        let record = json!({
            "start_time": random.moment(), "kind": random.text(), "cups": cups, "else": random.text(),
        });
        person.record(&tea, &record).await.upload();
    }
    let mood = json!({"name": "Mood", "record_spec": {"unit": "points"}});
    let mood = person.define("Metric", &mood).await;
    let record = json!({"start_time": random.moment(), "value": random.number()});
    person.record(&mood, &record).await.upload();
    let again = json!({"name": "Mood", "deprecated": true});
    let path = format!("/input/v1/data_type/{mood}");
    person.put(&path, &again).await.must_be(200);
}

async fn notes(person: &Person) {
    let annotation =
        |name: &str| json!({"annotation_type": "moment", "name": name, "description": "", "tags": []});
    let path = "/user/v1alpha1/annotation";
    let mut made = Vec::new();
    for name in ["Coffee", "Gone", "Café \"au\" lait"] {
        made.push(person.post(path, &annotation(name)).await.must_be(201).json());
    }
    let source = &made[0]["svc_source_id"];
    let records: Vec<Value> = (0..5)
        .map(|n| json!({"id": id(n), "recorded_at": instant(n * 500), "note": "so", "sources": [source]}))
        .collect();
    person.records("MomentAnnotation", &records).await;
    let gone = format!("{path}/{}", made[1]["id"].as_str().expect("an id"));
    person.call(Method::DELETE, &gone).await.must_be(200);
    for name in ["calm", "日本", "gone"] {
        let tag = json!({"name": name});
        person.post("/user/v1alpha1/tag", &tag).await.must_be(201);
    }
    let tags = person.get("/user/v1alpha1/tag").await.must_be(200).rows();
    let gone = format!("/user/v1alpha1/tag/id/{}", tags[2]["id"].as_str().expect("an id"));
    person.call(Method::DELETE, &gone).await.must_be(204);
    let reflection = json!({"name": "Evening", "annotations": [made[0]["id"]], "description": "two\nlines",
        "schedule": {"cron": "0 22 * * *", "start_at": null, "end_at": null, "paused": false,
            "time_zone": "Europe/Berlin"}});
    person
        .post("/user/v1alpha1/reflection", &reflection)
        .await
        .must_be(201);
}

async fn files(person: &Person, random: &mut Choices) {
    let mut first = None;
    for version in 0..3_u8 {
        let bytes = vec![version; 20_000 * usize::from(version)];
        let file = put(person, "/notes", "diary.txt", &bytes).await;
        first.get_or_insert(file);
    }
    let text = random.text();
    let deleted = put(person, "/notes/old", "a & b é.txt", text.as_bytes()).await;
    let path = |file: &Value| format!("{FILES}/{}", file["id"].as_str().expect("an id"));
    person.call(Method::DELETE, &path(&deleted)).await.must_be(204);
    let first = first.expect("a first version");
    person
        .call(Method::POST, &format!("{}/restore", path(&first)))
        .await
        .must_be(200);
    // Deleted before its bytes came.
    let (never, _) = announce(person, "/", "never", 10).await;
    person.call(Method::DELETE, &path(&never)).await.must_be(204);
}

async fn preferences(person: &Person) {
    let sources = person.sources().await;
    let ids: Vec<&Value> = sources.iter().rev().take(3).map(|source| &source["id"]).collect();
    let body = json!({"timezone": "Europe/Berlin", "selected_metrics": ["HeartRate", "StepCount"],
        "source_order": {"StepCount": ids}});
    person
        .post("/user/v1alpha1/preferences", &body)
        .await
        .must_be(200);
}

/// What everything that can be asked about a person answers. The moments of writing are not among it, nor
/// what others have to do with.
pub(super) async fn answers(person: &Person) -> BTreeMap<String, Value> {
    let mut answers = BTreeMap::new();
    let range = [("start_time", ALL_TIME.0), ("end_time", ALL_TIME.1)];
    let may = [
        ("start_time", "2024-05-01T00:00:00Z"),
        ("end_time", "2024-06-01T00:00:00Z"),
    ];
    let v0 = |route: &str| format!("/data/v0/{}/{route}", person.id);
    let mut asked: Vec<(String, Vec<(&str, &str)>)> = vec![
        ("/data/v1/catalog".to_owned(), vec![]),
        ("/data/v1alpha1/data_types".to_owned(), vec![]),
        ("/data/v1alpha1/data_sources".to_owned(), vec![]),
        ("/data/v1alpha1/data_available".to_owned(), range.to_vec()),
        (
            "/input/v1/data_type".to_owned(),
            vec![("include_deprecated", "true")],
        ),
        (
            FILES.to_owned(),
            vec![("include_archived", "true"), ("include_deleted", "true")],
        ),
        ("/user/v1alpha1/preferences".to_owned(), vec![]),
        ("/user/v1alpha1/annotation".to_owned(), vec![]),
        ("/user/v1alpha1/tag".to_owned(), vec![]),
        ("/user/v1alpha1/reflection".to_owned(), vec![]),
        (v0("platform_location_updates"), range.to_vec()),
        (v0("platform_location_visits"), range.to_vec()),
        (v0("location_updates"), range.to_vec()),
        (v0("calendars"), vec![]),
        (v0("calendar_events"), range.to_vec()),
        (v0("platform_workouts"), range.to_vec()),
    ];
    for route in ["sleep_stages", "sleep_cycles"] {
        let mut parameters = may.to_vec();
        parameters.push(("output", "jstable"));
        asked.push((v0(route), parameters));
    }
    for metric in ["StepCount", "HeartRate"] {
        let mut parameters = may.to_vec();
        parameters.extend([("metric", metric), ("output", "jstable"), ("samprate", "86400")]);
        asked.push((v0("metric_time_series"), parameters));
    }
    let mut types = Vec::new();
    for entry in person.get("/data/v1/catalog").await.must_be(200).rows() {
        if entry["class"] == json!("tombstone") || entry["recordable"] != json!(true) {
            continue;
        }
        types.push((
            entry["id"].as_str().expect("an id").to_owned(),
            entry["class"] == json!("metric"),
        ));
    }
    for (data_type, is_metric) in &types {
        let class = if *is_metric { "metric" } else { "event" };
        asked.push((format!("/data/v1alpha1/{class}/{data_type}"), range.to_vec()));
    }
    for (path, parameters) in asked {
        let mut call = person.get(&path);
        let mut name = path;
        for (parameter, value) in parameters {
            name = format!("{name} {parameter}={value}");
            call = call.with(parameter, value);
        }
        let reply = call.await;
        assert_eq!(reply.status, 200, "{reply}");
        let mut answer = reply.json();
        for row in answer.as_array_mut().into_iter().flatten() {
            // Where the server is.
            row.as_object_mut().map(|row| row.remove("url"));
        }
        answers.insert(name, answer);
    }
    let info = person.get("/user/v1alpha1/info").await.must_be(200).json();
    answers.insert("created".to_owned(), info["created"].clone());
    let kept = &answers[&format!("{FILES} include_archived=true include_deleted=true")];
    let mut bytes = Vec::new();
    for file in kept["files"].as_array().expect("files") {
        let path = format!("{FILES}/{}", file["id"].as_str().expect("an id"));
        let reply = person.get(&format!("{path}/download")).await;
        let tag = person
            .get(&path)
            .await
            .must_be(200)
            .header("etag")
            .map(str::to_owned);
        bytes.push(json!([
            file["id"],
            reply.status,
            reply.header("etag"),
            reply.body.len(),
            tag
        ]));
    }
    answers.insert("bytes".to_owned(), Value::Array(bytes));
    answers
}

#[track_caller]
pub(super) fn assert_equal(before: &BTreeMap<String, Value>, after: &BTreeMap<String, Value>) {
    assert_eq!(
        before.keys().collect::<Vec<_>>(),
        after.keys().collect::<Vec<_>>(),
        "other questions can be asked"
    );
    for (asked, answer) in before {
        let now = &after[asked];
        if let (Some(before), Some(after)) = (answer.as_array(), now.as_array()) {
            for (row, (one, other)) in before.iter().zip(after).enumerate() {
                assert_eq!(one, other, "row {row} of {asked}");
            }
            assert_eq!(before.len(), after.len(), "{asked}");
        }
        assert_eq!(answer, now, "{asked}");
    }
}

/// The law: whatever was stored, an archive brought into an empty installation answers everything as before;
/// bringing it in again changes nothing; and an archive of the copy holds the same.
#[tokio::test]
async fn an_archive_brought_into_an_empty_installation_answers_everything_as_before() {
    let folder = tempfile::tempdir().unwrap();
    for backends in Backends::available() {
        let first = Setup::default().on(backends).busy_upkeep().start();
        let person = first.person();
        live(&person, &mut Choices::new()).await;
        let before = answers(&person).await;
        let taken = archive(&person, folder.path()).await;
        assert_equal(&before, &answers(&person).await);

        // Into the other pair of backends, where there is one.
        for backends in Backends::available() {
            let second = Setup::default().on(backends).start();
            let there = second.person_called(person.id);
            let said = imported(&second, &taken, None);
            assert!(said.contains("records: "), "{said}");
            let after = answers(&there).await;
            assert_equal(&before, &after);
            let updates = there.all_updates().await;
            let again = imported(&second, &taken, None);
            assert!(again.contains("the person has 0 more than before"), "{again}");
            assert!(
                !again.contains(" 1 new") && again.contains("bytes of files: 0 new"),
                "{again}"
            );
            assert_equal(&after, &answers(&there).await);
            assert_eq!(
                updates,
                there.all_updates().await,
                "nothing was written the second time"
            );
            let copy = archive(&there, folder.path()).await;
            let (one, other) = (members(&taken), members(&copy));
            for (name, bytes) in &one {
                assert!(
                    other.get(name) == Some(bytes),
                    "{name} differs in an archive of the copy"
                );
            }
            assert_eq!(one.len(), other.len());
            assert!(second.run(&["check"]).status.success());
        }
    }
}

#[tokio::test]
async fn what_records_name_stands_after_them() {
    let folder = tempfile::tempdir().unwrap();
    let server = Setup::default().start();
    let person = server.person();
    super::some_records(&person).await;
    put(&person, "/", "note", b"bytes").await;
    let taken = std::fs::read(archive(&person, folder.path()).await).unwrap();
    // A member is written behind its name, and the directory, which has the names again, comes last.
    let place = |name: &str| {
        let mut places = taken.windows(name.len());
        let found = places.position(|bytes| bytes == name.as_bytes());
        found.unwrap_or_else(|| panic!("no {name}"))
    };
    let records = place("records/HeartRate.parquet");
    for name in [
        "files.json",
        "annotations.json",
        "data_types.json",
        "sources.json",
    ] {
        assert!(records < place(name), "{name}");
    }
}

/// The members that must be the same in each archive of the same person, unpacked by somebody else's program.
fn members(archive: &std::path::Path) -> BTreeMap<String, Value> {
    const SCRIPT: &str = "import sys, zipfile, json\n\
        archive = zipfile.ZipFile(sys.argv[1])\n\
        assert archive.testzip() is None\n\
        print(json.dumps({name: archive.read(name).hex() for name in archive.namelist()}))";
    let python = std::env::var("ALMANAC_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let output = std::process::Command::new(python)
        .args(["-c", SCRIPT])
        .arg(archive)
        .output()
        .expect("python runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let all: BTreeMap<String, String> = serde_json::from_slice(&output.stdout).expect("members");
    all.into_iter()
        // What concerns others is not brought back, and the manifest has the time of day.
        .filter(|(name, _)| !name.starts_with("sharing/") && name != "manifest.json")
        .map(|(name, hex)| {
            let content = if name.ends_with(".parquet") {
                rows(&hex)
            } else {
                Value::String(hex)
            };
            (name, content)
        })
        .collect()
}

/// The rows of a Parquet file, each without what it does not have.
fn rows(hex: &str) -> Value {
    let bytes: Vec<u8> = (0..hex.len() / 2)
        .map(|at| u8::from_str_radix(&hex[at * 2..at * 2 + 2], 16).expect("digits"))
        .collect();
    let mut rows = Table::read("parquet", &bytes.into()).rows;
    for row in &mut rows {
        row.as_object_mut()
            .expect("a row")
            .retain(|_, value| !value.is_null());
    }
    Value::Array(rows)
}
