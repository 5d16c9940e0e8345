//! What becomes of records, rule by rule. Helpers that make a case readable stand here; the cases stand in
//! the files below.

mod accepting;
mod agreement;
mod asked;
mod bad_input;
mod belonging;
mod deleting;
mod of_definitions;
mod outdated;
mod own_extras;
mod rules;
mod sizes;
mod units;
mod wrapped;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use arrow::util::display::{ArrayFormatter, FormatOptions};
use uuid::Uuid;

use super::body::RecordPosition;
use super::compile::CompiledTypes;
use super::context::{DecodeContext, Leave};
use super::decode::{DecodedRows, RecordDecoder};
use crate::model::faults::{Fault, LocPart};
use crate::model::ids::IdSource;
use crate::model::registry::{DataType, Registry};
use crate::model::time::{Instant, parse_instant};

static REGISTRY: LazyLock<Arc<Registry>> = LazyLock::new(|| Arc::new(Registry::builtin().unwrap()));
static COMPILED: LazyLock<CompiledTypes> = LazyLock::new(|| CompiledTypes::new(Arc::clone(&REGISTRY)));

/// Ids 1, 2, 3, ...
#[derive(Debug, Default)]
struct Counting(AtomicU64);

impl IdSource for Counting {
    fn next(&self) -> Uuid {
        Uuid::from_u128(u128::from(self.0.fetch_add(1, Ordering::Relaxed) + 1))
    }
}

fn instant(text: &str) -> Instant {
    parse_instant(text).unwrap()
}

fn context() -> DecodeContext {
    DecodeContext {
        now: instant("2024-06-01T12:00:00Z"),
        ids: Arc::new(Counting::default()),
        source_prefix: "com.almanac".into(),
        text_limit: 1 << 20,
        definition: None,
        value_limits: Arc::default(),
        leave: Leave::default(),
    }
}

fn data_type(name: &str) -> Arc<DataType> {
    Arc::clone(REGISTRY.get(name).unwrap_or_else(|| panic!("no type {name}")))
}

fn decoder_of(data_type: &Arc<DataType>) -> RecordDecoder {
    RecordDecoder::new(COMPILED.get(data_type).unwrap(), context()).unwrap()
}

fn decoder(name: &str) -> RecordDecoder {
    decoder_of(&data_type(name))
}

/// The rows of a body whose lines are all valid.
fn rows(name: &str, lines: &[&str]) -> DecodedRows {
    let mut decoder = decoder(name);
    for (index, line) in lines.iter().enumerate() {
        decoder
            .push(index, line.as_bytes())
            .unwrap_or_else(|faults| panic!("{line}: {faults:?}"));
    }
    decoder.take().unwrap()
}

/// One column of the only row of `line`, as text; empty for null.
fn stored(name: &str, line: &str, column: &str) -> String {
    cell(&rows(name, &[line]), column, 0)
}

fn cell(rows: &DecodedRows, column: &str, row: usize) -> String {
    let column = rows
        .rows
        .column_by_name(column)
        .unwrap_or_else(|| panic!("no column {column}"));
    ArrayFormatter::try_new(column, &FormatOptions::default())
        .unwrap()
        .value(row)
        .to_string()
}

/// All cells as text.
fn table(rows: &DecodedRows) -> Vec<Vec<String>> {
    let options = FormatOptions::default().with_null("null");
    let columns: Vec<_> = rows
        .rows
        .columns()
        .iter()
        .map(|column| ArrayFormatter::try_new(column, &options).unwrap())
        .collect();
    (0..rows.rows.num_rows())
        .map(|row| {
            columns
                .iter()
                .map(|column| column.value(row).to_string())
                .collect()
        })
        .collect()
}

/// What a record is refused for, as line 7 of a body: place and kind.
fn refusals(name: &str, line: &str) -> Vec<(String, &'static str)> {
    let faults = decoder(name).push(7, line.as_bytes()).expect_err(line);
    faults.iter().map(|fault| (place(fault), fault.kind)).collect()
}

fn place(fault: &Fault) -> String {
    let part = |part: &LocPart| match part {
        LocPart::Name(name) => name.clone(),
        LocPart::Index(index) => index.to_string(),
    };
    fault.loc.iter().map(part).collect::<Vec<_>>().join(".")
}

fn refused(name: &str, line: &str, at: &str, kind: &str) {
    let found = refusals(name, line);
    assert!(
        found.iter().any(|(place, found)| place == at && *found == kind),
        "{line}: {found:?}"
    );
}

const SAMPLE: &str = concat!(
    r#"{"id":"0191F0C4-5b1e-7c3a-9d52-6f1a2b3c4d5e","start_date":"2024-05-01T10:00:00Z","#,
    r#""end_date":"2024-05-01T10:00:05Z","value":72.5,"unit":"bpm","source_properties":{"name":"Watch","#,
    r#""sourceBundleIdentifier":"com.example.health","productType":"Watch6,2"},"#,
    r#""device_properties":{"name":"Watch","hardwareVersion":"Watch6,2"}}"#,
);
