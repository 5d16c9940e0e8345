//! Light answers: the columns that are asked for, so many rows, and frames that are compressed.

use serde_json::{Value, json};

use crate::harness::{METHODS, Person, Setup, Table, at, heart_rate, id, instant, person, steps};

async fn measured() -> Person {
    let person = person();
    let records: Vec<Value> = (0..200)
        .map(|n| {
            let mut record = heart_rate(id(n), &instant(n * 60), 60 + n % 40);
            record["source_properties"] = json!({"name": "Watch", "version": "10.5"});
            record
        })
        .collect();
    person.records("HeartRate", &records).await;
    person
}

#[tokio::test]
async fn columns_are_answered_by_name_and_in_order_in_every_form() {
    let person = measured().await;
    for output in METHODS {
        let reply = person
            .metric_samples("HeartRate", &at("00:00"), &at("01:00"))
            .with("columns", "value,start_date,source_properties.name")
            .with("output", output)
            .await
            .must_be(200);
        let table = Table::read(output, &reply.body);
        assert_eq!(
            table.columns,
            ["value", "start_date", "source_properties.name"],
            "{output}"
        );
        assert_eq!(table.rows.len(), 60, "{output}");
        assert_eq!(
            table.rows[0]["source_properties.name"],
            json!("Watch"),
            "{output}"
        );
    }
    let faults = person
        .metric_samples("HeartRate", &at("00:00"), &at("01:00"))
        .with("columns", "start_dat")
        .await;
    assert!(faults.text().contains("did you mean start_date?"), "{faults}");
    assert_eq!(faults.faults(), ["query.columns"]);
}

#[tokio::test]
async fn members_of_structures_are_read_alone_from_objects_and_from_what_is_not_there_yet() {
    let almanac = Setup::default().busy_upkeep().start();
    let person = almanac.person();
    let sample = |n: u32| {
        let mut record = heart_rate(id(n), &instant(n * 60), 60 + n % 40);
        record["source_properties"] =
            json!({"name": "Watch", "version": "10.5", "operatingSystemVersion": "10.5.1"});
        record
    };
    person
        .records("HeartRate", &(0..50).map(sample).collect::<Vec<_>>())
        .await;
    almanac.until_objects(1).await;
    almanac.restart();
    person
        .records("HeartRate", &(50..60).map(sample).collect::<Vec<_>>())
        .await;
    let ask = || person.metric_samples("HeartRate", &at("00:00"), &at("12:00"));
    for output in METHODS {
        let light = ask()
            .with(
                "columns",
                "source_properties.operatingSystemVersion,value,source_properties.name",
            )
            .with("output", output)
            .await
            .must_be(200);
        let table = Table::read(output, &light.body);
        assert_eq!(table.rows.len(), 60, "{output}");
        for row in [&table.rows[0], &table.rows[59]] {
            assert_eq!(row["source_properties.name"], "Watch", "{output}");
            let version = row["source_properties.operatingSystemVersion"].to_string();
            let digits: String = version.chars().filter(char::is_ascii_digit).collect();
            assert_eq!(digits, "1051", "{output}: {version}");
        }
    }
    let whole = ask()
        .with("columns", "source_properties,source_properties.name")
        .await
        .must_be(200);
    assert_eq!(whole.rows()[0]["source_properties"]["version"], "10.5");
    let filtered = person
        .read("metric", "HeartRate")
        .with("columns", "source_properties.version")
        .with("filter", "source_properties.name:Watch")
        .await
        .must_be(200);
    assert_eq!(filtered.rows()[59], json!({"source_properties.version": "10.5"}));
    for (number, rows) in [("5", 60), ("7", 0)] {
        let filter = format!("source_properties.operatingSystemVersion:{number}");
        let filtered = person.read("metric", "HeartRate").with("filter", &filter);
        assert_eq!(filtered.await.must_be(200).rows().len(), rows, "{filter}");
    }
    let unknown = ask().with("columns", "source_properties.nam").await;
    assert!(unknown.text().contains("did you mean name?"), "{unknown}");
}

/// Of sixty records the last one is told so in every form.
async fn told(person: &Person, own: &str, columns: &str, expected: Value) {
    for output in METHODS {
        let light = person
            .read("event", own)
            .with("columns", columns)
            .with("output", output);
        let light = light.await.must_be(200);
        let table = Table::read(output, &light.body);
        assert_eq!(table.rows.len(), 60, "{output} {columns}");
        assert_eq!(table.rows[59], expected, "{output} {columns}");
    }
}

