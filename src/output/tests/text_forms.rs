//! JSON and CSV, read back with serde and the `csv` crate.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, Decimal128Array, DurationSecondArray, Float64Array, Int64Array, StringArray, StructArray,
};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::super::SPREAD;
use super::sample::{batches, expected, rows, schema};
use super::{EncodeError, OutputMethod, encoded, text};

/// What a field of CSV says, by the value that it came from. `csv` cannot tell null from empty text, so
/// neither does this.
fn field(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn same_field(read: &str, value: &Value) -> bool {
    match value {
        Value::Number(number) if number.is_f64() => {
            read.parse::<f64>().unwrap().to_bits() == number.as_f64().unwrap().to_bits()
        }
        Value::Array(_) | Value::Object(_) => serde_json::from_str::<Value>(read).unwrap() == *value,
        _ => read == field(value),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn json_forms_read_back((rows, length) in rows()) {
        let (schema, batches, expected) = (schema(), batches(&rows, length), expected(&rows));

        let lines = text(OutputMethod::Ndjson, &schema, &batches);
        let read: Vec<Map<String, Value>> = lines
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        prop_assert_eq!(&read, &expected);
        prop_assert!(lines.is_empty() || lines.ends_with('\n'));

        let table: Vec<Map<String, Value>> =
            serde_json::from_str(&text(OutputMethod::Jstable, &schema, &batches)).unwrap();
        prop_assert_eq!(&table, &expected);

        let columns: Map<String, Value> =
            serde_json::from_str(&text(OutputMethod::Jscolumns, &schema, &batches)).unwrap();
        let names: Vec<&String> = columns.keys().collect();
        prop_assert_eq!(
            names,
            schema
                .fields()
                .iter()
                .map(|field| field.name())
                .collect::<Vec<_>>()
        );
        for (name, values) in &columns {
            let of_rows: Vec<&Value> = expected.iter().map(|row| &row[name]).collect();
            prop_assert_eq!(values.as_array().unwrap().iter().collect::<Vec<_>>(), of_rows);
        }
    }

    #[test]
    fn delimited_forms_read_back((rows, length) in rows()) {
        let (schema, batches, expected) = (schema(), batches(&rows, length), expected(&rows));
        for method in [OutputMethod::Csv, OutputMethod::Quotecsv] {
            let written = text(method, &schema, &batches);
            let mut reader = csv::Reader::from_reader(written.as_bytes());
            let header: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
            prop_assert_eq!(
                &header,
                &schema
                    .fields()
                    .iter()
                    .map(|field| field.name().clone())
                    .collect::<Vec<_>>()
            );
            let records: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
            prop_assert_eq!(records.len(), expected.len());
            for (record, row) in records.iter().zip(&expected) {
                for (read, value) in record.iter().zip(row.values()) {
                    prop_assert!(same_field(read, value), "{method}: {read:?} for {value:?}");
                }
            }
        }
    }
}

fn small() -> (SchemaRef, RecordBatch) {
    let columns: Vec<(&str, ArrayRef)> = vec![
        (
            "title",
            Arc::new(StringArray::from(vec![Some("a,b"), Some(""), None, Some("=1")])),
        ),
        (
            "value",
            Arc::new(Float64Array::from(vec![
                Some(72.0),
                Some(f64::NAN),
                None,
                Some(0.1 + 0.2),
            ])),
        ),
        (
            "count",
            Arc::new(Int64Array::from(vec![Some(-1), None, Some(i64::MAX), Some(0)])),
        ),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, array)| (name, array, true)),
    )
    .unwrap();
    (batch.schema(), batch)
}

