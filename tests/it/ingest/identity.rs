//! Rules 8.1, 8.2 and 8.5: whose record it is, what happens when it comes again, and how changes are counted.

use serde_json::{Value, json};
use uuid::Uuid;

use super::every_read_shows;
use crate::harness::{at, heart_rate, id, number, person, steps, texts};

#[tokio::test]
async fn rule_8_1_the_callers_id_is_kept_under_either_name() {
    let person = person();
    person
        .records("HeartRate", &[heart_rate(id(1), &at("10:00"), 60)])
        .await;
    person
        .records(
            "HeartRate",
            &[json!({"id": id(2), "start_date": at("10:01"), "end_date": at("10:01"), "value": 61})],
        )
        .await;
    let samples = person.all_samples("HeartRate").await;
    assert_eq!(texts(&samples, "uuid"), [id(1).to_string(), id(2).to_string()]);
}

#[tokio::test]
async fn rule_8_1_an_id_in_capitals_is_the_same_id() {
    let person = person();
    person
        .records("HeartRate", &[heart_rate(id(0xabc), &at("10:00"), 60)])
        .await;
    let shouted = id(0xabc).to_string().to_uppercase();
    person
        .records(
            "HeartRate",
            &[json!({"uuid": shouted, "start_date": at("10:00"), "end_date": at("10:00"), "value": 61})],
        )
        .await;
    let samples = person.all_samples("HeartRate").await;
    assert_eq!(samples.len(), 1);
    assert_eq!(samples[0]["uuid"], json!(id(0xabc)));
}

#[tokio::test]
async fn rule_8_1_without_an_id_one_of_version_7_is_made() {
    let person = person();
    let record = json!({"start_date": at("10:00"), "end_date": at("10:00"), "value": 60});
    person.records("HeartRate", &[record.clone(), record]).await;
    let samples = person.all_samples("HeartRate").await;
    assert_eq!(samples.len(), 2, "two records without an id are two records");
    for id in texts(&samples, "uuid") {
        assert_eq!(Uuid::parse_str(&id).unwrap().get_version_num(), 7);
    }
}

#[tokio::test]
async fn rule_8_1_the_same_id_in_two_types_is_two_records() {
    let person = person();
    person
        .records("HeartRate", &[heart_rate(id(1), &at("10:00"), 60)])
        .await;
    person
        .records("StepCount", &[steps(id(1), &at("10:00"), &at("10:05"), 100)])
        .await;
    person.delete("StepCount", id(1)).await;
    assert_eq!(person.all_samples("HeartRate").await.len(), 1);
    assert!(person.all_samples("StepCount").await.is_empty());
}

#[tokio::test]
async fn an_id_used_by_another_person_never_touches() {
    let (mine, theirs) = (person(), person());
    theirs
        .records("HeartRate", &[heart_rate(id(1), &at("10:00"), 60)])
        .await;
    mine.records("HeartRate", &[heart_rate(id(1), &at("10:00"), 90)])
        .await;
    assert_eq!(number(&theirs.all_samples("HeartRate").await[0], "value"), 60.0);
    mine.delete("HeartRate", id(1)).await;
    assert!(mine.all_samples("HeartRate").await.is_empty());
    assert_eq!(number(&theirs.all_samples("HeartRate").await[0], "value"), 60.0);
}

/// Both forms of a body: few lines wait in memory, many go straight into objects.
const FEW_AND_MANY: [u32; 2] = [1, 4200];

