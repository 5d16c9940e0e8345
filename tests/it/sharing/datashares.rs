//! Data shares and what their receivers see of them (rules 9.1, 9.2a, 9.2e).

use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{DATASET, DATASHARE, GROUP, at, group, join, share, share_of};
use crate::harness::person;

fn ids(list: &Value, member: &str) -> Vec<Value> {
    list.as_array()
        .unwrap()
        .iter()
        .map(|one| one[member].clone())
        .collect()
}

#[tokio::test]
async fn changes_at_the_same_time_all_succeed() {
    let (owner, reader) = (person(), person());
    let share = at(&share(&owner, &share_of(&["HeartRate"], &reader)).await);
    let group = group(&owner, &json!({"title": "g", "is_public": true})).await;
    let participant = join(&reader, &group).await;
    let metadata = format!("{GROUP}/{group}/participants/{participant}/metadata");
    let racing = (0..20).map(|number| {
        let (owner, share, metadata) = (&owner, &share, &metadata);
        let group = format!("{GROUP}/{group}");
        async move {
            let text = number.to_string();
            let named = owner.put(share, &json!({"datashare_name": &text}));
            let described = owner.put(&group, &json!({"description": &text}));
            let noted = owner
                .call(Method::PATCH, metadata)
                .header("content-type", "application/json")
                .body(json!({ text: number }).to_string());
            let (named, described, noted) = tokio::join!(named, described, noted);
            named.must_be(200);
            described.must_be(200);
            noted.must_be(200);
        }
    });
    futures::future::join_all(racing).await;
    let noted = owner.get(&metadata).await.must_be(200).json();
    assert_eq!(noted.as_object().unwrap().len(), 20, "{noted}");
}

#[tokio::test]
async fn a_share_says_what_was_granted_to_whom_and_is_read_again() {
    let (owner, reader) = (person(), person());
    let body = json!({
        "datashare_name": "Coach", "svc_user_name": "Alex",
        "svc_data_types": ["HeartRate", "StepCount", "HeartRate", "file:/plans/", "filehistory:/notes.md"],
        "share_all_data": false,
        "time_start": "2024-01-01T00:00:00+01:00", "time_end": null,
        "permissions": [{"allowed_svc_userid": reader.id}], "group_permissions": [],
    });
    let made = share(&owner, &body).await;
    assert_eq!(made["datashare_name"], "Coach");
    assert_eq!(made["svc_userid"], json!(owner.id));
    assert_eq!(made["svc_user_name"], "Alex");
    let types = json!(["HeartRate", "StepCount", "file:/plans/", "filehistory:/notes.md"]);
    assert_eq!(made["svc_data_types"], types);
    assert_eq!(made["time_start"], "2023-12-31T23:00:00Z");
    assert_eq!(made["time_end"], Value::Null);
    assert_eq!(
        ids(&made["permissions"], "allowed_svc_userid"),
        [json!(reader.id)]
    );
    assert_eq!(owner.get(&at(&made)).await.must_be(200).json()["datashare"], made);
    assert_eq!(owner.get(DATASHARE).await.must_be(200).json(), json!([made]));
    for older in ["/user/v1alpha1/datashare", "/user/v1alpha1/datashares"] {
        assert_eq!(
            owner.get(older).await.must_be(200).json(),
            json!([made]),
            "{older}"
        );
    }
    // Nobody else sees it as a share, not even its receiver.
    for other in [&reader, &person()] {
        other.get(&at(&made)).await.problem(404);
        other
            .put(&at(&made), &json!({"datashare_name": "x"}))
            .await
            .problem(404);
        other.call(Method::DELETE, &at(&made)).await.problem(404);
        assert_eq!(other.get(DATASHARE).await.must_be(200).json(), json!([]));
    }
}

