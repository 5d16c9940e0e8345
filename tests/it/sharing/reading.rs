//! What a reader sees of another person's data (rules 9.2b to 9.2f), while shares come and go.

use std::io::Read as _;

use reqwest::Method;
use serde_json::{Value, json};

use super::{at as address, group, join, share, share_of};
use crate::harness::{ALL_TIME, Call, Person, Setup, at, heart_rate, id, person, texts};

fn samples(reader: &Person, owner: &Person, start: &str, end: &str) -> Call {
    reader
        .get(&format!("/data/v0/{}/metric_samples", owner.id))
        .with("metric", "HeartRate")
        .with("start_time", start)
        .with("end_time", end)
}

async fn with_rates() -> Person {
    let owner = person();
    let rates = [(1, "09:00", 60), (2, "10:30", 61), (3, "12:30", 62)];
    let rates = rates.map(|(n, time, value)| heart_rate(id(n), &at(time), value));
    owner.records("HeartRate", &rates).await;
    owner
}

fn window(reader: &Person, start: &str, end: &str) -> Value {
    let mut body = share_of(&["HeartRate"], reader);
    body["time_start"] = json!(at(start));
    body["time_end"] = json!(at(end));
    body
}

#[tokio::test]
async fn whoever_asks_for_more_than_was_granted_gets_what_was_granted() {
    let (owner, reader) = (with_rates().await, person());
    share(&owner, &window(&reader, "10:00", "12:00")).await;
    let reply = samples(&reader, &owner, &at("08:00"), &at("14:00"))
        .await
        .must_be(200);
    assert_eq!(texts(&reply.rows(), "uuid"), [id(2).to_string()]);
    assert_eq!(
        reply.header("x-svc-effective-range"),
        Some("2024-05-01T10:00:00Z/2024-05-01T12:00:00Z")
    );
    let reply = samples(&reader, &owner, &at("08:00"), &at("09:30"))
        .await
        .must_be(200);
    assert_eq!(
        (reply.rows().len(), reply.header("x-svc-effective-range")),
        (0, Some(""))
    );
}

#[tokio::test]
async fn an_answer_about_somebody_else_may_be_compressed() {
    let (owner, reader) = (with_rates().await, person());
    share(&owner, &share_of(&["HeartRate"], &reader)).await;
    let ask = || samples(&reader, &owner, &at("08:00"), &at("14:00"));
    let plain = ask().await.must_be(200);
    let packed = ask().header("accept-encoding", "gzip").await.must_be(200);
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    let mut unpacked = Vec::new();
    flate2::read::MultiGzDecoder::new(&packed.body[..])
        .read_to_end(&mut unpacked)
        .unwrap();
    assert_eq!(unpacked, plain.body);
    let packed = ask().header("accept-encoding", "zstd").await.must_be(200);
    assert_eq!(zstd::decode_all(&packed.body[..]).unwrap(), plain.body);
}

#[tokio::test]
async fn windows_of_several_shares_are_joined_and_gaps_stay_gaps() {
    let (owner, reader) = (with_rates().await, person());
    let friends = group(&owner, &json!({"title": "Friends", "is_public": true})).await;
    join(&reader, &friends).await;
    share(&owner, &window(&reader, "08:00", "09:30")).await;
    let mut through = window(&reader, "12:00", "13:00");
    through["permissions"] = json!([]);
    through["group_permissions"] = json!([{"allowed_group_id": friends}]);
    share(&owner, &through).await;
    let reply = samples(&reader, &owner, &at("08:30"), &at("14:00"))
        .await
        .must_be(200);
    assert_eq!(
        texts(&reply.rows(), "uuid"),
        [id(1).to_string(), id(3).to_string()]
    );
    assert_eq!(
        reply.header("x-svc-effective-range"),
        Some("2024-05-01T08:30:00Z/2024-05-01T09:30:00Z, 2024-05-01T12:00:00Z/2024-05-01T13:00:00Z")
    );
}

