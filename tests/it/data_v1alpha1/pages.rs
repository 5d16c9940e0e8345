//! Pages: so many rows, and a cursor that says where the next begin.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::harness::{Almanac, Backends, Call, Person, Setup, at, heart_rate, id, instant, person, steps};
use crate::sharing::{share, share_of};

const NEXT: &str = "x-svc-next-cursor";

/// Rates of which some begin together.
async fn measured() -> Person {
    let person = person();
    let records: Vec<Value> = (0..25)
        .map(|n| heart_rate(id(n), &instant(n / 3 * 60), n))
        .collect();
    person.records("HeartRate", &records).await;
    person
}

/// All pages, until none follows.
async fn pages(ask: impl Fn() -> Call) -> Vec<Vec<Value>> {
    let mut pages = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let call = match &cursor {
            None => ask(),
            Some(cursor) => ask().with("cursor", cursor),
        };
        let reply = call.await.must_be(200);
        pages.push(reply.rows());
        assert!(pages.len() < 500, "pages without an end");
        match reply.header(NEXT) {
            None => return pages,
            Some(next) => cursor = Some(next.to_owned()),
        }
    }
}

#[tokio::test]
async fn pages_are_together_what_one_answer_is() {
    let person = measured().await;
    let samples = || person.metric_samples("HeartRate", &at("00:00"), &at("12:00"));
    let records = |sort: &str| person.read("metric", "HeartRate").with("sort", sort);
    for limit in [1, 4, 5, 24, 25, 26] {
        let text = limit.to_string();
        let found = pages(|| samples().with("limit", &text)).await;
        assert_eq!(found.len(), 25_usize.div_ceil(limit), "{limit}");
        assert_eq!(found.concat(), samples().await.rows(), "{limit}");
        for sort in ["asc", "desc"] {
            let found = pages(|| records(sort).with("limit", &text)).await;
            assert_eq!(found.len(), 25_usize.div_ceil(limit), "{limit} {sort}");
            assert_eq!(found.concat(), records(sort).await.rows(), "{limit} {sort}");
        }
    }
    let filtered = || {
        records("desc")
            .with("filter", "value>=5")
            .with("columns", "value")
    };
    let found = pages(|| filtered().with("limit", "7")).await;
    assert_eq!(found.concat(), filtered().await.rows());
}

#[tokio::test]
async fn without_a_limit_there_is_no_cursor_and_behind_the_last_row_there_is_none() {
    let person = measured().await;
    let ask = || person.read("metric", "HeartRate");
    for explain in ["plan", "analyze"] {
        let plan = ask()
            .with("limit", "1")
            .with("explain", explain)
            .await
            .must_be(200);
        assert_eq!(plan.header(NEXT), None, "{explain}");
    }
    for call in [ask(), ask().with("limit", "25"), ask().with("limit", "1000")] {
        assert_eq!(call.await.must_be(200).header(NEXT), None);
    }
    let first = ask().with("limit", "20").await.must_be(200);
    let next = first.header(NEXT).unwrap();
    let rest = ask().with("cursor", next).await.must_be(200);
    assert_eq!((rest.rows().len(), rest.header(NEXT)), (5, None));
}

