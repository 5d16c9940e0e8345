//! Records of annotations: where they are recorded and read, and what they show of their definition.

use serde_json::{Value, json};

use super::{PATH, at, create, delete, duration, moment, numeric, people, scale, type_of, yes_no};
use crate::harness::{Backends, Person, Setup, Table, id, person};

const AT_TEN: &str = "2024-05-01T10:00:00Z";

fn names(rows: &[Value]) -> Vec<&Value> {
    rows.iter().map(|row| &row["source_name"]).collect()
}

/// Rows read at an address, and what else the question says.
async fn filtered(person: &Person, data_type: &str, filter: &str) -> Vec<Value> {
    person
        .read("event", data_type)
        .with("filter", filter)
        .await
        .must_be(200)
        .rows()
}

#[tokio::test]
async fn rule_5_8_records_show_their_definition_wherever_they_are_read() {
    for backends in Backends::available() {
        let server = Setup::default().on(backends).start();
        let person = server.person();
        let (tea, walk) = (
            create(&person, &moment("Tea")).await,
            create(&person, &moment("Walk")).await,
        );
        let record = |number: u32, annotation: &Value| {
            json!({
                "id": id(number), "recorded_at": AT_TEN, "note": "so",
                "sources": [annotation["svc_source_id"]],
            })
        };
        person
            .records("MomentAnnotation", &[record(1, &tea), record(2, &walk)])
            .await;
        let rows = person.rows("event", "MomentAnnotation").await;
        assert_eq!(names(&rows), [&json!("Tea"), &json!("Walk")]);
        assert_eq!((&rows[0]["metadata"], &rows[1]["metadata"]), (&tea, &walk));
        assert_eq!(rows[0]["source_id"], tea["svc_source_id"]);
        let source = tea["svc_source_id"].as_str().unwrap();
        for found in [
            person.rows("event", &type_of(&tea)).await,
            person.rows("event", &type_of(&tea).replace('/', "%2F")).await,
            filtered(&person, "MomentAnnotation", &format!("source_id:{source}")).await,
            filtered(&person, "MomentAnnotation", "source_name:Tea").await,
            filtered(&person, "MomentAnnotation", "metadata~\"tea\"").await,
        ] {
            assert_eq!(found, [rows[0].clone()]);
        }
        server.restart();
        assert_eq!(person.rows("event", "MomentAnnotation").await, rows);
    }
}

#[tokio::test]
async fn records_show_the_definition_as_it_is_now_and_their_tag_changes_with_it() {
    let person = person();
    let tea = create(&person, &moment("Tea")).await;
    let data_type = type_of(&tea);
    person
        .record(&data_type, &json!({"id": id(1), "recorded_at": AT_TEN}))
        .await
        .upload();
    let asked = || person.read("event", "MomentAnnotation");
    let first = asked().await.must_be(200);
    let tag = first.header("etag").unwrap().to_owned();
    asked().header("if-none-match", &tag).await.must_be(304);
    let mut renamed = tea.clone();
    renamed["name"] = json!("Coffee");
    let renamed = person.put(&at(&tea), &renamed).await.must_be(200).json();
    let second = asked().header("if-none-match", &tag).await.must_be(200);
    assert_eq!(names(&second.rows()), [&json!("Coffee")]);
    assert_eq!(second.rows()[0]["metadata"], renamed);
    let deleted = delete(&person, &tea).await;
    let row = person.rows("event", &data_type).await.remove(0);
    assert_eq!(
        row["metadata"], deleted,
        "records outlive their definition's deletion"
    );
}

