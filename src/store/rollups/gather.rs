//! Gathers rows into rollups.

use std::sync::Arc;

use ahash::HashMap;
use arrow::array::{
    Array as _, ArrayRef, ArrowPrimitiveType, AsArray as _, Float64Array, Int8Array, Int64Array, RecordBatch,
    StringDictionaryBuilder, TimestampMicrosecondArray,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Int8Type, Int32Type, Int64Type, TimestampMicrosecondType};

use super::{COUNT, GREATEST, LEAST, Month, SUM, Step, schema};
use crate::model::columns::{END, SOURCE, SOURCE_CLASS, START, VALUE};
use crate::model::registry::dictionary_text;
use crate::model::sources::SourceClass;
use crate::model::summary::Summary;
use crate::store::errors::StoreError;

/// Each rollup ends with a look at every source that is kept, so no more than these are kept for the next.
const SOURCES_REMEMBERED: usize = 16;

/// Rollups of one month: all of them, or as many as are handed out at a time.
#[derive(Clone, Debug)]
pub struct GatheredRollups {
    /// The number of the month.
    pub month: i64,
    pub rollups: RecordBatch,
    /// How many rows they were made from.
    pub rows: i64,
    /// Whether every row of the month so far lies within its rollup from start to end, and no earlier row
    /// lasts into the month.
    pub are_points: bool,
    /// Whether these are the last of the month.
    pub ends_month: bool,
}

/// Gathers rows into rollups by the time at which they start. Rows must come in the order of their starts;
/// those without a value are skipped.
pub struct Gatherer {
    step: i64,
    by_source: bool,
    /// About how many are handed out at a time.
    at_a_time: usize,
    month: Option<Month>,
    rows: i64,
    are_points: bool,
    /// The latest end of any row so far.
    reached: i64,
    /// The start of the current rollup.
    rollup: i64,
    seats: Vec<Seat>,
    /// Where the seats of each source are, one for each of its classes. Rows without a source are found as
    /// those of a nameless one.
    places: HashMap<String, Vec<usize>>,
    columns: Columns,
    done: Vec<GatheredRollups>,
}

/// The summary of one source in the current rollup.
#[derive(Debug)]
struct Seat {
    source: Option<String>,
    class: i8,
    summary: Summary,
}

#[derive(Default)]
struct Columns {
    starts: Vec<i64>,
    counts: Vec<i64>,
    sums: Vec<f64>,
    least: Vec<f64>,
    greatest: Vec<f64>,
    sources: StringDictionaryBuilder<Int32Type>,
    classes: Vec<i8>,
}

impl Gatherer {
    /// `by_source`: whether each source has rollups of its own.
    #[must_use]
    pub fn new(step: Step, by_source: bool) -> Self {
        Self {
            step: step.micros(),
            by_source,
            at_a_time: usize::MAX,
            month: None,
            rows: 0,
            are_points: true,
            reached: i64::MIN,
            rollup: i64::MIN,
            seats: Vec::new(),
            places: HashMap::default(),
            columns: Columns::default(),
            done: Vec::new(),
        }
    }

    /// This gatherer, which hands out about `rollups` rollups at a time, so that no more are held.
    #[must_use]
    pub fn at_a_time(self, rollups: usize) -> Self {
        Self {
            at_a_time: rollups,
            ..self
        }
    }

    pub fn take(&mut self, rows: &RecordBatch) -> Result<(), StoreError> {
        let columns = RollupInput::of(rows)?;
        let sources = Sources::of(rows)?.filter(|_| self.by_source);
        let values = columns.values.values();
        let times = columns.starts.iter().zip(columns.ends).zip(values.iter());
        // The seat of the previous row, and its source.
        let mut before: Option<((Option<i32>, i8), usize)> = None;
        for (row, ((&start, &end), &value)) in times.enumerate() {
            if columns.values.is_null(row) {
                continue;
            }
            let rollup = start - start.rem_euclid(self.step);
            if rollup != self.rollup {
                before = before.filter(|_| self.seats.len() <= SOURCES_REMEMBERED);
                self.go_on_to(rollup)?;
            }
            self.rows += 1;
            self.reached = self.reached.max(end);
            self.are_points &= end <= rollup.saturating_add(self.step);
            let named = sources.as_ref().map_or(Sources::NONE, |sources| sources.at(row));
            let seat = match before {
                Some((as_before, seat)) if as_before == named => seat,
                _ => self.seat(
                    sources.as_ref().and_then(|sources| sources.name(named.0)),
                    named.1,
                ),
            };
            before = Some((named, seat));
            if let Some(seat) = self.seats.get_mut(seat) {
                seat.summary.add(value);
            }
        }
        Ok(())
    }

