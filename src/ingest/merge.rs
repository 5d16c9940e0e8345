//! Merges accepted changes into one partition: which rows are added, which stored rows die, and what is
//! counted.
//!
//! Identity is decided here, on the write side: the same id with the same content changes nothing, with other
//! content it replaces, and a tombstone deletes what was accepted before it. Pure: it receives the stored
//! rows as input; knows neither the catalogue nor files.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, BooleanArray, FixedSizeBinaryArray, RecordBatch, UInt32Array};
use arrow::compute::{concat_batches, filter_record_batch, take_record_batch};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::row::{Row, RowConverter, Rows, SortField};

use super::dating::KnownTimes;
use super::stored::StoredRows;
use crate::catalog::records::Effect;
use crate::model::ids::{PieceId, RecordId};

/// The columns that have a value in every row come first: id, start and end.
const KEYS: usize = 3;

/// A change asked of a partition, in the order of acceptance.
#[derive(Clone, Debug)]
pub enum Change {
    /// Rows in the layout's storage schema; `given[row]` means that the caller chose the row's id, so that it
    /// may replace another. The rows `undated`, in order, came without a time, and take that of the rows they
    /// replace.
    Put {
        rows: RecordBatch,
        given: Arc<[bool]>,
        undated: Arc<[usize]>,
    },
    Delete {
        records: Vec<RecordId>,
    },
}

impl Change {
    /// Bytes of the rows put or the ids deleted.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::Put { rows, .. } => rows.get_array_memory_size(),
            Self::Delete { records } => size_of_val(records.as_slice()),
        }
    }
}

/// Changes of one partition in the order of acceptance, each with the request that it belongs to.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    pub changes: Vec<Change>,
    pub requests: Vec<usize>,
}

impl Asked {
    pub fn extend(&mut self, request: usize, changes: impl IntoIterator<Item = Change>) {
        self.changes.extend(changes);
        self.requests.resize(self.changes.len(), request);
    }
}

/// The result of the changes.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Rows to add, in no particular order; `None` when there are none.
    pub add: Option<RecordBatch>,
    pub dead: Vec<(PieceId, RecordId)>,
    pub records_delta: i64,
    /// Rows put or deleted; changes without effect are not counted.
    pub updates: i64,
    /// What each request did, by its number.
    pub effects: Vec<Effect>,
}

/// The ids whose stored rows [`merge`] needs.
#[must_use]
pub fn ids_to_look_up(changes: &[Change]) -> Vec<RecordId> {
    let mut ids = Vec::new();
    for change in changes {
        match change {
            Change::Put { rows, given, .. } => {
                let Some(column) = id_column(rows) else { continue };
                ids.extend(
                    given
                        .iter()
                        .zip(column.iter())
                        .filter(|(given, _)| **given)
                        .filter_map(|(_, bytes)| RecordId::from_slice(bytes?)),
                );
            }
            Change::Delete { records } => ids.extend(records),
        }
    }
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// Where the newest version of an id is, after the changes applied so far.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Latest {
    /// Row `row` of put number `put`.
    Pending {
        put: usize,
        row: usize,
    },
    Stored,
    #[default]
    Gone,
}

/// The state of an id.
#[derive(Clone, Copy, Default)]
struct Version {
    now: Latest,
    /// The request that named it last, and the state before that request.
    request: Option<usize>,
    before: Latest,
}

impl Version {
    const STORED: Self = Self {
        now: Latest::Stored,
        request: None,
        before: Latest::Stored,
    };

    /// Replaces the current state with `now`, and counts what the request did to the record as a whole.
    fn becomes(&mut self, now: Latest, request: usize, effect: &mut Effect) {
        if self.request == Some(request) {
            if let Some(count) = self.counted_in(effect) {
                *count -= 1;
            }
        } else {
            self.request = Some(request);
            self.before = self.now;
        }
        self.now = now;
        if let Some(count) = self.counted_in(effect) {
            *count += 1;
        }
    }

