//! `/user/v1alpha1/reflection`: questions that come back by a schedule.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Backends, Person, Setup, id, person};

const PATH: &str = "/user/v1alpha1/reflection";

fn nightly() -> Value {
    json!({
        "cron": "0 22 * * *", "start_at": null, "end_at": null, "paused": false, "time_zone": "Europe/Berlin",
    })
}

fn body() -> Value {
    json!({"name": "How was it?", "schedule": nightly()})
}

async fn create(person: &Person, body: &Value) -> Value {
    person.post(PATH, body).await.must_be(201).json()
}

fn at(reflection: &Value) -> String {
    format!("{PATH}/{}", reflection["id"].as_str().unwrap())
}

#[tokio::test]
async fn a_reflection_is_made_read_replaced_and_deleted() {
    for backends in Backends::available() {
        let server = Setup::default().on(backends).start();
        let person = server.person();
        let made = create(&person, &body()).await;
        for (name, expected) in [
            ("name", json!("How was it?")),
            ("schedule", nightly()),
            ("svc_userid", json!(person.id)),
            ("annotations", Value::Null),
            ("data_types", Value::Null),
            ("description", Value::Null),
            ("parent_template_id", Value::Null),
            ("deleted_at", Value::Null),
        ] {
            assert_eq!(made[name], expected, "{name}");
        }
        assert_eq!(person.get(&at(&made)).await.must_be(200).json(), made);
        assert_eq!(
            person.get(PATH).await.must_be(200).rows(),
            std::slice::from_ref(&made)
        );
        assert_eq!(
            person.put(&at(&made), &made).await.must_be(200).json(),
            made,
            "no change"
        );

        let mut whole = body();
        whole["annotations"] = json!([id(1)]);
        whole["data_types"] = json!([{"name": "HeartRate", "resource_id": null}, {"name": "Steps"}]);
        whole["description"] = json!("two\nlines");
        whole["parent_template_id"] = json!("evening");
        whole["schedule"]["start_at"] = json!("2024-05-01 10:00:00+02:00");
        whole["schedule"]["end_at"] = json!("2024-06-01");
        let changed = person.put(&at(&made), &whole).await.must_be(200).json();
        assert_eq!(changed["schedule"]["start_at"], json!("2024-05-01T08:00:00Z"));
        assert_eq!(changed["schedule"]["end_at"], json!("2024-06-01T00:00:00Z"));
        assert_eq!(
            changed["data_types"][1],
            json!({"name": "Steps", "resource_id": null})
        );
        assert_eq!(changed["created_at"], made["created_at"]);
        server.restart();

        let deleted = person.call(Method::DELETE, &at(&made)).await.must_be(200).json();
        assert!(deleted["deleted_at"].is_string(), "{deleted}");
        assert_eq!(
            person.call(Method::DELETE, &at(&made)).await.must_be(200).json(),
            deleted
        );
        assert_eq!(person.get(&at(&made)).await.must_be(200).json(), deleted);
        assert!(person.get(PATH).await.must_be(200).rows().is_empty());
    }
}

#[tokio::test]
async fn a_schedule_must_come_due() {
    let person = person();
    for cron in [
        "*/15 9-17 * * MON-FRI",
        "0 0 L * *",
        "@daily",
        "30 0 22 * * *",
        "0 0 29 2 *",
        "0 0 9 1 1 * 4000",
    ] {
        let mut body = body();
        body["schedule"]["cron"] = json!(cron);
        assert_eq!(create(&person, &body).await["schedule"]["cron"], json!(cron));
    }
    let cases = [
        ("cron", json!(""), "cron"),
        ("cron", json!("* * *"), "cron"),
        ("cron", json!("61 * * * *"), "cron"),
        ("cron", json!("0 0 31 2 *"), "cron"),
        ("cron", json!("0 0 9 1 1 * 2020"), "cron"),
        ("cron", json!("@nosuch"), "cron"),
        ("cron", json!("0 0 * * ÜÜÜ"), "cron"),
        ("cron", json!("0 0 * * *\u{0}"), "cron"),
        ("cron", json!("1,".repeat(200)), "cron"),
        ("cron", json!(5), "cron"),
        ("time_zone", json!("Mars/Olympus"), "time_zone"),
        ("time_zone", json!(null), "time_zone"),
        ("start_at", json!("yesterday"), "start_at"),
        ("end_at", json!(1_700_000_000), "end_at"),
        ("paused", json!("no"), "paused"),
    ];
    for (name, value, place) in cases {
        let mut body = body();
        body["schedule"][name] = value;
        assert_eq!(
            person.post(PATH, &body).await.faults(),
            [format!("body.schedule.{place}")]
        );
    }
    for name in ["cron", "start_at", "end_at", "paused", "time_zone"] {
        let mut body = body();
        body["schedule"].as_object_mut().unwrap().remove(name);
        let missing = [format!("body.schedule.{name}")];
        assert_eq!(person.post(PATH, &body).await.faults(), missing);
    }
    let mut backwards = body();
    backwards["schedule"]["start_at"] = json!("2024-05-01");
    backwards["schedule"]["end_at"] = json!("2024-05-01");
    assert_eq!(person.post(PATH, &backwards).await.faults(), ["body.schedule"]);
    for (body, place) in [
        (json!({"name": "x"}), "body.schedule"),
        (json!({"schedule": nightly()}), "body.name"),
        (json!({"name": "x", "schedule": []}), "body.schedule"),
        (json!({"name": "x", "schedule": "0 22 * * *"}), "body.schedule"),
        (json!({"name": "x\u{0}", "schedule": nightly()}), "body.name"),
        (
            json!({"name": "x", "schedule": nightly(), "annotations": vec!["x".repeat(250); 300]}),
            "body",
        ),
    ] {
        assert_eq!(person.post(PATH, &body).await.faults(), [place]);
    }
}

#[tokio::test]
async fn reflections_are_each_persons_own_and_limited() {
    let server = Setup::default().with("ALMANAC_LIMIT_REFLECTIONS", "1").start();
    let (owner, stranger) = (server.person(), server.person());
    let made = create(&owner, &body()).await;
    stranger.get(&at(&made)).await.problem(404);
    stranger.put(&at(&made), &body()).await.problem(404);
    stranger.call(Method::DELETE, &at(&made)).await.problem(404);
    for method in [Method::GET, Method::DELETE] {
        let malformed = owner.call(method, &format!("{PATH}/nosuch"));
        assert_eq!(malformed.await.faults(), ["path.reflection_id"]);
    }
    owner.get(&format!("{PATH}/{}", id(9))).await.problem(404);
    owner.call(Method::DELETE, &at(&made)).await.must_be(200);
    let refused = owner.post(PATH, &body()).await;
    assert_eq!(refused.faults(), ["body"], "the deleted one is kept");
    assert!(refused.text().contains("ALMANAC_LIMIT_REFLECTIONS"), "{refused}");
}