#[tokio::test]
async fn what_is_written_or_deleted_meanwhile_moves_no_page() {
    let person = measured().await;
    let ask = || person.read("metric", "HeartRate").with("limit", "10");
    let first = ask().await.must_be(200);
    let next = first.header(NEXT).unwrap().to_owned();
    let before =
        |rows: Vec<Value>| -> BTreeSet<String> { rows.iter().map(|row| row["uuid"].to_string()).collect() };
    // One before the place and one behind it come, and the row at the place goes.
    person
        .records(
            "HeartRate",
            &[
                heart_rate(id(100), &instant(30), 100),
                heart_rate(id(101), &instant(470), 101),
            ],
        )
        .await;
    person.delete("HeartRate", id(9)).await;
    let mut seen = before(first.rows());
    let mut cursor = next;
    loop {
        let page = ask().with("cursor", &cursor).await.must_be(200);
        for row in before(page.rows()) {
            assert!(seen.insert(row.clone()), "{row} twice");
        }
        match page.header(NEXT) {
            Some(next) => next.clone_into(&mut cursor),
            None => break,
        }
    }
    let expected: BTreeSet<String> = (0..25).chain([101]).map(|n| json!(id(n)).to_string()).collect();
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn a_cursor_belongs_to_its_question() {
    let person = measured().await;
    let ask = || person.read("metric", "HeartRate").with("limit", "10");
    let first = ask().await.must_be(200);
    let cursor = first.header(NEXT).unwrap();
    let changed = |from: &str, to: &str| cursor.replacen(from, to, 1);
    let other = if cursor.ends_with('0') { "1" } else { "0" };
    let cut = &cursor[..cursor.len() - 1];
    for wrong in [
        ask().with("cursor", "nonsense"),
        ask().with("cursor", cut),
        ask().with("cursor", &format!("{cut}{other}")),
        ask().with("cursor", &changed("0", "1")),
        ask().with("cursor", cursor).with("sort", "desc"),
        ask().with("cursor", cursor).with("filter", "value>3"),
        person
            .metric_samples("HeartRate", &at("00:00"), &at("12:00"))
            .with("cursor", cursor),
        person.read("event", "MomentAnnotation").with("cursor", cursor),
    ] {
        assert_eq!(wrong.await.faults(), ["query.cursor"]);
    }
    // A loop may begin with an empty one.
    let first = ask().with("cursor", "").await.must_be(200);
    assert_eq!(first.json(), ask().await.must_be(200).json());
    // How much, what of it, and in which form is nothing that the cursor is about.
    let frame = ask()
        .with("cursor", cursor)
        .with("columns", "value")
        .with("output", "csv");
    assert_eq!(frame.await.must_be(200).text().lines().count(), 11);
}

#[tokio::test]
async fn rows_of_several_types_that_are_alike_are_each_on_one_page() {
    let person = person();
    for name in ["tea", "coffee", "water"] {
        let defined = person
            .define("Event", &json!({"name": name, "description": name}))
            .await;
        let records: Vec<Value> = (0..5)
            .map(|n| json!({"id": id(n), "start_time": at("10:00"), "end_time": at("10:00")}))
            .collect();
        person.records(&defined, &records).await;
    }
    for sort in ["asc", "desc"] {
        let ask = || person.read("event", "Event").with("sort", sort);
        let all = ask().await.must_be(200).rows();
        assert_eq!(all.len(), 15);
        for limit in ["1", "2", "4"] {
            let found = pages(|| ask().with("limit", limit)).await;
            assert_eq!(found.concat(), all, "{sort} {limit}");
        }
    }
}

/// Somebody who was somewhere, had a plan, and did something: some of it at the same moments.
async fn about(server: &Almanac) -> Person {
    let person = server.person();
    let moment = |n: u32| instant(n / 2 * 300);
    let position = |n: u32| {
        json!({
            "uuid": id(n), "timestamp": moment(n), "latitude_degrees": 40.0 + f64::from(n / 7),
            "longitude_degrees": 8.0, "horizontal_accuracy_meters": 5.0,
        })
    };
    let positions: Vec<Value> = (0..30).map(position).collect();
    person.records("PlatformLocationUpdate", &positions).await;
    // The same ids at the same moments, told by somebody else.
    person.records("MapsLocationUpdate", &positions).await;
    let workout = |n: u32| {
        json!({
            "platform_workout_id": id(n), "start_date": moment(n),
            "end_date": instant(n / 2 * 300 + n % 3 * 60),
        })
    };
    person
        .records("PlatformWorkout", &(0..11).map(workout).collect::<Vec<_>>())
        .await;
    let calendar = |n: u32| {
        json!({
            "calendar_id": id(n), "calendar_identifier": format!("{n}"), "calendar_name": format!("{n}"),
        })
    };
    person
        .records("Calendar", &(0..5).map(calendar).collect::<Vec<_>>())
        .await;
    let event = |n: u32| {
        json!({
            "calendar_event_id": id(n), "calendar_id": id(n % 5), "start_date": moment(n),
            "end_date": moment(n + 4), "is_all_day": n.is_multiple_of(4),
        })
    };
    person
        .records("CalendarEvent", &(0..13).map(event).collect::<Vec<_>>())
        .await;
    let rates: Vec<Value> = (0..40).map(|n| heart_rate(id(n), &instant(n * 90), n)).collect();
    person.records("HeartRate", &rates).await;
    person
        .records("StepCount", &[steps(id(1), &at("00:10"), &at("00:40"), 100)])
        .await;
    person
}

/// Answers of each kind that come in pages, of the first of May.
fn paged(reader: &Person, owner: &Person) -> Vec<(&'static str, Call)> {
    let of = |what: &str| {
        reader
            .get(&format!("/data/v0/{}/{what}", owner.id))
            .with("start", &at("00:00"))
            .with("end", &at("12:00"))
    };
    let series = |call: Call| call.with("output", "jstable").with("samprate", "300");
    let grouped = reader
        .get("/data/v0/time_series_grouped")
        .with("svc_userid", &owner.id.to_string())
        .with("metrics", "HeartRate,StepCount")
        .with("start", &at("00:00"))
        .with("end", &at("02:00"));
    vec![
        ("platform updates", of("platform_location_updates")),
        ("maps updates", of("maps_location_updates")),
        ("updates", of("location_updates")),
        ("visits", of("platform_location_visits").with("derive", "true")),
        ("places", of("location_time_series")),
        ("workouts", of("platform_workouts")),
        ("calendars", of("calendars")),
        ("events", of("calendar_events")),
        (
            "series",
            series(
                of("metric_time_series")
                    .with("metric", "HeartRate")
                    .with("calculations", "rollingmean"),
            ),
        ),
        (
            "series without gaps",
            series(
                of("metric_time_series")
                    .with("metric", "StepCount")
                    .with("drop_nulls", "true"),
            ),
        ),
        ("side by side", series(grouped)),
        (
            "selected",
            reader
                .get("/data/v1/records")
                .with("svc_userid", &owner.id.to_string())
                .with("q", "HeartRate[12h] @ 1714564800")
                .with("output", "jstable"),
        ),
    ]
}

#[tokio::test]
async fn pages_of_places_plans_and_series_are_together_what_one_answer_is() {
    for backends in Backends::available() {
        let server = Setup::default().on(backends).start();
        let (owner, reader) = (about(&server).await, server.person());
        let types = [
            "PlatformLocationUpdate",
            "MapsLocationUpdate",
            "PlatformLocationVisit",
            "PlatformWorkout",
            "Calendar",
            "CalendarEvent",
            "HeartRate",
            "StepCount",
        ];
        share(&owner, &share_of(&types, &reader)).await;
        for who in [&owner, &reader] {
            for place in 0..paged(who, &owner).len() {
                let ask = || paged(who, &owner).swap_remove(place);
                let (name, call) = ask();
                let all = call.await.must_be(200).rows();
                assert!(all.len() > 1, "{name}: {all:?}");
                for limit in [
                    1,
                    2 + Uuid::new_v4().as_u128() as usize % 7,
                    all.len(),
                    all.len() + 1,
                ] {
                    let text = limit.to_string();
                    let found = pages(|| ask().1.with("limit", &text)).await;
                    assert_eq!(found.len(), all.len().div_ceil(limit), "{name} by {limit}");
                    assert_eq!(found.concat(), all, "{name} by {limit}");
                }
            }
        }
    }
}

#[tokio::test]
async fn a_page_of_places_or_a_series_has_other_columns_and_forms_and_no_other_question() {
    let server = Setup::default().start();
    let person = about(&server).await;
    for place in 0..paged(&person, &person).len() {
        let ask = || paged(&person, &person).swap_remove(place);
        let (name, call) = ask();
        let first = call.with("limit", "1").await.must_be(200);
        let cursor = first
            .header(NEXT)
            .unwrap_or_else(|| panic!("{name} has one page"));
        let other = ask()
            .1
            .with("cursor", cursor)
            .with("limit", "2")
            .with("compression", "lz4");
        assert_eq!(
            other.await.must_be(200).rows()[0],
            ask().1.await.rows()[1],
            "{name}"
        );
        let next = (place + 1) % paged(&person, &person).len();
        let foreign = paged(&person, &person)
            .swap_remove(next)
            .1
            .with("cursor", cursor)
            .await;
        assert_eq!(foreign.faults(), ["query.cursor"], "{name}");
    }
}

#[tokio::test]
async fn every_answer_of_rows_can_be_limited() {
    let person = measured().await;
    let series = person
        .get(&format!("/data/v0/{}/metric_time_series", person.id))
        .with("metric", "HeartRate")
        .with("start", &at("00:00"))
        .with("end", &at("01:00"))
        .with("output", "jstable")
        .with("limit", "7");
    assert_eq!(series.await.must_be(200).rows().len(), 7);
    let counted = person.read("event", "HeartRate/agg/15m").with("limit", "1");
    assert_eq!(counted.await.must_be(200).rows().len(), 1);
    let places = person
        .get(&format!("/data/v0/{}/location_updates", person.id))
        .with("start", &at("00:00"))
        .with("end", &at("01:00"))
        .with("limit", "0");
    assert_eq!(places.await.faults(), ["query.limit"]);
}
