//! `/data/v1alpha1/{event,metric}/{data_type}/agg/{resolution}`: rules 5.2, 5.3 and 5.6, golden cases A01 to
//! A04, F01 by period.

mod amounts;
mod twin;

use std::collections::BTreeMap;

use chrono::{DateTime, TimeZone as _, Timelike as _, Utc};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::harness::{Call, Person, Table, at, heart_rate, id, instant, person, steps};

const FALL: (&str, &str) = ("2024-11-03T00:00:00Z", "2024-11-06T00:00:00Z");

fn by(person: &Person, class: &str, data_type: &str, resolution: &str, (start, end): (&str, &str)) -> Call {
    person
        .get(&format!("/data/v1alpha1/{class}/{data_type}/agg/{resolution}"))
        .with("start_time", start)
        .with("end_time", end)
}

/// The events of golden cases A01 to A03, as a type of the person's own.
async fn golden_events() -> (Person, String) {
    let person = person();
    let schema = json!({
        "properties": {
            "note": {"type": "string"}, "cups": {"type": "integer"}, "hot": {"type": "boolean"},
            "seen": {"type": "string", "format": "date-time"},
            "words": {"type": "array", "items": {"type": "string"}}, "any": {"type": "object"},
            "count": {"type": "integer"},
        },
    });
    let own = person
        .define(
            "Event",
            &json!({"name": "Notes", "record_spec": {"schema": schema}}),
        )
        .await;
    let rows = [
        ("2024-11-03T05:30:00Z", "x"),
        ("2024-11-03T06:30:00Z", "x"),
        ("2024-11-04T04:59:00Z", "y"),
        ("2024-11-04T05:00:00Z", "x"),
    ];
    let rows: Vec<Value> = (1..)
        .zip(rows)
        .map(|(n, (start, note))| json!({"id": id(n), "start_time": start, "note": note}))
        .collect();
    person.records(&own, &rows).await;
    (person, own)
}

#[tokio::test]
async fn golden_a01_days_of_new_york() {
    let (person, own) = golden_events().await;
    let rows = by(&person, "event", &own, "day", FALL)
        .with("time_zone", "America/New_York")
        .await
        .must_be(200)
        .rows();
    assert_eq!(
        rows,
        [
            json!({"time": "2024-11-03T00:00:00-04:00", "count": 3}),
            json!({"time": "2024-11-04T00:00:00-05:00", "count": 1}),
        ]
    );
    // The base counts the records of all its definitions.
    let base = by(&person, "event", "Event", "day", FALL)
        .with("time_zone", "America/New_York")
        .await
        .must_be(200)
        .rows();
    assert_eq!(base, rows);
}

#[tokio::test]
async fn rule_0_2_a_day_that_begins_beyond_9999_has_a_time_that_can_be_read() {
    let (person, own) = golden_events().await;
    person
        .records(
            &own,
            &[json!({"id": id(9), "start_time": "9999-12-31T20:00:00Z"})],
        )
        .await;
    let last = ("9999-12-30T00:00:00Z", "9999-12-31T23:00:00Z");
    let rows = by(&person, "event", &own, "day", last)
        .with("time_zone", "Asia/Tokyo")
        .await
        .must_be(200)
        .rows();
    assert_eq!(rows, [json!({"time": "9999-12-31T15:00:00Z", "count": 1})]);
}

#[tokio::test]
async fn golden_a02_an_hour_that_comes_twice_has_two_rows() {
    let (person, own) = golden_events().await;
    let rows = by(&person, "event", &own, "60m", FALL)
        .with("time_zone", "America/New_York")
        .await
        .must_be(200)
        .rows();
    assert_eq!(
        rows,
        [
            json!({"time": "2024-11-03T01:00:00-04:00", "count": 1}),
            json!({"time": "2024-11-03T01:00:00-05:00", "count": 1}),
            json!({"time": "2024-11-03T23:00:00-05:00", "count": 1}),
            json!({"time": "2024-11-04T00:00:00-05:00", "count": 1}),
        ]
    );
}

