//! What others are told of names: of devices, of people in calendars and events, and of what a definition of
//! annotations names; and how far down the owner's conditions on annotations go.

use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, BooleanArray, FixedSizeBinaryArray, Float64Array, ListArray, ListBuilder, RecordBatch,
    StringArray, StringBuilder, StructArray, TimestampMicrosecondArray, new_null_array,
};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType as ArrowType, Fields};
use datafusion::physical_plan::displayable;
use uuid::Uuid;

use crate::model::ids::PersonId;
use crate::model::permit::{ReadPermit, Windows};
use crate::model::registry::{TypeId, dictionary_text};
use crate::query::columns::Columns;
use crate::query::filter::{Comparand, Comparison, Condition};
use crate::query::ground::operator::Plan;
use crate::query::ground::table::PartitionExec;
use crate::query::records::RecordsSpec;
use crate::query::{Order, TypedPartition};

use super::bench::{Anybody, Bench, View, range};
use super::given::{BEGIN, CALENDAR, DAY, HOUR, LEVEL, MINUTE};
use super::rules::{all, holds};

/// Records of an hour each, one after the other: the source that names the definition of each, and its unit.
fn measured(records: &[(String, &str)]) -> RecordBatch {
    let ids = (1..=records.len() as u128).map(u128::to_be_bytes);
    let times = |hours: i64| -> ArrayRef {
        let moments = (0..records.len() as i64).map(|place| BEGIN + (place + hours) * HOUR);
        let times = TimestampMicrosecondArray::from_iter_values(moments);
        Arc::new(times.with_timezone("UTC"))
    };
    let dictionary = |texts: Vec<&str>| cast(&StringArray::from(texts), &dictionary_text()).unwrap();
    let sources = records.iter().map(|(source, _)| source.as_str());
    let units = records.iter().map(|(_, unit)| *unit);
    RecordBatch::try_from_iter([
        (
            "id",
            Arc::new(FixedSizeBinaryArray::try_from_iter(ids).unwrap()) as ArrayRef,
        ),
        ("start_time", times(0)),
        ("end_time", times(1)),
        ("source_id", dictionary(sources.collect())),
        ("unit", dictionary(units.collect())),
        ("value", Arc::new(Float64Array::from(vec![1.0; records.len()]))),
    ])
    .unwrap()
}

/// The records of all definitions of numbers lie in one partition.
#[tokio::test(flavor = "multi_thread")]
async fn rule_9_2d_records_come_without_a_word_of_definitions_that_are_not_shared() {
    const NUMBERS: &str = "NumericAnnotation";
    const UNITS: [&str; 3] = ["cups", "stone", "pots"];
    let bench = Bench::new().await;
    let annotations = bench.annotations();
    let definitions = annotations.shown(PersonId(Uuid::now_v7()), false).await;
    let definitions = Arc::new(definitions.unwrap());
    let partitions = [TypedPartition {
        definitions: Some(Arc::clone(&definitions)),
        ..bench.partition(NUMBERS)
    }];
    let (tea, weight) = (Uuid::from_u128(1), Uuid::from_u128(2));
    let sources = [tea, weight, tea].map(|definition| definitions.source(definition));
    let rows = measured(&sources.into_iter().zip(UNITS).collect::<Vec<_>>());
    let day = range(BEGIN, BEGIN + DAY);
    // In an object, and in the tail.
    for pieces in [vec![rows.clone()], vec![rows.slice(0, 0), rows.clone()]] {
        let owner = PersonId(Uuid::now_v7());
        bench.store(owner, NUMBERS, &pieces).await;
        let read = async |permit: &ReadPermit<Anybody>, conditions: Vec<Condition>, order: Order| {
            let spec = RecordsSpec {
                conditions,
                order,
                ..all(&[])
            };
            let prepared = bench.questions.records(permit, &partitions, &spec).await;
            bench.run(prepared.unwrap().plan).await
        };
        // Whole, and with the first record cut.
        for begin in [BEGIN, BEGIN + 30 * MINUTE] {
            let view = View::Shared(owner, Windows::new([range(begin, BEGIN + DAY)]));
            for (definition, units) in [(tea, vec!["cups", "pots"]), (weight, vec!["stone"])] {
                let id = TypeId::of_definition(NUMBERS, definition);
                let permit = view.permit(id.as_str(), day);
                let belonging = Condition {
                    field: "source_id".to_owned(),
                    operator: Comparison::Belongs,
                    value: Comparand::Text(definitions.source(definition)),
                };
                // Also where a question forgets the condition that selects them.
                for conditions in [vec![belonging], Vec::new()] {
                    for order in [Order::Ascending, Order::Descending] {
                        let rows = read(&permit, conditions.clone(), order).await;
                        let told = UNITS.into_iter().filter(|unit| holds(&rows, unit.as_bytes()));
                        let told = (rows.num_rows(), told.collect::<Vec<_>>());
                        assert_eq!(told, (units.len(), units.clone()), "{conditions:?} {order:?}");
                    }
                }
                let unknown = [bench.partition(NUMBERS)];
                let refused = bench.questions.records(&permit, &unknown, &all(&[])).await;
                assert!(
                    refused.is_err(),
                    "nobody knows which records are the definition's"
                );
            }
            let of_all = read(&view.permit(NUMBERS, day), Vec::new(), Order::Ascending).await;
            assert_eq!(of_all.num_rows(), UNITS.len());
        }
    }
}

