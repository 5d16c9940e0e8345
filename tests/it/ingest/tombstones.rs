//! Rule 8.3: a tombstone removes what it names, in the commit that accepts it.

use serde_json::{Value, json};

use super::every_read_shows;
use crate::harness::{at, heart_rate, id, number, person, shared, texts};

#[tokio::test]
async fn rule_8_3_a_deleted_record_is_gone_from_every_read() {
    let person = person();
    person.two_heart_rates().await;
    every_read_shows(&person, [Some(60.0), Some(61.0)]).await;
    person.delete("HeartRate", id(2)).await;
    every_read_shows(&person, [Some(60.0), None]).await;
    assert_eq!(
        texts(&person.all_samples("HeartRate").await, "uuid"),
        [id(1).to_string()]
    );
}

#[tokio::test]
async fn rule_8_3_the_other_names_of_the_fields_and_of_the_type() {
    let person = person();
    person.two_heart_rates().await;
    person
        .record(
            "DeletedRecord",
            &json!({"record_id": id(1), "data_type": "HeartRate"}),
        )
        .await
        .upload();
    person
        .record(
            "Tombstone",
            &json!({"deleted_id": id(2), "deleted_type": "HeartRate"}),
        )
        .await
        .upload();
    assert!(person.all_samples("HeartRate").await.is_empty());
}

/// A wrapped tombstone for the heart rate `n`, under one of the names of the type.
fn wrapped(name: &str, n: u32) -> Value {
    let data = json!({"deleted_id": id(n), "deleted_type": "HeartRate"});
    json!({"data": data.to_string(), "metadata": {"data_type": name, "source": [], "tags": []}})
}

#[tokio::test]
async fn rule_8_3_a_wrapped_tombstone_deletes_under_every_name_of_the_type() {
    let person = person();
    for name in ["DeletedRecord", "Tombstone"] {
        let records: Vec<Value> = (1..=4).map(|n| heart_rate(id(n), &at("10:00"), n)).collect();
        person.records("HeartRate", &records).await;
        let one = person.post("/ingest/v1/record", &wrapped(name, 1)).await;
        assert_eq!(one.counts(), [0, 0, 0, 1], "{name}");
        let batch = json!([
            wrapped(name, 2),
            wrapped("DeletedRecord", 3),
            wrapped("Tombstone", 4)
        ]);
        let several = person.post("/ingest/v1/record/batch", &batch).await;
        assert_eq!(several.counts(), [0, 0, 0, 3], "{name}");
        assert!(person.all_samples("HeartRate").await.is_empty(), "{name}");
    }
}

#[tokio::test]
async fn rule_8_3_an_unknown_id_is_ignored() {
    let person = person();
    let before = person.updates("HeartRate").await;
    person.delete("HeartRate", id(1)).await;
    assert!(person.all_samples("HeartRate").await.is_empty());
    assert_eq!(
        person.updates("HeartRate").await,
        before,
        "nothing was deleted, so nothing is counted"
    );
}

#[tokio::test]
async fn rule_8_3_the_wrong_type_deletes_nothing() {
    let person = person();
    person
        .records("HeartRate", &[heart_rate(id(1), &at("10:00"), 60)])
        .await;
    person.delete("StepCount", id(1)).await;
    assert_eq!(person.all_samples("HeartRate").await.len(), 1);
}

#[tokio::test]
async fn rule_8_3_the_id_may_be_used_again() {
    let person = person();
    person
        .records("HeartRate", &[heart_rate(id(1), &at("10:00"), 60)])
        .await;
    person.delete("HeartRate", id(1)).await;
    person
        .records("HeartRate", &[heart_rate(id(1), &at("10:00"), 60)])
        .await;
    assert_eq!(person.all_samples("HeartRate").await.len(), 1);
    person.delete("HeartRate", id(1)).await;
    person.delete("HeartRate", id(1)).await;
    assert!(person.all_samples("HeartRate").await.is_empty());
}

#[tokio::test]
async fn rule_8_3_many_tombstones_in_one_body_over_several_types() {
    let person = person();
    let records: Vec<_> = (0..20).map(|n| heart_rate(id(n), &at("10:00"), n)).collect();
    person.records("HeartRate", &records).await;
    person.records("RestingHeartRate", &records).await;
    let tombstones: Vec<_> = (0..20)
        .map(|n| {
            json!({
                "deleted_id": id(n),
                "deleted_type": if n % 2 == 0 { "HeartRate" } else { "RestingHeartRate" },
            })
        })
        .collect();
    person.records("DeletedRecord", &tombstones).await;
    assert_eq!(person.all_samples("HeartRate").await.len(), 10);
    assert_eq!(person.all_samples("RestingHeartRate").await.len(), 10);
}