#[tokio::test]
async fn a_record_that_names_a_definition_nobody_has_is_kept_and_says_so() {
    let (owner, stranger) = (person(), person());
    let tea = create(&stranger, &moment("Tea")).await;
    let unknown = format!("com.almanac.annotation.{}", id(7));
    let records = [
        json!({"id": id(1), "recorded_at": AT_TEN, "sources": [unknown]}),
        json!({"id": id(2), "recorded_at": AT_TEN, "sources": [tea["svc_source_id"]]}),
        json!({"id": id(3), "recorded_at": AT_TEN, "sources": ["com.example.app"], "metadata": {"own": 1},
            "source_name": "App"}),
        json!({"id": id(4), "recorded_at": AT_TEN}),
    ];
    owner.records("MomentAnnotation", &records).await;
    let rows = owner.rows("event", "MomentAnnotation").await;
    let metadata: Vec<&Value> = rows.iter().map(|row| &row["metadata"]).collect();
    let of_unknown = |id: &Value| json!({"id": id, "unknown": true});
    assert_eq!(
        metadata,
        [
            &of_unknown(&json!(id(7))),
            &of_unknown(&tea["id"]),
            &json!({"own": 1}),
            &Value::Null
        ]
    );
    assert_eq!(
        names(&rows),
        [&Value::Null, &Value::Null, &json!("App"), &Value::Null]
    );
    assert_eq!(
        owner.rows("event", &format!("MomentAnnotation/{}", id(7))).await,
        rows[..1]
    );
}

#[tokio::test]
async fn records_are_sent_to_the_address_of_their_definition() {
    let person = person();
    for (body, class, record) in [
        (moment("a"), "event", json!({"recorded_at": AT_TEN, "note": "x"})),
        (
            duration("b"),
            "event",
            json!({"recorded_at": {"start_time": AT_TEN, "end_time": "2024-05-01T11:00:00Z"}}),
        ),
        (
            people("c"),
            "event",
            json!({"recorded_at": AT_TEN, "people": [{"name": "Ada"}]}),
        ),
        (
            yes_no("d"),
            "metric",
            json!({"recorded_at": AT_TEN, "value": true}),
        ),
        (
            numeric("e"),
            "metric",
            json!({"recorded_at": AT_TEN, "value": 2.5, "unit": "cups", "sources": ["app"]}),
        ),
        (scale("f"), "metric", json!({"recorded_at": AT_TEN, "value": 4})),
    ] {
        let annotation = create(&person, &body).await;
        let data_type = type_of(&annotation);
        person.record(&data_type, &record).await.upload();
        person
            .records(&data_type.replace('/', "%2F"), std::slice::from_ref(&record))
            .await;
        let rows = person.rows(class, &data_type).await;
        assert_eq!(rows.len(), 2, "{data_type}");
        for row in &rows {
            assert_eq!(row["source_id"], annotation["svc_source_id"]);
            assert_eq!(
                (&row["metadata"], &row["source_name"]),
                (&annotation, &annotation["name"])
            );
            assert_eq!(row["sources"][0], annotation["svc_source_id"]);
            assert_eq!(row["value"], record["value"]);
        }
        let counted = person.all_updates().await;
        person.records(data_type.split('/').next().unwrap(), &rows).await;
        person.records(&data_type, &rows).await;
        assert_eq!(
            person.rows(class, &data_type).await,
            rows,
            "what is read is written back"
        );
        assert_eq!(person.all_updates().await, counted, "and is no change");
    }
    let wrapped = json!({"specversion": 1, "data": "{\"note\": \"old\"}",
        "metadata": {"data_type": type_of(&create(&person, &moment("old")).await), "recorded_at": AT_TEN,
            "source": [], "tags": []}});
    person.post("/ingest/v1/record", &wrapped).await.upload();
    assert_eq!(
        filtered(&person, "MomentAnnotation", "source_name:old").await[0]["note"],
        json!("old")
    );
}

/// What is sent to the address of one definition, and how it names another.
fn naming_another(own: &Value, other: &Value) -> [Value; 6] {
    let [own, other] = [own, other].map(|annotation| annotation["svc_source_id"].clone());
    [
        json!({"sources": [other, own]}),
        json!({"sources": [other]}),
        json!({"source_id": other}),
        json!({"source_id": other, "sources": [own]}),
        json!({
            "source_id": other, "sources": [other], "source_name": "other", "metadata": {"name": "other"},
        }),
        json!({"source_id": "com.example.app", "sources": ["com.example.app"]}),
    ]
}