#[tokio::test]
async fn golden_a03_groups_within_a_period() {
    let (person, own) = golden_events().await;
    let asked = || {
        by(&person, "event", &own, "day", FALL)
            .with("time_zone", "America/New_York")
            .with("group", "note")
    };
    let expected = [
        json!({"time": "2024-11-03T00:00:00-04:00", "note": "x", "count": 2}),
        json!({"time": "2024-11-03T00:00:00-04:00", "note": "y", "count": 1}),
        json!({"time": "2024-11-04T00:00:00-05:00", "note": "x", "count": 1}),
    ];
    assert_eq!(asked().await.must_be(200).rows(), expected);
    // Rule 5.2: only the periods turn round.
    let [first, second, third] = expected;
    assert_eq!(
        asked().with("sort", "desc").await.must_be(200).rows(),
        [third, first, second]
    );
    let csv = asked().with("format", "csv").await.must_be(200);
    assert_eq!(
        csv.text(),
        "time,note,count\n\
         2024-11-03T00:00:00-04:00,x,2\n\
         2024-11-03T00:00:00-04:00,y,1\n\
         2024-11-04T00:00:00-05:00,x,1\n"
    );
}

#[tokio::test]
async fn golden_a04_hours_of_kathmandu() {
    let person = person();
    let samples = [("00:10", 1), ("00:20", 4), ("00:50", 7)];
    let samples: Vec<Value> = (1..)
        .zip(samples)
        .map(|(n, (time, value))| heart_rate(id(n), &at(time), value))
        .collect();
    person.records("HeartRate", &samples).await;
    let asked = || {
        by(
            &person,
            "metric",
            "HeartRate",
            "60m",
            ("2024-05-01T00:00:00Z", "2024-05-02T00:00:00Z"),
        )
    };
    let rows = ["sum", "avg", "min", "max"]
        .iter()
        .fold(asked().with("time_zone", "Asia/Kathmandu"), |call, function| {
            call.with("function", function)
        });
    assert_eq!(
        rows.await.must_be(200).rows(),
        [
            json!({"time": "2024-05-01T05:00:00+05:45", "sum": 1.0, "avg": 1.0, "min": 1.0, "max": 1.0}),
            json!({"time": "2024-05-01T06:00:00+05:45", "sum": 11.0, "avg": 5.5, "min": 4.0, "max": 7.0}),
        ]
    );
    // Functions come in the order in which they were asked for; without a zone it is UTC.
    let csv = asked()
        .with("function", "max,min")
        .with("format", "csv")
        .await
        .must_be(200);
    assert_eq!(csv.text(), "time,max,min\n2024-05-01T00:00:00Z,7.0,1.0\n");
}

#[tokio::test]
async fn golden_f01_filters_choose_what_is_counted() {
    let person = person();
    let rows = [
        json!({
            "id": id(1), "recorded_at": at("10:00"), "source_id": "com.x.annotation.a", "value": 3,
            "note": "tea: green", "tags": ["t1"],
        }),
        json!({
            "id": id(2), "recorded_at": at("10:01"), "source_id": "com.x.annotation.b", "value": 5,
            "note": null, "tags": ["t1", "t2"],
        }),
        json!({
            "id": id(3), "recorded_at": at("10:02"), "source_id": "o'brien", "value": 4, "note": "50% off",
            "tags": [],
        }),
    ];
    person.records("NumericAnnotation", &rows).await;
    let day = ("2024-05-01T00:00:00Z", "2024-05-02T00:00:00Z");
    let cases: [(&[&str], &[f64]); 10] = [
        (&["source_id:com.x.annotation.a"], &[3.0]),
        (
            &["source_id:com.x.annotation.a", "source_id:com.x.annotation.b"],
            &[8.0],
        ),
        (&["value>=4"], &[9.0]),
        (&["value>=4", "tags:t2"], &[5.0]),
        (&["note:tea: green"], &[3.0]),
        (&["note:null"], &[5.0]),
        (&["note!=null"], &[7.0]),
        (&["source_id:o'brien"], &[4.0]),
        (&["note~50%"], &[4.0]),
        (&["source_id:' OR 1=1 --"], &[]),
    ];
    for (filters, sums) in cases {
        let call = by(&person, "metric", "NumericAnnotation", "day", day).with("function", "sum");
        let rows = filters
            .iter()
            .fold(call, |call, filter| call.with("filter", filter))
            .await
            .must_be(200)
            .rows();
        let found: Vec<f64> = rows.iter().map(|row| row["sum"].as_f64().unwrap()).collect();
        assert_eq!(found, sums, "{filters:?}");
    }
    for filter in ["nosuch:1", "value:abc", "value"] {
        let call = by(&person, "metric", "NumericAnnotation", "day", day).with("function", "sum");
        assert_eq!(
            call.with("filter", filter).await.faults(),
            ["query.filter"],
            "{filter}"
        );
    }
}

