//! Stored rows as plain columns.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, FixedSizeBinaryArray, Int64Array, RecordBatch,
};
use datafusion::arrow::buffer::ScalarBuffer;
use datafusion::arrow::compute::{cast, filter_record_batch, is_not_null};
use datafusion::arrow::datatypes::{DataType, Float64Type, Int8Type, Int32Type, Int64Type};
use datafusion::common::{Result, internal_datafusion_err};

use crate::model::columns::{END, ID, SOURCE, SOURCE_CLASS, START, VALUE};
use crate::model::registry::dictionary_text;
use crate::model::sources::SourceClass;
use crate::model::sum::Sum;
use crate::model::summary::Summary;

use crate::query::ground::measure::LONG;
use crate::query::ground::rollups::{ROLLUP_COUNT, ROLLUP_LONG, ROLLUP_MAX, ROLLUP_MIN, ROLLUP_SUM};
use crate::query::ground::row_times::micros_of;

use super::contest::{LONG_RANK, Sample};
use super::ranking::{Ranking, Standing};

/// Rows of one batch, in the order of (start, end, id), all with a value.
#[derive(Debug)]
pub(super) struct Rows {
    pub(super) starts: ScalarBuffer<i64>,
    pub(super) ends: ScalarBuffer<i64>,
    pub(super) values: ScalarBuffer<f64>,
    ids: Option<FixedSizeBinaryArray>,
    standings: Standings,
    /// For rows that are rollups: the summaries of the rows that they replace.
    rollups: Option<RollupColumns>,
    /// Whether a row is part of an amount over a very long time.
    long: Option<BooleanArray>,
}

/// Count, sum, minimum and maximum, row by row.
#[derive(Debug)]
struct RollupColumns {
    /// Null in rows that are not rollups.
    counts: Int64Array,
    sums: ScalarBuffer<f64>,
    least: ScalarBuffer<f64>,
    greatest: ScalarBuffer<f64>,
}

#[derive(Debug)]
enum Standings {
    /// The standing of all rows.
    Same(Standing),
    Each(Vec<Standing>),
}

impl Rows {
    pub(super) fn id(&self, row: usize) -> [u8; 16] {
        let id = self
            .ids
            .as_ref()
            .filter(|ids| row < ids.len())
            .map(|ids| ids.value(row));
        id.and_then(|id| id.try_into().ok()).unwrap_or_default()
    }

    /// The summary of the rows that this one replaces, if it is a rollup.
    pub(super) fn rollup(&self, row: usize) -> Option<Summary> {
        let rollups = self.rollups.as_ref()?;
        if rollups.counts.is_null(row) {
            return None;
        }
        Some(Summary::of_parts(
            rollups.counts.values().get(row)?.cast_unsigned(),
            *rollups.sums.get(row)?,
            *rollups.least.get(row)?,
            *rollups.greatest.get(row)?,
        ))
    }

    /// The means of consecutive rollups from `row` on that each begin in the next bin; bins start at `start`
    /// and are `width` long; at most `most`. `None` where there are none, or where rows differ in standing.
    pub(super) fn means_in_turn(
        &self,
        row: usize,
        start: i64,
        width: i64,
        most: usize,
    ) -> Option<impl ExactSizeIterator<Item = f64>> {
        let rollups = self.rollups_alone()?;
        let starts = self.starts.get(row..)?;
        let is_in_turn = |(bin, begins): (usize, &i64)| {
            let into = begins - (start + bin as i64 * width);
            (0..width).contains(&into)
        };
        let in_turn = starts.iter().take(most).enumerate();
        let mut count = in_turn.take_while(|one| is_in_turn(*one)).count();
        // Another one may begin in the last bin.
        let last_end = start + count as i64 * width;
        if starts.get(count).is_none_or(|next| *next < last_end) {
            count = count.saturating_sub(1);
        }
        let range = row..row + count;
        let (sums, counts) = (
            rollups.sums.get(range.clone())?,
            rollups.counts.values().get(range)?,
        );
        // Added to zero, as in every sum, to avoid a negative zero.
        let means = sums
            .iter()
            .zip(counts)
            .map(|(sum, count)| (sum + 0.0) / *count as f64);
        (count > 0).then_some(means)
    }

    /// The means of the bins from `start` on, one after the other, where several rollups begin in each; with
    /// the total number of these rollups.
    pub(super) fn means_of_several(
        &self,
        row: usize,
        start: i64,
        width: i64,
        most: usize,
    ) -> Option<(Vec<f64>, usize)> {
        let rollups = self.rollups_alone().filter(|_| most > 0)?;
        let parts = rollups
            .sums
            .get(row..)?
            .iter()
            .zip(rollups.counts.values().get(row..)?);
        let mut means = Vec::new();
        let mut taken = 0;
        let (mut sum, mut count, mut end) = (Sum::default(), 0, start + width);
        for (at, (begins, (part, of))) in self.starts.get(row..)?.iter().zip(parts).enumerate() {
            if *begins >= end {
                means.push(sum.value() / count as f64);
                taken = at;
                if means.len() == most || *begins >= end + width {
                    break;
                }
                (sum, count, end) = (Sum::default(), 0, end + width);
            }
            sum.add(*part);
            count += of;
        }
        (taken > 0).then_some((means, taken))
    }

