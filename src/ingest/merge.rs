//! What a run of accepted changes does to one partition: which rows are added, which stored rows die, what is
//! counted.
//!
//! Identity is settled here, on the write side: the same id with the same content changes nothing, with other
//! content replaces, and a tombstone ends what was accepted before it. Pure: it is told what is stored and
//! decides; knows neither the catalogue nor files.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, BooleanArray, FixedSizeBinaryArray, RecordBatch, UInt32Array};
use arrow::compute::{concat_batches, filter_record_batch, take_record_batch};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::row::{Row, RowConverter, Rows, SortField};

use super::dating::KnownTimes;
use crate::model::ids::{PieceId, RecordId};

/// Something that was asked of a partition, in the order of acceptance.
#[derive(Clone, Debug)]
pub enum Change {
    /// Rows in the layout's storage schema; `given[row]` says that the caller chose the row's id, so that it
    /// may replace another. The rows `undated`, in order, came without a time, and have that of what they
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

/// A stored live row.
#[derive(Clone, Debug)]
pub struct Stored {
    pub piece: PieceId,
    /// One row, in the same schema as what is put.
    pub row: RecordBatch,
}

/// What the changes come to.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Rows to add, in no particular order; `None` when there are none.
    pub add: Option<RecordBatch>,
    pub dead: Vec<(PieceId, RecordId)>,
    pub records_delta: i64,
    /// Rows put or deleted; what changed nothing is not counted.
    pub updates: i64,
}

/// The ids whose stored rows [`merge`] has to know.
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

/// Where the newest version of an id is, as the changes are walked through.
enum Latest {
    /// Row `row` of put number `put`.
    Pending {
        put: usize,
        row: usize,
    },
    Stored,
    Gone,
}

/// Applies `changes` in order to a partition in which `stored` are the live rows of [`ids_to_look_up`].
pub fn merge(
    schema: &SchemaRef,
    changes: &[Change],
    stored: &HashMap<RecordId, Stored>,
) -> Result<Outcome, ArrowError> {
    let content = Content::new(schema)?;
    let mut latest: HashMap<RecordId, Latest> = stored.keys().map(|id| (*id, Latest::Stored)).collect();
    let mut outcome = Outcome::default();
    let changes = dated(changes, stored)?;
    let mut puts: Vec<Put<'_>> = Vec::new();
    let mut before = StoredRows::new(schema, stored);

    for change in changes.iter() {
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
                        continue;
                    };
                    match latest.get(&id) {
                        Some(Latest::Pending {
                            put: earlier,
                            row: earlier_row,
                        }) => {
                            let (earlier, earlier_row) = (*earlier, *earlier_row);
                            puts[earlier].encode(&content)?;
                            puts[put].encode(&content)?;
                            if puts[earlier].row(earlier_row) == puts[put].row(row) {
                                puts[put].keep[row] = false;
                                continue;
                            }
                            puts[earlier].keep[earlier_row] = false;
                        }
                        Some(Latest::Stored) => {
                            if let Some(existing) = stored.get(&id) {
                                before.encode(&content)?;
                                puts[put].encode(&content)?;
                                if before.row(id) == puts[put].row(row) {
                                    puts[put].keep[row] = false;
                                    continue;
                                }
                                outcome.dead.push((existing.piece, id));
                            }
                        }
                        Some(Latest::Gone) | None => outcome.records_delta += 1,
                    }
                    outcome.updates += 1;
                    latest.insert(id, Latest::Pending { put, row });
                }
            }
            Change::Delete { records } => {
                for id in records {
                    match latest.get(id) {
                        Some(Latest::Pending { put, row }) => puts[*put].keep[*row] = false,
                        Some(Latest::Stored) => outcome
                            .dead
                            .extend(stored.get(id).map(|existing| (existing.piece, *id))),
                        Some(Latest::Gone) | None => continue,
                    }
                    outcome.records_delta -= 1;
                    outcome.updates += 1;
                    latest.insert(*id, Latest::Gone);
                }
            }
        }
    }
    outcome.add = kept(schema, &puts)?;
    Ok(outcome)
}

/// The changes, where records came without a time with that of the version before them.
fn dated<'a>(
    changes: &'a [Change],
    stored: &HashMap<RecordId, Stored>,
) -> Result<Cow<'a, [Change]>, ArrowError> {
    let is_undated = |change: &Change| matches!(change, Change::Put { undated, .. } if !undated.is_empty());
    if !changes.iter().any(is_undated) {
        return Ok(Cow::Borrowed(changes));
    }
    let mut known = KnownTimes::default();
    for (id, existing) in stored {
        known.learn(*id, &existing.row, 0)?;
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

/// Rows that were put. Their comparable form is made for all of them at once, and only when it is asked for:
/// made row by row it would hold a whole dictionary each time.
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

/// The stored rows, in the same form.
struct StoredRows<'a> {
    schema: &'a SchemaRef,
    stored: &'a HashMap<RecordId, Stored>,
    encoded: Option<(HashMap<RecordId, usize>, Rows)>,
}

impl<'a> StoredRows<'a> {
    const fn new(schema: &'a SchemaRef, stored: &'a HashMap<RecordId, Stored>) -> Self {
        Self {
            schema,
            stored,
            encoded: None,
        }
    }

    fn encode(&mut self, content: &Content) -> Result<(), ArrowError> {
        if self.encoded.is_none() {
            let places = self.stored.keys().enumerate().map(|(place, id)| (*id, place));
            let rows = concat_batches(self.schema, self.stored.values().map(|stored| &stored.row))?;
            self.encoded = Some((places.collect(), content.rows(&rows)?));
        }
        Ok(())
    }

    fn row(&self, id: RecordId) -> Option<Row<'_>> {
        let (places, rows) = self.encoded.as_ref()?;
        Some(rows.row(*places.get(&id)?))
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
    match batches.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(one.clone())),
        several => Ok(Some(concat_batches(schema, several)?)),
    }
}

fn id_column(rows: &RecordBatch) -> Option<&FixedSizeBinaryArray> {
    rows.columns().first()?.as_any().downcast_ref()
}

/// Compares whole rows, whatever their columns hold.
pub struct Content {
    converter: RowConverter,
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

    /// Rows in a form in which equal rows are equal.
    pub fn rows(&self, rows: &RecordBatch) -> Result<Rows, ArrowError> {
        self.converter.convert_columns(rows.columns())
    }

    /// The same of some of the rows, in the order given.
    pub fn some(&self, rows: &RecordBatch, of: &[usize]) -> Result<Rows, ArrowError> {
        let of = UInt32Array::from_iter_values(of.iter().map(|row| *row as u32));
        self.rows(&take_record_batch(rows, &of)?)
    }
}