#[tokio::test]
async fn rule_5_2_an_interval_counts_where_it_begins_also_before_the_range() {
    let person = person();
    let records = [
        json!({"id": id(1), "start_time": "2024-04-30T22:00:00Z", "end_time": "2024-05-01T06:00:00Z"}),
        json!({"id": id(2), "start_time": "2024-05-01T23:00:00Z", "end_time": "2024-05-03T06:00:00Z"}),
        json!({"id": id(3), "start_time": "2024-04-30T20:00:00Z", "end_time": "2024-05-01T00:00:00Z"}),
    ];
    let own = person.define("Event", &json!({"name": "Shift"})).await;
    person.records(&own, &records).await;
    let rows = by(
        &person,
        "event",
        &own,
        "day",
        ("2024-05-01T00:00:00Z", "2024-05-02T00:00:00Z"),
    )
    .await
    .must_be(200)
    .rows();
    assert_eq!(
        rows,
        [
            json!({"time": "2024-04-30T00:00:00Z", "count": 1}),
            json!({"time": "2024-05-01T00:00:00Z", "count": 1})
        ]
    );
}

#[tokio::test]
async fn rule_5_3_booleans_count_as_0_and_1_and_nulls_as_nothing() {
    let person = person();
    let rows = [
        json!({"id": id(1), "recorded_at": at("10:00"), "value": true}),
        json!({"id": id(2), "recorded_at": at("11:00"), "value": false}),
        json!({"id": id(3), "recorded_at": at("12:00"), "value": true}),
    ];
    person.records("BooleanAnnotation", &rows).await;
    let functions = |call: Call| {
        call.with("function", "sum")
            .with("function", "avg")
            .with("function", "max")
    };
    let day = ("2024-05-01T00:00:00Z", "2024-05-02T00:00:00Z");
    let rows = functions(by(&person, "metric", "BooleanAnnotation", "day", day))
        .await
        .must_be(200)
        .rows();
    assert_eq!(
        (rows[0]["sum"].as_f64(), rows[0]["max"].as_f64()),
        (Some(2.0), Some(1.0))
    );
    assert!((rows[0]["avg"].as_f64().unwrap() - 2.0 / 3.0).abs() < 1e-9);

    let own = person
        .define("Metric", &json!({"name": "Maybe", "record_spec": {"unit": "1"}}))
        .await;
    let rows = [
        json!({"id": id(1), "start_time": at("10:00"), "value": 5}),
        json!({"id": id(2), "start_time": at("10:30"), "value": null}),
        json!({"id": id(3), "start_time": at("11:00"), "value": null}),
    ];
    if person.lines(&own, &rows).await.status == 201 {
        let rows = functions(by(&person, "metric", &own, "60m", day))
            .await
            .must_be(200)
            .rows();
        assert_eq!(
            rows,
            [
                json!({"time": at("10:00"), "sum": 5.0, "avg": 5.0, "max": 5.0}),
                json!({"time": at("11:00"), "sum": null, "avg": null, "max": null}),
            ]
        );
    }
}