#[test]
fn rule_5_6_csv_tells_null_from_empty_text_and_quotes_only_where_needed() {
    let (schema, batch) = small();
    let batches = [batch];
    insta::assert_snapshot!(text(OutputMethod::Csv, &schema, &batches), @r#"
    title,value,count
    "a,b",72.0,-1
    "",,
    ,,9223372036854775807
    =1,0.30000000000000004,0
    "#);
    insta::assert_snapshot!(text(OutputMethod::Quotecsv, &schema, &batches), @r#"
    "title","value","count"
    "a,b","72.0","-1"
    "","",""
    "","","9223372036854775807"
    "=1","0.30000000000000004","0"
    "#);
}

#[test]
fn json_has_no_nan() {
    let (schema, batch) = small();
    insta::assert_snapshot!(text(OutputMethod::Jstable, &schema, &[batch]), @r#"
    [{"title":"a,b","value":72.0,"count":-1},
    {"title":"","value":null,"count":null},
    {"title":null,"value":null,"count":9223372036854775807},
    {"title":"=1","value":0.30000000000000004,"count":0}]
    "#);
}

#[test]
fn no_rows_have_a_text_in_every_form() {
    let (schema, batch) = small();
    for batches in [vec![], vec![batch.slice(0, 0)]] {
        assert_eq!(text(OutputMethod::Ndjson, &schema, &batches), "");
        assert_eq!(text(OutputMethod::Jstable, &schema, &batches), "[]");
        assert_eq!(
            text(OutputMethod::Jscolumns, &schema, &batches),
            r#"{"title":[],"value":[],"count":[]}"#
        );
        assert_eq!(text(OutputMethod::Csv, &schema, &batches), "title,value,count\n");
        assert_eq!(
            text(OutputMethod::Quotecsv, &schema, &batches),
            "\"title\",\"value\",\"count\"\n"
        );
    }
}

#[test]
fn a_single_null_column_has_no_empty_lines() {
    let batch = RecordBatch::try_from_iter([(
        "value",
        Arc::new(Float64Array::from(vec![None, Some(1.5)])) as ArrayRef,
    )])
    .unwrap();
    assert_eq!(
        text(OutputMethod::Csv, &batch.schema(), &[batch]),
        "value\n\"\"\n1.5\n"
    );
}

fn json_field(name: &str, spread: bool) -> Field {
    let mut metadata = vec![("ARROW:extension:name".to_owned(), "arrow.json".to_owned())];
    if spread {
        metadata.push((SPREAD.to_owned(), "true".to_owned()));
    }
    Field::new(name, DataType::Utf8, true).with_metadata(metadata.into_iter().collect())
}

#[test]
fn spread_members_join_the_row_unless_the_name_is_taken() {
    let schema = Arc::new(Schema::new(vec![
        json_field("first", true),
        Field::new("id", DataType::Utf8, true),
        json_field("second", true),
    ]));
    let texts = |values: [Option<&str>; 4]| Arc::new(StringArray::from(values.to_vec())) as ArrayRef;
    let columns = vec![
        texts([
            Some(r#"{"mood":{"good":[1,2]},"id":"x"}"#),
            None,
            Some("{}"),
            Some("[1]"),
        ]),
        texts([Some("1"), Some("2"), None, Some("4")]),
        texts([
            Some(r#"{"mood":1,"first":"y","second":null}"#),
            Some(r#"{"a":"}{"}"#),
            None,
            None,
        ]),
    ];
    let batches = [RecordBatch::try_new(schema.clone(), columns).unwrap()];
    insta::assert_snapshot!(text(OutputMethod::Ndjson, &schema, &batches), @r#"
    {"id":"1","mood":{"good":[1,2]},"first":"y","second":null}
    {"id":"2","a":"}{"}
    {"id":null}
    {"id":"4"}
    "#);
    let columns: Value = serde_json::from_str(&text(OutputMethod::Jscolumns, &schema, &batches)).unwrap();
    assert_eq!(
        columns["first"],
        json!([{"mood": {"good": [1, 2]}, "id": "x"}, null, {}, [1]])
    );
}

#[test]
fn a_member_that_does_not_fit_its_column_stays_under_the_name_of_the_spread_one() {
    let schema = Arc::new(Schema::new(vec![
        Field::new("id", DataType::Utf8, true),
        Field::new("steeps", DataType::Int64, true),
        Field::new("a\"b", DataType::Int64, true),
        json_field("extras", true),
    ]));
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from(vec!["1", "2", "3", "4", "5"])),
        Arc::new(Int64Array::from(vec![None, Some(4), None, None, None])),
        Arc::new(Int64Array::from(vec![None, Some(6), None, None, Some(7)])),
        Arc::new(StringArray::from(vec![
            Some(r#"{"steeps":"three","mood":"x","a\"b":{"c":1}}"#),
            Some(r#"{"steeps":5}"#),
            None,
            Some(r#"{"steeps":null}"#),
            Some(r#"{"steeps":{"minutes":3}}"#),
        ])),
    ];
    let batches = [RecordBatch::try_new(schema.clone(), columns).unwrap()];
    insta::assert_snapshot!(text(OutputMethod::Ndjson, &schema, &batches), @r#"
    {"id":"1","steeps":null,"a\"b":null,"mood":"x","extras":{"steeps":"three","a\"b":{"c":1}}}
    {"id":"2","steeps":4,"a\"b":6}
    {"id":"3","steeps":null,"a\"b":null}
    {"id":"4","steeps":null,"a\"b":null}
    {"id":"5","steeps":null,"a\"b":7,"extras":{"steeps":{"minutes":3}}}
    "#);
}

#[test]
fn rule_8_4_undeclared_members_of_an_object_are_shown_in_it() {
    let x = Arc::new(Field::new("x", DataType::Int64, true));
    let object = DataType::Struct(vec![Arc::clone(&x)].into());
    let schema = Arc::new(Schema::new(vec![
        Field::new("o", object, true),
        Field::new("n", DataType::Int64, true),
        json_field("extras", true),
    ]));
    let objects = StructArray::from(vec![(
        x,
        Arc::new(Int64Array::from(vec![Some(1), None, Some(3), Some(4)])) as ArrayRef,
    )]);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(objects),
        Arc::new(Int64Array::from(vec![1, 2, 3, 4])),
        Arc::new(StringArray::from(vec![
            Some(r#"{"o":{"y":{"z":2}},"mood":"x"}"#),
            Some(r#"{"o":{"y":"a"}}"#),
            None,
            Some(r#"{"n":{"a":1},"o":5}"#),
        ])),
    ];
    let batches = [RecordBatch::try_new(schema.clone(), columns).unwrap()];
    insta::assert_snapshot!(text(OutputMethod::Ndjson, &schema, &batches), @r#"
    {"o":{"x":1,"y":{"z":2}},"n":1,"mood":"x"}
    {"o":{"x":null,"y":"a"},"n":2}
    {"o":{"x":3},"n":3}
    {"o":{"x":4},"n":4}
    "#);
}

#[test]
fn broken_stored_json_ends_a_spread_answer() {
    let schema = Arc::new(Schema::new(vec![json_field("extras", true)]));
    let batch = RecordBatch::try_new(
        schema.clone(),
        vec![Arc::new(StringArray::from(vec!["{\"a\":"])) as ArrayRef],
    )
    .unwrap();
    let error = encoded(OutputMethod::Ndjson, &schema, &[batch]).unwrap_err();
    assert!(matches!(error, EncodeError::BrokenJson { column } if column == "extras"));
}

#[test]
fn an_unknown_zone_is_an_error_before_the_first_byte() {
    let mars = DataType::Timestamp(arrow::datatypes::TimeUnit::Second, Some("Mars/Olympus".into()));
    let schema = Arc::new(Schema::new(vec![Field::new("time", mars, true)]));
    let error = encoded(OutputMethod::Csv, &schema, &[]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "column 'time' is shown in the time zone 'Mars/Olympus', which is not known"
    );
}

#[test]
fn what_a_spreadsheet_would_run_is_text_in_it_where_that_is_asked_for() {
    let batch = RecordBatch::try_from_iter([
        (
            "=title",
            Arc::new(StringArray::from(vec!["=1+1", "@a,b", "plain", "-5"])) as ArrayRef,
        ),
        (
            "value",
            Arc::new(Float64Array::from(vec![-1.5, 2.0, 3.0, -4.0])) as ArrayRef,
        ),
    ])
    .unwrap();
    let batches = [batch];
    assert_eq!(
        text(OutputMethod::DefusedCsv, &batches[0].schema(), &batches),
        "'=title,value\n'=1+1,-1.5\n\"'@a,b\",2.0\nplain,3.0\n'-5,-4.0\n"
    );
    assert_eq!(
        text(OutputMethod::DefusedQuotecsv, &batches[0].schema(), &batches),
        "\"'=title\",\"value\"\n\"'=1+1\",\"-1.5\"\n\"'@a,b\",\"2.0\"\n\"plain\",\"3.0\"\n\"'-5\",\"-4.0\"\n"
    );
    let amount = Decimal128Array::from(vec![-110])
        .with_precision_and_scale(10, 2)
        .unwrap();
    let span = DurationSecondArray::from(vec![-5]);
    let batch = RecordBatch::try_from_iter([
        ("amount", Arc::new(amount) as ArrayRef),
        ("span", Arc::new(span) as ArrayRef),
    ]);
    let batches = [batch.unwrap()];
    assert_eq!(
        text(OutputMethod::DefusedCsv, &batches[0].schema(), &batches),
        "amount,span\n-1.10,-PT5S\n"
    );
    assert_eq!(
        text(OutputMethod::Ndjson, &batches[0].schema(), &batches),
        "{\"amount\":\"-1.10\",\"span\":\"-PT5S\"}\n"
    );
    assert_eq!(OutputMethod::Csv.defused(), OutputMethod::DefusedCsv);
    assert_eq!(OutputMethod::Jstable.defused(), OutputMethod::Jstable);
}
