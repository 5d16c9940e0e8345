//! Text that is written once for many rows is what would be written for each.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, DictionaryArray, Float64Array, Int64Builder, ListBuilder, StructArray,
    TimestampMicrosecondArray,
};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{Field, Int32Type};
use arrow::record_batch::RecordBatch;
use proptest::prelude::*;

use super::{OutputMethod, text};

/// A row of columns that say few different things.
#[derive(Clone, Debug)]
struct Row {
    start: Option<i64>,
    end: Option<i64>,
    value: f64,
    unit: Option<&'static str>,
    /// What names the source, and its version; there may be none.
    source: Option<(Option<&'static str>, Option<Vec<i64>>)>,
}

fn any_row() -> impl Strategy<Value = Row> {
    let moment = || prop::option::weighted(0.9, prop::sample::select(vec![0, 1_000, 86_400_000_000, -1]));
    let word = || prop::option::weighted(0.9, prop::sample::select(vec!["bpm", "a \"b\", c", ""]));
    let version = prop::sample::select(vec![vec![10, 5, 0], vec![10, 5], vec![], vec![11]]);
    let source = (word(), prop::option::weighted(0.9, version));
    let value = prop::sample::select(vec![60.0, 0.0, -0.0, f64::NAN]);
    (
        moment(),
        moment(),
        value,
        word(),
        prop::option::weighted(0.9, source),
    )
        .prop_map(|(start, end, value, unit, source)| Row {
            start,
            end,
            value,
            unit,
            source,
        })
}

/// Rows each of which says the same as some before it.
fn any_rows() -> impl Strategy<Value = Vec<Row>> {
    let stretch = (any_row(), 1_usize..6, any::<bool>());
    prop::collection::vec(stretch, 1..8).prop_map(|stretches| {
        let rows = stretches.into_iter().flat_map(|(mut row, count, is_instant)| {
            if is_instant {
                row.end = row.start;
            }
            std::iter::repeat_n(row, count)
        });
        rows.collect()
    })
}

fn batch(rows: &[Row]) -> RecordBatch {
    let moments = |of: fn(&Row) -> Option<i64>| {
        let moments: TimestampMicrosecondArray = rows.iter().map(of).collect();
        Arc::new(moments.with_timezone("UTC")) as ArrayRef
    };
    let words = |of: fn(&Row) -> Option<&'static str>| {
        Arc::new(rows.iter().map(of).collect::<DictionaryArray<Int32Type>>()) as ArrayRef
    };
    let mut versions = ListBuilder::new(Int64Builder::new());
    for row in rows {
        let version = row.source.as_ref().and_then(|(_, version)| version.as_ref());
        versions.append_option(version.map(|version| version.iter().map(|number| Some(*number))));
    }
    let members: [(&str, ArrayRef); 2] = [
        (
            "name",
            words(|row| row.source.as_ref().and_then(|(name, _)| *name)),
        ),
        ("version", Arc::new(versions.finish())),
    ];
    let (fields, columns): (Vec<Field>, Vec<ArrayRef>) = members
        .into_iter()
        .map(|(name, column)| (Field::new(name, column.data_type().clone(), true), column))
        .unzip();
    let is_there: NullBuffer = rows.iter().map(|row| row.source.is_some()).collect();
    let values: Float64Array = rows.iter().map(|row| Some(row.value)).collect();
    let columns: [(&str, ArrayRef); 5] = [
        ("start", moments(|row| row.start)),
        ("end", moments(|row| row.end)),
        ("value", Arc::new(values)),
        ("unit", words(|row| row.unit)),
        (
            "source",
            Arc::new(StructArray::new(fields.into(), columns, Some(is_there))),
        ),
    ];
    let columns = columns.into_iter().map(|(name, column)| (name, column, true));
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn rows_are_written_as_they_would_be_alone(rows in any_rows(), length in 1_usize..20) {
        let schema = batch(&rows).schema();
        for method in [OutputMethod::Ndjson, OutputMethod::Csv, OutputMethod::Quotecsv] {
            let alone: Vec<RecordBatch> = rows.chunks(1).map(batch).collect();
            let together: Vec<RecordBatch> = rows.chunks(length).map(batch).collect();
            let whole = batch(&rows);
            let parts = (0..rows.len()).step_by(length);
            let cut: Vec<RecordBatch> =
                parts.map(|from| whole.slice(from, length.min(rows.len() - from))).collect();
            let alone = text(method, &schema, &alone);
            prop_assert_eq!(&text(method, &schema, &together), &alone);
            prop_assert_eq!(&text(method, &schema, &cut), &alone);
        }
    }
}