#[tokio::test]
async fn a_record_belongs_to_the_definition_to_whose_address_it_is_sent() {
    let person = person();
    let mut far = scale("Far");
    far["measurement_spec"]["scale"] = json!({"value": null, "min_allowed": 10, "max_allowed": 20});
    far["spec"] = Value::Null;
    for (own, other, class, value, wrong) in [
        (moment("own"), moment("other"), "event", Value::Null, None),
        (numeric("own"), numeric("other"), "metric", json!(7.5), None),
        (scale("Near"), far, "metric", json!(3), Some(json!(15))),
    ] {
        for is_deleted in [false, true] {
            let (own, other) = (create(&person, &own).await, create(&person, &other).await);
            if is_deleted {
                delete(&person, &other).await;
            }
            let data_type = type_of(&own);
            let all = naming_another(&own, &other);
            for record in &all {
                let mut record = record.clone();
                record["recorded_at"] = json!(AT_TEN);
                if let Some(wrong) = &wrong {
                    record["value"] = wrong.clone();
                    assert_eq!(person.record(&data_type, &record).await.faults(), ["body.value"]);
                }
                record["value"] = value.clone();
                person.record(&data_type, &record).await.upload();
            }
            let wrapped = json!({"data": json!({"value": value}).to_string(), "metadata": {
                "data_type": data_type, "recorded_at": AT_TEN,
                "source": [other["svc_source_id"], own["svc_source_id"]]}});
            person.post("/ingest/v1/record", &wrapped).await.upload();
            let rows = person.rows(class, &data_type).await;
            assert_eq!(rows.len(), all.len() + 1, "{data_type}");
            for row in &rows {
                assert_eq!(row["sources"][0], own["svc_source_id"], "{row}");
                assert_eq!(row["source_id"], own["svc_source_id"], "{row}");
                assert_eq!((&row["source_name"], &row["metadata"]), (&own["name"], &own));
                let named = row["sources"].as_array().unwrap();
                assert_eq!(named.len(), 2, "the other is kept: {row}");
            }
            assert!(person.rows(class, &type_of(&other)).await.is_empty());
            let again = person.lines(&data_type, &rows).await.json();
            assert_eq!(again["unchanged"], json!(rows.len()), "{again}");
        }
    }
}

#[tokio::test]
async fn a_source_that_is_refused_has_the_place_where_it_was_sent() {
    let person = person();
    let tea = create(&person, &moment("Tea")).await;
    for wrong in ["x".repeat(2049), "a\0".to_owned()] {
        for (record, place) in [
            (json!({"sources": [wrong]}), "body.sources.0"),
            (
                json!({"source_id": "other", "sources": ["app", wrong]}),
                "body.sources.1",
            ),
            (json!({"source_id": wrong, "sources": ["app"]}), "body.source_id"),
        ] {
            for data_type in [type_of(&tea).as_str(), "MomentAnnotation"] {
                let faults = person.record(data_type, &record).await.faults();
                assert_eq!(faults, [place], "{data_type}");
            }
        }
    }
    assert!(person.rows("event", "MomentAnnotation").await.is_empty());
}

#[tokio::test]
async fn a_row_of_one_definition_can_be_copied_to_another() {
    let person = person();
    let tea = create(&person, &moment("Tea")).await;
    let walk = create(&person, &moment("Walk")).await;
    person
        .record(&type_of(&tea), &json!({"recorded_at": AT_TEN, "note": "x"}))
        .await
        .upload();
    let mut row = person.rows("event", &type_of(&tea)).await.remove(0);
    row["id"] = json!(id(1));
    person.record(&type_of(&walk), &row).await.upload();
    let copied = person.rows("event", &type_of(&walk)).await;
    assert_eq!(names(&copied), [&json!("Walk")]);
    assert_eq!((&copied[0]["note"], &copied[0]["metadata"]), (&json!("x"), &walk));
    assert_eq!(person.rows("event", &type_of(&tea)).await.len(), 1);
}

