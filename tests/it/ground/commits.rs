//! A body happens wholly or not at all, once, whoever else is at work and whatever the database fails to say.

use std::time::Duration;

use serde_json::{Value, json};
use sqlx::{Connection as _, Executor as _, SqliteConnection};

use crate::harness::{Almanac, Backends, Forwarder, Person, Setup, heart_rate, id, instant, jsonl, number};

use super::slowly::Sending;

pub(super) const ROWS: u32 = 6000;

fn records(of: std::ops::Range<u32>, value: u32) -> Vec<Value> {
    of.map(|n| heart_rate(id(n), &instant(n), value)).collect()
}

pub(super) async fn values(person: &Person) -> Vec<f64> {
    let samples = person.samples("HeartRate", "2024-05-01", "2024-06-01").await;
    samples.iter().map(|sample| number(sample, "value")).collect()
}

/// A person with a body stored, and the same body, longer by as many new records, half sent: the server has
/// held it against what is stored.
pub(super) async fn half_sent(server: &Almanac) -> (Person, Sending, String) {
    let person = server.person();
    person.records("HeartRate", &records(0..ROWS, 60)).await;
    let stored = server.until_objects(1).await.len();
    let body = jsonl(&records(0..2 * ROWS, 60));
    let mut sending = Sending::open(server, &person, "HeartRate", body.len()).await;
    let (first, rest) = body.split_at(body.len() * 3 / 4);
    assert!(sending.send(first).await);
    server.until_objects(stored + 1).await;
    (person, sending, rest.to_owned())
}

