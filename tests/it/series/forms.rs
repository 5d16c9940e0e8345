//! Columns, output methods, zones and what else shapes an answer.

use arrow::datatypes::{DataType, TimeUnit};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{column, grouped, rows, sample, series};
use crate::harness::{METHODS, Person, Table, at, heart_rate, id, number, person, steps, texts};

/// Heart rates of case M11.
async fn with_heart_rates() -> Person {
    let person = person();
    let samples = [("10:00:05", 60), ("10:00:45", 70), ("10:02:10", 90)];
    let samples: Vec<Value> = (1..)
        .zip(samples)
        .map(|(n, (time, value))| heart_rate(id(n), &at(time), value))
        .collect();
    person.records("HeartRate", &samples).await;
    person
}

const ALL: [&str; 7] = [
    "max",
    "min",
    "delta",
    "mean",
    "uniques",
    "allpoints",
    "rollingmean",
];

/// `last` is the greatest start, then the greatest id; the list of all points ends with it.
#[tokio::test]
async fn rule_1_5c_all_points_begin_with_the_first_and_end_with_the_last() {
    let person = person();
    let sample = |n: u32, end: &str, value: u32| {
        json!({
            "uuid": id(n), "start_date": at("10:00"), "end_date": at(end), "value": value,
        })
    };
    let samples = [sample(1, "10:00:20", 100), sample(2, "10:00:10", 50)];
    person.records("HeartRate", &samples).await;
    let mut call = series(&person, "HeartRate", &at("10:00"), &at("10:01"));
    for calculation in ["first", "last", "allpoints"] {
        call = call.with("calculations", calculation);
    }
    let row = &rows(call).await[0];
    assert_eq!(
        (
            &row["all_heart_rate"],
            number(row, "first_heart_rate"),
            number(row, "last_heart_rate")
        ),
        (&json!([100.0, 50.0]), 100.0, 50.0)
    );
}

/// A cell as the methods of text show it.
fn as_text(cell: &Value) -> Value {
    match cell {
        Value::Null => json!(""),
        Value::String(text) => json!(text),
        other => json!(other.to_string()),
    }
}

#[tokio::test]
async fn rule_1_6_every_method_shows_the_same_rows() {
    let person = with_heart_rates().await;
    let none = Value::Null;
    let mean = 220.0 / 3.0;
    let expected = [
        json!([
            at("10:00"),
            65.0,
            70.0,
            60.0,
            10.0,
            65.0,
            [60.0, 70.0],
            [60.0, 70.0],
            65.0
        ]),
        json!([at("10:01"), none, none, none, none, none, none, none, 65.0]),
        json!([at("10:02"), 90.0, 90.0, 90.0, 0.0, 90.0, [90.0], [90.0], mean]),
        json!([at("10:03"), none, none, none, none, none, none, none, mean]),
    ];
    let expected = expected.map(|row| row.as_array().unwrap().clone());
    for method in METHODS {
        let mut call = series(&person, "HeartRate", &at("10:00"), &at("10:04")).with("output", method);
        for calculation in ALL {
            call = call.with("calculations", calculation);
        }
        let reply = call.await.must_be(200);
        let table = Table::read(method, &reply.body);
        assert_eq!(
            table.columns,
            [
                "time",
                "heart_rate",
                "max_heart_rate",
                "min_heart_rate",
                "delta_heart_rate",
                "mean_heart_rate",
                "uniq_heart_rate",
                "all_heart_rate",
                "rollingmean_heart_rate"
            ],
            "{method}"
        );
        assert_eq!(table.rows.len(), expected.len(), "{method}");
        for (row, expected) in table.rows.iter().zip(&expected) {
            let cells: Vec<Value> = table.columns.iter().map(|name| row[name].clone()).collect();
            if matches!(method, "csv" | "quotecsv") {
                let texts: Vec<Value> = expected.iter().map(as_text).collect();
                assert_eq!(cells, texts, "{method}");
            } else {
                assert_eq!(&cells, expected, "{method}");
            }
        }
        if table.schema.is_some() {
            let time = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
            assert_eq!(table.data_type("time"), time, "{method}");
            assert_eq!(table.data_type("heart_rate"), DataType::Float64, "{method}");
            assert!(
                matches!(table.data_type("uniq_heart_rate"), DataType::List(_)),
                "{method}"
            );
        }
    }
}