    /// Whether all rows of a month so far were points.
    #[must_use]
    pub fn are_points(&self, month: i64) -> bool {
        self.are_points || self.month.as_ref().is_none_or(|now| now.number != month)
    }

    /// Whether any row so far ends after `moment`.
    #[must_use]
    pub const fn lasts_beyond(&self, moment: i64) -> bool {
        self.reached > moment
    }

    /// Rollups of months that are over, and parts of the current one.
    pub fn ready(&mut self) -> Vec<GatheredRollups> {
        std::mem::take(&mut self.done)
    }

    /// Everything not handed out yet.
    pub fn finish(mut self) -> Result<Vec<GatheredRollups>, StoreError> {
        self.end_rollup();
        self.hand_out(true)?;
        Ok(self.done)
    }

    fn go_on_to(&mut self, rollup: i64) -> Result<(), StoreError> {
        self.end_rollup();
        self.rollup = rollup;
        if self
            .month
            .as_ref()
            .is_none_or(|month| !month.time.contains(&rollup))
        {
            self.hand_out(true)?;
            self.month = Month::of(rollup);
            let begins = self.month.as_ref().map_or(rollup, |month| month.time.start);
            self.are_points = !self.lasts_beyond(begins);
        } else if self.columns.starts.len() >= self.at_a_time {
            self.hand_out(false)?;
        }
        Ok(())
    }

    /// Looked up and not searched for: thousands of sources may write in one hour, each row of another one
    /// than the row before.
    fn seat(&mut self, source: Option<&str>, class: i8) -> usize {
        let name = source.unwrap_or_default();
        let is_it = |seat: &Seat| seat.class == class && seat.source.as_deref() == source;
        let mut places = self.places.get(name).into_iter().flatten();
        if let Some(place) = places.find(|place| self.seats.get(**place).is_some_and(is_it)) {
            return *place;
        }
        let place = self.seats.len();
        self.seats.push(Seat {
            source: source.map(str::to_owned),
            class,
            summary: Summary::default(),
        });
        self.places.entry(name.to_owned()).or_default().push(place);
        place
    }

    /// Ends the current rollup. Seats stay for the next, because the same sources usually continue.
    fn end_rollup(&mut self) {
        for seat in &mut self.seats {
            let summary = std::mem::take(&mut seat.summary);
            if summary.count == 0 {
                continue;
            }
            self.columns
                .add(self.rollup, summary, seat.source.as_deref(), seat.class);
        }
        if self.seats.len() > SOURCES_REMEMBERED {
            self.seats.clear();
            self.places.clear();
        }
    }

    /// Times outside the range of calendars are in no month.
    fn hand_out(&mut self, ends_month: bool) -> Result<(), StoreError> {
        let columns = std::mem::take(&mut self.columns);
        let rows = std::mem::take(&mut self.rows);
        if let Some(month) = &self.month {
            self.done.push(GatheredRollups {
                month: month.number,
                rollups: columns.rollups()?,
                rows,
                are_points: self.are_points,
                ends_month,
            });
        }
        Ok(())
    }
}

impl Columns {
    fn add(&mut self, start: i64, summary: Summary, source: Option<&str>, class: i8) {
        self.starts.push(start);
        self.counts.push(summary.count.cast_signed());
        self.sums.push(summary.sum.value());
        self.least.push(summary.min);
        self.greatest.push(summary.max);
        self.sources.append_option(source);
        self.classes.push(class);
    }

    fn rollups(mut self) -> Result<RecordBatch, StoreError> {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(TimestampMicrosecondArray::from(self.starts).with_timezone("UTC")),
            Arc::new(Int64Array::from(self.counts)),
            Arc::new(Float64Array::from(self.sums)),
            Arc::new(Float64Array::from(self.least)),
            Arc::new(Float64Array::from(self.greatest)),
            Arc::new(self.sources.finish()),
            Arc::new(Int8Array::from(self.classes)),
        ];
        Ok(RecordBatch::try_new(schema(), columns)?)
    }
}

/// Merges the rollups of single sources into those of all sources together. Their source columns then mean
/// nothing.
pub fn together(rollups: &RecordBatch) -> Result<RecordBatch, StoreError> {
    let starts = numbers::<TimestampMicrosecondType>(rollups, START)?;
    if starts.windows(2).all(|pair| pair.first() != pair.last()) {
        return Ok(rollups.clone());
    }
    let mut columns = Columns::default();
    let mut whole = Summary::default();
    let mut rows = summaries(rollups)?.peekable();
    while let Some((start, part)) = rows.next() {
        whole.merge(&part);
        if rows.peek().is_none_or(|(next, _)| *next != start) {
            columns.add(start, std::mem::take(&mut whole), None, Sources::NONE.1);
        }
    }
    columns.rollups()
}