    /// The rollups, if all rows are rollups of the same standing.
    fn rollups_alone(&self) -> Option<&RollupColumns> {
        let rollups = self.rollups.as_ref()?;
        let is_alone = rollups.counts.null_count() == 0 && matches!(self.standings, Standings::Same(_));
        is_alone.then_some(rollups)
    }

    fn is_part_of_long(&self, row: usize) -> bool {
        self.long
            .as_ref()
            .is_some_and(|long| row < long.len() && long.is_valid(row) && long.value(row))
    }

    pub(super) fn standing(&self, row: usize) -> Standing {
        match &self.standings {
            Standings::Same(standing) => *standing,
            Standings::Each(standings) => standings.get(row).copied().unwrap_or_default(),
        }
    }

    /// The row as a sample that competes with others.
    #[inline]
    pub(super) fn sample(&self, row: usize) -> Option<Sample> {
        let mut standing = self.standing(row);
        if self.is_part_of_long(row) {
            standing.rank |= LONG_RANK;
        }
        Some(Sample {
            start: *self.starts.get(row)?,
            end: *self.ends.get(row)?,
            value: *self.values.get(row)?,
            standing,
            group: 0,
        })
    }

    /// Whether a row is an interval of moderate length that ends before the next begins. Never true for the
    /// last row, because its successor is unknown.
    #[inline]
    pub(super) fn is_apart(&self, row: usize) -> bool {
        let times = (self.starts.get(row), self.ends.get(row), self.starts.get(row + 1));
        let (Some(start), Some(end), Some(next)) = times else {
            return false;
        };
        has_its_time(*start, *end, *next) && !self.is_part_of_long(row)
    }

    /// The values from `row` on while rows are apart, have the same standing and end by `limit`.
    pub(super) fn apart_until(&self, row: usize, limit: i64) -> &[f64] {
        let (Standings::Same(_), None) = (&self.standings, &self.long) else {
            return &[];
        };
        let starts = self.starts.get(row..).unwrap_or_default();
        let ends = self.ends.get(row..).unwrap_or_default();
        let is_apart = |(starts, end): (&[i64], &i64)| {
            let &[start, next] = starts else { return false };
            has_its_time(start, *end, next) && *end <= limit
        };
        let apart = starts.windows(2).zip(ends).take_while(|one| is_apart(*one));
        let count = apart.count();
        self.values.get(row..row + count).unwrap_or_default()
    }

    /// How many rows from `row` on have its standing and are not rollups, at most `within`.
    pub(super) fn alike(&self, row: usize, within: usize) -> usize {
        let within = match &self.rollups {
            None => within,
            Some(rollups) => {
                let rows = row..(row + within).min(rollups.counts.len());
                rows.take_while(|row| rollups.counts.is_null(*row)).count()
            }
        };
        match &self.standings {
            Standings::Same(_) => within,
            Standings::Each(standings) => {
                let rest = standings.get(row..).unwrap_or_default();
                let first = rest.first();
                rest.iter()
                    .take(within)
                    .take_while(|standing| Some(*standing) == first)
                    .count()
            }
        }
    }
}

/// Reads batches of one plan.
#[derive(Debug)]
pub(super) struct RowReader {
    ranking: Option<Ranking>,
    ids: bool,
    /// The dictionary of sources that was read last, and the source numbers of its entries.
    dictionary: Option<(ArrayRef, Vec<u32>)>,
}

impl RowReader {
    /// Without a ranking, all rows have the same standing.
    pub(super) const fn new(ranking: Option<Ranking>) -> Self {
        Self {
            ranking,
            ids: false,
            dictionary: None,
        }
    }

    /// Reads ids too, if they are needed.
    pub(super) fn with_ids(self, needed: bool) -> Self {
        Self { ids: needed, ..self }
    }

    pub(super) fn read(&mut self, batch: &RecordBatch) -> Result<Rows> {
        if column(batch, VALUE)?.null_count() == 0 {
            return self.read_whole(batch);
        }
        let with_value = is_not_null(column(batch, VALUE)?)?;
        self.read_whole(&filter_record_batch(batch, &with_value)?)
    }

