//! A stranger learns nothing about what exists: not from the status, the body, the headers, or the time it
//! takes.

use std::time::{Duration, Instant};

use serde_json::json;
use uuid::Uuid;

use super::{DATASHARE, GROUP, group, share, share_of};
use crate::files;
use crate::harness::{Call, Person, at, heart_rate, id, instant, person};

const ANNOTATION: &str = "/user/v1alpha1/annotation";
/// Questions of each kind in one round.
const QUESTIONS: usize = 60;
/// Other work on the machine may disturb a round, and even several. A difference that is there disturbs all.
const ROUNDS: usize = 8;
/// Headers that differ between any two answers.
const OF_THE_ANSWER: [&str; 3] = ["x-request-id", "date", "server-timing"];

/// The same question about what exists and is not the asker's, and about what does not exist.
struct Pair {
    what: &'static str,
    existing: String,
    missing: String,
    query: Vec<(&'static str, [String; 2])>,
}

impl Pair {
    fn of(what: &'static str, path: impl Fn(&str) -> String, existing: &str) -> Self {
        Self {
            what,
            existing: path(existing),
            missing: path(&Uuid::new_v4().to_string()),
            query: Vec::new(),
        }
    }

    fn with(mut self, name: &'static str, existing: &str, missing: &str) -> Self {
        self.query.push((name, [existing.to_owned(), missing.to_owned()]));
        self
    }

