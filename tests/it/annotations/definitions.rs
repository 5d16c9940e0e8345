//! The definitions themselves: made, read, replaced, deleted and had back.

use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{PATH, at, cancel_deletion, create, delete, duration, moment, numeric, people, scale, yes_no};
use crate::harness::{Backends, Person, Setup, id, person};

async fn listed(person: &Person) -> Vec<Value> {
    person.get(PATH).await.must_be(200).rows()
}

#[tokio::test]
async fn every_variant_is_made_read_and_listed() {
    for backends in Backends::available() {
        let server = Setup::default().on(backends).start();
        let person = server.person();
        let bodies = [
            moment("a"),
            duration("b"),
            yes_no("c"),
            numeric("d"),
            scale("e"),
            people("f"),
        ];
        let mut made = Vec::new();
        for body in &bodies {
            let annotation = create(&person, body).await;
            let id = annotation["id"].as_str().unwrap();
            Uuid::parse_str(id).unwrap();
            for name in ["annotation_type", "name", "description", "tags"] {
                assert_eq!(annotation[name], body[name], "{name}");
            }
            assert_eq!(annotation["svc_userid"], json!(person.id));
            assert_eq!(
                annotation["svc_source_id"],
                json!(format!("com.almanac.annotation.{id}"))
            );
            assert_eq!(annotation["created_at"], annotation["updated_at"]);
            assert_eq!(annotation["deleted_at"], Value::Null);
            for name in ["measurement_spec", "spec"] {
                assert!(annotation.get(name).is_some(), "no {name} in {annotation}");
            }
            assert_eq!(person.get(&at(&annotation)).await.must_be(200).json(), annotation);
            made.push(annotation);
        }
        assert_eq!(
            made[3]["measurement_spec"],
            json!({
                "measurement_type": "custom", "metric_kind": "discrete", "unit": "cups", "value_type": "real",
                "custom": {"value": null},
            }),
            "what a client leaves out is filled in"
        );
        let colours = &made[4]["spec"]["scale"]["scale_mapping"]["color"]["mapping"];
        assert_eq!(*colours, json!({"1": "#ff0000", "5": "#00ff00"}));
        assert_eq!(listed(&person).await, made, "oldest first");
        for annotation in &made {
            let kind = annotation["annotation_type"].as_str().unwrap();
            let some = person
                .get(PATH)
                .with("annotation_type", kind)
                .await
                .must_be(200)
                .rows();
            assert_eq!(some, std::slice::from_ref(annotation));
        }
        server.restart();
        assert_eq!(listed(&person).await, made);
    }
}

#[tokio::test]
async fn an_annotation_is_deleted_softly_and_had_back() {
    let person = person();
    let (kept, annotation) = (
        create(&person, &moment("a")).await,
        create(&person, &moment("b")).await,
    );
    let deleted = delete(&person, &annotation).await;
    assert!(deleted["deleted_at"].is_string(), "{deleted}");
    assert_eq!(listed(&person).await, std::slice::from_ref(&kept));
    assert_eq!(person.get(&at(&annotation)).await.must_be(200).json(), deleted);
    assert_eq!(delete(&person, &annotation).await, deleted, "deleted once");

    let mut renamed = deleted.clone();
    renamed["name"] = json!("c");
    let renamed = person.put(&at(&annotation), &renamed).await.must_be(200).json();
    assert_eq!(
        (&renamed["name"], &renamed["deleted_at"]),
        (&json!("c"), &deleted["deleted_at"])
    );

    let active = cancel_deletion(&person, &annotation).await;
    assert_eq!(
        (&active["name"], &active["deleted_at"]),
        (&json!("c"), &Value::Null)
    );
    assert_eq!(
        cancel_deletion(&person, &annotation).await,
        active,
        "active already"
    );
    assert_eq!(listed(&person).await, [kept, active]);
}

#[tokio::test]
async fn what_is_read_can_be_written_back_and_replaces_the_whole() {
    let person = person();
    for body in [
        moment("a"),
        duration("b"),
        yes_no("c"),
        numeric("d"),
        scale("e"),
        people("f"),
    ] {
        let annotation = create(&person, &body).await;
        let same = person
            .put(&at(&annotation), &annotation)
            .await
            .must_be(200)
            .json();
        assert_eq!(same, annotation, "nothing changed");
    }
    let annotation = create(&person, &numeric("Tea")).await;
    let replacement = json!({"annotation_type": "numeric", "name": "Walk", "description": "", "tags": [],
        "measurement_spec": {"measurement_type": "distance", "unit": "kilometer", "distance": {"value": 2}},
        "spec": {"default_note": "far"}});
    let replaced = person
        .put(&at(&annotation), &replacement)
        .await
        .must_be(200)
        .json();
    assert_eq!(replaced["name"], json!("Walk"));
    assert_eq!(replaced["spec"], json!({"default_note": "far", "scale": null}));
    assert_eq!(replaced["measurement_spec"]["unit"], json!("kilometer"));
    assert_eq!(replaced["created_at"], annotation["created_at"]);
    assert_ne!(replaced["updated_at"], annotation["updated_at"]);
    assert_eq!(person.get(&at(&annotation)).await.must_be(200).json(), replaced);
    assert_eq!(
        person.put(&at(&annotation), &moment("Tea")).await.faults(),
        ["body.annotation_type"],
        "its records are of its type"
    );
}