    fn counted_in<'e>(&self, effect: &'e mut Effect) -> Option<&'e mut u64> {
        match (self.before, self.now) {
            (Latest::Gone, Latest::Gone) => None,
            (Latest::Gone, _) => Some(&mut effect.stored),
            (_, Latest::Gone) => Some(&mut effect.deleted),
            (before, now) if before == now => Some(&mut effect.unchanged),
            _ => Some(&mut effect.replaced),
        }
    }
}

/// Applies what is asked, in order, to a partition in which `stored` are the live rows of [`ids_to_look_up`].
pub fn merge(schema: &SchemaRef, asked: &Asked, stored: &StoredRows) -> Result<Outcome, ArrowError> {
    let mut content = Wanted { schema, made: None };
    let mut latest: HashMap<RecordId, Version> = stored.iter().map(|(id, _)| (id, Version::STORED)).collect();
    let requests = asked.requests.iter().max().map_or(0, |last| last + 1);
    let mut outcome = Outcome {
        effects: vec![Effect::default(); requests],
        ..Outcome::default()
    };
    let changes = dated(&asked.changes, stored)?;
    let mut puts: Vec<Put<'_>> = Vec::new();
    // Made only when needed.
    let mut before: Option<Rows> = None;

    for (change, request) in changes.iter().zip(&asked.requests) {
        let effect = &mut outcome.effects[*request];
        match change {
            Change::Put { rows, given, .. } => {
                let put = puts.len();
                puts.push(Put::new(rows));
                let Some(ids) = id_column(rows) else {
                    return Err(ArrowError::SchemaError(
                        "rows to store begin with a 16-byte id".to_owned(),
                    ));
                };
                for row in 0..rows.num_rows() {
                    let Some(id) = given
                        .get(row)
                        .filter(|given| **given)
                        .and_then(|_| RecordId::from_slice(ids.value(row)))
                    else {
                        outcome.records_delta += 1;
                        outcome.updates += 1;
                        effect.stored += 1;
                        continue;
                    };
                    let version = latest.entry(id).or_default();
                    let is_there = match version.now {
                        Latest::Pending {
                            put: earlier,
                            row: earlier_row,
                        } => {
                            puts[earlier].encode(content.get()?)?;
                            puts[put].encode(content.get()?)?;
                            let is_there = puts[earlier].row(earlier_row) == puts[put].row(row);
                            puts[earlier].keep[earlier_row] = is_there;
                            is_there
                        }
                        Latest::Stored => {
                            let before = match &mut before {
                                Some(before) => before,
                                before => before.insert(content.get()?.rows(&stored.rows)?),
                            };
                            puts[put].encode(content.get()?)?;
                            let existing = stored.get(id);
                            let is_there =
                                existing.map(|existing| before.row(existing.row)) == puts[put].row(row);
                            if !is_there {
                                outcome.dead.extend(existing.map(|existing| (existing.piece, id)));
                            }
                            is_there
                        }
                        Latest::Gone => {
                            outcome.records_delta += 1;
                            false
                        }
                    };
                    if is_there {
                        puts[put].keep[row] = false;
                        version.becomes(version.now, *request, effect);
                    } else {
                        outcome.updates += 1;
                        version.becomes(Latest::Pending { put, row }, *request, effect);
                    }
                }
            }
            Change::Delete { records } => {
                for id in records {
                    let Some(version) = latest.get_mut(id) else {
                        continue;
                    };
                    match version.now {
                        Latest::Pending { put, row } => puts[put].keep[row] = false,
                        Latest::Stored => outcome
                            .dead
                            .extend(stored.get(*id).map(|existing| (existing.piece, *id))),
                        Latest::Gone => continue,
                    }
                    outcome.records_delta -= 1;
                    outcome.updates += 1;
                    version.becomes(Latest::Gone, *request, effect);
                }
            }
        }
    }
    outcome.add = kept(schema, &puts)?;
    Ok(outcome)
}

