//! Reads stored rows as samples of sleep.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::types::{Float64Type, Int32Type};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::common::{DataFusionError, Result, exec_datafusion_err, internal_datafusion_err};

use crate::model::columns::{END, ID, SOURCE, START, VALUE};
use crate::model::registry::dictionary_text;
use crate::query::ground::row_times::micros_of;
use crate::query::sweep::Contender;

use super::stages::StageTable;

/// A source, as the number that a [`SampleReader`] gave it.
pub(super) type SourceNumber = u32;

/// The stage that one source recorded for one span of time. Never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sample {
    /// Microseconds since 1970, as recorded.
    pub start: i64,
    pub end: i64,
    pub stage: i64,
    /// The priority of the stage.
    pub priority: i64,
    pub id: u128,
    pub source: SourceNumber,
}

impl Contender for Sample {
    type Rank = (i64, i64, Reverse<i64>, i64, u128);

    fn start(&self) -> i64 {
        self.start
    }

    fn end(&self) -> i64 {
        self.end
    }

    fn rank(&self) -> Self::Rank {
        (self.priority, self.start, Reverse(self.end), self.stage, self.id)
    }
}

/// Reads batches of stored rows.
#[derive(Debug)]
pub(super) struct SampleReader {
    stages: Arc<StageTable>,
    sources: Option<Sources>,
}

impl SampleReader {
    #[must_use]
    pub(super) fn new(stages: Arc<StageTable>, with_sources: bool) -> Self {
        Self {
            stages,
            sources: with_sources.then(Sources::default),
        }
    }

    /// Reads the samples of a batch. Samples without duration concern no moment and are left out.
    pub(super) fn read(&mut self, rows: &RecordBatch, mut each: impl FnMut(Sample)) -> Result<()> {
        let spans = micros_of(rows, START)?.iter().zip(micros_of(rows, END)?);
        let values = column(rows, VALUE)?.as_primitive_opt::<Float64Type>();
        let ids = column(rows, ID)?.as_fixed_size_binary_opt();
        let (Some(values), Some(ids)) = (values, ids) else {
            return Err(internal_datafusion_err!(
                "samples of sleep are stored in other columns"
            ));
        };
        let sources = match &mut self.sources {
            Some(sources) => sources.numbers(column(rows, SOURCE)?)?,
            None => Vec::new(),
        };
        for (row, ((&start, &end), &value)) in spans.zip(values.values()).enumerate() {
            if end <= start {
                continue;
            }
            let stage = value as i64;
            let known = self
                .stages
                .get(stage)
                .filter(|_| value.fract() == 0.0 && values.is_valid(row));
            let Some(known) = known else {
                return Err(exec_datafusion_err!(
                    "a stored sample of sleep has a stage that is not in the table of stages: {value}"
                ));
            };
            each(Sample {
                start,
                end,
                stage,
                priority: known.priority,
                id: ids.value(row).try_into().map_or(0, u128::from_be_bytes),
                source: sources.get(row).copied().unwrap_or_default(),
            });
        }
        Ok(())
    }

    /// The stored key of a source.
    #[must_use]
    pub(super) fn source(&self, number: SourceNumber) -> &str {
        let sources = self.sources.as_ref();
        sources
            .and_then(|sources| sources.keys.get(number as usize))
            .map_or("", |key| key.as_ref())
    }
}

fn column<'a>(rows: &'a RecordBatch, name: &str) -> Result<&'a ArrayRef> {
    rows.column_by_name(name)
        .ok_or_else(|| internal_datafusion_err!("samples of sleep were read without {name}"))
}

/// The sources seen so far, numbered. There are a handful in a lifetime.
#[derive(Debug, Default)]
struct Sources {
    keys: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, SourceNumber>,
}

impl Sources {
    /// The number of each row's source.
    fn numbers(&mut self, column: &ArrayRef) -> Result<Vec<SourceNumber>, DataFusionError> {
        let column = cast(column, &dictionary_text())?;
        let dictionary = column.as_dictionary::<Int32Type>();
        let values = dictionary.values().as_string::<i32>();
        let known: Vec<SourceNumber> = values
            .iter()
            .map(|key| self.number(key.unwrap_or_default()))
            .collect();
        let nameless = self.number("");
        let number = |key: Option<i32>| {
            key.and_then(|key| known.get(key as usize))
                .copied()
                .unwrap_or(nameless)
        };
        Ok(dictionary.keys().iter().map(number).collect())
    }

    fn number(&mut self, key: &str) -> SourceNumber {
        if let Some(number) = self.numbers.get(key) {
            return *number;
        }
        let key: Arc<str> = Arc::from(key);
        let number = self.keys.len() as SourceNumber;
        self.keys.push(Arc::clone(&key));
        self.numbers.insert(key, number);
        number
    }
}