#[tokio::test]
async fn texts_are_exact_to_the_byte() {
    let person = with_heart_rates().await;
    let call = |method: &str| {
        let call =
            series(&person, "HeartRate", &at("10:00"), &at("10:02")).with("calculations", "uniques,count");
        call.with("output", method)
    };
    let text =
        |method: &'static str| async move { (method, call(method).await.must_be(200).text().to_owned()) };
    assert_eq!(
        text("csv").await.1,
        "time,heart_rate,uniq_heart_rate,count_heart_rate\n\
         2024-05-01T10:00:00Z,65.0,\"[60.0,70.0]\",2\n\
         2024-05-01T10:01:00Z,,,0\n"
    );
    assert_eq!(
        text("quotecsv").await.1,
        "\"time\",\"heart_rate\",\"uniq_heart_rate\",\"count_heart_rate\"\n\
         \"2024-05-01T10:00:00Z\",\"65.0\",\"[60.0,70.0]\",\"2\"\n\
         \"2024-05-01T10:01:00Z\",\"\",\"\",\"0\"\n"
    );
    assert_eq!(
        text("ndjson").await.1,
        "{\"time\":\"2024-05-01T10:00:00Z\",\"heart_rate\":65.0,\
         \"uniq_heart_rate\":[60.0,70.0],\"count_heart_rate\":2}\n\
         {\"time\":\"2024-05-01T10:01:00Z\",\"heart_rate\":null,\
         \"uniq_heart_rate\":null,\"count_heart_rate\":0}\n"
    );
}

#[tokio::test]
async fn rule_1_6_the_zone_changes_labels_and_calendar_bins_and_nothing_else() {
    let person = with_heart_rates().await;
    let call = || series(&person, "HeartRate", &at("09:50"), &at("10:20")).with("tz", "Asia/Kathmandu");
    let plain = rows(call().with("samprate", "600")).await;
    assert_eq!(
        texts(&plain, "time"),
        ["15:35", "15:45", "15:55"].map(|time| format!("2024-05-01T{time}:00+05:45"))
    );
    let hours = rows(call().with("samprate", "1h")).await;
    assert_eq!(
        texts(&hours, "time"),
        ["2024-05-01T15:00:00+05:45", "2024-05-01T16:00:00+05:45"]
    );
    let reply = call().with("output", "arrow").await.must_be(200);
    let zone = Table::read("arrow", &reply.body).data_type("time");
    assert_eq!(
        zone,
        DataType::Timestamp(TimeUnit::Microsecond, Some("Asia/Kathmandu".into()))
    );
    for name in ["UTC", "localtime", "Etc/GMT+5", "US/Pacific"] {
        let call = series(&person, "HeartRate", &at("09:50"), &at("10:20")).with("tz", name);
        assert_eq!(rows(call).await.len(), 30, "{name}");
    }
    let typed = format!("/data/v0/{}/metric_time_series?tz=Etc/GMT+5", person.id);
    let call = person
        .get(&typed)
        .with("metric", "HeartRate")
        .with("output", "jstable")
        .with("samprate", "1h");
    let hours = call
        .with("start_time", &at("10:00"))
        .with("end_time", &at("11:00"))
        .await
        .must_be(200)
        .rows();
    assert_eq!(
        texts(&hours, "time"),
        ["2024-05-01T05:00:00-05:00"],
        "a plus that arrives as a space"
    );
}

#[tokio::test]
async fn rule_1_2a_windows_below_a_second_and_a_default_of_a_minute() {
    let person = with_heart_rates().await;
    let found =
        rows(series(&person, "HeartRate", &at("10:00:05"), &at("10:00:06")).with("samprate", "0.25")).await;
    assert_eq!(
        texts(&found, "time"),
        ["05Z", "05.250Z", "05.500Z", "05.750Z"].map(|second| format!("2024-05-01T10:00:{second}"))
    );
    assert_eq!(column(&found, "heart_rate"), [Some(60.0), None, None, None]);
    assert_eq!(
        rows(series(&person, "HeartRate", &at("10:00"), &at("11:00")))
            .await
            .len(),
        60
    );
    assert!(
        rows(series(&person, "HeartRate", &at("10:00"), &at("10:00")))
            .await
            .is_empty()
    );
    let fine = series(
        &person,
        "HeartRate",
        &at("10:00:05"),
        "2024-05-01T10:00:05.000003Z",
    )
    .with("samprate", "0.000001");
    assert_eq!(rows(fine).await.len(), 3);
}

