//! Decodes JSON records of one data type to Arrow rows in the layout in which they are stored.
//!
//! A decoder lives as long as one request; the caller takes rows out as often as memory requires. Knows
//! types, layouts and JSON; knows nothing of requests, of people, or of what is stored already, so two rows
//! may carry the same id.

mod definition;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, DictionaryArray, FixedSizeBinaryArray, Int8Array, Int32Array, StringArray,
    TimestampMicrosecondArray,
};
use arrow::buffer::Buffer;
use arrow::datatypes::DataType as ColumnType;
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use uuid::Uuid;

use super::body::RecordPosition;
use super::bounds::{self, TooMuch};
use super::coerce::coerced;
use super::columns::{Cell, Column, UnfillableColumn};
use super::compile::CompiledType;
use super::context::DecodeContext;
use super::general::Repeatable;
use super::memo::{Memo, NOTHING, RepeatedValue};
use super::naming::{WritersNameOutcome, named, with_source};
pub use super::origins::DecodedSource;
use super::origins::Origins;
use super::row::{Row, SourceMark};
use super::spread_extras::spread;
use super::{fast, general};
use crate::model::faults::Fault;
use crate::model::ids::RecordId;
use crate::model::registry::DataType;

/// Why rows could not be handed out although every record was valid. Not the caller's fault.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    #[error("decoded rows do not fit the layout of {data_type}: {error}")]
    Layout { data_type: String, error: ArrowError },
    #[error(transparent)]
    Column(#[from] UnfillableColumn),
    #[error("a tombstone was to be stored as a record")]
    Tombstone,
}

/// Rows of one type, in the order of their lines.
#[derive(Debug)]
pub struct DecodedRows {
    pub data_type: Arc<DataType>,
    /// In the schema `Layout.storage`; not sorted, and one id may come twice.
    pub rows: RecordBatch,
    /// For each row, whether the caller chose its id. An id made here is new, so no predecessor has to be
    /// looked up.
    pub given: Vec<bool>,
    /// The rows, in order, whose record came without a time. They have the time of acceptance, which is right
    /// for new records only.
    pub undated: Vec<usize>,
    /// The sources that the rows name, each once.
    pub sources: Vec<DecodedSource>,
    /// The files that the rows name as their origin, each once.
    pub files: BTreeSet<Uuid>,
}

/// The fault of a record that would cost too much.
pub(super) fn too_much(place: RecordPosition, reason: TooMuch) -> Fault {
    Fault::new(place.loc(), "too_long", reason.to_string())
}

/// Decodes records of one type.
pub struct RecordDecoder {
    compiled: Arc<CompiledType>,
    context: DecodeContext,
    ids: Vec<u8>,
    given: Vec<bool>,
    undated: Vec<usize>,
    starts: Vec<i64>,
    ends: Vec<i64>,
    columns: Vec<Column>,
    extras: Column,
    /// For each row, its place in `sources`.
    source_places: Vec<usize>,
    source_classes: Vec<i8>,
    sources: Origins,
    memo: Memo,
    bytes: usize,
    /// A cell that its column refused. It is reported when rows are taken, because no record is to blame.
    broken: Option<ArrowError>,
}

