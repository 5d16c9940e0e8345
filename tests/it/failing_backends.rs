//! A store that fails midway: 503, nothing visible, nothing lost, and the same request succeeds later.

use std::fs;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::harness::{Almanac, Backends, Forwarder, Person, Setup, heart_rate, id, instant};

fn many(value: u32) -> Vec<Value> {
    (0..30_000)
        .map(|n| heart_rate(id(n), &instant(n), value))
        .collect()
}

async fn count(person: &Person, value: f64) -> usize {
    let samples = person.samples("HeartRate", "2024-05-01", "2024-06-01").await;
    samples
        .iter()
        .filter(|sample| crate::harness::number(sample, "value") == value)
        .count()
}

/// Puts a file where the directory of the objects is, so that nothing can be written there; the way back is
/// given.
fn without_object_directory(server: &Almanac, within: impl FnOnce()) {
    let entries = fs::read_dir(server.data_dir())
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let directories: Vec<_> = entries.filter(|path| path.is_dir()).collect();
    for directory in &directories {
        fs::rename(directory, directory.with_extension("away")).unwrap();
        fs::write(directory, "").unwrap();
    }
    within();
    for directory in &directories {
        drop(fs::remove_file(directory));
        fs::rename(directory.with_extension("away"), directory).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_that_cannot_be_written_refuse_the_request_and_nothing_else() {
    let server = Setup::default().no_upkeep().start();
    let person = server.person();
    person.records("HeartRate", &many(1)).await;
    server.until_objects(1).await;
    without_object_directory(&server, || {
        tokio::task::block_in_place(|| {
            tokio::runtime::Handle::current().block_on(async {
                let refused = person.lines("HeartRate", &many(2)).await;
                assert!(refused.status == 503, "{refused}");
                refused.problem(503);
            });
        });
    });
    assert_eq!(
        (count(&person, 1.0).await, count(&person, 2.0).await),
        (30_000, 0)
    );
    person.records("HeartRate", &many(2)).await;
    assert_eq!(
        (count(&person, 1.0).await, count(&person, 2.0).await),
        (0, 30_000)
    );
    server.kill();
    server.launch();
    assert_eq!(count(&person, 2.0).await, 30_000);
}

#[tokio::test]
async fn a_store_that_is_not_there_is_not_ready_and_refuses_writes() {
    let server = Setup::default().no_upkeep().start();
    let person = server.person();
    until_readiness_is(200, &server).await;
    let (store, away) = (server.data_dir().join("objects"), server.data_dir().join("away"));
    fs::rename(&store, &away).unwrap();
    until_readiness_is(503, &server).await;
    let refused = person.lines("HeartRate", &many(1)).await;
    assert_eq!(refused.status, 503, "{refused}");
    assert!(refused.header("retry-after").is_some(), "{refused}");
    assert!(server.log().contains("does not exist"), "{}", server.log());
    fs::rename(&away, &store).unwrap();
    until_readiness_is(200, &server).await;
    assert_eq!(count(&person, 1.0).await, 0);
    person.records("HeartRate", &many(1)).await;
    assert_eq!(count(&person, 1.0).await, 30_000);
}

/// How long files of a server may become. Beyond that the system refuses every write.
fn limit_files(server: &Almanac, bytes: &str) {
    let status = Command::new("prlimit")
        .args(["--pid", &server.pid().to_string(), &format!("--fsize={bytes}:")])
        .status()
        .unwrap();
    assert!(status.success());
}

#[tokio::test]
async fn a_catalogue_that_cannot_be_written_is_not_ready_until_it_can() {
    let server = Setup::default().no_upkeep().start();
    let person = server.person();
    person
        .records("HeartRate", &[heart_rate(id(1), &instant(1), 60)])
        .await;
    until_readiness_is(200, &server).await;
    // The catalogue's log is longer than this since the start, and what the server says is not.
    limit_files(&server, "65536");
    let beat = heart_rate(id(2), &instant(2), 60);
    let writing = async { person.record("HeartRate", &beat).await };
    let watching = async {
        until_readiness_is(503, &server).await;
        limit_files(&server, "unlimited");
        until_readiness_is(200, &server).await;
    };
    let (reply, ()) = futures::join!(writing, watching);
    assert!(matches!(reply.status, 201 | 503), "{reply}");
    person.records("HeartRate", &[beat]).await;
    assert_eq!(count(&person, 60.0).await, 2);
}

/// A server on PostgreSQL and S3 with a wire to each that can be cut.
async fn wired() -> Option<(Almanac, Forwarder, Forwarder)> {
    let backends = Backends::networked()?;
    let database_url = backends.setting("ALMANAC_DATABASE_URL").to_owned();
    let endpoint = backends.setting("AWS_ENDPOINT_URL").to_owned();
    let after_scheme = database_url.split_once("://").unwrap().1;
    let authority = after_scheme.split('/').next().unwrap();
    let address = authority.rsplit('@').next().unwrap();
    let database = Forwarder::to(address).await;
    let objects = Forwarder::to(endpoint.split_once("://").unwrap().1.trim_end_matches('/')).await;
    let backends = backends
        .with(
            "ALMANAC_DATABASE_URL",
            &database_url.replace(address, &format!("127.0.0.1:{}", database.port())),
        )
        .with(
            "AWS_ENDPOINT_URL",
            &format!("http://127.0.0.1:{}", objects.port()),
        );
    // Started aside, because the wires work on this runtime.
    let server = tokio::task::spawn_blocking(move || Setup::default().no_upkeep().on(backends).start())
        .await
        .unwrap();
    Some((server, database, objects))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn connections_that_died_in_silence_are_given_up_and_nothing_waits_for_ever() {
    let Some((server, database, _objects)) = wired().await else {
        return;
    };
    let people = [server.person(), server.person(), server.person()];
    let beat = |n: u32| heart_rate(id(n), &instant(n), 60);
    for person in &people {
        person.records("HeartRate", &[beat(0)]).await;
    }
    database.silence();
    // At once, so that connections are used whose rest was too short for a question.
    let writes = people.iter().map(|person| async {
        let reply = person.record("HeartRate", &beat(1)).await;
        assert!(matches!(reply.status, 201 | 503), "{reply}");
        assert_eq!(reply.header("retry-after").is_some(), reply.status == 503);
    });
    let answered = tokio::time::timeout(Duration::from_mins(2), futures::future::join_all(writes));
    answered.await.expect("answers");
    for person in &people {
        person.records("HeartRate", &[beat(2)]).await;
        let stored = person.all_samples("HeartRate").await;
        assert!((2..=3).contains(&stored.len()), "{stored:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_lost_object_store_refuses_large_writes_and_forgets_nothing() {
    let Some((server, _database, objects)) = wired().await else {
        return;
    };
    let person = server.person();
    person.records("HeartRate", &many(1)).await;
    objects.cut();
    let refused = person.lines("HeartRate", &many(2)).await;
    assert_eq!(refused.status, 503, "{refused}");
    objects.mend();
    assert_eq!(
        (count(&person, 1.0).await, count(&person, 2.0).await),
        (30_000, 0)
    );
    objects.lose_answers();
    let unsure = person.lines("HeartRate", &many(3)).await;
    assert_eq!(unsure.status, 503, "{unsure}");
    objects.mend();
    assert_eq!(
        (count(&person, 1.0).await, count(&person, 3.0).await),
        (30_000, 0)
    );
    person.records("HeartRate", &many(2)).await;
    assert_eq!(count(&person, 2.0).await, 30_000);
    assert!(objects.connections() > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_lost_catalogue_refuses_and_a_lost_acknowledgement_has_one_effect() {
    let Some((server, database, _objects)) = wired().await else {
        return;
    };
    let person = server.person();
    person
        .records("HeartRate", &[heart_rate(id(1), &instant(1), 1)])
        .await;
    let records = [heart_rate(id(2), &instant(2), 1)];
    database.cut();
    let refused = person
        .lines("HeartRate", &records)
        .header("idempotency-key", "k")
        .await;
    assert!((500..600).contains(&refused.status), "{refused}");
    let unread = person
        .metric_samples("HeartRate", "2024-05-01", "2024-06-01")
        .await;
    assert!((500..600).contains(&unread.status), "{unread}");
    until_readiness_is(503, &server).await;
    server.nobody().get("/health/live").await.must_be(200);
    database.mend();
    until_readiness_is(200, &server).await;
    // The commit may happen although its acknowledgement is lost; sent again with its key, it has one effect.
    database.lose_answers();
    let lost = person
        .record(
            "HeartRate",
            &serde_json::json!({"start_date": instant(3), "value": 1}),
        )
        .header("idempotency-key", "lost")
        .await;
    assert!((500..600).contains(&lost.status), "{lost}");
    database.mend();
    until_readiness_is(200, &server).await;
    for _ in 0..2 {
        person
            .record(
                "HeartRate",
                &serde_json::json!({"start_date": instant(3), "value": 1}),
            )
            .header("idempotency-key", "lost")
            .await
            .upload();
    }
    person
        .lines("HeartRate", &records)
        .header("idempotency-key", "k")
        .await
        .upload();
    assert_eq!(count(&person, 1.0).await, 3);
    assert!(database.connections() > 0);
}

/// Readiness is looked at once a second at most, so an answer may be that of a moment ago.
async fn until_readiness_is(expected: u16, server: &Almanac) {
    server
        .until(&format!("readiness does not become {expected}"), async || {
            server.nobody().get("/health/ready").await.status == expected
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn while_the_catalogue_cannot_say_whose_session_is_open_nobody_is_let_in() {
    let Some((server, database, _objects)) = wired().await else {
        return;
    };
    let person = server.person();
    let asked = || person.get("/data/v0/metrics_catalog");
    asked().await.must_be(200);
    database.cut();
    asked().await.problem(503);
    person
        .showing("no.token")
        .get("/data/v0/metrics_catalog")
        .await
        .problem(401);
    database.mend();
    asked().await.must_be(200);
}