#[tokio::test]
async fn rule_9_2a_what_is_absent_stays_null_opens_an_end_and_an_empty_list_revokes() {
    let (owner, one, other) = (person(), person(), person());
    let audience = group(&owner, &json!({"title": "Friends"})).await;
    let mut body = share_of(&["HeartRate"], &one);
    body["time_start"] = json!("2024-01-01T00:00:00Z");
    body["time_end"] = json!("2025-01-01T00:00:00Z");
    body["group_permissions"] = json!([{"allowed_group_id": audience}]);
    let made = share(&owner, &body).await;
    let put = async |body: Value| {
        let reply = owner.put(&at(&made), &body).await.must_be(200);
        let mut changed = reply.json()["datashare"].clone();
        assert_eq!(owner.get(&at(&made)).await.json()["datashare"], changed);
        changed["updated_at"] = made["updated_at"].clone();
        changed
    };
    let mut expected = made.clone();
    assert_eq!(put(json!({})).await, expected);
    expected["datashare_name"] = json!("Renamed");
    assert_eq!(put(json!({"datashare_name": "Renamed"})).await, expected);
    expected["time_end"] = Value::Null;
    assert_eq!(put(json!({"time_end": null})).await, expected);
    expected["group_permissions"] = json!([]);
    assert_eq!(put(json!({"group_permissions": []})).await, expected);
    let changed = put(json!({"permissions": [{"allowed_svc_userid": other.id}]})).await;
    assert_eq!(
        ids(&changed["permissions"], "allowed_svc_userid"),
        [json!(other.id)]
    );
    let changed = put(json!({"permissions": [], "svc_data_types": []})).await;
    assert_eq!(
        (&changed["permissions"], &changed["svc_data_types"]),
        (&json!([]), &json!([]))
    );
}

#[tokio::test]
async fn the_search_for_types_that_a_share_cannot_name_ends() {
    let owner = person();
    let names: Vec<String> = (0..1_000).map(|number| format!("q{number}")).collect();
    let body = json!({"datashare_name": "Wrong", "svc_data_types": names});
    let places = owner.post(DATASHARE, &body).await.faults();
    assert_eq!((places.len(), places[100].as_str()), (101, "body"));
}

#[tokio::test]
async fn what_a_share_cannot_be_is_refused_with_its_place_and_changes_nothing() {
    let (owner, reader) = (person(), person());
    let own = owner.define("Event", &json!({"name": "Tea"})).await;
    let foreign = reader.define("Event", &json!({"name": "Coffee"})).await;
    let nap = json!({"annotation_type": "moment", "name": "Nap", "description": "", "tags": []});
    let nap = owner
        .post("/user/v1alpha1/annotation", &nap)
        .await
        .must_be(201)
        .json()["id"]
        .clone();
    let nap = nap.as_str().unwrap();
    let (moments, numbers) = (
        format!("MomentAnnotation/{nap}"),
        format!("NumericAnnotation/{nap}"),
    );
    let good = json!({
        "datashare_name": "Good",
        "svc_data_types": ["HeartRate", own, "MomentAnnotation", moments, "file:/", "filehistory:/a"],
        "permissions": [{"allowed_svc_userid": reader.id}],
    });
    let made = share(&owner, &good).await;
    let cases = [
        (json!({"time_start": "2024-01-01T00:00:00"}), "body.time_start"),
        (json!({"time_start": "2024-01-01"}), "body.time_start"),
        (json!({"time_end": "yesterday"}), "body.time_end"),
        (json!({"time_end": 1_700_000_000}), "body.time_end"),
        (
            json!({"time_start": "2024-01-02T00:00:00Z", "time_end": "2024-01-02T00:00:00Z"}),
            "body.time_end",
        ),
        (
            json!({"time_start": "2024-01-02T00:00:00Z", "time_end": "2024-01-01T00:00:00Z"}),
            "body.time_end",
        ),
        (
            json!({"svc_data_types": ["HeartRate", "Nosuch"]}),
            "body.svc_data_types.1",
        ),
        (json!({"svc_data_types": [foreign]}), "body.svc_data_types.0"),
        (json!({"svc_data_types": [numbers]}), "body.svc_data_types.0"),
        (
            json!({"svc_data_types": ["file:notes.md"]}),
            "body.svc_data_types.0",
        ),
        (
            json!({"svc_data_types": ["file:/a\u{0}b"]}),
            "body.svc_data_types.0",
        ),
        (json!({"datashare_name": " "}), "body.datashare_name"),
        (json!({"datashare_name": "a\u{0}"}), "body.datashare_name"),
        (
            json!({"permissions": [{"allowed_svc_userid": "me"}]}),
            "body.permissions.0.allowed_svc_userid",
        ),
        (
            json!({"permissions": [{}]}),
            "body.permissions.0.allowed_svc_userid",
        ),
        (json!({"share_all_data": "yes"}), "body.share_all_data"),
    ];
    for (change, place) in cases {
        assert_eq!(owner.put(&at(&made), &change).await.faults(), [place], "{change}");
        let mut whole = good.clone();
        whole
            .as_object_mut()
            .unwrap()
            .extend(change.as_object().unwrap().clone());
        assert_eq!(owner.post(DATASHARE, &whole).await.faults(), [place], "{change}");
    }
    let unknown = Uuid::new_v4();
    let change = json!({"group_permissions": [{"allowed_group_id": unknown}], "datashare_name": "Changed"});
    let problem = owner.put(&at(&made), &change).await.problem(400);
    assert!(
        problem["detail"].as_str().unwrap().contains(&unknown.to_string()),
        "{problem}"
    );
    // Without anybody to share with, a share is a mistake.
    let nobody = json!({"datashare_name": "Nobody", "svc_data_types": ["HeartRate"]});
    assert_eq!(
        owner.post(DATASHARE, &nobody).await.faults(),
        ["body.permissions"]
    );
    let nameless = json!({"permissions": [{"allowed_svc_userid": reader.id}]});
    assert_eq!(
        owner.post(DATASHARE, &nameless).await.faults(),
        ["body.datashare_name"]
    );
    assert_eq!(owner.get(DATASHARE).await.must_be(200).json(), json!([made]));
}

