//! What annotations may be, held against the schema that is published; and their states, held against a
//! model, on SQLite and, where `ALMANAC_TEST_POSTGRES_URL` names one, on PostgreSQL.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::{BoxFuture, FutureExt as _};
use jsonschema::Validator;
use proptest::prelude::*;
use serde_json::{Value, json};
use uuid::Uuid;

use super::measurement::{MeasurementConfiguration, QuantityMeasurement};
use super::{AnnotationRoot, AnnotationRow, Annotations, schema};
use crate::catalog::Catalog;
use crate::catalog::documents::DocumentKind;
use crate::catalog::test_databases::databases_at_hand;
use crate::model::clock::ManualClock;
use crate::model::ids::{PersonId, SystemIds};
use crate::model::registry::Registry;
use crate::model::time::Instant;
use crate::people::condition::{Condition, Look, Outdated};
use crate::people::documents::{DocumentError, Documents};

/// A body that can be had: of this type, measured so.
fn body(annotation_type: &str, measured: &Value, spec: &Value) -> Value {
    json!({"annotation_type": annotation_type, "name": "Tea", "description": "", "tags": ["drink"],
        "measurement_spec": measured, "spec": spec})
}

fn quantity(kind: &str, unit: &Value) -> Value {
    json!({"measurement_type": kind, "metric_kind": "cumulative", "unit": unit, "value_type": "real",
        (kind): {"value": 1.5}})
}

fn steps(value: &Value, least: &Value, most: &Value) -> Value {
    json!({"measurement_type": "scale", "value_type": "integer",
        "scale": {"value": value, "min_allowed": least, "max_allowed": most}})
}

fn labelled(scale_mapping: &Value) -> Value {
    json!({"default_note": "so?", "scale": {
        "label_mapping": {"mapping_type": "string", "string": {"mapping": {"1": "bad", "5": "good"}}},
        "scale_mapping": scale_mapping}})
}

fn accepted() -> Vec<Value> {
    let yes_no = json!({
        "measurement_type": "boolean", "metric_kind": "discrete", "unit": null, "value_type": "boolean",
        "boolean": {"value": null},
    });
    let span = json!({
        "measurement_type": "duration", "metric_kind": "cumulative", "unit": null, "value_type": "duration",
    });
    let nothing = Value::Null;
    let mut bodies = vec![
        body("boolean", &yes_no, &nothing),
        body(
            "boolean",
            &json!({"measurement_type": "boolean", "boolean": {"value": true}}),
            &nothing,
        ),
        body("duration", &span, &nothing),
        body(
            "duration",
            &json!({"measurement_type": "duration"}),
            &json!({"default_note": "a\nb"}),
        ),
        body("moment", &nothing, &json!({"default_note": null, "scale": null})),
        json!({"annotation_type": "moment", "name": "Ö 👍", "description": "x", "tags": []}),
        body("people", &nothing, &nothing),
        body("numeric", &nothing, &nothing),
        body(
            "numeric",
            &json!({"measurement_type": "custom", "custom": {"value": null}}),
            &nothing,
        ),
        body(
            "numeric",
            &json!({"measurement_type": "custom", "unit": "cups", "custom": {"value": 0}}),
            &nothing,
        ),
        body("scale", &nothing, &nothing),
        body("scale", &steps(&json!(3), &json!(1), &json!(5)), &nothing),
        body(
            "scale",
            &steps(&json!(3.0), &json!(-5), &json!(5.0)),
            &json!({"scale": null}),
        ),
        body(
            "scale",
            &steps(&Value::Null, &json!(1), &json!(5)),
            &labelled(&nothing),
        ),
        // What an answer shows besides, and what nobody knows, does no harm.
        json!({
            "annotation_type": "moment", "name": "x", "description": "", "tags": [], "id": "y",
            "deleted_at": null, "nosuch": 1,
        }),
    ];
    for (kind, unit) in [
        ("count", Value::Null),
        ("percent", Value::Null),
        ("custom", json!("cups")),
        ("custom", json!("")),
        ("custom", json!(" cups\n")),
        ("distance", json!("kilometer")),
        ("distance", Value::Null),
        ("mass", json!("kilogram")),
        ("period", json!("minute")),
        ("temperature", json!("celsius")),
        ("volume", json!("fluid_ounce")),
    ] {
        bodies.push(body("numeric", &quantity(kind, &unit), &nothing));
    }
    let colours = |colours: Value| json!({"mapping": colours});
    for mapping in [
        json!({
            "mapping_type": "color", "color": colours(json!({"1": "red", "2": "#0F0", "3": "rgb(1, 2, 3)"})),
        }),
        json!({"mapping_type": "emoji", "color": colours(json!({})), "string": {"mapping": {"1": "🙁"}}}),
    ] {
        bodies.push(body(
            "scale",
            &steps(&json!(1), &json!(1), &json!(5)),
            &labelled(&mapping),
        ));
    }
    bodies
}