#[tokio::test]
async fn a_base_is_read_with_what_is_shared_of_it_and_definitions_by_their_own_names() {
    let (owner, reader) = (person(), person());
    let theirs = owner.id.to_string();
    let (tea, coffee) = (
        owner
            .define("Event", &json!({"name": "Tea", "description": "d"}))
            .await,
        owner
            .define("Event", &json!({"name": "Coffee", "description": "d"}))
            .await,
    );
    let event = |n: u32, time: &str| json!({"id": id(n), "start_time": at(time)});
    owner.records(&tea, &[event(1, "08:00"), event(2, "10:00")]).await;
    owner.records(&coffee, &[event(3, "10:00")]).await;
    let shared = |data_type: &str, start: &str, end: &str| {
        let mut body = share_of(&[data_type], &reader);
        body["time_start"] = json!(at(start));
        body["time_end"] = json!(at(end));
        body
    };
    let read = |name: &str| reader.read("event", name).with("svc_userid", &theirs);
    let ids = |numbers: [u32; 2]| numbers.map(|n| id(n).to_string());

    share(&owner, &shared(&tea, "07:00", "09:00")).await;
    read("Event").await.must_be(403);
    share(&owner, &shared("Event", "09:30", "11:00")).await;
    let base = read("Event").await.must_be(200);
    assert_eq!(texts(&base.rows(), "id"), ids([2, 3]));
    assert_eq!(
        base.header("x-svc-effective-range"),
        Some("2024-05-01T09:30:00Z/2024-05-01T11:00:00Z")
    );
    let definition = read(&tea).await.must_be(200);
    assert_eq!(texts(&definition.rows(), "id"), ids([1, 2]));
}

#[tokio::test]
async fn rule_9_2f_a_reader_never_writes_changes_or_shares_on() {
    let (owner, reader, third) = (with_rates().await, person(), person());
    let mut all = share_of(&[], &reader);
    all["share_all_data"] = json!(true);
    share(&owner, &all).await;
    samples(&reader, &owner, &at("08:00"), &at("14:00"))
        .await
        .must_be(200);
    // What the reader deletes and shares is the reader's own.
    reader.delete("HeartRate", id(1)).await;
    share(&reader, &share_of(&["HeartRate"], &third)).await;
    samples(&third, &owner, &at("08:00"), &at("14:00"))
        .await
        .problem(403);
    assert_eq!(owner.all_samples("HeartRate").await.len(), 3);
    // Nor is what the owner called something the reader's to change.
    let annotations = "/user/v1alpha1/annotation";
    let called =
        |name: &str| json!({"annotation_type": "moment", "name": name, "description": "", "tags": []});
    let annotation = owner.post(annotations, &called("tea")).await.must_be(201).json();
    let path = format!("{annotations}/{}", annotation["id"].as_str().unwrap());
    let calls = || {
        [
            reader.put(&path, &called("mine")),
            reader.call(Method::DELETE, &path),
        ]
    };
    for call in calls() {
        call.await.problem(404);
    }
    for call in calls() {
        call.with("svc_userid", &owner.id.to_string()).await.problem(403);
    }
    let tea = owner
        .define("Event", &json!({"name": "Tea", "description": "d"}))
        .await;
    let tea = format!("/input/v1/data_type/{tea}");
    let reply = reader.put(&tea, &json!({"name": "Mine"})).await;
    assert!(matches!(reply.status, 403 | 404), "{reply}");
    assert_eq!(owner.get(&path).await.must_be(200).json()["name"], "tea");
    assert_eq!(owner.get(&tea).await.must_be(200).json()["name"], "Tea");
}

#[tokio::test]
async fn a_tag_tells_a_reader_nothing_of_what_happens_outside_the_windows() {
    // Nobody moves pieces here.
    let server = Setup::default().no_upkeep().start();
    let (owner, reader, other) = (server.person(), server.person(), server.person());
    let rate = |number, moment: &str| heart_rate(id(number), moment, 61);
    owner.records("HeartRate", &[rate(1, &at("11:00"))]).await;
    for grantee in [&reader, &other] {
        share(&owner, &window(grantee, "10:00", "12:00")).await;
    }
    let ask = |who: &Person| samples(who, &owner, &at("08:00"), &at("14:00"));
    let tag = async |who: &Person| ask(who).await.must_be(200).header("etag").unwrap().to_owned();
    let (before, of_other, of_owner) = (tag(&reader).await, tag(&other).await, tag(&owner).await);
    assert_ne!(before, of_other, "a tag is one reader's own");
    owner
        .records("HeartRate", &[rate(2, "2023-01-01T12:00:00Z")])
        .await;
    owner.delete("HeartRate", id(2)).await;
    ask(&reader).header("if-none-match", &before).await.must_be(304);
    ask(&reader).header("if-none-match", &of_other).await.must_be(200);
    ask(&owner).header("if-none-match", &of_owner).await.must_be(200);
    owner.records("HeartRate", &[rate(3, &at("11:30"))]).await;
    let reply = ask(&reader).header("if-none-match", &before).await.must_be(200);
    assert_eq!(reply.rows().len(), 2);
}