#[tokio::test]
async fn a_private_group_of_others_cannot_be_told_from_none() {
    let (owner, stranger, reader) = (person(), person(), person());
    let hidden = group(&owner, &json!({"title": "Hidden"})).await;
    let mut body = share_of(&["HeartRate"], &reader);
    body["group_permissions"] = json!([{"allowed_group_id": hidden}]);
    let refused = stranger.post(DATASHARE, &body).await.problem(400);
    body["group_permissions"] = json!([{"allowed_group_id": Uuid::nil()}]);
    let unknown = stranger.post(DATASHARE, &body).await.problem(400);
    let detail = |problem: &Value| problem["detail"].as_str().unwrap().to_owned();
    assert_eq!(
        detail(&refused).replace(&hidden, "it"),
        detail(&unknown).replace(&Uuid::nil().to_string(), "it")
    );
    stranger.get(&format!("{GROUP}/{hidden}")).await.problem(404);
}

#[tokio::test]
async fn receivers_see_what_they_can_read_after_what_is_their_own() {
    let (owner, reader, member) = (person(), person(), person());
    let friends = group(&owner, &json!({"title": "Friends", "is_public": true})).await;
    join(&member, &friends).await;
    let mut body = share_of(&["HeartRate"], &reader);
    body["group_permissions"] = json!([{"allowed_group_id": friends}]);
    body["time_start"] = json!("2024-01-01T00:00:00Z");
    body["svc_user_name"] = json!("Alex");
    let made = share(&owner, &body).await;
    let own = json!({
        "grant_id": null, "grant_type": "self", "datashare_id": null, "datashare_name": null,
        "group_id": null,
        "sharing_svc_userid": null, "sharing_svc_user_name": null, "svc_data_types": [],
        "share_all_data": true,
        "time_start": null, "time_end": null,
    });
    let row = |kind: &str, grant: &Value, group: Value| {
        json!({
            "grant_id": grant["grant_id"], "grant_type": kind, "datashare_id": made["datashare_id"],
            "datashare_name": "a share", "group_id": group, "sharing_svc_userid": owner.id,
            "sharing_svc_user_name": "Alex", "svc_data_types": ["HeartRate"], "share_all_data": false,
            "time_start": "2024-01-01T00:00:00Z", "time_end": null,
        })
    };
    let direct = row("user", &made["permissions"][0], Value::Null);
    let through = row("group", &made["group_permissions"][0], json!(friends));
    assert_eq!(
        reader.get(DATASET).await.must_be(200).json(),
        json!([own, direct])
    );
    assert_eq!(
        member.get(DATASET).await.must_be(200).json(),
        json!([own, through])
    );
    assert_eq!(owner.get(DATASET).await.must_be(200).json(), json!([own]));
    for older in ["/user/v1alpha1/dataset", "/user/v1alpha1/datasets"] {
        assert_eq!(
            reader.get(older).await.must_be(200).json(),
            json!([own, direct]),
            "{older}"
        );
    }
    // A receiver gives up their own grant; a group's is taken back by who gave it.
    let dataset = |row: &Value| format!("{DATASET}/{}", row["grant_id"].as_str().unwrap());
    member.call(Method::DELETE, &dataset(&through)).await.problem(404);
    member.call(Method::DELETE, &dataset(&direct)).await.problem(404);
    reader.call(Method::DELETE, &dataset(&direct)).await.must_be(204);
    reader.call(Method::DELETE, &dataset(&direct)).await.problem(404);
    assert_eq!(reader.get(DATASET).await.json(), json!([own]));
    assert_eq!(
        owner.get(&at(&made)).await.json()["datashare"]["permissions"],
        json!([])
    );
    owner.call(Method::DELETE, &dataset(&through)).await.must_be(204);
    assert_eq!(member.get(DATASET).await.json(), json!([own]));
    reader
        .call(Method::DELETE, &format!("{DATASET}/nothing"))
        .await
        .problem(404);
}

