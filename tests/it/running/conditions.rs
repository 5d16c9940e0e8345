//! `If-Match`: of those who change what they saw at the same moment, one does.

use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Backends, Call, Person, Setup};
use crate::sharing::{DATASHARE, GROUP, group, join, share, share_of};

/// How many change the same at once.
const RACERS: usize = 8;

/// Something that can be read and changed.
struct Changed {
    what: &'static str,
    address: String,
    change: fn(&Person, &str, &Value) -> Call,
    /// The changes, all different.
    body: fn(usize) -> Value,
}

async fn made(person: &Person, path: &str, body: &Value) -> String {
    let made = person.post(path, body).await.must_be(201).json();
    format!("{path}/{}", made["id"].as_str().expect("an id"))
}

fn put(what: &'static str, address: String, body: fn(usize) -> Value) -> Changed {
    Changed {
        what,
        address,
        change: Person::put,
        body,
    }
}

async fn everything(person: &Person, other: &Person) -> Vec<Changed> {
    let annotation = json!({"annotation_type": "moment", "name": "a", "description": "", "tags": []});
    let schedule =
        json!({"cron": "@daily", "start_at": null, "end_at": null, "paused": true, "time_zone": "UTC"});
    let reflection = json!({"name": "a", "schedule": schedule});
    let given = share(person, &share_of(&["HeartRate"], other)).await;
    let club = group(
        person,
        &json!({"title": "Club", "svc_data_types": [], "is_public": true}),
    )
    .await;
    let participant = join(other, &club).await;
    let own = person
        .post(
            "/input/v1/data_type/Event",
            &json!({"name": "a", "record_spec": {}}),
        )
        .await
        .must_be(201)
        .json();
    vec![
        put(
            "an annotation",
            made(person, "/user/v1alpha1/annotation", &annotation).await,
            |n| json!({"name": format!("b{n}"), "description": "", "tags": []}),
        ),
        put(
            "a reflection",
            made(person, "/user/v1alpha1/reflection", &reflection).await,
            |n| {
                json!({"name": format!("b{n}"), "schedule": {"cron": "@daily", "start_at": null,
                    "end_at": null, "paused": true, "time_zone": "UTC"}})
            },
        ),
        put(
            "a share",
            format!("{DATASHARE}/{}", given["datashare_id"].as_str().expect("an id")),
            |n| json!({"datashare_name": format!("b{n}")}),
        ),
        put(
            "a group",
            format!("{GROUP}/{club}"),
            |n| json!({"description": format!("b{n}")}),
        ),
        put(
            "notes about a participant",
            format!("{GROUP}/{club}/participants/{participant}/metadata"),
            |n| json!({"note": n}),
        ),
        put(
            "an own type",
            format!("/input/v1/data_type/{}", own["id"].as_str().expect("an id")),
            |n| json!({"description": format!("b{n}")}),
        ),
        Changed {
            what: "the preferences",
            address: "/user/v1alpha1/preferences".to_owned(),
            change: Person::post,
            body: |n| json!({"calendars": [format!("b{n}")]}),
        },
    ]
}

#[tokio::test]
async fn of_many_who_change_what_they_saw_one_does() {
    for backends in Backends::available() {
        // Where several nodes share a database, they race with each other.
        let nodes = match &backends {
            embedded if embedded.settings().is_empty() => vec![Setup::default().start()],
            shared => [shared, shared]
                .into_iter()
                .map(|backends| Setup::default().on(backends.clone()).start())
                .collect(),
        };
        let (person, other) = (nodes[0].person(), nodes[0].person());
        let there: Vec<Person> = nodes.iter().map(|node| node.person_called(person.id)).collect();
        for Changed {
            what,
            address,
            change,
            body,
        } in everything(&person, &other).await
        {
            let seen = person.get(&address).await.must_be(200);
            let tag = seen.header("etag").expect("a tag").to_owned();
            let racing = (0..RACERS).map(|number| {
                let racer = &there[number % there.len()];
                let call = change(racer, &address, &body(number));
                call.header("if-match", &tag).into_future()
            });
            let mut statuses: Vec<u16> = join_all(racing).await.iter().map(|reply| reply.status).collect();
            statuses.sort_unstable();
            let mut expected = vec![412; RACERS];
            expected[0] = 200;
            assert_eq!(statuses, expected, "{what}");
            // Without a condition, the last one wins.
            let racing =
                (0..RACERS).map(|number| change(&person, &address, &body(RACERS + number)).into_future());
            for reply in join_all(racing).await {
                reply.must_be(200);
            }
        }
    }
}

#[tokio::test]
async fn of_many_who_delete_what_they_saw_one_does() {
    let server = Setup::default().start();
    let person = server.person();
    let tag = made(&person, "/user/v1alpha1/tag", &json!({"name": "a"})).await;
    let address = tag.replace("/tag/", "/tag/id/");
    let seen = person.get(&address).await.must_be(200);
    let seen = seen.header("etag").expect("a tag").to_owned();
    let racing = (0..RACERS).map(|_| {
        let call = person.call(Method::DELETE, &address);
        call.header("if-match", &seen).into_future()
    });
    let statuses: Vec<u16> = join_all(racing).await.iter().map(|reply| reply.status).collect();
    assert_eq!(statuses.iter().filter(|status| **status == 204).count(), 1);
    // The others find nothing any more.
    assert!(
        statuses.iter().all(|status| [204, 404].contains(status)),
        "{statuses:?}"
    );
}