#[tokio::test]
async fn rule_5_3_groups_ascend_with_nulls_last_in_every_type() {
    let (person, own) = golden_events().await;
    let records = [
        json!({
            "id": id(11), "start_time": at("10:00"), "cups": 10, "hot": true, "seen": at("09:00"),
            "note": "é",
        }),
        json!({
            "id": id(12), "start_time": at("10:01"), "cups": 9, "hot": false, "seen": at("08:00"),
            "note": "a,\"b",
        }),
        json!({"id": id(13), "start_time": at("10:02")}),
    ];
    person.records(&own, &records).await;
    let may = ("2024-05-01T00:00:00Z", "2024-05-02T00:00:00Z");
    for (field, expected) in [
        ("cups", json!([9, 10, null])),
        ("hot", json!([false, true, null])),
        ("seen", json!([at("08:00"), at("09:00"), null])),
        ("note", json!(["a,\"b", "é", null])),
        ("id", json!([id(11), id(12), id(13)])),
        ("start_time", json!([at("10:00"), at("10:01"), at("10:02")])),
    ] {
        let rows = by(&person, "event", &own, "day", may)
            .with("group", field)
            .await
            .must_be(200)
            .rows();
        let found: Vec<Value> = rows.iter().map(|row| row[field].clone()).collect();
        assert_eq!(json!(found), expected, "{field}");
    }
    let rows = by(&person, "event", &own, "day", may)
        .with("group", "hot,cups")
        .await
        .must_be(200)
        .rows();
    assert_eq!(
        rows[0],
        json!({"time": "2024-05-01T00:00:00Z", "hot": false, "cups": 9, "count": 1})
    );
    // Of two definitions of a base, the one that lacks the field has it null.
    let other = person.define("Event", &json!({"name": "Other"})).await;
    person
        .records(&other, &[json!({"id": id(21), "start_time": at("11:00")})])
        .await;
    let rows = by(&person, "event", "Event", "day", may)
        .with("group", "hot")
        .await
        .must_be(200)
        .rows();
    let counts: Vec<&Value> = rows.iter().map(|row| &row["count"]).collect();
    assert_eq!(json!(counts), json!([1, 1, 2]));
}

#[tokio::test]
async fn rule_5_4_more_than_ten_thousand_groups_are_refused() {
    let person = person();
    let own = person
        .define(
            "Event",
            &json!({"name": "Many", "record_spec": {"schema": {"properties": {"n": {"type": "integer"}}}}}),
        )
        .await;
    let record = |n: u32| json!({"start_time": instant(n % 86_400), "n": n});
    let first: Vec<Value> = (0..10_000).map(record).collect();
    person.records(&own, &first).await;
    let may = ("2024-05-01T00:00:00Z", "2024-05-02T00:00:00Z");
    let asked = || by(&person, "event", &own, "day", may).with("group", "n");
    assert_eq!(asked().await.must_be(200).rows().len(), 10_000);
    person.records(&own, &[record(10_000)]).await;
    let reply = asked().await;
    assert_eq!(reply.faults(), ["query.group"]);
    assert!(reply.text().contains("10000"), "{reply}");
    // Periods are no groups.
    assert_eq!(
        by(&person, "event", &own, "15m", may)
            .await
            .must_be(200)
            .rows()
            .len(),
        12
    );
}

#[tokio::test]
async fn what_is_wrong_is_named_with_what_exists() {
    let (person, own) = golden_events().await;
    person
        .records("HeartRate", &[heart_rate(id(1), &at("10:00"), 60)])
        .await;
    let event = || by(&person, "event", &own, "day", FALL);
    let annotation = format!("MomentAnnotation/{}", id(5));
    let counted = format!("count its records at /data/v1alpha1/event/{annotation}/agg");
    let metric = || by(&person, "metric", "HeartRate", "day", FALL);
    let cases = [
        (
            event().with("time_zone", "Mars/Olympus"),
            "query.time_zone",
            "Mars/Olympus",
        ),
        (event().with("time_zone", ""), "query.time_zone", "IANA"),
        (
            event().with("time_zone", "america/new_york"),
            "query.time_zone",
            "America/New_York",
        ),
        (
            by(&person, "event", &own, "1h", FALL),
            "path.resolution",
            "15m, 60m, day",
        ),
        (event().with("group", "nosuch"), "query.group", "note"),
        (event().with("group", "words"), "query.group", "`words`"),
        (event().with("group", "any"), "query.group", "`any`"),
        (event().with("group", "count"), "query.group", "`count`"),
        (
            event().with("group", "note").with("group", "note"),
            "query.group",
            "twice",
        ),
        (
            event().with("group", "note,cups,hot,seen,id,start_time"),
            "query.group",
            "the limit is 5",
        ),
        (event().with("filter", "nosuch:1"), "query.filter", "nosuch"),
        (event().with("filter", "cups:many"), "query.filter", "many"),
        (event().with("filter", "words<a"), "query.filter", "words"),
        (event().with("sort", "up"), "query.sort", "asc, desc"),
        (event().with("format", "xml"), "query.format", "json"),
        (metric(), "query.function", "sum, avg, min, max"),
        (
            metric().with("function", "median"),
            "query.function",
            "sum, avg, min, max",
        ),
        (metric().with("function", "sum,sum"), "query.function", "twice"),
        (
            by(&person, "metric", &own, "day", FALL).with("function", "sum"),
            "path.data_type",
            "event",
        ),
        (
            by(&person, "metric", &annotation, "day", FALL).with("function", "avg"),
            "path.data_type",
            counted.as_str(),
        ),
        (
            by(
                &person,
                "event",
                &own,
                "day",
                ("2024-11-04T00:00:00Z", "2024-11-03T00:00:00Z"),
            ),
            "query.end_time",
            "inverted",
        ),
    ];
    for (call, place, said) in cases {
        let reply = call.await;
        assert_eq!(reply.faults(), [place], "{reply}");
        assert!(reply.text().contains(said), "{said}: {reply}");
    }
    by(&person, "event", "Nosuch", "day", FALL).await.must_be(404);
    by(
        &person,
        "event",
        &format!("Event/{}", Uuid::now_v7()),
        "day",
        FALL,
    )
    .await
    .must_be(404);
    let empty = by(
        &person,
        "event",
        &own,
        "day",
        ("2024-11-03T00:00:00Z", "2024-11-03T00:00:00Z"),
    )
    .await
    .must_be(200);
    assert_eq!(empty.text(), "[]");
    let nothing = by(&person, "metric", "RestingHeartRate", "day", FALL)
        .with("function", "avg")
        .await
        .must_be(200);
    assert_eq!(nothing.text(), "[]");
}