#[tokio::test]
async fn rule_8_3_a_tombstone_for_an_annotation_deletes_its_own_records_only() {
    let almanac = Setup::default().busy_upkeep().start();
    let person = almanac.person();
    let (tea, walk) = (
        create(&person, &moment("Tea")).await,
        create(&person, &moment("Walk")).await,
    );
    let (tea, walk) = (type_of(&tea), type_of(&walk));
    let moments = |ids: std::ops::Range<u32>| -> Vec<Value> {
        ids.map(|number| json!({"id": id(number), "recorded_at": AT_TEN}))
            .collect()
    };
    person.records(&tea, &moments(0..10)).await;
    person.records(&walk, &moments(10..20)).await;
    person.records("MomentAnnotation", &moments(20..30)).await;
    let tombstone = |number: u32, of: &str| json!({"deleted_id": id(number), "deleted_type": of});
    let deleted = async |tombstones: &[Value]| {
        let [stored, replaced, unchanged, deleted] = person.lines("DeletedRecord", tombstones).await.counts();
        assert_eq!([stored, replaced, unchanged], [0; 3]);
        deleted
    };
    // First from the tail, then from objects.
    for (first, is_in_objects) in [(0, false), (5, true)] {
        if is_in_objects {
            almanac.until_objects(1).await;
            almanac.restart();
        }
        let before = person.rows("event", "MomentAnnotation").await.len();
        let counted = person.updates("MomentAnnotation").await;
        let (of_tea, of_walk, of_none) = (first, 10 + first, 20 + first);
        let by_tea = [of_walk, of_none, 99].map(|number| tombstone(number, &tea));
        assert_eq!(deleted(&by_tea).await, 0, "none of them belongs to it");
        assert_eq!(person.updates("MomentAnnotation").await, counted);
        let mixed = [
            tombstone(of_tea, &tea),
            tombstone(of_walk + 1, &tea),
            tombstone(of_walk, &walk),
            tombstone(of_tea + 1, &walk),
            tombstone(of_none, "MomentAnnotation"),
            tombstone(of_tea, "MomentAnnotation"),
        ];
        assert_eq!(deleted(&mixed).await, 3);
        assert_eq!(person.updates("MomentAnnotation").await, counted + 3);
        let by_base = [of_tea + 1, of_walk + 1, of_none + 1, 99];
        let by_base = by_base.map(|number| tombstone(number, "MomentAnnotation"));
        assert_eq!(deleted(&by_base).await, 3, "the base names all of them");
        assert_eq!(person.rows("event", "MomentAnnotation").await.len(), before - 6);
    }
    for data_type in [&tea, &walk] {
        assert_eq!(person.rows("event", data_type).await.len(), 6, "{data_type}");
    }
}

#[tokio::test]
async fn a_record_belongs_to_its_definition_however_it_spells_it() {
    let person = person();
    let tea = create(&person, &moment("Tea")).await;
    let data_type = type_of(&tea);
    let prefix = "com.almanac.annotation.";
    let definition = tea["id"].as_str().unwrap();
    let spelt = [definition.to_uppercase(), definition.replace('-', "")];
    for (number, spelt) in (1..).zip(spelt) {
        let source = format!("{prefix}{spelt}");
        for mut record in [
            json!({"source_id": source}),
            json!({"sources": ["com.example.app"], "source_id": source}),
            json!({"sources": [source]}),
        ] {
            record["id"] = json!(id(number));
            record["recorded_at"] = json!(AT_TEN);
            let send = async || person.record("MomentAnnotation", &record).await.counts();
            assert_eq!(send().await, [1, 0, 0, 0], "{record}");
            assert_eq!(send().await, [0, 0, 1, 0], "{record}");
            let rows = person.rows("event", &data_type).await;
            assert_eq!(rows, person.rows("event", "MomentAnnotation").await);
            assert_eq!(
                (names(&rows), &rows[0]["source_id"]),
                (vec![&json!("Tea")], &tea["svc_source_id"])
            );
            person.delete(&data_type, id(number)).await;
            assert!(
                person.rows("event", "MomentAnnotation").await.is_empty(),
                "{record}"
            );
        }
    }
}

