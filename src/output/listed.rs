//! Turns rows that are known as JSON, such as those of listings, into a batch that every form can encode.
//!
//! The kind of a column is declared and never guessed from the rows, so a listing has the same columns
//! however few rows it has. A value of another kind than its column's becomes null.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, ListBuilder, StringArray, StringBuilder,
    TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use serde_json::Value;

use crate::model::registry::{json_text, timestamp};
use crate::model::time::parse_instant;

/// The kind of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    Text,
    Texts,
    Time,
    Flag,
    Whole,
    Number,
    /// Any value, as JSON text.
    Json,
}

/// A column of a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedColumn {
    pub name: &'static str,
    pub kind: ColumnKind,
}

impl ListedColumn {
    #[must_use]
    pub const fn new(name: &'static str, kind: ColumnKind) -> Self {
        Self { name, kind }
    }

    fn field(&self) -> Field {
        let of = |data_type| Field::new(self.name, data_type, true);
        match self.kind {
            ColumnKind::Text => of(DataType::Utf8),
            ColumnKind::Texts => of(DataType::new_list(DataType::Utf8, true)),
            ColumnKind::Time => of(timestamp()),
            ColumnKind::Flag => of(DataType::Boolean),
            ColumnKind::Whole => of(DataType::Int64),
            ColumnKind::Number => of(DataType::Float64),
            ColumnKind::Json => json_text(self.name),
        }
    }

    fn array(&self, rows: &[Value]) -> ArrayRef {
        let values = rows
            .iter()
            .map(|row| row.get(self.name).filter(|value| !value.is_null()));
        match self.kind {
            ColumnKind::Text => Arc::new(values.map(|value| value?.as_str()).collect::<StringArray>()),
            ColumnKind::Texts => Arc::new(texts(values)),
            ColumnKind::Time => {
                let moment = |value: Option<&Value>| Some(parse_instant(value?.as_str()?).ok()?.micros());
                let moments: TimestampMicrosecondArray = values.map(moment).collect();
                Arc::new(moments.with_timezone("UTC"))
            }
            ColumnKind::Flag => Arc::new(values.map(|value| value?.as_bool()).collect::<BooleanArray>()),
            ColumnKind::Whole => Arc::new(values.map(|value| value?.as_i64()).collect::<Int64Array>()),
            ColumnKind::Number => Arc::new(values.map(|value| value?.as_f64()).collect::<Float64Array>()),
            ColumnKind::Json => {
                let written = |value: Option<&Value>| value.map(ToString::to_string);
                Arc::new(values.map(written).collect::<StringArray>())
            }
        }
    }
}

/// The columns of one list, then those of another: for a listing that extends another.
#[must_use]
pub const fn joined<const FIRST: usize, const SECOND: usize, const ALL: usize>(
    first: &[ListedColumn; FIRST],
    second: &[ListedColumn; SECOND],
) -> [ListedColumn; ALL] {
    const {
        assert!(
            FIRST + SECOND == ALL,
            "a list of columns has another length than its parts"
        );
    };
    let mut all = [ListedColumn::new("", ColumnKind::Text); ALL];
    let mut place = 0;
    while place < ALL {
        all[place] = if place < FIRST {
            first[place]
        } else {
            second[place - FIRST]
        };
        place += 1;
    }
    all
}

fn texts<'a>(values: impl Iterator<Item = Option<&'a Value>>) -> arrow::array::ListArray {
    let mut lists = ListBuilder::new(StringBuilder::new());
    for value in values {
        let items = value.and_then(Value::as_array);
        for item in items.into_iter().flatten() {
            lists.values().append_option(item.as_str());
        }
        lists.append(items.is_some());
    }
    lists.finish()
}

/// `rows`, each a JSON object, as a batch of these columns.
pub fn listed(columns: &[ListedColumn], rows: &[Value]) -> Result<RecordBatch, ArrowError> {
    let fields: Vec<Field> = columns.iter().map(ListedColumn::field).collect();
    let arrays = columns.iter().map(|column| column.array(rows)).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
}

#[cfg(test)]
mod tests {
    use arrow::array::{Array as _, AsArray as _};
    use arrow::datatypes::{Int64Type, TimestampMicrosecondType};
    use serde_json::json;

    use super::*;

    const COLUMNS: [ListedColumn; 7] = [
        ListedColumn::new("text", ColumnKind::Text),
        ListedColumn::new("texts", ColumnKind::Texts),
        ListedColumn::new("time", ColumnKind::Time),
        ListedColumn::new("flag", ColumnKind::Flag),
        ListedColumn::new("whole", ColumnKind::Whole),
        ListedColumn::new("number", ColumnKind::Number),
        ListedColumn::new("json", ColumnKind::Json),
    ];

    #[test]
    fn each_column_holds_what_was_declared_and_nothing_else() {
        let rows = [
            json!({"text": "a", "texts": ["b", "c"], "time": "1970-01-01T00:00:01Z", "flag": true, "whole": 7,
                "number": 0.5, "json": {"d": [1]}}),
            json!({"text": 1, "texts": "b", "time": "soon", "flag": "true", "whole": 0.5, "json": null}),
        ];
        let batch = listed(&COLUMNS, &rows).unwrap();
        assert_eq!(batch.num_rows(), 2);
        assert_eq!(batch.column(0).as_string::<i32>().value(0), "a");
        assert_eq!(batch.column(1).as_list::<i32>().value(0).len(), 2);
        let times = batch.column(2).as_primitive::<TimestampMicrosecondType>();
        assert_eq!(times.value(0), 1_000_000);
        assert_eq!(batch.column(4).as_primitive::<Int64Type>().value(0), 7);
        assert_eq!(batch.column(6).as_string::<i32>().value(0), r#"{"d":[1]}"#);
        for column in batch.columns() {
            assert!(column.is_null(1), "{column:?}");
        }
    }

    #[test]
    fn joined_lists_are_one_behind_the_other() {
        let [first, second, rest @ ..] = COLUMNS;
        let all: [ListedColumn; 7] = joined(&[first, second], &rest);
        assert_eq!(all, COLUMNS);
    }

    #[test]
    fn a_listing_of_nothing_has_its_columns() {
        let batch = listed(&COLUMNS, &[]).unwrap();
        assert_eq!((batch.num_rows(), batch.num_columns()), (0, COLUMNS.len()));
    }
}
