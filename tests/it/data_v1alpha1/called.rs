//! Types by the names that people gave them, and names that nothing is called by.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{ALL_TIME, Person, Reply, at, heart_rate, id, person};
use crate::sharing::{share, share_of};

const TEA: &str = "Cups of tea";

/// Somebody with a metric called so, and its id.
async fn drinker() -> (Person, String) {
    let person = person();
    let definition = json!({"name": TEA, "record_spec": {"unit": "cup", "aggregation": "cumulative"}});
    let tea = person.define("Metric", &definition).await;
    person
        .records(&tea, &[json!({"start_time": at("10:00"), "value": 2})])
        .await;
    (person, tea)
}

fn detail(reply: &Reply) -> String {
    reply.json()["detail"].to_string()
}

/// One record by every read that takes a type.
async fn reads(person: &Person, name: &str) -> Vec<Reply> {
    let ranged = |path: String| {
        person
            .get(&path)
            .with("start_time", "2024-05-01")
            .with("end_time", "2024-05-02")
    };
    let v0 = |question: &str| ranged(format!("/data/v0/{}/{question}", person.id));
    vec![
        ranged(format!("/data/v1alpha1/metric/{name}")).await,
        ranged(format!("/data/v1alpha1/event/{name}")).await,
        ranged(format!("/data/v1alpha1/event/{name}/latest")).await,
        ranged(format!("/data/v1alpha1/event/{name}/summary")).await,
        ranged(format!("/data/v1alpha1/metric/{name}/agg/day"))
            .with("function", "sum")
            .await,
        v0("metric_samples").with("metric", name).await,
        v0("metric_time_series")
            .with("metric", name)
            .with("samprate", "1d")
            .with("output", "jstable")
            .await,
        ranged("/data/v0/time_series_grouped".to_owned())
            .with("metrics", name)
            .with("samprate", "1d")
            .with("output", "jstable")
            .await,
        person.get("/data/v1/catalog").with("data_type", name).await,
        person.get(&format!("/data/v1/catalog/{name}/v1")).await,
        person.get(&format!("/data/v1/catalog/{name}/v1/schema")).await,
    ]
}

#[tokio::test]
async fn an_own_type_is_read_and_written_by_its_name() {
    let (person, tea) = drinker().await;
    let (by_id, by_name) = (reads(&person, &tea).await, reads(&person, TEA).await);
    for (by_id, by_name) in by_id.into_iter().zip(by_name) {
        let by_id = by_id.must_be(200);
        assert!(by_id.body.len() > 2, "{by_id}");
        assert_eq!(by_name.must_be(200).body, by_id.body, "{by_id}");
    }
    let record = json!({"start_time": at("11:00"), "value": 1});
    person.record("Cups%20of%20tea", &record).await.upload();
    assert_eq!(person.rows("metric", TEA).await.len(), 2);
}

#[tokio::test]
async fn a_name_of_several_types_is_of_none_and_says_which_they_are() {
    let (person, tea) = drinker().await;
    let other = person.define("Event", &json!({"name": TEA})).await;
    for reply in reads(&person, TEA).await {
        let text = detail(&reply);
        reply.must_be(404);
        assert!(text.contains(&tea) && text.contains(&other), "{text}");
    }
    // An archived type has given its name back.
    person
        .put(
            &format!("/input/v1/data_type/{other}"),
            &json!({"deprecated": true}),
        )
        .await
        .must_be(200);
    assert_eq!(person.rows("metric", TEA).await.len(), 1);
}