/// Bodies that cannot be had, with the place of what is wrong.
fn refused_wholes() -> Vec<(Value, &'static str)> {
    let nothing = Value::Null;
    let plain = || body("moment", &nothing, &nothing);
    let with = |name: &str, value: Value| {
        let mut body = plain();
        body[name] = value;
        body
    };
    let without = |name: &str| {
        let mut body = plain();
        body.as_object_mut().unwrap().remove(name);
        body
    };
    vec![
        (json!([]), "body"),
        (json!("moment"), "body"),
        (without("annotation_type"), "body.annotation_type"),
        (with("annotation_type", json!("nosuch")), "body.annotation_type"),
        (with("annotation_type", json!(5)), "body.annotation_type"),
        (without("name"), "body.name"),
        (without("description"), "body.description"),
        (without("tags"), "body.tags"),
        (with("name", json!("")), "body.name"),
        (with("name", json!(" x")), "body.name"),
        (with("name", json!("a\nb")), "body.name"),
        (with("name", json!("a\u{0}b")), "body.name"),
        (with("name", json!("x".repeat(257))), "body.name"),
        (with("name", Value::Null), "body.name"),
        (with("description", json!("a\u{0}b")), "body.description"),
        (with("description", json!("x".repeat(10_001))), "body.description"),
        (with("tags", json!("x")), "body.tags"),
        (with("tags", json!([1])), "body.tags.0"),
        (with("tags", json!(["a", "b\u{0}"])), "body.tags.1"),
        (with("tags", json!(vec!["x"; 101])), "body.tags"),
        (with("spec", json!([])), "body.spec"),
        (with("spec", json!({"default_note": 5})), "body.spec.default_note"),
        (with("spec", labelled(&nothing)), "body.spec.scale"),
        (
            with("measurement_spec", quantity("count", &nothing)),
            "body.measurement_spec",
        ),
        (body("boolean", &nothing, &nothing), "body.measurement_spec"),
        (body("duration", &nothing, &nothing), "body.measurement_spec"),
        (
            body("boolean", &quantity("count", &nothing), &nothing),
            "body.measurement_spec.measurement_type",
        ),
        (
            body("boolean", &json!({"measurement_type": "boolean"}), &nothing),
            "body.measurement_spec.boolean",
        ),
        (
            body(
                "boolean",
                &json!({"measurement_type": "boolean", "boolean": {"value": 1}}),
                &nothing,
            ),
            "body.measurement_spec.boolean.value",
        ),
        (
            body(
                "boolean",
                &json!({"measurement_type": "boolean", "boolean": [true]}),
                &nothing,
            ),
            "body.measurement_spec.boolean",
        ),
    ]
}

/// Annotations that are refused, with where: of quantities, scales and how they are shown.
fn refused_variants() -> Vec<(Value, &'static str)> {
    let nothing = Value::Null;
    let numeric = |measured: Value| body("numeric", &measured, &nothing);
    let mapped = |mapping: Value| body("scale", &nothing, &json!({"scale": {"scale_mapping": mapping}}));
    vec![
        (numeric(json!({})), "body.measurement_spec.measurement_type"),
        (numeric(json!("count")), "body.measurement_spec"),
        (
            numeric(json!({"measurement_type": "custom"})),
            "body.measurement_spec.custom",
        ),
        (
            numeric(json!({"measurement_type": "length", "length": {}})),
            "body.measurement_spec.measurement_type",
        ),
        (
            numeric(quantity("count", &json!("cups"))),
            "body.measurement_spec.unit",
        ),
        (
            numeric(quantity("distance", &json!("parsec"))),
            "body.measurement_spec.unit",
        ),
        (
            numeric(quantity("mass", &json!("kg"))),
            "body.measurement_spec.unit",
        ),
        (
            numeric(json!({"measurement_type": "count", "metric_kind": "sum", "count": {}})),
            "body.measurement_spec.metric_kind",
        ),
        (
            numeric(json!({"measurement_type": "count", "value_type": "integer", "count": {}})),
            "body.measurement_spec.value_type",
        ),
        (
            numeric(json!({"measurement_type": "count", "count": {"value": "1"}})),
            "body.measurement_spec.count.value",
        ),
        (
            body("scale", &steps(&nothing, &json!(1.5), &json!(5)), &nothing),
            "body.measurement_spec.scale.min_allowed",
        ),
        (
            body("scale", &steps(&nothing, &json!(1), &nothing), &nothing),
            "body.measurement_spec.scale.max_allowed",
        ),
        (
            body("scale", &steps(&nothing, &json!(0), &json!(1e300)), &nothing),
            "body.measurement_spec.scale.max_allowed",
        ),
        (mapped(json!({})), "body.spec.scale.scale_mapping.mapping_type"),
        (
            mapped(json!({"mapping_type": "color"})),
            "body.spec.scale.scale_mapping.color",
        ),
        (
            mapped(json!({"mapping_type": "emoji", "color": {"mapping": {}}})),
            "body.spec.scale.scale_mapping.string",
        ),
        (
            mapped(json!({"mapping_type": "color", "color": {"mapping": {"1": "rebeccapurple"}}})),
            "body.spec.scale.scale_mapping.color.mapping.1",
        ),
        (
            body(
                "scale",
                &nothing,
                &json!({"scale": {"label_mapping": {"mapping_type": "number", "string": {"mapping": {}}}}}),
            ),
            "body.spec.scale.label_mapping.mapping_type",
        ),
    ]
}

