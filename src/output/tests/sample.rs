//! Random rows of every type, as batches and as the JSON that they should become.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, DictionaryArray, FixedSizeBinaryArray, Float32Array,
    Float64Array, Int8Array, Int64Array, LargeListArray, LargeStringArray, ListArray, NullArray, StringArray,
    StringViewArray, StructArray, TimestampMicrosecondArray, TimestampMillisecondArray, UInt64Array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Int8Type, Int32Type, Schema, SchemaRef, TimeUnit};
use arrow::record_batch::RecordBatch;
use chrono::{DateTime, NaiveDate, SecondsFormat, TimeZone};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

const WORDS: [&str; 6] = [
    "count/min",
    "",
    "\"quoted\", with a comma",
    "Grüße\n\t\u{1f600}",
    "back\\slash",
    "Apple Watch",
];
const EXTENSION: &str = "ARROW:extension:name";

#[derive(Clone, Debug)]
pub(super) struct Row {
    flag: Option<bool>,
    small: Option<i8>,
    count: Option<i64>,
    large: Option<u64>,
    value: Option<f64>,
    single: Option<f32>,
    title: Option<String>,
    note: Option<String>,
    view: Option<String>,
    unit: Option<usize>,
    id: Option<[u8; 16]>,
    bytes: Option<Vec<u8>>,
    at: Option<i64>,
    local: Option<i64>,
    day: Option<i32>,
    tags: Option<Vec<Option<String>>>,
    source: Option<[Option<usize>; 2]>,
    spans: Option<Vec<(Option<i64>, Option<f64>)>>,
    extras: Option<bool>,
}

fn string() -> impl Strategy<Value = String> {
    prop_oneof![
        "\\PC{0,12}",
        "[a-z\"\\\\,\n\r\t \\x00-\\x1f]{0,12}",
        "[a-z]{0,30}"
    ]
}

fn micros() -> impl Strategy<Value = i64> {
    prop_oneof![
        -62_135_596_800_000_000_i64..253_402_300_800_000_000,
        (0_i64..2_000_000_000).prop_map(|second| second * 1_000_000),
        Just(-62_135_596_800_000_000),
        Just(64_092_211_200_000_000)
    ]
}

pub(super) fn row() -> impl Strategy<Value = Row> {
    let word = || prop::option::of(0..WORDS.len());
    let numbers = (
        any::<Option<bool>>(),
        any::<Option<i8>>(),
        any::<Option<i64>>(),
        any::<Option<u64>>(),
        prop::option::of(prop_oneof![
            prop::num::f64::ANY,
            prop::num::f64::NORMAL,
            (-99_999_i64..99_999).prop_map(|value| value as f64 / 100.0)
        ]),
        prop::option::of(prop::num::f32::ANY),
    );
    let texts = (
        prop::option::of(string()),
        prop::option::of(string()),
        prop::option::of(string()),
        word(),
        any::<Option<[u8; 16]>>(),
    );
    let bytes = prop::option::of(prop::collection::vec(any::<u8>(), 0..5));
    // Far enough from year 9999 that no zone leaves it.
    let times = (
        prop::option::of(micros()),
        prop::option::of(-2_000_000_000_000_i64..4_000_000_000_000),
        prop::option::of(-700_000..2_900_000),
    );
    let nested = (
        prop::option::of(prop::collection::vec(prop::option::of(string()), 0..3)),
        prop::option::of([word(), word()]),
        prop::option::of(prop::collection::vec(
            (
                prop::option::of(micros()),
                prop::option::of(prop::num::f64::NORMAL),
            ),
            0..3,
        )),
        any::<Option<bool>>(),
    );
    (numbers, texts, bytes, times, nested).prop_map(
        |(
            (flag, small, count, large, value, single),
            (title, note, view, unit, id),
            bytes,
            (at, local, day),
            (tags, source, spans, extras),
        )| Row {
            flag,
            small,
            count,
            large,
            value,
            single,
            title,
            note,
            view,
            unit,
            id,
            bytes,
            at,
            local,
            day,
            tags,
            source,
            spans,
            extras,
        },
    )
}

/// Rows, and where they are cut into batches.
pub(super) fn rows() -> impl Strategy<Value = (Vec<Row>, usize)> {
    (prop::collection::vec(row(), 0..24), 1_usize..10)
}

fn word_type() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}

fn source_fields() -> Fields {
    vec![
        Field::new("name", word_type(), true),
        Field::new("model", word_type(), true),
    ]
    .into()
}