#[tokio::test]
async fn a_list_has_names_beside_ids_and_reports_each_that_has_no_meaning() {
    let (person, tea) = drinker().await;
    let ask = |names: &str| {
        person
            .get("/data/v0/time_series_grouped")
            .with("start_time", "2024-05-01")
            .with("end_time", "2024-05-02")
            .with("samprate", "1d")
            .with("output", "jstable")
            .with("metrics", names)
    };
    let by_id = ask(&format!("HeartRate,{tea}")).await.must_be(200);
    let by_name = ask(&format!("HeartRate,{TEA}")).await.must_be(200);
    assert_eq!(by_name.body, by_id.body);
    let reply = ask(&format!("Nope,{TEA},HeartRate,Neither")).await;
    let detail = reply.json()["detail"].clone();
    let named: Vec<&Value> = (0..2).map(|place| &detail[place]["value"]).collect();
    assert_eq!(reply.faults().len(), 2, "{reply}");
    assert_eq!(named, [&json!("Nope"), &json!("Neither")]);
    let catalogued = person
        .get("/data/v1/catalog")
        .with("data_type", "HeartRate")
        .with("data_type", TEA);
    assert_eq!(catalogued.await.must_be(200).json().as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn no_name_hides_what_is_built_in() {
    let person = person();
    person.define("Event", &json!({"name": "HeartRate"})).await;
    person
        .records("HeartRate", &[heart_rate(id(1), &at("10:00"), 60)])
        .await;
    let rows: Vec<Value> = person.rows("metric", "HeartRate").await;
    assert_eq!(rows[0]["value"], 60.0);
}

#[tokio::test]
async fn nobody_elses_names_are_understood_or_told() {
    let (owner, tea) = drinker().await;
    let reader = person();
    share(&owner, &share_of(&[&tea], &reader)).await;
    let ask = |name: &str| {
        reader
            .read("metric", name)
            .with("svc_userid", &owner.id.to_string())
    };
    assert_eq!(ask(&tea).await.must_be(200).rows().len(), 1);
    let (by_name, by_nothing) = (ask(TEA).await, ask("Cups of coffee").await);
    assert_eq!((by_name.status, by_nothing.status), (403, 403));
    assert_eq!(detail(&by_name), detail(&by_nothing));
}

#[tokio::test]
async fn what_is_nearly_a_name_is_answered_with_the_name() {
    let (person, _) = drinker().await;
    for (text, meant) in [
        ("heart_rate", "HeartRate"),
        ("stepcount", "StepCount"),
        ("HartRate", "HeartRate"),
        ("cups-of-tee", TEA),
    ] {
        let reply = person
            .call(Method::GET, &format!("/data/v1alpha1/metric/{text}"))
            .with("start_time", ALL_TIME.0)
            .with("end_time", ALL_TIME.1)
            .await;
        assert!(
            detail(&reply).contains(&format!("did you mean {meant}?")),
            "{reply}"
        );
        reply.problem(404);
        let recorded = person.record(text, &json!({"value": 1})).await;
        assert!(detail(&recorded).contains(meant), "{recorded}");
        recorded.problem(404);
    }
    let reply = person.read("metric", "Nonsense").await;
    assert!(!detail(&reply).contains("meant"), "{reply}");
}

#[tokio::test]
async fn a_name_is_found_composed_or_not_and_with_commas_in_it() {
    let person = person();
    let cafe = person.define("Event", &json!({"name": "cafe\u{301}"})).await;
    let listed = person.define("Event", &json!({"name": "a,b"})).await;
    person.records(&cafe, &[json!({"start_time": at("10:00")})]).await;
    let catalogued = async |names: &str| -> Vec<Value> {
        let reply = person.get("/data/v1/catalog").with("data_type", names).await;
        let entries = reply.must_be(200).rows();
        entries.iter().map(|entry| entry["id"].clone()).collect()
    };
    for name in ["cafe\u{301}", "caf\u{e9}"] {
        assert_eq!(person.rows("event", name).await.len(), 1, "{name:?}");
        assert_eq!(catalogued(name).await, [json!(cafe)], "{name:?}");
    }
    assert_eq!(catalogued("a,b").await, [json!(listed)]);
    let both = [json!(cafe), json!("HeartRate")];
    assert_eq!(catalogued("caf\u{e9}, HeartRate").await, both);
}