#[tokio::test]
async fn another_persons_records_are_not_counted() {
    let (owner, own) = golden_events().await;
    let stranger = person();
    for (class, data_type) in [
        ("event", own.as_str()),
        ("event", "Nosuch"),
        ("metric", "HeartRate"),
    ] {
        let call = by(&stranger, class, data_type, "day", FALL).with("function", "avg");
        call.with("svc_userid", &owner.id.to_string()).await.problem(403);
    }
    let call = by(&owner, "event", &own, "day", FALL).with("svc_userid", &owner.id.to_string());
    assert_eq!(call.await.must_be(200).rows().len(), 2);
}

#[tokio::test]
async fn an_answer_has_a_tag_that_changes_with_what_was_read() {
    let (person, own) = golden_events().await;
    let first = by(&person, "event", &own, "day", FALL).await.must_be(200);
    let tag = first.header("etag").unwrap().to_owned();
    by(&person, "event", &own, "day", FALL)
        .header("if-none-match", &tag)
        .await
        .must_be(304);
    person
        .records(&own, &[json!({"id": id(50), "start_time": FALL.0})])
        .await;
    by(&person, "event", &own, "day", FALL)
        .header("if-none-match", &tag)
        .await
        .must_be(200);
}

/// The label of a period as somebody with a calendar of that zone would write it. For zones whose clocks jump
/// by whole hours.
fn label(zone: chrono_tz::Tz, moment: DateTime<Utc>, resolution: &str) -> String {
    let local = moment.with_timezone(&zone);
    let start = match resolution {
        "day" => {
            let midnight = local.date_naive().and_hms_opt(0, 0, 0).unwrap();
            zone.from_local_datetime(&midnight).earliest().unwrap()
        }
        "60m" => {
            moment.with_timezone(&zone)
                - chrono::Duration::seconds(i64::from(local.minute() * 60 + local.second()))
        }
        _ => local - chrono::Duration::seconds(i64::from(local.minute() % 15 * 60 + local.second())),
    };
    let text = start.to_rfc3339_opts(chrono::SecondsFormat::Secs, false);
    if zone == chrono_tz::UTC {
        text.replace("+00:00", "Z")
    } else {
        text
    }
}