#[tokio::test]
async fn rule_1_6_any_number_of_metrics_can_be_grouped() {
    let person = with_heart_rates().await;
    let catalog = person.get("/data/v0/metrics_catalog").await.json();
    let metrics: Vec<&str> = catalog
        .as_array()
        .unwrap()
        .iter()
        .filter(|metric| metric["is_time_series"] == true)
        .map(|metric| metric["name"].as_str().unwrap())
        .collect();
    assert!(metrics.len() > 150, "there are {}", metrics.len());
    let found = rows(grouped(&person, &at("10:00"), &at("10:04")).with("metrics", &metrics.join(","))).await;
    assert_eq!(found.len(), 4);
    assert_eq!(found[0].as_object().unwrap().len(), metrics.len() + 1);
    assert_eq!(column(&found, "heart_rate"), [Some(65.0), None, Some(90.0), None]);
}

#[tokio::test]
async fn rule_1_6_grouped_metrics_stand_side_by_side_in_the_order_asked() {
    let person = with_heart_rates().await;
    person
        .records(
            "StepCount",
            &[steps(id(1), &at("10:00:30"), &at("10:02:30"), 120)],
        )
        .await;
    let call = || grouped(&person, &at("10:00"), &at("10:04"));
    let found = rows(
        call()
            .with("metrics", "StepCount")
            .with("metrics", "HeartRate")
            .with("metrics", "Weight"),
    )
    .await;
    let columns: Vec<&String> = found[0].as_object().unwrap().keys().collect();
    assert_eq!(columns, ["time", "step_count", "heart_rate", "weight"]);
    assert_eq!(
        column(&found, "step_count"),
        [Some(30.0), Some(60.0), Some(30.0), None]
    );
    assert_eq!(column(&found, "heart_rate"), [Some(65.0), None, Some(90.0), None]);
    assert_eq!(column(&found, "weight"), [None; 4]);
    let listed = rows(
        call()
            .with("metrics", "HeartRate,StepCount")
            .with("replace_nulls", "1"),
    )
    .await;
    assert_eq!(
        column(&listed, "heart_rate"),
        [Some(65.0), Some(0.0), Some(90.0), Some(0.0)]
    );
    assert_eq!(listed[0].as_object().unwrap().len(), 3);
    let own = call()
        .with("metrics", "HeartRate")
        .with("svc_userid", &person.id.to_string());
    assert_eq!(rows(own).await.len(), 4);
    for method in METHODS {
        let reply = call()
            .with("metrics", "HeartRate,StepCount")
            .with("output", method)
            .await
            .must_be(200);
        assert_eq!(Table::read(method, &reply.body).rows.len(), 4, "{method}");
    }
}

#[tokio::test]
async fn own_metrics_have_series_by_their_aggregation() {
    let person = person();
    let define = |name: &str, aggregation: &str| {
        let definition = json!({
            "name": name, "description": name, "record_spec": {"unit": "cups", "aggregation": aggregation},
        });
        let person = person.clone();
        async move { person.define("Metric", &definition).await }
    };
    let (added, level) = (
        define("Tea", "cumulative").await,
        define("Mood", "discrete").await,
    );
    let spans = json!({"start_time": at("10:00:30"), "end_time": at("10:01:30"), "value": 4});
    for metric in [&added, &level] {
        person.records(metric, std::slice::from_ref(&spans)).await;
        person
            .records(metric, &[json!({"start_time": at("10:01:10"), "value": 1})])
            .await;
    }
    let found = rows(series(&person, &added, &at("10:00"), &at("10:03"))).await;
    assert_eq!(column(&found, "value"), [Some(2.0), Some(3.0), None]);
    let found = rows(series(&person, &level, &at("10:00"), &at("10:03"))).await;
    assert_eq!(column(&found, "value"), [Some(4.0), Some(2.5), None]);
    let both = grouped(&person, &at("10:00"), &at("10:03"))
        .with("metrics", &added)
        .with("metrics", &level);
    let found = rows(both).await;
    assert_eq!(column(&found, "value"), [Some(2.0), Some(3.0), None]);
    assert_eq!(column(&found, &level), [Some(4.0), Some(2.5), None]);
}

#[tokio::test]
async fn annotations_that_are_numbers_have_series_each_definition_its_own() {
    let (person, asked, other) = (person(), Uuid::from_u128(7), Uuid::from_u128(8));
    let answers = [
        ("10:00", asked, true),
        ("10:00:30", asked, false),
        ("10:01", asked, true),
        ("10:01:10", other, false),
    ];
    let records: Vec<Value> = answers
        .iter()
        .map(|(time, definition, value)| {
            json!({
                "recorded_at": at(time), "value": value,
                "source_id": format!("com.almanac.annotation.{definition}"),
            })
        })
        .collect();
    person.records("BooleanAnnotation", &records).await;
    let call =
        |metric: &str| series(&person, metric, &at("10:00"), &at("10:02")).with("calculations", "count");
    let found = rows(call(&format!("BooleanAnnotation/{asked}"))).await;
    assert_eq!(column(&found, "value"), [Some(0.5), Some(1.0)]);
    assert_eq!(column(&found, "count_value"), [Some(2.0), Some(1.0)]);
    assert_eq!(
        column(&rows(call("BooleanAnnotation")).await, "value"),
        [Some(0.5), Some(0.5)]
    );
}