#[tokio::test]
async fn rule_9_2e_a_type_is_listed_when_one_window_covers_the_whole_range() {
    let (owner, reader) = (person(), person());
    let window = |start: &str, end: &str| {
        let mut body = share_of(&["HeartRate", "file:/a"], &reader);
        body["time_start"] = json!(start);
        body["time_end"] = json!(end);
        body
    };
    share(&owner, &window("2024-01-01T00:00:00Z", "2024-02-01T00:00:00Z")).await;
    share(&owner, &window("2024-02-01T00:00:00Z", "2024-03-01T00:00:00Z")).await;
    share(&owner, &window("2024-04-01T00:00:00Z", "2024-05-01T00:00:00Z")).await;
    let listed = async |start: &str, end: &str| {
        let mut answers = Vec::new();
        for path in [
            format!("/user/v1/shared/{}/data_types", owner.id),
            format!("/user/v1alpha1/access/{}/data_types", owner.id),
        ] {
            let call = reader.get(&path).with("start_time", start).with("end_time", end);
            answers.push(call.await.must_be(200).json());
        }
        assert_eq!(answers[0], answers[1]);
        answers.remove(0)
    };
    let covered = json!({"all_data_types": false, "svc_data_types": ["HeartRate"]});
    let not = json!({"all_data_types": false, "svc_data_types": []});
    assert_eq!(
        listed("2024-01-15T00:00:00Z", "2024-03-01T00:00:00Z").await,
        covered
    );
    assert_eq!(
        listed("2024-04-01T00:00:00Z", "2024-05-01T00:00:00Z").await,
        covered
    );
    assert_eq!(listed("2024-02-15T00:00:00Z", "2024-04-15T00:00:00Z").await, not);
    assert_eq!(listed("2023-12-31T23:59:59Z", "2024-01-02T00:00:00Z").await, not);
    let mut all = share_of(&[], &reader);
    all["share_all_data"] = json!(true);
    let all = share(&owner, &all).await;
    let everything = listed("0001-01-01T00:00:00Z", "9999-01-01T00:00:00Z").await;
    assert_eq!(
        everything,
        json!({"all_data_types": true, "svc_data_types": ["HeartRate"]})
    );
    owner.call(Method::DELETE, &at(&all)).await.must_be(204);
    // Of oneself everything, of a stranger nothing.
    let path = |id: Uuid| format!("/user/v1/shared/{id}/data_types");
    assert_eq!(
        owner.get(&path(owner.id)).await.must_be(200).json(),
        json!({"all_data_types": true, "svc_data_types": []})
    );
    for nobody in [Uuid::new_v4(), person().id] {
        assert_eq!(reader.get(&path(nobody)).await.must_be(200).json(), not);
    }
    reader.get("/user/v1/shared/nobody/data_types").await.must_be(422);
}
