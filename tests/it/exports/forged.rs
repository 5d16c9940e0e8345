//! Archives that are well made and hold what nobody could have sent.

use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::{Field, Schema};
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{archive, import, imported, some_records};
use crate::harness::{Almanac, Person, Setup};

const TAG: &str = "/user/v1alpha1/tag";
const HEART_RATE: &str = "records/HeartRate.parquet";
/// What an archive ends with: the end of its directory and its digest.
const END_BYTES: usize = 22;
const COMMENT_BYTES: usize = 71;

/// The members of an archive, unpacked.
#[derive(Clone)]
pub(super) struct Forged(Vec<(String, Vec<u8>)>);

fn number(bytes: &[u8], at: usize, length: usize) -> usize {
    let bytes = bytes[at..at + length].iter().rev();
    bytes.fold(0, |number, byte| number << 8 | usize::from(*byte))
}

fn put(into: &mut Vec<u8>, fields: &[(usize, usize)]) {
    for (number, length) in fields {
        into.extend_from_slice(&number.to_le_bytes()[..*length]);
    }
}

impl Forged {
    pub(super) fn of(path: &Path) -> Self {
        let whole = std::fs::read(path).unwrap();
        let end = whole.len() - COMMENT_BYTES - END_BYTES;
        let mut at = number(&whole, end + 16, 4);
        let mut members = Vec::new();
        while at < end {
            let [packed, name, extra, comment, head] = [(20, 4), (28, 2), (30, 2), (32, 2), (42, 4)]
                .map(|(field, length)| number(&whole, at + field, length));
            let from = head + 30 + number(&whole, head + 26, 2) + number(&whole, head + 28, 2);
            let bytes = &whole[from..from + packed];
            let bytes = if number(&whole, at + 10, 2) == 0 {
                bytes.to_vec()
            } else {
                let mut unpacked = Vec::new();
                flate2::read::DeflateDecoder::new(bytes)
                    .read_to_end(&mut unpacked)
                    .unwrap();
                unpacked
            };
            members.push((
                String::from_utf8(whole[at + 46..at + 46 + name].to_vec()).unwrap(),
                bytes,
            ));
            at += 46 + name + extra + comment;
        }
        Self(members)
    }

    pub(super) fn member(&mut self, name: &str) -> &mut Vec<u8> {
        let mut members = self.0.iter_mut();
        let found = members.find(|(called, _)| called == name);
        &mut found.unwrap_or_else(|| panic!("no {name}")).1
    }

    /// This archive with other elements in a list.
    pub(super) fn with_list(mut self, name: &str, change: impl FnOnce(&mut Vec<Value>)) -> Self {
        let member = self.member(name);
        let mut elements: Vec<Value> = serde_json::from_slice(member).unwrap();
        change(&mut elements);
        let lines: Vec<String> = elements.iter().map(Value::to_string).collect();
        *member = format!("[\n{}\n]\n", lines.join(",\n")).into_bytes();
        self
    }

    /// This archive with another manifest.
    pub(super) fn with_manifest(mut self, change: impl FnOnce(&mut Value)) -> Self {
        let member = self.member("manifest.json");
        let mut manifest: Value = serde_json::from_slice(member).unwrap();
        change(&mut manifest);
        *member = manifest.to_string().into_bytes();
        self
    }

    /// This archive without a member.
    pub(super) fn without(mut self, name: &str) -> Self {
        self.0.retain(|(called, _)| called != name);
        self.with_manifest(|manifest| {
            let members = manifest["members"].as_array_mut().unwrap();
            members.retain(|entry| entry["name"] != *name);
        })
    }