#[tokio::test]
async fn rule_9_2d_a_plan_tells_a_reader_nothing_of_what_is_replaced_outside_the_windows() {
    // Nobody moves pieces here.
    let server = Setup::default().no_upkeep().start();
    let (owner, reader) = (server.person(), server.person());
    let elsewhere = |value| heart_rate(id(2), "2023-01-01T12:00:00Z", value);
    owner
        .records("HeartRate", &[heart_rate(id(1), &at("11:00"), 61)])
        .await;
    owner.records("HeartRate", &[elsewhere(62)]).await;
    share(&owner, &window(&reader, "10:00", "12:00")).await;
    let plan = async || {
        let call = reader
            .get("/data/v1alpha1/event/HeartRate/agg/day")
            .with("svc_userid", &owner.id.to_string())
            .with("start_time", ALL_TIME.0)
            .with("end_time", ALL_TIME.1)
            .with("explain", "plan");
        call.await.must_be(200).text().to_owned()
    };
    let before = plan().await;
    assert!(before.contains("PartitionExec"), "{before}");
    owner.records("HeartRate", &[elsewhere(63)]).await;
    assert_eq!(plan().await, before);
}

#[tokio::test]
async fn rule_9_2d_a_tag_tells_a_reader_of_one_annotation_nothing_of_others() {
    // Nobody moves pieces here.
    let server = Setup::default().no_upkeep().start();
    let (owner, reader) = (server.person(), server.person());
    let annotations = "/user/v1alpha1/annotation";
    let called =
        |name: &str| json!({"annotation_type": "moment", "name": name, "description": "", "tags": []});
    let made = async |name: &str| owner.post(annotations, &called(name)).await.must_be(201).json();
    let renamed = async |annotation: &Value, name: &str| {
        let path = format!("{annotations}/{}", annotation["id"].as_str().unwrap());
        owner.put(&path, &called(name)).await.must_be(200);
    };
    let (tea, walk) = (made("tea").await, made("walk").await);
    let record = json!({"recorded_at": at("10:00"), "sources": [tea["svc_source_id"]]});
    owner.records("MomentAnnotation", &[record]).await;
    let data_type = format!("MomentAnnotation/{}", tea["id"].as_str().unwrap());
    share(&owner, &share_of(&[&data_type], &reader)).await;
    let ask = || {
        reader
            .get(&format!("/data/v1alpha1/event/{data_type}"))
            .with("svc_userid", &owner.id.to_string())
            .with("start_time", ALL_TIME.0)
            .with("end_time", ALL_TIME.1)
    };
    let tag = ask().await.must_be(200).header("etag").unwrap().to_owned();
    renamed(&walk, "run").await;
    made("sleep").await;
    ask().header("if-none-match", &tag).await.must_be(304);
    renamed(&tea, "mate").await;
    let reply = ask().header("if-none-match", &tag).await.must_be(200);
    assert_eq!(texts(&reply.rows(), "source_name"), ["mate"]);
}

#[tokio::test]
async fn a_known_answer_is_not_known_any_more_when_the_share_changes() {
    let (owner, reader) = (with_rates().await, person());
    let given = share(&owner, &window(&reader, "10:00", "12:00")).await;
    let ask = || samples(&reader, &owner, &at("08:00"), &at("14:00"));
    let tag = ask().await.must_be(200).header("etag").unwrap().to_owned();
    ask().header("if-none-match", &tag).await.must_be(304);
    owner
        .put(&address(&given), &json!({"time_end": at("13:00")}))
        .await
        .must_be(200);
    let reply = ask().header("if-none-match", &tag).await.must_be(200);
    assert_eq!(reply.rows().len(), 2);
    owner.call(Method::DELETE, &address(&given)).await.must_be(204);
    ask().header("if-none-match", &tag).await.problem(403);
}