#[tokio::test]
async fn rule_8_3_a_wrapped_tombstone_for_an_annotation_deletes_its_own_records_only() {
    let person = person();
    let (tea, walk) = (
        create(&person, &moment("Tea")).await,
        create(&person, &moment("Walk")).await,
    );
    let (tea, walk) = (type_of(&tea), type_of(&walk));
    let wrapped = |data_type: &str, data: &Value| {
        json!({"specversion": 1, "data": data.to_string(),
            "metadata": {"data_type": data_type, "recorded_at": null, "source": [], "tags": []}})
    };
    let record = |number: u32| json!({"id": id(number), "recorded_at": AT_TEN});
    let tombstone = |number: u32, of: &str| {
        wrapped(
            "DeletedRecord",
            &json!({"deleted_id": id(number), "deleted_type": of}),
        )
    };
    person.records(&walk, &[record(1), record(2)]).await;
    let batch = json!([
        tombstone(1, &tea),
        wrapped(&tea, &record(3)),
        tombstone(3, &walk),
        tombstone(2, &walk),
        wrapped(&tea, &record(4)),
        tombstone(4, &tea),
    ]);
    let reply = person.post("/ingest/v1/record/batch", &batch).await;
    assert_eq!(reply.counts(), [1, 0, 0, 1]);
    let left = async |data_type: &str| -> Vec<Value> {
        let rows = person.rows("event", data_type).await;
        rows.iter().map(|row| row["id"].clone()).collect()
    };
    assert_eq!(left(&walk).await, [json!(id(1))]);
    assert_eq!(left(&tea).await, [json!(id(3))]);
}

#[tokio::test]
async fn what_is_no_annotation_of_ones_own_cannot_be_recorded() {
    let (owner, stranger) = (person(), person());
    let annotation = create(&owner, &moment("a")).await;
    let record = json!({"recorded_at": AT_TEN});
    stranger.record(&type_of(&annotation), &record).await.problem(404);
    owner
        .record(&format!("MomentAnnotation/{}", id(1)), &record)
        .await
        .problem(404);
    let of_another_base = type_of(&annotation).replace("Moment", "Duration");
    owner.record(&of_another_base, &record).await.problem(404);
    delete(&owner, &annotation).await;
    owner.record(&type_of(&annotation), &record).await.problem(409);
    owner
        .record("MomentAnnotation", &json!({"recorded_at": AT_TEN, "sources": 5}))
        .await
        .must_be(422);
    assert!(owner.rows("event", "MomentAnnotation").await.is_empty());
}

