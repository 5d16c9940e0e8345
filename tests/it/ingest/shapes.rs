//! Rule 8.4: nothing that a caller sent is dropped; what is accepted comes back as it was.

use serde_json::json;

use crate::harness::{ALL_TIME, at, heart_rate, id, number, person};

#[tokio::test]
async fn rule_8_4_undeclared_fields_of_built_in_types_are_kept_as_extras() {
    let person = person();
    let mut record = heart_rate(id(1), &at("10:00"), 60);
    record["mood"] = json!("calm");
    record["nested"] = json!({"a": [1, 2.5, null, {"b": "ü"}], "c": true});
    record["extras"] = json!({"context": 1});
    person.records("HeartRate", &[record]).await;
    let extras = &person.all_samples("HeartRate").await[0]["extras"];
    assert_eq!(extras["mood"], json!("calm"));
    assert_eq!(
        extras["nested"],
        json!({"a": [1, 2.5, null, {"b": "ü"}], "c": true})
    );
    assert_eq!(extras["context"], json!(1));
}

#[tokio::test]
async fn rule_8_4_undeclared_fields_of_own_types_are_kept_as_given() {
    let person = person();
    let own = person.define("Event", &json!({"name": "Tea"})).await;
    person
        .record(
            &own,
            &json!({"id": id(1), "start_time": at("10:00"), "kind": "oolong", "cups": 2, "steeps": [30, 45]}),
        )
        .await
        .upload();
    let row = &person.rows("event", &own).await[0];
    assert_eq!(
        (&row["kind"], &row["cups"], &row["steeps"]),
        (&json!("oolong"), &json!(2), &json!([30, 45])),
        "{row}"
    );
}

#[tokio::test]
async fn rule_8_4_what_an_own_type_gets_under_extras_is_alike_in_all_answers() {
    let person = person();
    let schema = json!({"properties": {"lim": {"type": "number", "maximum": 10}}});
    let own = json!({"name": "Tea", "record_spec": {"schema": schema}});
    let own = person.define("Event", &own).await;
    let record =
        |extras: serde_json::Value| json!({"id": id(1), "start_time": at("10:00"), "extras": extras});
    let refused = person.record(&own, &record(json!({"lim": 99}))).await;
    assert_eq!(refused.must_be(422).faults(), ["body.extras.lim"]);
    let sent = record(json!({"lim": 5, "kind": "oolong", "tags": ["t"]}));
    assert_eq!(person.record(&own, &sent).await.counts(), [1, 0, 0, 0]);
    let row = person.rows("event", &own).await.remove(0);
    assert_eq!(
        (number(&row, "lim"), &row["kind"], &row["tags"]),
        (5.0, &json!("oolong"), &json!(["t"]))
    );
    let column = person.read("event", &own).with("columns", "lim").await;
    assert_eq!(number(&column.must_be(200).rows()[0], "lim"), 5.0);
    let found = person.read("event", &own).with("filter", "lim:5").await;
    assert_eq!(found.must_be(200).rows().len(), 1);
    for again in [row, sent] {
        assert_eq!(
            person.record(&own, &again).await.counts(),
            [0, 0, 1, 0],
            "{again}"
        );
    }
}

#[tokio::test]
async fn numbers_come_back_as_they_were() {
    let person = person();
    let values = [
        0.1 + 0.2,
        1e-300,
        1.797_693_134_862_315_7e308,
        -0.0,
        5e-324,
        123_456_789.123_456_78,
        9_007_199_254_740_993.0,
        1e21,
        f64::from(f32::MIN_POSITIVE),
    ];
    let records: Vec<_> = values
        .iter()
        .enumerate()
        .map(|(n, value)| heart_rate(id(n as u32), &crate::harness::instant(n as u32), *value))
        .collect();
    person.records("HeartRate", &records).await;
    let samples = person.all_samples("HeartRate").await;
    let got: Vec<f64> = samples.iter().map(|sample| number(sample, "value")).collect();
    assert_eq!(got, values);
    person
        .records(
            "HeartRate",
            &[json!({"uuid": id(99), "start_date": at("23:00"), "value": 12})],
        )
        .await;
    assert_eq!(
        number(person.all_samples("HeartRate").await.last().unwrap(), "value"),
        12.0
    );
}

#[tokio::test]
async fn text_comes_back_as_it_was() {
    let person = person();
    let texts = [
        "",
        " ",
        "null",
        "a\"b\\c/d",
        "line\nbreak\r\n",
        "=1+1",
        "\u{1F9D8}\u{200D}\u{2640}\u{FE0F}",
        "e\u{301} é",
        "\u{202e}rtl",
        "' OR 1=1 --",
        "\u{FEFF}bom",
    ];
    for (n, text) in texts.iter().enumerate() {
        let record = json!({
            "id": id(n as u32), "recorded_at": crate::harness::instant(n as u32), "note": text,
            "tags": [text],
        });
        person.record("MomentAnnotation", &record).await.upload();
    }
    let rows = person.rows("event", "MomentAnnotation").await;
    assert_eq!(rows.len(), texts.len());
    for (row, text) in rows.iter().zip(texts) {
        assert_eq!((&row["note"], &row["tags"]), (&json!(text), &json!([text])));
    }
}