fn refused() -> impl Iterator<Item = (Value, &'static str)> {
    refused_wholes().into_iter().chain(refused_variants())
}

fn validator(schema: &Value) -> Validator {
    jsonschema::draft202012::meta::validate(schema).unwrap();
    jsonschema::draft202012::new(schema).unwrap()
}

fn place(body: &Value) -> String {
    let faults = AnnotationRoot::read(body).expect_err(&body.to_string());
    let parts = faults[0]
        .loc
        .iter()
        .map(|part| serde_json::to_value(part).unwrap());
    parts
        .map(|part| part.as_str().unwrap().to_owned())
        .collect::<Vec<_>>()
        .join(".")
}

#[test]
fn what_is_accepted_fits_the_published_schema_and_is_shown_by_it_too() {
    let validator = validator(&schema::of::<AnnotationRoot>().unwrap());
    for body in accepted() {
        let read = AnnotationRoot::read(&body).unwrap_or_else(|faults| panic!("{body}: {faults:?}"));
        assert!(
            validator.is_valid(&body),
            "{body}: {:?}",
            validator.validate(&body)
        );
        let shown = serde_json::to_value(&read).unwrap();
        assert!(validator.is_valid(&shown), "{shown}");
        assert_eq!(
            AnnotationRoot::read(&shown).unwrap(),
            read,
            "what is shown can be sent"
        );
    }
}

#[test]
fn what_is_refused_does_not_fit_the_published_schema_and_its_place_is_named() {
    let validator = validator(&schema::of::<AnnotationRoot>().unwrap());
    for (body, expected) in refused() {
        assert_eq!(place(&body), expected, "{body}");
        assert!(!validator.is_valid(&body), "{body}");
    }
}

#[test]
fn what_is_measured_tells_the_type_where_it_is_not_named() {
    for body in accepted() {
        let mut unnamed = body.clone();
        unnamed.as_object_mut().unwrap().shift_remove("annotation_type");
        if body["measurement_spec"].is_null() {
            assert_eq!(place(&unnamed), "body.annotation_type", "{body}");
        } else {
            assert_eq!(
                AnnotationRoot::read(&unnamed),
                AnnotationRoot::read(&body),
                "{body}"
            );
        }
    }
    let unheard_of = json!({"name": "x", "description": "", "tags": [],
        "measurement_spec": {"measurement_type": "length", "length": {}}});
    assert_eq!(place(&unheard_of), "body.annotation_type");
}

#[test]
fn a_measurement_that_is_null_is_as_required_as_one_that_is_left_out() {
    for kind in ["boolean", "duration"] {
        let null = body(kind, &Value::Null, &Value::Null);
        let mut without = null.clone();
        without.as_object_mut().unwrap().shift_remove("measurement_spec");
        for body in [null, without] {
            let faults = AnnotationRoot::read(&body).unwrap_err();
            let told = (place(&body), faults[0].kind, faults[0].message.as_str());
            let expected = (
                "body.measurement_spec".to_owned(),
                "missing",
                "this member is required",
            );
            assert_eq!(told, expected, "{body}");
        }
    }
}

