//! Merges accepted changes into one partition: which rows are added, which stored rows die, and what is
//! counted.
//!
//! Identity is decided here, on the write side: the same id with the same content changes nothing, with other
//! content it replaces, and a tombstone deletes what was accepted before it. Pure: it receives the stored
//! rows as input; knows neither the catalogue nor files.

use std::borrow::Cow;
use std::sync::Arc;

use ahash::HashMap;
use arrow::array::{BooleanArray, RecordBatch};
use arrow::compute::{concat_batches, filter_record_batch};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;

use super::belonging::narrow_deletions;
use super::changes::{Change, OrderedChanges, id_column};
use super::compare_columns::alike;
use super::compare_rows::{ComparableRows, LazyComparer};
use super::dating::KnownTimes;
use super::stored::StoredRows;
use super::versions::differ_in_repeated;
use crate::catalog::records::Effect;
use crate::model::ids::{PieceId, RecordId};

/// The columns that have a value in every row come first: id, start and end.
const KEYS: usize = 3;

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

impl Outcome {
    /// What a request did so far.
    fn effect(&mut self, request: usize) -> Result<&mut Effect, ArrowError> {
        let unknown = || ArrowError::ComputeError("a change belongs to no request".to_owned());
        self.effects.get_mut(request).ok_or_else(unknown)
    }
}

/// Where the newest version of an id is, after the changes applied so far.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Latest {
    Pending(Pending),
    Stored,
    #[default]
    Gone,
}

/// Row `row` of put number `put`.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Pending {
    put: usize,
    row: usize,
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

/// Applies what is asked, in order, to a partition in which `stored` are the live rows of
/// [`ids_to_look_up`](super::changes::ids_to_look_up).
pub fn merge(schema: &SchemaRef, asked: &OrderedChanges, stored: &StoredRows) -> Result<Outcome, ArrowError> {
    let changes = narrow_deletions(&asked.changes, stored);
    let changes = dated(&changes, stored)?;
    let requests = asked.requests.iter().max().map_or(0, |last| last + 1);
    let mut merging = Merging::new(schema, stored, requests);
    for (change, request) in changes.iter().zip(&asked.requests) {
        match change {
            Change::Put { rows, given, .. } => merging.put(rows, given, *request)?,
            Change::Delete { records, .. } => {
                for id in records.as_slice() {
                    merging.delete(*id, *request)?;
                }
            }
        }
    }
    merging.outcome(schema)
}

/// Changes while they are applied, one after the other.
struct Merging<'a> {
    /// The ids that were stored or put.
    latest: HashMap<RecordId, Version>,
    rows: KnownRows<'a>,
    outcome: Outcome,
}

impl<'a> Merging<'a> {
    fn new(schema: &'a SchemaRef, stored: &'a StoredRows, requests: usize) -> Self {
        Self {
            latest: stored.iter().map(|(id, _)| (id, Version::STORED)).collect(),
            rows: KnownRows {
                stored,
                comparable: ComparableRows::new(&stored.rows),
                puts: Vec::new(),
                comparer: LazyComparer::new(schema),
            },
            outcome: Outcome {
                effects: vec![Effect::default(); requests],
                ..Outcome::default()
            },
        }
    }

    fn put(&mut self, rows: &'a RecordBatch, given: &[bool], request: usize) -> Result<(), ArrowError> {
        let Some(ids) = id_column(rows) else {
            return Err(ArrowError::SchemaError(
                "rows to store begin with a 16-byte id".to_owned(),
            ));
        };
        let put = self.rows.puts.len();
        self.rows.puts.push(Put::new(rows));
        for row in 0..rows.num_rows() {
            let chosen = given
                .get(row)
                .filter(|given| **given)
                .and_then(|_| RecordId::from_slice(ids.value(row)));
            match chosen {
                Some(id) => self.put_row(id, Pending { put, row }, request)?,
                None => self.add_row(request)?,
            }
        }
        Ok(())
    }

    /// A row whose id nobody chose is another than all others.
    fn add_row(&mut self, request: usize) -> Result<(), ArrowError> {
        self.outcome.records_delta += 1;
        self.outcome.updates += 1;
        self.outcome.effect(request)?.stored += 1;
        Ok(())
    }

    fn put_row(&mut self, id: RecordId, pending: Pending, request: usize) -> Result<(), ArrowError> {
        let version = self.latest.entry(id).or_default();
        let is_there = match version.now {
            Latest::Pending(earlier) => self.rows.put_again(earlier, pending)?,
            Latest::Stored => self.rows.stored_again(id, pending, &mut self.outcome.dead)?,
            Latest::Gone => {
                self.outcome.records_delta += 1;
                false
            }
        };
        let latest = if is_there {
            self.rows.leave_out(pending)?;
            version.now
        } else {
            self.outcome.updates += 1;
            Latest::Pending(pending)
        };
        version.becomes(latest, request, self.outcome.effect(request)?);
        Ok(())
    }