    fn read_whole(&mut self, batch: &RecordBatch) -> Result<Rows> {
        let numbers = cast(column(batch, VALUE)?, &DataType::Float64)?;
        let values = numbers
            .as_primitive_opt::<Float64Type>()
            .ok_or_else(|| internal_datafusion_err!("the value is not a number"))?;
        let ids = batch.column_by_name(ID).filter(|_| self.ids);
        Ok(Rows {
            starts: micros_of(batch, START)?.clone(),
            ends: micros_of(batch, END)?.clone(),
            values: values.values().clone(),
            ids: ids.and_then(|ids| ids.as_fixed_size_binary_opt()).cloned(),
            standings: self.standings(batch)?,
            rollups: rollups(batch)?,
            long: batch
                .column_by_name(ROLLUP_LONG)
                .and_then(|long| long.as_boolean_opt())
                .filter(|long| long.has_true())
                .cloned(),
        })
    }

    fn standings(&mut self, batch: &RecordBatch) -> Result<Standings> {
        let Some(ranking) = &mut self.ranking else {
            return Ok(Standings::Same(Standing::default()));
        };
        let classes = column(batch, SOURCE_CLASS)?;
        let classes = classes
            .as_primitive_opt::<Int8Type>()
            .ok_or_else(|| internal_datafusion_err!("source_class holds no classes"))?;
        let sources = cast(column(batch, SOURCE)?, &dictionary_text())?;
        let sources = sources
            .as_dictionary_opt::<Int32Type>()
            .ok_or_else(|| internal_datafusion_err!("source is not a dictionary"))?;
        let known = self.dictionary.take();
        let known = known.filter(|(entries, _)| Arc::ptr_eq(entries, sources.values()));
        let (entries, numbers) = known.unwrap_or_else(|| numbered(sources.values(), ranking));
        let nameless = ranking.number("");
        let number = |key: Option<i32>| {
            key.and_then(|key| numbers.get(key as usize))
                .copied()
                .unwrap_or(nameless)
        };
        let class = |row: usize| {
            if classes.is_null(row) {
                SourceClass::Other.code()
            } else {
                classes.value(row)
            }
        };
        let keys = sources.keys();
        let rows = batch.num_rows();
        // A dictionary that was put together from several parts may list the same source once for each.
        let one_source = match keys.null_count() {
            0 => all_equal(&numbers) || all_equal(keys.values()),
            nameless => nameless == rows,
        };
        let one_class = match classes.null_count() {
            0 => all_equal(classes.values()),
            unknown => unknown == rows,
        };
        let standings = if rows > 0 && one_source && one_class {
            let first = keys.iter().next().flatten();
            Standings::Same(ranking.standing(number(first), class(0)))
        } else {
            let each = keys
                .iter()
                .enumerate()
                .map(|(row, key)| ranking.standing(number(key), class(row)));
            Standings::Each(each.collect())
        };
        self.dictionary = Some((entries, numbers));
        Ok(standings)
    }
}

/// The entries of a dictionary of sources, and their source numbers.
fn numbered(entries: &ArrayRef, ranking: &mut Ranking) -> (ArrayRef, Vec<u32>) {
    let texts = entries.as_string_opt::<i32>();
    let keys = texts
        .into_iter()
        .flat_map(|texts| texts.iter().map(Option::unwrap_or_default));
    (Arc::clone(entries), keys.map(|key| ranking.number(key)).collect())
}

/// The columns of rollups, if any row is one.
fn rollups(batch: &RecordBatch) -> Result<Option<RollupColumns>> {
    let Some(counts) = batch
        .column_by_name(ROLLUP_COUNT)
        .and_then(|counts| counts.as_primitive_opt::<Int64Type>())
    else {
        return Ok(None);
    };
    if counts.null_count() == counts.len() {
        return Ok(None);
    }
    let numbers = |name: &str| {
        column(batch, name)?
            .as_primitive_opt::<Float64Type>()
            .map(|numbers| numbers.values().clone())
            .ok_or_else(|| internal_datafusion_err!("{name} holds no numbers"))
    };
    Ok(Some(RollupColumns {
        counts: counts.clone(),
        sums: numbers(ROLLUP_SUM)?,
        least: numbers(ROLLUP_MIN)?,
        greatest: numbers(ROLLUP_MAX)?,
    }))
}

/// Whether an interval of moderate length ends before the next begins.
const fn has_its_time(start: i64, end: i64, next: i64) -> bool {
    start < end && end <= next && end - start <= LONG
}

/// Compares all of them, which is faster than stopping at the first difference: mostly they are equal.
fn all_equal<T: PartialEq + Copy>(values: &[T]) -> bool {
    let Some(first) = values.first() else { return true };
    values.iter().filter(|value| *value != first).count() == 0
}

fn column<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a ArrayRef> {
    batch
        .column_by_name(name)
        .ok_or_else(|| internal_datafusion_err!("rows without the column {name}"))
}