#[tokio::test]
async fn an_annotation_keeps_its_type_where_none_is_named() {
    let person = person();
    let annotation = create(&person, &moment("a")).await;
    let untyped = json!({"name": "b", "description": "", "tags": []});
    let replaced = person.put(&at(&annotation), &untyped).await.must_be(200).json();
    assert_eq!(
        (&replaced["name"], &replaced["annotation_type"]),
        (&json!("b"), &json!("moment"))
    );
    assert_eq!(
        person.post(PATH, &untyped).await.faults(),
        ["body.annotation_type"]
    );
}

#[tokio::test]
async fn what_was_changed_since_it_was_seen_is_not_overwritten() {
    let person = person();
    let annotation = create(&person, &moment("a")).await;
    let seen = person.get(&at(&annotation)).await.must_be(200);
    let tag = seen.header("etag").unwrap().to_owned();
    let change = |name: &str, tag: &str| {
        person
            .put(&at(&annotation), &moment(name))
            .header("if-match", tag)
    };
    change("b", "\"bogus\"").await.problem(412);
    assert_eq!(person.get(&at(&annotation)).await.must_be(200).json(), annotation);
    change("b", &format!("\"bogus\", {tag}")).await.must_be(200);
    change("c", &tag).await.problem(412);
    change("c", "*").await.must_be(200);
    let delete = person.call(Method::DELETE, &at(&annotation));
    delete.header("if-match", &tag).await.problem(412);
    let read = |tag: &str| person.get(&at(&annotation)).header("if-match", tag);
    read(&tag).await.problem(412);
    let tag_now = read("*").await.must_be(200).header("etag").unwrap().to_owned();
    read(&tag_now).await.must_be(200);
    let changed = person.get(&at(&annotation)).await.must_be(200).json();
    assert_eq!(
        (&changed["name"], &changed["deleted_at"]),
        (&json!("c"), &Value::Null)
    );
    let nowhere = person.put(&format!("{PATH}/{}", Uuid::new_v4()), &moment("x"));
    nowhere.header("if-match", &tag).await.problem(404);
}

#[tokio::test]
async fn a_write_is_not_refused_for_how_its_answer_would_be_sent() {
    let person = person();
    for refusal in ["identity;q=0", "*;q=0", "br, *;q=0", "gzip;q=0, identity;q=0.0"] {
        let made = person
            .post(PATH, &moment(refusal))
            .header("accept-encoding", refusal);
        made.await.must_be(201);
        person
            .get(PATH)
            .header("accept-encoding", refusal)
            .await
            .must_be(200);
    }
    assert_eq!(listed(&person).await.len(), 4);
}

#[tokio::test]
async fn the_answer_to_a_change_has_one_form() {
    let person = person();
    let address = at(&create(&person, &moment("a")).await);
    for call in [
        person.put(&address, &moment("b")),
        person.call(Method::DELETE, &address),
        person.call(Method::POST, &format!("{address}/cancel_deletion")),
    ] {
        let call = call.with("output", "zzz").with("columns", "nope");
        let reply = call.with("compression", "zstd").await.must_be(200);
        assert_eq!(
            reply.header("x-ignored-parameters"),
            Some("columns, compression, output")
        );
        assert_eq!(reply.json()["annotation_type"], "moment");
    }
    let strictly = person.put(&address, &moment("c")).with("output", "csv");
    assert_eq!(strictly.with("strict", "true").await.faults(), ["query.output"]);
}