    /// This archive with another column of heart rates.
    fn with_column(mut self, name: &str, change: impl FnOnce(&RecordBatch) -> (Field, ArrayRef)) -> Self {
        let member = self.member(HEART_RATE);
        let reader = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(member.clone())).unwrap();
        let batches: Vec<RecordBatch> = reader.build().unwrap().map(Result::unwrap).collect();
        let rows = arrow::compute::concat_batches(&batches[0].schema(), &batches).unwrap();
        let (field, changed) = change(&rows);
        let mut fields = rows.schema().fields().to_vec();
        let mut columns = rows.columns().to_vec();
        if let Ok(place) = rows.schema().index_of(name) {
            columns[place] = changed;
        } else {
            fields.push(Arc::new(field));
            columns.push(changed);
        }
        let rows = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap();
        let mut writer = ArrowWriter::try_new(Vec::new(), rows.schema(), None).unwrap();
        writer.write(&rows).unwrap();
        *member = writer.into_inner().unwrap();
        self
    }

    /// This archive with other times of the record with the number `row`.
    fn with_time(self, name: &str, row: usize, time: i64) -> Self {
        self.with_column(name, |rows| {
            let field = rows.schema().field_with_name(name).unwrap().clone();
            let column = rows.column_by_name(name).unwrap();
            let times = column
                .as_any()
                .downcast_ref::<TimestampMicrosecondArray>()
                .unwrap();
            let mut times = times.values().to_vec();
            times[row] = time;
            let column = TimestampMicrosecondArray::from(times).with_data_type(field.data_type().clone());
            (field, Arc::new(column))
        })
    }

    fn with_bytes(mut self, name: &str, bytes: &[u8]) -> Self {
        *self.member(name) = bytes.to_vec();
        self
    }

    /// Writes it, none of its members packed, so that its outside is sound.
    pub(super) fn write(mut self, path: &Path) {
        let lengths: Vec<(String, usize)> = self
            .0
            .iter()
            .map(|(name, bytes)| (name.clone(), bytes.len()))
            .collect();
        let manifest = self.member("manifest.json");
        let mut told: Value = serde_json::from_slice(manifest).unwrap();
        for entry in told["members"].as_array_mut().unwrap() {
            let (_, length) = lengths.iter().find(|(name, _)| entry["name"] == **name).unwrap();
            entry["bytes"] = json!(length);
        }
        *manifest = told.to_string().into_bytes();
        let (mut whole, mut directory) = (Vec::new(), Vec::new());
        for (name, bytes) in &self.0 {
            let (head, length) = (whole.len(), bytes.len());
            put(
                &mut whole,
                &[
                    (0x0403_4b50, 4),
                    (20, 2),
                    (0, 8),
                    (0, 4),
                    (length, 4),
                    (length, 4),
                ],
            );
            put(&mut whole, &[(name.len(), 2), (0, 2)]);
            whole.extend_from_slice(name.as_bytes());
            whole.extend_from_slice(bytes);
            put(
                &mut directory,
                &[(0x0201_4b50, 4), (20, 2), (20, 2), (0, 8), (0, 4), (length, 4)],
            );
            put(
                &mut directory,
                &[(length, 4), (name.len(), 2), (0, 2), (0, 8), (0, 2), (head, 4)],
            );
            directory.extend_from_slice(name.as_bytes());
        }
        let (from, count) = (whole.len(), self.0.len());
        whole.extend_from_slice(&directory);
        put(
            &mut whole,
            &[
                (0x0605_4b50, 4),
                (0, 4),
                (count, 2),
                (count, 2),
                (directory.len(), 4),
            ],
        );
        put(&mut whole, &[(from, 4), (COMMENT_BYTES, 2)]);
        let digest = Sha256::digest(&whole);
        let digits: Vec<String> = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        whole.extend_from_slice(format!("sha256:{}", digits.concat()).as_bytes());
        std::fs::write(path, whole).unwrap();
    }
}

/// An archive of somebody who has something of each kind.
async fn of_everything(person: &Person, folder: &Path) -> Forged {
    some_records(person).await;
    person.post(TAG, &json!({"name": "calm"})).await.must_be(201);
    let annotation = json!({"annotation_type": "moment", "name": "Tea", "description": "", "tags": []});
    person
        .post("/user/v1alpha1/annotation", &annotation)
        .await
        .must_be(201);
    let schema = json!({"properties": {"note": {"type": "string"}}});
    person
        .define(
            "Event",
            &json!({"name": "Cup", "record_spec": {"schema": schema}}),
        )
        .await;
    let schedule = json!({"cron": "0 22 * * *", "start_at": null, "end_at": null, "paused": false,
        "time_zone": "Europe/Berlin"});
    let reflection = json!({"name": "Evening", "schedule": schedule});
    person
        .post("/user/v1alpha1/reflection", &reflection)
        .await
        .must_be(201);
    Forged::of(&archive(person, folder).await)
}