#[tokio::test]
async fn random_records_are_counted_as_by_hand() {
    let person = person();
    let begin = DateTime::parse_from_rfc3339("2024-10-25T00:00:00Z")
        .unwrap()
        .with_timezone(&Utc);
    let mut seed = 7_u64;
    let mut random = |below: u64| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let moments: Vec<(DateTime<Utc>, f64)> = (0..3000)
        .map(|_| {
            (
                begin + chrono::Duration::seconds(random(14 * 86_400) as i64),
                random(200) as f64,
            )
        })
        .collect();
    for (part, some) in moments.chunks(1000).enumerate() {
        let samples: Vec<Value> = some
            .iter()
            .zip(part as u32 * 1000..)
            .map(|((moment, value), n)| heart_rate(id(n), &moment.to_rfc3339(), *value))
            .collect();
        person.records("HeartRate", &samples).await;
    }
    let range = ("2024-10-26T03:30:00Z", "2024-11-06T09:00:00Z");
    let inside = |moment: &DateTime<Utc>| {
        let bound = |text| DateTime::parse_from_rfc3339(text).unwrap().with_timezone(&Utc);
        bound(range.0) <= *moment && *moment < bound(range.1)
    };
    for zone in [
        chrono_tz::America::New_York,
        chrono_tz::Europe::Berlin,
        chrono_tz::Asia::Kathmandu,
        chrono_tz::UTC,
    ] {
        for resolution in ["day", "60m", "15m"] {
            let mut expected: BTreeMap<DateTime<Utc>, (String, Vec<f64>)> = BTreeMap::new();
            for (moment, value) in moments.iter().filter(|(moment, _)| inside(moment)) {
                let label = label(zone, *moment, resolution);
                let order = DateTime::parse_from_rfc3339(&label).unwrap().with_timezone(&Utc);
                expected
                    .entry(order)
                    .or_insert((label, Vec::new()))
                    .1
                    .push(*value);
            }
            let call = by(&person, "metric", "HeartRate", resolution, range).with("time_zone", zone.name());
            let rows = call
                .with("function", "sum")
                .with("function", "min")
                .with("function", "max")
                .await
                .must_be(200)
                .rows();
            let expected: Vec<Value> = expected
                .into_values()
                .map(|(label, values)| {
                    let (least, most) = values.iter().fold((f64::MAX, f64::MIN), |(least, most), value| {
                        (least.min(*value), most.max(*value))
                    });
                    json!({"time": label, "sum": values.iter().sum::<f64>(), "min": least, "max": most})
                })
                .collect();
            assert_eq!(rows, expected, "{zone} {resolution}");
        }
    }
}

#[tokio::test]
async fn the_columns_are_the_same_with_and_without_rows() {
    let person = person();
    // Enough of them for an object, whose rollups take the place of rows.
    let moments = || (0..5000_u32).map(|n| (n, instant(n * 300), instant(n * 300 + 60)));
    let rates: Vec<Value> = moments()
        .map(|(n, start, _)| heart_rate(id(n), &start, 60 + n % 40))
        .collect();
    person.records("HeartRate", &rates).await;
    let walks: Vec<Value> = moments()
        .map(|(n, start, end)| steps(id(n), &start, &end, n % 40))
        .collect();
    person.records("StepCount", &walks).await;

    let full = ("2024-05-01T00:00:00Z", "2024-05-20T00:00:00Z");
    let empty = ("2023-05-01T00:00:00Z", "2023-05-20T00:00:00Z");
    let functions: [&[&str]; 4] = [&["sum"], &["avg"], &["min", "max"], &["sum", "avg", "min", "max"]];
    let mut asked: Vec<(&str, &str, &[&str])> = vec![("event", "HeartRate", &[][..])];
    for functions in functions {
        asked.extend(["HeartRate", "StepCount"].map(|metric| ("metric", metric, functions)));
    }
    for (class, metric, functions) in asked {
        for more in [
            ("time_zone", "UTC"),
            ("time_zone", "Europe/Berlin"),
            ("partial", "true"),
            ("sort", "desc"),
        ] {
            for output in ["arrow", "parquet"] {
                let mut schemas = Vec::new();
                for (range, has_rows) in [(full, true), (empty, false)] {
                    let call = by(&person, class, metric, "day", range)
                        .with(more.0, more.1)
                        .with("output", output);
                    let call = functions
                        .iter()
                        .fold(call, |call, function| call.with("function", function));
                    let table = Table::read(output, &call.await.must_be(200).body);
                    assert_eq!(!table.rows.is_empty(), has_rows, "{metric} {functions:?}");
                    schemas.push(table.schema.expect("columns with types"));
                }
                assert_eq!(schemas[0], schemas[1], "{metric} {functions:?} {more:?}");
                let times = schemas[0].field_with_name("time").unwrap();
                assert!(!times.is_nullable(), "{metric} {functions:?} {more:?}");
            }
        }
    }
}