#[tokio::test]
async fn rule_9_2b_revoking_ends_the_next_request_and_a_download_underway() {
    let server = Setup::default().start();
    let (owner, reader) = (server.person(), server.person());
    for hour in 0..40 {
        let rates: Vec<Value> = (0..5_000)
            .map(|n| {
                let record = hour * 5_000 + n;
                heart_rate(id(record), &crate::harness::instant(record), 60)
            })
            .collect();
        owner.records("HeartRate", &rates).await;
    }
    let given = share(&owner, &share_of(&["HeartRate"], &reader)).await;
    let mut answer = samples(&reader, &owner, "2024-01-01T00:00:00Z", "2025-01-01T00:00:00Z")
        .open()
        .await
        .unwrap();
    assert_eq!(answer.status(), 200);
    answer.chunk().await.unwrap().expect("a first chunk");
    owner.call(Method::DELETE, &address(&given)).await.must_be(204);
    samples(&reader, &owner, &at("08:00"), &at("14:00"))
        .await
        .problem(403);
    // The service looks again once a second has passed; what the network already holds still comes.
    tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
    let mut rest = Ok(Some(bytes::Bytes::new()));
    while let Ok(Some(_)) = &rest {
        rest = answer.chunk().await;
    }
    assert!(rest.is_err(), "the download went on to its end");
}

#[tokio::test]
async fn an_annotation_that_is_shared_alone_is_available_without_its_tags() {
    let (owner, reader) = (person(), person());
    let made = |name: &str| {
        let body = json!({"annotation_type": "moment", "name": name, "description": "", "tags": ["hot"]});
        let call = owner.post("/user/v1alpha1/annotation", &body);
        async move { call.await.must_be(201).json() }
    };
    let (tea, coffee) = (made("tea").await, made("coffee").await);
    let of = |annotation: &Value, time: &str| {
        json!({
            "recorded_at": time, "sources": [annotation["svc_source_id"]],
        })
    };
    let records = [
        of(&tea, &at("10:00")),
        of(&tea, &at("12:00")),
        of(&coffee, &at("14:00")),
    ];
    owner.records("MomentAnnotation", &records).await;
    let id = tea["id"].as_str().unwrap();
    let data_type = format!("MomentAnnotation/{id}");
    share(&owner, &share_of(&[&data_type], &reader)).await;
    let theirs = owner.id.to_string();
    let available = async || {
        let call = reader
            .get("/data/v1alpha1/data_available")
            .with("start_time", ALL_TIME.0)
            .with("end_time", ALL_TIME.1)
            .with("svc_userid", &theirs);
        call.await.must_be(200).json()
    };
    let (first, last) = (at("10:00"), at("12:00"));
    let alone = json!({&data_type: {"start_time": first, "end_time": last, "count": 2}});
    assert_eq!(available().await, json!([&alone]));
    let seen = reader.get(&format!("/user/v1alpha1/annotation/{id}"));
    let seen = seen.with("svc_userid", &theirs).await.must_be(200).json();
    assert_eq!((&seen["name"], &seen["tags"]), (&json!("tea"), &json!([])));
    let own = owner
        .get(&format!("/user/v1alpha1/annotation/{id}"))
        .await
        .must_be(200)
        .json();
    assert_eq!(own["tags"], json!(["hot"]));
    // Less of all of its type takes nothing away, and neither does the deletion of what records belong to.
    let mut of_all = share_of(&["MomentAnnotation"], &reader);
    of_all["time_start"] = json!("2021-01-01T00:00:00Z");
    of_all["time_end"] = json!("2021-02-01T00:00:00Z");
    share(&owner, &of_all).await;
    assert_eq!(available().await, json!([&alone]));
    let delete = owner.call(Method::DELETE, &format!("/user/v1alpha1/annotation/{id}"));
    delete.await.must_be(200);
    assert_eq!(available().await, json!([&alone]));
}

#[tokio::test]
async fn a_private_field_is_refused_where_it_was_named() {
    let (owner, reader) = (person(), person());
    share(&owner, &share_of(&["MomentAnnotation"], &reader)).await;
    for (name, value) in [("group", "source_id"), ("filter", "source_id:a")] {
        let call = reader
            .get("/data/v1alpha1/event/MomentAnnotation/agg/day")
            .with("start_time", ALL_TIME.0)
            .with("end_time", ALL_TIME.1)
            .with("svc_userid", &owner.id.to_string())
            .with(name, value);
        assert_eq!(call.await.faults(), [format!("query.{name}")]);
    }
}