fn span_fields() -> Fields {
    let utc = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    vec![
        Field::new("start", utc, true),
        Field::new("value", DataType::Float64, true),
    ]
    .into()
}

fn tag_field() -> FieldRef {
    Arc::new(Field::new_list_field(DataType::Utf8, true))
}

fn span_field() -> FieldRef {
    Arc::new(Field::new_list_field(DataType::Struct(span_fields()), true))
}

fn tagged(field: Field, extension: &str) -> Field {
    field.with_metadata([(EXTENSION.to_owned(), extension.to_owned())].into())
}

pub(super) fn schema() -> SchemaRef {
    let zoned = |unit, zone: &str| DataType::Timestamp(unit, Some(zone.into()));
    let fields = vec![
        Field::new("flag", DataType::Boolean, true),
        Field::new("small", DataType::Int8, true),
        Field::new("count", DataType::Int64, true),
        Field::new("large", DataType::UInt64, true),
        Field::new("value", DataType::Float64, true),
        Field::new("single", DataType::Float32, true),
        Field::new("ti\"tle", DataType::Utf8, true),
        Field::new("note", DataType::LargeUtf8, true),
        Field::new("view", DataType::Utf8View, true),
        Field::new("unit", word_type(), true),
        Field::new(
            "narrow",
            DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8)),
            true,
        ),
        tagged(
            Field::new("id", DataType::FixedSizeBinary(16), true),
            "arrow.uuid",
        ),
        Field::new("bytes", DataType::Binary, true),
        Field::new("at", zoned(TimeUnit::Microsecond, "UTC"), true),
        Field::new("local", zoned(TimeUnit::Millisecond, "America/New_York"), true),
        Field::new("day", DataType::Date32, true),
        Field::new("tags", DataType::List(tag_field()), true),
        Field::new("source", DataType::Struct(source_fields()), true),
        Field::new("spans", DataType::LargeList(span_field()), true),
        tagged(Field::new("extras", DataType::Utf8, true), "arrow.json"),
        Field::new("nothing", DataType::Null, true),
    ];
    Arc::new(Schema::new(fields).with_metadata([("almanac.secret".to_owned(), "inside".to_owned())].into()))
}

pub(super) fn batches(rows: &[Row], length: usize) -> Vec<RecordBatch> {
    rows.chunks(length).map(batch).collect()
}

fn words(keys: impl Iterator<Item = Option<usize>>) -> DictionaryArray<Int32Type> {
    keys.map(|key| key.map(|key| WORDS[key])).collect()
}

fn batch(rows: &[Row]) -> RecordBatch {
    let each = || rows.iter();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(each().map(|row| row.flag).collect::<BooleanArray>()),
        Arc::new(each().map(|row| row.small).collect::<Int8Array>()),
        Arc::new(each().map(|row| row.count).collect::<Int64Array>()),
        Arc::new(each().map(|row| row.large).collect::<UInt64Array>()),
        Arc::new(each().map(|row| row.value).collect::<Float64Array>()),
        Arc::new(each().map(|row| row.single).collect::<Float32Array>()),
        Arc::new(each().map(|row| row.title.as_deref()).collect::<StringArray>()),
        Arc::new(
            each()
                .map(|row| row.note.as_deref())
                .collect::<LargeStringArray>(),
        ),
        Arc::new(each().map(|row| row.view.as_deref()).collect::<StringViewArray>()),
        Arc::new(words(each().map(|row| row.unit))),
        Arc::new(
            each()
                .map(|row| row.unit.map(|key| WORDS[key]))
                .collect::<DictionaryArray<Int8Type>>(),
        ),
        Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(each().map(|row| row.id), 16).unwrap()),
        Arc::new(each().map(|row| row.bytes.as_deref()).collect::<BinaryArray>()),
        Arc::new(
            each()
                .map(|row| row.at)
                .collect::<TimestampMicrosecondArray>()
                .with_timezone("UTC"),
        ),
        Arc::new(
            each()
                .map(|row| row.local)
                .collect::<TimestampMillisecondArray>()
                .with_timezone("America/New_York"),
        ),
        Arc::new(each().map(|row| row.day).collect::<Date32Array>()),
        Arc::new(tags(rows)),
        Arc::new(sources(rows)),
        Arc::new(spans(rows)),
        Arc::new(
            each()
                .map(|row| row.extras.map(|wide| extras(wide).to_string()))
                .collect::<StringArray>(),
        ),
        Arc::new(NullArray::new(rows.len())),
    ];
    RecordBatch::try_new(schema(), columns).unwrap()
}

