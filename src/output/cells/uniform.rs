//! Recognises columns whose text is the same in every row of a batch, or the same as another column's.
//!
//! A batch is examined once, which costs little beside formatting one of its cells; where it would cost more,
//! the column counts as one that differs.

use std::ops::Range;

use super::{Cells, Values};

/// Whether there are values, and all are the same.
pub(super) fn all_equal<T: PartialEq>(values: &[T]) -> bool {
    match values {
        [] => false,
        // If anything differs, the first and last values nearly always do.
        [first, .., last] if first != last => false,
        [_, rest @ ..] => *rest == values[..rest.len()],
    }
}

/// The same for floats, compared by bits because some equal floats have different texts.
fn all_equal_bits(values: &[f64]) -> bool {
    let [first, .., last] = values else { return false };
    first.to_bits() == last.to_bits() && values.iter().all(|value| value.to_bits() == first.to_bits())
}

impl Cells {
    /// Whether every row's cell in the current batch, which has rows, is written with the same text.
    pub(in super::super) fn is_uniform(&self) -> bool {
        if let Some(nulls) = &self.nulls {
            return nulls.null_count() == nulls.len();
        }
        match &self.values {
            Values::Null => true,
            Values::Integer(values) => all_equal(values.values()),
            Values::Unsigned(values) => all_equal(values.values()),
            Values::Double(values) => all_equal_bits(values.values()),
            Values::Instant { values, .. } => all_equal(values),
            Values::Dictionary(dictionary) => dictionary.is_uniform(),
            Values::List { offsets, items } => is_uniform_list(offsets, items),
            Values::Structure(structure) => structure.is_uniform(),
            _ => false,
        }
    }

    /// Whether each row's cell in the current batch is written with the same text as the other column's.
    pub(in super::super) fn is_like(&self, other: &Self) -> bool {
        match (&self.values, &other.values) {
            (
                Values::Instant { values, text, .. },
                Values::Instant {
                    values: others,
                    text: written,
                    ..
                },
            ) => {
                self.nulls.is_none() && other.nulls.is_none() && text.writes_like(written) && values == others
            }
            _ => false,
        }
    }

    /// Whether [`Cells::is_same`] can compare these cells.
    pub(super) fn is_comparable(&self) -> bool {
        match &self.values {
            Values::Null | Values::Dictionary(_) => true,
            Values::List { items, .. } => matches!(items.values, Values::Integer(_)),
            _ => false,
        }
    }

    /// Whether the cells of two rows are written with the same text.
    pub(super) fn is_same(&self, one: usize, other: usize) -> bool {
        match &self.values {
            Values::Null => true,
            Values::Dictionary(dictionary) => dictionary.key(one) == dictionary.key(other),
            Values::List { offsets, items } => {
                self.is_null(one) == self.is_null(other)
                    && (self.is_null(one)
                        || items.are_same_integers(range(offsets, one), range(offsets, other)))
            }
            _ => false,
        }
    }

    fn are_same_integers(&self, one: Range<usize>, other: Range<usize>) -> bool {
        let Some(values) = self.integers() else {
            return false;
        };
        values.get(one) == values.get(other)
    }

    /// The values, if none of them is null.
    fn integers(&self) -> Option<&[i64]> {
        match &self.values {
            Values::Integer(values) if self.nulls.is_none() => Some(values.values()),
            _ => None,
        }
    }
}

fn range(offsets: &[i64], row: usize) -> Range<usize> {
    offsets[row] as usize..offsets[row + 1] as usize
}

/// Whether all lists have the same length and the same items.
fn is_uniform_list(offsets: &[i64], items: &Cells) -> bool {
    let (Some(values), [first, second, ..]) = (items.integers(), offsets) else {
        return false;
    };
    let (length, last) = (second - first, offsets[offsets.len() - 1]);
    if !offsets.windows(2).all(|ends| ends[1] - ends[0] == length) {
        return false;
    }
    let held = values.get(*first as usize..last as usize).unwrap_or_default();
    held.get(length as usize..)
        .is_some_and(|rest| *rest == held[..rest.len()])
}