    fn delete(&mut self, id: RecordId, request: usize) -> Result<(), ArrowError> {
        let Some(version) = self.latest.get_mut(&id) else {
            return Ok(());
        };
        match version.now {
            Latest::Pending(pending) => self.rows.leave_out(pending)?,
            Latest::Stored => {
                let existing = self.rows.stored.get(id);
                self.outcome
                    .dead
                    .extend(existing.map(|existing| (existing.piece, id)));
            }
            Latest::Gone => return Ok(()),
        }
        self.outcome.records_delta -= 1;
        self.outcome.updates += 1;
        version.becomes(Latest::Gone, request, self.outcome.effect(request)?);
        Ok(())
    }

    fn outcome(self, schema: &SchemaRef) -> Result<Outcome, ArrowError> {
        Ok(Outcome {
            add: kept(schema, &self.rows.puts)?,
            ..self.outcome
        })
    }
}

/// The rows that were stored before and those that were put, with what compares them.
struct KnownRows<'a> {
    stored: &'a StoredRows,
    /// The stored rows.
    comparable: ComparableRows<'a>,
    puts: Vec<Put<'a>>,
    comparer: LazyComparer<'a>,
}

impl KnownRows<'_> {
    /// Whether a row says the same as the one put earlier, which is left out if not.
    fn put_again(&mut self, earlier: Pending, pending: Pending) -> Result<bool, ArrowError> {
        let (before, now) = (row_put(&self.puts, earlier)?, row_put(&self.puts, pending)?);
        let is_same = says_the_same(&mut self.comparer, before, now)?;
        if !is_same {
            self.leave_out(earlier)?;
        }
        Ok(is_same)
    }

    /// Whether a row says the same as the stored one, which is `dead` if not.
    fn stored_again(
        &mut self,
        id: RecordId,
        pending: Pending,
        dead: &mut Vec<(PieceId, RecordId)>,
    ) -> Result<bool, ArrowError> {
        let Some(existing) = self.stored.get(id) else {
            return Ok(false);
        };
        let before = (&self.comparable, existing.row);
        let now = row_put(&self.puts, pending)?;
        let is_same = says_the_same(&mut self.comparer, before, now)?;
        if !is_same {
            dead.push((existing.piece, id));
        }
        Ok(is_same)
    }

    fn leave_out(&mut self, pending: Pending) -> Result<(), ArrowError> {
        let put = self.puts.get_mut(pending.put);
        let keep = put.and_then(|put| put.keep.get_mut(pending.row));
        *keep.ok_or_else(never_put)? = false;
        Ok(())
    }
}

/// A row that was put, with the others that came with it.
fn row_put<'p, 'a>(
    puts: &'p [Put<'a>],
    pending: Pending,
) -> Result<(&'p ComparableRows<'a>, usize), ArrowError> {
    let put = puts.get(pending.put).ok_or_else(never_put)?;
    Ok((&put.rows, pending.row))
}

fn never_put() -> ArrowError {
    ArrowError::ComputeError("a row is looked for that was never put".to_owned())
}

/// Whether a row says the same as the one before it. A version that comes as it was read says the same as the
/// text that is stored.
fn says_the_same(
    comparer: &mut LazyComparer<'_>,
    before: (&ComparableRows<'_>, usize),
    now: (&ComparableRows<'_>, usize),
) -> Result<bool, ArrowError> {
    if comparer.get()?.are_equal(before, now)? {
        return Ok(true);
    }
    let (earlier, later) = (before.0.rows, now.0.rows);
    if !differ_in_repeated((earlier, before.1), (later, now.1)) {
        return Ok(false);
    }
    let (earlier, later) = (earlier.slice(before.1, 1), later.slice(now.1, 1));
    Ok(alike(&earlier.schema(), &earlier, &later)? == [true])
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
            Change::Put {
                rows, given, undated, ..
            } => {
                let rows = known.date(rows, given, undated)?;
                Change::put(rows, Arc::clone(given), Arc::clone(undated))
            }
            Change::Delete { records, .. } => {
                for id in records.as_slice() {
                    known.forget(*id);
                }
                change.clone()
            }
        });
    }
    Ok(Cow::Owned(dated))
}

/// Rows that were put.
struct Put<'a> {
    rows: ComparableRows<'a>,
    keep: Vec<bool>,
}

impl<'a> Put<'a> {
    fn new(rows: &'a RecordBatch) -> Self {
        Self {
            rows: ComparableRows::new(rows),
            keep: vec![true; rows.num_rows()],
        }
    }
}

fn kept(schema: &SchemaRef, puts: &[Put<'_>]) -> Result<Option<RecordBatch>, ArrowError> {
    let mut batches = Vec::with_capacity(puts.len());
    for Put { rows, keep } in puts {
        let rows = rows.rows;
        if keep.iter().all(|keep| *keep) {
            batches.push(rows.clone());
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