#[tokio::test]
async fn microseconds_are_kept_and_finer_fractions_cut() {
    let person = person();
    person
        .records(
            "HeartRate",
            &[heart_rate(id(1), "2024-05-01T10:00:00.1234567891Z", 60)],
        )
        .await;
    let sample = &person.all_samples("HeartRate").await[0];
    assert_eq!(sample["start_date"], json!("2024-05-01T10:00:00.123456Z"));
}

#[tokio::test]
async fn an_instant_may_leave_out_its_end() {
    let person = person();
    person
        .records(
            "HeartRate",
            &[json!({"uuid": id(1), "start_date": at("10:00"), "value": 60})],
        )
        .await;
    let sample = &person.all_samples("HeartRate").await[0];
    assert_eq!(sample["start_date"], sample["end_date"]);
}

#[tokio::test]
async fn visits_of_unknown_arrival_and_departure_keep_their_years() {
    let person = person();
    let visit = json!({
        "uuid": id(1), "arrival_date": "0001-01-01T00:00:00Z", "departure_date": "4001-01-01T00:00:00Z",
        "latitude_degrees": 52.5, "longitude_degrees": 13.4, "horizontal_accuracy_meters": 20.0,
    });
    person.record("PlatformLocationVisit", &visit).await.upload();
    let rows = person.rows("event", "PlatformLocationVisit").await;
    assert!(
        rows[0]["arrival_date"]
            .as_str()
            .unwrap()
            .starts_with("0001-01-01T00:00:00"),
        "{}",
        rows[0]
    );
    assert!(
        rows[0]["departure_date"]
            .as_str()
            .unwrap()
            .starts_with("4001-01-01T00:00:00"),
        "{}",
        rows[0]
    );
}

#[tokio::test]
async fn an_annotation_without_a_moment_is_of_now() {
    let person = person();
    person
        .record("MomentAnnotation", &json!({"id": id(1), "note": "now"}))
        .await
        .upload();
    person
        .record(
            "DurationAnnotation",
            &json!({
                "id": id(2), "recorded_at": {"start_time": at("10:00"), "end_time": at("11:00")},
                "note": "an hour",
            }),
        )
        .await
        .upload();
    let recent = person
        .get("/data/v1alpha1/event/MomentAnnotation")
        .with("start_time", "2025-01-01")
        .with("end_time", ALL_TIME.1)
        .await;
    assert_eq!(recent.must_be(200).rows().len(), 1);
    let inside = person
        .get("/data/v1alpha1/event/DurationAnnotation")
        .with("start_time", &at("10:30"))
        .with("end_time", &at("10:31"))
        .await;
    let row = &inside.must_be(200).rows()[0];
    assert!(
        row["recorded_at"]["start_time"]
            .as_str()
            .unwrap()
            .starts_with("2024-05-01T10:00:00"),
        "{row}"
    );
    assert!(
        row["recorded_at"]["end_time"]
            .as_str()
            .unwrap()
            .starts_with("2024-05-01T11:00:00"),
        "{row}"
    );
}

#[tokio::test]
async fn the_type_may_be_named_with_an_encoded_slash() {
    let person = person();
    let own = person.define("Event", &json!({"name": "Tea"})).await;
    let encoded = own.replace('/', "%2F");
    person
        .record(&encoded, &json!({"id": id(1), "start_time": at("10:00")}))
        .await
        .upload();
    person
        .record(
            &own.to_lowercase().replace("event", "Event").clone(),
            &json!({"id": id(2), "start_time": at("10:01")}),
        )
        .await
        .upload();
    assert_eq!(person.rows("event", &encoded).await.len(), 2);
    assert_eq!(person.rows("event", &own).await.len(), 2);
}

#[tokio::test]
async fn api_version_is_checked_when_given() {
    let person = person();
    person
        .record("HeartRate", &heart_rate(id(1), &at("10:00"), 60))
        .with("api_version", "v0")
        .await
        .upload();
    let reply = person
        .record("HeartRate", &heart_rate(id(2), &at("10:01"), 61))
        .with("api_version", "v9")
        .await;
    let problem = reply.problem(404);
    assert_eq!(problem["detail"], "HeartRate has the version v0, not \"v9\"");
    assert_eq!(person.all_samples("HeartRate").await.len(), 1);
}