/// Imports it where nothing of it may change.
async fn refused(server: &Almanac, there: &Person, forged: Forged, folder: &Path, expected: &[&str]) {
    let path = folder.join("forged.zip");
    forged.write(&path);
    let (text, status) = import(server, &path, None);
    assert_eq!(status, Some(1), "{expected:?}: {text}");
    for part in expected {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(there.all_samples("HeartRate").await.is_empty(), "{expected:?}");
    for list in [TAG, "/user/v1alpha1/annotation", "/user/v1alpha1/reflection"] {
        assert_eq!(
            there.get(list).await.must_be(200).rows(),
            Vec::<Value>::new(),
            "{expected:?}"
        );
    }
}

#[tokio::test]
async fn records_that_nobody_could_have_sent_are_refused_before_anything_changes() {
    let folder = tempfile::tempdir().unwrap();
    let server = Setup::default().start();
    let person = server.person();
    let sound = of_everything(&person, folder.path()).await;
    let second = Setup::default().start();
    let there = second.person_called(person.id);
    let values = |value: f64| {
        sound.clone().with_column("value", |rows| {
            let mut values = vec![60.0; rows.num_rows()];
            values[7] = value;
            let field = rows.schema().field_with_name("value").unwrap().clone();
            (field, Arc::new(Float64Array::from(values)))
        })
    };
    let extras = |text: &str| {
        sound.clone().with_column("extras", |rows| {
            let mut texts = vec!["{}"; rows.num_rows()];
            texts[7] = text;
            let field = Field::new("extras", arrow::datatypes::DataType::Utf8, true);
            (field, Arc::new(StringArray::from(texts)))
        })
    };
    let ends_first = sound.clone().with_time("end_time", 7, -1);
    for (forged, column) in [
        (sound.clone().with_time("start_time", 7, i64::MIN), "start_time"),
        (sound.clone().with_time("end_time", 7, i64::MAX), "end_time"),
        (ends_first, "end_time"),
        (values(f64::NAN), "value"),
        (values(f64::INFINITY), "value"),
        (extras("[1]"), "extras"),
        (extras("{"), "extras"),
    ] {
        let place = format!("record 8, {column}");
        let expected = ["nothing was changed", HEART_RATE, place.as_str()];
        refused(&second, &there, forged, folder.path(), &expected).await;
    }
    let path = folder.path().join("sound.zip");
    sound.write(&path);
    imported(&second, &path, None);
    assert_eq!(there.all_samples("HeartRate").await.len(), 50);
    assert_eq!(there.get(TAG).await.must_be(200).rows().len(), 1);
}

#[tokio::test]
async fn documents_that_the_interface_would_not_take_are_refused_before_anything_changes() {
    let folder = tempfile::tempdir().unwrap();
    let server = Setup::default().start();
    let person = server.person();
    let sound = of_everything(&person, folder.path()).await;
    let second = Setup::default().start();
    let there = second.person_called(person.id);
    let with_body = |list: &str, body: Value| {
        sound
            .clone()
            .with_list(list, |elements| elements[0]["body"] = body)
    };
    let twice = sound.clone().with_list("tags.json", |tags| {
        let mut other = tags[0].clone();
        other["id"] = json!(uuid::Uuid::now_v7());
        tags.push(other);
    });
    let with_schema = |schema: Value| {
        sound.clone().with_list("data_types.json", |types| {
            types[0]["definition"]["schema"] = schema;
        })
    };
    let elsewhere = json!({"properties": {"note": {"$ref": "https://example.com/note.json"}}});
    let unfinished = json!({"properties": {"note": {"type": "string", "pattern": "("}}});
    let too_long = [b"{\"timezone\": \"", vec![b'a'; 17 << 20].as_slice(), b"\"}"].concat();
    for (forged, member, place) in [
        (
            with_schema(elsewhere),
            "data_types.json",
            "body.record_spec.schema",
        ),
        (
            with_schema(unfinished),
            "data_types.json",
            "body.record_spec.schema",
        ),
        (twice, "tags.json", "element 2"),
        (with_body("tags.json", json!([])), "tags.json", "element 1"),
        (
            with_body("annotations.json", json!({"annotation_type": "mood"})),
            "annotations.json",
            "body.annotation_type",
        ),
        (
            with_body("reflections.json", json!({})),
            "reflections.json",
            "element 1",
        ),
        (
            sound
                .clone()
                .with_bytes("preferences.json", br#"{"timezone": "Mars/Olympus"}"#),
            "preferences.json",
            "body.timezone",
        ),
    ] {
        let expected = ["nothing was changed", member, place];
        refused(&second, &there, forged, folder.path(), &expected).await;
    }
    let forged = sound.clone().with_bytes("preferences.json", &too_long);
    refused(
        &second,
        &there,
        forged,
        folder.path(),
        &["preferences.json", "bytes"],
    )
    .await;
    let empty = [b"[\n".as_slice(), &b"\n".repeat(1_000_000), b"]\n"].concat();
    let forged = sound.with_bytes("tags.json", &empty);
    refused(&second, &there, forged, folder.path(), &["tags.json", "line 2"]).await;
}

#[tokio::test]
async fn an_import_that_skips_everything_counts_all_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let server = Setup::default().start();
    let person = server.person();
    crate::files::put(&person, "/", "note", b"bytes").await;
    crate::files::put(&person, "/", "other", b"more bytes").await;
    let taken = archive(&person, folder.path()).await;
    let members = Forged::of(&taken).0.len() - 1;
    let said = imported(&server, &taken, None);
    let whole = format!("{members} of {members}");
    assert!(said.contains(&whole), "{whole}: {said}");
}