fn tags(rows: &[Row]) -> ListArray {
    let offsets = OffsetBuffer::from_lengths(rows.iter().map(|row| row.tags.as_ref().map_or(0, Vec::len)));
    let values: StringArray = rows
        .iter()
        .flat_map(|row| row.tags.clone().unwrap_or_default())
        .collect();
    ListArray::new(
        tag_field(),
        offsets,
        Arc::new(values),
        Some(rows.iter().map(|row| row.tags.is_some()).collect()),
    )
}

fn sources(rows: &[Row]) -> StructArray {
    let member = |index: usize| {
        Arc::new(words(
            rows.iter().map(|row| row.source.and_then(|source| source[index])),
        )) as ArrayRef
    };
    StructArray::new(
        source_fields(),
        vec![member(0), member(1)],
        Some(
            rows.iter()
                .map(|row| row.source.is_some())
                .collect::<NullBuffer>(),
        ),
    )
}

fn spans(rows: &[Row]) -> LargeListArray {
    let offsets = OffsetBuffer::from_lengths(rows.iter().map(|row| row.spans.as_ref().map_or(0, Vec::len)));
    let all: Vec<_> = rows
        .iter()
        .flat_map(|row| row.spans.clone().unwrap_or_default())
        .collect();
    let starts = all
        .iter()
        .map(|span| span.0)
        .collect::<TimestampMicrosecondArray>()
        .with_timezone("UTC");
    let values = all.iter().map(|span| span.1).collect::<Float64Array>();
    let structs = StructArray::new(span_fields(), vec![Arc::new(starts), Arc::new(values)], None);
    LargeListArray::new(
        span_field(),
        offsets,
        Arc::new(structs),
        Some(rows.iter().map(|row| row.spans.is_some()).collect()),
    )
}

fn extras(wide: bool) -> Value {
    if wide {
        json!({"a": [1, {"b": null}], "c\"": "x\ny"})
    } else {
        json!([])
    }
}

fn instant(micros: i64) -> Value {
    DateTime::from_timestamp_micros(micros)
        .unwrap()
        .to_rfc3339_opts(SecondsFormat::AutoSi, true)
        .into()
}

fn word(key: Option<usize>) -> Value {
    key.map(|key| WORDS[key]).into()
}

/// The rows as JSON objects.
pub(super) fn expected(rows: &[Row]) -> Vec<Map<String, Value>> {
    rows.iter().map(expected_row).collect()
}

fn expected_row(row: &Row) -> Map<String, Value> {
    let local = |millis| {
        let instant = chrono_tz::America::New_York.timestamp_millis_opt(millis).unwrap();
        instant.to_rfc3339_opts(SecondsFormat::AutoSi, true).into()
    };
    // Two texts can be equally short; which one is right is `ryu`'s to say.
    let single = |value: f32| {
        value
            .is_finite()
            .then(|| ryu::Buffer::new().format(value).parse::<f64>().unwrap())
    };
    let span =
        |(start, value): &(Option<i64>, Option<f64>)| json!({"start": start.map(instant), "value": value});
    let day = |day: i32| {
        (NaiveDate::from_ymd_opt(1970, 1, 1).unwrap() + chrono::TimeDelta::days(i64::from(day))).to_string()
    };
    let hex = |bytes: &Vec<u8>| {
        bytes
            .iter()
            .fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
    };
    let object = json!({
        "flag": row.flag, "small": row.small, "count": row.count, "large": row.large,
        "value": row.value, "single": row.single.and_then(single),
        "ti\"tle": row.title, "note": row.note, "view": row.view, "unit": word(row.unit),
        "narrow": word(row.unit),
        "id": row.id.map(|id| uuid::Uuid::from_bytes(id).to_string()),
        "bytes": row.bytes.as_ref().map(hex),
        "at": row.at.map(instant), "local": row.local.map_or(Value::Null, local), "day": row.day.map(day),
        "tags": row.tags,
        "source": row.source.map(|[name, model]| json!({"name": word(name), "model": word(model)})),
        "spans": row.spans.as_ref().map(|spans| spans.iter().map(span).collect::<Vec<_>>()),
        "extras": row.extras.map(extras), "nothing": null,
    });
    match object {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