#[test]
fn what_no_schema_can_say_is_refused_too() {
    let outside = |value: i64, least: i64, most: i64| {
        body(
            "scale",
            &steps(&json!(value), &json!(least), &json!(most)),
            &Value::Null,
        )
    };
    assert_eq!(
        place(&outside(1, 5, 1)),
        "body.measurement_spec.scale.max_allowed"
    );
    assert_eq!(
        place(&outside(1, 1, 1)),
        "body.measurement_spec.scale.max_allowed"
    );
    assert_eq!(place(&outside(6, 1, 5)), "body.measurement_spec.scale.value");
    let labels: serde_json::Map<String, Value> = (0..200)
        .map(|step| (step.to_string(), json!("x".repeat(200))))
        .collect();
    let long = json!({"scale": {"label_mapping": {"string": {"mapping": labels}}}});
    assert_eq!(place(&body("scale", &Value::Null, &long)), "body");
}

#[test]
fn measurements_fit_the_schema_of_measurements() {
    let validator = validator(&schema::of::<MeasurementConfiguration>().unwrap());
    for body in accepted() {
        let measured = &body["measurement_spec"];
        assert!(measured.is_null() || validator.is_valid(measured), "{measured}");
    }
    for (body, expected) in refused() {
        let measured = &body["measurement_spec"];
        let is_its_fault =
            expected.starts_with("body.measurement_spec.") && body["annotation_type"] != "boolean";
        assert!(!is_its_fault || !validator.is_valid(measured), "{measured}");
    }
}

#[test]
fn a_unit_of_ones_own_is_any_text_and_stays_as_it_was_sent() {
    let longest = "x".repeat(256);
    for (sent, unit) in [
        ("cups", Some("cups")),
        ("", None),
        ("  ", None),
        (" cups ", Some("cups")),
        ("Cafe\u{301}", Some("Cafe\u{301}")),
        (longest.as_str(), Some(longest.as_str())),
    ] {
        let measured = quantity("custom", &json!(sent));
        let read = AnnotationRoot::read(&body("numeric", &measured, &Value::Null)).unwrap();
        assert_eq!(
            serde_json::to_value(&read).unwrap()["measurement_spec"]["unit"],
            sent
        );
        let read: QuantityMeasurement = serde_json::from_value(measured).unwrap();
        assert_eq!(read.unit().as_deref(), unit, "{sent:?}");
    }
    for refused in [longest + "x", "\u{0}".to_owned()] {
        let measured = quantity("custom", &json!(refused));
        let place = place(&body("numeric", &measured, &Value::Null));
        assert_eq!(place, "body.measurement_spec.unit");
    }
}

#[test]
fn what_is_left_out_is_filled_in_and_colours_become_hexadecimal() {
    let custom = json!({"measurement_type": "custom", "unit": "cups", "custom": {"value": null}});
    let read = AnnotationRoot::read(&body("numeric", &custom, &Value::Null)).unwrap();
    let shown = serde_json::to_value(read).unwrap();
    assert_eq!(
        shown["measurement_spec"],
        json!({"measurement_type": "custom", "metric_kind": "discrete", "unit": "cups", "value_type": "real",
            "custom": {"value": null}})
    );
    let mapping =
        json!({"mapping_type": "color", "color": {"mapping": {"1": "RED", "2": "#0f0", "3": "rgb(1 2 3)"}}});
    let read = AnnotationRoot::read(&body("scale", &Value::Null, &labelled(&mapping))).unwrap();
    let shown = serde_json::to_value(read).unwrap();
    assert_eq!(
        shown["spec"]["scale"]["scale_mapping"]["color"]["mapping"],
        json!({"1": "#ff0000", "2": "#00ff00", "3": "#010203"})
    );
    let decomposed =
        json!({"annotation_type": "moment", "name": "Cafe\u{301}", "description": "", "tags": []});
    assert_eq!(AnnotationRoot::read(&decomposed).unwrap().name(), "Caf\u{e9}");
}

/// What can be done to one of a few annotations.
#[derive(Clone, Debug)]
enum Step {
    Create(u8),
    Replace(usize, u8),
    Delete(usize),
    CancelDeletion(usize),
    /// Somebody else tries.
    Meddle(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..4_u8).prop_map(Step::Create),
        (0..5_usize, 0..4_u8).prop_map(|(which, name)| Step::Replace(which, name)),
        (0..5_usize).prop_map(Step::Delete),
        (0..5_usize).prop_map(Step::CancelDeletion),
        (0..5_usize).prop_map(Step::Meddle),
    ]
}