    fn ask(&self, stranger: &Person, exists: bool) -> Call {
        let path = if exists { &self.existing } else { &self.missing };
        let call = stranger.get(path);
        self.query.iter().fold(call, |call, (name, [existing, missing])| {
            call.with(name, if exists { existing } else { missing })
        })
    }
}

/// What can be read in an answer, without what it was asked about.
async fn read(pair: &Pair, stranger: &Person, exists: bool) -> (u16, Vec<(String, String)>, String) {
    let answer = pair.ask(stranger, exists).open().await.expect("an answer");
    let status = answer.status().as_u16();
    let headers = answer.headers().iter();
    let mut headers: Vec<(String, String)> = headers
        .filter(|(name, _)| !OF_THE_ANSWER.contains(&name.as_str()))
        .map(|(name, value)| (name.to_string(), value.to_str().expect("text").to_owned()))
        .collect();
    headers.sort();
    let mut text = answer.text().await.expect("a body");
    let asked = if exists { &pair.existing } else { &pair.missing };
    for id in asked
        .split(['/', '?', '='])
        .filter(|part| Uuid::parse_str(part).is_ok())
    {
        text = text.replace(id, "<id>");
    }
    // Without the ids that were asked about, all of it is to be equal, its length too.
    (status, headers, text)
}

/// Each time is that of the quickest quarter's end: what slows down single questions does not count.
async fn times(pair: &Pair, stranger: &Person) -> [Duration; 2] {
    let mut times = [Vec::new(), Vec::new()];
    for question in 0..QUESTIONS * 2 {
        let exists = question % 2 == 0;
        let begun = Instant::now();
        let answer = pair.ask(stranger, exists).open().await.expect("an answer");
        drop(answer.bytes().await.expect("a body"));
        times[usize::from(exists)].push(begun.elapsed());
    }
    times.map(|mut times| {
        times.sort_unstable();
        times[times.len() / 4]
    })
}

#[tokio::test]
async fn what_exists_and_what_does_not_are_refused_alike() {
    let (owner, stranger) = (person(), person());
    let records: Vec<_> = (0..2_000).map(|n| heart_rate(id(n), &instant(n), 60)).collect();
    owner.records("HeartRate", &records).await;
    let file = files::put(&owner, "/lab", "a.txt", b"bytes").await;
    let mut last = String::new();
    // So many that work for each of them would show.
    for _ in 0..300 {
        let given = share(&owner, &share_of(&["HeartRate"], &person())).await;
        given["datashare_id"]
            .as_str()
            .expect("an id")
            .clone_into(&mut last);
    }
    let club = group(
        &owner,
        &json!({"title": "Club", "svc_data_types": ["HeartRate"], "is_public": false}),
    )
    .await;
    let of_owner = owner.id.to_string();
    let (file, nobody) = (file["id"].as_str().expect("an id"), Uuid::new_v4().to_string());
    let samples = |owner: &str| format!("/data/v0/{owner}/metric_samples");
    let pairs = [
        Pair::of("records of somebody", samples, &of_owner)
            .with("metric", "HeartRate", "HeartRate")
            .with("start_time", &at("00:00"), &at("00:00"))
            .with("end_time", &at("23:00"), &at("23:00")),
        Pair::of(
            "types of somebody",
            |owner| format!("/user/v1/shared/{owner}/data_types"),
            &of_owner,
        ),
        Pair::of(
            "what somebody has",
            |_| "/data/v1alpha1/data_available".to_owned(),
            "",
        )
        .with("svc_userid", &of_owner, &nobody)
        .with("start_time", &at("00:00"), &at("00:00"))
        .with("end_time", &at("23:00"), &at("23:00")),
        Pair::of("a file of somebody", |id| format!("{}/{id}", files::FILES), file).with(
            "svc_userid",
            &of_owner,
            &of_owner,
        ),
        Pair::of("files of somebody", |_| files::FILES.to_owned(), "").with("svc_userid", &of_owner, &nobody),
        Pair::of("a file by its id", |id| format!("{}/{id}", files::FILES), file),
        Pair::of("a share", |id| format!("{DATASHARE}/{id}"), &last),
        Pair::of("a group", |id| format!("{GROUP}/{id}"), &club),
    ];
    for pair in &pairs {
        let [existing, missing] = [
            read(pair, &stranger, true).await,
            read(pair, &stranger, false).await,
        ];
        assert!(
            [200, 403, 404].contains(&existing.0),
            "{}: {existing:?}",
            pair.what
        );
        assert_eq!(existing, missing, "{}", pair.what);
        let mut seen = Vec::new();
        let is_alike = async {
            for _ in 0..ROUNDS {
                let [missing, existing] = times(pair, &stranger).await;
                seen.push((missing, existing));
                let ratio = existing.as_secs_f64() / missing.as_secs_f64();
                if (0.87..1.15).contains(&ratio) {
                    return true;
                }
            }
            false
        };
        assert!(
            is_alike.await,
            "{}: missing and existing take {seen:?}",
            pair.what
        );
    }
}

#[tokio::test]
async fn a_reader_of_some_types_cannot_tell_what_else_exists() {
    let (owner, reader) = (person(), person());
    let body = json!({"annotation_type": "moment", "name": "Tea", "description": "", "tags": []});
    let mut made = Vec::new();
    for _ in 0..2 {
        let annotation = owner.post(ANNOTATION, &body).await.must_be(201).json();
        made.push(annotation["id"].as_str().expect("an id").to_owned());
    }
    let at_id = |id: &str| format!("{ANNOTATION}/{id}");
    owner
        .call(reqwest::Method::DELETE, &at_id(&made[1]))
        .await
        .must_be(200);
    let of_owner = owner.id.to_string();
    for types in [&[][..], &["HeartRate"][..]] {
        share(&owner, &share_of(types, &reader)).await;
        for (what, id) in [("an annotation", &made[0]), ("a deleted annotation", &made[1])] {
            let pair = Pair::of(what, at_id, id).with("svc_userid", &of_owner, &of_owner);
            let [existing, missing] = [
                read(&pair, &reader, true).await,
                read(&pair, &reader, false).await,
            ];
            assert_eq!(existing.0, 403, "{what}, {types:?}: {existing:?}");
            assert_eq!(existing, missing, "{what}, {types:?}");
        }
    }
    share(&owner, &share_of(&["MomentAnnotation"], &reader)).await;
    for id in &made {
        let seen = reader.get(&at_id(id)).with("svc_userid", &of_owner);
        seen.await.must_be(200);
    }
}
