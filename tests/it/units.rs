//! Values in the units that people chose, and the name of the unit beside each.

use std::sync::Arc;

use arrow::datatypes::Field;
use serde_json::{Value, json};

use crate::harness::{Call, METHODS, Person, Table, at, id, number, person, steps, texts};

const POUNDS: f64 = 176.369_809_747_902;

/// Eighty kilograms, 37 degrees, and a mile.
async fn measured() -> Person {
    let person = person();
    let sample = |n: u32, value: f64, unit: &str| {
        json!({
            "uuid": id(n), "start_date": at("10:00"), "end_date": at("10:10"), "value": value, "unit": unit,
        })
    };
    person.records("Weight", &[sample(1, 80.0, "kg")]).await;
    person
        .records(
            "BodyTemperature",
            &[sample(1, 37.0, "degC"), sample(2, 39.0, "degC")],
        )
        .await;
    person
        .records("DistanceTraveledOnFoot", &[sample(1, 1.0, "mi")])
        .await;
    person
        .records("StepCount", &[steps(id(1), &at("10:00"), &at("10:10"), 100)])
        .await;
    person
}

fn samples(person: &Person, metric: &str) -> Call {
    person.metric_samples(metric, &at("00:00"), &at("23:00"))
}

fn series(person: &Person, metric: &str) -> Call {
    person
        .get(&format!("/data/v0/{}/metric_time_series", person.id))
        .with("metric", metric)
        .with("start", &at("10:00"))
        .with("end", &at("10:10"))
        .with("samprate", "600")
        .with("output", "jstable")
}

fn near(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= 1e-9 * expected.abs().max(1.0)
}

#[tokio::test]
async fn each_way_of_asking_gives_its_number_and_its_unit() {
    let person = measured().await;
    for (metric, units, value, unit) in [
        ("Weight", "", POUNDS, "lb"),
        ("Weight", "catalogue", POUNDS, "lb"),
        ("Weight", "us", POUNDS, "lb"),
        ("Weight", "metric", 80.0, "kg"),
        ("BodyTemperature", "metric", 37.0, "degC"),
        ("BodyTemperature", "us", 98.6, "degF"),
        ("DistanceTraveledOnFoot", "metric", 1.609_344, "km"),
        ("StepCount", "metric", 100.0, "steps"),
    ] {
        let ask = |call: Call| {
            if units.is_empty() {
                call
            } else {
                call.with("units", units)
            }
        };
        for call in [samples(&person, metric), person.read("metric", metric)] {
            let row = ask(call).await.must_be(200).rows()[0].clone();
            assert!(near(number(&row, "value"), value), "{metric} {units}: {row}");
            assert_eq!(row["unit"], unit, "{metric} {units}");
        }
    }
}

#[tokio::test]
async fn series_and_aggregates_name_the_unit_where_it_was_asked_for() {
    let person = measured().await;
    let plain = series(&person, "Weight").await.must_be(200).rows();
    assert_eq!(plain[0].as_object().unwrap().len(), 2, "{plain:?}");
    let told = series(&person, "BodyTemperature")
        .with("calculations", "max,delta,count,allpoints")
        .with("units", "metric")
        .with("partial", "true")
        .await
        .must_be(200)
        .rows();
    let row = &told[0];
    let names: Vec<&String> = row.as_object().unwrap().keys().collect();
    assert_eq!(names[names.len() - 2..], ["unit", "partial"]);
    for (name, value) in [
        ("body_temperature", 38.0),
        ("max_body_temperature", 39.0),
        ("delta_body_temperature", 2.0),
        ("count_body_temperature", 2.0),
    ] {
        assert!(near(number(row, name), value), "{name} in {row}");
    }
    let points: Vec<f64> = row["all_body_temperature"]
        .as_array()
        .unwrap()
        .iter()
        .map(|point| point.as_f64().unwrap())
        .collect();
    assert!(near(points[0], 37.0) && near(points[1], 39.0), "{points:?}");
    assert_eq!(row["unit"], "degC");
    let same = series(&person, "StepCount")
        .with("units", "metric")
        .await
        .must_be(200);
    assert_eq!(texts(&same.rows(), "unit"), ["steps"]);
    let beside = person
        .get("/data/v0/time_series_grouped")
        .with("metrics", "Weight,StepCount")
        .with("start", &at("10:00"))
        .with("end", &at("10:10"))
        .with("samprate", "600")
        .with("output", "jstable")
        .with("units", "metric")
        .await
        .must_be(200)
        .rows();
    assert!(near(number(&beside[0], "weight"), 80.0), "{beside:?}");
    assert_eq!(
        (&beside[0]["weight_unit"], &beside[0]["step_count_unit"]),
        (&json!("kg"), &json!("steps"))
    );
    let days = person
        .read("metric", "BodyTemperature/agg/day")
        .with("function", "avg,min")
        .with("units", "metric");
    let days = days.await.must_be(200).rows();
    assert!(
        near(number(&days[0], "avg"), 38.0) && near(number(&days[0], "min"), 37.0),
        "{days:?}"
    );
    assert_eq!(days[0]["unit"], "degC");
}