/// Neither through members of objects nor in what Arrow answers carry beside their rows.
#[tokio::test]
async fn rule_9_2c_what_is_not_shared_of_records_is_told_in_no_way() {
    let (owner, reader) = (person(), person());
    let place = json!({"type": "object", "properties": {
        "name": {"type": "string"}, "floor": {"type": "integer"}}});
    let schema = json!({"properties": {
        "place": place, "level": {"type": "integer"}, "mood": {"type": "string"}}});
    let definition = json!({"name": "Cut", "description": "d", "record_spec": {
        "type": "metric", "aggregation": "discrete", "unit": "kg", "schema": schema}});
    let data_type = owner.define("Metric", &definition).await;
    let record = |n: u32, start: &str, end: &str, word: &str, level: i64| {
        json!({"id": id(n), "start_time": at(start), "end_time": at(end), "value": 70, "level": level,
            "mood": format!("{word}mood"), "place": {"name": format!("{word}name"), "floor": level}})
    };
    let (cut, beyond) = (0x1234_5678_9abc_i64, 0x2345_6789_abcd_i64);
    let records = [
        record(1, "08:00", "11:00", "HIDDEN", cut),
        record(2, "10:30", "10:40", "shown", 7),
        record(3, "12:00", "12:10", "HIDDEN", beyond),
    ];
    owner.records(&data_type, &records).await;
    let mut body = share_of(&[&data_type], &reader);
    body["time_start"] = json!(at("10:00"));
    body["time_end"] = json!(at("11:30"));
    share(&owner, &body).await;

    let theirs = owner.id.to_string();
    let read = |path: &str, output: &str| {
        let call = reader
            .get(path)
            .with("svc_userid", &theirs)
            .with("output", output);
        call.with("start_time", ALL_TIME.0).with("end_time", ALL_TIME.1)
    };
    let metric = format!("/data/v1alpha1/metric/{data_type}");
    let rows = || read(&metric, "ndjson");
    let groups = read(&format!("{metric}/agg/day"), "ndjson").with("function", "avg");
    let select = |name: &str| {
        let selector = format!("{{__name__=\"{data_type}\",\"place.name\"=\"{name}\"}}[9d] @ 1714651200");
        let call = reader.get("/data/v1/records").with("svc_userid", &theirs);
        call.with("q", &selector)
    };
    let sql = |columns: &str, output: &str| {
        let text = format!("SELECT {columns} FROM \"{theirs}\".\"{data_type}\"");
        reader.post("/data/v1/sql", &json!({"query": text, "output": output}))
    };
    for (call, expected) in [
        (rows(), 2),
        (rows().with("columns", "place.name,place.floor"), 2),
        (rows().with("filter", "place.name:shownname"), 1),
        (rows().with("filter", "place.name:HIDDENname"), 0),
        (rows().with("filter", "place.floor>7"), 0),
        (groups.with("group", "place.name"), 2),
        (select("shownname"), 1),
        (select("HIDDENname"), 0),
        (
            sql("place, place.name AS name, place.floor AS floor", "ndjson"),
            2,
        ),
        (sql("unnest(place)", "ndjson"), 2),
    ] {
        let reply = call.await.must_be(200);
        assert_eq!(reply.text().lines().count(), expected, "{reply}");
        let hidden = ["HIDDEN".to_owned(), cut.to_string(), beyond.to_string()];
        assert!(
            hidden.iter().all(|hidden| !reply.text().contains(hidden)),
            "{reply}"
        );
    }
    let hidden = [cut, beyond].into_iter().flat_map(|number| {
        let fraction = number as f64;
        [number.to_le_bytes().to_vec(), fraction.to_le_bytes().to_vec()]
    });
    let hidden: Vec<Vec<u8>> = hidden.chain([b"HIDDEN".to_vec()]).collect();
    for output in ["arrow", "arrowraw"] {
        for call in [read(&metric, output), sql("*", output)] {
            let reply = call.await.must_be(200);
            let found = hidden.iter().filter(|hidden| {
                let mut places = reply.body.windows(hidden.len());
                places.any(|place| place == hidden.as_slice())
            });
            assert_eq!(found.count(), 0, "{output}");
        }
    }
}
