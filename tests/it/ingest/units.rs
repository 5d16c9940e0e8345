//! Rule 8.7: the catalogue's unit is what is stored; what the caller sent is kept beside it.

use serde_json::{Value, json};

use crate::harness::{at, id, number, person};

fn sample(value: f64, unit: Option<&str>) -> Value {
    let mut record =
        json!({"uuid": id(1), "start_date": at("10:00"), "end_date": at("10:00"), "value": value});
    if let Some(unit) = unit {
        record["unit"] = json!(unit);
    }
    record
}

#[tokio::test]
async fn rule_8_7_values_are_converted_exactly() {
    let person = person();
    for (metric, value, unit, expected, expected_unit) in [
        ("BloodGlucose", 5.5, "mmol/L", 99.085_734, "mg/dL"),
        ("Weight", 80.0, "kg", 176.369_809_747_902, "lb"),
        ("BodyTemperature", 37.0, "degC", 98.6, "degF"),
        ("SkinTemperatureDelta", 0.5, "degC", 0.9, "degF"),
        ("DistanceTraveledOnFoot", 5.0, "km", 3.106_855_961_186_67, "mi"),
        ("ActiveCaloriesBurned", 418.4, "kJ", 100.0, "cal"),
        ("HeartRate", 1.1, "count/s", 66.0, "bpm"),
        ("BloodOxygenSaturation", 0.97, "%", 97.0, "percent"),
    ] {
        person.records(metric, &[sample(value, Some(unit))]).await;
        let stored = &person.all_samples(metric).await[0];
        let got = number(stored, "value");
        assert!(
            (got - expected).abs() <= 1e-9 * expected.abs(),
            "{metric}: {value} {unit} became {got}, not {expected}"
        );
        assert_eq!(stored["unit"], json!(expected_unit), "{metric}");
        let original = stored["extras"].to_string();
        assert!(
            original.contains(&format!("{value}")) && original.contains(unit),
            "{metric}: the original is not kept: {stored}"
        );
    }
}

#[tokio::test]
async fn rule_8_7_without_a_unit_it_is_the_catalogues() {
    let person = person();
    person.records("Weight", &[sample(176.5, None)]).await;
    let stored = &person.all_samples("Weight").await[0];
    assert_eq!((number(stored, "value"), &stored["unit"]), (176.5, &json!("lb")));
    assert!(
        stored["extras"].is_null() || stored["extras"] == json!({}),
        "nothing was converted: {stored}"
    );
}

#[tokio::test]
async fn rule_8_7_the_catalogues_unit_is_no_conversion() {
    let person = person();
    person.records("Weight", &[sample(0.1 + 0.2, Some("lb"))]).await;
    let stored = &person.all_samples("Weight").await[0];
    assert_eq!(number(stored, "value"), 0.1 + 0.2);
    assert!(
        stored["extras"].is_null() || stored["extras"] == json!({}),
        "nothing was converted: {stored}"
    );
}

#[tokio::test]
async fn rule_8_7_the_wrong_dimension_and_unknown_units_are_422() {
    let person = person();
    for (metric, unit) in [
        ("StepCount", "kg"),
        ("Weight", "km"),
        ("HeartRate", "furlong"),
        ("BodyTemperature", "mg/dL"),
        ("Weight", ""),
    ] {
        let faults = person.record(metric, &sample(10.0, Some(unit))).await.faults();
        assert!(faults[0].ends_with("unit"), "{metric} in {unit}: {faults:?}");
        assert!(person.all_samples(metric).await.is_empty());
    }
}

#[tokio::test]
async fn rule_8_7_a_converted_record_sent_again_is_no_op() {
    let person = person();
    person.records("Weight", &[sample(80.0, Some("kg"))]).await;
    let before = (person.all_samples("Weight").await, person.updates("Weight").await);
    person.records("Weight", &[sample(80.0, Some("kg"))]).await;
    assert_eq!(
        (person.all_samples("Weight").await, person.updates("Weight").await),
        before
    );
}