/// A little memory for bodies makes small chunks, so that much of a body is looked at before all of it came.
pub(super) fn in_small_chunks() -> Setup {
    Setup::default()
        .with("ALMANAC_BODY_MEMORY", "4MiB")
        // The rest of a body comes when the test has seen what it waits for, on however busy a machine.
        .with("ALMANAC_SLOW_CLIENT_LIMIT", "10m")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_that_was_stored_already_and_is_deleted_before_the_commit_is_stored_again() {
    for setup in [in_small_chunks().no_upkeep(), in_small_chunks().busy_upkeep()] {
        let server = setup.start();
        let (person, mut sending, rest) = half_sent(&server).await;
        for n in [0, 17, 2000] {
            person.delete("HeartRate", id(n)).await;
        }
        assert!(sending.send(&rest).await);
        let (status, answer) = sending.answer().await;
        assert_eq!(status, 201, "{answer}");
        assert_eq!(values(&person).await, vec![60.0; 2 * ROWS as usize]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_that_was_stored_already_and_is_replaced_before_the_commit_is_replaced_again() {
    let server = in_small_chunks().no_upkeep().start();
    let (person, mut sending, rest) = half_sent(&server).await;
    person.records("HeartRate", &records(0..10, 99)).await;
    assert!(sending.send(&rest).await);
    let (status, answer) = sending.answer().await;
    assert_eq!(status, 201, "{answer}");
    assert_eq!(values(&person).await, vec![60.0; 2 * ROWS as usize]);
}

#[tokio::test]
async fn u_0000_is_refused_wherever_text_is_stored() {
    for backends in Backends::available() {
        let server = Setup::default().no_upkeep().on(backends).start();
        let person = server.person();
        let mut samples = vec![heart_rate(id(1), &instant(1), 60); 4];
        samples[0]["sources"] = json!(["com.example\0"]);
        samples[1]["note"] = json!({"deep": ["a\0b"]});
        samples[2]["a\0b"] = json!(1);
        samples[3]["device_properties"] = json!({"model": "x\0"});
        for sample in &samples {
            let faults = person.record("HeartRate", sample).await.faults();
            assert!(faults[0].starts_with("body."), "{faults:?}");
        }
        let definition = json!({"name": "with\0nul", "description": "d"});
        let refused = person.post("/input/v1/data_type/Event", &definition).await;
        assert!(refused.faults().contains(&"body.name".to_owned()), "{refused}");
        let named =
            json!({"data": "{\"value\": 1, \"x\": \"a\\u0000\"}", "metadata": {"data_type": "HeartRate"}});
        person.post("/ingest/v1/record", &named).await.faults();
        // What only looks like it is text like any other.
        samples[0]["sources"] = json!(["com.example\\u0000"]);
        person.record("HeartRate", &samples[0]).await.upload();
    }
}

/// The damage: the bytes of one person's tail change under the service.
async fn damage_the_tail_of(server: &Almanac, person: &Person) {
    let path = server.data_dir().join("catalogue.db");
    let mut connection = SqliteConnection::connect(&format!("sqlite://{}", path.display()))
        .await
        .unwrap();
    let pieces = format!(
        "SELECT piece FROM pieces WHERE path IS NULL AND data_type = 'HeartRate' AND hex(person) = '{}'",
        person.id.simple().to_string().to_uppercase()
    );
    let changed = connection
        .execute(sqlx::AssertSqlSafe(format!(
            "UPDATE blobs SET blob = zeroblob(length(blob)) WHERE piece IN ({pieces})"
        )))
        .await
        .unwrap();
    assert_eq!(changed.rows_affected(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_partition_fails_the_writes_to_it_and_no_others() {
    let setup = || {
        Setup::default()
            .no_upkeep()
            .with("ALMANAC_COMMIT_WINDOW", "200ms")
    };
    let server = setup().start();
    let (victim, other) = (server.person(), server.person());
    victim.records("HeartRate", &records(0..1, 60)).await;
    damage_the_tail_of(&server, &victim).await;
    server.restart();
    let write = |person: &Person, data_type: &str, n: u32| {
        let record = heart_rate(id(n), &instant(n), 70);
        let call = person.record(data_type, &record);
        async move { call.await }
    };
    let (broken, same_person, other_person) = tokio::join!(
        write(&victim, "HeartRate", 2),
        write(&victim, "RestingHeartRate", 2),
        write(&other, "HeartRate", 2)
    );
    assert_eq!(broken.status, 500, "{broken}");
    same_person.upload();
    other_person.upload();
    assert!(server.metrics().await.sum(&["almanac_store_corrupt_total"]) >= 1.0);
}

/// A server on PostgreSQL with a wire to it.
async fn wired() -> Option<(Almanac, Forwarder)> {
    let backends = Backends::networked()?;
    let database_url = backends.setting("ALMANAC_DATABASE_URL").to_owned();
    let authority = database_url
        .split_once("://")
        .unwrap()
        .1
        .split('/')
        .next()
        .unwrap();
    let address = authority.rsplit('@').next().unwrap().to_owned();
    let database = Forwarder::to(&address).await;
    let near = format!("127.0.0.1:{}", database.port());
    let backends = backends.with("ALMANAC_DATABASE_URL", &database_url.replace(&address, &near));
    // Started aside, because the wire works on this runtime.
    let server = tokio::task::spawn_blocking(move || Setup::default().no_upkeep().on(backends).start())
        .await
        .unwrap();
    Some((server, database))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_commit_whose_answer_is_lost_is_found_out() {
    let Some((server, database)) = wired().await else {
        return;
    };
    let person = server.person();
    let new = json!({"start_date": instant(3), "value": 1});
    database.lose_answer_to_commit();
    person.record("HeartRate", &new).await.upload();
    assert_eq!(values(&person).await, [1.0], "neither lost nor doubled");
    person.records("HeartRate", &records(5..6, 60)).await;

    // A deletion leaves nothing behind by which it could be recognised, but its witness.
    database.lose_answer_to_commit();
    person.delete("HeartRate", id(5)).await;
    assert_eq!(values(&person).await, [1.0]);

    database.lose_answer_to_commit();
    let definition = json!({"name": "Mine", "description": "d"});
    person.define("Event", &definition).await;
    let own = person.get("/input/v1/data_type").await.must_be(200).rows();
    assert_eq!(own.len(), 1, "{own:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_commit_that_never_arrived_is_refused_and_never_happens() {
    let Some((server, database)) = wired().await else {
        return;
    };
    let person = server.person();
    person.records("HeartRate", &records(0..1, 60)).await;
    database.lose_commit();
    let refused = person
        .record("HeartRate", &json!({"start_date": instant(3), "value": 1}))
        .await;
    let problem = refused.problem(503);
    assert_ne!(problem["type"], "urn:almanac:problem:outcome-unknown");
    // A commit to the same partition comes after whatever was still on its way.
    person.records("HeartRate", &records(5..6, 61)).await;
    assert_eq!(values(&person).await, [60.0, 61.0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_cannot_be_found_out_is_said_to_be_unknown() {
    let Some((server, database)) = wired().await else {
        return;
    };
    let person = server.person();
    person.records("HeartRate", &records(0..1, 60)).await;
    database.cut_after_commit();
    let unknown = person.lines("HeartRate", &records(1..2, 60)).await;
    let problem = unknown.problem(503);
    assert_eq!(problem["type"], "urn:almanac:problem:outcome-unknown");
    database.mend();
    for _ in 0..100 {
        if server.nobody().get("/health/ready").await.status == 200 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    person.records("HeartRate", &records(1..2, 60)).await;
    assert_eq!(values(&person).await, [60.0, 60.0]);
}
