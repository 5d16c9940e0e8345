//! Single cases, and what is for the owner alone.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array as _, ArrayData, ArrayRef, AsArray, BooleanArray, FixedSizeBinaryArray, Float64Array, ListArray,
    ListBuilder, RecordBatch, StringArray, StringBuilder, StructArray, TimestampMicrosecondArray,
    new_null_array,
};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType as ArrowType, FieldRef, Fields, Float64Type, Schema, TimestampMicrosecondType,
};
use uuid::Uuid;

use crate::model::duration::Truncation;
use crate::model::grid::Grid;
use crate::model::ids::PersonId;
use crate::model::permit::{ReadPermit, Windows};
use crate::model::registry::{TypeId, dictionary_text};
use crate::model::time::TimeRange;
use crate::model::zone::Zone;
use crate::query::aggregate::{AggregateMeasure, AggregateSpec};
use crate::query::columns::Columns;
use crate::query::filter::{Comparand, Comparison, Condition, FilterError, parse_all};
use crate::query::for_others::reached_within;
use crate::query::places::calendar::{DAY_MARGIN, EVENT_COLUMNS};
use crate::query::places::raw::{OneOf, RawSpec};
use crate::query::places::widened;
use crate::query::records::RecordsSpec;
use crate::query::series::{AskedSeries, Gaps, Measure, SeriesSpec};
use crate::query::shape::IdForm;
use crate::query::{Order, QueryError, TypedPartition};

use super::bench::{Anybody, Bench, View, range};
use super::given::{
    AMOUNT, BEGIN, CALENDAR, DAY, FAR_OFF, GivenRow, HOUR, LEVEL, LONG_AGO, MAPS, MINUTE, VISITS, WORKOUTS,
};

fn given(start: i64, end: i64, value: f64) -> GivenRow {
    GivenRow {
        id: (start - BEGIN).unsigned_abs().into(),
        start,
        end,
        value,
        source: 0,
        content: Some(1),
        all_day: false,
    }
}

fn all(conditions: &[&str]) -> RecordsSpec {
    let texts: Vec<String> = conditions.iter().map(|text| (*text).to_owned()).collect();
    RecordsSpec {
        conditions: parse_all(&texts).unwrap(),
        order: Order::Ascending,
        ids: IdForm::Text,
        limit: None,
        after: None,
        columns: None,
    }
}

fn starts_and_ends(rows: &RecordBatch) -> Vec<(i64, i64)> {
    let times = |name: &str| {
        let column = rows.column_by_name(name).unwrap();
        column
            .as_primitive::<TimestampMicrosecondType>()
            .values()
            .to_vec()
    };
    times("start_date").into_iter().zip(times("end_date")).collect()
}