/// Limits are reached soon, so that they are met.
const LIMIT: u64 = 4;

/// An annotation as it must be.
#[derive(Clone, Debug, PartialEq)]
struct Expected {
    id: Uuid,
    root: AnnotationRoot,
    created_at: Instant,
    updated_at: Instant,
    deleted_at: Option<Instant>,
}

impl Expected {
    fn of(row: &AnnotationRow) -> Self {
        Self {
            id: row.id,
            root: row.root.clone(),
            created_at: row.created_at,
            updated_at: row.updated_at,
            deleted_at: row.deleted_at,
        }
    }
}

struct Bench {
    annotations: Annotations,
    /// The same on another node, which keeps in memory what it read.
    elsewhere: Annotations,
    clock: Arc<ManualClock>,
    _directory: tempfile::TempDir,
}

impl Bench {
    async fn all() -> Vec<Self> {
        let mut benches = Vec::new();
        for (directory, address) in databases_at_hand() {
            benches.push(Self::open(directory, &address).await);
        }
        benches
    }

    async fn open(directory: tempfile::TempDir, address: &str) -> Self {
        let clock = Arc::new(ManualClock::at(Instant::from_micros(0)));
        let node = || async {
            let catalog = Catalog::open(address, clock.clone()).await.unwrap();
            let documents = Documents::new(catalog, clock.clone(), Arc::new(SystemIds::default()));
            Annotations::new(documents, LIMIT, "com.almanac".into(), 1 << 20)
        };
        Self {
            annotations: node().await,
            elsewhere: node().await,
            clock,
            _directory: directory,
        }
    }

    /// Does `steps` one after the other, each at a moment of its own, and compares with the model after each.
    async fn follow(&self, steps: &[Step]) {
        let (owner, stranger) = (PersonId(Uuid::now_v7()), PersonId(Uuid::now_v7()));
        let mut model: Vec<Expected> = Vec::new();
        for (moment, step) in (1..).zip(steps) {
            let now = Instant::from_micros(moment);
            self.clock.set(now);
            self.take(step, now, owner, stranger, &mut model).await;
            for node in [&self.annotations, &self.elsewhere] {
                let kept = node.all(owner).await.unwrap();
                let kept: Vec<_> = kept.iter().map(Expected::of).collect();
                assert_eq!(kept, model, "after {step:?}");
            }
            assert!(self.annotations.all(stranger).await.unwrap().is_empty());
        }
    }