#[tokio::test]
async fn members_of_ones_own_types_are_read_alone_before_and_after_the_type_grew() {
    let almanac = Setup::default().busy_upkeep().start();
    let person = almanac.person();
    let place = |members: &Value| json!({"type": "object", "properties": members});
    let text = json!({"type": "string"});
    let schema = |properties: &Value| {
        json!({
            "name": "Meal", "description": "x", "record_spec": {"schema": {"properties": properties}},
        })
    };
    let eaten = place(&json!({"dish": text, "cook": text}));
    let own = person.define("Event", &schema(&json!({"eaten": eaten}))).await;
    let record = |n: u32| {
        json!({"id": id(n), "start_time": instant(n * 60), "end_time": instant(n * 60),
            "eaten": {"dish": format!("soup {n}"), "cook": "Ada"}, "drunk": {"what": "tea", "warm": "yes"}})
    };
    person
        .records(&own, &(0..50).map(record).collect::<Vec<_>>())
        .await;
    almanac.until_objects(1).await;
    person
        .records(&own, &(50..60).map(record).collect::<Vec<_>>())
        .await;
    let ask = |columns: &str| person.read("event", &own).with("columns", columns);
    told(&person, &own, "eaten.dish", json!({"eaten.dish": "soup 59"})).await;
    told(
        &person,
        &own,
        "eaten.cook,eaten.dish",
        json!({"eaten.cook": "Ada", "eaten.dish": "soup 59"}),
    )
    .await;
    let filtered = ask("eaten.dish")
        .with("filter", "eaten.cook:Ada")
        .await
        .must_be(200);
    assert_eq!(filtered.rows().len(), 60);
    // What was sent before it was declared is there as well.
    let drunk = place(&json!({"what": text, "warm": text}));
    let change = schema(&json!({"eaten": eaten, "drunk": drunk}));
    person
        .put(&format!("/input/v1/data_type/{own}"), &change)
        .await
        .must_be(200);
    told(
        &person,
        &own,
        "drunk.what,eaten.dish",
        json!({"drunk.what": "tea", "eaten.dish": "soup 59"}),
    )
    .await;
}

#[tokio::test]
async fn columns_are_taken_wherever_rows_are_answered() {
    let person = measured().await;
    person
        .records("StepCount", &[steps(id(1), &at("10:00"), &at("10:10"), 100)])
        .await;
    let (start, end) = (at("00:00"), at("12:00"));
    let of = |path: String| {
        person
            .get(&path)
            .with("start_time", &start)
            .with("end_time", &end)
    };
    let owner = person.id;
    let series = || {
        of(format!("/data/v0/{owner}/metric_time_series"))
            .with("metric", "HeartRate")
            .with("output", "jstable")
    };
    let all = series().await.must_be(200).rows();
    let (name, value) = all[0].as_object().unwrap().iter().next_back().unwrap();
    let one = series().with("columns", name).await.must_be(200).rows();
    assert_eq!((one.len(), &one[0]), (all.len(), &json!({name: value})));
    let periods = of("/data/v1alpha1/metric/StepCount/agg/day".to_owned())
        .with("function", "sum")
        .with("columns", "sum")
        .await
        .must_be(200);
    assert_eq!(periods.rows(), [json!({"sum": 100.0})]);
    let event = of("/data/v1alpha1/metric/HeartRate".to_owned())
        .with("columns", "value")
        .with("sort", "desc")
        .with("limit", "2")
        .await
        .must_be(200);
    assert_eq!(event.rows(), [json!({"value": 99.0}), json!({"value": 98.0})]);
}

#[tokio::test]
async fn a_limit_is_of_rows_and_is_at_least_one() {
    let person = measured().await;
    let samples = |limit: &str| {
        person
            .metric_samples("HeartRate", &at("00:00"), &at("12:00"))
            .with("limit", limit)
    };
    assert_eq!(samples("3").await.rows().len(), 3);
    for limit in ["0", "-1", "many"] {
        assert_eq!(samples(limit).await.faults(), ["query.limit"]);
    }
}

#[tokio::test]
async fn records_are_answered_in_every_form_too() {
    let person = measured().await;
    let columns = person
        .read("metric", "HeartRate")
        .with("output", "arrow")
        .await
        .must_be(200);
    assert_eq!(Table::read("arrow", &columns.body).rows.len(), 200);
    let differ = person
        .read("metric", "HeartRate")
        .with("output", "arrow")
        .with("format", "csv")
        .await;
    assert_eq!(differ.faults(), ["query.output"]);
}

#[tokio::test]
async fn frames_are_compressed_inside_where_that_is_asked_for() {
    let person = measured().await;
    for output in ["arrow", "arrowraw"] {
        let ask = || {
            person
                .metric_samples("HeartRate", &at("00:00"), &at("12:00"))
                .with("output", output)
        };
        let plain = ask().await.must_be(200);
        let expected = Table::read(output, &plain.body);
        for compression in ["lz4", "zstd"] {
            let inside = ask().with("compression", compression).await.must_be(200);
            assert_eq!(inside.header("content-encoding"), None);
            assert!(inside.body.len() < plain.body.len());
            let table = Table::read(output, &inside.body);
            assert_eq!(
                (table.columns, table.rows),
                (expected.columns.clone(), expected.rows.clone())
            );
        }
        let none = ask().with("compression", "none").await.must_be(200);
        assert_eq!(none.body, plain.body);
        // Who undoes a coding of the transport need not have a reader of frames that does.
        let coded = ask().header("accept-encoding", "zstd, gzip").await.must_be(200);
        assert_eq!(coded.header("content-encoding"), None);
        assert_eq!(coded.body, plain.body);
        let media_type = plain.header("content-type").unwrap();
        let accepted = ask()
            .header(
                "accept",
                &format!("{media_type}; codecs=\"zstd, lz4\", */*;q=0.1"),
            )
            .await
            .must_be(200);
        assert!(accepted.body.len() < plain.body.len());
        assert_eq!(accepted.header("vary"), Some("accept"));
        assert_ne!(accepted.header("etag"), plain.header("etag"));
        assert_eq!(Table::read(output, &accepted.body).rows, expected.rows);
    }
}