#[tokio::test]
async fn rule_8_3_a_base_and_its_own_type_both_name_the_target() {
    let person = person();
    let own = person.define("Event", &json!({"name": "Tea"})).await;
    let cup = |n: u32| json!({"id": id(n), "start_time": at("10:00")});
    person.records(&own, &[cup(1), cup(2), cup(3)]).await;
    person.records("Event", &[cup(4)]).await;

    person
        .record(
            "DeletedRecord",
            &json!({"deleted_id": id(1), "deleted_type": own}),
        )
        .await
        .upload();
    person
        .record(
            "DeletedRecord",
            &json!({"deleted_id": id(2), "deleted_type": "Event"}),
        )
        .await
        .upload();
    person
        .record(
            "DeletedRecord",
            &json!({"deleted_id": id(3), "deleted_type": own.to_uppercase().replace("EVENT", "Event")}),
        )
        .await
        .upload();
    assert!(person.rows("event", &own).await.is_empty());
    person
        .record(
            "DeletedRecord",
            &json!({"deleted_id": id(4), "deleted_type": "Event"}),
        )
        .await
        .upload();
    assert!(person.rows("event", "Event").await.is_empty());
}

#[tokio::test]
async fn rule_8_3_a_definition_names_itself_only_and_one_that_does_not_exist_deletes_nothing() {
    let person = person();
    let tea = person.define("Event", &json!({"name": "Cups of tea"})).await;
    let milk = person.define("Event", &json!({"name": "Milk"})).await;
    let cup = json!({"id": id(1), "start_time": at("10:00")});
    for own in [&tea, &milk] {
        person.records(own, std::slice::from_ref(&cup)).await;
    }
    let moment = json!({"id": id(1), "recorded_at": at("10:00")});
    person.records("MomentAnnotation", &[moment]).await;
    let deleted = async |name: &str| {
        let tombstone = json!({"deleted_id": id(1), "deleted_type": name});
        person.record("DeletedRecord", &tombstone).await.json()["deleted"].clone()
    };
    let unknown = uuid::Uuid::new_v4();
    for base in ["Event", "MomentAnnotation", "Metric"] {
        assert_eq!(deleted(&format!("{base}/{unknown}")).await, 0, "{base}");
    }
    assert_eq!(deleted("Cups of coffee").await, 0);
    assert_eq!(deleted("Cups of tea").await, 1, "by its name");
    assert!(person.rows("event", &tea).await.is_empty());
    assert_eq!(person.rows("event", &milk).await.len(), 1);
    assert_eq!(person.rows("event", "MomentAnnotation").await.len(), 1);
    assert_eq!(deleted(&milk).await, 1);
    assert_eq!(deleted("MomentAnnotation").await, 1);
}

#[tokio::test]
async fn a_name_that_several_types_have_deletes_nothing_and_all_of_them_are_named() {
    let person = person();
    let mut teas = Vec::new();
    for _ in 0..2 {
        let tea = person.define("Event", &json!({"name": "Tea"})).await;
        let cup = json!({"id": id(1), "start_time": at("10:00")});
        person.records(&tea, &[cup]).await;
        teas.push(tea);
    }
    person
        .records("HeartRate", &[heart_rate(id(2), &at("10:00"), 60)])
        .await;
    let tombstone = |n: u32, name: &str| json!({"deleted_id": id(n), "deleted_type": name});
    let by_name = json!({
        "data": tombstone(1, "Tea").to_string(),
        "metadata": {"data_type": "DeletedRecord", "source": [], "tags": []},
    });
    for answer in [
        person.record("DeletedRecord", &tombstone(1, "Tea")).await,
        person
            .lines("DeletedRecord", &[tombstone(2, "HeartRate"), tombstone(1, "Tea")])
            .await,
        person.post("/ingest/v1/record", &by_name).await,
        person
            .post(
                "/ingest/v1/record/batch",
                &json!([wrapped("DeletedRecord", 2), by_name]),
            )
            .await,
    ] {
        let answer = answer.must_be(404).json();
        let detail = answer["detail"].as_str().unwrap();
        assert!(teas.iter().all(|tea| detail.contains(tea)), "{detail}");
    }
    assert_eq!(person.rows("event", "Event").await.len(), 2);
    assert_eq!(person.all_samples("HeartRate").await.len(), 1);
}