#[tokio::test]
async fn rule_1_3_what_is_noted_of_a_cumulative_annotation_adds_up_like_any_amount() {
    let person = person();
    let made = async |kind: &str| {
        let body = json!({
            "annotation_type": "numeric", "name": kind, "description": "", "tags": [],
            "measurement_spec": {"measurement_type": "count", "metric_kind": kind, "count": {"value": null}},
        });
        let annotation = person.post("/user/v1alpha1/annotation", &body).await;
        let annotation = annotation.must_be(201).json();
        format!("NumericAnnotation/{}", annotation["id"].as_str().unwrap())
    };
    let (amounts, levels) = (made("cumulative").await, made("discrete").await);
    for data_type in [&amounts, &levels] {
        for (time, value) in [("10:00", 1), ("10:00:30", 3), ("10:02", 5)] {
            let record = json!({"recorded_at": at(time), "value": value});
            person.record(data_type, &record).await.upload();
        }
    }
    let call = |metric: &str| series(&person, metric, &at("10:00"), &at("10:03"));
    let (added, averaged) = ([Some(4.0), None, Some(5.0)], [Some(2.0), None, Some(5.0)]);
    let found = rows(call(&amounts).with("calculations", "count")).await;
    assert_eq!(column(&found, "value"), added);
    assert_eq!(column(&found, "count_value")[0], Some(2.0));
    let found = rows(call(&levels).with("calculations", "max")).await;
    assert_eq!(column(&found, "value"), averaged);
    let refused = call(&amounts)
        .with("calculations", "max")
        .with("output", "jstable");
    assert_eq!(refused.await.faults(), ["query.calculations"]);
    let both = grouped(&person, &at("10:00"), &at("10:03"))
        .with("metrics", &amounts)
        .with("metrics", &levels);
    let found = rows(both).await;
    assert_eq!(column(&found, "value"), added);
    assert_eq!(column(&found, &levels), averaged);
}

#[tokio::test]
async fn rule_1_5e_the_series_of_sleep_is_that_of_the_resolved_stages() {
    let person = person();
    let stages = [
        (1, 0, "22:00", "23:00"),
        (2, 3, "22:10", "22:20"),
        (3, 2, "22:15", "22:30"),
    ];
    let records: Vec<Value> = stages
        .iter()
        .map(|(n, stage, start, end)| sample(id(*n), 0, &at(start), &at(end), f64::from(*stage)))
        .collect();
    person.records("SleepStage", &records).await;
    let found = rows(series(&person, "SleepStage", &at("22:05"), &at("22:40")).with("samprate", "300")).await;
    // In bed loses to unknown, unknown to any other stage.
    let expected = [0.0, 3.0, 3.0, 2.0, 2.0, 0.0, 0.0].map(Some);
    assert_eq!(column(&found, "sleep_stage"), expected);
}

#[tokio::test]
async fn a_walk_test_is_never_prorated() {
    let person = person();
    let tests = [
        sample(id(1), 0, &at("10:00"), &at("10:06"), 480.0),
        sample(id(2), 1, &at("10:04"), &at("10:10"), 500.0),
    ];
    person.records("SixMinuteWalkDistance", &tests).await;
    let found =
        rows(series(&person, "SixMinuteWalkDistance", &at("10:00"), &at("10:12")).with("samprate", "180"))
            .await;
    assert_eq!(
        column(&found, "six_minute_walk_distance"),
        [Some(480.0), Some(500.0), Some(500.0), Some(500.0)]
    );
}

#[tokio::test]
async fn an_answer_that_has_not_changed_is_not_sent_again() {
    let person = with_heart_rates().await;
    let call = || series(&person, "HeartRate", &at("10:00"), &at("10:04")).with("output", "csv");
    let tag = call().await.must_be(200).header("etag").unwrap().to_owned();
    call().header("if-none-match", &tag).await.must_be(304);
    // It is remembered by now, which a condition of who asks again does not make true.
    call().header("if-match", "W/\"another\"").await.problem(412);
    call().header("if-match", &tag).await.must_be(200);
    person
        .records("HeartRate", &[heart_rate(id(9), &at("10:03"), 80)])
        .await;
    let reply = call().header("if-none-match", &tag).await.must_be(200);
    assert_ne!(reply.header("etag"), Some(tag.as_str()));
}
