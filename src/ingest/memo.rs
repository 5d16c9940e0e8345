//! Remembers values of earlier records for the next ones: bodies repeat their sources, devices and tags line
//! after line.
//!
//! Lives from one `take` to the next, bounded. Only the complete way adds values to it; the fast way looks
//! them up, and notes the order of members.

use std::sync::Arc;

use ahash::{HashMap, HashMapExt};

use super::columns::Cell;
use super::row::SourceMark;
use crate::model::units::Conversion;

/// Longer texts are not remembered.
const LONGEST_TEXT: usize = 2048;
/// How many texts of one column, and how many combinations of sources, are remembered.
const MOST_ENTRIES: usize = 4096;
/// How many members of a record, and how long names, are remembered in their order.
const MOST_POSITIONS: usize = 64;
const LONGEST_NAME: usize = 64;
/// Stands for a source column without a value.
pub(super) const NOTHING: u32 = u32::MAX;

/// The numbers of the values in the source columns, and what extras say of the source.
pub(super) type SourceKey = [u32; 4];
/// Of a record that says nothing of its source.
pub(super) const OF_NOBODY: SourceKey = [NOTHING, NOTHING, NOTHING, 0];

/// A value that came before.
#[derive(Clone, Debug)]
pub(super) struct RepeatedValue {
    /// Its number in its column.
    pub number: u32,
    /// What its column cannot hold, as JSON.
    pub rest: Option<Arc<str>>,
}

#[derive(Debug)]
pub(super) struct Memo {
    columns: Vec<ColumnMemo>,
    sources: HashMap<SourceKey, SourceMark>,
    last_source: Option<(SourceKey, SourceMark)>,
    unit: Option<(String, Conversion)>,
    /// How many records were begun.
    records: usize,
    /// The members of the last record, in their order.
    pub order: Vec<MemberBeginning>,
    /// Reusable memory for the cells of the next row.
    pub spare: Vec<(usize, Cell<'static>)>,
}

/// A member of a record, as it begins.
#[derive(Debug)]
pub(super) struct MemberBeginning {
    /// Its name in quotes, and the colon.
    pub text: Vec<u8>,
    /// The field that it is; `None` if the type has no such field.
    pub field: Option<usize>,
}

/// One column's values, by the text that they were made from.
#[derive(Clone, Debug, Default)]
struct ColumnMemo {
    last: Option<(Vec<u8>, RepeatedValue)>,
    values: HashMap<Vec<u8>, RepeatedValue>,
}

impl Memo {
    pub(super) fn new(columns: usize) -> Self {
        Self {
            columns: vec![ColumnMemo::default(); columns],
            sources: HashMap::new(),
            last_source: None,
            unit: None,
            records: 0,
            order: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// Forgets everything that refers to rows that were taken.
    pub(super) fn forget_rows(&mut self) {
        for column in &mut self.columns {
            column.last = None;
            column.values.clear();
        }
        self.sources.clear();
        self.last_source = None;
    }

    pub(super) const fn begin_record(&mut self) {
        self.records += 1;
    }

    /// If `text` begins with the column's last value, that value and its length. A value's text is
    /// self-delimiting, so what follows it need not be checked.
    pub(super) fn last(&self, column: usize, text: &[u8]) -> Option<(usize, RepeatedValue)> {
        let (last, value) = self.columns.get(column)?.last.as_ref()?;
        text.starts_with(last).then(|| (last.len(), value.clone()))
    }

    /// The value with the text `raw`.
    pub(super) fn value(&mut self, column: usize, raw: &[u8]) -> Option<RepeatedValue> {
        let memo = self.columns.get_mut(column)?;
        let value = memo.values.get(raw)?.clone();
        memo.last = Some((raw.to_vec(), value.clone()));
        Some(value)
    }

    pub(super) fn learn_value(&mut self, column: usize, raw: &[u8], value: RepeatedValue) {
        let Some(memo) = self.columns.get_mut(column) else {
            return;
        };
        if raw.len() <= LONGEST_TEXT && memo.values.len() < MOST_ENTRIES {
            memo.values.insert(raw.to_vec(), value.clone());
            memo.last = Some((raw.to_vec(), value));
        }
    }

    /// Remembers which member a record has at this position. Not of the first record: most bodies that have
    /// one have no other, and remembering costs more than it takes to read.
    pub(super) fn learn_order(&mut self, position: usize, name: &str, field: Option<usize>) {
        if self.records < 2 || position >= MOST_POSITIONS || name.len() > LONGEST_NAME {
            return;
        }
        let text = format!("\"{name}\":").into_bytes();
        let announced = MemberBeginning { text, field };
        match self.order.get_mut(position) {
            Some(place) => *place = announced,
            None => self.order.push(announced),
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