/// The changes, in which records without a time have that of their previous version.
fn dated<'a>(changes: &'a [Change], stored: &StoredRows) -> Result<Cow<'a, [Change]>, ArrowError> {
    let is_undated = |change: &Change| matches!(change, Change::Put { undated, .. } if !undated.is_empty());
    if !changes.iter().any(is_undated) {
        return Ok(Cow::Borrowed(changes));
    }
    let mut known = KnownTimes::default();
    for (id, existing) in stored.iter() {
        known.learn(id, &stored.rows, existing.row)?;
    }
    let mut dated = Vec::with_capacity(changes.len());
    for change in changes {
        dated.push(match change {
            Change::Put { rows, given, undated } => Change::Put {
                rows: known.date(rows, given, undated)?,
                given: Arc::clone(given),
                undated: Arc::clone(undated),
            },
            Change::Delete { records } => {
                for id in records {
                    known.forget(*id);
                }
                change.clone()
            }
        });
    }
    Ok(Cow::Owned(dated))
}

/// Rows that were put. Their comparable form is made for all of them at once, and only when needed: made row
/// by row it would hold a whole dictionary each time.
struct Put<'a> {
    rows: &'a RecordBatch,
    keep: Vec<bool>,
    encoded: Option<Rows>,
}

impl<'a> Put<'a> {
    fn new(rows: &'a RecordBatch) -> Self {
        Self {
            rows,
            keep: vec![true; rows.num_rows()],
            encoded: None,
        }
    }

    fn encode(&mut self, content: &Content) -> Result<(), ArrowError> {
        if self.encoded.is_none() {
            self.encoded = Some(content.rows(self.rows)?);
        }
        Ok(())
    }

    /// The row as `encode` made it.
    fn row(&self, row: usize) -> Option<Row<'_>> {
        self.encoded.as_ref().map(|rows| rows.row(row))
    }
}

fn kept(schema: &SchemaRef, puts: &[Put<'_>]) -> Result<Option<RecordBatch>, ArrowError> {
    let mut batches = Vec::with_capacity(puts.len());
    for Put { rows, keep, .. } in puts {
        if keep.iter().all(|keep| *keep) {
            batches.push((*rows).clone());
        } else if keep.iter().any(|keep| *keep) {
            batches.push(filter_record_batch(rows, &BooleanArray::from(keep.clone()))?);
        }
    }
    batches.retain(|batch| batch.num_rows() > 0);
    if let [] | [_] = batches.as_slice() {
        return Ok(batches.pop());
    }
    // Only columns that have a value in some row: most columns have none.
    let has_value = |column: &usize| {
        let mut columns = batches.iter().filter_map(|batch| batch.columns().get(*column));
        *column < KEYS || columns.any(|rows| rows.logical_null_count() < rows.len())
    };
    let present: Vec<usize> = (0..schema.fields().len()).filter(has_value).collect();
    let schema = Arc::new(schema.project(&present)?);
    let batches: Vec<RecordBatch> = batches
        .iter()
        .map(|batch| batch.project(&present))
        .collect::<Result<_, _>>()?;
    Ok(Some(concat_batches(&schema, &batches)?))
}

fn id_column(rows: &RecordBatch) -> Option<&FixedSizeBinaryArray> {
    rows.columns().first()?.as_any().downcast_ref()
}

/// Compares whole rows, whatever their columns hold.
pub struct Content {
    converter: RowConverter,
}

/// A `Content` that is made only when needed: most rows are new, and nothing is compared.
struct Wanted<'s> {
    schema: &'s SchemaRef,
    made: Option<Content>,
}

impl Wanted<'_> {
    fn get(&mut self) -> Result<&Content, ArrowError> {
        Ok(match &mut self.made {
            Some(made) => made,
            made => made.insert(Content::new(self.schema)?),
        })
    }
}

impl Content {
    pub fn new(schema: &SchemaRef) -> Result<Self, ArrowError> {
        let fields = schema
            .fields()
            .iter()
            .map(|field| SortField::new(field.data_type().clone()))
            .collect();
        Ok(Self {
            converter: RowConverter::new(fields)?,
        })
    }

    /// Rows in a form in which equal rows compare equal.
    pub fn rows(&self, rows: &RecordBatch) -> Result<Rows, ArrowError> {
        self.converter.convert_columns(rows.columns())
    }

    /// The same for some of the rows, in the order given.
    pub fn some(&self, rows: &RecordBatch, of: &[usize]) -> Result<Rows, ArrowError> {
        let of = UInt32Array::from_iter_values(of.iter().map(|row| *row as u32));
        self.rows(&take_record_batch(rows, &of)?)
    }
}