#[tokio::test]
async fn what_would_be_wrong_in_other_units_is_refused() {
    let person = measured().await;
    let temperatures = || {
        person
            .read("metric", "BodyTemperature/agg/day")
            .with("units", "metric")
    };
    for (call, place) in [
        (temperatures().with("function", "sum"), "query.function"),
        (
            temperatures().with("function", "avg").with("group", "value"),
            "query.group",
        ),
        (
            series(&person, "BodyTemperature")
                .with("units", "metric")
                .with("replace_nulls", "1"),
            "query.replace_nulls",
        ),
        (
            series(&person, "BodyTemperature")
                .with("units", "metric")
                .with("calculations", "sum"),
            "query.calculations",
        ),
        (
            person
                .read("metric", "Weight")
                .with("units", "metric")
                .with("filter", "value>100"),
            "query.filter",
        ),
        (
            person
                .read("metric", "Weight")
                .with("units", "metric")
                .with("filter", "unit:kg"),
            "query.filter",
        ),
        (
            person
                .read("metric", "Weight/agg/day")
                .with("units", "metric")
                .with("function", "max")
                .with("filter", "unit:lb"),
            "query.filter",
        ),
        (
            person
                .get("/data/v1/records")
                .with("units", "metric")
                .with("q", "Weight{unit=\"lb\"}[100y]"),
            "query.q",
        ),
        (
            samples(&person, "Weight").with("units", "imperial"),
            "query.units",
        ),
    ] {
        assert_eq!(call.await.faults(), [place]);
    }
    // What stays as it is can be compared in any units.
    for (units, filter) in [
        ("catalogue", "value>100"),
        ("catalogue", "unit:lb"),
        ("us", "unit:lb"),
    ] {
        let kept = person
            .read("metric", "Weight")
            .with("units", units)
            .with("filter", filter);
        assert_eq!(kept.await.must_be(200).rows().len(), 1, "{units} {filter}");
    }
    let sum = person
        .read("metric", "DistanceTraveledOnFoot/agg/day")
        .with("units", "metric")
        .with("function", "sum");
    let sum = sum.await.must_be(200).rows();
    assert!(near(number(&sum[0], "sum"), 1.609_344), "{sum:?}");
}

#[tokio::test]
async fn who_prefers_units_is_told_them_and_a_question_that_names_some_gets_those() {
    let person = measured().await;
    let weight = |call: Call| async { call.await.must_be(200).rows()[0].clone() };
    let before = samples(&person, "Weight").await.must_be(200);
    person
        .post("/user/v1alpha1/preferences", &json!({"units": "metric"}))
        .await
        .must_be(200);
    let after = samples(&person, "Weight").await.must_be(200);
    assert_ne!(before.header("etag"), after.header("etag"));
    assert_eq!(weight(samples(&person, "Weight")).await["unit"], "kg");
    assert_eq!(
        weight(samples(&person, "Weight").with("units", "us")).await["unit"],
        "lb"
    );
    let told = series(&person, "Weight").await.must_be(200).rows();
    assert!(
        near(number(&told[0], "weight"), 80.0) && told[0]["unit"] == "kg",
        "{told:?}"
    );
    for filter in ["value>100", "unit:lb"] {
        let filtered = person.read("metric", "Weight").with("filter", filter);
        assert_eq!(
            filtered.await.must_be(200).rows()[0]["unit"],
            "lb",
            "{filter}: as it is kept, and named so"
        );
    }
    person
        .post("/user/v1alpha1/preferences", &json!({"units": null}))
        .await
        .must_be(200);
    assert_eq!(weight(samples(&person, "Weight")).await["unit"], "lb");
    let wrong = person
        .post("/user/v1alpha1/preferences", &json!({"units": "imperial"}))
        .await;
    assert_eq!(wrong.faults(), ["body.units"]);
}

#[tokio::test]
async fn rows_read_in_other_units_are_written_back_as_they_were_sent() {
    let person = measured().await;
    for (metric, unchanged) in [("Weight", 1), ("BodyTemperature", 2)] {
        let kept = samples(&person, metric).await.must_be(200).rows();
        let shown = samples(&person, metric).with("units", "metric");
        let mut shown = shown.await.must_be(200).rows();
        assert_ne!(shown[0]["unit"], kept[0]["unit"]);
        let again = person.lines(metric, &shown).await;
        assert_eq!(again.counts(), [0, 0, unchanged, 0]);
        assert_eq!(samples(&person, metric).await.must_be(200).rows(), kept);
        shown[0]["value"] = json!(41);
        let faults = person.record(metric, &shown[0]).await.faults();
        assert_eq!(faults, ["body.extras"]);
    }
}

