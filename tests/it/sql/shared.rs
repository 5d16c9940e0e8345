//! What others share: a schema named by their id, cut to what was granted. What is not shared does not exist.

use serde_json::{Value, json};
use uuid::Uuid;

use super::{query, rows, wrong};
use crate::harness::{ALL_TIME, Backends, Setup, at, heart_rate, id, person, steps, texts};
use crate::sharing::{DATASHARE, share, share_of};

#[tokio::test]
async fn micro_example_of_section_9_a_share_is_a_schema_cut_to_its_windows() {
    for backends in Backends::available() {
        let server = Setup::default().on(backends).start();
        let (owner, reader, stranger) = (server.person(), server.person(), server.person());
        let beats = ["09:00", "10:30", "12:30"];
        let beats: Vec<Value> = (0..)
            .zip(beats)
            .map(|(n, time)| heart_rate(id(n), &at(time), 60.0))
            .collect();
        owner.records("HeartRate", &beats).await;
        owner
            .records("StepCount", &[steps(id(7), &at("09:30"), &at("10:30"), 60.0)])
            .await;
        owner
            .records("Weight", &[heart_rate(id(8), &at("10:30"), 70.0)])
            .await;
        let shared = share(
            &owner,
            &json!({"datashare_name": "some", "svc_data_types": ["HeartRate", "StepCount"],
                "time_start": at("10:00"), "time_end": at("12:00"),
                "permissions": [{"allowed_svc_userid": reader.id}]}),
        )
        .await;
        let shelf = format!("\"{}\"", owner.id);
        let found = rows(
            &reader,
            &format!("SELECT start_date, value, source_properties FROM {shelf}.heart_rate"),
        )
        .await;
        assert_eq!(texts(&found, "start_date"), [at("10:30")]);
        let found = rows(
            &reader,
            &format!("SELECT start_date, end_date, value FROM {shelf}.step_count"),
        )
        .await;
        assert_eq!(
            found,
            [json!({"start_date": at("10:00"), "end_date": at("10:30"), "value": 30.0})]
        );
        // A condition moves no cut.
        let narrow = format!(
            "SELECT value FROM {shelf}.step_count WHERE start_date >= '2024-05-01T10:00:00Z' AND end_date > \
             '2024-05-01T10:20:00Z'"
        );
        assert_eq!(rows(&reader, &narrow).await, [json!({"value": 30.0})]);
        // The log knows before the answer is sent.
        let log = owner
            .get("/user/v1alpha1/access_log")
            .await
            .must_be(200)
            .text()
            .to_owned();
        assert!(log.contains("/data/v1/sql") && log.contains("StepCount"), "{log}");
        let listed = rows(
            &reader,
            &format!(
                "SELECT table_name FROM information_schema.tables WHERE table_schema = '{}' ORDER BY 1",
                owner.id
            ),
        )
        .await;
        assert_eq!(texts(&listed, "table_name"), ["heart_rate", "step_count"]);

        // How much there is besides what is shared is not told either.
        let plan = rows(
            &reader,
            &format!("EXPLAIN ANALYZE SELECT value FROM {shelf}.heart_rate"),
        )
        .await;
        let text = texts(&plan, "plan").join("\n");
        assert!(
            text.contains("AnswerExec") && text.contains("ProjectionExec"),
            "{text}"
        );
        assert!(!text.contains("metrics") && !text.contains("files="), "{text}");
        let read = reader
            .get("/data/v1alpha1/metric/HeartRate")
            .with("svc_userid", &owner.id.to_string())
            .with("start_time", ALL_TIME.0)
            .with("end_time", ALL_TIME.1)
            .with("explain", "analyze");
        let text = read.await.must_be(200).text().to_owned();
        assert!(
            text.contains("ProjectionExec") && !text.contains("metrics"),
            "{text}"
        );

        // Not shared, not there and not anybody's are one answer.
        let ask = |table: String| format!("SELECT * FROM {table}");
        let hidden = wrong(&reader, &ask(format!("{shelf}.weight"))).await;
        let of_nobody = Uuid::new_v4();
        let of_nobody = wrong(&reader, &ask(format!("\"{of_nobody}\".weight")))
            .await
            .replace(&of_nobody.to_string(), "*");
        assert_eq!(hidden.replace(&owner.id.to_string(), "*"), of_nobody);
        let of_stranger = wrong(&stranger, &ask(format!("{shelf}.heart_rate"))).await;
        let not_there = wrong(&stranger, &ask(format!("\"{}\".heart_rate", reader.id))).await;
        assert_eq!(
            of_stranger.replace(&owner.id.to_string(), "*"),
            not_there.replace(&reader.id.to_string(), "*")
        );
        let listed = rows(
            &stranger,
            "SELECT DISTINCT table_schema FROM information_schema.tables",
        )
        .await;
        assert_eq!(texts(&listed, "table_schema"), ["own"]);

        // What is taken back is gone at once.
        reader_loses(&owner, &shared).await;
        query(&reader, &ask(format!("{shelf}.heart_rate")))
            .await
            .must_be(422);
        // The owner's own tables are the reader's nowhere.
        assert!(rows(&reader, "SELECT * FROM heart_rate").await.is_empty());
    }
}

#[tokio::test]
async fn rule_9_2d_a_name_stands_for_what_is_shared_alone() {
    let (owner, reader, stranger) = (person(), person(), person());
    let defined = async |name: &str| {
        let body = json!({"name": name, "record_spec": {"schema": {
            "properties": {"cups": {"type": "integer"}}}}});
        owner.define("Event", &body).await
    };
    let tea = defined("Tea time").await;
    owner
        .record(
            &tea,
            &json!({"start_time": at("10:00"), "end_time": at("10:00"), "cups": 3}),
        )
        .await
        .upload();
    // Shared twice, it is one type all the same.
    share(&owner, &share_of(&[&tea, "HeartRate"], &reader)).await;
    share(&owner, &share_of(&[&tea], &reader)).await;
    let by_name = format!("SELECT cups FROM \"{}\".tea_time", owner.id);
    assert_eq!(rows(&reader, &by_name).await, [json!({"cups": 3})]);
    wrong(&stranger, &by_name).await;
    // Another type of that name changes nothing for as long as it is not shared.
    let other = defined("tea-time").await;
    assert_eq!(rows(&reader, &by_name).await, [json!({"cups": 3})]);
    wrong(&owner, "SELECT cups FROM tea_time").await;
    let hidden = format!("SELECT cups FROM \"{}\".\"tea-time\"", owner.id);
    wrong(&reader, &hidden).await;
    share(&owner, &share_of(&["Event"], &reader)).await;
    wrong(&reader, &by_name).await;
    assert!(rows(&reader, &hidden).await.is_empty(), "{other}");
}

async fn reader_loses(owner: &crate::harness::Person, share: &Value) {
    let id = share["datashare_id"].as_str().unwrap();
    let gone = owner
        .call(reqwest::Method::DELETE, &format!("{DATASHARE}/{id}"))
        .await;
    assert!(matches!(gone.status, 200 | 204), "{gone}");
}