#[tokio::test]
async fn rule_8_2_what_is_sent_again_without_a_time_keeps_the_time_it_has() {
    for (first, again) in [FEW_AND_MANY, [4200, 1], [1, 1]].map(|[first, again]| (first, again)) {
        let person = person();
        let lines = |count: u32, note: &str| {
            (1..=count)
                .map(|n| json!({"id": id(n), "note": note}))
                .collect::<Vec<_>>()
        };
        person.records("MomentAnnotation", &lines(first, "x")).await;
        let row_one = async || {
            let rows = person.rows("event", "MomentAnnotation").await;
            rows.into_iter().find(|row| row["id"] == json!(id(1))).unwrap()
        };
        let (stored, counted) = (row_one().await, person.updates("MomentAnnotation").await);
        person.records("MomentAnnotation", &lines(again, "x")).await;
        let new = i64::from(again.saturating_sub(first));
        assert_eq!(
            person.updates("MomentAnnotation").await,
            counted + new,
            "{first} then {again}"
        );
        assert_eq!(row_one().await, stored, "{first} then {again}");
        person.records("MomentAnnotation", &lines(1, "y")).await;
        let changed = row_one().await;
        assert_eq!(
            (&changed["recorded_at"], &changed["note"]),
            (&stored["recorded_at"], &json!("y"))
        );
        let dated = json!({"id": id(1), "note": "y", "recorded_at": at("10:00")});
        person
            .records("MomentAnnotation", std::slice::from_ref(&dated))
            .await;
        person.records("MomentAnnotation", &lines(1, "y")).await;
        let moved = row_one().await;
        assert_ne!(
            moved["recorded_at"], stored["recorded_at"],
            "a time that is sent counts"
        );
    }
}

#[tokio::test]
async fn rule_8_2_lines_of_one_body_follow_each_other_in_time_too() {
    let person = person();
    let lines = [
        json!({"id": id(1), "note": "a", "recorded_at": at("10:00")}),
        json!({"id": id(1), "note": "b"}),
        json!({"id": id(2), "note": "c", "recorded_at": at("11:00")}),
    ];
    person.records("MomentAnnotation", &lines).await;
    let rows = person.rows("event", "MomentAnnotation").await;
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0]["note"], json!("b"));
    let asked = person
        .get("/data/v1alpha1/event/MomentAnnotation")
        .with("start_time", &at("09:00"))
        .with("end_time", &at("10:30"))
        .await
        .must_be(200)
        .rows();
    assert_eq!(asked.len(), 1, "the time of the line before: {asked:?}");
}

#[tokio::test]
async fn rule_8_2_a_deleted_record_leaves_no_time_behind() {
    let person = person();
    person
        .records(
            "MomentAnnotation",
            &[json!({"id": id(1), "note": "a", "recorded_at": at("10:00")})],
        )
        .await;
    person.delete("MomentAnnotation", id(1)).await;
    person
        .records("MomentAnnotation", &[json!({"id": id(1), "note": "a"})])
        .await;
    let asked = person
        .get("/data/v1alpha1/event/MomentAnnotation")
        .with("start_time", &at("09:00"))
        .with("end_time", &at("10:30"))
        .await
        .must_be(200)
        .rows();
    assert!(asked.is_empty(), "{asked:?}");
}

#[tokio::test]
async fn rule_8_2_the_same_content_is_no_op() {
    let person = person();
    person
        .records("HeartRate", &[heart_rate(id(1), &at("10:00"), 60)])
        .await;
    let before = person.updates("HeartRate").await;
    person
        .records("HeartRate", &[heart_rate(id(1), &at("10:00"), 60)])
        .await;
    assert_eq!(person.updates("HeartRate").await, before);
    assert_eq!(person.all_samples("HeartRate").await.len(), 1);
}

#[tokio::test]
async fn rule_8_2_other_content_replaces_wholly() {
    let person = person();
    let mut record = heart_rate(id(1), &at("10:00"), 60);
    record["extras"] = json!({"context": "sitting"});
    record["source_properties"] = json!({"name": "Watch"});
    person.records("HeartRate", &[record]).await;
    person
        .records("HeartRate", &[heart_rate(id(1), &at("12:00"), 70)])
        .await;
    assert!(
        person
            .samples("HeartRate", &at("09:00"), &at("11:00"))
            .await
            .is_empty(),
        "the old moment still shows it"
    );
    let samples = person.all_samples("HeartRate").await;
    assert_eq!(samples.len(), 1);
    assert_eq!(number(&samples[0], "value"), 70.0);
    assert!(
        samples[0]["source_properties"].is_null() || samples[0]["source_properties"]["name"].is_null(),
        "{}",
        samples[0]
    );
    assert!(
        samples[0]["extras"].is_null() || samples[0]["extras"] == json!({}),
        "{}",
        samples[0]
    );
}