/// Turns rollups of one month, source by source, into longer ones.
pub(in crate::store) fn coarser(rollups: &RecordBatch, step: Step) -> Result<RecordBatch, StoreError> {
    let sources = Sources::of(rollups)?;
    let mut gatherer = Gatherer::new(step, true);
    for (row, (start, part)) in summaries(rollups)?.enumerate() {
        let rollup = start - start.rem_euclid(gatherer.step);
        if rollup != gatherer.rollup {
            gatherer.end_rollup();
            gatherer.rollup = rollup;
        }
        let (name, class) = sources.as_ref().map_or(Sources::NONE, |sources| sources.at(row));
        let name = sources.as_ref().and_then(|sources| sources.name(name));
        let seat = gatherer.seat(name, class);
        if let Some(seat) = gatherer.seats.get_mut(seat) {
            seat.summary.merge(&part);
        }
    }
    gatherer.end_rollup();
    gatherer.columns.rollups()
}

/// The summaries of rollups, each with its start.
fn summaries(rollups: &RecordBatch) -> Result<impl Iterator<Item = (i64, Summary)>, StoreError> {
    let starts = numbers::<TimestampMicrosecondType>(rollups, START)?.iter();
    let counts = numbers::<Int64Type>(rollups, COUNT)?.iter();
    let values = |name: &str| numbers::<Float64Type>(rollups, name);
    let (sums, least, greatest) = (values(SUM)?, values(LEAST)?, values(GREATEST)?);
    let values = sums.iter().zip(least.iter().zip(greatest));
    Ok(starts
        .zip(counts.zip(values))
        .map(|(start, (count, (sum, (least, greatest))))| {
            (
                *start,
                Summary::of_parts(count.cast_unsigned(), *sum, *least, *greatest),
            )
        }))
}

/// The values of a column that has one in each row.
pub(super) fn numbers<'r, T: ArrowPrimitiveType>(
    rows: &'r RecordBatch,
    name: &str,
) -> Result<&'r [T::Native], StoreError> {
    let column = rows.column_by_name(name);
    let column = column.and_then(|column| column.as_primitive_opt::<T>());
    column
        .map(|column| column.values().as_ref())
        .ok_or_else(|| missing(name))
}

fn missing(name: &str) -> StoreError {
    StoreError::rows(format!("no rollups without column {name}"))
}

/// The columns that are used of some rows.
struct RollupInput<'r> {
    starts: &'r [i64],
    ends: &'r [i64],
    values: Float64Array,
}

impl<'r> RollupInput<'r> {
    fn of(rows: &'r RecordBatch) -> Result<Self, StoreError> {
        let values = rows.column_by_name(VALUE).ok_or_else(|| missing(VALUE))?;
        let values = cast(values, &DataType::Float64)?;
        let values = values.as_primitive_opt::<Float64Type>();
        Ok(Self {
            starts: numbers::<TimestampMicrosecondType>(rows, START)?,
            ends: numbers::<TimestampMicrosecondType>(rows, END)?,
            values: values.cloned().ok_or_else(|| missing(VALUE))?,
        })
    }
}

/// The source of each row.
struct Sources {
    names: Option<ArrayRef>,
    classes: Option<Int8Array>,
}

impl Sources {
    const NONE: (Option<i32>, i8) = (None, SourceClass::Other.code());

    fn of(rows: &RecordBatch) -> Result<Option<Self>, StoreError> {
        let names = rows.column_by_name(SOURCE);
        let names = names.map(|names| cast(names, &dictionary_text())).transpose()?;
        let classes = rows.column_by_name(SOURCE_CLASS);
        let classes = classes
            .and_then(|classes| classes.as_primitive_opt::<Int8Type>())
            .cloned();
        Ok((names.is_some() || classes.is_some()).then_some(Self { names, classes }))
    }

    /// The name of a row's source by its number, and its class.
    fn at(&self, row: usize) -> (Option<i32>, i8) {
        let names = self
            .names
            .as_ref()
            .and_then(|names| names.as_dictionary_opt::<Int32Type>());
        let name = names
            .filter(|names| names.is_valid(row))
            .map(|names| names.keys().value(row));
        let class = self.classes.as_ref().filter(|classes| classes.is_valid(row));
        (name, class.map_or(Self::NONE.1, |classes| classes.value(row)))
    }

    fn name(&self, number: Option<i32>) -> Option<&str> {
        let names = self.names.as_ref()?.as_dictionary_opt::<Int32Type>()?;
        let number = usize::try_from(number?).ok()?;
        Some(names.values().as_string_opt::<i32>()?.value(number))
    }
}
