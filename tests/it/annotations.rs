//! `/user/v1alpha1/annotation`: what people decided to keep note of, its entries in the catalogue, and its
//! records.

mod catalogue;
mod definitions;
mod records;

use serde_json::{Value, json};

use crate::harness::Person;

const PATH: &str = "/user/v1alpha1/annotation";

fn moment(name: &str) -> Value {
    json!({"annotation_type": "moment", "name": name, "description": "", "tags": []})
}

fn yes_no(name: &str) -> Value {
    json!({"annotation_type": "boolean", "name": name, "description": "", "tags": [],
        "measurement_spec": {"measurement_type": "boolean", "metric_kind": "discrete", "unit": null,
            "value_type": "boolean", "boolean": {"value": null}}})
}

fn duration(name: &str) -> Value {
    json!({"annotation_type": "duration", "name": name, "description": "", "tags": [],
        "measurement_spec": {"measurement_type": "duration", "metric_kind": "cumulative", "unit": null,
            "value_type": "duration"}})
}

/// As clients send it: without what there is only one of.
fn numeric(name: &str) -> Value {
    json!({"annotation_type": "numeric", "name": name, "description": "How much?", "tags": ["drink"],
        "measurement_spec": {"measurement_type": "custom", "unit": "cups", "custom": {"value": null}},
        "spec": null})
}

fn scale(name: &str) -> Value {
    json!({"annotation_type": "scale", "name": name, "description": "", "tags": [],
        "measurement_spec": {
            "measurement_type": "scale", "metric_kind": "discrete", "unit": null, "value_type": "integer",
            "scale": {"value": 3, "min_allowed": 1, "max_allowed": 5},
        },
        "spec": {"default_note": null, "scale": {
            "label_mapping": {"mapping_type": "string", "string": {"mapping": {"1": "bad", "5": "good"}}},
            "scale_mapping": {"mapping_type": "color", "color": {"mapping": {"1": "red", "5": "#0f0"}}}}}})
}

fn people(name: &str) -> Value {
    json!({
        "annotation_type": "people", "name": name, "description": "", "tags": [], "measurement_spec": null,
    })
}

async fn create(person: &Person, body: &Value) -> Value {
    person.post(PATH, body).await.must_be(201).json()
}

/// The address of an annotation.
fn at(annotation: &Value) -> String {
    format!("{PATH}/{}", annotation["id"].as_str().unwrap())
}

/// The data type of an annotation's records.
fn type_of(annotation: &Value) -> String {
    let base = match annotation["annotation_type"].as_str().unwrap() {
        "moment" => "MomentAnnotation",
        "duration" => "DurationAnnotation",
        "boolean" => "BooleanAnnotation",
        "numeric" => "NumericAnnotation",
        "scale" => "ScaleAnnotation",
        _ => "PeopleAnnotation",
    };
    format!("{base}/{}", annotation["id"].as_str().unwrap())
}

async fn cancel_deletion(person: &Person, annotation: &Value) -> Value {
    let path = format!("{}/cancel_deletion", at(annotation));
    let reply = person.call(reqwest::Method::POST, &path).await;
    reply.must_be(200).json()
}

async fn delete(person: &Person, annotation: &Value) -> Value {
    let reply = person.call(reqwest::Method::DELETE, &at(annotation)).await;
    reply.must_be(200).json()
}
