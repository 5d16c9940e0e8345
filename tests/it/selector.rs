//! `/data/v1/records`: rule 5.7, records by a selector.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Call, Person, Reply, at, heart_rate, id, number, person, steps, texts};
use crate::sharing::{share, share_of};

fn select(person: &Person, selector: &str) -> Call {
    person.get("/data/v1/records").with("q", selector)
}

/// The rows of an answer of one record a line.
async fn lines(call: Call) -> Vec<Value> {
    let reply = call.await.must_be(200);
    assert!(
        reply
            .header("content-type")
            .unwrap()
            .starts_with("application/x-ndjson"),
        "{reply}"
    );
    reply
        .text()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

async fn values(person: &Person, selector: &str) -> Vec<f64> {
    lines(select(person, selector))
        .await
        .iter()
        .map(|row| number(row, "value"))
        .collect()
}

/// 2024-05-01T00:00:00Z
const DAY: i64 = 1_714_521_600;

async fn heart() -> Person {
    let person = person();
    let samples: Vec<Value> = (0..10)
        .map(|n| heart_rate(id(n), &at(&format!("{:02}:00", n + 8)), 60 + n))
        .collect();
    person.records("HeartRate", &samples).await;
    person
}

#[tokio::test]
async fn rule_5_7_a_range_answers_what_overlaps_it() {
    let person = heart().await;
    // From 10:00 on, before 12:00.
    let noon = DAY + 12 * 3600;
    assert_eq!(
        values(&person, &format!("HeartRate[2h] @ {noon}")).await,
        [62.0, 63.0]
    );
    assert_eq!(
        values(&person, &format!("HeartRate[7200s] @ {noon}")).await,
        [62.0, 63.0]
    );
    assert_eq!(
        values(&person, &format!("HeartRate[2h] @ {noon} offset 1h")).await,
        [61.0, 62.0]
    );
    assert_eq!(
        values(&person, &format!("HeartRate[2h] offset -1h @ {noon}")).await,
        [63.0, 64.0]
    );
    assert_eq!(values(&person, "HeartRate[1h]").await, Vec::<f64>::new());
    assert_eq!(values(&person, "HeartRate[100y]").await.len(), 10);
    person
        .records("StepCount", &[steps(id(1), &at("09:30"), &at("10:30"), 60)])
        .await;
    let half_past = DAY + 10 * 3600 + 1800;
    assert_eq!(
        values(&person, &format!("StepCount[1m] @ {half_past}")).await,
        [60.0]
    );
    assert_eq!(
        values(&person, &format!("StepCount[1m] @ {}", half_past + 60)).await,
        Vec::<f64>::new()
    );
}

#[tokio::test]
async fn rule_5_7_a_bare_selector_answers_the_latest_that_has_begun() {
    let person = heart().await;
    assert_eq!(values(&person, "HeartRate").await, [69.0]);
    let noon = DAY + 12 * 3600;
    assert_eq!(values(&person, &format!("HeartRate @ {noon}")).await, [64.0]);
    assert_eq!(
        values(&person, &format!("HeartRate @ {}", noon - 1)).await,
        [63.0]
    );
    assert_eq!(
        values(&person, &format!("HeartRate @ {noon} offset 1h")).await,
        [63.0]
    );
    assert_eq!(
        values(&person, &format!("HeartRate @ {DAY}")).await,
        Vec::<f64>::new()
    );
    assert_eq!(values(&person, "RestingHeartRate").await, Vec::<f64>::new());
}

#[tokio::test]
async fn rule_5_7_the_latest_began_last_also_where_an_earlier_one_lasts_longer() {
    let person = person();
    let shifts = [
        ("2020-01-01T00:00:00Z", "2024-05-01T12:00:00Z", "long"),
        ("2022-01-01T00:00:00Z", "2022-01-02T00:00:00Z", "short"),
        ("2021-01-01T00:00:00Z", "2021-01-02T00:00:00Z", "other"),
    ];
    let own = person
        .define(
            "Event",
            &json!({
                "name": "Shift", "record_spec": {"schema": {"properties": {"note": {"type": "string"}}}},
            }),
        )
        .await;
    for (n, (start, end, note)) in (1..).zip(shifts) {
        person
            .records(
                &own,
                &[json!({"id": id(n), "start_time": start, "end_time": end, "note": note})],
            )
            .await;
    }
    let latest = |selector: String| {
        let call = select(&person, &selector);
        async move { texts(&lines(call).await, "note") }
    };
    assert_eq!(latest(format!("{{__name__=\"{own}\"}} @ {DAY}")).await, ["short"]);
    assert_eq!(
        latest(format!("{{__name__=\"{own}\", note!=\"short\"}} @ {DAY}")).await,
        ["other"]
    );
    assert_eq!(
        latest(format!("{{__name__=\"{own}\", note=~\"l.*\"}} @ {DAY}")).await,
        ["long"]
    );
    assert_eq!(latest(format!("Event @ {DAY}")).await, ["short"]);
    assert_eq!(
        latest(format!(
            "{{__name__=\"{}\"}}[1s] @ {DAY}",
            own.to_uppercase().replace("EVENT", "Event")
        ))
        .await,
        ["long"]
    );
}

/// 9999-12-31T23:59:59.999999Z is a moment like others for every read that names no end.
#[tokio::test]
async fn the_last_moment_there_is_is_found_by_whoever_sets_no_end() {
    let person = person();
    let events = [
        json!({"id": id(1), "start_time": at("10:00")}),
        json!({"id": id(2), "start_time": "9999-12-31T23:59:59.999999Z"}),
    ];
    person.records("Event", &events).await;
    let event = |what: &str| person.get(&format!("/data/v1alpha1/event/Event/{what}"));
    let summary = event("summary").await.must_be(200).json();
    assert_eq!(
        (&summary["count"], &summary["end_time"]),
        (&json!(2), &events[1]["start_time"])
    );
    let latest = event("latest").await.must_be(200).rows();
    assert_eq!(texts(&latest, "id"), [id(2).to_string()]);
    for (selector, found) in [
        ("Event @ 253402300800", &[2][..]),
        ("Event[1d] @ 253402300800", &[2]),
        ("Event[9000y] @ 1000000000000", &[1, 2]),
        ("Event[1d] @ 253402300799.999999", &[]),
        ("Event @ 253402300799.999999", &[2]),
    ] {
        let ids: Vec<String> = found.iter().map(|n| id(*n).to_string()).collect();
        assert_eq!(
            texts(&lines(select(&person, selector)).await, "id"),
            ids,
            "{selector}"
        );
    }
}

#[tokio::test]
async fn rule_5_7_labels_choose_records() {
    let person = person();
    let rows = [
        json!({
            "id": id(1), "recorded_at": at("10:00"), "source_id": "a.b", "sources": ["a.b"], "value": 3,
            "note": "tea: green", "tags": ["t1"],
        }),
        json!({
            "id": id(2), "recorded_at": at("10:01"), "source_id": "a.c", "sources": ["a.c"], "value": 5,
            "note": null, "tags": ["t1", "t2"],
        }),
        json!({
            "id": id(3), "recorded_at": at("10:02"), "source_id": "o'brien", "sources": ["o'brien"],
            "value": 4, "note": "two\nlines", "tags": [],
        }),
    ];
    person.records("NumericAnnotation", &rows).await;
    for (labels, expected) in [
        (r#"source_id="a.b""#, &[3.0][..]),
        (r#"source_id="a.b", value="3""#, &[3.0]),
        (r#"source_id="a.b", source_id="a.c""#, &[]),
        (r#"source_id=~"a\\..""#, &[3.0, 5.0]),
        (r#"source_id=~"a""#, &[]),
        (r#"source_id!~"a\\..""#, &[4.0]),
        (r#"note="""#, &[5.0]),
        (r#"note!="""#, &[3.0, 4.0]),
        (r#"note!="tea: green""#, &[5.0, 4.0]),
        (r#"note=~".*""#, &[3.0, 5.0, 4.0]),
        (r#"note=~".+""#, &[3.0, 4.0]),
        (r#"note=~"two.lines""#, &[4.0]),
        (r#"note!~".*green|""#, &[4.0]),
        (r#"tags="t2""#, &[5.0]),
        (r#"tags!="t2""#, &[3.0, 4.0]),
        (r#"tags="""#, &[4.0]),
        (r#"tags=~"t[2-9]""#, &[5.0]),
        (r#"tags!~"t.""#, &[4.0]),
        (r#"value!="4""#, &[3.0, 5.0]),
        (r#"source_id="' OR 1=1 --""#, &[]),
        (r#"id=~".*0002""#, &[5.0]),
        (r#"recorded_at="2024-05-01T10:00:00Z""#, &[3.0]),
    ] {
        let selector = format!("NumericAnnotation{{{labels}}}[1d] @ {}", DAY + 86_400);
        assert_eq!(values(&person, &selector).await, expected, "{labels}");
    }
}

#[tokio::test]
async fn rule_5_7_an_empty_label_is_in_lists_with_an_empty_item_and_in_those_without_items() {
    let person = person();
    let lists = [
        json!({"strs": ["", "true"], "nums": [0]}),
        json!({"strs": ["true"], "nums": [1]}),
        json!({"strs": [], "nums": []}),
        json!({}),
    ];
    let schema = json!({"properties": {
        "strs": {"type": "array", "items": {"type": "string"}},
        "nums": {"type": "array", "items": {"type": "number"}},
    }});
    let own = person
        .define(
            "Metric",
            &json!({"name": "Lists", "record_spec": {"unit": "points", "schema": schema}}),
        )
        .await;
    let rows: Vec<Value> = (1..)
        .zip(lists)
        .map(|(n, mut row)| {
            row["id"] = json!(id(n));
            row["start_time"] = json!(at(&format!("10:{n:02}")));
            row["value"] = json!(n);
            row
        })
        .collect();
    person.records(&own, &rows).await;
    for (labels, expected) in [
        (r#"strs="""#, &[1.0, 3.0, 4.0][..]),
        (r#"strs!="""#, &[2.0]),
        (r#"strs="true""#, &[1.0, 2.0]),
        (r#"nums="""#, &[3.0, 4.0]),
        (r#"nums!="""#, &[1.0, 2.0]),
    ] {
        let selector = format!("{{__name__=\"{own}\", {labels}}}[1d] @ {}", DAY + 86_400);
        assert_eq!(values(&person, &selector).await, expected, "{labels}");
    }
}

#[tokio::test]
async fn a_pattern_that_explodes_elsewhere_runs_in_linear_time() {
    let person = person();
    let rows: Vec<Value> = (0..50)
        .map(|n| json!({"id": id(n), "recorded_at": at("10:00"), "value": n, "note": "a".repeat(5000) + "!"}))
        .collect();
    person.records("NumericAnnotation", &rows).await;
    let begun = std::time::Instant::now();
    for pattern in ["(a+)+b", "(a|a)*b", "(.*)*x", "(a?){200}a{200}"] {
        let selector = format!("NumericAnnotation{{note=~\"{pattern}\"}}[1d] @ {}", DAY + 86_400);
        assert_eq!(values(&person, &selector).await, Vec::<f64>::new(), "{pattern}");
    }
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
    let selector = format!("NumericAnnotation{{note=~\"((a{{100}}){{100}}){{100}}\"}}[1d] @ {DAY}");
    assert_eq!(select(&person, &selector).await.faults(), ["query.q"]);
}

#[tokio::test]
async fn rule_5_7_the_answer_has_a_record_a_line_or_is_csv() {
    let person = heart().await;
    let selector = format!("HeartRate[1h] @ {}", DAY + 9 * 3600);
    for format in ["json", "jsonl", "ndjson"] {
        assert_eq!(
            lines(select(&person, &selector).with("format", format))
                .await
                .len(),
            1
        );
    }
    for (name, value) in [("format", "csv"), ("output", "csv")] {
        let reply = select(&person, &selector).with(name, value).await.must_be(200);
        let mut lines = reply.text().lines();
        assert!(
            lines.next().unwrap().split(',').any(|column| column == "value"),
            "{reply}"
        );
        assert_eq!(lines.count(), 1);
    }
    assert_eq!(
        select(&person, &selector)
            .with("output", "jstable")
            .await
            .must_be(200)
            .rows()
            .len(),
        1
    );
    assert_eq!(select(&person, "HeartRate[1h] @ 0").await.must_be(200).text(), "");
    assert_eq!(
        select(&person, &selector).with("format", "xml").await.faults(),
        ["query.format"]
    );
    let tag = select(&person, &selector)
        .await
        .must_be(200)
        .header("etag")
        .unwrap()
        .to_owned();
    select(&person, &selector)
        .header("if-none-match", &tag)
        .await
        .must_be(304);
}

#[tokio::test]
async fn rule_5_7_moments_are_microseconds_and_lengths_as_long_as_they_are() {
    let person = person();
    let samples = [
        heart_rate(id(1), &at("10:00"), 60),
        heart_rate(id(2), &at("10:10"), 61),
    ];
    person.records("HeartRate", &samples).await;
    let ten_past = DAY + 10 * 3600 + 600;
    assert_eq!(
        values(&person, &format!("HeartRate[1s] @ {ten_past}.0004")).await,
        [61.0]
    );
    assert_eq!(
        values(&person, &format!("HeartRate[1s] @ {ten_past}")).await,
        Vec::<f64>::new()
    );
    assert_eq!(
        values(&person, &format!("HeartRate @ {}.999999", ten_past - 1)).await,
        [60.0]
    );
    assert_eq!(
        values(&person, &format!("HeartRate[1717200000s] @ {ten_past}")).await,
        [60.0]
    );
    assert_eq!(
        values(&person, &format!("HeartRate @ {ten_past} offset 0s")).await,
        [61.0]
    );
}

#[tokio::test]
async fn rule_5_7_what_is_not_supported_is_named() {
    let person = heart().await;
    for (selector, token) in [
        ("rate(HeartRate[5m])", "rate"),
        ("sum(HeartRate)", "sum"),
        ("HeartRate * 2", "*"),
        ("HeartRate[5m:1m]", ":"),
        ("sum(HeartRate[1h])", "`sum`"),
        ("topk(HeartRate)", "`topk`"),
        ("HeartRate[1h] + 1", "`+`"),
        ("-HeartRate[1h]", "`-`"),
        ("HeartRate[1h] or HeartRate[1h]", "`or`"),
        ("HeartRate[9999999999999999s]", "too much"),
        ("HeartRate{nosuch=\"1\"}", "nosuch"),
        ("HeartRate{value=\"abc\"}", "abc"),
        ("HeartRate{value=~\"6.\"}", "=~"),
        ("HeartRate{unit=~\"(\"}", "("),
        ("HeartRate{unit=~\"a)|(.*\"}", "regular expression"),
        ("HeartRate{source_properties=\"a\"}", "source_properties"),
        ("HeartRate[1e30]", "1e30"),
        ("HeartRate[", "selector"),
        ("", "selector"),
    ] {
        let reply = select(&person, selector).await;
        assert_eq!(reply.faults(), ["query.q"], "{selector}");
        assert!(reply.text().contains(token), "{selector}: {reply}");
    }
    assert_eq!(person.get("/data/v1/records").await.faults(), ["query.q"]);
    select(&person, "Nosuch").await.must_be(404);
    select(
        &person,
        "{__name__=\"Event/0193b5a2-0000-7000-8000-000000000001\"}",
    )
    .await
    .must_be(404);
}

#[tokio::test]
async fn another_persons_records_are_not_selected() {
    let owner = heart().await;
    let stranger = person();
    for selector in ["HeartRate", "HeartRate[100y]", "Nosuch"] {
        select(&stranger, selector)
            .with("svc_userid", &owner.id.to_string())
            .await
            .problem(403);
    }
    assert_eq!(
        select(&owner, "HeartRate")
            .with("svc_userid", &owner.id.to_string())
            .await
            .must_be(200)
            .text()
            .lines()
            .count(),
        1
    );
}

#[tokio::test]
async fn rule_5_7_the_latest_record_is_shown_to_a_reader_as_it_was_shared() {
    let (owner, reader) = (person(), person());
    owner
        .records("StepCount", &[steps(id(1), &at("10:00"), &at("12:00"), 120)])
        .await;
    share(&owner, &share_of(&["StepCount"], &reader)).await;
    for moment in [DAY + 10 * 3600, DAY + 11 * 3600, DAY + 13 * 3600] {
        let asked = format!("StepCount @ {moment}");
        let own = lines(select(&owner, &asked)).await;
        let shared = select(&reader, &asked).with("svc_userid", &owner.id.to_string());
        let shared = lines(shared).await;
        assert_eq!(shared.len(), 1, "{asked}");
        for shown in ["start_date", "end_date", "value"] {
            assert_eq!(shared[0][shown], own[0][shown], "{asked}");
        }
    }
    let before = select(&reader, &format!("StepCount @ {DAY}")).with("svc_userid", &owner.id.to_string());
    assert!(lines(before).await.is_empty());

    // A share with an edge cuts, and a record that it cuts begins there.
    let other = person();
    let mut late = share_of(&["StepCount"], &other);
    late["time_start"] = json!(at("11:00"));
    share(&owner, &late).await;
    let ask = |moment: i64| {
        let call = select(&other, &format!("StepCount @ {moment}"));
        lines(call.with("svc_userid", &owner.id.to_string()))
    };
    assert!(ask(DAY + 10 * 3600 + 1800).await.is_empty());
    let cut = ask(DAY + 11 * 3600).await;
    assert_eq!(number(&cut[0], "value"), 60.0);
}

#[track_caller]
fn tag_of(reply: &Reply) -> String {
    reply
        .header("etag")
        .unwrap_or_else(|| panic!("no tag: {reply}"))
        .to_owned()
}

/// So many seconds from now.
fn from_now(seconds: i64) -> String {
    (chrono::Utc::now() + chrono::Duration::seconds(seconds)).to_rfc3339()
}

#[tokio::test]
async fn an_answer_as_of_now_is_304_while_it_is_the_same() {
    let (owner, reader) = (heart().await, person());
    share(&owner, &share_of(&["HeartRate", "CalendarEvent"], &reader)).await;
    let event = |number, start: &str, end: &str, is_all_day: bool| {
        json!({"calendar_event_id": id(number), "calendar_id": id(50), "start_date": start,
            "end_date": end, "is_all_day": is_all_day, "time_zone": "America/New_York"})
    };
    let events = [
        event(51, "2024-05-02T00:00:00Z", "2024-05-03T00:00:00Z", true),
        event(52, "2024-05-02T10:00:00Z", "2024-05-02T11:00:00Z", false),
    ];
    owner.records("CalendarEvent", &events).await;
    let asked = |who: &Person, method: Method, selector: &str, output: &str| {
        who.call(method, "/data/v1/records")
            .with("q", selector)
            .with("output", output)
            .with("svc_userid", &owner.id.to_string())
    };
    let mut tags = Vec::new();
    for who in [&owner, &reader] {
        for selector in [
            "HeartRate",
            "HeartRate offset 1d",
            "HeartRate[100y]",
            "HeartRate[1h]",
            "CalendarEvent",
            "CalendarEvent[100y]",
        ] {
            for output in ["ndjson", "parquet"] {
                let tag = tag_of(&asked(who, Method::GET, selector, output).await.must_be(200));
                for method in [Method::GET, Method::HEAD] {
                    let again = asked(who, method.clone(), selector, output).await.must_be(200);
                    assert_eq!(tag_of(&again), tag, "{selector}");
                    let known = asked(who, method.clone(), selector, output);
                    known.header("if-none-match", &tag).await.must_be(304);
                    let seen = asked(who, method, selector, output);
                    seen.header("if-match", &tag).await.must_be(200);
                }
                assert!(!tags.contains(&tag), "{selector} {output}");
                tags.push(tag);
            }
        }
    }
    // What has changed is told.
    let before = tag_of(&asked(&owner, Method::GET, "HeartRate", "ndjson").await);
    owner
        .records("HeartRate", &[heart_rate(id(20), &at("20:00"), 99)])
        .await;
    for selector in ["HeartRate", "HeartRate[100y]"] {
        for who in [&owner, &reader] {
            let reply = asked(who, Method::GET, selector, "ndjson").await.must_be(200);
            assert!(!tags.contains(&tag_of(&reply)), "{selector}");
        }
    }
    let changed = asked(&owner, Method::GET, "HeartRate", "ndjson");
    changed.header("if-match", &before).await.must_be(412);
}

#[tokio::test]
async fn time_that_passes_makes_another_answer_with_another_tag() {
    let (owner, reader) = (heart().await, person());
    let types = ["HeartRate", "StepCount", "PlatformLocationVisit"];
    share(&owner, &share_of(&types, &reader)).await;
    // Others see a visit at the moment of it that is known: one leaves the last minute, and one comes in.
    let visit = |number, arrival: Option<String>, departure: Option<String>| {
        json!({"uuid": id(number), "latitude_degrees": 47.4, "longitude_degrees": 8.5,
            "arrival_date": arrival, "departure_date": departure})
    };
    let visits = [
        visit(33, None, Some(from_now(-50))),
        visit(34, Some(from_now(-30)), None),
        visit(35, None, Some(from_now(10))),
    ];
    owner.records("PlatformLocationVisit", &visits).await;
    let soon = heart_rate(id(30), &from_now(10), 90);
    let leaving = heart_rate(id(31), &from_now(-50), 91);
    owner.records("HeartRate", &[soon, leaving]).await;
    let walk = steps(id(32), &from_now(-60), &from_now(3600), 1000);
    owner.records("StepCount", &[walk]).await;
    let asked = async |who: &Person, selector: &str| {
        let call = select(who, selector).with("svc_userid", &owner.id.to_string());
        let reply = call.await.must_be(200);
        (tag_of(&reply), reply.text().to_owned())
    };
    let selectors = [
        "HeartRate",
        "HeartRate[60s]",
        "StepCount",
        "StepCount[1m]",
        "PlatformLocationVisit[60s]",
    ];
    let mut before = Vec::new();
    for who in [&owner, &reader] {
        for selector in selectors {
            before.push((who, selector, asked(who, selector).await));
        }
    }
    tokio::time::sleep(Duration::from_secs(12)).await;
    for (who, selector, (tag, text)) in before {
        let (later_tag, later_text) = asked(who, selector).await;
        assert_eq!(
            tag == later_tag,
            text == later_text,
            "{selector}: {text} {later_text}"
        );
        // What others see of a walk goes on until now, where a range is asked for.
        let is_same = selector == "StepCount" || selector == "StepCount[1m]" && who.id == owner.id;
        assert_eq!(text == later_text, is_same, "{selector}: {text}");
    }
}
