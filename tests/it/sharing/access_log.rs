//! What the owner is told of what others read (rule 9.2g).

use std::time::Duration;

use serde_json::{Value, json};

use super::{group, join, share, share_of};
use crate::harness::{Person, at, heart_rate, id, person};
use crate::sql;

const LOG: &str = "/user/v1alpha1/access_log";

async fn entries(owner: &Person) -> Vec<Value> {
    let page = owner.get(LOG).await.must_be(200).json();
    page["entries"].as_array().unwrap().clone()
}

/// The entries once none of them waits for its end.
pub(super) async fn ended(owner: &Person) -> Vec<Value> {
    for _ in 0..200 {
        let found = entries(owner).await;
        if found.iter().all(|entry| entry["outcome"] != "begun") {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("an entry was never ended: {:?}", entries(owner).await);
}

#[tokio::test]
async fn the_owner_is_told_who_read_what_by_which_grant_and_how_many_rows() {
    let (owner, reader) = (person(), person());
    let rates = [
        heart_rate(id(1), &at("10:30"), 61),
        heart_rate(id(2), &at("12:30"), 62),
    ];
    owner.records("HeartRate", &rates).await;
    let mut body = share_of(&["HeartRate"], &reader);
    body["time_start"] = json!(at("10:00"));
    body["time_end"] = json!(at("12:00"));
    let given = share(&owner, &body).await;
    let path = format!("/data/v0/{}/metric_samples", owner.id);
    let ask = |who: &Person| {
        who.get(&path)
            .with("metric", "HeartRate")
            .with("start_time", &at("08:00"))
            .with("end_time", &at("14:00"))
    };
    assert_eq!(ask(&reader).await.must_be(200).rows().len(), 1);
    // What is one's own, and what is refused, is nobody's reading.
    ask(&owner).await.must_be(200);
    ask(&person()).await.problem(403);
    let log = ended(&owner).await;
    assert_eq!(log.len(), 2, "{log:?}");
    let (read, shared) = (&log[0], &log[1]);
    assert_eq!(read["actor_svc_userid"], json!(reader.id));
    assert_eq!(
        (&read["row_count"], &read["outcome"]),
        (&json!(1), &json!("answered"))
    );
    assert_eq!(
        read["detail"],
        json!({
            "event": "read", "endpoint": "GET /data/v0/{svc_userid}/metric_samples", "group_id": null,
            "reads": [{
                "kind": "records", "svc_data_types": ["HeartRate"],
                "requested": "2024-05-01T08:00:00Z/2024-05-01T14:00:00Z",
                "effective": ["2024-05-01T10:00:00Z/2024-05-01T12:00:00Z"],
                "grant_ids": [given["permissions"][0]["grant_id"]],
            }],
        })
    );
    assert_eq!(shared["detail"]["event"], "datashare_created");
    assert_eq!(shared["detail"]["datashare_id"], given["datashare_id"]);
    assert_eq!(
        (&shared["actor_svc_userid"], &shared["outcome"]),
        (&json!(owner.id), &json!("done"))
    );
    assert_eq!(
        ended(&reader).await,
        [Value::Null; 0],
        "the log is the owner's alone"
    );
}

#[tokio::test]
async fn what_an_error_could_tell_is_told_to_the_owner_too() {
    let (owner, reader) = (person(), person());
    let rate = heart_rate(id(1), &at("10:30"), 61);
    owner.records("HeartRate", &[rate]).await;
    share(&owner, &share_of(&["HeartRate"], &reader)).await;
    let beats = format!(
        "SELECT string_agg(CAST(value AS TEXT), ',') FROM \"{}\".heart_rate",
        owner.id
    );
    let query = format!("SELECT CAST(({beats}) || 'x' AS INT)");
    reader
        .post("/data/v1/sql", &json!({"query": query}))
        .await
        .must_be(422);
    let log = ended(&owner).await;
    assert_eq!(
        (log.len(), &log[0]["outcome"], &log[0]["actor_svc_userid"]),
        (2, &json!("failed"), &json!(reader.id)),
        "{log:?}"
    );
    assert_eq!(
        log[0]["detail"]["reads"][0]["svc_data_types"],
        json!(["HeartRate"])
    );
}

#[tokio::test]
async fn every_change_of_a_share_is_kept_and_who_made_it() {
    let (owner, reader) = (person(), person());
    let given = share(&owner, &share_of(&["HeartRate"], &reader)).await;
    owner
        .put(&super::at(&given), &json!({"datashare_name": "Renamed"}))
        .await
        .must_be(200);
    let grant = given["permissions"][0]["grant_id"].as_str().unwrap();
    let dataset = format!("{}/{grant}", super::DATASET);
    reader.call(reqwest::Method::DELETE, &dataset).await.must_be(204);
    owner
        .call(reqwest::Method::DELETE, &super::at(&given))
        .await
        .must_be(204);
    let log = ended(&owner).await;
    let told: Vec<(&str, &Value)> = log
        .iter()
        .map(|entry| {
            (
                entry["detail"]["event"].as_str().unwrap(),
                &entry["actor_svc_userid"],
            )
        })
        .collect();
    let (by_owner, by_reader) = (json!(owner.id), json!(reader.id));
    assert_eq!(
        told,
        [
            ("datashare_removed", &by_owner),
            ("grant_ended", &by_reader),
            ("datashare_changed", &by_owner),
            ("datashare_created", &by_owner),
        ]
    );
    assert!(log.iter().all(|entry| entry["outcome"] == "done"), "{log:?}");
    // Who received it is told again only where that changed.
    let receivers: Vec<&Value> = log
        .iter()
        .map(|entry| &entry["detail"]["allowed_svc_userids"])
        .collect();
    assert_eq!(
        receivers,
        [&json!([]), &json!([]), &Value::Null, &json!([reader.id])]
    );
}

#[tokio::test]
async fn the_owner_of_a_group_is_told_of_as_such() {
    let (owner, member) = (person(), person());
    member
        .records("HeartRate", &[heart_rate(id(1), &at("10:30"), 61)])
        .await;
    let body = json!({"title": "Study", "is_public": true, "svc_data_types": ["HeartRate"]});
    let study = group(&owner, &body).await;
    let participant = join(&member, &study).await;
    owner
        .get(&format!(
            "/data/v0/pool/{study}/participant/{participant}/metric_samples"
        ))
        .with("metric", "HeartRate")
        .with("start_time", &at("08:00"))
        .with("end_time", &at("14:00"))
        .await
        .must_be(200);
    let log = ended(&member).await;
    assert_eq!(log.len(), 1, "{log:?}");
    assert_eq!(log[0]["detail"]["group_id"], json!(study));
    assert_eq!(log[0]["row_count"], json!(1));
}

#[tokio::test]
async fn the_log_is_read_page_by_page_newest_first() {
    let (owner, reader) = (person(), person());
    share(&owner, &share_of(&["HeartRate"], &reader)).await;
    for _ in 0..4 {
        reader
            .get("/data/v1alpha1/event/HeartRate/summary")
            .with("svc_userid", &owner.id.to_string())
            .await
            .must_be(200);
    }
    let all = ended(&owner).await;
    assert_eq!(all.len(), 5);
    let mut paged = Vec::new();
    let mut before = None::<String>;
    loop {
        let mut call = owner.get(LOG).with("limit", "2");
        if let Some(before) = &before {
            call = call.with("before", before);
        }
        let page = call.await.must_be(200).json();
        paged.extend(page["entries"].as_array().unwrap().clone());
        match page["next"].as_str() {
            Some(next) => before = Some(next.to_owned()),
            None => break,
        }
    }
    assert_eq!(paged, all);
    for (limit, next) in [("4", &all[3]["id"]), ("5", &Value::Null), ("6", &Value::Null)] {
        let page = owner.get(LOG).with("limit", limit).await.must_be(200).json();
        assert_eq!(&page["next"], next, "a page of {limit}");
    }
    for (name, value) in [
        ("limit", "0"),
        ("limit", "1001"),
        ("limit", "many"),
        ("before", "yesterday"),
    ] {
        let refused = owner.get(LOG).with(name, value).await.faults();
        assert!(
            refused.iter().all(|place| *place == format!("query.{name}")),
            "{refused:?}"
        );
    }
}

#[tokio::test]
async fn a_catalogue_with_what_others_share_is_in_their_logs() {
    let (owner, silent, reader) = (person(), person(), person());
    let given = share(&owner, &share_of(&["HeartRate"], &reader)).await;
    share(&silent, &share_of(&["StepCount"], &reader)).await;
    let catalogue = || reader.get("/data/v1/catalog");
    // Nothing of what is shared is in this answer.
    let listed = catalogue().with("category", "user_configured");
    assert!(listed.await.must_be(200).rows().is_empty());
    assert_eq!(ended(&owner).await.len(), 1);
    let listed = catalogue()
        .with("data_type", "HeartRate")
        .await
        .must_be(200)
        .rows();
    assert_eq!(listed.len(), 2, "{listed:?}");
    let log = ended(&owner).await;
    assert_eq!(log.len(), 2, "{log:?}");
    assert_eq!(
        (&log[0]["actor_svc_userid"], &log[0]["outcome"]),
        (&json!(reader.id), &json!("answered"))
    );
    let read = &log[0]["detail"]["reads"][0];
    assert_eq!(
        (
            &log[0]["detail"]["endpoint"],
            &read["kind"],
            &read["svc_data_types"]
        ),
        (
            &json!("GET /data/v1/catalog"),
            &json!("listing"),
            &json!(["HeartRate"])
        )
    );
    assert_eq!(read["grant_ids"], json!([given["permissions"][0]["grant_id"]]));
    assert_eq!(ended(&silent).await.len(), 1, "only the share itself");
    catalogue().await.must_be(200);
    assert_eq!((ended(&owner).await.len(), ended(&silent).await.len()), (3, 2));
}

#[tokio::test]
async fn rule_9_2g_tables_that_others_share_are_listed_in_their_logs() {
    let (owner, reader) = (person(), person());
    let given = share(&owner, &share_of(&["HeartRate"], &reader)).await;
    sql::rows(&reader, "SELECT count(*) AS n FROM heart_rate").await;
    assert_eq!(ended(&owner).await.len(), 1, "only the share itself");
    let twice = "SELECT table_name FROM information_schema.tables WHERE table_schema <> 'own' AND \
                 table_name IN (SELECT table_name FROM information_schema.columns)";
    let listed = sql::rows(&reader, twice).await;
    assert_eq!(listed, [json!({"table_name": "heart_rate"})]);
    let log = ended(&owner).await;
    assert_eq!(
        (log.len(), &log[0]["outcome"]),
        (2, &json!("answered")),
        "{log:?}"
    );
    let detail = &log[0]["detail"];
    assert_eq!(detail["endpoint"], json!("POST /data/v1/sql"));
    let [read] = detail["reads"].as_array().unwrap().as_slice() else {
        panic!("it was read once: {detail}");
    };
    assert_eq!(
        (&read["kind"], &read["svc_data_types"]),
        (&json!("listing"), &json!(["HeartRate"]))
    );
    assert_eq!(read["grant_ids"], json!([given["permissions"][0]["grant_id"]]));
}

#[tokio::test]
async fn rule_9_2g_events_of_a_calendar_are_logged_for_the_time_that_was_asked_for() {
    let (owner, reader) = (person(), person());
    share(&owner, &share_of(&["CalendarEvent"], &reader)).await;
    let reply = reader
        .get(&format!("/data/v0/{}/calendar_events", owner.id))
        .with("start_time", &at("10:00"))
        .with("end_time", &at("11:00"))
        .await
        .must_be(200);
    let asked = "2024-05-01T10:00:00Z/2024-05-01T11:00:00Z";
    assert_eq!(reply.header("x-svc-effective-range"), Some(asked));
    let log = ended(&owner).await;
    let read = &log[0]["detail"]["reads"][0];
    assert_eq!(
        (&read["requested"], &read["effective"]),
        (&json!(asked), &json!([asked]))
    );
}
