//! Single cases, and what is for the owner alone.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array as _, ArrayData, ArrayRef, AsArray, Float64Array, RecordBatch, StringArray, StructArray,
    new_null_array,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType as ArrowType, FieldRef, Float64Type, Schema, TimestampMicrosecondType,
};
use uuid::Uuid;

use crate::model::duration::Truncation;
use crate::model::grid::Grid;
use crate::model::ids::PersonId;
use crate::model::permit::Windows;
use crate::model::zone::Zone;
use crate::query::aggregate::{AggregateMeasure, AggregateSpec};
use crate::query::columns::Columns;
use crate::query::filter::{FilterError, parse_all};
use crate::query::places::raw::{OneOf, RawSpec};
use crate::query::records::RecordsSpec;
use crate::query::series::{AskedSeries, Gaps, Measure, SeriesSpec};
use crate::query::shape::IdForm;
use crate::query::{Order, QueryError};

use super::bench::{Bench, View, range};
use super::given::{AMOUNT, BEGIN, CALENDAR, DAY, GivenRow, HOUR, LEVEL, MAPS, MINUTE, WORKOUTS};

pub(super) fn given(start: i64, end: i64, value: f64) -> GivenRow {
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

pub(super) fn all(conditions: &[&str]) -> RecordsSpec {
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

pub(super) fn starts_and_ends(rows: &RecordBatch) -> Vec<(i64, i64)> {
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

pub(super) fn holds(rows: &RecordBatch, wanted: &[u8]) -> bool {
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
            columns: vec!["uuid", "timestamp", "source_id"],
            only: Some(only.clone()),
            ids: IdForm::Text,
        };
        let questions = &bench.questions;
        let rows = bench
            .run(questions.raw(&granted, &spec).await.unwrap().plan)
            .await;
        let prepared = questions.prepared_bounds(&granted).await.unwrap();
        let bounds = questions
            .bounds_in(&prepared, &granted, Some(&only))
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