#[tokio::test]
async fn a_repeated_tombstone_gets_its_answer_though_its_name_has_become_that_of_several() {
    let person = person();
    let tea = person.define("Event", &json!({"name": "Tea"})).await;
    let cup = json!({"id": id(1), "start_time": at("10:00")});
    person.records(&tea, &[cup]).await;
    let tombstone = json!({"deleted_id": id(1), "deleted_type": "Tea"});
    let sent = |key: &str| {
        let call = person.record("DeletedRecord", &tombstone);
        call.header("idempotency-key", key)
    };
    let first = sent("one").await;
    assert_eq!(first.counts(), [0, 0, 0, 1]);
    person.define("Event", &json!({"name": "Tea"})).await;
    let again = sent("one").await;
    assert_eq!((again.upload(), again.counts()), (first.upload(), first.counts()));
    sent("other").await.must_be(404);
}

#[tokio::test]
async fn rule_8_3_one_body_names_types_in_every_way() {
    let person = person();
    let cup = |n: u32| json!({"id": id(n), "start_time": at("10:00")});
    let mut own = Vec::new();
    // More than are looked up one by one.
    for n in 0..20 {
        let tea = person.define("Event", &json!({"name": format!("Tea {n}")})).await;
        person.records(&tea, &[cup(n), cup(100 + n)]).await;
        own.push(tea);
    }
    person.records("Event", &[cup(200), cup(201)]).await;
    let tombstone = |n: u32, name: &str| json!({"deleted_id": id(n), "deleted_type": name});
    let by_id: Vec<_> = (0..).zip(&own).map(|(n, tea)| tombstone(n, tea)).collect();
    person.records("DeletedRecord", &by_id[..3]).await;
    assert_eq!(person.rows("event", "Event").await.len(), 39);
    person.records("DeletedRecord", &by_id).await;
    assert_eq!(person.rows("event", "Event").await.len(), 22);
    let mixed = [
        tombstone(100, &own[0]),
        tombstone(101, "Tea 1"),
        tombstone(102, "Event"),
        tombstone(200, "Event"),
        tombstone(103, "Tea 4"),
    ];
    person.records("DeletedRecord", &mixed).await;
    assert_eq!(
        person.rows("event", "Event").await.len(),
        18,
        "the last is of another type"
    );
}

#[tokio::test]
async fn a_tombstone_without_a_target_is_422() {
    let person = person();
    for record in [
        json!({}),
        json!({"deleted_id": id(1)}),
        json!({"deleted_type": "HeartRate"}),
        json!({"deleted_id": "x", "deleted_type": "HeartRate"}),
        json!({"deleted_id": id(1), "deleted_type": 5}),
    ] {
        person.record("DeletedRecord", &record).await.faults();
    }
}

#[tokio::test]
async fn rule_8_4_a_bad_tombstone_among_good_ones_deletes_nothing() {
    let person = person();
    person
        .records("HeartRate", &[heart_rate(id(1), &at("10:00"), 60)])
        .await;
    let lines = [
        json!({"deleted_id": id(1), "deleted_type": "HeartRate"}),
        json!({"deleted_id": "rubbish", "deleted_type": "HeartRate"}),
    ];
    let faults = person.lines("DeletedRecord", &lines).await.faults();
    assert!(faults[0].starts_with("body.1."), "{faults:?}");
    assert_eq!(number(&person.all_samples("HeartRate").await[0], "value"), 60.0);
}

#[tokio::test]
async fn rule_8_8_a_tombstone_names_a_type_in_either_spelling() {
    let person = person();
    let own = person.define("Event", &json!({"name": "cafe\u{301}"})).await;
    let visit = |n: u32| json!({"id": id(n), "start_time": at("10:00")});
    person.records(&own, &[visit(1), visit(2)]).await;
    person.delete("cafe\u{301}", id(1)).await;
    person.delete("caf\u{e9}", id(2)).await;
    assert!(person.rows("event", &own).await.is_empty());
}

#[tokio::test]
async fn another_persons_record_cannot_be_deleted() {
    let (owner, other) = (person(), shared().person());
    owner
        .records("HeartRate", &[heart_rate(id(1), &at("10:00"), 60)])
        .await;
    other.delete("HeartRate", id(1)).await;
    assert_eq!(owner.all_samples("HeartRate").await.len(), 1);
}