impl RecordDecoder {
    pub fn new(compiled: Arc<CompiledType>, context: DecodeContext) -> Result<Self, DecodeError> {
        let columns = compiled
            .plan
            .columns
            .iter()
            .map(|column| Column::new(column.data_type()))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            memo: Memo::new(columns.len()),
            columns,
            extras: Column::new(&ColumnType::Utf8)?,
            source_places: Vec::new(),
            source_classes: Vec::new(),
            ids: Vec::new(),
            given: Vec::new(),
            undated: Vec::new(),
            starts: Vec::new(),
            ends: Vec::new(),
            sources: Origins::default(),
            bytes: 0,
            broken: None,
            compiled,
            context,
        })
    }

    /// Decodes one record. A refused record leaves nothing behind, and decoding may continue, to find the
    /// faults of other records too.
    pub fn push(&mut self, place: impl Into<RecordPosition>, json: &[u8]) -> Result<(), Vec<Fault>> {
        let place = place.into();
        bounds::admit(json, self.compiled.checks).map_err(|reason| vec![too_much(place, reason)])?;
        let named = match &self.context.definition {
            Some(source) => with_source(json, source, |other| self.context.definition_of(other)),
            None => Cow::Borrowed(json),
        };
        let Some(epoch) = self.context.leave.coercion else {
            return self.push_record(place, &named);
        };
        let (record, sent) = spread(named, &self.compiled.plan);
        let record = coerced(record, &self.compiled.plan, epoch);
        if self.push_fast(&record) {
            return Ok(());
        }
        let pushed = self.push_spread(place, &record);
        pushed.map_err(|faults| sent.placed(place, faults))
    }

    fn push_record(&mut self, place: RecordPosition, json: &[u8]) -> Result<(), Vec<Fault>> {
        if self.push_fast(json) {
            return Ok(());
        }
        let (json, sent) = spread(Cow::Borrowed(json), &self.compiled.plan);
        let pushed = self.push_spread(place, &json);
        pushed.map_err(|faults| sent.placed(place, faults))
    }

    /// Decodes a record that is too unusual for the fast way, and whose extras were looked through.
    fn push_spread(&mut self, place: RecordPosition, json: &[u8]) -> Result<(), Vec<Fault>> {
        match named(json, &self.compiled.plan) {
            WritersNameOutcome::AsItIs => self.push_as_it_is(place, json, None),
            WritersNameOutcome::TooLong(member) => self.push_as_it_is(place, json, Some(member)),
            WritersNameOutcome::Renamed(renamed) if self.push_fast(&renamed) => Ok(()),
            WritersNameOutcome::Renamed(renamed) => self.push_as_it_is(place, &renamed, None),
        }
    }

    /// Whether the fast way could decode the record.
    fn push_fast(&mut self, json: &[u8]) -> bool {
        let Some(row) = self.decoded_fast(json) else {
            return false;
        };
        if self.has_other_id(&row) {
            return false;
        }
        self.append(row, json);
        true
    }

    fn decoded_fast<'a>(&mut self, json: &'a [u8]) -> Option<Row<'a>> {
        // Values that a definition restricts are rare, and take the complete way.
        if self.context.value_limits.is_empty() {
            let Self { memo, sources, .. } = self;
            fast::decode(&self.compiled, &self.context, memo, sources, json)
        } else {
            None
        }
    }

    /// How many rows are waiting to be taken.
    #[must_use]
    pub fn len(&self) -> usize {
        self.given.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.given.is_empty()
    }

    /// About how many bytes the waiting rows take. That is far less than their JSON, most of which repeats
    /// their source and device.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// The id of the record decoded last, if the caller chose it.
    #[must_use]
    pub fn last_given_id(&self) -> Option<RecordId> {
        self.given.last().copied().filter(|given| *given)?;
        RecordId::from_slice(self.ids.last_chunk::<16>()?)
    }

    /// Takes the rows decoded since the last call; the decoder is empty afterwards.
    pub fn take(&mut self) -> Result<DecodedRows, DecodeError> {
        let files = self.files();
        let rows = self.batch().map_err(|error| DecodeError::Layout {
            data_type: self.compiled.data_type.id.to_string(),
            error,
        })?;
        self.memo.forget_rows();
        self.bytes = 0;
        Ok(DecodedRows {
            data_type: Arc::clone(&self.compiled.data_type),
            rows,
            given: std::mem::take(&mut self.given),
            undated: std::mem::take(&mut self.undated),
            sources: self.sources.take(),
            files,
        })
    }

    /// The files that the waiting rows name in their sources.
    fn files(&self) -> BTreeSet<Uuid> {
        let [_, _, sources] = self.compiled.plan.source_columns;
        let sources = sources.and_then(|column| self.columns.get(column));
        sources
            .into_iter()
            .flat_map(Column::listed_texts)
            .filter_map(|source| self.context.file_of(source))
            .collect()
    }

    #[cfg(test)]
    pub(super) fn takes_the_fast_way(&mut self, json: &[u8]) -> bool {
        self.decoded_fast(json).is_some()
    }

    /// Decodes one record the complete way, whatever it looks like.
    #[cfg(test)]
    pub(super) fn push_completely(&mut self, place: RecordPosition, json: &[u8]) -> Result<(), Vec<Fault>> {
        let (json, sent) = spread(Cow::Borrowed(json), &self.compiled.plan);
        let pushed = match named(&json, &self.compiled.plan) {
            WritersNameOutcome::AsItIs => self.push_as_it_is(place, &json, None),
            WritersNameOutcome::TooLong(member) => self.push_as_it_is(place, &json, Some(member)),
            WritersNameOutcome::Renamed(renamed) => self.push_as_it_is(place, &renamed, None),
        };
        pushed.map_err(|faults| sent.placed(place, faults))
    }

    /// Decodes, the complete way, one record that names its source where its type has it, or in the member
    /// `too_long` by a name that is too long for one.
    fn push_as_it_is(
        &mut self,
        place: RecordPosition,
        json: &[u8],
        too_long: Option<&'static str>,
    ) -> Result<(), Vec<Fault>> {
        let json = self.with_one_definition(json);
        let record = general::decode(&self.compiled, &self.context, place, &json, too_long)?;
        let mut cells: Vec<_> = record
            .cells
            .into_iter()
            .enumerate()
            .filter(|(_, cell)| *cell != Cell::Null)
            .collect();
        for Repeatable { column, raw, .. } in &record.repeatable {
            let cell = cells.iter_mut().find(|(position, _)| position == column);
            if let (Some(value), Some((_, cell))) = (self.memo.value(*column, raw.as_bytes()), cell) {
                *cell = Cell::Known(value.number);
            }
        }
        let source = SourceMark {
            number: self.sources.number(record.source.key, record.source.name),
            class: record.source.class,
            source_id: record.source.source_id.map(Into::into),
        };
        let set: Vec<usize> = cells.iter().map(|(column, _)| *column).collect();
        let row = Row {
            id: record.id,
            start: record.start,
            end: record.end,
            undated: record.undated,
            cells,
            source: source.clone(),
            extras: record.extras,
        };
        self.append(row, &json);
        let number_in = |column: usize| {
            self.columns
                .get(column)
                .and_then(Column::last_number)
                .filter(|_| set.contains(&column))
        };
        for Repeatable { column, raw, rest } in record.repeatable {
            if let Some(number) = number_in(column) {
                let rest = rest.map(Into::into);
                self.memo
                    .learn_value(column, raw.as_bytes(), RepeatedValue { number, rest });
            }
        }
        let columns = self.compiled.plan.source_columns;
        // What stands in a column that keeps no numbers is not part of the key, and would be everybody's
        // source.
        let is_numbered = |column: &usize| !set.contains(column) || number_in(*column).is_some();
        if record.source_is_plain && columns.iter().flatten().all(is_numbered) {
            let [properties, device, sources] =
                columns.map(|column| column.and_then(number_in).unwrap_or(NOTHING));
            let key = [properties, device, sources, record.source.marks];
            self.memo.learn_source(key, source);
        }
        Ok(())
    }

    /// Appends the row of the record `json`.
    fn append(&mut self, mut row: Row<'_>, json: &[u8]) {
        let number = self.given.len();
        let chosen = row.id.or_else(|| self.natural_id(&row, json));
        self.given.push(chosen.is_some());
        if row.undated {
            self.undated.push(number);
        }
        let id = chosen.unwrap_or_else(|| RecordId(self.context.ids.next()));
        self.ids.extend_from_slice(id.as_bytes());
        self.starts.push(row.start.micros());
        self.ends.push(row.end.micros());
        self.source_places.push(row.source.number);
        self.source_classes.push(row.source.class);
        if let Some(column) = self.compiled.plan.source_id {
            if let Some((_, said)) = row.cells.iter_mut().find(|(given, _)| *given == column) {
                self.spell_definition(said);
            } else if let Some(source_id) = &row.source.source_id {
                row.cells.push((column, Cell::Text(source_id.to_string().into())));
            }
        }
        self.leave_to_definition(&mut row.cells);
        let (mut bytes, mut refused) = (self.compiled.row_bytes, None);
        let mut count = |set: Result<usize, ArrowError>| match set {
            Ok(more) => bytes += more,
            Err(error) => refused = Some(error),
        };
        for (column, cell) in &mut row.cells {
            if let Some(column) = self.columns.get_mut(*column) {
                count(column.set(number, cell));
            }
        }
        if let Some(extras) = row.extras {
            count(self.extras.set(number, &mut Cell::Text(extras.into())));
        }
        self.bytes += bytes;
        if let Some(error) = refused {
            self.broken.get_or_insert(error);
        }
        self.memo.spare = fast::empty(row.cells);
    }

    fn batch(&mut self) -> Result<RecordBatch, ArrowError> {
        if let Some(error) = self.broken.take() {
            return Err(error);
        }
        let rows = self.given.len();
        let storage = &self.compiled.data_type.layout.storage;
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(storage.fields().len());
        let ids = Buffer::from_vec(std::mem::take(&mut self.ids));
        columns.push(Arc::new(FixedSizeBinaryArray::try_new(16, ids, None)?));
        for micros in [std::mem::take(&mut self.starts), std::mem::take(&mut self.ends)] {
            columns.push(Arc::new(
                TimestampMicrosecondArray::from(micros).with_timezone("UTC"),
            ));
        }
        // Building the absent columns of a single record would cost more than all the rest of it.
        let finished = |column: &mut Column, null: &ArrayRef| {
            if rows == 1 && column.is_unset() {
                Ok(Arc::clone(null))
            } else {
                column.finish(rows)
            }
        };
        for (column, null) in self.columns.iter_mut().zip(&self.compiled.null_row) {
            columns.push(finished(column, null)?);
        }
        let places: Vec<i32> = std::mem::take(&mut self.source_places)
            .into_iter()
            .map(|place| place as i32)
            .collect();
        let keys = StringArray::from_iter_values(self.sources.keys());
        columns.push(Arc::new(DictionaryArray::try_new(
            Int32Array::from(places),
            Arc::new(keys),
        )?));
        columns.push(Arc::new(Int8Array::from(std::mem::take(
            &mut self.source_classes,
        ))));
        columns.push(finished(&mut self.extras, &self.compiled.null_extras)?);
        RecordBatch::try_new(Arc::clone(storage), columns)
    }
}
