//! Answers in every output method, read back with other code than wrote them.

use std::io::Cursor;

use arrow::array::{Array, RecordBatch, StructArray};
use arrow::datatypes::{DataType, Schema, SchemaRef};
use arrow::ipc::reader::{FileReader, StreamReader};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use bytes::Bytes;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Map, Value, json};

pub(crate) const METHODS: [&str; 8] = [
    "ndjson",
    "jstable",
    "jscolumns",
    "arrow",
    "arrowraw",
    "parquet",
    "csv",
    "quotecsv",
];

/// A table as some reader sees it: rows of JSON, text alone for the CSV methods.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub columns: Vec<String>,
    pub rows: Vec<Value>,
    /// The types, where the method carries any.
    pub schema: Option<SchemaRef>,
}

impl Table {
    #[track_caller]
    pub(crate) fn read(method: &str, body: &Bytes) -> Self {
        match method {
            "ndjson" => Self::of_rows(text(body).lines().map(parse).collect()),
            "jstable" => Self::of_rows(parse(text(body)).as_array().expect("an array").clone()),
            "jscolumns" => Self::of_columns(parse(text(body)).as_object().expect("an object")),
            "arrow" => {
                let reader = FileReader::try_new(Cursor::new(body.clone()), None).expect("an Arrow file");
                let schema = reader.schema();
                Self::of_batches(schema, reader.map(|batch| batch.expect("a batch")))
            }
            "arrowraw" => {
                let reader = StreamReader::try_new(Cursor::new(body.clone()), None).expect("an Arrow stream");
                let schema = reader.schema();
                Self::of_batches(schema, reader.map(|batch| batch.expect("a batch")))
            }
            "parquet" => {
                let builder = ParquetRecordBatchReaderBuilder::try_new(body.clone()).expect("a Parquet file");
                let schema = builder.schema().clone();
                Self::of_batches(
                    schema,
                    builder
                        .build()
                        .expect("a reader")
                        .map(|batch| batch.expect("a batch")),
                )
            }
            "csv" | "quotecsv" => Self::of_csv(body),
            other => panic!("no output method {other}"),
        }
    }

    fn of_rows(rows: Vec<Value>) -> Self {
        let columns = rows.first().map_or_else(Vec::new, |row| {
            row.as_object().expect("a row").keys().cloned().collect()
        });
        Self {
            columns,
            rows,
            schema: None,
        }
    }

    fn of_columns(columns: &Map<String, Value>) -> Self {
        let lengths: Vec<usize> = columns
            .values()
            .map(|values| values.as_array().expect("a column").len())
            .collect();
        let length = lengths.first().copied().unwrap_or(0);
        assert!(
            lengths.iter().all(|other| *other == length),
            "columns of the lengths {lengths:?}"
        );
        let row = |place: usize| {
            columns
                .iter()
                .map(|(name, values)| (name.clone(), values[place].clone()))
                .collect::<Map<_, _>>()
        };
        Self {
            columns: columns.keys().cloned().collect(),
            rows: (0..length).map(|place| Value::Object(row(place))).collect(),
            schema: None,
        }
    }

    fn of_csv(body: &Bytes) -> Self {
        let mut reader = csv::ReaderBuilder::new().from_reader(Cursor::new(body.clone()));
        let columns: Vec<String> = reader
            .headers()
            .expect("a header")
            .iter()
            .map(str::to_owned)
            .collect();
        let row = |record: csv::StringRecord| {
            columns
                .iter()
                .cloned()
                .zip(record.iter().map(|field| json!(field)))
                .collect::<Map<_, _>>()
        };
        let rows = reader
            .records()
            .map(|record| Value::Object(row(record.expect("a record of as many fields as the header"))))
            .collect();
        Self {
            columns,
            rows,
            schema: None,
        }
    }

    fn of_batches(schema: SchemaRef, batches: impl Iterator<Item = RecordBatch>) -> Self {
        let mut rows = Vec::new();
        for batch in batches {
            let batch = StructArray::from(batch);
            rows.extend((0..batch.len()).map(|row| cell(&batch, row)));
        }
        Self {
            columns: names(&schema),
            rows,
            schema: Some(schema),
        }
    }

    /// The stored type of a column.
    #[track_caller]
    pub(crate) fn data_type(&self, column: &str) -> DataType {
        let schema = self.schema.as_ref().expect("a method that carries types");
        match schema.field_with_name(column).expect("the column").data_type() {
            DataType::Dictionary(_, value) => value.as_ref().clone(),
            plain => plain.clone(),
        }
    }
}

fn names(schema: &Schema) -> Vec<String> {
    schema.fields().iter().map(|field| field.name().clone()).collect()
}

fn text(body: &Bytes) -> &str {
    std::str::from_utf8(body).expect("text")
}

fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text}"))
}

/// One value as JSON would show it: numbers and booleans as such, structs as objects, lists as arrays,
/// everything else as text.
fn cell(array: &dyn Array, row: usize) -> Value {
    if array.is_null(row) {
        return Value::Null;
    }
    if let Some(list) = array.as_any().downcast_ref::<arrow::array::ListArray>() {
        let values = list.value(row);
        return Value::Array((0..values.len()).map(|place| cell(&values, place)).collect());
    }
    if let Some(structure) = array.as_any().downcast_ref::<StructArray>() {
        let fields = structure.fields().iter().zip(structure.columns());
        return Value::Object(
            fields
                .map(|(field, column)| (field.name().clone(), cell(column, row)))
                .collect(),
        );
    }
    let shown = ArrayFormatter::try_new(array, &FormatOptions::default())
        .expect("a formatter")
        .value(row)
        .to_string();
    match array.data_type() {
        DataType::Boolean => json!(shown == "true"),
        data_type if data_type.is_integer() => json!(shown.parse::<i64>().expect("an integer")),
        data_type if data_type.is_floating() => json!(shown.parse::<f64>().expect("a number")),
        _ => json!(shown),
    }
}