#[tokio::test]
async fn an_annotation_is_its_owners_alone() {
    let (owner, stranger) = (person(), person());
    let annotation = create(&owner, &moment("a")).await;
    let calls = |address: &str| {
        let cancel = format!("{address}/cancel_deletion");
        [
            stranger.get(address),
            stranger.put(address, &moment("x")),
            stranger.call(Method::DELETE, address),
            stranger.call(Method::POST, &cancel),
        ]
    };
    for call in calls(&at(&annotation)) {
        call.await.problem(404);
    }
    for user in [owner.id, Uuid::new_v4()] {
        for call in calls(&at(&annotation)) {
            call.with("svc_userid", &user.to_string()).await.problem(403);
        }
        stranger
            .get(PATH)
            .with("svc_userid", &user.to_string())
            .await
            .problem(403);
    }
    for call in calls(&format!("{PATH}/{}", id(1))) {
        call.await.problem(404);
    }
    for call in calls(&format!("{PATH}/nosuch")) {
        assert_eq!(call.await.faults(), ["path.annotation_id"]);
    }
    let own = owner
        .get(&at(&annotation))
        .with("svc_userid", &owner.id.to_string())
        .await;
    assert_eq!(own.must_be(200).json(), annotation);
}

#[tokio::test]
async fn what_is_no_annotation_is_refused_and_makes_nothing() {
    let person = person();
    let mut nul = moment("a");
    nul["name"] = json!("a\u{0}b");
    let mut unit = numeric("a");
    unit["measurement_spec"]["custom"] = json!({"value": "much"});
    let mut colour = scale("a");
    colour["spec"]["scale"]["scale_mapping"]["color"]["mapping"]["1"] = json!("rebeccapurple");
    for (body, place) in [
        (json!([]), "body"),
        (json!({}), "body.annotation_type"),
        (json!({"annotation_type": "mood"}), "body.annotation_type"),
        (
            json!({"annotation_type": "boolean", "name": "a", "description": "", "tags": []}),
            "body.measurement_spec",
        ),
        (nul, "body.name"),
        (unit, "body.measurement_spec.custom.value"),
        (colour, "body.spec.scale.scale_mapping.color.mapping.1"),
        (moment(&"x".repeat(1_000_000)), "body.name"),
    ] {
        assert_eq!(person.post(PATH, &body).await.faults(), [place]);
    }
    person
        .post(PATH, &moment(&"x".repeat(2_000_000)))
        .await
        .problem(413);
    assert_eq!(person.post(PATH, &moment("a")).body("{").await.faults(), ["body"]);
    person
        .post(PATH, &moment("a"))
        .header("content-type", "text/plain")
        .await
        .problem(415);
    assert_eq!(
        person.get(PATH).with("annotation_type", "mood").await.faults(),
        ["query.annotation_type"]
    );
    assert_eq!(
        person.get(PATH).with("svc_userid", "me").await.faults(),
        ["query.svc_userid"]
    );
    assert!(listed(&person).await.is_empty());
    person
        .post(PATH, &moment("a"))
        .with("response_class", "anything")
        .await
        .must_be(201);
}

#[tokio::test]
async fn the_schemas_are_published() {
    let person = person();
    for (name, example) in [
        ("annotation", scale("a")),
        ("measurement", numeric("a")["measurement_spec"].clone()),
    ] {
        let path = format!("/user/v1alpha1/schema/{name}");
        let schema = person.get(&path).await.must_be(200).json();
        let validator = jsonschema::draft202012::new(&schema).unwrap();
        assert!(validator.is_valid(&example), "{example}");
        assert!(!validator.is_valid(&json!({})));
    }
}

#[tokio::test]
async fn replacements_at_the_same_time_leave_one_of_them_whole() {
    for backends in Backends::available() {
        let server = Setup::default().on(backends).start();
        let person = server.person();
        let annotation = create(&person, &moment("a")).await;
        let racing = (0..6).map(|number| {
            let mut body = moment(&number.to_string());
            body["description"] = json!(number.to_string());
            let (person, path) = (&person, at(&annotation));
            async move { person.put(&path, &body).await.must_be(200) }
        });
        join_all(racing).await;
        let kept = person.get(&at(&annotation)).await.must_be(200).json();
        assert_eq!(kept["name"], kept["description"]);
        assert_ne!(kept["name"], json!("a"));
    }
}

#[tokio::test]
async fn a_person_has_as_many_annotations_as_the_operator_allows() {
    let server = Setup::default().with("ALMANAC_LIMIT_ANNOTATIONS", "2").start();
    let (one, other) = (server.person(), server.person());
    let first = create(&one, &moment("a")).await;
    create(&one, &moment("b")).await;
    delete(&one, &first).await;
    let refused = one.post(PATH, &moment("c")).await;
    assert_eq!(refused.faults(), ["body"], "the deleted one is kept");
    assert!(refused.text().contains("ALMANAC_LIMIT_ANNOTATIONS"), "{refused}");
    cancel_deletion(&one, &first).await;
    create(&other, &moment("c")).await;
}
