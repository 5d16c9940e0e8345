//! `/user/v1alpha1/tag`: names that a person gives to what they record.

use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::harness::{Backends, Person, Setup, person};

const PATH: &str = "/user/v1alpha1/tag";

fn named(name: &str) -> Value {
    json!({"name": name})
}

async fn tags(person: &Person) -> Vec<Value> {
    person.get(PATH).await.must_be(200).rows()
}

async fn create(person: &Person, name: &str) -> Value {
    person.post(PATH, &named(name)).await.must_be(201).json()
}

fn at(tag: &Value) -> String {
    format!("{PATH}/id/{}", tag["id"].as_str().unwrap())
}

#[tokio::test]
async fn a_tag_is_made_listed_and_found_by_id_and_by_name() {
    let person = person();
    assert!(tags(&person).await.is_empty());
    let calm = create(&person, "calm").await;
    assert_eq!(calm["name"], json!("calm"));
    Uuid::parse_str(calm["id"].as_str().unwrap()).unwrap();
    let odd = create(&person, "a/b ?#% 👍 日本").await;
    assert_eq!(tags(&person).await, [calm.clone(), odd.clone()], "oldest first");
    assert_eq!(person.get(&at(&calm)).await.must_be(200).json(), calm);
    assert_eq!(
        person.get(&format!("{PATH}/name/calm")).await.must_be(200).json(),
        calm
    );
    let encoded = "a%2Fb%20%3F%23%25%20%F0%9F%91%8D%20%E6%97%A5%E6%9C%AC";
    assert_eq!(
        person
            .get(&format!("{PATH}/name/{encoded}"))
            .await
            .must_be(200)
            .json(),
        odd
    );
}

#[tokio::test]
async fn a_name_is_a_persons_only_once_in_whichever_form_it_is_written() {
    let (one, other) = (person(), person());
    let tag = create(&one, "Cafe\u{301}").await;
    assert_eq!(tag["name"], json!("Caf\u{e9}"), "kept in the composed form");
    one.post(PATH, &named("Caf\u{e9}")).await.problem(409);
    one.post(PATH, &named("Cafe\u{301}")).await.problem(409);
    for form in ["Caf%C3%A9", "Cafe%CC%81"] {
        assert_eq!(
            one.get(&format!("{PATH}/name/{form}")).await.must_be(200).json(),
            tag
        );
    }
    create(&one, "caf\u{e9}").await;
    create(&other, "Caf\u{e9}").await;
    assert_eq!((tags(&one).await.len(), tags(&other).await.len()), (2, 1));
}

#[tokio::test]
async fn a_tag_goes_and_its_name_is_free_again() {
    let (owner, stranger) = (person(), person());
    let tag = create(&owner, "calm").await;
    for path in [at(&tag), format!("{PATH}/name/calm")] {
        stranger.get(&path).await.problem(404);
    }
    stranger.call(Method::DELETE, &at(&tag)).await.problem(404);
    owner.call(Method::DELETE, &at(&tag)).await.must_be(204);
    owner.call(Method::DELETE, &at(&tag)).await.problem(404);
    owner.get(&at(&tag)).await.problem(404);
    owner.get(&format!("{PATH}/name/calm")).await.problem(404);
    assert!(tags(&owner).await.is_empty());
    assert_ne!(create(&owner, "calm").await["id"], tag["id"]);
}

#[tokio::test]
async fn what_is_no_name_is_refused_and_makes_nothing() {
    let person = person();
    let cases = [
        (json!({}), "body.name"),
        (json!([]), "body"),
        (json!(["calm"]), "body"),
        (json!(null), "body"),
        (json!({"name": null}), "body.name"),
        (json!({"name": 5}), "body.name"),
        (named(""), "body.name"),
        (named(" "), "body.name"),
        (named(" calm"), "body.name"),
        (named("calm\u{a0}"), "body.name"),
        (named("a\u{0}b"), "body.name"),
        (named("a\nb"), "body.name"),
        (named("a\u{7f}b"), "body.name"),
        (named(&"x".repeat(257)), "body.name"),
        (named(&"x".repeat(1_000_000)), "body.name"),
    ];
    for (body, place) in cases {
        assert_eq!(person.post(PATH, &body).await.faults(), [place]);
    }
    person
        .post(PATH, &named(&"x".repeat(2_000_000)))
        .await
        .problem(413);
    person.post(PATH, &named("x")).body("{").await.must_be(422);
    person
        .post(PATH, &named("x"))
        .header("content-type", "text/plain")
        .await
        .problem(415);
    create(&person, &"👍".repeat(256)).await;
    assert_eq!(tags(&person).await.len(), 1);
    for path in ["id/", "name/nosuch"] {
        person.get(&format!("{PATH}/{path}")).await.problem(404);
    }
    for method in [Method::GET, Method::DELETE] {
        let malformed = person.call(method, &format!("{PATH}/id/nosuch"));
        assert_eq!(malformed.await.faults(), ["path.tag_id"]);
    }
    assert_eq!(
        person.get(&format!("{PATH}/name/a%00b")).await.faults(),
        ["path.tag_name"]
    );
    person.call(Method::PUT, PATH).await.problem(405);
}

#[tokio::test]
async fn of_clients_that_race_for_a_name_one_wins() {
    for backends in Backends::available() {
        let server = Setup::default().on(backends).start();
        let person = server.person();
        let racing = (0..8).map(|_| async { person.post(PATH, &named("calm")).await.status });
        let mut answers = join_all(racing).await;
        answers.sort_unstable();
        assert_eq!(answers, [201, 409, 409, 409, 409, 409, 409, 409]);
        assert_eq!(tags(&person).await.len(), 1);
        server.restart();
        let tag = tags(&person).await.remove(0);
        let racing = (0..4).map(|_| async { person.call(Method::DELETE, &at(&tag)).await.status });
        let mut answers = join_all(racing).await;
        answers.sort_unstable();
        assert_eq!(answers, [204, 404, 404, 404]);
    }
}

#[tokio::test]
async fn a_person_has_as_many_tags_as_the_operator_allows() {
    let server = Setup::default().with("ALMANAC_LIMIT_TAGS", "2").start();
    let (one, other) = (server.person(), server.person());
    let tag = create(&one, "a").await;
    create(&one, "b").await;
    let refused = one.post(PATH, &named("c")).await;
    assert_eq!(refused.faults(), ["body"]);
    assert!(refused.text().contains("ALMANAC_LIMIT_TAGS"), "{refused}");
    create(&other, "c").await;
    one.call(Method::DELETE, &at(&tag)).await.must_be(204);
    create(&one, "c").await;
}

#[tokio::test]
async fn records_keep_their_tags_as_they_were_recorded() {
    let person = person();
    let tag = create(&person, "calm").await;
    let tags = json!([tag["id"], "calm", "never made"]);
    person
        .record(
            "MomentAnnotation",
            &json!({"recorded_at": "2024-05-01T10:00:00Z", "tags": tags}),
        )
        .await
        .upload();
    person.call(Method::DELETE, &at(&tag)).await.must_be(204);
    assert_eq!(person.rows("event", "MomentAnnotation").await[0]["tags"], tags);
    let found = person
        .read("event", "MomentAnnotation")
        .with("filter", "tags:calm")
        .await;
    assert_eq!(found.must_be(200).rows().len(), 1);
}