    async fn take(
        &self,
        step: &Step,
        now: Instant,
        owner: PersonId,
        stranger: PersonId,
        model: &mut Vec<Expected>,
    ) {
        let named = |name: &u8| {
            json!({
                "annotation_type": "moment", "name": name.to_string(), "description": "", "tags": [],
            })
        };
        let annotations = &self.annotations;
        match step {
            Step::Create(name) => match annotations.create(owner, &named(name)).await {
                Ok(row) => {
                    assert!((model.len() as u64) < LIMIT);
                    assert_eq!((row.created_at, row.updated_at, row.deleted_at), (now, now, None));
                    model.push(Expected::of(&row));
                }
                Err(DocumentError::LimitReached(_)) => assert_eq!(model.len() as u64, LIMIT),
                Err(error) => panic!("{error}"),
            },
            Step::Replace(which, name) => {
                let Some(kept) = model.get_mut(*which) else { return };
                let root = AnnotationRoot::read(&named(name)).unwrap();
                if kept.root != root {
                    (kept.root, kept.updated_at) = (root, now);
                }
                let row = annotations
                    .replace(owner, kept.id, &named(name), &Condition::NONE)
                    .await
                    .unwrap();
                assert_eq!(Expected::of(&row), *kept);
            }
            Step::Delete(which) => {
                let Some(kept) = model.get_mut(*which) else { return };
                if kept.deleted_at.is_none() {
                    (kept.deleted_at, kept.updated_at) = (Some(now), now);
                }
                let row = annotations
                    .delete(owner, kept.id, &Condition::NONE)
                    .await
                    .unwrap();
                assert_eq!(Expected::of(&row), *kept);
            }
            Step::CancelDeletion(which) => {
                let Some(kept) = model.get_mut(*which) else { return };
                if kept.deleted_at.take().is_some() {
                    kept.updated_at = now;
                }
                let row = annotations.cancel_deletion(owner, kept.id).await.unwrap();
                assert_eq!(Expected::of(&row), *kept);
            }
            Step::Meddle(which) => {
                let Some(kept) = model.get(*which) else { return };
                let outcomes = [
                    annotations.one(stranger, kept.id).await,
                    annotations
                        .replace(stranger, kept.id, &named(&9), &Condition::NONE)
                        .await,
                    annotations.delete(stranger, kept.id, &Condition::NONE).await,
                    annotations.cancel_deletion(stranger, kept.id).await,
                ];
                assert!(
                    outcomes
                        .iter()
                        .all(|outcome| matches!(outcome, Err(DocumentError::Unknown(_))))
                );
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Annotations are what a list of (definition, deleted or not) is, after any steps.
    #[test]
    fn annotations_follow_their_states(steps in prop::collection::vec(step(), 1..24)) {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            for bench in Bench::all().await {
                bench.follow(&steps).await;
            }
        });
    }
}

#[test]
fn the_plain_list_says_of_an_annotation_what_its_type_says() {
    let registry = Registry::builtin().unwrap();
    for body in accepted() {
        let row = AnnotationRow {
            id: Uuid::from_u128(1),
            svc_userid: PersonId(Uuid::from_u128(2)),
            svc_source_id: "com.almanac.annotation".to_owned(),
            root: AnnotationRoot::read(&body).unwrap(),
            created_at: Instant::from_micros(0),
            updated_at: Instant::from_micros(0),
            deleted_at: None,
        };
        let made = row.data_type(&registry).unwrap();
        assert_eq!(row.list_entry(&registry), Some(made.list_entry()), "{body}");
    }
}

#[tokio::test]
async fn what_is_kept_is_used_until_annotations_change() {
    for bench in Bench::all().await {
        let (annotations, owner) = (&bench.annotations, PersonId(Uuid::now_v7()));
        let body = json!({"annotation_type": "moment", "name": "a", "description": "", "tags": []});
        let made = annotations.create(owner, &body).await.unwrap();
        let first = annotations.all(owner).await.unwrap();
        // Something else of theirs.
        let other = annotations
            .documents
            .create(DocumentKind::Tag, owner, None, "{}".to_owned(), LIMIT);
        other.await.unwrap();
        assert!(Arc::ptr_eq(&first, &annotations.all(owner).await.unwrap()));
        let renamed = json!({"name": "b", "description": "", "tags": []});
        let elsewhere = &bench.elsewhere;
        elsewhere
            .replace(owner, made.id, &renamed, &Condition::NONE)
            .await
            .unwrap();
        let last = annotations.all(owner).await.unwrap();
        assert_eq!((first[0].root.name(), last[0].root.name()), ("a", "b"));
        annotations.forget_all();
        assert!(!Arc::ptr_eq(&last, &annotations.all(owner).await.unwrap()));
    }
}

/// Sees what it is to see once; then somebody else changes it.
struct OvertakenLook {
    annotations: Annotations,
    owner: PersonId,
    id: Uuid,
    looks: AtomicUsize,
}

impl Look for OvertakenLook {
    fn look(&self) -> BoxFuture<'_, Result<(), Outdated>> {
        let look = async {
            let is_first = self.looks.fetch_add(1, Ordering::Relaxed) == 0;
            if is_first {
                let body = json!({"name": "theirs", "description": "", "tags": []});
                let changed = self
                    .annotations
                    .replace(self.owner, self.id, &body, &Condition::NONE);
                changed.await.unwrap();
            }
            if is_first { Ok(()) } else { Err(Outdated::Changed) }
        };
        look.boxed()
    }
}

#[tokio::test]
async fn what_changes_after_the_look_is_not_overwritten() {
    for bench in Bench::all().await {
        let owner = PersonId(Uuid::now_v7());
        let body = json!({"annotation_type": "moment", "name": "a", "description": "", "tags": []});
        let made = bench.annotations.create(owner, &body).await.unwrap();
        let look = Arc::new(OvertakenLook {
            annotations: bench.elsewhere.clone(),
            owner,
            id: made.id,
            looks: AtomicUsize::new(0),
        });
        let mine = json!({"name": "mine", "description": "", "tags": []});
        let condition = Condition::of(look.clone());
        let changed = bench.annotations.replace(owner, made.id, &mine, &condition);
        assert!(matches!(
            changed.await,
            Err(DocumentError::Outdated(Outdated::Changed))
        ));
        assert_eq!(look.looks.load(Ordering::Relaxed), 2);
        let kept = bench.annotations.one(owner, made.id).await.unwrap();
        assert_eq!(kept.root.name(), "theirs");
    }
}
