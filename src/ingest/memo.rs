//! Remembers values of earlier records for the next ones: bodies repeat their sources, devices and tags line
//! after line.
//!
//! Lives from one `take` to the next, bounded. Only the complete way adds to it; the fast way only looks up.

use std::collections::HashMap;

use super::columns::Cell;
use super::row::SourceMark;
use crate::model::units::Conversion;

/// Longer texts are not remembered.
const LONGEST_TEXT: usize = 2048;
/// How many texts of one column, and how many combinations of sources, are remembered.
const MOST_ENTRIES: usize = 4096;
/// Stands for a source column without a value.
pub(super) const NOTHING: u32 = u32::MAX;

/// The numbers of the values in the source columns.
pub(super) type SourceKey = [u32; 3];

#[derive(Debug)]
pub(super) struct Memo {
    columns: Vec<ColumnMemo>,
    sources: HashMap<SourceKey, SourceMark>,
    last_source: Option<(SourceKey, SourceMark)>,
    unit: Option<(String, Conversion)>,
    /// The fields of the last record, in their order, each with the text that announces it.
    pub order: Vec<(Vec<u8>, usize)>,
    /// Reusable memory for the cells of the next row.
    pub spare: Vec<(usize, Cell<'static>)>,
}

/// The numbers of one column's values, by the text that they were made from.
#[derive(Clone, Debug, Default)]
struct ColumnMemo {
    last: Option<(Vec<u8>, u32)>,
    numbers: HashMap<Vec<u8>, u32>,
}

impl Memo {
    pub(super) fn new(columns: usize) -> Self {
        Self {
            columns: vec![ColumnMemo::default(); columns],
            sources: HashMap::new(),
            last_source: None,
            unit: None,
            order: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// Forgets everything that refers to rows that were taken.
    pub(super) fn forget_rows(&mut self) {
        for column in &mut self.columns {
            *column = ColumnMemo::default();
        }
        self.sources.clear();
        self.last_source = None;
    }

    /// If `text` begins with the column's last value, that value's length and number. A value's text is
    /// self-delimiting, so the rest need not be checked.
    pub(super) fn repeated(&self, column: usize, text: &[u8]) -> Option<(usize, u32)> {
        let (last, number) = self.columns.get(column)?.last.as_ref()?;
        text.starts_with(last).then_some((last.len(), *number))
    }

    /// The number of the value with the text `raw`.
    pub(super) fn number(&mut self, column: usize, raw: &[u8]) -> Option<u32> {
        let memo = self.columns.get_mut(column)?;
        let number = *memo.numbers.get(raw)?;
        memo.last = Some((raw.to_vec(), number));
        Some(number)
    }

    pub(super) fn learn_value(&mut self, column: usize, raw: &[u8], number: u32) {
        let Some(memo) = self.columns.get_mut(column) else {
            return;
        };
        if raw.len() <= LONGEST_TEXT && memo.numbers.len() < MOST_ENTRIES {
            memo.numbers.insert(raw.to_vec(), number);
            memo.last = Some((raw.to_vec(), number));
        }
    }

    pub(super) fn source(&mut self, key: &SourceKey) -> Option<SourceMark> {
        if let Some((last, mark)) = &self.last_source
            && last == key
        {
            return Some(mark.clone());
        }
        let mark = self.sources.get(key)?.clone();
        self.last_source = Some((*key, mark.clone()));
        Some(mark)
    }

    pub(super) fn learn_source(&mut self, key: SourceKey, mark: SourceMark) {
        if self.sources.len() < MOST_ENTRIES {
            self.sources.insert(key, mark);
        }
    }

    /// The conversion from `unit`; `find` is called unless the unit is the most recent one.
    pub(super) fn conversion(
        &mut self,
        unit: &str,
        find: impl FnOnce() -> Option<Conversion>,
    ) -> Option<Conversion> {
        if let Some((last, conversion)) = &self.unit
            && last == unit
        {
            return Some(*conversion);
        }
        let conversion = find()?;
        self.unit = Some((unit.to_owned(), conversion));
        Some(conversion)
    }
}
