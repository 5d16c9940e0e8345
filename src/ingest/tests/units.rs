//! Values in any unit are stored in the type's own, and what was sent is kept.

use serde_json::json;

use super::*;
use crate::model::ids::PersonId;
use crate::model::registry::{Base, Definition};

fn line(value: &str, unit: &str) -> String {
    format!(r#"{{"start_date":"2024-05-01T10:00:00Z","value":{value},"unit":"{unit}"}}"#)
}

fn assert_near(value: f64, expected: f64) {
    assert!((value - expected).abs() < 1e-9, "{value} instead of {expected}");
}

/// Both ways of decoding, the second line being one that was learnt from the first.
fn converted(name: &str, value: &str, unit: &str) -> (f64, String) {
    let line = line(value, unit);
    let found = rows(name, &[&line, &line]);
    assert_eq!(table(&found)[0][1..], table(&found)[1][1..]);
    (
        cell(&found, "value", 1).parse().unwrap(),
        cell(&found, "extras", 1),
    )
}

#[test]
fn rule_8_7_values_are_stored_in_the_catalogue_unit_and_the_original_is_kept() {
    let (value, extras) = converted("Weight", "80", "kg");
    assert!((value - 176.369_81).abs() < 1e-5, "{value}");
    assert_eq!(extras, r#"{"original_value":80,"original_unit":"kg"}"#);
    let (value, extras) = converted("BloodGlucose", "5.50", "mmol/L");
    assert!((value - 99.0857).abs() < 1e-4, "{value}");
    assert_eq!(extras, r#"{"original_value":5.50,"original_unit":"mmol/L"}"#);
    assert_near(converted("BodyTemperature", "37", "degC").0, 98.6);
    assert_near(converted("SkinTemperatureDelta", "0.5", "degC").0, 0.9);
    assert_near(converted("ActiveCaloriesBurned", "418.4", "kJ").0, 100.0);
    assert_eq!(
        converted("BloodOxygenSaturation", "0.97", "%"),
        (97.0, r#"{"original_value":0.97,"original_unit":"%"}"#.to_owned())
    );
}

#[test]
fn rule_8_7_the_catalogue_unit_in_any_spelling_changes_nothing() {
    assert_eq!(converted("HeartRate", "72", "bpm"), (72.0, String::new()));
    assert_eq!(converted("HeartRate", "72", "count/min"), (72.0, String::new()));
    assert_eq!(
        stored("HeartRate", r#"{"start_date":"2024-05-01","value":72}"#, "value"),
        "72.0"
    );
    assert_eq!(
        stored(
            "HeartRate",
            r#"{"start_date":"2024-05-01","value":72,"unit":null}"#,
            "value"
        ),
        "72.0"
    );
}

#[test]
fn rule_8_7_wrong_dimension_and_unknown_units_are_refused() {
    refused("HeartRate", &line("72", "kg"), "body.7.unit", "unit");
    refused("Weight", &line("72", "blobs"), "body.7.unit", "unit");
    refused("Weight", &line("1e308", "st"), "body.7.value", "unit");
    refused(
        "Weight",
        r#"{"start_date":"2024-05-01","value":1,"unit":5}"#,
        "body.7.unit",
        "type",
    );
}

#[test]
fn rule_8_7_a_converted_value_that_does_not_fit_is_told_as_it_was_sent() {
    let spec = json!({"unit": "cup", "scale": {"min": 0, "max": 5}});
    let body = json!({"name": "Tea", "record_spec": spec});
    let definition = Definition::read(Base::Metric, &body).unwrap();
    let (owner, id) = (PersonId(Uuid::from_u128(1)), Uuid::from_u128(4));
    let own = DataType::from_definition(owner, id, &data_type("Metric"), &definition, 1).unwrap();
    let line = r#"{"start_time":"2024-05-01T10:00:00Z","value":1,"unit":"liter"}"#;
    let faults = decoder_of(&Arc::new(own)).push(7, line.as_bytes()).unwrap_err();
    let [fault] = faults.as_slice() else {
        panic!("{faults:?}");
    };
    assert_eq!(place(fault), "body.7.value");
    let told = "expected integer, found number; 1 liter is 4.22";
    assert!(
        fault.message.starts_with(told) && fault.message.ends_with(" cup"),
        "{fault:?}"
    );
    assert_eq!(serde_json::to_value(fault).unwrap()["value"], json!(1));
}

#[test]
fn rule_8_7_an_original_that_was_sent_is_not_overwritten() {
    let written_back = concat!(
        r#"{"start_date":"2024-05-01","value":176.37,"unit":"lb","extras":{"original_value":80,"#,
        r#""original_unit":"kg"}}"#,
    );
    assert_eq!(
        stored("Weight", written_back, "extras"),
        r#"{"original_value":80,"original_unit":"kg"}"#
    );
    refused(
        "Weight",
        r#"{"start_date":"2024-05-01","value":80,"unit":"kg","extras":{"original_unit":"stone"}}"#,
        "body.7.extras",
        "duplicate",
    );
}

#[test]
fn rule_8_7_a_row_read_in_another_unit_is_what_was_sent() {
    let line = |value: &str, unit: &str, rest: &str| {
        let id = "0191f000-0000-7000-8000-000000000001";
        let time = "2024-05-01T10:00:00Z";
        format!(r#"{{"id":"{id}","start_date":"{time}","value":{value},"unit":"{unit}"{rest}}}"#)
    };
    let severity = "HKCategoryValueSeverity";
    for (name, sent, unit, read, read_in) in [
        ("Weight", "80", "kg", "79.99999999999999", "kg"),
        ("Weight", "80", "kg", "80.0", "kg"),
        ("Weight", "80", "kg", "2821.9169559664326", "oz"),
        // Near zero degrees Fahrenheit, where what is left of the distance between two zeros is all there is.
        (
            "BodyTemperature",
            "-17.7777777777778",
            "degC",
            "-17.77777777777779",
            "degC",
        ),
        (
            "BodyTemperature",
            "255.3722222222222",
            "K",
            "-17.77777777777778",
            "degC",
        ),
        ("SymptomAcne", "1", severity, "1", severity),
    ] {
        let absent = if unit == severity {
            r#""not_present":true,"#
        } else {
            ""
        };
        let original = format!(r#","extras":{{{absent}"original_value":{sent},"original_unit":"{unit}"}}"#);
        let (sent, read) = (line(sent, unit, ""), line(read, read_in, &original));
        let expected = table(&rows(name, &[&sent, &sent]));
        assert_eq!(table(&rows(name, &[&read, &read])), expected, "{read}");
    }
    for (value, original) in [
        ("81", r#""original_value":80,"original_unit":"kg""#),
        ("80", r#""original_value":80,"original_unit":"st""#),
        (
            "0.000000000001",
            r#""original_value":0.000000000002,"original_unit":"kg""#,
        ),
        ("80", r#""original_value":80,"original_unit":"blobs""#),
        ("80", r#""original_value":80,"original_unit":"degC""#),
        ("80", r#""original_value":80"#),
        ("80", r#""original_value":"80","original_unit":"kg""#),
    ] {
        let original = format!(r#","extras":{{{original}}}"#);
        refused(
            "Weight",
            &line(value, "kg", &original),
            "body.7.extras",
            "duplicate",
        );
    }
}

#[test]
fn rule_8_7_bounds_hold_for_the_converted_value() {
    // The least temperature is given in the type's unit, and so is the least number of steps.
    refused("StepCount", &line("-5", "steps"), "body.7.value", "minimum");
    assert_near(converted("BodyTemperature", "-10", "degC").0, 14.0);
}

#[test]
fn a_metric_without_a_fixed_unit_keeps_the_unit_it_was_given() {
    assert_eq!(
        stored("NumericAnnotation", r#"{"value":3,"unit":"cups"}"#, "unit"),
        "cups"
    );
    assert_eq!(
        stored(
            "Metric",
            r#"{"start_time":"2024-05-01","value":3,"unit":"cups"}"#,
            "unit"
        ),
        "cups"
    );
}