/// The example at the end of section 9.2: shared from 10:00 to 12:00, asked from 08:00 to 14:00.
#[tokio::test(flavor = "multi_thread")]
async fn rule_9_2c_a_reader_sees_one_beat_and_half_of_the_steps() {
    let clock = |hour: i64, minute: i64| BEGIN + hour * HOUR + minute * MINUTE;
    let bench = Bench::new().await;
    let beats = [(9, 0), (10, 30), (12, 30)].map(|(hour, minute)| {
        let moment = clock(hour, minute);
        given(moment, moment, 60.0)
    });
    let steps = vec![given(clock(9, 30), clock(10, 30), 60.0)];
    let owner = bench
        .person(&[(LEVEL, vec![beats.to_vec()]), (AMOUNT, vec![steps])])
        .await;
    let reader = View::Shared(owner, Windows::new([range(clock(10, 0), clock(12, 0))]));
    let asked = range(clock(8, 0), clock(14, 0));

    let mut raw = Vec::new();
    for name in [LEVEL, AMOUNT] {
        let permit = reader.permit(name, asked);
        let prepared = bench
            .questions
            .records(&permit, &[bench.partition(name)], &all(&[]))
            .await
            .unwrap();
        raw.push(bench.run(prepared.plan).await);
    }
    assert_eq!(starts_and_ends(&raw[0]), [(clock(10, 30), clock(10, 30))]);
    assert_eq!(starts_and_ends(&raw[1]), [(clock(10, 0), clock(10, 30))]);
    let values = raw[1]
        .column_by_name("value")
        .unwrap()
        .as_primitive::<Float64Type>();
    assert_eq!(values, &Float64Array::from(vec![30.0]));
    assert!(
        raw[1].column_by_name("count").unwrap().is_null(0),
        "how many make the whole is not told"
    );

    let (permit, partition) = (reader.permit(AMOUNT, asked), bench.partition(AMOUNT));
    let spec = SeriesSpec {
        column: "steps".to_owned(),
        grid: Grid::uniform(asked, HOUR),
        zone: Zone::UTC,
        measure: Measure::of(partition.data_type.metric.as_ref().unwrap()),
        calculations: Vec::new(),
        gaps: Gaps::default(),
        chosen_sources: Vec::new(),
    };
    let asked = AskedSeries {
        permit: &permit,
        partition: &partition,
        conditions: &[],
        spec,
        stages: None,
    };
    let series = bench.run(bench.questions.series(asked).await.unwrap().plan).await;
    let expected = Float64Array::from(vec![None, None, Some(30.0), None, None, None]);
    assert_eq!(series.column(1).as_primitive::<Float64Type>(), &expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_9_2c_a_row_across_a_gap_becomes_a_row_on_either_side_with_its_id() {
    let bench = Bench::new().await;
    let owner = bench
        .person(&[(AMOUNT, vec![vec![given(BEGIN, BEGIN + 4 * HOUR, 40.0)]])])
        .await;
    let granted = Windows::new([
        range(BEGIN + HOUR, BEGIN + 2 * HOUR),
        range(BEGIN + 3 * HOUR, BEGIN + 8 * HOUR),
    ]);
    let permit = View::Shared(owner, granted).permit(AMOUNT, range(BEGIN, BEGIN + DAY));
    let prepared = bench
        .questions
        .records(&permit, &[bench.partition(AMOUNT)], &all(&[]))
        .await
        .unwrap();
    let rows = bench.run(prepared.plan).await;
    let parts = [
        (BEGIN + HOUR, BEGIN + 2 * HOUR),
        (BEGIN + 3 * HOUR, BEGIN + 4 * HOUR),
    ];
    assert_eq!(starts_and_ends(&rows), parts);
    let ids = rows.column_by_name("uuid").unwrap().as_string::<i32>();
    assert_eq!(ids.value(0), ids.value(1));
    let values = rows
        .column_by_name("value")
        .unwrap()
        .as_primitive::<Float64Type>();
    assert_eq!(values, &Float64Array::from(vec![10.0, 10.0]));
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_9_2c_a_workout_that_is_cut_tells_its_kind_and_nothing_of_the_whole() {
    let bench = Bench::new().await;
    let owner = bench
        .person(&[(WORKOUTS, vec![vec![given(BEGIN, BEGIN + 2 * HOUR, 3.0)]])])
        .await;
    let told = async |granted| {
        let view = View::Shared(owner, Windows::new([granted]));
        let permit = view.permit(WORKOUTS, range(BEGIN, BEGIN + DAY));
        let prepared = bench
            .questions
            .records(&permit, &[bench.partition(WORKOUTS)], &all(&[]))
            .await
            .unwrap();
        let rows = bench.run(prepared.plan).await;
        let kinds = cast(
            rows.column_by_name("workout_activity_type").unwrap(),
            &ArrowType::Utf8,
        )
        .unwrap();
        let durations = rows
            .column_by_name("duration")
            .unwrap()
            .as_primitive::<Float64Type>()
            .iter()
            .collect::<Vec<_>>();
        (kinds.as_string::<i32>().value(0).to_owned(), durations)
    };
    let whole = told(range(BEGIN, BEGIN + 2 * HOUR)).await;
    assert_eq!(whole, ("kind 3".to_owned(), vec![Some(1.0)]));
    let cut = told(range(BEGIN + HOUR, BEGIN + 3 * HOUR)).await;
    assert_eq!(cut, ("kind 3".to_owned(), vec![None]));
}

/// Events, and what those are called who organize them.
fn organized(bench: &Bench, events: &[GivenRow], names: &[&str]) -> RecordBatch {
    let rows = super::given::batch(CALENDAR, events);
    let storage = Arc::clone(&bench.data_type(CALENDAR).layout.storage);
    let organizer = storage.field_with_name("organizer").unwrap();
    let ArrowType::Struct(members) = organizer.data_type() else {
        panic!("an organizer has no members");
    };
    let values = members.iter().map(|member| {
        if member.name() == "name" {
            cast(&StringArray::from(names.to_vec()), member.data_type()).unwrap()
        } else {
            new_null_array(member.data_type(), names.len())
        }
    });
    let organizers: ArrayRef = Arc::new(StructArray::new(members.clone(), values.collect(), None));
    let mut fields: Vec<FieldRef> = rows.schema().fields().iter().cloned().collect();
    fields.push(Arc::new(organizer.clone()));
    let mut columns = rows.columns().to_vec();
    columns.push(organizers);
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_9_2c_no_member_of_a_record_that_is_cut_is_told_found_or_counted() {
    let bench = Bench::new().await;
    let morning = BEGIN + DAY;
    let events = [
        given(BEGIN, BEGIN + 3 * DAY, 1.0),
        given(morning + HOUR, morning + 2 * HOUR, 2.0),
    ];
    let owner = PersonId(Uuid::now_v7());
    let rows = organized(&bench, &events, &["hidden", "shown"]);
    bench.store(owner, CALENDAR, &[rows]).await;
    let (asked, granted) = (range(BEGIN, BEGIN + 9 * DAY), range(morning, morning + DAY));
    let permit = View::Shared(owner, Windows::new([granted])).permit(CALENDAR, asked);
    let partitions = [bench.partition(CALENDAR)];
    let records = async |conditions: &[&str]| {
        let spec = all(conditions);
        let prepared = bench.questions.records(&permit, &partitions, &spec).await;
        prepared.unwrap()
    };
    for (name, found) in [("hidden", 0), ("shown", 1)] {
        let condition = format!("organizer.name={name}");
        let rows = bench.run(records(&[condition.as_str()]).await.plan).await;
        assert_eq!(rows.num_rows(), found, "{condition}");
    }
    let names = Columns::new(vec!["organizer.name".to_owned()]).unwrap();
    let told = bench.told(records(&[]).await.only(Some(&names)).unwrap()).await;
    let cell = |text: &str| vec![("organizer.name".to_owned(), text.to_owned())];
    assert_eq!(told, [cell("null"), cell("shown")]);
    let spec = AggregateSpec {
        conditions: Vec::new(),
        range: asked,
        periods: Truncation::DAYS,
        zone: Zone::UTC,
        measure: AggregateMeasure::Count,
        group: vec!["organizer.name".to_owned()],
        order: Order::Ascending,
        chosen_sources: Vec::new(),
        most_cells: u64::MAX,
    };
    let groups = bench.questions.aggregate(&permit, &partitions, &spec).await;
    let groups = format!("{:?}", bench.told(groups.unwrap()).await);
    assert!(groups.contains("shown") && !groups.contains("hidden"), "{groups}");
}

/// All bytes of a column, at every depth.
fn bytes_of(column: &ArrayData) -> Vec<u8> {
    let own = column
        .buffers()
        .iter()
        .flat_map(|buffer| buffer.as_slice().to_vec());
    let members = column.child_data().iter().flat_map(bytes_of);
    own.chain(members).collect()
}

fn holds(rows: &RecordBatch, wanted: &[u8]) -> bool {
    let columns = rows.columns().iter();
    let mut columns = columns.map(|column| bytes_of(&column.to_data()));
    columns.any(|bytes| bytes.windows(wanted.len()).any(|found| found == wanted))
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_9_2c_rows_are_given_without_a_trace_of_what_is_not_shared() {
    const COUNT: i64 = 0x1234_5678_9abc;
    let bench = Bench::new().await;
    let workouts: Vec<GivenRow> = (0..5_i32)
        .map(|day| {
            let start = BEGIN + i64::from(day) * DAY;
            given(start, start + HOUR, f64::from(day))
        })
        .collect();
    let steps = GivenRow {
        content: Some(COUNT),
        ..given(BEGIN, BEGIN + 9 * DAY, 60.0)
    };
    let granted = Windows::new([range(BEGIN + 2 * DAY, BEGIN + 3 * DAY)]);
    let all_time = range(BEGIN, BEGIN + 9 * DAY);
    // In an object, and in the tail.
    for before in [Vec::new(), vec![Vec::new()]] {
        let pieces = |rows: &[GivenRow]| [before.clone(), vec![rows.to_vec()]].concat();
        let stored = [
            (WORKOUTS, pieces(&workouts)),
            (AMOUNT, pieces(std::slice::from_ref(&steps))),
        ];
        let owner = bench.person(&stored).await;
        let read = async |view: &View, name: &str| {
            let permit = view.permit(name, all_time);
            let partitions = [bench.partition(name)];
            let prepared = bench.questions.records(&permit, &partitions, &all(&[])).await;
            bench.run(prepared.unwrap().plan).await
        };
        let (own, shared) = (View::Own(owner), View::Shared(owner, granted.clone()));
        let counts = [
            COUNT.to_le_bytes().to_vec(),
            (COUNT as f64).to_le_bytes().to_vec(),
        ];
        let holds_count = |rows: &RecordBatch| counts.iter().any(|count| holds(rows, count));
        assert!(holds_count(&read(&own, AMOUNT).await));
        let steps = read(&shared, AMOUNT).await;
        assert_eq!((steps.num_rows(), holds_count(&steps)), (1, false));
        let told = read(&shared, WORKOUTS).await;
        let kinds = (0..5).filter(|day| holds(&told, format!("kind {day}").as_bytes()));
        assert_eq!((told.num_rows(), kinds.collect::<Vec<_>>()), (1, vec![2]));
    }
}

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

#[tokio::test(flavor = "multi_thread")]
async fn rule_9_2c_a_visit_of_which_neither_end_is_known_is_seen_where_all_time_is() {
    let bench = Bench::new().await;
    let visits = vec![
        given(LONG_AGO, FAR_OFF, 1.0),
        given(BEGIN, BEGIN + HOUR, 1.0),
        given(BEGIN + 2 * HOUR, FAR_OFF, 1.0),
    ];
    let owner = bench.person(&[(VISITS, vec![visits])]).await;
    let always = TimeRange::ALWAYS;
    let shared = |granted: TimeRange| View::Shared(owner, Windows::new([granted]));
    for (view, expected) in [
        (View::Own(owner), 3),
        (shared(always), 3),
        // The last of them ends where this ends, so that others may follow.
        (shared(range(LONG_AGO, FAR_OFF)), 3),
        (
            shared(TimeRange::between(range(BEGIN, FAR_OFF).start(), always.end())),
            2,
        ),
        (shared(range(LONG_AGO, FAR_OFF - 1)), 2),
    ] {
        let (permit, partitions) = (view.permit(VISITS, always), [bench.partition(VISITS)]);
        let prepared = bench.questions.records(&permit, &partitions, &all(&[])).await;
        let rows = bench.run(prepared.unwrap().plan).await;
        let available = bench.questions.available(&view.listing(always), always).await;
        let counts: Vec<i64> = available.unwrap().iter().map(|found| found.records).collect();
        assert_eq!(
            (rows.num_rows(), counts),
            (expected, vec![expected as i64]),
            "{view:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_9_2c_an_event_of_whole_days_is_seen_where_all_of_its_days_are() {
    let bench = Bench::new().await;
    // Midnights in UTC are dates; in Berlin the 30th begins an hour earlier.
    let event = GivenRow {
        all_day: true,
        ..given(BEGIN, BEGIN + DAY, 1.0)
    };
    let owner = bench.person(&[(CALENDAR, vec![vec![event]])]).await;
    let asked = range(BEGIN + 9 * HOUR, BEGIN + 10 * HOUR);
    let seen = async |from: i64, to: i64| {
        let view = View::Shared(owner, Windows::new([range(BEGIN + from, BEGIN + to)]));
        let granted = bench.granted(&view, CALENDAR, widened(asked, DAY_MARGIN, DAY_MARGIN));
        let spec = RawSpec {
            columns: EVENT_COLUMNS,
            only: None,
            ids: IdForm::Text,
        };
        let prepared = bench
            .questions
            .calendar_events(&granted, &spec, asked)
            .await
            .unwrap();
        starts_and_ends(&bench.run(prepared.plan).await)
    };
    assert_eq!(seen(-HOUR, 23 * HOUR).await, [(BEGIN, BEGIN + DAY)]);
    assert_eq!(seen(0, 23 * HOUR).await, []);
    assert_eq!(seen(-HOUR, 23 * HOUR - 1).await, []);
    assert_eq!(seen(8 * HOUR, 11 * HOUR).await, []);
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

#[tokio::test(flavor = "multi_thread")]
async fn rule_9_2d_nobody_else_asks_by_what_is_for_the_owner_alone() {
    let bench = Bench::new().await;
    let owner = bench
        .person(&[(LEVEL, vec![vec![given(BEGIN, BEGIN, 1.0)]])])
        .await;
    let day = range(BEGIN, BEGIN + DAY);
    let (shared, own) = (View::Shared(owner, Windows::new([day])), View::Own(owner));
    let partitions = [bench.partition(LEVEL)];
    for (filter, is_private) in [
        ("tags=x", true),
        ("sources=x", true),
        ("extras~x", true),
        ("source_properties.sourceBundleIdentifier=x", true),
        ("device_properties.hardwareVersion!=x", true),
        ("source_properties.name=x", false),
        ("value>=1", false),
    ] {
        let asked = async |view: &View| {
            let permit = view.permit(LEVEL, day);
            let rows = bench
                .questions
                .records(&permit, &partitions, &all(&[filter]))
                .await;
            let summary = bench
                .questions
                .summary(&permit, &partitions, &all(&[filter]).conditions)
                .await;
            [rows.map(|_| ()), summary.map(|_| ())]
        };
        for refused in asked(&shared).await {
            let private = matches!(refused, Err(QueryError::Filter(FilterError::Private { .. })));
            assert_eq!((private, refused.is_err()), (is_private, is_private), "{filter}");
        }
        assert!(asked(&own).await.iter().all(Result::is_ok), "{filter}");
    }
    let spec = |group: &str| AggregateSpec {
        conditions: Vec::new(),
        range: day,
        periods: Truncation::DAYS,
        zone: Zone::UTC,
        measure: AggregateMeasure::Count,
        group: vec![group.to_owned()],
        order: Order::Ascending,
        chosen_sources: Vec::new(),
        most_cells: u64::MAX,
    };
    for (group, is_private) in [
        ("device_properties.model", true),
        ("device_properties.name", false),
    ] {
        let aggregated = async |view: &View| {
            let permit = view.permit(LEVEL, day);
            bench
                .questions
                .aggregate(&permit, &partitions, &spec(group))
                .await
                .is_err()
        };
        assert_eq!(aggregated(&shared).await, is_private, "{group}");
        assert!(!aggregated(&own).await, "{group}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_9_2d_no_place_is_known_to_be_of_a_source_that_is_asked_for() {
    let bench = Bench::new().await;
    let owner = bench
        .person(&[(MAPS, vec![vec![given(BEGIN, BEGIN, 1.0)]])])
        .await;
    let day = range(BEGIN, BEGIN + DAY);
    let only = OneOf {
        columns: &["source_id", "source"],
        values: vec!["source 0".to_owned()],
    };
    let found = async |view: View| {
        let granted = bench.granted(&view, MAPS, day);
        let spec = RawSpec {
            columns: &["uuid", "timestamp", "source_id"],
            only: Some(only.clone()),
            ids: IdForm::Text,
        };
        let rows = bench
            .run(bench.questions.raw(&granted, &spec).await.unwrap().plan)
            .await;
        let bounds = bench
            .questions
            .location_bounds(&granted, Some(&only))
            .await
            .unwrap();
        (rows.num_rows(), bounds.records)
    };
    assert_eq!(found(View::Own(owner)).await, (1, 1));
    assert_eq!(found(View::Shared(owner, Windows::new([day]))).await, (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_9_2c_answers_of_different_readers_and_windows_are_different_answers() {
    let bench = Bench::new().await;
    let owner = bench
        .person(&[(LEVEL, vec![vec![given(BEGIN, BEGIN, 1.0)]])])
        .await;
    let day = range(BEGIN, BEGIN + DAY);
    let scope = async |view: View| {
        let permit = view.permit(LEVEL, day);
        bench
            .questions
            .records(&permit, &[bench.partition(LEVEL)], &all(&[]))
            .await
            .unwrap()
            .scope
    };
    let own = scope(View::Own(owner)).await;
    let whole = scope(View::Shared(owner, Windows::new([day]))).await;
    let part = scope(View::Shared(owner, Windows::new([range(BEGIN, BEGIN + HOUR)]))).await;
    assert_eq!(own, crate::query::Scope::default());
    assert_ne!(whole, own);
    assert_ne!(whole, part);
    assert_eq!(whole, scope(View::Shared(owner, Windows::new([day]))).await);
}

/// Pages of one record are together what is answered without pages: so many records.
async fn assert_paged(bench: &Bench, permit: &ReadPermit<Anybody>, name: &str, expected: usize) {
    let partitions = [bench.partition(name)];
    for order in [Order::Ascending, Order::Descending] {
        let whole = RecordsSpec { order, ..all(&[]) };
        let prepared = bench.questions.records(permit, &partitions, &whole).await;
        let together = bench.told(prepared.unwrap()).await;
        assert_eq!(together.len(), expected, "{name} {order:?}");
        let mut spec = RecordsSpec {
            limit: Some(1),
            ..whole
        };
        let mut paged = Vec::new();
        loop {
            let page = bench.questions.page_of_records(permit, &partitions, &spec).await;
            let (prepared, next) = page.unwrap();
            paged.extend(bench.told(prepared).await);
            match next.find_start(&bench.questions.engine).await.unwrap() {
                Some(place) => spec.after = Some(place),
                None => break,
            }
        }
        assert_eq!(paged, together, "{name} {order:?}");
    }
}

/// A visit whose arrival is unknown begins in the year 1, and is seen where its departure is.
#[tokio::test(flavor = "multi_thread")]
async fn every_visit_of_unknown_arrival_is_on_a_page_from_either_end() {
    let bench = Bench::new().await;
    let visits = (1..=3_i64).map(|hour| GivenRow {
        id: hour.unsigned_abs().into(),
        ..given(LONG_AGO, BEGIN + hour * HOUR, 1.0)
    });
    let known = given(BEGIN + 4 * HOUR, BEGIN + 5 * HOUR, 1.0);
    let visits = visits.chain([known]).collect();
    let owner = bench.person(&[(VISITS, vec![visits])]).await;
    let day = range(BEGIN, BEGIN + DAY);
    let permit = View::Shared(owner, Windows::new([day])).permit(VISITS, day);
    assert_paged(&bench, &permit, VISITS, 4).await;
}

/// A reader who names what is recorded of an unknown end finds the visits that are seen at the other one.
#[tokio::test(flavor = "multi_thread")]
async fn rule_9_2c_a_visit_of_an_unknown_end_is_found_by_either_of_its_recorded_times() {
    let bench = Bench::new().await;
    let visits = [(LONG_AGO, BEGIN + HOUR), (BEGIN + 2 * HOUR, FAR_OFF)];
    let visits = visits.map(|(start, end)| given(start, end, 1.0)).to_vec();
    let owner = bench.person(&[(VISITS, vec![visits])]).await;
    let day = range(BEGIN, BEGIN + DAY);
    let permit = View::Shared(owner, Windows::new([day])).permit(VISITS, day);
    for recorded in [
        range(LONG_AGO, LONG_AGO + 1),
        range(FAR_OFF - 1, FAR_OFF + 1),
        day,
    ] {
        let permit = permit.within(reached_within(permit.data_type(), recorded));
        assert_paged(&bench, &permit, VISITS, 2).await;
    }
}

/// Events where days begin four hours after the midnights in UTC.
fn in_new_york(events: &[GivenRow]) -> RecordBatch {
    let rows = super::given::batch(CALENDAR, events);
    let zone = rows.schema().index_of("time_zone").unwrap();
    let mut columns = rows.columns().to_vec();
    let name: ArrayRef = Arc::new(StringArray::from(vec!["America/New_York"; events.len()]));
    columns[zone] = cast(&name, columns[zone].data_type()).unwrap();
    RecordBatch::try_new(rows.schema(), columns).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_9_2c_an_event_of_one_day_is_seen_where_the_day_is_however_short_it_was_recorded() {
    let bench = Bench::new().await;
    let midnight = BEGIN + 3 * DAY;
    let ends = [midnight, midnight + DAY - 1_000_000, midnight + DAY];
    let events = [1, 2, 3].into_iter().zip(ends).map(|(id, end)| GivenRow {
        id,
        all_day: true,
        ..given(midnight, end, 1.0)
    });
    let owner = PersonId(Uuid::now_v7());
    bench
        .store(owner, CALENDAR, &[in_new_york(&events.collect::<Vec<_>>())])
        .await;
    let (morning, night) = (midnight + 4 * HOUR, midnight + 28 * HOUR);
    let around = range(BEGIN, BEGIN + 9 * DAY);
    for (granted, expected) in [
        (range(morning, night), 3),
        (range(BEGIN, night), 3),
        (range(morning + 1, night), 0),
        (range(morning, night - 1), 0),
        (range(BEGIN, morning), 0),
    ] {
        let view = View::Shared(owner, Windows::new([granted]));
        assert_paged(&bench, &view.permit(CALENDAR, around), CALENDAR, expected).await;
        let available = bench.questions.available(&view.listing(around), around).await;
        let counts: Vec<i64> = available.unwrap().iter().map(|found| found.records).collect();
        assert_eq!(counts.iter().sum::<i64>(), expected as i64, "{granted:?}");
        let asked = range(morning + HOUR, morning + 2 * HOUR);
        let calendar = bench.granted(&view, CALENDAR, widened(asked, DAY_MARGIN, DAY_MARGIN));
        let spec = RawSpec {
            columns: EVENT_COLUMNS,
            only: None,
            ids: IdForm::Text,
        };
        let prepared = bench.questions.calendar_events(&calendar, &spec, asked).await;
        let told = bench.told(prepared.unwrap()).await;
        assert_eq!(told.len(), expected, "{granted:?}");
    }
}

/// An event of whole days is shown by its days in its zone, and sorted by its recorded start.
#[tokio::test(flavor = "multi_thread")]
async fn events_that_are_recorded_before_a_window_come_from_the_end_too() {
    let bench = Bench::new().await;
    let midnight = BEGIN + 3 * DAY;
    let all_day = GivenRow {
        all_day: true,
        ..given(midnight, midnight + DAY, 1.0)
    };
    let other = given(midnight + HOUR, midnight + 4 * HOUR, 2.0);
    let owner = PersonId(Uuid::now_v7());
    bench
        .store(owner, CALENDAR, &[in_new_york(&[all_day]), in_new_york(&[other])])
        .await;
    let window = midnight + 2 * HOUR;
    let granted = Windows::new([range(BEGIN, BEGIN + DAY), range(window, midnight + 2 * DAY)]);
    let permit = View::Shared(owner, granted).permit(CALENDAR, range(BEGIN, midnight + 9 * DAY));
    let expected = [(midnight, midnight + DAY), (window, midnight + 4 * HOUR)];
    for order in [Order::Ascending, Order::Descending] {
        let spec = RecordsSpec { order, ..all(&[]) };
        let partitions = [bench.partition(CALENDAR)];
        let prepared = bench
            .questions
            .records(&permit, &partitions, &spec)
            .await
            .unwrap();
        let mut found = starts_and_ends(&bench.run(prepared.plan).await);
        if order == Order::Descending {
            found.reverse();
        }
        assert_eq!(found, expected, "{order:?}");
    }
}