#[tokio::test]
async fn frames_say_the_unit_of_each_column() {
    let person = measured().await;
    let unit = |field: &Arc<Field>| field.metadata().get("unit").cloned();
    for method in METHODS {
        let call = || samples(&person, "Weight").with("output", method);
        for (call, expected) in [(call(), "lb"), (call().with("units", "metric"), "kg")] {
            let reply = call.await.must_be(200);
            let table = Table::read(method, &reply.body);
            let row = &table.rows[0];
            assert!(row["unit"] == expected, "{method}: {row}");
            let Some(schema) = table.schema else { continue };
            let named: Vec<(String, String)> = schema
                .fields()
                .iter()
                .filter_map(|field| Some((field.name().clone(), unit(field)?)))
                .collect();
            assert_eq!(named, [("value".to_owned(), expected.to_owned())], "{method}");
        }
    }
    let told = series(&person, "Weight")
        .with("output", "arrow")
        .await
        .must_be(200);
    let schema = Table::read("arrow", &told.body).schema.unwrap();
    assert_eq!(schema.field(1).metadata()["unit"], "lb");
    let light = samples(&person, "Weight")
        .with("columns", "value")
        .with("units", "metric")
        .with("output", "arrow")
        .await;
    let light = Table::read("arrow", &light.must_be(200).body);
    assert_eq!(
        (
            light.columns.len(),
            light.schema.unwrap().field(0).metadata()["unit"].as_str()
        ),
        (1, "kg")
    );
    let empty: Vec<Value> = Vec::new();
    let none = samples(&person, "Height")
        .with("units", "metric")
        .await
        .must_be(200)
        .rows();
    assert_eq!(none, empty);
}

#[tokio::test]
async fn selected_records_are_told_in_units_too_and_columns_of_places_name_theirs() {
    let person = measured().await;
    let selected = |q: &str| person.get("/data/v1/records").with("q", q);
    for (units, value, unit) in [("metric", 80.0, "kg"), ("us", POUNDS, "lb")] {
        for q in ["Weight[1d] @ 1714564800", "Weight @ 1714564800"] {
            let rows = selected(q).with("units", units).with("output", "jstable");
            let rows = rows.await.must_be(200).rows();
            assert!(
                near(number(&rows[0], "value"), value) && rows[0]["unit"] == unit,
                "{q} {units}: {rows:?}"
            );
        }
    }
    let compared = selected("Weight{value>100}[1d] @ 1714564800").with("units", "metric");
    assert_eq!(compared.await.faults(), ["query.q"]);
    let position = json!({
        "uuid": id(9), "timestamp": at("10:00"), "latitude_degrees": 1.0, "longitude_degrees": 2.0,
        "speed": 3.0,
    });
    person.records("PlatformLocationUpdate", &[position]).await;
    for path in [
        "/data/v1alpha1/event/PlatformLocationUpdate".to_owned(),
        format!("/data/v0/{}/platform_location_updates", person.id),
    ] {
        let reply = person
            .get(&path)
            .with("start_time", &at("00:00"))
            .with("end_time", &at("12:00"))
            .with("output", "parquet")
            .await
            .must_be(200);
        let schema = Table::read("parquet", &reply.body).schema.unwrap();
        for (column, unit) in [
            ("speed", "m/s"),
            ("latitude_degrees", "deg"),
            ("speed_accuracy_meters", "m/s"),
        ] {
            let field = schema.field_with_name(column).unwrap();
            assert_eq!(field.metadata()["unit"], unit, "{column} of {path}");
        }
    }
}

/// A product on the way to another unit may be too large where the result is not.
#[tokio::test]
async fn no_number_is_lost_on_the_way_to_another_unit() {
    let person = person();
    let sample = json!({"uuid": id(1), "start_date": at("10:00"), "value": 4e307, "unit": "degF"});
    person.records("BodyTemperature", &[sample]).await;
    let shown = |call: Call| async move { call.with("units", "metric").await.must_be(200).rows() };
    let sample = &shown(samples(&person, "BodyTemperature")).await[0];
    assert!(
        (number(sample, "value") / (4e307 / 9.0 * 5.0) - 1.0).abs() < 1e-12,
        "{sample}"
    );
    let weight = json!({"uuid": id(2), "start_date": at("10:00"), "value": 1e304, "unit": "kg"});
    person.records("Weight", &[weight]).await;
    let weight = &shown(samples(&person, "Weight")).await[0];
    assert!((number(weight, "value") / 1e304 - 1.0).abs() < 1e-12, "{weight}");
}