#[tokio::test]
async fn the_end_of_what_has_no_length_is_shown_beside() {
    let person = person();
    let (start, end) = ("2024-05-01T10:00:00Z", "2024-05-01T11:00:00Z");
    let span = json!({"recorded_at": {"start_time": start, "end_time": end}});
    let instant = json!({"recorded_at": {"start_time": start, "end_time": start}});
    person.records("MomentAnnotation", &[span, instant]).await;
    let rows = person.rows("event", "MomentAnnotation").await;
    let mut extras: Vec<String> = rows.iter().map(|row| row["extras"].to_string()).collect();
    extras.sort();
    assert_eq!(
        extras,
        ["null", r#"{"recorded_at":{"end_time":"2024-05-01T11:00:00Z"}}"#]
    );
    for row in &rows {
        let again = person.record("MomentAnnotation", row).await.json();
        assert_eq!(again["unchanged"], 1, "{again}");
    }
    assert_eq!(person.rows("event", "MomentAnnotation").await.len(), 2);
    let later = person
        .get("/data/v1alpha1/event/MomentAnnotation")
        .with("start_time", "2024-05-01T10:30:00Z")
        .with("end_time", "2024-05-01T12:00:00Z");
    assert_eq!(later.await.json(), json!([]), "rule 5.1: moments are instants");
}

#[tokio::test]
async fn a_boolean_is_true_false_1_or_0() {
    let person = person();
    let data_type = type_of(&create(&person, &yes_no("Well?")).await);
    let values = [json!(true), json!(false), json!(1), json!(0), json!(1.0)];
    let records: Vec<Value> = (1..)
        .zip(&values)
        .map(|(number, value)| json!({"id": id(number), "recorded_at": AT_TEN, "value": value}))
        .collect();
    person.records(&data_type, &records).await;
    let rows = person.rows("metric", &data_type).await;
    let shown: Vec<&Value> = rows.iter().map(|row| &row["value"]).collect();
    assert_eq!(
        shown,
        [
            &json!(true),
            &json!(false),
            &json!(true),
            &json!(false),
            &json!(true)
        ]
    );
    for value in [
        json!(2),
        json!(-1),
        json!(0.5),
        json!("true"),
        json!(null),
        json!([]),
    ] {
        let record = json!({"recorded_at": AT_TEN, "value": value});
        assert_eq!(
            person.record(&data_type, &record).await.faults(),
            ["body.value"],
            "{value}"
        );
    }
    let day = person
        .get(&format!("/data/v1alpha1/metric/{data_type}/agg/day"))
        .with("start_time", "2024-05-01")
        .with("end_time", "2024-05-02")
        .with("function", "sum")
        .await
        .must_be(200)
        .rows();
    assert_eq!(day[0]["sum"].as_f64(), Some(3.0));
}

#[tokio::test]
async fn records_are_counted_by_the_name_of_their_definition_and_read_in_every_form() {
    let person = person();
    let (tea, walk) = (
        create(&person, &moment("Tea")).await,
        create(&person, &moment("Walk")).await,
    );
    for annotation in [&tea, &tea, &walk] {
        person
            .record(&type_of(annotation), &json!({"recorded_at": AT_TEN}))
            .await
            .upload();
    }
    let counted = person
        .get("/data/v1alpha1/event/MomentAnnotation/agg/day")
        .with("start_time", "2024-05-01")
        .with("end_time", "2024-05-02")
        .with("group", "source_name")
        .await
        .must_be(200)
        .rows();
    let groups: Vec<(&Value, &Value)> = counted
        .iter()
        .map(|row| (&row["source_name"], &row["count"]))
        .collect();
    assert_eq!(groups, [(&json!("Tea"), &json!(2)), (&json!("Walk"), &json!(1))]);
    let csv = person
        .read("event", "MomentAnnotation")
        .with("format", "csv")
        .await
        .must_be(200);
    let table = Table::read("csv", &csv.body);
    assert_eq!(table.rows.len(), 3);
    let backwards = person
        .read("event", "MomentAnnotation")
        .with("sort", "desc")
        .await
        .must_be(200)
        .rows();
    assert_eq!(names(&backwards), [&json!("Walk"), &json!("Tea"), &json!("Tea")]);
    for output in ["arrow", "arrowraw", "parquet", "ndjson", "jscolumns"] {
        let selected = person
            .get("/data/v1/records")
            .with("q", "MomentAnnotation{source_name=\"Tea\"}[100y]")
            .with("output", output)
            .await
            .must_be(200);
        assert_eq!(Table::read(output, &selected.body).rows.len(), 2, "{output}");
    }
    let latest = person
        .get("/data/v1alpha1/event/MomentAnnotation/latest")
        .await
        .must_be(200)
        .rows();
    assert_eq!(names(&latest), [&json!("Walk")]);
    let summary = person
        .get("/data/v1alpha1/event/MomentAnnotation/summary")
        .with("filter", "source_name:Tea")
        .await;
    assert_eq!(summary.must_be(200).json()["count"], json!(2));
    let tea = type_of(&tea);
    let summary = person
        .get(&format!("/data/v1alpha1/event/{tea}/summary"))
        .await
        .must_be(200)
        .json();
    assert_eq!(
        (&summary["data_type"], &summary["count"]),
        (&json!(tea), &json!(2))
    );
}

#[tokio::test]
async fn a_value_beside_its_scale_is_refused_while_the_scale_is_known() {
    for backends in Backends::available() {
        let server = Setup::default().on(backends).start();
        let person = server.person();
        let mood = create(&person, &scale("Mood")).await;
        let source = mood["svc_source_id"].as_str().unwrap();
        let at_address = |value: i64| person.record(&type_of(&mood), &json!({"value": value}));
        let by_source = |value: i64| {
            let record = json!({"value": value, "sources": ["com.example.app", source]});
            person.lines("ScaleAnnotation", &[json!({"value": 1}), record])
        };
        for value in [0, 6, -1, 1_000_000] {
            assert_eq!(at_address(value).await.faults(), ["body.value"], "{value}");
            assert_eq!(by_source(value).await.faults(), ["body.1.value"], "{value}");
        }
        let fault = at_address(6).await.json()["detail"][0].clone();
        assert_eq!(
            (&fault["type"], &fault["msg"]),
            (&json!("maximum"), &json!("the scale ends at 5"))
        );
        let wrapped = json!({"specversion": 1, "data": "{\"value\": 0}",
            "metadata": {"data_type": "ScaleAnnotation", "source": [source], "tags": []}});
        let wrapped = person.post("/ingest/v1/record", &wrapped).await;
        assert!(wrapped.faults()[0].ends_with("value"), "{wrapped}");
        assert!(person.rows("metric", &type_of(&mood)).await.is_empty());
        for value in [1, 5] {
            at_address(value).await.upload();
            by_source(value).await.upload();
        }
        // A scale that changes binds what comes, and changes nothing that is there.
        let mut wider = mood.clone();
        wider["measurement_spec"]["scale"]["max_allowed"] = json!(6);
        let path = format!("/user/v1alpha1/annotation/{}", mood["id"].as_str().unwrap());
        person.put(&path, &wider).await.must_be(200);
        at_address(6).await.upload();
        person.put(&path, &mood).await.must_be(200);
        at_address(6).await.must_be(422);
        let rows = person.rows("metric", &type_of(&mood)).await;
        let values: Vec<i64> = rows.iter().map(|row| row["value"].as_i64().unwrap()).collect();
        assert_eq!(values.iter().filter(|value| **value == 6).count(), 1);
        assert_eq!(values.len(), 5);
        // Neither one that was deleted nor one that nobody has binds anybody.
        delete(&person, &mood).await;
        by_source(9).await.upload();
        let stranger = json!({"value": 9, "sources": [format!("com.almanac.annotation.{}", id(9))]});
        person.record("ScaleAnnotation", &stranger).await.upload();
        person
            .record("ScaleAnnotation", &json!({"value": 9}))
            .await
            .upload();
    }
}

#[tokio::test]
async fn an_id_that_an_app_gives_itself_hides_no_annotation() {
    let person = person();
    let (tea, mood) = (
        create(&person, &moment("Tea")).await,
        create(&person, &scale("Mood")).await,
    );
    for (number, said) in [(1, json!("my-app")), (2, json!("")), (3, json!(id(9)))] {
        let record = json!({"id": id(number), "recorded_at": AT_TEN, "source_id": said,
            "sources": [tea["svc_source_id"]]});
        person.record("MomentAnnotation", &record).await.upload();
    }
    let rows = person.rows("event", &type_of(&tea)).await;
    assert_eq!(names(&rows), [&json!("Tea"); 3]);
    assert_eq!(rows[0]["sources"], json!([tea["svc_source_id"], "my-app"]));
    assert_eq!(rows[1]["sources"], json!([tea["svc_source_id"]]));
    for row in &rows {
        let again = person.record("MomentAnnotation", row).await;
        assert_eq!(again.counts(), [0, 0, 1, 0], "{row}");
    }
    let beyond = json!({"value": 99, "source_id": "my-app", "sources": [mood["svc_source_id"]]});
    person.record("ScaleAnnotation", &beyond).await.must_be(422);
}

#[tokio::test]
async fn amounts_that_are_added_up_are_never_below_0() {
    let person = person();
    let mut cups = numeric("Cups");
    cups["measurement_spec"] =
        json!({"measurement_type": "count", "metric_kind": "cumulative", "count": {"value": 1}});
    let cups = create(&person, &cups).await;
    let address = type_of(&cups);
    let reply = person.record(&address, &json!({"value": -3})).await;
    assert_eq!(reply.faults(), ["body.value"]);
    let by_source = json!({"value": -3, "sources": ["com.example.app", cups["svc_source_id"]]});
    let reply = person.record("NumericAnnotation", &by_source).await;
    assert_eq!(reply.faults(), ["body.value"]);
    person.record(&address, &json!({"value": 0})).await.upload();
    let of_no_annotation = json!({"value": -3});
    person
        .record("NumericAnnotation", &of_no_annotation)
        .await
        .upload();
    let path = format!("/data/v1/catalog/{address}/v1alpha1/schema");
    let schema = person.get(&path).await.must_be(200).json();
    assert_eq!(schema["properties"]["value"]["minimum"], json!(0));

    let mut drift = scale("Drift");
    drift["measurement_spec"]["scale"]["min_allowed"] = json!(-5);
    let discrete = create(&person, &drift).await;
    drift["measurement_spec"]["metric_kind"] = json!("cumulative");
    let reply = person.post(PATH, &drift).await;
    assert_eq!(reply.faults(), ["body.measurement_spec.scale.min_allowed"]);
    let reply = person.put(&at(&discrete), &drift).await;
    assert_eq!(
        reply.faults(),
        [
            "body.measurement_spec.scale.min_allowed",
            "body.measurement_spec.metric_kind"
        ]
    );
}

#[tokio::test]
async fn levels_do_not_become_amounts() {
    let person = person();
    let counted = |kind: &str| {
        let mut cups = numeric("Cups");
        cups["measurement_spec"] =
            json!({"measurement_type": "count", "metric_kind": kind, "count": {"value": 1}});
        cups
    };
    let mut uncounted = numeric("Cups");
    uncounted["measurement_spec"] = json!(null);
    let mut mood = scale("Mood");
    let made = [
        (create(&person, &counted("discrete")).await, counted("cumulative")),
        (create(&person, &uncounted).await, counted("cumulative")),
        (create(&person, &mood).await, {
            mood["measurement_spec"]["metric_kind"] = json!("cumulative");
            mood
        }),
    ];
    for (annotation, added_up) in made {
        let reply = person.put(&at(&annotation), &added_up).await;
        assert_eq!(reply.faults(), ["body.measurement_spec.metric_kind"]);
        person.put(&at(&annotation), &annotation).await.must_be(200);
    }
    let amounts = create(&person, &counted("cumulative")).await;
    for kind in ["cumulative", "discrete"] {
        person.put(&at(&amounts), &counted(kind)).await.must_be(200);
    }
    let mut answers = yes_no("Did I?");
    let made = create(&person, &answers).await;
    answers["measurement_spec"]["metric_kind"] = json!("cumulative");
    person.put(&at(&made), &answers).await.must_be(200);
}

#[tokio::test]
async fn the_published_schema_of_a_scale_has_its_ends() {
    let person = person();
    let mood = create(&person, &scale("Mood")).await;
    let path = format!("/data/v1/catalog/{}/v1alpha1/schema", type_of(&mood));
    let schema = person.get(&path).await.must_be(200).json();
    let value = &schema["properties"]["value"];
    assert_eq!((&value["minimum"], &value["maximum"]), (&json!(1), &json!(5)));
}