/// A record with all that names who measured it.
fn telling(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    let time = || {
        let times = TimestampMicrosecondArray::from(vec![BEGIN]);
        Arc::new(times.with_timezone("UTC")) as ArrayRef
    };
    let id = FixedSizeBinaryArray::try_from_iter(std::iter::once([7_u8; 16])).unwrap();
    let mut all: Vec<(&str, ArrayRef)> =
        vec![("id", Arc::new(id)), ("start_time", time()), ("end_time", time())];
    all.extend(columns);
    RecordBatch::try_from_iter(all).unwrap()
}

fn words(text: &str) -> ArrayRef {
    Arc::new(StringArray::from(vec![text]))
}

fn list(text: &str) -> ArrayRef {
    let mut list = ListBuilder::new(StringBuilder::new());
    list.values().append_value(text);
    list.append(true);
    Arc::new(list.finish())
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_9_2d_a_reader_learns_the_names_of_devices_and_nothing_else_of_them() {
    let bench = Bench::new().await;
    let storage = Arc::clone(&bench.data_type(LEVEL).layout.storage);
    let properties = |name: &str| -> ArrayRef {
        let ArrowType::Struct(fields) = storage.field_with_name(name).unwrap().data_type() else {
            panic!("{name} is no structure");
        };
        let members = fields
            .iter()
            .map(|field| cast(&words(&format!("secret {}", field.name())), field.data_type()).unwrap());
        Arc::new(StructArray::new(fields.clone(), members.collect(), None))
    };
    let owner = PersonId(Uuid::now_v7());
    let record = telling(vec![
        ("value", Arc::new(Float64Array::from(vec![60.0]))),
        ("source_properties", properties("source_properties")),
        ("device_properties", properties("device_properties")),
        ("extras", words(r#"{"serial":"secret"}"#)),
        ("tags", list("secret tag")),
        ("sources", list("secret source")),
    ]);
    bench.store(owner, LEVEL, &[record]).await;
    let day = range(BEGIN, BEGIN + DAY);
    let told = async |view: View| {
        let permit = view.permit(LEVEL, day);
        let prepared = bench
            .questions
            .records(&permit, &[bench.partition(LEVEL)], &all(&[]))
            .await
            .unwrap();
        bench.told(prepared).await[0].clone()
    };
    let of = |row: &[(String, String)], name: &str| {
        row.iter()
            .find(|(column, _)| column == name)
            .map(|(_, text)| text.clone())
            .unwrap()
    };
    let own = told(View::Own(owner)).await;
    assert!(of(&own, "source_properties").contains("secret sourceBundleIdentifier"));
    let shared = told(View::Shared(owner, Windows::new([day]))).await;
    let secrets: Vec<&String> = shared
        .iter()
        .map(|(_, text)| text)
        .filter(|text| text.replace("secret name", "").contains("secret"))
        .collect();
    assert_eq!(secrets, Vec::<&String>::new());
    for name in ["source_properties", "device_properties"] {
        assert!(of(&shared, name).contains("name: secret name"), "{shared:?}");
    }
    assert_eq!(of(&shared, "extras"), "null");
    assert_eq!(of(&shared, "value"), "60.0");
}

/// People call their devices by their own names.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_must_not_learn_whose_rows_they_are_learns_no_names_of_devices() {
    let bench = Bench::new().await;
    let owner = PersonId(Uuid::now_v7());
    let storage = Arc::clone(&bench.data_type(LEVEL).layout.storage);
    let described = |column: &str| -> ArrayRef {
        let ArrowType::Struct(fields) = storage.field_with_name(column).unwrap().data_type() else {
            panic!("{column} is no structure");
        };
        let members = fields.iter().map(|field| match field.name().as_str() {
            "name" => cast(&words("watch of Ada"), field.data_type()).unwrap(),
            _ => new_null_array(field.data_type(), 1),
        });
        Arc::new(StructArray::new(fields.clone(), members.collect(), None))
    };
    let record = telling(vec![
        ("value", Arc::new(Float64Array::from(vec![60.0]))),
        ("source_properties", described("source_properties")),
        ("device_properties", described("device_properties")),
    ]);
    bench.store(owner, LEVEL, &[record]).await;
    let day = range(BEGIN, BEGIN + DAY);
    let view = View::Shared(owner, Windows::new([day]));
    let partitions = [bench.partition(LEVEL)];
    for (permit, is_named) in [
        (view.permit(LEVEL, day), true),
        (view.permit(LEVEL, day).anonymous(), false),
    ] {
        let prepared = bench.questions.records(&permit, &partitions, &all(&[])).await;
        let rows = bench.run(prepared.unwrap().plan).await;
        assert_eq!((rows.num_rows(), holds(&rows, b"Ada")), (1, is_named));
        for condition in ["source_properties.name~ada", "device_properties.name~ada"] {
            let spec = all(&[condition]);
            let prepared = bench.questions.records(&permit, &partitions, &spec).await;
            let rows = bench.run(prepared.unwrap().plan).await;
            assert_eq!(rows.num_rows(), usize::from(is_named), "{condition}");
        }
    }
}

/// People with these names in the members that name somebody, and whether they are who is recorded.
fn invited(fields: &Fields, people: &[(&str, bool)]) -> ArrayRef {
    let members = fields.iter().map(|field| -> ArrayRef {
        match field.name().as_str() {
            "is_current_user" => {
                let marks = people.iter().map(|(_, is_owner)| Some(*is_owner));
                Arc::new(marks.collect::<BooleanArray>())
            }
            "name" | "url" | "contact_id" => Arc::new(
                people
                    .iter()
                    .map(|(name, _)| Some(*name))
                    .collect::<StringArray>(),
            ),
            _ => new_null_array(field.data_type(), people.len()),
        }
    });
    Arc::new(StructArray::new(fields.clone(), members.collect(), None))
}

/// Calendars and accounts have the names of people, and who is invited may be the person.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_must_not_learn_whose_rows_they_are_learns_it_neither_of_calendars_nor_of_events() {
    let bench = Bench::new().await;
    let owner = PersonId(Uuid::now_v7());
    let words = |text: &str| cast(&words(text), &dictionary_text()).unwrap();
    let calendar = telling(vec![
        ("calendar_name", Arc::new(StringArray::from(vec!["Ada"]))),
        ("calendar_source_name", words("Ada at home")),
        ("svc_source", words("phone of Ada")),
    ]);
    let storage = Arc::clone(&bench.data_type(CALENDAR).layout.storage);
    let held = |name: &str| storage.field_with_name(name).unwrap().data_type().clone();
    let (ArrowType::Struct(organizer), ArrowType::List(participant)) =
        (held("organizer"), held("participants"))
    else {
        panic!("people are no structures");
    };
    let ArrowType::Struct(members) = participant.data_type().clone() else {
        panic!("participants are no structures");
    };
    let both = ListArray::new(
        participant,
        OffsetBuffer::from_lengths([2]),
        invited(&members, &[("Ada", true), ("Grace", false)]),
        None,
    );
    let event = telling(vec![
        ("organizer", invited(&organizer, &[("Ada", true)])),
        ("participants", Arc::new(both)),
    ]);
    bench.store(owner, "Calendar", &[calendar]).await;
    bench.store(owner, CALENDAR, &[event]).await;
    let day = range(BEGIN, BEGIN + DAY);
    let view = View::Shared(owner, Windows::new([day]));
    for (name, conditions, column) in [
        (
            "Calendar",
            ["calendar_name~ada", "svc_source~ada"],
            "calendar_source_name",
        ),
        (
            CALENDAR,
            ["organizer.name~ada", "organizer.url~ada"],
            "organizer.name",
        ),
    ] {
        let partitions = [bench.partition(name)];
        for (permit, is_named) in [
            (view.permit(name, day), true),
            (view.permit(name, day).anonymous(), false),
        ] {
            let asked = async |spec: &RecordsSpec| {
                let prepared = bench.questions.records(&permit, &partitions, spec).await;
                bench.run(prepared.unwrap().plan).await
            };
            let rows = asked(&all(&[])).await;
            assert_eq!((rows.num_rows(), holds(&rows, b"Ada")), (1, is_named), "{name}");
            assert_eq!(holds(&rows, b"Grace"), name == CALENDAR, "{name}");
            let alone = RecordsSpec {
                columns: Some(Columns::new(vec![column.to_owned()]).unwrap()),
                ..all(&[])
            };
            let rows = asked(&alone).await;
            assert_eq!((rows.num_rows(), holds(&rows, b"Ada")), (1, is_named), "{column}");
            for condition in conditions {
                let rows = asked(&all(&[condition])).await;
                assert_eq!(rows.num_rows(), usize::from(is_named), "{condition}");
            }
        }
    }
}

/// How the rows of a plan over one partition would be read if nothing were known of them.
fn reading(plan: &Plan) -> String {
    let mut plan = plan;
    loop {
        if let Some(rows) = plan.downcast_ref::<PartitionExec>() {
            let reading = rows.undecoded().unwrap();
            return displayable(reading.as_ref()).indent(false).to_string();
        }
        plan = plan.children().remove(0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn conditions_reach_the_pages_of_annotations_unless_definitions_answer_them() {
    const NUMBERS: &str = "NumericAnnotation";
    let bench = Bench::new().await;
    let owner = PersonId(Uuid::now_v7());
    let definitions = Arc::new(bench.annotations().shown(owner, true).await.unwrap());
    let tea = definitions.source(Uuid::from_u128(1));
    bench.store(owner, NUMBERS, &[measured(&[(tea, "cups")])]).await;
    let partitions = [TypedPartition {
        definitions: Some(definitions),
        ..bench.partition(NUMBERS)
    }];
    let permit = View::Own(owner).permit(NUMBERS, range(BEGIN, BEGIN + DAY));
    for (field, reaches_pages) in [("source_id", true), ("unit", true), ("source_name", false)] {
        let spec = all(&[format!("{field}:cups").as_str()]);
        let prepared = bench.questions.records(&permit, &partitions, &spec).await;
        let reading = reading(&prepared.unwrap().plan);
        let pages = reading.split_once("predicate=").map_or("", |(_, pages)| pages);
        assert_eq!(pages.contains(field), reaches_pages, "{reading}");
    }
}