#[tokio::test]
async fn rule_8_2_a_version_comes_back_as_the_numbers_that_it_is_read_as() {
    let person = person();
    let mut sent = heart_rate(id(1), &at("10:00"), 60);
    sent["source_properties"] =
        json!({"name": "Watch", "operatingSystemVersion": "Version 17.5 (Build 21F90)"});
    assert_eq!(person.record("HeartRate", &sent).await.counts(), [1, 0, 0, 0]);
    let mut read = person.all_samples("HeartRate").await.remove(0);
    assert_eq!(
        read["source_properties"]["operatingSystemVersion"],
        json!([17, 5])
    );
    // The second shows that the first left the text as it was.
    for again in [&read, &sent] {
        assert_eq!(
            person.record("HeartRate", again).await.counts(),
            [0, 0, 1, 0],
            "{again}"
        );
    }
    read["source_properties"]["operatingSystemVersion"] = json!([17, 6]);
    assert_eq!(person.record("HeartRate", &read).await.counts(), [0, 1, 0, 0]);
}

#[tokio::test]
async fn rule_8_2_inside_one_body_the_last_line_wins() {
    let person = person();
    let versions: Vec<Value> = (0..50).map(|n| heart_rate(id(1), &at("10:00"), n)).collect();
    person.records("HeartRate", &versions).await;
    let samples = person.all_samples("HeartRate").await;
    assert_eq!(samples.len(), 1);
    assert_eq!(number(&samples[0], "value"), 49.0);
}

#[tokio::test]
async fn rule_8_2_a_replacement_reaches_every_kind_of_read() {
    let person = person();
    person.two_heart_rates().await;
    every_read_shows(&person, [Some(60.0), Some(61.0)]).await;
    person
        .records("HeartRate", &[heart_rate(id(2), &at("10:01"), 99)])
        .await;
    every_read_shows(&person, [Some(60.0), Some(99.0)]).await;
    person
        .records("HeartRate", &[heart_rate(id(1), &at("10:00"), 98)])
        .await;
    every_read_shows(&person, [Some(98.0), Some(99.0)]).await;
}

#[tokio::test]
async fn rule_8_8_the_worked_example_of_uploads_and_updates() {
    let person = person();
    let record = |value: u32| heart_rate(id(1), &at("10:00"), value);
    let mut seen = Vec::new();
    let mut counted = Vec::new();
    for step in 0..5 {
        let before = person.updates("HeartRate").await;
        match step {
            0 | 1 => person.records("HeartRate", &[record(5)]).await,
            2 => person.records("HeartRate", &[record(6)]).await,
            3 => person.delete("HeartRate", id(1)).await,
            _ => person.records("HeartRate", &[record(7)]).await,
        };
        seen.push(
            person
                .all_samples("HeartRate")
                .await
                .first()
                .map(|sample| number(sample, "value")),
        );
        counted.push(person.updates("HeartRate").await - before);
    }
    assert_eq!(seen, [Some(5.0), Some(5.0), Some(6.0), None, Some(7.0)]);
    assert_eq!(counted, [1, 0, 1, 1, 1]);
}

#[tokio::test]
async fn rule_8_5_late_data_appears_in_old_ranges() {
    let person = person();
    person
        .records("HeartRate", &[heart_rate(id(1), &at("10:00"), 60)])
        .await;
    person
        .records(
            "HeartRate",
            &[heart_rate(id(2), "1999-12-31T23:59:59.999999Z", 61)],
        )
        .await;
    let old = person.samples("HeartRate", "1999-01-01", "2000-01-01").await;
    assert_eq!(texts(&old, "uuid"), [id(2).to_string()]);
}

#[tokio::test]
async fn every_request_gets_an_upload_id_of_its_own() {
    let person = person();
    let first = person
        .records("HeartRate", &[heart_rate(id(1), &at("10:00"), 60)])
        .await;
    let second = person
        .records("HeartRate", &[heart_rate(id(1), &at("10:00"), 60)])
        .await;
    assert_ne!(first, second);
}
