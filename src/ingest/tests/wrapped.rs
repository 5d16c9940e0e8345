use serde_json::json;

use super::*;
use crate::ingest::legacy::{LegacyRecord, unwrap_batch, unwrap_one};
use std::ops::ControlFlow;

/// All records of a body, or all faults.
pub(super) fn batch(body: &[u8]) -> Result<Vec<LegacyRecord>, Vec<Fault>> {
    let (mut records, mut faults) = (Vec::new(), Vec::new());
    unwrap_batch(body, |record| {
        match record {
            Ok(record) => records.push(record),
            Err(found) => faults.extend(found),
        }
        ControlFlow::Continue(())
    })?;
    if faults.is_empty() {
        Ok(records)
    } else {
        Err(faults)
    }
}

/// The record inside, as today's form has it.
fn unwrapped(wrapped: &serde_json::Value) -> serde_json::Value {
    let record = unwrap_one(wrapped.to_string().as_bytes()).unwrap();
    serde_json::from_slice(&record.json_for(&data_type(&record.data_type))).unwrap()
}

#[test]
fn what_the_wrapper_says_goes_where_the_type_has_it() {
    let metadata = json!({
        "data_type": "HeartRate", "content_type": "application/json", "id": "0191f0c4-5b1e-7c3a-9d52-6f1a2b3c4d5e",
        "recorded_at": {"start_time": "2024-05-01T10:00:00Z", "end_time": "2024-05-01T10:01:00Z"}, "source": ["com.example.app"], "tags": ["x"],
    });
    let found = unwrapped(&json!({"data": "72", "metadata": metadata, "specversion": 1}));
    let expected = json!({
        "value": 72, "id": "0191f0c4-5b1e-7c3a-9d52-6f1a2b3c4d5e", "start_date": "2024-05-01T10:00:00Z", "end_date": "2024-05-01T10:01:00Z",
        "sources": ["com.example.app"], "tags": ["x"],
    });
    assert_eq!(found, expected);
    assert_eq!(
        stored("HeartRate", &found.to_string(), "source"),
        "com.example.app"
    );
}

#[test]
fn what_the_record_says_itself_counts_first() {
    let data = json!({"id": "0191f0c4-5b1e-7c3a-9d52-6f1a2b3c4d5e", "recorded_at": "2024-05-01T10:00:00Z", "note": "x", "tags": ["own"]});
    let metadata = json!({"data_type": "MomentAnnotation", "id": "0191f0c4-5b1e-7c3a-9d52-000000000000", "recorded_at": "2020-01-01", "source": [], "tags": ["other"]});
    assert_eq!(
        unwrapped(&json!({"data": data.to_string(), "metadata": metadata})),
        data
    );
}

#[test]
fn a_moment_takes_the_time_of_its_wrapper() {
    let metadata = json!({"data_type": "PlatformLocationUpdate", "recorded_at": "2024-05-01T10:00:00Z"});
    let found = unwrapped(&json!({"data": "{\"latitude_degrees\": 1.50}", "metadata": metadata}));
    assert_eq!(
        found,
        json!({"latitude_degrees": 1.5, "timestamp": "2024-05-01T10:00:00Z"})
    );
}

#[test]
fn plain_text_is_a_note() {
    let metadata = json!({"data_type": "MomentAnnotation", "content_type": "text/plain"});
    assert_eq!(
        unwrapped(&json!({"data": "walked", "metadata": metadata})),
        json!({"note": "walked"})
    );
}

#[test]
fn a_batch_is_an_array_or_lines() {
    let wrapped = json!({"data": "{\"note\":\"x\"}", "metadata": {"data_type": "MomentAnnotation"}});
    for (body, places) in [
        (json!([wrapped, wrapped]).to_string(), [0, 1]),
        (format!("{wrapped}\n\n{wrapped}\n"), [0, 2]),
    ] {
        let found = batch(body.as_bytes()).unwrap();
        assert_eq!(
            found.iter().map(|record| record.place).collect::<Vec<_>>(),
            places.map(Place::Line)
        );
    }
    assert_eq!(
        batch(serde_json::to_string_pretty(&wrapped).unwrap().as_bytes())
            .unwrap()
            .len(),
        1
    );
    assert!(batch(b"[").is_err());
}

#[test]
fn faults_of_a_wrapper_carry_their_place() {
    let places = |body: &str| {
        let faults = batch(body.as_bytes()).expect_err(body);
        faults
            .iter()
            .map(|fault| (place(fault), fault.kind))
            .collect::<Vec<_>>()
    };
    let named = |place: &str, kind| (place.to_owned(), kind);
    assert_eq!(
        places("[{}]"),
        [
            named("body.0.metadata", "missing"),
            named("body.0.data", "missing")
        ]
    );
    assert_eq!(
        places(r#"[{"data":{},"metadata":{"data_type":"X"}}]"#),
        [named("body.0.data", "type")]
    );
    assert_eq!(
        places(r#"[{"data":"{\"value\": nope}","metadata":{"data_type":"X"}}]"#),
        [named("body.0.data.value", "json")]
    );
    assert_eq!(
        places(r#"[{"data":"1","metadata":{}}]"#),
        [named("body.0.metadata.data_type", "missing")]
    );
    assert_eq!(
        places(r#"[{"data":"1","metadata":{"data_type":"X","recorded_at":"soon","tags":[1]}}]"#),
        [
            named("body.0.metadata.recorded_at", "format"),
            named("body.0.metadata.tags", "type")
        ]
    );
    assert_eq!(
        places("{\"data\":\"1\",\"metadata\":{\"data_type\":\"X\"}}\nnope"),
        [named("body.1", "json")]
    );
}
